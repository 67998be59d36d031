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
        let variance = |flip: &Self| flip.support().variance(0.0);
        let finest = (STEPS / 2..STEPS).filter_map(|theta| Some((theta, at(epsilon, theta, MOST_PLANES)?)));
        let by_variance = |(_, a): &(u32, Self), (_, b): &(u32, Self)| variance(a).total_cmp(&variance(b));
        let best = finest.min_by(by_variance);
        let (theta, finest) = best.expect("52 planes have a q below every p");
        let achievable = finest.likelihood_ratio(Neighbours::OneHot).epsilon();
        let private = |flip: &Self| flip.likelihood_ratio(Neighbours::OneHot).achieves(achievable);
        Ok((2..MOST_PLANES).find_map(|planes| at(epsilon, theta, planes).filter(private)).unwrap_or(finest))
    }
}

/// The flip of the threshold `theta` / 64, if it fits that many planes.
fn at(epsilon: f64, theta: u32, planes: u32) -> Option<BitFlip> {
    let half = |steps: u32| epsilon * f64::from(steps) / f64::from(2 * STEPS);
    let not_p = half_exp(half(STEPS - theta), planes);
    BitFlip::new(planes, (1 << planes) - not_p, half_exp(half(theta), planes)).ok()
}

/// The smallest multiple of 2^-`planes` that is at least e^-`exponent` / 2, as a numerator; for an exponent of less than 32.
fn half_exp(exponent: f64, planes: u32) -> u64 {
    let half = 1u64 << (planes - 1);
    let enough = |numerator: u64| ln_at_most_vartime(half.into(), numerator.into(), exponent);
    // The guess is off by a step or two; the exact test decides.
    let mut numerator = ((half as f64 * (-exponent).exp()) as u64).max(1);
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
                assert!(best <= 1.01 * variance(at(epsilon, theta, MOST_PLANES).unwrap()), "{epsilon} {theta}");
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
