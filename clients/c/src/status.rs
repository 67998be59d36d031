//! How a call ended: a status for the program and a message for people.

use core::cell::RefCell;
use core::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dpnoise_core::Error;
use dpnoise_core::memory::OutOfMemory;

/// What every function returns. `dpnoise_error_message` says more.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A public parameter is outside its range.
    Parameter = 1,
    /// A private value cannot be used. The message does not say which one.
    Data = 2,
    /// A specification, memo or state is damaged, or of another kind.
    State = 3,
    /// The source of randomness failed. Nothing was released.
    Randomness = 4,
    /// A handle is not one of the right kind, or was freed.
    Handle = 5,
    /// A pointer is null or not aligned, or memory is too short.
    Memory = 6,
    /// A defect of the library.
    Internal = 7,
    /// The library could not allocate memory. Nothing was released, and all objects are as they were.
    Allocation = 8,
}

/// Why a call failed.
pub(crate) struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Parameter { .. } => Status::Parameter,
            Error::Data { .. } => Status::Data,
            Error::State(_) => Status::State,
            Error::Randomness(_) => Status::Randomness,
            Error::Allocation => Status::Allocation,
            _ => Status::Internal, // nothing here halts, or can be interrupted
        };
        Self::new(status, error.to_string())
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Error::from(error).into()
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

std::thread_local! {
    /// The message of the last error of this thread, and a zero.
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
}

/// Runs a call. A panic ends here: it is a defect, and its message might show what it must not.
pub(crate) fn run(call: impl FnOnce() -> Outcome) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let failed = match outcome {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failed)) => failed,
        Err(_) => Failure::new(Status::Internal, "internal error of dpnoise: please report it"),
    };
    let mut message = failed.message.into_bytes();
    message.retain(|&byte| byte != 0);
    message.push(0);
    // During the destruction of a thread there is no place for it any more.
    let _ = MESSAGE.try_with(|place| place.replace(message));
    failed.status
}

/// The message of the last error of the calling thread, in UTF-8, ended by a zero; empty if there was none. It has no
/// private data, and may be logged. The pointer is valid until the next error of this thread, or the thread's end.
#[unsafe(no_mangle)]
pub extern "C" fn dpnoise_error_message() -> *const c_char {
    const NONE: *const c_char = c"".as_ptr();
    MESSAGE
        .try_with(|message| {
            let message = message.borrow();
            if message.is_empty() { NONE } else { message.as_ptr().cast() }
        })
        .unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;

    fn message() -> String {
        // SAFETY: a text of this thread, which is copied before its next error.
        unsafe { CStr::from_ptr(dpnoise_error_message()) }.to_str().unwrap().into()
    }

    #[test]
    fn panics_end_here_and_say_nothing_about_their_cause() {
        assert_eq!(message(), "");
        assert_eq!(run(|| panic!("private: 42")), Status::Internal);
        assert_eq!(message(), "internal error of dpnoise: please report it");
        assert_eq!(run(|| Ok(())), Status::Ok);
        assert_eq!(message(), "internal error of dpnoise: please report it", "the last error's");
    }

    #[test]
    fn messages_end_at_their_zero() {
        assert_eq!(run(|| Err(Failure::new(Status::State, "one\0two"))), Status::State);
        assert_eq!(message(), "onetwo");
    }
}
