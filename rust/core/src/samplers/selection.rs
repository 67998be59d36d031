#![doc = include_str!("selection.md")]

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, NOWHERE, RETIRED, Row, UNIT};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::exp::Constants;
use dpnoise_kernels::arith::fixed::Fixed;
use dpnoise_kernels::arith::interval::Interval;
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::density::{Density, Shape};
use super::grid::Grid;
use super::refine::is_below;
use super::uniform::uniform_below;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::params::Scale;
use crate::rng::{Wiped, fill_bytes};

/// The number of candidates that are processed at a time: they stay in the first-level cache, and the weights of a
/// column add up to less than 2^62.
const BLOCK: usize = 2048;

/// Candidates, by their scores on a grid.
pub struct Candidates<'a> {
    instructions: InstructionSet,
    grid: Grid,
    /// Those of whole blocks.
    front: &'a [f64],
    /// The rest, in a block padded with retired candidates.
    end: Wiped<f64>,
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
        let (candidates, magnitude) = Self::survey(grid, scores)?;
        if declassify(Reason::Refusal, magnitude < f64::INFINITY.to_bits().cast_signed()) {
            Ok(candidates)
        } else {
            Err(Error::data("scores", "must be finite: no NaN and no infinity"))
        }
    }

    /// The candidates among `scores` that are not [`RETIRED`]. Their scores must be finite, and one must be left.
    pub(crate) fn remaining(grid: Grid, scores: &'a [f64]) -> Result<Self, Error> {
        Self::survey(grid, scores).map(|(candidates, _)| candidates)
    }

    /// The candidates, and the bits of the largest magnitude of a score.
    fn survey(grid: Grid, scores: &'a [f64]) -> Result<(Self, i64), Error> {
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
        let (mut best, mut magnitude) = (Zeroizing::new(last.to_bits()), 0);
        for scores in [front, &end].into_iter().filter(|scores| !scores.is_empty()) {
            let found = kernel::extremes(instructions, scores);
            for (score, bits) in found.best.into_iter().zip(found.magnitude) {
                let better = mask(f64::from_bits(*best) < score);
                *best = score.to_bits() & better | *best & !better;
                let larger = mask(magnitude < bits).cast_signed();
                magnitude = bits & larger | magnitude & !larger;
            }
        }
        if let Some(padding) = end.get_mut(rest.len()..) {
            padding.fill(RETIRED);
        }
        let best = Zeroizing::new(f64::from_bits(*best));
        Ok((Self { instructions, grid, front, end, best }, magnitude))
    }

    /// The number of candidates in each block.
    fn block(&self) -> usize {
        if self.end.is_empty() { BLOCK.min(self.front.len()) } else { self.end.len() }
    }

    /// The scores, block by block.
    fn blocks(&self) -> impl Iterator<Item = &[f64]> {
        self.front.chunks_exact(self.block()).chain(Some(&*self.end).filter(|end| !end.is_empty()))
    }

    /// The number of candidates, retired ones included.
    fn count(&self) -> usize {
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
        let mut work = Workspace::new(candidates.block());
        let mut sums = Wiped::new(candidates.blocks().count());
        for (scores, sums) in candidates.blocks().zip(sums.iter_mut()) {
            work.weigh(self, candidates, scores);
            *sums = kernel::sums(candidates.instructions, &work.weights);
        }
        let total = total(&sums);
        loop {
            let mut outcome = Outcome::default();
            for _ in 0..attempts(candidates.count()) {
                let place = Place::of(uniform_below(rng, total)?, &sums);
                place.fetch(candidates, &mut work.scores);
                work.weigh_fetched(self, candidates);
                let candidate = place.locate(candidates, &work);
                outcome.add(&candidate, self.accepts(rng, candidates, &candidate)?);
            }
            if let Some(index) = outcome.settled() {
                return Ok(index);
            }
        }
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
            work.weigh(self, candidates, scores);
            fill_bytes(rng, &mut words)?;
            kernel::flip(candidates.instructions, &words, &mut work.weights, coins);
            *sums = kernel::sums(candidates.instructions, &work.weights);
        }
        let heads = total(&sums);
        // Room for more attempts than are ever made, except with negligible probability: growing would leave a copy
        // behind.
        let mut taken = Zeroizing::new(Vec::with_capacity(8));
        let mut outcome = Outcome::default();
        loop {
            for _ in 0..attempts(candidates.count()) {
                let left = heads.saturating_sub(taken.len() as u128);
                let place = Place::of(untaken(uniform_below(rng, left)?, &mut taken), &sums);
                place.fetch(candidates, &mut work.scores);
                work.weigh_fetched(self, candidates);
                place.fetch_coins(&coins, &mut work.weights);
                let candidate = place.locate(candidates, &work);
                outcome.add(&candidate, self.accepts(rng, candidates, &candidate)?);
            }
            if let Some(index) = outcome.settled() {
                return Ok(index);
            }
        }
    }

    /// Whether a candidate is accepted: with probability C w / A, exactly.
    fn accepts<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
        candidate: &Candidate,
    ) -> Result<bool, Error> {
        let prefix = rng.try_next_u64().map_err(Error::randomness)? >> 1;
        let row = Zeroizing::new([candidate.depth; COLUMNS]);
        let mut weights = Zeroizing::new([0; COLUMNS]);
        kernel::weigh(candidates.instructions, self.rate, &*row, &mut *weights);
        let accepted = is_below(rng, Reason::Selection, prefix, |constants| {
            let weight = Fixed::from_integer(weights[0].cast_unsigned(), constants.log2_e.limbs());
            let density = self.density(constants).at(candidate.depth.cast_unsigned(), constants);
            (Interval::exact(weight), density.times_integer(UNIT))
        })?;
        Ok(accepted & candidate.exists)
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
fn attempts(count: usize) -> usize {
    match count {
        0..=0x2_0000 => 2,
        0x2_0001..=0x2000_0000 => 3,
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

/// The working memory for one block.
struct Workspace {
    scores: Wiped<f64>,
    depths: Wiped<i64>,
    weights: Wiped<i64>,
}

impl Workspace {
    fn new(block: usize) -> Self {
        Self { scores: Wiped::new(block), depths: Wiped::new(block), weights: Wiped::new(block) }
    }

    fn weigh(&mut self, selection: &Selection, candidates: &Candidates<'_>, scores: &[f64]) {
        let Candidates { instructions, grid, best, .. } = candidates;
        kernel::measure(*instructions, grid.exponent(), best, scores, &mut self.depths);
        kernel::weigh(*instructions, selection.rate, &self.depths, &mut self.weights);
    }

    fn weigh_fetched(&mut self, selection: &Selection, candidates: &Candidates<'_>) {
        let scores = core::mem::take(&mut self.scores);
        self.weigh(selection, candidates, &scores);
        self.scores = scores;
    }
}

/// The place where a number falls, when all candidates lie side by side with their weights as lengths: block by block,
/// and in a block column by column.
struct Place {
    block: u64,
    /// The remainder of the number in its column; [`NOWHERE`] in the others.
    targets: Zeroizing<Row>,
    /// Whether there is such a place.
    exists: u64,
}

/// The candidate at a place.
struct Candidate {
    index: u64,
    depth: i64,
    exists: bool,
}

impl Place {
    fn of(number: u128, sums: &[Row]) -> Self {
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

    /// All ones if it is in this block.
    fn is_in(&self, block: usize) -> u64 {
        mask(self.block == block as u64)
    }

    /// Copies the scores of its block.
    fn fetch(&self, candidates: &Candidates<'_>, fetched: &mut [f64]) {
        for (block, scores) in candidates.blocks().enumerate() {
            kernel::keep_if(candidates.instructions, &self.is_in(block), scores, fetched);
        }
    }

    /// Unpacks the coins of its block.
    fn fetch_coins(&self, coins: &[u8], fetched: &mut [i64]) {
        let rows = fetched.len() / COLUMNS;
        let mut packed = Wiped::<u8>::new(rows);
        for (block, coins) in coins.chunks_exact(rows).enumerate() {
            let chosen = self.is_in(block) as u8;
            for (packed, &coins) in packed.iter_mut().zip(coins) {
                *packed |= coins & chosen;
            }
        }
        for (coins, &packed) in fetched.chunks_exact_mut(COLUMNS).zip(&*packed) {
            for (column, coin) in coins.iter_mut().enumerate() {
                *coin = i64::from(packed >> column & 1);
            }
        }
    }

    /// The candidate, in its fetched block; depth 0 if there is none.
    fn locate(&self, candidates: &Candidates<'_>, work: &Workspace) -> Candidate {
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
        Candidate { index, depth, exists: self.exists != 0 }
    }
}

/// The first of the candidates that are accepted.
#[derive(Default)]
struct Outcome {
    index: u64,
    settled: u64,
}

impl Outcome {
    fn add(&mut self, candidate: &Candidate, accepted: bool) {
        let accepted = mask(accepted);
        self.index |= candidate.index & accepted & !self.settled;
        self.settled |= accepted;
    }

    fn settled(&self) -> Option<u64> {
        declassify(Reason::Selection, self.settled != 0).then_some(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    #[test]
    fn attempts_are_all_in_vain_with_a_probability_below_2_to_the_minus_64() {
        for count in [1, 1 << 17, (1 << 17) + 1, 1 << 29, (1 << 29) + 1, 1 << 34] {
            let in_vain = 2f64.powi(-39) + 1.5 * count as f64 * 2f64.powi(-51);
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

    #[test]
    fn a_retired_candidate_is_not_chosen() {
        let selection = Selection::new(Scale::from_f64(1.0).unwrap()).unwrap();
        let grid = Grid::new(1.0).unwrap();
        for count in [2, 9, 2049, 4200] {
            for left in [0, count / 2, count - 1] {
                let mut scores = vec![RETIRED; count];
                scores[left] = -1e9;
                let candidates = Candidates::remaining(grid, &scores).unwrap();
                let rng = &mut SeededRng::new(1).unwrap();
                assert_eq!(selection.softmax(rng, &candidates), Ok(left as u64));
                assert_eq!(selection.permute_and_flip(rng, &candidates), Ok(left as u64));
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
