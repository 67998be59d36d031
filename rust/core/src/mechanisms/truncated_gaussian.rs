//! The discrete Gaussian mechanism with bounded noise; `truncated.md` has the proof.

use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::gaussian::DiscreteTails;

use super::additive::{Additive, Calibration, Curve, Guarantee, Integers, OnGrid, Privacy, addressable};
use super::discrete_gaussian::{RANGE, check_sensitivity, exact_shift, sigma_for};
use super::noise_kind::{DELTA, EPSILON, NoiseKind, RADIUS, SENSITIVITY};
use crate::arguments::{Argument, Arguments, Parameter, ParameterKind};
use crate::calibration::{ANY_COUNT, Goal, certain_delta, smaller, vector};
use crate::error::Error;
use crate::params::{Epsilon, Scale};
use crate::samplers::DiscreteGaussian;

/// Adds discrete Gaussian noise of bounded magnitude to integers.
///
/// ```
/// use dpnoise_core::mechanisms::TruncatedDiscreteGaussian;
/// let mechanism = TruncatedDiscreteGaussian::new(1.0, 1e-6, 1.0)?;
/// assert_eq!(mechanism.radius(1)?, 23);
/// assert!(mechanism.release_one(100)? >= 77);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type TruncatedDiscreteGaussian = Additive<TruncatedGaussianPrivacy, Integers>;

/// An epsilon, a delta, and the sigma and the radius if these are given.
#[derive(Clone, Copy, Debug)]
pub struct TruncatedGaussianPrivacy {
    goal: Goal,
    given: Option<(f64, u64)>,
}

/// Sigma.
const SCALE: Parameter =
    Parameter::new("scale", ParameterKind::Number, Argument::Real(5.0), "the sigma of the noise").or_absent();

/// The share of delta that the noise is given before it is truncated. What is left allows a radius about 8 % above that
/// for one half, and sigma is 0.2 % above the least one instead of 2.5 % (for a delta of 1e-6).
const SHARE: f64 = 15.0 / 16.0;

impl TruncatedDiscreteGaussian {
    /// The mechanism that spends `epsilon` and `delta` on integers whose L2 sensitivity is at most `sensitivity`. Sigma is
    /// the least one for 15/16 of `delta`, and the radius the smallest one that suffices then.
    ///
    /// # Errors
    /// As for [`DiscreteGaussian`](super::DiscreteGaussian).
    pub fn new(epsilon: f64, delta: f64, sensitivity: f64) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        check_sensitivity(sensitivity)?;
        Self::calibrated(TruncatedGaussianPrivacy { goal, given: None }, sensitivity, Integers)
    }

    /// The mechanism with noise of parameter `sigma` and of magnitude at most `radius`, whose delta for `epsilon` holds for
    /// any number of values.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a sensitivity that is not from 1 to 2^40, a
    /// sigma that is not from 2^-20 to 2^40, a radius that is below sigma or the sensitivity or above 2^62, or where delta
    /// is not below 1.
    pub fn with_radius(epsilon: f64, sigma: f64, radius: u64, sensitivity: f64) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon)?;
        check_sensitivity(sensitivity)?;
        let scale = Scale::from_f64(sigma).ok().and_then(|scale| DiscreteGaussian::new(scale).ok());
        let noise = scale.ok_or_else(|| Error::parameter("scale", format!("{sigma:?}"), RANGE))?;
        if (radius as f64) < sensitivity {
            let allowed = format!("at least the sensitivity, which is {sensitivity:?}");
            return Err(Error::parameter("radius", radius, allowed));
        }
        noise.truncated(radius)?;
        let delta = certain_delta(epsilon.get(), |epsilon| curve(epsilon, sigma, radius, sensitivity, ANY_COUNT));
        if delta >= 1.0 {
            let allowed = format!("such that delta is below 1 (scale is {sigma:?}, sensitivity is {sensitivity:?})");
            return Err(Error::parameter("radius", radius, allowed));
        }
        let goal = Goal { epsilon: epsilon.get(), delta };
        Self::calibrated(TruncatedGaussianPrivacy { goal, given: Some((sigma, radius)) }, sensitivity, Integers)
    }

    /// The largest magnitude of the noise of `count` values that are released at once.
    ///
    /// # Errors
    /// As for [`Additive::noise`].
    pub fn radius(&self, count: usize) -> Result<u64, Error> {
        self.noise(count).map(|noise| noise.radius().unwrap_or(u64::MAX))
    }
}

impl NoiseKind for TruncatedDiscreteGaussian {
    const NAME: &'static str = "truncated_discrete_gaussian";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, DELTA, SENSITIVITY, SCALE, RADIUS];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let (epsilon, sensitivity) = (arguments.real("epsilon")?, arguments.real("sensitivity")?);
        if let Some(radius) = arguments.optional("radius")? {
            arguments.without("delta", "a radius")?;
            return Self::with_radius(epsilon, arguments.real("scale")?, radius, sensitivity);
        }
        arguments.without("scale", "no radius")?;
        Self::new(epsilon, arguments.real("delta")?, sensitivity)
    }
}

