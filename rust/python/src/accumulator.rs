//! Local differential privacy: the collector's counters.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dpnoise_core::local::{Accumulator, AnyAccumulator, AttributesAccumulator, Estimate};
use dpnoise_core::memory;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::buffers::bytes_of;
use crate::errors::to_py;
use crate::local::{Announced, most, not_by_value, of_no_mean};
use crate::runtime::Threads;
use crate::{buffers, runtime};

/// The collector's counters. Several threads may add to one: each counts by itself, and merges under the lock.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalAccumulator(Mutex<AnyAccumulator>);

#[pymethods]
impl LocalAccumulator {
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "extracted")]
    fn new(protocol: Announced<'_>) -> PyResult<Self> {
        AnyAccumulator::new(protocol.protocol()).map(Self::from).map_err(to_py)
    }

    #[staticmethod]
    fn from_bytes(state: &[u8], limit: &Bound<'_, PyAny>) -> PyResult<Self> {
        AnyAccumulator::from_bytes(state, most(limit)?).map(Self::from).map_err(to_py)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.state().to_bytes();
        bytes_of(py, bytes)
    }

    #[pyo3(signature = (reports, row_bytes, threads))]
    fn add(&self, py: Python<'_>, reports: &Bound<'_, PyAny>, row_bytes: usize, threads: Threads) -> PyResult<()> {
        let threads = threads.get();
        let reports = buffers::readable::<u8>(reports, "reports", "uint8")?;
        let reports = buffers::slice(&reports, "reports")?;
        let mut part = self.part()?;
        let part = runtime::detached(py, move || part.add(reports, row_bytes, threads).map(|()| part))?;
        self.state().merge(&part).map_err(to_py)
    }

    #[pyo3(signature = (messages, threads))]
    fn add_messages(&self, py: Python<'_>, messages: &Bound<'_, PyList>, threads: Threads) -> PyResult<()> {
        let mut part = self.part()?;
        let mut borrowed = memory::room(messages.len()).map_err(to_py)?;
        for message in messages {
            borrowed.push(message.extract::<PyBackedBytes>()?);
        }
        let part = runtime::detached(py, move || {
            part.add_messages(borrowed.iter().map(|message| &**message), threads.get()).map(|()| part)
        })?;
        self.state().merge(&part).map_err(to_py)
    }

    /// Counts rejected reports of one attribute.
    fn reject(&self, reason: &str, count: u64) -> PyResult<()> {
        let mut state = self.state();
        state.one_mut().ok_or_else(of_several)?.reject(reason, count).map_err(to_py)
    }

    fn merge(&self, other: &Self) -> PyResult<()> {
        // Copied first: the two may be the same, and no thread ever waits for one lock while it holds another.
        let other = other.state().copy().map_err(to_py)?;
        self.state().merge(&other).map_err(to_py)
    }

    #[getter]
    fn protocol<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let protocol = self.state().protocol();
        Announced::object(py, protocol)
    }

    /// The counters of each of several attributes, for estimates, all of one moment.
    fn attributes(&self) -> PyResult<Vec<Self>> {
        let state = self.state();
        let several = state.several().into_iter();
        let each = several.flat_map(|counted| (0..counted.attributes().iter().len()).map(|i| counted.attribute(i)));
        each.map(|part| part.map(|part| AnyAccumulator::One(part).into()).map_err(to_py)).collect()
    }

    #[getter]
    fn n(&self) -> u64 {
        self.state().n()
    }

    /// The number of people whom estimates of one attribute are about.
    #[getter]
    fn people(&self) -> PyResult<u64> {
        Ok(self.state().one().ok_or_else(of_several)?.people())
    }

    #[getter]
    fn n_by_attribute(&self) -> Vec<u64> {
        self.state().several().into_iter().flat_map(AttributesAccumulator::n_by_attribute).collect()
    }

    #[getter]
    fn rejected_reasons(&self) -> Vec<(&'static str, u64)> {
        self.state().rejected_reasons()
    }

    /// Counts, standard errors, n and the number of rejected reports, all of one moment.
    fn estimate<'py>(&self, py: Python<'py>) -> PyResult<Estimated<'py>> {
        let state = self.one()?;
        let (estimate, state) = py.detach(|| (state.estimate(), state));
        estimated(py, &state, estimate.map_err(to_py)?)
    }

    /// The mean, its standard error, n and the number of rejected reports, all of one moment.
    fn estimate_mean(&self) -> PyResult<(f64, f64, u64, u64)> {
        let state = self.one()?;
        let estimate = state.estimate_mean().map_err(to_py)?.ok_or_else(|| of_no_mean(state.protocol()))?;
        Ok((estimate.mean, estimate.standard_error, estimate.n, state.rejected()))
    }

    /// What `estimate` gives, of the texts with these int64 fingerprints.
    fn estimate_candidates<'py>(&self, py: Python<'py>, candidates: &Bound<'py, PyAny>) -> PyResult<Estimated<'py>> {
        let candidates = buffers::readable::<i64>(candidates, "candidates", "int64")?;
        let candidates = buffers::slice(&candidates, "candidates")?;
        let state = self.one()?;
        let (estimate, state) = py.detach(|| (state.estimate_candidates(candidates), state));
        estimated(py, &state, estimate.map_err(to_py)?)
    }

    /// What `estimate` gives, of the values that begin like these int64 prefixes of a level.
    fn estimate_prefixes<'py>(
        &self,
        py: Python<'py>,
        level: u32,
        candidates: &Bound<'py, PyAny>,
    ) -> PyResult<Estimated<'py>> {
        let candidates = buffers::readable::<i64>(candidates, "candidates", "int64")?;
        let candidates = buffers::slice(&candidates, "candidates")?;
        let state = self.one()?;
        let (estimate, state) = py.detach(|| (state.estimate_prefixes(level, candidates), state));
        estimated(py, &state, estimate.map_err(to_py)?)
    }

    /// Counters, n and the number of rejected reports, all of one moment.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<u64>>, u64, u64)> {
        let state = self.one()?;
        let (n, rejected) = (state.n(), state.rejected());
        Ok((state.into_counters().into_pyarray(py), n, rejected))
    }
}

impl From<AnyAccumulator> for LocalAccumulator {
    fn from(state: AnyAccumulator) -> Self {
        Self(Mutex::new(state))
    }
}

impl LocalAccumulator {
    fn state(&self) -> MutexGuard<'_, AnyAccumulator> {
        // What panics under the lock has changed nothing yet: the checks of `merge` come first.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the counters of one attribute.
    fn one(&self) -> PyResult<Accumulator> {
        let state = self.state();
        state.one().ok_or_else(of_several)?.copy().map_err(to_py)
    }

    /// An empty accumulator of the same protocol.
    fn part(&self) -> PyResult<AnyAccumulator> {
        let protocol = self.state().protocol();
        AnyAccumulator::new(protocol).map_err(to_py)
    }
}

fn of_several() -> PyErr {
    PyTypeError::new_err("the accumulator must be of one attribute, got one of several")
}

/// Counts, standard errors, n and the number of rejected reports.
type Estimated<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, u64, u64);

fn estimated<'py>(py: Python<'py>, state: &Accumulator, estimate: Option<Estimate>) -> PyResult<Estimated<'py>> {
    let estimate = estimate.ok_or_else(|| not_by_value(state.protocol()))?;
    Ok((estimate.counts.into_pyarray(py), estimate.standard_errors.into_pyarray(py), estimate.n, state.rejected()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LocalAccumulator>()
}
