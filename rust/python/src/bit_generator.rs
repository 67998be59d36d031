//! NumPy's interface to a bit generator: a struct, in a capsule, of a state and of C functions that draw from it.
//! NumPy calls these functions under the bit generator's lock and without the GIL. They cannot report an error.
#![allow(unsafe_code, reason = "NumPy's interface is made of C pointers")]

use std::ffi::c_void;
use std::io::{self, Write};
use std::process;

use dpnoise_core::Error;
use dpnoise_core::rng::WordBuffer;
use numpy::npyffi::bitgen_t;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::to_py;

/// Lets the bit generator of `capsule` draw from the secure generator. The capsule owns the state.
#[pyfunction]
fn secure_bit_generator(capsule: &Bound<'_, PyCapsule>) -> PyResult<()> {
    let bit_generator = capsule.pointer_checked(Some(c"BitGenerator"))?.cast::<bitgen_t>();
    if !capsule.context()?.is_null() {
        return Err(PyTypeError::new_err("a bit generator can be initialised only once"));
    }
    let words = WordBuffer::new().map_err(to_py)?;
    let state = Box::into_raw(Box::new(words)).cast();
    capsule.set_context(state)?;
    // SAFETY: `capsule` is a capsule, and its destructor takes the context just set. Its pointer is to a `bitgen_t`,
    // by NumPy's contract for this name, in the bit generator; the bit generator is being initialised, so nobody else
    // reads it.
    unsafe {
        ffi::PyCapsule_SetDestructor(capsule.as_ptr(), Some(drop_words));
        bit_generator.write(bitgen_t { state, next_uint64, next_uint32, next_double, next_raw: next_uint64 });
    }
    Ok(())
}

/// # Safety
/// `capsule` has the context that [`secure_bit_generator`] gave it, and nobody draws any more: every caller that may
/// draw holds the bit generator, which holds the capsule.
unsafe extern "C" fn drop_words(capsule: *mut ffi::PyObject) {
    // SAFETY: the context came from `Box::into_raw`, and a destructor is called once.
    drop(unsafe { Box::from_raw(ffi::PyCapsule_GetContext(capsule).cast::<WordBuffer>()) });
}

/// # Safety
/// As for [`draw`].
unsafe extern "C" fn next_uint64(state: *mut c_void) -> u64 {
    // SAFETY: passed on from the caller.
    u64::from_le_bytes(unsafe { draw(state) })
}

/// # Safety
/// As for [`draw`].
unsafe extern "C" fn next_uint32(state: *mut c_void) -> u32 {
    // SAFETY: passed on from the caller.
    u32::from_le_bytes(unsafe { draw(state) })
}

/// A multiple of 2^-53 in [0, 1), as in NumPy's own generators.
///
/// # Safety
/// As for [`draw`].
unsafe extern "C" fn next_double(state: *mut c_void) -> f64 {
    // SAFETY: passed on from the caller.
    let word = u64::from_le_bytes(unsafe { draw(state) });
    (word >> 11) as f64 * (f64::EPSILON / 2.0)
}

/// # Safety
/// `state` is that of [`secure_bit_generator`], alive and, by the bit generator's lock, used by nobody else.
#[inline]
unsafe fn draw<const N: usize>(state: *mut c_void) -> [u8; N] {
    // SAFETY: the caller vouches for it.
    let words = unsafe { &mut *state.cast::<WordBuffer>() };
    words.stored().unwrap_or_else(|| refilled(words))
}

/// Apart from the words in store, so that these need no stack.
#[cold]
#[inline(never)]
fn refilled<const N: usize>(words: &mut WordBuffer) -> [u8; N] {
    words.take().unwrap_or_else(|error| abort(error))
}

#[cold]
fn abort(error: Error) -> ! {
    let _ = writeln!(
        io::stderr(),
        "dpnoise.SecureBitGenerator: {error}; the process is aborted, since NumPy would go on with numbers that are not random"
    );
    process::abort()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(secure_bit_generator, module)?)
}
