//! The discrete Laplace mechanism with bounded noise; `truncated.md` has the proof.

use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::gaussian::exp_or_tiny;

use super::additive::{Additive, Calibration, Guarantee, Integers, OnGrid, Privacy};
use super::noise_kind::{DELTA, EPSILON, NoiseKind, RADIUS, WHOLE_SENSITIVITY};
use crate::arguments::{Arguments, Parameter};
use crate::calibration::{Goal, certain_delta};
use crate::error::Error;
use crate::params::{Epsilon, LARGEST_RADIUS};
use crate::samplers::DiscreteLaplace;

/// Adds discrete Laplace noise of bounded magnitude to integers.
///
/// ```
/// use dpnoise_core::mechanisms::TruncatedDiscreteLaplace;
/// let mechanism = TruncatedDiscreteLaplace::new(1.0, 1e-6, 1)?;
/// assert_eq!(mechanism.radius(), 14);
/// assert!(mechanism.release_one(100)? >= 86);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type TruncatedDiscreteLaplace = Additive<TruncatedLaplacePrivacy, Integers>;

/// An epsilon, a radius and the delta that follows from them.
#[derive(Clone, Copy, Debug)]
pub struct TruncatedLaplacePrivacy {
    epsilon: Epsilon,
    delta: f64,
    radius: u64,
}

/// The largest sensitivity: no radius that suffices for it is too large for the sampler.
const LARGEST: u64 = 1 << 61;

impl TruncatedDiscreteLaplace {
    /// The mechanism with the smallest radius that suffices for `epsilon` and `delta`, on values whose L1 sensitivity is
    /// at most `sensitivity`.
    ///
    /// # Errors
    /// As for [`DiscreteLaplace`](super::DiscreteLaplace), and [`Error::Parameter`] for a sensitivity above 2^61 or a delta
    /// that is not between 0 and 1.
    pub fn new(epsilon: f64, delta: f64, sensitivity: u64) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        let (epsilon, least) = checked(epsilon, sensitivity)?;
        let radius =
            goal.radius(guess(goal, sensitivity), least, |epsilon, radius| curve(epsilon, radius, sensitivity));
        Self::with_radius(epsilon.get(), radius.unwrap_or(u64::MAX), sensitivity)
    }

    /// The mechanism with noise of magnitude at most `radius`.
    ///
    /// # Errors
    /// As for [`DiscreteLaplace`](super::DiscreteLaplace), and [`Error::Parameter`] for a sensitivity above 2^61 or a radius
    /// that is below the sensitivity, below its quotient by epsilon, or above 2^62.
    pub fn with_radius(epsilon: f64, radius: u64, sensitivity: u64) -> Result<Self, Error> {
        let (epsilon, least) = checked(epsilon, sensitivity)?;
        if !(least..=LARGEST_RADIUS).contains(&radius) {
            let allowed = format!("from {least} (sensitivity, or sensitivity/epsilon rounded up) to 2**62");
            return Err(Error::parameter("radius", radius, allowed));
        }
        let delta = certain_delta(epsilon.get(), |epsilon| curve(epsilon, radius, sensitivity));
        Self::calibrated(TruncatedLaplacePrivacy { epsilon, delta, radius }, sensitivity, Integers)
    }

    /// The largest magnitude of the noise.
    #[must_use]
    pub fn radius(&self) -> u64 {
        self.privacy.radius
    }
}

impl NoiseKind for TruncatedDiscreteLaplace {
    const NAME: &'static str = "truncated_discrete_laplace";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, DELTA, WHOLE_SENSITIVITY, RADIUS];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let (epsilon, sensitivity) = (arguments.real("epsilon")?, arguments.integer("sensitivity")?);
        if let Some(radius) = arguments.optional("radius")? {
            arguments.without("delta", "a radius")?;
            return Self::with_radius(epsilon, radius, sensitivity);
        }
        Self::new(epsilon, arguments.real("delta")?, sensitivity)
    }
}

impl Privacy for TruncatedLaplacePrivacy {
    /// Delta is the least one for this epsilon, rounded up.
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(self.epsilon.get(), self.delta)
    }
}

/// The parameters, and the smallest radius.
fn checked(epsilon: f64, sensitivity: u64) -> Result<(Epsilon, u64), Error> {
    if sensitivity > LARGEST {
        return Err(Error::parameter("sensitivity", sensitivity, "a positive integer up to 2**61"));
    }
    let epsilon = Epsilon::new(epsilon)?;
    let scale = epsilon.noise(sensitivity, &Integers, 1)?.scale().ratio();
    Ok((epsilon, sensitivity.max(scale.numerator().div_ceil(scale.denominator()) as u64)))
}

