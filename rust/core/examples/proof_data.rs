//! Writes what `make prove` computes again with its models: tables of samplers, words, and what comes of them on every
//! instruction set. The first argument is the folder for the files.
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;

use dpnoise_core::params::{Ratio, Scale};
use dpnoise_core::samplers::{Design, DiscreteGaussian, DiscreteLaplace, Geometric, IntegerNoise, Layout};
use dpnoise_kernels::arch::instruction_set::InstructionSet;
use dpnoise_kernels::arch::trials::{self, TAIL, TRIALS, Tables, Trials};

/// How many trials of a table are written, at the least.
const ROWS: usize = 512;

fn main() {
    let folder = std::env::args_os().nth(1).expect("a folder");
    std::fs::write(Path::new(&folder).join("Trials.v"), trials()).expect("written");
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

fn outcome(set: InstructionSet, tables: &Tables, bin: u32, offset: u64, accept: u64) -> (Outcome, i64) {
    let mut words = bin.to_le_bytes().repeat(TRIALS);
    words.extend(offset.to_le_bytes()[..tables.layout.offset_bytes()].repeat(TRIALS));
    words.extend(accept.to_le_bytes().repeat(TRIALS));
    let (mut all, mut packed) = (Trials::default(), [0; TRIALS]);
    trials::run(set, tables, &words, &mut all, &mut packed);
    assert!([all.accepted, all.undecided, all.tail].iter().all(|mask| [0, u64::MAX].contains(mask)), "every lane is alike");
    match (all.accepted, all.undecided, all.tail) {
        (0, 0, 0) => (Outcome::Rejected, all.values[0]),
        (_, 0, 0) => (Outcome::Accepted, packed[0]),
        (0, _, 0) => (Outcome::Undecided, all.values[0]),
        _ => (Outcome::Tail, 0),
    }
}

/// The distributions: every shape, kind of signs and width of offsets, and scales with long parts.
fn distributions() -> Vec<(&'static str, IntegerNoise)> {
    let real = |x| Scale::from_f64(x).expect("a scale");
    let ratio = |n, d| Scale::new(Ratio::new(n, d).expect("a ratio")).expect("a scale");
    let folded = Design { layout: Layout { shift: 0 }, weight_bits: 32, eta_bits: 29 };
    let mut all: Vec<(_, IntegerNoise)> = Vec::new();
    // Where the library uses other tables than those of trials, trials are asked for.
    for scale in [ratio(1, 1000), ratio(126, 89), ratio(10, 3)] {
        all.push(("Laplace", DiscreteLaplace::with_design(scale, folded).deref().clone()));
    }
    for scale in [real(6000.0), real(3e5), real(3e9), real(1e12), ratio((1 << 100) + 7, (1 << 80) + 1)] {
        all.push(("Laplace", DiscreteLaplace::new(scale).deref().clone()));
    }
    all.push(("Gaussian", DiscreteGaussian::with_design(real(0.5), folded).expect("a scale").deref().clone()));
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
    let mut code = "From Coq Require Import ZArith List Floats Uint63.\nFrom Dpnoise Require Import Model Sound.\nImport ListNotations.\n".to_owned();
    let mut names = Vec::new();
    for (i, (name, noise)) in distributions().iter().enumerate() {
        let tables = noise.tables().expect("drawn by trials");
        let scale = noise.scale().ratio();
        let list = |items: &[u32]| items.iter().map(u32::to_string).collect::<Vec<_>>().join("; ");
        writeln!(code, "(* {name}, scale {}/{} *)", scale.numerator(), scale.denominator()).unwrap();
        writeln!(code, "Definition law{i} := Law {} {} {}.", tables.square, scale.numerator(), scale.denominator()).unwrap();
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
        let mut rows = Vec::new();
        while rows.len() < ROWS {
            // A bin's own column, so that each bin comes as often as others, or any bin word.
            let bin = if words.next() % 2 == 0 { (words.next() as u32 % 64) << 26 } else { words.next() as u32 };
            // Zeros of both signs and the last words of all, which chance would not bring.
            let (bin, offset) = match rows.len() {
                0..22 => (0, 0),
                22..32 => (u32::MAX, u64::MAX),
                _ => (bin, words.next()),
            };
            let offset = if tables.layout.offset_bytes() == 4 { offset & u64::from(u32::MAX) } else { offset };
            let sign = if rows.len() < 11 { 1 } else { words.next() & 1 };
            let mut add = |uniform: u64| {
                let accept = uniform << 1 | sign;
                let results: Vec<_> = sets.iter().map(|&set| outcome(set, tables, bin, offset, accept)).collect();
                assert!(results[1..].iter().all(|result| result == &results[1]), "{results:?}");
                assert!(results.iter().all(|&(_, value)| value == results[0].1), "{results:?}");
                let [half, rest] = [|word: u64| word >> 32, |word: u64| word & u64::from(u32::MAX)];
                let (kinds, value) = ([results[0].0, results[1].0].map(|kind| kind as u8), results[0].1);
                rows.push(format!(
                    "{bin}; {}; {}; {}; {}; {}; {}; {}; {}",
                    half(offset), rest(offset), half(accept), rest(accept), kinds[0], kinds[1],
                    u8::from(value < 0), value.unsigned_abs()
                ));
            };
            add(words.next() >> 1);
            // The last prefix that is accepted, the first that is rejected, and their neighbours.
            for set in [separate, fused] {
                for beyond in [|outcome| outcome != Outcome::Accepted, |outcome| outcome == Outcome::Rejected] {
                    let (mut low, mut high) = (0, (1 << 63) - 1);
                    while high - low > 1 {
                        let middle = low + (high - low) / 2;
                        let (outcome, _) = outcome(set, tables, bin, offset, middle << 1 | sign);
                        if beyond(outcome) { high = middle } else { low = middle }
                    }
                    add(low);
                    add(high);
                }
            }
        }
        writeln!(code, "{}]%uint63.", rows.join(";\n")).unwrap();
        names.push(format!("(law{i}, tables{i}, rows{i})"));
    }
    assert!(TAIL == 63, "as in the model");
    writeln!(code, "Definition trials := [{}].", names.join("; ")).unwrap();
    code
}
