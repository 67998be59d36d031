//! Errors of the core as Python exceptions.

use dpnoise_core::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

pyo3::create_exception!(
    dpnoise,
    ParameterError,
    PyValueError,
    "A parameter or input cannot be used. Nothing was drawn and no budget was spent."
);
pyo3::create_exception!(
    dpnoise,
    RandomnessError,
    PyRuntimeError,
    "The source of randomness failed. Nothing was released."
);

/// The exception for an error of the core.
pub(crate) fn to_py(error: Error) -> PyErr {
    match error {
        Error::Randomness(_) => RandomnessError::new_err(error.to_string()),
        Error::Halted(_) => PyRuntimeError::new_err(error.to_string()),
        _ => ParameterError::new_err(error.to_string()),
    }
}
