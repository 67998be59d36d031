//! The bit flip of thresholding with histogram encoding: which noisy bits exceed a threshold.
//!
//! Histogram encoding adds Laplace noise of scale 2/epsilon to each bit of a one-hot row. A client that then reports
//! only which sums exceed a threshold theta sends independent bits: p = 1 - e^(-epsilon (1 - theta) / 2) / 2 and
//! q = e^(-epsilon theta / 2) / 2 (Wang, Blocki, Li, Jha 2017, section 4.2). So the bits are drawn with these
//! probabilities directly, without noise.
//!
//! # Privacy
//!
//! The guarantee is that of every unary encoding. Thresholding discards some of the information in the noisy bits: with
//! theta = 1/2 the ratio is (2 e^(epsilon/4) - 1)^2, and it is below e^epsilon for every theta. The protocol announces
//! the exact one.
//!
//! # The choice of the threshold and of the number of planes
//!
//! The threshold is the multiple of 1/64 from 1/2 to 1 with the smallest variance of a rare value's count. Then the
//! smallest number of planes is chosen with which p, rounded down, and q, rounded up, achieve at least 0.999 of what they
//! achieve with 52.

use dpnoise_kernels::arith::log::ln_at_most_vartime;

use super::bit_flip::{BitFlip, Neighbours};
use super::likelihood::check_epsilon;
use crate::error::Error;

/// Thresholds are multiples of 1 / 64.
const STEPS: u32 = 64;

/// Planes enough for every epsilon: p - q is at least 2^-23.
const MOST_PLANES: u32 = 52;

/// Thresholds whose variance is estimated to be larger than the least by this part are not the best.
const CLOSE: f64 = 1.0 / (1 << 20) as f64;

impl BitFlip {
    /// The flip of the best threshold for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    ///
    /// # Panics
    /// Never.
    pub fn threshold(epsilon: f64) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        // An estimate differs by less than 2^-26 of itself from the variance with 52 planes: p - q is at least 2^-23.
        let estimates = (STEPS / 2..STEPS).map(|theta| (theta, estimated_variance(epsilon, theta)));
        let least = estimates.clone().map(|(_, variance)| variance).fold(f64::INFINITY, f64::min);
        let close = estimates.filter(|&(_, variance)| variance <= (1.0 + CLOSE) * least);
        let variance = |flip: &Self| flip.support().variance(0.0);
        let best =
            close.filter_map(|(theta, _)| finest(epsilon, theta)).min_by(|a, b| variance(a).total_cmp(&variance(b)));
        let best = best.expect("52 planes have a q below every p");
        let achievable = best.likelihood_ratio(Neighbours::OneHot).epsilon();
        let is_enough = |flip: &Self| flip.likelihood_ratio(Neighbours::OneHot).achieves(achievable);
        Ok((2..MOST_PLANES).find_map(|planes| coarser(best, planes).filter(is_enough)).unwrap_or(best))
    }
}

/// q (1 - q) / (p - q)^2 for the threshold `theta` / 64, nearly.
fn estimated_variance(epsilon: f64, theta: u32) -> f64 {
    let [below, above] = exponents(epsilon, theta);
    let (q, difference) = ((-below).exp() / 2.0, f64::midpoint((-below).exp_m1(), (-above).exp_m1()));
    q * (1.0 - q) / (difference * difference)
}

/// The exponents a and b of the threshold `theta` / 64, where q = e^-a / 2 and p = 1 - e^-b / 2.
fn exponents(epsilon: f64, theta: u32) -> [f64; 2] {
    [theta, STEPS - theta].map(|steps| epsilon * f64::from(steps) / f64::from(2 * STEPS))
}

/// The flip of the threshold `theta` / 64 with 52 planes, if p exceeds q.
fn finest(epsilon: f64, theta: u32) -> Option<BitFlip> {
    let [q, not_p] = exponents(epsilon, theta).map(half_exp);
    BitFlip::new(MOST_PLANES, (1 << MOST_PLANES) - not_p, q).ok()
}

/// The flip with fewer planes, if p exceeds q: a number that is rounded up twice is rounded up to the coarser multiple.
fn coarser(finest: BitFlip, planes: u32) -> Option<BitFlip> {
    let step = 1 << (MOST_PLANES - planes);
    BitFlip::new(planes, finest.p() / step, finest.q().div_ceil(step)).ok()
}

/// The smallest multiple of 2^-52 that is at least e^-`exponent` / 2, as a numerator; for an exponent of less than 32.
fn half_exp(exponent: f64) -> u64 {
    let half = 1u64 << (MOST_PLANES - 1);
    let enough = |numerator: u64| ln_at_most_vartime(half.into(), numerator.into(), exponent);
    // The guess is off by a step or two; the exact test decides.
    let mut numerator = ((half as f64 * (-exponent).exp()).ceil() as u64).max(1);
    while !enough(numerator) {
        numerator += 1;
    }
    while numerator > 1 && enough(numerator - 1) {
        numerator -= 1;
    }
    numerator
}

#[cfg(test)]
mod tests {
    use super::super::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use super::*;

    #[test]
    fn the_probabilities_are_those_of_a_threshold() {
        for epsilon in [MIN_EPSILON, 0.01, 0.5, 1.0, 4.0, 10.0, MAX_EPSILON] {
            let flip = BitFlip::threshold(epsilon).unwrap();
            let support = flip.support();
            // q and p imply the same threshold.
            let from_q = -2.0 / epsilon * (2.0 * support.probability(support.q)).ln();
            let from_p = 1.0 + 2.0 / epsilon * (2.0 * support.probability(support.one - support.p)).ln();
            assert!((from_q - from_p).abs() < 0.01, "{epsilon}: {from_q} {from_p}");
            assert!((0.49..1.0).contains(&from_q));
            assert!(flip.likelihood_ratio(Neighbours::OneHot).is_at_most(epsilon));
        }
    }

    /// No threshold is as good as the optimised flip, either (Wang et al. 2017, section 5).
    #[test]
    fn no_other_threshold_is_better() {
        for epsilon in [0.5, 1.0, 4.0] {
            let variance = |flip: BitFlip| flip.support().variance(0.0);
            let best = variance(BitFlip::threshold(epsilon).unwrap());
            for theta in STEPS / 2..STEPS {
                assert!(best <= 1.01 * variance(finest(epsilon, theta).unwrap()), "{epsilon} {theta}");
            }
            assert!(best > variance(BitFlip::optimized(epsilon).unwrap()));
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let refused = BitFlip::threshold(0.0).unwrap_err().to_string();
        assert_eq!(refused, "epsilon must be between 2**-20 and 32, got 0.0");
    }
}
