//! Non-negative fixed-point numbers of any precision.
//!
//! A [`Fixed`] with `n` fractional limbs is an integer multiple of one *ulp*, 2^(-64 n), below 2^64. Every operation
//! runs in a time that depends on `n` alone, never on the value; rounding is always down. Callers that need an interval
//! keep the error in ulps beside the number.

use super::{mask, power_of_two};
use crate::arch::secrecy::{Reason, declassify};

use zeroize::Zeroize;

/// The limbs of a number: a vector of them, which is wiped, or an array of them for public numbers, which is several
/// times as fast.
pub trait Limbs: Clone + AsRef<[u64]> + AsMut<[u64]> {
    /// So many limbs that are 0.
    fn zeros(count: usize) -> Self;

    /// Overwrites them, if they may be secret.
    fn wipe(&mut self);
}

impl Limbs for Vec<u64> {
    fn zeros(count: usize) -> Self {
        vec![0; count]
    }

    fn wipe(&mut self) {
        self.zeroize();
    }
}

impl<const N: usize> Limbs for [u64; N] {
    fn zeros(count: usize) -> Self {
        assert_eq!(count, N);
        [0; N]
    }

    fn wipe(&mut self) {}
}

/// A number in [0, 2^64), least significant limb first; the last limb is the integer part. Dropping it wipes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed<L: Limbs = Vec<u64>>(L);

impl<L: Limbs> Drop for Fixed<L> {
    fn drop(&mut self) {
        self.0.wipe();
    }
}

impl<L: Limbs> Fixed<L> {
    /// Zero, with `limbs` fractional limbs.
    #[must_use]
    pub fn zero(limbs: usize) -> Self {
        Self(L::zeros(limbs + 1))
    }

    /// A whole number.
    #[must_use]
    pub fn from_integer(value: u64, limbs: usize) -> Self {
        let mut result = Self::zero(limbs);
        result.0.as_mut()[limbs] = value;
        result
    }

    /// A number made of its fractional limbs, least significant first, and integer part 0.
    #[must_use]
    pub fn from_fraction(fraction: &[u64]) -> Self {
        let mut result = Self::zero(fraction.len());
        result.0.as_mut()[..fraction.len()].copy_from_slice(fraction);
        result
    }

    /// `numerator` / 2^128, with 2 limbs or more.
    #[must_use]
    pub fn over_2_128(numerator: u128, limbs: usize) -> Self {
        let mut result = Self::zero(limbs);
        let top = &mut result.0.as_mut()[limbs - 2..];
        (top[0], top[1]) = (numerator as u64, (numerator >> 64) as u64);
        result
    }

    /// The largest multiple of an ulp that is at most `numerator / denominator`; both are public, parts < 2^127.
    ///
    /// # Panics
    /// When the quotient is 2^64 or more.
    #[must_use]
    pub fn from_ratio_vartime(numerator: u128, denominator: u128, limbs: usize) -> Self {
        let whole = u64::try_from(numerator / denominator).expect("the quotient fits the integer limb");
        let mut result = Self::from_integer(whole, limbs);
        let mut remainder = numerator % denominator;
        // So many bits of the quotient at a time, a power of two, that the remainder has room for.
        let bits = 1 << denominator.leading_zeros().min(64).ilog2();
        for limb in result.0.as_mut()[..limbs].iter_mut().rev() {
            for _ in 0..64 / bits {
                remainder <<= bits;
                *limb = limb.unbounded_shl(bits) | (remainder / denominator) as u64;
                remainder %= denominator;
            }
        }
        result
    }

    /// The exact value of a finite double in [0, 2^64), or `None` when `limbs` cannot hold it exactly.
    #[must_use]
    pub fn from_f64_vartime(value: f64, limbs: usize) -> Option<Self> {
        let mut result = Self::zero(limbs);
        let mut rest = value;
        for limb in result.0.as_mut().iter_mut().rev() {
            let whole = rest as u64; // the integer part: rest < 2^64
            *limb = whole;
            rest = (rest - whole as f64) * power_of_two(64); // both operations are exact
        }
        (rest == 0.0).then_some(result)
    }

