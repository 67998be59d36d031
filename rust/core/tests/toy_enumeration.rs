//! The sampler enumerated: with weights of 8 bits every bin word and every offset can be tried.
//!
//! 1. Proposal and weights: the probability of each output is the same constant times f(x), as exact fractions.
//! 2. Decision: for each of those trials the production code accepts exactly the acceptance words it should, down to
//!    the last bit, where further bits decide. Thresholds come from big-integer arithmetic that shares no code with it.

use std::collections::BTreeMap;

use dpnoise_core::params::{Ratio, Scale};
use dpnoise_core::rng::ScriptedRng;
use dpnoise_core::samplers::{Design, INTEGER_NOISE, IntegerNoise, Sampler};
use dpnoise_kernels::arch::trials::{self, Layout, Sides, TAIL};
use num_bigint::BigInt;
use num_rational::BigRational;

/// A distribution with few enough words to try them all. A graded layout with a small shift has a heavy tail.
#[derive(Clone, Copy, Debug)]
struct Toy {
    name: &'static str,
    scale: (u128, u128),
    shift: u32,
}

const fn toy(name: &'static str, numerator: u128, denominator: u128, shift: u32) -> Toy {
    Toy { name, scale: (numerator, denominator), shift }
}

const TOYS: [Toy; 8] = [
    toy("discrete_laplace", 9, 2, 0),
    toy("discrete_laplace", 9, 1, 1),
    toy("discrete_laplace", 40, 1, 2),
    toy("discrete_gaussian", 15, 1, 0),
    toy("discrete_gaussian", 60, 1, 0),
    toy("discrete_gaussian", 80, 1, 2),
    toy("geometric", 9, 2, 0),
    toy("geometric", 40, 1, 1),
];

impl Toy {
    fn sampler(self, eta_bits: u32) -> IntegerNoise {
        let scale = Scale::new(Ratio::new(self.scale.0, self.scale.1).unwrap()).unwrap();
        let design = Design { layout: Layout { shift: self.shift }, weight_bits: 8, eta_bits };
        let noise = INTEGER_NOISE.into_iter().find(|noise| noise.name == self.name).unwrap();
        noise.with_design.unwrap()(scale, design).unwrap()
    }

    /// The exponent of f(x) = exp(-exponent), as a fraction.
    fn exponent(self, x: u64) -> (BigInt, BigInt) {
        let (n, d) = (BigInt::from(self.scale.0), BigInt::from(self.scale.1));
        match self.name {
            "discrete_gaussian" => (BigInt::from(x) * x * &d * &d, 2 * &n * &n),
            _ => (x * d, n),
        }
    }
}

/// The widest bin, as a number of offsets.
fn offsets(shift: u32) -> u64 {
    1 << (shift + 3)
}

