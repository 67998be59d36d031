//! Longitudinal protocols: what several reports of one person tell together, in exact arithmetic, from the definitions of
//! their two rounds; and what stays the same for ever.

use dpnoise_core::local::{
    Accumulator, BitFlip, ClientMemo, DBitFlip, Loloha, LongitudinalUnaryEncoding, Mixture, Permanent, Probabilities,
    Protocol, Rappor, Remembering, ValueKind, Values,
};
use dpnoise_core::rng::SeededRng;
use dpnoise_kernels::arith::log::ln_at_most_vartime;
use num_bigint::BigUint;
use num_rational::Ratio;

/// Probabilities by input and output, as integers over a common denominator: fractions take fifty times as long.
struct Law {
    weights: Vec<Vec<BigUint>>,
    total: BigUint,
}

/// What a person does: the permanent answer to an input, and the report made of an answer.
struct Rounds {
    permanent: Law,
    instantaneous: Law,
}

/// The law of rows of `bits` bits, each flipped.
fn flipped(flip: BitFlip, bits: usize, inputs: impl Iterator<Item = usize>) -> Law {
    let one = BigUint::from(1u32) << flip.planes() as usize;
    let weight = |from: usize, to: usize| {
        let set = BigUint::from(if from == 1 { flip.p() } else { flip.q() });
        if to == 1 { set } else { &one - set }
    };
    let bit = |number: usize, i: usize| number >> i & 1;
    let row = |input, out| (0..bits).map(|i| weight(bit(input, i), bit(out, i))).product();
    let weights = inputs.map(|input| (0..1 << bits).map(|out| row(input, out)).collect()).collect();
    Law { weights, total: one.pow(bits as u32) }
}

/// The law of symbols, each kept or replaced.
fn mixed(mixture: Mixture) -> Law {
    let (k, one) = (mixture.k(), BigUint::from(1u32) << mixture.planes() as usize);
    let replaced = &one - mixture.keep();
    let weight = |kept: bool| &replaced + if kept { mixture.keep() * BigUint::from(k) } else { 0u32.into() };
    let weights = (0..k).map(|input| (0..k).map(|out| weight(out == input)).collect()).collect();
    Law { weights, total: one * k }
}

/// The law of rows of `bits` bits that stay as they are.
fn unchanged(bits: usize) -> Law {
    let row = |input: u32| (0..1 << bits).map(|out: u32| u32::from(out == input).into()).collect();
    Law { weights: (0..1 << bits).map(row).collect(), total: 1u32.into() }
}

/// The rounds of a protocol: of LOLOHA with hashes as inputs, of dBitFlip with the first d values sampled, and of RAPPOR with
/// all Bloom filters that hash functions could give.
fn rounds(protocol: &Protocol) -> Rounds {
    let k = protocol.k() as usize;
    match protocol {
        Protocol::LongitudinalUnaryEncoding(encoding) => Rounds {
            permanent: flipped(encoding.flips().permanent(), k, (0..k).map(|value| 1 << value)),
            instantaneous: flipped(encoding.flips().instantaneous(), k, 0..1 << k),
        },
        Protocol::Loloha(loloha) => {
            let rounds = loloha.rounds();
            Rounds { permanent: mixed(rounds.permanent()), instantaneous: mixed(rounds.instantaneous()) }
        }
        Protocol::DBitFlip(flips) => {
            let d = flips.d() as usize;
            let sampled = |value: usize| (1 << value) & ((1 << d) - 1);
            Rounds { permanent: flipped(flips.flip(), d, (0..k).map(sampled)), instantaneous: unchanged(d) }
        }
        Protocol::Rappor(bloom) => {
            let bits = k;
            let filters = (1..1usize << bits).filter(|filter| (1..=bloom.num_hashes()).contains(&filter.count_ones()));
            Rounds {
                permanent: flipped(bloom.flips().permanent(), bits, filters),
                instantaneous: flipped(bloom.flips().instantaneous(), bits, 0..1 << bits),
            }
        }
        _ => unreachable!("only longitudinal protocols are given"),
    }
}

