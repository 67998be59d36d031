//! The worst-case likelihood ratio of every local protocol, over all inputs and outputs, in exact arithmetic.

use dpnoise_core::local::estimate::Support;
use dpnoise_core::local::likelihood::{MAX_EPSILON, MIN_EPSILON};
use dpnoise_core::local::longitudinal_unary_encoding::Permanent;
use dpnoise_core::local::{
    Accumulator, BitFlip, CountMeanSketch, DBitFlip, Family, GeneralizedRandomizedResponse, HadamardCountMeanSketch,
    HadamardResponse, HierarchicalRange, Hierarchy, LocalHashing, Loloha, LongitudinalUnaryEncoding, Mixture,
    PrefixExtension, Protocol, RandomizedResponse, Randomizer, SquareWave, SubsetSelection, SummationHistogramEncoding,
    UnaryEncoding, Window, WindowMean,
};
use dpnoise_kernels::arith::log::ln_at_most_vartime;
use num_bigint::BigUint;

/// From the smallest to the largest epsilon, with awkward ones between.
fn epsilons() -> Vec<f64> {
    let steps = (0..=100).map(|i| MIN_EPSILON * (MAX_EPSILON / MIN_EPSILON).powf(f64::from(i) / 100.0));
    let awkward = [MIN_EPSILON, MIN_EPSILON.next_up(), 0.1, 0.5, 1.0, 2f64.ln(), 3f64.ln(), 3f64.ln().next_up(), 10.0];
    steps.map(|epsilon| epsilon.clamp(MIN_EPSILON, MAX_EPSILON)).chain(awkward).chain([MAX_EPSILON]).collect()
}

/// The probability of `report` for `value` times some number, straight from the definition of the protocol.
fn weight(protocol: &Protocol, value: usize, report: usize) -> BigUint {
    match protocol.randomizer() {
        Randomizer::BitFlip(flip) => row_weight(protocol, flip, value, report),
        Randomizer::LongitudinalFlips { flips, .. } => row_weight(protocol, flips.both(), value, report),
        Randomizer::Mixture(mixture) => symbol_weight(mixture, value as u32, report),
        Randomizer::Hashing(hashing) | Randomizer::LongitudinalHashing { hashing, .. } => {
            let (seed, hash) = (report / hashing.mixture().k() as usize, report % hashing.mixture().k() as usize);
            let (a, b) = (seed as u64 / hashing.prime(), seed as u64 % hashing.prime());
            symbol_weight(hashing.mixture(), hashing.hash(a, b, value as u32), hash)
        }
        Randomizer::Hadamard(hadamard) => {
            let entry = HadamardResponse::entry(value as u32, (report / 2) as u32);
            symbol_weight(hadamard.mixture(), entry, report % 2)
        }
        Randomizer::Subset(subset) if report.count_ones() != subset.omega() => BigUint::ZERO,
        Randomizer::Subset(subset) => {
            // One of all sets, or, of those with the value, k / omega times as few, an own share.
            let any = ((1 << subset.planes()) - subset.keep()) * u64::from(subset.omega());
            let kept = if report >> value & 1 == 1 { subset.keep() } else { 0 };
            BigUint::from(any) + BigUint::from(kept) * protocol.k()
        }
        Randomizer::SampledFlips(flips) => {
            let of_sample = |sample: usize| {
                let bits = (0..protocol.k() as usize).filter(|bit| sample >> bit & 1 == 1);
                bits.fold(BigUint::from(1u32), |weight, bit| {
                    weight * bit_weight(flips.flip(), value == bit, report, bit)
                })
            };
            samples(protocol.k(), flips.d()).filter(|sample| report & !sample == 0).map(of_sample).sum()
        }
        Randomizer::Window(_) | Randomizer::Hybrid(_) => unreachable!("see `check_windows`"),
        Randomizer::Hierarchy(hierarchy) if !is_report(hierarchy, report) => BigUint::ZERO,
        Randomizer::Hierarchy(hierarchy) => {
            let (bits, column) = level_and_column(report / 2);
            let node = value as u32 >> (hierarchy.depth() - bits);
            let columns_alike = 1u32 << (hierarchy.depth() - bits);
            symbol_weight(hierarchy.mixture(), HadamardResponse::entry(node, column), report % 2) * columns_alike
        }
        // Whatever the hash functions are: a value is the column that they give it, and the row is above the bits.
        Randomizer::CountMean(sketch) => {
            let bits = 0..protocol.k() as usize;
            bits.map(|bit| BigUint::from(bit_weight(sketch.flip(), value == bit, report, bit))).product()
        }
        Randomizer::HadamardCountMean(sketch) => {
            let entry = HadamardResponse::entry(value as u32, (report / 2) as u32 % protocol.k());
            symbol_weight(sketch.mixture(), entry, report % 2)
        }
        // A value is the column of all of its prefixes.
        Randomizer::Prefixes(prefixes) => {
            let entry = HadamardResponse::entry(value as u32, (report / 2) as u32 % protocol.k());
            symbol_weight(prefixes.count_mean().mixture(), entry, report % 2)
        }
        Randomizer::NoisySums(_) => panic!("its probabilities are no fractions"),
        Randomizer::Bloom(_) => unreachable!("see local_longitudinal.rs"),
    }
}

