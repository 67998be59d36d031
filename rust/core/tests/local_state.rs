//! Specifications and states: what is read back, what is merged, and every kind of damage.

use dpnoise_core::Error;
use dpnoise_core::arguments::{Argument, ParameterKind};
use dpnoise_core::local::{
    Accumulator, COUNTER_LIMIT, CountMeanSketch, GeneralizedRandomizedResponse, HadamardCountMeanSketch,
    HierarchicalRange, HybridMean, Loloha, LongitudinalUnaryEncoding, OptimizedUnaryEncoding, Permanent,
    ProjectiveGeometryResponse, Protocol, RandomizedResponse, SymmetricUnaryEncoding, UnaryEncoding, Values,
};
use dpnoise_core::rng::SeededRng;

/// The examples of all families, with each epsilon and pair of probabilities that they take, and others.
fn protocols() -> Vec<Protocol> {
    let mut all =
        [RandomizedResponse::coin_flips(), RandomizedResponse::with_p(0.8).unwrap()].map(Protocol::from).to_vec();
    for info in Protocol::FAMILIES {
        let found = all.len();
        for epsilon in [1e-6, 0.1, 1.0, 3f64.ln(), 5.5, 32.0] {
            for (p, q) in [(0.75, 0.25), (0.5, 0.25), (0.61, 0.2), (1e-4, 1e-5), (0.5, 0.75), (0.01, 0.2), (0.1, 0.9)] {
                let given = info.parameters.iter().map(|parameter| match (parameter.name, parameter.kind) {
                    ("epsilon_first", _) => (parameter.name, Argument::Real(epsilon / 2.0)),
                    (name, ParameterKind::Epsilon) => (name, Argument::Real(epsilon)),
                    ("p", _) => ("p", Argument::Real(p)),
                    ("q", _) => ("q", Argument::Real(q)),
                    (name, _) => (name, parameter.example),
                });
                all.extend(
                    Protocol::new(info.name, &given.collect::<Vec<_>>()).ok().filter(|made| all.last() != Some(made)),
                );
            }
        }
        assert!(all.len() > found + 2, "{}", info.name);
    }
    for (permanent, first) in [(1.0, 0.1), (16.0, 1e-3), (3f64.ln(), 2f64.ln())] {
        all.push(LongitudinalUnaryEncoding::new(15, permanent, first, Permanent::Symmetric).unwrap().into());
        all.push(Loloha::new(15, permanent, first, None).unwrap().into());
    }
    all.push(ProjectiveGeometryResponse::new(1000, 1.0, None).unwrap().into());
    all
}

fn reports(protocol: &Protocol, n: i64) -> Vec<u8> {
    let k = i64::from(protocol.k());
    let values: Vec<i64> = (0..n).map(|i| i % k).collect();
    let mut out = vec![0; values.len() * protocol.report_bytes()];
    protocol.perturb_with(Values::Integers(&values), &mut out, &mut SeededRng::new(5).unwrap()).unwrap();
    out
}

fn message<T: std::fmt::Debug>(failed: Result<T, Error>) -> String {
    failed.unwrap_err().to_string()
}

#[test]
fn specifications_read_back_as_they_were() {
    for protocol in protocols() {
        let json = protocol.to_json();
        assert_eq!(Protocol::from_json(&json, COUNTER_LIMIT).unwrap(), protocol, "{json}");
        assert_eq!(Protocol::from_json(&format!(" \t{json}\r\n"), COUNTER_LIMIT).unwrap(), protocol);
    }
}

