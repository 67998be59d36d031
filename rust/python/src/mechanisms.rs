//! The mechanisms.

use dpnoise_core::mechanisms::{
    self, Calibration, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Method, NegativeBinomialShares, Numbers,
    Skellam, Staircase, TruncatedDiscreteGaussian, TruncatedDiscreteLaplace,
};
use dpnoise_core::params::Relation;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::numbers::{integer, optional, real, real_down, real_up};
use crate::runtime::Threads;
use crate::samplers::{Dtype, RADIUS};
use crate::{buffers, hazmat, runtime};

/// A mechanism that adds noise to every value.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Additive(pub(crate) Kind);

pub(crate) enum Kind {
    Laplace(Laplace),
    Gaussian(Gaussian),
    DiscreteLaplace(DiscreteLaplace),
    DiscreteGaussian(DiscreteGaussian),
    TruncatedDiscreteLaplace(TruncatedDiscreteLaplace),
    TruncatedDiscreteGaussian(TruncatedDiscreteGaussian),
    Staircase(Staircase),
    Skellam(Skellam),
    NegativeBinomialShares(NegativeBinomialShares),
}

/// What all mechanisms have.
macro_rules! of_any {
    ($additive:expr, $mechanism:ident => $result:expr) => {
        match &$additive.0 {
            Kind::Laplace($mechanism) => $result,
            Kind::Gaussian($mechanism) => $result,
            Kind::DiscreteLaplace($mechanism) => $result,
            Kind::DiscreteGaussian($mechanism) => $result,
            Kind::TruncatedDiscreteLaplace($mechanism) => $result,
            Kind::TruncatedDiscreteGaussian($mechanism) => $result,
            Kind::Staircase($mechanism) => $result,
            Kind::Skellam($mechanism) => $result,
            Kind::NegativeBinomialShares($mechanism) => $result,
        }
    };
}

/// The numbers of parties.
const PARTIES: &str = "an integer from 1 to 2**32";

fn misfit() -> PyErr {
    PyTypeError::new_err("the mechanism is of another kind")
}

