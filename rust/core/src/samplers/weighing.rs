//! Weights of candidates, and the proposals that are made by them. See `selection.md`.

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, UNIT_BITS};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::fixed::Fixed;
use dpnoise_kernels::arith::interval::Interval;
use dpnoise_kernels::arith::{mask, power_of_two};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::candidates::Candidates;
use super::density::{Law, Shape};
use super::refine::{bernoulli, is_below};
use crate::error::Error;
use crate::params::Scale;
use crate::rng::Wiped;

/// The sums of the weights of blocks are at most 2^62.
const SUM_BITS: u32 = 62;

/// The weights exp(-depth/scale).
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    rate: f64,
    law: Law,
}

impl Weighing {
    /// The weights of a scale, or `None` when it is below 2^-10: so the rate times a depth stays below 2^62.
    pub(super) fn new(scale: Scale) -> Option<Self> {
        let rate = Shape::Exponential.rate(scale.ratio());
        (rate <= power_of_two(11)).then(|| Self { rate, law: Law::new(Shape::Exponential, scale) })
    }

    /// The scale.
    pub(super) fn scale(&self) -> Scale {
        self.law.scale
    }

    /// Whether a candidate is accepted: with the probability of [`Proposal`], exactly.
    pub(super) fn accepts<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
        proposal: &Proposal,
    ) -> Result<bool, Error> {
        let prefix = rng.try_next_u64().map_err(Error::randomness)? >> 1;
        let row = Zeroizing::new([proposal.weighed; COLUMNS]);
        let mut weights = Zeroizing::new([0; COLUMNS]);
        kernel::weigh(candidates.instructions(), self.rate, &*row, &mut *weights);
        let accepted = is_below(rng, Reason::Selection, prefix, |constants| {
            let limbs = constants.log2_e.limbs();
            // All are at most 1, and exact.
            let part = |number: u64, bits: u32| Fixed::from_integer(number, limbs).shifted_right(bits.into());
            let weight = part(weights[0].cast_unsigned(), UNIT_BITS).times(&part(proposal.share.length, SUM_BITS));
            let density = self.law.density(constants).at(proposal.depth.cast_unsigned(), constants);
            (Interval::exact(weight), density.times(&Interval::exact(part(proposal.share.sum, SUM_BITS))))
        })?;
        Ok(mask(accepted) & proposal.exists != 0)
    }

    /// Draws a coin that shows heads with probability exp(-depth / scale), exactly.
    pub(super) fn keeps<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, depth: i64) -> Result<bool, Error> {
        bernoulli(rng, |constants| self.law.density(constants).at(depth.cast_unsigned(), constants))
    }

    /// Computes the depths of scores below `best`, and their weights.
    pub(super) fn weigh_scores(
        &self,
        candidates: &Candidates<'_>,
        best: f64,
        scores: &[f64],
        depths: &mut [i64],
        weights: &mut [i64],
    ) {
        kernel::measure(candidates.instructions(), candidates.grid().exponent(), &best, scores, depths);
        kernel::weigh(candidates.instructions(), self.rate, depths, weights);
    }
}

/// The number of attempts that are always made: all of them fail with a probability below 2^-64.
pub(super) fn attempts(count: usize) -> usize {
    match count {
        0..=0x2_0000 => 2,
        0x2_0001..=0x1000_0000 => 3,
        _ => 4,
    }
}

/// The working memory for one block.
pub(super) struct Workspace {
    pub(super) scores: Wiped<f64>,
    pub(super) depths: Wiped<i64>,
    pub(super) weights: Wiped<i64>,
}

impl Workspace {
    pub(super) fn new(block: usize) -> Self {
        Self { scores: Wiped::new(block), depths: Wiped::new(block), weights: Wiped::new(block) }
    }

    pub(super) fn weigh(&mut self, weighing: &Weighing, candidates: &Candidates<'_>, best: f64, scores: &[f64]) {
        weighing.weigh_scores(candidates, best, scores, &mut self.depths, &mut self.weights);
    }

    pub(super) fn weigh_fetched(&mut self, weighing: &Weighing, candidates: &Candidates<'_>, best: f64) {
        weighing.weigh_scores(candidates, best, &self.scores, &mut self.depths, &mut self.weights);
    }
}

/// How a block is proposed, and what it weighs, in units of 2^-62: the first is at least the second times the block's
/// share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) length: u64,
    pub(super) sum: u64,
}

impl Share {
    /// Of candidates that are proposed without choosing a block first.
    pub(super) const WHOLE: Self = Self { length: 1 << SUM_BITS, sum: 1 << SUM_BITS };
}

