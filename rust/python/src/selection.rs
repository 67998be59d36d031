//! The mechanisms that choose among candidates by their scores, or compare values with a threshold.

use std::sync::{Mutex, PoisonError};

use dpnoise_core::Error;
use dpnoise_core::mechanisms::{self, Exponential, ReportNoisyMax, Run, Selector, TopK};
use dpnoise_core::memory;
use dpnoise_core::params::{Ratio, Relation};
use dpnoise_core::rng::SecureRng;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::errors::to_py;
use crate::mechanisms::of_column;
use crate::numbers::{integer, optional, real, real_down, real_up};
use crate::{buffers, hazmat, runtime};

/// Up to this many scores are processed without releasing the GIL, in less than a millisecond. This needs no copy to
/// protect them from other Python code, which would take longer.
const HELD: u64 = 1 << 20;

/// A mechanism that chooses among candidates.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Selection(Mechanism);

enum Mechanism {
    Exponential(Exponential),
    ReportNoisyMax(ReportNoisyMax),
    TopK(TopK),
}

impl Mechanism {
    fn selector(&self) -> &Selector {
        match self {
            Self::Exponential(mechanism) => mechanism,
            Self::ReportNoisyMax(mechanism) => mechanism,
            Self::TopK(mechanism) => mechanism,
        }
    }

    fn release<R: TryCryptoRng + ?Sized>(&self, scores: &[f64], rng: &mut R) -> Result<Vec<u64>, Error> {
        match self {
            Self::Exponential(mechanism) => mechanism.release_with(scores, rng).map(|index| vec![index]),
            Self::ReportNoisyMax(mechanism) => mechanism.release_with(scores, rng).map(|index| vec![index]),
            Self::TopK(mechanism) => mechanism.release_with(scores, rng),
        }
    }

    fn k(&self) -> u64 {
        if let Self::TopK(mechanism) = self { mechanism.k() } else { 1 }
    }
}

#[pymethods]
impl Selection {
    #[staticmethod]
    fn exponential(epsilon: &Bound<'_, PyAny>, sensitivity: &Bound<'_, PyAny>, monotonic: bool) -> PyResult<Self> {
        let mechanism =
            Exponential::new(real_down(epsilon, "epsilon")?, real_up(sensitivity, "sensitivity")?, monotonic);
        mechanism.map(|mechanism| Self(Mechanism::Exponential(mechanism))).map_err(to_py)
    }

    #[staticmethod]
    fn report_noisy_max(epsilon: &Bound<'_, PyAny>, sensitivity: &Bound<'_, PyAny>, monotonic: bool) -> PyResult<Self> {
        let mechanism =
            ReportNoisyMax::new(real_down(epsilon, "epsilon")?, real_up(sensitivity, "sensitivity")?, monotonic);
        mechanism.map(|mechanism| Self(Mechanism::ReportNoisyMax(mechanism))).map_err(to_py)
    }

    #[staticmethod]
    fn top_k(
        k: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        sensitivity: &Bound<'_, PyAny>,
        monotonic: bool,
    ) -> PyResult<Self> {
        let k = integer(k, "k", "an integer from 1 to 2**32 - 1")?;
        let mechanism = TopK::new(k, real_down(epsilon, "epsilon")?, real_up(sensitivity, "sensitivity")?, monotonic);
        mechanism.map(|mechanism| Self(Mechanism::TopK(mechanism))).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.selector().epsilon()
    }

    #[getter]
    fn sensitivity(&self) -> f64 {
        self.0.selector().sensitivity()
    }

    #[getter]
    fn monotonic(&self) -> bool {
        self.0.selector().is_monotonic()
    }

    #[getter]
    fn k(&self) -> u64 {
        self.0.k()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.selector().granularity()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.0.selector().scale()
    }

    fn error(&self, count: &Bound<'_, PyAny>, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        let count = integer(count, "count", "a positive integer")?;
        self.0.selector().error(count, real(level, "level")?).map_err(to_py)
    }

    #[pyo3(signature = (scores, rng=None))]
    fn release(&self, scores: &Bound<'_, PyAny>, rng: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        let array = buffers::readable::<f64>(scores, "scores", "float64")?;
        let scores = buffers::slice(&array, "scores")?;
        if let Some(mut rng) = hazmat::given(rng)? {
            return self.0.release(scores, &mut *rng).map_err(to_py);
        }
        if (scores.len() as u64).saturating_mul(self.0.k()) <= HELD {
            return self.0.release(scores, &mut SecureRng::new().map_err(to_py)?).map_err(to_py);
        }
        let copy = Zeroizing::new(memory::collected(scores.iter().copied()).map_err(to_py)?);
        runtime::detached(array.py(), || self.0.release(&copy, &mut SecureRng::new()?))
    }
}

/// A quantile of a column.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Quantile(mechanisms::Quantile);

#[pymethods]
impl Quantile {
    #[new]
    #[pyo3(signature = (*, q, lower, upper, epsilon, relation, granularity=None))]
    fn new(
        q: (u64, u64),
        lower: &Bound<'_, PyAny>,
        upper: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        relation: &str,
        granularity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bounds = (real(lower, "bounds[0]")?, real(upper, "bounds[1]")?);
        let granularity = optional(granularity, "granularity")?;
        let relation = Relation::from_name(relation).map_err(to_py)?;
        let quantile =
            mechanisms::Quantile::new(rank(q)?, bounds, real_down(epsilon, "epsilon")?, relation, granularity);
        quantile.map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.choice().epsilon()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.granularity()
    }

