//! The samplers.

use dpnoise_core::Error;
use dpnoise_core::generator::Generator;
use dpnoise_core::instruction_set::InstructionSet;
use dpnoise_core::params::RealScale;
use dpnoise_core::rng::{self, SecureRng};
use dpnoise_core::samplers::histogram::Rarities;
use dpnoise_core::samplers::{self, Bernoulli, Design, GridNoise, INTEGER_NOISE, IntegerNoise, Layout, Named};
use numpy::Element;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_py;
use crate::runtime::Threads;
use crate::{buffers, hazmat, numbers, runtime};

/// The dtype of an array of samples.
pub(crate) trait Dtype: Element + Copy + Default + Send {
    const NAME: &'static str;
}

impl Dtype for i64 {
    const NAME: &str = "int64";
}

impl Dtype for f64 {
    const NAME: &str = "float64";
}

impl Dtype for bool {
    const NAME: &str = "bool";
}

/// A distribution with its tables.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Sampler(pub(crate) Kind);

pub(crate) enum Kind {
    Integer(Box<IntegerNoise>),
    Real(Box<GridNoise>),
    Coin(Bernoulli),
}

#[pymethods]
impl Sampler {
    /// `more` is the granularity of real numbers, or for integers a further parameter, a tuple of several, or where there
    /// are none a radius; integers may have a design instead: for tests.
    #[new]
    #[pyo3(signature = (distribution, parameter, more=None, *, design=None))]
    fn new(
        distribution: &str,
        parameter: &Bound<'_, PyAny>,
        more: Option<&Bound<'_, PyAny>>,
        design: Option<(u32, u32)>,
    ) -> PyResult<Self> {
        match distribution {
            "laplace" => real("scale", parameter, more, GridNoise::laplace),
            "gaussian" => real("sigma", parameter, more, GridNoise::gaussian),
            "bernoulli" => Bernoulli::new(numbers::probability(parameter, "p")?).map(Kind::Coin).map_err(to_py),
            other => match INTEGER_NOISE.iter().find(|noise| noise.name == other) {
                Some(noise) => integer(noise, parameter, more, design),
                None => Err(PyTypeError::new_err(format!("no distribution is called {other}"))),
            },
        }
        .map(Self)
    }

    /// One sample, as an int, float or bool.
    #[pyo3(signature = (threads, rng=None))]
    #[allow(unused_variables, reason = "threads are checked, and one sample needs none")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        threads: Threads,
        rng: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            Kind::Integer(noise) => Ok(sample(&**noise, rng)?.into_pyobject(py)?.into_any()),
            Kind::Real(noise) => Ok(sample(&**noise, rng)?.into_pyobject(py)?.into_any()),
            Kind::Coin(coin) => Ok(sample(coin, rng)?.into_pyobject(py)?.to_owned().into_any()),
        }
    }

    /// Fills `out`, a C-contiguous array of the dtype of the samples.
    #[pyo3(signature = (out, threads, rng=None))]
    fn fill(&self, out: &Bound<'_, PyAny>, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match &self.0 {
            Kind::Integer(noise) => fill(&**noise, out, threads, rng),
            Kind::Real(noise) => fill(&**noise, out, threads, rng),
            Kind::Coin(coin) => fill(coin, out, threads, rng),
        }
    }

    /// Fills `out` with integers from `rng` and returns the numbers of trials, refinements and tail proposals: for
    /// tests.
    fn fill_counted(&self, out: &Bound<'_, PyAny>, rng: &Bound<'_, PyAny>) -> PyResult<(u64, u64, u64)> {
        let Kind::Integer(noise) = &self.0 else {
            return Err(PyTypeError::new_err("only samplers of integers count their trials"));
        };
        let mut out = buffers::writable::<i64>(out, "out", "int64")?;
        let out = buffers::elements(&mut out, "out")?;
        let result = match hazmat::given(Some(rng))? {
            Some(mut rng) => noise.fill_counted(out, &mut *rng),
            None => SecureRng::new().and_then(|mut rng| noise.fill_counted(out, &mut rng)),
        };
        result.map(|Rarities { trials, refinements, tails }| (trials, refinements, tails)).map_err(to_py)
    }
}

