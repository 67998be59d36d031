//! Reproducible generators: for tests only.

use dpnoise_core::Error;
use dpnoise_core::rng;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use rand_core::{TryCryptoRng, TryRng};

use crate::errors::to_py;
use crate::numbers::integer;

/// A generator that is passed as `rng=`.
#[pyclass(module = "dpnoise._native", subclass)]
pub(crate) struct TestRng(Source);

enum Source {
    Seeded(Box<rng::SeededRng>),
    Scripted(rng::ScriptedRng),
}

/// ChaCha12 under a key that is derived from a seed. For tests only.
///
/// Parameters
/// ----------
/// seed : int
///     The seed, from 0 to 2**64 - 1: equal seeds give equal words. Who knows it can subtract the noise.
#[pyclass(module = "dpnoise._native", extends = TestRng)]
pub(crate) struct SeededRng;

/// Given bytes in the place of random ones, played back once. For tests only.
///
/// Parameters
/// ----------
/// script : bytes
///     The bytes to play back, of any number. Who knows them can subtract the noise.
#[pyclass(module = "dpnoise._native", extends = TestRng)]
pub(crate) struct ScriptedRng;

#[pymethods]
impl SeededRng {
    #[new]
    fn new(seed: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let seed = integer(seed, "seed", "an integer from 0 to 2**64 - 1")?;
        let rng = rng::SeededRng::new(seed).map_err(to_py)?;
        Ok(PyClassInitializer::from(TestRng(Source::Seeded(Box::new(rng)))).add_subclass(Self))
    }
}

#[pymethods]
impl ScriptedRng {
    #[new]
    fn new(script: PyBackedBytes) -> PyClassInitializer<Self> {
        PyClassInitializer::from(TestRng(Source::Scripted(rng::ScriptedRng::new(&script[..])))).add_subclass(Self)
    }

    #[getter]
    fn remaining(this: PyRef<'_, Self>) -> usize {
        match &this.as_super().0 {
            Source::Seeded(_) => 0,
            Source::Scripted(rng) => rng.remaining(),
        }
    }
}

impl TryRng for TestRng {
    type Error = rng::Exhausted;

    fn try_next_u32(&mut self) -> Result<u32, rng::Exhausted> {
        match &mut self.0 {
            Source::Seeded(rng) => Ok(rand_core::Rng::next_u32(rng)),
            Source::Scripted(rng) => rng.try_next_u32(),
        }
    }

    fn try_next_u64(&mut self) -> Result<u64, rng::Exhausted> {
        match &mut self.0 {
            Source::Seeded(rng) => Ok(rand_core::Rng::next_u64(rng)),
            Source::Scripted(rng) => rng.try_next_u64(),
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rng::Exhausted> {
        match &mut self.0 {
            Source::Seeded(rng) => {
                rand_core::Rng::fill_bytes(rng, bytes);
                Ok(())
            }
            Source::Scripted(rng) => rng.try_fill_bytes(bytes),
        }
    }
}

impl TryCryptoRng for TestRng {}

/// The source of randomness of a call; `None` is fresh and secure.
pub(crate) fn given<'py>(rng: Option<&Bound<'py, PyAny>>) -> PyResult<Option<PyRefMut<'py, TestRng>>> {
    let Some(rng) = rng.filter(|rng| !rng.is_none()) else {
        return Ok(None);
    };
    let Ok(rng) = rng.cast::<TestRng>() else {
        return Err(PyTypeError::new_err(format!(
            "rng must be None (secure randomness) or a generator of dpnoise.hazmat, got {}",
            rng.get_type().name()?
        )));
    };
    let busy = || to_py(Error::randomness("the generator is in use by another call"));
    Ok(Some(rng.try_borrow_mut().map_err(|_| busy())?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TestRng>()?;
    module.add_class::<SeededRng>()?;
    module.add_class::<ScriptedRng>()
}
