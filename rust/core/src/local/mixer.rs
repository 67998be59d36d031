//! Values in, randomised values out: random words are drawn for a chunk at a time.
//!
//! For a chunk, `rng` gives the coins of all values, then the index words of all values, then, value by value, what
//! rejected index words are replaced with. A coin has 16, 32 or 64 bits: the fewest that hold the planes of the mixture,
//! which are its upper digits. An index word has 16 bits for up to 256 values, otherwise 32. All are little-endian.
//!
//! # Exactness
//!
//! An index word w of b bits becomes floor(k w / 2^b), unless k w mod 2^b is below 2^b mod k: then another word is drawn
//! (Lemire 2019, "Fast random integer generation in an interval"). Of the words that are not rejected exactly
//! floor(2^b / k) give each value.
//!
//! # Constant time
//!
//! A rejection is seen by the clock. Whether a word is rejected is decided by that word alone, which is then dropped;
//! words are independent of each other, of the coins and of the values. So what time and the number of drawn words show is
//! a function of dropped words, and independent of values and reports: Theorem 1 of `samplers/discrete_laplace.md`, with
//! a trial for every index word. An index is drawn for kept values, too, and a mask selects, without branch or address.

use core::hint::black_box;

use rand_core::TryCryptoRng;

use super::mixture::Mixture;
use crate::error::Error;
use crate::rng::{Wiped, fill_bytes};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};

/// The values that are randomised at once: few enough for the first-level cache.
pub(super) const CHUNK: usize = 1 << 10;

/// Up to this many values, an index word has 16 bits; a larger k would be rejected too often.
const MAX_SHORT_K: u32 = 1 << 8;

/// A [`Mixture`] with buffers for its random words, which are wiped when dropped.
pub(super) struct Mixer {
    mixture: Mixture,
    random: Wiped<u8>,
    others: Wiped<u32>,
    masks: Wiped<u32>,
}

impl Mixer {
    /// A mixer for about `length` values.
    pub(super) fn new(mixture: Mixture, length: usize) -> Self {
        let chunk = length.min(CHUNK);
        Self {
            mixture,
            random: Wiped::new(chunk * random_bytes(mixture)),
            others: Wiped::new(chunk),
            masks: Wiped::new(chunk),
        }
    }

    /// Randomises up to [`CHUNK`] values, all below k.
    pub(super) fn mix<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, values: &mut [u32]) -> Result<(), Error> {
        let random = &mut self.random[..values.len() * random_bytes(self.mixture)];
        let others = &mut self.others[..values.len()];
        fill_bytes(rng, random)?;
        let (coins, indices) = random.split_at_mut(values.len() * coin_bytes(self.mixture));
        match index_bytes(self.mixture.k()) {
            2 => below::<2, R, u32>(rng, self.mixture.k(), indices, others)?,
            _ => below::<4, R, u32>(rng, self.mixture.k(), indices, others)?,
        }
        let masks = &mut self.masks[..values.len()];
        match coin_bytes(self.mixture) {
            2 => compare::<2>(self.mixture, coins, masks),
            4 => compare::<4>(self.mixture, coins, masks),
            _ => compare::<8>(self.mixture, coins, masks),
        }
        // `black_box` keeps the optimiser from turning the masks back into branches.
        for ((value, &other), &keep) in values.iter_mut().zip(&*others).zip(black_box(&*masks)) {
            *value = *value & keep | other & !keep;
        }
        Ok(())
    }
}

/// The random bytes for one value, but for rejected words.
pub(super) fn random_bytes(mixture: Mixture) -> usize {
    coin_bytes(mixture) + index_bytes(mixture.k())
}

fn coin_bytes(mixture: Mixture) -> usize {
    match mixture.planes() {
        ..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The bytes of a word that becomes a number below `k`.
pub(super) fn index_bytes(k: u32) -> usize {
    if k <= MAX_SHORT_K { 2 } else { 4 }
}

/// The number with these little-endian bytes.
fn number<const BYTES: usize>(bytes: [u8; BYTES]) -> u64 {
    let mut all = [0; 8];
    all[..BYTES].copy_from_slice(&bytes);
    u64::from_le_bytes(all)
}

/// Fills `out` with numbers below `k`, all equally likely: `rng` gives one index word for each, and then, in their order,
/// what rejected words are replaced with.
pub(super) fn uniform<R: TryCryptoRng + ?Sized>(rng: &mut R, k: u32, out: &mut [u64]) -> Result<(), Error> {
    let mut words = Wiped::new(out.len() * index_bytes(k));
    fill_bytes(rng, &mut words)?;
    match index_bytes(k) {
        2 => below::<2, R, u64>(rng, k, &mut words, out),
        _ => below::<4, R, u64>(rng, k, &mut words, out),
    }
}

/// Fills `out` with numbers below `k`, all equally likely, made of `words`; rejected ones are replaced by words of `rng`.
fn below<const BYTES: usize, R, T>(rng: &mut R, k: u32, words: &mut [u8], out: &mut [T]) -> Result<(), Error>
where
    R: TryCryptoRng + ?Sized,
    T: From<u32>,
{
    let words = words.as_chunks_mut::<BYTES>().0;
    let k = u64::from(k);
    let bits = 8 * BYTES as u32;
    let range = 1u64 << bits;
    let rejected_below = range % k;
    let is_rejected = |product: u64| product & (range - 1) < rejected_below;
    let mut any = false;
    for (&word, out) in words.iter().zip(&mut *out) {
        let product = number(word) * k;
        any |= is_rejected(product);
        *out = T::from((product >> bits) as u32);
    }
    if declassify(Reason::Rejection, any) {
        for (word, out) in words.iter_mut().zip(out) {
            while declassify(Reason::Rejection, is_rejected(number(*word) * k)) {
                fill_bytes(rng, word)?;
                *out = T::from(((number(*word) * k) >> bits) as u32);
            }
        }
    }
    Ok(())
}

/// Sets a mask of ones for each coin below keep / 2^planes, and one of zeros for the others.
fn compare<const BYTES: usize>(mixture: Mixture, coins: &[u8], masks: &mut [u32]) {
    let threshold = mixture.keep() << (8 * BYTES as u32 - mixture.planes());
    for (&coin, mask) in coins.as_chunks::<BYTES>().0.iter().zip(masks) {
        *mask = u32::from(number(coin) < threshold).wrapping_neg();
    }
}
