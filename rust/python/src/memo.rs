//! The memos of clients of longitudinal protocols.

use dpnoise_core::local::ClientMemo;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffers::bytes_of;
use crate::errors::to_py;
use crate::numbers::integer;
use crate::runtime;

/// The secrets of some people. They never change, and are wiped when the object is dropped.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalMemo(pub(crate) ClientMemo);

#[pymethods]
impl LocalMemo {
    #[staticmethod]
    fn generate(py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<Self> {
        let n = integer(n, "n", "an integer from 0 to 2**64 - 1")?;
        runtime::detached(py, || ClientMemo::generate(n)).map(Self)
    }

    #[staticmethod]
    fn from_bytes(memo: &[u8]) -> PyResult<Self> {
        ClientMemo::from_bytes(memo).map(Self).map_err(to_py)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, self.0.to_bytes())
    }

    /// The memo of `count` people, the first of whom has the index `start`, and every next one an index `step` larger.
    fn select(&self, start: usize, step: isize, count: usize) -> PyResult<Self> {
        let index = |i: usize| {
            let steps = step.checked_mul(isize::try_from(i).ok()?)?;
            start.checked_add_signed(steps).filter(|&index| index < self.0.secrets().len())
        };
        // All others lie between the first and the last.
        if count > 0 && (index(0).is_none() || index(count - 1).is_none()) {
            return Err(PyIndexError::new_err("there are not so many people in the memo"));
        }
        self.0.select((0..count).map(|i| start.wrapping_add_signed(step * i as isize))).map(Self).map_err(to_py)
    }

    fn __len__(&self) -> usize {
        self.0.secrets().len()
    }

    /// In a time that does not depend on the secrets.
    fn equals(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
