//! What is permanent in people's reports: random words derived from their secrets, of sixteen people at once.
//!
//! F(k; x) is the block of ChaCha12 under the key k of 256 bits whose counter and nonce are x, of 128 bits. A person's
//! words for a purpose and a number are the blocks
//!
//! F(k; count | purpose | number), for count = 0, 1, 2, ...
//!
//! with a count and a purpose of 32 bits and a number of 64, all little-endian. Their key k is the first half of
//! F(j; second half of the context), where j is the first half of F(secret; first half of the context). The context is
//!
//! SHA-256(`dpnoise memo` | SHA-256 of the canonical specification | SHA-256 of the question)
//!
//! with the name of the question in UTF-8. The whole digest goes in, by two blocks: a collector who found two
//! specifications or questions with the same context would see the same random words used twice.
//!
//! # Why the words are independent
//!
//! That F is a pseudo-random function is what every generator here assumes of ChaCha12: the best published attacks
//! distinguish 7 of its rounds, not 12, and they choose the counter and the nonce. Applied to one half of an input of
//! fixed length after the other, under keys that it makes itself, it is a pseudo-random function of the whole input
//! (Bellare, Canetti and Krawczyk 1996, "Pseudorandom functions revisited: the cascade construction and its concrete
//! security"). So the words for different purposes, protocols, questions or numbers are independent. No digest is
//! shortened, and numbers go in as they are, so no two of these meet but by a collision of SHA-256.
//!
//! # Constant time
//!
//! Time and memory addresses are the same for all secrets and numbers. A word that would make some numbers more likely
//! than others is replaced; that depends on the dropped word alone, as in `chance/mixture.rs`.

use core::hint::black_box;
use core::mem;

use dpnoise_kernels::arch::chacha_keys::{PEOPLE, Words, chacha12_keys};
use dpnoise_kernels::arch::planes;
use dpnoise_kernels::arch::registers;
use dpnoise_kernels::arch::secrecy::{Reason, declassify, poison};
use sha2::{Digest, Sha256};
use zeroize::zeroize_stack;

use super::chance::bit_flip::BitFlip;
use super::chance::mixture::Mixture;
use super::memo::Secret;
use super::reports::tiles::Tile;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::rng::{Wiped, wipe};

/// The words of a block.
const BLOCK_WORDS: usize = 16;

/// The tiles that are flipped at once: as many as there are words in a block, so that no word is left over.
const TILES: usize = BLOCK_WORDS;

/// The random bytes that deriving a person's key takes.
pub(crate) const KEY_BYTES: usize = 2 * 4 * BLOCK_WORDS;

/// The purpose of derived random words.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Purpose {
    /// What a person keeps for all values: a hash function, a choice of buckets.
    Person = 1,
    /// The permanent answer to one value.
    Answer = 2,
}

/// A number of values, and the words that are replaced.
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
}

/// The random words of up to sixteen people for the answers to one question with one protocol. Dropping it wipes them.
pub(crate) struct Streams {
    instructions: InstructionSet,
    context: [Words; 8],
    /// The words of people's keys.
    keys: Wiped<Words>,
    input: Wiped<Words>,
    buffer: Wiped<Tile>,
    /// How many words have been given out, and how many there are before those that replace others.
    given: usize,
    length: usize,
    /// How many words of each person have been replaced.
    replaced: [u32; PEOPLE],
}

