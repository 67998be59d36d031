//! The worst-case likelihood ratio of every local protocol, over all inputs and outputs, in exact arithmetic.

use dpnoise_core::arith::log::ln_at_most_vartime;
use dpnoise_core::local::likelihood::{MAX_EPSILON, MIN_EPSILON};
use dpnoise_core::local::{
    Family, GeneralizedRandomizedResponse, Protocol, RandomizedResponse, Randomizer, UnaryEncoding,
};
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
        Randomizer::BitFlip(flip) => (0..protocol.report_bits()).fold(BigUint::from(1u32), |weight, bit| {
            let encoded = match protocol.family() {
                Family::RandomizedResponse => value == 1,
                _ => value == bit,
            };
            let set = if encoded { flip.p() } else { flip.q() };
            weight * if report >> bit & 1 == 1 { set } else { (1 << flip.planes()) - set }
        }),
        Randomizer::Mixture(mixture) => {
            let any = (1 << mixture.planes()) - mixture.keep(); // k times as often, but spread over k values
            let kept = if value == report { mixture.keep() } else { 0 };
            BigUint::from(any) + BigUint::from(kept) * mixture.k()
        }
    }
}

/// All reports that there are, and the number that their weights add up to.
fn reports(protocol: &Protocol) -> (usize, BigUint) {
    match protocol.randomizer() {
        Randomizer::BitFlip(flip) => {
            (1 << protocol.report_bits(), BigUint::from(1u32) << (flip.planes() as usize * protocol.report_bits()))
        }
        Randomizer::Mixture(mixture) => (mixture.k() as usize, BigUint::from(mixture.k()) << mixture.planes() as usize),
    }
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
                _ => (p * not_q, not_p * q),
            }
        }
        Randomizer::Mixture(mixture) => {
            let support = mixture.support();
            (u128::from(support.p), u128::from(support.q))
        }
    };
    assert_eq!(most * ratio.1, least * ratio.0, "the closed form is the worst case: {}", protocol.to_json());
    ln_at_most_vartime(ratio.0, ratio.1, announced)
}

fn check(protocol: &Protocol) {
    let (achieved, requested) = (protocol.epsilon(), protocol.requested_epsilon());
    assert!(keeps_its_promise(protocol, achieved), "{}", protocol.to_json());
    assert!(achieved <= requested && achieved >= 0.999 * requested, "{}", protocol.to_json());
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
fn custom_probabilities_keep_their_promise() {
    for (p, q) in [(0.75, 0.25), (0.5, 0.25), (0.3, 0.299), (0.9, 1e-6), (0.999_999, 0.999_998), (2e-5, 1e-5)] {
        let encoding = UnaryEncoding::custom(3, p, q).unwrap();
        check(encoding.protocol());
        assert!(encoding.protocol().p() <= p && encoding.protocol().q() >= q, "rounded in the private direction");
    }
}

#[test]
fn randomized_response_keeps_its_promise() {
    for epsilon in epsilons() {
        check(RandomizedResponse::new(epsilon).unwrap().protocol());
    }
    let coins = *RandomizedResponse::coin_flips().protocol();
    check(&coins);
    assert_eq!((coins.support().p, coins.support().q, coins.support().one), (3, 1, 4));
}

#[test]
fn generalized_randomized_response_keeps_its_promise() {
    for epsilon in epsilons() {
        for k in [2, 3, 4, 7, 16] {
            check(GeneralizedRandomizedResponse::new(k, epsilon).unwrap().protocol());
        }
    }
}

/// The positive control: a protocol that announces the epsilon of one bit, as pure-LDP's unary client once did, fails.
#[test]
fn a_client_that_spends_twice_is_caught() {
    let twice = *UnaryEncoding::custom(3, 0.75, 0.25).unwrap().protocol();
    assert!(!keeps_its_promise(&twice, 3f64.ln()));
    assert!(keeps_its_promise(&twice, 2.0 * 3f64.ln().next_up()));
}
