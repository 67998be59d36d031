//! The common part of mechanisms that choose among candidates by their scores: the parameters, the grid and the scale.

use crate::error::Error;
use crate::params::{Epsilon, Ratio, RealScale, Scale, check_level};
use crate::samplers::{Candidates, Grid, Selection};

/// Unless it is the finest grid of all, a scale has about this many steps, as a power of two.
const STEPS_EXPONENT: i32 = 40;

/// A checked choice of parameters.
///
/// Scores are rounded to a grid of steps g, half up. Rounding is monotone, and a score that changes by at most the
/// sensitivity moves by at most D = ceil(sensitivity / g) steps. One round costs epsilon / rounds and has a scale of
/// 2 D rounds / epsilon steps, or half of that when scores are monotonic.
#[derive(Clone, Debug)]
pub struct Selector {
    epsilon: Epsilon,
    sensitivity: f64,
    monotonic: bool,
    grid: Grid,
    selection: Selection,
}

impl Selector {
    /// The selector that spends `epsilon` in `rounds` rounds on scores each of which changes by at most `sensitivity`.
    ///
    /// The granularity is the power of two 2^ceil(log2(scale) - 40), if there is a grid that fine.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite or whose quotient is out of
    /// range.
    pub(super) fn new(epsilon: f64, sensitivity: f64, monotonic: bool, rounds: u64) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon)?;
        if !(sensitivity.is_finite() && sensitivity > 0.0) {
            return Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "positive and finite"));
        }
        let shares = u128::from(rounds) * if monotonic { 1 } else { 2 };
        let parts = || {
            let scale = RealScale::from_f64(shares as f64 * (sensitivity / epsilon.get()))?;
            let grid = Grid::at_least(scale.ceil_log2() - STEPS_EXPONENT)?;
            let steps = grid.steps_vartime(sensitivity)?.checked_mul(shares)?;
            let scale = Scale::on_grid(Ratio::new(steps, 1)?.checked_div(Ratio::from_f64(epsilon.get())?)?)?;
            Some((grid, Selection::new(scale).ok()?))
        };
        let (grid, selection) = parts().ok_or_else(|| {
            let allowed = format!(
                "such that sensitivity/epsilon is below 2**900 and, in steps of the grid, at most 2**43 (sensitivity is {sensitivity:?})"
            );
            Error::parameter("epsilon", format!("{:?}", epsilon.get()), allowed)
        })?;
        Ok(Self { epsilon, sensitivity, monotonic, grid, selection })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.get()
    }

    /// The most that a score changes.
    #[must_use]
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Whether all scores change in the same direction.
    #[must_use]
    pub fn is_monotonic(&self) -> bool {
        self.monotonic
    }

    /// The granularity of the grid.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.grid.granularity()
    }

    /// The scale, in the unit of the scores.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.selection.scale().ratio().to_f64() * self.granularity()
    }

    /// A bound on how far the chosen score is below the best remaining score, with probability `level` or more for each
    /// round, among `count` candidates: scale ln(count / (1 - level)) and a step for the rounding; in floating point.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1) or there are no candidates.
    pub fn error(&self, count: u64, level: f64) -> Result<f64, Error> {
        check_level(level)?;
        if count == 0 {
            return Err(Error::parameter("count", count, "a positive integer"));
        }
        Ok(self.scale() * (count as f64 / (1.0 - level)).ln() + self.granularity())
    }

    /// The candidates with these scores.
    ///
    /// # Errors
    /// As for [`Candidates::new`].
    pub(super) fn candidates<'a>(&self, scores: &'a [f64]) -> Result<Candidates<'a>, Error> {
        Candidates::new(self.grid, scores)
    }

    /// The sampler of the choices.
    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The grid of the scores.
    pub(super) fn grid(&self) -> Grid {
        self.grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms::{Exponential, ReportNoisyMax, TopK};

    #[test]
    fn the_best_by_far_is_released() {
        let scores = [0.0, 1000.0, 2000.0]; // each chance of another choice is below exp(-200)
        assert_eq!(Exponential::new(1.0, 1.0, false).unwrap().release(&scores), Ok(2));
        assert_eq!(ReportNoisyMax::new(1.0, 1.0, false).unwrap().release(&scores), Ok(2));
        assert_eq!(TopK::new(2, 1.0, 1.0, false).unwrap().release(&scores), Ok(vec![2, 1]));
    }

    #[test]
    fn the_scale_is_that_of_the_definition() {
        for (epsilon, sensitivity, monotonic, rounds, scale) in [
            (1.0, 1.0, false, 1, 2.0),
            (1.0, 1.0, true, 1, 1.0),
            (0.25, 3.0, false, 1, 24.0),
            (0.5, 1.0, true, 7, 14.0),
            (1e-3, 2f64.powi(830), false, 2, 4e3 * 2f64.powi(830)),
            (1e6, 1.0, false, 1, 2e-6),
        ] {
            let selector = Selector::new(epsilon, sensitivity, monotonic, rounds).unwrap();
            assert!((selector.scale() / scale - 1.0).abs() < 1e-11, "{epsilon} {sensitivity}");
            let steps = selector.scale() / selector.granularity();
            assert!((2f64.powi(39)..=2f64.powi(40) * (1.0 + 1e-11)).contains(&steps), "{steps}");
        }
        // A sensitivity that is no multiple of the granularity is rounded up.
        let coarse = Selector::new(1e-12, 1.0, false, 1).unwrap();
        assert!(coarse.scale() >= 2e12 && coarse.granularity() <= 2.0, "{}", coarse.granularity());
    }

    #[test]
    fn bad_parameters_are_named() {
        for (epsilon, sensitivity, start) in [
            (0.0, 1.0, "epsilon must be positive and finite, got 0.0"),
            (f64::NAN, 1.0, "epsilon must be positive and finite, got NaN"),
            (1.0, 0.0, "sensitivity must be positive and finite, got 0.0"),
            (1.0, f64::INFINITY, "sensitivity must be positive and finite, got inf"),
            (1e-300, 1.0, "epsilon must be such that sensitivity/epsilon is below"),
            (1e300, 1e-300, "epsilon must be such that"),
        ] {
            let message = Selector::new(epsilon, sensitivity, false, 1).unwrap_err().to_string();
            assert!(message.starts_with(start), "{message}");
        }
        let selector = Selector::new(1.0, 1.0, false, 1).unwrap();
        assert!(selector.error(10, 1.0).unwrap_err().to_string().starts_with("level must be between 0 and 1"));
        assert!(selector.error(0, 0.5).unwrap_err().to_string().starts_with("count must be a positive integer"));
    }
}
