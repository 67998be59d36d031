//! Coins on bit planes: uniform numbers at thresholds and next to them, in all lanes, and further words at the digits.
use std::fmt::Write as _;

use dpnoise_core::rng::ScriptedRng;
use dpnoise_core::samplers::{Bernoulli, Sampler};
use dpnoise_kernels::arch::instruction_set::InstructionSet;
use dpnoise_kernels::arch::planes::{TILE_BYTES, flip};
use dpnoise_kernels::arith::power_of_two;

use crate::Words;

/// The coins of a tile.
const LANES: usize = 8 * TILE_BYTES;

/// Flips of tiles, and coins of Bernoulli samplers.
pub(crate) fn code() -> String {
    let mut words = Words(11);
    let mut code = "From Coq Require Import List Uint63.\nImport ListNotations.\nOpen Scope uint63_scope.\nNotation number := (list int).\n".to_owned();
    let mut rows = Vec::new();
    // All digits of both thresholds, then other numbers of planes, in an order in which any part has many of them.
    for (p, q) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        rows.push(flipped(&mut words, 1, p, q));
    }
    for i in 0..64 {
        let planes = 64 - i * 27 % 64;
        let most = u64::MAX >> (64 - planes);
        let (p, q) = match i % 4 {
            0 => (0xcccc_cccc_cccc_cccc >> (i / 4 % 4), 0xaaaa_aaaa_aaaa_aaaa),
            1 => [(most, 0), (0, most), (most, most), (1, most - 1)][i as usize / 4 % 4],
            _ => (words.next(), words.next()),
        };
        rows.push(flipped(&mut words, planes, p & most, q & most));
    }
    writeln!(
        code,
        "Definition flips : list (number * number * list number * number * number) := [\n{}].",
        rows.join(";\n")
    )
    .unwrap();

    let (one_below, tiny) = (1f64.next_down(), f64::from_bits(1));
    let mut rows = Vec::new();
    for p in [
        1.0,
        0.0,
        0.5,
        0.75,
        0.1,
        one_below,
        one_below * power_of_two(-11),
        one_below * power_of_two(-12), // 65 digits
        one_below * power_of_two(-60),
        one_below * power_of_two(-75),
        one_below * power_of_two(-76), // 129 digits
        one_below * power_of_two(-300),
        power_of_two(-63),
        power_of_two(-64),
        power_of_two(-65),
        3.0 * power_of_two(-65),
        power_of_two(-128),
        power_of_two(-129),
        1e-5,
        1e-10,
        1e-19,
        1e-20,
        1e-100,
        f64::MIN_POSITIVE,
        f64::MIN_POSITIVE.next_down(),
        3.0 * tiny,
        tiny,
    ] {
        rows.push(tossed(&mut words, p, 0, 0));
    }
    // Words that just suffice, and words that do not; and the last coin alone is open.
    rows.push(tossed(&mut words, 1e-5, 2, 0));
    rows.push(tossed(&mut words, tiny, 3, 0));
    rows.push(tossed(&mut words, 1e-5, 0, LANES - 1));
    writeln!(
        code,
        "Definition tosses : list (int * int * list number * list number * option (number * int)) := [\n{}].",
        rows.join(";\n")
    )
    .unwrap();
    code
}

/// A number by its digits to the base 2^60, lowest first.
fn number(bytes: &[u8]) -> String {
    let nibble = |i: usize| u64::from(bytes.get(i / 2).map_or(0, |byte| byte >> (4 * (i % 2)) & 15));
    let digit = |first: usize| (0..15).map(|i| nibble(first + i) << (4 * i)).sum::<u64>().to_string();
    format!("[{}]", (0..2 * bytes.len()).step_by(15).map(digit).collect::<Vec<_>>().join("; "))
}

/// Numbers of so many bytes each.
fn numbers(bytes: &[u8], width: usize) -> String {
    format!("[{}]", bytes.chunks_exact(width).map(number).collect::<Vec<_>>().join("; "))
}

/// The planes of uniform numbers of all lanes.
fn transposed(planes: u32, uniform: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut random = vec![0; planes as usize * TILE_BYTES];
    for i in 0..LANES {
        for digit in 0..planes as usize {
            random[digit * TILE_BYTES + i / 8] |= ((uniform(i) >> digit & 1) as u8) << (i % 8);
        }
    }
    random
}

/// Which of eight kinds of numbers lane `i` gets: each kind at each bit of a byte.
fn kind(i: usize) -> usize {
    (5 * i + i / 8) % 8
}

