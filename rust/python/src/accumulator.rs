//! Local differential privacy: the collector's counters.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dpnoise_core::local::{Accumulator, Estimate};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::to_py;
use crate::local::{LocalProtocol, not_by_value};
use crate::runtime::Threads;
use crate::{buffers, runtime};

/// The collector's counters. Several threads may add to one: each counts by itself, and merges under the lock.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalAccumulator(Mutex<Accumulator>);

#[pymethods]
impl LocalAccumulator {
    #[new]
    fn new(protocol: &LocalProtocol) -> Self {
        Self(Mutex::new(Accumulator::new(protocol.0)))
    }

    #[staticmethod]
    fn from_bytes(state: &[u8]) -> PyResult<Self> {
        Accumulator::from_bytes(state).map(|state| Self(Mutex::new(state))).map_err(to_py)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.state().to_bytes())
    }

    #[pyo3(signature = (reports, row_bytes, threads))]
    fn add(&self, py: Python<'_>, reports: &Bound<'_, PyAny>, row_bytes: usize, threads: Threads) -> PyResult<()> {
        let threads = threads.get();
        let reports = buffers::readable::<u8>(reports, "reports", "uint8")?;
        let reports = buffers::slice(&reports, "reports")?;
        let mut part = Accumulator::new(*self.state().protocol());
        let part = runtime::detached(py, move || part.add(reports, row_bytes, threads).map(|()| part))?;
        self.state().merge(&part).map_err(to_py)
    }

    #[pyo3(signature = (messages, threads))]
    fn add_messages(&self, py: Python<'_>, messages: Vec<PyBackedBytes>, threads: Threads) -> PyResult<()> {
        let mut part = Accumulator::new(*self.state().protocol());
        let part = runtime::detached(py, move || {
            part.add_messages(messages.iter().map(|message| &**message), threads.get()).map(|()| part)
        })?;
        self.state().merge(&part).map_err(to_py)
    }

    fn reject(&self, reason: &str, count: u64) -> PyResult<()> {
        self.state().reject(reason, count).map_err(to_py)
    }

    fn merge(&self, other: &Self) -> PyResult<()> {
        // Copied first: the two may be the same, and no thread ever waits for one lock while it holds another.
        let other = other.state().clone();
        self.state().merge(&other).map_err(to_py)
    }

    #[getter]
    fn protocol(&self) -> LocalProtocol {
        (*self.state().protocol()).into()
    }

    #[getter]
    fn n(&self) -> u64 {
        self.state().n()
    }

    #[getter]
    fn rejected_reasons(&self) -> Vec<(&'static str, u64)> {
        self.state().rejected_reasons().collect()
    }

    /// Counts, standard errors, n and the number of rejected reports, all of one moment.
    fn estimate<'py>(&self, py: Python<'py>) -> PyResult<Estimated<'py>> {
        let state = self.state().clone();
        let (estimate, state) = py.detach(|| (state.estimate(), state));
        estimated(py, &state, estimate)
    }

    /// What `estimate` gives, of the texts with these int64 fingerprints.
    fn estimate_candidates<'py>(&self, py: Python<'py>, candidates: &Bound<'py, PyAny>) -> PyResult<Estimated<'py>> {
        let candidates = buffers::readable::<i64>(candidates, "candidates", "int64")?;
        let candidates = buffers::slice(&candidates, "candidates")?;
        let state = self.state().clone();
        let (estimate, state) = py.detach(|| (state.estimate_candidates(candidates), state));
        estimated(py, &state, estimate)
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
        let state = self.state().clone();
        let (estimate, state) = py.detach(|| (state.estimate_prefixes(level, candidates), state));
        estimated(py, &state, estimate)
    }

    /// Counters, n and the number of rejected reports, all of one moment.
    fn counters<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<u64>>, u64, u64) {
        let state = self.state().clone();
        (PyArray1::from_slice(py, state.counters()), state.n(), state.rejected())
    }
}

impl LocalAccumulator {
    fn state(&self) -> MutexGuard<'_, Accumulator> {
        // What panics under the lock has changed nothing yet: the checks of `merge` come first.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
