//! Real numbers of any magnitude and precision, each known to lie within a radius of a midpoint.
//!
//! Every operation gives a ball that contains all results for arguments in the given balls, so an inequality that holds
//! for a whole ball is proved, however the ball was computed. Only for public numbers: the time depends on them.

use core::cmp::Ordering;
use core::ops::{Add, Mul, Neg, Sub};

use std::sync::OnceLock;

use num_bigint::{BigInt, BigUint, Sign};

use super::fixed::Fixed;
use super::interval::Interval;
use super::power_of_two;

/// A real number in [(mantissa - radius) 2^exponent, (mantissa + radius) 2^exponent].
#[derive(Clone, Debug)]
pub struct Ball {
    mantissa: BigInt,
    /// Below 2^32.
    radius: u64,
    exponent: i64,
    /// How many bits the mantissa may have. An operation on two balls takes the larger one.
    precision: u64,
}

/// Up to here pi is computed once.
const LONGEST_PI: u64 = 1 << 11;

impl Ball {
    /// A whole number.
    #[must_use]
    pub fn integer(value: impl Into<BigInt>, precision: u64) -> Self {
        Self::rounded(value.into(), &BigUint::ZERO, 0, precision)
    }

    /// The exact value of a double.
    ///
    /// # Panics
    /// When it is not finite.
    #[must_use]
    pub fn from_f64(value: f64, precision: u64) -> Self {
        assert!(value.is_finite());
        let bits = value.abs().to_bits();
        let (biased, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        let (significand, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        let significand = BigInt::from(significand);
        let mantissa = if value < 0.0 { -significand } else { significand };
        Self::rounded(mantissa, &BigUint::ZERO, exponent, precision)
    }

    /// The number pi.
    #[must_use]
    pub fn pi(precision: u64) -> Self {
        static PI: OnceLock<Ball> = OnceLock::new();
        if precision > LONGEST_PI {
            return Self::machin(precision);
        }
        PI.get_or_init(|| Self::machin(LONGEST_PI)).at_precision(precision)
    }

    /// pi = 16 arctan(1/5) - 4 arctan(1/239)
    fn machin(precision: u64) -> Self {
        let arctan_of_inverse = |x: u64| {
            let mut power = Self::integer(1, precision).over(x);
            let mut sum = power.clone();
            for n in 1.. {
                power = power.over(x * x);
                let term = power.over(2 * n + 1);
                if term.is_negligible(precision) {
                    return sum.widened(&term); // the rest of an alternating series is less than its next term
                }
                sum = if n % 2 == 1 { &sum - &term } else { &sum + &term };
            }
            unreachable!("the terms tend to zero")
        };
        &arctan_of_inverse(5).times(16) - &arctan_of_inverse(239).times(4)
    }

    /// The ball of all numbers from the least number of `low` to the greatest number of `high`.
    #[must_use]
    pub fn hull(low: &Self, high: &Self) -> Self {
        let middle = (low + high).scaled(-1);
        let half = (high - low).scaled(-1);
        middle.widened(&half)
    }

    /// How many bits the midpoint may have.
    #[must_use]
    pub fn precision(&self) -> u64 {
        self.precision
    }

    /// The same number, with operations at another precision.
    #[must_use]
    pub fn at_precision(&self, precision: u64) -> Self {
        Self::rounded(self.mantissa.clone(), &self.radius.into(), self.exponent, precision)
    }

    /// Whether all numbers of the ball are above 0.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        self.mantissa > BigInt::from(self.radius)
    }

    /// Whether all numbers of the ball are below 0.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        (-self).is_positive()
    }

    /// Whether all magnitudes are below 2^-bits.
    #[must_use]
    pub fn is_negligible(&self, bits: u64) -> bool {
        let size = self.mantissa.bits().max(u64::from(u64::BITS - self.radius.leading_zeros()));
        size == 0 || size as i64 + 1 + self.exponent <= -(bits as i64)
    }

    /// Greatest magnitude of the ball, in units of 2^exponent.
    fn greatest_magnitude(&self) -> BigUint {
        self.mantissa.magnitude() + self.radius
    }

    /// This ball with a radius that is larger by the greatest magnitude of `by`.
    #[must_use]
    pub fn widened(&self, by: &Self) -> Self {
        let greatest = by.greatest_magnitude();
        self + &Self::rounded(BigInt::ZERO, &greatest, by.exponent, self.precision)
    }

    /// This ball times 2^by.
    #[must_use]
    pub fn scaled(&self, by: i64) -> Self {
        Self { exponent: self.exponent + by, ..self.clone() }
    }

    /// This ball times a whole number.
    #[must_use]
    pub fn times(&self, factor: u64) -> Self {
        let radius = BigUint::from(self.radius) * factor;
        Self::rounded(&self.mantissa * factor, &radius, self.exponent, self.precision)
    }