/// The same for a row whose bits are all flipped.
fn row_weight(protocol: &Protocol, flip: BitFlip, value: usize, report: usize) -> BigUint {
    (0..protocol.report_bits()).fold(BigUint::from(1u32), |weight, bit| {
        let encoded = match protocol.family() {
            Family::RandomizedResponse => value == 1,
            _ => value == bit,
        };
        weight * bit_weight(flip, encoded, report, bit)
    })
}

fn bit_weight(flip: BitFlip, encoded: bool, report: usize, bit: usize) -> u64 {
    let set = if encoded { flip.p() } else { flip.q() };
    if report >> bit & 1 == 1 { set } else { (1 << flip.planes()) - set }
}

/// All sets of d of k values.
fn samples(k: u32, d: u32) -> impl Iterator<Item = usize> {
    (0..1usize << k).filter(move |set| set.count_ones() == d)
}

/// Whether the tree has a level with as many nodes as the number's leading one says.
fn is_report(hierarchy: Hierarchy, report: usize) -> bool {
    let levels = (0..hierarchy.levels()).map(|up| hierarchy.depth() - up * hierarchy.branching().ilog2());
    report >= 2 && levels.into_iter().any(|bits| bits == level_and_column(report / 2).0)
}

fn level_and_column(seed: usize) -> (u32, u32) {
    (seed.ilog2(), (seed - (1 << seed.ilog2())) as u32)
}

/// The probability that a symbol is reported for another, or for itself, times a number.
fn symbol_weight(mixture: Mixture, symbol: u32, reported: usize) -> BigUint {
    let any = (1 << mixture.planes()) - mixture.keep(); // as many times as often as there are symbols, spread over them
    let kept = if symbol as usize == reported { mixture.keep() } else { 0 };
    BigUint::from(any) + BigUint::from(kept) * mixture.k()
}

/// All reports that there are, and the number that their weights add up to.
fn reports(protocol: &Protocol) -> (usize, BigUint) {
    match protocol.randomizer() {
        Randomizer::BitFlip(flip) => rows(protocol, flip),
        Randomizer::LongitudinalFlips { flips, .. } => rows(protocol, flips.both()),
        Randomizer::Mixture(mixture) => seeded_reports(1, mixture),
        Randomizer::Hashing(hashing) | Randomizer::LongitudinalHashing { hashing, .. } => {
            seeded_reports(hashing.prime() * hashing.prime(), hashing.mixture())
        }
        Randomizer::Hadamard(hadamard) => seeded_reports(hadamard.order().into(), hadamard.mixture()),
        Randomizer::Subset(subset) => {
            let sets = samples(protocol.k(), subset.omega()).count();
            (1 << protocol.k(), BigUint::from(sets * subset.omega() as usize) << subset.planes() as usize)
        }
        Randomizer::SampledFlips(flips) => {
            let sets = samples(protocol.k(), flips.d()).count();
            (1 << protocol.k(), BigUint::from(sets) << (flips.flip().planes() * flips.d()) as usize)
        }
        Randomizer::Window(_) | Randomizer::Hybrid(_) => unreachable!("see `check_windows`"),
        Randomizer::Hierarchy(hierarchy) => {
            // Columns of small levels have the weight of several, so that all levels weigh as much as that of the leaves.
            let (_, of_leaves) = seeded_reports(1 << hierarchy.depth(), hierarchy.mixture());
            (4 << hierarchy.depth(), of_leaves * hierarchy.levels())
        }
        Randomizer::CountMean(sketch) => {
            let (rows, bits) = (sketch.sketch().rows() as usize, protocol.k() as usize);
            (rows << bits, BigUint::from(rows) << (sketch.flip().planes() as usize * bits))
        }
        Randomizer::HadamardCountMean(sketch) => seeded_reports(sketch.sketch().cells().into(), sketch.mixture()),
        Randomizer::Prefixes(prefixes) => {
            let cells = prefixes.levels() * prefixes.rows() * protocol.k();
            seeded_reports(cells.into(), prefixes.count_mean().mixture())
        }
        Randomizer::NoisySums(_) => panic!("its probabilities are no fractions"),
        Randomizer::Bloom(_) => unreachable!("see local_longitudinal.rs"),
    }
}

