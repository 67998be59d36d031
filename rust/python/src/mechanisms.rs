//! The mechanisms.

use dpnoise_core::Error;
use dpnoise_core::mechanisms::{self, Column, Noise, Number, Values};
use dpnoise_core::params::Relation;
use dpnoise_core::rng::SecureRng;
use numpy::{Element, PyArrayDyn, PyReadonlyArrayDyn};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, Value};
use crate::errors::to_py;
use crate::hazmat::TestRng;
use crate::numbers::{optional, real, real_down};
use crate::runtime::Threads;
use crate::samplers::Dtype;
use crate::{buffers, hazmat, runtime};

/// A mechanism that adds noise to every value.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Additive(pub(crate) Noise);

fn misfit() -> PyErr {
    PyTypeError::new_err("the mechanism is of another kind")
}

#[pymethods]
impl Additive {
    /// The mechanism `kind` with these arguments; None is for what need not be given.
    #[new]
    #[pyo3(signature = (kind, **arguments))]
    fn new(kind: &str, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let parameters = Noise::kind(kind).map_err(to_py)?.parameters;
        Noise::new(kind, &arguments::given(kind, parameters, arguments)?).map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> Option<f64> {
        self.0.guarantee().epsilon
    }

    #[getter]
    fn delta(&self) -> Option<f64> {
        self.0.guarantee().delta
    }

    #[getter]
    fn rho(&self) -> Option<f64> {
        self.0.guarantee().rho
    }

    #[getter]
    fn sensitivity(&self) -> Value {
        self.0.sensitivity().into()
    }

    #[getter]
    fn multiplier(&self) -> PyResult<f64> {
        if let Noise::Gaussian(gaussian) = &self.0 { Ok(gaussian.multiplier()) } else { Err(misfit()) }
    }

    #[getter]
    fn granularity(&self) -> PyResult<f64> {
        self.granularity_for(1)
    }

    #[getter]
    fn scale(&self) -> PyResult<f64> {
        self.scale_for(1)
    }

    fn granularity_for(&self, count: usize) -> PyResult<f64> {
        self.0.granularity(count).map_err(to_py)
    }

    fn scale_for(&self, count: usize) -> PyResult<f64> {
        self.0.scale(count).map_err(to_py)
    }

    /// The largest magnitude of truncated noise.
    fn radius_for(&self, count: usize) -> PyResult<Option<u64>> {
        self.0.radius(count).map_err(to_py)
    }

    fn error(&self, level: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
        self.0.error(real(level, "level")?, count).map_err(to_py)
    }

    /// `count` is the number of values, or for shares of the parties that collude.
    fn delta_for(&self, epsilon: &Bound<'_, PyAny>, count: u64) -> PyResult<f64> {
        let epsilon = real_down(epsilon, "epsilon")?;
        self.0.delta_for(epsilon, count).map_err(to_py)
    }

    /// The same.
    fn epsilon_for(&self, delta: &Bound<'_, PyAny>, count: u64) -> PyResult<f64> {
        let delta = real_down(delta, "delta")?;
        self.0.epsilon_for(delta, count).map_err(to_py)
    }

    #[pyo3(signature = (x, threads, rng=None))]
    #[allow(unused_variables, reason = "threads are checked, and one value needs none")]
    fn release_one<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.0.takes_integers() {
            release_one(&self.0, x.extract::<i64>()?, rng)?.into_bound_py_any(x.py())
        } else {
            release_one(&self.0, x.extract::<f64>()?, rng)?.into_bound_py_any(x.py())
        }
    }

    /// Replaces the values of `x`, to which no other code has a reference, by their releases.
    #[pyo3(signature = (x, threads, rng=None))]
    fn release(&self, x: &Bound<'_, PyAny>, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if self.0.takes_integers() {
            release::<i64>(&self.0, x, threads.get(), rng)
        } else {
            release::<f64>(&self.0, x, threads.get(), rng)
        }
    }

    /// Releases the number of `rows` that are not 0.
    #[pyo3(signature = (rows, rng=None))]
    fn release_count(&self, rows: &Bound<'_, PyAny>, rng: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
        let Noise::DiscreteLaplace(laplace) = &self.0 else {
            return Err(misfit());
        };
        let array = buffers::readable::<u8>(rows, "rows", "uint8")?;
        let rows = buffers::slice(&array, "rows")?;
        match hazmat::given(rng)? {
            Some(mut rng) => laplace.release_count_with(rows, &mut *rng),
            None => laplace.release_count(rows),
        }
        .map_err(to_py)
    }

    /// Releases how many of `values` are in each of the bins between `edges`.
    #[pyo3(signature = (edges, values, threads, rng=None))]
    #[allow(unused_variables, reason = "threads are checked, and reading takes longer than counting")]
    fn release_bins(
        &self,
        edges: Vec<f64>,
        values: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<i64>> {
        let Noise::DiscreteLaplace(laplace) = &self.0 else {
            return Err(misfit());
        };
        of_column(
            values,
            rng,
            |column, rng| laplace.release_bins_with(&edges, column, rng),
            |column| laplace.release_bins(&edges, column),
        )
    }
}