/// P(n > radius - sensitivity): with q = exp(-epsilon/sensitivity) it is
/// (q^(radius + 1 - sensitivity) - q^(radius + 1)) / (1 + q - 2 q^(radius + 1)).
fn curve(epsilon: &Ball, radius: u64, sensitivity: u64) -> Ball {
    let power = |count: u64| {
        let exponent = -&(epsilon * &Ball::integer(count, epsilon.precision())).over(sensitivity);
        exp_or_tiny(&exponent).unwrap_or_else(|tiny| tiny)
    };
    let beyond = power(radius + 1);
    let total = &(&Ball::integer(1, epsilon.precision()) + &power(1)) - &beyond.scaled(1);
    (&power(radius + 1 - sensitivity) - &beyond).divided_by(&total)
}

/// Nearly the radius with that delta: sensitivity/epsilon ln((e^epsilon - 1 + 2 delta) / (delta (1 + q))).
fn guess(Goal { epsilon, delta }: Goal, sensitivity: u64) -> f64 {
    let scale = sensitivity as f64 / epsilon;
    let excess = if epsilon < 1.0 {
        (epsilon.exp_m1() + 2.0 * delta).ln()
    } else {
        epsilon + ((2.0 * delta - 1.0) * (-epsilon).exp()).ln_1p()
    };
    scale * (excess - delta.ln() - (-1.0 / scale).exp().ln_1p())
}

impl Calibration<Integers> for TruncatedLaplacePrivacy {
    type Noise = DiscreteLaplace;
    type Sensitivity = u64;

    fn depends_on_count(&self, _sensitivity: u64) -> bool {
        false
    }

    fn noise(
        &self,
        sensitivity: u64,
        numbers: &Integers,
        count: usize,
    ) -> Result<OnGrid<Self::Noise, Integers>, Error> {
        let whole = self.epsilon.noise(sensitivity, numbers, count)?;
        Ok(OnGrid { steps: whole.steps.truncated(self.radius)?, grid: () })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of all P(y) - e^epsilon P(y - d) that are positive, in floating point.
    fn enumerated(epsilon: f64, radius: i64, sensitivity: i64) -> f64 {
        let density = |n: i64| {
            if n.abs() > radius { 0.0 } else { (-epsilon / sensitivity as f64 * n.abs() as f64).exp() }
        };
        let total: f64 = (-radius..=radius).map(density).sum();
        let loss = |y| (density(y) - epsilon.exp() * density(y - sensitivity)).max(0.0);
        // Differences that are 0 but for rounding do not count.
        (-radius..=radius).map(loss).filter(|&loss| loss > 1e-14).sum::<f64>() / total
    }

    #[test]
    fn delta_is_that_of_the_enumeration() {
        for (epsilon, radius, sensitivity) in [(1.0, 14, 1), (0.5, 9, 3), (2.0, 5, 5), (3.0, 40, 7), (0.1, 30, 1)] {
            let mechanism = TruncatedDiscreteLaplace::with_radius(epsilon, radius, sensitivity).unwrap();
            let expected = enumerated(epsilon, radius as i64, sensitivity as i64);
            let delta = mechanism.guarantee().delta.unwrap();
            assert!((delta / expected - 1.0).abs() < 1e-9, "{delta} {expected}");
            assert_eq!((mechanism.guarantee().epsilon, mechanism.radius()), (Some(epsilon), radius));
        }
    }

    #[test]
    fn the_radius_is_the_least() {
        for (epsilon, sensitivity) in [(1.0, 1), (0.01, 1), (2.5, 1000), (700.0, 3), (1e-9, 1), (9e5, 1 << 50)] {
            for delta in [1e-300, 1e-12, 1e-6, 0.01] {
                let made = TruncatedDiscreteLaplace::new(epsilon, delta, sensitivity).unwrap();
                assert!(made.guarantee().delta <= Some(delta));
                if let Ok(less) = TruncatedDiscreteLaplace::with_radius(epsilon, made.radius() - 1, sensitivity) {
                    assert!(less.guarantee().delta > Some(delta), "{epsilon} {sensitivity} {delta} {}", made.radius());
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |made: Result<TruncatedDiscreteLaplace, Error>| made.unwrap_err().to_string();
        assert_eq!(
            message(TruncatedDiscreteLaplace::with_radius(0.5, 3, 2)),
            "radius must be from 4 (sensitivity, or sensitivity/epsilon rounded up) to 2**62, got 3"
        );
        assert!(message(TruncatedDiscreteLaplace::with_radius(0.5, u64::MAX, 2)).contains("2**62"));
        assert!(message(TruncatedDiscreteLaplace::new(0.5, 1e-6, 1 << 62)).starts_with("sensitivity must be"));
        assert!(message(TruncatedDiscreteLaplace::new(0.5, 1.0, 1)).starts_with("delta must be"));
    }
}
