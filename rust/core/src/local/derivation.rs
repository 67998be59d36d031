//! What is permanent in people's reports: random words derived from their secrets, of sixteen people at once.
//!
//! F(k; x) is the block of ChaCha12 under the key k of 256 bits whose counter and nonce are x, of 128 bits. A person's
//! key for a question is k = F(secret; first 16 bytes of the context), where the context is
//!
//! SHA-256(`dpnoise memo` | SHA-256 of the canonical specification | SHA-256 of the question)
//!
//! with the name of the question in UTF-8. As a key, a block stands for its first half. With counts of 32 bits and
//! numbers of 64, all little-endian, the blocks of a person's own words, which are for all values, and of the words for
//! the answer to one value, are
//!
//! F(k; count | next 12 bytes of the context) and F(F(k; 2^32 - 1 | next 12 bytes of the context); count | 0 | number)
//!
//! for count = 0, 1, 2, ..., far below 2^32 - 1.
//!
//! # Why the words are independent
//!
//! That F is a pseudo-random function is what every generator here assumes of ChaCha12: the published attacks reach fewer
//! than 8 rounds, even though they choose the counter and the nonce. Applied to one part of an input after
//! the other, under keys that it makes itself and that are given out nowhere, it is a pseudo-random function of whole
//! inputs (Bellare, Canetti and Krawczyk 1996, "Pseudorandom functions revisited: the cascade construction and its
//! concrete security"; no input continues another one). So the words for different protocols, questions, purposes or
//! numbers are independent. Numbers go in as they are. Of the context 224 bits do, so a collector who looked for two
//! specifications or questions that share their words would have to find a collision of SHA-256 shortened to 224 bits,
//! in about 2^112 trials.
//!
//! # Constant time
//!
//! Time and memory addresses are the same for all secrets and numbers. A word that would make some numbers more likely
//! than others is replaced; that depends on the dropped word alone, as in `chance/mixture.rs`.

use core::mem;

use dpnoise_kernels::arch::chacha_keys::{PEOPLE, Words, chacha12_keys};
use dpnoise_kernels::arch::planes;
use dpnoise_kernels::arch::registers;
use dpnoise_kernels::arch::secrecy::{Reason, declassify, poison};
use sha2::{Digest, Sha256};
use zeroize::zeroize_stack;

use super::chance::bit_flip::BitFlip;
use super::memo::Secret;
use super::reports::tiles::{TILES, Tile, tiles};
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::rng::{Wiped, wipe};

/// The words of a block.
const BLOCK_WORDS: usize = 16;

const _: () = assert!(TILES.is_multiple_of(BLOCK_WORDS));

/// The random bytes that deriving a person's keys takes.
pub(crate) const KEY_BYTES: usize = 2 * 4 * BLOCK_WORDS;

/// The numbers below `size`, and the words that are rejected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    size: u32,
    rejected_below: u32,
}

impl Range {
    /// Of `size` values, at least one.
    pub(crate) fn new(size: u32) -> Self {
        Self { size, rejected_below: size.wrapping_neg() % size }
    }

    /// Whether a word would make some numbers more likely than others (Lemire 2019).
    #[inline]
    fn rejects(self, word: u32) -> bool {
        word.wrapping_mul(self.size) < self.rejected_below
    }

    /// The number below `size` that a word stands for.
    #[inline]
    pub(crate) fn number(self, word: u32) -> u32 {
        ((u64::from(word) * u64::from(self.size)) >> 32) as u32
    }
}

/// The random words of up to sixteen people for the answers to one question with one protocol. Dropping it wipes them.
pub(crate) struct Streams {
    instructions: InstructionSet,
    /// The first 28 bytes of the context, the same for all people.
    context: [Words; 7],
    /// The words of people's keys for the question, and of those of the words that are being read.
    own: Wiped<Words>,
    keys: Wiped<Words>,
    input: Wiped<Words>,
    buffer: Wiped<Tile>,
    /// How many words have been given out, and how many there are before those that replace others.
    given: usize,
    length: usize,
    /// How many words of each person have been dropped.
    dropped: [u32; PEOPLE],
}

