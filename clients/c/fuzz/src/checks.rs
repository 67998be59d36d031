//! What must hold after every call, and how often each function ended how.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Mutex;

use dpnoise::{Status, dpnoise_error_message};

const STATUSES: [&str; 9] =
    ["ok", "parameter", "data", "state", "randomness", "handle", "memory", "internal", "allocation"];

static ENDS: Mutex<BTreeMap<&str, [u64; STATUSES.len()]>> = Mutex::new(BTreeMap::new());

/// Checks the status and the message of a call.
pub(crate) fn ended(function: &'static str, status: Status) -> Status {
    assert_ne!(status, Status::Internal, "{function} has a defect");
    count(function, status);
    if status != Status::Ok {
        assert!(!message().is_empty(), "{function} failed without a message");
    }
    status
}

/// Counts a call.
pub(crate) fn count(function: &'static str, status: Status) {
    ENDS.lock().unwrap().entry(function).or_default()[status as usize] += 1;
}

/// The message of the last error.
pub(crate) fn message() -> String {
    // SAFETY: a text of this thread, which is copied before its next error.
    unsafe { CStr::from_ptr(dpnoise_error_message()) }.to_str().expect("UTF-8").into()
}

/// Checks that the last message does not have private values, if they are too long to be there by chance.
pub(crate) fn hides(values: impl IntoIterator<Item = String>) {
    let message = message();
    for value in values.into_iter().filter(|value| value.len() >= 12) {
        assert!(!message.contains(&value), "a private value is in a message: {message}");
    }
}

/// Calls a function, and checks how it ended.
macro_rules! checked {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the memory is as long as the arguments say.
        $crate::checks::ended(stringify!($function), unsafe { dpnoise::$function($($argument),*) })
    };
}
pub(crate) use checked;

/// Prints a table of the calls when the program ends.
pub(crate) fn count_at_exit() {
    extern "C" fn print() {
        eprintln!("calls by status: function {}", STATUSES.join(" "));
        for (function, counts) in ENDS.lock().unwrap().iter() {
            eprintln!("calls: {function} {}", counts.map(|count| count.to_string()).join(" "));
        }
    }
    unsafe extern "C" {
        fn atexit(call: extern "C" fn()) -> i32;
    }
    // SAFETY: the function never unwinds, and is there until the end.
    assert_eq!(unsafe { atexit(print) }, 0);
}
