//! Unbiased counts from the collector's counters, and their standard errors: one law for all protocols.
//!
//! A report *supports* a value when it is counted for it: because a bit is set, or because it is the value. Let C of n
//! reports support a value, and let a report do so with probability p if its sender has the value and q otherwise. Then
//! c = (C - n q) / (p - q) is an unbiased estimate of the number of people who have the value. The variance over n of
//! the estimate for a value of frequency f is q(1-q)/(p-q)^2 + f(1-p-q)/(p-q) (Wang, Blocki, Li, Jha 2017, equations 2
//! and 3). Estimates are not clipped: that of a rare value may be negative, and clipping it would bias every sum over
//! values.
//!
//! Nothing here is private: it is computed from reports that their senders randomised.

use dpnoise_kernels::memory::collected;

use crate::error::Error;

/// The probabilities p / one and q / one with which a report supports its sender's value and any other, where
/// 0 <= q < p <= one <= 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// The numerator for the sender's value.
    pub p: u64,
    /// The numerator for any other value.
    pub q: u64,
    /// The common denominator.
    pub one: u64,
}

impl Support {
    /// `numerator` / one as a double, the nearest one when `one` is a power of two.
    #[must_use]
    pub fn probability(self, numerator: u64) -> f64 {
        numerator as f64 / self.one as f64
    }

    /// The numerator is exact (below 2^126), so the result has the error of one division.
    pub(crate) fn count(self, n: u64, counter: u64) -> f64 {
        let numerator = i128::from(counter) * i128::from(self.one) - i128::from(n) * i128::from(self.q);
        numerator as f64 / (self.p - self.q) as f64
    }

    pub(crate) fn variance(self, frequency: f64) -> f64 {
        let Self { p, q, one } = self;
        // Differences are taken between integers, where nothing cancels.
        let difference = self.probability(p - q);
        let asymmetry = (i128::from(one) - i128::from(p) - i128::from(q)) as f64 / one as f64;
        let (q, not_q) = (self.probability(q), self.probability(one - q));
        q * not_q / (difference * difference) + frequency * asymmetry / difference
    }
}

/// How counts follow from counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// A counter is the number of reports that support a value.
    Supports(Support),
    /// A counter is a sum over reports of `offset`, noise of the given variance, and `unit` if the sender has the
    /// value.
    Sums {
        /// What a report adds for its sender's value.
        unit: u32,
        /// What every report adds.
        offset: u32,
        /// The variance of the noise, divided by the square of the unit.
        variance: f64,
    },
}

impl Law {
    /// The probabilities with which a report supports values, if that is what counters count.
    #[must_use]
    pub fn support(self) -> Option<Support> {
        match self {
            Self::Supports(support) => Some(support),
            Self::Sums { .. } => None,
        }
    }

    /// The variance of the estimated count of a value of frequency `frequency` among `n` reports.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the frequency is not in [0, 1].
    pub fn variance(self, n: u64, frequency: f64) -> Result<f64, Error> {
        if (0.0..=1.0).contains(&frequency) {
            Ok(n as f64 * self.variance_of_one(frequency))
        } else {
            Err(Error::parameter("frequency", format!("{frequency:?}"), "between 0 and 1"))
        }
    }

    /// The estimate for every value from the `counters` of `n` reports; zeros for no reports.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn estimate(self, n: u64, counters: &[u64]) -> Result<Estimate, Error> {
        let counts = counters.iter().map(|&counter| self.count(n, counter));
        let standard_error = |&count: &f64| {
            let frequency = if n == 0 { 0.0 } else { (count / n as f64).clamp(0.0, 1.0) };
            (n as f64 * self.variance_of_one(frequency)).sqrt()
        };
        Estimate::new(n, counts, standard_error)
    }

    fn count(self, n: u64, counter: u64) -> f64 {
        match self {
            Self::Supports(support) => support.count(n, counter),
            Self::Sums { unit, offset, .. } => {
                (i128::from(counter) - i128::from(n) * i128::from(offset)) as f64 / f64::from(unit)
            }
        }
    }

    fn variance_of_one(self, frequency: f64) -> f64 {
        match self {
            Self::Supports(support) => support.variance(frequency),
            Self::Sums { variance, .. } => variance,
        }
    }
}

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

