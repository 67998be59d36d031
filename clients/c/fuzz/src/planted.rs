//! Faults that `make fuzz` plants, one at a time, to see that each is found. None is in the library: it is what a
//! faulty library, or a faulty caller, would do.

use std::sync::LazyLock;

/// The fault that the environment variable `DPNOISE_FUZZ_PLANT` names, if it is this one.
pub(crate) fn is(fault: &str) -> bool {
    static PLANTED: LazyLock<String> = LazyLock::new(|| std::env::var("DPNOISE_FUZZ_PLANT").unwrap_or_default());
    *PLANTED == fault
}

/// Frees memory of the heap twice.
pub(crate) fn double_free() {
    let memory = Box::into_raw(Box::new([0u64; 4]));
    for _ in 0..2 {
        // SAFETY: none, the second time.
        drop(unsafe { Box::from_raw(std::hint::black_box(memory)) });
    }
}