#[pymethods]
impl Additive {
    /// The mechanism `kind`; a rho takes the place of the epsilon, which is `None` then.
    #[new]
    #[pyo3(signature = (
        kind, *, epsilon, sensitivity, delta=None, rho=None, classical=false, granularity=None, scale=None, radius=None,
        parties=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are named")]
    fn new(
        kind: &str,
        epsilon: &Bound<'_, PyAny>,
        sensitivity: &Bound<'_, PyAny>,
        delta: Option<&Bound<'_, PyAny>>,
        rho: Option<&Bound<'_, PyAny>>,
        classical: bool,
        granularity: Option<&Bound<'_, PyAny>>,
        scale: Option<&Bound<'_, PyAny>>,
        radius: Option<&Bound<'_, PyAny>>,
        parties: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let epsilon = if rho.is_none() { Some(real_down(epsilon, "epsilon")?) } else { None };
        let rho = rho.map(|rho| real_down(rho, "rho")).transpose()?;
        let delta = delta.map(|delta| real_down(delta, "delta")).transpose()?;
        let scale = optional(scale, "scale")?;
        let radius = radius.map(|radius| integer(radius, "radius", RADIUS)).transpose()?;
        let parties = parties.map(|parties| integer(parties, "parties", PARTIES)).transpose()?;
        let whole = || sensitivity.extract::<u64>();
        let sensitivity = || real_up(sensitivity, "sensitivity");
        let granularity = || optional(granularity, "granularity");
        let method = if classical { Method::Classical } else { Method::Analytic };
        match (kind, epsilon, delta, rho) {
            ("laplace", Some(epsilon), None, None) => {
                Laplace::new(epsilon, sensitivity()?, granularity()?).map(Kind::Laplace)
            }
            ("gaussian", Some(epsilon), Some(delta), None) => {
                Gaussian::new(epsilon, delta, sensitivity()?, method, granularity()?).map(Kind::Gaussian)
            }
            ("gaussian", None, delta, Some(rho)) => {
                Gaussian::with_rho(rho, delta, sensitivity()?, granularity()?).map(Kind::Gaussian)
            }
            ("discrete_gaussian", Some(epsilon), Some(delta), None) => {
                DiscreteGaussian::new(epsilon, delta, sensitivity()?).map(Kind::DiscreteGaussian)
            }
            ("discrete_gaussian", None, delta, Some(rho)) => {
                DiscreteGaussian::with_rho(rho, delta, sensitivity()?).map(Kind::DiscreteGaussian)
            }
            ("truncated_discrete_gaussian", Some(epsilon), Some(delta), None) => {
                TruncatedDiscreteGaussian::new(epsilon, delta, sensitivity()?).map(Kind::TruncatedDiscreteGaussian)
            }
            ("truncated_discrete_gaussian", Some(epsilon), None, None) => {
                let (scale, radius) = scale.zip(radius).ok_or_else(misfit)?;
                TruncatedDiscreteGaussian::with_radius(epsilon, scale, radius, sensitivity()?)
                    .map(Kind::TruncatedDiscreteGaussian)
            }
            ("discrete_laplace", Some(epsilon), None, None) => {
                DiscreteLaplace::new(epsilon, whole()?).map(Kind::DiscreteLaplace)
            }
            ("truncated_discrete_laplace", Some(epsilon), Some(delta), None) => {
                TruncatedDiscreteLaplace::new(epsilon, delta, whole()?).map(Kind::TruncatedDiscreteLaplace)
            }
            ("truncated_discrete_laplace", Some(epsilon), None, None) => {
                TruncatedDiscreteLaplace::with_radius(epsilon, radius.ok_or_else(misfit)?, whole()?)
                    .map(Kind::TruncatedDiscreteLaplace)
            }
            ("staircase", Some(epsilon), None, None) => Staircase::new(epsilon, whole()?).map(Kind::Staircase),
            ("skellam", Some(epsilon), Some(delta), None) => {
                Skellam::new(epsilon, delta, whole()?, parties.ok_or_else(misfit)?).map(Kind::Skellam)
            }
            ("negative_binomial_shares", Some(epsilon), None, None) => {
                NegativeBinomialShares::new(epsilon, whole()?, parties.ok_or_else(misfit)?)
                    .map(Kind::NegativeBinomialShares)
            }
            _ => return Err(misfit()),
        }
        .map(Self)
        .map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> Option<f64> {
        match &self.0 {
            Kind::Laplace(laplace) => Some(laplace.epsilon()),
            Kind::DiscreteLaplace(laplace) => Some(laplace.epsilon()),
            Kind::Gaussian(gaussian) => gaussian.epsilon(),
            Kind::DiscreteGaussian(gaussian) => gaussian.epsilon(),
            Kind::TruncatedDiscreteLaplace(laplace) => Some(laplace.epsilon()),
            Kind::TruncatedDiscreteGaussian(gaussian) => Some(gaussian.epsilon()),
            Kind::Staircase(staircase) => Some(staircase.epsilon()),
            Kind::Skellam(skellam) => Some(skellam.epsilon()),
            Kind::NegativeBinomialShares(shares) => Some(shares.epsilon()),
        }
    }

    #[getter]
    fn delta(&self) -> Option<f64> {
        match &self.0 {
            Kind::Laplace(_) | Kind::DiscreteLaplace(_) | Kind::Staircase(_) | Kind::NegativeBinomialShares(_) => {
                Some(0.0)
            }
            Kind::Gaussian(gaussian) => gaussian.delta(),
            Kind::DiscreteGaussian(gaussian) => gaussian.delta(),
            Kind::TruncatedDiscreteLaplace(laplace) => Some(laplace.delta()),
            Kind::TruncatedDiscreteGaussian(gaussian) => Some(gaussian.delta()),
            Kind::Skellam(skellam) => Some(skellam.delta()),
        }
    }

    #[getter]
    fn rho(&self) -> Option<f64> {
        match &self.0 {
            Kind::Gaussian(gaussian) => gaussian.rho(),
            Kind::DiscreteGaussian(gaussian) => gaussian.rho(),
            _ => None,
        }
    }

    #[getter]
    fn sensitivity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        of_any!(self, mechanism => Ok(mechanism.sensitivity().into_pyobject(py)?.into_any()))
    }

    #[getter]
    fn granularity(&self) -> f64 {
        of_any!(self, mechanism => mechanism.granularity())
    }

    #[getter]
    fn scale(&self) -> f64 {
        of_any!(self, mechanism => mechanism.scale())
    }

    #[getter]
    fn multiplier(&self) -> PyResult<f64> {
        if let Kind::Gaussian(gaussian) = &self.0 { Ok(gaussian.multiplier()) } else { Err(misfit()) }
    }

    fn granularity_for(&self, count: usize) -> PyResult<f64> {
        of_any!(self, mechanism => mechanism.noise(count).map(|noise| noise.granularity())).map_err(to_py)
    }

    fn scale_for(&self, count: usize) -> PyResult<f64> {
        of_any!(self, mechanism => mechanism.noise(count).map(|noise| noise.real_scale())).map_err(to_py)
    }

    /// The largest magnitude of truncated noise.
    fn radius_for(&self, count: usize) -> PyResult<Option<u64>> {
        of_any!(self, mechanism => mechanism.noise(count).map(|noise| noise.radius())).map_err(to_py)
    }

    fn error(&self, level: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
        let level = real(level, "level")?;
        of_any!(self, mechanism => mechanism.error(level, count)).map_err(to_py)
    }

