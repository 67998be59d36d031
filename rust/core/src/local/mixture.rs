//! Dyadic mixtures: the value with probability keep / 2^planes, otherwise any of the k values, all equally likely.
//!
//! # Privacy
//!
//! A report equals the value with probability p = (2^planes - keep + k keep) / (k 2^planes), and any other value with
//! probability q = (2^planes - keep) / (k 2^planes) each. So the largest likelihood ratio of two inputs is
//! p/q = 1 + k keep / (2^planes - keep), an exact fraction.
//!
//! # The choice of the number of planes
//!
//! The smallest number of planes is chosen with which the largest private `keep` achieves at least 0.999 of the requested
//! epsilon. The denominator k 2^planes must stay within 2^62, so that estimates are computed exactly. It has to be about
//! 2^10 (k + x)^2 / ((1 + x) epsilon), with x = e^epsilon - 1: too much only if k is large and epsilon small at once.

use super::estimate::Support;
use super::likelihood::{LikelihoodRatio, MAX_PLANES, check_epsilon, fewest_planes};
use crate::error::Error;

/// The probability keep / 2^planes of keeping one of k values, with 0 < keep < 2^planes and k 2^planes <= 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mixture {
    k: u32,
    planes: u32,
    keep: u64,
}

impl Mixture {
    /// The mixture of `k` >= 2 values for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32, or when a denominator of 2^62 does not achieve 0.999 of it.
    pub fn new(k: u32, epsilon: f64) -> Result<Self, Error> {
        Self::of_windows(k, 1, epsilon)
    }

    /// The mixture of `k` values for `epsilon` when it is not known which of `width` values is kept: each is as likely.
    ///
    /// # Errors
    /// As for [`Mixture::new`].
    pub(super) fn of_windows(k: u32, width: u32, epsilon: f64) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        let range = 1..=MAX_PLANES - k.next_power_of_two().trailing_zeros();
        let make = |planes: u32, other: u64| Self::of(k, planes, (1 << planes) - other);
        // The free numerator is that of *not* keeping.
        let divisor = 1.0 + epsilon.exp_m1() * f64::from(width) / f64::from(k);
        let last = |planes| (1u64 << planes) - 1;
        let ratio = |planes, other| make(planes, other).window_ratio(width);
        let found = fewest_planes(epsilon, range, divisor, last, ratio);
        found.map(|(planes, other)| make(planes, other)).ok_or_else(|| {
            let allowed = "such that probabilities over a denominator of at most 2**62 achieve 0.999 of epsilon; \
                           unary encoding takes any k and epsilon, and is more accurate here";
            Error::parameter("k and epsilon", format!("k = {k}, epsilon = {epsilon:?}"), allowed)
        })
    }

    /// The mixture with these probabilities, which must be in range.
    pub(super) fn of(k: u32, planes: u32, keep: u64) -> Self {
        Self { k, planes, keep }
    }

    /// The largest likelihood ratio between two inputs.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        self.window_ratio(1)
    }

    /// The largest likelihood ratio when the value is any of `width` values with the same probability.
    pub(super) fn window_ratio(self, width: u32) -> LikelihoodRatio {
        let other = u128::from((1 << self.planes) - self.keep) * u128::from(width);
        let kept = u128::from(self.keep) * u128::from(self.k);
        LikelihoodRatio { numerator: other + kept, denominator: other }
    }

    /// How often a report is the value, and how often it is any given other.
    #[must_use]
    pub fn support(self) -> Support {
        let (k, one) = (u64::from(self.k), 1 << self.planes);
        let q = one - self.keep;
        Support { p: q + k * self.keep, q, one: k * one }
    }

    /// The number of values.
    #[must_use]
    pub fn k(self) -> u32 {
        self.k
    }

    /// The binary digits of the probability of keeping.
    #[must_use]
    pub fn planes(self) -> u32 {
        self.planes
    }

    /// The numerator of the probability of keeping.
    #[must_use]
    pub fn keep(self) -> u64 {
        self.keep
    }
}

#[cfg(test)]
mod tests {
    use super::super::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use super::*;

    /// Fewer planes do not achieve it, whatever is kept; and keeping one more is no longer private.
    #[test]
    fn the_choice_is_the_smallest_and_the_closest() {
        for k in [2, 3, 15, 1024] {
            for epsilon in [0.01, 0.5, 1.0, 3f64.ln(), 4.0] {
                let mixture = Mixture::new(k, epsilon).unwrap();
                let closer = Mixture { keep: mixture.keep + 1, ..mixture };
                assert!(closer.keep == 1 << mixture.planes || !closer.likelihood_ratio().is_at_most(epsilon));
                let planes = mixture.planes - 1;
                let nearest = mixture.keep / 2;
                let fewer = (nearest.saturating_sub(2)..nearest + 3).filter(|&keep| 0 < keep && keep < 1 << planes);
                assert!(
                    fewer.into_iter().all(|keep| !Mixture { k, planes, keep }.likelihood_ratio().achieves(epsilon)),
                    "{k} {epsilon}"
                );
            }
        }
    }

    #[test]
    fn the_extremes_are_possible_or_say_what_is() {
        for (k, epsilon) in [(2, MIN_EPSILON), (2, MAX_EPSILON), (1 << 24, 0.1), (1 << 24, MAX_EPSILON)] {
            let mixture = Mixture::new(k, epsilon).unwrap();
            assert!(mixture.likelihood_ratio().achieves(epsilon) && mixture.support().one <= 1 << 62);
        }
        let refused = Mixture::new(1 << 24, MIN_EPSILON).unwrap_err().to_string();
        assert!(refused.starts_with("k and epsilon must be such that") && refused.contains("unary encoding"));
        assert!(refused.ends_with("got k = 16777216, epsilon = 9.5367431640625e-7"), "{refused}");
        for bad in [0.0, f64::NAN, MIN_EPSILON.next_down(), MAX_EPSILON.next_up()] {
            let refused = Mixture::new(3, bad).unwrap_err().to_string();
            assert_eq!(refused, format!("epsilon must be between 2**-20 and 32, got {bad:?}"));
        }
    }
}
