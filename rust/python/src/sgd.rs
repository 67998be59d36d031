//! Differentially private stochastic gradient descent.

use std::slice::from_ref;
use std::sync::{Mutex, MutexGuard};

use dpnoise_core::Error;
use dpnoise_core::memory;
use dpnoise_core::sgd::{self, Clipping, Matrix, Real, Strategy};
use numpy::{Element, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::errors::{ParameterError, to_py};
use crate::keyed::NoiseKey;
use crate::numbers::{real, real_up};
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

/// Calls a generic function for the dtype of the gradients, which is also that of `out`.
macro_rules! for_dtype {
    ($gradients:ident, $function:ident($($argument:expr),*)) => {
        if $gradients.cast::<PyArrayDyn<f32>>().is_ok() {
            $function::<f32>("float32", $($argument),*)
        } else {
            $function::<f64>("float64", $($argument),*)
        }
    };
}

/// Writes the sum of clipped rows of `gradients` to `out`.
#[pyfunction]
fn clip_and_sum(
    gradients: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    clip_norm: &Bound<'_, PyAny>,
    threads: Threads,
) -> PyResult<()> {
    let clipping = Clipping::new(real(clip_norm, "clip_norm")?).map_err(to_py)?;
    for_dtype!(gradients, write_sum(&clipping, gradients, out, threads.get()))
}

/// Adds that sum to `sums`, in whole steps of the grid, for gradients whose rows are in several matrices of one dtype.
/// They are zero after an interrupt.
#[pyfunction]
fn add_clipped(
    gradients: Vec<Bound<'_, PyAny>>,
    sums: &Bound<'_, PyAny>,
    clip_norm: &Bound<'_, PyAny>,
    threads: Threads,
) -> PyResult<()> {
    let clipping = Clipping::new(real(clip_norm, "clip_norm")?).map_err(to_py)?;
    let Some(first) = gradients.first() else {
        return Err(ParameterError::new_err("gradients must be at least one array, got none"));
    };
    for_dtype!(first, add_steps(&clipping, &gradients, sums, threads.get()))
}

fn write_sum<T: Real + Element>(
    kind: &str,
    clipping: &Clipping,
    gradients: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let mut out = buffers::writable::<T>(out, "out", kind)?;
    let out = buffers::elements(&mut out, "out")?;
    let sums = sums_of::<T>(kind, clipping, gradients, out.len(), threads)?;
    for (out, &steps) in out.iter_mut().zip(&*sums) {
        *out = T::from_f64(steps as f64 * clipping.granularity());
    }
    Ok(())
}

fn add_steps<T: Real + Element>(
    kind: &str,
    clipping: &Clipping,
    gradients: &[Bound<'_, PyAny>],
    sums: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let mut sums = buffers::writable::<i64>(sums, "sums", "int64")?;
    add::<T>(kind, clipping, gradients, buffers::elements(&mut sums, "sums")?, threads)
}

/// The sums of a number of columns, in steps of the grid.
fn sums_of<T: Real + Element>(
    kind: &str,
    clipping: &Clipping,
    gradients: &Bound<'_, PyAny>,
    width: usize,
    threads: usize,
) -> PyResult<Zeroizing<Vec<i64>>> {
    let mut sums = Zeroizing::new(memory::zeroed(width).map_err(to_py)?);
    add::<T>(kind, clipping, from_ref(gradients), &mut sums, threads)?;
    Ok(sums)
}

fn add<T: Real + Element>(
    kind: &str,
    clipping: &Clipping,
    gradients: &[Bound<'_, PyAny>],
    sums: &mut [i64],
    threads: usize,
) -> PyResult<()> {
    let arrays: Vec<_> =
        gradients.iter().map(|array| buffers::readable::<T>(array, "gradients", kind)).collect::<PyResult<_>>()?;
    let matrices: Vec<_> = arrays.iter().map(matrix).collect::<PyResult<_>>()?;
    let height = matrices[0].height();
    let width = matrices.iter().try_fold(0usize, |sum, matrix| sum.checked_add(matrix.width()));
    if matrices.iter().any(|matrix| matrix.height() != height) || width != Some(sums.len()) {
        return Err(ParameterError::new_err(
            "gradients must have the same number of rows in all arrays, and a column for each sum",
        ));
    }
    runtime::pausing(gradients[0].py(), |pause| clipping.add_together_pausing(&matrices, sums, threads, pause))
}

/// A matrix of at least one column.
fn matrix<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<Matrix<'a, T>> {
    match array.shape() {
        &[_, width] if width > 0 => Ok(Matrix::new(buffers::slice(array, "gradients")?, width)),
        _ => Err(ParameterError::new_err("gradients must have two dimensions and a column")),
    }
}

/// The mean of clipped gradients, with noise.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct NoisyGradient(sgd::NoisyGradient);

#[pymethods]
impl NoisyGradient {
    #[new]
    #[pyo3(signature = (*, clip_norm, noise_multiplier, expected_batch_size))]
    fn new(
        clip_norm: &Bound<'_, PyAny>,
        noise_multiplier: &Bound<'_, PyAny>,
        expected_batch_size: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (clip_norm, noise_multiplier) =
            (real(clip_norm, "clip_norm")?, real_up(noise_multiplier, "noise_multiplier")?);
        let expected_batch_size = real(expected_batch_size, "expected_batch_size")?;
        sgd::NoisyGradient::new(clip_norm, noise_multiplier, expected_batch_size).map(Self).map_err(to_py)
    }

    #[getter]
    fn clip_norm(&self) -> f64 {
        self.0.clipping().clip_norm()
    }

    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.0.noise_multiplier()
    }

    #[getter]
    fn expected_batch_size(&self) -> f64 {
        self.0.expected_batch_size()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.clipping().granularity()
    }

    /// The sensitivity of the sum of rows of `width` numbers.
    fn sensitivity(&self, width: usize) -> f64 {
        self.0.clipping().sensitivity_steps(width) as f64 * self.granularity()
    }

    /// Writes the step for `gradients` to `out`.
    #[pyo3(signature = (gradients, out, threads, rng=None))]
    fn step(
        &self,
        gradients: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        for_dtype!(gradients, write_step(&self.0, gradients, out, threads.get(), rng))
    }

    /// Writes `sums` of clipped gradients, in whole steps of the grid, to `out` with noise, divided.
    #[pyo3(signature = (sums, out, threads, rng=None))]
    fn release(
        &self,
        sums: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        for_dtype!(out, write_release(&self.0, sums, out, threads.get(), rng))
    }
}

fn write_step<T: Real + Element>(
    kind: &str,
    noisy: &sgd::NoisyGradient,
    gradients: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut out = buffers::writable::<T>(out, "out", kind)?;
    let out = buffers::elements(&mut out, "out")?;
    let sums = sums_of::<T>(kind, noisy.clipping(), gradients, out.len(), threads)?;
    write_noisy(gradients.py(), noisy, &sums, out, threads, rng)
}

fn write_release<T: Real + Element>(
    kind: &str,
    noisy: &sgd::NoisyGradient,
    sums: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut out = buffers::writable::<T>(out, "out", kind)?;
    let out = buffers::elements(&mut out, "out")?;
    let given = buffers::readable::<i64>(sums, "sums", "int64")?;
    let given = buffers::slice(&given, "sums")?;
    if given.len() != out.len() {
        return Err(ParameterError::new_err(format!(
            "sums must be as many as out, got {} for {}",
            given.len(),
            out.len()
        )));
    }
    write_noisy(sums.py(), noisy, given, out, threads, rng)
}

/// Adds noise to `sums` and writes them to `out`.
fn write_noisy<T: Real>(
    py: Python<'_>,
    noisy: &sgd::NoisyGradient,
    sums: &[i64],
    out: &mut [T],
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    match hazmat::given(rng)? {
        Some(mut rng) => noisy.release_with(sums, out, &mut *rng).map_err(to_py),
        None => runtime::pausing(py, |pause| noisy.release(sums, out, threads, pause)),
    }
}

/// The means of clipped gradients, with noise that is correlated between steps.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct CorrelatedGradient {
    run: Mutex<sgd::CorrelatedGradient>,
    clipping: Clipping,
    noise_multiplier: f64,
    expected_batch_size: f64,
}

