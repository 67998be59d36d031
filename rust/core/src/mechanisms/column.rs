//! Columns of doubles, block by block. A NaN is a missing value.

use core::iter::zip;

use dpnoise_kernels::arch::columns::{BLOCK, WIDEST};

use crate::rng::Wiped;

/// Calls `each` with the index of the first value of a block, and with the values of the block, each of which is read
/// once. The last block is filled up to a whole number of vectors with missing values; returns how many these are.
pub(super) fn for_each_block(values: &[f64], mut each: impl FnMut(usize, &[f64])) -> usize {
    let rest = values.len() % BLOCK;
    let (blocks, last) = values.split_at(values.len() - rest);
    for (block, first) in zip(blocks.chunks_exact(BLOCK), (0..).step_by(BLOCK)) {
        each(first, block);
    }
    let mut filled = Wiped::new(rest.next_multiple_of(WIDEST));
    filled[..rest].copy_from_slice(last);
    filled[rest..].fill(f64::NAN);
    each(blocks.len(), &filled);
    filled.len() - rest
}
