//! Hadamard matrices, whose randomised entries reports are made of.
//!
//! The entry of row v in column j is the parity of the binary digits that v and j share (Sylvester's construction, 1
//! for -1). Two different rows agree in exactly half of the columns.

use core::ops::Range;

use dpnoise_kernels::memory::collected;

use super::numbers::Numbers;
use super::sketch::{Row, Sketch};
use crate::error::Error;
use crate::local::chance::mixture::Mixture;
use crate::local::estimate::Support;

/// The entry of a row in a column: 0 for 1, and 1 for -1.
#[must_use]
#[inline(always)]
pub fn entry(row: u32, column: u32) -> u32 {
    (row & column).count_ones() & 1
}

/// The probabilities that a report supports the row of its entry, and any other: different rows agree in half of the
/// columns.
pub(crate) fn support_of_entries(mixture: Mixture) -> Support {
    let Support { p, one, .. } = mixture.support();
    Support { p, q: one / 2, one }
}

/// How many of `n` reports support each row; `balance` has, for each column, the reports with entry 1 minus those
/// with -1.
pub(crate) fn supports(mut balance: Vec<i64>, n: u64) -> Vec<u64> {
    walsh_hadamard(&mut balance);
    // The difference of the reports that support a row and the others; both add up to n. The memory stays the same.
    balance.into_iter().map(|difference| i64::midpoint(n as i64, difference) as u64).collect()
}

/// The Walsh-Hadamard transform, in place, of a power of two of numbers whose magnitudes sum to less than 2^63.
pub(crate) fn walsh_hadamard(numbers: &mut [i64]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
}

/// A table whose rows are Hadamard-transformed. A report has one randomised entry of the transform of a row: the number
/// 2 (row `width` + column) + entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransformedTable {
    pub(crate) sketch: Sketch,
    /// The randomisation of an entry.
    pub(crate) mixture: Mixture,
}

impl TransformedTable {
    /// The form of reports.
    pub(crate) fn reports(self) -> Numbers {
        Numbers::to_transform(2 * self.sketch.cells())
    }

    /// The probabilities that a report supports its sender's column, and any other of its row: the latter is one half.
    pub(crate) fn support(self) -> Support {
        support_of_entries(self.mixture)
    }

    /// The entry for a `cell`, which consists of a row of the table and a column of the Hadamard matrix: that of this
    /// column, in the matrix row to which the table row hashes the value.
    #[inline(always)]
    pub(crate) fn entry(self, cell: u32, value: impl Fn(u32) -> i64) -> u32 {
        let (row, column) = (cell / self.sketch.width(), cell % self.sketch.width());
        entry(self.sketch.hash(row).column(value(row)), column)
    }

    /// The reports and their supports for some rows of the table, from the `counters`.
    pub(crate) fn rows(self, counters: &[u64], rows: Range<u32>) -> impl Iterator<Item = Result<Row, Error>> {
        let width = 2 * self.sketch.width() as usize;
        let counters = &counters[rows.start as usize * width..rows.end as usize * width];
        rows.zip(counters.chunks_exact(width)).map(move |(j, row)| {
            let pairs = row.as_chunks().0.iter();
            let balance = collected(pairs.map(|&[same, other]: &[u64; 2]| same as i64 - other as i64))?;
            let n = row.iter().sum();
            Ok(Row { hash: self.sketch.hash(j), n, supports: supports(balance, n) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_rows_agree_in_half_of_the_columns() {
        for order in [2, 4, 16, 128] {
            for (a, b) in (0..order).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let agree = (0..order).filter(|&j| entry(a, j) == entry(b, j));
                assert_eq!(agree.count() as u32, order / 2, "{a} {b}");
            }
        }
    }
}
