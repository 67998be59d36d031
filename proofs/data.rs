//! Writes what `make prove` computes again with its models: tables of samplers, words, and what comes of them on every
//! instruction set. The first argument is the folder for the files.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;

use dpnoise_core::params::{Ratio, Scale};
use dpnoise_core::samplers::{Design, DiscreteGaussian, DiscreteLaplace, Geometric, IntegerNoise, Layout};
use dpnoise_kernels::arch::alias::{self, DIGIT_BYTES, Drawn, NUMBERS, REST};
use dpnoise_kernels::arch::instruction_set::InstructionSet;
use dpnoise_kernels::arch::trials::{self, FEW_TRIALS, Sides, TAIL, TRIALS, Tables, Trials};

/// How files begin.
const HEAD: &str = "From Coq Require Import ZArith List Floats Uint63.\nFrom Dpnoise Require Import Model Sound.\nImport ListNotations.\n";

/// How many different trials of a table are written, at the least.
const ROWS: usize = 512;

fn main() {
    let folder = std::env::args_os().nth(1).expect("a folder");
    for (name, code) in [("Trials.v", trials()), ("Numbers.v", numbers())] {
        std::fs::write(Path::new(&folder).join(name), code).expect("written");
    }
    let names: Vec<_> = InstructionSet::available().iter().map(|set| set.name()).collect();
    println!("{}", names.join(" "));
}

/// Words without a pattern, the same ones on every machine.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = (self.0 ^ self.0 >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^ x >> 29
    }
}

/// What a trial comes to, as the model numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Rejected,
    Accepted,
    Undecided,
    Tail,
}

/// The bin, offset and acceptance words of a trial.
type Trial = (u32, u64, u64);

/// What the trials of a block come to.
fn outcomes(set: InstructionSet, tables: &Tables, block: &[Trial]) -> Vec<(Outcome, i64)> {
    let mut words: Vec<_> = block.iter().flat_map(|trial| trial.0.to_le_bytes()).collect();
    words.extend(block.iter().flat_map(|trial| trial.1.to_le_bytes().into_iter().take(tables.layout.offset_bytes())));
    words.extend(block.iter().flat_map(|trial| trial.2.to_le_bytes()));
    let (mut all, mut packed) = (Trials::default(), [0; TRIALS]);
    trials::run(set, tables, &words, &mut all, &mut packed);
    let mut packed = packed.into_iter();
    let outcome = |i: usize| match [all.accepted, all.undecided, all.tail].map(|mask| mask >> i & 1) {
        [0, 0, 0] => (Outcome::Rejected, all.values[i]),
        [_, 0, 0] => (Outcome::Accepted, packed.next().expect("a value")),
        [0, _, 0] => (Outcome::Undecided, all.values[i]),
        _ => (Outcome::Tail, 0),
    };
    (0..block.len()).map(outcome).collect()
}

/// What a trial comes to, in all lanes of a block.
fn outcome(set: InstructionSet, tables: &Tables, trial: Trial) -> (Outcome, i64) {
    let all = outcomes(set, tables, &[trial; TRIALS]);
    assert!(all.iter().all(|one| one == &all[0]), "every lane is alike");
    all[0]
}

/// What the exact decision takes a trial for is what the kernel proposes: by a bin's values and its size, these fix it.
fn check_proposal(tables: &Tables, (bin, offset, accept): Trial, (outcome, value): (Outcome, i64)) {
    let proposal = trials::proposal(tables, bin, offset, accept);
    assert_eq!(proposal.bin == TAIL, outcome == Outcome::Tail, "{proposal:?}");
    if outcome != Outcome::Tail {
        let (start, e) = Layout::bin_start(proposal.bin as u32);
        let in_bin = (proposal.magnitude >> tables.layout.shift) - start;
        let copies = u32::from(tables.sides == Sides::Folded && proposal.magnitude > 0);
        assert!(proposal.value() == value && in_bin >> e == 0, "{proposal:?}");
        assert_eq!(proposal.amplitude, tables.amplitude << (e + copies), "{proposal:?}");
        assert_eq!((proposal.weight, proposal.uniform), (tables.weights[proposal.bin], accept >> 1), "{proposal:?}");
    }
}

