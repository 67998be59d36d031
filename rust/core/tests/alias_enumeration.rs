//! The alias tables enumerated: every class of words of every digit, through the production code, against exact fractions.
//!
//! 1. Counts: how many of its 2^62 words lead to an entry, found by trying them around the threshold of every column, is
//!    the largest whole number below the probability of the entry times 2^62, from formulas of big integers.
//! 2. The rest: what entry 63 stands for is accepted below exactly the fraction that is missing, to the last bit.
//!
//! Both together are the probabilities: see `alias.md`.

use dpnoise_core::params::{Ratio, Scale};
use dpnoise_core::rng::ScriptedRng;
use dpnoise_core::samplers::{INTEGER_NOISE, IntegerNoise};
use num_bigint::BigInt;

use super::toy_enumeration::exp_neg;

const ENTRIES: usize = 64;
const REST: usize = 63;
const NUMBERS: usize = 64;
const DIGIT_BYTES: usize = 512;

/// The binary digits of the probabilities here.
const BITS: u64 = 700;

struct Case {
    name: &'static str,
    scale: (u128, u128),
    /// The steps of the digits.
    steps: &'static [u64],
}

const CASES: [Case; 12] = [
    Case { name: "discrete_laplace", scale: (1, 1 << 40), steps: &[1] },
    Case { name: "discrete_laplace", scale: (1, 3), steps: &[1] },
    Case { name: "discrete_laplace", scale: (126, 89), steps: &[1] },
    Case { name: "discrete_laplace", scale: (10, 1), steps: &[1, 62] },
    Case { name: "discrete_laplace", scale: (7812, 89), steps: &[1, 62] },
    Case { name: "discrete_laplace", scale: (1000, 1), steps: &[1, 62, 3906] },
    Case { name: "discrete_gaussian", scale: (1, 2), steps: &[1] },
    Case { name: "discrete_gaussian", scale: (20, 3), steps: &[1] },
    Case { name: "geometric", scale: (7, 5), steps: &[1] },
    Case { name: "geometric", scale: (80, 1), steps: &[1, 63] },
    Case { name: "geometric", scale: (5000, 1), steps: &[1, 63, 3969] },
    Case { name: "geometric", scale: (1, 40), steps: &[1] },
];

impl Case {
    fn sampler(&self) -> IntegerNoise {
        let scale = Scale::new(Ratio::new(self.scale.0, self.scale.1).unwrap()).unwrap();
        let noise = INTEGER_NOISE.into_iter().find(|noise| noise.name == self.name).unwrap();
        (noise.new)(scale, &[]).unwrap()
    }

    fn signed(&self) -> bool {
        self.name != "geometric"
    }

    /// f(x) 2^BITS
    fn f(&self, x: u64) -> BigInt {
        let (n, d) = (BigInt::from(self.scale.0), BigInt::from(self.scale.1));
        match self.name {
            "discrete_gaussian" => exp_neg(&(BigInt::from(x) * x * &d * &d), &(2 * &n * &n), BITS),
            _ => exp_neg(&(d * x), &n, BITS),
        }
    }

    /// The probabilities of a digit's entries below 63, and of all others together, times 2^BITS: from the distribution
    /// of a number x, of which the digits are those of |x| - 1, or of x.
    fn probabilities(&self, digit: usize) -> Vec<BigInt> {
        let one = BigInt::from(1) << BITS;
        let step = self.steps[digit];
        let last = digit + 1 == self.steps.len();
        let times = |a: &BigInt, b: &BigInt| (a * b) >> BITS;
        let over = |a: &BigInt, b: &BigInt| (a << BITS) / b;
        let mut found: Vec<BigInt> = if self.name == "discrete_gaussian" {
            let sum: BigInt = (1..400).map(|x| self.f(x)).sum::<BigInt>() * 2 + &one;
            (0..63).map(|e| over(&(self.f(e) * if e == 0 { 1 } else { 2 }), &sum)).collect()
        } else {
            // P(e) = (1 - r) r^e, or its quotient with the probability of what there is room for.
            let r = self.f(step);
            let geometric = |e: u64, room: u64| {
                let within = if last { one.clone() } else { &one - self.f(step * room) };
                over(&times(&(&one - &r), &self.f(step * e)), &within)
            };
            if self.signed() && digit == 0 {
                let zero = over(&(&one - &r), &(&one + &r));
                let others = (0..62).map(|e| times(&(&one - &zero), &geometric(e, 62))).collect::<Vec<_>>();
                [vec![zero], others].concat()
            } else {
                (0..63).map(|e| geometric(e, 63)).collect()
            }
        };
        found.push((&one - found.iter().sum::<BigInt>()).max(BigInt::ZERO));
        found
    }

