//! The generators built on ChaCha12.

use core::convert::Infallible;
use core::{fmt, slice};

use dpnoise_kernels::arch::chacha::{BLOCKS, Group, chacha12};
use dpnoise_kernels::arch::registers;
use dpnoise_kernels::arch::secrecy::poison;
use rand_core::{TryCryptoRng, TryRng};
use sha2::{Digest, Sha256};
use zeroize::zeroize_stack;

use super::wipe::wipe;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};

/// The key stream, in the word order that [`dpnoise_kernels::arch::chacha`] defines. Dropping it wipes it.
struct KeyStream {
    instructions: InstructionSet,
    key: [u32; 8],
    counter: u64,
    /// Apart from the rest, since allocators keep blocks of 1 KiB at hand, and hardly any larger ones.
    group: Box<Group>,
    /// The bytes of `group` that have been given out.
    taken: usize,
}

impl KeyStream {
    /// The stream under the key that `source` writes. It is built in its final place, since a move would leave copies
    /// of the key behind.
    fn new(source: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<Box<Self>, Error> {
        let group = Box::new([0; size_of::<Group>()]);
        let instructions = instruction_set::current()?;
        let mut stream = Box::new(Self { instructions, key: [0; 8], counter: 0, taken: group.len(), group });
        // The buffer of the stream serves for the bytes of the key.
        let Self { key, group, .. } = &mut *stream;
        source(&mut group[..32])?;
        poison(&mut group[..32]);
        for (word, bytes) in key.iter_mut().zip(group.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        wipe(&mut group[..32]);
        Ok(stream)
    }

    /// The stream under the key with these bytes.
    fn under(key: &[u8; 32]) -> Result<Box<Self>, Error> {
        Self::new(|bytes| {
            bytes.copy_from_slice(key);
            Ok(())
        })
    }

    /// Continues at this block of 64 bytes.
    fn seek(&mut self, counter: u64) {
        (self.counter, self.taken) = (counter, self.group.len());
    }

    /// Gives out the next bytes of the stream. A word of four bytes that is given out in part is used up.
    fn fill(&mut self, bytes: &mut [u8]) {
        let (first, rest) = bytes.split_at_mut(bytes.len().min(self.group.len() - self.taken));
        self.take(first);
        let (groups, rest) = rest.as_chunks_mut();
        chacha12(self.instructions, &self.key, self.counter, groups);
        self.counter += (BLOCKS * groups.len()) as u64;
        if !rest.is_empty() {
            chacha12(self.instructions, &self.key, self.counter, slice::from_mut(&mut *self.group));
            self.counter += BLOCKS as u64;
            self.taken = 0;
            self.take(rest);
        }
    }

    /// Gives out bytes that are in the buffer already.
    fn take(&mut self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.group[self.taken..self.taken + bytes.len()]);
        self.taken += bytes.len().next_multiple_of(4);
    }

    fn wipe(&mut self) {
        wipe(&mut self.key);
        wipe(&mut *self.group);
    }

    fn next<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

impl Drop for KeyStream {
    fn drop(&mut self) {
        self.wipe();
        // Secrets of this and other kernels in registers, and in their stack frames, just below this one.
        registers::clear();
        zeroize_stack::<4096>();
    }
}

macro_rules! generator {
    ($name:ident) => {
        impl TryRng for $name {
            type Error = Infallible;

            #[inline]
            fn try_next_u32(&mut self) -> Result<u32, Infallible> {
                Ok(u32::from_le_bytes(self.0.next()))
            }

            #[inline]
            fn try_next_u64(&mut self) -> Result<u64, Infallible> {
                Ok(u64::from_le_bytes(self.0.next()))
            }

            #[inline]
            fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
                self.0.fill(bytes);
                Ok(())
            }
        }

        impl TryCryptoRng for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

/// A cryptographically secure generator: ChaCha12 under a 256-bit key drawn from the operating system.
/// It can be neither cloned nor seeded nor serialised. Make one for each call and thread, and drop it afterwards, which
/// wipes key and buffer.
///
/// Every `rand` user can take it:
/// ```
/// use dpnoise_core::rng::SecureRng;
/// use rand::seq::SliceRandom;
/// let mut deck: Vec<u8> = (0..52).collect();
/// deck.shuffle(&mut SecureRng::new()?);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct SecureRng(Box<KeyStream>);

impl SecureRng {
    /// Draws a fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Randomness`] when the operating system provides no randomness, [`Error::Parameter`] when
    /// `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn new() -> Result<Self, Error> {
        Self::from_source(|key| getrandom::fill(key).map_err(Error::randomness))
    }

    fn from_source(source: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<Self, Error> {
        KeyStream::new(source).map(Self)
    }
}

generator!(SecureRng);

/// The same generator under a key derived from a seed: **for tests only**. Anybody who knows the seed can compute the
/// noise.
///
/// ```
/// use dpnoise_core::rng::SeededRng;
/// use rand_core::Rng;
/// assert_eq!(SeededRng::new(7)?.next_u64(), SeededRng::new(7)?.next_u64());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct SeededRng(Box<KeyStream>);

impl SeededRng {
    /// The generator whose key is the SHA-256 of `dpnoise seed ` followed by the seed, little-endian.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn new(seed: u64) -> Result<Self, Error> {
        let mut hash = Sha256::new();
        hash.update(b"dpnoise seed ");
        hash.update(seed.to_le_bytes());
        KeyStream::under(&hash.finalize().into()).map(Self)
    }
}

generator!(SeededRng);

/// The same generator under a key derived from a [`NoiseKey`](super::NoiseKey), at any place of its stream.
pub(crate) struct SeekableRng(Box<KeyStream>);

impl SeekableRng {
    pub(super) fn new(key: &[u8; 32]) -> Result<Self, Error> {
        KeyStream::under(key).map(Self)
    }

    /// Continues at this block of 64 bytes.
    pub(super) fn seek(&mut self, block: u64) {
        self.0.seek(block);
    }

    /// The first block that has not been generated.
    pub(super) fn next_block(&self) -> u64 {
        self.0.counter
    }
}

generator!(SeekableRng);

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    #[test]
    fn nothing_is_made_when_the_operating_system_fails() {
        let failed = SecureRng::from_source(|_| Err(Error::randomness("no entropy")));
        assert_eq!(failed.unwrap_err(), Error::Randomness("no entropy".into()));
    }

    #[test]
    fn two_generators_never_share_a_stream() {
        let words: Vec<u64> = (0..64).map(|_| SecureRng::new().unwrap().next_u64()).collect();
        let distinct: std::collections::HashSet<_> = words.iter().collect();
        assert_eq!(distinct.len(), words.len());
    }

    /// Pins the words of a seed: a change here changes every reproducible test of every user.
    #[test]
    fn seeded_words_are_stable() {
        let mut rng = SeededRng::new(0).unwrap();
        let first = rng.next_u64();
        let mut rest = [0u8; 16 * 64 - 8];
        rng.fill_bytes(&mut rest);
        assert_eq!((first, rng.next_u64()), (14_638_442_720_295_698_499, 3_036_286_997_958_223_361));
    }

    /// The bytes are one stream for every sequence of request sizes, except that a word that is given out in part is
    /// used up.
    #[test]
    fn requests_of_any_length_continue_the_stream() {
        let mut whole = vec![0u8; 8192];
        SeededRng::new(5).unwrap().fill_bytes(&mut whole);
        for lengths in [&[1024, 4, 8, 1020, 3000, 1024][..], &[4; 300], &[2048, 1, 3, 1023, 6], &[8, 1016, 1024]] {
            let mut rng = SeededRng::new(5).unwrap();
            let mut at = 0;
            for &length in lengths {
                let mut part = vec![0u8; length];
                rng.fill_bytes(&mut part);
                assert_eq!(part, whole[at..at + length]);
                at += length.next_multiple_of(4);
            }
            assert_eq!(rng.next_u32().to_le_bytes(), whole[at..at + 4]);
        }
    }

    /// Observes `drop`: the key and the bytes of the buffer are wiped.
    #[test]
    fn key_and_buffer_are_wiped() {
        let mut stream = KeyStream::under(&[7; 32]).unwrap();
        assert_eq!(stream.key, [0x0707_0707; 8]);
        assert_ne!(stream.next::<4>(), [0; 4]);
        assert!(stream.group.iter().any(|&byte| byte != 0));
        stream.wipe();
        assert!(stream.group.iter().all(|&byte| byte == 0) && stream.key == [0; 8]);
    }

    #[test]
    fn debug_output_shows_no_state() {
        assert_eq!(format!("{:?}", SeededRng::new(1).unwrap()), "SeededRng { .. }");
    }
}
