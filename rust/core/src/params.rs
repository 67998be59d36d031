//! Parameters that are checked once, when they are made.
//! All parameters are public: a mechanism announces them.

use core::cmp::Ordering;

use dpnoise_kernels::arith::power_of_two;

use crate::error::Error;

/// An exact positive rational number in lowest terms, both parts below 2^120.
/// Every finite positive `f64` whose exponent allows it is one, so no parameter is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

/// The exclusive upper bound of a [`Ratio`]'s parts.
const PART_LIMIT: u128 = 1 << 120;

impl Ratio {
    /// The fraction `numerator / denominator`, or `None` when it is not positive or, reduced, too long.
    #[must_use]
    pub fn new(numerator: u128, denominator: u128) -> Option<Self> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator, denominator);
        let (numerator, denominator) = (numerator / divisor, denominator / divisor);
        (numerator < PART_LIMIT && denominator < PART_LIMIT).then_some(Self { numerator, denominator })
    }

    /// The exact value of a positive finite double, or `None` when it is not one or needs longer parts.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        let bits = value.to_bits();
        let biased = (bits >> 52) as i32; // the sign bit is clear
        let fraction = bits & ((1 << 52) - 1);
        let (significand, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        let twos = significand.trailing_zeros() as i32;
        let (odd, exponent) = (u128::from(significand >> twos), exponent + twos);
        match exponent {
            0..=66 => Self::new(odd << exponent, 1),
            -119..0 => Self::new(odd, 1 << -exponent),
            _ => None,
        }
    }

    /// The numerator.
    #[must_use]
    pub fn numerator(self) -> u128 {
        self.numerator
    }

    /// The denominator.
    #[must_use]
    pub fn denominator(self) -> u128 {
        self.denominator
    }

    /// `self / other`, or `None` when the exact result has parts that are too long.
    #[must_use]
    pub fn checked_div(self, other: Self) -> Option<Self> {
        let top = gcd(self.numerator, other.numerator);
        let bottom = gcd(self.denominator, other.denominator);
        Self::new(
            (self.numerator / top).checked_mul(other.denominator / bottom)?,
            (self.denominator / bottom).checked_mul(other.numerator / top)?,
        )
    }

    /// The nearest double, within two units in the last place; for display and fast approximations only.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// `self` times 2^exponent, or `None` when the exact result has parts that are too long.
    fn times_power_of_two(self, exponent: i32) -> Option<Self> {
        let shifted = |part: u128, by: u32| (by < part.leading_zeros()).then(|| part << by);
        let by = exponent.unsigned_abs();
        if exponent >= 0 {
            let halvings = by.min(self.denominator.trailing_zeros());
            Self::new(shifted(self.numerator, by - halvings)?, self.denominator >> halvings)
        } else {
            let halvings = by.min(self.numerator.trailing_zeros());
            Self::new(self.numerator >> halvings, shifted(self.denominator, by - halvings)?)
        }
    }

    /// How `self` compares with `2^exponent`, for |exponent| < 120.
    fn cmp_power_of_two(self, exponent: i32) -> Ordering {
        // A part shifted past the top exceeds the other part, so saturation keeps the order.
        let shifted = |part: u128, by: i32| if by < part.leading_zeros() as i32 { part << by } else { u128::MAX };
        if exponent >= 0 {
            self.numerator.cmp(&shifted(self.denominator, exponent))
        } else {
            shifted(self.numerator, -exponent).cmp(&self.denominator)
        }
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The largest radius of a truncated distribution.
pub(crate) const LARGEST_RADIUS: u64 = 1 << 62;

/// The scale of a noise distribution over the integers: an exact rational from 2^-40 to 2^40.
///
/// ```
/// use dpnoise_core::params::{Ratio, Scale};
/// assert!(Scale::new(Ratio::new(1, 3).unwrap()).is_ok());
/// assert!(Scale::from_f64(2e12).unwrap_err().to_string().contains("coarser grid"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale(Ratio);

impl Scale {
    /// The allowed scales, for error messages.
    pub const ALLOWED: &'static str = "a rational number from 2**-40 to 2**40 whose numerator and denominator \
         are below 2**120 (for a larger scale put the values on a coarser grid: divide them by a power of two and \
         multiply the result)";

    /// Checks the range.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `ratio` is outside [2^-40, 2^40].
    pub fn new(ratio: Ratio) -> Result<Self, Error> {
        Self::with_largest_exponent(ratio, 40)
            .ok_or_else(|| Error::parameter("scale", format!("{:e}", ratio.to_f64()), Self::ALLOWED))
    }

    /// The exact value of a double.
    ///
    /// # Errors
    /// [`Error::Parameter`] as for [`Scale::new`], and for values that are not positive and finite.
    pub fn from_f64(value: f64) -> Result<Self, Error> {
        Ratio::from_f64(value)
            .and_then(|ratio| Self::with_largest_exponent(ratio, 40))
            .ok_or_else(|| Error::parameter("scale", format!("{value:?}"), Self::ALLOWED))
    }

    /// A scale on a mechanism's grid, where the sensitivity of a vector may push it past 2^40 (up to 2^44).
    pub(crate) fn on_grid(ratio: Ratio) -> Option<Self> {
        Self::with_largest_exponent(ratio, 44)
    }

    /// A scale of Laplace noise on the fine grid of a long vector (up to 2^52).
    pub(crate) fn on_fine_grid(ratio: Ratio) -> Option<Self> {
        Self::with_largest_exponent(ratio, 52)
    }

    fn with_largest_exponent(ratio: Ratio, exponent: i32) -> Option<Self> {
        (ratio.cmp_power_of_two(-40).is_ge() && ratio.cmp_power_of_two(exponent).is_le()).then_some(Self(ratio))
    }

    /// The exact value.
    #[must_use]
    pub fn ratio(self) -> Ratio {
        self.0
    }
}

/// The scale of a noise distribution over the real numbers: an exact positive number, ratio times 2^exponent.
///
/// ```
/// use dpnoise_core::params::{RealScale, Scale};
/// let scale = RealScale::from_f64(3e-300).unwrap();
/// assert_eq!(scale.ceil_log2(), -994);
/// assert_eq!(scale.in_steps(-1034), Some(Scale::from_f64(3e-300 * 2f64.powi(1000) * 2f64.powi(34))?));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealScale {
    ratio: Ratio,
    exponent: i32,
}

