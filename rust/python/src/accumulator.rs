//! Local differential privacy: the collector's counters.

use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpnoise_core::local::{
    self, Accumulator, AnyAccumulator, AttributesAccumulator, Estimate, HeavyHitters, RangeEstimate, TreeShape,
};
use dpnoise_core::memory;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::buffers::bytes_of;
use crate::errors::{ParameterError, to_py};
use crate::local::{LocalSpecification, announced, most, not_by_value, of_no_mean};
use crate::numbers::{integer, real};
use crate::runtime::Threads;
use crate::{buffers, runtime};

/// The collector's counters. Several threads may add to one: each counts by itself, and merges under the lock.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalAccumulator(Mutex<AnyAccumulator>);

#[pymethods]
impl LocalAccumulator {
    #[new]
    fn new(specification: &LocalSpecification) -> PyResult<Self> {
        AnyAccumulator::new(specification.protocol.clone()).map(Self::from).map_err(to_py)
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
        let part = runtime::pausing(py, move |pause| {
            let rows = part.piece(reports.len() / row_bytes.max(1));
            for reports in reports.chunks(rows.saturating_mul(row_bytes).max(1)) {
                pause()?;
                part.add(reports, row_bytes, threads)?;
            }
            Ok(part)
        })?;
        self.state().merge(&part).map_err(to_py)
    }

    #[pyo3(signature = (messages, threads))]
    fn add_messages(&self, py: Python<'_>, messages: &Bound<'_, PyList>, threads: Threads) -> PyResult<()> {
        let threads = threads.get();
        let mut part = self.part()?;
        let mut borrowed = memory::room(messages.len()).map_err(to_py)?;
        for message in messages {
            borrowed.push(message.extract::<PyBackedBytes>()?);
        }
        let part = runtime::pausing(py, move |pause| {
            for messages in borrowed.chunks(part.piece(borrowed.len())) {
                pause()?;
                part.add_messages(messages.iter().map(|message| &**message), threads)?;
            }
            Ok(part)
        })?;
        self.state().merge(&part).map_err(to_py)
    }

    /// Counts `n` reports of one attribute, of which as many as uint64 `counters` say support each value.
    fn add_counters(&self, n: u64, counters: &Bound<'_, PyAny>) -> PyResult<()> {
        let counters = buffers::readable::<u64>(counters, "counters", "uint64")?;
        let counters = memory::collected(buffers::slice(&counters, "counters")?.iter().copied()).map_err(to_py)?;
        let mut state = self.state();
        let state = state.one_mut().ok_or_else(of_several)?;
        let part = Accumulator::from_counters(*state.protocol(), n, counters).map_err(to_py)?;
        state.merge(&part).map_err(to_py)
    }

    /// Counts rejected reports of one attribute.
    fn reject(&self, reason: &str, count: u64) -> PyResult<()> {
        let mut state = self.state();
        state.one_mut().ok_or_else(of_several)?.reject(reason, count).map_err(to_py)
    }

    fn merge(&self, other: &Self) -> PyResult<()> {
        if ptr::eq(self, other) {
            let problem = "other must be another accumulator, got this one, whose reports would count twice";
            return Err(ParameterError::new_err(problem));
        }
        // Copied first: no thread ever waits for one lock while it holds another.
        let other = other.state().copy().map_err(to_py)?;
        self.state().merge(&other).map_err(to_py)
    }

