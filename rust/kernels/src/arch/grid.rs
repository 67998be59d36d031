//! Integer noise on real numbers: rounding to a grid and addition, as `samplers/grid.md` defines and proves them.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use zeroize::optimization_barrier;

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes64, Vectors};

/// Noise is added here when it is at least -2^LIMIT and below 2^LIMIT steps: then it is exact as a double.
pub const LIMIT: u32 = 53;

/// No vector has more lanes.
const WIDEST: usize = 8;

/// Rounds every value to the multiples of 2^exponent, half up, and adds its `noise` in steps of that, with one rounding
/// of the exact sum.
///
/// Where the noise is beyond the limit, the value stays as it was, and the function returns true.
///
/// # Panics
/// When there are fewer values than noise, or the exponent is outside [-1019, 900].
#[must_use]
pub fn add_noise(instructions: InstructionSet, exponent: i32, noise: &[i64], values: &mut [f64]) -> bool {
    assert!((-1019..=900).contains(&exponent));
    let mut lanes = 0;
    let left = &mut lanes;
    dispatch!(instructions, add_lanes(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64));
    lanes != 0
}

/// 2^exponent, for an exponent in [-1022, 1023].
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_lanes<S: Vectors>(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64) {
    let whole = noise.len() - noise.len() % S::U64::N;
    for first in (0..whole).step_by(S::U64::N) {
        // SAFETY: passed on from the caller; there are N items from `first` on.
        *left |= unsafe { add_vector::<S::U64>(exponent, &noise[first..], &mut values[first..]) };
    }
    if whole < noise.len() {
        let rest = whole..noise.len();
        let (mut padded, mut padded_noise) = ([0.0; WIDEST], [0; WIDEST]);
        padded[..rest.len()].copy_from_slice(&values[rest.clone()]);
        padded_noise[..rest.len()].copy_from_slice(&noise[rest.clone()]);
        // SAFETY: passed on from the caller; there are at least N items.
        *left |= unsafe { add_vector::<S::U64>(exponent, &padded_noise, &mut padded) };
        values[rest.clone()].copy_from_slice(&padded[..rest.len()]);
        (padded, padded_noise) = ([0.0; WIDEST], [0; WIDEST]);
        optimization_barrier(&(padded, padded_noise)); // the wipe stays, although nothing reads them again
    }
}

/// Returns a bit for each lane whose noise is beyond the limit.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_vector<V: Lanes64>(exponent: i32, noise: &[i64], values: &mut [f64]) -> u64 {
    // SAFETY: passed on from the caller.
    unsafe {
        let given = V::load_f64(values);
        let on_grid = round::<V>(exponent, given);
        let granularity = V::splat_f64(power_of_two(exponent));

        let steps = V::load(noise);
        let fits = steps.add(V::splat(1 << LIMIT)).shr(LIMIT + 1).less_than(V::splat(1));
        let sum = V::add_f64(on_grid, V::mul_f64(steps.convert_f64(), granularity));
        V::store_f64(pick::<V>(sum, given, fits), values);
        !V::bitmask(fits) & (u64::MAX >> (64 - V::N))
    }
}

/// The multiple of 2^exponent nearest to each double, half up; infinities stay as they are.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
pub(super) unsafe fn round<V: Lanes64>(exponent: i32, given: V::F64) -> V::F64 {
    // SAFETY: passed on from the caller.
    unsafe {
        let bits_of = |exponent| V::splat(power_of_two(exponent).to_bits());
        let (zero, one) = (V::splat_f64(0.0), V::splat_f64(1.0));
        let (granularity, inverse) = (V::splat_f64(power_of_two(exponent)), V::splat_f64(power_of_two(-exponent)));
        // Magnitudes are compared as integers: the order is the same, and subnormal numbers take no longer.
        let magnitude = V::bitcast_u64(given).and(V::splat(u64::MAX >> 1));
        let x = pick::<V>(zero, given, magnitude.less_than(bits_of(exponent - 2)));
        let fine = magnitude.less_than(bits_of(exponent + LIMIT as i32));
        let t = V::mul_f64(pick::<V>(x, zero, fine), inverse);
        let floor = V::floor_f64(t);
        let below_half = V::bitcast_u64(V::sub_f64(t, floor)).less_than(V::splat(0.5f64.to_bits()));
        let rounded = V::add_f64(floor, pick::<V>(zero, one, below_half));
        pick::<V>(V::mul_f64(rounded, granularity), x, fine)
    }
}

/// Lane by lane: `a` where `mask` is set, else `b`.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
pub(super) unsafe fn pick<V: Lanes64>(a: V::F64, b: V::F64, mask: V::Mask) -> V::F64 {
    // SAFETY: passed on from the caller.
    unsafe { V::bitcast_u64(a).select(V::bitcast_u64(b), mask).bitcast_f64() }
}
