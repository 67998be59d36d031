//! Random words: the operating system's, or those of a caller.

use core::ffi::c_void;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use dpnoise_core::threads::check_threads;
use rand_core::{TryCryptoRng, TryRng};

use crate::handles::{Object, dpnoise_generator, get, give};
use crate::status::{Failure, Outcome, Status, run};

/// Writes `length` random bytes to `out`, and returns 0; or returns another number if it cannot.
pub type dpnoise_random_bytes = Option<unsafe extern "C" fn(context: *mut c_void, out: *mut u8, length: usize) -> i32>;

/// A generator of a caller.
pub(crate) struct Generator(Mutex<Callback>);

pub(crate) struct Callback {
    fill: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> i32,
    context: *mut c_void,
}

// SAFETY: whoever makes a generator promises that any thread may call it; the mutex has it called by one at a time.
unsafe impl Send for Callback {}

impl Object for Generator {
    const KIND: &'static str = "a generator";
}

/// A generator gave no bytes.
#[derive(Debug)]
pub(crate) struct Failed(i32);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the given generator returned {}", self.0)
    }
}

impl core::error::Error for Failed {}

impl TryRng for Callback {
    type Error = Failed;

    fn try_next_u32(&mut self) -> Result<u32, Failed> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Failed> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Failed> {
        // SAFETY: whoever made the generator promises that this may be called.
        match unsafe { (self.fill)(self.context, bytes.as_mut_ptr(), bytes.len()) } {
            0 => Ok(()),
            code => Err(Failed(code)),
        }
    }
}

impl TryCryptoRng for Callback {}

/// The generator with this handle; none for 0, which is the operating system's. The number of threads must be a valid
/// one in both cases, though only the latter uses it.
pub(crate) fn given(handle: dpnoise_generator, threads: u32) -> Outcome<Option<Arc<Generator>>> {
    check_threads(threads as usize)?;
    if handle == 0 { Ok(None) } else { get("generator", handle).map(Some) }
}

impl Generator {
    pub(crate) fn lock(&self) -> Outcome<MutexGuard<'_, Callback>> {
        match self.0.try_lock() {
            Ok(callback) => Ok(callback),
            // A panic in here has left nothing half done that the next call relies on.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message = "the given generator is in use by another call, nothing was released";
                Err(Failure::new(Status::Randomness, message))
            }
        }
    }
}

/// Makes a generator that calls `fill` with `context`, for tests and for hardware tokens. Functions take it in place of
/// 0, which is the operating system's.
///
/// Privacy depends on its bytes: they must be uniform, independent, and known to nobody else. The order in which
/// functions ask for bytes is not documented, but what they make of the same bytes stays the same between releases that
/// have the same major version.
///
/// `fill` is called by the thread that passes the generator to a function. It must not throw, unwind or `longjmp`. One
/// call at a time can use a generator: others, also a call that `fill` makes itself, fail with
/// `DPNOISE_STATUS_RANDOMNESS`.
///
/// # Safety
/// `fill` may be called with `context`, by any thread, until the generator is freed and no call uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_generator_new(
    fill: dpnoise_random_bytes,
    context: *mut c_void,
    out: *mut dpnoise_generator,
) -> Status {
    run(|| {
        let make = || {
            let fill = fill.ok_or_else(|| Failure::new(Status::Memory, "fill must not be null"))?;
            Ok(Generator(Mutex::new(Callback { fill, context })))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}
