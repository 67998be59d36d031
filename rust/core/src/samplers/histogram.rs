//! The sampler of larger scales: the histogram proposal of `discrete_laplace.md`.

use core::ops::AddAssign;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arch::trials::{self, FEW_TRIALS, Layout, Proposal, Sides, TAIL, TRIALS, Tables, Trials};
use dpnoise_kernels::arith::exp::Constants;
use dpnoise_kernels::arith::fixed::Fixed;
use dpnoise_kernels::arith::interval::Interval;
use rand_core::TryCryptoRng;

use super::density::{Law, Shape};
use super::design::{Design, tables};
use super::refine::{bernoulli, heads, is_below};
use crate::error::Error;
use crate::instruction_set;
use crate::rng::{self, Wiped, wipe};

/// A sampler by trials.
#[derive(Clone, Debug)]
pub struct Histogram {
    law: Law,
    tables: Tables,
}

/// How often the rare paths were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rarities {
    /// Trials in all; numbers, where all of them are kept.
    pub trials: u64,
    /// Trials that floating point left undecided.
    pub refinements: u64,
    /// Trials that proposed the tail, or numbers with an entry that stands for the rest.
    pub tails: u64,
}

impl AddAssign for Rarities {
    fn add_assign(&mut self, more: Self) {
        self.trials += more.trials;
        self.refinements += more.refinements;
        self.tails += more.tails;
    }
}

impl Histogram {
    /// The tables of a design.
    ///
    /// # Panics
    /// When the design has no room for this scale: `weight_bits` outside 8 to 32, a shift above 50, or an expected
    /// number of tail proposals that exceeds the weights.
    pub(super) fn new(law: Law, both_signs: bool, design: Design) -> Self {
        let (shape, ratio) = (law.shape, law.scale.ratio());
        let short = Constants::short();
        let tables = tables(design, shape, ratio, both_signs, short).unwrap_or_else(|| {
            // Some weight is within 2^-40 of a whole number.
            let mut limbs = short.limbs();
            loop {
                limbs *= 2;
                if let Some(tables) = tables(design, shape, ratio, both_signs, &Constants::<Vec<u64>>::new(limbs)) {
                    break tables;
                }
            }
        });
        Self { law, tables }
    }

    /// The tables of the proposal.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Fills `out`; where it fails, only in part.
    pub(super) fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        let instructions = instruction_set::current()?;
        let bytes = |count| self.tables.layout.bytes(count);
        let (blocks, count) = fetch(out.len());
        let Workspace { words, trials, spare } = &mut Workspace::new(blocks * bytes(count));
        let mut rarities = Rarities::default();
        let mut rest = out;
        while !rest.is_empty() {
            let (blocks, count) = fetch(rest.len());
            let words = &mut words[..blocks * bytes(count)];
            rng::fill_bytes(rng, words)?;
            for words in words.chunks_exact(bytes(count)) {
                // Values go straight to their place where there is room for a whole block.
                let in_place = rest.len() >= TRIALS;
                let packed = if in_place { &mut *rest } else { &mut **spare };
                trials::run(instructions, &self.tables, words, trials, packed);
                // From here on, time and addresses may depend on these masks.
                trials.accepted = declassify(Reason::Rejection, trials.accepted);
                trials.undecided = declassify(Reason::Refinement, trials.undecided);
                trials.tail = declassify(Reason::Tail, trials.tail);
                rarities.trials += count as u64;
                rarities.refinements += u64::from(trials.undecided.count_ones());
                rarities.tails += u64::from(trials.tail.count_ones());
                if trials.undecided | trials.tail != 0 {
                    self.resolve(rng, words, trials)?;
                    trials::compact(instructions, trials, packed);
                }
                let count = (trials.accepted.count_ones() as usize).min(rest.len());
                if !in_place {
                    rest[..count].copy_from_slice(&spare[..count]);
                }
                rest = &mut rest[count..];
            }
        }
        Ok(rarities)
    }

    /// Decides the open trials of a block, in order.
    fn resolve<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, words: &[u8], trials: &mut Trials) -> Result<(), Error> {
        for i in 0..TRIALS {
            if (trials.undecided | trials.tail) >> i & 1 == 1 {
                let (bin, offset, accept) = self.tables.layout.words_of(words, i);
                let proposal = trials::proposal(&self.tables, bin, offset, accept);
                if let Some(value) = self.decide(rng, &proposal)? {
                    trials.values[i] = value;
                    trials.accepted |= 1 << i;
                }
            }
        }
        Ok(())
    }

    /// The outcome of a trial, exactly.
    fn decide<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, proposal: &Proposal) -> Result<Option<i64>, Error> {
        if declassify(Reason::Tail, proposal.bin == TAIL) {
            return self.tail(rng, proposal);
        }
        let accepted = is_below(rng, Reason::Refinement, proposal.uniform, |constants| {
            let weight = Interval::exact(Fixed::from_integer(proposal.weight.into(), constants.log2_e.limbs()));
            (weight, self.law.density(constants).at(proposal.magnitude, constants).times_integer(proposal.amplitude))
        })?;
        let accepted = declassify(Reason::Rejection, accepted & !self.tables.is_negative_zero(proposal));
        Ok(accepted.then(|| proposal.value()))
    }

    /// The outcome of a trial that chose the tail bin; see "The tail" in the documentation of the discrete Laplace.
    fn tail<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, proposal: &Proposal) -> Result<Option<i64>, Error> {
        let shift = self.tables.layout.shift;
        let start = Layout::bin_start(TAIL as u32).0 << shift;
        let copies = u32::from(self.tables.sides == Sides::Folded);
        let kept = is_below(rng, Reason::Tail, proposal.uniform, |constants| {
            let density = self.law.density(constants);
            let mass = density.decay(start, 1, constants).complement().times_integer(1 << shift);
            let threshold = density.at(start, constants).times_integer(self.tables.amplitude << copies);
            (mass.times_integer(proposal.weight.into()), threshold)
        })?;
        if !declassify(Reason::Tail, kept) {
            return Ok(None);
        }
        let beyond = self.geometric(rng, start, shift)?;
        if self.law.shape == Shape::Gaussian
            && !bernoulli(rng, |constants| self.law.density(constants).excess(beyond, constants))?
        {
            return Ok(None);
        }
        let magnitude = start.saturating_add(beyond).min(i64::MAX.unsigned_abs()).cast_signed();
        Ok(Some(if proposal.negative { -magnitude } else { magnitude }))
    }

    /// A value with probability proportional to the density's decay from `start`: high and low bits are independent.
    fn geometric<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, start: u64, shift: u32) -> Result<u64, Error> {
        let decays =
            |rng: &mut R, k| bernoulli(rng, |constants| self.law.density(constants).decay(start, k, constants));
        let low = loop {
            let low = rng.try_next_u64().map_err(Error::randomness)? & ((1 << shift) - 1);
            if decays(rng, low)? {
                break low;
            }
        };
        let high = heads(rng, |constants| self.law.density(constants).decay(start, 1 << shift, constants))?;
        Ok(high << shift | low)
    }
}

