//! The Gaussian mechanism (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006) for real values, on a grid.
//!
//! [`super::calibration`] has the proof that the release is private, floating point included.

use std::sync::Arc;

use dpnoise_kernels::arith::ball::Ball;

use super::Noisy;
use super::calibration::{Goal, Method, certain_delta, concentrated_ratio, continuous, least_epsilon, vector};
use super::real_values::{Grids, OnGrid, check_finite, check_sensitivity};
use crate::error::Error;
use crate::params::{Delta, Epsilon, Ratio, Rho, Scale};
use crate::samplers::grid::Grid;
use crate::samplers::{self, LastNoise};

/// Adds discrete Gaussian noise to values that are rounded to a grid first.
///
/// ```
/// use dpnoise_core::mechanisms::{Gaussian, Method, Noisy};
/// let mut means = [37.25, 12.5, 0.0];
/// Gaussian::new(1.0, 1e-6, 0.5, Method::Analytic, None)?.release(&mut means, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gaussian {
    goal: Option<Goal>,
    rho: Option<Rho>,
    sensitivity: f64,
    /// Sigma is at least this many sensitivities.
    ratio: f64,
    grids: Grids,
    /// The noise for one value.
    noise: Arc<OnGrid<samplers::DiscreteGaussian>>,
    last: LastNoise<OnGrid<samplers::DiscreteGaussian>>,
}

/// On the finest grid twice the sigma for one value has at most this many steps, as a power of two.
const MOST_EXPONENT: i32 = 44;

impl Gaussian {
    /// The mechanism that spends `epsilon` and `delta` on values whose L2 sensitivity is at most `sensitivity`.
    ///
    /// The default granularity for `count` values is 2^min(ceil(log2(2 sigma)) - 40,
    /// floor(log2(sensitivity/(100 (1 + ceil(sqrt(count))))))), so that their rounding adds at most 1 % to the noise; but
    /// sigma for one value has at most 2^43 steps.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite, a delta that is not between 0
    /// and 1, an epsilon of 1 or more with [`Method::Classical`], a sigma out of range, and a granularity that is not a
    /// power of two or too fine.
    pub fn new(
        epsilon: f64,
        delta: f64,
        sensitivity: f64,
        method: Method,
        granularity: Option<f64>,
    ) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        check_sensitivity(sensitivity)?;
        Self::calibrated(Some(goal), None, goal.ratio(method)?, sensitivity, granularity)
    }

    /// The mechanism that is `rho`-zero-concentrated differentially private. A `delta` determines an epsilon, which
    /// holds for any number of values.
    ///
    /// # Errors
    /// As for [`Gaussian::new`], and for a rho that is not positive and finite.
    pub fn with_rho(rho: f64, delta: Option<f64>, sensitivity: f64, granularity: Option<f64>) -> Result<Self, Error> {
        let rho = Rho::new(rho)?;
        let delta = delta.map(Delta::new).transpose()?;
        check_sensitivity(sensitivity)?;
        let ratio = concentrated_ratio(rho);
        let goal = |delta: Delta| -> Result<Goal, Error> {
            let curve = |epsilon: &Ball| continuous(epsilon, &Ball::from_f64(ratio, epsilon.precision()));
            Ok(Goal { epsilon: least_epsilon(delta, curve)?, delta: delta.get() })
        };
        let goal = delta.map(goal).transpose()?;
        Self::calibrated(goal, Some(rho), ratio, sensitivity, granularity)
    }

    fn calibrated(
        goal: Option<Goal>,
        rho: Option<Rho>,
        ratio: f64,
        sensitivity: f64,
        granularity: Option<f64>,
    ) -> Result<Self, Error> {
        let out_of_range = || {
            let range = "below 2**939 and, in steps of the grid, from 2**-20 to 2**44";
            match (rho, goal) {
                (None, Some(goal)) => goal.out_of_range(range),
                (rho, _) => {
                    let allowed = format!("such that sigma is {range} (sensitivity is {sensitivity:?})");
                    Error::parameter("rho", format!("{:?}", rho.map_or(f64::NAN, Rho::get)), allowed)
                }
            }
        };
        let sigma = &Ball::from_f64(ratio, 128) * &Ball::from_f64(sensitivity, 128);
        let exponent = sigma.ceil_log2() as i32 + 1;
        let grids = Grids::new(granularity, sensitivity, exponent, MOST_EXPONENT, "sigma")
            .unwrap_or_else(|| Err(out_of_range()))?;
        let noise = noise_for(goal, ratio, sensitivity, grids, 1).ok_or_else(out_of_range)?;
        Ok(Self { goal, rho, sensitivity, ratio, grids, noise: Arc::new(noise), last: LastNoise::default() })
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

    /// The granularity of the grid for one value.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.noise.granularity()
    }

    /// Sigma of the noise of one value, in its own unit.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.noise.real_scale()
    }

    /// Sigma is at least this many sensitivities, both in steps of the grid, in a release of any number of values. The
    /// ratio of a single value may be larger.
    #[must_use]
    pub fn multiplier(&self) -> f64 {
        self.ratio
    }

    /// The smallest multiple t of the granularity, and half a step for the rounding, such that the error of each value
    /// in a release of `count` values is at most t with probability `level` or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1), or as for [`Noisy::noise`].
    pub fn error(&self, level: f64, count: usize) -> Result<f64, Error> {
        let noise = self.noise(count)?;
        Ok((noise.steps().magnitude_quantile(level)? + 0.5) * noise.granularity())
    }

    /// A delta for which a release of `count` values is (epsilon, delta)-differentially private.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, or as for [`Noisy::noise`].
    pub fn delta_for(&self, epsilon: f64, count: usize) -> Result<f64, Error> {
        let noise = self.noise(count)?;
        Ok(certain_delta(Epsilon::new(epsilon)?, |epsilon| self.curve(&noise, count, epsilon)))
    }

    /// An epsilon for which a release of `count` values is (epsilon, delta)-differentially private.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not between 0 and 1, or as for [`Noisy::noise`].
    pub fn epsilon_for(&self, delta: f64, count: usize) -> Result<f64, Error> {
        let noise = self.noise(count)?;
        least_epsilon(Delta::new(delta)?, |epsilon| self.curve(&noise, count, epsilon))
    }

    fn curve(&self, noise: &OnGrid<samplers::DiscreteGaussian>, count: usize, epsilon: &Ball) -> Ball {
        let sigma = Ball::from_f64(noise.scale().ratio().to_f64(), epsilon.precision());
        let shift = shift(noise.grid(), self.sensitivity, count).expect("there is noise for this shift");
        vector(epsilon, &sigma, &shift, count.max(1) as u64)
    }
}

