//! Numbers as positions on a grid: exactly, and in constant time.
//!
//! A double x of at most 1 in magnitude is read as the integer X = floor(|x| 2^62) and its sign. That is exact
//! for |x| >= 2^-10, and for all multiples of 2^-62; other numbers are moved towards 0 by less than 2^-62.
//!
//! # Constant time
//!
//! Floating-point arithmetic takes longer for subnormal numbers on some processors, and comparisons of doubles may be
//! compiled to branches. So the bits of a double are processed as those of an integer, with shifts and masks.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};

use crate::error::Error;

/// Binary digits after the point.
const DIGITS: u32 = 62;

const SIGN: u64 = 1 << 63;

/// The bytes of the word that rounds a number at random.
pub(crate) const ROUNDING_BYTES: usize = 8;

/// Checks that all values are in [-1, 1], in one pass without a branch.
pub(crate) fn check_signed(values: &[f64]) -> Result<(), Error> {
    check(values, "must be numbers in [-1, 1]", |bits| (bits & !SIGN > 1f64.to_bits()).into())
}

/// Checks that all values are in [0, 1], in one pass without a branch; -0.0 is 0.
pub(crate) fn check_unsigned(values: &[f64]) -> Result<(), Error> {
    check(values, "must be numbers in [0, 1]", |bits| u8::from(bits > 1f64.to_bits()) & u8::from(bits != SIGN))
}

/// The bits of infinities and NaNs are larger than those of 1.
fn check(values: &[f64], problem: &str, is_outside: impl Fn(u64) -> u8) -> Result<(), Error> {
    let outside = values.iter().fold(0, |outside, value| outside | is_outside(value.to_bits()));
    if declassify(Reason::Refusal, outside == 0) { Ok(()) } else { Err(Error::data("values", problem)) }
}

/// Puts a number from -1 to 1 on one of the positions 0, ..., k - 1, evenly spaced over that range: on one of its two
/// neighbours, at random and without bias.
///
/// The position is floor(((1 + x) (k - 1) 2^62 + u) / 2^63) with u the upper 63 bits of `word`.
#[inline(always)]
pub(crate) fn round_at_random(x: f64, k: u32, word: u64) -> u32 {
    let negative = (x.to_bits() >> 63).wrapping_neg();
    let from_zero = (magnitude(x) ^ negative).wrapping_sub(negative);
    let from_first = (1u64 << DIGITS).wrapping_add(from_zero);
    let scaled = u128::from(from_first).wrapping_mul(u128::from(k).wrapping_sub(1));
    (scaled.wrapping_add(u128::from(word >> 1)) >> (DIGITS + 1)) as u32
}

/// Gives the bin floor(k X / 2^62) of a number from 0 to 1 among k of the same width; the last for 1 itself.
#[inline(always)]
pub(crate) fn bin(x: f64, k: u32) -> u32 {
    let bin = (u128::from(magnitude(x)).wrapping_mul(u128::from(k)) >> DIGITS) as u32;
    let beyond = k.wrapping_sub(1).wrapping_sub(bin) >> 31;
    bin.wrapping_sub(beyond)
}

/// floor(|x| 2^62), for |x| of at most 1.
#[inline(always)]
fn magnitude(x: f64) -> u64 {
    const POINT: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = x.to_bits() & !SIGN;
    let exponent = bits >> POINT;
    // The first digit of a subnormal number is 0 instead, but such numbers are below 2^-62 either way.
    let digits = (bits & ((1 << POINT) - 1)) | 1 << POINT;
    let shift = 1023u64.wrapping_sub(exponent);
    // All ones if the shift exceeds the digits, so that nothing is left of them.
    let nothing = 63u64.wrapping_sub(shift) >> 63;
    (digits << (DIGITS - POINT) >> (shift & 63)) & nothing.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_are_exact_or_rounded_to_zero() {
        let one = (1u64 << DIGITS) as f64;
        for x in [1.0, 1f64.next_down(), 0.5, 0.1, 1.0 / 3.0, 2f64.powi(-10), 3.0 * 2f64.powi(-62)] {
            assert_eq!(magnitude(x), (x * one) as u64, "{x}");
            assert_eq!(magnitude(-x), magnitude(x));
        }
        // The double is rounded down.
        assert_eq!(magnitude(2f64.powi(-10).next_down()), (1 << 52) - 1);
        assert_eq!(magnitude(2f64.powi(-62)), 1);
        for x in [0.0, 2f64.powi(-62).next_down(), 2f64.powi(-63), 2f64.powi(-64), 1e-100, 5e-324, f64::MIN_POSITIVE] {
            assert_eq!(magnitude(x), 0, "{x}");
        }
    }

    #[test]
    fn positions_are_neighbours_with_the_right_mean() {
        for k in [2, 3, 2049, 4096] {
            assert_eq!([0, u64::MAX].map(|word| round_at_random(-1.0, k, word)), [0, 0]);
            assert_eq!([0, u64::MAX].map(|word| round_at_random(1.0, k, word)), [k - 1, k - 1]);
        }
        // 5/8 of the way over four steps is 2.5, and 3/8 of it 1.5: half of the words round up, the larger ones.
        for (x, below) in [(0.25, 2), (-0.25, 1)] {
            let half = (0..1 << 16).filter(|&word| round_at_random(x, 5, word << 48) == below + 1).count();
            assert_eq!(half, 1 << 15);
            assert_eq!([0, u64::MAX].map(|word| round_at_random(x, 5, word)), [below, below + 1]);
        }
        assert_eq!((round_at_random(-0.0, 2, (1 << 63) - 1), round_at_random(0.0, 2, 1 << 63)), (0, 1));
        // A subnormal number of either sign counts as 0.
        assert_eq!(round_at_random(-5e-324, 3, u64::MAX), 1);
    }

    #[test]
    fn bins_are_half_open_but_for_the_last() {
        assert_eq!([0.0, -0.0, 0.25f64.next_down(), 0.25, 0.75, 1.0].map(|x| bin(x, 4)), [0, 0, 0, 1, 3, 3]);
        assert_eq!([1f64.next_down(), 1.0].map(|x| bin(x, 4096)), [4095; 2]);
        assert_eq!([0.3, 0.29].map(|x| bin(x, 10)), [2, 2]); // the double 0.3 is below 3/10
    }

    #[test]
    fn what_is_outside_is_refused() {
        for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1f64.next_up(), -2.0] {
            assert!(check_signed(&[0.0, bad, 0.5]).is_err() && check_unsigned(&[0.0, bad, 0.5]).is_err(), "{bad}");
        }
        assert!(check_signed(&[-1.0, -0.0, 5e-324, 1.0]).is_ok() && check_unsigned(&[-0.0, 0.0, 1.0]).is_ok());
        assert_eq!(check_unsigned(&[-5e-324]).unwrap_err().to_string(), "values must be numbers in [0, 1]");
    }
}
