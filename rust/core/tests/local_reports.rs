//! Reports: pinned outputs, the use of randomness, threads, refusals, and what stays behind after a failure.

use dpnoise_core::Error;
use dpnoise_core::local::{
    Accumulator, DBitFlip, GeneralizedRandomizedResponse, LocalHashing, OptimizedUnaryEncoding, Protocol,
    RandomizedResponse, SymmetricUnaryEncoding, UnaryEncoding, Values, one_hot, pack,
};
use dpnoise_core::rng::{ScriptedRng, SeededRng};
use rand_core::{TryCryptoRng, TryRng};

/// A generator that must not be touched.
struct Untouchable;

impl TryRng for Untouchable {
    type Error = Error;

    fn try_next_u32(&mut self) -> Result<u32, Error> {
        unreachable!("something was drawn")
    }

    fn try_next_u64(&mut self) -> Result<u64, Error> {
        unreachable!("something was drawn")
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Error> {
        unreachable!("something was drawn")
    }
}

impl TryCryptoRng for Untouchable {}

fn width(encoding: &Protocol) -> usize {
    encoding.report_bytes()
}

fn perturb<R: TryCryptoRng>(encoding: &Protocol, values: &[i64], rng: &mut R) -> Result<Vec<u8>, Error> {
    let mut out = vec![0xaa; values.len() * width(encoding)];
    let result = encoding.perturb_with(Values::Integers(values), &mut out, rng);
    if result.is_err() {
        assert!(out.iter().all(|&byte| byte == 0 || byte == 0xaa));
    }
    result.map(|()| out)
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

fn values(n: usize, k: i64) -> Vec<i64> {
    (0..n as i64).map(|i| i * i % k).collect()
}

/// Pins the reports of a seed for each path: a change here alters what every reproducible test of every user sees.
#[test]
fn reports_are_stable() {
    let mut rng = SeededRng::new(1).unwrap();
    let optimized = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let few = perturb(&optimized, &[3, 14, 0], &mut rng).unwrap();
    let many = perturb(&optimized, &values(10_000, 15), &mut rng).unwrap();
    let symmetric = Protocol::from(SymmetricUnaryEncoding::new(1000, 2.0).unwrap());
    let symmetric = perturb(&symmetric, &values(500, 1000), &mut rng).unwrap();
    let mut bits = vec![0; 500 * 125];
    let custom = Protocol::from(UnaryEncoding::new(1000, 0.75, 0.25).unwrap());
    one_hot(custom.k(), &values(500, 1000), &mut bits).unwrap();
    let mut encoded = bits.clone();
    custom.perturb_with(Values::Rows(&bits), &mut encoded, &mut rng).unwrap();
    let mut answers = vec![0; 10_001];
    let response = Protocol::from(RandomizedResponse::new(0.7).unwrap());
    response.perturb_with(Values::Answers(&[1; 10_001]), &mut answers, &mut rng).unwrap();
    let responses = [(15, 1.0), (1000, 0.1), (1 << 24, 32.0)].map(|(k, epsilon)| {
        let response = Protocol::from(GeneralizedRandomizedResponse::new(k, epsilon).unwrap());
        let mut reports = vec![0; 10_001 * response.report_bytes()];
        response.perturb_with(Values::Integers(&values(10_001, k as i64)), &mut reports, &mut rng).unwrap();
        crc(&reports)
    });
    assert_eq!(responses, [1_557_891_949, 1_156_276_323, 3_036_377_647]);
    assert_eq!(few, [2, 121, 100, 16, 9, 1]);
    assert_eq!(
        [crc(&many), crc(&symmetric), crc(&encoded), crc(&answers)],
        [3_931_155_541, 1_856_993_947, 3_086_930_935, 1_888_726_340]
    );
}

/// A call takes planes * 64 bytes for every begun tile of 64 bytes of output, and nothing else.
#[test]
fn the_use_of_randomness_is_a_function_of_the_shape() {
    let encoding = OptimizedUnaryEncoding::new(128, 1.0).unwrap();
    let (planes, encoding) = (encoding.flip().planes() as usize, Protocol::from(encoding));
    for (rows, tiles) in [(0, 0), (1, 1), (4, 1), (5, 2), (100, 25), (101, 26)] {
        let mut rng = ScriptedRng::new(vec![0x5a; tiles * planes * 64]);
        perturb(&encoding, &values(rows, 128), &mut rng).unwrap();
        assert_eq!(rng.remaining(), 0, "{rows}");
    }
    let response = Protocol::from(RandomizedResponse::coin_flips());
    for (n, tiles) in [(0, 0), (1, 1), (512, 1), (513, 2), (20_000, 40)] {
        let mut rng = ScriptedRng::new(vec![0x5a; tiles * 2 * 64]);
        response.perturb_with(Values::Answers(&vec![1; n]), &mut vec![0; n], &mut rng).unwrap();
        assert_eq!(rng.remaining(), 0, "{n}");
    }
}

/// Encoding first and perturbing then is the same as doing both at once, for widths that do not divide a tile too.
#[test]
fn both_ways_to_a_report_are_the_same() {
    for k in [2, 9, 15, 128, 1000, 4100] {
        let encoding = Protocol::from(SymmetricUnaryEncoding::new(k, 1.5).unwrap());
        let values = values(700, k as i64);
        let at_once = perturb(&encoding, &values, &mut SeededRng::new(k).unwrap()).unwrap();
        let mut bits = vec![0; at_once.len()];
        one_hot(encoding.k(), &values, &mut bits).unwrap();
        let mut in_steps = vec![0; at_once.len()];
        encoding.perturb_with(Values::Rows(&bits), &mut in_steps, &mut SeededRng::new(k).unwrap()).unwrap();
        assert_eq!(at_once, in_steps, "{k}");
    }
}

/// Rows with each bit set alone, with none, and with all: whatever `pack` takes is packed, `perturb` refuses the last.
#[test]
fn bytes_are_packed_as_bits() {
    for k in [2, 7, 8, 9, 15, 16, 17, 100, 128, 1001] {
        let encoding = Protocol::from(SymmetricUnaryEncoding::new(k, 1.5).unwrap());
        let (k, values): (_, Vec<i64>) = (k as usize, (0..k as i64).collect());
        let mut bytes = vec![0; k * (k + 2)];
        bytes[..k * k].iter_mut().step_by(k + 1).for_each(|byte| *byte = 1);
        bytes[k * (k + 1)..].fill(1);
        let mut rows = vec![0; (k + 2) * width(&encoding)];
        one_hot(encoding.k(), &values, &mut rows[..k * width(&encoding)]).unwrap();
        (0..k).for_each(|bit| rows[(k + 1) * width(&encoding) + bit / 8] |= 1 << (bit % 8));
        assert_eq!(*pack(encoding.k(), &bytes).unwrap(), rows);
        assert!(encoding.perturb(Values::Rows(&rows), &mut vec![0; rows.len()], 1).is_err());
        let one_or_none = &rows[..(k + 1) * width(&encoding)];
        encoding.perturb(Values::Rows(one_or_none), &mut vec![0; one_or_none.len()], 1).unwrap();
    }
}

/// With certainty in place of chance the bits come back: words of zeros set every bit, words of ones clear it.
#[test]
fn unused_bits_are_zero_in_every_report() {
    for k in [2, 7, 9, 15, 1001] {
        let encoding = Protocol::from(OptimizedUnaryEncoding::new(k, 1.0).unwrap());
        let rows = 5000 / width(&encoding);
        let mut rng = ScriptedRng::new(vec![0; 1 << 20]);
        let reports = perturb(&encoding, &vec![0; rows], &mut rng).unwrap();
        for row in reports.chunks_exact(width(&encoding)) {
            let set: u32 = row.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(u64::from(set), k, "all k bits are set, and no other");
        }
    }
}

#[test]
fn threads_share_the_work_without_a_seam() {
    for k in [3, 100, 1000] {
        let encoding = Protocol::from(UnaryEncoding::new(k, 0.75, 0.25).unwrap());
        let n = 4_000_000 / width(&encoding);
        let values = vec![1; n];
        for threads in [1, 2, 3, 7] {
            let mut reports = vec![0; n * width(&encoding)];
            encoding.perturb(Values::Integers(&values), &mut reports, threads).unwrap();
            let mut counts = Accumulator::new(encoding).unwrap();
            counts.add(&reports, width(&encoding), 2).unwrap();
            assert_eq!((counts.n(), counts.rejected()), (n as u64, 0));
            // Eight standard deviations of a count of n trials with probability 3/4 or 1/4: 6e-12 for all 4412 counts.
            let allowed = 8.0 * (n as f64 * 3.0 / 16.0).sqrt();
            for (bit, &count) in counts.counters().iter().enumerate() {
                let expected = n as f64 * if bit == 1 { 0.75 } else { 0.25 };
                assert!((count as f64 - expected).abs() < allowed, "k {k} threads {threads} bit {bit}");
            }
        }
    }
}

#[test]
fn threads_share_single_values_without_a_seam() {
    // With an epsilon of 2 the largest k would leave 30 true reports on a value, whose number is far from normal.
    for (k, epsilon) in [(3, 2.0), (1000, 2.0), (70_000, 8.0)] {
        let response = Protocol::from(GeneralizedRandomizedResponse::new(k, epsilon).unwrap());
        let n = 500_001;
        let values: Vec<i64> = (0..n).map(|i| i64::from(i % 2 == 0)).collect();
        for threads in [1, 2, 3, 7] {
            let width = response.report_bytes();
            let mut reports = vec![0; values.len() * width];
            response.perturb(Values::Integers(&values), &mut reports, threads).unwrap();
            let mut counts = Accumulator::new(response).unwrap();
            counts.add(&reports, width, 2).unwrap();
            assert_eq!((counts.n(), counts.rejected()), (n as u64, 0));
            let estimate = counts.estimate().unwrap().unwrap();
            for (value, expected) in [(0, n / 2 + 1), (1, n / 2), (2, 0)] {
                let error = (estimate.counts[value] - f64::from(expected)).abs();
                assert!(error < 7.0 * estimate.standard_errors[value], "k {k} threads {threads} value {value}");
            }
        }
    }
}

/// Work is done in pieces of 2^24 bytes of reports, the second of which begins within a row here.
#[test]
fn pieces_share_the_work_without_a_seam() {
    let encoding = Protocol::from(SymmetricUnaryEncoding::new(1001, 32.0).unwrap());
    let values = values(140_000, 1001);
    let mut rows = vec![0; values.len() * width(&encoding)];
    one_hot(1001, &values, &mut rows).unwrap();
    let (mut out, mut calls) = (vec![0; rows.len()], 0);
    let mut pause = || {
        calls += 1;
        Ok(())
    };
    for given in [Values::Integers(&values), Values::Rows(&rows)] {
        encoding.perturb_pausing(given, &mut out, 2, &mut pause).unwrap();
        // A bit is flipped with a probability of 2^-23: 17 of all are expected, and 100 never seen.
        let flipped: u32 = out.iter().zip(&rows).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert!(flipped < 100, "{flipped}");
    }
    assert_eq!(calls, 4);
}

#[test]
fn an_interrupted_call_leaves_zeros_where_it_wrote() {
    let response = Protocol::from(RandomizedResponse::coin_flips());
    let values = vec![1; (1 << 24) + 1];
    for (allowed, written) in [(0, 0), (1, 1 << 24)] {
        let (mut out, mut calls) = (vec![0xaa; values.len()], 0);
        let mut pause = || {
            calls += 1;
            if calls > allowed { Err(Error::Interrupted) } else { Ok(()) }
        };
        let ended = response.perturb_pausing(Values::Answers(&values), &mut out, 1, &mut pause);
        assert_eq!((ended, calls), (Err(Error::Interrupted), allowed + 1));
        let (begun, other) = out.split_at(written);
        assert!(begun.iter().all(|&byte| byte == 0) && other.iter().all(|&byte| byte == 0xaa));
    }
}

#[test]
fn values_of_another_kind_are_refused() {
    let message = |protocol: Protocol, values| protocol.perturb_with(values, &mut [0], &mut Untouchable).unwrap_err();
    let encoding = OptimizedUnaryEncoding::new(8, 1.0).unwrap().into();
    let refused = message(encoding, Values::Numbers(&[0.5])).to_string();
    assert_eq!(refused, "values must be integers, which optimized_unary_encoding takes, got numbers");
    let hashing = LocalHashing::new(2, 1.0, None).unwrap().into();
    let refused = message(hashing, Values::Rows(&[1])).to_string();
    assert_eq!(refused, "values must be integers, which local_hashing takes, got rows of bits");
    let flips = DBitFlip::new(8, 1.0, 2).unwrap().into();
    let refused = message(flips, Values::Integers(&[1])).to_string();
    assert_eq!(refused, "values must be integers of people with a memo, which d_bit_flip takes, got integers");
}

#[test]
fn a_dry_source_leaves_only_zeros() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(128, 1.0).unwrap());
    let values = values(10_000, 128);
    let mut bits = vec![0; 16 * values.len()];
    one_hot(encoding.k(), &values, &mut bits).unwrap();
    for script in [0, 100_000] {
        let rng = || ScriptedRng::new(vec![1; script]);
        let mut out = vec![0xaa; bits.len()];
        let failed = encoding.perturb_with(Values::Integers(&values), &mut out, &mut rng()).unwrap_err();
        assert!(matches!(failed, Error::Randomness(_)) && out.iter().all(|&byte| byte == 0));
        out.fill(0xaa);
        let failed = encoding.perturb_with(Values::Rows(&bits), &mut out, &mut rng()).unwrap_err();
        assert!(matches!(failed, Error::Randomness(_)) && out.iter().all(|&byte| byte == 0));
    }
    let response = Protocol::from(GeneralizedRandomizedResponse::new(128, 1.0).unwrap());
    for script in [0, 5, 30_000] {
        let mut out = vec![0xaa; values.len()];
        let failed = response
            .perturb_with(Values::Integers(&values), &mut out, &mut ScriptedRng::new(vec![1; script]))
            .unwrap_err();
        assert!(matches!(failed, Error::Randomness(_)) && out.iter().all(|&byte| byte == 0));
    }
    // The words of the first chunk are there, but all zero: 0 is rejected for k = 15, and there is no replacement.
    let mut out = vec![0xaa; 10];
    let response = Protocol::from(GeneralizedRandomizedResponse::new(15, 1.0).unwrap());
    let failed =
        response.perturb_with(Values::Integers(&[3; 10]), &mut out, &mut ScriptedRng::new(vec![0; 100])).unwrap_err();
    assert!(matches!(failed, Error::Randomness(_)) && out.iter().all(|&byte| byte == 0));
    let mut out = vec![0xaa; 1000];
    let response = Protocol::from(RandomizedResponse::coin_flips());
    let failed = response.perturb_with(Values::Answers(&[1; 1000]), &mut out, &mut ScriptedRng::new([]));
    assert!(matches!(failed, Err(Error::Randomness(_))) && out.iter().all(|&byte| byte == 0));
}

