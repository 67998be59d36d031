//! The rows of a matrix, one of several whose rows are clipped together, and the sums of its columns.

use std::fmt;
use std::ops::Range;

use dpnoise_kernels::arch::clipping::{self as kernel, AHEAD, Factors, LANES, ROWS, Real};

use crate::instruction_set::InstructionSet;
use crate::rng::Wiped;

/// A matrix: a row of `width` numbers for each example.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    numbers: &'a [T],
    width: usize,
}

impl<T> fmt::Debug for Matrix<'_, T> {
    /// Prints neither the numbers nor how many rows there are: both are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matrix").field("width", &self.width).finish_non_exhaustive()
    }
}

impl<'a, T> Matrix<'a, T> {
    /// The matrix that has these numbers, row after row.
    ///
    /// # Panics
    /// When `width` is zero, or the numbers are not whole rows.
    #[must_use]
    pub fn new(numbers: &'a [T], width: usize) -> Self {
        assert!(numbers.len().is_multiple_of(width) && width > 0);
        Self { numbers, width }
    }

    /// The length of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.numbers.len() / self.width
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// When the range is out of bounds.
    #[must_use]
    pub fn rows(&self, rows: Range<usize>) -> Self {
        Self { numbers: &self.numbers[rows.start * self.width..rows.end * self.width], ..*self }
    }
}

/// A block of [`ROWS`] rows up to this many bytes, and the next one, fit in the second-level cache of common processors.
const CACHED: usize = 1 << 20;

/// The addition of rows of a matrix to the sums of its columns.
///
/// Every number is read twice: for the norm of its row, and for the sum. If a block of [`ROWS`] rows fits in a cache,
/// the second read comes from there. Memory would be idle meanwhile, so the next block is prefetched: of doubles all of
/// it; of singles, which are added twice as fast, one half, and the other half while the norms are computed. (Against the
/// other way, singles of 30 000 columns take 0.75 of the time, and doubles of 1000 and 10 000 columns 0.9.) Longer rows are
/// read from memory twice.
pub(super) struct Addition<'a, T: Real> {
    matrix: Matrix<'a, T>,
    /// Whether a block fits in a cache, with those of the other matrices.
    cached: bool,
    /// The sums of the columns that fill whole lanes.
    sums: &'a mut [i64],
    /// The sums of the tail, which is the other columns; below, those of the tail padded with zeros to whole lanes.
    tail_sums: &'a mut [i64],
    padded_sums: Wiped<i64>,
    /// The padded tails of a block of rows.
    tails: Wiped<T>,
}

impl<'a, T: Real> Addition<'a, T> {
    /// Additions to `sums`, one for each column; a row of all matrices together has `width` numbers.
    pub(super) fn new(matrix: Matrix<'a, T>, width: usize, sums: &'a mut [i64]) -> Self {
        let cached = ROWS * width * size_of::<T>() <= CACHED;
        let (sums, tail_sums) = sums.split_at_mut(matrix.width - matrix.width % LANES);
        Self { matrix, cached, sums, tail_sums, padded_sums: Wiped::new(LANES), tails: Wiped::new(ROWS * LANES) }
    }

    /// Adds the squares of the numbers in a block of rows to those of each row, in an order that depends on the width alone.
    pub(super) fn add_squares(
        &mut self,
        instructions: InstructionSet,
        block: Range<usize>,
        squares: &mut [[f64; LANES]; ROWS],
    ) {
        let width = self.matrix.width;
        let rows = self.matrix.rows(block).numbers;
        kernel::add_squares(instructions, rows, width, self.soon(&rows[rows.len() / 2..]), squares);
        if self.tail_sums.is_empty() {
            return;
        }
        for (row, padded) in rows.chunks_exact(width).zip(self.tails.chunks_exact_mut(LANES)) {
            let tail = &row[self.sums.len()..];
            padded[..tail.len()].copy_from_slice(tail);
        }
        kernel::add_squares(instructions, &self.tails[..rows.len() / width * LANES], LANES, &[], squares);
    }

    /// Adds the rows of the block whose squares were added last, multiplied by their factors.
    pub(super) fn add_scaled(&mut self, instructions: InstructionSet, block: Range<usize>, factors: &Factors) {
        let width = self.matrix.width;
        let tails = &self.tails[..block.len() * LANES];
        let soon = self.soon(self.matrix.rows(block.end..self.matrix.height()).numbers);
        let rows = self.matrix.rows(block).numbers;
        let ahead = if self.cached && soon.is_empty() { size_of_val(rows) } else { AHEAD };
        kernel::add_scaled(instructions, rows, width, ahead, soon, factors, self.sums);
        if !self.tail_sums.is_empty() {
            kernel::add_scaled(instructions, tails, LANES, AHEAD, &[], factors, &mut self.padded_sums);
        }
    }

    /// The numbers of which a half is prefetched: singles, if a block fits in a cache.
    fn soon(&self, numbers: &'a [T]) -> &'a [T] {
        if self.cached && size_of::<T>() == 4 { numbers } else { &[] }
    }

    /// Completes the sums.
    pub(super) fn finish(self) {
        add(self.tail_sums, &self.padded_sums);
    }
}

/// Adds `more` to `sums`, number by number.
pub(super) fn add(sums: &mut [i64], more: &[i64]) {
    for (sum, &more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(more);
    }
}
