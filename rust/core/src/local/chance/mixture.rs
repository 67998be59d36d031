//! Dyadic mixtures: the value with probability keep / 2^planes, otherwise a uniform one of the k values.
//!
//! # Privacy
//!
//! A report equals the value with probability p = (2^planes - keep + k keep) / (k 2^planes), and any other value with
//! probability q = (2^planes - keep) / (k 2^planes) each. So the largest likelihood ratio of two inputs is
//! p/q = 1 + k keep / (2^planes - keep), an exact fraction.
//!
//! # The choice of the number of planes
//!
//! The smallest number of planes is chosen with which the largest private `keep` achieves at least 0.999 of the
//! requested epsilon. The denominator k 2^planes must stay within 2^62, so that estimates are computed exactly. It has
//! to be about 2^10 (k + x)^2 / ((1 + x) epsilon), with x = e^epsilon - 1, which is too large only for a large k
//! together with a small epsilon.
//!
//! # Drawing
//!
//! Random words are drawn for a chunk of values at a time. For a chunk, `rng` gives the coins of all values, then the
//! index words of all values, then, value by value, the replacements of rejected index words. A coin has 16, 32 or 64
//! bits: the fewest that hold the planes of the mixture, which are its upper digits. An index word has 16 bits for up
//! to 256 values, otherwise 32. All are little-endian.
//!
//! # Exactness
//!
//! An index word w of b bits becomes floor(k w / 2^b), unless k w mod 2^b is below 2^b mod k: then another word is
//! drawn (Lemire 2019, "Fast random integer generation in an interval"). Of the words that are not rejected exactly
//! floor(2^b / k) give each value.
//!
//! # Constant time
//!
//! A rejection shows in the running time. Whether a word is rejected depends on that word alone, and the word is then
//! dropped; words are independent of each other, of the coins and of the values. So the time and the number of drawn
//! words are a function of dropped words, independent of values and reports: Theorem 1 of
//! `samplers/discrete_laplace.md`, with a trial for every index word. An index is drawn for kept values, too, and a
//! mask selects without a branch or an address that depends on the coin.

use core::hint::black_box;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;

use super::likelihood::{LikelihoodRatio, MAX_PLANES, check_epsilon, fewest_planes};
use crate::error::Error;
use crate::local::estimate::Support;
use crate::local::spec::Field;
use crate::rng::{Wiped, fill_bytes};

/// The values that are randomised at once: few enough for the first-level cache.
pub(crate) const CHUNK: usize = 1 << 10;

/// Up to this many values, an index word has 16 bits; a larger k would be rejected too often.
const MAX_SHORT_K: u32 = 1 << 8;

/// The probability keep / 2^planes of keeping one of k values, with 0 < keep < 2^planes and k 2^planes <= 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mixture {
    k: u32,
    planes: u32,
    keep: u64,
}

impl Mixture {
    /// The mixture of `k` >= 2 values for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32, or when a denominator of 2^62 does not achieve 0.999 of it.
    pub fn new(k: u32, epsilon: f64) -> Result<Self, Error> {
        Self::of_windows(k, 1, epsilon)
    }

    /// The mixture of `k` values for `epsilon` when the kept value is a uniform one of `width` values.
    ///
    /// # Errors
    /// As for [`Mixture::new`].
    pub(crate) fn of_windows(k: u32, width: u32, epsilon: f64) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        let range = 1..=MAX_PLANES - k.next_power_of_two().trailing_zeros();
        let make = |planes: u32, other: u64| Self::of(k, planes, (1 << planes) - other);
        // The free numerator is that of *not* keeping.
        let found = fewest_planes(epsilon, range, |planes, other| make(planes, other).window_ratio(width));
        found.map(|(planes, other)| make(planes, other)).ok_or_else(|| {
            let allowed = "such that probabilities over a denominator of at most 2**62 achieve 0.999 of epsilon; \
                           unary encoding takes any k and epsilon, and is more accurate here";
            Error::parameter("k and epsilon", format!("k = {k}, epsilon = {epsilon:?}"), allowed)
        })
    }

    /// The mixture with these probabilities, which must be in range.
    pub(crate) fn of(k: u32, planes: u32, keep: u64) -> Self {
        Self { k, planes, keep }
    }

    /// The largest likelihood ratio between two inputs.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        self.window_ratio(1)
    }

    /// The largest likelihood ratio when the value is a uniform one of `width` values.
    pub(crate) fn window_ratio(self, width: u32) -> LikelihoodRatio {
        let other = u128::from((1 << self.planes) - self.keep) * u128::from(width);
        let kept = u128::from(self.keep) * u128::from(self.k);
        LikelihoodRatio { numerator: other + kept, denominator: other }
    }

    /// The probabilities that a report is the value, and that it is any given other one.
    #[must_use]
    pub fn support(self) -> Support {
        let (k, one) = (u64::from(self.k), 1 << self.planes);
        let q = one - self.keep;
        Support { p: q + k * self.keep, q, one: k * one }
    }

    /// The number of values.
    #[must_use]
    pub fn k(self) -> u32 {
        self.k
    }

    /// The binary digits of the probability of keeping.
    #[must_use]
    pub fn planes(self) -> u32 {
        self.planes
    }

    /// The numerator of the probability of keeping.
    #[must_use]
    pub fn keep(self) -> u64 {
        self.keep
    }

    /// The probabilities, as doubles, of keeping, and of replacing.
    #[must_use]
    pub fn kept_and_replaced(self) -> (f64, f64) {
        let one = 1 << self.planes;
        (self.keep as f64 / one as f64, (one - self.keep) as f64 / one as f64) // the second one without cancellation
    }

    /// The random bytes for one value, not counting rejected words.
    pub(crate) fn random_bytes(self) -> usize {
        coin_bytes(self) + index_bytes(self.k)
    }

    /// Its part of a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        vec![("keep", self.keep.into()), ("planes", self.planes.into())]
    }
}