/// A sampler of integers with its further parameters, or truncated if a radius is given in their place; by the trials of a
/// design if one is given: the allowance for the error of the fast comparison, 2**-eta_bits, and the binary logarithm of the
/// first bin's width.
fn integer(
    noise: &Named,
    parameter: &Bound<'_, PyAny>,
    more: Option<&Bound<'_, PyAny>>,
    design: Option<(u32, u32)>,
) -> PyResult<Kind> {
    let parameter = numbers::scale(parameter, noise.parameter)?;
    let given: Vec<Bound<'_, PyAny>> = match more {
        Some(more) if noise.integers.len() > 1 => more.extract()?,
        more => more.cloned().into_iter().collect(),
    };
    let names = if noise.integers.is_empty() { &[("radius", RADIUS)] } else { noise.integers };
    let read = given.iter().zip(names).map(|(value, &(name, allowed))| numbers::integer(value, name, allowed));
    let integers = read.collect::<PyResult<Vec<u64>>>()?;
    if integers.len() < noise.integers.len() {
        return Err(PyTypeError::new_err("this distribution has further parameters"));
    }
    let whole = match (design, noise.with_design) {
        (Some((eta_bits, shift)), Some(with_design)) => {
            with_design(parameter, Design { layout: Layout { shift }, weight_bits: 32, eta_bits })
        }
        _ => (noise.new)(parameter, &integers),
    };
    let made = match integers[..] {
        [radius] if noise.integers.is_empty() => whole.and_then(|whole| whole.truncated(radius)),
        _ => whole,
    };
    made.map(|noise| Kind::Integer(Box::new(noise))).map_err(to_py)
}

/// The radii of truncated distributions.
const RADIUS: &str = "a positive integer up to 2**62";

fn real(
    name: &'static str,
    scale: &Bound<'_, PyAny>,
    granularity: Option<&Bound<'_, PyAny>>,
    make: impl Fn(RealScale, Option<f64>) -> Result<GridNoise, Error>,
) -> PyResult<Kind> {
    let scale = numbers::real_scale(scale, name)?;
    let granularity = granularity.map(|granularity| numbers::real(granularity, "granularity")).transpose()?;
    make(scale, granularity).map(|noise| Kind::Real(Box::new(noise))).map_err(to_py)
}

fn sample<D: samplers::Sampler>(distribution: &D, rng: Option<&Bound<'_, PyAny>>) -> PyResult<D::Item> {
    match hazmat::given(rng)? {
        Some(mut rng) => distribution.sample_with(&mut *rng),
        None => distribution.sample(),
    }
    .map_err(to_py)
}

fn fill<D: samplers::Sampler<Item: Dtype>>(
    distribution: &D,
    out: &Bound<'_, PyAny>,
    threads: Threads,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = out.py();
    let threads = threads.get();
    let mut out = buffers::writable::<D::Item>(out, "out", D::Item::NAME)?;
    let out = buffers::elements(&mut out, "out")?;
    if let Some(mut rng) = hazmat::given(rng)? {
        return distribution.fill_with(out, &mut *rng).map_err(to_py);
    }
    runtime::pausing(py, |pause| distribution.fill_pausing(out, threads, pause))
}

/// The largest number of bytes.
const BYTES: &str = "an integer from 0 to 2**63 - 1";

/// `n` random bytes.
#[pyfunction]
fn random_bytes<'py>(py: Python<'py>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let n: isize = numbers::integer(n, "n", BYTES)?;
    let n = usize::try_from(n).map_err(|_| to_py(Error::parameter("n", n, BYTES)))?;
    PyBytes::new_with(py, n, |bytes| {
        SecureRng::new().and_then(|mut secure| rng::fill_bytes(&mut secure, bytes)).map_err(to_py)
    })
}

/// The instruction set in use.
#[pyfunction]
fn instruction_set() -> PyResult<&'static str> {
    dpnoise_core::instruction_set::current().map(InstructionSet::name).map_err(to_py)
}

/// The generator of secure random words in use.
#[pyfunction]
fn generator() -> PyResult<&'static str> {
    dpnoise_core::generator::current().map(Generator::name).map_err(to_py)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sampler>()?;
    module.add_function(wrap_pyfunction!(random_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(instruction_set, module)?)?;
    module.add_function(wrap_pyfunction!(generator, module)?)
}
