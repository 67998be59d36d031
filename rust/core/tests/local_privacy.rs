//! The worst-case likelihood ratio of every local protocol, over all inputs and outputs, in exact arithmetic.

use dpnoise_core::local::{
    Accumulator, BitFlip, CountMeanSketch, DBitFlip, DuchiMean, GaussianMean, GeneralizedRandomizedResponse,
    HadamardCountMeanSketch, HadamardResponse, Hashing, HierarchicalRange, HybridMean, LocalHashing, Loloha,
    LongitudinalUnaryEncoding, MAX_EPSILON, MIN_EPSILON, Mixture, NoisySums, OptimizedUnaryEncoding, Permanent,
    PiecewiseMean, PrefixExtension, ProjectiveGeometryResponse, Protocol, RandomizedResponse, SquareWave,
    SubsetSelection, SummationHistogramEncoding, Support, SymmetricUnaryEncoding, ThresholdHistogramEncoding,
    UnaryEncoding, Window, hadamard_entry,
};
use dpnoise_kernels::arith::log::{ln_at_most_vartime, ln_upper_vartime};
use num_bigint::BigUint;

/// From the smallest to the largest epsilon, with awkward ones between.
fn epsilons() -> Vec<f64> {
    let steps = (0..=100).map(|i| MIN_EPSILON * (MAX_EPSILON / MIN_EPSILON).powf(f64::from(i) / 100.0));
    let awkward = [MIN_EPSILON, MIN_EPSILON.next_up(), 0.1, 0.5, 1.0, 2f64.ln(), 3f64.ln(), 3f64.ln().next_up(), 10.0];
    steps.map(|epsilon| epsilon.clamp(MIN_EPSILON, MAX_EPSILON)).chain(awkward).chain([MAX_EPSILON]).collect()
}

/// What is done to the bits of rows of which one is set, or to the one bit of randomised response.
fn flip_of_rows(protocol: &Protocol) -> Option<BitFlip> {
    match protocol {
        Protocol::RandomizedResponse(response) => Some(response.flip()),
        Protocol::SymmetricUnaryEncoding(encoding) => Some(encoding.flip()),
        Protocol::OptimizedUnaryEncoding(encoding) => Some(encoding.flip()),
        Protocol::ThresholdHistogramEncoding(encoding) => Some(encoding.flip()),
        Protocol::UnaryEncoding(encoding) => Some(encoding.flip()),
        Protocol::LongitudinalUnaryEncoding(encoding) => Some(encoding.flips().both()),
        _ => None,
    }
}

/// Protocols with windows, sums or two rounds have tests of their own, which `the_example_of_every_family_keeps_its_promise` names.
fn forgotten(protocol: &Protocol) -> ! {
    let name = protocol.name();
    panic!(
        "{name} has no arm here: write the probabilities of its reports in `weight`, `reports` and `keeps_its_promise`"
    )
}