#[pymethods]
impl CorrelatedGradient {
    #[new]
    #[pyo3(signature = (*, numerators, steps, gain, sensitivity, participation, clip_norm, noise_multiplier, expected_batch_size))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        numerators: Vec<u32>,
        steps: u64,
        gain: f64,
        sensitivity: f64,
        participation: String,
        clip_norm: &Bound<'_, PyAny>,
        noise_multiplier: &Bound<'_, PyAny>,
        expected_batch_size: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (clip_norm, noise_multiplier) =
            (real(clip_norm, "clip_norm")?, real_up(noise_multiplier, "noise_multiplier")?);
        let expected_batch_size = real(expected_batch_size, "expected_batch_size")?;
        let strategy = Strategy { numerators, steps, gain, sensitivity, participation };
        let run = sgd::CorrelatedGradient::new(strategy, clip_norm, noise_multiplier, expected_batch_size, None);
        run.map(Self::from).map_err(to_py)
    }

    /// Another run with these parameters, from its first step.
    fn start(&self, key: Option<&Bound<'_, NoiseKey>>) -> PyResult<Self> {
        let key = key.map(|key| key.get().share());
        self.lock().and_then(|run| run.start(key)).map(Self::from).map_err(to_py)
    }

    #[getter]
    fn clip_norm(&self) -> f64 {
        self.clipping.clip_norm()
    }

    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    #[getter]
    fn expected_batch_size(&self) -> f64 {
        self.expected_batch_size
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.clipping.granularity()
    }

    #[getter]
    fn next_step(&self) -> PyResult<u64> {
        Ok(self.lock().map_err(to_py)?.next_step())
    }

    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.lock().map_err(to_py)?.id().map(|id| PyBytes::new(py, &id)))
    }

    /// The sensitivity of the sum of rows of `width` numbers.
    fn sensitivity(&self, width: usize) -> f64 {
        self.clipping.sensitivity_steps(width) as f64 * self.granularity()
    }

    /// What brings the run back with its key.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.lock().and_then(|run| run.state()).map(|state| PyBytes::new(py, &state)).map_err(to_py)
    }

    /// Makes the noise of the steps of a run with this state again.
    fn resume(&self, py: Python<'_>, state: &[u8], threads: Threads) -> PyResult<()> {
        runtime::pausing(py, |pause| self.lock()?.resume(state, threads.get(), pause))
    }

    /// Writes the next step, for `gradients`, to `out`.
    #[pyo3(signature = (gradients, out, threads, rng=None))]
    fn step(
        &self,
        gradients: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        for_dtype!(gradients, write_correlated(self, gradients, out, threads.get(), rng))
    }
}

