//! The Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006) for real values, on a grid.
//!
//! [`crate::samplers::grid`] has the proof that the release is epsilon-differentially private, floating point included.

use std::sync::Arc;

use super::Noisy;
use super::real_values::{STEPS_EXPONENT, check_finite, check_sensitivity, choose_grid, too_fine};
use crate::error::Error;
use crate::params::{Epsilon, Ratio, Scale};
use crate::samplers::grid::Grid;
use crate::samplers::{self, LastNoise};

/// Adds Laplace noise, exactly, to values that are rounded to a grid first.
///
/// ```
/// use dpnoise_core::mechanisms::{Laplace, Noisy};
/// let mean = Laplace::new(1.0, 0.5, None)?.release_one(37.25)?;
/// # assert!(mean.is_finite());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Laplace {
    epsilon: Epsilon,
    sensitivity: f64,
    grid: Grid,
    /// The sensitivity of one value in steps of the grid.
    steps: u128,
    /// The noise for one value.
    noise: Arc<samplers::DiscreteLaplace>,
    last: LastNoise<samplers::DiscreteLaplace>,
}

impl Laplace {
    /// The mechanism that spends `epsilon` on values whose L1 sensitivity is at most `sensitivity`.
    ///
    /// The default granularity is the power of two 2^ceil(log2(sensitivity/epsilon) - 40).
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite or whose quotient is out of
    /// range, and for a granularity that is not a power of two or too fine.
    pub fn new(epsilon: f64, sensitivity: f64, granularity: Option<f64>) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon)?;
        check_sensitivity(sensitivity)?;
        let exponent = ceil_log2_of_quotient(sensitivity, epsilon.get()) - STEPS_EXPONENT;
        let grid = choose_grid(granularity, exponent, "sensitivity and epsilon")
            .unwrap_or_else(|| Err(out_of_range(epsilon, sensitivity)))?;
        let steps = grid.steps_vartime(sensitivity).ok_or_else(|| out_of_range(epsilon, sensitivity))?;
        let scale = steps_scale(steps, epsilon).ok_or_else(|| out_of_range(epsilon, sensitivity))?;
        let noise = Arc::new(samplers::DiscreteLaplace::new(scale));
        Ok(Self { epsilon, sensitivity, grid, steps, noise, last: LastNoise::default() })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.get()
    }

    /// The L1 sensitivity.
    #[must_use]
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// The granularity of the grid.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.grid.granularity()
    }

    /// The scale of the noise of one value, in its own unit.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.noise.scale().ratio().to_f64() * self.granularity()
    }

    /// The smallest multiple t of the granularity, and half a step for the rounding, such that the error of each value
    /// in a release of `count` values is at most t with probability `level` or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1), or as for [`Noisy::noise`].
    pub fn error(&self, level: f64, count: usize) -> Result<f64, Error> {
        Ok((self.noise(count)?.magnitude_quantile(level)? + 0.5) * self.granularity())
    }
}

fn out_of_range(epsilon: Epsilon, sensitivity: f64) -> Error {
    let allowed = format!(
        "such that sensitivity/epsilon is below 2**940 and, in steps of the grid, from 2**-40 to 2**40 (sensitivity is {sensitivity:?})"
    );
    Error::parameter("epsilon", format!("{:?}", epsilon.get()), allowed)
}

/// The scale of the noise, in steps, for a sensitivity of `steps`.
fn steps_scale(steps: u128, epsilon: Epsilon) -> Option<Scale> {
    Scale::on_grid(Ratio::new(steps, 1)?.checked_div(Ratio::from_f64(epsilon.get())?)?)
}

/// ceil(log2(a/b)) for positive finite doubles, exactly.
pub(super) fn ceil_log2_of_quotient(a: f64, b: f64) -> i32 {
    let split = |x: f64| {
        // A subnormal number is made normal first.
        let (x, bias) = if x < f64::MIN_POSITIVE { (x * 2f64.powi(64), 1023 + 64) } else { (x, 1023) };
        let bits = x.to_bits();
        ((bits >> 52) as i32 - bias, bits & ((1 << 52) - 1))
    };
    let ((exponent_a, fraction_a), (exponent_b, fraction_b)) = (split(a), split(b));
    // The significands' quotient is in (1/2, 2); its logarithm rounds up to 1 exactly when it is above 1.
    exponent_a - exponent_b + i32::from(fraction_a > fraction_b)
}

