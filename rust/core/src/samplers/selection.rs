#![doc = include_str!("selection.md")]

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, NOWHERE, RETIRED, Row, UNIT_BITS};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::exp::Constants;
use dpnoise_kernels::arith::fixed::Fixed;
use dpnoise_kernels::arith::interval::Interval;
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::density::{Density, Shape};
use super::grid::Grid;
use super::peeling::Peeling;
use super::refine::is_below;
use super::uniform::uniform_below;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::params::Scale;
use crate::rng::{Wiped, fill_bytes};

/// The number of candidates that are processed at a time: they stay in the first-level cache, and the weights of a
/// column add up to less than 2^62.
const BLOCK: usize = 2048;

/// The sums of the weights of blocks are at most 2^62.
const SUM_BITS: u32 = 62;

/// Candidates, by their scores on a grid.
pub struct Candidates<'a> {
    instructions: InstructionSet,
    grid: Grid,
    /// Those of whole blocks.
    front: &'a [f64],
    /// The rest, in a block padded with retired candidates.
    end: Wiped<f64>,
    /// The best score of each block, and [`RETIRED`] up to a whole row.
    bests: Wiped<f64>,
    /// The best score.
    best: Zeroizing<f64>,
}

/// Chooses among candidates.
///
/// ```
/// use dpnoise_core::{params::Scale, rng::SecureRng, samplers::{Candidates, Grid, Selection}};
/// let candidates = Candidates::new(Grid::new(0.125)?, &[3.0, 4.5, 4.25])?;
/// let chosen = Selection::new(Scale::from_f64(10.0)?)?.softmax(&mut SecureRng::new()?, &candidates)?;
/// assert!(chosen < 3);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    scale: Scale,
    rate: f64,
    density: Density,
}

impl<'a> Candidates<'a> {
    /// One candidate for each of `scores`.
    ///
    /// # Errors
    /// [`Error::Data`] when there are no scores or one is not finite, [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no
    /// instruction set of this CPU.
    pub fn new(grid: Grid, scores: &'a [f64]) -> Result<Self, Error> {
        let Some(&last) = scores.last() else {
            return Err(Error::data("scores", "must not be empty"));
        };
        let instructions = instruction_set::current()?;
        let block = BLOCK.min(scores.len().next_multiple_of(COLUMNS));
        let (front, rest) = scores.split_at(scores.len() - scores.len() % block);
        let mut end = Wiped::new(if rest.is_empty() { 0 } else { block });
        let (of_scores, padding) = end.split_at_mut(rest.len());
        of_scores.copy_from_slice(rest);
        // A score that is there already changes no extreme.
        padding.fill(last);
        let mut bests = Wiped::new(scores.len().div_ceil(block).next_multiple_of(COLUMNS));
        bests.fill(RETIRED);
        let mut magnitude = 0;
        let blocks = front.chunks_exact(block).chain(Some(&*end).filter(|end| !end.is_empty()));
        for (scores, best) in blocks.zip(bests.iter_mut()) {
            let found = kernel::extremes(instructions, scores);
            *best = best_of(&found.best);
            for bits in found.magnitude {
                let larger = mask(magnitude < bits).cast_signed();
                magnitude = bits & larger | magnitude & !larger;
            }
        }
        if let Some(padding) = end.get_mut(rest.len()..) {
            padding.fill(RETIRED);
        }
        if !declassify(Reason::Refusal, magnitude < f64::INFINITY.to_bits().cast_signed()) {
            return Err(Error::data("scores", "must be finite: no NaN and no infinity"));
        }
        let best = Zeroizing::new(best_of(&bests));
        Ok(Self { instructions, grid, front, end, bests, best })
    }

    /// Copies the scores of a block.
    pub(super) fn fetch(&self, block: u64, fetched: &mut [f64]) {
        for (index, scores) in self.blocks().enumerate() {
            kernel::keep_if(self.instructions, &mask(index as u64 == block), scores, fetched);
        }
    }

    /// The instruction set in use.
    pub(super) fn instructions(&self) -> InstructionSet {
        self.instructions
    }

    /// The best score of each block.
    pub(super) fn bests(&self) -> &[f64] {
        &self.bests
    }

    /// The number of candidates in each block.
    pub(super) fn block(&self) -> usize {
        if self.end.is_empty() { BLOCK.min(self.front.len()) } else { self.end.len() }
    }

    /// The scores, block by block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[f64]> {
        self.front.chunks_exact(self.block()).chain(Some(&*self.end).filter(|end| !end.is_empty()))
    }

    /// The number of candidates, retired ones included.
    pub(super) fn count(&self) -> usize {
        self.front.len() + self.end.len()
    }
}

