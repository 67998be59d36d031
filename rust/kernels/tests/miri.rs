//! Each kernel once, on inputs small enough for Miri: every instruction set gives what portable code does. Other tests look
//! closer; this one is there so that Miri sees the loads and stores (`make miri`).
//!
//! `registers` is inline assembly, which Miri has not.
use std::array::from_fn;
use std::fmt::Debug;

use dpnoise_kernels::arch::aes::{self, Aes};
use dpnoise_kernels::arch::alias::{self, DIGIT_BYTES, DIGITS, Digit, Drawn, NUMBERS, Table};
use dpnoise_kernels::arch::candidates::{self, COLUMNS};
use dpnoise_kernels::arch::clipping::{self, LANES, ROWS, Real};
use dpnoise_kernels::arch::columns::{self, Missing, Moments, Range};
use dpnoise_kernels::arch::correlation::{self, TILE};
use dpnoise_kernels::arch::grid::{self, Reach};
use dpnoise_kernels::arch::hashing::{self, Walks};
use dpnoise_kernels::arch::instruction_set::InstructionSet;
use dpnoise_kernels::arch::trials::{self, FEW_TRIALS, Layout, Sides, TRIALS, Tables, Trials};
use dpnoise_kernels::arch::{chacha, chacha_keys, planes, popcount, saturating};

/// What the kernel gives, on every instruction set the same.
fn agree<T: PartialEq + Debug>(kernel: impl Fn(InstructionSet) -> T) {
    agree_on(InstructionSet::available(), kernel);
}

/// The same, but for AVX-512 under Miri, which lacks its shifts of all lanes by one count (`_mm512_srl_epi64`), minima of
/// doubles, roundings, and conversions of singles.
fn agree_up_to_avx2<T: PartialEq + Debug>(kernel: impl Fn(InstructionSet) -> T) {
    let mut sets = InstructionSet::available();
    sets.retain(|set| !cfg!(miri) || set.name() != "avx512");
    agree_on(sets, kernel);
}

fn agree_on<T: PartialEq + Debug>(sets: Vec<InstructionSet>, kernel: impl Fn(InstructionSet) -> T) {
    let expected = kernel(InstructionSet::PORTABLE);
    for instructions in sets.into_iter().filter(|&set| set != InstructionSet::PORTABLE) {
        assert_eq!(kernel(instructions), expected, "{}", instructions.name());
    }
}

fn ciphers() -> Vec<Aes> {
    InstructionSet::available().into_iter().filter_map(Aes::of).collect()
}

/// Numbers without a pattern.
fn spread(i: usize) -> u64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| spread(i) as u8).collect()
}

/// Without them, Miri would compare portable code with itself.
#[test]
fn instruction_sets_are_found() {
    let names: Vec<_> = InstructionSet::available().into_iter().map(InstructionSet::name).collect();
    println!("{names:?}, {:?}", ciphers());
    assert_eq!(names[0], InstructionSet::PORTABLE.name());
    if cfg!(miri) {
        assert_eq!((names, ciphers().len()), (vec!["portable", "avx2", "avx512"], 2));
    }
}

#[test]
fn trials_agree() {
    let cases = [(0, Sides::Folded, true), (3, Sides::One, false), (40, Sides::Two, false), (48, Sides::Two, true)];
    for (shift, sides, square) in cases {
        let tables = Tables {
            layout: Layout { shift },
            alias: from_fn(|i| spread(i) as u32),
            weights: from_fn(|i| spread(i) as u32 | 1 << 31),
            amplitude: 1 << 31,
            sides,
            square,
            rate: 0.01 / (1u64 << shift) as f64 / if square { (1u64 << shift) as f64 } else { 1.0 },
            window: 0.1,
        };
        for count in [FEW_TRIALS, TRIALS] {
            let words = bytes(tables.layout.bytes(count));
            agree_up_to_avx2(|set| {
                let (mut trials, mut packed) = (Trials::default(), [0; TRIALS]);
                trials::run(set, &tables, &words, &mut trials, &mut packed);
                let values: Vec<i64> =
                    (0..count).filter(|i| trials.tail >> i & 1 == 0).map(|i| trials.values[i]).collect();
                let accepted = trials.accepted.count_ones() as usize;
                let again = &mut [0; TRIALS];
                trials::compact(set, &trials, again);
                assert_eq!(packed[..accepted], again[..accepted]);
                (trials.accepted, trials.undecided, trials.tail, values, packed[..accepted].to_vec())
            });
        }
    }
}

