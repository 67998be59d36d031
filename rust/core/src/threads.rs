//! Bulk work: on several threads, each with its own generator, and in pieces between which the caller may end it.

use std::mem;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use crate::error::Error;
use crate::rng::{SecureRng, wipe};

/// The number of threads that this process may use. It is read once, since reading it takes longer than a small
/// release.
#[must_use]
pub fn available_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// The hook that a long call runs between two pieces of work, every few tens of milliseconds: its error ends the call.
pub type Pause<'a> = dyn FnMut() -> Result<(), Error> + 'a;

/// Never ends a call.
///
/// # Errors
/// None.
pub fn go_on() -> Result<(), Error> {
    Ok(())
}

/// The division of bulk work.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    /// The items of a piece; the hook runs between pieces.
    pub piece: usize,
    /// Threads share a piece in multiples of this many items.
    pub unit: usize,
}

/// The division for noise: pieces of some tens of milliseconds, and units below which a further thread costs more than
/// it gains.
pub const NOISE: Division = Division { piece: 1 << 22, unit: 1 << 14 };

/// Checks a number of threads.
///
/// # Errors
/// [`Error::Parameter`] for none.
pub fn check_threads(threads: usize) -> Result<(), Error> {
    if threads == 0 { Err(Error::parameter("threads", threads, "at least 1, or not given")) } else { Ok(()) }
}