fn rows(protocol: &Protocol, flip: BitFlip) -> (usize, BigUint) {
    (1 << protocol.report_bits(), BigUint::from(1u32) << (flip.planes() as usize * protocol.report_bits()))
}

/// As many reports as there are seeds and symbols; every seed is as likely as any other.
fn seeded_reports(seeds: u64, mixture: Mixture) -> (usize, BigUint) {
    let reports = seeds * u64::from(mixture.k());
    (reports as usize, BigUint::from(reports) << mixture.planes() as usize)
}

/// The largest ratio of the probabilities of one report between two values.
fn worst_case(protocol: &Protocol) -> (BigUint, BigUint) {
    let mut worst = (BigUint::from(1u32), BigUint::from(1u32));
    let (reports, total) = reports(protocol);
    for value in 0..protocol.k() as usize {
        let sum: BigUint = (0..reports).map(|report| weight(protocol, value, report)).sum();
        assert_eq!(sum, total, "the probabilities of all reports sum to 1");
    }
    for report in 0..reports {
        let weights: Vec<BigUint> = (0..protocol.k() as usize).map(|value| weight(protocol, value, report)).collect();
        let (most, least) = (weights.iter().max().unwrap(), weights.iter().min().unwrap());
        if most * &worst.1 > &worst.0 * least {
            worst = (most.clone(), least.clone());
        }
    }
    worst
}

/// Whether the exact worst case is what the protocol announces, and within what was requested.
fn keeps_its_promise(protocol: &Protocol, announced: f64) -> bool {
    let (most, least) = worst_case(protocol);
    let ratio = match protocol.randomizer() {
        Randomizer::BitFlip(flip) => {
            let (p, q) = (u128::from(flip.p()), u128::from(flip.q()));
            let (not_p, not_q) = ((1 << flip.planes()) - p, (1 << flip.planes()) - q);
            match protocol.family() {
                Family::RandomizedResponse => (p, q).max((not_q, not_p)),
                _ => one_hot(flip),
            }
        }
        Randomizer::Mixture(mixture) => kept_to_replaced(mixture),
        Randomizer::Hashing(hashing) => kept_to_replaced(hashing.mixture()),
        Randomizer::Hadamard(hadamard) => kept_to_replaced(hadamard.mixture()),
        Randomizer::Subset(subset) => {
            let any = u128::from((1 << subset.planes()) - subset.keep()) * u128::from(subset.omega());
            (any + u128::from(subset.keep()) * u128::from(protocol.k()), any)
        }
        Randomizer::Window(_) | Randomizer::Hybrid(_) => unreachable!("see `check_windows`"),
        Randomizer::Hierarchy(hierarchy) => kept_to_replaced(hierarchy.mixture()),
        Randomizer::CountMean(sketch) => one_hot(sketch.flip()),
        Randomizer::HadamardCountMean(sketch) => kept_to_replaced(sketch.mixture()),
        Randomizer::Prefixes(prefixes) => kept_to_replaced(prefixes.count_mean().mixture()),
        Randomizer::NoisySums(_) => panic!("its probabilities are no fractions"),
        Randomizer::Bloom(_)
        | Randomizer::LongitudinalFlips { .. }
        | Randomizer::LongitudinalHashing { .. }
        | Randomizer::SampledFlips(_) => {
            unreachable!("see local_longitudinal.rs")
        }
    };
    assert_eq!(most * ratio.1, least * ratio.0, "the closed form is the worst case: {}", protocol.to_json());
    ln_at_most_vartime(ratio.0, ratio.1, announced)
}

