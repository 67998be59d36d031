//! The host of a WebAssembly module, which gives it randomness and passes memory.

use core::ffi::c_void;
use core::slice;

use zeroize::Zeroize;

use crate::generator::dpnoise_generator_new;
use crate::handles::dpnoise_generator;
use crate::status::Status;

#[link(wasm_import_module = "dpnoise")]
unsafe extern "C" {
    /// Writes random bytes, and returns 0; or returns another number. `generator` is 0 for secure ones, and otherwise what
    /// `dpnoise_host_generator` was given.
    fn random_bytes(generator: u32, out: *mut u8, length: usize) -> i32;
}

/// What getrandom calls.
///
/// # Safety
/// `out` points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(out: *mut u8, length: usize) -> Result<(), getrandom::Error> {
    // SAFETY: getrandom passes memory of its caller.
    match unsafe { random_bytes(0, out, length) } {
        0 => Ok(()),
        _ => Err(getrandom::Error::new_custom(0)),
    }
}

/// Makes a generator whose bytes come from the host, which knows it by this number.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_host_generator(number: u32, out: *mut dpnoise_generator) -> Status {
    /// # Safety
    /// `out` points to `length` bytes.
    unsafe extern "C" fn fill(context: *mut c_void, out: *mut u8, length: usize) -> i32 {
        // SAFETY: the generator passes memory of its caller.
        unsafe { random_bytes(context.addr() as u32, out, length) }
    }
    // SAFETY: `fill` takes any number; the rest is promised by the caller.
    unsafe { dpnoise_generator_new(Some(fill), core::ptr::without_provenance_mut(number as usize), out) }
}

/// Memory for `length` bytes, aligned for numbers; null if there is not so much.
#[unsafe(no_mangle)]
pub extern "C" fn dpnoise_allocate(length: usize) -> *mut u64 {
    let mut words: Vec<u64> = vec![];
    if words.try_reserve_exact(length.div_ceil(8)).is_err() {
        return core::ptr::null_mut();
    }
    words.resize(length.div_ceil(8), 0);
    Box::into_raw(words.into_boxed_slice()).cast()
}

/// Wipes memory that `dpnoise_allocate` gave for as many bytes, and gives it back.
///
/// # Safety
/// `memory` is such memory, and is given back once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_wipe(memory: *mut u64, length: usize) {
    // SAFETY: as promised by the caller.
    let mut words = unsafe { Box::from_raw(slice::from_raw_parts_mut(memory, length.div_ceil(8))) };
    words.zeroize();
}
