//! Distances to instability.

use dpnoise_core::stability::{self, Discretization};
use numpy::Element;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::numbers::integer;
use crate::{buffers, runtime};

/// Runs `search` without the GIL on values that Python has sorted or partitioned in a new array: no other code has seen
/// it, so that its order holds.
fn detached<T: Element + Sync, R: Send>(
    x: &Bound<'_, PyAny>,
    kind: &str,
    search: impl Send + FnOnce(&[T]) -> Result<R, dpnoise_core::Error>,
) -> PyResult<R> {
    let array = buffers::readable::<T>(x, "x", kind)?;
    let values = buffers::slice(&array, "x")?;
    runtime::detached(x.py(), || search(values))
}

fn discretization(number: &Bound<'_, PyAny>) -> PyResult<Discretization> {
    Discretization::new(integer(number, "discretization", "1 or 2")?).map_err(to_py)
}

#[pyfunction]
fn interquartile_range(sorted: &Bound<'_, PyAny>) -> PyResult<f64> {
    detached(sorted, "float64", stability::interquartile_range)
}

#[pyfunction]
fn iqr_distance(sorted: &Bound<'_, PyAny>, discretization: &Bound<'_, PyAny>) -> PyResult<u64> {
    let discretization = self::discretization(discretization)?;
    detached(sorted, "float64", |sorted| stability::iqr_distance_vartime(sorted, discretization))
}

#[pyfunction]
fn log2_interval(range: f64, discretization: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
    Ok(self::discretization(discretization)?.log2_interval(range))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(interquartile_range, module)?)?;
    module.add_function(wrap_pyfunction!(iqr_distance, module)?)?;
    module.add_function(wrap_pyfunction!(log2_interval, module)?)
}
