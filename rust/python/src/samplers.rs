//! Noise over the integers.

use dpnoise_core::arch::Backend;
use dpnoise_core::arch::trials::Layout;
use dpnoise_core::rng::{self, NOISE_UNIT, SecureRng, fill_parallel};
use dpnoise_core::samplers::histogram::{Histogram, Rarities};
use dpnoise_core::samplers::{self, Design};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_py;
use crate::{buffers, hazmat, numbers, runtime};

/// A noise distribution with its tables.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct NoiseSampler(Histogram);

/// Another design than the usual one, for tests of the rare paths: the allowance for the error of the fast comparison,
/// 2**-eta_bits, and the binary logarithm of the first bin's width, or `None` for single bins.
type GivenDesign = Option<(u32, Option<u32>)>;

fn design((eta_bits, shift): (u32, Option<u32>)) -> Design {
    let layout = shift.map_or(Layout::Single, |shift| Layout::Graded { shift });
    Design { layout, weight_bits: 32, eta_bits }
}

#[pymethods]
impl NoiseSampler {
    #[staticmethod]
    #[pyo3(signature = (scale, given=None))]
    fn discrete_laplace(scale: &Bound<'_, PyAny>, given: GivenDesign) -> PyResult<Self> {
        let scale = numbers::scale(scale, "scale")?;
        let sampler = given.map(design).map_or_else(
            || samplers::DiscreteLaplace::new(scale),
            |design| samplers::DiscreteLaplace::with_design(scale, design),
        );
        Ok(Self(sampler.into()))
    }

    #[staticmethod]
    #[pyo3(signature = (sigma, given=None))]
    fn discrete_gaussian(sigma: &Bound<'_, PyAny>, given: GivenDesign) -> PyResult<Self> {
        let sigma = numbers::scale(sigma, "sigma")?;
        let sampler = given.map(design).map_or_else(
            || samplers::DiscreteGaussian::new(sigma),
            |design| samplers::DiscreteGaussian::with_design(sigma, design),
        );
        sampler.map(|sampler| Self(sampler.into())).map_err(to_py)
    }

    #[staticmethod]
    #[pyo3(signature = (scale, given=None))]
    fn geometric(scale: &Bound<'_, PyAny>, given: GivenDesign) -> PyResult<Self> {
        let scale = numbers::scale(scale, "scale")?;
        let sampler = given
            .map(design)
            .map_or_else(|| samplers::Geometric::new(scale), |design| samplers::Geometric::with_design(scale, design));
        Ok(Self(sampler.into()))
    }

    #[pyo3(signature = (rng=None))]
    fn sample(&self, rng: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
        match hazmat::given(rng)? {
            Some(mut rng) => self.0.sample(&mut *rng),
            None => SecureRng::new().and_then(|mut rng| self.0.sample(&mut rng)),
        }
        .map_err(to_py)
    }

    #[pyo3(signature = (out, threads=None, rng=None))]
    fn fill(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        threads: Option<i64>,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let threads = runtime::threads(threads)?;
        let mut out = buffers::writable::<i64>(out, "out", "int64")?;
        let out = buffers::elements(&mut out, "out")?;
        if let Some(mut rng) = hazmat::given(rng)? {
            return self.0.fill(&mut *rng, out).map(drop).map_err(to_py);
        }
        runtime::in_parts(py, out, |part| {
            fill_parallel(part, NOISE_UNIT, threads, |rng, _, part| self.0.fill(rng, part).map(drop))
        })
    }

    /// Fills `out` from `rng` and tells how many trials, refinements and tail proposals that took: for tests.
    fn fill_counted(&self, out: &Bound<'_, PyAny>, rng: &Bound<'_, PyAny>) -> PyResult<(u64, u64, u64)> {
        let mut out = buffers::writable::<i64>(out, "out", "int64")?;
        let out = buffers::elements(&mut out, "out")?;
        let result = match hazmat::given(Some(rng))? {
            Some(mut rng) => self.0.fill(&mut *rng, out),
            None => SecureRng::new().and_then(|mut rng| self.0.fill(&mut rng, out)),
        };
        result.map(|Rarities { trials, refinements, tails }| (trials, refinements, tails)).map_err(to_py)
    }
}

/// `n` random bytes.
#[pyfunction]
fn random_bytes(py: Python<'_>, n: usize) -> PyResult<Bound<'_, PyBytes>> {
    let mut secure = SecureRng::new().map_err(to_py)?;
    PyBytes::new_with(py, n, |bytes| rng::fill_bytes(&mut secure, bytes).map_err(to_py))
}

/// The instruction set in use.
#[pyfunction]
fn cpu_backend() -> PyResult<&'static str> {
    Backend::current().map(Backend::name).map_err(to_py)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoiseSampler>()?;
    module.add_function(wrap_pyfunction!(random_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(cpu_backend, module)?)
}
