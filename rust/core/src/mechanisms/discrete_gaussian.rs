//! The discrete Gaussian mechanism (Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy").
//!
//! [`super::calibration`] has the proof that the release is private, of one integer and of many.

use std::sync::Arc;

use dpnoise_kernels::arith::ball::Ball;

use super::calibration::{ANY_COUNT, Goal, Method, certain_delta, concentrated_ratio, discrete, least_epsilon, vector};
use super::{Noisy, add_saturating};
use crate::error::Error;
use crate::params::{Delta, Epsilon, Rho, Scale};
use crate::samplers::{self, LastNoise};

/// Adds discrete Gaussian noise to integers.
///
/// ```
/// use dpnoise_core::mechanisms::{DiscreteGaussian, Noisy};
/// let mut counts = [120, 5, 0];
/// DiscreteGaussian::new(1.0, 1e-6, 1.0)?.release(&mut counts, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteGaussian {
    goal: Option<Goal>,
    rho: Option<Rho>,
    sensitivity: f64,
    /// The noise for one value.
    noise: Arc<samplers::DiscreteGaussian>,
    last: LastNoise<samplers::DiscreteGaussian>,
}

/// The largest sensitivity.
const LARGEST: f64 = (1u64 << 40) as f64;

/// The allowed sigmas.
const RANGE: &str = "from 2**-20 to 2**40";

impl DiscreteGaussian {
    /// The mechanism that spends `epsilon` and `delta` on integers whose L2 sensitivity is at most `sensitivity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a delta that is not between 0 and 1, a
    /// sensitivity that is not from 1 to 2^40, or a sigma that is not from 2^-20 to 2^40.
    pub fn new(epsilon: f64, delta: f64, sensitivity: f64) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        check_sensitivity(sensitivity)?;
        let sigma = match exact_shift(sensitivity, 1) {
            Some(shift) => goal.sigma_of_one(shift),
            // At least the sigma of continuous noise, which is nearly sufficient.
            None => goal.sigma(goal.ratio(Method::Analytic)? * sensitivity, &Ball::from_f64(sensitivity, 128), 1),
        };
        let noise = sigma.and_then(noise_of).ok_or_else(|| goal.out_of_range(RANGE))?;
        Ok(Self { goal: Some(goal), rho: None, sensitivity, noise: Arc::new(noise), last: LastNoise::default() })
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
        let noise = noise_of(sigma).ok_or_else(|| {
            let allowed = format!("such that sigma is {RANGE} (sensitivity is {sensitivity:?})");
            Error::parameter("rho", format!("{:?}", rho.get()), allowed)
        })?;
        let goal = |delta: Delta| -> Result<Goal, Error> {
            let epsilon = least_epsilon(delta, |epsilon| curve(epsilon, sigma, sensitivity, ANY_COUNT))?;
            Ok(Goal { epsilon, delta: delta.get() })
        };
        let goal = delta.map(goal).transpose()?;
        Ok(Self { goal, rho: Some(rho), sensitivity, noise: Arc::new(noise), last: LastNoise::default() })
    }

    /// Epsilon, unless there is only a rho.
    #[must_use]
    pub fn epsilon(&self) -> Option<f64> {
        self.goal.map(|goal| goal.epsilon)
    }

    /// Delta, unless there is only a rho.
    #[must_use]
    pub fn delta(&self) -> Option<f64> {
        self.goal.map(|goal| goal.delta)
    }

    /// Rho, when that was given.
    #[must_use]
    pub fn rho(&self) -> Option<f64> {
        self.rho.map(Rho::get)
    }

    /// The L2 sensitivity.
    #[must_use]
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Sigma of the noise of one value.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.noise.scale().ratio().to_f64()
    }

    /// The smallest t such that the noise of each value in a release of `count` values is at most t with probability
    /// `level` or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1), or as for [`Noisy::noise`].
    pub fn error(&self, level: f64, count: usize) -> Result<f64, Error> {
        self.noise(count)?.magnitude_quantile(level)
    }

    /// The least delta for which the release of one integer is (epsilon, delta)-differentially private (Theorem 7), if the
    /// sensitivity is whole; for more integers and a sensitivity above 1, one for which it is.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, or as for [`Noisy::noise`].
    pub fn delta_for(&self, epsilon: f64, count: usize) -> Result<f64, Error> {
        let sigma = self.noise(count)?.scale().ratio().to_f64();
        Ok(certain_delta(Epsilon::new(epsilon)?, |epsilon| curve(epsilon, sigma, self.sensitivity, count as u64)))
    }

    /// The least epsilon for which [`DiscreteGaussian::delta_for`] is at most `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not between 0 and 1, or as for [`Noisy::noise`].
    pub fn epsilon_for(&self, delta: f64, count: usize) -> Result<f64, Error> {
        let sigma = self.noise(count)?.scale().ratio().to_f64();
        least_epsilon(Delta::new(delta)?, |epsilon| curve(epsilon, sigma, self.sensitivity, count as u64))
    }
}

fn check_sensitivity(sensitivity: f64) -> Result<(), Error> {
    if (1.0..=LARGEST).contains(&sensitivity) {
        Ok(())
    } else {
        Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "a number from 1 to 2**40"))
    }
}

fn noise_of(sigma: f64) -> Option<samplers::DiscreteGaussian> {
    samplers::DiscreteGaussian::new(Scale::from_f64(sigma).ok()?).ok()
}

/// The change of the only integer that changes, if the sensitivity determines it.
/// A sensitivity that is no integer is never rounded down, although the change of an integer is: it may have been
/// computed in floating point, and the double of sqrt(3)^2 is slightly below 3.
fn exact_shift(sensitivity: f64, count: u64) -> Option<u64> {
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

impl Noisy for DiscreteGaussian {
    type Value = i64;
    type Noise = samplers::DiscreteGaussian;

    fn noise(&self, count: usize) -> Result<Arc<samplers::DiscreteGaussian>, Error> {
        let Some(goal) = self.goal.filter(|_| count > 1 && self.sensitivity != 1.0) else {
            return Ok(Arc::clone(&self.noise));
        };
        self.last.get_or(count, || {
            let sigma = goal.sigma(self.scale(), &Ball::from_f64(self.sensitivity, 128), count);
            sigma.and_then(noise_of).ok_or_else(|| goal.out_of_range(RANGE))
        })
    }

    fn check(&self, _values: &[i64]) -> Result<(), Error> {
        Ok(())
    }

    fn add(_noise: &Self::Noise, values: &mut [i64], samples: &[i64]) -> Result<(), Error> {
        add_saturating(values, samples)
    }
}