impl Selection {
    /// The scale is in steps of the grid.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the scale is below 2^-10.
    pub fn new(scale: Scale) -> Result<Self, Error> {
        let rate = Shape::Exponential.rate(scale.ratio());
        // Refused, so that the rate times a depth stays below 2^62.
        if rate > 2f64.powi(11) {
            let value = format!("{:e}", scale.ratio().to_f64());
            return Err(Error::parameter("scale", value, "at least 2**-10 steps of the grid"));
        }
        Ok(Self { scale, rate, density: Density::new(Shape::Exponential, scale.ratio(), Constants::first()) })
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Chooses a candidate with probability proportional to exp(-depth / scale), and returns its index: the exponential
    /// mechanism (McSherry and Talwar 2007).
    ///
    /// With scores of sensitivity D, in steps of the grid, it is epsilon-differentially private for a scale of 2 D /
    /// epsilon, or of D / epsilon if between neighbours all scores rise or all fall.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails.
    pub fn softmax<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, candidates: &Candidates<'_>) -> Result<u64, Error> {
        Ok(self.peel(rng, candidates, 1)?[0])
    }

    /// Chooses so many candidates one after the other, each by [`Selection::softmax`] from those that are left, and returns
    /// their indices.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails.
    ///
    /// # Panics
    /// When there are fewer candidates.
    pub fn peel<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
        rounds: usize,
    ) -> Result<Vec<u64>, Error> {
        assert!(rounds <= candidates.count());
        let mut peeling = Peeling::new(self, candidates);
        // The choices are secret until the last one is made.
        let mut chosen = Wiped::new(rounds);
        for round in 0..rounds {
            chosen[round] = peeling.choose(rng)?;
            if round + 1 < rounds {
                peeling.retire(chosen[round]);
            }
        }
        Ok(chosen.to_vec())
    }

    /// Chooses uniformly among the candidates whose coins show heads, which they do with probability exp(-depth /
    /// scale), and returns its index: permute-and-flip (McKenna and Sheldon 2020).
    ///
    /// It is epsilon-differentially private for the same scales as [`Selection::softmax`].
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails.
    pub fn permute_and_flip<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
    ) -> Result<u64, Error> {
        let mut work = Workspace::new(candidates.block());
        let mut words = Wiped::new(8 * candidates.block());
        let mut sums = Wiped::new(candidates.blocks().count());
        let mut coins = Wiped::new(candidates.count() / COLUMNS);
        let coins_of_blocks = coins.chunks_exact_mut(candidates.block() / COLUMNS);
        for ((scores, sums), coins) in candidates.blocks().zip(sums.iter_mut()).zip(coins_of_blocks) {
            work.weigh(self, candidates, *candidates.best, scores);
            fill_bytes(rng, &mut words)?;
            kernel::flip(candidates.instructions, &words, &mut work.weights, coins);
            *sums = kernel::sums(candidates.instructions, &work.weights);
        }
        let heads = total(&sums);
        // Room for more attempts than are ever made, except with negligible probability: growing would leave a copy
        // behind.
        let mut taken = Zeroizing::new(Vec::with_capacity(8));
        let mut packed = Wiped::new(candidates.block() / COLUMNS);
        let mut outcome = Outcome::default();
        loop {
            for _ in 0..attempts(candidates.count()) {
                let left = heads.saturating_sub(taken.len() as u128);
                let place = Place::of(untaken(uniform_below(rng, left)?, &mut taken), &sums);
                candidates.fetch(place.block, &mut work.scores);
                work.weigh_fetched(self, candidates, *candidates.best);
                fetch_bits(&coins, place.block, &mut packed);
                for (coins, &bits) in work.weights.chunks_exact_mut(COLUMNS).zip(&*packed) {
                    for (column, coin) in coins.iter_mut().enumerate() {
                        *coin = i64::from(bits >> column & 1);
                    }
                }
                let Found { index, depth, exists } = place.locate(candidates, &work);
                let proposal = Proposal { index, weighed: depth, depth, share: Share::WHOLE, exists };
                outcome.add(index, self.accepts(rng, candidates, &proposal)?);
            }
            if let Some(index) = outcome.settled() {
                return Ok(index);
            }
        }
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
        kernel::weigh(candidates.instructions, self.rate, &*row, &mut *weights);
        let accepted = is_below(rng, Reason::Selection, prefix, |constants| {
            let limbs = constants.log2_e.limbs();
            // All are at most 1, and exact.
            let part = |number: u64, bits: u32| Fixed::from_integer(number, limbs).shifted_right(bits.into());
            let weight = part(weights[0].cast_unsigned(), UNIT_BITS).multiplied(&part(proposal.share.length, SUM_BITS));
            let density = self.density(constants).at(proposal.depth.cast_unsigned(), constants);
            (Interval::exact(weight), density.times(&Interval::exact(part(proposal.share.sum, SUM_BITS))))
        })?;
        Ok(mask(accepted) & proposal.exists != 0)
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
        kernel::measure(candidates.instructions, candidates.grid.exponent(), &best, scores, depths);
        kernel::weigh(candidates.instructions, self.rate, depths, weights);
    }

    /// The density at the precision of `constants`.
    fn density(&self, constants: &Constants) -> Density {
        if core::ptr::eq(constants, Constants::first()) {
            self.density.clone()
        } else {
            Density::new(Shape::Exponential, self.scale.ratio(), constants)
        }
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

/// Takes the `rank`-th number that is not taken yet, and returns it. `taken` is sorted.
fn untaken(rank: u128, taken: &mut Vec<u128>) -> u128 {
    let number = taken.iter().fold(rank, |number, &other| number.wrapping_add(u128::from(number >= other)));
    let mut last = number;
    for other in taken.iter_mut() {
        let larger = u128::from(mask(*other > last));
        let swapped = (*other ^ last) & (larger << 64 | larger);
        (*other, last) = (*other ^ swapped, last ^ swapped);
    }
    taken.push(last);
    number
}

/// The sum of all weights.
fn total(sums: &[Row]) -> u128 {
    sums.as_flattened().iter().fold(0, |total, &sum| total.wrapping_add(sum.cast_unsigned().into()))
}

/// The highest score, where subnormal numbers count as 0.
pub(super) fn highest(instructions: InstructionSet, scores: &[f64]) -> f64 {
    best_of(&kernel::extremes(instructions, scores).best)
}

/// The highest of the numbers, which are not NaN.
fn best_of(numbers: &[f64]) -> f64 {
    let best = numbers.iter().fold(RETIRED.to_bits(), |best, &number| {
        let better = mask(f64::from_bits(best) < number);
        number.to_bits() & better | best & !better
    });
    f64::from_bits(best)
}

/// Copies the packed bits of a block; zeros if there is no such block.
pub(super) fn fetch_bits(packed: &[u8], block: u64, fetched: &mut [u8]) {
    fetched.fill(0);
    for (index, packed) in packed.chunks_exact(fetched.len()).enumerate() {
        let chosen = mask(index as u64 == block) as u8;
        for (fetched, &bits) in fetched.iter_mut().zip(packed) {
            *fetched |= bits & chosen;
        }
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

    pub(super) fn weigh(&mut self, selection: &Selection, candidates: &Candidates<'_>, best: f64, scores: &[f64]) {
        selection.weigh_scores(candidates, best, scores, &mut self.depths, &mut self.weights);
    }

    pub(super) fn weigh_fetched(&mut self, selection: &Selection, candidates: &Candidates<'_>, best: f64) {
        selection.weigh_scores(candidates, best, &self.scores, &mut self.depths, &mut self.weights);
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
    const WHOLE: Self = Self { length: 1 << SUM_BITS, sum: 1 << SUM_BITS };
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

/// The place where a number falls, when all items lie side by side with their weights as lengths: in a block column by
/// column, and block by block.
pub(super) struct Place {
    block: u64,
    /// The remainder of the number in its column; [`NOWHERE`] in the others.
    targets: Zeroizing<Row>,
    /// Whether there is such a place.
    exists: u64,
}

/// The candidate at a place.
pub(super) struct Found {
    pub(super) index: u64,
    pub(super) depth: i64,
    /// All ones if there is one.
    pub(super) exists: u64,
}

impl Place {
    pub(super) fn of(number: u128, sums: &[Row]) -> Self {
        let mut place = Self { block: 0, targets: Zeroizing::new([NOWHERE; COLUMNS]), exists: 0 };
        let mut rest = number;
        for (block, sums) in sums.iter().enumerate() {
            for (target, &sum) in place.targets.iter_mut().zip(sums) {
                let sum = u128::from(sum.cast_unsigned());
                // Once it is past its column the rest wraps, and is larger than every sum.
                let inside = mask(rest < sum);
                *target = ((rest as u64 & inside) | (target.cast_unsigned() & !inside)).cast_signed();
                place.block |= block as u64 & inside;
                place.exists |= inside;
                rest = rest.wrapping_sub(sum);
            }
        }
        place
    }

    /// The number of its column, counted through all blocks.
    pub(super) fn item(&self) -> u64 {
        let column = (0..COLUMNS as u64).zip(&*self.targets);
        let column = column.fold(0, |found, (column, &target)| found | column & mask(target != NOWHERE));
        self.block.wrapping_mul(COLUMNS as u64).wrapping_add(column)
    }

    /// The candidate, in its fetched block; depth 0 if there is none.
    pub(super) fn locate(&self, candidates: &Candidates<'_>, work: &Workspace) -> Found {
        let sums = Zeroizing::new(kernel::sums(candidates.instructions, &work.weights));
        let found = kernel::locate(candidates.instructions, &work.weights, &work.depths, &sums, &self.targets);
        // The targets of other columns are nowhere, and nothing is found there.
        let (mut index, mut depth) = (self.block.wrapping_mul(work.weights.len() as u64), 0);
        for (column, &target) in self.targets.iter().enumerate() {
            let inside = mask(target != NOWHERE);
            let row = found.rows[column].cast_unsigned();
            index = index.wrapping_add(row.wrapping_mul(COLUMNS as u64).wrapping_add(column as u64) & inside);
            depth |= found.depths[column] & inside.cast_signed();
        }
        Found { index, depth, exists: self.exists }
    }
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
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    #[test]
    fn attempts_are_all_in_vain_with_a_probability_below_2_to_the_minus_64() {
        for count in [1, 1 << 17, (1 << 17) + 1, 1 << 28, (1 << 28) + 1, 1 << 33] {
            let in_vain = 2.01 * 2f64.powi(-39) + 3.01 * count as f64 * 2f64.powi(-51);
            assert!(in_vain.powi(attempts(count) as i32) < 2f64.powi(-64), "{count}");
        }
    }

    #[test]
    fn ranks_among_what_is_left_give_every_order_once() {
        let mut orders = std::collections::HashSet::new();
        for ranks in (0..5).flat_map(|a| (0..4).flat_map(move |b| (0..3).map(move |c| [a, b, c]))) {
            let mut taken = vec![];
            let order = ranks.map(|rank| untaken(rank, &mut taken));
            assert!(taken.is_sorted() && taken.iter().all(|&number| number < 5));
            assert!(orders.insert(order));
        }
        assert_eq!(orders.len(), 60);
        let mut taken = vec![0];
        assert_eq!(untaken(0, &mut taken), 1, "where one was all there is, the next is none");
    }

    #[test]
    fn a_number_falls_into_its_column() {
        let sums: [Row; 3] = [[5, 0, 0, 0, 0, 0, 0, 2], [0; COLUMNS], [0, 1 << 61, 0, 0, 3, 0, 0, 0]];
        for (number, block, column, target) in [
            (0, 0, 0, 0),
            (4, 0, 0, 4),
            (5, 0, 7, 0),
            (6, 0, 7, 1),
            (7, 2, 1, 0),
            (6 + (1 << 61), 2, 1, (1 << 61) - 1),
            (9 + (1 << 61), 2, 4, 2),
        ] {
            let place = Place::of(number, &sums);
            let mut expected = [NOWHERE; COLUMNS];
            expected[column] = target;
            assert_eq!((place.block, *place.targets, place.exists), (block, expected, u64::MAX), "{number}");
        }
        let place = Place::of(10 + (1 << 61), &sums);
        assert_eq!((*place.targets, place.exists), ([NOWHERE; COLUMNS], 0));
    }

    /// However far apart they are, and also where a block is emptied.
    #[test]
    fn peeling_to_the_end_chooses_each_once() {
        let selection = Selection::new(Scale::from_f64(3.0).unwrap()).unwrap();
        let grid = Grid::new(1.0).unwrap();
        for count in [1u32, 2, 9, 40, 2050] {
            for apart in [0.0, 1.0, 1e3] {
                let scores: Vec<f64> = (0..count).map(|i| apart * f64::from(i * 37 % count)).collect();
                let candidates = Candidates::new(grid, &scores).unwrap();
                let mut chosen = selection.peel(&mut SeededRng::new(1).unwrap(), &candidates, count as usize).unwrap();
                let in_order = chosen.is_sorted_by_key(|&i| -scores[i as usize] as i64);
                assert!(if apart == 1e3 { in_order } else { count < 40 || !in_order || apart == 0.0 });
                chosen.sort_unstable();
                assert_eq!(chosen, (0..u64::from(count)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn bad_input_is_named() {
        let grid = Grid::new(1.0).unwrap();
        assert_eq!(Candidates::new(grid, &[]).err(), Some(Error::data("scores", "must not be empty")));
        let refused = Candidates::new(grid, &[0.0, f64::NAN]).err();
        assert_eq!(refused, Some(Error::data("scores", "must be finite: no NaN and no infinity")));
        let message = Selection::new(Scale::from_f64(2f64.powi(-11)).unwrap()).unwrap_err().to_string();
        assert!(message.starts_with("scale must be at least 2**-10 steps of the grid, got 4.8"), "{message}");
        let selection = Selection::new(Scale::from_f64(1.0).unwrap()).unwrap();
        let candidates = Candidates::new(grid, &[0.0]).unwrap();
        assert!(matches!(selection.softmax(&mut ScriptedRng::new([]), &candidates), Err(Error::Randomness(_))));
        assert!(matches!(
            selection.permute_and_flip(&mut ScriptedRng::new([]), &candidates),
            Err(Error::Randomness(_))
        ));
    }
}
