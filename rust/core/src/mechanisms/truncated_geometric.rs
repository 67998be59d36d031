//! Partition selection: which groups may be released, where the set of groups is private too (Desfontaines, Voss, Gipson
//! and Mandayam 2022, "Differentially private partition selection", Theorem 1).

use core::fmt;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::{mask, power_of_two};

use crate::error::Error;
use crate::rng::{SecureRng, WordBuffer};
use crate::samplers::bernoulli::further_digits;

/// 2^64
const WORD: f64 = 18_446_744_073_709_551_616.0;

/// Adding and subtracting it rounds a number below 2^51 to an integer, which is then in the low bits of the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// ln 2 in two parts, of which the first has so few digits that its multiples up to 2^11 are exact.
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// The law of that theorem: the probabilities to keep a group of n people, and to drop it.
///
/// The probability to keep it is s (exp(n epsilon) - 1) up to the turn, where it is at most 1/2; that to drop it is
/// s (exp(r + (last - n) epsilon) - 1) from there to the last n at which a group may be dropped. Both are computed as
/// h exp(-m epsilon) (1 - exp(-x)), where x is the exponent above, m the distance from a number near the middle, and h
/// the height there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// For each group.
    pub epsilon: f64,
    /// The largest n whose probability to keep is at most 1/2, and s exp(n epsilon) there.
    pub turn: (f64, f64),
    /// A number from where the probability to drop follows the law, and s exp(r + (last - n) epsilon) there.
    pub start: (f64, f64),
    /// The last n at which a group may be dropped, and r, which is below epsilon.
    pub last: (f64, f64),
}

impl Law {
    /// The smaller one of the probabilities to keep and to drop a group of so many people, and all ones if it is the
    /// one to drop; in a time that does not depend on the number. Its relative error is below 2^-42.
    ///
    /// The number is whole.
    #[must_use]
    pub fn of(&self, people: f64) -> (f64, u64) {
        let people = people.max(0.0).min(self.last.0 + 1.0);
        let drops = mask(people > self.turn.0);
        let (middle, height) = (select(self.turn.0, self.start.0, drops), select(self.turn.1, self.start.1, drops));
        let distance = (people - middle).abs();
        let left = (self.last.0 - people).max(0.0) * self.epsilon + self.last.1;
        let exponent = select(people * self.epsilon, left, drops);
        let (power, rest) = exp_neg(distance * self.epsilon);
        let decay = power + power * rest;
        let (power, rest) = exp_neg(exponent.min(100.0));
        let one_minus = (1.0 - power) - power * rest;
        let possible = mask(people <= self.last.0);
        (select(0.0, height * decay * one_minus, possible), drops)
    }
}

/// `chosen` if all bits of `choice` are set, else `other`.
fn select(other: f64, chosen: f64, choice: u64) -> f64 {
    f64::from_bits(other.to_bits() & !choice | chosen.to_bits() & choice)
}

/// p and q such that exp(-x) = p (1 + q), where p is a power of two and q is at most 0.42 in magnitude, for x from 0 to
/// 700. The relative errors of 1 + q, and of q where p is 1, are below 2^-50.
fn exp_neg(x: f64) -> (f64, f64) {
    let rounded = x * core::f64::consts::LOG2_E + ROUNDER;
    let whole = rounded - ROUNDER;
    let y = whole * LN_2[0] - x + whole * LN_2[1]; // at most ln(2)/2 in magnitude, and a bit
    // exp(y) - 1 = y (1 + y/2 (1 + y/3 (...))): the terms that are left out are below 2^-60.
    let sum = (2..16).rev().fold(1.0, |sum, n| 1.0 + y * sum * INVERSES[n]);
    let power = f64::from_bits(1023u64.wrapping_sub(rounded.to_bits() & 0xfff) << 52);
    (power, y * sum)
}

const INVERSES: [f64; 16] = {
    let mut inverses = [1.0; 16];
    let mut n = 1;
    while n < 16 {
        inverses[n] = 1.0 / n as f64;
        n += 1;
    }
    inverses
};

/// Keeps groups or drops them, by a law.
///
/// The coins are exact for the probabilities of [`Law::of`]. Their words come from a [`WordBuffer`].
pub struct TruncatedGeometric {
    law: Law,
    words: WordBuffer,
}

impl TruncatedGeometric {
    /// The selection by this law.
    ///
    /// # Errors
    /// [`Error::Randomness`] when the operating system's generator fails.
    pub fn new(law: Law) -> Result<Self, Error> {
        Ok(Self { law, words: WordBuffer::new()? })
    }