/// The probability of `report` for `value` times some number, straight from the definition of the protocol.
fn weight(protocol: &Protocol, value: usize, report: usize) -> BigUint {
    if let Some(flip) = flip_of_rows(protocol) {
        return row_weight(protocol, flip, value, report);
    }
    if let Some(hashing) = hashing_of(protocol) {
        let (seed, hash) = (report / hashing.mixture().k() as usize, report % hashing.mixture().k() as usize);
        let (a, b) = (seed as u64 / hashing.prime(), seed as u64 % hashing.prime());
        return symbol_weight(hashing.mixture(), hashing.hash(a, b, value as u32), hash);
    }
    match protocol {
        Protocol::GeneralizedRandomizedResponse(response) => symbol_weight(response.mixture(), value as u32, report),
        Protocol::HadamardResponse(hadamard) => {
            let entry = hadamard_entry(value as u32, (report / 2) as u32);
            symbol_weight(hadamard.mixture(), entry, report % 2)
        }
        Protocol::SubsetSelection(subset) if report.count_ones() != subset.omega() => BigUint::ZERO,
        Protocol::SubsetSelection(subset) => {
            // One of all sets, or, of those with the value, k / omega times as few, an own share.
            let any = ((1 << subset.mixture().planes()) - subset.mixture().keep()) * u64::from(subset.omega());
            let kept = if report >> value & 1 == 1 { subset.mixture().keep() } else { 0 };
            BigUint::from(any) + BigUint::from(kept) * protocol.k()
        }
        Protocol::DBitFlip(flips) => {
            let of_sample = |sample: usize| {
                let bits = (0..protocol.k() as usize).filter(|bit| sample >> bit & 1 == 1);
                bits.fold(BigUint::from(1u32), |weight, bit| {
                    weight * bit_weight(flips.flip(), value == bit, report, bit)
                })
            };
            samples(protocol.k(), flips.d()).filter(|sample| report & !sample == 0).map(of_sample).sum()
        }
        Protocol::HierarchicalRange(hierarchy) if !is_report(hierarchy, report) => BigUint::ZERO,
        Protocol::HierarchicalRange(hierarchy) => {
            let (bits, column) = level_and_column(report / 2);
            let node = value as u32 >> (hierarchy.depth() - bits);
            let columns_alike = 1u32 << (hierarchy.depth() - bits);
            symbol_weight(hierarchy.mixture(), hadamard_entry(node, column), report % 2) * columns_alike
        }
        // Whatever the hash functions are: a value is the column that they give it, and the row is above the bits.
        Protocol::CountMeanSketch(sketch) => {
            let bits = 0..protocol.k() as usize;
            bits.map(|bit| BigUint::from(bit_weight(sketch.flip(), value == bit, report, bit))).product()
        }
        Protocol::HadamardCountMeanSketch(sketch) => {
            let entry = hadamard_entry(value as u32, (report / 2) as u32 % protocol.k());
            symbol_weight(sketch.mixture(), entry, report % 2)
        }
        Protocol::ProjectiveGeometryResponse(response) => {
            // Any report, or one of those on the hyperplane of the value.
            let (mixture, space) = (response.mixture(), response.space());
            let any = BigUint::from((1 << mixture.planes()) - mixture.keep()) * space.points_of_hyperplane();
            let is_supported = is_on_hyperplane(*response, value as u64, report as u64);
            if is_supported { any + BigUint::from(mixture.keep()) * space.points() } else { any }
        }
        // A value is the column of all of its prefixes.
        Protocol::PrefixExtension(prefixes) => {
            let entry = hadamard_entry(value as u32, (report / 2) as u32 % protocol.k());
            symbol_weight(prefixes.mixture(), entry, report % 2)
        }
        other => forgotten(other),
    }
}

/// Whether the digits of a value and those of a report in reverse have a sum of products that is a multiple of q.
fn is_on_hyperplane(response: ProjectiveGeometryResponse, value: u64, report: u64) -> bool {
    let (prime, dimension) = (u64::from(response.space().prime()), response.space().dimension());
    // Point r is the r-th number whose highest digit is 1.
    let digits = |point: u64| {
        let (mut leading, mut rest) = (1, point);
        while rest >= leading {
            rest -= leading;
            leading *= prime;
        }
        (0..dimension).map(move |place| (leading + rest) / prime.pow(place) % prime).collect::<Vec<u64>>()
    };
    let products = digits(value).into_iter().zip(digits(report).into_iter().rev());
    products.map(|(of_value, of_report)| of_value * of_report).sum::<u64>() % prime == 0
}

/// The hash functions of local hashing, and what is done to hashes.
fn hashing_of(protocol: &Protocol) -> Option<Hashing> {
    match protocol {
        Protocol::LocalHashing(local) => Some(local.hashing()),
        Protocol::Loloha(loloha) => Some(loloha.hashing()),
        _ => None,
    }
}

