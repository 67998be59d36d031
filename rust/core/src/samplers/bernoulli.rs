#![doc = include_str!("bernoulli.md")]

use dpnoise_kernels::arch::planes::{TILE_BYTES, flip};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::power_of_two;
use rand_core::TryCryptoRng;

use super::sampler::Sampler;
use crate::error::Error;
use crate::instruction_set;
use crate::rng::{self, Wiped, wipe, wiped_on_error};

/// The largest number of planes of the first comparison.
const PLANES: u32 = 64;

/// 2^64
const WORD: f64 = 18_446_744_073_709_551_616.0;

/// A coin that is true with probability p.
///
/// ```
/// use dpnoise_core::samplers::{Bernoulli, Sampler};
/// let mut coins = [false; 100];
/// Bernoulli::new(0.1)?.fill(&mut coins, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bernoulli {
    p: f64,
    /// K; 0 when p is 0 or 1.
    planes: u32,
    /// T
    threshold: u64,
    /// Whether p has digits beyond the planes.
    open: bool,
}

impl Bernoulli {
    /// The coin with probability `p`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `p` is not in [0, 1].
    pub fn new(p: f64) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::parameter("p", format!("{p:?}"), "a probability from 0 to 1"));
        }
        // Scaling by powers of two is exact, upwards.
        let digits = (0..=PLANES).find(|&k| (p * power_of_two(k as i32)).fract() == 0.0);
        let planes = digits.unwrap_or(PLANES);
        let scaled = p * power_of_two(planes as i32);
        Ok(Self { p, planes, threshold: scaled as u64, open: digits.is_none() })
    }

    /// The probability.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.p
    }

    fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [bool]) -> Result<(), Error> {
        if self.planes == 0 {
            out.fill(self.threshold == 1);
            return Ok(());
        }
        let instructions = instruction_set::current()?;
        let mut random = Wiped::new(self.planes as usize * TILE_BYTES);
        let (mut coins, mut at_most) = ([0; TILE_BYTES], [0; TILE_BYTES]);
        let result = out.chunks_mut(8 * TILE_BYTES).try_for_each(|out| {
            rng::fill_bytes(rng, &mut random)?;
            flip(instructions, self.planes, self.threshold, self.threshold, &random, &mut coins);
            if self.open {
                flip(instructions, self.planes, self.threshold + 1, self.threshold + 1, &random, &mut at_most);
                self.resolve(rng, &mut coins, &at_most)?;
            }
            unpack(&coins, out);
            Ok(())
        });
        wipe(&mut coins);
        wipe(&mut at_most);
        result
    }

    /// Decides the coins with U = T, in order: those for which U < T + 1 and not U < T.
    fn resolve<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        coins: &mut [u8; TILE_BYTES],
        at_most: &[u8; TILE_BYTES],
    ) -> Result<(), Error> {
        let none_open = coins.iter().zip(at_most).fold(0, |any, (a, b)| any | (a ^ b)) == 0;
        if declassify(Reason::OpenCoin, none_open) {
            return Ok(());
        }
        for i in 0..8 * TILE_BYTES {
            let (byte, bit) = (i / 8, i % 8);
            if (coins[byte] ^ at_most[byte]) >> bit & 1 == 1 {
                // Both operations are exact.
                let rest = self.p * WORD - self.threshold as f64;
                coins[byte] |= u8::from(further_digits(rest, rng)?) << bit;
            }
        }
        Ok(())
    }
}

/// A coin of the probability `rest`: compares 64 digits at a time, until they differ or there are no more.
pub(crate) fn further_digits<R: TryCryptoRng + ?Sized>(mut rest: f64, rng: &mut R) -> Result<bool, Error> {
    while rest > 0.0 {
        let digits = (rest * WORD).trunc(); // exact, as is the subtraction below
        let word = rng.try_next_u64().map_err(Error::randomness)?;
        if word != digits as u64 {
            return Ok(word < digits as u64);
        }
        rest = rest * WORD - digits;
    }
    Ok(false)
}

impl Sampler for Bernoulli {
    type Item = bool;

