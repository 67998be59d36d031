//! The mechanisms.

use dpnoise_core::mechanisms::{self, Additive, Calibration, Method, Numbers};
use dpnoise_core::params::Relation;
use numpy::Element;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::numbers::{optional, real, real_down, real_up};
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

/// Replaces the values of `array`, to which no other code has a reference, by their releases.
fn release<P: Calibration<V>, V: Numbers<Value: Element>>(
    mechanism: &Additive<P, V>,
    array: &Bound<'_, PyAny>,
    kind: &str,
    threads: Threads,
    rng: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let threads = threads.get();
    let mut values = buffers::writable::<V::Value>(array, "x", kind)?;
    let values = buffers::elements(&mut values, "x")?;
    if let Some(mut rng) = hazmat::given(rng)? {
        return mechanism.release_with(values, &mut *rng).map_err(to_py);
    }
    runtime::pausing(array.py(), |pause| mechanism.release_pausing(values, threads, pause))
}

fn release_one<P: Calibration<V>, V: Numbers>(
    mechanism: &Additive<P, V>,
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

/// A class for a mechanism that adds noise: the common methods, and `own` methods.
macro_rules! noise_mechanism {
    ($(#[$doc:meta])* $name:ident, $value:ty, $kind:literal, $sensitivity:ty, { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "dpnoise._native", frozen)]
        pub(crate) struct $name(pub(crate) mechanisms::$name);

        #[pymethods]
        impl $name {
            $($own)*

            #[getter]
            fn sensitivity(&self) -> $sensitivity {
                self.0.sensitivity()
            }

            #[getter]
            fn scale(&self) -> f64 {
                self.0.scale()
            }

            fn error(&self, level: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
                self.0.error(real(level, "level")?, count).map_err(to_py)
            }

            #[pyo3(signature = (x, threads, rng=None))]
            #[allow(unused_variables, reason = "threads are checked, and one value needs none")]
            fn release_one(&self, x: $value, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<$value> {
                release_one(&self.0, x, rng)
            }

            #[pyo3(signature = (x, threads, rng=None))]
            fn release(&self, x: &Bound<'_, PyAny>, threads: Threads, rng: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
                release(&self.0, x, $kind, threads, rng)
            }
        }
    };
}

noise_mechanism!(
    /// The Laplace mechanism on a grid.
    Laplace, f64, "float64", f64, {
        #[new]
        #[pyo3(signature = (*, epsilon, sensitivity, granularity=None))]
        fn new(
            epsilon: &Bound<'_, PyAny>,
            sensitivity: &Bound<'_, PyAny>,
            granularity: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (epsilon, sensitivity) = (real_down(epsilon, "epsilon")?, real_up(sensitivity, "sensitivity")?);
            let granularity = optional(granularity, "granularity")?;
            mechanisms::Laplace::new(epsilon, sensitivity, granularity).map(Self).map_err(to_py)
        }

        #[getter]
        fn epsilon(&self) -> f64 {
            self.0.epsilon()
        }

        #[getter]
        fn granularity(&self) -> f64 {
            self.0.granularity()
        }

        fn granularity_for(&self, count: usize) -> PyResult<f64> {
            self.0.noise(count).map(|noise| noise.granularity()).map_err(to_py)
        }

        fn scale_for(&self, count: usize) -> PyResult<f64> {
            self.0.noise(count).map(|noise| noise.real_scale()).map_err(to_py)
        }
    }
);

noise_mechanism!(
    /// The discrete Laplace mechanism.
    DiscreteLaplace, i64, "int64", u64, {
        #[new]
        #[pyo3(signature = (*, epsilon, sensitivity))]
        fn new(epsilon: &Bound<'_, PyAny>, sensitivity: u64) -> PyResult<Self> {
            mechanisms::DiscreteLaplace::new(real_down(epsilon, "epsilon")?, sensitivity).map(Self).map_err(to_py)
        }

        /// Releases the number of `rows` that are not 0.
        #[pyo3(signature = (rows, rng=None))]
        fn release_count(&self, rows: &Bound<'_, PyAny>, rng: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
            let array = buffers::readable::<u8>(rows, "rows", "uint8")?;
            let rows = buffers::slice(&array, "rows")?;
            match hazmat::given(rng)? {
                Some(mut rng) => self.0.release_count_with(rows, &mut *rng),
                None => self.0.release_count(rows),
            }
            .map_err(to_py)
        }

        #[getter]
        fn epsilon(&self) -> f64 {
            self.0.epsilon()
        }
    }
);

/// A class for a mechanism that adds Gaussian noise: `options` are the parameters beyond those of privacy.
macro_rules! gaussian_mechanism {
    ($(#[$doc:meta])* $name:ident, $value:ty, $kind:literal, { $($own:tt)* }) => {
        noise_mechanism!($(#[$doc])* $name, $value, $kind, f64, {
            $($own)*

            #[getter]
            fn epsilon(&self) -> Option<f64> {
                self.0.epsilon()
            }

            #[getter]
            fn delta(&self) -> Option<f64> {
                self.0.delta()
            }

            #[getter]
            fn rho(&self) -> Option<f64> {
                self.0.rho()
            }

            fn delta_for(&self, epsilon: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
                self.0.delta_for(real_down(epsilon, "epsilon")?, count).map_err(to_py)
            }

            fn epsilon_for(&self, delta: &Bound<'_, PyAny>, count: usize) -> PyResult<f64> {
                self.0.epsilon_for(real_down(delta, "delta")?, count).map_err(to_py)
            }
        });
    };
}

gaussian_mechanism!(
    /// The Gaussian mechanism on a grid.
    Gaussian, f64, "float64", {
        #[new]
        #[pyo3(signature = (*, epsilon, delta, sensitivity, classical, granularity=None))]
        fn new(
            epsilon: &Bound<'_, PyAny>,
            delta: &Bound<'_, PyAny>,
            sensitivity: &Bound<'_, PyAny>,
            classical: bool,
            granularity: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (epsilon, delta) = (real_down(epsilon, "epsilon")?, real_down(delta, "delta")?);
            let sensitivity = real_up(sensitivity, "sensitivity")?;
            let method = if classical { Method::Classical } else { Method::Analytic };
            let granularity = optional(granularity, "granularity")?;
            mechanisms::Gaussian::new(epsilon, delta, sensitivity, method, granularity).map(Self).map_err(to_py)
        }

        #[staticmethod]
        #[pyo3(signature = (*, rho, delta, sensitivity, granularity=None))]
        fn with_rho(
            rho: &Bound<'_, PyAny>,
            delta: Option<&Bound<'_, PyAny>>,
            sensitivity: &Bound<'_, PyAny>,
            granularity: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (rho, delta) = (real_down(rho, "rho")?, delta.map(|delta| real_down(delta, "delta")).transpose()?);
            let (sensitivity, granularity) = (real_up(sensitivity, "sensitivity")?, optional(granularity, "granularity")?);
            mechanisms::Gaussian::with_rho(rho, delta, sensitivity, granularity).map(Self).map_err(to_py)
        }

        #[getter]
        fn multiplier(&self) -> f64 {
            self.0.multiplier()
        }

        #[getter]
        fn granularity(&self) -> f64 {
            self.0.granularity()
        }

        fn granularity_for(&self, count: usize) -> PyResult<f64> {
            self.0.noise(count).map(|noise| noise.granularity()).map_err(to_py)
        }

        fn scale_for(&self, count: usize) -> PyResult<f64> {
            self.0.noise(count).map(|noise| noise.real_scale()).map_err(to_py)
        }
    }
);

gaussian_mechanism!(
    /// The discrete Gaussian mechanism.
    DiscreteGaussian, i64, "int64", {
        #[new]
        #[pyo3(signature = (*, epsilon, delta, sensitivity))]
        fn new(
            epsilon: &Bound<'_, PyAny>,
            delta: &Bound<'_, PyAny>,
            sensitivity: &Bound<'_, PyAny>,
        ) -> PyResult<Self> {
            let (epsilon, delta) = (real_down(epsilon, "epsilon")?, real_down(delta, "delta")?);
            let sensitivity = real_up(sensitivity, "sensitivity")?;
            mechanisms::DiscreteGaussian::new(epsilon, delta, sensitivity).map(Self).map_err(to_py)
        }

        #[staticmethod]
        #[pyo3(signature = (*, rho, delta, sensitivity))]
        fn with_rho(
            rho: &Bound<'_, PyAny>,
            delta: Option<&Bound<'_, PyAny>>,
            sensitivity: &Bound<'_, PyAny>,
        ) -> PyResult<Self> {
            let (rho, delta) = (real_down(rho, "rho")?, delta.map(|delta| real_down(delta, "delta")).transpose()?);
            let sensitivity = real_up(sensitivity, "sensitivity")?;
            mechanisms::DiscreteGaussian::with_rho(rho, delta, sensitivity).map(Self).map_err(to_py)
        }
    }
);

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
    module.add_class::<Laplace>()?;
    module.add_class::<DiscreteLaplace>()?;
    module.add_class::<Gaussian>()?;
    module.add_class::<DiscreteGaussian>()
}
