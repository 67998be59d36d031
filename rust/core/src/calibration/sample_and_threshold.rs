//! The delta of sample and threshold, proved from above. docs/proofs/sample_and_threshold.md has the theorem.

use core::cmp::Ordering;

use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::power_of_two;

use super::root::fits;
use super::{Goal, certain_delta, check_local_epsilon, power};
use crate::error::Error;
use crate::params::Relation;

/// The least sample rate.
const LEAST_RATE: f64 = power_of_two(-40);

/// The largest threshold: the time of a delta is proportional to the threshold.
const MOST_THRESHOLD: u64 = 1 << 16;

/// A sample rate that is found is smaller than the largest one by at most this, relatively.
const TOLERANCE: f64 = power_of_two(-40);

/// Every person takes part with the probability `sample_rate`, independently; the values that at least `threshold` of those
/// who take part have are released, with their counts, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleAndThreshold {
    sample_rate: f64,
    threshold: u64,
    relation: Relation,
}

impl SampleAndThreshold {
    /// These parameters.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-40 <= `sample_rate` < 1 and 1 <= `threshold` <= 2^16.
    pub fn new(sample_rate: f64, threshold: u64, relation: Relation) -> Result<Self, Error> {
        if !(LEAST_RATE..1.0).contains(&sample_rate) {
            return Err(Error::parameter("sample_rate", format!("{sample_rate:?}"), "at least 2**-40 and below 1"));
        }
        if !(1..=MOST_THRESHOLD).contains(&threshold) {
            return Err(Error::parameter("threshold", threshold, format!("an integer from 1 to {MOST_THRESHOLD}")));
        }
        Ok(Self { sample_rate, threshold, relation })
    }

    /// The largest sample rate, less a share of at most 2^-40, for this epsilon and delta. Delta grows with the rate.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < epsilon <= 32 and 0 < delta < 1, for a threshold out of range, and if no rate is
    /// small enough.
    pub fn for_threshold(epsilon: f64, delta: f64, threshold: u64, relation: Relation) -> Result<Self, Error> {
        let goal = goal(epsilon, delta)?;
        let mut found = Self::new(LEAST_RATE, threshold, relation)?;
        if !found.achieves(goal) {
            let allowed = format!("such that a sample_rate of at least 2**-40 suffices (threshold is {threshold})");
            return Err(Error::parameter("delta", format!("{delta:?}"), allowed));
        }
        let mut high = 1.0;
        while high / found.sample_rate > 1.0 + TOLERANCE {
            let middle = Self { sample_rate: (found.sample_rate * high).sqrt(), ..found };
            if middle.achieves(goal) {
                found = middle;
            } else {
                high = middle.sample_rate;
            }
        }
        Ok(found)
    }

    /// The least threshold for this epsilon and delta. Delta falls as the threshold grows.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < epsilon <= 32 and 0 < delta < 1, for a sample rate out of range, and if no
    /// threshold is large enough.
    pub fn for_rate(epsilon: f64, delta: f64, sample_rate: f64, relation: Relation) -> Result<Self, Error> {
        let goal = goal(epsilon, delta)?;
        let mut found = Self::new(sample_rate, 1, relation)?;
        let mut too_small = 0;
        while !found.achieves(goal) {
            too_small = found.threshold;
            found.threshold *= 2;
            if found.threshold > MOST_THRESHOLD {
                let allowed = format!(
                    "such that a threshold of at most {MOST_THRESHOLD} suffices (epsilon is {epsilon:?}, delta is {delta:?})"
                );
                return Err(Error::parameter("sample_rate", format!("{sample_rate:?}"), allowed));
            }
        }
        while found.threshold - too_small > 1 {
            let middle = Self { threshold: too_small.midpoint(found.threshold), ..found };
            if middle.achieves(goal) {
                found = middle;
            } else {
                too_small = middle.threshold;
            }
        }
        Ok(found)
    }

    /// The probability that a person takes part.
    #[must_use]
    pub fn sample_rate(&self) -> f64 {
        self.sample_rate
    }

    /// The smallest count that is released.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// A delta, proved, for which a release is (epsilon, delta)-differentially private.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < epsilon <= 32; with the relation substitute, unless it is at least
    /// ln(1/(1 - `sample_rate`)).
    pub fn delta(&self, epsilon: f64) -> Result<f64, Error> {
        check_local_epsilon(epsilon)?;
        let delta = certain_delta(epsilon, |epsilon| self.curve(epsilon));
        if delta == 1.0 && self.relation == Relation::Substitute {
            let allowed = format!("at least ln(1 / (1 - sample_rate)) = {:.6}", -(-self.sample_rate).ln_1p());
            return Err(Error::parameter("epsilon", format!("{epsilon:?}"), allowed));
        }
        Ok(delta)
    }

    fn achieves(&self, goal: Goal) -> bool {
        fits(goal.delta, goal.epsilon, |epsilon| self.curve(epsilon))
    }

