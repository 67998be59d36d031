//! The table of all objects that callers hold.
//!
//! A handle is a number that no other object ever has, not an address. So a handle that was freed, that is of another
//! kind or that is no handle at all is always refused, and freeing an object while another thread uses it is safe: it
//! ends when that call does.

use core::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::memory;
use crate::status::{Failure, Outcome, Status, run};

/// The handle of a protocol, with or without the memo of the people who answer.
pub type dpnoise_protocol = u64;

/// The handle of the secrets of some people.
pub type dpnoise_memo = u64;

/// The handle of a collector's counters.
pub type dpnoise_accumulator = u64;

/// The handle of a generator of random words; 0 is the operating system's.
pub type dpnoise_generator = u64;

/// The handle of a sampler of noise.
pub type dpnoise_sampler = u64;

/// The handle of a mechanism.
pub type dpnoise_mechanism = u64;

/// A thing that callers hold.
pub(crate) trait Object: Any + Send + Sync {
    /// What messages call it.
    const KIND: &'static str;
}

struct Entry {
    kind: &'static str,
    object: Arc<dyn Any + Send + Sync>,
}

struct Table {
    last: u64,
    entries: BTreeMap<u64, Entry>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { last: 0, entries: BTreeMap::new() });

/// Makes an object, and writes its handle to `out`; or 0 if it cannot be made.
///
/// # Safety
/// As for [`memory::write`].
pub(crate) unsafe fn give<T: Object>(out: *mut u64, make: impl FnOnce() -> Outcome<T>) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe { memory::write("out", out, 0) }?;
    let entry = Entry { kind: T::KIND, object: Arc::new(make()?) };
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    table.last += 1;
    let handle = table.last;
    table.entries.insert(handle, entry);
    // SAFETY: as promised by the caller.
    unsafe { memory::write("out", out, handle) }
}

/// The object with this handle, which the caller passed as `argument`.
pub(crate) fn get<T: Object>(argument: &str, handle: u64) -> Outcome<Arc<T>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = table.entries.get(&handle).ok_or_else(unknown);
    let object = found.and_then(|entry| Arc::downcast(Arc::clone(&entry.object)).map_err(|_| entry.kind.into()));
    object.map_err(|found| {
        Failure::new(Status::Handle, format!("{argument} must be the handle of {}, got {found}", T::KIND))
    })
}

fn unknown() -> String {
    "one that was freed or never given".into()
}

/// Frees the object with this handle, of whatever kind. The secrets of a memo are wiped, unless a protocol made with it
/// still needs them; they are wiped with that protocol then. Freeing 0 does nothing.
///
/// A handle that was freed, or never given, is refused with `DPNOISE_STATUS_HANDLE`: no handle is given twice. An
/// object that another thread is using is freed when that call ends.
#[unsafe(no_mangle)]
pub extern "C" fn dpnoise_free(handle: u64) -> Status {
    run(|| {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        let freed = table.entries.remove(&handle);
        drop(table); // no destructor runs under the lock
        if freed.is_some() || handle == 0 {
            Ok(())
        } else {
            Err(Failure::new(Status::Handle, format!("handle must be a live one, got {}", unknown())))
        }
    })
}
