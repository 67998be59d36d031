//! Writes what `make prove` computes again with its models: tables of samplers, words, and what comes of them on every
//! instruction set. The first argument is the folder for the files.
mod coins;
mod loops;
mod numbers;
mod specifications;
mod trials;

use std::path::Path;

use dpnoise_core::params::{Ratio, Scale};
use dpnoise_kernels::arch::instruction_set::InstructionSet;

/// How files begin.
const HEAD: &str = "From Coq Require Import ZArith List Floats Uint63.\nFrom Dpnoise Require Import Model Sound.\nImport ListNotations.\n";

fn main() {
    let folder = std::env::args_os().nth(1).expect("a folder");
    for (name, code) in [
        ("Trials.v", trials::code()),
        ("Numbers.v", numbers::code()),
        ("Flips.v", coins::code()),
        ("Specifications.v", specifications::code()),
        ("Loops.v", loops::code()),
    ] {
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

/// The scale of a double.
fn real(x: f64) -> Scale {
    Scale::from_f64(x).expect("a scale")
}

/// The scale of a fraction.
fn ratio(n: u128, d: u128) -> Scale {
    Scale::new(Ratio::new(n, d).expect("a ratio")).expect("a scale")
}