/// Pins specification and id: other programs, and states kept on disk, depend on them.
#[test]
fn specifications_are_stable() {
    let protocol = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let expected =
        r#"{"epsilon":1.0,"k":15,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,"version":1}"#;
    assert_eq!(protocol.to_json(), expected);
    assert_eq!(protocol.spec_id_hex(), "d63975fc79f37bc3");
    let response = Protocol::from(GeneralizedRandomizedResponse::new(15, 1.0).unwrap());
    let expected =
        r#"{"epsilon":1.0,"k":15,"keep":841,"planes":13,"protocol":"generalized_randomized_response","version":1}"#;
    assert_eq!(response.to_json(), expected);
    let hybrid = Protocol::from(HybridMean::new(1.0).unwrap());
    let expected = r#"{"alpha":6601320,"duchi_keep":473,"duchi_planes":10,"epsilon":1.0,"k":2550,"keep":1611,"planes":12,"protocol":"hybrid_mean","version":1,"width":1546}"#;
    assert_eq!(hybrid.to_json(), expected);
    let coins = Protocol::from(RandomizedResponse::coin_flips()).to_json();
    assert!(coins.starts_with(r#"{"epsilon":1.098612288668"#) && coins.contains(r#""p":3,"planes":2"#), "{coins}");
}

#[test]
fn specifications_in_another_form_are_refused() {
    let json = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap()).to_json();
    for (from, to) in [
        (":", ": "),
        ("1.0", "1"),
        ("1.0", "1.00"),
        ("1.0", "10.0e-1"),
        ("optimized", "\\u006fptimized"),
        ("\"k\":15", "\"k\":15,\"k\":15"),
        (r#""epsilon":1.0,"k":15"#, r#""k":15,"epsilon":1.0"#),
        ("{", "\u{a0}{"),
    ] {
        let changed = json.replace(from, to);
        assert_ne!(changed, json);
        let message = message(Protocol::from_json(&changed, COUNTER_LIMIT));
        let problem = match to {
            "\u{a0}{" => "it does not begin with {",
            _ => &format!("announce and keep {json}"),
        };
        assert!(message.ends_with(problem), "{message}");
    }
}

#[test]
fn contradictory_specifications_are_refused() {
    let json = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap()).to_json();
    let refused = |from: &str, to: &str| {
        assert!(json.contains(from));
        message(Protocol::from_json(&json.replace(from, to), COUNTER_LIMIT))
    };
    let prefix = "not a protocol specification: ";
    for (from, to, problem) in [
        ("\"q\":551", "\"q\":552", "its probabilities are not those that its epsilon gives"),
        ("\"q\":551", "\"q\":550", "its probabilities are not those that its epsilon gives"),
        ("\"epsilon\":1.0", "\"epsilon\":2.0", "its probabilities are not those that its epsilon gives"),
        ("optimized_unary", "unary", ""),
        ("optimized_", "optimised_", "unknown protocol \"optimised_unary_encoding\"; this release knows randomized"),
        ("\"k\":15,", "", "the field \"k\" is missing"),
        ("\"k\":15", "\"k\":15,\"extra\":1", "unknown field \"extra\""),
        ("\"k\":15", "\"k\":-15", "the field \"k\" is not a non-negative integer"),
        ("\"epsilon\":1.0", "\"epsilon\":\"1\"", "the field \"epsilon\" is not a number"),
        ("\"version\":1", "\"version\":2", "version 2 is not 1"),
        ("}", "} trailing", "it is not JSON of numbers and texts: trailing characters"),
        ("}", "", "it is not JSON of numbers and texts: a comma or } is missing"),
    ] {
        if problem.is_empty() {
            let custom = Protocol::from_json(&json.replace(from, to), COUNTER_LIMIT).unwrap();
            assert_eq!(custom.support().unwrap().q, 551, "a custom encoding may have these probabilities");
        } else {
            let message = refused(from, to);
            assert!(message.starts_with(prefix) && message.contains(problem), "{message}");
        }
    }
    assert!(refused("\"k\":15", "\"k\":1").starts_with("k must be an integer from 2"));
    assert!(refused("\"epsilon\":1.0", "\"epsilon\":0").starts_with("epsilon must be between"));
    let response = Protocol::from(GeneralizedRandomizedResponse::new(15, 1.0).unwrap()).to_json();
    let changed = |from: &str, to: &str| message(Protocol::from_json(&response.replace(from, to), COUNTER_LIMIT));
    for (from, to) in [("\"keep\":841", "\"keep\":1"), ("\"planes\":13", "\"planes\":9"), ("\"k\":15", "\"k\":16")] {
        assert!(changed(from, to).contains("its probabilities are not those"), "{from}");
    }
    assert!(changed("\"k\":15", "\"k\":15,\"q\":551").contains("unknown field \"q\""));
    assert!(changed("\"keep\":841,", "").contains("the field \"keep\" is missing"));
    assert!(message(Protocol::from_json("[]", COUNTER_LIMIT)).ends_with("it does not begin with {"));
    assert!(message(Protocol::from_json(&" ".repeat(5000), COUNTER_LIMIT)).contains("longer than"));
    let custom = Protocol::from(UnaryEncoding::new(9, 0.75, 0.25).unwrap()).to_json();
    let changed = |from: &str, to: &str| message(Protocol::from_json(&custom.replace(from, to), COUNTER_LIMIT));
    assert!(changed("\"p\":3", "\"p\":1").starts_with("p and q must be such that"));
    assert!(changed("\"planes\":2", "\"planes\":99").starts_with("planes must be an integer from 2 to 62"));
    let doubled = custom.replace("\"p\":3,\"planes\":2", "\"p\":6,\"planes\":3").replace("\"q\":1", "\"q\":2");
    assert!(
        message(Protocol::from_json(&doubled, COUNTER_LIMIT)).contains("are not those"),
        "one protocol has one specification"
    );
}

fn splits_do_not_show(protocol: Protocol, reports: &[u8]) {
    let width = protocol.report_bytes();
    let mut whole = Accumulator::new(protocol).unwrap();
    whole.add(reports, width, 1).unwrap();
    for (part, threads) in [(77, 1), (999, 3), (10_000, 4)] {
        let mut merged = Accumulator::new(protocol).unwrap();
        for part in reports.chunks(part * width).rev() {
            let mut one = Accumulator::new(protocol).unwrap();
            one.add(part, width, threads).unwrap();
            let one = Accumulator::from_bytes(&one.to_bytes().unwrap(), COUNTER_LIMIT).unwrap();
            merged.merge(&one).unwrap();
        }
        assert_eq!(merged.to_bytes().unwrap(), whole.to_bytes().unwrap(), "{} {part}", protocol.to_json());
    }
}

#[test]
fn the_split_of_the_reports_does_not_show() {
    for k in [2, 9, 15, 128, 1000] {
        let encoding = Protocol::from(OptimizedUnaryEncoding::new(k, 1.0).unwrap());
        splits_do_not_show(encoding, &reports(&encoding, 10_000));
        let response = Protocol::from(GeneralizedRandomizedResponse::new(k, 1.0).unwrap());
        splits_do_not_show(response, &reports(&response, 10_000));
    }
    for rows in [1, 7, 300] {
        let sketch = Protocol::from(CountMeanSketch::new(1.0, rows, 32, 0).unwrap());
        splits_do_not_show(sketch, &reports(&sketch, 10_000));
        let sketch = Protocol::from(HadamardCountMeanSketch::new(1.0, rows, 32, 0).unwrap());
        splits_do_not_show(sketch, &reports(&sketch, 10_000));
    }
}

#[test]
fn many_threads_count_the_same() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let mut reports = reports(&encoding, 5_000_000);
    reports[1] |= 0x80;
    reports[7_000_001] |= 0x80;
    let counted = |threads| {
        let mut counts = Accumulator::new(encoding).unwrap();
        counts.add(&reports, 2, threads).unwrap();
        counts
    };
    assert_eq!((counted(1).n(), counted(1).rejected()), (4_999_998, 2));
    for threads in [2, 3, 8] {
        assert_eq!(counted(1), counted(threads));
    }
}

