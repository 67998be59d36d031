//! What mechanisms for real values have in common: the grid, and noise that depends on the number of values.

use std::sync::{Arc, Mutex, PoisonError};

use crate::arch::secrecy::{Reason, declassify};
use crate::error::Error;
use crate::samplers::grid::{Grid, all_finite};

/// Unless told otherwise, a scale has at most this many steps, as a power of two.
pub(super) const STEPS_EXPONENT: i32 = 40;

/// The grid of `granularity`, which must not be finer than the default one, that of 2^`exponent`; `None` when there is
/// no default. `parameters` are those that the default follows from.
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

/// A granularity that leaves no room for the noise of `count` values.
pub(super) fn too_fine(grid: Grid, count: usize) -> Error {
    let allowed = format!("coarser for a release of {count} values at this epsilon");
    Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed)
}

/// The noise of the last release of several values, with their number: its tables take longer than a small release.
#[derive(Debug)]
pub(super) struct LastNoise<N>(Arc<Mutex<Option<Several<N>>>>);

/// The noise for so many values.
type Several<N> = (usize, Arc<N>);

impl<N> Clone for LastNoise<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N> Default for LastNoise<N> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<N> LastNoise<N> {
    /// The noise for `count` values, made by `make` unless it was the last one.
    pub(super) fn get_or(&self, count: usize, make: impl FnOnce() -> Result<N, Error>) -> Result<Arc<N>, Error> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, noise)) = last.as_ref().filter(|(length, _)| *length == count) {
            return Ok(Arc::clone(noise));
        }
        let noise = Arc::new(make()?);
        *last = Some((count, Arc::clone(&noise)));
        Ok(noise)
    }
}
