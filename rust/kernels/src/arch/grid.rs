//! Integer noise on real numbers: rounding to a grid and addition, as `samplers/grid.md` defines and proves them.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use zeroize::optimization_barrier;

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes64, Vectors};
use crate::arith::power_of_two;

/// How far noise may reach for the kernel to add it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// At least -2^51 and below 2^51 steps, which are exact as a double.
    Near,
    /// At least -2^62 and below 2^62 steps: added in two parts.
    Far,
}

impl Reach {
    /// The binary logarithm of the limit.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Near => 51,
            Self::Far => 62,
        }
    }
}

/// Doubles of magnitudes below 2^EXACT steps may have digits below the grid.
const EXACT: i32 = 53;

/// Noise of a far reach has a low part of this many bits.
const LOW_BITS: u32 = 26;

/// From 2^FAR_AWAY steps on, the sum depends on no more than whether the low part is zero.
const FAR_AWAY: i32 = 100;

/// No vector has more lanes.
const WIDEST: usize = 8;

/// Rounds every value to the multiples of 2^exponent, half up, and adds its `noise` in steps of that, with one rounding
/// of the exact sum.
///
/// Where the noise is beyond the reach, the value stays as it was, and the function returns true.
///
/// # Panics
/// When there are fewer values than noise, or the exponent is outside [-1019, 900].
#[must_use]
pub fn add_noise(instructions: InstructionSet, reach: Reach, exponent: i32, noise: &[i64], values: &mut [f64]) -> bool {
    assert!((-1019..=900).contains(&exponent));
    let mut lanes = 0;
    let left = &mut lanes;
    if reach == Reach::Near {
        dispatch!(instructions, add_near(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64));
    } else {
        dispatch!(instructions, add_far(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64));
    }
    lanes != 0
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_near<S: Vectors>(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64) {
    // SAFETY: passed on from the caller.
    unsafe { add_lanes::<S, false>(exponent, noise, values, left) }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_far<S: Vectors>(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64) {
    // SAFETY: passed on from the caller.
    unsafe { add_lanes::<S, true>(exponent, noise, values, left) }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_lanes<S: Vectors, const FAR: bool>(exponent: i32, noise: &[i64], values: &mut [f64], left: &mut u64) {
    let whole = noise.len() - noise.len() % S::U64::N;
    for first in (0..whole).step_by(S::U64::N) {
        // SAFETY: passed on from the caller; there are N items from `first` on.
        *left |= unsafe { add_vector::<S::U64, FAR>(exponent, &noise[first..], &mut values[first..]) };
    }
    if whole < noise.len() {
        let rest = whole..noise.len();
        let (mut padded, mut padded_noise) = ([0.0; WIDEST], [0; WIDEST]);
        padded[..rest.len()].copy_from_slice(&values[rest.clone()]);
        padded_noise[..rest.len()].copy_from_slice(&noise[rest.clone()]);
        // SAFETY: passed on from the caller; there are at least N items.
        *left |= unsafe { add_vector::<S::U64, FAR>(exponent, &padded_noise, &mut padded) };
        values[rest.clone()].copy_from_slice(&padded[..rest.len()]);
        (padded, padded_noise) = ([0.0; WIDEST], [0; WIDEST]);
        optimization_barrier(&(padded, padded_noise)); // the wipe stays, although nothing reads them again
    }
}

/// Returns a bit for each lane whose noise is beyond the reach.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_vector<V: Lanes64, const FAR: bool>(exponent: i32, noise: &[i64], values: &mut [f64]) -> u64 {
    // SAFETY: passed on from the caller.
    unsafe {
        let given = V::load_f64(values);
        let on_grid = round::<V>(exponent, given);
        let bits = if FAR { Reach::Far } else { Reach::Near }.bits();
        let steps = V::load(noise);
        let shifted = steps.add(V::splat(1 << bits)); // below 2^(bits + 1) if within the reach
        let fits = shifted.shr(bits + 1).less_than(V::splat(1));
        let sum = if FAR {
            add_in_parts::<V>(exponent, on_grid, shifted)
        } else {
            V::add_f64(on_grid, multiple::<V>(exponent, steps))
        };
        V::store_f64(pick::<V>(sum, given, fits), values);
        !V::bitmask(fits) & (u64::MAX >> (64 - V::N))
    }
}

/// n 2^exponent, for whole numbers n of at least -2^51 and below 2^51.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn multiple<V: Lanes64>(exponent: i32, n: V) -> V::F64 {
    // SAFETY: passed on from the caller.
    unsafe {
        // The last bit of this double stands for 2^exponent, and so does that of every double from 2/3 to 4/3 of it.
        let middle = 1.5 * power_of_two(exponent + 52);
        V::sub_f64(n.add(V::splat(middle.to_bits())).bitcast_f64(), V::splat_f64(middle))
    }
}

/// Adds `shifted` - 2^62 steps to multiples of 2^exponent, for `shifted` from 0 to 2^63, with one rounding of the exact
/// sum: see "Far noise" in `samplers/grid.md`.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_in_parts<V: Lanes64>(exponent: i32, on_grid: V::F64, shifted: V) -> V::F64 {
    // SAFETY: passed on from the caller.
    unsafe {
        let zero = 1 << (Reach::Far.bits() - LOW_BITS);
        let high = multiple::<V>(exponent + LOW_BITS as i32, shifted.shr(LOW_BITS).sub(V::splat(zero)));
        let low_steps = shifted.and(V::splat((1 << LOW_BITS) - 1));
        // The sum, and its error, which is exact (Knuth 1969, theorem 4.2.2 C).
        let sum = V::add_f64(on_grid, high);
        let added = V::sub_f64(sum, on_grid);
        let error = V::add_f64(V::sub_f64(on_grid, V::sub_f64(sum, added)), V::sub_f64(high, added));
        let magnitude = V::bitcast_u64(on_grid).and(V::splat(u64::MAX >> 1));
        let is_near = magnitude.less_than(V::splat(power_of_two(exponent + FAR_AWAY).to_bits()));
        let half = V::splat(1 << (LOW_BITS - 1));
        let sign = V::splat(0).select(half, low_steps.less_than(V::splat(1)));
        let low = multiple::<V>(exponent, low_steps.select(sign, is_near));
        V::add_f64(sum, V::add_f64(error, low))
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
        let fine = magnitude.less_than(bits_of(exponent + EXACT));
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