#[test]
fn malformed_rows_are_counted_as_rejected() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let mut counts = Accumulator::new(encoding).unwrap();
    counts.add(&[1, 0, 1, 0x80, 1, 0x40, 0xff, 0xff, 0xff, 0xff], 2, 1).unwrap();
    assert_eq!((counts.n(), counts.rejected()), (2, 3));
    assert_eq!(counts.counters()[0], 2);
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("tail bits set", 3)]);
    let mut answers = Accumulator::new(Protocol::from(RandomizedResponse::coin_flips())).unwrap();
    answers.add(&[0, 1, 1, 2, 255, 1], 1, 1).unwrap();
    assert_eq!((answers.n(), answers.rejected(), answers.counters()), (4, 2, &[3][..]));
    let estimate = answers.estimate().unwrap().unwrap();
    // c = (3 - 4/4) / (1/2) = 4 of 4 said yes.
    assert_eq!(estimate.counts, [0.0, 4.0]);
}

#[test]
fn malformed_rows_anywhere_leave_no_trace() {
    for k in [7, 9, 100, 999, 1001] {
        let protocol = Protocol::from(OptimizedUnaryEncoding::new(k, 1.0).unwrap());
        let (width, n) = (protocol.report_bytes(), 5000);
        let unused: Vec<u8> = (0..8).map(|bit| 1 << bit).filter(|&bit| k % 8 != 0 && bit >> (k % 8) != 0).collect();
        let good = reports(&protocol, n);
        let places: [&dyn Fn(usize) -> bool; 6] =
            [&|i| i == 0, &|i| i == 4999, &|i| i == 0 || i == 4999, &|i| i % 2 == 1, &|i| i / 100 % 3 == 1, &|_| true];
        for place in places {
            let (mut rows, mut kept) = (good.clone(), Accumulator::new(protocol).unwrap());
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                if place(i) {
                    row[width - 1] |= unused[i % unused.len()];
                } else {
                    kept.add(row, width, 1).unwrap();
                }
            }
            let mut counts = Accumulator::new(protocol).unwrap();
            counts.add(&rows, width, 1).unwrap();
            assert_eq!((counts.n(), counts.counters()), (kept.n(), kept.counters()), "k = {k}");
            assert_eq!(counts.rejected(), n as u64 - kept.n(), "k = {k}");
        }
    }
}