/// The same for a row whose bits are all flipped.
fn row_weight(protocol: &Protocol, flip: BitFlip, value: usize, report: usize) -> BigUint {
    (0..protocol.report_bits()).fold(BigUint::from(1u32), |weight, bit| {
        let encoded = match protocol {
            Protocol::RandomizedResponse(_) => value == 1,
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
fn is_report(hierarchy: &HierarchicalRange, report: usize) -> bool {
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
    if let Some(flip) = flip_of_rows(protocol) {
        return rows(protocol, flip);
    }
    if let Some(hashing) = hashing_of(protocol) {
        return seeded_reports(hashing.prime() * hashing.prime(), hashing.mixture());
    }
    match protocol {
        Protocol::GeneralizedRandomizedResponse(response) => seeded_reports(1, response.mixture()),
        Protocol::HadamardResponse(hadamard) => seeded_reports(hadamard.order().into(), hadamard.mixture()),
        Protocol::SubsetSelection(subset) => {
            let sets = samples(protocol.k(), subset.omega()).count();
            (1 << protocol.k(), BigUint::from(sets * subset.omega() as usize) << subset.mixture().planes() as usize)
        }
        Protocol::DBitFlip(flips) => {
            let sets = samples(protocol.k(), flips.d()).count();
            (1 << protocol.k(), BigUint::from(sets) << (flips.flip().planes() * flips.d()) as usize)
        }
        Protocol::HierarchicalRange(hierarchy) => {
            // Columns of small levels have the weight of several, so that all levels weigh as much as that of the leaves.
            let (_, of_leaves) = seeded_reports(1 << hierarchy.depth(), hierarchy.mixture());
            (4 << hierarchy.depth(), of_leaves * hierarchy.levels())
        }
        Protocol::CountMeanSketch(sketch) => {
            let (rows, bits) = (sketch.sketch().rows() as usize, protocol.k() as usize);
            (rows << bits, BigUint::from(rows) << (sketch.flip().planes() as usize * bits))
        }
        Protocol::HadamardCountMeanSketch(sketch) => seeded_reports(sketch.sketch().cells().into(), sketch.mixture()),
        Protocol::ProjectiveGeometryResponse(response) => {
            let (points, width) = (response.space().points(), response.space().points_of_hyperplane());
            (points as usize, BigUint::from(points * width) << response.mixture().planes() as usize)
        }
        Protocol::PrefixExtension(prefixes) => {
            let cells = prefixes.levels() * prefixes.rows() * protocol.k();
            seeded_reports(cells.into(), prefixes.mixture())
        }
        other => forgotten(other),
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
    let ratio = match protocol {
        Protocol::RandomizedResponse(response) => {
            let flip = response.flip();
            let (p, q) = (u128::from(flip.p()), u128::from(flip.q()));
            let (not_p, not_q) = ((1 << flip.planes()) - p, (1 << flip.planes()) - q);
            (p, q).max((not_q, not_p))
        }
        Protocol::SymmetricUnaryEncoding(encoding) => one_hot(encoding.flip()),
        Protocol::OptimizedUnaryEncoding(encoding) => one_hot(encoding.flip()),
        Protocol::ThresholdHistogramEncoding(encoding) => one_hot(encoding.flip()),
        Protocol::UnaryEncoding(encoding) => one_hot(encoding.flip()),
        Protocol::GeneralizedRandomizedResponse(response) => kept_to_replaced(response.mixture()),
        Protocol::LocalHashing(local) => kept_to_replaced(local.hashing().mixture()),
        Protocol::HadamardResponse(hadamard) => kept_to_replaced(hadamard.mixture()),
        Protocol::SubsetSelection(subset) => {
            let mixture = subset.mixture();
            let any = u128::from((1 << mixture.planes()) - mixture.keep()) * u128::from(subset.omega());
            (any + u128::from(mixture.keep()) * u128::from(protocol.k()), any)
        }
        Protocol::HierarchicalRange(hierarchy) => kept_to_replaced(hierarchy.mixture()),
        Protocol::CountMeanSketch(sketch) => one_hot(sketch.flip()),
        Protocol::HadamardCountMeanSketch(sketch) => kept_to_replaced(sketch.mixture()),
        Protocol::PrefixExtension(prefixes) => kept_to_replaced(prefixes.mixture()),
        Protocol::ProjectiveGeometryResponse(response) => {
            let (mixture, space) = (response.mixture(), response.space());
            let any = u128::from((1 << mixture.planes()) - mixture.keep()) * u128::from(space.points_of_hyperplane());
            (any + u128::from(mixture.keep()) * u128::from(space.points()), any)
        }
        other => forgotten(other),
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

/// Every family is here or in local_longitudinal.rs: `forgotten` names others.
#[test]
fn the_example_of_every_family_keeps_its_promise() {
    for protocol in Protocol::FAMILIES.iter().map(|info| info.example().unwrap()) {
        match protocol {
            Protocol::DuchiMean(_) | Protocol::PiecewiseMean(_) | Protocol::HybridMean(_) | Protocol::SquareWave(_) => {
                check_windows(&protocol);
            }
            Protocol::GaussianMean(mean) => check_gaussian(mean),
            // Exact noise, whose epsilon is the requested one, and two rounds.
            Protocol::LaplaceMean(_)
            | Protocol::SummationHistogramEncoding(_)
            | Protocol::LongitudinalUnaryEncoding(_)
            | Protocol::Loloha(_)
            | Protocol::DBitFlip(_)
            | Protocol::Rappor(_) => {}
            Protocol::ThresholdHistogramEncoding(_) => check_below(&protocol),
            _ => check(&protocol),
        }
    }
}

/// A row without a bit, which is value k here, against one with a bit: the exact worst case, and its share of epsilon.
#[test]
fn a_row_without_a_bit_differs_from_others_by_less_than_epsilon() {
    let rows = |k| -> [(Protocol, f64); 5] {
        [
            (SymmetricUnaryEncoding::new(k, 1.0).unwrap().into(), 0.50),
            (OptimizedUnaryEncoding::new(k, 1.0).unwrap().into(), 0.62),
            (OptimizedUnaryEncoding::new(k, 4.0).unwrap().into(), 0.83),
            (ThresholdHistogramEncoding::new(k, 1.0).unwrap().into(), 0.53),
            (UnaryEncoding::new(k, 0.5, 0.125).unwrap().into(), 0.71),
        ]
    };
    for (protocol, share) in [2, 3, 4].into_iter().flat_map(rows) {
        let (flip, none) = (flip_of_rows(&protocol).unwrap(), protocol.k() as usize);
        let (p, q, one) = (u128::from(flip.p()), u128::from(flip.q()), 1 << flip.planes());
        let closed = if p * (one - p) >= q * (one - q) { (p, q) } else { (one - q, one - p) };
        let (count, total) = reports(&protocol);
        assert_eq!((0..count).map(|report| weight(&protocol, none, report)).sum::<BigUint>(), total);
        let (mut reached, mut exceeded) = (false, false);
        for (value, report) in (0..none).flat_map(|value| (0..count).map(move |report| (value, report))) {
            let (with, without) = (weight(&protocol, value, report), weight(&protocol, none, report));
            let (most, least) = if with > without { (with, without) } else { (without, with) };
            let (left, right) = (most * closed.1, least * closed.0);
            (reached, exceeded) = (reached | (left == right), exceeded | (left > right));
        }
        assert!(reached && !exceeded, "{}", protocol.to_json());
        let cost = ln_upper_vartime(closed.0, closed.1);
        assert!((cost / protocol.epsilon() - share).abs() < 0.005, "{cost} {}", protocol.to_json());
    }
}

#[test]
fn unary_encodings_keep_their_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4] {
            check(&Protocol::from(SymmetricUnaryEncoding::new(k, epsilon).unwrap()));
            check(&Protocol::from(OptimizedUnaryEncoding::new(k, epsilon).unwrap()));
        }
    }
}

#[test]
fn thresholds_keep_their_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4] {
            check_below(&Protocol::from(ThresholdHistogramEncoding::new(k, epsilon).unwrap()));
        }
    }
}

#[test]
fn custom_probabilities_keep_their_promise() {
    for (p, q) in [(0.75, 0.25), (0.5, 0.25), (0.3, 0.299), (0.9, 1e-6), (0.999_999, 0.999_998), (2e-5, 1e-5)] {
        let encoding = UnaryEncoding::new(3, p, q).unwrap();
        check(&Protocol::from(encoding));
        let support = encoding.flip().support();
        let (rounded_p, rounded_q) = (support.probability(support.p), support.probability(support.q));
        assert!(rounded_p <= p && rounded_q >= q, "rounded in the private direction");
    }
}

#[test]
fn randomized_response_keeps_its_promise() {
    for epsilon in epsilons() {
        check(&Protocol::from(RandomizedResponse::new(epsilon).unwrap()));
    }
    for p in [0.500_000_5, 0.6, 0.8, 0.999, 1.0 - 1e-13] {
        check(&Protocol::from(RandomizedResponse::with_p(p).unwrap()));
    }
    let coins = RandomizedResponse::coin_flips();
    check(&Protocol::from(coins));
    assert_eq!(coins.flip().support(), Support { p: 3, q: 1, one: 4 });
}

#[test]
fn generalized_randomized_response_keeps_its_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4, 7, 16] {
            check(&Protocol::from(GeneralizedRandomizedResponse::new(k, epsilon).unwrap()));
        }
    }
}

