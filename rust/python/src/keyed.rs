//! Noise that a secret brings back.

use std::sync::Arc;

use dpnoise_core::rng;
use dpnoise_core::samplers::Keyed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_py;
use crate::numbers::integer;
use crate::runtime::Threads;
use crate::samplers::{Dtype, Kind, Sampler};
use crate::{buffers, runtime};

const STEP: &str = "an integer from 0 to 2**64 - 1";

/// A secret that brings noise back.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct NoiseKey(Arc<rng::NoiseKey>);

/// What a draw is called.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Ticket(rng::Ticket);

#[pymethods]
impl NoiseKey {
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        rng::NoiseKey::generate().map(Arc::new).map(Self).map_err(to_py)
    }

    #[staticmethod]
    fn from_secret_bytes(secret: &[u8]) -> PyResult<Self> {
        rng::NoiseKey::from_secret_bytes(secret).map(Arc::new).map(Self).map_err(to_py)
    }

    fn to_secret_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.secret_bytes())
    }

    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.fingerprint())
    }

    fn ticket(&self, domain: &str, step: &Bound<'_, PyAny>) -> PyResult<Ticket> {
        self.0.ticket(domain, integer(step, "step", STEP)?).map(Ticket).map_err(to_py)
    }

    /// Fills `out` with the samples from number `start` on, of a fresh ticket if `once`, otherwise of any.
    fn fill(
        &self,
        ticket: &Bound<'_, Ticket>,
        sampler: &Sampler,
        start: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        once: bool,
    ) -> PyResult<()> {
        let start = integer(start, "start", "an integer from 0 to 2**44 - 1")?;
        match &sampler.0 {
            Kind::Integer(noise) => self.fill_from(ticket.get(), &**noise, start, out, threads, once),
            Kind::Real(noise) => self.fill_from(ticket.get(), &**noise, start, out, threads, once),
            Kind::Coin(_) => Err(PyTypeError::new_err("coins cannot be brought back")),
        }
    }
}

impl NoiseKey {
    /// The key, for an object that needs it as long as it lives.
    pub(crate) fn share(&self) -> Arc<rng::NoiseKey> {
        Arc::clone(&self.0)
    }

    fn fill_from<D: Keyed<Item: Dtype>>(
        &self,
        ticket: &Ticket,
        noise: &D,
        start: u64,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        once: bool,
    ) -> PyResult<()> {
        let py = out.py();
        let mut out = buffers::writable::<D::Item>(out, "out", D::Item::NAME)?;
        let out = buffers::elements(&mut out, "out")?;
        let (fill, threads) = (if once { D::draw_keyed } else { D::regenerate }, threads.get());
        runtime::pausing(py, |pause| fill(noise, &self.0, &ticket.0, start, out, threads, pause))
    }
}

#[pymethods]
impl Ticket {
    #[staticmethod]
    fn from_bytes(ticket: &[u8]) -> PyResult<Self> {
        rng::Ticket::from_bytes(ticket).map(Self).map_err(to_py)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[getter]
    fn domain(&self) -> &str {
        self.0.domain()
    }

    #[getter]
    fn step(&self) -> u64 {
        self.0.step()
    }

    #[getter]
    fn nonce<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.nonce())
    }

    #[getter]
    fn is_fresh(&self) -> bool {
        self.0.is_fresh()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoiseKey>()?;
    module.add_class::<Ticket>()
}
