//! Differentially private stochastic gradient descent.

use std::slice::from_ref;

use dpnoise_core::sgd::{self, Clipping, Matrix, Real};
use numpy::{Element, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::{ParameterError, to_py};
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
    let mut sums = Zeroizing::new(vec![0; width]);
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

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoisyGradient>()?;
    module.add_function(wrap_pyfunction!(clip_and_sum, module)?)?;
    module.add_function(wrap_pyfunction!(add_clipped, module)?)
}
