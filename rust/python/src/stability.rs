//! Stability: the test.

use dpnoise_core::stability;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::hazmat;
use crate::numbers::real_down;

/// The test whether a distance to instability is large.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct StabilityTest(stability::StabilityTest);

#[pymethods]
impl StabilityTest {
    #[new]
    fn new(epsilon: &Bound<'_, PyAny>, delta: &Bound<'_, PyAny>) -> PyResult<Self> {
        stability::StabilityTest::new(real_down(epsilon, "epsilon")?, real_down(delta, "delta")?)
            .map(Self)
            .map_err(to_py)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.0.delta()
    }

    #[getter]
    fn threshold(&self) -> i64 {
        self.0.threshold()
    }

    #[pyo3(signature = (distance, rng=None))]
    fn passes(&self, distance: i64, rng: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let passes = match hazmat::given(rng)? {
            Some(mut rng) => self.0.passes_with(distance, &mut *rng),
            None => self.0.passes(distance),
        };
        passes.map_err(to_py)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StabilityTest>()
}