/// Runs `work` on all of `out`, piece by piece, each on up to `threads` threads with a freshly keyed [`SecureRng`] each.
/// `work` is also told the index of its part's first item.
/// Threads are started for a piece and joined after it: a thread pool would not survive a `fork()`.
///
/// # Errors
/// [`Error::Parameter`] for no threads; the error of `pause`, or else the first error of any part: then every piece that
/// was begun has been overwritten with the default value. The others are as they were: to touch the pages of a large new
/// array for the first time takes longer than the work that is to end.
///
/// # Panics
/// When `work` panics, or the division has a zero.
pub fn fill<T: Copy + Default + Send>(
    out: &mut [T],
    division: Division,
    threads: usize,
    pause: &mut Pause<'_>,
    work: impl Fn(&mut SecureRng, usize, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    in_parts(out, division, threads, pause, |first, part| work(&mut SecureRng::new()?, first, part))
}

/// Runs `work` on all of `out` as [`fill`] does, without a generator.
///
/// # Errors
/// As for [`fill`].
///
/// # Panics
/// As for [`fill`].
pub fn in_parts<T: Copy + Default + Send>(
    out: &mut [T],
    division: Division,
    threads: usize,
    pause: &mut Pause<'_>,
    work: impl Fn(usize, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    in_parts_beside(&mut [(); 0], |_| 0, out, division, threads, pause, |first, _, part| work(first, part))
}

/// Runs `work` on all of `out` as [`in_parts`] does, and with each part on its own part of `beside`, of which so many
/// items of `out` have `length` items. These are left as they are after an error.
///
/// # Errors
/// As for [`fill`].
///
/// # Panics
/// As for [`fill`], and when `beside` is shorter than its parts.
pub fn in_parts_beside<S, T, F>(
    mut beside: &mut [S],
    length: impl Fn(usize) -> usize,
    out: &mut [T],
    division: Division,
    threads: usize,
    pause: &mut Pause<'_>,
    work: F,
) -> Result<(), Error>
where
    S: Send,
    T: Copy + Default + Send,
    F: Fn(usize, &mut [S], &mut [T]) -> Result<(), Error> + Sync,
{
    check_threads(threads)?;
    let Division { piece, unit } = division;
    let mut first = 0;
    let result: Result<(), Error> = out.chunks_mut(piece).try_for_each(|out| {
        pause()?;
        let part = out.len().div_ceil(unit).div_ceil(threads) * unit;
        let mut parts = Vec::with_capacity(out.len().div_ceil(part));
        for out in out.chunks_mut(part) {
            let (own, others) = mem::take(&mut beside).split_at_mut(length(out.len()));
            let next = first + out.len();
            parts.push((first, own, out));
            (beside, first) = (others, next);
        }
        on_threads(parts, |(first, beside, out)| work(first, beside, out)).into_iter().collect()
    });
    if result.is_err() {
        on_threads(out[..first].chunks_mut(first.div_ceil(threads).max(unit)).collect(), wipe);
    }
    result
}

/// Runs `work` on every part, each on its own thread. The calling thread takes the first part, and every part for which
/// the system cannot start a thread. The results are in the order of the parts.
///
/// # Panics
/// When `work` panics.
pub fn on_threads<P: Send, T: Send>(parts: Vec<P>, work: impl Fn(P) -> T + Sync) -> Vec<T> {
    // Starting threads takes longer than a small release, and WebAssembly has none.
    if parts.len() <= 1 || cfg!(target_family = "wasm") {
        return parts.into_iter().map(work).collect();
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

    const SMALL: Division = Division { piece: 30, unit: 10 };

    #[test]
    fn every_item_is_filled_once_in_whole_units() {
        for threads in [1, 2, 3, 8] {
            for length in [0, 1, 9, 10, 11, 30, 100, 101] {
                let mut out = vec![0usize; length];
                let mut pauses = 0;
                let mut pause = || {
                    pauses += 1;
                    Ok(())
                };
                fill(&mut out, SMALL, threads, &mut pause, |_, first, part| {
                    assert_eq!(first % 10, 0);
                    part.iter_mut().enumerate().for_each(|(i, item)| *item += first + i + 1);
                    Ok(())
                })
                .unwrap();
                assert!(out.iter().enumerate().all(|(i, &item)| item == i + 1), "{threads} {length}");
                assert_eq!(pauses, length.div_ceil(30));
            }
        }
    }

    #[test]
    fn parts_have_their_own_parts_beside_them() {
        for threads in [1, 2, 3, 8] {
            for length in [0, 1, 9, 10, 11, 30, 100, 101] {
                let (mut beside, mut out) = (vec![0usize; 2 * length], vec![0usize; length]);
                in_parts_beside(
                    &mut beside,
                    |n| 2 * n,
                    &mut out,
                    SMALL,
                    threads,
                    &mut go_on,
                    |first, beside, part| {
                        assert_eq!(beside.len(), 2 * part.len());
                        beside.iter_mut().enumerate().for_each(|(i, item)| *item += 2 * first + i + 1);
                        part.fill(first);
                        Ok(())
                    },
                )
                .unwrap();
                assert!(beside.iter().enumerate().all(|(i, &item)| item == i + 1), "{threads} {length}");
            }
        }
    }

    #[test]
    fn a_failing_part_leaves_nothing_behind() {
        let mut out = vec![9u8; 100];
        let failed = fill(&mut out, SMALL, 4, &mut go_on, |_, first, part| {
            part.fill(1);
            if first > 60 { Err(Error::randomness("dry")) } else { Ok(()) }
        });
        assert_eq!(failed, Err(Error::randomness("dry")));
        assert_eq!((&out[..90], &out[90..]), (&[0; 90][..], &[9; 10][..]));
    }

    #[test]
    fn a_caller_who_ends_it_gets_nothing() {
        let mut out = vec![9u8; 100];
        let mut pauses = 0;
        let mut pause = || {
            pauses += 1;
            if pauses == 3 { Err(Error::Interrupted) } else { Ok(()) }
        };
        let ended = fill(&mut out, SMALL, 2, &mut pause, |_, first, part| {
            assert!(first < 60, "nothing is made after the caller has ended the call");
            part.fill(1);
            Ok(())
        });
        assert_eq!(ended, Err(Error::Interrupted));
        assert_eq!((&out[..60], &out[60..]), (&[0; 60][..], &[9; 40][..]), "what was not begun is not touched");
    }

    #[test]
    fn no_threads_are_refused() {
        let refused = fill(&mut [0u8], SMALL, 0, &mut go_on, |_, _, _| Ok(())).unwrap_err();
        assert_eq!(refused.to_string(), "threads must be at least 1, or not given, got 0");
    }
}