    /// This ball over a positive whole number.
    #[must_use]
    pub fn over(&self, divisor: u64) -> Self {
        // Room for the quotient to be as precise as the dividend.
        let room = 64 + self.precision.saturating_sub(self.mantissa.bits());
        let radius = (BigUint::from(self.radius) << room) / divisor + 2u32;
        Self::rounded((&self.mantissa << room) / divisor, &radius, self.exponent - room as i64, self.precision)
    }

    /// This ball over another one, which does not contain 0.
    ///
    /// # Panics
    /// When it does.
    #[must_use]
    pub fn divided_by(&self, divisor: &Self) -> Self {
        assert!(divisor.is_positive() || divisor.is_negative(), "the divisor may be 0");
        let precision = self.precision.max(divisor.precision);
        let (dividend_size, size) = (self.mantissa.bits(), divisor.mantissa.bits());
        let room = (precision + size + 2).saturating_sub(dividend_size);
        // |x/y - m/n| <= (r |n| + s |m|) / (|n| (|n| - s)) for x within r of m and y within s of n.
        let (m, n) = (self.mantissa.magnitude(), divisor.mantissa.magnitude());
        let error = (n * self.radius + m * divisor.radius) << room;
        let radius = error / (n * (n - divisor.radius)) + 2u32;
        let quotient = (&self.mantissa << room) / &divisor.mantissa;
        Self::rounded(quotient, &radius, self.exponent - divisor.exponent - room as i64, precision)
    }

    /// The square root of a ball that has no negative numbers.
    ///
    /// # Panics
    /// When it has.
    #[must_use]
    pub fn sqrt(&self) -> Self {
        let root = |part: BigInt| {
            let part = part.to_biguint().expect("no negative number");
            let room = (2 * self.precision + 2).saturating_sub(part.bits());
            let room = room + (self.exponent - room as i64).unsigned_abs() % 2; // so that the exponent halves
            let low = Self::rounded((part << room).sqrt().into(), &BigUint::ZERO, 0, u64::MAX);
            // The whole root is less than 1 too small.
            Self { radius: 1, precision: self.precision, ..low }.scaled((self.exponent - room as i64) / 2)
        };
        Self::hull(&root(&self.mantissa - self.radius), &root(&self.mantissa + self.radius))
    }

    /// e to the power of this ball: the Taylor series after enough halvings to make the argument small, and as many
    /// squarings.
    #[must_use]
    pub fn exp(&self) -> Self {
        let size = self.greatest_magnitude().bits() as i64 + self.exponent;
        let halvings = (size + 8).max(0);
        // Each squaring doubles the relative radius.
        let working = self.precision + halvings as u64 + 8;
        let argument = self.at_precision(working).scaled(-halvings);
        let mut sum = Self::integer(1, working);
        let mut term = sum.clone();
        for n in 1.. {
            term = (&term * &argument).over(n);
            if term.is_negligible(working) {
                // Terms fall by more than a half each.
                sum = sum.widened(&term.times(2));
                break;
            }
            sum = &sum + &term;
        }
        for _ in 0..halvings {
            sum = &sum * &sum;
        }
        sum.at_precision(self.precision)
    }

    /// The smallest double that is at least every number of the ball; infinite when there is none.
    #[must_use]
    pub fn upper_f64(&self) -> f64 {
        let top = &self.mantissa + self.radius;
        let guess = to_f64(&top, self.exponent);
        let is_enough = |x: f64| {
            x == f64::INFINITY
                || x.is_finite()
                    && !(&Self { radius: 0, mantissa: top.clone(), ..self.clone() } - &Self::from_f64(x, 64))
                        .is_positive()
        };
        let mut bound = guess;
        while !is_enough(bound) {
            bound = bound.next_up();
        }
        while is_enough(bound.next_down()) {
            bound = bound.next_down();
        }
        bound
    }

    /// The natural logarithm of the midpoint, in floating point, for guesses; minus infinity unless it is positive.
    #[must_use]
    pub fn ln_of_middle(&self) -> f64 {
        if self.mantissa.sign() != Sign::Plus {
            return f64::NEG_INFINITY;
        }
        let shift = self.mantissa.bits() as i64 - 60;
        to_f64(&self.mantissa, -shift).ln() + (self.exponent + shift) as f64 * core::f64::consts::LN_2
    }

    /// About how many leading bits of the number are known.
    #[must_use]
    pub fn accuracy(&self) -> u64 {
        self.mantissa.bits().saturating_sub(u64::from(u64::BITS - self.radius.leading_zeros()))
    }

    /// ceil(log2 x) for the greatest number x of the ball, which must be positive.
    ///
    /// # Panics
    /// When it is not.
    #[must_use]
    pub fn ceil_log2(&self) -> i64 {
        let top = (&self.mantissa + self.radius).to_biguint().filter(|top| top.bits() > 0).expect("a positive number");
        let is_power = top.trailing_zeros() == Some(top.bits() - 1);
        top.bits() as i64 - i64::from(is_power) + self.exponent
    }