impl Rounds {
    /// The probability of reports on a sequence of inputs, over `total`: those on one input are made of one permanent
    /// answer.
    fn probability(&self, inputs: &[usize], reports: &[usize]) -> BigUint {
        let of_input = |input: usize| -> BigUint {
            let own = || reports.iter().zip(inputs).filter(|&(_, &of)| of == input).map(|(&report, _)| report);
            let given = |answer: usize| -> BigUint {
                own().map(|report| &self.instantaneous.weights[answer][report]).product()
            };
            let answers = self.permanent.weights[input].iter().enumerate();
            answers.map(|(answer, weight)| weight * given(answer)).sum()
        };
        let mut distinct = inputs.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let further = (inputs.len() - distinct.len()) as u32;
        distinct.into_iter().map(of_input).product::<BigUint>() * self.permanent.total.pow(further)
    }

    /// What all probabilities of `times` reports sum to.
    fn total(&self, times: usize) -> BigUint {
        (&self.permanent.total * &self.instantaneous.total).pow(times as u32)
    }

    /// The largest ratio of the probabilities of the same reports between two of these sequences of inputs; none if it is
    /// infinite.
    fn worst(&self, sequences: &[Vec<usize>]) -> Option<Ratio<BigUint>> {
        let (times, zero) = (sequences[0].len(), BigUint::default());
        let (mut worst, mut totals) = (Some(Ratio::from(BigUint::from(1u32))), vec![zero.clone(); sequences.len()]);
        for reports in tuples(self.instantaneous.weights[0].len(), times) {
            let laws: Vec<BigUint> = sequences.iter().map(|inputs| self.probability(inputs, &reports)).collect();
            let (most, least) = (laws.iter().max().unwrap(), laws.iter().min().unwrap());
            if *most > zero {
                let ratio = || Ratio::new(most.clone(), least.clone());
                worst = worst.take().filter(|_| *least > zero).map(|worst| worst.max(ratio()));
            }
            totals.iter_mut().zip(laws).for_each(|(total, law)| *total += law);
        }
        assert!(totals.iter().all(|total| *total == self.total(times)), "the probabilities of all reports sum to 1");
        worst
    }

    /// The same for the permanent answer to one input, if it were known.
    fn worst_of_answers(&self) -> Ratio<BigUint> {
        let of_answer = |answer: usize| {
            let laws = || self.permanent.weights.iter().map(|law| &law[answer]);
            Ratio::new(laws().max().unwrap().clone(), laws().min().unwrap().clone())
        };
        (0..self.permanent.weights[0].len()).map(of_answer).max().unwrap()
    }

    /// The same for people whose value does not change, and who report that often.
    fn worst_of_one_value(&self, times: usize) -> Ratio<BigUint> {
        let constant: Vec<Vec<usize>> = (0..self.permanent.weights.len()).map(|input| vec![input; times]).collect();
        self.worst(&constant).expect("no report is impossible for one value alone")
    }
}

/// All tuples of `length` numbers below `count`.
fn tuples(count: usize, length: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..count.pow(length as u32)).map(move |number| (0..length).map(|i| number / count.pow(i as u32) % count).collect())
}

/// Whether a ratio is at most e^epsilon. It is rounded up to a fraction of 120 binary digits, exact if it has no more.
fn is_within(ratio: &Ratio<BigUint>, epsilon: f64) -> bool {
    let bits = ratio.numer().bits().max(ratio.denom().bits());
    let shift = bits.saturating_sub(120);
    let (numerator, denominator) = (ratio.numer() >> shift, ratio.denom() >> shift);
    let up = u128::from(shift > 0);
    ln_at_most_vartime(u128::try_from(numerator).unwrap() + up, u128::try_from(denominator).unwrap(), epsilon)
}

