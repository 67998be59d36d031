//! NumPy arrays as slices, one rule for all functions.
//! Arrays must be C-contiguous: the crate numpy would also give slices of Fortran-contiguous arrays.
//! Private input is copied before the GIL is released, so that no other Python code can change it during the work.
//! Gradients and columns of numbers are not copied, since that would take longer than the work; the caller must not
//! change them during the call. Of a column each value is read once: a row that another thread changes counts as one
//! value, the old one or the new one. Arrays without secrets are used in place: `out`, to which only finished noise or
//! reports are written, and reports that are added up. A write to them from another thread can spoil the result, not the
//! privacy.

use dpnoise_core::Error;
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{ParameterError, to_py};

/// Borrows `array` for writing; `name` and `kind` are for the message.
pub(crate) fn writable<'py, T: Element>(
    array: &Bound<'py, PyAny>,
    name: &str,
    kind: &str,
) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    let borrowed = typed(array, name, kind)?.try_readwrite();
    borrowed.map_err(|_| ParameterError::new_err(format!("{name} must be writable and not in use by another call")))
}

/// The elements of a borrowed array.
pub(crate) fn elements<'a, T: Element>(array: &'a mut PyReadwriteArrayDyn<'_, T>, name: &str) -> PyResult<&'a mut [T]> {
    let in_rows = array.is_c_contiguous();
    array.as_slice_mut().ok().filter(|_| in_rows).ok_or_else(|| {
        ParameterError::new_err(format!("{name} must be C-contiguous; use numpy.ascontiguousarray, or a new array"))
    })
}

/// Borrows `array` for reading; `name` and `kind` are for the message.
pub(crate) fn readable<'py, T: Element>(
    array: &Bound<'py, PyAny>,
    name: &str,
    kind: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let borrowed = typed(array, name, kind)?.try_readonly();
    borrowed.map_err(|_| ParameterError::new_err(format!("{name} is being written to by another call")))
}

/// The elements of an array borrowed for reading.
pub(crate) fn slice<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>, name: &str) -> PyResult<&'a [T]> {
    let in_rows = array.is_c_contiguous();
    array
        .as_slice()
        .ok()
        .filter(|_| in_rows)
        .ok_or_else(|| ParameterError::new_err(format!("{name} must be C-contiguous")))
}

/// What was written, as an object of Python; `bytes` that it makes itself panic where there is no memory.
pub(crate) fn bytes_of(py: Python<'_>, bytes: Result<Vec<u8>, Error>) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = bytes.map_err(to_py)?;
    PyBytes::new_with(py, bytes.len(), |out| {
        out.copy_from_slice(&bytes);
        Ok(())
    })
}

fn typed<'a, 'py, T: Element>(
    array: &'a Bound<'py, PyAny>,
    name: &str,
    kind: &str,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    let cast = array.cast::<PyArrayDyn<T>>();
    cast.map_err(|_| PyTypeError::new_err(format!("{name} must be a NumPy array of dtype {kind}")))
}
