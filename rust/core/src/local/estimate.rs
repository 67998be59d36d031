//! Unbiased counts from bit counts, and their standard errors.
//!
//! If a bit was set in C of n reports, the number of people whose value it stands for is estimated, without bias, by
//! c = (C - n q) / (p - q). The variance over n of the estimate for a value of frequency f is
//! q(1-q)/(p-q)^2 + f(1-p-q)/(p-q) (Wang, Blocki, Li, Jha 2017, equations 2 and 3). Estimates are not clipped: a rare
//! value's may be negative, and clipping it would bias every sum over values.
//!
//! Nothing here is private: it is computed from reports that their senders randomised.

use super::bit_flip::BitFlip;
use crate::error::Error;

/// Estimated counts of all values.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The unbiased estimate of how many people have each value.
    pub counts: Vec<f64>,
    /// The standard error of each count, at its estimated frequency.
    pub standard_errors: Vec<f64>,
    /// The number of reports counted.
    pub n: u64,
}

/// The estimate for every bit, of which `set` tells in how many of `n` reports it was set; zeros for no reports.
pub(super) fn from_bit_counts(flip: BitFlip, n: u64, set: &[u64]) -> Estimate {
    let counts: Vec<f64> = set.iter().map(|&set| count(flip, n, set)).collect();
    let standard_error = |&count: &f64| {
        let frequency = if n == 0 { 0.0 } else { (count / n as f64).clamp(0.0, 1.0) };
        (n as f64 * variance_of_one(flip, frequency)).sqrt()
    };
    Estimate { standard_errors: counts.iter().map(standard_error).collect(), counts, n }
}

/// The numerator is exact (below 2^126), so the result has the error of one division.
fn count(flip: BitFlip, n: u64, set: u64) -> f64 {
    let numerator = (i128::from(set) << flip.planes()) - i128::from(n) * i128::from(flip.q());
    numerator as f64 / (flip.p() - flip.q()) as f64
}

/// The variance of the estimated count of a value of frequency `frequency` among `n` reports.
///
/// # Errors
/// [`Error::Parameter`] when the frequency is not in [0, 1].
pub(super) fn variance(flip: BitFlip, n: u64, frequency: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&frequency) {
        Ok(n as f64 * variance_of_one(flip, frequency))
    } else {
        Err(Error::parameter("frequency", format!("{frequency:?}"), "between 0 and 1"))
    }
}

fn variance_of_one(flip: BitFlip, frequency: f64) -> f64 {
    let one = 1u64 << flip.planes();
    // Differences are taken between integers, where nothing cancels.
    let difference = flip.probability(flip.p() - flip.q());
    let asymmetry = (i128::from(one) - i128::from(flip.p()) - i128::from(flip.q())) as f64 / one as f64;
    let (q, not_q) = (flip.probability(flip.q()), flip.probability(one - flip.q()));
    q * not_q / (difference * difference) + frequency * asymmetry / difference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_expectations_are_inverted_exactly() {
        let flip = BitFlip::new(2, 2, 1).unwrap();
        // 100 people, 40 of them with the value: 40/2 + 60/4 = 35 set bits are expected.
        assert_eq!(from_bit_counts(flip, 100, &[35, 25, 50]).counts, [40.0, 0.0, 100.0]);
        let largest = BitFlip::new(62, (1 << 62) - 1, 1).unwrap();
        let counts = from_bit_counts(largest, u64::MAX, &[u64::MAX, 0]).counts;
        assert!((counts[0] / u64::MAX as f64 - 1.0).abs() < 1e-15 && counts[1] < 0.0);
    }

    #[test]
    fn variances_follow_the_closed_forms() {
        let e = 1f64.exp();
        let optimized = variance(BitFlip::optimized(1.0).unwrap(), 1, 0.0).unwrap();
        assert!((optimized * (e - 1.0).powi(2) / (4.0 * e) - 1.0).abs() < 0.01);
        // A value that everybody has: p(1-p)/(p-q)^2.
        let flip = BitFlip::new(2, 2, 1).unwrap();
        assert_eq!(variance(flip, 3, 1.0), Ok(3.0 * 0.25 / 0.0625));
        assert_eq!(variance(flip, 3, 0.0), Ok(3.0 * 0.1875 / 0.0625));
        assert!(variance(flip, 3, 1.5).unwrap_err().to_string().contains("frequency must be between 0 and 1, got 1.5"));
    }

    #[test]
    fn no_reports_give_zeros() {
        let nothing = from_bit_counts(BitFlip::optimized(1.0).unwrap(), 0, &[0, 0]);
        assert_eq!((nothing.counts, nothing.standard_errors), (vec![0.0; 2], vec![0.0; 2]));
    }
}
