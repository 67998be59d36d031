//! Stability: the votes of random subsets.

use dpnoise_core::rng::SecureRng;
use dpnoise_core::stability::bootstrap::{self, ArgmaxColumnSum, Median, Mode, Statistic};
use dpnoise_core::threads::available_threads;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

/// The votes of random subsets, for a native function.
#[pyclass(module = "dpnoise._native")]
pub(crate) struct SubsetVotes(bootstrap::Bootstrap);

impl SubsetVotes {
    fn of(statistic: &dyn Statistic, q: f64, threads: Threads) -> PyResult<Self> {
        // Each thread has its own counters, so threads that cannot run at once would waste memory.
        let threads = threads.get().min(available_threads());
        bootstrap::Bootstrap::new(statistic, q, threads).map(Self).map_err(to_py)
    }
}

#[pymethods]
impl SubsetVotes {
    #[staticmethod]
    fn mode(codes: &Bound<'_, PyAny>, values: usize, q: f64, threads: Threads) -> PyResult<Self> {
        let codes = buffers::readable::<u32>(codes, "codes", "uint32")?;
        Self::of(&Mode::new(buffers::slice(&codes, "codes")?, values).map_err(to_py)?, q, threads)
    }

    #[staticmethod]
    fn median(codes: &Bound<'_, PyAny>, values: usize, q: f64, threads: Threads) -> PyResult<Self> {
        let codes = buffers::readable::<u32>(codes, "codes", "uint32")?;
        Self::of(&Median::new(buffers::slice(&codes, "codes")?, values).map_err(to_py)?, q, threads)
    }

    #[staticmethod]
    fn argmax_column_sum(matrix: &Bound<'_, PyAny>, columns: usize, q: f64, threads: Threads) -> PyResult<Self> {
        let matrix = buffers::readable::<f64>(matrix, "matrix", "float64")?;
        Self::of(&ArgmaxColumnSum::new(buffers::slice(&matrix, "matrix")?, columns).map_err(to_py)?, q, threads)
    }

    #[pyo3(signature = (subsets, rng=None))]
    fn add(&mut self, py: Python<'_>, subsets: u64, rng: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match hazmat::given(rng)? {
            Some(mut rng) => self.0.add_with_vartime(subsets, &mut *rng).map_err(to_py),
            None => runtime::detached(py, || self.0.add_vartime(subsets)),
        }
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        self.0.counts().map(|counts| counts.into_pyarray(py)).map_err(to_py)
    }

    #[getter]
    fn most_appearances(&self) -> u64 {
        self.0.most_appearances()
    }
}

/// Random subsets, for a Python function.
#[pyclass(module = "dpnoise._native")]
pub(crate) struct Subsets {
    subsets: bootstrap::Subsets,
    n: usize,
}

/// The positions of all subsets, one after the other, and where each subset ends.
type Drawn<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

#[pymethods]
impl Subsets {
    #[new]
    fn new(n: usize, q: f64) -> PyResult<Self> {
        Ok(Self { subsets: bootstrap::Subsets::new(n, q).map_err(to_py)?, n })
    }

    #[pyo3(signature = (subsets, rng=None))]
    fn draw<'py>(&mut self, py: Python<'py>, subsets: u64, rng: Option<&Bound<'py, PyAny>>) -> PyResult<Drawn<'py>> {
        let (mut positions, mut ends) = (vec![], vec![]);
        let keep = |subset: &[u32]| {
            positions.extend(subset.iter().map(|&position| i64::from(position)));
            ends.push(positions.len() as i64);
        };
        let drawn = match hazmat::given(rng)? {
            Some(mut rng) => self.subsets.draw(&mut *rng, subsets, keep),
            None => SecureRng::new().and_then(|mut rng| self.subsets.draw(&mut rng, subsets, keep)),
        };
        drawn.map_err(to_py)?;
        Ok((positions.into_pyarray(py), ends.into_pyarray(py)))
    }

    #[getter]
    fn most_appearances(&self) -> u64 {
        (0..self.n).map(|position| self.subsets.appearances(position)).max().unwrap_or(0)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SubsetVotes>()?;
    module.add_class::<Subsets>()
}