    /// A block whose numbers all have these columns and fractions, and sign, with an ample tail of zeros.
    fn block(&self, digits: &[(usize, u64)], negative: bool) -> Vec<u8> {
        let mut words = Vec::new();
        for &(column, fraction) in digits {
            let bytes = [&fraction.to_le_bytes()[..7], &[column as u8 | u8::from(negative) << 7]].concat();
            words.extend(bytes.into_iter().flat_map(|byte| [byte; NUMBERS]));
        }
        assert_eq!(words.len(), self.steps.len() * DIGIT_BYTES);
        words
    }

    /// The entry of a digit for a column and a fraction, where the other digits are such that it counts.
    fn entry(&self, sampler: &IntegerNoise, digit: usize, column: usize, fraction: u64) -> usize {
        let mut digits = vec![(1, 0); self.steps.len()]; // entry 1, unless its column is empty
        digits[digit] = (column, fraction);
        let mut script = self.block(&digits, false);
        script.resize(script.len() + 16 * NUMBERS, 0); // of the rest entry 0 is drawn
        let mut out = [0];
        let rarities = sampler.fill_counted(&mut out, &mut ScriptedRng::new(script)).unwrap();
        if rarities.tails > 0 {
            return REST;
        }
        let others: u64 = self.steps.iter().enumerate().filter(|&(d, _)| d != digit).map(|(_, step)| step).sum();
        if self.signed() && digit == 0 && out[0] == 0 {
            return 0;
        }
        usize::try_from((out[0].cast_unsigned() - others) / self.steps[digit]).unwrap()
    }

    /// How many words lead to each entry of a digit.
    fn counts(&self, sampler: &IntegerNoise, digit: usize) -> [u64; ENTRIES] {
        let capacity = 1u64 << 56;
        let mut counts = [0; ENTRIES];
        for column in 0..ENTRIES {
            // The least fraction that does not lead to the column's own entry.
            let own = |fraction| self.entry(sampler, digit, column, fraction) == column;
            let alias = self.entry(sampler, digit, column, capacity - 1);
            let (mut low, mut high) = if own(0) && alias != column { (0, capacity - 1) } else { (0, 0) };
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if own(middle) { low = middle } else { high = middle }
            }
            counts[column] += high;
            counts[alias] += capacity - high;
        }
        counts
    }
}

/// The largest whole number below p 2^62, and what is missing, times 2^BITS.
fn whole_and_rest(p: &BigInt) -> (u64, BigInt) {
    let scaled = p << 62u32;
    let one = BigInt::from(1) << BITS;
    let whole: BigInt = (&scaled + &one - 1u32) / &one - 1u32;
    let whole = u64::try_from(whole.clone().max(BigInt::ZERO)).unwrap();
    (whole, scaled - BigInt::from(whole) * one)
}

#[test]
fn every_distribution_is_enumerated() {
    for noise in INTEGER_NOISE.iter().filter(|noise| noise.with_design.is_some()) {
        assert!(CASES.iter().any(|case| case.name == noise.name), "CASES has no {}", noise.name);
    }
}

#[test]
fn every_class_of_words_is_counted_right() {
    for case in &CASES {
        let sampler = case.sampler();
        for digit in 0..case.steps.len() {
            let counts = case.counts(&sampler, digit);
            let expected: Vec<u64> = case.probabilities(digit)[..REST].iter().map(|p| whole_and_rest(p).0).collect();
            assert_eq!(counts[..REST], expected, "{} {:?}, digit {digit}", case.name, case.scale);
            assert_eq!(counts.iter().sum::<u64>(), 1 << 62);
            assert!(counts[REST] <= 64, "{}", counts[REST]);
        }
    }
}

