//! The privacy parameters of both Gaussian mechanisms.

use super::additive::{Guarantee, Privacy};
use crate::calibration::Goal;
use crate::error::Error;
use crate::params::Rho;

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

impl Privacy for GaussianPrivacy {
    fn guarantee(&self) -> Guarantee {
        let (epsilon, delta) = self.goal.map(|goal| (goal.epsilon, goal.delta)).unzip();
        Guarantee { epsilon, delta, rho: self.rho.map(Rho::get) }
    }
}