/// Protocols of every family but RAPPOR, small enough for their reports to be enumerated.
fn protocols() -> Vec<Protocol> {
    let families = Protocol::FAMILIES.iter().filter(|info| info.takes == ValueKind::Remembering && !info.takes_texts);
    let mut all: Vec<Protocol> = families.map(|info| info.example().unwrap()).collect();
    for (permanent, first) in [(1e-4, 5e-5), (0.5, 0.1), (1.0, 0.999), (2.0, 1.0), (3f64.ln(), 2f64.ln()), (6.0, 2.0)] {
        for k in [2, 3] {
            for round in [Permanent::Optimized, Permanent::Symmetric] {
                all.push(Protocol::from(LongitudinalUnaryEncoding::new(k, permanent, first, round).unwrap()));
            }
        }
        for g in [2, 3, 5] {
            all.push(Protocol::from(Loloha::new(9, permanent, first, Some(g)).unwrap()));
        }
        for (k, d) in [(2, 1), (2, 2), (3, 1), (4, 2), (4, 3), (3, 3)] {
            all.push(Protocol::from(DBitFlip::new(k, permanent, d).unwrap()));
        }
    }
    all
}

#[test]
fn all_reports_on_one_value_together_are_within_the_permanent_epsilon() {
    for protocol in protocols() {
        let (rounds, epsilon) = (rounds(&protocol), protocol.epsilon());
        let bound = rounds.worst_of_answers();
        assert!(is_within(&bound, epsilon), "{}", protocol.to_json());
        assert!(!is_within(&bound, epsilon.next_down()), "the announced epsilon is the smallest double");
        assert!(epsilon <= protocol.requested_epsilon() && !is_within(&bound, 0.999 * protocol.requested_epsilon()));
        let worst = [1, 2, 3].map(|times| rounds.worst_of_one_value(times));
        assert!(worst[0] <= worst[1] && worst[1] <= worst[2] && worst[2] <= bound, "{}", protocol.to_json());
        if let (Some(first), Some(requested)) = (protocol.epsilon_first(), protocol.requested_epsilon_first()) {
            assert!(is_within(&worst[0], first) && !is_within(&worst[0], first.next_down()), "{}", protocol.to_json());
            assert!(first <= requested && !is_within(&worst[0], 0.999 * requested));
            assert!(worst[0] < worst[1] && worst[2] < bound, "every further report tells more");
        } else {
            assert!(worst[0] == bound && worst[2] == bound, "the first report tells all");
        }
    }
}

fn rappor(num_hashes: u64, num_cohorts: u64, f: f64, p: f64, q: f64) -> Rappor {
    Rappor::new(8, num_hashes, num_cohorts, Probabilities { f, p, q }).unwrap()
}

/// Over all pairs of Bloom filters and all reports. Where one number of hash functions times another is rounded, the announced
/// epsilon may be a double more than the smallest.
#[test]
fn bloom_filters_are_within_both_epsilons() {
    for (num_hashes, f, p, q) in [
        (1, 0.5, 0.5, 0.75),
        (1, 0.01, 0.3, 0.300_001),
        (2, 0.5, 0.5, 0.75),
        (2, 0.999_99, 0.1, 0.9),
        (2, 1e-3, 1e-3, 0.999),
        (3, 0.123, 0.01, 0.7),
    ] {
        let protocol = Protocol::from(rappor(num_hashes, 1, f, p, q));
        let (rounds, json) = (rounds(&protocol), protocol.to_json());
        let below = |epsilon: f64| if num_hashes == 3 { epsilon.next_down().next_down() } else { epsilon.next_down() };
        let check = |worst: &Ratio<BigUint>, epsilon: f64, requested: f64| {
            assert!(is_within(worst, epsilon), "{json}");
            assert!(!is_within(worst, below(epsilon)), "the bound is attained: {json}");
            assert!(epsilon <= requested && !is_within(worst, 0.999 * requested), "{json}");
        };
        let bound = rounds.worst_of_answers();
        check(&bound, protocol.epsilon(), protocol.requested_epsilon());
        let asked = 2.0 * num_hashes as f64 * ((2.0 - f) / f).ln();
        assert!((protocol.requested_epsilon() - asked).abs() < 1e-9 * asked, "{json}");
        let first = rounds.worst_of_one_value(1);
        check(&first, protocol.epsilon_first().unwrap(), protocol.requested_epsilon_first().unwrap());
        assert!(first < bound);
    }
}

