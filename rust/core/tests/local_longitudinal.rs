//! Longitudinal protocols: what several reports of one person tell together, in exact arithmetic, from the definitions of
//! their two rounds; and what stays the same for ever.

use dpnoise_core::arith::log::ln_at_most_vartime;
use dpnoise_core::local::longitudinal_unary_encoding::Permanent;
use dpnoise_core::local::{
    Accumulator, BitFlip, Client, ClientMemo, DBitFlip, Loloha, LongitudinalUnaryEncoding, Mixture, Protocol,
    Randomizer, Remembering,
};
use dpnoise_core::rng::SeededRng;
use num_bigint::BigUint;
use num_rational::Ratio;

/// Probabilities, by input and output.
type Law = Vec<Vec<Ratio<BigUint>>>;

/// What a person does: the permanent answer to an input, and the report made of an answer.
struct Rounds {
    permanent: Law,
    instantaneous: Law,
}

fn fraction(numerator: u64, planes: u32) -> Ratio<BigUint> {
    Ratio::new(numerator.into(), BigUint::from(1u32) << planes as usize)
}

fn one() -> Ratio<BigUint> {
    fraction(1, 0)
}

/// The bits of a number of `bits` bits, each flipped.
fn flipped(flip: BitFlip, bits: usize, input: usize) -> Vec<Ratio<BigUint>> {
    let chance = |from: usize, to: usize| {
        let set = fraction(if from == 1 { flip.p() } else { flip.q() }, flip.planes());
        if to == 1 { set } else { one() - set }
    };
    let bit = |number: usize, i: usize| number >> i & 1;
    (0..1 << bits).map(|out| (0..bits).fold(one(), |law, i| law * chance(bit(input, i), bit(out, i)))).collect()
}

/// The symbol, kept or replaced.
fn mixed(mixture: Mixture, input: usize) -> Vec<Ratio<BigUint>> {
    let keep = fraction(mixture.keep(), mixture.planes());
    let any = (one() - &keep) / BigUint::from(mixture.k());
    (0..mixture.k() as usize).map(|out| if out == input { &keep + &any } else { any.clone() }).collect()
}

/// The rounds of a protocol: of LOLOHA with hashes as inputs, of dBitFlip with the first d values sampled.
fn rounds(protocol: &Protocol) -> Rounds {
    let k = protocol.k() as usize;
    match protocol.randomizer() {
        Randomizer::LongitudinalFlips { flips, .. } => Rounds {
            permanent: (0..k).map(|value| flipped(flips.permanent(), k, 1 << value)).collect(),
            instantaneous: (0..1 << k).map(|row| flipped(flips.instantaneous(), k, row)).collect(),
        },
        Randomizer::LongitudinalHashing { rounds, .. } => {
            let g = rounds.permanent().k() as usize;
            Rounds {
                permanent: (0..g).map(|hash| mixed(rounds.permanent(), hash)).collect(),
                instantaneous: (0..g).map(|answer| mixed(rounds.instantaneous(), answer)).collect(),
            }
        }
        Randomizer::SampledFlips(flips) => {
            let d = flips.d() as usize;
            let unchanged = |row: usize| (0..1 << d).map(|out| fraction((out == row).into(), 0)).collect();
            Rounds {
                permanent: (0..k).map(|value| flipped(flips.flip(), d, (1 << value) & ((1 << d) - 1))).collect(),
                instantaneous: (0..1 << d).map(unchanged).collect(),
            }
        }
        _ => unreachable!("only longitudinal protocols are given"),
    }
}

impl Rounds {
    /// The probability of reports on a sequence of inputs: those on one input are made of one permanent answer.
    fn probability(&self, inputs: &[usize], reports: &[usize]) -> Ratio<BigUint> {
        let of_input = |input: usize| {
            let own = || reports.iter().zip(inputs).filter(|&(_, &of)| of == input).map(|(report, _)| report);
            let given = |answer: usize| own().fold(one(), |law, &report| law * &self.instantaneous[answer][report]);
            (0..self.instantaneous.len()).map(|answer| &self.permanent[input][answer] * given(answer)).sum()
        };
        let mut distinct = inputs.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.into_iter().map(of_input).fold(one(), |law, part: Ratio<BigUint>| law * part)
    }

    /// Calls `each` with the probabilities of all sequences of `times` reports, by the sequence of inputs.
    fn for_all_reports(&self, sequences: &[Vec<usize>], mut each: impl FnMut(Vec<Ratio<BigUint>>)) {
        for reports in tuples(self.instantaneous[0].len(), sequences[0].len()) {
            each(sequences.iter().map(|inputs| self.probability(inputs, &reports)).collect());
        }
    }

