//! Partition selection: releases and decisions one group at a time, and of all groups of a column.

use std::sync::{Mutex, PoisonError};

use dpnoise_core::Error;
use dpnoise_core::mechanisms::{self, GaussianPrivacy, Law, Noise, NoiseBuffer, Reals};
use dpnoise_core::params::{Epsilon, Relation};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::mechanisms::Additive;
use crate::numbers::{real, real_down};
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

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

/// The counts of the values that occur, where the set of values is private too.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct StabilityHistogram(mechanisms::StabilityHistogram);

#[pymethods]
impl StabilityHistogram {
    #[new]
    #[pyo3(signature = (*, epsilon, delta, relation, rows=1))]
    fn new(epsilon: &Bound<'_, PyAny>, delta: &Bound<'_, PyAny>, relation: &str, rows: u64) -> PyResult<Self> {
        let (epsilon, delta) = (real_down(epsilon, "epsilon")?, real_down(delta, "delta")?);
        match Relation::from_name(relation).map_err(to_py)? {
            Relation::AddRemove => mechanisms::StabilityHistogram::of_persons(epsilon, delta, rows),
            relation if rows == 1 => mechanisms::StabilityHistogram::new(epsilon, delta, relation),
            Relation::Substitute => Err(Error::parameter("rows", rows, "1 under \"substitute\"")),
        }
        .map(Self)
        .map_err(to_py)
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.0.delta()
    }

    #[getter]
    fn threshold(&self) -> i64 {
        self.0.threshold()
    }

    /// Adds noise to `counts`, to which no other code has a reference, and returns the places of those to release.
    #[pyo3(signature = (counts, threads, rng=None))]
    fn release<'py>(
        &self,
        counts: &Bound<'py, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<usize>>> {
        let mut array = buffers::writable::<i64>(counts, "counts", "int64")?;
        let values = buffers::elements(&mut array, "counts")?;
        let places = match hazmat::given(rng)? {
            Some(mut rng) => self.0.release_with(values, &mut *rng).map_err(to_py),
            None => runtime::pausing(counts.py(), |pause| self.0.release_pausing(values, threads.get(), pause)),
        }?;
        Ok(PyArray1::from_vec(counts.py(), places))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoisyUsers>()?;
    module.add_class::<StabilityHistogram>()?;
    module.add_class::<TruncatedGeometric>()
}