fn one_hot(flip: BitFlip) -> (u128, u128) {
    let (p, q) = (u128::from(flip.p()), u128::from(flip.q()));
    let (not_p, not_q) = ((1 << flip.planes()) - p, (1 << flip.planes()) - q);
    (p * not_q, not_p * q)
}

fn kept_to_replaced(mixture: Mixture) -> (u128, u128) {
    let support = mixture.support();
    (support.p.into(), support.q.into())
}

fn check(protocol: &Protocol) {
    check_below(protocol);
    assert!(protocol.epsilon() >= 0.999 * protocol.requested_epsilon(), "{}", protocol.to_json());
}

fn check_below(protocol: &Protocol) {
    let (achieved, requested) = (protocol.epsilon(), protocol.requested_epsilon());
    assert!(keeps_its_promise(protocol, achieved), "{}", protocol.to_json());
    assert!(achieved <= requested, "{}", protocol.to_json());
    assert!(!keeps_its_promise(protocol, achieved.next_down()), "the announced epsilon is the smallest double");
}

#[test]
fn unary_encodings_keep_their_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4] {
            check(UnaryEncoding::symmetric(k, epsilon).unwrap().protocol());
            check(UnaryEncoding::optimized(k, epsilon).unwrap().protocol());
        }
    }
}

#[test]
fn thresholds_keep_their_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4] {
            check_below(UnaryEncoding::threshold(k, epsilon).unwrap().protocol());
        }
    }
}

#[test]
fn custom_probabilities_keep_their_promise() {
    for (p, q) in [(0.75, 0.25), (0.5, 0.25), (0.3, 0.299), (0.9, 1e-6), (0.999_999, 0.999_998), (2e-5, 1e-5)] {
        let encoding = UnaryEncoding::custom(3, p, q).unwrap();
        check(encoding.protocol());
        let support = encoding.flip().support();
        let (rounded_p, rounded_q) = (support.probability(support.p), support.probability(support.q));
        assert!(rounded_p <= p && rounded_q >= q, "rounded in the private direction");
    }
}

#[test]
fn randomized_response_keeps_its_promise() {
    for epsilon in epsilons() {
        check(RandomizedResponse::new(epsilon).unwrap().protocol());
    }
    let coins = RandomizedResponse::coin_flips();
    check(coins.protocol());
    assert_eq!(coins.flip().support(), Support { p: 3, q: 1, one: 4 });
}

#[test]
fn generalized_randomized_response_keeps_its_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4, 7, 16] {
            check(GeneralizedRandomizedResponse::new(k, epsilon).unwrap().protocol());
        }
    }
}

#[test]
fn local_hashing_keeps_its_promise() {
    for epsilon in epsilons() {
        for (k, g) in [(2, Some(2)), (5, Some(4)), (4, Some(7)), (3, None)] {
            check(LocalHashing::new(k, g, epsilon).unwrap().protocol());
        }
    }
}

#[test]
fn hadamard_response_keeps_its_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 7, 16] {
            check(HadamardResponse::new(k, epsilon).unwrap().protocol());
        }
    }
}

#[test]
fn hierarchical_ranges_keep_their_promise() {
    for epsilon in epsilons() {
        for (k, branching) in [(2, 2), (5, 2), (9, 4), (16, 4), (6, 8)] {
            check(HierarchicalRange::new(k, epsilon, branching).unwrap().protocol());
        }
    }
}

#[test]
fn subset_selection_keeps_its_promise() {
    for epsilon in epsilons() {
        for (k, omega) in [(2, None), (5, Some(2)), (5, Some(4)), (7, Some(3))] {
            check(SubsetSelection::new(k, omega, epsilon).unwrap().protocol());
        }
    }
}

