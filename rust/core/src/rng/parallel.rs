//! Bulk work on several threads, each with a generator of its own.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use super::SecureRng;
use crate::error::Error;

/// The number of threads this process may use. The system is asked once: it takes longer than a small release.
#[must_use]
pub fn available_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Threads share noise in units of this many samples: below it a further thread costs more than it gains.
pub const NOISE_UNIT: usize = 1 << 14;

/// Runs `work` on up to `threads` contiguous parts of `out`, each a multiple of `unit` items (but for the last), and
/// each with its own freshly keyed [`SecureRng`]. `work` is also told the index of its part's first item.
///
/// Threads are started for the call and joined before it returns: no pool that would not survive a `fork()`.
///
/// # Errors
/// The first error of any part; then all of `out` has been overwritten with the default value.
///
/// # Panics
/// When `unit` or `threads` is zero, or `work` panics.
pub fn fill_parallel<T, F>(out: &mut [T], unit: usize, threads: usize, work: F) -> Result<(), Error>
where
    T: Copy + Default + Send,
    F: Fn(&mut SecureRng, usize, &mut [T]) -> Result<(), Error> + Sync,
{
    assert!(unit > 0 && threads > 0);
    if out.is_empty() {
        return Ok(());
    }
    let part = out.len().div_ceil(unit).div_ceil(threads) * unit;
    let parts = out.chunks_mut(part).enumerate().collect();
    let results = on_threads(parts, |(index, out)| work(&mut SecureRng::new()?, index * part, out));
    let result = results.into_iter().fold(Ok(()), Result::and);
    if result.is_err() {
        out.fill(T::default());
    }
    result
}

/// Runs `work` on every part, each on a thread of its own but for the first, which the calling thread takes; and it
/// takes those, too, for which the system has no thread to give. The results are in the order of the parts.
///
/// # Panics
/// When `work` panics.
pub fn on_threads<P: Send, T: Send>(parts: Vec<P>, work: impl Fn(P) -> T + Sync) -> Vec<T> {
    if parts.len() <= 1 {
        return parts.into_iter().map(work).collect(); // the preparations take longer than a small release
    }
    let slots: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    let run = |slot: &Mutex<Option<P>>| {
        let part = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        work(part.expect("every part is taken once"))
    };
    thread::scope(|scope| {
        let run = &run;
        let start = |slot| thread::Builder::new().spawn_scoped(scope, move || run(slot));
        let others: Vec<_> = slots.iter().skip(1).map(|slot| (slot, start(slot))).collect();
        let own = slots.first().map(run);
        let others = others.into_iter().map(|(slot, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => run(slot),
        });
        own.into_iter().chain(others).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_filled_once_in_whole_units() {
        for threads in [1, 2, 3, 8] {
            for length in [0, 1, 9, 10, 11, 100, 101] {
                let mut out = vec![0usize; length];
                fill_parallel(&mut out, 10, threads, |_, first, part| {
                    assert_eq!(first % 10, 0);
                    part.iter_mut().enumerate().for_each(|(i, item)| *item += first + i + 1);
                    Ok(())
                })
                .unwrap();
                assert!(out.iter().enumerate().all(|(i, &item)| item == i + 1), "{threads} {length}");
            }
        }
    }

    #[test]
    fn a_failing_part_leaves_nothing_behind() {
        let mut out = vec![0u8; 100];
        let failed = fill_parallel(&mut out, 1, 4, |_, first, part| {
            part.fill(1);
            if first > 60 { Err(Error::randomness("dry")) } else { Ok(()) }
        });
        assert_eq!(failed, Err(Error::randomness("dry")));
        assert_eq!(out, vec![0; 100]);
    }
}
