//! Numbers known only to lie between two fixed-point bounds.

use super::fixed::{Fixed, Limbs};

/// A number between `low` and `high`.
#[derive(Clone, Debug)]
pub struct Interval<L: Limbs = Vec<u64>> {
    /// At most the number.
    pub low: Fixed<L>,
    /// At least the number.
    pub high: Fixed<L>,
}

impl<L: Limbs> Interval<L> {
    /// A number that is known exactly.
    #[must_use]
    pub fn exact(value: Fixed<L>) -> Self {
        Self { low: value.clone(), high: value }
    }

    /// A number within `ulps` of `value`.
    #[must_use]
    pub fn around(value: Fixed<L>, ulps: u128) -> Self {
        Self { low: value.clone().minus_ulps(ulps), high: value.plus_ulps(ulps) }
    }

    /// `self + other`.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self { low: self.low.plus(&other.low), high: self.high.plus(&other.high) }
    }

    /// `self - other`, for a difference that is not negative.
    #[must_use]
    pub fn minus(self, other: &Self) -> Self {
        Self { low: self.low.minus(&other.high), high: self.high.minus(&other.low) }
    }

    /// `1 - self`, for a number from 0 to 1.
    #[must_use]
    pub fn complement(&self) -> Self {
        let one = Fixed::from_integer(1, self.low.limbs());
        Self { low: one.clone().minus(&self.high), high: one.minus(&self.low) }
    }

    /// `self * other`.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self { low: self.low.times(&other.low), high: self.high.times(&other.high).plus_ulps(1) }
    }

    /// `self * factor`.
    #[must_use]
    pub fn times_integer(self, factor: u64) -> Self {
        Self { low: self.low.times_integer(factor), high: self.high.times_integer(factor) }
    }

    /// `1 / self`, for a public number as for [`Fixed::reciprocal_vartime`].
    #[must_use]
    pub fn reciprocal_vartime(&self) -> Self {
        Self { low: self.high.reciprocal_vartime(), high: self.low.reciprocal_vartime().plus_ulps(4) }
    }

    /// The number, which must be positive, rounded up to an integer; or `None` when the bounds do not decide it.
    #[must_use]
    pub fn ceiling(&self) -> Option<u64> {
        let up = |x: &Fixed<L>| x.integer() + u64::from(!x.is_whole());
        // A positive number rounds up to at least 1, even where the lower bound is 0.
        Some(up(&self.low).max(1)).filter(|&whole| whole == up(&self.high))
    }

    /// The largest integer n with n * self <= `limit`, or `None` when the bounds do not decide it; it must be below 2^48,
    /// and `self` at least 2^-16.
    #[must_use]
    pub fn times_within_vartime(&self, limit: u64) -> Option<u64> {
        let fits = |x: &Fixed<L>, n: u64| !Fixed::from_integer(limit, x.limbs()).is_less(&x.clone().times_integer(n));
        // The quotient is off by less than one; the exact comparison decides.
        let mut n = (limit as f64 / self.low.to_f64_vartime()) as u64 + 1;
        while !fits(&self.low, n) {
            n -= 1;
        }
        fits(&self.high, n).then_some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(numerator: u128, denominator: u128) -> Interval {
        Interval::around(Fixed::from_ratio_vartime(numerator, denominator, 2), 1)
    }

    fn whole(number: u64) -> Interval {
        Interval::exact(Fixed::from_integer(number, 2))
    }

    #[test]
    fn rounding_up_is_refused_where_the_bounds_disagree() {
        assert_eq!(ratio(7, 2).ceiling(), Some(4));
        assert_eq!(ratio(3, 1).ceiling(), None);
        assert_eq!(whole(3).ceiling(), Some(3));
        assert_eq!(ratio(1, 1 << 100).ceiling(), Some(1));
        assert_eq!(ratio(0, 1).ceiling(), Some(1), "positive, but below the precision");
    }

    #[test]
    fn the_largest_multiple_is_found() {
        assert_eq!(ratio(7, 3).times_within_vartime(100), Some(42));
        assert_eq!(ratio(5, 1).times_within_vartime(100), None, "20 times 5 is on the edge");
        assert_eq!(whole(5).times_within_vartime(100), Some(20));
        assert_eq!(whole(5).times_within_vartime(99), Some(19));
        assert_eq!(ratio(1, 3).complement().ceiling(), Some(1));
    }
}
