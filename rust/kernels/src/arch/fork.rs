//! A number that is reset in the child of a fork.
//!
//! On Linux it is on a page that the kernel clears in every child, including that of a raw system call, which bypasses
//! the C library; on other Unix systems a handler of the C library's `fork()` clears it. Where there is no fork,
//! nothing does.
#![allow(unsafe_code, reason = "the interface of the operating system")]

use core::sync::atomic::AtomicU64;
#[cfg(unix)]
use core::sync::atomic::Ordering;
use std::io;
#[cfg(unix)]
use std::sync::OnceLock;

/// The number, which starts at 0 and is 0 again in the child of a fork.
///
/// # Errors
/// The system's error when it has no memory for another fork handler.
#[cfg(unix)]
pub fn forgotten() -> io::Result<&'static AtomicU64> {
    use core::ffi::c_int;

    type Handler = Option<unsafe extern "C" fn()>;

    // SAFETY: declared as POSIX has it. (The libc crate has it for Linux only.)
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    extern "C" fn in_child() {
        if let Some(Ok(number)) = NUMBER.get() {
            number.store(0, Ordering::Relaxed);
        }
    }

    static NUMBER: OnceLock<Result<&'static AtomicU64, c_int>> = OnceLock::new();
    let number = NUMBER.get_or_init(|| {
        // SAFETY: the handler does nothing that may not be done in a child of a process with threads, and this code is
        // never unloaded: neither programs nor Python unload a library that holds static data.
        match unsafe { pthread_atfork(None, None, Some(in_child)) } {
            0 => Ok(cleared_by_the_kernel().unwrap_or(&STATIC)),
            code => Err(code),
        }
    });
    number.map_err(io::Error::from_raw_os_error)
}

/// The same where there is no fork.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn forgotten() -> io::Result<&'static AtomicU64> {
    Ok(&STATIC)
}

static STATIC: AtomicU64 = AtomicU64::new(0);

/// A number on a page of its own, which is never unmapped; `None` on kernels before Linux 4.14.
#[cfg(target_os = "linux")]
fn cleared_by_the_kernel() -> Option<&'static AtomicU64> {
    use core::ptr;

    const LENGTH: usize = 8; // the kernel rounds it up to a page
    // SAFETY: a new private mapping, at an address that the kernel chooses.
    let page = unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(ptr::null_mut(), LENGTH, access, kind, -1, 0)
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping from above, which nobody else knows.
    if unsafe { libc::madvise(page, LENGTH, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above; nothing points there.
        unsafe { libc::munmap(page, LENGTH) };
        return None;
    }
    // SAFETY: a page is aligned for the number, holds zeros, and is mapped for as long as the process lives.
    Some(unsafe { &*page.cast::<AtomicU64>() })
}

#[cfg(all(unix, not(target_os = "linux")))]
fn cleared_by_the_kernel() -> Option<&'static AtomicU64> {
    None
}