impl Estimate {
    /// The `counts`, each with its standard error.
    pub(crate) fn new(
        n: u64,
        counts: impl ExactSizeIterator<Item = f64>,
        standard_error: impl Fn(&f64) -> f64,
    ) -> Result<Self, Error> {
        let counts = collected(counts)?;
        Ok(Self { standard_errors: collected(counts.iter().map(standard_error))?, counts, n })
    }

    /// The estimate for all `people`, of whom the senders are a random sample.
    ///
    /// A sample without replacement adds the variance of the hypergeometric distribution, as the proof page "Several
    /// attributes" derives: n f (1 - f) (people - n) / (people - 1) for a share f. Of no senders it stays zero.
    #[must_use]
    pub fn of_all_people(mut self, people: u64) -> Self {
        if people == self.n {
            return self;
        }
        let (senders, others) = (self.n.max(1) as f64, people as f64 - self.n as f64);
        let scale = people as f64 / senders;
        for (count, error) in self.counts.iter_mut().zip(&mut self.standard_errors) {
            let share = (*count / senders).clamp(0.0, 1.0);
            let of_sampling = senders * share * (1.0 - share) * others / (people.max(2) - 1) as f64;
            *count *= scale;
            *error = scale * (*error * *error + of_sampling).sqrt();
        }
        Self { n: people, ..self }
    }
}

/// Frequent values, the most frequent first, of a domain that is too large to enumerate.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyHitters {
    /// The values.
    pub values: Vec<i64>,
    /// How many people have each, estimated from those who reported a whole value.
    pub estimate: Estimate,
    /// How many standard errors intervals extend that hold together for all values that were tested.
    pub quantile: f64,
    /// How many values were tested.
    pub tested: usize,
    /// Whether all significant prefixes were extended. If not, there were more of them than can be tried.
    pub complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_expectations_are_inverted_exactly() {
        let support = Support { p: 2, q: 1, one: 4 };
        // 100 people, 40 of them with the value: 40/2 + 60/4 = 35 set bits are expected.
        assert_eq!(Law::Supports(support).estimate(100, &[35, 25, 50]).unwrap().counts, [40.0, 0.0, 100.0]);
        let largest = Support { p: (1 << 62) - 1, q: 1, one: 1 << 62 };
        let counts = Law::Supports(largest).estimate(u64::MAX, &[u64::MAX, 0]).unwrap().counts;
        assert!((counts[0] / u64::MAX as f64 - 1.0).abs() < 1e-15 && counts[1] < 0.0);
    }

    #[test]
    fn variances_follow_the_closed_forms() {
        // A value that everybody has: p(1-p)/(p-q)^2.
        let support = Law::Supports(Support { p: 2, q: 1, one: 4 });
        assert_eq!(support.variance(3, 1.0), Ok(3.0 * 0.25 / 0.0625));
        assert_eq!(support.variance(3, 0.0), Ok(3.0 * 0.1875 / 0.0625));
        assert!(
            support.variance(3, 1.5).unwrap_err().to_string().contains("frequency must be between 0 and 1, got 1.5")
        );
    }

    #[test]
    fn counts_of_a_sample_are_extrapolated_with_its_error() {
        let estimate = Estimate { counts: vec![4.0, -2.0, 12.0], standard_errors: vec![3.0; 3], n: 10 };
        let all = estimate.clone().of_all_people(30);
        assert_eq!((all.n, all.counts), (30, vec![12.0, -6.0, 36.0]));
        // Hypergeometric: n f (1 - f) (N - n) / (N - 1), beside a variance of 9 per sample.
        let expected = 3.0 * (9.0 + 10.0 * 0.4 * 0.6 * 20.0 / 29.0_f64).sqrt();
        assert!((all.standard_errors[0] - expected).abs() < 1e-14 * expected);
        assert_eq!(all.standard_errors[1..], [9.0; 2]);
        assert_eq!(estimate.clone().of_all_people(10), estimate);
    }

    #[test]
    fn no_reports_give_zeros() {
        let nothing = Law::Supports(Support { p: 2, q: 1, one: 4 }).estimate(0, &[0, 0]).unwrap();
        let nobody = nothing.clone().of_all_people(5);
        assert_eq!((nothing.counts, nothing.standard_errors), (vec![0.0; 2], vec![0.0; 2]));
        assert_eq!((nobody.counts, nobody.standard_errors), (vec![0.0; 2], vec![0.0; 2]));
    }
}