    /// The largest ratio of the probabilities of the same reports between two of these sequences of inputs; none if it is
    /// infinite.
    fn worst(&self, sequences: &[Vec<usize>]) -> Option<Ratio<BigUint>> {
        let zero = || one() - one();
        let (mut worst, mut totals) = (Some(one()), vec![zero(); sequences.len()]);
        self.for_all_reports(sequences, |laws| {
            let (most, least) = (laws.iter().max().unwrap(), laws.iter().min().unwrap());
            if *most > zero() {
                worst = worst.take().filter(|_| *least > zero()).map(|worst| worst.max(most / least));
            }
            totals.iter_mut().zip(laws).for_each(|(total, law)| *total += law);
        });
        assert!(totals.iter().all(|total| *total == one()), "the probabilities of all reports sum to 1");
        worst
    }

    /// The same for the permanent answer to one input, if it were known.
    fn worst_of_answers(&self) -> Ratio<BigUint> {
        let of_answer = |answer: usize| {
            let laws = || self.permanent.iter().map(|law| &law[answer]);
            laws().max().unwrap() / laws().min().unwrap()
        };
        (0..self.instantaneous.len()).map(of_answer).max().unwrap()
    }

    /// The same for people whose value does not change, and who report that often.
    fn worst_of_one_value(&self, times: usize) -> Ratio<BigUint> {
        let constant: Vec<Vec<usize>> = (0..self.permanent.len()).map(|input| vec![input; times]).collect();
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

/// Protocols of every kind, small enough for their reports to be enumerated.
fn protocols() -> Vec<Protocol> {
    let mut all = vec![];
    for (permanent, first) in [(1e-4, 5e-5), (0.5, 0.1), (1.0, 0.999), (2.0, 1.0), (3f64.ln(), 2f64.ln()), (6.0, 2.0)] {
        for k in [2, 3] {
            for round in [Permanent::Optimized, Permanent::Symmetric] {
                all.push(*LongitudinalUnaryEncoding::new(k, permanent, first, round).unwrap().protocol());
            }
        }
        for g in [2, 3, 5] {
            all.push(*Loloha::new(9, Some(g), permanent, first).unwrap().protocol());
        }
        for (k, d) in [(2, 1), (2, 2), (3, 1), (4, 2), (4, 3), (3, 3)] {
            all.push(*DBitFlip::new(k, d, permanent).unwrap().protocol());
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

/// People who change between m values at the same times: m times the epsilon of one.
#[test]
fn reports_on_several_values_tell_several_times_as_much() {
    for protocol in [
        *LongitudinalUnaryEncoding::new(2, 2.0, 1.0, Permanent::Optimized).unwrap().protocol(),
        *LongitudinalUnaryEncoding::new(3, 1.0, 0.5, Permanent::Symmetric).unwrap().protocol(),
        *Loloha::new(9, Some(3), 2.0, 1.0).unwrap().protocol(),
        *DBitFlip::new(3, 2, 1.0).unwrap().protocol(),
    ] {
        let rounds = rounds(&protocol);
        let changing: Vec<Vec<usize>> = tuples(rounds.permanent.len(), 3)
            .filter(|inputs| inputs[0] == inputs[2] && inputs[0] != inputs[1])
            .collect();
        let worst = rounds.worst(&changing);
        assert!(worst.is_some_and(|worst| is_within(&worst, 2.0 * protocol.epsilon())), "{}", protocol.to_json());
    }
}

/// The guarantee is about values, not about when they changed: this is why the documentation says so.
#[test]
fn that_a_value_changed_may_show() {
    let flips = rounds(DBitFlip::new(2, 2, 1.0).unwrap().protocol());
    assert!(flips.worst(&[vec![0, 0], vec![0, 1]]).is_none(), "two different reports were never made of one value");
    let encoding = *LongitudinalUnaryEncoding::new(3, 0.5, 0.499, Permanent::Optimized).unwrap().protocol();
    let worst = rounds(&encoding).worst(&[vec![0; 3], vec![0, 1, 0]]).unwrap();
    assert!(!is_within(&worst, 2.0 * encoding.epsilon()));
}

/// The positive control: a client whose permanent round is drawn anew for each report, as that of multi-freq-ldpy is.
#[test]
fn a_permanent_round_that_is_not_permanent_is_caught() {
    for protocol in [
        *LongitudinalUnaryEncoding::new(3, 2.0, 1.0, Permanent::Optimized).unwrap().protocol(),
        *Loloha::new(9, Some(3), 2.0, 1.0).unwrap().protocol(),
    ] {
        let first = rounds(&protocol).worst_of_one_value(1);
        let three = &first * &first * &first; // independent reports
        assert!(!is_within(&three, protocol.epsilon()), "{}", protocol.to_json());
    }
}

// --- what clients do -------------------------------------------------------------------------------------------------

fn memo(n: u8) -> ClientMemo {
    let mut bytes = b"DPNM\x01\0\0\0".to_vec();
    bytes.extend(u64::from(n).to_le_bytes());
    (0..n).for_each(|person| bytes.extend((0..32).map(|i: u8| i.wrapping_mul(77) ^ person)));
    let checksum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes.extend(checksum);
    ClientMemo::from_bytes(&bytes).unwrap()
}

fn reports(client: &impl Client<Value = i64>, protocol: &Protocol, values: &[i64]) -> Vec<u8> {
    let mut out = vec![0xaa; values.len() * protocol.report_bytes()];
    client.perturb(values, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
    out
}

/// Pins the reports of a memo and a seed: a change here gives every person new permanent answers.
#[test]
fn reports_are_stable() {
    let (memo, values) = (memo(200), (0..200).map(|i| i * i % 15).collect::<Vec<i64>>());
    let encoding = LongitudinalUnaryEncoding::new(15, 2.0, 1.0, Permanent::Optimized).unwrap();
    let loloha = Loloha::new(15, None, 2.0, 1.0).unwrap();
    let flips = DBitFlip::new(15, 4, 1.0).unwrap();
    let crcs = [
        crc32c::crc32c(&reports(
            &Remembering::new(&encoding, memo.secrets(), "question"),
            encoding.protocol(),
            &values,
        )),
        crc32c::crc32c(&reports(&Remembering::new(&loloha, memo.secrets(), "question"), loloha.protocol(), &values)),
        crc32c::crc32c(&reports(&Remembering::new(&flips, memo.secrets(), "question"), flips.protocol(), &values)),
    ];
    assert_eq!(crcs, [2_084_777_440, 2_196_034_656, 2_264_358_469]);
}

/// Reports without an instantaneous round depend on nothing but the memo: not on threads, nor on the company of others.
#[test]
fn what_is_permanent_depends_on_the_memo_alone() {
    let flips = DBitFlip::new(1000, 300, 1.0).unwrap();
    let (memo, values) = (memo(100), (0..100).collect::<Vec<i64>>());
    let width = flips.protocol().report_bytes();
    let all = reports(&Remembering::new(&flips, memo.secrets(), "question"), flips.protocol(), &values);
    for threads in [1, 2, 7] {
        let mut out = vec![0; all.len()];
        Remembering::new(&flips, memo.secrets(), "question").perturb_secure(&values, &mut out, threads).unwrap();
        assert_eq!(out, all);
    }
    for (person, row) in all.chunks(width).enumerate() {
        let alone = memo.select(std::iter::once(person));
        let client = Remembering::new(&flips, alone.secrets(), "question");
        assert_eq!(reports(&client, flips.protocol(), &values[person..=person]), row);
    }
}

/// Of each person, the reports on all values that are not sampled are the same, and there are at most d + 1 others.
#[test]
fn reports_show_sampled_values_alone() {
    let (k, d) = (40, 5);
    let flips = DBitFlip::new(k, d, 6.0).unwrap();
    let width = flips.protocol().report_bytes();
    for person in 0..20 {
        let memo = memo(20).select((0..k as usize).map(|_| person));
        let values: Vec<i64> = (0..k as i64).collect();
        let all = reports(&Remembering::new(&flips, memo.secrets(), "question"), flips.protocol(), &values);
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
    let encoding = LongitudinalUnaryEncoding::new(15, 2.0, 1.0, Permanent::Optimized).unwrap();
    let memo = memo(2);
    let client = Remembering::new(&encoding, memo.secrets(), "question");
    let message = |values: &[i64], out: &mut [u8]| client.perturb_secure(values, out, 1).unwrap_err().to_string();
    assert_eq!(message(&[1; 3], &mut [0; 6]), "memo must be one of 3 people, one for each value, got one of 2");
    assert_eq!(message(&[1, 15], &mut [0; 4]), "values must be integers in [0, k) with k = 15");
    assert_eq!(message(&[1, 2], &mut [0; 3]), "out must be 2 rows of 2 bytes, got 3 bytes");
}

#[test]
fn parameters_out_of_range_name_what_is_allowed() {
    let encoding = |permanent, first| {
        LongitudinalUnaryEncoding::new(15, permanent, first, Permanent::Symmetric).unwrap_err().to_string()
    };
    let loloha = |g, permanent, first| Loloha::new(15, g, permanent, first).unwrap_err().to_string();
    let flips = |k, d, epsilon| DBitFlip::new(k, d, epsilon).unwrap_err().to_string();
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

/// Rows that no honest client makes are rejected.
#[test]
fn too_many_bits_are_malformed() {
    let protocol = *DBitFlip::new(12, 2, 1.0).unwrap().protocol();
    let mut counts = Accumulator::new(protocol);
    counts.add(&[0b11, 0, 0b111, 0, 0, 0x10, 0, 0], 2, 1).unwrap();
    assert_eq!((counts.n(), counts.counters()[0]), (2, 1));
    assert_eq!(counts.rejected_reasons().collect::<Vec<_>>(), [("not a set of at most d values", 2)]);
}