#[test]
fn values_out_of_range_are_counted_as_rejected() {
    for (k, width, reports) in [
        (15u64, 1, vec![[0, 0, 0], [14, 0, 0], [15, 0, 0], [0x80, 0, 0], [14, 0, 0]]),
        (1000, 2, vec![[1, 0, 0], [0xe7, 3, 0], [0xe8, 3, 0], [0xff, 0xff, 0], [0xe7, 3, 0]]),
        (70_000, 3, vec![[1, 0, 0], [0x6f, 0x11, 1], [0x70, 0x11, 1], [0xff; 3], [0x6f, 0x11, 1]]),
        (256, 1, vec![[0, 0, 0], [255, 0, 0]]),
    ] {
        let protocol = Protocol::from(GeneralizedRandomizedResponse::new(k, 1.0).unwrap());
        assert_eq!(protocol.report_bytes(), width);
        let rows: Vec<u8> = reports.iter().flat_map(|report| &report[..width]).copied().collect();
        let mut counts = Accumulator::new(protocol).unwrap();
        counts.add(&rows, width, 1).unwrap();
        if k == 256 {
            assert_eq!((counts.n(), counts.rejected()), (2, 0));
            continue;
        }
        assert_eq!((counts.n(), counts.rejected(), counts.counters()[k as usize - 1]), (3, 2, 2), "{k}");
        assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("value out of range", 2)]);
        assert_eq!(Accumulator::from_bytes(&counts.to_bytes().unwrap(), COUNTER_LIMIT).unwrap(), counts);
        let support = protocol.support().unwrap();
        let expected = (2.0 * support.one as f64 - 3.0 * support.q as f64) / (support.p - support.q) as f64;
        assert!((counts.estimate().unwrap().unwrap().counts[k as usize - 1] / expected - 1.0).abs() < 1e-12);
    }
}

#[test]
fn reports_of_no_point_are_counted_as_rejected() {
    let protocol = Protocol::from(ProjectiveGeometryResponse::new(5, 1.0, Some(5)).unwrap());
    let mut counts = Accumulator::new(protocol).unwrap();
    counts.add(&[0, 5, 6, 255, 5], 1, 1).unwrap();
    assert_eq!((counts.n(), counts.rejected(), counts.counters()), (3, 2, &[1, 0, 0, 0, 0, 2][..]));
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("value out of range", 2)]);
    assert_eq!(Accumulator::from_bytes(&counts.to_bytes().unwrap(), COUNTER_LIMIT).unwrap(), counts);
    assert!(Accumulator::from_counters(protocol, 3, vec![1, 0, 1, 0, 0, 2]).is_err(), "a report is one point");
    assert!(Accumulator::from_counters(protocol, 3, vec![1, 0, 0, 0, 2]).is_err(), "there are six points");
}