#[test]
fn bad_data_is_refused_before_anything_is_drawn_and_is_not_shown() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    for bad in [15, 16, -1, i64::MIN, i64::MAX] {
        let failed = perturb(&encoding, &[3, bad, 2], &mut Untouchable).unwrap_err();
        assert_eq!(failed.to_string(), "values must be integers in [0, k) with k = 15");
        let response = Protocol::from(GeneralizedRandomizedResponse::new(15, 1.0).unwrap());
        let failed = response.perturb_with(Values::Integers(&[3, bad, 2]), &mut [0; 3], &mut Untouchable).unwrap_err();
        assert_eq!(failed.to_string(), "values must be integers in [0, k) with k = 15");
    }
    let refused = |rows: [u8; 4]| {
        encoding.perturb_with(Values::Rows(&rows), &mut [0; 4], &mut Untouchable).unwrap_err().to_string()
    };
    for rows in [[1, 0, 3, 0], [1, 0, 1, 1], [0, 0, 0, 0x80], [1, 0x80, 2, 0], [0xff; 4]] {
        assert_eq!(refused(rows), "rows must each have at most one of the first k = 15 bits set, and no other");
    }
    for (place, bad) in [(0, 2), (7, 3), (8, 0x80), (14, 255), (29, 16)] {
        let mut bytes = [0; 30];
        bytes[place] = bad;
        assert_eq!(pack(15, &bytes).err().unwrap().to_string(), "rows must be 0 or 1 in every column");
    }
    let response = Protocol::from(RandomizedResponse::coin_flips());
    let failed = response.perturb_with(Values::Answers(&[0, 1, 2]), &mut [0; 3], &mut Untouchable).unwrap_err();
    assert_eq!(failed.to_string(), "values must be booleans (0 or 1)");
}