/// How many blocks' words are fetched at once, and how many trials a block has, while `missing` values are missing:
/// four blocks if all of their values will be needed, and a small one for a handful of values.
fn fetch(missing: usize) -> (usize, usize) {
    match missing {
        0..=8 => (1, FEW_TRIALS),
        _ if missing < 4 * TRIALS => (1, TRIALS),
        _ => (4, TRIALS),
    }
}

/// The working memory of a call, in one place so that one wipe clears all of it.
struct Workspace {
    words: Wiped<u8>,
    trials: Trials,
    /// The values of a block for which there is not enough room.
    spare: Wiped<i64>,
}

impl Workspace {
    fn new(bytes: usize) -> Self {
        Self { words: Wiped::new(bytes), trials: Trials::default(), spare: Wiped::new(TRIALS) }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        wipe(&mut self.trials.values);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::params::{Ratio, Scale};
    use crate::rng::ScriptedRng;

    /// A prefix, and the words that a decision gets.
    const WORDS: usize = 25;

    /// What a proposal comes to, and how many words are left.
    fn decide(histogram: &Histogram, proposal: &Proposal, words: &[u64]) -> (Option<i64>, usize) {
        let mut rng = ScriptedRng::new(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
        let value = histogram.decide(&mut rng, proposal).expect("enough words");
        (value, rng.remaining() / 8)
    }

    /// The last and the first of `range` for which `differ` says something else.
    pub(in crate::samplers) fn edge(mut range: [u64; 2], differ: impl Fn(u64) -> bool) -> [u64; 2] {
        while range[1] - range[0] > 1 {
            let middle = range[0].midpoint(range[1]);
            range[usize::from(differ(middle))] = middle;
        }
        range
    }

    /// A fixed-point number as an integer.
    pub(in super::super) fn hex(x: &Fixed) -> String {
        let (mut code, mut rest) = (format!("0x{:x}", x.integer()), x.clone());
        for _ in 0..2 * x.limbs() {
            rest = rest.fraction().times_integer(1 << 32);
            write!(code, "{:08x}", rest.integer()).unwrap();
        }
        code
    }

    /// Writes what `make prove` computes again: constants, bounds of densities, and decisions by words at an edge.
    #[test]
    #[ignore = "make prove runs it"]
    fn results_for_the_proofs() {
        let list = |words: &[u64]| words.iter().map(u64::to_string).collect::<Vec<_>>().join("; ");
        let mut code = "From Coq Require Import ZArith List.\nFrom Dpnoise Require Import Sound Integers.\n".to_owned();
        code += "Import ListNotations.\nOpen Scope Z_scope.\n";
        for limbs in [3, 4, 6, 8, 16] {
            let c = Constants::<Vec<u64>>::new(limbs);
            let (ln_2, log2_e) = (hex(&c.ln_2), hex(&c.log2_e));
            writeln!(code, "Definition constants{limbs} := Constants {limbs} {ln_2} {log2_e} (coefficients {limbs}).")
                .unwrap();
        }
        let laws = [
            (Shape::Exponential, Ratio::new(10, 3)),
            (Shape::Exponential, Ratio::new((1 << 100) + 7, (1 << 80) + 1)),
            (Shape::Gaussian, Ratio::new(41, 6)),
            (Shape::Gaussian, Ratio::new(1, 4)),
            (Shape::Gaussian, Ratio::new(200_000_001, 2)),
        ];
        let (mut densities, mut decisions, mut tails) = (Vec::new(), Vec::new(), Vec::new());
        for (shape, ratio) in laws {
            let scale = ratio.unwrap();
            let law = Law::new(shape, Scale::new(scale).unwrap());
            let histogram = Histogram::new(law, true, Design::for_scale(shape, scale));
            let is_gaussian = shape == Shape::Gaussian;
            let name = format!("Law {is_gaussian} true {} {}", scale.numerator(), scale.denominator());
            let far = 2 * (scale.numerator() / scale.denominator()) as u64 + 3;
            for (x, limbs) in [(0, 4), (1, 4), (far, 4), (far, 8)] {
                let constants = Constants::new(limbs);
                let Interval { low, high } = histogram.law.density(&constants).at(x, &constants);
                densities.push(format!("({name}, {limbs}, {x}, {}, {})", hex(&low), hex(&high)));
            }
            let bin = |uniform| Proposal {
                bin: 0,
                magnitude: far,
                negative: false,
                uniform,
                weight: 4_000_000_001,
                amplitude: 3_000_000_001,
            };
            // The last prefix that is below where only zeros follow, then the last word behind it, and so on; and the
            // next ones.
            let mut words: Vec<u64> = Vec::new();
            for bits in [63, 64, 64] {
                let with = |last| {
                    let mut words = [&words[..], &[last]].concat();
                    words.resize(WORDS, 0);
                    words
                };
                let run = |words: &[u64]| decide(&histogram, &bin(words[0]), &words[1..]);
                let [low, high] = edge([0, u64::MAX >> (64 - bits)], |last| run(&with(last)).0.is_none());
                for words in [with(low), with(high)] {
                    let ((value, left), Proposal { uniform, weight, amplitude, .. }) = (run(&words), bin(words[0]));
                    let (answer, further) = (value.is_some(), list(&words[1..]));
                    decisions.push(format!(
                        "({name}, {amplitude}, {weight}, {far}, {uniform}, [{further}], {answer}, {left})"
                    ));
                }
                words.push(low);
            }
            if is_gaussian && far < 100 {
                continue; // the tail begins at 31 standard deviations or more: its comparison needs hundreds of bits
            }
            // The tail: the prefix, with more words for a Gaussian; low bits that are not kept, and such that are; a
            // coin for the high ones, and the one that ends them; and what a Gaussian lacks.
            let Tables { layout: Layout { shift }, weights, amplitude, sides, .. } = *histogram.tables();
            let (start, weight) = (Layout::bin_start(TAIL as u32).0 << shift, weights[TAIL]);
            let place = format!("{start}, {shift}, {weight}, {}", amplitude << u32::from(sides == Sides::Folded));
            let run = |words: &[u64], negative| {
                let uniform = words[0] >> 1;
                let proposal = Proposal { bin: TAIL, magnitude: 0, negative, uniform, weight, amplitude: 0 };
                decide(&histogram, &proposal, &words[1..])
            };
            let (further, places) = if is_gaussian { (3, &[3, 10][..]) } else { (0, &[0, 2, 5, 6][..]) };
            let mut base = [vec![0; 1 + further], vec![5, u64::MAX, 3, 0, 0]].concat();
            base.extend([u64::MAX, 0].repeat(WORDS));
            base.truncate(WORDS);
            for &i in places {
                let with = |word| [&base[..i], &[word], &base[i + 1..]].concat();
                let first = run(&with(0), false);
                let [low, open] = edge([0, u64::MAX], |word| run(&with(word), false) != first);
                let second = run(&with(open), false);
                let [_, end] = edge([open, u64::MAX], |word| run(&with(word), false) != second);
                for (word, negative) in [(low, false), (open, true), (end, false)] {
                    let words = with(word);
                    let ((value, left), further) = (run(&words, negative), list(&words[1..]));
                    let value = value.map_or("None".to_owned(), |value| format!("Some ({value})"));
                    tails.push(format!(
                        "({name}, {place}, {}, {negative}, [{further}], {value}, {left})",
                        words[0] >> 1
                    ));
                }
            }
        }
        for (name, rows) in [("densities", densities), ("decisions", decisions), ("tails", tails)] {
            writeln!(code, "Definition {name} := [\n{}].", rows.join(";\n")).unwrap();
        }
        crate::write_for_the_proofs("Decisions.v", &code);
    }
}
