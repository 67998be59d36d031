//! Local differential privacy: the collector's counters.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dpnoise_core::local::{Accumulator, Estimate};
use dpnoise_core::memory;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::buffers::bytes_of;
use crate::errors::to_py;
use crate::local::{LocalProtocol, most, not_by_value, of_no_mean};
use crate::runtime::Threads;
use crate::{buffers, runtime};

/// The collector's counters. Several threads may add to one: each counts by itself, and merges under the lock.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalAccumulator(Mutex<Accumulator>);

#[pymethods]
impl LocalAccumulator {
    #[new]
    fn new(protocol: &LocalProtocol) -> PyResult<Self> {
        Accumulator::new(protocol.0).map(|state| Self(Mutex::new(state))).map_err(to_py)
    }

    #[staticmethod]
    fn from_bytes(state: &[u8], limit: &Bound<'_, PyAny>) -> PyResult<Self> {
        Accumulator::from_bytes(state, most(limit)?).map(|state| Self(Mutex::new(state))).map_err(to_py)
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

    fn reject(&self, reason: &str, count: u64) -> PyResult<()> {
        self.state().reject(reason, count).map_err(to_py)
    }

    fn merge(&self, other: &Self) -> PyResult<()> {
        // Copied first: the two may be the same, and no thread ever waits for one lock while it holds another.
        let other = other.state().copy().map_err(to_py)?;
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
        let state = self.copy()?;
        let (estimate, state) = py.detach(|| (state.estimate(), state));
        estimated(py, &state, estimate.map_err(to_py)?)
    }

    /// The mean, its standard error, n and the number of rejected reports, all of one moment.
    fn estimate_mean(&self) -> PyResult<(f64, f64, u64, u64)> {
        let state = self.copy()?;
        let estimate = state.estimate_mean().map_err(to_py)?.ok_or_else(|| of_no_mean(state.protocol()))?;
        Ok((estimate.mean, estimate.standard_error, estimate.n, state.rejected()))
    }

    /// What `estimate` gives, of the texts with these int64 fingerprints.
    fn estimate_candidates<'py>(&self, py: Python<'py>, candidates: &Bound<'py, PyAny>) -> PyResult<Estimated<'py>> {
        let candidates = buffers::readable::<i64>(candidates, "candidates", "int64")?;
        let candidates = buffers::slice(&candidates, "candidates")?;
        let state = self.copy()?;
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
        let state = self.copy()?;
        let (estimate, state) = py.detach(|| (state.estimate_prefixes(level, candidates), state));
        estimated(py, &state, estimate.map_err(to_py)?)
    }

    /// Counters, n and the number of rejected reports, all of one moment.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<u64>>, u64, u64)> {
        let state = self.copy()?;
        let (n, rejected) = (state.n(), state.rejected());
        Ok((state.into_counters().into_pyarray(py), n, rejected))
    }
}

impl LocalAccumulator {
    fn state(&self) -> MutexGuard<'_, Accumulator> {
        // What panics under the lock has changed nothing yet: the checks of `merge` come first.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy(&self) -> PyResult<Accumulator> {
        self.state().copy().map_err(to_py)
    }

    /// An empty accumulator of the same protocol.
    fn part(&self) -> PyResult<Accumulator> {
        let protocol = *self.state().protocol();
        Accumulator::new(protocol).map_err(to_py)
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
