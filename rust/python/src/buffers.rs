//! NumPy arrays as slices, one rule for all functions.
//!
//! The GIL is released only over memory that Python code cannot reach: arrays that were just made here. What the user
//! passes to be written to (`out`) holds noise or reports and no secret; a write to it from another thread can spoil the
//! content but neither privacy nor memory safety.

use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::ParameterError;

/// Borrows `array` for writing; `name` and `kind` are for the message.
pub(crate) fn writable<'py, T: Element>(
    array: &Bound<'py, PyAny>,
    name: &str,
    kind: &str,
) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    let typed = array
        .cast::<PyArrayDyn<T>>()
        .map_err(|_| PyTypeError::new_err(format!("{name} must be a NumPy array of dtype {kind}")))?;
    let borrowed = typed.try_readwrite();
    borrowed.map_err(|_| ParameterError::new_err(format!("{name} must be writable and not in use by another call")))
}

/// The elements of a borrowed array.
pub(crate) fn elements<'a, T: Element>(array: &'a mut PyReadwriteArrayDyn<'_, T>, name: &str) -> PyResult<&'a mut [T]> {
    array.as_slice_mut().map_err(|_| {
        ParameterError::new_err(format!("{name} must be C-contiguous; use numpy.ascontiguousarray, or a new array"))
    })
}