#[test]
fn impossible_shapes_are_refused() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let message = |failed: Result<(), Error>| failed.unwrap_err().to_string();
    let short = message(encoding.perturb_with(Values::Integers(&[1, 2]), &mut [0; 3], &mut Untouchable));
    assert_eq!(short, "out must be 2 rows of 2 bytes, got 3 bytes");
    let ragged = message(encoding.perturb_with(Values::Rows(&[1, 0, 1]), &mut [0; 3], &mut Untouchable));
    assert_eq!(ragged, "rows must be whole, of 2 bytes each, got 3 bytes");
    assert_eq!(pack(15, &[0; 31]).err().unwrap().to_string(), "rows must be whole, of 15 bytes each, got 31 bytes");
    assert_eq!(pack(0, &[]).err().unwrap().to_string(), "k must be an integer from 2 to 16777216, got 0");
    assert_eq!(
        message(encoding.perturb(Values::Integers(&[1]), &mut [0; 2], 0)),
        "threads must be at least 1, or not given, got 0"
    );
    for k in [0, 1, (1 << 24) + 1] {
        let failed = OptimizedUnaryEncoding::new(k, 1.0).unwrap_err().to_string();
        assert_eq!(failed, format!("k must be an integer from 2 to 16777216, got {k}"));
        let failed = GeneralizedRandomizedResponse::new(k, 1.0).unwrap_err().to_string();
        assert_eq!(failed, format!("k must be an integer from 2 to 16777216, got {k}"));
    }
}

