//! Loops over blocks: what comes of a stream whose byte at each position is a known function of the position.
use std::fmt::Write as _;

use dpnoise_core::local::{Protocol, RandomizedResponse, Values};
use dpnoise_core::rng::ScriptedRng;
use dpnoise_core::samplers::{Bernoulli, DiscreteLaplace, Geometric, Sampler};

use crate::real;

/// Lengths with blocks that are not full, full ones, and several that are fetched at once.
const LENGTHS: [usize; 8] = [1, 63, 64, 65, 255, 256, 257, 300];

/// The stream, from its first byte.
fn stream() -> ScriptedRng {
    let byte = |i: u32| (((i + 1) * 40_503) >> 4) as u8;
    ScriptedRng::new((0..1 << 16).map(byte).collect::<Vec<_>>())
}

/// Bits as one number, from the lowest up.
fn number_of(bits: &[bool]) -> String {
    let mut hex = String::new();
    for bits in bits.chunks(8).rev() {
        let byte = bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        write!(hex, "{byte:02x}").unwrap();
    }
    format!("{}%nat, 0x{hex}", bits.len())
}

/// Numbers of alias tables, coins and flipped bits.
pub(crate) fn code() -> String {
    let mut code = "From Coq Require Import ZArith List.\nFrom Dpnoise Require Import Model.\n".to_owned();
    code += "From Dpnoise.generated Require Import Numbers.\nImport ListNotations.\nOpen Scope Z_scope.\n";
    let (mut filled, mut coins, mut flipped) = (Vec::new(), Vec::new(), Vec::new());
    for length in LENGTHS {
        // The tables are those of Numbers.v.
        let mut fill = |digits: &str, fill: &dyn Fn(&mut [i64], &mut ScriptedRng)| {
            let (mut out, mut rng) = (vec![0; length], stream());
            let before = rng.remaining();
            fill(&mut out, &mut rng);
            let out: Vec<_> = out.iter().map(i64::to_string).collect();
            filled.push(format!("({digits}, {}, [{}])", before - rng.remaining(), out.join("; ")));
        };
        fill("digits2", &|out, rng| DiscreteLaplace::new(real(10.0)).fill_with(out, rng).expect("enough words"));
        fill("digits5", &|out, rng| Geometric::new(real(1000.0)).fill_with(out, rng).expect("enough words"));
    }
    let coins_of = [(0.5, 1, 1), (0.625, 3, 5), (0.3, 54, 5_404_319_552_844_595_u64)];
    for ((p, planes, threshold), length) in coins_of.into_iter().zip([1100, 513, 500]) {
        let (mut out, mut rng) = (vec![false; length], stream());
        Bernoulli::new(p).expect("a probability").fill_with(&mut out, &mut rng).expect("enough words");
        coins.push(format!("({planes}%nat, {threshold}, {})", number_of(&out)));
    }
    for (p, length) in [(0.75, 1), (0.75, 511), (0.75, 513), (0.75, 1100), (0.8, 2600)] {
        let response = RandomizedResponse::with_p(p).expect("a probability");
        let (flip, protocol) = (response.flip(), Protocol::from(response));
        let values: Vec<u8> = (0..length).map(|i| u8::from(i % 3 == 0)).collect();
        let mut reports = vec![0; length];
        protocol.perturb_with(Values::Answers(&values), &mut reports, &mut stream()).expect("enough words");
        let reports: Vec<_> = reports.into_iter().map(|report| report == 1).collect();
        let (planes, p, q) = (flip.planes(), flip.p(), flip.q());
        flipped.push(format!("({planes}%nat, {p}, {q}, {})", number_of(&reports)));
    }
    for (name, row, rows) in [
        ("filled", "list digit * Z * list Z", filled),
        ("coins", "nat * Z * nat * Z", coins),
        ("flipped", "nat * Z * Z * nat * Z", flipped),
    ] {
        writeln!(code, "Definition {name} : list ({row}) := [\n{}].", rows.join(";\n")).unwrap();
    }
    code
}
