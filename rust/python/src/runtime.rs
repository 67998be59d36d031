//! Native work without the GIL, and Ctrl-C.

use std::mem;
use std::num::NonZero;

use dpnoise_core::Error;
use dpnoise_core::threads::{Pause, available_threads};
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::numbers;

/// Runs `work` without the GIL.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> Result<T, Error>) -> PyResult<T> {
    py.detach(work).map_err(to_py)
}

/// Runs a long call of the core without the GIL; its hook between two pieces checks whether the user has pressed
/// Ctrl-C. Before the first piece it does not: the interpreter has just done so, and to ask takes as long as a small call.
pub(crate) fn pausing<T: Send>(
    py: Python<'_>,
    work: impl Send + FnOnce(&mut Pause<'_>) -> Result<T, Error>,
) -> PyResult<T> {
    let (mut interrupted, mut is_first) = (None, true);
    let result = py.detach(|| {
        work(&mut || {
            if mem::take(&mut is_first) {
                return Ok(());
            }
            Python::attach(|py| match py.check_signals() {
                Ok(()) => Ok(()),
                Err(error) => {
                    interrupted = Some(error);
                    Err(Error::Interrupted)
                }
            })
        })
    });
    interrupted.map_or_else(|| result.map_err(to_py), Err)
}

/// The `threads=` of a call: by default all cores that the process may use.
pub(crate) struct Threads(usize);

impl Threads {
    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    fn extract(threads: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if threads.is_none() {
            return Ok(Self(available_threads()));
        }
        let count: NonZero<u64> = numbers::integer(&threads, "threads", "None or a positive integer below 2**64")?;
        Ok(Self(usize::try_from(count.get()).unwrap_or(usize::MAX)))
    }
}
