//! Counts of the values that occur, where the set of these values is private too (Korolova, Kenthapadi, Mishra and Ntoulas
//! 2009, "Releasing search queries and clicks privately"; Bun, Nissim and Stemmer 2016, "Simultaneous private learning of
//! multiple concepts", section 3). docs/proofs/queries.md has the theorem.

use std::collections::BTreeMap;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::memory::room;
use rand_core::TryCryptoRng;

use super::DiscreteLaplace;
use crate::calibration::{persons_threshold, tail_threshold};
use crate::error::Error;
use crate::params::{Delta, Epsilon, Relation};
use crate::rng::{Wiped, wiped_on_error};
use crate::threads::{Pause, go_on};

/// Adds discrete Laplace noise to the count of each value that occurs, and releases the counts that reach a threshold.
///
/// The release is (epsilon, delta)-differentially private for neighbours that differ by one row: the noisy count of a value that a
/// single row has reaches the threshold with a probability of at most delta.
///
/// ```
/// use dpnoise_core::mechanisms::StabilityHistogram;
/// use dpnoise_core::params::Relation;
/// let histogram = StabilityHistogram::new(1.0, 1e-9, Relation::AddRemove)?;
/// assert_eq!(histogram.threshold(), 22);
/// let drinks = [["tea"; 400].as_slice(), &["coffee"; 300], &["xyzzy"]].concat();
/// let released = histogram.release_rows_vartime(drinks, 1)?;
/// assert!(released.contains_key("tea") && released["coffee"] >= 22);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StabilityHistogram {
    noise: DiscreteLaplace,
    delta: Delta,
    threshold: i64,
}

impl StabilityHistogram {
    /// The histogram that spends `epsilon` and `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that [`DiscreteLaplace`] does not take with the sensitivity of the relation, or a
    /// delta that is not between 0 and 1.
    pub fn new(epsilon: f64, delta: f64, relation: Relation) -> Result<Self, Error> {
        let sensitivity = match relation {
            Relation::AddRemove => 1,
            Relation::Substitute => 2, // a row may leave one value for another
        };
        let (noise, delta) = (DiscreteLaplace::new(epsilon, sensitivity)?, Delta::new(delta)?);
        // P(1 + noise >= threshold) = P(noise > threshold - 2)
        let threshold = tail_threshold(Epsilon::new(epsilon)?, sensitivity, delta, -1) + 2;
        Ok(Self { noise, delta, threshold })
    }

    /// The histogram that spends `epsilon` and `delta` where neighbours differ by a person with up to `rows` rows, which is added
    /// or removed. For one row it is that of [`Relation::AddRemove`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for 0 rows, for an epsilon that [`DiscreteLaplace`] does not take with this sensitivity, or a delta
    /// that is not between 0 and 1.
    pub fn of_persons(epsilon: f64, delta: f64, rows: u64) -> Result<Self, Error> {
        if rows == 0 {
            return Err(Error::parameter("rows", rows, "a positive integer"));
        }
        let (noise, delta) = (DiscreteLaplace::new(epsilon, rows)?, Delta::new(delta)?);
        Ok(Self { noise, delta, threshold: persons_threshold(Epsilon::new(epsilon)?, rows, delta) })
    }

    /// The mechanism of the counts, which has epsilon, the scale of the noise and its error.
    #[must_use]
    pub fn noise(&self) -> &DiscreteLaplace {
        &self.noise
    }

