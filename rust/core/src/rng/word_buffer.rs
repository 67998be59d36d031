//! A store of random words, for callers who need them one at a time.

use core::{fmt, mem};

use super::{ProcessMark, SecureRng, Wiped, fill_bytes};
use crate::error::Error;

/// Drawing a key takes less than half as long as drawing this many bytes.
const BYTES: usize = 1 << 14;

/// Words of the secure generator, drawn some thousand bytes at a time.
/// The store holds words and no key: each refill draws a fresh key from the operating system and wipes it. A word is
/// overwritten when it is given out, so the store never reveals earlier words.
/// Unlike [`SecureRng`] it is meant to live long, so its memory may be duplicated. The child of a fork discards the
/// words of the parent: on Linux after every kind of fork, elsewhere after the C library's `fork()`. (A virtual
/// machine's snapshot that is restored twice cannot be detected: the rest of the store is repeated, and after that the
/// streams are independent.)
///
/// ```
/// use dpnoise_core::rng::WordBuffer;
/// let mut words = WordBuffer::new()?;
/// assert_ne!(words.take::<8>()?, words.take::<8>()?);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct WordBuffer {
    bytes: Wiped<u8>,
    /// The number of bytes that have been given out.
    given: usize,
    /// The process in which they were drawn.
    process: ProcessMark,
}

impl WordBuffer {
    /// A full store.
    ///
    /// # Errors
    /// [`Error::Randomness`] when the operating system's generator fails.
    pub fn new() -> Result<Self, Error> {
        let mut buffer = Self { bytes: Wiped::new(BYTES), given: 0, process: ProcessMark::new()? };
        buffer.refill()?;
        Ok(buffer)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// As for [`SecureRng::new`], when a refill is due.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.stored().map_or_else(|| self.take_fresh(), Ok)
    }

    /// The next `N` bytes, or `None` when a refill is due, which [`WordBuffer::take`] does.
    #[inline]
    pub fn stored<const N: usize>(&mut self) -> Option<[u8; N]> {
        const { assert!(N <= BYTES) };
        if !self.process.is_current() {
            return None;
        }
        let word = self.bytes.get_mut(self.given..)?.first_chunk_mut()?;
        self.given += N;
        Some(mem::replace(word, [0; N]))
    }

    #[cold]
    fn take_fresh<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.refill()?;
        self.take()
    }

    fn refill(&mut self) -> Result<(), Error> {
        let process = ProcessMark::new()?;
        self.given = self.bytes.len();
        fill_bytes(&mut SecureRng::new()?, &mut self.bytes)?;
        (self.given, self.process) = (0, process);
        Ok(())
    }

    /// A store of one word, again and again.
    #[cfg(test)]
    pub(crate) fn of_word(word: u64) -> Self {
        let mut buffer = Self::new().expect("random numbers");
        buffer.bytes.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&word.to_le_bytes()));
        buffer
    }
}

impl fmt::Debug for WordBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordBuffer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_byte_is_given_out_once_and_overwritten() {
        let mut words = WordBuffer::new().unwrap();
        let stored = words.bytes.to_vec();
        let mut given = Vec::new();
        for i in 0..500 {
            if i % 3 == 0 {
                given.extend(words.take::<4>().unwrap());
            } else {
                given.extend(words.take::<8>().unwrap());
            }
            assert!(words.bytes[..words.given].iter().all(|&byte| byte == 0));
        }
        assert_eq!(given, stored[..words.given]);
        assert_eq!(words.bytes[words.given..], stored[words.given..]);
    }

    #[test]
    fn no_word_comes_twice_across_refills_and_stores() {
        let mut stores = [WordBuffer::new().unwrap(), WordBuffer::new().unwrap()];
        let count = 3 * BYTES / 8;
        let mut seen = HashSet::new();
        for store in &mut stores {
            store.take::<4>().unwrap(); // so that a refill comes in the middle of a word
            seen.extend((0..count).map(|_| u64::from_le_bytes(store.take().unwrap())));
        }
        assert_eq!(seen.len(), 2 * count);
    }

    #[test]
    fn words_of_another_process_are_not_given_out() {
        let mut words = WordBuffer::new().unwrap();
        words.take::<4>().unwrap();
        let stored = words.bytes.to_vec();
        assert_eq!(words.take::<8>().unwrap(), stored[4..12], "the same process goes on");
        words.process = ProcessMark::of_another(); // as it is in the child of a fork
        let fresh: Vec<u64> = (0..BYTES / 8).map(|_| u64::from_le_bytes(words.take().unwrap())).collect();
        for word in stored.windows(8) {
            assert!(!fresh.contains(&u64::from_le_bytes(word.try_into().unwrap())));
        }
    }
}