#[test]
fn no_reports_are_legal() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    encoding.perturb_with(Values::Integers(&[]), &mut [], &mut Untouchable).unwrap();
    encoding.perturb(Values::Integers(&[]), &mut [], 4).unwrap();
    let response = Protocol::from(RandomizedResponse::coin_flips());
    response.perturb(Values::Answers(&[]), &mut [], 4).unwrap();
    let response = Protocol::from(GeneralizedRandomizedResponse::new(15, 1.0).unwrap());
    response.perturb(Values::Integers(&[]), &mut [], 4).unwrap();
    let mut counts = Accumulator::new(encoding).unwrap();
    counts.add(&[], 2, 4).unwrap();
    assert_eq!(counts.estimate().unwrap().unwrap().counts, [0.0; 15]);
}

#[test]
fn the_largest_k_works() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(1 << 24, 1.0).unwrap());
    let mut report = vec![0; 1 << 21];
    one_hot(encoding.k(), &[(1 << 24) - 1], &mut report).unwrap();
    assert_eq!((report[(1 << 21) - 1], report.iter().map(|&byte| u64::from(byte)).sum::<u64>()), (0x80, 0x80));
}

#[test]
fn what_is_no_report_is_counted_with_its_reason() {
    let mut counts = Accumulator::new(Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap())).unwrap();
    counts.reject("missing report", 3).unwrap();
    counts.reject("wrong length", 4).unwrap();
    assert_eq!((counts.n(), counts.rejected()), (0, 7));
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("missing report", 3), ("wrong length", 4)]);
    let before = counts.copy().unwrap();
    let unknown = counts.reject("no stamp", 1).unwrap_err().to_string();
    assert!(unknown.contains("one of tail bits set, missing report, wrong length, wrong header"), "{unknown}");
    let full = counts.reject("wrong length", u64::MAX).unwrap_err().to_string();
    assert!(full.contains("there would be more than 18446744073709551615 reports"), "{full}");
    assert_eq!(counts, before);
}
