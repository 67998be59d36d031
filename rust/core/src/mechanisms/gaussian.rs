//! The Gaussian mechanism (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006) for real values, on a grid.
//!
//! [`crate::calibration`] has the proof that the release is private, floating point included.

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Curve, OnGrid, addressable};
use super::gaussian_privacy::GaussianPrivacy;
use super::noise_kind::{DELTA, EPSILON, GRANULARITY, NoiseKind, RHO, SENSITIVITY};
use super::real_values::{Reals, check_sensitivity};
use crate::arguments::{Arguments, Parameter};
use crate::calibration::{Goal, Method, concentrated_ratio, continuous, least_epsilon, vector};
use crate::error::Error;
use crate::params::{Delta, Ratio, Rho, Scale};
use crate::samplers::DiscreteGaussian;
use crate::samplers::grid::Grid;

/// Adds discrete Gaussian noise to values that are rounded to a grid first.
///
/// ```
/// use dpnoise_core::mechanisms::{Gaussian, Method};
/// let mut means = [37.25, 12.5, 0.0];
/// Gaussian::new(1.0, 1e-6, 0.5, Method::Analytic, None)?.release(&mut means, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type Gaussian = Additive<GaussianPrivacy, Reals>;

/// How sigma follows from epsilon and delta.
const METHOD: Parameter = Parameter::word("method", &["analytic", "classical"], "the formula of sigma");

/// On the finest grid twice the sigma for one value has at most this many steps, as a power of two.
const MOST_EXPONENT: i32 = 44;

/// The allowed sigmas.
const RANGE: &str = "below 2**939 and, in steps of the grid, from 2**-20 to 2**44";

impl Gaussian {
    /// The mechanism that spends `epsilon` and `delta` on values whose L2 sensitivity is at most `sensitivity`.
    ///
    /// The default granularity for `count` values is 2^min(ceil(log2(2 sigma)) - 40,
    /// floor(log2(sensitivity/(100 (1 + ceil(sqrt(count))))))), so that their rounding adds at most 1 % to the noise; but
    /// sigma for one value has at most 2^43 steps.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite, a delta that is not between 0
    /// and 1, an epsilon above 2 ln(5/2) with [`Method::Classical`], a sigma out of range, and a granularity that is not a
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
        let privacy = GaussianPrivacy { goal: Some(goal), rho: None, least: goal.ratio(method)? };
        Self::on_grid(privacy, sensitivity, granularity)
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
            Ok(Goal { epsilon: least_epsilon(delta.get(), curve)?, delta: delta.get() })
        };
        let privacy = GaussianPrivacy { goal: delta.map(goal).transpose()?, rho: Some(rho), least: ratio };
        Self::on_grid(privacy, sensitivity, granularity)
    }

    fn on_grid(privacy: GaussianPrivacy, sensitivity: f64, granularity: Option<f64>) -> Result<Self, Error> {
        let sigma = &Ball::from_f64(privacy.least, 128) * &Ball::from_f64(sensitivity, 128);
        let exponent = sigma.ceil_log2() as i32 + 1;
        let reals = Reals::new(granularity, sensitivity, exponent, MOST_EXPONENT, "sigma")
            .unwrap_or_else(|| Err(privacy.out_of_range(RANGE, sensitivity)))?;
        Self::calibrated(privacy, sensitivity, reals)
    }

    /// Sigma is at least this many sensitivities, both in steps of the grid, in a release of any number of values. The
    /// ratio of a single value may be larger.
    #[must_use]
    pub fn multiplier(&self) -> f64 {
        self.privacy.least
    }
}

impl NoiseKind for Gaussian {
    const NAME: &'static str = "gaussian";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, DELTA, SENSITIVITY, RHO, METHOD, GRANULARITY];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let (sensitivity, granularity) = (arguments.real("sensitivity")?, arguments.optional_real("granularity")?);
        if let Some(rho) = arguments.optional_real("rho")? {
            arguments.without("epsilon", "rho")?;
            return Self::with_rho(rho, arguments.optional_real("delta")?, sensitivity, granularity);
        }
        let method = if arguments.word("method")? == "classical" { Method::Classical } else { Method::Analytic };
        Self::new(arguments.real("epsilon")?, arguments.real("delta")?, sensitivity, method, granularity)
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

impl Calibration<Reals> for GaussianPrivacy {
    type Noise = DiscreteGaussian;
    type Sensitivity = f64;

    fn depends_on_count(&self, _sensitivity: f64) -> bool {
        true
    }

    fn noise(&self, sensitivity: f64, reals: &Reals, count: usize) -> Result<OnGrid<DiscreteGaussian, Reals>, Error> {
        let grid = reals.grid(1 + rounding(count));
        let noise = || {
            let shift = shift(grid, sensitivity, count)?;
            let least = (&Ball::from_f64(self.least, 128) * &shift).upper_f64();
            let sigma = self.goal.map_or(Some(least), |goal| goal.sigma(least, &shift, count))?;
            DiscreteGaussian::new(Scale::on_grid(Ratio::from_f64(sigma)?)?).ok()
        };
        noise().map(|noise| OnGrid::new(grid, noise)).ok_or_else(|| match (count, self.rho, self.goal) {
            (1, ..) => self.out_of_range(RANGE, sensitivity),
            (_, None, Some(goal)) => reals.too_many(count, "epsilon", goal.epsilon),
            (_, rho, _) => reals.too_many(count, "rho", rho.map_or(f64::NAN, Rho::get)),
        })
    }

    fn curve(mechanism: &Gaussian, count: u64) -> Result<Curve<'_>, Error> {
        let values = addressable(count)?;
        let noise = mechanism.noise(values)?;
        let shift = shift(noise.grid.0, mechanism.sensitivity, values).expect("there is noise for this shift");
        Ok(Box::new(move |epsilon| {
            let sigma = Ball::from_f64(noise.scale().ratio().to_f64(), epsilon.precision());
            vector(epsilon, &sigma, &shift, count.max(1))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two vectors of n values that are rounded to the grid are up to sqrt(n) steps further apart; one value, whose
    /// sensitivity is rounded up to whole steps, is not.
    #[test]
    fn the_rounding_to_the_grid_is_a_part_of_the_shift() {
        assert_eq!([1, 2, 3, 5, 6, 10, 17].map(rounding), [0, 2, 2, 3, 3, 4, 5]);
        let grid = Grid::new(0.5).unwrap();
        assert_eq!([1, 5].map(|count| shift(grid, 1.75, count).unwrap().upper_f64()), [4.0, 7.0]);
    }
}