    /// The number of fractional limbs.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.0.as_ref().len() - 1
    }

    /// The integer part.
    #[must_use]
    pub fn integer(&self) -> u64 {
        self.0.as_ref()[self.limbs()]
    }

    /// Whether there is nothing behind the point.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.as_ref()[..self.limbs()].iter().fold(0, |any, &limb| any | limb) == 0
    }

    /// The number, nearly.
    #[must_use]
    pub fn to_f64_vartime(&self) -> f64 {
        self.0.as_ref().iter().fold(0.0, |below, &limb| below * power_of_two(-64) + limb as f64)
    }

    /// The same number without its integer part.
    #[must_use]
    pub fn fraction(mut self) -> Self {
        let limbs = self.limbs();
        self.0.as_mut()[limbs] = 0;
        self
    }

    /// The same number with the least significant fractional limbs cut off until `limbs` are left.
    #[must_use]
    pub fn truncated<M: Limbs>(&self, limbs: usize) -> Fixed<M> {
        let mut result = Fixed::<M>::zero(limbs);
        result.0.as_mut().copy_from_slice(&self.0.as_ref()[self.limbs() - limbs..]);
        result
    }

    /// `self + other`.
    ///
    /// # Panics
    /// When the sum is 2^64 or more.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        let mut carry = false;
        for (a, &b) in self.0.as_mut().iter_mut().zip(other.0.as_ref()) {
            let (sum, first) = a.overflowing_add(b);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *a = sum;
            carry = first | second;
        }
        assert!(!declassify(Reason::Overflow, carry), "fixed-point overflow");
        self
    }

    /// `self + count` ulps.
    ///
    /// # Panics
    /// When the sum is 2^64 or more.
    #[must_use]
    pub fn plus_ulps(self, count: u128) -> Self {
        let mut ulps = Self::zero(self.limbs());
        for (limb, part) in ulps.0.as_mut().iter_mut().zip([count as u64, (count >> 64) as u64]) {
            *limb = part;
        }
        self.plus(&ulps)
    }

    /// `self - other`, or zero when that is negative.
    #[must_use]
    pub fn minus(mut self, other: &Self) -> Self {
        let negative = self.subtract(other);
        let keep = mask(!negative);
        for limb in self.0.as_mut() {
            *limb &= keep;
        }
        self
    }

    /// `self - count` ulps, or zero when that is negative.
    #[must_use]
    pub fn minus_ulps(self, count: u128) -> Self {
        let limbs = self.limbs();
        self.minus(&Self::zero(limbs).plus_ulps(count))
    }

    /// Whether `self < other`.
    #[must_use]
    pub fn is_less(&self, other: &Self) -> bool {
        self.0.as_ref().iter().zip(other.0.as_ref()).fold(false, |borrow, (&a, &b)| {
            let (difference, first) = a.overflowing_sub(b);
            first | difference.overflowing_sub(u64::from(borrow)).1
        })
    }

    /// Subtracts in place, modulo 2^64, and returns whether the result wrapped.
    fn subtract(&mut self, other: &Self) -> bool {
        let mut borrow = false;
        for (a, &b) in self.0.as_mut().iter_mut().zip(other.0.as_ref()) {
            let (difference, first) = a.overflowing_sub(b);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *a = difference;
            borrow = first | second;
        }
        borrow
    }

    /// `self * other`, rounded down: at most one ulp too small.
    ///
    /// # Panics
    /// When the product is 2^64 or more.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let limbs = self.limbs();
        let mut product = Self::zero(limbs);
        let (own, others) = (self.0.as_ref(), other.0.as_ref());
        let mut overflow = 0;
        for (row, &factor) in own.iter().enumerate() {
            // The lowest limb of the sum so far has no more to come, and is dropped, but for the last row.
            let dropped = usize::from(row < limbs);
            let (mut carry, sums) = (0, product.0.as_mut());
            for (i, &limb) in others.iter().enumerate() {
                let sum = u128::from(factor) * u128::from(limb) + u128::from(sums[i]) + carry;
                sums[i.saturating_sub(dropped)] = sum as u64;
                carry = sum >> 64;
            }
            if dropped == 1 {
                sums[limbs] = carry as u64;
            } else {
                overflow = carry;
            }
        }
        assert!(declassify(Reason::Overflow, overflow == 0), "fixed-point overflow");
        product
    }

    /// `self * factor`, exactly.
    ///
    /// # Panics
    /// When the product is 2^64 or more.
    #[must_use]
    pub fn times_integer(mut self, factor: u64) -> Self {
        let mut carry = 0u128;
        for limb in self.0.as_mut() {
            let sum = u128::from(*limb) * u128::from(factor) + carry;
            *limb = sum as u64;
            carry = sum >> 64;
        }
        assert!(declassify(Reason::Overflow, carry == 0), "fixed-point overflow");
        self
    }

    /// `self / divisor`, rounded down; `self` must be public.
    #[must_use]
    pub fn over_integer_vartime(mut self, divisor: u64) -> Self {
        let mut remainder = 0u128;
        for limb in self.0.as_mut().iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(divisor)) as u64; // remainder < divisor, so it fits
            remainder = dividend - u128::from(*limb) * u128::from(divisor);
        }
        self
    }

    /// `1 / self`, at most 4 ulps too small, for a public `self` from 1/2 to 2^16, with 2 limbs or more.
    ///
    /// By Newton's method. Let y be an approximation from below and e = 1 - `self` y. Then 1 / `self` is y (1 + e + e^2/(1 - e)).
    /// Below, e is at most one ulp too large, and y, which is at most 2, is multiplied by it and rounded down: y (1 + e) less
    /// two ulps is from below, too, and at most 2 e^2 / (1 - e) and three ulps too small.
    ///
    /// # Panics
    /// When there is one limb.
    #[must_use]
    pub fn reciprocal_vartime(&self) -> Self {
        let one = Self::from_integer(1, self.limbs());
        // The first e is between 0 and 2^-44.
        let first = (1.0 - power_of_two(-45)) / self.to_f64_vartime();
        let mut y = Self::from_f64_vartime(first, self.limbs()).expect("60 bits suffice");
        let mut bits = 44;
        while bits <= 64 * self.limbs() + 2 {
            let error = one.clone().minus(&self.times(&y));
            y = y.times(&error).plus(&y).minus_ulps(2);
            bits *= 2;
        }
        y
    }

    /// `self * 2^-shift`, rounded down.
    #[must_use]
    pub fn shifted_right(mut self, shift: u64) -> Self {
        let n = self.limbs() + 1;
        let (limb_shift, bit_shift) = (shift >> 6, shift as u32 & 63);
        // Whole limbs: every distance is tried and one result is kept, so that no address depends on the shift.
        let mut moved = Self::zero(n - 1);
        for distance in 0..n {
            let keep = mask(limb_shift == distance as u64);
            for (to, &from) in moved.0.as_mut().iter_mut().zip(&self.0.as_ref()[distance..]) {
                *to |= from & keep;
            }
        }
        let mut above = 0;
        for (limb, &part) in self.0.as_mut().iter_mut().zip(moved.0.as_ref()).rev() {
            *limb = ((u128::from(above) << 64 | u128::from(part)) >> bit_shift) as u64;
            above = part;
        }
        self
    }

    /// `self` if `choice`, else `other`.
    #[must_use]
    pub fn select(mut self, other: &Self, choice: bool) -> Self {
        let keep = mask(choice);
        for (a, &b) in self.0.as_mut().iter_mut().zip(other.0.as_ref()) {
            *a = *a & keep | b & !keep;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;

    fn big<L: Limbs>(x: &Fixed<L>) -> BigUint {
        x.0.as_ref().iter().rev().fold(BigUint::ZERO, |acc, &limb| (acc << 64u32) + limb)
    }

    /// Numbers below 4 with awkward limbs, so that no product overflows.
    fn samples(limbs: usize) -> Vec<Fixed> {
        let patterns = [0u64, 1, u64::MAX, 0x8000_0000_0000_0000, 0x0123_4567_89ab_cdef];
        let mut all = Vec::new();
        for (i, &low) in patterns.iter().enumerate() {
            for (j, &high) in patterns.iter().enumerate() {
                let mut x: Fixed = Fixed::from_integer(((i + j) % 4) as u64, limbs);
                x.0[0] = low;
                x.0[limbs - 1] ^= high;
                all.push(x);
            }
        }
        all
    }

    #[test]
    fn arithmetic_agrees_with_big_integers() {
        for limbs in [1, 2, 4, 5] {
            let unit = 64 * limbs as u32;
            for x in samples(limbs) {
                for y in samples(limbs) {
                    assert_eq!(big(&x.clone().plus(&y)), big(&x) + big(&y));
                    assert_eq!(big(&x.times(&y)), (big(&x) * big(&y)) >> unit);
                    assert_eq!(x.is_less(&y), big(&x) < big(&y));
                    let difference = if big(&x) < big(&y) { BigUint::ZERO } else { big(&x) - big(&y) };
                    assert_eq!(big(&x.clone().minus(&y)), difference);
                    assert_eq!(x.clone().select(&y, true), x);
                    assert_eq!(x.clone().select(&y, false), y);
                }
                for shift in [0, 1, 63, 64, 65, 127, 130, 64 * 5, 64 * 6, 1 << 20, 1 << 46] {
                    assert_eq!(big(&x.clone().shifted_right(shift)), big(&x) >> shift.min(1 << 20), "{shift}");
                }
                assert_eq!(big(&x.clone().over_integer_vartime(9)), big(&x) / 9u32);
                assert_eq!(big(&x.clone().times_integer(1 << 40)), big(&x) << 40u32);
            }
        }
    }

    #[test]
    fn arrays_compute_what_vectors_do() {
        let short = |x: &Fixed| x.truncated::<[u64; 4]>(3);
        for x in samples(3) {
            for y in samples(3) {
                assert_eq!(big(&short(&x).times(&short(&y))), big(&x.times(&y)));
                assert_eq!(big(&short(&x).minus(&short(&y)).plus(&short(&y))), big(&x.clone().minus(&y).plus(&y)));
            }
            for shift in [0, 1, 64, 191, 192, 256, 1 << 20] {
                assert_eq!(big(&short(&x).shifted_right(shift)), big(&x.clone().shifted_right(shift)), "{shift}");
            }
        }
    }

    #[test]
    fn conversions_are_exact_or_rounded_down() {
        // The quotient comes in pieces of 64 bits, of 32, 16 and so on to 1, by the size of the denominator.
        for bits in [3, 64, 65, 96, 97, 112, 113, 120, 121, 124, 125, 126, 127] {
            let (numerator, denominator) = ((1u128 << 127) - 12_345, (1u128 << bits) - 1);
            let exact = (BigUint::from(numerator) << 256u32) / denominator;
            if numerator / denominator < 1 << 64 {
                assert_eq!(big(&Fixed::<Vec<u64>>::from_ratio_vartime(numerator, denominator, 4)), exact, "{bits}");
            }
            let exact = (BigUint::from(22u32) << 256u32) / denominator;
            assert_eq!(big(&Fixed::<Vec<u64>>::from_ratio_vartime(22, denominator, 4)), exact, "{bits}");
        }
        assert_eq!(Fixed::from_f64_vartime(0.75, 1), Some(Fixed(vec![3 << 62, 0])));
        assert_eq!(Fixed::<Vec<u64>>::from_f64_vartime(2f64.powi(-65), 1), None);
        assert!(Fixed::<Vec<u64>>::from_f64_vartime(5e-324, 17).is_some());
    }

    #[test]
    fn reciprocals_are_from_below() {
        for limbs in [2, 3, 4, 9, 17] {
            for (numerator, denominator) in
                [(1, 2), (2, 3), (1, 1), ((1 << 90) + 1, 1 << 90), (22, 7), (126, 1), (65_535, 2)]
            {
                let x: Fixed = Fixed::from_ratio_vartime(numerator, denominator, limbs);
                let exact = (BigUint::from(1u32) << (128 * limbs)) / big(&x);
                let found = big(&x.reciprocal_vartime());
                assert!(found <= exact && exact - found <= BigUint::from(4u32), "{limbs} {numerator}/{denominator}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "overflow")]
    fn overflow_is_never_silent() {
        let _ = Fixed::<Vec<u64>>::from_integer(1 << 40, 2).times(&Fixed::from_integer(1 << 40, 2));
    }
}
