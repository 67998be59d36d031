//! The distance of data to data with another mode.
//!
//! The proofs are in docs/proofs/stability.md.

use super::{Number, check_ends, check_number_of_values, distance_from_margin, gallop};
use crate::error::Error;
use crate::params::Relation;

/// The most frequent value, the smallest of those if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The first position of the mode among the values, or that of its count among the counts.
    pub place: usize,
    /// The distance to instability: one less than the fewest values that must change for the mode to change. It changes by
    /// at most 1 between neighbours, and is 0 where one of them has another mode.
    pub distance: u64,
}

/// Finds the mode of values in ascending order; `None` for empty data, which only [`Relation::AddRemove`] allows.
/// A value that never occurs has a count of 0, and one that is smaller than the mode always exists. The time depends on
/// the values, and is linear in their number at worst.
///
/// ```
/// use dpnoise_core::{params::Relation, stability::mode_vartime};
/// let mode = mode_vartime(&[1_i64, 1, 2, 2, 2, 2, 2, 7], Relation::AddRemove)?.unwrap();
/// assert_eq!((mode.place, mode.distance), (2, 2));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] for a NaN or an infinity; [`Error::Parameter`] for no values whose number is public.
pub fn mode_vartime<T: Number>(sorted: &[T], relation: Relation) -> Result<Option<Mode>, Error> {
    check_number_of_values(sorted.len(), relation)?;
    check_ends(sorted)?;
    debug_assert!(sorted.is_sorted(), "values must be in ascending order");
    let mut race = Race::default();
    let mut from = 0;
    while let Some(start) = longer_run(sorted, from, race.second()) {
        from = gallop(start + race.second() + 1, sorted.len(), |place| sorted[place] != sorted[start]);
        race.enter(start, from - start);
    }
    Ok(race.mode(relation))
}

/// The same for the counts of values that differ, in ascending order of the values.
///
/// # Errors
/// [`Error::Parameter`] for no values whose number is public.
pub fn mode_of_counts_vartime(counts: &[usize], relation: Relation) -> Result<Option<Mode>, Error> {
    check_number_of_values(counts.len(), relation)?;
    let mut race = Race::default();
    for (place, &count) in counts.iter().enumerate() {
        race.enter(place, count);
    }
    Ok(race.mode(relation))
}

/// The largest count so far, and its closest competitors.
#[derive(Default)]
struct Race {
    place: usize,
    count: usize,
    /// The largest count of the values below the mode, and of those above it.
    below: usize,
    above: usize,
}

impl Race {
    fn enter(&mut self, place: usize, count: usize) {
        if count > self.count {
            *self = Self { place, count, below: self.count, above: 0 };
        } else {
            self.above = self.above.max(count);
        }
    }

    /// A count of at most this cannot change the result.
    fn second(&self) -> usize {
        self.below.max(self.above)
    }

    fn mode(&self, relation: Relation) -> Option<Mode> {
        // A smaller value needs the count of the mode, a larger one needs one more.
        let margin = (self.count - self.below).min(self.count - self.above + 1);
        (self.count > 0).then(|| Mode { place: self.place, distance: distance_from_margin(margin as u64, relation) })
    }
}

/// Runs up to this length are searched at every position, longer ones at some positions.
const SHORT: usize = 16;

/// The number of positions that are compared without branches, so that the compiler vectorises the comparison.
const BLOCK: usize = 64;

/// The first position of the next run of more than `length` equal values, from the first position of a run on.
fn longer_run<T: Number>(sorted: &[T], from: usize, length: usize) -> Option<usize> {
    if length < SHORT {
        return first_equal(sorted, from, length);
    }
    // Two neighbouring probes are in the run.
    let step = length.div_ceil(2);
    let mut probe = from;
    while probe + step < sorted.len() {
        let value = sorted[probe];
        if value == sorted[probe + step] {
            let earliest = from.max((probe + 1).saturating_sub(step));
            let start = earliest + sorted[earliest..probe].partition_point(|&earlier| earlier != value);
            if sorted.get(start + length) == Some(&value) {
                return Some(start);
            }
        }
        probe += step;
    }
    None
}