impl From<sgd::CorrelatedGradient> for CorrelatedGradient {
    fn from(run: sgd::CorrelatedGradient) -> Self {
        let (clipping, noise_multiplier) = (*run.clipping(), run.noise_multiplier());
        Self { clipping, noise_multiplier, expected_batch_size: run.expected_batch_size(), run: Mutex::new(run) }
    }
}

impl CorrelatedGradient {
    /// The run, unless another thread makes a step: it may wait for the GIL, so nobody may wait for it.
    fn lock(&self) -> Result<MutexGuard<'_, sgd::CorrelatedGradient>, Error> {
        self.run.try_lock().map_err(|_| Error::Halted("a step is under way in another thread, or has panicked".into()))
    }
}

fn write_correlated<T: Real + Element>(
    kind: &str,
    run: &CorrelatedGradient,
    gradients: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut out = buffers::writable::<T>(out, "out", kind)?;
    let out = buffers::elements(&mut out, "out")?;
    run.lock().and_then(|mut run| run.begin(out.len())).map_err(to_py)?;
    let sums = sums_of::<T>(kind, &run.clipping, gradients, out.len(), threads)?;
    match hazmat::given(rng)? {
        Some(mut rng) => run.lock().and_then(|mut run| run.release_with(&sums, out, &mut *rng)).map_err(to_py),
        None => runtime::pausing(gradients.py(), |pause| run.lock()?.release(&sums, out, threads, pause)),
    }
}