impl Privacy for TruncatedGaussianPrivacy {
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(self.goal.epsilon, self.goal.delta)
    }
}

/// The delta of a release of `count` integers.
fn curve(epsilon: &Ball, sigma: f64, radius: u64, sensitivity: f64, count: u64) -> Ball {
    let precision = epsilon.precision();
    let whole = |value: u64| Ball::integer(value, precision);
    let sigma = Ball::from_f64(sigma, precision);
    let tails = DiscreteTails::new(sigma.clone());
    let end = radius.cast_signed() + 1;
    let outer = tails.from(end, &whole(0));
    let total = &tails.total() - &outer.scaled(1);
    let beyond = |start: i64, exponent: &Ball| &tails.from(start, exponent) - &tails.from(end, exponent);
    let Some(shift) = exact_shift(sensitivity, count) else {
        // Changes of d, which are whole, add up to at most D times the root of their number, and to at most D^2; one of
        // them is out of the range of the other noise with a probability of at most d/w times that for w = floor(D).
        let shift = Ball::from_f64(sensitivity, precision);
        let places = smaller(whole(count), &shift * &shift);
        let outside = (&outer.scaled(1) * &places).divided_by(&total);
        if (&whole(1) - &outside).is_negative() {
            return whole(1); // the bound says nothing
        }
        let largest = sensitivity as u64;
        let edge = beyond(end - largest.cast_signed(), &whole(0)).divided_by(&total);
        let changes = &smaller(whole(count).sqrt(), shift.clone()) * &shift;
        let edges = &changes.over(largest) * &edge;
        return &(&outside.exp() * &vector(epsilon, &sigma, &shift, count)) + &edges;
    };
    let start = end - shift.cast_signed(); // from here on the other noise has no values
    let threshold = &(epsilon * &(&sigma * &sigma)).over(shift) - &Ball::integer(shift, precision).scaled(-1);
    let delta = |first: i64| {
        if first >= start {
            return beyond(start, &whole(0));
        }
        let first = first.max(-radius.cast_signed());
        &beyond(first, &whole(0)) - &beyond(first + shift.cast_signed(), epsilon)
    };
    let sum = if (&threshold - &Ball::integer(start, precision)).is_positive() {
        delta(start)
    } else {
        match threshold.floors().filter(|(least, greatest)| greatest - least <= 1) {
            Some((least, greatest)) => Ball::hull(&delta(least + 1), &delta(greatest + 1)),
            None => return Ball::hull(&whole(0), &whole(1)), // the precision does not determine the threshold
        }
    };
    sum.divided_by(&total)
}

impl Calibration<Integers> for TruncatedGaussianPrivacy {
    type Noise = DiscreteGaussian;
    type Sensitivity = f64;

    fn depends_on_count(&self, sensitivity: f64) -> bool {
        self.given.is_none() && sensitivity != 1.0
    }

    fn noise(&self, sensitivity: f64, _: &Integers, count: usize) -> Result<OnGrid<Self::Noise, Integers>, Error> {
        let (sigma, radius) = match self.given {
            Some(given) => given,
            None => self.sigma_and_radius(sensitivity, count)?,
        };
        let whole = DiscreteGaussian::new(Scale::from_f64(sigma)?)?;
        Ok(OnGrid { steps: whole.truncated(radius)?, grid: () })
    }

    fn curve(mechanism: &TruncatedDiscreteGaussian, count: u64) -> Result<Curve<'_>, Error> {
        let noise = mechanism.noise(addressable(count)?)?;
        let (sigma, radius) = (noise.scale().ratio().to_f64(), noise.radius().unwrap_or(u64::MAX));
        Ok(Box::new(move |epsilon| curve(epsilon, sigma, radius, mechanism.sensitivity, count)))
    }
}

