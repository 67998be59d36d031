//! The Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006) for real values, on a grid.
//!
//! [`crate::samplers::grid`] has the proof that the release is epsilon-differentially private, floating point included.

use super::additive::{Additive, Calibration, Guarantee, OnGrid, Privacy};
use super::noise_kind::{EPSILON, GRANULARITY, NoiseKind, SENSITIVITY};
use super::real_values::{Reals, ceil_log2_of_quotient, check_sensitivity};
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::params::{Epsilon, Ratio, Scale};
use crate::samplers::DiscreteLaplace;

/// Adds Laplace noise, exactly, to values that are rounded to a grid first.
///
/// ```
/// use dpnoise_core::mechanisms::Laplace;
/// let mean = Laplace::new(1.0, 0.5, None)?.release_one(37.25)?;
/// # assert!(mean.is_finite());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type Laplace = Additive<Epsilon, Reals>;

/// On the finest grid the scale for one value has at most this many steps, as a power of two.
const MOST_EXPONENT: i32 = 51;

impl Laplace {
    /// The mechanism that spends `epsilon` on values whose L1 sensitivity is at most `sensitivity`.
    ///
    /// The default granularity for `count` values is 2^min(ceil(log2(sensitivity/epsilon)) - 40,
    /// floor(log2(sensitivity/(100 count)))), so that their rounding adds at most 1 % to the noise; but the scale for one
    /// value has at most 2^51 steps.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite or whose quotient is out of
    /// range, and for a granularity that is not a power of two or too fine.
    pub fn new(epsilon: f64, sensitivity: f64, granularity: Option<f64>) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon)?;
        check_sensitivity(sensitivity)?;
        let exponent = ceil_log2_of_quotient(sensitivity, epsilon.get());
        let reals = Reals::new(granularity, sensitivity, exponent, MOST_EXPONENT, "sensitivity and epsilon")
            .unwrap_or_else(|| Err(out_of_range(epsilon, sensitivity)))?;
        Self::calibrated(epsilon, sensitivity, reals)
    }
}

impl NoiseKind for Laplace {
    const NAME: &'static str = "laplace";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, SENSITIVITY, GRANULARITY];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let granularity = arguments.optional_real("granularity")?;
        Self::new(arguments.real("epsilon")?, arguments.real("sensitivity")?, granularity)
    }
}

impl Privacy for Epsilon {
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(self.get(), 0.0)
    }
}

impl Calibration<Reals> for Epsilon {
    type Noise = DiscreteLaplace;
    type Sensitivity = f64;

    fn depends_on_count(&self, _sensitivity: f64) -> bool {
        true
    }

    fn noise(&self, sensitivity: f64, reals: &Reals, count: usize) -> Result<OnGrid<DiscreteLaplace, Reals>, Error> {
        let grid = reals.grid(count as u64);
        // Rounding can add less than a step to each difference, so up to count - 1 whole steps in all.
        let steps = grid.steps_vartime(sensitivity).map(|steps| steps + (count.max(1) as u128 - 1));
        let scale = steps.and_then(|steps| Ratio::new(steps, 1)?.checked_div(Ratio::from_f64(self.get())?));
        let noise = scale.and_then(Scale::on_fine_grid).map(|scale| OnGrid::new(grid, DiscreteLaplace::new(scale)));
        noise.ok_or_else(|| match count {
            1 => out_of_range(*self, sensitivity),
            _ => reals.too_many(count, "epsilon", self.get()),
        })
    }
}

fn out_of_range(epsilon: Epsilon, sensitivity: f64) -> Error {
    let allowed = format!(
        "such that sensitivity/epsilon is below 2**940 and, in steps of the grid, from 2**-40 to 2**52 (sensitivity is {sensitivity:?})"
    );
    Error::parameter("epsilon", format!("{:?}", epsilon.get()), allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_grid_follows_the_scale_and_the_length() {
        for (sensitivity, epsilon, count, exponent) in [
            (1.0, 1.0, 1, -40),
            (1.0, 0.1, 1, -36),
            (3.0, 1.0, 1, -38),
            (1e-300, 1.0, 1, -1019),
            (1.0, 1.0, 1 << 30, -40),
            (1.0, 1.0, 1 << 36, -43),
            (1.0, 1e-6, 10_000, -20),
            (1.0, 1e-6, 10_001, -20),
            (1.0, 1e-6, 1 << 20, -27),
            (3.0, 1e-6, 1 << 20, -26),
            (1.0, 1e-6, 10_000_000, -30),
            (1.0, 1e-8, 10_000_000, -24),
        ] {
            let mechanism = Laplace::new(epsilon, sensitivity, None).unwrap();
            let noise = mechanism.noise(count).unwrap();
            assert_eq!(noise.granularity(), 2f64.powi(exponent), "{sensitivity}/{epsilon} {count}");
            let growth = noise.real_scale() * epsilon / sensitivity - 1.0;
            assert!((0.0..0.01).contains(&growth) || exponent == -1019 || epsilon == 1e-8, "{growth}");
        }
        let refused = Laplace::new(1e-12, 1.0, None).unwrap().noise(10_000_000).unwrap_err().to_string();
        assert!(refused.starts_with("epsilon must be larger for a release of 10000000 values"), "{refused}");
        let refused = Laplace::new(1e-12, 1.0, Some(1.0)).unwrap().noise(10_000_000).unwrap_err().to_string();
        assert!(refused.starts_with("granularity must be coarser for a release of 10000000 values"), "{refused}");
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
            (1.0, 1.0, Some(2f64.powi(-52)), "granularity must be at least 4.440892098500626e-16"),
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
