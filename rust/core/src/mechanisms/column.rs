//! Columns of numbers, block by block.

use dpnoise_kernels::arch::columns::{BLOCK, WIDEST};

use crate::rng::Wiped;

/// The numbers of a column, each of which is read once, and is rounded to the nearest double. A NaN is a missing value.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// Doubles.
    F64(&'a [f64]),
    /// Singles.
    F32(&'a [f32]),
    /// Integers.
    I64(&'a [i64]),
}

macro_rules! from_numbers {
    ($($type:ty: $variant:ident),*) => {
        $(
            impl<'a> From<&'a [$type]> for Column<'a> {
                fn from(values: &'a [$type]) -> Self {
                    Self::$variant(values)
                }
            }

            impl<'a, const N: usize> From<&'a [$type; N]> for Column<'a> {
                fn from(values: &'a [$type; N]) -> Self {
                    Self::$variant(values)
                }
            }

            impl<'a> From<&'a Vec<$type>> for Column<'a> {
                fn from(values: &'a Vec<$type>) -> Self {
                    Self::$variant(values)
                }
            }
        )*
    };
}

from_numbers!(f64: F64, f32: F32, i64: I64);

impl Column<'_> {
    /// The number of values, missing ones included.
    pub(super) fn len(self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::I64(values) => values.len(),
        }
    }

    /// So many values and the others.
    pub(super) fn split_at(self, length: usize) -> (Self, Self) {
        match self {
            Self::F64(values) => split(values, length, Self::F64),
            Self::F32(values) => split(values, length, Self::F32),
            Self::I64(values) => split(values, length, Self::I64),
        }
    }

    /// Calls `each` with the index of the first value of a block and with the values, each of which is read once, as doubles.
    /// The last block is filled up to a whole number of vectors with `padding`; returns how many of it there are.
    pub(super) fn for_each_block(self, padding: f64, mut each: impl FnMut(usize, &[f64])) -> usize {
        match self {
            Self::F64(values) => {
                let whole = values.len() - values.len() % BLOCK;
                for (block, first) in values[..whole].chunks_exact(BLOCK).zip((0..).step_by(BLOCK)) {
                    each(first, block);
                }
                for_each_block(&values[whole..], |value| value, padding, |first, block| each(whole + first, block))
            }
            Self::F32(values) => for_each_block(values, f64::from, padding, each),
            Self::I64(values) => for_each_block(values, |value| value as f64, padding, each),
        }
    }
}

fn split<'a, T>(values: &'a [T], length: usize, column: fn(&'a [T]) -> Column<'a>) -> (Column<'a>, Column<'a>) {
    let (first, rest) = values.split_at(length);
    (column(first), column(rest))
}

fn for_each_block<T: Copy>(
    values: &[T],
    convert: impl Fn(T) -> f64,
    padding: f64,
    mut each: impl FnMut(usize, &[f64]),
) -> usize {
    let mut block = Wiped::new(BLOCK);
    let mut filled = 0;
    for (values, first) in values.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        for (item, &value) in block.iter_mut().zip(values) {
            *item = convert(value);
        }
        let end = values.len().next_multiple_of(WIDEST);
        block[values.len()..end].fill(padding);
        filled = end - values.len();
        each(first, &block[..end]);
    }
    filled
}