/// Thresholds, planes, data, and the flipped bits.
fn flipped(words: &mut Words, planes: u32, p: u64, q: u64) -> String {
    let most = u64::MAX >> (64 - planes);
    let data: [u8; TILE_BYTES] = std::array::from_fn(|_| (words.next() >> 20) as u8);
    let noise: [u64; LANES] = std::array::from_fn(|_| words.next());
    let random = transposed(planes, |i| {
        let threshold = if data[i / 8] >> (i % 8) & 1 == 1 { p } else { q };
        most & match kind(i + planes as usize) {
            0 => threshold.wrapping_sub(1),
            1 => threshold,
            2 => threshold.wrapping_add(1),
            3 | 4 => threshold ^ 1 << (i / 8 % planes as usize),
            5 => threshold ^ noise[i] >> (noise[i] & 63),
            6 => [0, most][i / 8 % 2],
            _ => noise[i],
        }
    });
    let others = random.iter().map(|byte| !byte).collect::<Vec<_>>();
    let results = InstructionSet::available().into_iter().map(|set| {
        let mut flipped = data;
        flip(set, planes, p, q, &random, &mut flipped);
        // Beside tiles with all else, in a group of four and behind it, it comes to the same.
        for at in 0..5 {
            let (mut tiles, mut uniform) = ([data.map(|byte| !byte); 5], [&others[..]; 5]);
            (tiles[at], uniform[at]) = (data, &random[..]);
            flip(set, planes, p, q, &uniform.concat(), tiles.as_flattened_mut());
            assert_eq!(tiles[at], flipped, "{planes} {p} {q} {at}");
        }
        flipped
    });
    let results: Vec<_> = results.collect();
    assert!(results.iter().all(|result| result == &results[0]), "{planes} {p} {q}");
    let [p, q] = [p, q].map(|threshold| number(&threshold.to_le_bytes()));
    format!("({p}, {q}, {}, {}, {})", numbers(&random, TILE_BYTES), number(&data), number(&results[0]))
}

/// The probability as n / 2^d, planes, further words, and the coins of a tile with the number of words that are left:
/// without so many of the words, and where the coin `first` is the first one that is open, if any may be.
fn tossed(words: &mut Words, p: f64, missing: usize, first: usize) -> String {
    let (exponent, fraction) = (p.to_bits() >> 52, p.to_bits() & ((1 << 52) - 1));
    let significand = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    let zeros = if p > 0.0 { significand.trailing_zeros() } else { 0 };
    let (n, d) = if p > 0.0 { (significand >> zeros, 1075 - exponent.max(1) as u32 - zeros) } else { (0, 0) };
    // Digits 64 group to 64 group + 63 after the point.
    let group = |group: u32| match (64 * (group + 1)).checked_sub(d) {
        Some(shift) => n.checked_shl(shift).unwrap_or(0),
        None => n.checked_shr(d - 64 * (group + 1)).unwrap_or(0),
    };
    let planes = d.min(64);
    let threshold = if d <= 64 { n } else { group(0) };
    let noise: [u64; LANES] = std::array::from_fn(|_| words.next());
    let random = transposed(planes, |i| match kind(i + d as usize) {
        _ if i < first => noise[i],
        _ if i == first => threshold,
        0 => threshold.wrapping_sub(1),
        1 => threshold,
        2 => threshold.wrapping_add(1),
        3 => threshold ^ 1 << (i / 8 % 64),
        4 => threshold ^ noise[i] >> (noise[i] & 63),
        _ => noise[i],
    });
    // Open coins follow the digits some way, then have one that is smaller or larger.
    let (mut further, groups) = (Vec::new(), d.saturating_sub(64).div_ceil(64));
    let is_open = |i: usize| {
        (0..64.min(planes)).all(|digit| {
            u64::from(random[digit as usize * TILE_BYTES + i / 8] >> (i % 8) & 1) == threshold >> digit & 1
        })
    };
    for i in (0..LANES).filter(|&i| d > 64 && is_open(i)) {
        let steps = 1 + i as u32 / 16 % (groups + 1);
        further.extend((1..steps).map(group));
        if steps <= groups {
            further.push(if i / 8 % 2 == 0 { group(steps).saturating_sub(1) } else { group(steps) + 1 });
            // Where there is no smaller one, zeros equal the digits: they are followed to the end.
            if i / 8 % 2 == 0 && group(steps) == 0 {
                further.extend((steps + 1..=groups).map(group));
            }
        }
    }
    further.extend([words.next(), 0]);
    further.truncate(further.len() - missing);
    let further: Vec<_> = further.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut rng = ScriptedRng::new([&random[..], &further].concat());
    let mut coins = [false; LANES];
    let result = match Bernoulli::new(p).expect("a probability").fill_with(&mut coins, &mut rng) {
        Ok(()) => {
            let mut bits = [0; TILE_BYTES];
            coins.iter().enumerate().for_each(|(i, &coin)| bits[i / 8] |= u8::from(coin) << (i % 8));
            format!("Some ({}, {})", number(&bits), rng.remaining() / 8)
        }
        Err(_) => "None".to_owned(),
    };
    format!("({n}, {d}, {}, {}, {result})", numbers(&random, TILE_BYTES), numbers(&further, 8))
}
