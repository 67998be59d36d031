//! The interquartile range, and the number of values that must change for its logarithm to leave its interval (Dwork
//! and Lei 2009, "Differential privacy and robust statistics", section 4; Dwork and Roth 2014, Algorithm 12).
//!
//! The proofs are in docs/proofs/stability.md.

use super::{check_ends, gallop};
use crate::error::Error;

/// The division of the base-2 logarithm of a range into intervals. The ranges 0 and infinity have intervals of their
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discretization {
    /// [k, k + 1) for integers k.
    Whole,
    /// [k - 1/2, k + 1/2) for integers k.
    Half,
}

impl Discretization {
    /// The discretization of a number: 1 or 2.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another number.
    pub fn new(number: u64) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Whole),
            2 => Ok(Self::Half),
            _ => Err(Error::parameter("discretization", number, "1 or 2")),
        }
    }

    /// The two ends of the interval that contains the logarithm of a range. Both are minus infinity for 0.
    #[must_use]
    pub fn log2_interval(self, range: f64) -> (f64, f64) {
        if range == 0.0 || range.is_infinite() {
            return (range.log2(), range.log2());
        }
        let lower = f64::from(self.exponent(range)) + if self == Self::Half { 0.5 } else { 0.0 };
        (lower, lower + 1.0)
    }

    /// The interval of ranges: the smallest double in it and the smallest one above it, if there is one.
    fn interval(self, range: f64) -> (f64, Option<f64>) {
        if range == 0.0 {
            return (0.0, Some(f64::from_bits(1)));
        }
        if range.is_infinite() {
            return (range, None);
        }
        let exponent = self.exponent(range);
        (self.limit(exponent), Some(self.limit(exponent + 1)))
    }

    /// The largest exponent whose limit is at most the range, which is positive and finite.
    fn exponent(self, range: f64) -> i32 {
        let bits = range.to_bits();
        let floor = if range < f64::MIN_POSITIVE { bits.ilog2() as i32 - 1074 } else { (bits >> 52) as i32 - 1023 };
        floor - i32::from(range < self.limit(floor))
    }

    /// The smallest double that is at least 2^exponent, or 2^(exponent + 1/2); infinity when it would be larger than all.
    fn limit(self, exponent: i32) -> f64 {
        let significand: u64 = match self {
            Self::Whole => 1 << 52,
            Self::Half => 0x16_A09E_667F_3BCD, // the square root of 2 times 2^52, rounded up
        };
        if exponent > 1023 {
            return f64::INFINITY;
        }
        // The bits of a double are ordered like doubles, so a significand that is rounded up to 2^52 is no special
        // case.
        f64::from_bits(match -1022 - exponent {
            below @ 1.. => significand.div_ceil(1 << below),
            above => significand.wrapping_sub(1 << 52) | (1 - above as i64).cast_unsigned() << 52,
        })
    }
}

/// The places of the quartiles in `n` sorted values: those of the ranks ceil(n/4) and ceil(3n/4).
fn quartiles(n: usize) -> (usize, usize) {
    (n.div_ceil(4) - 1, n - n / 4 - 1)
}

/// The interquartile range of finite values in ascending order: the value of rank ceil(3n/4) minus that of rank ceil(n/4),
/// rounded once.
///
/// # Errors
/// [`Error::Parameter`] for fewer than two values, whose number is public; [`Error::Data`] for a NaN or an infinity.
pub fn interquartile_range(sorted: &[f64]) -> Result<f64, Error> {
    check_ends(sorted)?;
    if sorted.len() < 2 {
        return Err(Error::parameter("x", sorted.len(), "two or more numbers"));
    }
    let (first, third) = quartiles(sorted.len());
    Ok(sorted[third] - sorted[first])
}

