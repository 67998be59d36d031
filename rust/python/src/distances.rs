//! Distances to instability.

use dpnoise_core::params::Relation;
use dpnoise_core::stability::{self, Mode, Number};
use numpy::{Element, PyArrayDyn};
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::{buffers, runtime};

/// Runs `search` without the GIL on values that Python has sorted or partitioned in a new array. No other code has a
/// reference to the array, so it stays ordered.
fn detached<T: Element + Sync, R: Send>(
    x: &Bound<'_, PyAny>,
    kind: &str,
    search: impl Send + FnOnce(&[T]) -> Result<R, dpnoise_core::Error>,
) -> PyResult<R> {
    let array = buffers::readable::<T>(x, "x", kind)?;
    let values = buffers::slice(&array, "x")?;
    runtime::detached(x.py(), || search(values))
}

#[pyfunction]
fn interquartile_range(sorted: &Bound<'_, PyAny>) -> PyResult<f64> {
    detached(sorted, "float64", stability::interquartile_range)
}

#[pyfunction]
fn iqr_distance(sorted: &Bound<'_, PyAny>, lower: f64, upper: Option<f64>) -> PyResult<u64> {
    detached(sorted, "float64", |sorted| stability::iqr_distance_within_vartime(sorted, lower, upper))
}

/// The distance of values that are partitioned at their median.
#[pyfunction]
fn median_distance(partitioned: &Bound<'_, PyAny>, relation: &str) -> PyResult<u64> {
    let relation = Relation::from_name(relation).map_err(to_py)?;
    detached(partitioned, "float64", |values| stability::median_distance_vartime::<f64>(values, relation))
}

/// The position of the mode, and its distance.
fn mode_of<T: Element + Number + Sync>(
    sorted: &Bound<'_, PyAny>,
    kind: &str,
    relation: Relation,
) -> PyResult<Option<(usize, u64)>> {
    detached(sorted, kind, |sorted: &[T]| Ok(stability::mode_vartime(sorted, relation)?.map(parts)))
}

fn parts(mode: Mode) -> (usize, u64) {
    (mode.place, mode.distance)
}

#[pyfunction]
fn mode(sorted: &Bound<'_, PyAny>, relation: &str) -> PyResult<Option<(usize, u64)>> {
    let relation = Relation::from_name(relation).map_err(to_py)?;
    if sorted.cast::<PyArrayDyn<f64>>().is_ok() {
        mode_of::<f64>(sorted, "float64", relation)
    } else if sorted.cast::<PyArrayDyn<u64>>().is_ok() {
        mode_of::<u64>(sorted, "uint64", relation)
    } else {
        mode_of::<i64>(sorted, "float64, uint64 or int64", relation)
    }
}

#[pyfunction]
fn mode_of_counts(counts: Vec<usize>, relation: &str) -> PyResult<Option<(usize, u64)>> {
    let relation = Relation::from_name(relation).map_err(to_py)?;
    Ok(stability::mode_of_counts_vartime(&counts, relation).map_err(to_py)?.map(parts))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(interquartile_range, module)?)?;
    module.add_function(wrap_pyfunction!(iqr_distance, module)?)?;
    module.add_function(wrap_pyfunction!(median_distance, module)?)?;
    module.add_function(wrap_pyfunction!(mode, module)?)?;
    module.add_function(wrap_pyfunction!(mode_of_counts, module)?)
}