impl Noisy for Laplace {
    type Value = f64;
    type Noise = samplers::DiscreteLaplace;

    fn noise(&self, count: usize) -> Result<Arc<samplers::DiscreteLaplace>, Error> {
        if count <= 1 {
            return Ok(Arc::clone(&self.noise));
        }
        self.last.get_or(count, || {
            // Rounding can add less than a step to each difference, so up to count - 1 whole steps in all.
            let steps = self.steps + (count as u128 - 1);
            let scale = steps_scale(steps, self.epsilon).ok_or_else(|| too_fine(self.grid, count))?;
            Ok(samplers::DiscreteLaplace::new(scale))
        })
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_finite(values)
    }

    fn add(&self, values: &mut [f64], noise: &[i64]) -> Result<(), Error> {
        self.grid.add_noise(values, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_grid_follows_the_scale() {
        for (sensitivity, epsilon, exponent) in
            [(1.0, 1.0, -40), (1.0, 0.1, -36), (3.0, 1.0, -38), (1e-300, 1.0, -1019)]
        {
            let mechanism = Laplace::new(epsilon, sensitivity, None).unwrap();
            assert_eq!(mechanism.granularity(), 2f64.powi(exponent), "{sensitivity}/{epsilon}");
            assert!((mechanism.scale() * epsilon / sensitivity - 1.0).abs() < 1e-6 || exponent == -1019);
        }
        for (a, b) in [(1.0, 1.0), (1.0, 3.0), (3.0, 1.0), (5e-324, 1.0), (1.0, 5e-324), (f64::MAX, 1.5), (6.0, 3.0)] {
            let exponent = ceil_log2_of_quotient(a, b);
            let exact =
                num_rational::BigRational::from_float(a).unwrap() / num_rational::BigRational::from_float(b).unwrap();
            let two = num_rational::BigRational::from_integer(2.into());
            assert!(exact <= two.pow(exponent) && exact > two.pow(exponent - 1), "{a}/{b}");
        }
    }

    #[test]
    fn a_vector_pays_for_the_rounding_of_each_value() {
        let mechanism = Laplace::new(0.5, 1.0, Some(0.25)).unwrap();
        for (count, steps) in [(0, 4), (1, 4), (2, 5), (10, 13)] {
            assert_eq!(mechanism.noise(count).unwrap().scale().ratio(), Ratio::new(2 * steps, 1).unwrap());
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        for (epsilon, sensitivity, granularity, start) in [
            (-1.0, 1.0, None, "epsilon must be positive and finite, got -1.0"),
            (1.0, f64::INFINITY, None, "sensitivity must be positive and finite, got inf"),
            (1.0, 0.0, None, "sensitivity must be positive and finite, got 0.0"),
            (1.0, 1.0, Some(0.3), "granularity must be a power of two"),
            (1.0, 1.0, Some(2f64.powi(-41)), "granularity must be at least 9.094947017729282e-13"),
            (1e-300, 1.0, None, "epsilon must be such that sensitivity/epsilon is below 2**940"),
            (1e300, 1.0, None, "epsilon must be such that"),
        ] {
            let message = Laplace::new(epsilon, sensitivity, granularity).unwrap_err().to_string();
            assert!(message.starts_with(start), "{message}");
        }
    }

    #[test]
    fn nothing_is_drawn_for_values_that_are_not_finite() {
        let mechanism = Laplace::new(1.0, 1.0, None).unwrap();
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut dry = crate::rng::ScriptedRng::new([]);
            let refused = mechanism.release_with(&mut [1.0, bad, 2.0], &mut dry).unwrap_err();
            assert_eq!(refused, Error::data("x", "must be finite: no NaN and no infinity"));
        }
    }
}