#[test]
fn numbers_from_tables_agree() {
    let table = |d| Table::new(&from_fn(|i| (spread(64 * d + i) >> 8, (spread(i + d) % 64) as u8)));
    let result = |drawn: Drawn, numbers: [i64; NUMBERS]| (drawn.entries, drawn.rest, numbers);
    let digits: Vec<Digit> =
        [1, 62, 3906].iter().enumerate().map(|(d, &step)| Digit { table: table(d), step, signed: d == 0 }).collect();
    for count in [1, DIGITS] {
        let words = bytes(count * DIGIT_BYTES);
        agree(|set| {
            let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
            alias::run(set, &digits[..count], &words, &mut drawn, &mut numbers);
            result(drawn, numbers)
        });
    }
    let (tables, words) = ([table(0), table(1)], bytes(2 * DIGIT_BYTES));
    agree(|set| {
        let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
        alias::run_pages(set, &tables, &words, &mut drawn, &mut numbers);
        result(drawn, numbers)
    });
}

#[test]
fn random_words_agree() {
    let key = from_fn(|i| spread(i) as u32);
    agree(|set| {
        let mut groups = [[0; 64 * chacha::BLOCKS]; 2];
        chacha::chacha12(set, &key, u64::from(u32::MAX), &mut groups);
        groups
    });
    let (keys, input) =
        (from_fn(|i| from_fn(|j| spread(i + 8 * j) as u32)), from_fn(|i| [i as u32; chacha_keys::PEOPLE]));
    agree(|set| {
        let mut groups = [[0; 64 * chacha::BLOCKS]; 1];
        chacha_keys::chacha12_keys(set, &keys, &input, &mut groups);
        groups
    });
    let streams: Vec<_> = ciphers()
        .into_iter()
        .map(|aes| {
            let (mut schedule, mut groups) = ([[0; aes::BLOCK_BYTES]; 15], [[0; 64 * chacha::BLOCKS]; 1]);
            aes::expand(aes, &key, &mut schedule);
            aes::fill(aes, &schedule, u64::MAX, 5, &mut groups);
            groups
        })
        .collect();
    assert!(streams.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn candidates_agree() {
    let scores: Vec<f64> = (0..3 * COLUMNS).map(|i| (spread(i) >> 50) as f64 / 64.0).collect();
    let words = bytes(8 * scores.len());
    agree_up_to_avx2(|set| {
        let extremes = candidates::extremes(set, &scores);
        let (mut depths, mut weights) = (vec![0; scores.len()], vec![0; scores.len()]);
        let best = extremes.best.into_iter().fold(f64::MIN, f64::max);
        candidates::measure(set, -6, &best, &scores, &mut depths);
        candidates::weigh(set, 1e-3, &depths, &mut weights);
        let sums = candidates::sums(set, &weights);
        let found = candidates::locate(set, &weights, &depths, &sums, &sums.map(|sum| sum / 2));
        let (mut coins, mut packed) = (weights.clone(), [0; 3]);
        candidates::flip(set, &words, &mut coins, &mut packed);
        let mut kept = vec![0.0; scores.len()];
        candidates::keep_if(set, &u64::MAX, &scores, &mut kept);
        candidates::retire(set, &9, &mut kept);
        (extremes, depths, weights, found, packed, kept)
    });
}

#[test]
fn sums_of_noise_agree() {
    let (noise, values): (Vec<i64>, Vec<f64>) =
        (0..19).map(|i| (spread(i) as i64 >> 20, spread(i) as f64 / 1e9)).unzip();
    for reach in [Reach::Near, Reach::Far] {
        agree_up_to_avx2(|set| {
            let mut values = values.clone();
            (grid::add_noise(set, reach, -10, &noise, &mut values), values)
        });
    }
    agree_up_to_avx2(|set| {
        let mut values: Vec<i64> = (0..19).map(|i| spread(i) as i64).collect();
        saturating::add_saturating(set, &mut values, &noise);
        values
    });
    let tile = [from_fn(|i| spread(i) as i64 >> 30), from_fn(|i| spread(2 * i) as i64 >> 30)];
    agree(|set| {
        let (mut sums, mut noise): ([i64; TILE], [i64; TILE]) = ([1; TILE], from_fn(|i| i as i64));
        correlation::subtract_weighted(set, &tile, &[3, 4000], &mut sums, &mut noise);
        (sums, noise)
    });
}

#[test]
fn columns_agree() {
    let mut values: Vec<f64> = (0..24).map(|i| spread(i) as i32 as f64 / 1e9).collect();
    values[5] = f64::NAN;
    let range = Range::new((-1.0, 1.5), -40);
    let moments = Moments { distances: range, middle: 0.25, half: 1.25, centre: 0.78125, squares: range };
    agree_up_to_avx2(|set| [false, true].map(|squared| columns::sums(set, &moments, squared, &values)));
    agree_up_to_avx2(|set| {
        let (mut steps, mut counts) = ([0; 24], [0; 5]);
        columns::steps(set, &range, &mut Missing::new((-7, 7), 1 << 61), &values, &mut steps);
        columns::count_above(set, &[-1.0, -0.5, 0.0, 0.5, 1.0], &values, &mut counts);
        (steps, counts)
    });
}

fn clipped_rows_agree<T: Real + PartialEq + Debug>() {
    let stride = 2 * LANES + 5;
    let rows: Vec<T> = (0..ROWS * stride).map(|i| T::from_f64(spread(i) as i32 as f64 / 1e6)).collect();
    agree_up_to_avx2(|set| {
        let mut squares = [[0.0; LANES]; ROWS];
        clipping::add_squares(set, &rows, stride, &[], &mut squares);
        let factors = clipping::factors(set, 1e6, 0.5, &squares.map(|lanes| lanes.iter().sum()));
        let mut sums = vec![0; 2 * LANES];
        clipping::add_scaled(set, &rows, stride, 0, &[], &factors, &mut sums);
        (squares, sums)
    });
}

#[test]
fn clipping_agrees() {
    clipped_rows_agree::<f32>();
    clipped_rows_agree::<f64>();
}

#[test]
fn local_reports_agree() {
    let (planes, data) = (3, bytes(2 * planes::TILE_BYTES));
    let random = bytes(planes * data.len());
    agree(|set| {
        let mut data = data.clone();
        planes::flip(set, planes as u32, 5 << 61, 1 << 61, &random, &mut data);
        data
    });
    for width in [1, 4, 16, 19] {
        agree(|set| {
            let mut rows = vec![0; 5 * width - 1];
            planes::one_hot(set, &[0, 7, 3, 5, 6], width, &mut rows);
            rows
        });
    }
    let word = |seed: usize| from_fn(|i| (spread(i + seed) as u32 % 1009).to_le_bytes());
    let walks = [Walks { starts: word(0), steps: word(1), lengths: word(2) }];
    agree(|set| {
        let mut counters = [0; 9];
        hashing::add_supports(set, 1009, &walks, &mut counters);
        counters
    });
    for row_bytes in [9, 64] {
        let rows = bytes(40 * 64 / row_bytes * row_bytes);
        agree_up_to_avx2(|set| {
            let mut counters = vec![0; 8 * row_bytes];
            popcount::add_column_counts(set, &rows, row_bytes, &mut counters).expect("memory");
            counters
        });
    }
}
