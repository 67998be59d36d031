//! Parameters of any value: each is taken exactly or refused, and what is taken works. Nothing panics.

use dpnoise_core::Error;
use dpnoise_core::local::{
    Accumulator, COUNTER_LIMIT, CountMeanSketch, DBitFlip, DuchiMean, Estimate, GeneralizedRandomizedResponse,
    HadamardCountMeanSketch, HadamardResponse, HierarchicalRange, HybridMean, LaplaceMean, LocalHashing, Loloha,
    LongitudinalUnaryEncoding, OptimizedUnaryEncoding, Permanent, PiecewiseMean, PrefixExtension, Probabilities,
    ProjectiveGeometryResponse, Protocol, RandomizedResponse, Rappor, Remembering, SquareWave, SubsetSelection,
    SummationHistogramEncoding, SymmetricUnaryEncoding, ThresholdHistogramEncoding, UnaryEncoding, Values,
};
use dpnoise_core::mechanisms::{self, Method, Noisy};
use dpnoise_core::params::{Epsilon, Ratio, RealScale, Scale};
use dpnoise_core::rng::SeededRng;
use dpnoise_core::samplers::{Bernoulli, DiscreteGaussian, DiscreteLaplace, Geometric, GridNoise, Sampler};
use num_rational::BigRational;
use proptest::prelude::*;

/// Doubles of every kind: any bits, numbers of ordinary size, and powers of two with their neighbours.
fn doubles() -> impl Strategy<Value = f64> {
    let near_power = (-1080..1030, -2i64..=2).prop_map(|(exponent, ulps)| {
        let power = 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
        f64::from_bits((power.to_bits() as i64 + ulps) as u64)
    });
    prop_oneof![any::<u64>().prop_map(f64::from_bits), -1e3..1e3, 0.0..1.0, near_power]
}

fn ratios() -> impl Strategy<Value = Ratio> {
    let part = || (0..128u32, any::<u128>()).prop_map(|(bits, part)| part >> bits);
    (part(), part()).prop_filter_map("a ratio", |(numerator, denominator)| Ratio::new(numerator, denominator))
}

fn exact(ratio: Ratio) -> BigRational {
    BigRational::new(ratio.numerator().into(), ratio.denominator().into())
}

fn two_to(exponent: i32) -> BigRational {
    BigRational::from_integer(2.into()).pow(exponent)
}

/// A refusal says which parameter it was, and is not about randomness.
fn is_refusal<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Parameter { parameter, .. }) if !parameter.is_empty())
}

