//! The discrete Gaussian mechanism (Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy").
//!
//! [`crate::calibration`] has the proof that the release is private, of one integer and of many.

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Curve, Integers, OnGrid, addressable};
use super::gaussian_privacy::GaussianPrivacy;
use super::noise_kind::{DELTA, EPSILON, NoiseKind, RHO, SENSITIVITY};
use crate::arguments::{Arguments, Parameter};
use crate::calibration::{ANY_COUNT, Goal, Method, concentrated_ratio, discrete, least_epsilon, vector};
use crate::error::Error;
use crate::params::{Delta, Rho, Scale};
use crate::samplers;

/// Adds discrete Gaussian noise to integers.
///
/// ```
/// use dpnoise_core::mechanisms::DiscreteGaussian;
/// let mut counts = [120, 5, 0];
/// DiscreteGaussian::new(1.0, 1e-6, 1.0)?.release(&mut counts, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type DiscreteGaussian = Additive<GaussianPrivacy, Integers>;

/// The largest sensitivity.
const LARGEST: f64 = (1u64 << 40) as f64;

/// The allowed sigmas.
pub(super) const RANGE: &str = "from 2**-20 to 2**40";

impl DiscreteGaussian {
    /// The mechanism that spends `epsilon` and `delta` on integers whose L2 sensitivity is at most `sensitivity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a delta that is not between 0 and 1, a
    /// sensitivity that is not from 1 to 2^40, or a sigma that is not from 2^-20 to 2^40.
    pub fn new(epsilon: f64, delta: f64, sensitivity: f64) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        check_sensitivity(sensitivity)?;
        let least = sigma_for(goal, sensitivity, 1)?;
        Self::calibrated(GaussianPrivacy { goal: Some(goal), rho: None, least }, sensitivity, Integers)
    }

    /// The mechanism that is `rho`-zero-concentrated differentially private. A `delta` determines an epsilon, which
    /// holds for any number of values.
    ///
    /// # Errors
    /// As for [`DiscreteGaussian::new`], and for a rho that is not positive and finite.
    pub fn with_rho(rho: f64, delta: Option<f64>, sensitivity: f64) -> Result<Self, Error> {
        let rho = Rho::new(rho)?;
        let delta = delta.map(Delta::new).transpose()?;
        check_sensitivity(sensitivity)?;
        let sigma = (&Ball::from_f64(concentrated_ratio(rho), 128) * &Ball::from_f64(sensitivity, 128)).upper_f64();
        let privacy = GaussianPrivacy { goal: None, rho: Some(rho), least: sigma };
        let mut mechanism = Self::calibrated(privacy, sensitivity, Integers)?;
        if let Some(delta) = delta {
            let epsilon = least_epsilon(delta.get(), |epsilon| curve(epsilon, sigma, sensitivity, ANY_COUNT))?;
            mechanism.privacy.goal = Some(Goal { epsilon, delta: delta.get() });
        }
        Ok(mechanism)
    }
}

impl NoiseKind for DiscreteGaussian {
    const NAME: &'static str = "discrete_gaussian";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, DELTA, SENSITIVITY, RHO];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let sensitivity = arguments.real("sensitivity")?;
        if let Some(rho) = arguments.optional_real("rho")? {
            arguments.without("epsilon", "rho")?;
            return Self::with_rho(rho, arguments.optional_real("delta")?, sensitivity);
        }
        Self::new(arguments.real("epsilon")?, arguments.real("delta")?, sensitivity)
    }
}

/// Sigma for a release of `count` integers.
pub(super) fn sigma_for(goal: Goal, sensitivity: f64, count: usize) -> Result<f64, Error> {
    let sigma = match exact_shift(sensitivity, count as u64) {
        Some(shift) => goal.sigma_of_one(shift),
        // At least the sigma of continuous noise, which is nearly sufficient.
        None => goal.sigma(goal.ratio(Method::Analytic)? * sensitivity, &Ball::from_f64(sensitivity, 128), count),
    };
    sigma.ok_or_else(|| goal.out_of_range(RANGE))
}

pub(super) fn check_sensitivity(sensitivity: f64) -> Result<(), Error> {
    if (1.0..=LARGEST).contains(&sensitivity) {
        Ok(())
    } else {
        Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "a number from 1 to 2**40"))
    }
}

/// The change of the only integer that changes, if the sensitivity determines it.
/// A sensitivity that is no integer is never rounded down, although the change of an integer is: it may have been
/// computed in floating point, and the double of sqrt(3)^2 is slightly below 3.
pub(super) fn exact_shift(sensitivity: f64, count: u64) -> Option<u64> {
    let is_single = count <= 1 || sensitivity == 1.0;
    (is_single && sensitivity.fract() == 0.0).then_some(sensitivity as u64)
}

/// The delta of a release of `count` integers.
fn curve(epsilon: &Ball, sigma: f64, sensitivity: f64, count: u64) -> Ball {
    let sigma = Ball::from_f64(sigma, epsilon.precision());
    match exact_shift(sensitivity, count) {
        Some(shift) => discrete(epsilon, &sigma, shift),
        None => vector(epsilon, &sigma, &Ball::from_f64(sensitivity, epsilon.precision()), count),
    }
}

impl Calibration<Integers> for GaussianPrivacy {
    type Noise = samplers::DiscreteGaussian;
    type Sensitivity = f64;

    fn depends_on_count(&self, sensitivity: f64) -> bool {
        self.goal.is_some() && sensitivity != 1.0
    }

    fn noise(&self, sensitivity: f64, _: &Integers, count: usize) -> Result<OnGrid<Self::Noise, Integers>, Error> {
        let sigma = match self.goal {
            Some(goal) if count > 1 => goal.sigma(self.least, &Ball::from_f64(sensitivity, 128), count),
            _ => Some(self.least),
        };
        let noise = sigma.and_then(|sigma| samplers::DiscreteGaussian::new(Scale::from_f64(sigma).ok()?).ok());
        let steps = noise.ok_or_else(|| self.out_of_range(RANGE, sensitivity))?;
        Ok(OnGrid { steps, grid: () })
    }

    fn curve(mechanism: &DiscreteGaussian, count: u64) -> Result<Curve<'_>, Error> {
        let sigma = mechanism.noise(addressable(count)?)?.scale().ratio().to_f64();
        Ok(Box::new(move |epsilon| curve(epsilon, sigma, mechanism.sensitivity, count)))
    }
}
