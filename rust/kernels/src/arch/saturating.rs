//! Addition of integers that saturates.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes64, Vectors};

/// Adds its `noise` to every value; sums outside the range of 64 bits saturate.
///
/// # Panics
/// When there are fewer values than noise.
pub fn add_saturating(instructions: InstructionSet, values: &mut [i64], noise: &[i64]) {
    dispatch!(instructions, add_lanes(values: &mut [i64], noise: &[i64]));
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_lanes<S: Vectors>(values: &mut [i64], noise: &[i64]) {
    let values = &mut values[..noise.len()];
    let whole = noise.len() - noise.len() % S::U64::N;
    for first in (0..whole).step_by(S::U64::N) {
        // SAFETY: passed on from the caller; there are N items from `first` on.
        unsafe {
            let (a, b) = (S::U64::load(&values[first..]), S::U64::load(&noise[first..]));
            let sum = a.add(b);
            // A sum overflows when its sign is that of neither term: all ones then, else zero.
            let overflow = S::U64::splat(0).sub(a.xor(sum).and(b.xor(sum)).shr(63));
            let extreme = a.shr(63).add(S::U64::splat(i64::MAX.cast_unsigned()));
            sum.xor(sum.xor(extreme).and(overflow)).store(&mut values[first..]);
        }
    }
    for (value, &noise) in values[whole..].iter_mut().zip(&noise[whole..]) {
        *value = value.saturating_add(noise);
    }
}