impl Streams {
    /// For the protocol whose specification has this SHA-256.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub(crate) fn new(specification: [u8; 32], question: &str) -> Result<Self, Error> {
        let asked = Sha256::new_with_prefix(b"dpnoise memo").chain_update(specification);
        let context: [u8; 32] = asked.chain_update(Sha256::digest(question)).finalize().into();
        let mut words = [[0; PEOPLE]; 7];
        for (words, bytes) in words.iter_mut().zip(context.as_chunks().0) {
            *words = [u32::from_le_bytes(*bytes); PEOPLE];
        }
        Ok(Self {
            instructions: instruction_set::current()?,
            context: words,
            own: Wiped::new(8),
            keys: Wiped::new(8),
            input: Wiped::new(4),
            buffer: Wiped::new(BLOCK_WORDS),
            given: 0,
            length: 0,
            dropped: [0; PEOPLE],
        })
    }

    /// Turns to the people with these secrets, of whom there are at most sixteen.
    pub(crate) fn turn_to(&mut self, secrets: &[Secret]) {
        wipe(&mut self.keys);
        for (i, secret) in secrets.iter().enumerate() {
            for (words, bytes) in self.keys.iter_mut().zip(secret.as_chunks().0) {
                words[i] = u32::from_le_bytes(*bytes);
            }
        }
        poison(&mut self.keys);
        self.input.copy_from_slice(&self.context[..4]);
        self.derive_keys();
        self.own.copy_from_slice(&self.keys);
    }

    /// Begins each person's own words, which are for all values; `length` of them are going to be read by
    /// [`Streams::next`].
    pub(crate) fn begin(&mut self, length: usize) {
        self.keys.copy_from_slice(&self.own);
        self.input[1..].copy_from_slice(&self.context[4..]);
        (self.given, self.length, self.dropped) = (0, length, [0; PEOPLE]);
    }

    /// Begins the words for the answer to the value with each person's number, as [`Streams::begin`] does.
    pub(crate) fn begin_answer(&mut self, numbers: &[u64; PEOPLE], length: usize) {
        self.begin(length);
        self.input[0] = [u32::MAX; PEOPLE];
        self.derive_keys();
        self.input[1] = [0; PEOPLE];
        for (i, &number) in numbers.iter().enumerate() {
            (self.input[2][i], self.input[3][i]) = (number as u32, (number >> 32) as u32);
        }
    }

    fn derive_keys(&mut self) {
        self.fill_buffer(1);
        self.keys.iter_mut().zip(&*self.buffer).for_each(|(words, tile)| *words = words_of(tile));
    }

    /// The next `count` words of each person; a number that is no multiple of 16 can only come last.
    pub(crate) fn next(&mut self, count: usize) -> &[Tile] {
        debug_assert!(self.given.is_multiple_of(BLOCK_WORDS) && self.given + count <= self.length);
        self.input[0] = [(self.given / BLOCK_WORDS) as u32; PEOPLE];
        self.fill_buffer(count.div_ceil(BLOCK_WORDS));
        self.given += count;
        &self.buffer[..count]
    }

    /// Word `i` of those that [`Streams::next`] gave last.
    #[inline]
    pub(crate) fn word(&self, i: usize) -> Words {
        words_of(&self.buffer[i])
    }

    /// Word `i` of those that [`Streams::next`] gave last, for numbers of a range: what the range rejects is replaced by
    /// words behind all others.
    #[inline]
    pub(crate) fn accepted(&mut self, range: Range, i: usize) -> Words {
        let words = self.word(i);
        if range.rejected_below > 0 {
            let any = words.iter().fold(false, |any, &word| any | range.rejects(word));
            if declassify(Reason::Rejection, any) {
                return self.replaced(range, words);
            }
        }
        words
    }

    #[cold]
    fn replaced(&mut self, range: Range, mut words: Words) -> Words {
        for (person, word) in words.iter_mut().enumerate() {
            while declassify(Reason::Rejection, range.rejects(*word)) {
                *word = self.replacement(person);
            }
        }
        words
    }

    /// The first word of a person behind those that are read by all, then the second one, and so on.
    fn replacement(&mut self, person: usize) -> u32 {
        let at = self.length + self.dropped[person] as usize;
        self.dropped[person] += 1;
        self.input[0] = [(at / BLOCK_WORDS) as u32; PEOPLE];
        let mut block = Wiped::new(BLOCK_WORDS);
        self.fill(&mut block);
        u32::from_le_bytes(block[at % BLOCK_WORDS][person])
    }

    /// Flips up to [`TILES`] tiles, the words of people's rows: each tile takes a word of each person for each digit of
    /// the probabilities, the lowest digit first. As many tiles as a block has words leave no word over.
    pub(crate) fn flip(&mut self, flip: BitFlip, tiles: &mut [Tile]) {
        let (instructions, planes, p, q) = (self.instructions, flip.planes(), flip.p(), flip.q());
        let random = self.next(tiles.len() * planes as usize).as_flattened().as_flattened();
        planes::flip(instructions, planes, p, q, random, tiles.as_flattened_mut().as_flattened_mut());
    }

    fn fill_buffer(&mut self, blocks: usize) {
        let words = blocks * BLOCK_WORDS;
        if self.buffer.len() < words {
            self.buffer = Wiped::new(words);
        }
        let mut buffer = mem::take(&mut self.buffer);
        self.fill(&mut buffer[..words]);
        self.buffer = buffer;
    }

    fn fill(&self, words: &mut [Tile]) {
        let (key, input) = (self.keys.first_chunk(), self.input.first_chunk());
        let (key, input) = key.zip(input).expect("twelve words");
        chacha12_keys(self.instructions, key, input, words.as_flattened_mut().as_flattened_mut().as_chunks_mut().0);
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        // Secrets in registers, and in the stack frames of kernels, just below this one.
        registers::clear();
        zeroize_stack::<4096>();
    }
}

