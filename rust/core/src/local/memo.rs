//! What people's devices keep between reports: a secret of 32 bytes per person, and with which randomiser they answered
//! each question.
//!
//! Everything permanent in a protocol - the answer to a value, a hash function, a choice of buckets - is derived from
//! the secret each time it is needed (see `derivation`), so it is always the same, in every process.
//!
//! Another randomiser derives other permanent answers, which would cost epsilon again: a question is answered with one.
//!
//! # Bytes
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `DPNM` |
//! | 1 | version: 2 |
//! | 3 | m, the number of questions that were answered, little-endian |
//! | 8 | n, the number of people, little-endian |
//! | 32 n | their secrets |
//! | 64 m | for each question its SHA-256, and that of the specification it was answered with, without labels, question and period |
//! | 4 | CRC-32C of everything before, little-endian |

use core::fmt;
use core::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpnoise_kernels::memory::{OutOfMemory, collected, room};

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::rng::{SecureRng, Wiped, fill_bytes};

/// The secret of a person.
pub type Secret = [u8; 32];

const MAGIC: [u8; 4] = *b"DPNM";
const VERSION: u8 = 2;
const PREAMBLE_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

/// The most questions that are remembered.
const MOST_QUESTIONS: usize = 0xff_ffff;

/// A question that was answered, and with what: the SHA-256 of both.
type Answered = [[u8; 32]; 2];

/// The secrets of some people, wiped when dropped; and with which randomiser they answered each question.
pub struct ClientMemo {
    secrets: Wiped<Secret>,
    /// Shared with the memos of some of these people.
    answered: Arc<Mutex<Vec<Answered>>>,
}

impl ClientMemo {
    /// Draws the secrets of `n` people.
    ///
    /// # Errors
    /// [`Error::Allocation`] when there is no memory for 32 bytes for each, [`Error::Randomness`] when the system has no
    /// randomness.
    pub fn generate(n: u64) -> Result<Self, Error> {
        let mut secrets = Wiped::try_new(usize::try_from(n).unwrap_or(usize::MAX))?;
        fill_bytes(&mut SecureRng::new()?, secrets.as_flattened_mut())?;
        Ok(Self { secrets, answered: Arc::default() })
    }

    /// The memo of the people with these indices. What either of the two answers, both have answered.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn select(&self, indices: impl ExactSizeIterator<Item = usize>) -> Result<Self, Error> {
        let mut secrets = Wiped::try_new(indices.len())?;
        secrets.iter_mut().zip(indices).for_each(|(secret, index)| *secret = self.secrets[index]);
        Ok(Self { secrets, answered: Arc::clone(&self.answered) })
    }

    /// Keeps in mind that people answer this question with the randomiser of this digest, and refuses another one.
    pub(crate) fn answer(&self, question: &str, randomiser: [u8; 32]) -> Result<(), Error> {
        let asked = Sha256::digest(question).into();
        let mut answered = self.answered();
        match answered.iter().find(|known| known[0] == asked) {
            Some(known) if known[1] == randomiser => Ok(()),
            Some(_) => Err(Error::State(
                "the specification must have the randomiser of earlier reports on this question: another one costs \
                 epsilon again"
                    .into(),
            )),
            None if answered.len() == MOST_QUESTIONS => {
                Err(Error::State(format!("a memo is for at most {MOST_QUESTIONS} questions")))
            }
            None => {
                answered.try_reserve(1).map_err(|_| OutOfMemory)?;
                answered.push([asked, randomiser]);
                Ok(())
            }
        }
    }

    fn answered(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The secrets, one for each person.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// The memo as bytes. Whoever has them has the secrets.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let answered = self.answered();
        let [low, middle, high, _] = (answered.len() as u32).to_le_bytes();
        let mut bytes = room(PREAMBLE_BYTES + size_of_val(self.secrets()) + size_of_val(&**answered) + CHECKSUM_BYTES)?;
        bytes.extend(MAGIC);
        bytes.extend([VERSION, low, middle, high]);
        bytes.extend((self.secrets.len() as u64).to_le_bytes());
        bytes.extend(self.secrets.as_flattened());
        bytes.extend(answered.as_flattened().as_flattened());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Reads a memo back.
    ///
    /// # Errors
    /// [`Error::State`] that says what is wrong, when the bytes are not a memo; [`Error::Allocation`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |problem: &str| Err(Error::State(problem.into()));
        if bytes.len() < MAGIC.len() || !bytes.starts_with(&MAGIC) {
            return wrong("not the memo of a client: it does not begin with DPNM");
        }
        let Some((&[_, _, _, _, version, rest @ ..], body)) = bytes.split_first_chunk::<PREAMBLE_BYTES>() else {
            return wrong("the memo is truncated: it ends in its preamble");
        };
        let ([low, middle, high, n @ ..], VERSION) = (rest, version) else {
            return wrong(&format!("the memo is of version {version}; this release reads version {VERSION}"));
        };
        let (people, questions) = (u64::from_le_bytes(n), u32::from_le_bytes([low, middle, high, 0]));
        let secrets = u128::from(people) * size_of::<Secret>() as u128;
        let expected = secrets + u128::from(questions) * size_of::<Answered>() as u128 + CHECKSUM_BYTES as u128;
        if body.len() as u128 != expected {
            let problem = if (body.len() as u128) < expected { "truncated" } else { "damaged" };
            let (length, expected) = (bytes.len(), PREAMBLE_BYTES as u128 + expected);
            return wrong(&format!("the memo is {problem}: {length} bytes instead of {expected}"));
        }
        let (checked, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if crc32c::crc32c(checked).to_le_bytes() != *checksum {
            return wrong("the memo is damaged: the checksum is wrong");
        }
        let (secrets, answered) = checked[PREAMBLE_BYTES..].split_at(secrets as usize);
        let answered = collected(answered.as_chunks::<32>().0.as_chunks().0.iter().copied())?;
        let mut asked = collected(answered.iter().map(|known| known[0]))?;
        asked.sort_unstable();
        if asked.windows(2).any(|pair| pair[0] == pair[1]) {
            return wrong("the memo is damaged: a question is there twice");
        }
        Ok(Self { secrets: Wiped::copy_of(secrets.as_chunks().0)?, answered: Arc::new(Mutex::new(answered)) })
    }
}