/// A candidate that was proposed with the weight A length/sum, where A is that of the depth `weighed`. It is accepted with
/// the quotient of C exp(-depth/scale) and that weight.
pub(super) struct Proposal {
    pub(super) index: u64,
    pub(super) weighed: i64,
    pub(super) depth: i64,
    pub(super) share: Share,
    /// All ones if there is one.
    pub(super) exists: u64,
}

/// The first of the candidates that are accepted.
#[derive(Default)]
pub(super) struct Outcome {
    index: u64,
    settled: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, index: u64, accepted: bool) {
        let accepted = mask(accepted);
        self.index |= index & accepted & !self.settled;
        self.settled |= accepted;
    }

    pub(super) fn settled(&self) -> Option<u64> {
        declassify(Reason::Selection, self.settled != 0).then_some(self.index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use num_bigint::BigUint;

    use dpnoise_kernels::arch::candidates::{FURTHEST, RETIRED_DEPTH};

    use super::super::grid::Grid;
    use super::super::selection::Selection;
    use super::super::uniform::uniform_below;
    use super::*;
    use crate::instruction_set::InstructionSet;
    use crate::params::Ratio;
    use crate::rng::ScriptedRng;

    /// The weight of a depth, which is the same on every instruction set and in every place.
    fn weight(rate: f64, depth: i64) -> i64 {
        let weights: Vec<_> = InstructionSet::available()
            .into_iter()
            .map(|set| {
                let mut weights = [0; COLUMNS];
                kernel::weigh(set, rate, &[depth; COLUMNS], &mut weights);
                weights
            })
            .collect();
        assert!(weights.as_flattened().iter().all(|&weight| weight == weights[0][0]), "{depth}: {weights:?}");
        weights[0][0]
    }

    /// The last and the first of `range` for which `differ` says something else.
    fn edge(mut range: [u64; 2], differ: impl Fn(u64) -> bool) -> [u64; 2] {
        while range[1] - range[0] > 1 {
            let middle = range[0].midpoint(range[1]);
            range[usize::from(differ(middle))] = middle;
        }
        range
    }

    fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
        items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join("; ")
    }

    /// What a generator of these words makes of `draw`, and how many of them are left.
    fn scripted<T>(words: &[u64], draw: impl FnOnce(&mut ScriptedRng) -> Result<T, Error>) -> Option<(T, usize)> {
        let mut rng = ScriptedRng::new(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
        draw(&mut rng).ok().map(|drawn| (drawn, rng.remaining() / 8))
    }

    /// Depths where a weight or the rounding of its exponent changes, and those beside them, for each `step`-th exponent.
    fn weights(rate: f64, step: usize) -> Vec<String> {
        let furthest = FURTHEST as i64;
        let mut depths = BTreeSet::from([0, 1, 2, 3, furthest - 1, furthest, RETIRED_DEPTH]);
        for power in (0..=UNIT_BITS).step_by(step) {
            for target in [1 << power, (1 << power) + 1] {
                depths
                    .extend(edge([0, FURTHEST], |depth| weight(rate, depth as i64) < target).map(|depth| depth as i64));
            }
        }
        for exponent in (0..=72).step_by(step).chain([999]) {
            let depth = ((f64::from(exponent) + 0.5) / rate) as i64;
            depths.extend([depth - 1, depth, depth + 1].into_iter().filter(|depth| (0..=furthest).contains(depth)));
        }
        depths.into_iter().map(|depth| format!("({depth}, {})", weight(rate, depth))).collect()
    }

    /// Coins by words at their weight, in all columns.
    fn coins() -> Vec<String> {
        let mut rows = Vec::new();
        for weight in [0, 1, 2, 77, 1 << 50, (1 << 51) - 1, 1 << 51] {
            let uniform = [weight - 1, weight, weight + 1, 0, (1 << 51) - 1];
            for uniform in uniform.into_iter().filter(|uniform| (0..1 << 51).contains(uniform)) {
                for word in [(uniform as u64) << 13, (uniform as u64) << 13 | 0x1fff] {
                    let heads = InstructionSet::available().into_iter().map(|set| {
                        let (mut coins, mut packed) = ([weight; COLUMNS], [0]);
                        kernel::flip(set, &word.to_le_bytes().repeat(COLUMNS), &mut coins, &mut packed);
                        assert!(coins.iter().all(|&coin| coin == coins[0]) && packed == [(coins[0] * 255) as u8]);
                        coins[0] == 1
                    });
                    let heads: Vec<_> = heads.collect();
                    assert!(heads.iter().all(|&head| head == heads[0]), "{heads:?}");
                    rows.push(format!("({weight}, {word}, {})", heads[0]));
                }
            }
        }
        rows
    }

    /// Whole numbers below others: where U n is about to become the next one, by two groups of 128 bits and by four.
    fn whole_numbers() -> Vec<String> {
        let mut rows = Vec::new();
        for n in [1, 3, 1000, (1 << 94) + 12_345, u128::MAX] {
            for (value, groups) in [(0, 2u32), (1, 4), (n / 3, 2), (n - 1, 4), (n, 2)] {
                let start: BigUint = (BigUint::from(value) << (128 * groups)) / n;
                for (distance, last) in [0u32, 1, 2].into_iter().flat_map(|d| [0, u128::MAX].map(|last| (d, last))) {
                    if &start + distance < BigUint::from(1u32)
                        || (&start + distance - 1u32).bits() > (128 * groups).into()
                    {
                        continue;
                    }
                    let number = &start + distance - 1u32;
                    let group = |i: u32| {
                        u128::try_from(&number >> (128 * (groups - 1 - i)) & BigUint::from(u128::MAX)).unwrap()
                    };
                    let words: Vec<u128> = (0..groups).map(group).chain([last; 2]).collect();
                    let mut rng =
                        ScriptedRng::new(words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>());
                    if let Ok(found) = uniform_below(&mut rng, n) {
                        let words = list(words.iter().map(|word| format!("{word:#x}")));
                        rows.push(format!("({n}, [{words}], {found}, {})", rng.remaining() / 16));
                    }
                }
            }
        }
        rows
    }

    /// Whether proposals are accepted, by words at an edge, and how many words are left. Decisions by further words are
    /// among those of `histogram.rs`.
    fn acceptances(weighing: &Weighing, candidates: &Candidates<'_>) -> Vec<String> {
        let unit = (weighing.scale().ratio().to_f64() as i64).max(1);
        let mut rows = Vec::new();
        let whole = |depth| (depth, depth, Share::WHOLE);
        let of_block = |weighed, above, sum: u64| {
            let length = (u128::from(weight(weighing.rate, above) as u64) * u128::from(sum)).div_ceil(1 << 51) as u64;
            (weighed, weighed + above, Share { length, sum })
        };
        let proposals = [whole(unit), of_block(0, unit, 3 << 51), of_block(unit * 2, unit * 25, 5 << 59)];
        for (weighed, depth, share) in proposals {
            let proposal = Proposal { index: 0, weighed, depth, share, exists: u64::MAX };
            let run =
                |words: &[u64]| scripted(words, |rng| weighing.accepts(rng, candidates, &proposal)).expect("words");
            for word in edge([0, u64::MAX], |word| !run(&[word, 0, 0, 0]).0) {
                let words = [word, 0, 0, 0];
                let (answer, left) = run(&words);
                let Share { length, sum } = share;
                rows.push(format!("(Proposal {weighed} {depth} {length} {sum}, [{}], {answer}, {left})", list(words)));
            }
        }
        rows
    }

    /// How many candidates have a score.
    type Run = (usize, i32);

    /// Choices by words of which one at a time is where the choice, or what it takes, changes.
    fn choices(scale: Scale, softmax: bool, runs: &[Run]) -> String {
        let scores: Vec<f64> = runs.iter().flat_map(|&(count, score)| vec![f64::from(score); count]).collect();
        let selection = Selection::new(scale).unwrap();
        let candidates = Candidates::new(Grid::new(1.0).unwrap(), &scores).unwrap();
        let choose = |words: &[u64]| {
            let choice = scripted(words, |rng| {
                if softmax { selection.softmax(rng, &candidates) } else { selection.permute_and_flip(rng, &candidates) }
            });
            choice.expect("words")
        };
        let coins = if softmax { 0 } else { candidates.count() };
        let mut state = 5u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        let words: Vec<u64> = (0..coins + 24).map(|_| word()).collect();
        let mut edges = Vec::new();
        for place in 0..coins + 12 {
            // Words are read with the lowest byte first, or with the highest.
            for read in [u64::to_le, u64::to_be] {
                let with = |value| {
                    let mut words = words.clone();
                    words[place] = read(value);
                    words
                };
                let (first, last) = (choose(&with(0)), choose(&with(u64::MAX)));
                if first != last {
                    edges.push(edge([0, u64::MAX], |value| choose(&with(value)) != first).map(|value| {
                        let (index, left) = choose(&with(value));
                        format!("({place}, {}, {index}, {left})", read(value))
                    }));
                }
            }
        }
        if edges.is_empty() {
            let (index, left) = choose(&words);
            edges.push([format!("(0, {}, {index}, {left})", words[0]), format!("(1, {}, {index}, {left})", words[1])]);
        }
        // Coq takes a quarter of a second for each. Word 8 decides whether the first proposal is accepted.
        let some = edges.iter().cycle().skip(2 * runs.len()).take(1);
        let acceptance = edges.iter().filter(|rows| softmax && rows[0].starts_with("(8,")).take(1);
        let rows: Vec<_> = some.chain(acceptance).flatten().cloned().collect();
        let runs = list(runs.iter().map(|(count, score)| format!("({count}, {score})")));
        format!("{softmax}, [{runs}], [{}], [\n{}]", list(words), rows.join(";\n"))
    }

    /// Writes what `make prove` computes again: weights, coins, whole numbers, acceptances and choices.
    #[test]
    #[ignore = "make prove runs it"]
    fn results_for_the_proofs() {
        let mut code =
            "From Coq Require Import ZArith List Uint63.\nFrom Dpnoise Require Import Model Sound Candidates.\n"
                .to_owned();
        code += "Import ListNotations.\nOpen Scope Z_scope.\n";
        let ratios =
            [(1 << 39, 1), ((1 << 40) - 1, 1), ((1 << 80) + 3, (1 << 40) + 1), (1 << 44, 1), (1, 1024), (10, 3)];
        let scales = ratios.map(|(n, d)| Scale::on_grid(Ratio::new(n, d).unwrap()).unwrap());
        let candidates = Candidates::new(Grid::new(1.0).unwrap(), &[0.0]).unwrap();
        for (i, &scale) in scales.iter().enumerate() {
            let (weighing, ratio) = (Weighing::new(scale).unwrap(), scale.ratio());
            writeln!(
                code,
                "Definition scale{i} := (Law false true {} {}, of_bits false {}).",
                ratio.numerator(),
                ratio.denominator(),
                weighing.rate.to_bits()
            )
            .unwrap();
            let rows = weights(weighing.rate, if i == 0 { 3 } else { 17 });
            writeln!(code, "Definition weights{i} := [\n{}].", rows.join(";\n")).unwrap();
        }
        for i in [2, 5] {
            let rows = acceptances(&Weighing::new(scales[i]).unwrap(), &candidates);
            writeln!(code, "Definition acceptances{i} := [\n{}].", rows.join(";\n")).unwrap();
        }
        let mut define =
            |name: &str, rows: Vec<String>| writeln!(code, "Definition {name} := [\n{}].", rows.join(";\n")).unwrap();
        let of_scales =
            |name: &str, scales: &[usize]| scales.iter().map(|i| format!("(scale{i}, {name}{i})")).collect();
        define("weights", of_scales("weights", &[0, 1, 2, 3, 4, 5]));
        define("acceptances", of_scales("acceptances", &[2, 5]));
        define("coins", coins());
        define("whole_numbers", whole_numbers());
        let near: &[Run] = &[(1, 5), (1, 2), (1, 5), (1, -9), (1, 4), (2, 3), (1, 5), (1, 0), (1, 3)];
        let far: &[Run] = &[(3, 1 << 30), (14, -1 << 30), (2, 0)];
        // The best has the only head, and the second attempt has none to take.
        let one_head: &[Run] = &[(1, 3), (1, 4), (9, 3), (1, 5)];
        let two_blocks: &[Run] = &[(2040, -9), (9, 0), (5, 1), (30, 0)];
        let lists = [
            (5, true, near),
            (5, false, near),
            (0, true, far),
            (0, false, far),
            (4, false, one_head),
            (5, true, two_blocks),
        ];
        let all = lists.map(|(i, softmax, runs)| format!("(scale{i}, {})", choices(scales[i], softmax, runs)));
        define("choices", all.to_vec());
        crate::write_for_the_proofs("Selections.v", &code);
    }

    #[test]
    fn attempts_are_all_in_vain_with_a_probability_below_2_to_the_minus_64() {
        for count in [1, 1 << 17, (1 << 17) + 1, 1 << 28, (1 << 28) + 1, 1 << 33] {
            let in_vain = 2.01 * 2f64.powi(-39) + 3.01 * count as f64 * 2f64.powi(-51);
            assert!(in_vain.powi(attempts(count) as i32) < 2f64.powi(-64), "{count}");
        }
    }
}