    /// Delta.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta.get()
    }

    /// The smallest noisy count that is released: the least that the noisy counts of values that nobody else has reach with a
    /// probability of at most delta.
    #[must_use]
    pub fn threshold(&self) -> i64 {
        self.threshold
    }

    /// Releases the values of `rows` that are frequent enough with their noisy counts; noise is drawn on up to `threads`
    /// threads. Counting takes a time that depends on the values.
    ///
    /// A row is what one person contributes.
    ///
    /// # Errors
    /// As for [`StabilityHistogram::release`].
    pub fn release_rows_vartime<K: Ord>(
        &self,
        rows: impl IntoIterator<Item = K>,
        threads: usize,
    ) -> Result<BTreeMap<K, i64>, Error> {
        let mut found = BTreeMap::<K, i64>::new();
        for row in rows {
            let count = found.entry(row).or_default();
            *count = count.saturating_add(1);
        }
        let mut counts = Wiped::try_new(found.len())?;
        for (noisy, count) in counts.iter_mut().zip(found.values()) {
            *noisy = *count;
        }
        let places = self.release(&mut counts, threads)?;
        let mut released = places.into_iter().peekable();
        let of = |(place, (value, _))| released.next_if_eq(&place).map(|_| (value, counts[place]));
        Ok(found.into_iter().enumerate().filter_map(of).collect())
    }

    /// Adds noise to `counts`, the numbers of rows of all values that occur, each in one place; on up to `threads` threads.
    /// Returns the places of the counts to release; the others become 0.
    ///
    /// Only the values in these places may be released, and in an order that does not depend on the other values: say, sorted.
    ///
    /// # Errors
    /// As for [`DiscreteLaplace::release`]; and [`Error::Allocation`], with all counts 0.
    pub fn release(&self, counts: &mut [i64], threads: usize) -> Result<Vec<usize>, Error> {
        self.release_pausing(counts, threads, &mut go_on)
    }

    /// The same, with calls of `pause` between pieces of work.
    ///
    /// # Errors
    /// As for [`StabilityHistogram::release`]; and the error of `pause`, with `counts` overwritten.
    pub fn release_pausing(
        &self,
        counts: &mut [i64],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<Vec<usize>, Error> {
        self.noise.release_pausing(counts, threads, pause)?;
        self.select(counts)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`StabilityHistogram::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(&self, counts: &mut [i64], rng: &mut R) -> Result<Vec<usize>, Error> {
        self.noise.release_with(counts, rng)?;
        self.select(counts)
    }

    fn select(&self, counts: &mut [i64]) -> Result<Vec<usize>, Error> {
        let is_released = |count: i64| declassify(Reason::Answer, count >= self.threshold);
        wiped_on_error(counts, |counts| {
            let mut places = room(counts.iter().filter(|&&count| is_released(count)).count())?;
            for (place, count) in counts.iter_mut().enumerate() {
                if is_released(*count) {
                    places.push(place);
                } else {
                    *count = 0;
                }
            }
            Ok(places)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Guarantee;
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    #[test]
    fn bad_parameters_are_named() {
        for (epsilon, delta, expected) in [
            (0.0, 0.1, "epsilon must be positive and finite, got 0.0"),
            (1.0, 0.0, "delta must be between 0 and 1, both excluded, got 0.0"),
            (1.0, 1.0, "delta must be between 0 and 1, both excluded, got 1.0"),
        ] {
            assert_eq!(StabilityHistogram::new(epsilon, delta, Relation::AddRemove).unwrap_err().to_string(), expected);
        }
    }

    /// r^(T - 1) / (1 + r) with r = exp(-epsilon / sensitivity): 0.731, 0.269, 0.0989, 0.0364 for epsilon 1, and for half of it 0.622,
    /// 0.378, 0.229, 0.139.
    #[test]
    fn the_threshold_is_the_least_that_one_row_reaches_with_at_most_delta() {
        for (delta, add_remove, substitute) in [(0.74, 1, 1), (0.73, 2, 1), (0.63, 2, 1), (0.26, 3, 3), (0.0365, 4, 7)]
        {
            for (relation, expected) in [(Relation::AddRemove, add_remove), (Relation::Substitute, substitute)] {
                let histogram = StabilityHistogram::new(1.0, delta, relation).unwrap();
                assert_eq!(histogram.threshold(), expected, "{delta} {relation:?}");
            }
        }
    }

    #[test]
    fn one_row_of_a_person_is_a_row() {
        for delta in [0.74, 0.26, 1e-9] {
            let of_rows = StabilityHistogram::new(1.0, delta, Relation::AddRemove).unwrap();
            let of_persons = StabilityHistogram::of_persons(1.0, delta, 1).unwrap();
            assert_eq!(of_persons.threshold(), of_rows.threshold());
            assert_eq!(of_persons.noise().sensitivity(), 1);
        }
        let of_persons = StabilityHistogram::of_persons(8.0, 1e-9, 5).unwrap();
        assert_eq!((of_persons.threshold(), of_persons.delta()), (18, 1e-9));
        let Guarantee { epsilon, .. } = of_persons.noise().guarantee();
        assert_eq!((epsilon, of_persons.noise().scale()), (Some(8.0), 0.625));
        let refused = |epsilon, rows| StabilityHistogram::of_persons(epsilon, 0.1, rows).unwrap_err().to_string();
        assert_eq!(refused(1.0, 0), "rows must be a positive integer, got 0");
        assert!(refused(1e-12, 5).starts_with("epsilon must be such that"));
    }

    #[test]
    fn counts_that_reach_the_threshold_with_their_noise_are_released() {
        let histogram = StabilityHistogram::new(0.5, 0.01, Relation::AddRemove).unwrap();
        let given = [0, 1, 8, 9, 10, i64::MAX, 11, 1];
        for seed in 0..100 {
            let mut noisy = given;
            histogram.noise().release_with(&mut noisy, &mut SeededRng::new(seed).unwrap()).unwrap();
            let mut counts = given;
            let places = histogram.release_with(&mut counts, &mut SeededRng::new(seed).unwrap()).unwrap();
            let reached: Vec<usize> = (0..8).filter(|&place| noisy[place] >= histogram.threshold()).collect();
            assert_eq!(places, reached);
            for place in 0..8 {
                assert_eq!(counts[place], if reached.contains(&place) { noisy[place] } else { 0 });
            }
        }
        let mut counts = given;
        assert!(histogram.release_with(&mut counts, &mut ScriptedRng::new([])).is_err());
        assert_eq!(counts, [0; 8], "no count is left behind when the randomness fails");
    }

    #[test]
    fn rows_are_counted_by_value() {
        // Noise that is not 0 has a probability below 2^-1000.
        let histogram = StabilityHistogram::new(1000.0, 0.5, Relation::AddRemove).unwrap();
        let rows = [3, 1, 3, 2, 3, 2].map(|value: i32| value.to_string());
        let released = histogram.release_rows_vartime(rows, 1).unwrap();
        assert_eq!(Vec::from_iter(released), [("2".to_string(), 2), ("3".to_string(), 3)]);
        assert!(histogram.release_rows_vartime([0; 0], 1).unwrap().is_empty());
        assert!(histogram.release_rows_vartime([0; 9], 0).is_err());
    }
}
