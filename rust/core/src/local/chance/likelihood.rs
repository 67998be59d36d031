//! Likelihood ratios as exact fractions, and the fewest binary digits that achieve an epsilon.
//!
//! A report is epsilon-locally differentially private when no two inputs make it more than e^epsilon times as likely.
//! Here the largest ratio is a fraction of integers and is compared exactly with e^epsilon, so no logarithm is rounded
//! in the wrong direction.

use core::ops::RangeInclusive;

use dpnoise_kernels::arith::log::{ln_at_most_vartime, ln_upper_vartime};

use crate::error::Error;

/// The smallest epsilon of a local protocol: 2^-20.
pub const MIN_EPSILON: f64 = 1.0 / (1 << 20) as f64;

/// The largest epsilon of a local protocol.
pub const MAX_EPSILON: f64 = 32.0;

/// The most binary digits of the probabilities.
pub(crate) const MAX_PLANES: u32 = 62;

/// The fraction of the requested epsilon that must be achieved.
const ACHIEVED_PART: f64 = 0.999;

/// The largest ratio between the probabilities of one report under two inputs; at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikelihoodRatio {
    /// The larger probability over a common denominator, below 2^124.
    pub numerator: u128,
    /// The smaller probability, not zero.
    pub denominator: u128,
}

impl From<LikelihoodRatio> for (u128, u128) {
    fn from(ratio: LikelihoodRatio) -> Self {
        (ratio.numerator, ratio.denominator)
    }
}

impl LikelihoodRatio {
    /// The epsilon that is achieved: the smallest double that is at least the logarithm of the ratio.
    #[must_use]
    pub fn epsilon(self) -> f64 {
        ln_upper_vartime(self.numerator, self.denominator)
    }

    /// Whether the ratio is at most e^epsilon, decided exactly.
    #[must_use]
    pub fn is_at_most(self, epsilon: f64) -> bool {
        ln_at_most_vartime(self.numerator, self.denominator, epsilon)
    }

    /// Whether at most `epsilon` and at least 0.999 of it is achieved, decided exactly.
    #[must_use]
    pub fn achieves(self, epsilon: f64) -> bool {
        // Where the approximation shows that far less is achieved, no exact test is needed. The logarithm of a fraction
        // other than 1 is irrational: "not at most" is the same as "at least".
        self.epsilon_near() >= 0.998 * epsilon && self.is_at_most(epsilon) && !self.is_at_most(ACHIEVED_PART * epsilon)
    }

    /// The logarithm within a relative error of 2^-50: the difference is exact.
    fn epsilon_near(self) -> f64 {
        ((self.numerator - self.denominator) as f64 / self.denominator as f64).ln_1p()
    }
}

/// The fewest planes of the range with which `epsilon` is achieved, and the smallest numerator that is private with them.
///
/// `ratio(planes, numerator)` must depend on numerator / 2^planes only, and fall when that grows: it exceeds e^epsilon
/// below some threshold t and not above. With one plane fewer than the range has, 1 must be the smallest numerator.
pub(crate) fn fewest_planes(
    epsilon: f64,
    mut range: RangeInclusive<u32>,
    ratio: impl Fn(u32, u64) -> LikelihoodRatio,
) -> Option<(u32, u64)> {
    // The smallest private numerator is ceil(2^planes t), so with each plane it is twice what it was, or one less.
    let mut numerator = 1;
    range.find_map(|planes| {
        numerator = 2 * numerator - 1;
        if !ratio(planes, numerator).is_at_most(epsilon) {
            numerator += 1;
        }
        ratio(planes, numerator).achieves(epsilon).then_some((planes, numerator))
    })
}

/// Checks the epsilon of all reports on one value and that of a single report.
///
/// # Errors
/// [`Error::Parameter`] unless both are in the range of the local protocols, and the second is below the first.
pub(crate) fn check_first(permanent: f64, first: f64) -> Result<(), Error> {
    if !(MIN_EPSILON..=MAX_EPSILON).contains(&permanent) {
        return Err(Error::parameter("epsilon_permanent", format!("{permanent:?}"), "between 2**-20 and 32"));
    }
    if !(MIN_EPSILON..permanent).contains(&first) {
        let allowed = format!("at least 2**-20 and below epsilon_permanent = {permanent:?}");
        return Err(Error::parameter("epsilon_first", format!("{first:?}"), allowed));
    }
    Ok(())
}

/// Checks that epsilon is in the range of the local protocols.
///
/// # Errors
/// [`Error::Parameter`] otherwise.
pub(crate) fn check_epsilon(epsilon: f64) -> Result<(), Error> {
    if (MIN_EPSILON..=MAX_EPSILON).contains(&epsilon) {
        Ok(())
    } else {
        Err(Error::parameter("epsilon", format!("{epsilon:?}"), "between 2**-20 and 32"))
    }
}