/// A [`Mixture`] with buffers for its random words, which are wiped when dropped.
pub(crate) struct Mixer {
    mixture: Mixture,
    random: Wiped<u8>,
    others: Wiped<u32>,
    masks: Wiped<u32>,
}

impl Mixer {
    /// A mixer for about `length` values.
    pub(crate) fn new(mixture: Mixture, length: usize) -> Self {
        let chunk = length.min(CHUNK);
        Self {
            mixture,
            random: Wiped::new(chunk * mixture.random_bytes()),
            others: Wiped::new(chunk),
            masks: Wiped::new(chunk),
        }
    }

    /// Randomises up to [`CHUNK`] values, all below k.
    pub(crate) fn mix<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, values: &mut [u32]) -> Result<(), Error> {
        let random = &mut self.random[..values.len() * self.mixture.random_bytes()];
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

fn coin_bytes(mixture: Mixture) -> usize {
    match mixture.planes() {
        ..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The bytes of a word that becomes a number below `k`.
pub(crate) fn index_bytes(k: u32) -> usize {
    if k <= MAX_SHORT_K { 2 } else { 4 }
}

/// The number with these little-endian bytes.
fn number<const BYTES: usize>(bytes: [u8; BYTES]) -> u64 {
    let mut all = [0; 8];
    all[..BYTES].copy_from_slice(&bytes);
    u64::from_le_bytes(all)
}

/// Fills `out` with uniform numbers below `k`: `rng` gives one index word for each, and then, in their order, the
/// replacements of rejected words.
pub(crate) fn uniform<R, T>(rng: &mut R, k: u32, out: &mut [T]) -> Result<(), Error>
where
    R: TryCryptoRng + ?Sized,
    T: From<u32>,
{
    let mut words = Wiped::new(out.len() * index_bytes(k));
    fill_bytes(rng, &mut words)?;
    match index_bytes(k) {
        2 => below::<2, R, T>(rng, k, &mut words, out),
        _ => below::<4, R, T>(rng, k, &mut words, out),
    }
}

/// Fills `out` with uniform numbers below `k`, made of `words`; rejected ones are replaced by words of `rng`.
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use super::*;
    use crate::rng::ScriptedRng;

    /// No mixture with fewer planes achieves epsilon, and a larger `keep` is no longer private.
    #[test]
    fn the_choice_is_the_smallest_and_the_closest() {
        for k in [2, 3, 15, 1024] {
            for epsilon in [0.01, 0.5, 1.0, 3f64.ln(), 4.0] {
                let mixture = Mixture::new(k, epsilon).unwrap();
                let closer = Mixture { keep: mixture.keep + 1, ..mixture };
                assert!(closer.keep == 1 << mixture.planes || !closer.likelihood_ratio().is_at_most(epsilon));
                let planes = mixture.planes - 1;
                let nearest = mixture.keep / 2;
                let fewer = (nearest.saturating_sub(2)..nearest + 3).filter(|&keep| 0 < keep && keep < 1 << planes);
                assert!(
                    fewer.into_iter().all(|keep| !Mixture { k, planes, keep }.likelihood_ratio().achieves(epsilon)),
                    "{k} {epsilon}"
                );
            }
        }
    }

    #[test]
    fn the_extremes_are_possible_or_say_what_is() {
        for (k, epsilon) in [(2, MIN_EPSILON), (2, MAX_EPSILON), (1 << 24, 0.1), (1 << 24, MAX_EPSILON)] {
            let mixture = Mixture::new(k, epsilon).unwrap();
            assert!(mixture.likelihood_ratio().achieves(epsilon) && mixture.support().one <= 1 << 62);
        }
        let refused = Mixture::new(1 << 24, MIN_EPSILON).unwrap_err().to_string();
        assert!(refused.starts_with("k and epsilon must be such that") && refused.contains("unary encoding"));
        assert!(refused.ends_with("got k = 16777216, epsilon = 9.5367431640625e-7"), "{refused}");
        for bad in [0.0, f64::NAN, MIN_EPSILON.next_down(), MAX_EPSILON.next_up()] {
            let refused = Mixture::new(3, bad).unwrap_err().to_string();
            assert_eq!(refused, format!("epsilon must be between 2**-20 and 32, got {bad:?}"));
        }
    }

    /// Reports of chunks, for the models of `proofs/Mixture.v`: coins next to the threshold, and index words at the edges of
    /// values and of what is rejected.
    #[test]
    #[ignore = "it writes a file: see proofs/prove.py"]
    fn results_for_the_proofs() {
        const VALUES: usize = 48;
        let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("; ");
        let mut state = 5u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 32
        };
        let mut rows = Vec::new();
        for (k, planes) in [
            (2, 1),
            (2, 61),
            (3, 2),
            (3, 16),
            (5, 17),
            (15, 33),
            (100, 10),
            (200, 32),
            (255, 31),
            (256, 54),
            (257, 15),
            (300, 40),
            (1000, 16),
            (65_535, 46),
            (65_537, 45),
            (1 << 20, 8),
            ((1 << 24) - 3, 38),
        ] {
            let one = 1u64 << planes;
            for keep in [1, one / 2, one - 1, 1 + noise() % (one - 1).max(1)].into_iter().filter(|&keep| keep < one) {
                let mixture = Mixture::of(k, planes, keep);
                let (coin_bytes, index_bytes) = (coin_bytes(mixture), index_bytes(k));
                let (coin_bits, range) = (8 * coin_bytes as u32, 1u64 << (8 * index_bytes));
                let threshold = keep << (coin_bits - planes);
                let values: Vec<_> = (0..VALUES).map(|_| noise() % u64::from(k)).collect();
                let coins: Vec<_> = (0..VALUES as u64)
                    .map(|i| match i % 6 {
                        0 => threshold - 1,
                        1 => threshold,
                        2 => (threshold + 1).min(u64::MAX >> (64 - coin_bits)),
                        3 => u64::MAX >> (64 - coin_bits),
                        4 => 0,
                        _ => noise() & u64::MAX >> (64 - coin_bits),
                    })
                    .collect();
                // The last word that is rejected, by its product modulo the range, and the first that is not; the first
                // word that would be `value`, and its neighbours.
                let zeros = k.trailing_zeros();
                let odd = u64::from(k >> zeros);
                let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
                let mut edge = |i: u64| {
                    if i % 4 == 3 {
                        let last = ((range % u64::from(k)) >> zeros).wrapping_sub(1);
                        return last.wrapping_add(i / 4 % 2).wrapping_mul(inverse) % range;
                    }
                    let value =
                        [noise() % u64::from(k), i % u64::from(k), u64::from(k) - 1 - i / 5 % 2][i as usize % 3];
                    let first = (value * range).div_ceil(u64::from(k));
                    (first + [0, range - 1, 1, 0, range / 2][i as usize % 5]) % range
                };
                let words: Vec<_> = (0..VALUES as u64).map(&mut edge).collect();
                let mut further: Vec<_> = (0..2 * VALUES as u64).map(|i| edge(3 * i)).collect();
                if keep == 1 && k % 2 == 1 {
                    further.truncate(1); // they do not suffice
                }
                let bytes = |numbers: &[u64], width| -> Vec<u8> {
                    numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(width)).collect()
                };
                let script =
                    [bytes(&coins, coin_bytes), bytes(&words, index_bytes), bytes(&further, index_bytes)].concat();
                let mut rng = ScriptedRng::new(script);
                let mut reports: Vec<_> = values.iter().map(|&value| value as u32).collect();
                let result = match Mixer::new(mixture, VALUES).mix(&mut rng, &mut reports) {
                    Ok(()) => {
                        let reports: Vec<_> = reports.into_iter().map(u64::from).collect();
                        format!("Some ([{}], {})", list(&reports), rng.remaining() / index_bytes)
                    }
                    Err(_) => "None".to_owned(),
                };
                // Coins may have 64 bits: two halves.
                let coins: Vec<_> = coins.iter().flat_map(|coin| [coin >> 32, coin & 0xffff_ffff]).collect();
                let [values, coins, words, further] = [values, coins, words, further].map(|numbers| list(&numbers));
                rows.push(format!("({k}, {planes}, {keep}, [{values}], [{coins}], [{words}], [{further}], {result})"));
            }
        }
        let mut code =
            "From Coq Require Import List Uint63.\nImport ListNotations.\nOpen Scope uint63_scope.\n".to_owned();
        let numbers = "list int * list int * list int * list int";
        writeln!(
            code,
            "Definition mixtures : list (int * int * int * {numbers} * option (list int * int)) := [\n{}].",
            rows.join(";\n")
        )
        .unwrap();
        crate::write_for_the_proofs("Mixtures.v", &code);
    }
}