/// The least number of replacements among finite values in ascending order that moves the logarithm of the
/// interquartile range out of its interval. It is at least 1, and changes by at most 1 when one value is replaced by
/// any other.
///
/// The time depends on the values: in the worst case it is linear in their number.
///
/// ```
/// use dpnoise_core::stability::{Discretization, iqr_distance_vartime};
/// // The range is 4, in [4, 8). With one more large value it is 15.
/// assert_eq!(iqr_distance_vartime(&[0.0, 1.0, 2.0, 5.0, 16.0], Discretization::Whole)?, 1);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
///
/// # Errors
/// As for [`interquartile_range`].
pub fn iqr_distance_vartime(sorted: &[f64], discretization: Discretization) -> Result<u64, Error> {
    let (lower, upper) = discretization.interval(interquartile_range(sorted)?);
    iqr_distance_within_vartime(sorted, lower, upper)
}

/// The least number of replacements among finite values in ascending order that moves the interquartile range out of the
/// interval from `lower` up to, but not including, `upper`, which the range is in; with no `upper` there is nothing above.
///
/// Over intervals that partition the ranges, each given by its smallest double, the distance is at least 1, and changes
/// by at most 1 when one value is replaced by any other. The time depends on the values, as for [`iqr_distance_vartime`].
///
/// # Errors
/// As for [`interquartile_range`].
pub fn iqr_distance_within_vartime(sorted: &[f64], lower: f64, upper: Option<f64>) -> Result<u64, Error> {
    let range = interquartile_range(sorted)?;
    debug_assert!(sorted.is_sorted(), "values must be in ascending order");
    debug_assert!(lower <= range && upper.is_none_or(|upper| range < upper), "the range must be in the interval");
    let fewest = upper.map_or(usize::MAX, |upper| to_grow_vartime(sorted, upper));
    Ok(if lower > 0.0 { to_shrink_vartime(sorted, lower, fewest) } else { fewest } as u64)
}

/// The least number of replacements that bring the range to `upper` or above: the least sum of the two numbers of ranks
/// by which the quartiles are moved outwards. Beyond the ends of the data every range is possible.
fn to_grow_vartime(sorted: &[f64], upper: f64) -> usize {
    let (first, third) = quartiles(sorted.len());
    let reaches = |left: usize, right: usize| sorted[third + right] - sorted[first - left] >= upper;
    // There are as many ranks above the third quartile as below the first one, or one more.
    let mut fewest = first + 1;
    let mut left = 0;
    while left < fewest {
        let right = fewest - 1 - left;
        if reaches(left, right) {
            fewest -= gallop(1, right + 1, |fewer| !reaches(left, right - fewer));
        } else {
            left = gallop(left + 1, fewest, |left| reaches(left, right));
        }
    }
    fewest
}