    #[getter]
    fn protocol<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let protocol = self.state().protocol().clone();
        announced(py, protocol)
    }

    /// The counters of each of several attributes, for estimates, all of one moment.
    fn attributes(&self) -> PyResult<Vec<Self>> {
        let state = self.state();
        let several = state.several().into_iter();
        let each = several.flat_map(|counted| (0..counted.attributes().iter().len()).map(|i| counted.attribute(i)));
        each.map(|part| part.map(|part| AnyAccumulator::from(part).into()).map_err(to_py)).collect()
    }

    #[getter]
    fn n(&self) -> u64 {
        self.state().n()
    }

    #[getter]
    fn n_by_attribute(&self) -> Vec<u64> {
        self.state().several().into_iter().flat_map(AttributesAccumulator::n_by_attribute).collect()
    }

    #[getter]
    fn rejected_reasons(&self) -> Vec<(&'static str, u64)> {
        self.state().rejected_reasons()
    }

    /// Counts, standard errors, n and the number of rejected reports, and that of reports, all of one moment.
    fn estimate<'py>(&self, py: Python<'py>) -> PyResult<(Estimated<'py>, u64)> {
        let state = self.one()?;
        let (estimate, state) = py.detach(|| (state.estimate(), state));
        Ok((estimated(py, &state, estimate.map_err(to_py)?)?, state.n()))
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

    /// The counts of ranges, n and the number of rejected reports.
    fn estimate_ranges(&self, py: Python<'_>) -> PyResult<(LocalRanges, u64, u64)> {
        let state = self.one()?;
        let (ranges, state) = py.detach(|| (state.estimate_ranges(), state));
        let ranges = ranges.map_err(to_py)?.ok_or_else(|| not_estimated(&state, "ranges"))?;
        let n = ranges.n;
        Ok((LocalRanges(ranges), n, state.rejected()))
    }

    /// The probabilities of all bins, n and the number of rejected reports.
    fn estimate_density<'py>(
        &self,
        py: Python<'py>,
        smoothing: bool,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, u64, u64)> {
        let state = self.one()?;
        let (density, state) = py.detach(|| (state.estimate_density(smoothing), state));
        let density = density.map_err(to_py)?.ok_or_else(|| not_estimated(&state, "a distribution"))?;
        Ok((density.probabilities.into_pyarray(py), density.n, state.rejected()))
    }

    /// The frequent values, what `estimate` gives of them, how many standard errors their intervals extend, how many
    /// values were tested, and whether all significant prefixes were extended.
    fn estimate_prefixes<'py>(&self, py: Python<'py>, level: &Bound<'py, PyAny>) -> PyResult<FrequentValues<'py>> {
        let level = real(level, "level")?;
        let state = self.one()?;
        let (found, state) = py.detach(|| (state.estimate_prefixes(level), state));
        let found = found.map_err(to_py)?.ok_or_else(|| not_estimated(&state, "prefixes"))?;
        let HeavyHitters { values, estimate, quantile, tested, complete } = found;
        Ok((values.into_pyarray(py), estimated(py, &state, Some(estimate))?, quantile, tested, complete))
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
        let protocol = self.state().protocol().clone();
        AnyAccumulator::new(protocol).map_err(to_py)
    }
}

fn of_several() -> PyErr {
    PyTypeError::new_err("the accumulator must be of one attribute, got one of several")
}

/// Estimated counts of ranges.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalRanges(RangeEstimate);

#[pymethods]
impl LocalRanges {
    /// What [`__reduce__`](Self::__reduce__) gives.
    #[new]
    fn new(k: usize, branching: usize, spread: f64, reports: Vec<u64>, shares: Vec<f64>, n: u64) -> PyResult<Self> {
        let ranges = TreeShape::new(k, branching, spread)
            .and_then(|shape| RangeEstimate::from_shares(shape, &reports, shares, n));
        ranges.map(Self).map_err(to_py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, RangeParts<'py>) {
        let (py, ranges) = (slf.py(), &slf.get().0);
        let shape = ranges.shape();
        let (reports, shares) = (ranges.reports().collect(), PyArray1::from_slice(py, ranges.shares()));
        let parts = (shape.k(), shape.branching(), shape.spread(), reports, shares, ranges.n);
        (slf.get_type().into_any(), parts)
    }

    #[getter]
    fn k(&self) -> usize {
        self.0.k()
    }

    /// Of each value.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let counts = memory::collected(self.0.counts()).map_err(to_py)?;
        Ok(counts.into_pyarray(py))
    }

    /// A count and its standard error.
    fn range(&self, first: &Bound<'_, PyAny>, last: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        let value = |value, name, least| integer(value, name, &RangeEstimate::allowed(least, self.0.k()));
        let first = value(first, "first", 0)?;
        self.0.range(first, value(last, "last", first)?).map_err(to_py)
    }

    fn quantile(&self, q: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.0.quantile(real(q, "q")?).map_err(to_py)
    }
}

/// What makes [`LocalRanges`] again.
type RangeParts<'py> = (usize, usize, f64, Vec<u64>, Bound<'py, PyArray1<f64>>, u64);

fn not_estimated(state: &Accumulator, what: &str) -> PyErr {
    PyTypeError::new_err(format!("reports of {} do not give {what}", state.protocol().name()))
}

/// How many standard errors a two-sided interval extends, if several of them must hold together.
#[pyfunction]
fn normal_quantile(level: &Bound<'_, PyAny>, intervals: u64) -> PyResult<f64> {
    local::normal_quantile(real(level, "level")?, intervals).map_err(to_py)
}

/// Values, what `estimate` gives of them, the quantile of their intervals, how many were tested, and whether all were.
type FrequentValues<'py> = (Bound<'py, PyArray1<i64>>, Estimated<'py>, f64, usize, bool);

/// Counts, standard errors, n and the number of rejected reports.
type Estimated<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, u64, u64);

fn estimated<'py>(py: Python<'py>, state: &Accumulator, estimate: Option<Estimate>) -> PyResult<Estimated<'py>> {
    let estimate = estimate.ok_or_else(|| not_by_value(state.protocol()))?;
    Ok((estimate.counts.into_pyarray(py), estimate.standard_errors.into_pyarray(py), estimate.n, state.rejected()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LocalRanges>()?;
    module.add_function(wrap_pyfunction!(normal_quantile, module)?)?;
    module.add_class::<LocalAccumulator>()
}