#[test]
fn another_space_is_refused_in_a_specification() {
    let json = Protocol::from(ProjectiveGeometryResponse::new(15, 1.0, Some(3)).unwrap()).to_json();
    assert!(json.contains(r#""dimension":4,"epsilon":1.0,"k":15,"#) && json.contains(r#""prime":3,"#), "{json}");
    for (from, to, problem) in [
        ("\"dimension\":4", "\"dimension\":5", "are not those"),
        ("\"dimension\":4", "\"dimension\":3", "are not those"),
        ("\"prime\":3", "\"prime\":2", "are not those"),
        ("\"prime\":3", "\"prime\":4", "prime must be"),
        ("\"prime\":3", "\"prime\":134217757", "prime must be"),
        ("\"k\":15", "\"k\":13", "are not those"),
        ("\"k\":15", "\"k\":41", "are not those"),
        ("\"prime\":3,", "", "the field \"prime\" is missing"),
    ] {
        let changed = json.replace(from, to);
        assert_ne!(changed, json);
        let refused = message(Protocol::from_json(&changed, COUNTER_LIMIT));
        assert!(refused.contains(problem), "{changed}: {refused}");
    }
}

#[test]
fn reports_of_no_row_are_counted_as_rejected() {
    let sketch = Protocol::from(CountMeanSketch::new(1.0, 3, 8, 0).unwrap());
    let mut counts = Accumulator::new(sketch).unwrap();
    counts.add(&[0, 0, 0x81, 2, 0, 0, 3, 0, 1, 0, 1, 1, 2, 0, 1, 0xff, 0xff, 0xff], 3, 1).unwrap();
    assert_eq!(counts.counters(), [&[1, 1, 0, 0, 0, 0, 0, 0, 1][..], &[0; 9], &[2, 1, 0, 0, 0, 0, 0, 0, 0]].concat());
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("row out of range", 3)]);
    let mut others = counts.counters().to_vec();
    others[1] = 2;
    assert!(message(Accumulator::from_counters(sketch, 3, others)).contains("possible for n = 3 reports"));
    let sketch = Protocol::from(HadamardCountMeanSketch::new(1.0, 3, 8, 0).unwrap());
    let mut counts = Accumulator::new(sketch).unwrap();
    counts.add(&[0, 47, 48, 255, 47], 1, 1).unwrap();
    assert_eq!((counts.counters()[0], counts.counters()[47], counts.n(), counts.rejected()), (1, 2, 3, 2));
    assert!(
        message(counts.merge(&Accumulator::new(Protocol::from(CountMeanSketch::new(1.0, 3, 8, 0).unwrap())).unwrap()))
            .contains("width = 8")
    );
}

#[test]
fn reports_between_levels_are_rejected() {
    let protocol = Protocol::from(HierarchicalRange::new(16, 1.0, 4).unwrap());
    let mut counted = Accumulator::new(protocol).unwrap();
    // Of levels of 1, 2, 4, 8 and 16 nodes there are the third and the last.
    counted.add(&[0, 2, 4, 7, 8, 15, 16, 31, 32, 63, 64, 255], 1, 1).unwrap();
    assert_eq!((counted.n(), counted.rejected()), (4, 8));
    assert_eq!([8, 15, 32, 63].map(|number| counted.counters()[number]), [1; 4]);
    assert_eq!(Accumulator::from_bytes(&counted.to_bytes().unwrap(), COUNTER_LIMIT).as_ref(), Ok(&counted));
    let mut counters = counted.counters().to_vec();
    counters.swap(8, 16);
    assert!(Accumulator::from_counters(protocol, 4, counters).is_err());
}