#[test]
fn local_hashing_keeps_its_promise() {
    for epsilon in epsilons() {
        for (k, g) in [(2, Some(2)), (5, Some(4)), (4, Some(7)), (3, None)] {
            check(&Protocol::from(LocalHashing::new(k, epsilon, g).unwrap()));
        }
    }
}

#[test]
fn hadamard_response_keeps_its_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 7, 16] {
            check(&Protocol::from(HadamardResponse::new(k, epsilon).unwrap()));
        }
    }
}

#[test]
fn hierarchical_ranges_keep_their_promise() {
    for epsilon in epsilons() {
        for (k, branching) in [(2, 2), (5, 2), (9, 4), (16, 4), (6, 8)] {
            check(&Protocol::from(HierarchicalRange::new(k, epsilon, branching).unwrap()));
        }
    }
}

#[test]
fn subset_selection_keeps_its_promise() {
    for epsilon in epsilons() {
        for (k, omega) in [(2, None), (5, Some(2)), (5, Some(4)), (7, Some(3))] {
            check(&Protocol::from(SubsetSelection::new(k, epsilon, omega).unwrap()));
        }
    }
}

#[test]
fn projective_geometry_response_keeps_its_promise() {
    for epsilon in epsilons() {
        let spaces = [(2, 2), (7, 2), (9, 2), (4, 3), (13, 3), (6, 5), (20, 5), (8, 7), (12, 11)];
        for (k, prime) in spaces.map(|(k, prime)| (k, Some(prime))).into_iter().chain([(2, None), (5, None)]) {
            check(&Protocol::from(ProjectiveGeometryResponse::new(k, epsilon, prime).unwrap()));
        }
    }
}