impl TruncatedGaussianPrivacy {
    fn sigma_and_radius(&self, sensitivity: f64, count: usize) -> Result<(f64, u64), Error> {
        let before = Goal { delta: SHARE * self.goal.delta, ..self.goal };
        let sigma = sigma_for(before, sensitivity, count)?;
        let least = sigma.ceil().max(sensitivity.ceil()) as u64;
        let tail = (2.0 * (16.0 / self.goal.delta).ln()).sqrt();
        let radius = self.goal.radius(sensitivity + sigma * tail, least, |epsilon, radius| {
            curve(epsilon, sigma, radius, sensitivity, count as u64)
        });
        Ok((sigma, radius.ok_or_else(|| self.goal.out_of_range(RANGE))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of all P(y) - e^epsilon P(y - d) that are positive, in floating point.
    fn enumerated(epsilon: f64, sigma: f64, radius: i64, shift: i64) -> f64 {
        let density = |n: i64| if n.abs() > radius { 0.0 } else { (-((n * n) as f64) / (2.0 * sigma * sigma)).exp() };
        let total: f64 = (-radius..=radius).map(density).sum();
        let loss = |y| (density(y) - epsilon.exp() * density(y - shift)).max(0.0);
        (-radius..=radius).map(loss).sum::<f64>() / total
    }

    #[test]
    fn delta_is_that_of_the_enumeration() {
        for (epsilon, sigma, radius, shift) in [
            (1.0, 4.25, 23, 1),
            (0.5, 3.0, 4, 2),
            (0.01, 10.0, 30, 7),
            (2.0, 5.0, 12, 12),
            (30.0, 1.0, 6, 3),
            (1e-3, 40.0, 41, 1),
        ] {
            let made = TruncatedDiscreteGaussian::with_radius(epsilon, sigma, radius, 1.0).unwrap();
            let found = curve(&Ball::from_f64(epsilon, 256), sigma, radius, shift as f64, 1).upper_f64();
            let expected = enumerated(epsilon, sigma, radius as i64, shift);
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
            assert!(shift > 1 || (made.guarantee().delta.unwrap() / expected - 1.0).abs() < 1e-9);
            assert_eq!(made.guarantee().epsilon, Some(epsilon));
        }
    }

    /// The bound of `truncated.md`, with what is out of range by enumeration.
    #[test]
    fn several_integers_have_the_bound_of_the_theorem() {
        let epsilon = Ball::from_f64(1.0, 256);
        for (sigma, radius, sensitivity, count) in [(3.0, 9i64, 2.5f64, 4), (3.0, 9, 2.5, 1000), (2.0, 7, 1.5, 2u64)] {
            let mass = |ns: core::ops::RangeInclusive<i64>| -> f64 {
                ns.map(|n| (-((n * n) as f64) / (2.0 * sigma * sigma)).exp()).sum()
            };
            let (total, whole) = (mass(-radius..=radius), sensitivity.floor());
            let places = (count as f64).min(sensitivity * sensitivity);
            let outside = 2.0 * mass(radius + 1..=20 * radius) / total * places;
            let edges = places.sqrt() * sensitivity / whole * mass(radius - whole as i64 + 1..=radius) / total;
            let [scale, shift] = [sigma, sensitivity].map(|value| Ball::from_f64(value, 256));
            let expected = outside.exp() * vector(&epsilon, &scale, &shift, count).upper_f64() + edges;
            let found = curve(&epsilon, sigma, radius as u64, sensitivity, count).upper_f64();
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(curve(&epsilon, 3.0, 3, 40.0, 1000).upper_f64(), 1.0, "some place is expected to be out of range");
    }

    #[test]
    fn the_radius_is_the_least() {
        for (epsilon, delta, sensitivity) in [(1.0, 1e-6, 1.0), (0.1, 1e-12, 3.0), (5.0, 0.01, 2.0), (0.5, 1e-9, 1.5)] {
            let made = TruncatedDiscreteGaussian::new(epsilon, delta, sensitivity).unwrap();
            for count in [1, 2, 1000] {
                let noise = made.noise(count).unwrap();
                let (sigma, radius) = (noise.real_scale(), noise.radius().unwrap());
                assert_eq!(made.radius(count), Ok(radius));
                assert!(made.delta_for(epsilon, count as u64).unwrap() <= delta);
                let less = curve(&Ball::from_f64(epsilon, 256), sigma, radius - 1, sensitivity, count as u64);
                assert!(less.upper_f64() > delta || ((radius - 1) as f64) < sigma.max(sensitivity));
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |made: Result<TruncatedDiscreteGaussian, Error>| made.unwrap_err().to_string();
        for (made, expected) in [
            (TruncatedDiscreteGaussian::with_radius(1.0, 0.0, 5, 1.0), "scale must be from 2**-20 to 2**40, got 0.0"),
            (
                TruncatedDiscreteGaussian::with_radius(1.0, 2.0, 1, 1.0),
                "radius must be from 2 (the scale, rounded up) to",
            ),
            (
                TruncatedDiscreteGaussian::with_radius(1.0, 2.0, 2, 4.0),
                "radius must be at least the sensitivity, which is 4",
            ),
            (
                TruncatedDiscreteGaussian::with_radius(1.0, 90.0, 90, 90.0),
                "radius must be such that delta is below 1 (",
            ),
            (TruncatedDiscreteGaussian::new(1.0, 1e-6, 0.5), "sensitivity must be a number from 1 to 2**40, got 0.5"),
        ] {
            assert!(message(made.clone()).starts_with(expected), "{}", message(made));
        }
    }
}