/// A transform is of signed numbers: more reports would overflow it.
#[test]
fn counters_that_a_transform_has_no_room_for_are_refused() {
    let protocol = Protocol::from(HadamardCountMeanSketch::new(1.0, 1, 8, 0).unwrap());
    let (most, mut counters) = (i64::MAX as u64, vec![0; 16]);
    counters[5] = most;
    let full = Accumulator::from_counters(protocol, most, counters.clone()).unwrap();
    assert!(full.estimate_candidates(&[1, 2]).unwrap().unwrap().counts.iter().all(|count| count.is_finite()));
    assert_eq!(Accumulator::from_bytes(&full.to_bytes().unwrap(), COUNTER_LIMIT).unwrap(), full);
    assert!(message(full.copy().unwrap().merge(&full)).contains("more than 9223372036854775807 reports"));
    counters[6] = 1;
    assert!(message(Accumulator::from_counters(protocol, most + 1, counters)).contains("must be possible for n"));
}

/// Every report is for one value: counters that do not add up are damage, whatever their size.
#[test]
fn counters_of_single_values_must_add_up() {
    let protocol = Protocol::from(GeneralizedRandomizedResponse::new(3, 1.0).unwrap());
    assert!(Accumulator::from_counters(protocol, 6, vec![1, 2, 3]).is_ok());
    for counters in [vec![1, 2, 2], vec![6, 1, 0], vec![u64::MAX, 7, 0]] {
        let refused = message(Accumulator::from_counters(protocol, 6, counters));
        assert_eq!(refused, "counters must be possible for n = 6 reports, got impossible ones");
    }
    assert!(message(Accumulator::from_counters(protocol, 6, vec![6])).starts_with("counters must be 3 counters"));
    let mut bytes = Accumulator::from_counters(protocol, 6, vec![1, 2, 3]).unwrap().to_bytes().unwrap();
    let end = bytes.len() - 4;
    bytes.truncate(end);
    bytes[end - 8] = 2;
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    assert!(message(Accumulator::from_bytes(&bytes, COUNTER_LIMIT)).contains("counters are not possible"));
}

#[test]
fn rows_of_another_width_are_refused_and_nothing_is_added() {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let mut counts = Accumulator::new(encoding).unwrap();
    let refused = message(counts.add(&[0; 6], 3, 1));
    assert!(refused.starts_with("reports must be rows of 2 bytes (optimized_unary_encoding with k = 15"), "{refused}");
    assert!(refused.ends_with("got rows of 3 bytes"), "{refused}");
    assert_eq!(message(counts.add(&[0; 3], 2, 1)), "reports must be whole rows of 2 bytes, got 3 bytes");
    assert_eq!(message(counts.add(&[0; 2], 2, 0)), "threads must be at least 1, or not given, got 0");
    assert_eq!(counts, Accumulator::new(encoding).unwrap());
}

#[test]
fn states_of_two_protocols_do_not_merge() {
    let first = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0).unwrap());
    let second = Protocol::from(SymmetricUnaryEncoding::new(15, 1.0).unwrap());
    let refused = message(Accumulator::new(first).unwrap().merge(&Accumulator::new(second).unwrap()));
    for part in ["optimized_unary", "symmetric_unary", &first.spec_id_hex(), &second.spec_id_hex()] {
        assert!(refused.contains(part), "{refused}");
    }
}

fn small_state() -> Accumulator {
    let encoding = Protocol::from(OptimizedUnaryEncoding::new(9, 1.0).unwrap());
    let mut counts = Accumulator::new(encoding).unwrap();
    counts.add(&reports(&encoding, 77), 2, 1).unwrap();
    counts.add(&[0, 0xff], 2, 1).unwrap();
    counts
}

#[test]
fn every_truncation_and_every_flipped_bit_is_noticed() {
    let counts = small_state();
    let bytes = counts.to_bytes().unwrap();
    assert_eq!(Accumulator::from_bytes(&bytes, COUNTER_LIMIT).unwrap(), counts);
    for length in 0..bytes.len() {
        let refused = message(Accumulator::from_bytes(&bytes[..length], COUNTER_LIMIT));
        assert!(refused.contains("truncated"), "{length}: {refused}");
    }
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(Accumulator::from_bytes(&damaged, COUNTER_LIMIT), Err(Error::State(_))), "{bit}");
    }
    let longer = message(Accumulator::from_bytes(&[&bytes[..], &[0]].concat(), COUNTER_LIMIT));
    assert!(longer.contains("is damaged"), "{longer}");
}

