//! The privacy parameters of both Gaussian mechanisms.

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Numbers, OnGrid};
use crate::calibration::{Goal, certain_delta, least_epsilon, zero_or_more};
use crate::error::Error;
use crate::params::Rho;
use crate::samplers::DiscreteGaussian;

/// An epsilon and a delta, or a rho, which may have both as well.
#[derive(Clone, Copy, Debug)]
pub struct GaussianPrivacy {
    pub(super) goal: Option<Goal>,
    pub(super) rho: Option<Rho>,
    /// Sigma is at least this: for real values in sensitivities, for integers in units.
    pub(super) least: f64,
}

impl GaussianPrivacy {
    /// The error for a sigma outside the `range`.
    pub(super) fn out_of_range(self, range: &str, sensitivity: f64) -> Error {
        match (self.rho, self.goal) {
            (None, Some(goal)) => goal.out_of_range(range),
            (rho, _) => {
                let allowed = format!("such that sigma is {range} (sensitivity is {sensitivity:?})");
                Error::parameter("rho", format!("{:?}", rho.map_or(f64::NAN, Rho::get)), allowed)
            }
        }
    }
}

/// How delta follows from epsilon.
pub trait GaussianCurve<V: Numbers>: Calibration<V, Noise = DiscreteGaussian, Sensitivity = f64> {
    /// The delta of a release of `count` values with this noise.
    fn curve(noise: &OnGrid<DiscreteGaussian, V>, sensitivity: f64, count: usize, epsilon: &Ball) -> Ball;
}

impl<V: Numbers> Additive<GaussianPrivacy, V>
where
    GaussianPrivacy: GaussianCurve<V>,
{
    /// Epsilon, unless there is only a rho.
    #[must_use]
    pub fn epsilon(&self) -> Option<f64> {
        self.privacy.goal.map(|goal| goal.epsilon)
    }

    /// Delta, unless there is only a rho.
    #[must_use]
    pub fn delta(&self) -> Option<f64> {
        self.privacy.goal.map(|goal| goal.delta)
    }

    /// Rho, when that was given.
    #[must_use]
    pub fn rho(&self) -> Option<f64> {
        self.privacy.rho.map(Rho::get)
    }

    /// A delta for which a release of `count` values is (epsilon, delta)-differentially private: for one integer, and a
    /// sensitivity that is whole, the least one (Canonne, Kamath and Steinke 2020, Theorem 7).
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not zero or more and finite, or as for [`Additive::noise`].
    pub fn delta_for(&self, epsilon: f64, count: usize) -> Result<f64, Error> {
        let noise = self.noise(count)?;
        Ok(certain_delta(zero_or_more(epsilon)?, self.curve(&noise, count)))
    }

    /// The least epsilon for which [`Additive::delta_for`] is at most `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not above 0 and at most 1, or as for [`Additive::noise`].
    pub fn epsilon_for(&self, delta: f64, count: usize) -> Result<f64, Error> {
        let noise = self.noise(count)?;
        least_epsilon(delta, self.curve(&noise, count))
    }

    fn curve(&self, noise: &OnGrid<DiscreteGaussian, V>, count: usize) -> impl Fn(&Ball) -> Ball {
        move |epsilon| GaussianPrivacy::curve(noise, self.sensitivity, count, epsilon)
    }
}