impl RealScale {
    /// The allowed scales, for error messages.
    pub const ALLOWED: &'static str =
        "a positive finite rational number whose numerator and denominator are below 2**120";

    /// The exact value of a double, or `None` when it is not positive and finite.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        let bits = value.to_bits();
        let biased = ((bits >> 52) as i32).max(1);
        let significand = (bits & ((1 << 52) - 1)) | u64::from(value >= f64::MIN_POSITIVE) << 52;
        Some(Self { ratio: Ratio::new(significand.into(), 1)?, exponent: biased - 1075 })
    }

    /// ceil(log2(self)), exactly.
    #[must_use]
    pub fn ceil_log2(self) -> i32 {
        let bits = |part: u128| 128 - part.leading_zeros() as i32;
        // The quotient is above 2^(guess - 1) and below 2^(guess + 1).
        let guess = bits(self.ratio.numerator) - bits(self.ratio.denominator);
        let above = self.ratio.cmp_power_of_two(guess).is_gt();
        let at_most_half = self.ratio.cmp_power_of_two(guess - 1).is_le();
        guess + i32::from(above) - i32::from(at_most_half) + self.exponent
    }

    /// The nearest double, within two units in the last place; for display only.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        // In two factors, as 2^exponent alone may be out of range.
        let half = self.exponent / 2;
        self.ratio.to_f64() * power_of_two(half) * power_of_two(self.exponent - half)
    }

    /// The scale in steps of 2^exponent, or `None` when it is not a [`Scale`].
    #[must_use]
    pub fn in_steps(self, exponent: i32) -> Option<Scale> {
        Scale::new(self.ratio.times_power_of_two(self.exponent - exponent)?).ok()
    }
}

impl From<Ratio> for RealScale {
    fn from(ratio: Ratio) -> Self {
        Self { ratio, exponent: 0 }
    }
}

/// The privacy parameter epsilon: a positive finite double, taken at its exact value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epsilon(f64);

