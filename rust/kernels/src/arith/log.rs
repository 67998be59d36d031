//! Exact comparisons of a fraction with e^epsilon, for privacy levels that must never be understated.

use super::exp::{Constants, ERROR_ULPS};
use super::fixed::{Fixed, Limbs};

/// Whether ln(numerator/denominator) <= bound, decided exactly.
///
/// # Panics
/// When a part of the fraction is zero, or `bound` is negative, NaN or above 700.
#[must_use]
pub fn ln_at_most_vartime(numerator: u128, denominator: u128, bound: f64) -> bool {
    assert!(numerator > 0 && denominator > 0 && (0.0..=700.0).contains(&bound));
    if bound == 0.0 || numerator <= denominator {
        return numerator <= denominator;
    }
    // e^bound is irrational for a rational bound other than 0, so some precision decides.
    let short = Constants::short();
    compared(numerator, denominator, bound, short).unwrap_or_else(|| {
        let mut limbs = short.limbs();
        loop {
            limbs *= 2;
            if let Some(is_at_most) = compared(numerator, denominator, bound, &Constants::<Vec<u64>>::new(limbs)) {
                return is_at_most;
            }
        }
    })
}

/// Whether ln(numerator/denominator) <= bound, or `None` when the precision does not decide it.
fn compared<L: Limbs>(numerator: u128, denominator: u128, bound: f64, constants: &Constants<L>) -> Option<bool> {
    let limbs = constants.limbs();
    // numerator e^-bound <= denominator, both sides divided by 2^128.
    let (k, v) = constants.exp2_neg(Fixed::from_f64_vartime(bound, limbs)?.times(&constants.log2_e));
    let lhs = v.times(&Fixed::over_2_128(numerator, limbs)).shifted_right(k);
    // t: 1 ulp of log2 e times a bound below 2^10, and 1 of the product; then v, the product and the shift.
    let error = (1 << 10) + ERROR_ULPS + 3;
    let rhs = Fixed::over_2_128(denominator, limbs);
    if !rhs.is_less(&lhs.clone().plus_ulps(error)) {
        Some(true)
    } else if rhs.is_less(&lhs.minus_ulps(error)) {
        Some(false)
    } else {
        None
    }
}

/// The smallest double that is at least ln(numerator/denominator), for a fraction of at least 1.
///
/// # Panics
/// When the fraction is below 1 or a part is zero.
#[must_use]
pub fn ln_upper_vartime(numerator: u128, denominator: u128) -> f64 {
    assert!(numerator >= denominator && denominator > 0);
    let mut bound = ((numerator - denominator) as f64 / denominator as f64).ln_1p();
    while !ln_at_most_vartime(numerator, denominator, bound) {
        bound = bound.next_up();
    }
    while bound > 0.0 && ln_at_most_vartime(numerator, denominator, bound.next_down().max(0.0)) {
        bound = bound.next_down();
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_rounded_up_to_the_next_double() {
        let ln_3 = ln_upper_vartime(3, 1);
        assert!(ln_at_most_vartime(3, 1, ln_3) && !ln_at_most_vartime(3, 1, ln_3.next_down()));
        assert_eq!(ln_upper_vartime(7, 7), 0.0);
        // e < 2.71828182845904524 and > 2.71828182845904523
        assert!(ln_at_most_vartime(271_828_182_845_904_523, 100_000_000_000_000_000, 1.0));
        assert!(!ln_at_most_vartime(271_828_182_845_904_524, 100_000_000_000_000_000, 1.0));
        // A fraction a hair above 1 and a tiny bound: ln(1 + 2^-126) is just below 2^-126.
        let tiny = 2f64.powi(-126);
        assert!(ln_at_most_vartime((1 << 126) + 1, 1 << 126, tiny));
        assert!(!ln_at_most_vartime((1 << 126) + 1, 1 << 126, tiny.next_down()));
    }
}