/// A release of a column, which is read in place: with the randomness that was given, or without the GIL.
pub(crate) fn of_column<T: Send>(
    values: &Bound<'_, PyAny>,
    rng: Option<&Bound<'_, PyAny>>,
    release_with: impl FnOnce(Column<'_>, &mut TestRng) -> Result<T, Error>,
    release: impl Send + FnOnce(Column<'_>) -> Result<T, Error>,
) -> PyResult<T> {
    fn read<'py, E: Element>(values: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, E>> {
        buffers::readable::<E>(values, "column", "float64, float32 or int64")
    }
    let run = |column: Column<'_>| match hazmat::given(rng)? {
        Some(mut rng) => release_with(column, &mut rng).map_err(to_py),
        None => runtime::detached(values.py(), || release(column)),
    };
    if values.cast::<PyArrayDyn<i64>>().is_ok() {
        run(buffers::slice(&read::<i64>(values)?, "column")?.into())
    } else if values.cast::<PyArrayDyn<f32>>().is_ok() {
        run(buffers::slice(&read::<f32>(values)?, "column")?.into())
    } else {
        run(buffers::slice(&read::<f64>(values)?, "column")?.into())
    }
}

fn release_one<T: Number>(noise: &Noise, value: T, rng: Option<&Bound<'_, PyAny>>) -> PyResult<T>
where
    for<'a> Values<'a>: From<&'a mut [T]>,
{
    let mut values = [value];
    match hazmat::given(rng)? {
        Some(mut rng) => noise.release_with(&mut values[..], &mut *rng),
        None => SecureRng::new().and_then(|mut rng| noise.release_with(&mut values[..], &mut rng)),
    }
    .map(|()| values[0])
    .map_err(to_py)
}

fn release<T: Dtype>(
    noise: &Noise,
    array: &Bound<'_, PyAny>,
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()>
where
    for<'a> Values<'a>: From<&'a mut [T]>,
{
    let mut values = buffers::writable::<T>(array, "x", T::NAME)?;
    let values = buffers::elements(&mut values, "x")?;
    if let Some(mut rng) = hazmat::given(rng)? {
        return noise.release_with(values, &mut *rng).map_err(to_py);
    }
    runtime::pausing(array.py(), |pause| noise.release_pausing(values, threads, pause))
}

/// The arguments of the example of each kind of noise, by its name.
#[pyfunction]
fn noise_examples(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let examples = PyDict::new(py);
    for info in Noise::KINDS {
        let arguments = PyDict::new(py);
        for (name, value) in info.arguments() {
            arguments.set_item(name, Value::from(value))?;
        }
        examples.set_item(info.name, arguments)?;
    }
    Ok(examples)
}

/// The sum of a column whose values are clamped.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Sum(mechanisms::Sum);

#[pymethods]
impl Sum {
    #[new]
    #[pyo3(signature = (*, lower, upper, epsilon, relation, granularity=None))]
    fn new(
        lower: &Bound<'_, PyAny>,
        upper: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        relation: &str,
        granularity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bounds = (real(lower, "bounds[0]")?, real(upper, "bounds[1]")?);
        let granularity = optional(granularity, "granularity")?;
        let relation = Relation::from_name(relation).map_err(to_py)?;
        mechanisms::Sum::new(bounds, real_down(epsilon, "epsilon")?, relation, granularity).map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn sensitivity(&self) -> f64 {
        self.0.sensitivity()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.granularity()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    fn error(&self, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.error(real(level, "level")?).map_err(to_py)
    }

    #[pyo3(signature = (values, threads, rng=None))]
    fn release(&self, values: &Bound<'_, PyAny>, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        let threads = threads.get();
        of_column(
            values,
            rng,
            |column, rng| self.0.release_with(column, threads, rng),
            |column| self.0.release(column, threads),
        )
    }
}

/// The mean or the variance of a column whose values are clamped.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Moment(mechanisms::Moment);

#[pymethods]
impl Moment {
    #[new]
    #[pyo3(signature = (*, squared, lower, upper, epsilon, relation))]
    fn new(
        squared: bool,
        lower: &Bound<'_, PyAny>,
        upper: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        relation: &str,
    ) -> PyResult<Self> {
        let bounds = (real(lower, "bounds[0]")?, real(upper, "bounds[1]")?);
        let epsilon = real_down(epsilon, "epsilon")?;
        let relation = Relation::from_name(relation).map_err(to_py)?;
        let new = if squared { mechanisms::Moment::variance } else { mechanisms::Moment::mean };
        new(bounds, epsilon, relation).map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    fn error(&self, rows: u64, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.error(rows, real(level, "level")?).map_err(to_py)
    }

    fn error_of_release(&self, rows: i64, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.error_of_release(rows, real(level, "level")?).map_err(to_py)
    }

    /// The answer and, where the number of rows is private, the noisy one.
    #[pyo3(signature = (values, threads, rng=None))]
    fn release(
        &self,
        values: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(f64, Option<i64>)> {
        let threads = threads.get();
        of_column(
            values,
            rng,
            |column, rng| self.0.release_with(column, threads, rng),
            |column| self.0.release(column, threads),
        )
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sum>()?;
    module.add_class::<Moment>()?;
    module.add_class::<Additive>()?;
    module.add_function(wrap_pyfunction!(noise_examples, module)?)
}