    fn fill_with<R: TryCryptoRng + ?Sized>(&self, out: &mut [bool], rng: &mut R) -> Result<(), Error> {
        wiped_on_error(out, |out| self.try_fill(rng, out))
    }
}

/// A bool for every bit, from the lowest of each byte up; `out` may be shorter.
fn unpack(bits: &[u8; TILE_BYTES], out: &mut [bool]) {
    for (out, &byte) in out.chunks_mut(8).zip(bits) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = byte >> i & 1 == 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    /// The random words of one tile in which every coin has the digits of `uniform`, highest first in the last plane.
    fn tile(planes: u32, uniform: u64) -> Vec<u8> {
        (0..planes).flat_map(|digit| [((uniform >> digit & 1) as u8).wrapping_neg(); TILE_BYTES]).collect()
    }

    /// One coin, decided by these words, and the remaining bytes of them.
    fn toss(p: f64, planes: u32, uniform: u64, further: &[u64]) -> (Result<bool, Error>, usize) {
        let mut script = tile(planes, uniform);
        // All 512 coins of the tile are alike, and open ones take words one after the other: script all of them alike.
        for _ in 0..8 * TILE_BYTES {
            script.extend(further.iter().flat_map(|word| word.to_le_bytes()));
        }
        let mut rng = ScriptedRng::new(script);
        (Bernoulli::new(p).unwrap().sample_with(&mut rng), rng.remaining())
    }

    /// Every p with up to 10 digits, every U: the number of true coins is T of 2^K, which is p.
    #[test]
    fn short_probabilities_are_exact_by_enumeration() {
        for numerator in 0..=1u32 << 10 {
            let p = f64::from(numerator) / 1024.0;
            let coin = Bernoulli::new(p).unwrap();
            assert_eq!((coin.p(), coin.threshold << (10 - coin.planes)), (p, u64::from(numerator)));
            if numerator % 31 == 1 {
                let heads = (0..1 << coin.planes).filter(|&u| toss(p, coin.planes, u, &[]).0.unwrap()).count();
                assert_eq!(heads as u64, coin.threshold);
            }
        }
    }

    /// The digits that decide are those of p: T, and behind it the rest, word for word.
    #[test]
    fn long_probabilities_are_exact_to_the_last_digit() {
        for p in [5e-324, 1e-300, 2f64.powi(-64), 1e-17, 1.1e-8, 2f64.powi(-12).next_up()] {
            let coin = Bernoulli::new(p).unwrap();
            let two = BigRational::from_integer(2.into());
            let exact = BigRational::from_float(p).unwrap() * two.pow(coin.planes as i32);
            assert_eq!(exact.floor().to_integer(), BigInt::from(coin.threshold), "{p:e}");
            let mut rest = exact.fract();
            assert_eq!(coin.open, rest != BigRational::from_integer(0.into()), "{p:e}");
            if coin.threshold > 0 {
                assert_eq!(toss(p, coin.planes, coin.threshold - 1, &[]).0, Ok(true), "{p:e}");
            }
            assert_eq!(toss(p, coin.planes, coin.threshold + 1, &[]).0, Ok(false), "{p:e}");
            if !coin.open {
                continue;
            }
            let mut words = Vec::new();
            while rest != BigRational::from_integer(0.into()) {
                let scaled = rest * two.pow(64);
                words.push(u64::try_from(scaled.floor().to_integer()).unwrap());
                rest = scaled.fract();
            }
            // Exactly the digits of p: U = p is not below p.
            assert_eq!(toss(p, coin.planes, coin.threshold, &words), (Ok(false), 0), "{p:e}");
            let (last, first) = words.split_last().unwrap();
            let below = [first, &[last - 1]].concat();
            assert_eq!(toss(p, coin.planes, coin.threshold, &below), (Ok(true), 0), "{p:e}");
            let above = [first, &[last + 1]].concat();
            assert_eq!(toss(p, coin.planes, coin.threshold, &above), (Ok(false), 0), "{p:e}");
            assert!(toss(p, coin.planes, coin.threshold, &[]).0.is_err(), "words are missing");
        }
    }

    /// Coins that are decided, either way, and open ones at all bits of a byte, over a tile and a part of another: open coins
    /// take a word each, in order.
    #[test]
    fn open_coins_are_decided_where_they_are() {
        let p = 0.3 * 2f64.powi(-20); // its digits end between the 64th and the 128th
        let coin = Bernoulli::new(p).unwrap();
        let digits =
            (BigRational::from_float(p).unwrap() * BigRational::from_integer(BigInt::from(2).pow(128))).floor();
        let digits = u64::try_from(digits.to_integer() & BigInt::from(u64::MAX)).unwrap();
        let (mut script, mut expected) = (Vec::new(), Vec::new());
        for tile in 0..2 {
            let offsets: [u64; 8 * TILE_BYTES] = std::array::from_fn(|i| (i as u64 * 5 + i as u64 / 8 + tile) % 7);
            let mut planes = vec![0u8; 64 * TILE_BYTES];
            for (i, offset) in offsets.iter().enumerate() {
                let uniform = coin.threshold - 3 + offset;
                (0..64)
                    .for_each(|digit| planes[digit * TILE_BYTES + i / 8] |= ((uniform >> digit & 1) as u8) << (i % 8));
            }
            script.extend(planes);
            for (i, &offset) in offsets.iter().enumerate() {
                let is_below = i % 3 > 0;
                if offset == 3 {
                    script.extend((digits - u64::from(is_below)).to_le_bytes());
                }
                expected.push(offset < 3 || offset == 3 && is_below);
            }
        }
        let (mut coins, mut rng) = (vec![false; 8 * TILE_BYTES + 100], ScriptedRng::new(script));
        coin.fill_with(&mut coins, &mut rng).unwrap();
        assert_eq!(coins, expected[..coins.len()]);
        assert_eq!(rng.remaining(), 0);
    }

    #[test]
    fn a_lone_open_coin_is_found_wherever_it_is() {
        let coin = Bernoulli::new(0.3 * 2f64.powi(-20)).unwrap();
        let (decided, changed) = (coin.threshold + 1, coin.threshold ^ (coin.threshold + 1));
        for at in 0..8 * TILE_BYTES {
            let mut script = tile(64, decided);
            for digit in (0..64).filter(|digit| changed >> digit & 1 == 1) {
                script[digit * TILE_BYTES + at / 8] ^= 1 << (at % 8);
            }
            script.extend([0; 8]); // below the digits of p
            let (mut coins, mut rng) = ([false; 8 * TILE_BYTES], ScriptedRng::new(script));
            coin.fill_with(&mut coins, &mut rng).unwrap();
            assert!((0..coins.len()).all(|i| coins[i] == (i == at)) && rng.remaining() == 0, "{at}");
        }
    }

    #[test]
    fn certain_coins_use_no_randomness() {
        let mut dry = ScriptedRng::new([]);
        let mut coins = [true, false, true];
        Bernoulli::new(0.0).unwrap().fill_with(&mut coins, &mut dry).unwrap();
        assert_eq!(coins, [false; 3]);
        Bernoulli::new(1.0).unwrap().fill_with(&mut coins, &mut dry).unwrap();
        assert_eq!(coins, [true; 3]);
        assert!(Bernoulli::new(0.5).unwrap().fill_with(&mut coins, &mut dry).is_err());
        assert_eq!(coins, [false; 3], "nothing is left behind");
    }

    #[test]
    fn only_probabilities_are_accepted() {
        for bad in [-5e-324, 1f64.next_up(), f64::NAN, f64::INFINITY] {
            let message = Bernoulli::new(bad).unwrap_err().to_string();
            assert_eq!(message, format!("p must be a probability from 0 to 1, got {bad:?}"));
        }
    }

    /// Pins the coins of a seed.
    #[test]
    fn seeded_coins_are_stable() {
        let mut coins = [false; 24];
        Bernoulli::new(0.3).unwrap().fill_with(&mut coins, &mut SeededRng::new(0).unwrap()).unwrap();
        assert_eq!(coins.iter().fold(0u32, |bits, &coin| bits << 1 | u32::from(coin)), 2_523_210);
    }
}
