//! The distance of data to data with another median.
//!
//! The proofs are in docs/proofs/stability.md.

use super::{Number, check_number_of_values, distance_from_margin, not_finite};
use crate::error::Error;
use crate::params::Relation;

/// The place of the lower median, of rank ceil(n/2), in `n` values in ascending order.
fn middle(n: usize) -> usize {
    n.div_ceil(2) - 1
}

/// The distance to instability of the lower median, the value of rank ceil(n/2): one less than the fewest values that must
/// change for it to change. It changes by at most 1 between neighbours, and is 0 where one of them has another median.
/// The values are in ascending order, or partitioned at their median: no larger value before it, no smaller value after
/// it. The time depends on the number of values, and on the values only if the machine's comparisons do.
/// Empty data, which only [`Relation::AddRemove`] allows, have no median, and a distance of 0.
///
/// ```
/// use dpnoise_core::{params::Relation, stability::median_distance_vartime};
/// assert_eq!(median_distance_vartime(&[1_i64, 3, 3, 3, 3, 3, 8], Relation::Substitute)?, 2);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] for a NaN or an infinity; [`Error::Parameter`] for no values whose number is public.
pub fn median_distance_vartime<T: Number>(partitioned: &[T], relation: Relation) -> Result<u64, Error> {
    check_number_of_values(partitioned.len(), relation)?;
    if partitioned.is_empty() {
        return Ok(0);
    }
    let (before, after) = partitioned.split_at(middle(partitioned.len()));
    let median = after[0];
    let (below, above) = (count(before, |value| value < median)?, count(after, |value| value > median)?);
    debug_assert!(before.iter().all(|value| *value <= median) && after.iter().all(|value| *value >= median));
    // The median moves down as soon as half of the values are below it, and up as soon as more than half are above it.
    let n = partitioned.len() as u64;
    Ok(distance_from_margin((n - 2 * below).min(n + 1 - 2 * above), relation))
}

/// The number of finite values that meet a condition; all are compared, without branches, so the compiler vectorises
/// it.
fn count<T: Number>(values: &[T], condition: impl Fn(T) -> bool) -> Result<u64, Error> {
    let (finite, found) = values.iter().fold((true, 0u64), |(finite, found), &value| {
        (finite & value.is_finite(), found.wrapping_add(u64::from(condition(value))))
    });
    if finite { Ok(found) } else { Err(not_finite()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value is as far as its rank says, and beyond there are others.
    #[test]
    fn distances_count_from_the_median_outwards() {
        for (values, substitute, add_remove) in [
            (&[5.0][..], 0, 0),
            (&[5.0, 5.0], 0, 1),
            (&[5.0, 6.0], 0, 0),
            (&[4.0, 5.0, 6.0], 0, 0),
            (&[5.0; 7], 3, 6),
            (&[5.0; 8], 3, 7),
            (&[1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0], 2, 5),
            (&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0], 3, 6),
            (&[-0.0, 0.0, 0.0, -0.0, 0.0], 2, 4),
        ] {
            assert_eq!(median_distance_vartime(values, Relation::Substitute), Ok(substitute), "{values:?}");
            assert_eq!(median_distance_vartime(values, Relation::AddRemove), Ok(add_remove), "{values:?}");
        }
        assert_eq!(median_distance_vartime::<u64>(&[], Relation::AddRemove), Ok(0));
        let large = [i64::MAX - 1, i64::MAX, i64::MAX, i64::MAX];
        assert_eq!(median_distance_vartime(&large, Relation::AddRemove), Ok(1), "not as doubles");
    }

    #[test]
    fn a_partition_does_as_well_as_a_sort() {
        let mut values: Vec<u64> = (0..1001u64).map(|i| i * i % 37).collect();
        let place = middle(values.len());
        values.select_nth_unstable(place);
        let partitioned = median_distance_vartime(&values, Relation::AddRemove);
        values.sort_unstable();
        assert_eq!(partitioned, median_distance_vartime(&values, Relation::AddRemove));
    }

    #[test]
    fn bad_input_is_named() {
        let refused = median_distance_vartime::<f64>(&[], Relation::Substitute).unwrap_err();
        assert_eq!(refused.to_string(), "x must be one or more values, got 0");
        for bad in [[f64::NEG_INFINITY, 1.0, 2.0], [0.0, 1.0, f64::INFINITY], [0.0, 1.0, f64::NAN], [f64::NAN; 3]] {
            assert_eq!(median_distance_vartime(&bad, Relation::AddRemove), Err(not_finite()));
        }
    }
}