/// The least number of replacements that bring the range below `lower`, if it is less than `known`, the number that
/// changes the range otherwise: all values between the quartiles outside the fullest window of less than that length.
fn to_shrink_vartime(sorted: &[f64], lower: f64, known: usize) -> usize {
    let (first, third) = quartiles(sorted.len());
    let middle = &sorted[first..=third];
    // A window is checked only if it would have more values than the fullest so far, and than are needed to improve on
    // `known`.
    let (mut start, mut fullest) = (0, middle.len().saturating_sub(known).max(1));
    while start + fullest < middle.len() {
        let (begin, end) = (middle[start], middle[start + fullest]);
        if end - begin < lower {
            fullest = gallop(fullest + 1, middle.len() - start, |count| middle[start + count] - begin >= lower);
        } else {
            start = gallop(start + 1, start + fullest, |start| end - middle[start] < lower);
        }
    }
    middle.len() - fullest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Ratio;

    const BOTH: [Discretization; 2] = [Discretization::Whole, Discretization::Half];

    #[test]
    fn limits_are_the_smallest_doubles_that_are_large_enough() {
        for exponent in -1074..=1023 {
            let whole = Discretization::Whole.limit(exponent);
            let half = Discretization::Half.limit(exponent);
            assert_eq!(whole, 2f64.powi(exponent.max(-1022)) * 2f64.powi(exponent.min(-1022) + 1022), "{exponent}");
            // half / whole >= sqrt(2) > (the double before half) / whole.
            let above = |x: f64| {
                let scaled = x / whole;
                let ratio = Ratio::from_f64(scaled).unwrap();
                scaled * whole == x && ratio.numerator().pow(2) >= 2 * ratio.denominator().pow(2)
            };
            assert!(above(half) && !above(half.next_down()), "{exponent}");
        }
        assert_eq!(BOTH.map(|discretization| discretization.limit(1024)), [f64::INFINITY; 2]);
    }

    #[test]
    fn intervals_hold_their_range_and_meet_one_another() {
        for discretization in BOTH {
            let mut expected = f64::from_bits(1);
            while expected.is_finite() {
                let (lower, upper) = discretization.interval(expected);
                assert_eq!(lower, expected);
                let upper = upper.unwrap();
                assert_eq!(discretization.interval(upper.next_down()), (lower, Some(upper)));
                let (from, to) = discretization.log2_interval(lower);
                assert!(from <= lower.log2() + 1e-9 && upper.next_down().log2() <= to + 1e-9, "{lower:e} {from} {to}");
                expected = upper;
            }
            assert_eq!(discretization.interval(f64::INFINITY), (f64::INFINITY, None));
            assert_eq!(discretization.interval(0.0), (0.0, Some(5e-324)));
            assert_eq!(discretization.log2_interval(0.0), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        }
        assert_eq!(Discretization::Half.log2_interval(1.0), (-0.5, 0.5));
        assert_eq!(Discretization::Half.log2_interval(1.5), (0.5, 1.5));
        assert_eq!(Discretization::Whole.log2_interval(1.5), (0.0, 1.0));
    }

    /// The definition by all windows and by all pairs of ranks.
    fn by_pairs(sorted: &[f64], discretization: Discretization) -> u64 {
        let n = sorted.len();
        let (first, third) = quartiles(n);
        let (lower, upper) = discretization.interval(sorted[third] - sorted[first]);
        let mut fewest = usize::MAX;
        for &start in sorted.iter().filter(|_| lower > 0.0) {
            let below = sorted.iter().filter(|&&x| x < start).count();
            let above = sorted.iter().filter(|&&x| x - start >= lower).count();
            fewest = fewest.min(below.saturating_sub(first) + above.saturating_sub(n - 1 - third));
        }
        for (left, right) in (0..=first + 1).flat_map(|left| (0..n - third).map(move |right| (left, right))) {
            let Some(upper) = upper else { break };
            if left > first || sorted[third + right] - sorted[first - left] >= upper {
                fewest = fewest.min(left + right);
            }
        }
        fewest as u64
    }

    #[test]
    fn searches_find_the_least_of_all_windows_and_pairs() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for round in 0..20_000 {
            let n = 2 + next() as usize % 40;
            let mut values: Vec<f64> = (0..n)
                .map(|_| match (round % 6, next()) {
                    (0, word) => (word % 5) as f64,
                    (1, word) => word as f64,
                    (2, word) => f64::from_bits(word % 40),
                    (3, word) => (word % 2000) as f64 - 1000.0,
                    (4, word) => ((word % 2000) as f64 - 1000.0).exp2().min(f64::MAX),
                    (_, word) => f64::MAX * ((word % 2000) as f64 / 1000.0 - 1.0),
                })
                .collect();
            values.sort_by(f64::total_cmp);
            for discretization in BOTH {
                let found = iqr_distance_vartime(&values, discretization).unwrap();
                assert_eq!(found, by_pairs(&values, discretization), "{values:?} {discretization:?}");
                assert!(found >= 1);
            }
        }
    }

    #[test]
    fn bad_input_is_named() {
        let distance = |values: &[f64]| iqr_distance_vartime(values, Discretization::Whole).unwrap_err().to_string();
        assert_eq!(distance(&[]), "x must be two or more numbers, got 0");
        assert_eq!(distance(&[1.0]), "x must be two or more numbers, got 1");
        for bad in [[f64::NEG_INFINITY, 1.0], [1.0, f64::INFINITY]] {
            assert_eq!(distance(&bad), "x must be finite: no NaN and no infinity");
        }
        assert_eq!(
            interquartile_range(&[1.0, f64::NAN]),
            Err(Error::data("x", "must be finite: no NaN and no infinity"))
        );
        let message = Discretization::new(3).unwrap_err().to_string();
        assert_eq!(message, "discretization must be 1 or 2, got 3");
    }
}