fn fraction(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

/// All trials of a toy that differ in their proposal.
fn proposals(sampler: &IntegerNoise, shift: u32) -> impl Iterator<Item = (u32, u64, u64, trials::Proposal)> {
    let all = (0..256u32).flat_map(move |byte| {
        (0..offsets(shift)).flat_map(move |offset| [0, 1].map(|sign| (byte << 24, offset, sign)))
    });
    all.map(|(bin, offset, sign)| (bin, offset, sign, trials::proposal(sampler.tables().unwrap(), bin, offset, sign)))
}

/// The factor of f(x) in the probability of each output of the table, and the one of every value of the tail.
fn coefficients(toy: Toy, sampler: &IntegerNoise) -> (BTreeMap<i64, BigRational>, BigRational) {
    let tables = sampler.tables().unwrap();
    let mut table = BTreeMap::new();
    let mut tail = fraction(0, 1);
    let each = fraction(1, 256 * 2 * offsets(toy.shift));
    let signs = if tables.sides == Sides::One { 1 } else { 2 };
    for (_, _, _, proposal) in proposals(sampler, toy.shift) {
        if proposal.bin == TAIL {
            // Kept with probability C m f(start) / (2^s W (1 - q)), then (1 - q) q^k and perhaps an excess: the density
            // at start + k, and (1 - q) cancels.
            let amplitude = tables.amplitude << u32::from(tables.sides == Sides::Folded);
            tail += &each * fraction(amplitude, signs * (u64::from(proposal.weight) << toy.shift));
        } else if !tables.is_negative_zero(&proposal) {
            *table.entry(proposal.value()).or_insert(fraction(0, 1)) +=
                &each * fraction(proposal.amplitude, proposal.weight);
        }
    }
    (table, tail)
}

#[test]
fn every_sampler_on_the_histogram_is_enumerated() {
    for noise in INTEGER_NOISE.iter().filter(|noise| noise.with_design.is_some()) {
        assert!(TOYS.iter().any(|toy| toy.name == noise.name), "TOYS has no {}", noise.name);
    }
}

#[test]
fn every_output_has_the_probability_of_the_target() {
    for toy in TOYS {
        let sampler = toy.sampler(29);
        let (table, tail) = coefficients(toy, &sampler);
        let constant = &table[&0];
        assert!(table.values().all(|coefficient| coefficient == constant), "{toy:?}");
        assert_eq!(&tail, constant, "the tail continues the table: {toy:?}");
        let last = (216 << toy.shift) - 1;
        let first = if toy.name == "geometric" { 0 } else { -last };
        assert!(table.keys().copied().eq(first..=last), "no value is missing: {toy:?}");
    }
}

/// Positive control: one unit of weight moved from one bin to another is seen.
#[test]
fn a_wrong_weight_is_seen() {
    let sampler = TOYS[0].sampler(29);
    let (table, _) = coefficients(TOYS[0], &sampler);
    let mut planted = table.clone();
    let moved = fraction(sampler.tables().unwrap().weights[3], sampler.tables().unwrap().weights[3] + (1 << 24));
    *planted.get_mut(&3).unwrap() *= moved;
    assert!(planted.values().any(|coefficient| *coefficient != planted[&0]));
}

/// exp(-n/d) * 2^bits, rounded down, with an error of a few units: Taylor's series at n/d / 2^k, then k squarings.
pub(super) fn exp_neg(n: &BigInt, d: &BigInt, bits: u64) -> BigInt {
    let halvings = (n / d).bits() + 8;
    let precision = bits + 64 + halvings;
    let one = BigInt::from(1) << precision;
    let y = (n << precision) / (d << halvings);
    let (mut sum, mut term, mut i) = (one.clone(), one, 0);
    while term != BigInt::ZERO {
        i += 1;
        term = -((&term * &y) >> precision) / i;
        sum += &term;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> precision;
    }
    sum >> (precision - bits)
}

/// One scripted trial, what should come of it, and the further words it should take.
struct Case {
    words: (u32, u64, u64),
    outcome: Option<i64>,
    further: Vec<u64>,
}

/// The acceptance words around the threshold of a proposal.
fn cases(toy: Toy, sampler: &IntegerNoise, trial: (u32, u64, u64, trials::Proposal)) -> Vec<Case> {
    let (bin, offset, sign, proposal) = trial;
    let case = |uniform: u64, accepted: bool, further: Vec<u64>| Case {
        words: (bin, offset, uniform << 1 | sign),
        outcome: (accepted && !sampler.tables().unwrap().is_negative_zero(&proposal)).then(|| proposal.value()),
        further,
    };
    let never_left_open = sampler.tables().unwrap().is_negative_zero(&proposal);
    let last = (1u64 << 63) - 1;
    if proposal.magnitude == 0 && u64::from(proposal.weight) == proposal.amplitude {
        return vec![case(0, true, vec![]), case(last, true, vec![])];
    }
    // floor(2^127 C m 2^e f(x) / W): 63 bits, then the 64 bits of the first further word.
    let (n, d) = toy.exponent(proposal.magnitude);
    let f = exp_neg(&n, &d, 400);
    let threshold: BigInt = (f * proposal.amplitude / proposal.weight) >> (400 - 127);
    let bits = |shift: u32| u64::try_from((&threshold >> shift) & BigInt::from(u64::MAX)).unwrap();
    let (prefix, rest) = (bits(64), bits(0));
    let mut cases = vec![case(0, prefix > 0, vec![]), case(last, false, vec![])];
    cases.retain(|case| case.words.2 >> 1 != prefix);
    if let Some(below) = prefix.checked_sub(1) {
        cases.push(case(below, true, vec![]));
    }
    cases.push(case((prefix + 1).min(last), prefix == last, vec![]));
    cases.retain(|case| case.words.2 >> 1 != prefix);
    // At x = 0 the threshold is a fraction that ends, and the last bits below may be zero: stay clear of the end.
    if !never_left_open && (1 << 20..u64::MAX - (1 << 20)).contains(&rest) {
        cases.push(case(prefix, true, vec![rest - 2]));
        cases.push(case(prefix, false, vec![rest + 2]));
    }
    cases
}

/// Runs 64 cases as one block through the sampler and tells whether all that comes out is as expected.
fn plays(sampler: &IntegerNoise, block: &[Case]) -> bool {
    let mut script: Vec<u8> = block.iter().flat_map(|case| case.words.0.to_le_bytes()).collect();
    script.extend(block.iter().flat_map(|case| (case.words.1 as u32).to_le_bytes()));
    script.extend(block.iter().flat_map(|case| case.words.2.to_le_bytes()));
    script.extend(block.iter().flat_map(|case| &case.further).flat_map(|word| word.to_le_bytes()));
    let expected: Vec<i64> = block.iter().filter_map(|case| case.outcome).collect();
    let mut out = vec![0; expected.len()];
    let mut rng = ScriptedRng::new(script);
    // No word too many, none too few.
    sampler.fill_with(&mut out, &mut rng).is_ok() && out == expected && rng.remaining() == 0
}

/// The cases of a toy for the trials of a sampler, in blocks.
fn blocks(toy: Toy, sampler: &IntegerNoise) -> Vec<Vec<Case>> {
    let trials = proposals(sampler, toy.shift).filter(|trial| trial.3.bin != TAIL);
    let mut all: Vec<Case> = trials.flat_map(|trial| cases(toy, sampler, trial)).collect();
    // A block must accept something, or the sampler would ask for another one: put an accepted trial in each.
    let certain = all.iter().find(|case| case.outcome.is_some() && case.further.is_empty()).unwrap();
    let (words, outcome) = (certain.words, certain.outcome);
    let mut blocks = Vec::new();
    while !all.is_empty() {
        let mut block: Vec<Case> = all.drain(..all.len().min(63)).collect();
        block.resize_with(64, || Case { words, outcome, further: vec![] });
        blocks.push(block);
    }
    blocks
}

#[test]
fn every_decision_is_right_to_the_last_bit() {
    let mut played = 0;
    for toy in TOYS {
        for eta_bits in [29, 4] {
            let sampler = toy.sampler(eta_bits);
            for block in blocks(toy, &sampler) {
                assert!(plays(&sampler, &block), "{toy:?} 2^-{eta_bits}");
                played += block.len();
            }
        }
    }
    assert!(played > 200_000, "{played} trials");
}

/// Positive control: decisions for a scale that is off by a relative 2^-70 are seen.
#[test]
fn a_wrong_scale_is_seen() {
    for toy in [TOYS[0], TOYS[3], TOYS[6]] {
        let sampler = toy.sampler(29);
        let off = Toy { scale: ((toy.scale.0 << 70) + 1, toy.scale.1 << 70), ..toy };
        assert!(blocks(off, &sampler).iter().any(|block| !plays(&sampler, block)));
    }
}