/// The positive control: as many bits as there are hash functions differ between two texts, not one.
#[test]
fn a_bloom_filter_that_announces_a_single_bit_is_caught() {
    let [one, two] = [1, 2].map(|num_hashes| Protocol::from(rappor(num_hashes, 1, 0.5, 0.5, 0.75)));
    assert!(!is_within(&rounds(&two).worst_of_answers(), one.epsilon()));
}

/// People who change between m values at the same times: m times the epsilon of one.
#[test]
fn reports_on_several_values_tell_several_times_as_much() {
    for protocol in [
        Protocol::from(LongitudinalUnaryEncoding::new(2, 2.0, 1.0, Permanent::Optimized).unwrap()),
        Protocol::from(LongitudinalUnaryEncoding::new(3, 1.0, 0.5, Permanent::Symmetric).unwrap()),
        Protocol::from(Loloha::new(9, 2.0, 1.0, Some(3)).unwrap()),
        Protocol::from(DBitFlip::new(3, 1.0, 2).unwrap()),
    ] {
        let rounds = rounds(&protocol);
        let changing: Vec<Vec<usize>> = tuples(rounds.permanent.weights.len(), 3)
            .filter(|inputs| inputs[0] == inputs[2] && inputs[0] != inputs[1])
            .collect();
        let worst = rounds.worst(&changing);
        assert!(worst.is_some_and(|worst| is_within(&worst, 2.0 * protocol.epsilon())), "{}", protocol.to_json());
    }
}

/// The guarantee is about values, not about when they changed: this is why the documentation says so.
#[test]
fn that_a_value_changed_may_show() {
    let flips = rounds(&Protocol::from(DBitFlip::new(2, 1.0, 2).unwrap()));
    assert!(flips.worst(&[vec![0, 0], vec![0, 1]]).is_none(), "two different reports were never made of one value");
    let encoding = Protocol::from(LongitudinalUnaryEncoding::new(3, 0.5, 0.499, Permanent::Optimized).unwrap());
    let worst = rounds(&encoding).worst(&[vec![0; 3], vec![0, 1, 0]]).unwrap();
    assert!(!is_within(&worst, 2.0 * encoding.epsilon()));
}

/// The positive control: a client whose permanent round is drawn anew for each report, as that of multi-freq-ldpy is.
#[test]
fn a_permanent_round_that_is_not_permanent_is_caught() {
    for protocol in [
        Protocol::from(LongitudinalUnaryEncoding::new(3, 2.0, 1.0, Permanent::Optimized).unwrap()),
        Protocol::from(Loloha::new(9, 2.0, 1.0, Some(3)).unwrap()),
    ] {
        let first = rounds(&protocol).worst_of_one_value(1);
        let three = &first * &first * &first; // independent reports
        assert!(!is_within(&three, protocol.epsilon()), "{}", protocol.to_json());
    }
}

// --- what clients do -------------------------------------------------------------------------------------------------

fn memo(n: u8) -> ClientMemo {
    let mut bytes = b"DPNM\x02\0\0\0".to_vec();
    bytes.extend(u64::from(n).to_le_bytes());
    (0..n).for_each(|person| bytes.extend((0..32).map(|i: u8| i.wrapping_mul(77) ^ person)));
    let checksum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes.extend(checksum);
    ClientMemo::from_bytes(&bytes).unwrap()
}