impl Epsilon {
    /// Checks that epsilon is positive and finite.
    ///
    /// # Errors
    /// [`Error::Parameter`] otherwise.
    pub fn new(value: f64) -> Result<Self, Error> {
        if value.is_finite() && value > 0.0 {
            Ok(Self(value))
        } else {
            Err(Error::parameter("epsilon", format!("{value:?}"), "positive and finite"))
        }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Refuses a level that is not in (0, 1).
pub(crate) fn check_level(level: f64) -> Result<(), Error> {
    if level > 0.0 && level < 1.0 {
        Ok(())
    } else {
        Err(Error::parameter("level", format!("{level:?}"), "between 0 and 1, both excluded"))
    }
}

/// The privacy parameter delta: a double between 0 and 1, taken at its exact value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta(f64);

impl Delta {
    /// Checks that delta is between 0 and 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] otherwise.
    pub fn new(value: f64) -> Result<Self, Error> {
        if value > 0.0 && value < 1.0 {
            Ok(Self(value))
        } else {
            Err(Error::parameter("delta", format!("{value:?}"), "between 0 and 1, both excluded"))
        }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The parameter rho of zero-concentrated differential privacy: a positive finite double, taken at its exact value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rho(f64);

impl Rho {
    /// Checks that rho is positive and finite.
    ///
    /// # Errors
    /// [`Error::Parameter`] otherwise.
    pub fn new(value: f64) -> Result<Self, Error> {
        if value.is_finite() && value > 0.0 {
            Ok(Self(value))
        } else {
            Err(Error::parameter("rho", format!("{value:?}"), "positive and finite"))
        }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The neighbouring relation: how one person can change a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// One person's row is added or removed; the number of rows is private.
    AddRemove,
    /// One person's row is replaced by another; the number of rows is public.
    Substitute,
}

impl Relation {
    /// The allowed names, for error messages.
    pub const ALLOWED: &'static str = "\"add/remove\" or \"substitute\"";

    /// The relation of this name.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another name.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "add/remove" => Ok(Self::AddRemove),
            "substitute" => Ok(Self::Substitute),
            _ => Err(Error::parameter("relation", format!("{name:?}"), Self::ALLOWED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_taken_exactly() {
        assert_eq!(Ratio::from_f64(0.1), Ratio::new(3_602_879_701_896_397, 1 << 55));
        assert_eq!(Ratio::from_f64(1e15), Ratio::new(1_000_000_000_000_000, 1));
        assert_eq!(Ratio::from_f64(2f64.powi(-119)), Ratio::new(1, 1 << 119));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX] {
            assert_eq!(Ratio::from_f64(bad), None, "{bad}");
        }
    }

    #[test]
    fn scales_are_bounded_on_both_sides() {
        let edge = 2f64.powi(40);
        for good in [edge, 1.0 / edge, 1e-3, 1.0] {
            assert!(Scale::from_f64(good).is_ok(), "{good}");
        }
        for bad in [edge.next_up(), (1.0 / edge).next_down(), 0.0, -1.0, f64::NAN, f64::INFINITY, 5e-324, 1e300] {
            let message = Scale::from_f64(bad).unwrap_err().to_string();
            assert!(message.starts_with("scale must be") && message.contains(&format!("{bad:?}")), "{message}");
        }
        assert!(Scale::on_grid(Ratio::new((1 << 40) + 1, 1).unwrap()).is_some());
    }

    #[test]
    fn real_scales_are_exact_at_every_magnitude() {
        for value in [5e-324, 2.5e-310, f64::MIN_POSITIVE, 1e-9, 0.75, 1.0, 3.0, 1e300, f64::MAX] {
            let scale = RealScale::from_f64(value).unwrap();
            let exponent = scale.ceil_log2();
            let exact = num_rational::BigRational::from_float(value).unwrap();
            let two = num_rational::BigRational::from_integer(2.into());
            assert!(exact <= two.pow(exponent) && exact > two.pow(exponent - 1), "{value:e}");
            let steps = scale.in_steps(exponent - 40).unwrap().ratio();
            let steps = num_rational::BigRational::new(steps.numerator().into(), steps.denominator().into());
            assert_eq!(steps * two.pow(exponent - 40), exact, "{value:e}");
            assert_eq!(scale.in_steps(exponent - 41), None, "{value:e}");
        }
        let third = RealScale::from(Ratio::new(1, 3).unwrap());
        assert_eq!((third.ceil_log2(), third.in_steps(-3)), (-1, Scale::new(Ratio::new(8, 3).unwrap()).ok()));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(RealScale::from_f64(bad), None);
        }
    }

    #[test]
    fn division_is_exact_or_refused() {
        let third = Ratio::new(1, 3).unwrap();
        let tenth = Ratio::from_f64(0.1).unwrap();
        assert_eq!(third.checked_div(third), Ratio::new(1, 1));
        assert_eq!(tenth.checked_div(third), Ratio::new(3 * 3_602_879_701_896_397, 1 << 55));
        let long = Ratio::new((1 << 119) + 1, (1 << 119) - 1).unwrap();
        assert_eq!(long.checked_div(Ratio::new((1 << 119) - 3, 7).unwrap()), None);
    }
    #[test]
    fn relations_have_names() {
        assert_eq!(Relation::from_name("add/remove"), Ok(Relation::AddRemove));
        assert_eq!(Relation::from_name("substitute"), Ok(Relation::Substitute));
        let message = Relation::from_name("unbounded").unwrap_err().to_string();
        assert_eq!(message, "relation must be \"add/remove\" or \"substitute\", got \"unbounded\"");
    }
}