/// The largest ratio of the probabilities of one output between two positions.
fn worst_case_of_window(window: Window) -> (u128, u128) {
    let (outputs, width, mixture) = (window.outputs(), window.width(), window.mixture());
    // The probability of an output times outputs * width * 2^planes, straight from the definition.
    let any = u128::from((1 << mixture.planes()) - mixture.keep()) * u128::from(width);
    let kept = u128::from(mixture.keep()) * u128::from(outputs);
    let weight =
        |position: u32, output: u32| any + if (position..position + width).contains(&output) { kept } else { 0 };
    let total = (u128::from(outputs) * u128::from(width)) << mixture.planes();
    assert!((0..window.k()).all(|l| (0..outputs).map(|r| weight(l, r)).sum::<u128>() == total));
    let extremes = (0..outputs).map(|r| {
        let weights = (0..window.k()).map(|l| weight(l, r));
        (weights.clone().max().unwrap(), weights.min().unwrap())
    });
    extremes.max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap()
}

/// Whether no output of any window is more than e^epsilon times as likely for one position as for another. A number is
/// put on positions at random, which averages, and the part of a hybrid is chosen without regard to it.
fn windows_are_private(protocol: &Protocol, epsilon: f64) -> bool {
    let windows = match protocol.randomizer() {
        Randomizer::Window(window) => vec![window],
        Randomizer::Hybrid(hybrid) if hybrid.alpha() == 0 => vec![hybrid.duchi()],
        Randomizer::Hybrid(hybrid) => vec![hybrid.window(), hybrid.duchi()],
        _ => unreachable!(),
    };
    windows.into_iter().all(|window| {
        let (most, least) = worst_case_of_window(window);
        let closed = window.likelihood_ratio();
        assert_eq!(
            BigUint::from(most) * closed.denominator,
            BigUint::from(least) * closed.numerator,
            "the closed form is the worst case"
        );
        ln_at_most_vartime(closed.numerator, closed.denominator, epsilon)
    })
}

fn check_windows(protocol: &Protocol) {
    let (achieved, requested) = (protocol.epsilon(), protocol.requested_epsilon());
    assert!(windows_are_private(protocol, achieved), "{}", protocol.to_json());
    assert!(achieved <= requested && achieved >= 0.999 * requested, "{}", protocol.to_json());
    assert!(!windows_are_private(protocol, achieved.next_down()), "the announced epsilon is the smallest double");
}

#[test]
fn square_waves_keep_their_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 8, 33] {
            check_windows(SquareWave::new(k, epsilon).unwrap().protocol());
        }
    }
}

/// With the real number of outputs.
#[test]
fn means_keep_their_promise() {
    for epsilon in epsilons() {
        check_windows(WindowMean::duchi(epsilon).unwrap().protocol());
    }
    for epsilon in [MIN_EPSILON, 0.1, 0.5, 1.0, 3f64.ln(), 5.0, 10.0, 20.0, MAX_EPSILON] {
        check_windows(WindowMean::piecewise(epsilon).unwrap().protocol());
        check_windows(WindowMean::hybrid(epsilon).unwrap().protocol());
    }
}

/// The positive control: the mixture of all outputs alone, as if a window had a single one.
#[test]
fn a_window_that_is_forgotten_is_caught() {
    let Randomizer::Window(window) = SquareWave::new(6, 1.0).unwrap().protocol().randomizer() else { unreachable!() };
    assert_eq!(window.width(), 3);
    assert!(ln_at_most_vartime(window.likelihood_ratio().numerator, window.likelihood_ratio().denominator, 1.0));
    let (most, least) = worst_case_of_window(window);
    let forgotten = window.mixture().likelihood_ratio();
    assert!(most * forgotten.denominator < least * forgotten.numerator && !forgotten.is_at_most(1.0));
}

#[test]
fn sketches_keep_their_promise() {
    for epsilon in epsilons() {
        for rows in [1, 3] {
            check(HadamardCountMeanSketch::new(epsilon, rows, 8, 5).unwrap().protocol());
        }
        check(HadamardCountMeanSketch::new(epsilon, 2, 32, 5).unwrap().protocol());
        check(CountMeanSketch::new(epsilon, 2, 8, 5).unwrap().protocol());
        check(PrefixExtension::new(epsilon, 7, 3, 2, 8, 5).unwrap().protocol());
    }
}

