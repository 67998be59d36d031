//! Errors of the core as exceptions of the Python package.

use dpnoise_core::Error;
use pyo3::exceptions::PyMemoryError;
use pyo3::{PyErr, import_exception};

import_exception!(dpnoise._errors, HaltedError);
import_exception!(dpnoise._errors, ParameterError);
import_exception!(dpnoise._errors, RandomnessError);

/// The exception for an error of the core.
pub(crate) fn to_py(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    match error {
        Error::Randomness(_) => RandomnessError::new_err(error.to_string()),
        Error::Halted(_) => HaltedError::new_err(error.to_string()),
        Error::Allocation => PyMemoryError::new_err(error.to_string()),
        _ => ParameterError::new_err(error.to_string()),
    }
}
