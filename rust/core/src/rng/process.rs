//! Which process this is.

use core::sync::atomic::{AtomicU64, Ordering};

use dpnoise_kernels::arch::fork;

use crate::error::Error;

/// The mark of the process that made it, for secrets that must be used once.
/// It is a random number that a process keeps and that no other process has, not even the child of its `fork()`.
/// Process numbers of the system do not suffice: two processes may both be the first one of their containers.
///
/// ```
/// use dpnoise_core::rng::ProcessMark;
/// assert!(ProcessMark::new()?.is_current());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProcessMark {
    /// The number of the calling process; 0 in the child of a fork, until the child has drawn its own.
    current: &'static AtomicU64,
    number: u64,
}

impl ProcessMark {
    /// The mark of this process.
    ///
    /// # Errors
    /// [`Error::Randomness`] when the operating system's generator fails.
    pub fn new() -> Result<Self, Error> {
        let current = fork::forgotten().map_err(Error::randomness)?;
        let number = match current.load(Ordering::Relaxed) {
            0 => {
                let drawn = getrandom::u64().map_err(Error::randomness)?.max(1);
                let other = current.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed);
                other.err().unwrap_or(drawn) // another thread may have been faster
            }
            number => number,
        };
        Ok(Self { current, number })
    }

    /// Whether this is still the process that made the mark.
    #[inline]
    #[must_use]
    pub fn is_current(self) -> bool {
        self.current.load(Ordering::Relaxed) == self.number
    }

    /// A mark that another process has made.
    #[cfg(test)]
    pub(crate) fn of_another() -> Self {
        let own = Self::new().expect("random numbers");
        Self { number: own.number ^ 1, ..own }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn all_threads_of_a_process_have_one_mark() {
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(ProcessMark::new)).collect();
        let found: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
        assert!(found.iter().all(|mark| mark.is_current() && mark.number == found[0].number && mark.number > 0));
        assert!(!ProcessMark::of_another().is_current());
    }
}
