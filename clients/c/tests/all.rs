//! The tests of the C interface, as one program.

#![allow(unsafe_code, reason = "they call it as C programs do")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "memory is as long as it is said to be, unless a call must notice"
)]

mod allocations;
mod arguments;
mod calls;
mod header;
mod mechanisms;
mod outputs;
mod threads;

use core::ffi::{CStr, c_void};
use std::cell::Cell;

use dpnoise::{Status, dpnoise_error_message, dpnoise_free, dpnoise_generator, dpnoise_generator_new};

/// Randomized response, and unary encoding with a memo.
const ANSWERS: &[u8] =
    br#"{"epsilon":1.0986122886681098,"k":2,"p":3,"planes":2,"protocol":"randomized_response","q":1,"version":1}"#;

/// The message of the last error of this thread.
fn message() -> String {
    // SAFETY: a text of this thread, which is copied before its next error.
    unsafe { CStr::from_ptr(dpnoise_error_message()) }.to_str().unwrap().into()
}

/// The handle that `make` writes.
fn made(make: impl FnOnce(*mut u64) -> Status) -> u64 {
    let mut handle = 0;
    assert_eq!(make(&raw mut handle), Status::Ok, "{}", message());
    assert_ne!(handle, 0);
    handle
}

/// The protocol with this specification.
fn protocol(specification: &[u8]) -> u64 {
    let (bytes, length, limit) = (specification.as_ptr(), specification.len(), dpnoise::DPNOISE_COUNTER_LIMIT);
    made(|out| unsafe { dpnoise::dpnoise_protocol_from_json(bytes, length, limit, out) })
}

fn free(handle: u64) {
    assert_eq!(dpnoise_free(handle), Status::Ok, "{}", message());
}

/// A generator for as long as it lives.
struct Generator {
    handle: dpnoise_generator,
    script: Box<Script>,
}

/// Plays bytes once, and does something before each part.
struct Script {
    bytes: Vec<u8>,
    played: Cell<usize>,
    before: Box<dyn Fn()>,
}

impl Generator {
    /// Plays `bytes` once, then fails with the code 7.
    fn of(bytes: &[u8]) -> Self {
        Self::with(bytes, || ())
    }

    /// Plays `bytes` once, and calls `before` first, each time it is asked for some.
    fn with(bytes: &[u8], before: impl Fn() + 'static) -> Self {
        let script = Box::new(Script { bytes: bytes.to_vec(), played: Cell::new(0), before: Box::new(before) });
        let context = core::ptr::from_ref(&*script).cast_mut().cast();
        // SAFETY: the script is dropped after the generator is freed, and moves to no other thread meanwhile.
        let handle = made(|out| unsafe { dpnoise_generator_new(Some(play), context, out) });
        Self { handle, script }
    }

    fn played(&self) -> usize {
        self.script.played.get()
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = dpnoise_free(self.handle); // a test may have freed it
    }
}

/// Plays a script.
///
/// # Safety
/// `context` is a script, and `out` has `length` bytes.
unsafe extern "C" fn play(context: *mut c_void, out: *mut u8, length: usize) -> i32 {
    // SAFETY: the script that the generator was made with.
    let script = unsafe { &*context.cast::<Script>() };
    (script.before)();
    let Some(bytes) = script.bytes[script.played.get()..].get(..length) else {
        return 7;
    };
    script.played.set(script.played.get() + length);
    // SAFETY: the library passes memory of this length.
    unsafe { out.copy_from_nonoverlapping(bytes.as_ptr(), length) };
    0
}