    /// The floors of the least and of the greatest number of the ball, or `None` when these need more than 64 bits.
    #[must_use]
    pub fn floors(&self) -> Option<(i64, i64)> {
        let floor = |edge: BigInt| {
            if edge.bits() as i64 + self.exponent > 64 {
                return None;
            }
            let whole = if self.exponent >= 0 { edge << self.exponent } else { edge >> -self.exponent };
            i64::try_from(whole).ok()
        };
        Some((floor(&self.mantissa - self.radius)?, floor(&self.mantissa + self.radius)?))
    }

    /// Bounds of a number that is not negative and below 2^64, which the ball may say less precisely, in fixed point.
    ///
    /// # Panics
    /// When the greatest number of the ball is 2^64 or more.
    #[must_use]
    pub fn interval(&self, limbs: usize) -> Interval {
        let shift = 64 * limbs as i64 + self.exponent;
        let floor = |edge: BigInt| if shift >= 0 { edge << shift } else { edge >> -shift };
        let fixed = |ulps: BigInt| {
            let mut digits = ulps.to_biguint().unwrap_or_default().to_u64_digits();
            digits.resize(digits.len().max(limbs + 1), 0);
            assert_eq!(digits.len(), limbs + 1, "a number below 2^64");
            Fixed::from_fraction(&digits[..limbs]).plus(&Fixed::from_integer(digits[limbs], limbs))
        };
        Interval {
            low: fixed(floor(&self.mantissa - self.radius)),
            high: fixed(-floor(-(&self.mantissa + self.radius))),
        }
    }

    /// How the number compares with another; `None` where the balls do not decide it.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let difference = self - other;
        if difference.is_positive() {
            Some(Ordering::Greater)
        } else if difference.is_negative() {
            Some(Ordering::Less)
        } else {
            None
        }
    }

    /// The ball, with enough bits dropped to fit the precision.
    fn rounded(mantissa: BigInt, radius: &BigUint, exponent: i64, precision: u64) -> Self {
        let excess = mantissa.bits().saturating_sub(precision).max(radius.bits().saturating_sub(31));
        if excess == 0 {
            return Self { mantissa, radius: low_limb(radius), exponent, precision };
        }
        // Both shifts round down, by less than 1 each.
        let radius = low_limb(&(radius >> excess)) + 2;
        Self { mantissa: mantissa >> excess, radius, exponent: exponent + excess as i64, precision }
    }
}

fn low_limb(value: &BigUint) -> u64 {
    value.iter_u64_digits().next().unwrap_or(0)
}

/// mantissa 2^exponent, nearly.
fn to_f64(mantissa: &BigInt, exponent: i64) -> f64 {
    let shift = mantissa.bits() as i64 - 64;
    let top = if shift > 0 { mantissa.magnitude() >> shift } else { mantissa.magnitude().clone() };
    let scale = (exponent + shift.max(0)).clamp(-2200, 2200) as i32;
    // In three factors, as a power of two alone may be out of range.
    let third = scale / 3;
    let value = low_limb(&top) as f64 * power_of_two(third) * power_of_two(third) * power_of_two(scale - 2 * third);
    if mantissa.sign() == Sign::Minus { -value } else { value }
}

impl Add for &Ball {
    type Output = Ball;

    fn add(self, other: Self) -> Ball {
        let precision = self.precision.max(other.precision);
        for (zero, sum) in [(self, other), (other, self)] {
            if zero.radius == 0 && zero.mantissa.sign() == Sign::NoSign {
                return Ball { precision, ..sum.clone() };
            }
        }
        let (low, high) = if self.exponent <= other.exponent { (self, other) } else { (other, self) };
        let gap = (high.exponent - low.exponent) as u64;
        let room = (precision + 2).saturating_sub(high.greatest_magnitude().bits());
        if low.greatest_magnitude().bits() + room <= gap {
            // After the shift, the lower term is at most one unit of the other one.
            let radius = (BigUint::from(high.radius) << room) + 1u32;
            return Ball::rounded(&high.mantissa << room, &radius, high.exponent - room as i64, precision);
        }
        let radius = (BigUint::from(high.radius) << gap) + low.radius;
        Ball::rounded((&high.mantissa << gap) + &low.mantissa, &radius, low.exponent, precision)
    }
}

impl Neg for &Ball {
    type Output = Ball;

    fn neg(self) -> Ball {
        Ball { mantissa: -&self.mantissa, ..self.clone() }
    }
}

impl Sub for &Ball {
    type Output = Ball;

    fn sub(self, other: Self) -> Ball {
        self + &-other
    }
}

impl Mul for &Ball {
    type Output = Ball;

    fn mul(self, other: Self) -> Ball {
        let (m, n) = (self.mantissa.magnitude(), other.mantissa.magnitude());
        let radius = m * other.radius + n * self.radius + BigUint::from(self.radius) * other.radius;
        let precision = self.precision.max(other.precision);
        Ball::rounded(&self.mantissa * &other.mantissa, &radius, self.exponent + other.exponent, precision)
    }
}
