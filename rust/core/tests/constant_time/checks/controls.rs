//! Planted faults: the ways in which code like ours goes wrong. One that is not found means that the check is blind.

use std::hint::black_box;

use dpnoise_core::instruction_set;
use dpnoise_core::params::Scale;
use dpnoise_core::rng::{SeededRng, fill_bytes};
use dpnoise_core::samplers::{DiscreteLaplace, Sampler};
use dpnoise_kernels::arch::trials::{self, TRIALS, Trials};
use rand_core::Rng;

use super::{Check, secret, table};

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("a branch on a secret", || {
            if secret(&[7])[0] > 5 {
                black_box("taken");
            }
        }),
        ("a table at a secret index", || {
            let table: [u8; 256] = std::array::from_fn(|i| i as u8);
            black_box(black_box(&table)[secret(&[7u8])[0] as usize]);
        }),
        ("a branch on noise", || {
            let sampler = DiscreteLaplace::new(Scale::from_f64(10.0).unwrap());
            if sampler.sample_with(&mut SeededRng::new(1).unwrap()).unwrap() < 0 {
                black_box("negative");
            }
        }),
        ("the number of accepted trials, not declassified", || {
            let sampler = DiscreteLaplace::new(Scale::from_f64(1e4).unwrap());
            let tables = sampler.tables().unwrap();
            let mut words = vec![0; tables.layout.bytes(TRIALS)];
            fill_bytes(&mut SeededRng::new(1).unwrap(), &mut words).unwrap();
            let (instructions, mut trials) = (instruction_set::current().unwrap(), Trials::default());
            let mut packed = [0; TRIALS];
            trials::run(instructions, tables, &words, &mut trials, &mut packed);
            if trials.accepted.count_ones() > 32 {
                black_box(packed);
            }
        }),
        ("the sampler of Canonne, Kamath and Steinke (2020)", || {
            black_box(loops(&mut SeededRng::new(1).unwrap(), 10));
        }),
        ("a search that ends at the first infinity", || {
            black_box(secret(&[1.0, f64::INFINITY, 2.0]).iter().all(|x: &f64| x.is_finite()));
        }),
        ("a sum that skips missing values", || {
            let add = |sum: f64, &x: &f64| if x.is_nan() { sum } else { black_box(sum + x) };
            black_box(secret(&[1.0, f64::NAN, 2.0]).iter().fold(0.0, add));
        }),
        ("a selection at the quantile's rank among the values that are not missing", || {
            let present: usize = secret(&[1.0, f64::NAN, 2.0]).iter().map(|x| usize::from(!x.is_nan())).sum();
            black_box([3.0, 1.0, 2.0f64].select_nth_unstable_by(present / 2, f64::total_cmp));
        }),
        ("rounding by cases", || {
            let x = secret(&[-0.75])[0];
            black_box(if x < 0.0 { black_box(x - 0.5) } else { black_box(x + 0.5) } as i64);
        }),
        ("a biased bit from digits read until one decides", || {
            let digits = secret(&[0b1011u64])[0];
            black_box((0..64).find(|&i| (digits ^ 0b0110) >> i & 1 == 1));
        }),
        ("a one-hot row written at the address of its value", || {
            let mut row = [0u8; 16];
            let value = secret(&[77usize])[0];
            row[value / 8] |= 1 << (value % 8);
            black_box(row);
        }),
        ("rows that are kept written one after the other", || {
            let (mut kept, mut next) = ([0; 4], 0);
            for (row, coin) in secret(&[1usize, 0, 1]).into_iter().enumerate() {
                kept[next] = row;
                next += coin;
            }
            black_box(kept);
        }),
        ("a row of bits that is read up to its second bit", || {
            let mut found = 0;
            black_box(secret(&[0u8, 1, 0, 1]).iter().position(|byte| {
                found += byte;
                found > 1
            }));
        }),
    ])
}

/// Discrete Laplace noise by trials of exp(-1), as many as the magnitude takes: exact, and slower the larger it is.
fn loops(rng: &mut SeededRng, scale: u64) -> i64 {
    loop {
        let low = rng.next_u64() % scale;
        // Not exact here, but of the same form: the time of a loop that ends when a coin says so.
        let heads = |rng: &mut SeededRng, p: f64| rng.next_u64() as f64 * 2f64.powi(-64) < p;
        if !heads(rng, (-(low as f64) / scale as f64).exp()) {
            continue;
        }
        let mut high = 0;
        while heads(rng, (-1f64).exp()) {
            high += 1;
        }
        let magnitude = (high * scale + low) as i64;
        let negative = rng.next_u32() & 1 == 1;
        if !(negative && magnitude == 0) {
            return if negative { -magnitude } else { magnitude };
        }
    }
}