/// Positive control: a count that is one too large, or a step of a digit that is off, is seen.
#[test]
fn a_wrong_count_is_seen() {
    let case = &CASES[3];
    let mut counts = case.counts(&case.sampler(), 0);
    counts[5] += 1;
    assert_ne!(counts[5], whole_and_rest(&case.probabilities(0)[5]).0);
    let shifted = Case { steps: &[1, 61], ..CASES[3] };
    assert_ne!(whole_and_rest(&shifted.probabilities(1)[0]).0, whole_and_rest(&case.probabilities(1)[0]).0);
}

/// A number of which one digit has entry 63, and then these words.
fn after_rest(case: &Case, sampler: &IntegerNoise, digit: usize, words: &[u64]) -> Option<i64> {
    let mut digits = vec![(1, 0); case.steps.len()];
    let (others, own) = (case.block(&digits, false), {
        digits[digit] = (REST, 0); // a column of its own, as the count of entry 63 is small
        case.block(&digits, true)
    });
    // The first number is the only one with it.
    let mut script: Vec<u8> = (0..own.len()).map(|i| if i % NUMBERS == 0 { own[i] } else { others[i] }).collect();
    script.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let (mut out, mut rng) = ([0], ScriptedRng::new(script));
    let rarities = sampler.fill_counted(&mut out, &mut rng).ok()?;
    assert_eq!(rarities.tails, 1);
    (rng.remaining() == 0).then_some(out[0])
}

#[test]
fn the_rest_is_accepted_to_the_last_bit() {
    let mut tried = 0;
    for case in &CASES {
        let sampler = case.sampler();
        for digit in 0..case.steps.len() {
            let value = |entry: u64| {
                let others: u64 =
                    case.steps.iter().enumerate().filter(|&(d, _)| d != digit).map(|(_, step)| step).sum();
                let magnitude =
                    if case.signed() && digit == 0 && entry == 0 { 0 } else { entry * case.steps[digit] + others };
                Some(if case.signed() { -magnitude.cast_signed() } else { magnitude.cast_signed() })
            };
            let last = digit + 1 == case.steps.len();
            for (entry, p) in (0u64..).zip(case.probabilities(digit)) {
                let rest = if entry == REST as u64 { p << 62u32 } else { whole_and_rest(&p).1 };
                // The first 63 digits of what is missing, and the 64 after them.
                let prefix = u64::try_from(&rest >> (BITS - 63)).unwrap();
                let next = u64::try_from((&rest >> (BITS - 127)) & BigInt::from(u64::MAX)).unwrap();
                // Beyond its start the tail goes on as far as coins show heads.
                let tail: &[u64] = match (entry < REST as u64, case.name) {
                    (true, _) => &[],
                    (false, "discrete_gaussian") => &[0, 0, u64::MAX, 0],
                    (false, _) => &[0, 0, u64::MAX],
                };
                let expected = value(entry + if tail.is_empty() { 0 } else { 2 });
                let play = |words: &[u64]| after_rest(case, &sampler, digit, words);
                if entry == REST as u64 && !last {
                    assert_eq!(rest >> (BITS - 127), BigInt::ZERO, "there is nothing beyond");
                    continue;
                }
                // Too small for the first words to tell it from nothing: as at the smallest scales.
                if !(2..(1 << 63) - 2).contains(&prefix) || !(4..u64::MAX - 4).contains(&next) {
                    continue;
                }
                for (words, accepted) in [
                    (vec![prefix - 1], true),
                    (vec![prefix + 1], false),
                    (vec![prefix, next - 2], true),
                    (vec![prefix, next + 2], false),
                ] {
                    let attempt = [&[entry, words[0] << 1], &words[1..]].concat();
                    let found = play(&[&attempt[..], if accepted { tail } else { &[] }].concat());
                    assert_eq!(found, if accepted { expected } else { None }, "{} {entry} {words:?}", case.name);
                    if !accepted {
                        // Then another attempt is made: at entry 2, whose first word is accepted.
                        let again = [&attempt[..], &[2, 0]].concat();
                        let (_, missing) = whole_and_rest(&case.probabilities(digit)[2]);
                        if missing >> (BITS - 60) > BigInt::ZERO {
                            assert_eq!(play(&again), value(2), "{} {entry}", case.name);
                        }
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 3000, "{tried}");
}