/// The positive control: a report that is kept, as if it were the only one on its hyperplane.
#[test]
fn a_hyperplane_that_is_forgotten_is_caught() {
    let response = ProjectiveGeometryResponse::new(13, 1.0, Some(3)).unwrap();
    let (most, least) = worst_case(&Protocol::from(response));
    let forgotten = response.mixture().likelihood_ratio();
    assert!(most * forgotten.denominator < least * forgotten.numerator && !forgotten.is_at_most(1.0));
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
    let windows = match protocol {
        Protocol::SquareWave(wave) => vec![wave.window()],
        Protocol::DuchiMean(mean) => vec![mean.window()],
        Protocol::PiecewiseMean(mean) => vec![mean.window()],
        Protocol::HybridMean(hybrid) if hybrid.alpha() == 0 => vec![hybrid.duchi()],
        Protocol::HybridMean(hybrid) => vec![hybrid.window(), hybrid.duchi()],
        other => forgotten(other),
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
            check_windows(&Protocol::from(SquareWave::new(k, epsilon).unwrap()));
        }
    }
}

/// With the real number of outputs.
#[test]
fn means_keep_their_promise() {
    for epsilon in epsilons() {
        check_windows(&Protocol::from(DuchiMean::new(epsilon).unwrap()));
    }
    for epsilon in [MIN_EPSILON, 0.1, 0.5, 1.0, 3f64.ln(), 5.0, 10.0, 20.0, MAX_EPSILON] {
        check_windows(&Protocol::from(PiecewiseMean::new(epsilon).unwrap()));
        check_windows(&Protocol::from(HybridMean::new(epsilon).unwrap()));
    }
}

/// The positive control: the mixture of all outputs alone, as if a window had a single one.
#[test]
fn a_window_that_is_forgotten_is_caught() {
    let window = SquareWave::new(6, 1.0).unwrap().window();
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
            check(&Protocol::from(HadamardCountMeanSketch::new(epsilon, rows, 8, 5).unwrap()));
        }
        check(&Protocol::from(HadamardCountMeanSketch::new(epsilon, 2, 32, 5).unwrap()));
        check(&Protocol::from(CountMeanSketch::new(epsilon, 2, 8, 5).unwrap()));
        check(&Protocol::from(PrefixExtension::new(7, epsilon, 3, 2, 8, 5).unwrap()));
    }
}