impl Streams {
    /// For the protocol whose specification has this SHA-256.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub(crate) fn new(specification: [u8; 32], question: &str) -> Result<Self, Error> {
        let asked = Sha256::new_with_prefix(b"dpnoise memo").chain_update(specification);
        let context: [u8; 32] = asked.chain_update(Sha256::digest(question)).finalize().into();
        let mut words = [[0; PEOPLE]; 8];
        for (words, bytes) in words.iter_mut().zip(context.as_chunks().0) {
            *words = [u32::from_le_bytes(*bytes); PEOPLE];
        }
        Ok(Self {
            instructions: instruction_set::current()?,
            context: words,
            keys: Wiped::new(8),
            input: Wiped::new(4),
            buffer: Wiped::new(BLOCK_WORDS),
            given: 0,
            length: 0,
            replaced: [0; PEOPLE],
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
        for half in 0..2 {
            self.input.copy_from_slice(&self.context[4 * half..][..4]);
            self.fill_buffer(1);
            self.keys.iter_mut().zip(&*self.buffer).for_each(|(words, tile)| *words = words_of(tile));
        }
    }

    /// Begins the words for a purpose and each person's number; `length` of them are going to be read by [`Streams::next`].
    pub(crate) fn begin(&mut self, purpose: Purpose, numbers: &[u64; PEOPLE], length: usize) {
        self.input[0] = [0; PEOPLE];
        self.input[1] = [purpose as u32; PEOPLE];
        for (i, &number) in numbers.iter().enumerate() {
            (self.input[2][i], self.input[3][i]) = (number as u32, (number >> 32) as u32);
        }
        (self.given, self.length, self.replaced) = (0, length, [0; PEOPLE]);
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

    /// Ones for each person who keeps a value of the mixture, and zeros for others: word `i`, with word `i + 1` behind it where
    /// [`coin_words`] is 2, is below the probability of keeping.
    #[inline]
    pub(crate) fn keeps(&self, mixture: Mixture, i: usize) -> Words {
        let threshold = mixture.keep() << (64 - mixture.planes());
        let low = if coin_words(mixture) == 2 { self.word(i) } else { [0; PEOPLE] };
        let high = self.word(i + coin_words(mixture) - 1);
        let mut masks = [0; PEOPLE];
        for ((mask, low), high) in masks.iter_mut().zip(low).zip(high) {
            *mask = u32::from(u64::from(high) << 32 | u64::from(low) < threshold).wrapping_neg();
        }
        black_box(masks)
    }

    /// Uniform numbers of a range, made of `words`; rejected ones are replaced by words behind all others.
    #[inline]
    pub(crate) fn below(&mut self, range: Range, mut words: Words) -> Words {
        let Range { size, rejected_below } = range;
        let is_rejected = |word: u32| word.wrapping_mul(size) < rejected_below;
        let any = words.iter().fold(false, |any, &word| any | is_rejected(word));
        if declassify(Reason::Rejection, any) {
            for (person, word) in words.iter_mut().enumerate() {
                while declassify(Reason::Rejection, is_rejected(*word)) {
                    *word = self.replacement(person);
                }
            }
        }
        for word in &mut words {
            *word = ((u64::from(*word) * u64::from(size)) >> 32) as u32;
        }
        words
    }

    /// Word `person` of the first words behind those that are read by all, then of the second ones, and so on.
    fn replacement(&mut self, person: usize) -> u32 {
        let at = self.length + self.replaced[person] as usize;
        self.replaced[person] += 1;
        self.input[0] = [(at / BLOCK_WORDS) as u32; PEOPLE];
        let mut block = Wiped::new(BLOCK_WORDS);
        self.fill(&mut block);
        words_of(&block[at % BLOCK_WORDS])[person]
    }

    /// Flips tiles, whose words are people's rows: each tile takes a word of each person for each digit of the
    /// probabilities, the lowest digit first.
    pub(crate) fn flip(&mut self, flip: BitFlip, tiles: &mut [Tile]) {
        let (instructions, planes, p, q) = (self.instructions, flip.planes(), flip.p(), flip.q());
        for tiles in tiles.chunks_mut(TILES) {
            let random = self.next(tiles.len() * planes as usize).as_flattened().as_flattened();
            planes::flip(instructions, planes, p, q, random, tiles.as_flattened_mut().as_flattened_mut());
        }
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

/// The words of a coin: the fewest that hold the binary digits of the probability.
pub(crate) fn coin_words(mixture: Mixture) -> usize {
    mixture.planes().div_ceil(32) as usize
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
    fn streams_differ_by_secret_protocol_question_purpose_and_number_alone() {
        let first_of = |secret: u8, protocol: u8, question, purpose, number| {
            let mut streams = Streams::new([protocol; 32], question).unwrap();
            streams.turn_to(&[[0; 32], [secret; 32]]);
            streams.begin(purpose, &[number; PEOPLE], 1);
            streams.next(1);
            streams.word(0)[1]
        };
        let first = |secret, protocol, purpose, number| first_of(secret, protocol, "a", purpose, number);
        let words = [
            first(1, 1, Purpose::Answer, 3),
            first(2, 1, Purpose::Answer, 3),
            first(1, 2, Purpose::Answer, 3),
            first(1, 1, Purpose::Person, 3),
            first(1, 1, Purpose::Answer, 4),
            first(1, 1, Purpose::Answer, 3 << 32),
            first_of(1, 1, "b", Purpose::Answer, 3),
        ];
        assert_eq!(words[0], first(1, 1, Purpose::Answer, 3));
        assert_eq!(words.iter().collect::<std::collections::HashSet<_>>().len(), words.len());
    }

    /// In whatever parts they are read, and next to whomever: the words of a person are one stream.
    #[test]
    fn words_are_a_stream_of_each_person() {
        let secrets: [Secret; 3] = [1, 2, 3].map(|byte| [byte; 32]);
        let read = |secrets: &[Secret], parts: &[usize], person: usize| {
            let mut streams = Streams::new([7; 32], "a").unwrap();
            streams.turn_to(&[[9; 32]; PEOPLE]);
            streams.turn_to(secrets);
            streams.begin(Purpose::Person, &[5; PEOPLE], parts.iter().sum());
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
        streams.begin(Purpose::Person, &[0; PEOPLE], 1);
        streams.next(1);
        let first = streams.word(0);
        let numbers = streams.below(range, first);
        let (mut expected, mut replaced) = (first, [0; PEOPLE]);
        for person in 0..PEOPLE {
            streams.replaced[person] = 0;
            while expected[person].wrapping_mul(range.size) < range.rejected_below {
                expected[person] = streams.replacement(person);
                replaced[person] += 1;
            }
        }
        let expected = expected.map(|word| ((u64::from(word) * u64::from(range.size)) >> 32) as u32);
        assert_eq!((numbers, streams.replaced), (expected, replaced));
        assert!(replaced.contains(&0) && replaced.iter().any(|&times| times > 1));
    }
}