    /// The delta, exactly for the relation add/remove; 1 where nothing is claimed.
    fn curve(&self, epsilon: &Ball) -> Ball {
        let one = Ball::integer(1, epsilon.precision());
        let rate = Ball::from_f64(self.sample_rate, epsilon.precision());
        let waiting = Waiting { failure: &one - &rate, rate, success: self.threshold, one };
        let grown = epsilon.exp();
        let kept = &grown * &waiting.failure;
        let share = &waiting.one - &kept;
        match self.relation {
            Relation::Substitute if share.is_negative() => waiting.added(&kept),
            Relation::Substitute if share.is_positive() => waiting.one,
            Relation::Substitute => Ball::hull(&waiting.whole(0), &waiting.one), // the precision does not determine it
            Relation::AddRemove => {
                let added = waiting.added(&grown);
                if share.is_negative() {
                    return added;
                }
                let removed = waiting.removed(&share);
                match added.compare(&removed) {
                    Some(Ordering::Greater) => added,
                    Some(_) => removed,
                    None => Ball::hull(&added, &removed),
                }
            }
        }
    }
}

fn goal(epsilon: f64, delta: f64) -> Result<Goal, Error> {
    check_local_epsilon(epsilon)?;
    Goal::new(epsilon, delta)
}

/// The trial of a success, counted from 1, of independent trials: its law is negative binomial.
struct Waiting {
    rate: Ball,
    failure: Ball,
    /// Which success.
    success: u64,
    one: Ball,
}

impl Waiting {
    /// The delta of one person more: the largest P(j) - (E - 1) P(fewer than j trials).
    fn added(&self, grown: &Ball) -> Ball {
        let share = &self.one - &self.failure.divided_by(grown);
        self.at_best(&share, grown, |j| {
            let first = self.whole(j - self.success).over(self.success).divided_by(&self.failure);
            let odds = self.rate.divided_by(&self.failure);
            self.sum(first, &odds, (self.success..j).map(|x| (j - 1 - x, x + 1)))
        })
    }

    /// The delta of one person less: the largest P(j) - (E - 1) P(more than j trials), with E = (1 - share)/failure.
    fn removed(&self, share: &Ball) -> Ball {
        // A larger share is a smaller epsilon, and j stays in range.
        let least = self.one.scaled(-40);
        let share = if (share - &least).is_positive() { share } else { &least };
        let grown = (&self.one - share).divided_by(&self.failure);
        self.at_best(share, &grown, |j| {
            let odds = self.failure.divided_by(&self.rate);
            let first = (&self.whole(j) * &odds).over(j - self.success + 1);
            self.sum(first, &odds, (1..self.success).rev().map(|x| (x, j - x + 1)))
        })
    }

    /// P(j) (1 - (E - 1) `tail(j)`) at j = ceil((success - 1)/share), but not less than success, where it is largest.
    fn at_best(&self, share: &Ball, grown: &Ball, tail: impl Fn(u64) -> Ball) -> Ball {
        let ceilings = -&self.whole(self.success - 1).divided_by(share);
        let Some((last, first)) = ceilings.floors().filter(|(least, greatest)| greatest - least <= 1) else {
            return Ball::hull(&self.whole(0), &self.one); // the precision does not determine it
        };
        let value = |j: i64| {
            let j = self.success.max(j.unsigned_abs());
            &self.probability(j) * &(&self.one - &(&(grown - &self.one) * &tail(j)))
        };
        // Both are nearly the same when both are possible.
        if first == last { value(first) } else { Ball::hull(&value(first), &value(last)) }
    }

    /// The probability of trial j.
    fn probability(&self, j: u64) -> Ball {
        let mut ways = self.one.clone();
        for i in 1..self.success {
            ways = ways.times(j - self.success + i).over(i);
        }
        &(&ways * &power(&self.rate, self.success)) * &power(&self.failure, j - self.success)
    }

    /// The sum of terms, each of which is the one before times a fraction and `odds`. The factors fall, to
    /// 1 - 1/(2 success) or less before a term is negligible.
    fn sum(&self, first: Ball, odds: &Ball, fractions: impl Iterator<Item = (u64, u64)>) -> Ball {
        let (mut term, mut total) = (first.clone(), first);
        for (numerator, denominator) in fractions {
            term = (&term * odds).times(numerator).over(denominator);
            total = &total + &term;
            if term.is_negligible(self.one.precision()) {
                return total.widened(&term.times(2 * self.success));
            }
        }
        total
    }

    fn whole(&self, value: u64) -> Ball {
        Ball::integer(value, self.one.precision())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sample_rate: f64, threshold: u64) -> SampleAndThreshold {
        SampleAndThreshold::new(sample_rate, threshold, Relation::AddRemove).unwrap()
    }

    /// The delta of the protocol, which must be this one or the double above it.
    fn assert_delta(protocol: SampleAndThreshold, epsilon: f64, expected: f64) {
        let found = protocol.delta(epsilon).unwrap();
        assert!((expected..=expected.next_up()).contains(&found), "{protocol:?} {epsilon} {found} {expected}");
    }

    #[test]
    fn without_a_threshold_delta_is_the_sample_rate() {
        for rate in [LEAST_RATE, 0.1, 0.5, 1f64.next_down()] {
            for epsilon in [1e-300, 0.01, 1.0, 32.0] {
                assert_delta(of(rate, 1), epsilon, rate);
            }
        }
    }

