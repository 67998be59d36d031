//! The certified exponential: 2^-t with a proved error bound, at any precision.
//!
//! For t = k + r, k whole and 0 <= r < 1, this computes 2^-r = exp(z)/2 with z = (1 - r) ln 2 in (0, ln 2] by Horner's
//! rule on the Taylor series. All terms are positive and every step rounds down, so the errors are easy to bound:
//!
//! - z is at most 2 ulps too small (ln 2 by less than 1, the product by less than 1).
//! - Let a_n be the exact tail sum z^(m-n)/m! over m >= n, and e_n the error of its computed value. One step computes
//!   c_n + z a_(n+1) with c_n = 1/n! too small by less than 1 ulp and the product by less than 1, so
//!   e_n <= 2 + ln 2 e_(n+1) + 2 a_(n+1). As a_1 < 1.45 and a_m < 0.64 for m >= 2, e_1 < 3.28/(1 - ln 2) < 10.7 and
//!   e_0 < 2 + 7.5 + 2.9 = 12.4 ulps; the series is cut where the rest is below 1 ulp.
//! - Halving rounds down by less than 1 ulp.
//!
//! So 2^-r is too small by less than 8 ulps; [`ERROR_ULPS`] is twice that. An error of t by d ulps moves 2^-t by less
//! than d ulps, also when the error carries t across a whole number, since 2^-t is continuous.

use std::sync::OnceLock;

use super::fixed::{Fixed, Limbs};

/// The bound on the error of [`Constants::exp2_neg`], in ulps, for an exact argument.
pub const ERROR_ULPS: u128 = 16;

/// The fractional limbs of the first, constant-time comparison: 256 bits.
pub const FIRST_LIMBS: usize = 4;

/// The limbs of short numbers: 192 bits behind the point decide nearly every question about public numbers.
pub type Short = [u64; 4];

/// The constants for one precision. They are public: nothing here depends on a parameter or on data.
#[derive(Clone, Debug)]
pub struct Constants<L: Limbs = Vec<u64>> {
    /// ln 2, less than one ulp too small.
    pub ln_2: Fixed<L>,
    /// log2 e = 1 / ln 2, less than one ulp too small.
    pub log2_e: Fixed<L>,
    /// 1/n! for n = 0, 1, ..., each less than one ulp too small; the next would be zero.
    coefficients: Vec<Fixed<L>>,
}

impl Constants {
    /// The constants of [`FIRST_LIMBS`], computed once per process.
    pub fn first() -> &'static Self {
        static FIRST: OnceLock<Constants> = OnceLock::new();
        FIRST.get_or_init(|| Self::new(FIRST_LIMBS))
    }
}

impl Constants<Short> {
    /// The constants for short numbers, computed once per process.
    pub fn short() -> &'static Self {
        static SHORT: OnceLock<Constants<Short>> = OnceLock::new();
        SHORT.get_or_init(|| Self::new(size_of::<Short>() / 8 - 1))
    }
}

/// The limbs of shorter numbers: 128 bits decide questions about numbers that few operations make.
pub type Shorter = [u64; 3];

impl Constants<Shorter> {
    /// The constants for shorter numbers, computed once per process.
    pub fn shorter() -> &'static Self {
        static SHORTER: OnceLock<Constants<Shorter>> = OnceLock::new();
        SHORTER.get_or_init(|| Self::new(size_of::<Shorter>() / 8 - 1))
    }
}

impl<L: Limbs> Constants<L> {
    /// The constants with `limbs` fractional limbs.
    #[must_use]
    pub fn new(limbs: usize) -> Self {
        // One guard limb takes up the rounding errors of the few hundred steps below.
        let guarded = limbs + 1;
        // ln 2 = 2 atanh(1/3), the sum of 2 / ((2 i + 1) 3^(2 i + 1)).
        let mut ln_2 = Fixed::<Vec<u64>>::zero(guarded);
        let mut power = Fixed::from_ratio_vartime(2, 3, guarded);
        let zero = Fixed::zero(guarded);
        let mut odd = 1;
        while power != zero {
            ln_2 = ln_2.plus(&power.clone().over_integer_vartime(odd));
            power = power.over_integer_vartime(9);
            odd += 2;
        }
        let mut coefficients = Vec::new();
        let mut term = Fixed::<Vec<u64>>::from_integer(1, guarded);
        let mut n = 0;
        while term.truncated::<Vec<u64>>(limbs) != Fixed::zero(limbs) {
            coefficients.push(term.truncated(limbs));
            n += 1;
            term = term.over_integer_vartime(n);
        }
        Self { log2_e: ln_2.reciprocal_vartime().truncated(limbs), ln_2: ln_2.truncated(limbs), coefficients }
    }

    /// The number of fractional limbs.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.ln_2.limbs()
    }

    /// The pair (k, v) with 2^-t = 2^-k v up to [`ERROR_ULPS`] of v, where 1/2 <= v <= 1.
    #[must_use]
    pub fn exp2_neg(&self, t: Fixed<L>) -> (u64, Fixed<L>) {
        let limbs = t.limbs();
        let whole = t.integer();
        let z = Fixed::from_integer(1, limbs).minus(&t.fraction()).times(&self.ln_2);
        let sum = self.coefficients.iter().rev().fold(Fixed::zero(limbs), |sum, c| sum.times(&z).plus(c));
        (whole, sum.shifted_right(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ln 2 and log2 e to 60 digits (OEIS A002162, A007525), compared as decimal strings.
    #[test]
    fn constants_match_published_digits() {
        let digits = |x: &Fixed, count: usize| {
            let mut rest = x.clone().fraction();
            (0..count)
                .map(|_| {
                    rest = rest.clone().fraction().times_integer(10);
                    char::from(b'0' + rest.integer() as u8)
                })
                .collect::<String>()
        };
        for limbs in [FIRST_LIMBS, 8, 16] {
            let c = Constants::<Vec<u64>>::new(limbs);
            assert_eq!(digits(&c.ln_2, 60), "693147180559945309417232121458176568075500134360255254120680");
            assert_eq!(digits(&c.log2_e, 60), "442695040888963407359924681001892137426645954152985934135449");
        }
    }

    /// At 256 bits the result must lie within the proved bound of the result at 512 bits.
    #[test]
    fn the_error_bound_holds() {
        let (low, high) = (Constants::<Vec<u64>>::new(4), Constants::<Vec<u64>>::new(8));
        // Multiples of 2^-100, which both precisions hold exactly.
        for numerator in [0, 1, (1 << 100) / 3, (1 << 100) - 1, 1 << 100, (7 << 99) + 12345, (1 << 126) + 1] {
            let t = |limbs| Fixed::from_ratio_vartime(numerator, 1 << 100, limbs);
            let (k, v) = low.exp2_neg(t(4));
            let (wide_k, wide_v) = high.exp2_neg(t(8));
            let exact = wide_v.truncated(4);
            assert_eq!(k, wide_k);
            assert!(!exact.clone().plus_ulps(1).is_less(&v), "never too large");
            assert!(!v.plus_ulps(ERROR_ULPS).is_less(&exact), "{numerator}");
        }
    }
}
