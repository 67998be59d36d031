//! The rows of one matrix, of several whose rows are clipped together, and their sums.

use std::fmt;
use std::ops::Range;

use dpnoise_kernels::arch::clipping::{Columns, Factors, LANES, ROWS, Real};

use crate::instruction_set::InstructionSet;
use crate::rng::Wiped;

/// A matrix: a row of `width` numbers for each example.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    numbers: &'a [T],
    width: usize,
}

impl<T> fmt::Debug for Matrix<'_, T> {
    /// Numbers and rows are private.
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

    /// How many numbers a row has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    #[must_use]
    pub fn height(&self) -> usize {
        self.numbers.len() / self.width
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// When there are none of that number.
    #[must_use]
    pub fn rows(&self, rows: Range<usize>) -> Self {
        Self { numbers: &self.numbers[rows.start * self.width..rows.end * self.width], ..*self }
    }
}

/// Blocks of rows up to this many bytes, and their sums, are still in a cache when they are read for the second time.
const CACHED: usize = 1 << 22;

/// Of longer rows so many blocks are added up at once.
pub(super) const LONG_BLOCKS: usize = 16;

/// Of shorter rows hardware finds the next block by itself.
const LONG: usize = 1 << 10;

/// So many sums and the numbers that are added to them fit in the caches of a core.
const TILE: usize = 1 << 12;

/// Whether rows of `width` numbers, in all matrices together, are so long that [`LONG_BLOCKS`] blocks are added up at once.
pub(super) fn are_long<T: Real>(width: usize) -> bool {
    T::OVERLAPS && ROWS * width * size_of::<T>() > CACHED
}

/// The addition of rows of a matrix to the sums of its columns.
///
/// Every number is read twice: for the norm of its row, and for the sum. The second time it comes from a cache, where a
/// block of [`ROWS`] rows fits. The memory would have nothing to do then, and the processor little the first time: so the
/// memory is asked for the first half of the next block while one is added up, and for the second half while the norms
/// of the first are computed.
///
/// Sums, of 8 bytes and both read and written, are traffic too: 16 bytes for [`ROWS`] numbers. Where a block does not fit
/// in a cache, and its numbers come from memory twice, sums at least should not: [`TILE`] of them remain in the fastest
/// cache while [`LONG_BLOCKS`] blocks are added to them.
pub(super) struct Addition<'a, T: Real> {
    matrix: Matrix<'a, T>,
    /// Whether rows are long, with those of the other matrices.
    long: bool,
    /// Of as many columns as whole lanes hold.
    sums: &'a mut [i64],
    /// Of the other columns, and of these with some more, of zeros, that fill the lanes.
    rest_sums: &'a mut [i64],
    padded_sums: Wiped<i64>,
    /// The numbers in those columns, of a block.
    rests: Wiped<T>,
}

impl<'a, T: Real> Addition<'a, T> {
    /// Additions to `sums`, which are as many as columns.
    pub(super) fn new(matrix: Matrix<'a, T>, long: bool, sums: &'a mut [i64]) -> Self {
        let (sums, rest_sums) = sums.split_at_mut(matrix.width - matrix.width % LANES);
        Self { matrix, long, sums, rest_sums, padded_sums: Wiped::new(LANES), rests: Wiped::new(ROWS * LANES) }
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
        // Of long rows the memory is asked for half of each, of others for half of all.
        let together = if self.long { 1 } else { ROWS };
        for (rows, squares) in rows.chunks(together * width).zip(squares.chunks_mut(together)) {
            T::add_squares(instructions, rows, width, self.soon(&rows[rows.len() / 2..]), squares);
        }
        if self.rest_sums.is_empty() {
            return;
        }
        for (row, rest) in rows.chunks_exact(width).zip(self.rests.chunks_exact_mut(LANES)) {
            let tail = &row[self.sums.len()..];
            rest[..tail.len()].copy_from_slice(tail);
        }
        T::add_squares(instructions, &self.rests[..rows.len() / width * LANES], LANES, &[], squares);
    }

    /// Adds the columns that do not fill the lanes, of the `count` rows whose squares were added last.
    pub(super) fn add_rests(&mut self, instructions: InstructionSet, count: usize, factors: &Factors) {
        if self.rest_sums.is_empty() {
            return;
        }
        let rests = Columns { rows: &self.rests[..count * LANES], stride: LANES, first: 0 };
        T::add_scaled(instructions, rests, &[], factors, &mut self.padded_sums);
    }

    /// Adds all other columns of some rows, with the factors of each block.
    pub(super) fn add_scaled(&mut self, instructions: InstructionSet, rows: Range<usize>, factors: &[Factors]) {
        let width = self.matrix.width;
        let first_half = if self.long { rows.clone() } else { rows.end..self.matrix.height() };
        let soon = self.soon(self.matrix.rows(first_half).numbers);
        let rows = self.matrix.rows(rows).numbers;
        let tile = if self.long { TILE } else { width };
        for (sums, first) in self.sums.chunks_mut(tile).zip((0..).step_by(tile)) {
            for (rows, factors) in rows.chunks(ROWS * width).zip(factors) {
                T::add_scaled(instructions, Columns { rows, stride: width, first }, soon, factors, sums);
            }
        }
    }

    /// Completes the sums.
    pub(super) fn finish(self) {
        add(self.rest_sums, &self.padded_sums);
    }

    /// What the memory is asked for, if that gains time.
    fn soon(&self, numbers: &'a [T]) -> &'a [T] {
        if T::OVERLAPS && self.matrix.width >= LONG { numbers } else { &[] }
    }
}

/// Adds sums to sums, of which there may be fewer.
pub(super) fn add(sums: &mut [i64], more: &[i64]) {
    for (sum, &more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(more);
    }
}