/// Sums that were made in floats, on a grid, with such noise.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct FloatSums(sgd::FloatSums);

#[pymethods]
impl FloatSums {
    #[new]
    fn new(numerators: Vec<u32>, sigma: &Bound<'_, PyAny>, gain: f64, granularity: f64) -> PyResult<Self> {
        let noise = sgd::CorrelatedNoise::new(numerators, real_up(sigma, "sigma")?, gain).map_err(to_py)?;
        sgd::FloatSums::new(noise, granularity).map(Self).map_err(to_py)
    }

    /// How many numbers a history for `width` sums has.
    fn history_length(&self, width: usize) -> usize {
        self.0.noise().history_length(width)
    }

    /// Puts `sums` on the grid, with the noise of a step, and the noise into the history.
    #[pyo3(signature = (history, step, sums, threads, rng=None))]
    fn release(
        &self,
        history: &Bound<'_, PyAny>,
        step: u64,
        sums: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        for_dtype!(sums, write_float_sums(&self.0, step, history, sums, threads.get(), rng))
    }
}

fn write_float_sums<T: Real + Element>(
    kind: &str,
    noisy: &sgd::FloatSums,
    step: u64,
    history: &Bound<'_, PyAny>,
    sums: &Bound<'_, PyAny>,
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    with_history::<T>(kind, noisy.noise(), history, sums, |history, values| match hazmat::given(rng)? {
        Some(mut rng) => noisy.release_with(step, history, values, &mut *rng).map_err(to_py),
        None => runtime::pausing(sums.py(), |pause| noisy.release(step, history, values, threads, pause)),
    })
}

/// Sums of integers with such noise.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct IntegerSums(sgd::IntegerSums);

#[pymethods]
impl IntegerSums {
    #[new]
    fn new(numerators: Vec<u32>, stddev: &Bound<'_, PyAny>, gain: f64) -> PyResult<Self> {
        sgd::IntegerSums::new(numerators, real_up(stddev, "stddev")?, gain).map(Self).map_err(to_py)
    }

    /// How many numbers a history for `width` sums has.
    fn history_length(&self, width: usize) -> usize {
        self.0.noise().history_length(width)
    }

    /// Adds the noise of a step to `sums`, and puts the noise into the history.
    #[pyo3(signature = (history, step, sums, threads, rng=None))]
    fn release(
        &self,
        history: &Bound<'_, PyAny>,
        step: u64,
        sums: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let noisy = &self.0;
        with_history::<i64>("int64", noisy.noise(), history, sums, |history, values| match hazmat::given(rng)? {
            Some(mut rng) => noisy.release_with(step, history, values, &mut *rng).map_err(to_py),
            None => runtime::pausing(sums.py(), |pause| noisy.release(step, history, values, threads.get(), pause)),
        })
    }
}

/// Calls `release` with the history and the sums, unless the history has another length.
fn with_history<T: Element>(
    kind: &str,
    noise: &sgd::CorrelatedNoise,
    history: &Bound<'_, PyAny>,
    sums: &Bound<'_, PyAny>,
    release: impl FnOnce(&mut [i64], &mut [T]) -> PyResult<()>,
) -> PyResult<()> {
    let mut history = buffers::writable::<i64>(history, "history", "int64")?;
    let history = buffers::elements(&mut history, "history")?;
    let mut sums = buffers::writable::<T>(sums, "sums", kind)?;
    let sums = buffers::elements(&mut sums, "sums")?;
    if history.len() != noise.history_length(sums.len()) {
        return Err(ParameterError::new_err("history must be as long as the number of sums asks for"));
    }
    release(history, sums)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoisyGradient>()?;
    module.add_class::<CorrelatedGradient>()?;
    module.add_class::<FloatSums>()?;
    module.add_class::<IntegerSums>()?;
    module.add_function(wrap_pyfunction!(clip_and_sum, module)?)?;
    module.add_function(wrap_pyfunction!(add_clipped, module)?)
}