    /// `count` is the number of values, or for shares of the parties that collude.
    fn delta_for(&self, epsilon: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
        let epsilon = real_down(epsilon, "epsilon")?;
        match &self.0 {
            Kind::Gaussian(gaussian) => gaussian.delta_for(epsilon, count),
            Kind::DiscreteGaussian(gaussian) => gaussian.delta_for(epsilon, count),
            Kind::TruncatedDiscreteGaussian(gaussian) => gaussian.delta_for(epsilon, count),
            Kind::Skellam(skellam) => skellam.delta_for(epsilon, count as u64),
            Kind::NegativeBinomialShares(shares) => shares.delta_for(epsilon, count as u64),
            _ => return Err(misfit()),
        }
        .map_err(to_py)
    }

    /// The same.
    fn epsilon_for(&self, delta: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
        let delta = real_down(delta, "delta")?;
        match &self.0 {
            Kind::Gaussian(gaussian) => gaussian.epsilon_for(delta, count),
            Kind::DiscreteGaussian(gaussian) => gaussian.epsilon_for(delta, count),
            Kind::Skellam(skellam) => skellam.epsilon_for(delta, count as u64),
            Kind::NegativeBinomialShares(shares) => shares.epsilon_for(delta, count as u64),
            _ => return Err(misfit()),
        }
        .map_err(to_py)
    }

    #[pyo3(signature = (x, threads, rng=None))]
    #[allow(unused_variables, reason = "threads are checked, and one value needs none")]
    fn release_one<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_any!(self, mechanism => {
            let released = release_one(mechanism, x.extract()?, rng)?;
            Ok(released.into_pyobject(x.py())?.into_any())
        })
    }

    /// Replaces the values of `x`, to which no other code has a reference, by their releases.
    #[pyo3(signature = (x, threads, rng=None))]
    fn release(&self, x: &Bound<'_, PyAny>, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        of_any!(self, mechanism => release(mechanism, x, threads.get(), rng))
    }

    /// Releases the number of `rows` that are not 0.
    #[pyo3(signature = (rows, rng=None))]
    fn release_count(&self, rows: &Bound<'_, PyAny>, rng: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
        let Kind::DiscreteLaplace(laplace) = &self.0 else {
            return Err(misfit());
        };
        let array = buffers::readable::<u8>(rows, "rows", "uint8")?;
        let rows = buffers::slice(&array, "rows")?;
        match hazmat::given(rng)? {
            Some(mut rng) => laplace.release_count_with(rows, &mut *rng),
            None => laplace.release_count(rows),
        }
        .map_err(to_py)
    }
}

fn release_one<P: Calibration<V>, V: Numbers>(
    mechanism: &mechanisms::Additive<P, V>,
    value: V::Value,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<V::Value> {
    match hazmat::given(rng)? {
        Some(mut rng) => {
            let mut values = [value];
            mechanism.release_with(&mut values, &mut *rng).map(|()| values[0])
        }
        None => mechanism.release_one(value),
    }
    .map_err(to_py)
}

fn release<P: Calibration<V>, V: Numbers<Value: Dtype>>(
    mechanism: &mechanisms::Additive<P, V>,
    array: &Bound<'_, PyAny>,
    threads: usize,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut values = buffers::writable::<V::Value>(array, "x", V::Value::NAME)?;
    let values = buffers::elements(&mut values, "x")?;
    if let Some(mut rng) = hazmat::given(rng)? {
        return mechanism.release_with(values, &mut *rng).map_err(to_py);
    }
    runtime::pausing(array.py(), |pause| mechanism.release_pausing(values, threads, pause))
}

/// The sum of a column whose values are clamped.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct Sum(mechanisms::Sum);

#[pymethods]
impl Sum {
    #[new]
    #[pyo3(signature = (*, lower, upper, epsilon, relation, granularity=None))]
    fn new(
        lower: &Bound<'_, PyAny>,
        upper: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        relation: &str,
        granularity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bounds = (real(lower, "bounds[0]")?, real(upper, "bounds[1]")?);
        let granularity = optional(granularity, "granularity")?;
        let relation = Relation::from_name(relation).map_err(to_py)?;
        mechanisms::Sum::new(bounds, real_down(epsilon, "epsilon")?, relation, granularity).map(Self).map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn sensitivity(&self) -> f64 {
        self.0.sensitivity()
    }

    #[getter]
    fn granularity(&self) -> f64 {
        self.0.granularity()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    fn error(&self, level: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.error(real(level, "level")?).map_err(to_py)
    }

    /// Overwrites `values`.
    #[pyo3(signature = (values, threads, rng=None))]
    fn release(&self, values: &Bound<'_, PyAny>, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        let threads = threads.get();
        let mut array = buffers::writable::<f64>(values, "column", "float64")?;
        let column = buffers::elements(&mut array, "column")?;
        match hazmat::given(rng)? {
            Some(mut rng) => self.0.release_with(column, threads, &mut *rng).map_err(to_py),
            None => runtime::detached(values.py(), || self.0.release(column, threads)),
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sum>()?;
    module.add_class::<Additive>()
}