/// The first position, from a given one on, whose value equals the value `apart` positions after it.
fn first_equal<T: Number>(sorted: &[T], from: usize, apart: usize) -> Option<usize> {
    let later = sorted.get(from + apart..)?;
    let earlier = &sorted[from..sorted.len() - apart];
    let differ = |(earlier, later): &(&[T], &[T])| {
        !earlier.iter().zip(*later).fold(false, |equal, (earlier, later)| equal | (earlier == later))
    };
    let blocks = earlier.chunks(BLOCK).zip(later.chunks(BLOCK));
    let skipped = earlier.len().min(BLOCK * blocks.take_while(differ).count());
    let mut pairs = earlier[skipped..].iter().zip(&later[skipped..]);
    pairs.position(|(earlier, later)| earlier == later).map(|place| from + skipped + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_gaps_between_counts() {
        for (values, place, substitute, add_remove) in [
            (&[5.0][..], 0, 0, 0),
            (&[5.0, 5.0], 0, 0, 1), // another smaller value, once
            (&[5.0, 5.0, 5.0], 0, 1, 2),
            (&[4.0, 5.0], 0, 0, 0),
            (&[4.0, 5.0, 5.0], 1, 0, 0),
            (&[5.0, 5.0, 6.0], 0, 0, 1),
            (&[1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 7.0], 2, 1, 2),
            (&[1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 7.0, 7.0], 1, 1, 3),
            (&[-0.0, 0.0, -0.0, 1.0], 0, 1, 2),
        ] {
            for (relation, distance) in [(Relation::Substitute, substitute), (Relation::AddRemove, add_remove)] {
                assert_eq!(mode_vartime(values, relation), Ok(Some(Mode { place, distance })), "{values:?}");
            }
        }
        assert_eq!(mode_vartime::<f64>(&[], Relation::AddRemove), Ok(None));
        assert_eq!(mode_of_counts_vartime(&[], Relation::AddRemove), Ok(None));
        assert_eq!(
            mode_of_counts_vartime(&[3, 9, 9, 4], Relation::AddRemove),
            Ok(Some(Mode { place: 1, distance: 0 }))
        );
    }

    /// The values by their counts: a search that skips runs finds the same as a count of all values.
    #[test]
    fn skipping_short_runs_loses_nothing() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..20_000 {
            let longest = [1, 2, 3, 20, 80][round % 5];
            let counts: Vec<usize> = (0..next(30)).map(|_| 1 + next(longest) as usize).collect();
            let runs = counts.iter().enumerate().flat_map(|(value, &count)| vec![value as i64 - 5; count]);
            let sorted: Vec<i64> = runs.collect();
            let expected = mode_of_counts_vartime(&counts, Relation::AddRemove).unwrap();
            let expected = expected.map(|mode| Mode { place: counts[..mode.place].iter().sum(), ..mode });
            assert_eq!(mode_vartime(&sorted, Relation::AddRemove), Ok(expected), "{counts:?}");
        }
    }

    #[test]
    fn bad_input_is_named() {
        let refused = mode_vartime::<i64>(&[], Relation::Substitute).unwrap_err();
        assert_eq!(refused.to_string(), "x must be one or more values, got 0");
        assert_eq!(mode_of_counts_vartime(&[], Relation::Substitute), Err(refused));
        for bad in [[f64::NEG_INFINITY, 1.0], [1.0, f64::INFINITY], [1.0, f64::NAN]] {
            let refused = mode_vartime(&bad, Relation::AddRemove).unwrap_err();
            assert_eq!(refused.to_string(), "x must be finite: no NaN and no infinity");
        }
    }
}