/// The words that [`Streams::flip`] takes for rows of `width` bytes.
pub(crate) fn flip_words(flip: BitFlip, width: usize) -> usize {
    tiles(width) * flip.planes() as usize
}

#[inline]
fn words_of(tile: &Tile) -> Words {
    let mut words = [0; PEOPLE];
    for (word, bytes) in words.iter_mut().zip(tile) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_by_secret_protocol_question_and_number_alone() {
        let first_of = |secret: u8, protocol: u8, question, number: Option<u64>| {
            let mut streams = Streams::new([protocol; 32], question).unwrap();
            streams.turn_to(&[[0; 32], [secret; 32]]);
            match number {
                Some(number) => streams.begin_answer(&[number; PEOPLE], 1),
                None => streams.begin(1),
            }
            streams.next(1);
            streams.word(0)[1]
        };
        let words = [
            first_of(1, 1, "a", Some(3)),
            first_of(2, 1, "a", Some(3)),
            first_of(1, 2, "a", Some(3)),
            first_of(1, 1, "b", Some(3)),
            first_of(1, 1, "a", Some(4)),
            first_of(1, 1, "a", Some(3 << 32)),
            first_of(1, 1, "a", None),
            first_of(2, 1, "a", None),
            first_of(1, 2, "a", None),
            first_of(1, 1, "b", None),
        ];
        assert_eq!(words[0], first_of(1, 1, "a", Some(3)));
        assert_eq!(words.iter().collect::<std::collections::HashSet<_>>().len(), words.len());
    }

    /// Every bit of the context counts, except the 32 that are left out.
    #[test]
    fn all_of_the_context_goes_in() {
        let mut streams = Streams::new([7; 32], "a").unwrap();
        let mut seen = std::collections::HashSet::new();
        for (i, bit) in (0..7).flat_map(|i| [1, 1 << 31].map(|bit| (i, bit))) {
            streams.context[i][0] ^= bit;
            for answer in [false, true] {
                streams.turn_to(&[[1; 32]]);
                if answer {
                    streams.begin_answer(&[0; PEOPLE], 1);
                } else {
                    streams.begin(1);
                }
                streams.next(1);
                assert!(seen.insert(streams.word(0)[0]));
            }
        }
    }

    /// In whatever parts they are read, and next to whomever: the words of a person are one stream.
    #[test]
    fn words_are_a_stream_of_each_person() {
        let secrets: [Secret; 3] = [1, 2, 3].map(|byte| [byte; 32]);
        let read = |secrets: &[Secret], parts: &[usize], person: usize| {
            let mut streams = Streams::new([7; 32], "a").unwrap();
            streams.turn_to(&[[9; 32]; PEOPLE]);
            streams.turn_to(secrets);
            streams.begin_answer(&[5; PEOPLE], parts.iter().sum());
            let mut words = vec![];
            for &part in parts {
                streams.next(part);
                words.extend((0..part).map(|i| streams.word(i)[person]));
            }
            (words, streams.replacement(person), streams.replacement(person))
        };
        let (words, next, after) = read(&secrets, &[48, 23], 1);
        assert_eq!(read(&secrets[1..], &[16, 16, 32, 7], 0), (words.clone(), next, after));
        let (more, ..) = read(&secrets, &[73], 1);
        assert_eq!(more, [words, vec![next, after]].concat());
    }

    /// Half of all words are rejected for this range; those of no other person are replaced.
    #[test]
    fn rejected_words_are_replaced() {
        let range = Range::new((1 << 31) + 1);
        let mut streams = Streams::new([7; 32], "a").unwrap();
        let secrets: Vec<Secret> = (0..16).map(|byte| [byte; 32]).collect();
        streams.turn_to(&secrets);
        streams.begin(1);
        streams.next(1);
        let (mut expected, found, dropped) = (streams.word(0), streams.accepted(range, 0), streams.dropped);
        streams.dropped = [0; PEOPLE];
        for (person, word) in expected.iter_mut().enumerate() {
            while range.rejects(*word) {
                *word = streams.replacement(person);
            }
        }
        assert_eq!((found, dropped), (expected, streams.dropped));
        assert!(dropped.contains(&0) && dropped.iter().any(|&words| words > 1));
    }
}
