//! Memory of exactly one size, as callers of the C interface pass it.

use crate::input::Input;

/// What `out` has before a call.
const CANARY: u8 = 0xa5;

/// How a pointer is passed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Passed {
    Right,
    Null,
    Misaligned,
}

/// Items in a block of the heap of their own, which has not a byte more.
pub(crate) struct Block {
    bytes: Box<[u8]>,
    passed: Passed,
    aligned: Box<[u64]>,
    length: usize,
}

impl Block {
    /// `items` with `size` bytes each, rarely passed wrongly.
    fn new(bytes: &[u8], size: usize, input: &mut Input<'_>) -> Self {
        let passed = match input.byte() {
            255 => Passed::Null,
            254 if size > 1 => Passed::Misaligned,
            _ => Passed::Right,
        };
        let empty = (Box::default(), Box::default());
        let (bytes_of_block, aligned): (Box<[u8]>, Box<[u64]>) = match (passed, size) {
            (Passed::Null, _) => empty,
            (Passed::Misaligned, _) => ([&[0], bytes].concat().into(), Box::default()),
            (Passed::Right, 8) => {
                let words = bytes.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word));
                (Box::default(), words.collect())
            }
            (Passed::Right, _) => (bytes.into(), Box::default()),
        };
        Self { bytes: bytes_of_block, passed, aligned, length: bytes.len() }
    }

    /// Bytes to be read.
    pub(crate) fn of_bytes(bytes: &[u8], input: &mut Input<'_>) -> Self {
        Self::new(bytes, 1, input)
    }

    /// Integers, lengths, or the bits of doubles.
    pub(crate) fn of_words(words: &[u64], input: &mut Input<'_>) -> Self {
        Self::new(&words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>(), 8, input)
    }

    /// Memory for `length` bytes to be written.
    pub(crate) fn for_bytes(length: usize, input: &mut Input<'_>) -> Self {
        Self::of_bytes(&vec![CANARY; length], input)
    }

    /// Memory for `length` items of 8 bytes to be written.
    pub(crate) fn for_words(length: usize, input: &mut Input<'_>) -> Self {
        Self::of_words(&vec![u64::from_ne_bytes([CANARY; 8]); length], input)
    }

    pub(crate) fn pointer<T>(&mut self) -> *mut T {
        match self.passed {
            Passed::Null => std::ptr::null_mut(),
            Passed::Misaligned => self.bytes.as_mut_ptr().wrapping_add(1).cast(),
            Passed::Right if self.aligned.is_empty() => self.bytes.as_mut_ptr().cast(),
            Passed::Right => self.aligned.as_mut_ptr().cast(),
        }
    }

    pub(crate) fn is_right(&self) -> bool {
        self.passed == Passed::Right || self.length == 0
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self.passed {
            Passed::Null => vec![],
            Passed::Misaligned => self.bytes[1..].to_vec(),
            Passed::Right if self.aligned.is_empty() => self.bytes.to_vec(),
            Passed::Right => self.aligned.iter().flat_map(|word| word.to_ne_bytes()).collect(),
        }
    }

    pub(crate) fn word(&self) -> u64 {
        self.bytes().first_chunk().map_or(0, |&word| u64::from_ne_bytes(word))
    }

    /// Writes what a faulty library would leave.
    pub(crate) fn plant(&mut self) {
        self.bytes.fill(1);
    }

    /// Checks that a failed call has left nothing here.
    pub(crate) fn check_untouched_or_zero(&self, what: &str) {
        let bytes = self.bytes();
        let same = |byte| bytes.iter().all(|&other| other == byte);
        assert!(same(CANARY) || same(0), "{what} is left after an error");
    }

    /// Checks that a failed call has left zeros.
    pub(crate) fn check_zero(&self, what: &str) {
        assert!(self.bytes().iter().all(|&byte| byte == 0), "{what} are left after an error");
    }
}