/// The distributions: every shape, kind of signs and width of offsets, and scales with long parts.
fn distributions() -> Vec<(&'static str, IntegerNoise)> {
    let real = |x| Scale::from_f64(x).expect("a scale");
    let ratio = |n, d| Scale::new(Ratio::new(n, d).expect("a ratio")).expect("a scale");
    let of_shift = |shift| Design { layout: Layout { shift }, weight_bits: 32, eta_bits: 29 };
    let mut all: Vec<(_, IntegerNoise)> = Vec::new();
    // Where the library uses other tables than those of trials, trials are asked for.
    for scale in [ratio(1, 1000), ratio(126, 89), ratio(10, 3)] {
        all.push(("Laplace", DiscreteLaplace::with_design(scale, of_shift(0)).deref().clone()));
    }
    // Magnitudes of 52 bits and more are converted otherwise.
    all.push(("Laplace", DiscreteLaplace::with_design(real(1e12), of_shift(46)).deref().clone()));
    for scale in [real(6000.0), real(3e5), real(3e9), ratio((1 << 100) + 7, (1 << 80) + 1)] {
        all.push(("Laplace", DiscreteLaplace::new(scale).deref().clone()));
    }
    all.push(("Gaussian", DiscreteGaussian::with_design(real(0.5), of_shift(0)).expect("a scale").deref().clone()));
    for scale in [ratio(41, 6), real(10.0), real(1e3), real(2e8), real(1e12)] {
        all.push(("Gaussian", DiscreteGaussian::new(scale).expect("a scale").deref().clone()));
    }
    for scale in [real(4e5), real(2e6), real(7e8), real(1e10), real(1e12), ratio((1 << 100) + 7, (1 << 70) + 1)] {
        all.push(("Geometric", Geometric::new(scale).deref().clone()));
    }
    all
}

fn trials() -> String {
    let sets = InstructionSet::available();
    let [separate, .., fused] = sets[..] else { panic!("an instruction set with fused operations is needed") };
    let mut words = Words(11);
    let mut code = HEAD.to_owned();
    let mut names = Vec::new();
    for (i, (name, noise)) in distributions().iter().enumerate() {
        let tables = noise.tables().expect("drawn by trials");
        let scale = noise.scale().ratio();
        let list = |items: &[u32]| items.iter().map(u32::to_string).collect::<Vec<_>>().join("; ");
        writeln!(code, "(* {name}, scale {}/{} *)", scale.numerator(), scale.denominator()).unwrap();
        let (gaussian, two_sided) = (*name == "Gaussian", *name != "Geometric");
        writeln!(
            code,
            "Definition law{i} := Law {gaussian} {two_sided} {} {}.",
            scale.numerator(),
            scale.denominator()
        )
        .unwrap();
        writeln!(
            code,
            "Definition tables{i} := Tables {} {:?} {} (of_bits false {}) (of_bits false {}) {}\n  [{}]%Z\n  [{}]%Z.",
            tables.layout.shift,
            tables.sides,
            tables.square,
            tables.rate.to_bits(),
            tables.window.to_bits(),
            tables.amplitude,
            list(&tables.alias),
            list(&tables.weights),
        )
        .unwrap();
        // Bin word, upper and lower half of the offset and of the acceptance word; outcome where operations are rounded one by
        // one, and where they are fused; whether the value is negative, and its magnitude.
        writeln!(code, "Definition rows{i} : list int := [").unwrap();
        let (mut rows, mut known) = (BTreeSet::new(), Vec::new());
        for proposal in 0.. {
            if rows.len() >= ROWS && proposal > 66 {
                break;
            }
            // Zeros of both signs and the last words of all, which chance would not bring; each bin's own column; any words.
            let any = words.next();
            let (bin, offset, sign) = match proposal {
                0 | 1 => (0, 0, proposal),
                2 => (u32::MAX, u64::MAX, any & 1),
                3..67 => ((proposal as u32 - 3) << 26, words.next(), any & 1),
                _ => ((any >> 32) as u32, words.next(), any & 1),
            };
            let offset = if tables.layout.offset_bytes() == 4 { offset & u64::from(u32::MAX) } else { offset };
            let mut add = |uniform: u64| {
                let accept = uniform << 1 | sign;
                let trial = (bin, offset, accept);
                let results: Vec<_> = sets.iter().map(|&set| outcome(set, tables, trial)).collect();
                assert!(results[1..].iter().all(|result| result == &results[1]), "{results:?}");
                assert!(results.iter().all(|&(_, value)| value == results[0].1), "{results:?}");
                check_proposal(tables, trial, results[1]);
                known.push((trial, [results[0], results[1]]));
                let [half, rest] = [|word: u64| word >> 32, |word: u64| word & u64::from(u32::MAX)];
                let (kinds, value) = ([results[0].0, results[1].0].map(|kind| kind as u8), results[0].1);
                rows.insert(format!(
                    "{bin}; {}; {}; {}; {}; {}; {}; {}; {}",
                    half(offset),
                    rest(offset),
                    half(accept),
                    rest(accept),
                    kinds[0],
                    kinds[1],
                    u8::from(value < 0),
                    value.unsigned_abs()
                ));
            };
            add(words.next() >> 1);
            // The last prefix that is accepted, the first that is rejected, and their neighbours.
            for set in [separate, fused] {
                for beyond in [|outcome| outcome != Outcome::Accepted, |outcome| outcome == Outcome::Rejected] {
                    let (mut low, mut high) = (0, (1 << 63) - 1);
                    while high - low > 1 {
                        let middle = low + (high - low) / 2;
                        let (outcome, _) = outcome(set, tables, (bin, offset, middle << 1 | sign));
                        if beyond(outcome) { high = middle } else { low = middle }
                    }
                    add(low);
                    add(high);
                }
            }
        }
        // Beside others a trial comes to the same.
        for block in [TRIALS, FEW_TRIALS].iter().flat_map(|&size| known.chunks_exact(size)) {
            let trials: Vec<_> = block.iter().map(|&(trial, _)| trial).collect();
            for (j, &set) in sets.iter().enumerate() {
                let alone: Vec<_> = block.iter().map(|(_, results)| results[j.min(1)]).collect();
                assert_eq!(outcomes(set, tables, &trials), alone, "{}", set.name());
            }
        }
        writeln!(code, "{}]%uint63.", Vec::from_iter(rows).join(";\n")).unwrap();
        names.push(format!("(law{i}, tables{i}, rows{i})"));
    }
    const { assert!(TAIL == 63, "as in the model") };
    writeln!(code, "Definition trials := [{}].", names.join("; ")).unwrap();
    code
}

