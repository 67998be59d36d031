//! The grid of mechanisms for real values.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};

use crate::error::Error;
use crate::samplers::grid::{Grid, all_finite};

/// By default a scale has at most this many steps, as a power of two.
pub(super) const STEPS_EXPONENT: i32 = 40;

/// The grid of `granularity`, which must not be finer than the default one, that of 2^`exponent`; `None` when there is
/// no default. The default follows from `parameters`.
pub(super) fn choose_grid(granularity: Option<f64>, exponent: i32, parameters: &str) -> Option<Result<Grid, Error>> {
    let default = Grid::at_least(exponent)?;
    let grid = match granularity.map_or(Ok(default), Grid::new) {
        Ok(grid) if grid.granularity() < default.granularity() => {
            let allowed = format!("at least {:?} for this {parameters}", default.granularity());
            Err(Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed))
        }
        grid => grid,
    };
    Some(grid)
}

/// Refuses an L1 or L2 sensitivity that is not positive and finite.
pub(super) fn check_sensitivity(sensitivity: f64) -> Result<(), Error> {
    if sensitivity.is_finite() && sensitivity > 0.0 {
        Ok(())
    } else {
        Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "positive and finite"))
    }
}

/// Refuses NaN and infinities.
pub(super) fn check_finite(values: &[f64]) -> Result<(), Error> {
    if declassify(Reason::Refusal, all_finite(values)) {
        Ok(())
    } else {
        Err(Error::data("x", "must be finite: no NaN and no infinity"))
    }
}

/// The error for a granularity at which the noise of `count` values is out of range.
pub(super) fn too_fine(grid: Grid, count: usize) -> Error {
    let allowed = format!("coarser for a release of {count} values at this epsilon");
    Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed)
}
