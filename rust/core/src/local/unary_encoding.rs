//! Unary encoding: one of k values as k bits of which one is set, each bit then flipped independently.
//!
//! Definition: bit i of the report is 1 with probability p if the value is i, and q otherwise (Wang, Blocki, Li, Jha
//! 2017, "Locally differentially private protocols for frequency estimation", section 4.3).
//!
//! # Privacy
//!
//! A report is epsilon-locally differentially private with epsilon = ln(p(1-q) / ((1-p)q)): two one-hot rows differ in
//! two bits. The guarantee is for one-hot rows alone; a row with more bits set would be worth more than epsilon, so
//! [`UnaryEncoding::perturb_encoded`] refuses it.
//!
//! A report is ceil(k/8) bytes, least significant bit first; unused bits of the last byte are zero.

use rand_core::TryCryptoRng;

use super::bit_flip::{BitFlip, Neighbours};
use super::client::{Randomise, check_below_k, check_out, in_parallel, wiped_on_error};
use super::flipper::Flipper;
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use crate::error::Error;
use crate::rng::Wiped;
use dpnoise_kernels::arch::planes::TILE_BYTES;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::mask;

/// The bits encoded before they are flipped, while they are in the first-level cache.
pub(super) const CHUNK_BYTES: usize = 64 * TILE_BYTES;

/// Symmetric, optimised or custom unary encoding of k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnaryEncoding {
    protocol: Protocol,
    flip: BitFlip,
}

impl UnaryEncoding {
    /// Symmetric unary encoding (basic RAPPOR; Erlingsson, Pihur, Korolova 2014): p = s/(s+1), q = 1 - p, with
    /// s = e^(epsilon/2).
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn symmetric(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let flip = BitFlip::symmetric(epsilon, Neighbours::OneHot)?;
        Ok(Self::from_flip(Family::SymmetricUnaryEncoding, k, flip, epsilon))
    }

    /// Optimised unary encoding: p = 1/2, q = 1/(e^epsilon + 1), the smallest variance of a rare value's count.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn optimized(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let flip = BitFlip::optimized(epsilon)?;
        Ok(Self::from_flip(Family::OptimizedUnaryEncoding, k, flip, epsilon))
    }

    /// Thresholding with histogram encoding; see [`BitFlip::threshold`].
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn threshold(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let flip = BitFlip::threshold(epsilon)?;
        Ok(Self::from_flip(Family::ThresholdHistogramEncoding, k, flip, epsilon))
    }

    /// Unary encoding with the caller's probabilities; see [`BitFlip::custom`].
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and [`BitFlip::custom`] takes p and q.
    pub fn custom(k: u64, p: f64, q: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let (flip, epsilon) = BitFlip::custom(p, q)?;
        Ok(Self::from_flip(Family::UnaryEncoding, k, flip, epsilon))
    }

    fn from_flip(family: Family, k: u32, flip: BitFlip, epsilon: f64) -> Self {
        Self { protocol: Protocol::new(family, k, Randomizer::BitFlip(flip), epsilon), flip }
    }

    /// The encoding that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        use Family::{OptimizedUnaryEncoding, SymmetricUnaryEncoding, ThresholdHistogramEncoding, UnaryEncoding};
        match (protocol.family(), protocol.randomizer()) {
            (
                SymmetricUnaryEncoding | OptimizedUnaryEncoding | UnaryEncoding | ThresholdHistogramEncoding,
                Randomizer::BitFlip(flip),
            ) => Some(Self { protocol, flip }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The exact probabilities.
    #[must_use]
    pub fn flip(&self) -> BitFlip {
        self.flip
    }

    /// Writes one row of `report_bytes` bytes for every value, with only the value's bit set. **Nothing is private yet.**
    ///
    /// # Errors
    /// [`Error::Data`] unless all values are in [0, k), [`Error::Parameter`] when `out` has not one row per value.
    pub fn encode(&self, values: &[i64], out: &mut [u8]) -> Result<(), Error> {
        self.check(values)?;
        check_out(&self.protocol, values.len(), out)?;
        encode_from(values, self.protocol.report_bytes(), 0, out);
        Ok(())
    }

    /// Randomises rows that are already one-hot (as [`UnaryEncoding::encode`] makes them).
    ///
    /// # Errors
    /// [`Error::Data`] unless every row has exactly one bit set, among the first k, before anything is drawn;
    /// otherwise as for [`Client::perturb`](super::Client::perturb).
    pub fn perturb_encoded<R>(&self, bits: &[u8], out: &mut [u8], rng: &mut R) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        self.check_encoded(bits)?;
        check_out(&self.protocol, bits.len() / self.width(), out)?;
        wiped_on_error(out, |out| self.fill(rng, 0, out, |at, chunk| copy_from(bits, at, chunk)))
    }

    /// [`UnaryEncoding::perturb_encoded`] on up to `threads` threads, each with a freshly keyed secure generator.
    ///
    /// # Errors
    /// As for [`UnaryEncoding::perturb_encoded`], and [`Error::Parameter`] for no threads.
    pub fn perturb_encoded_secure(&self, bits: &[u8], out: &mut [u8], threads: usize) -> Result<(), Error> {
        self.check_encoded(bits)?;
        check_out(&self.protocol, bits.len() / self.width(), out)?;
        in_parallel(self, out, threads, |rng, first, part| {
            self.fill(rng, first, part, |at, chunk| copy_from(bits, at, chunk))
        })
    }

    fn width(&self) -> usize {
        self.protocol.report_bytes()
    }

    /// Fills `out`, which begins at byte `first` of the matrix: `write(at, chunk)` puts data bits in `chunk`, which
    /// begins at byte `at`. They are flipped in a private buffer, since `out` may be memory that others can read.
    fn fill<R, W>(&self, rng: &mut R, first: usize, out: &mut [u8], write: W) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
        W: Fn(usize, &mut [u8]),
    {
        let mut flipper = Flipper::new(self.flip, out.len())?;
        let mut private = Wiped::new(out.len().min(CHUNK_BYTES));
        for (index, out) in out.chunks_mut(CHUNK_BYTES).enumerate() {
            let at = first + index * CHUNK_BYTES;
            let chunk = &mut private[..out.len()];
            write(at, chunk);
            flipper.flip(rng, chunk)?;
            clear_tail_bits(&self.protocol, at, chunk);
            out.copy_from_slice(chunk);
        }
        Ok(())
    }

    /// Checks without a branch on the data that every row has exactly one bit set, among the first k.
    ///
    /// # Errors
    /// [`Error::Data`] otherwise, [`Error::Parameter`] when `bits` is not whole rows.
    pub fn check_encoded(&self, bits: &[u8]) -> Result<(), Error> {
        if !bits.len().is_multiple_of(self.width()) {
            let allowed = format!("rows of {} bytes", self.width());
            return Err(Error::parameter("bits", format!("{} bytes", bits.len()), allowed));
        }
        let unused = self.protocol.unused_bits();
        let wrong = bits.chunks_exact(self.width()).fold(0, |wrong, row| {
            let set = row.iter().fold(0u32, |set, byte| set.wrapping_add(byte.count_ones())); // at most 2^24
            wrong | set ^ 1 | u32::from(row[row.len() - 1] & unused)
        });
        if declassify(Reason::Refusal, wrong != 0) {
            let problem = format!("must have exactly one of the first k = {} bits set in every row", self.protocol.k());
            return Err(Error::data("bits", problem));
        }
        Ok(())
    }
}