/// Numbers from alias tables: their fractions are at a threshold or next to it.
fn numbers() -> String {
    let real = |x| Scale::from_f64(x).expect("a scale");
    let mut all: Vec<(_, IntegerNoise)> = Vec::new();
    for scale in [0.01, 1.0, 10.0, 1000.0] {
        all.push(("false true", DiscreteLaplace::new(real(scale)).deref().clone()));
    }
    for scale in [3.0, 1000.0] {
        all.push(("false false", Geometric::new(real(scale)).deref().clone()));
    }
    for scale in [0.5, 1.0, 6.0] {
        all.push(("true true", DiscreteGaussian::new(real(scale)).expect("a scale").deref().clone()));
    }
    let mut words = Words(13);
    let mut code = HEAD.to_owned();
    let mut names = Vec::new();
    for (i, (law, noise)) in all.iter().enumerate() {
        let (digits, scale) = (noise.digits().expect("drawn from alias tables"), noise.scale().ratio());
        writeln!(code, "Definition law{i} := Law {law} {} {}.", scale.numerator(), scale.denominator()).unwrap();
        let digit_code = digits.iter().map(|digit| {
            let columns = digit.table.columns();
            let list = |item: fn(&(u64, u8)) -> u64| {
                columns.iter().map(item).map(|item| item.to_string()).collect::<Vec<_>>().join("; ")
            };
            format!(
                "Digit [{}]%Z\n  [{}]%Z {} {}",
                list(|column| column.0),
                list(|column| column.1.into()),
                digit.step,
                digit.signed
            )
        });
        writeln!(code, "Definition digits{i} := [{}].", digit_code.collect::<Vec<_>>().join(";\n  ")).unwrap();
        let mut rows = Vec::new();
        for distance in [-1, 0, 1, i64::MAX] {
            let mut block = vec![0; DIGIT_BYTES * digits.len()];
            let mut pairs = vec![Vec::new(); NUMBERS];
            for (d, (digit, block)) in digits.iter().zip(block.chunks_exact_mut(DIGIT_BYTES)).enumerate() {
                let columns = digit.table.columns();
                for (j, pairs) in pairs.iter_mut().enumerate() {
                    // Each column of the first digit, and bits that do not count.
                    let column = if d == 0 { j as u8 } else { words.next() as u8 % 64 };
                    let head = (words.next() as u8) << 6 | column;
                    let edge = columns[usize::from(column)].0.saturating_add_signed(distance);
                    let fraction = if distance == i64::MAX { words.next() } else { edge } % (1 << alias::COLUMN_BITS);
                    for (byte, plane) in
                        fraction.to_le_bytes()[..7].iter().chain([&head]).zip(block.chunks_exact_mut(NUMBERS))
                    {
                        plane[j] = *byte;
                    }
                    pairs.push(format!("({fraction}, {head})"));
                }
            }
            let drawn = InstructionSet::available().into_iter().map(|set| {
                let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
                alias::run(set, digits, &block, &mut drawn, &mut numbers);
                (drawn.entries, drawn.rest, numbers)
            });
            let drawn: Vec<_> = drawn.collect();
            assert!(drawn.iter().all(|results| results == &drawn[0]), "{drawn:?}");
            let (entries, any_rest, numbers) = &drawn[0];
            let is_rest =
                |j: usize| entries[..digits.len()].iter().any(|entries| entries[j].unsigned_abs() as usize == REST);
            assert_eq!(*any_rest, (0..NUMBERS).any(is_rest));
            for (j, pairs) in pairs.iter().enumerate() {
                let rest = is_rest(j);
                rows.push(format!(
                    "([{}], {}, {}, {rest})",
                    pairs.join("; "),
                    numbers[j] < 0,
                    numbers[j].unsigned_abs()
                ));
            }
        }
        writeln!(
            code,
            "Definition rows{i} : list (list (int * int) * bool * int * bool) := [\n{}]%uint63.",
            rows.join(";\n")
        )
        .unwrap();
        names.push(format!("(law{i}, digits{i}, rows{i})"));
    }
    writeln!(code, "Definition numbers := [{}].", names.join("; ")).unwrap();
    code
}
