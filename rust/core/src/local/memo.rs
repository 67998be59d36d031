//! What people's devices keep between reports: a secret of 32 bytes per person, and nothing else.
//!
//! Everything permanent in a protocol - the answer to a value, a hash function, a choice of buckets - is derived from
//! the secret each time it is needed (see `derivation`), so it is always the same, in every process.
//!
//! # Bytes
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `DPNM` |
//! | 1 | version: 2 |
//! | 3 | 0 |
//! | 8 | n, the number of people, little-endian |
//! | 32 n | their secrets |
//! | 4 | CRC-32C of everything before, little-endian |

use core::fmt;
use core::hint::black_box;

use dpnoise_kernels::memory::room;

use crate::error::Error;
use crate::rng::{SecureRng, Wiped, fill_bytes};

/// The secret of a person.
pub type Secret = [u8; 32];

const MAGIC: [u8; 4] = *b"DPNM";
const VERSION: u8 = 2;
const PREAMBLE_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

/// The secrets of some people, wiped when dropped.
pub struct ClientMemo(Wiped<Secret>);

impl ClientMemo {
    /// Draws the secrets of `n` people.
    ///
    /// # Errors
    /// [`Error::Allocation`] when there is no memory for 32 bytes for each, [`Error::Randomness`] when the system has no
    /// randomness.
    pub fn generate(n: u64) -> Result<Self, Error> {
        let mut secrets = Wiped::try_new(usize::try_from(n).unwrap_or(usize::MAX))?;
        fill_bytes(&mut SecureRng::new()?, secrets.as_flattened_mut())?;
        Ok(Self(secrets))
    }

    /// The memo of the people with these indices.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn select(&self, indices: impl ExactSizeIterator<Item = usize>) -> Result<Self, Error> {
        let mut secrets = Wiped::try_new(indices.len())?;
        secrets.iter_mut().zip(indices).for_each(|(secret, index)| *secret = self.0[index]);
        Ok(Self(secrets))
    }

    /// The secrets, one for each person.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        &self.0
    }

    /// The memo as bytes. Whoever has them has the secrets.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = room(PREAMBLE_BYTES + size_of_val(self.secrets()) + CHECKSUM_BYTES)?;
        bytes.extend(MAGIC);
        bytes.extend([VERSION, 0, 0, 0]);
        bytes.extend((self.0.len() as u64).to_le_bytes());
        bytes.extend(self.0.as_flattened());
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
        let ([0, 0, 0, n @ ..], VERSION) = (rest, version) else {
            let problem =
                format!("the memo is of version {version}; this release reads version {VERSION}, without flags");
            return wrong(&problem);
        };
        let expected = u128::from(u64::from_le_bytes(n)) * size_of::<Secret>() as u128 + CHECKSUM_BYTES as u128;
        if body.len() as u128 != expected {
            let problem = if (body.len() as u128) < expected { "truncated" } else { "damaged" };
            let (length, expected) = (bytes.len(), PREAMBLE_BYTES as u128 + expected);
            return wrong(&format!("the memo is {problem}: {length} bytes instead of {expected}"));
        }
        let (checked, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if crc32c::crc32c(checked).to_le_bytes() != *checksum {
            return wrong("the memo is damaged: the checksum is wrong");
        }
        Wiped::copy_of(checked[PREAMBLE_BYTES..].as_chunks().0).map(Self)
    }
}

/// Takes a time that depends only on the number of people.
impl PartialEq for ClientMemo {
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.as_flattened().iter().zip(other.0.as_flattened());
        let difference = pairs.fold(0, |difference, (a, b)| black_box(difference | a ^ b));
        self.0.len() == other.0.len() && difference == 0
    }
}

impl Eq for ClientMemo {}

impl fmt::Debug for ClientMemo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMemo").field("people", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_and_damage_is_named() {
        let memo = ClientMemo::generate(3).unwrap();
        let bytes = memo.to_bytes().unwrap();
        assert_eq!(ClientMemo::from_bytes(&bytes).unwrap(), memo);
        assert_eq!(
            ClientMemo::from_bytes(&ClientMemo::generate(0).unwrap().to_bytes().unwrap()).unwrap().secrets().len(),
            0
        );
        let message = |bytes: &[u8]| ClientMemo::from_bytes(bytes).unwrap_err().to_string();
        for length in 0..bytes.len() {
            let expected = if length < 4 { "does not begin with DPNM" } else { "truncated" };
            assert!(message(&bytes[..length]).contains(expected), "{length}");
        }
        assert!(message(&[&bytes[..], &[0]].concat()).contains("damaged: 117 bytes instead of 116"));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let expected = match at {
                0..4 => "does not begin with DPNM",
                4..8 => "this release reads version 2",
                8..16 => "bytes instead of",
                _ => "the checksum is wrong",
            };
            assert!(message(&damaged).contains(expected), "{at}");
        }
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