impl Randomise for UnaryEncoding {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below_k(self.protocol.k(), values)
    }

    /// Whole tiles, not whole rows: encoding can begin anywhere in a row.
    fn unit(&self) -> usize {
        TILE_BYTES
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.flip.planes() as usize)
    }

    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        self.fill(rng, first, out, |at, chunk| encode_from(values, self.width(), at, chunk))
    }
}

/// Clears the unused bits of every row's last byte in `chunk`, which begins at byte `at` of the matrix of rows.
pub(super) fn clear_tail_bits(protocol: &Protocol, at: usize, chunk: &mut [u8]) {
    let (width, unused) = (protocol.report_bytes(), protocol.unused_bits());
    if unused != 0 {
        let to_last = width - 1 - at % width;
        chunk.iter_mut().skip(to_last).step_by(width).for_each(|byte| *byte &= !unused);
    }
}

fn copy_from(bits: &[u8], at: usize, chunk: &mut [u8]) {
    chunk.copy_from_slice(&bits[at..at + chunk.len()]);
}

/// Writes the bytes of the one-hot matrix of `values` that begin at byte `at` to `chunk`.
fn encode_from(values: &[i64], width: usize, at: usize, chunk: &mut [u8]) {
    encode_rows(values, width, at, chunk, encode_part);
}

/// Calls `encode(value, start, part)` for the parts of rows of `width` items that a chunk is made of, which begins at item
/// `at` of the matrix of all rows; `start` is where in its row the part begins.
pub(super) fn encode_rows<T>(
    values: &[i64],
    width: usize,
    at: usize,
    mut chunk: &mut [T],
    encode: impl Fn(i64, usize, &mut [T]),
) {
    let (mut row, mut start) = (at / width, at % width);
    while !chunk.is_empty() {
        let (part, rest) = chunk.split_at_mut(chunk.len().min(width - start));
        encode(values[row], start, part);
        (row, start, chunk) = (row + 1, 0, rest);
    }
}

/// Writes the bytes from `start` on of the one-hot row of `value`: every word is compared, none is addressed by value.
pub(super) fn encode_part(value: i64, start: usize, part: &mut [u8]) {
    let target = (value as u64).wrapping_sub(8 * start as u64);
    let (target_word, bit) = (target >> 6, 1 << (target & 63));
    let word = |i: usize| bit & mask(target_word == i as u64);
    let (words, rest) = part.as_chunks_mut();
    let last = word(words.len()).to_le_bytes();
    for (i, bytes) in words.iter_mut().enumerate() {
        *bytes = word(i).to_le_bytes();
    }
    rest.iter_mut().zip(last).for_each(|(byte, last)| *byte = last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_rows_are_one_hot() {
        for k in [2, 7, 8, 9, 15, 128, 2048, 2049, 5000] {
            let encoding = UnaryEncoding::optimized(k, 1.0).unwrap();
            let values: Vec<i64> = (0..k as i64).collect();
            let width = encoding.protocol().report_bytes();
            let mut bits = vec![0xff; values.len() * width];
            encoding.encode(&values, &mut bits).unwrap();
            for (value, row) in bits.chunks_exact(width).enumerate() {
                let expected = |i: usize| if i == value / 8 { 1 << (value % 8) } else { 0 };
                assert!(row.iter().enumerate().all(|(i, &byte)| byte == expected(i)), "{k} {value}");
            }
            let mut window = vec![0; bits.len().min(300)];
            for at in (0..bits.len() - window.len()).step_by(97) {
                encode_from(&values, width, at, &mut window);
                assert_eq!(window, bits[at..at + window.len()]);
            }
        }
    }
}