/// What rounding may add to the sensitivity of `count` values, in steps: it changes each difference by less than a step.
fn rounding(count: usize) -> u64 {
    if count > 1 { (count as u64 - 1).isqrt() + 1 } else { 0 }
}

/// The sensitivity of `count` values on the grid, in steps, in the L2 norm.
fn shift(grid: Grid, sensitivity: f64, count: usize) -> Option<Ball> {
    Some(Ball::integer(grid.steps_vartime(sensitivity)? + u128::from(rounding(count)), 128))
}

/// The noise for `count` values, or `None` when it is out of range.
fn noise_for(
    goal: Option<Goal>,
    ratio: f64,
    sensitivity: f64,
    grids: Grids,
    count: usize,
) -> Option<OnGrid<samplers::DiscreteGaussian>> {
    let grid = grids.of(1 + rounding(count));
    let shift = shift(grid, sensitivity, count)?;
    let least = (&Ball::from_f64(ratio, 128) * &shift).upper_f64();
    let sigma = goal.map_or(Some(least), |goal| goal.sigma(least, &shift, count.max(1)))?;
    Some(OnGrid::new(grid, samplers::DiscreteGaussian::new(Scale::on_grid(Ratio::from_f64(sigma)?)?).ok()?))
}

impl Noisy for Gaussian {
    type Value = f64;
    type Noise = OnGrid<samplers::DiscreteGaussian>;

    fn noise(&self, count: usize) -> Result<Arc<Self::Noise>, Error> {
        if count <= 1 {
            return Ok(Arc::clone(&self.noise));
        }
        self.last.get_or(count, || {
            noise_for(self.goal, self.ratio, self.sensitivity, self.grids, count).ok_or_else(|| {
                let (parameter, value) = match (self.rho, self.goal) {
                    (None, Some(goal)) => ("epsilon", goal.epsilon),
                    (rho, _) => ("rho", rho.map_or(f64::NAN, Rho::get)),
                };
                self.grids.too_many(count, parameter, value)
            })
        })
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_finite(values)
    }

    fn add(noise: &Self::Noise, values: &mut [f64], samples: &[i64]) -> Result<(), Error> {
        noise.add(values, samples)
    }
}
