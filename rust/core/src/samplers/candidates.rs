//! Candidates in blocks, and the place among them where a number falls. See `selection.md`.

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, NOWHERE, RETIRED, Row};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::mask;
use zeroize::Zeroizing;

use super::grid::Grid;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::rng::Wiped;

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
    /// The best score of each block, and [`RETIRED`] up to a whole row.
    bests: Wiped<f64>,
    /// The best score.
    best: Zeroizing<f64>,
}

impl<'a> Candidates<'a> {
    /// One candidate for each of `scores`.
    ///
    /// # Errors
    /// [`Error::Data`] when there are no scores or one is not finite, [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no
    /// instruction set of this CPU, [`Error::Allocation`].
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
        let mut bests = Wiped::try_new(scores.len().div_ceil(block).next_multiple_of(COLUMNS))?;
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

    /// The grid of their scores.
    pub(super) fn grid(&self) -> Grid {
        self.grid
    }

    /// The best score of all.
    pub(super) fn best(&self) -> f64 {
        *self.best
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
    /// The block.
    pub(super) fn block(&self) -> u64 {
        self.block
    }

    /// Where `number` falls, with these lengths.
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
    pub(super) fn locate(&self, instructions: InstructionSet, weights: &[i64], depths: &[i64]) -> Found {
        let sums = Zeroizing::new(kernel::sums(instructions, weights));
        let found = kernel::locate(instructions, weights, depths, &sums, &self.targets);
        // The targets of other columns are nowhere, and nothing is found there.
        let (mut index, mut depth) = (self.block.wrapping_mul(weights.len() as u64), 0);
        for (column, &target) in self.targets.iter().enumerate() {
            let inside = mask(target != NOWHERE);
            let row = found.rows[column].cast_unsigned();
            index = index.wrapping_add(row.wrapping_mul(COLUMNS as u64).wrapping_add(column as u64) & inside);
            depth |= found.depths[column] & inside.cast_signed();
        }
        Found { index, depth, exists: self.exists }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