    fn rank_error(&self, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.rank_error(real(level, "level")?).map_err(to_py)
    }

    #[pyo3(signature = (values, rng=None))]
    fn release(&self, values: &Bound<'_, PyAny>, rng: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        of_column(values, rng, |column, rng| self.0.release_with(column, rng), |column| self.0.release(column))
    }
}

/// Several quantiles of a column.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Quantiles(mechanisms::Quantiles);

#[pymethods]
impl Quantiles {
    #[new]
    #[pyo3(signature = (*, q, lower, upper, epsilon, relation, granularity=None))]
    fn new(
        q: Vec<(u64, u64)>,
        lower: &Bound<'_, PyAny>,
        upper: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        relation: &str,
        granularity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let ranks = q.into_iter().map(rank).collect::<PyResult<Vec<_>>>()?;
        let bounds = (real(lower, "bounds[0]")?, real(upper, "bounds[1]")?);
        let granularity = optional(granularity, "granularity")?;
        let relation = Relation::from_name(relation).map_err(to_py)?;
        let epsilon = real_down(epsilon, "epsilon")?;
        mechanisms::Quantiles::new(&ranks, bounds, epsilon, relation, granularity).map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn rho(&self) -> f64 {
        self.0.rho()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.granularity()
    }

    fn rank_error(&self, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.rank_error(real(level, "level")?).map_err(to_py)
    }

    #[pyo3(signature = (values, rng=None))]
    fn release(&self, values: &Bound<'_, PyAny>, rng: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<f64>> {
        of_column(values, rng, |column, rng| self.0.release_with(column, rng), |column| self.0.release(column))
    }
}

/// The fraction that a quantile is.
fn rank((part, whole): (u64, u64)) -> PyResult<Ratio> {
    let refused = || to_py(Error::parameter("q", format!("{part}/{whole}"), "a fraction between 0 and 1"));
    Ratio::new(part.into(), whole.into()).ok_or_else(refused)
}

/// The sparse vector technique.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct AboveThreshold(mechanisms::AboveThreshold);

#[pymethods]
impl AboveThreshold {
    #[new]
    #[pyo3(signature = (*, epsilon, threshold, sensitivity, max_positives, monotonic))]
    fn new(
        epsilon: &Bound<'_, PyAny>,
        threshold: &Bound<'_, PyAny>,
        sensitivity: &Bound<'_, PyAny>,
        max_positives: &Bound<'_, PyAny>,
        monotonic: bool,
    ) -> PyResult<Self> {
        let (epsilon, threshold) = (real_down(epsilon, "epsilon")?, real(threshold, "threshold")?);
        let sensitivity = real_up(sensitivity, "sensitivity")?;
        let max_positives = integer(max_positives, "max_positives", "an integer from 1 to 2**32 - 1")?;
        let mechanism = mechanisms::AboveThreshold::new(epsilon, threshold, sensitivity, max_positives, monotonic);
        mechanism.map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.0.threshold()
    }

    #[getter]
    fn sensitivity(&self) -> f64 {
        self.0.sensitivity()
    }

    #[getter]
    fn max_positives(&self) -> u64 {
        self.0.max_positives()
    }

    #[getter]
    fn monotonic(&self) -> bool {
        self.0.is_monotonic()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.granularity()
    }

    #[getter]
    fn scales(&self) -> (f64, f64) {
        self.0.scales().into()
    }

    #[pyo3(signature = (rng=None))]
    fn start(&self, rng: Option<&Bound<'_, PyAny>>) -> PyResult<AboveThresholdRun> {
        let run = match hazmat::given(rng)? {
            Some(mut rng) => self.0.start_with(&mut *rng),
            None => self.0.start(),
        };
        run.map(|run| AboveThresholdRun(Mutex::new(run))).map_err(to_py)
    }
}

/// One pass over a stream.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct AboveThresholdRun(Mutex<Run>);

impl AboveThresholdRun {
    /// Runs a closure on the run, which one thread may use at a time.
    fn with<T>(&self, work: impl FnOnce(&mut Run) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl AboveThresholdRun {
    #[getter]
    fn positives(&self) -> u64 {
        self.with(|run| run.positives())
    }

    #[getter]
    fn halted(&self) -> bool {
        self.with(|run| run.is_halted())
    }

    #[pyo3(signature = (value, rng=None))]
    fn is_above(&self, value: f64, rng: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let above = match hazmat::given(rng)? {
            Some(mut rng) => self.with(|run| run.is_above_with(value, &mut *rng)),
            None => self.with(|run| run.is_above(value)),
        };
        above.map_err(to_py)
    }

    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a run can be neither copied nor pickled: its noise must be used once"))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Quantile>()?;
    module.add_class::<Quantiles>()?;
    module.add_class::<Selection>()?;
    module.add_class::<AboveThreshold>()?;
    module.add_class::<AboveThresholdRun>()
}