fn people<'a>(memo: &'a ClientMemo, values: &'a [i64]) -> Values<'a> {
    Values::Remembering(Remembering { values, secrets: memo.secrets(), question: "question" })
}

fn reports(protocol: impl Into<Protocol>, memo: &ClientMemo, values: &[i64]) -> Vec<u8> {
    let protocol = protocol.into();
    let mut out = vec![0xaa; values.len() * protocol.report_bytes()];
    protocol.perturb_with(people(memo, values), &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
    out
}

/// Pins the reports of a memo and a seed: a change here gives every person new permanent answers.
#[test]
fn reports_are_stable() {
    let (memo, values) = (memo(200), (0..200).map(|i| i * i % 15).collect::<Vec<i64>>());
    let encoding = LongitudinalUnaryEncoding::new(15, 2.0, 1.0, Permanent::Optimized).unwrap();
    let loloha = Loloha::new(15, 2.0, 1.0, None).unwrap();
    let flips = DBitFlip::new(15, 1.0, 4).unwrap();
    let crcs = [
        crc32c::crc32c(&reports(encoding, &memo, &values)),
        crc32c::crc32c(&reports(loloha, &memo, &values)),
        crc32c::crc32c(&reports(flips, &memo, &values)),
    ];
    assert_eq!(crcs, [2_523_535_776, 3_317_099_867, 3_751_687_279]);
}

#[test]
fn reports_of_bloom_filters_are_stable() {
    let (memo, values) = (memo(200), (0..200).map(|i| i * i % 15 - 7).collect::<Vec<i64>>());
    let rappor = rappor(2, 5, 0.5, 0.5, 0.75);
    let all = reports(rappor, &memo, &values);
    assert_eq!(crc32c::crc32c(&all), 1_826_122_465);
    let cohorts = |values: &[i64]| {
        let all = reports(rappor, &memo, values);
        all.chunks(3).map(|row| row[0]).collect::<Vec<u8>>()
    };
    assert_eq!(cohorts(&values), cohorts(&[3; 200]), "whatever the text is");
}

/// Bits that are set in the Bloom filter, and others, are told as often as both rounds say.
#[test]
fn bits_are_told_as_often_as_announced() {
    let (n, k) = (40_000, 8);
    let rappor = rappor(2, 3, 0.3, 0.2, 0.9);
    let memo = ClientMemo::generate(n).unwrap();
    let mut counts = Accumulator::new(rappor.into()).unwrap();
    counts.add(&reports(rappor, &memo, &vec![77; n as usize]), 3, 1).unwrap();
    let mut set = [0; 6];
    rappor.set_bits(&[77], &mut set);
    let support = rappor.flips().both().support();
    for (cohort, (counters, set)) in counts.counters().chunks(1 + k).zip(set.chunks(2)).enumerate() {
        let people = counters[0] as f64;
        assert!((people - n as f64 / 3.0).abs() < 7.0 * (n as f64 * 2.0 / 9.0).sqrt());
        for (bit, &count) in (0..).zip(&counters[1..]) {
            let told = |numerator| support.probability(numerator);
            let (own, other) = if set.contains(&bit) { (support.p, support.q) } else { (support.q, support.p) };
            let z = |numerator| (count as f64 - people * told(numerator)) / (people * 0.25).sqrt();
            assert!(z(own).abs() < 7.0, "{cohort} {bit}");
            assert!(z(other).abs() > 7.0, "the positive control");
        }
    }
}

/// Reports without an instantaneous round depend on nothing but the memo: not on threads, nor on the company of others.
#[test]
fn what_is_permanent_depends_on_the_memo_alone() {
    let flips = Protocol::from(DBitFlip::new(1000, 1.0, 300).unwrap());
    let (memo, values) = (memo(100), (0..100).collect::<Vec<i64>>());
    let width = flips.report_bytes();
    let all = reports(flips, &memo, &values);
    for threads in [1, 2, 7] {
        let mut out = vec![0; all.len()];
        flips.perturb(people(&memo, &values), &mut out, threads).unwrap();
        assert_eq!(out, all);
    }
    for (person, row) in all.chunks(width).enumerate() {
        let alone = memo.select(std::iter::once(person)).unwrap();
        assert_eq!(reports(flips, &alone, &values[person..=person]), row);
    }
}

/// Of each person, the reports on all values that are not sampled are the same, and there are at most d + 1 others.
#[test]
fn reports_show_sampled_values_alone() {
    let (k, d) = (40, 5);
    let flips = Protocol::from(DBitFlip::new(k, 6.0, d).unwrap());
    let width = flips.report_bytes();
    for person in 0..20 {
        let memo = memo(20).select((0..k as usize).map(|_| person)).unwrap();
        let values: Vec<i64> = (0..k as i64).collect();
        let all = reports(flips, &memo, &values);
        let mut shown = vec![0; width];
        all.chunks(width).for_each(|row| shown.iter_mut().zip(row).for_each(|(shown, byte)| *shown |= byte));
        assert!(shown.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>() <= d);
        let mut distinct: Vec<&[u8]> = all.chunks(width).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert!((2..=d as usize + 1).contains(&distinct.len()), "{}", distinct.len());
    }
}

#[test]
fn a_memo_of_other_people_is_refused() {
    let encoding = Protocol::from(LongitudinalUnaryEncoding::new(15, 2.0, 1.0, Permanent::Optimized).unwrap());
    let memo = memo(2);
    let message =
        |values: &[i64], out: &mut [u8]| encoding.perturb(people(&memo, values), out, 1).unwrap_err().to_string();
    assert_eq!(message(&[1; 3], &mut [0; 6]), "memo must be one of 3 people, one for each value, got one of 2");
    assert_eq!(message(&[1, 15], &mut [0; 4]), "values must be integers in [0, k) with k = 15");
    assert_eq!(message(&[1, 2], &mut [0; 3]), "out must be 2 rows of 2 bytes, got 3 bytes");
}

#[test]
fn parameters_out_of_range_name_what_is_allowed() {
    let encoding = |permanent, first| {
        LongitudinalUnaryEncoding::new(15, permanent, first, Permanent::Symmetric).unwrap_err().to_string()
    };
    let loloha = |g, permanent, first| Loloha::new(15, permanent, first, g).unwrap_err().to_string();
    let flips = |k, d, epsilon| DBitFlip::new(k, epsilon, d).unwrap_err().to_string();
    for refused in [encoding(33.0, 1.0), loloha(None, 33.0, 1.0)] {
        assert_eq!(refused, "epsilon_permanent must be between 2**-20 and 32, got 33.0");
    }
    for first in [1.0, 1.5, f64::NAN, 0.0] {
        let expected =
            format!("epsilon_first must be at least 2**-20 and below epsilon_permanent = 1.0, got {first:?}");
        assert_eq!([encoding(1.0, first), loloha(None, 1.0, first)], [expected.clone(), expected]);
    }
    let fine = LongitudinalUnaryEncoding::new(15, 32.0, 1e-3, Permanent::Optimized).unwrap_err().to_string();
    for refused in [fine, loloha(None, 32.0, 1e-6), loloha(Some(256), 32.0, 1e-6)] {
        assert!(refused.starts_with("epsilon_permanent and epsilon_first must be such that two rounds"), "{refused}");
    }
    assert_eq!(loloha(Some(1), 2.0, 1.0), "g must be an integer from 2 to 256, got 1");
    assert_eq!(loloha(Some(257), 2.0, 1.0), "g must be an integer from 2 to 256, got 257");
    assert_eq!(flips(15, 16, 1.0), "d must be an integer from 1 to k = 15, got 16");
    assert_eq!(flips(15, 0, 1.0), "d must be an integer from 1 to k = 15, got 0");
    assert!(flips(1 << 17, 1, 1.0).starts_with("k must be an integer from 2 to 65536"));
    assert!(flips(1 << 16, 1, 32.0).starts_with("k and epsilon must be such that"));
    assert!(flips(15, 1, 0.0).starts_with("epsilon must be between 2**-20 and 32"));
}

#[test]
fn bloom_filters_out_of_range_name_what_is_allowed() {
    let message = |bits, hashes, cohorts, f, p, q| {
        Rappor::new(bits, hashes, cohorts, Probabilities { f, p, q }).unwrap_err().to_string()
    };
    for bits in [0, 4, 24, 1 << 21, u64::MAX] {
        let expected = format!("num_bloombits must be a power of two from 8 to 2**20, got {bits}");
        assert_eq!(message(bits, 2, 5, 0.5, 0.5, 0.75), expected);
    }
    for (bits, hashes, most) in [(8, 0, 4), (8, 5, 4), (64, 17, 16), (64, u64::MAX, 16)] {
        let expected =
            format!("num_hashes must be an integer from 1 to {most} with num_bloombits = {bits}, got {hashes}");
        assert_eq!(message(bits, hashes, 5, 0.5, 0.5, 0.75), expected);
    }
    for cohorts in [0, 65_537, u64::MAX] {
        let expected = format!("num_cohorts must be an integer from 1 to 65536, got {cohorts}");
        assert_eq!(message(8, 2, cohorts, 0.5, 0.5, 0.75), expected);
    }
    for (bits, cohorts) in [(8, 65_536), (1 << 20, 9)] {
        let refused = message(bits, 2, cohorts, 0.5, 0.5, 0.75);
        assert!(refused.starts_with("num_bloombits, num_hashes and num_cohorts must be such that"), "{refused}");
    }
    for bad in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
        let expected = |name: &str| format!("{name} must be a probability strictly between 0 and 1, got {bad:?}");
        assert_eq!(message(8, 2, 5, bad, 0.5, 0.75), expected("f"));
        assert_eq!(message(8, 2, 5, 0.5, bad, 0.75), expected("p"));
        assert_eq!(message(8, 2, 5, 0.5, 0.5, bad), expected("q"));
    }
    for q in [0.25, 0.5] {
        assert_eq!(message(8, 2, 5, 0.5, 0.5, q), format!("q must be greater than p = 0.5, got {q:?}"));
    }
    for f in [1e-300, 1e-4, 1f64.next_down(), 0.999_999_99] {
        let expected = "such that epsilon = 2 * num_hashes * ln((2 - f) / f) is between 2**-20 and 32, got ";
        assert_eq!(message(8, 4, 5, f, 0.5, 0.75), format!("f must be {expected}{f:?}"));
    }
    for (f, p, q) in [(0.5, 0.5, 0.5f64.next_up()), (0.5, 1e-300, 1e-299), (0.123_456, 1e-18, 0.3)] {
        let refused = message(8, 1, 5, f, p, q);
        assert!(refused.starts_with("f, p and q must be such that the epsilon of a single report is"), "{refused}");
    }
}

#[test]
fn reports_of_no_cohort_are_malformed() {
    let mut counts = Accumulator::new(Protocol::from(rappor(2, 3, 0.5, 0.5, 0.75))).unwrap();
    counts.add(&[2, 0, 0xff, 3, 0, 0, 0, 1, 0], 3, 1).unwrap();
    assert_eq!((counts.n(), counts.counters()[2 * 9]), (1, 1));
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("cohort out of range", 2)]);
}

/// Rows that no honest client makes are rejected.
#[test]
fn too_many_bits_are_malformed() {
    let protocol = Protocol::from(DBitFlip::new(12, 1.0, 2).unwrap());
    let mut counts = Accumulator::new(protocol).unwrap();
    counts.add(&[0b11, 0, 0b111, 0, 0, 0x10, 0, 0], 2, 1).unwrap();
    assert_eq!((counts.n(), counts.counters()[0]), (2, 1));
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("not a set of at most d values", 2)]);
}