/// Memos are equal if their secrets are. Takes a time that depends only on the number of people.
impl PartialEq for ClientMemo {
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.secrets.as_flattened().iter().zip(other.secrets.as_flattened());
        let difference = pairs.fold(0, |difference, (a, b)| black_box(difference | a ^ b));
        self.secrets.len() == other.secrets.len() && difference == 0
    }
}

impl Eq for ClientMemo {}

impl fmt::Debug for ClientMemo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMemo").field("people", &self.secrets.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_and_damage_is_named() {
        let memo = ClientMemo::generate(3).unwrap();
        memo.answer("colour", [7; 32]).unwrap();
        let bytes = memo.to_bytes().unwrap();
        assert_eq!(ClientMemo::from_bytes(&bytes).unwrap(), memo);
        assert_eq!(ClientMemo::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
        assert_eq!(
            ClientMemo::from_bytes(&ClientMemo::generate(0).unwrap().to_bytes().unwrap()).unwrap().secrets().len(),
            0
        );
        let message = |bytes: &[u8]| ClientMemo::from_bytes(bytes).unwrap_err().to_string();
        for length in 0..bytes.len() {
            let expected = if length < 4 { "does not begin with DPNM" } else { "truncated" };
            assert!(message(&bytes[..length]).contains(expected), "{length}");
        }
        assert!(message(&[&bytes[..], &[0]].concat()).contains("damaged: 181 bytes instead of 180"));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let expected = match at {
                0..4 => "does not begin with DPNM",
                4 => "this release reads version 2",
                5..16 => "bytes instead of",
                _ => "the checksum is wrong",
            };
            assert!(message(&damaged).contains(expected), "{at}");
        }
    }

    #[test]
    fn a_question_is_answered_with_one_randomiser() {
        let memo = ClientMemo::generate(2).unwrap();
        let (one, bare) = (memo.select(1..2).unwrap(), memo.to_bytes().unwrap());
        assert_eq!((bare.len(), &bare[5..8]), (84, &[0; 3][..])); // as it was before any answer
        one.answer("colour", [1; 32]).unwrap();
        let kept = ClientMemo::from_bytes(&memo.to_bytes().unwrap()).unwrap();
        for memo in [&memo, &one, &kept] {
            assert_eq!(memo.answer("colour", [1; 32]), Ok(()));
            assert!(memo.answer("colour", [2; 32]).unwrap_err().to_string().contains("costs epsilon again"));
            assert_eq!(memo.answer("food", [2; 32]), Ok(()));
        }
        let mut twice = one.to_bytes().unwrap();
        let at = twice.len() - CHECKSUM_BYTES - 64;
        twice.copy_within(at - 64..at - 32, at);
        let checksum = crc32c::crc32c(&twice[..at + 64]).to_le_bytes();
        twice[at + 64..].copy_from_slice(&checksum);
        assert!(ClientMemo::from_bytes(&twice).unwrap_err().to_string().contains("a question is there twice"));
    }

    #[test]
    fn secrets_are_drawn_compared_and_hidden() {
        let memo = ClientMemo::generate(100).unwrap();
        let distinct: std::collections::HashSet<_> = memo.secrets().iter().collect();
        assert_eq!(distinct.len(), 100);
        let some = |indices| memo.select(indices).unwrap();
        assert_eq!(some(0..100), memo);
        assert!(some(0..99) != memo && some(1..100) != some(0..99));
        assert_eq!(format!("{memo:?}"), "ClientMemo { people: 100, .. }");
        assert_eq!(ClientMemo::generate(u64::MAX), Err(Error::Allocation));
    }
}