/// Damage with a right checksum: what a faulty program writes.
#[test]
fn every_kind_of_damage_is_named() {
    let bytes = small_state().to_bytes().unwrap();
    let spec_length = bytes[16] as usize;
    let after_spec = 20 + spec_length;
    let refused = |at: usize, new: &[u8]| {
        let mut damaged = bytes[..bytes.len() - 4].to_vec();
        damaged[at..at + new.len()].copy_from_slice(new);
        damaged.extend(crc32c::crc32c(&damaged).to_le_bytes());
        message(Accumulator::from_bytes(&damaged, COUNTER_LIMIT))
    };
    assert!(refused(0, b"PNG").contains("does not begin with DPNA"));
    assert!(refused(4, &[9]).contains("unknown kind, version or flags"));
    assert!(refused(4, &[2]).contains("must be of one protocol, got that of several attributes"));
    assert!(refused(5, &[2]).contains("serial version 2; this release reads up to 1"));
    assert!(refused(5, &[0]).contains("unknown kind, version or flags"));
    assert!(refused(6, &[1]).contains("unknown kind, version or flags"));
    assert!(refused(16, &[0xff; 4]).contains("truncated in its specification"));
    assert!(refused(20, b"[").contains("it is not JSON"));
    assert!(refused(20, &[0xff]).contains("not UTF-8"));
    assert!(refused(after_spec, &[0; 8]).contains("specification id"));
    assert!(refused(after_spec + 8, &[1, 0]).contains("counters are not possible"));
    assert!(refused(after_spec + 8, &[0xff; 8]).contains("more than 18446744073709551615"));
    assert!(refused(after_spec + 16, &[2]).contains("2 reasons"));
    assert!(refused(16, &[spec_length as u8 - 8]).contains("it is not JSON"));
    assert!(message(Accumulator::from_bytes(b"", COUNTER_LIMIT)).contains("truncated"));
    let shorter: Vec<u8> = bytes[..bytes.len() - 12].to_vec();
    let mut shorter = [&shorter[..8], &(bytes.len() as u64 - 8).to_le_bytes(), &shorter[16..]].concat();
    shorter.extend(crc32c::crc32c(&shorter).to_le_bytes());
    assert!(message(Accumulator::from_bytes(&shorter, COUNTER_LIMIT)).contains("bytes of counters instead of"));
}

#[test]
fn a_specification_in_another_form_is_refused_in_a_state() {
    let bytes = small_state().to_bytes().unwrap();
    let text = String::from_utf8_lossy(&bytes[20..20 + bytes[16] as usize]).replace("1.0", "1e0");
    let mut other = bytes[..bytes.len() - 4].to_vec();
    other[20..20 + text.len()].copy_from_slice(text.as_bytes());
    other.extend(crc32c::crc32c(&other).to_le_bytes());
    assert!(message(Accumulator::from_bytes(&other, COUNTER_LIMIT)).contains("written in another form"));
}

#[test]
fn too_many_reports_are_refused() {
    let mut bytes = Accumulator::new(Protocol::from(RandomizedResponse::coin_flips())).unwrap().to_bytes().unwrap();
    let after_spec = 20 + bytes[16] as usize;
    bytes.truncate(bytes.len() - 4);
    bytes[after_spec + 8..after_spec + 16].fill(0xff);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    let mut full = Accumulator::from_bytes(&bytes, COUNTER_LIMIT).unwrap();
    assert_eq!(full.n(), u64::MAX);
    let unchanged = full.copy().unwrap();
    assert!(message(full.add(&[1], 1, 1)).contains("more than 18446744073709551615 reports"));
    assert!(message(full.merge(&unchanged)).contains("more than 18446744073709551615 reports"));
    assert_eq!(full, unchanged);
}