    /// The law.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    /// Whether a group of so many people is released; the number is whole.
    ///
    /// # Errors
    /// [`Error::Data`] when the number is not whole, [`Error::Randomness`] when a refill of the words fails.
    pub fn should_keep(&mut self, people: f64) -> Result<bool, Error> {
        // Those beyond 2^50 are as good as whole.
        let near = people.max(-power_of_two(50)).min(power_of_two(50));
        let whole = (near + ROUNDER) - ROUNDER;
        if declassify(Reason::Refusal, (whole != near) | !people.is_finite()) {
            return Err(Error::data("num_users", "must be a whole number"));
        }
        let (probability, drops) = self.law.of(people);
        let heads = self.toss(probability)?;
        Ok(heads != (drops != 0))
    }

    /// A coin of a probability of at most 1/2, and a bit.
    fn toss(&mut self, probability: f64) -> Result<bool, Error> {
        // Scaling by a power of two is exact, and so is the subtraction below.
        let scaled = probability * WORD;
        let (word, digits) = (u64::from_le_bytes(self.words.take()?), scaled as u64);
        if declassify(Reason::OpenCoin, word == digits) {
            return further_digits(scaled - digits as f64, &mut SecureRng::new()?);
        }
        Ok(word < digits)
    }
}

impl fmt::Debug for TruncatedGeometric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TruncatedGeometric").field("law", &self.law).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_within_its_bound() {
        for i in 0..40_000 {
            let x = f64::from(i) * 0.017_211;
            let (power, rest) = exp_neg(x);
            let exact = (-x).exp();
            assert!(((power + power * rest) / exact - 1.0).abs() < 1e-15 + x * 2f64.powi(-52), "{x}");
            let small = x * 2f64.powi(-20);
            let (power, rest) = exp_neg(small);
            let one_minus = (1.0 - power) - power * rest;
            assert!(i == 0 || (one_minus / -(-small).exp_m1() - 1.0).abs() < 1e-15, "{small}");
        }
    }

    /// epsilon = ln 2 and delta = 1/10: 1/10, 3/10, 7/10 (by the recurrence upwards), and then 1 - p is (1 - p)/2 - 1/10.
    #[test]
    fn the_law_is_that_of_the_recurrences() {
        let epsilon = core::f64::consts::LN_2;
        // s = delta / (e^epsilon - 1) = 1/10.
        let [first, second] = [0.1, 0.3];
        let third: f64 = 1.0 - (1.0 - second - 0.1) / 2.0;
        let fourth: f64 = 1.0 - (1.0 - third - 0.1) / 2.0;
        // 1 - p = s (2^(L - n) - 1), so L = n + log2(10 (1 - p) + 1).
        let l = 3.0 + (10.0 * (1.0 - third) + 1.0).log2();
        let last = l.floor();
        let law =
            Law { epsilon, turn: (2.0, 0.4), start: (3.0, 1.0 - third + 0.1), last: (last, (l - last) * epsilon) };
        let kept: Vec<f64> = (-1..8)
            .map(|n| match law.of(f64::from(n)) {
                (p, 0) => p,
                (p, _) => 1.0 - p,
            })
            .collect();
        for (found, expected) in kept.iter().zip([0.0, 0.0, first, second, third, fourth, 1.0, 1.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{kept:?}");
        }
    }

    #[test]
    fn a_word_that_equals_the_first_digits_leaves_it_to_the_others() {
        let law = Law { epsilon: 1.0, turn: (0.0, 0.0), start: (1.0, 0.0), last: (1.0, 0.0) };
        let mut selection = TruncatedGeometric { law, words: WordBuffer::of_word(3) };
        // The rest of the last one is 1 - 2^-51.
        for (digits, heads) in [(2.0, false), (3.0, false), (4.0, true), (4f64.next_down(), true)] {
            assert_eq!(selection.toss(digits / WORD), Ok(heads), "{digits}");
        }
    }

    #[test]
    fn coins_are_thrown_with_their_probability() {
        let law =
            Law { epsilon: 1.0, turn: (0.0, 0.0), start: (1.0, 0.75), last: (1.0, core::f64::consts::LN_2 * 30.0) };
        let mut selection = TruncatedGeometric::new(law).unwrap();
        let count = 100_000;
        let kept = (0..count).filter(|_| selection.should_keep(1.0).unwrap()).count();
        // The deviation is below 137; eight of them.
        assert!(kept.abs_diff(count / 4) < 8 * 137, "{kept}");
        assert!(!selection.should_keep(0.0).unwrap() && !selection.should_keep(-5.0).unwrap());
        assert!((0..1000).all(|_| selection.should_keep(2.0).unwrap() && selection.should_keep(1e300).unwrap()));
        assert_eq!(selection.should_keep(0.5), Err(Error::data("num_users", "must be a whole number")));
        assert!(selection.should_keep(f64::NAN).is_err() && selection.should_keep(f64::INFINITY).is_err());
    }
}