/// The shares of all reports that support a value are those that estimates are made with.
#[test]
fn supports_are_as_often_as_announced() {
    for protocol in [
        Protocol::from(LocalHashing::new(5, 1.0, Some(4)).unwrap()),
        Protocol::from(LocalHashing::new(7, 0.3, Some(3)).unwrap()),
        Protocol::from(HadamardResponse::new(7, 1.0).unwrap()),
        Protocol::from(SubsetSelection::new(6, 1.0, Some(2)).unwrap()),
        Protocol::from(SubsetSelection::new(10, 0.5, None).unwrap()),
        Protocol::from(GeneralizedRandomizedResponse::new(6, 1.0).unwrap()),
        Protocol::from(LongitudinalUnaryEncoding::new(5, 2.0, 1.0, Permanent::Optimized).unwrap()),
        Protocol::from(LongitudinalUnaryEncoding::new(4, 0.5, 0.4, Permanent::Symmetric).unwrap()),
        Protocol::from(Loloha::new(5, 2.0, 1.0, Some(4)).unwrap()),
        Protocol::from(DBitFlip::new(6, 1.0, 2).unwrap()),
        Protocol::from(DBitFlip::new(5, 0.5, 1).unwrap()),
        Protocol::from(DBitFlip::new(4, 1.0, 4).unwrap()),
    ] {
        let (count, total) = reports(&protocol);
        let width = protocol.report_bytes();
        let supported = |report: usize| {
            let mut counts = Accumulator::new(protocol).unwrap();
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
        let unit = i64::from(encoding.sums().unit());
        let exact = |value: usize| (0..3).map(move |column| if column == value { unit } else { 0 });
        let distance =
            |row: [i64; 3], value: usize| row.into_iter().zip(exact(value)).map(|(a, b)| (a - b).abs()).sum::<i64>();
        let told = |i: i64| [-5 * unit, -1, 0, unit / 2, unit, 3 * unit][i as usize];
        let rows = (0..6).flat_map(|i| (0..6).flat_map(move |j| (0..6).map(move |l| [told(i), told(j), told(l)])));
        let pairs = rows.flat_map(|row| (0..9).map(move |pair| (row, pair / 3, pair % 3)));
        let worst: i64 = pairs.map(|(row, a, b)| distance(row, a) - distance(row, b)).max().unwrap();
        assert_eq!(worst, 2 * unit);
        assert_eq!(Protocol::from(encoding).epsilon(), epsilon);
    }
}

/// The sum of P(y | 1) - e^epsilon P(y | -1) over all noisy numbers y where it is positive: the smallest delta. Floating
/// point gives it with an error below 1e-9, relatively: all terms are positive, and no sum loses more.
fn delta_of_gaussian(sums: NoisySums, sigma: f64, epsilon: f64) -> f64 {
    let unit = f64::from(sums.unit());
    // The privacy loss of y is 2 unit y / sigma^2.
    let first = (epsilon * sigma * sigma / (2.0 * unit)).ceil();
    let steps = (unit + 10.0 * sigma - first) as u32;
    let terms = (0..steps).map(|step| {
        let y = first + f64::from(step);
        let from_one = (y - unit) / sigma;
        (-0.5 * from_one * from_one).exp() * -(epsilon - 2.0 * unit * y / sigma / sigma).exp_m1()
    });
    // The weights of all whole numbers add up to this but for a share of 2 e^(-2 pi^2 sigma^2), by Poisson's formula.
    terms.sum::<f64>() / (sigma * std::f64::consts::TAU.sqrt())
}

/// The delta of the announced sigma is at most the announced one, and that of 1 less is above.
fn check_gaussian(mean: GaussianMean) {
    let protocol = Protocol::from(mean);
    let (epsilon, delta) = (protocol.epsilon(), protocol.delta());
    assert_eq!(epsilon, protocol.requested_epsilon());
    let sigma = f64::from(mean.sigma());
    let found = delta_of_gaussian(mean.sums(), sigma, epsilon);
    assert!(found <= delta * (1.0 + 1e-9), "{found} {delta}");
    assert!(found >= delta * (1.0 - 100.0 / sigma), "{found} {delta}: no more noise than is needed");
    // The positive control: 0.01 % less noise.
    assert!(delta_of_gaussian(mean.sums(), 0.9999 * sigma, epsilon) > delta * (1.0 + 1e-6));
}

#[test]
fn gaussian_means_keep_their_promise() {
    for (epsilon, delta) in [(0.5, 1e-3), (4.0, 1e-6), (MAX_EPSILON, 1e-6), (MAX_EPSILON, 0.9)] {
        check_gaussian(GaussianMean::new(epsilon, delta).unwrap());
    }
}

/// The positive control: a protocol that announces the epsilon of one bit, as pure-LDP's unary client once did, fails.
#[test]
fn a_client_that_spends_twice_is_caught() {
    let twice = Protocol::from(UnaryEncoding::new(3, 0.75, 0.25).unwrap());
    assert!(!keeps_its_promise(&twice, 3f64.ln()));
    assert!(keeps_its_promise(&twice, 2.0 * 3f64.ln().next_up()));
}
