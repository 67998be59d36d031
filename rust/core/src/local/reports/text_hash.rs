//! Texts as numbers, and numbers as columns: the public hash functions of protocols over an open domain.
//!
//! A text is the bytes of its UTF-8 form. Its *fingerprint* is the first 8 bytes, little-endian, of the SHA-256 of
//! `dpnoise text`, in ASCII, and these bytes. The hash of a fingerprint x in row j is floor(w ((a x + b) mod 2^128) / 2^128),
//! where w, a power of two, is the number of columns, and a and b are the first and the last 16 bytes, little-endian, of the
//! SHA-256 of `dpnoise row`, the public seed (4 bytes, little-endian) and j (4 bytes, little-endian).
//!
//! For uniform a and b the hashes of two fingerprints are independent and uniform (Dietzfelbinger 1996, "Universal
//! hashing and k-wise independent random variables via integer arithmetic without primes"); two texts of a million
//! share a fingerprint with a probability of 2^-25. Three fingerprints at equal distances would collide more often, but
//! the distances of fingerprints are pseudo-random. Privacy depends on neither: it holds for any hash functions.
//!
//! # Constant time
//!
//! SHA-256 takes a step for every 64 bytes of a text, so the time of a fingerprint reveals the number of these steps,
//! and nothing else. Everything after that works on numbers of fixed size.

use sha2::{Digest, Sha256};
use zeroize::zeroize_stack;

use crate::error::Error;

/// The fingerprint of a text, as a signed number: the type of all values.
pub(crate) fn fingerprint(text: &[u8]) -> i64 {
    let [first, ..] = words(Sha256::new().chain_update(b"dpnoise text").chain_update(text));
    first as i64
}

/// Fills `out` with the fingerprints of texts: text i is `data[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// [`Error::Parameter`] unless the offsets begin with 0, never decrease, end with the length of the data, and are one
/// more than the fingerprints.
pub fn fingerprints(data: &[u8], offsets: &[i64], out: &mut [i64]) -> Result<(), Error> {
    let ends = (offsets.first(), offsets.last().map(|&last| last as u64));
    if ends != (Some(&0), Some(data.len() as u64)) || offsets.len() != out.len() + 1 || !offsets.is_sorted() {
        let allowed = "as in an Arrow array: from 0 to the length of the data, never decreasing, one more than texts";
        return Err(Error::parameter("offsets", "others", allowed));
    }
    for (out, ends) in out.iter_mut().zip(offsets.windows(2)) {
        *out = fingerprint(&data[ends[0] as usize..ends[1] as usize]);
    }
    // Hash functions are moved, and leave blocks of the texts in the stack frames just below this one.
    zeroize_stack::<4096>();
    Ok(())
}

/// The hash function of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowHash {
    a: u128,
    b: u128,
    shift: u32,
}

impl RowHash {
    /// The hash function of row `row`, to `width` columns, a power of two above 1.
    pub(crate) fn new(seed: u32, row: u32, width: u32) -> Self {
        let key = Sha256::new().chain_update(b"dpnoise row").chain_update(seed.to_le_bytes());
        let [a0, a1, b0, b1] = words(key.chain_update(row.to_le_bytes())).map(u128::from);
        Self { a: a0 | a1 << 64, b: b0 | b1 << 64, shift: 128 - width.trailing_zeros() }
    }

    /// The column of a fingerprint.
    #[inline(always)]
    pub(crate) fn column(self, fingerprint: i64) -> u32 {
        (self.a.wrapping_mul((fingerprint as u64).into()).wrapping_add(self.b) >> self.shift) as u32
    }
}

/// A SHA-256 as little-endian words.
fn words(hash: Sha256) -> [u64; 4] {
    let digest: [u8; 32] = hash.finalize().into();
    let words: &[[u8; 8]] = digest.as_chunks().0;
    core::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over many seeds, each column is as frequent as any other, and two texts meet as often as by chance.
    #[test]
    fn columns_are_uniform_and_independent_by_pairs() {
        let (seeds, width) = (20_000, 8);
        let texts = [fingerprint(b"pear"), fingerprint(b"apple")];
        let mut pairs = [0u32; 64];
        for seed in 0..seeds {
            let hash = RowHash::new(seed, 3, width);
            pairs[(hash.column(texts[0]) * width + hash.column(texts[1])) as usize] += 1;
        }
        let expected = f64::from(seeds) / 64.0;
        let chi2: f64 = pairs.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi2 < 145.0, "{chi2}"); // 63 degrees of freedom: beyond 145 with a probability of 2e-8
    }

    #[test]
    fn offsets_must_fit() {
        let mut out = [0; 2];
        fingerprints(b"abc", &[0, 1, 3], &mut out).unwrap();
        assert_eq!(out, [fingerprint(b"a"), fingerprint(b"bc")]);
        for offsets in [&[0, 1, 2][..], &[1, 1, 3], &[0, 3], &[0, 4, 3], &[0, -1, 3], &[]] {
            assert!(fingerprints(b"abc", offsets, &mut out).is_err(), "{offsets:?}");
        }
    }
}
