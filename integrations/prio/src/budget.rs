//! Privacy budgets, and the mechanisms that spend them.

use dpnoise_core::Error;
use dpnoise_core::mechanisms::{Additive, Calibration, DiscreteGaussian, DiscreteLaplace, GaussianPrivacy, Integers};
use dpnoise_core::params::{Delta, Epsilon, Rho};
use prio::dp::{DifferentialPrivacyBudget, DpError};

use crate::Sensitivity;

/// A privacy budget, which determines the noise.
pub trait Budget: DifferentialPrivacyBudget {
    /// The privacy parameters of the mechanism.
    type Privacy: Calibration<Integers>;

    /// The mechanism that spends the budget on an aggregate of this sensitivity.
    ///
    /// # Errors
    /// Those of the mechanism.
    fn mechanism(&self, sensitivity: Sensitivity) -> Result<Additive<Self::Privacy, Integers>, Error>;
}

/// Pure differential privacy, by discrete Laplace noise of scale L1 sensitivity / epsilon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PureDp(Epsilon);

/// Zero-concentrated differential privacy, by discrete Gaussian noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZCdp(Rho);

/// Differential privacy with an epsilon and a delta, by discrete Gaussian noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApproximateDp(Epsilon, Delta);

impl PureDp {
    /// The budget `epsilon`.
    ///
    /// # Errors
    /// [`DpError::InvalidParameter`] for an epsilon that is not positive and finite.
    pub fn new(epsilon: f64) -> Result<Self, DpError> {
        Ok(Self(Epsilon::new(epsilon).map_err(refused)?))
    }
}

impl ZCdp {
    /// The budget `rho`, which is half the square of the epsilon that `prio::dp::ZCdpBudget` takes.
    ///
    /// # Errors
    /// [`DpError::InvalidParameter`] for a rho that is not positive and finite.
    pub fn new(rho: f64) -> Result<Self, DpError> {
        Ok(Self(Rho::new(rho).map_err(refused)?))
    }
}

impl ApproximateDp {
    /// The budget `epsilon` and `delta`.
    ///
    /// # Errors
    /// [`DpError::InvalidParameter`] for an epsilon that is not positive and finite, or a delta that is not between 0
    /// and 1.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, DpError> {
        Ok(Self(Epsilon::new(epsilon).map_err(refused)?, Delta::new(delta).map_err(refused)?))
    }
}

fn refused(cause: Error) -> DpError {
    DpError::InvalidParameter(cause.to_string())
}

impl DifferentialPrivacyBudget for PureDp {}
impl DifferentialPrivacyBudget for ZCdp {}
impl DifferentialPrivacyBudget for ApproximateDp {}

impl Budget for PureDp {
    type Privacy = Epsilon;

    fn mechanism(&self, sensitivity: Sensitivity) -> Result<DiscreteLaplace, Error> {
        DiscreteLaplace::new(self.0.get(), sensitivity.l1)
    }
}

impl Budget for ZCdp {
    type Privacy = GaussianPrivacy;

    fn mechanism(&self, sensitivity: Sensitivity) -> Result<DiscreteGaussian, Error> {
        DiscreteGaussian::with_rho(self.0.get(), None, sensitivity.l2)
    }
}

impl Budget for ApproximateDp {
    type Privacy = GaussianPrivacy;

    fn mechanism(&self, sensitivity: Sensitivity) -> Result<DiscreteGaussian, Error> {
        DiscreteGaussian::new(self.0.get(), self.1.get(), sensitivity.l2)
    }
}