    /// With so large an epsilon the worst case is that all of `threshold` people take part.
    #[test]
    fn for_a_large_epsilon_delta_is_a_power_of_the_rate() {
        assert_delta(of(0.25, 5), 32.0, 0.25f64.powi(5));
    }

    /// Delta in each direction, as the largest of its definition over all trials, of which the last are negligible.
    #[test]
    fn each_direction_has_the_delta_of_the_enumeration() {
        for (rate, success, epsilon) in [(0.25, 3, 0.1f64), (0.5, 5, 0.3), (0.0625, 2, 0.05), (0.75, 9, 1.0)] {
            let mut law = vec![f64::powi(rate, success as i32)];
            for more in 1..2000 {
                law.push(law[more - 1] * (1.0 - rate) * (more as u64 + success - 1) as f64 / more as f64);
            }
            let largest = |other: &dyn Fn(usize) -> f64| {
                (0..1000).map(|j| law[j] - epsilon.exp_m1() * other(j)).fold(0.0, f64::max)
            };
            let [one, rate, epsilon] = [1.0, rate, epsilon].map(|value| Ball::from_f64(value, 256));
            let waiting = Waiting { failure: &one - &rate, rate, success, one };
            let grown = epsilon.exp();
            let removed = waiting.removed(&(&waiting.one - &(&grown * &waiting.failure)));
            for (found, expected) in [
                (waiting.added(&grown), largest(&|j| law[..j].iter().sum())),
                (removed, largest(&|j| law[j + 1..].iter().sum())),
            ] {
                assert!((found.upper_f64() / expected - 1.0).abs() < 1e-9, "{success} {found:?} {expected}");
            }
        }
    }

    #[test]
    fn found_parameters_achieve_the_goal_and_larger_rates_and_smaller_thresholds_do_not() {
        for relation in [Relation::AddRemove, Relation::Substitute] {
            let goal = Goal::new(1.0, 1e-8).unwrap();
            let found = SampleAndThreshold::for_threshold(1.0, 1e-8, 20, relation).unwrap();
            assert!(found.achieves(goal) && found.delta(1.0).unwrap() <= 1e-8);
            let larger = SampleAndThreshold { sample_rate: found.sample_rate * (1.0 + 2.0 * TOLERANCE), ..found };
            assert!(!larger.achieves(goal));
            let again = SampleAndThreshold::for_rate(1.0, 1e-8, found.sample_rate, relation).unwrap();
            assert_eq!(again, found);
            assert!(!SampleAndThreshold { threshold: 19, ..found }.achieves(goal));
        }
    }

    /// The rate's bound is then ln(1/(1 - rate)) = epsilon, which the first precision does not tell from a smaller one.
    #[test]
    fn a_rate_that_is_found_is_not_above_its_bound() {
        for epsilon in [2.358_986_698_508_953e-9, 2.358_991_871_533_640_6e-9, 1e-3, 0.7] {
            let found = SampleAndThreshold::for_threshold(epsilon, 0.1, 1, Relation::Substitute).unwrap();
            assert!(found.delta(epsilon).is_ok_and(|delta| delta <= 0.1), "{epsilon}");
        }
    }

    #[test]
    fn extreme_parameters_have_a_delta() {
        for (rate, threshold, epsilon) in [
            (LEAST_RATE, MOST_THRESHOLD, 32.0),
            (LEAST_RATE, 3, 1e-300),
            (1f64.next_down(), 300, 1e-9),
            (0.5, 300, core::f64::consts::LN_2.next_down()),
        ] {
            let delta = of(rate, threshold).delta(epsilon).unwrap();
            assert!(0.0 < delta && delta < 1.0, "{rate} {threshold} {epsilon} {delta}");
        }
    }

    #[test]
    fn impossible_parameters_name_what_would_work() {
        let message = |result: Result<SampleAndThreshold, Error>| result.unwrap_err().to_string();
        let relation = Relation::AddRemove;
        for bad in [0.0, LEAST_RATE.next_down(), 1.0, f64::NAN] {
            let found = message(SampleAndThreshold::new(bad, 1, relation));
            assert_eq!(found, format!("sample_rate must be at least 2**-40 and below 1, got {bad:?}"));
        }
        assert!(message(SampleAndThreshold::new(0.5, 0, relation)).contains("from 1 to 65536, got 0"));
        assert!(message(SampleAndThreshold::for_threshold(33.0, 0.1, 1, relation)).contains("at most 32, got 33.0"));
        assert!(message(SampleAndThreshold::for_threshold(1.0, 1e-20, 1, relation)).contains("2**-40 suffices"));
        assert!(message(SampleAndThreshold::for_rate(1e-9, 1e-9, 0.5, relation)).contains("at most 65536 suffices"));
        let substitute = SampleAndThreshold::new(0.5, 9, Relation::Substitute).unwrap();
        assert!(substitute.delta(0.69).unwrap_err().to_string().contains("ln(1 / (1 - sample_rate)) = 0.693147"));
    }
}