/// The shares of all reports that support a value are those that estimates are made with.
#[test]
fn supports_are_as_often_as_announced() {
    for protocol in [
        *LocalHashing::new(5, Some(4), 1.0).unwrap().protocol(),
        *LocalHashing::new(7, Some(3), 0.3).unwrap().protocol(),
        *HadamardResponse::new(7, 1.0).unwrap().protocol(),
        *SubsetSelection::new(6, Some(2), 1.0).unwrap().protocol(),
        *SubsetSelection::new(10, None, 0.5).unwrap().protocol(),
        *GeneralizedRandomizedResponse::new(6, 1.0).unwrap().protocol(),
        *LongitudinalUnaryEncoding::new(5, 2.0, 1.0, Permanent::Optimized).unwrap().protocol(),
        *LongitudinalUnaryEncoding::new(4, 0.5, 0.4, Permanent::Symmetric).unwrap().protocol(),
        *Loloha::new(5, Some(4), 2.0, 1.0).unwrap().protocol(),
        *DBitFlip::new(6, 2, 1.0).unwrap().protocol(),
        *DBitFlip::new(5, 1, 0.5).unwrap().protocol(),
        *DBitFlip::new(4, 4, 1.0).unwrap().protocol(),
    ] {
        let (count, total) = reports(&protocol);
        let width = protocol.report_bytes();
        let supported = |report: usize| {
            let mut counts = Accumulator::new(protocol);
            counts.add(&report.to_le_bytes()[..width], width, 1).unwrap();
            counts.counters().to_vec()
        };
        let supported: Vec<Vec<u64>> = (0..count).map(supported).collect();
        let support = protocol.support().unwrap();
        for (value, other) in (0..protocol.k() as usize).flat_map(|v| (0..protocol.k() as usize).map(move |w| (v, w))) {
            // A malformed report supports nothing, and has no weight.
            let weights = (0..count).filter(|&report| supported[report][other] == 1);
            let share: BigUint = weights.map(|report| weight(&protocol, value, report)).sum();
            let announced = if value == other { support.p } else { support.q };
            // Those of local hashing are rounded to 52 binary digits.
            let (share, announced) = (share * support.one, &total * announced);
            let error = if share > announced { &share - &announced } else { &announced - &share };
            assert!(error << 50usize < announced, "{}: {value} {other}", protocol.to_json());
        }
    }
}

/// The largest difference of the distances of a row of sums from two exact rows, times epsilon / (2 unit), is the logarithm
/// of the likelihood ratio: that of the exact sums of discrete Laplace noise of that scale, and so of clamped ones.
#[test]
fn summation_keeps_its_promise() {
    for epsilon in epsilons() {
        let encoding = SummationHistogramEncoding::new(3, epsilon).unwrap();
        let Randomizer::NoisySums(sums) = encoding.protocol().randomizer() else { panic!("it adds up numbers") };
        let unit = i64::from(sums.unit());
        let exact = |value: usize| (0..3).map(move |column| if column == value { unit } else { 0 });
        let distance =
            |row: [i64; 3], value: usize| row.into_iter().zip(exact(value)).map(|(a, b)| (a - b).abs()).sum::<i64>();
        let told = |i: i64| [-5 * unit, -1, 0, unit / 2, unit, 3 * unit][i as usize];
        let rows = (0..6).flat_map(|i| (0..6).flat_map(move |j| (0..6).map(move |l| [told(i), told(j), told(l)])));
        let pairs = rows.flat_map(|row| (0..9).map(move |pair| (row, pair / 3, pair % 3)));
        let worst: i64 = pairs.map(|(row, a, b)| distance(row, a) - distance(row, b)).max().unwrap();
        assert_eq!(worst, 2 * unit);
        assert_eq!(encoding.protocol().epsilon(), epsilon);
    }
}

/// The positive control: a protocol that announces the epsilon of one bit, as pure-LDP's unary client once did, fails.
#[test]
fn a_client_that_spends_twice_is_caught() {
    let twice = *UnaryEncoding::custom(3, 0.75, 0.25).unwrap().protocol();
    assert!(!keeps_its_promise(&twice, 3f64.ln()));
    assert!(keeps_its_promise(&twice, 2.0 * 3f64.ln().next_up()));
}
