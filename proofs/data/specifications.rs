//! Local protocols: what their specifications say, and logarithms next to fractions.
use std::fmt::Write as _;

use dpnoise_core::local::{
    BitFlip, GeneralizedRandomizedResponse, LikelihoodRatio, Neighbours, OptimizedUnaryEncoding, Protocol,
    RandomizedResponse, SymmetricUnaryEncoding, ThresholdHistogramEncoding, UnaryEncoding,
};
use dpnoise_kernels::arith::log::{ln_at_most_vartime, ln_upper_vartime};
use dpnoise_kernels::arith::power_of_two;

/// From the smallest epsilon to the largest.
const EPSILONS: [f64; 14] =
    [1.0 / (1 << 20) as f64, 0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 1.098_612_288_668_109_8, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0];

/// Everything about local protocols.
pub(crate) fn code() -> String {
    let mut code = "From Coq Require Import ZArith List.\nFrom Dpnoise Require Import Local.\n".to_owned();
    code += "Import ListNotations.\nOpen Scope Z_scope.\n";
    for (name, row, rows) in [
        ("logarithms", "Z * Z * Z * bool", logarithms()),
        ("flips", "bit_flip * bool * (Z * Z) * Z * Z", flips()),
        ("mixtures", "Z * Z * Z * (Z * Z) * Z * Z", mixtures()),
    ] {
        writeln!(code, "Definition {name} : list ({row}) := [\n{}].", rows.join(";\n")).unwrap();
    }
    code
}

/// Fractions that are next to e^x, with ever larger parts, and the doubles that are next to a logarithm; the edges of
/// what is allowed.
fn logarithms() -> Vec<String> {
    let row = |n: u128, d: u128, x: f64| format!("({n}, {d}, {}, {})", x.to_bits(), ln_at_most_vartime(n, d, x));
    let edges = [(7, 7, 0.0), (7, 8, 0.0), (8, 7, 0.0), (7, 8, 1.0), (1, 1, f64::MIN_POSITIVE), (u128::MAX, 1, 700.0)];
    let mut rows: Vec<_> = edges.map(|(n, d, x)| row(n, d, x)).to_vec();
    rows.extend([(u128::MAX, u128::MAX - 1, power_of_two(-128)), (1, u128::MAX, 1.0)].map(|(n, d, x)| row(n, d, x)));
    for x in EPSILONS.into_iter().step_by(6).chain([85.9]) {
        // The nearest fractions on both sides, by the tree of Stern and Brocot: `below` is at most e^x, `above` is not.
        let (mut below, mut above) = ((1u128, 1u128), (1u128, 0u128));
        let mut nearest = Vec::new();
        loop {
            let moved = |from: (u128, u128), by: (u128, u128), times: u128| {
                let part = |from: u128, by: u128| from.checked_add(by.checked_mul(times)?).filter(|&n| n < 1 << 124);
                Some((part(from.0, by.0)?, part(from.1, by.1)?))
            };
            let farthest = |from: (u128, u128), by: (u128, u128), at_most: bool| {
                (0..124).rev().fold(0, |times, bit| {
                    let more = moved(from, by, times | 1 << bit);
                    let stays = more.is_some_and(|(n, d)| ln_at_most_vartime(n, d, x) == at_most);
                    times | u128::from(stays) << bit
                })
            };
            let steps = farthest(below, above, true);
            below = moved(below, above, steps).expect("as far as it stays");
            let steps_above = farthest(above, below, false);
            above = moved(above, below, steps_above).expect("as far as it stays");
            if steps + steps_above == 0 {
                break;
            }
            nearest.push((below, above));
        }
        // Fractions of a quarter of the length, and for one of the whole: 192 bits do not decide those.
        let whole = (x == 1.0).then_some(nearest.len() - 1);
        for (n, d) in [nearest.len() / 4].into_iter().chain(whole).flat_map(|i| [nearest[i].0, nearest[i].1]) {
            rows.push(row(n, d, x));
        }
        let (n, d) = nearest[nearest.len() / 4].1;
        let least = ln_upper_vartime(n, d);
        rows.extend([row(n, d, least), row(n, d, least.next_down())]);
    }
    rows
}

/// The number of a field in a specification, as it is written there.
fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).expect("a field");
    rest.split([',', '}']).next().expect("a number")
}

/// The fraction, and by their bits the epsilon of a specification and the one that is achieved.
fn claims(protocol: &Protocol, json: &str, ratio: LikelihoodRatio) -> String {
    let epsilon: f64 = field(json, "epsilon").parse().expect("a double");
    format!("({}, {}), {}, {}", ratio.numerator, ratio.denominator, epsilon.to_bits(), protocol.epsilon().to_bits())
}

/// Flips of all kinds: the flip that a specification describes, whether it has one bit, and what is claimed of it.
fn flips() -> Vec<String> {
    let mut all: Vec<(Protocol, BitFlip)> = Vec::new();
    let mut add = |protocol: Protocol, flip| all.push((protocol, flip));
    for (epsilon, k) in EPSILONS.into_iter().zip([2, 3, 1000, 1 << 24].into_iter().cycle()) {
        let symmetric = SymmetricUnaryEncoding::new(k, epsilon).expect("in range");
        add(symmetric.into(), symmetric.flip());
        let optimized = OptimizedUnaryEncoding::new(k, epsilon).expect("in range");
        add(optimized.into(), optimized.flip());
        let threshold = ThresholdHistogramEncoding::new(k, epsilon).expect("in range");
        add(threshold.into(), threshold.flip());
        let response = RandomizedResponse::new(epsilon).expect("in range");
        add(response.into(), response.flip());
    }
    for p in [0.8, 0.75, 0.5625, 0.999, 1.0 - 1e-13, 0.500_000_5, 0.6f64.next_up()] {
        let response = RandomizedResponse::with_p(p).expect("in range");
        add(response.into(), response.flip());
    }
    for (p, q) in [(0.75, 0.25), (0.5, 0.375), (0.9, 0.01), (0.3, 0.1), (0.999, 1e-6), (0.5 + 1e-6, 0.5), (0.7, 0.6)] {
        let custom = UnaryEncoding::new(5, p, q).expect("in range");
        add(custom.into(), custom.flip());
    }
    let code = all.iter().map(|(protocol, flip)| {
        let json = protocol.to_json();
        let one_bit = json.contains("\"randomized_response\"");
        let ratio = flip.likelihood_ratio(if one_bit { Neighbours::OneBit } else { Neighbours::OneHot });
        let [planes, p, q] = ["planes", "p", "q"].map(|name| field(&json, name));
        format!("(Flip {planes} {p} {q}, {one_bit}, {})", claims(protocol, &json, ratio))
    });
    code.collect()
}

/// Mixtures: the one that a specification describes, for all k-ary responses that have one, and what is claimed of it.
fn mixtures() -> Vec<String> {
    let all = [2, 3, 5, 16, 255, 256, 257, 1000, 65_537, 1 << 24].into_iter();
    let all = all.flat_map(|k| EPSILONS.map(|epsilon| GeneralizedRandomizedResponse::new(k, epsilon).ok())).flatten();
    let code = all.map(|family| {
        let protocol = Protocol::from(family);
        let json = protocol.to_json();
        let [k, planes, keep] = ["k", "planes", "keep"].map(|name| field(&json, name));
        format!("({k}, {planes}, {keep}, {})", claims(&protocol, &json, family.mixture().likelihood_ratio()))
    });
    code.collect()
}
