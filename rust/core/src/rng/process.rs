//! Which process this is.

use core::sync::atomic::Ordering;

use crate::arch::fork;
use crate::error::Error;

/// A random number, above 0, that this process keeps and no other one has, not even the child of its `fork()`.
///
/// What must be used once is marked by it. Numbers that the system gives to processes would not do: two processes may
/// both be the first one of their containers.
///
/// # Errors
/// [`Error::Randomness`] when the operating system's generator fails.
pub fn process_identity() -> Result<u64, Error> {
    let kept = fork::forgotten().map_err(Error::randomness)?;
    match kept.load(Ordering::Relaxed) {
        0 => {
            let drawn = getrandom::u64().map_err(Error::randomness)?.max(1);
            let other = kept.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed);
            Ok(other.err().unwrap_or(drawn)) // another thread may have been faster
        }
        identity => Ok(identity),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn all_threads_of_a_process_have_one_identity() {
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(process_identity)).collect();
        let found: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
        assert!(found[0] > 0 && found.iter().all(|&identity| identity == found[0]));
    }
}
