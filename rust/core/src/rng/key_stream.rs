//! The generators: the secure one, by ChaCha12 or AES-256, and reproducible ones by ChaCha12.

use core::convert::Infallible;
use core::{fmt, slice};

use dpnoise_kernels::arch::aes::{self, Schedule};
use dpnoise_kernels::arch::chacha::{BLOCKS, Group, chacha12};
use dpnoise_kernels::arch::registers;
use dpnoise_kernels::arch::secrecy::poison;
use rand_core::{TryCryptoRng, TryRng};
use sha2::{Digest, Sha256};
use zeroize::zeroize_stack;

use super::wipe::wipe;
use crate::error::Error;
use crate::generator::{self, Generator};
use crate::instruction_set;

/// The key stream, in the order that [`dpnoise_kernels::arch::chacha`] or [`dpnoise_kernels::arch::aes`] defines. Dropping it
/// wipes it.
struct KeyStream {
    generator: Generator,
    key: [u32; 8],
    /// The keys of the rounds, for AES.
    schedule: Schedule,
    /// The next block, of 64 bytes.
    counter: u64,
    /// Apart from the rest, since allocators keep blocks of 1 KiB at hand, and hardly any larger ones.
    group: Box<Group>,
    /// The bytes of `group` that have been given out.
    taken: usize,
}

impl KeyStream {
    /// The stream under the key that `source` writes. It is built in its final place, since a move would leave copies
    /// of the key behind.
    fn new(generator: Generator, source: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<Box<Self>, Error> {
        let group = Box::new([0; size_of::<Group>()]);
        let (key, schedule) = ([0; 8], Schedule::default());
        let mut stream = Box::new(Self { generator, key, schedule, counter: 0, taken: group.len(), group });
        // The buffer of the stream serves for the bytes of the key.
        let Self { key, schedule, group, .. } = &mut *stream;
        source(&mut group[..32])?;
        poison(&mut group[..32]);
        for (word, bytes) in key.iter_mut().zip(group.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        wipe(&mut group[..32]);
        if let Generator::Aes256(aes) = generator {
            aes::expand(aes, key, schedule);
            wipe(key);
        }
        Ok(stream)
    }

    /// The stream of ChaCha12 under the key with these bytes: the same on every CPU.
    fn under(key: &[u8; 32]) -> Result<Box<Self>, Error> {
        Self::new(Generator::ChaCha12(instruction_set::current()?), |bytes| {
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
        let Self { generator, key, schedule, counter, group, .. } = self;
        let mut write = |groups: &mut [Group]| {
            match *generator {
                Generator::ChaCha12(instructions) => chacha12(instructions, key, *counter, groups),
                Generator::Aes256(aes) => aes::fill(aes, schedule, 4 * *counter, 0, groups),
            }
            *counter += (BLOCKS * groups.len()) as u64;
        };
        write(groups);
        if !rest.is_empty() {
            write(slice::from_mut(group));
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
        wipe(&mut self.schedule);
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

/// A cryptographically secure generator: AES-256 in counter mode where the CPU has instructions for it, else ChaCha12, under a
/// 256-bit key drawn from the operating system.
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
    /// [`Error::Randomness`] when the operating system provides no randomness, and those of [`generator::current`].
    pub fn new() -> Result<Self, Error> {
        Self::from_source(generator::current()?, |key| getrandom::fill(key).map_err(Error::randomness))
    }

    fn from_source(generator: Generator, source: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<Self, Error> {
        KeyStream::new(generator, source).map(Self)
    }
}

generator!(SecureRng);

/// ChaCha12 under a key derived from a seed: **for tests only**. Anybody who knows the seed can compute the
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

/// ChaCha12 under a key derived from a [`NoiseKey`](super::NoiseKey), at any place of its stream.
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

    #[allow(clippy::unnecessary_wraps, reason = "as a source of keys may fail")]
    fn sevens(key: &mut [u8]) -> Result<(), Error> {
        key.fill(7);
        Ok(())
    }

    #[test]
    fn nothing_is_made_when_the_operating_system_fails() {
        let generator = generator::current().unwrap();
        let failed = SecureRng::from_source(generator, |_| Err(Error::randomness("no entropy")));
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

    /// Observes `drop`: the keys and the bytes of the buffer are wiped.
    #[test]
    fn keys_and_buffer_are_wiped() {
        let chacha12 = Generator::ChaCha12(instruction_set::current().unwrap());
        for generator in [generator::current().unwrap(), chacha12] {
            let mut stream = KeyStream::new(generator, sevens).unwrap();
            let is_aes = generator != chacha12;
            assert_eq!(stream.key, [if is_aes { 0 } else { 0x0707_0707 }; 8]);
            assert_eq!(stream.schedule[0], [if is_aes { 7 } else { 0 }; 16]);
            assert_ne!(stream.next::<4>(), [0; 4]);
            assert!(stream.group.iter().any(|&byte| byte != 0));
            stream.wipe();
            assert!(stream.group.iter().all(|&byte| byte == 0) && stream.key == [0; 8]);
            assert_eq!(stream.schedule, Schedule::default());
        }
    }

    /// A secure generator runs what was chosen, and its requests continue one stream.
    #[test]
    fn the_chosen_generator_runs() {
        let instructions = instruction_set::current().unwrap();
        let words = |generator| {
            let mut rng = SecureRng::from_source(generator, sevens).unwrap();
            let (mut first, mut rest) = ([0; 20], [0; 3000]);
            rng.fill_bytes(&mut first);
            rng.fill_bytes(&mut rest);
            [&first[..], &rest].concat()
        };
        let mut groups = [[0; size_of::<Group>()]; 3];
        chacha12(instructions, &[0x0707_0707; 8], 0, &mut groups);
        assert_eq!(words(Generator::ChaCha12(instructions)), groups.as_flattened()[..3020]);
        let Some(aes) = aes::Aes::of(instructions) else {
            return println!("skipped: no instructions for AES beside {}", instructions.name());
        };
        let mut schedule = Schedule::default();
        aes::expand(aes, &[0x0707_0707; 8], &mut schedule);
        aes::fill(aes, &schedule, 0, 0, &mut groups);
        assert_eq!(words(Generator::Aes256(aes)), groups.as_flattened()[..3020]);
    }

    #[test]
    fn debug_output_shows_no_state() {
        assert_eq!(format!("{:?}", SeededRng::new(1).unwrap()), "SeededRng { .. }");
    }
}