/// Reports on some values, which must not panic.
fn works(protocol: Protocol, (values, people): (Values<'_>, usize)) {
    let mut out = vec![0; people * protocol.report_bytes()];
    protocol.perturb_with(values, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
    let mut counts = Accumulator::new(protocol).unwrap();
    counts.add(&out, protocol.report_bytes(), 1).unwrap();
    assert_eq!(counts.n(), people as u64);
    let finite =
        |estimate: Estimate| estimate.counts.iter().chain(&estimate.standard_errors).all(|number| number.is_finite());
    assert!(counts.estimate().unwrap().is_none_or(finite));
    assert!(counts.estimate_candidates(&[0, i64::MIN]).unwrap().is_none_or(finite));
    assert!(counts.estimate_prefixes(0, &[0, 1]).unwrap().is_none_or(finite));
    assert!(protocol.epsilon() <= protocol.requested_epsilon());
    let gives_some_away = matches!(protocol, Protocol::ThresholdHistogramEncoding(_));
    assert!(gives_some_away || protocol.epsilon() >= 0.999 * protocol.requested_epsilon());
    assert_eq!(Protocol::from_json(&protocol.to_json(), COUNTER_LIMIT), Ok(protocol));
}

/// The protocol works with the values of so many people, or was refused.
macro_rules! works_or_is_refused {
    ($protocol:expr, $values:expr) => {
        let made = $protocol;
        prop_assert!(made.is_ok() || is_refusal(&made));
        if let Ok(protocol) = made {
            works(protocol.into(), $values);
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn doubles_are_ratios_exactly_or_not_at_all(value in doubles()) {
        match Ratio::from_f64(value) {
            Some(ratio) => prop_assert_eq!(exact(ratio), BigRational::from_float(value).unwrap()),
            None => prop_assert!(!(value.is_finite() && (2f64.powi(-66)..2f64.powi(66)).contains(&value))),
        }
    }

    #[test]
    fn ratios_divide_exactly_or_not_at_all(a in ratios(), b in ratios()) {
        let quotient = exact(a) / exact(b);
        let short = [quotient.numer(), quotient.denom()].iter().all(|part| part.bits() <= 120);
        prop_assert_eq!(a.checked_div(b).map(exact), short.then_some(quotient));
    }

    #[test]
    fn a_scale_is_in_range(ratio in ratios(), value in doubles()) {
        let in_range = |x: &BigRational| *x >= two_to(-40) && *x <= two_to(40);
        prop_assert_eq!(Scale::new(ratio).is_ok(), in_range(&exact(ratio)));
        prop_assert_eq!(Scale::from_f64(value).is_ok(), BigRational::from_float(value).is_some_and(|x| in_range(&x)));
    }

    #[test]
    fn real_scales_are_measured_in_steps_exactly(ratio in ratios(), value in doubles(), finer in 0..45) {
        let scales = [Some((RealScale::from(ratio), exact(ratio))),
            RealScale::from_f64(value).map(|scale| (scale, BigRational::from_float(value).unwrap()))];
        for (scale, exactly) in scales.into_iter().flatten() {
            let exponent = scale.ceil_log2();
            prop_assert!(exactly <= two_to(exponent) && exactly > two_to(exponent - 1));
            if let Some(steps) = scale.in_steps(exponent - finer) {
                prop_assert_eq!(exact(steps.ratio()), exactly / two_to(exponent - finer));
            } else {
                prop_assert!(finer > 39 || ratio.numerator() >> 60 > 0 || ratio.denominator() >> 60 > 0);
            }
        }
    }

    #[test]
    fn every_scale_can_be_drawn_from(ratio in ratios(), x in 1.0..2.0f64, exponent in -40..40) {
        let double = Scale::from_f64(x * 2f64.powi(exponent)).unwrap();
        for scale in [Some(double), Scale::new(ratio).ok()].into_iter().flatten() {
            let (mut rng, mut out) = (SeededRng::new(1).unwrap(), [0; 65]);
            DiscreteLaplace::new(scale).fill_with(&mut out, &mut rng).unwrap();
            Geometric::new(scale).fill_with(&mut out, &mut rng).unwrap();
            prop_assert!(out.iter().all(|&x| x >= 0));
            let gaussian = DiscreteGaussian::new(scale);
            prop_assert_eq!(gaussian.is_ok(), scale.ratio().to_f64() >= 2f64.powi(-20));
            if let Ok(gaussian) = gaussian {
                gaussian.fill_with(&mut out, &mut rng).unwrap();
            }
        }
    }

    #[test]
    fn real_noise_works_or_is_refused(scale in doubles(), granularity in prop::option::of(doubles())) {
        let Some(real) = RealScale::from_f64(scale) else {
            return Ok(());
        };
        for noise in [GridNoise::laplace(real, granularity), GridNoise::gaussian(real, granularity)] {
            prop_assert!(noise.is_ok() || is_refusal(&noise));
            if let Ok(noise) = noise {
                let mut out = [0.0; 65];
                noise.fill_with(&mut out, &mut SeededRng::new(1).unwrap()).unwrap();
                prop_assert!(out.iter().all(|x| x % noise.grid().granularity() == 0.0));
            }
        }
    }

    #[test]
    fn coins_work_or_are_refused(p in doubles()) {
        let coin = Bernoulli::new(p);
        prop_assert_eq!(coin.is_ok(), (0.0..=1.0).contains(&p));
        prop_assert!(coin.is_ok() || is_refusal(&coin));
        if let Ok(coin) = coin {
            coin.fill_with(&mut [false; 65], &mut SeededRng::new(1).unwrap()).unwrap();
        }
    }
}

proptest! {
    // Each case makes many protocols: 256 of them, unless PROPTEST_CASES asks for more, as `make statistical` does.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mechanisms_work_or_are_refused(
        epsilon in doubles(), sensitivity in doubles(), granularity in prop::option::of(doubles()),
        whole in any::<u64>(), x in doubles(), n in any::<i64>(), part in 0.0..1.0,
    ) {
        prop_assert_eq!(Epsilon::new(epsilon).is_ok(), epsilon > 0.0 && epsilon.is_finite());
        let rng = || SeededRng::new(1).unwrap();
        let laplace = mechanisms::Laplace::new(epsilon, sensitivity, granularity);
        prop_assert!(laplace.is_ok() || is_refusal(&laplace));
        if let Ok(laplace) = laplace {
            let mut values = [x; 3];
            let released = laplace.release_with(&mut values, &mut rng());
            // With an epsilon near 2^-40 the rounding of further values takes more noise than there is.
            let noise = laplace.noise(3);
            prop_assert!(noise.is_ok() || is_refusal(&noise) && epsilon < 2f64.powi(-38));
            prop_assert_eq!(released.is_ok(), noise.is_ok() && x.is_finite(), "{:?}", released);
            prop_assert!(released.is_err() || values.iter().all(|value| !value.is_nan()));
        }
        let gaussian = mechanisms::Gaussian::new(epsilon, part, sensitivity, Method::Analytic, granularity);
        let concentrated = mechanisms::Gaussian::with_rho(epsilon, Some(part), sensitivity, granularity);
        for gaussian in [gaussian, concentrated] {
            prop_assert!(gaussian.is_ok() || is_refusal(&gaussian));
            if let Ok(gaussian) = gaussian {
                let released = gaussian.release_with(&mut [x; 3], &mut rng());
                prop_assert!(released.is_ok() || !x.is_finite() || gaussian.noise(3).is_err());
            }
        }
        for made in [
            mechanisms::DiscreteGaussian::new(epsilon, part, sensitivity),
            mechanisms::DiscreteGaussian::with_rho(epsilon, None, sensitivity),
        ] {
            prop_assert!(made.is_ok() || is_refusal(&made));
            if let Ok(gaussian) = made {
                let released = gaussian.release_with(&mut [n, i64::MIN, i64::MAX], &mut rng());
                prop_assert!(released.is_ok() || is_refusal(&released));
            }
        }
        for sensitivity in [1, whole] {
            let discrete = mechanisms::DiscreteLaplace::new(epsilon, sensitivity);
            prop_assert!(discrete.is_ok() || is_refusal(&discrete));
            if let Ok(discrete) = discrete {
                discrete.release_with(&mut [n, i64::MIN, i64::MAX], &mut rng()).unwrap();
            }
        }
    }

    #[test]
    fn protocols_work_or_are_refused(
        k in 0..300u64, p in doubles(), q in doubles(), epsilon in doubles(), g in prop::option::of(any::<u64>()),
        few in 0..99u64, part in 0.0..1.01,
    ) {
        let first = part * epsilon;
        let integers = &[0, 1, k as i64 - 1];
        let values = (Values::Integers(integers), 3);
        works_or_is_refused!(UnaryEncoding::new(k, p, q), values);
        works_or_is_refused!(SymmetricUnaryEncoding::new(k, epsilon), values);
        works_or_is_refused!(OptimizedUnaryEncoding::new(k, epsilon), values);
        works_or_is_refused!(ThresholdHistogramEncoding::new(k, epsilon), values);
        works_or_is_refused!(SummationHistogramEncoding::new(k, epsilon), values);
        works_or_is_refused!(GeneralizedRandomizedResponse::new(k, epsilon), values);
        works_or_is_refused!(HierarchicalRange::new(k, epsilon, few), values);
        works_or_is_refused!(LocalHashing::new(k, epsilon, g), values);
        works_or_is_refused!(LocalHashing::new(k, epsilon, Some(few)), values);
        works_or_is_refused!(HadamardResponse::new(k, epsilon), values);
        works_or_is_refused!(SubsetSelection::new(k, epsilon, g), values);
        works_or_is_refused!(SubsetSelection::new(k, epsilon, Some(few)), values);
        for prime in [None, g, Some(few)] {
            works_or_is_refused!(ProjectiveGeometryResponse::new(k, epsilon, prime), values);
        }
        works_or_is_refused!(RandomizedResponse::new(epsilon), (Values::Answers(&[0, 1, 1]), 3));
        let people = |values| (Values::Remembering(Remembering { values, secrets: &[[7; 32]; 3], question: "question" }), 3);
        let (remembering, fingerprints) = (people(integers), people(&[0, i64::MIN, -1]));
        for permanent in [Permanent::Optimized, Permanent::Symmetric] {
            let encoding = LongitudinalUnaryEncoding::new(k, epsilon, first, permanent);
            works_or_is_refused!(encoding, remembering);
        }
        works_or_is_refused!(Loloha::new(k, epsilon, first, g), remembering);
        works_or_is_refused!(Loloha::new(k, epsilon, first, Some(few)), remembering);
        works_or_is_refused!(DBitFlip::new(k, epsilon, few), remembering);
        let given = Probabilities { f: epsilon, p, q };
        for (bits, hashes, cohorts) in [(k, few, 7), (8 << (few % 7), k % 20, few)] {
            let rappor = Rappor::new(bits, hashes, cohorts, given);
            works_or_is_refused!(rappor, fingerprints);
        }
        let numbers = (Values::Numbers(&[0.0, -0.0, 1.0, 0.3, 5e-324]), 5);
        works_or_is_refused!(LaplaceMean::new(epsilon), numbers);
        works_or_is_refused!(DuchiMean::new(epsilon), numbers);
        works_or_is_refused!(PiecewiseMean::new(epsilon), numbers);
        works_or_is_refused!(HybridMean::new(epsilon), numbers);
        works_or_is_refused!(SquareWave::new(k, epsilon), numbers);
        let texts = (Values::Integers(&[0, i64::MIN, -1]), 3);
        for (rows, width) in [(k, few), (few, k), (k, 8 << (few % 7)), (few, 8 << (few % 7))] {
            works_or_is_refused!(CountMeanSketch::new(epsilon, rows, width, k), texts);
            works_or_is_refused!(HadamardCountMeanSketch::new(epsilon, rows, width, k), texts);
            works_or_is_refused!(PrefixExtension::new(few, epsilon, k % 20, rows, width, k), (Values::Integers(&[0, 1, 0]), 3));
        }
    }
}
