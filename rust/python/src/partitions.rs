//! Partition selection: releases and decisions one group at a time.

use std::sync::{Mutex, PoisonError};

use dpnoise_core::mechanisms::{self, GaussianPrivacy, Law, Noise, NoiseBuffer, Reals};
use dpnoise_core::params::Epsilon;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::mechanisms::Additive;
use crate::numbers::real;

/// A mechanism for numbers of people, with its noise drawn in advance.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct NoisyUsers(Mutex<Buffer>);

enum Buffer {
    Laplace(NoiseBuffer<Epsilon, Reals>),
    Gaussian(NoiseBuffer<GaussianPrivacy, Reals>),
}

#[pymethods]
impl NoisyUsers {
    #[new]
    fn new(mechanism: &Additive) -> PyResult<Self> {
        let buffer = match &mechanism.0 {
            Noise::Laplace(laplace) => NoiseBuffer::new(laplace).map(Buffer::Laplace),
            Noise::Gaussian(gaussian) => NoiseBuffer::new(gaussian).map(Buffer::Gaussian),
            _ => {
                return Err(PyTypeError::new_err("the mechanism must be one for real values"));
            }
        };
        buffer.map(|buffer| Self(Mutex::new(buffer))).map_err(to_py)
    }

    fn release(&self, num_users: &Bound<'_, PyAny>) -> PyResult<f64> {
        let value = real(num_users, "num_users")?;
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Buffer::Laplace(buffer) => buffer.release(value),
            Buffer::Gaussian(buffer) => buffer.release(value),
        }
        .map_err(to_py)
    }
}

/// The truncated geometric selection.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct TruncatedGeometric(Mutex<mechanisms::TruncatedGeometric>, Law);

#[pymethods]
impl TruncatedGeometric {
    #[new]
    #[pyo3(signature = (*, epsilon, turn, start, last))]
    fn new(epsilon: f64, turn: (f64, f64), start: (f64, f64), last: (f64, f64)) -> PyResult<Self> {
        let law = Law { epsilon, turn, start, last };
        let selection = mechanisms::TruncatedGeometric::new(law).map_err(to_py)?;
        Ok(Self(Mutex::new(selection), law))
    }

    fn should_keep(&self, num_users: &Bound<'_, PyAny>) -> PyResult<bool> {
        let people = real(num_users, "num_users")?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).should_keep(people).map_err(to_py)
    }

    /// The smaller one of the probabilities to keep and to drop a group, and whether it is the one to drop: for tests.
    fn coin(&self, num_users: f64) -> (f64, bool) {
        let (probability, drops) = self.1.of(num_users);
        (probability, drops != 0)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoisyUsers>()?;
    module.add_class::<TruncatedGeometric>()
}
