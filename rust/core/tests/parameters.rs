//! Parameters of any value: each is taken exactly or refused, and what is taken works. Nothing panics.

use dpnoise_core::Error;
use dpnoise_core::arguments::{Argument, DefaultValue, Parameter, ParameterKind};
use dpnoise_core::calibration::SampleAndThreshold;
use dpnoise_core::local::{Accumulator, Estimate, FamilyInfo, Protocol, Remembering, ValueKind, Values};
use dpnoise_core::mechanisms::{self, Noise, NoiseInfo};
use dpnoise_core::params::{Epsilon, Ratio, RealScale, Relation, Scale};
use dpnoise_core::rng::SeededRng;
use dpnoise_core::samplers::{Bernoulli, GridNoise, INTEGER_NOISE, Sampler, Symmetric, TableNoise};
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
    assert!(counts.estimate_prefixes(0.5).unwrap().is_none_or(|found| finite(found.estimate)));
    if let Some(ranges) = counts.estimate_ranges().unwrap() {
        let (count, error) = ranges.range(0, ranges.k() / 2).unwrap();
        assert!(ranges.counts().all(f64::is_finite) && count.is_finite() && error.is_finite());
    }
    if let Ok(Some(density)) = counts.estimate_density(true) {
        assert!((density.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9 && people > 0);
    }
    assert!(protocol.epsilon() <= protocol.requested_epsilon());
    let gives_some_away = matches!(protocol, Protocol::ThresholdHistogramEncoding(_));
    assert!(gives_some_away || protocol.epsilon() >= 0.999 * protocol.requested_epsilon());
    assert_eq!(Protocol::from_json(&protocol.to_json(), usize::MAX), Ok(protocol));
}

/// Any argument for a parameter; one in two is that of the example, so that all others are reached.
fn arguments(parameter: &Parameter) -> BoxedStrategy<Argument> {
    let any = match parameter.kind {
        ParameterKind::Integer(_) => {
            prop_oneof![0..300u64, (0..12u32).prop_map(|exponent| 1 << exponent), any::<u64>()]
                .prop_map(Argument::Integer)
                .boxed()
        }
        ParameterKind::Word(words) => prop::sample::select(words).prop_map(Argument::Word).boxed(),
        _ => doubles().prop_map(Argument::Real).boxed(),
    };
    prop_oneof![Just(parameter.example), any].boxed()
}

/// Any arguments for these parameters, optional ones sometimes left out.
fn given(parameters: &'static [Parameter]) -> impl Strategy<Value = Vec<(&'static str, Argument)>> {
    let given = parameters.iter().map(|parameter| {
        let required = parameter.default == DefaultValue::Required;
        let present = if required { Just(true).boxed() } else { any::<bool>().boxed() };
        (present, arguments(parameter)).prop_map(|(present, value)| present.then_some((parameter.name, value)))
    });
    given.collect::<Vec<_>>().prop_map(|given| given.into_iter().flatten().collect())
}

/// Any arguments for a family.
fn families() -> impl Strategy<Value = (FamilyInfo, Vec<(&'static str, Argument)>)> {
    prop::sample::select(Protocol::FAMILIES).prop_flat_map(|info| (Just(info), given(info.parameters)))
}

/// Any arguments for a mechanism that adds noise.
fn noise() -> impl Strategy<Value = (NoiseInfo, Vec<(&'static str, Argument)>)> {
    prop::sample::select(Noise::KINDS).prop_flat_map(|info| (Just(info), given(info.parameters)))
}

/// Reports on values of every kind.
fn works_for(info: &FamilyInfo, protocol: Protocol) {
    let integers: &[i64] = if info.takes_texts { &[0, i64::MIN, -1] } else { &[0, 1, 0] };
    let values = match info.takes {
        ValueKind::Answers => Values::Answers(&[0, 1, 1]),
        ValueKind::Numbers => return works(protocol, (Values::Numbers(&[0.0, -0.0, 1.0, 0.3, 5e-324]), 5)),
        ValueKind::Remembering => {
            Values::Remembering(Remembering { values: integers, secrets: &[[7; 32]; 3], question: "question" })
        }
        _ => Values::Integers(integers),
    };
    works(protocol, (values, 3));
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
            for noise in INTEGER_NOISE.iter().filter(|noise| noise.with_design.is_some()) {
                let made = (noise.new)(scale, &[]);
                prop_assert_eq!(made.is_ok(), noise.parameter == "scale" || scale.ratio().to_f64() >= 2f64.powi(-20));
                if let Ok(made) = made {
                    made.fill_with(&mut out, &mut rng).unwrap();
                    prop_assert!(noise.name != "geometric" || out.iter().all(|&x| x >= 0));
                }
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
    fn an_epsilon_is_positive_and_finite(epsilon in doubles()) {
        prop_assert_eq!(Epsilon::new(epsilon).is_ok(), epsilon > 0.0 && epsilon.is_finite());
    }
}

proptest! {
    // Some kinds take a second to make.
    #![proptest_config(ProptestConfig {
        cases: 3 * ProptestConfig::default().cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_mechanism_with_any_arguments_works_or_is_refused((info, given) in noise(), x in doubles(), n in any::<i64>()) {
        let made = Noise::new(info.name, &given);
        prop_assert!(made.is_ok() || is_refusal(&made), "{:?}", made);
        if let Ok(noise) = made {
            let (mut reals, mut integers) = ([x; 3], [n, i64::MIN, i64::MAX]);
            let is_whole = noise.takes_integers();
            let values = if is_whole { mechanisms::Values::Integers(&mut integers) } else { mechanisms::Values::Reals(&mut reals) };
            let released = noise.release_with(values, &mut SeededRng::new(1).unwrap());
            let scale = noise.scale(3);
            prop_assert!(scale.is_ok() || is_refusal(&scale));
            // With an epsilon near 2^-40 the rounding of further values takes more Laplace noise than there is.
            prop_assert!(scale.is_ok() || info.name != "laplace" || noise.guarantee().epsilon < Some(2f64.powi(-38)));
            prop_assert_eq!(released.is_ok(), scale.is_ok() && (is_whole || x.is_finite()), "{:?}", released);
            prop_assert!(released.is_err() || is_whole || !reals.iter().any(|value| value.is_nan()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sample_and_threshold_works_or_is_refused(
        epsilon in doubles(), delta in doubles(), rate in doubles(), threshold in 0..100u64, replaced in any::<bool>(),
    ) {
        let relation = if replaced { Relation::Substitute } else { Relation::AddRemove };
        let made = SampleAndThreshold::new(rate, threshold, relation);
        prop_assert_eq!(made.is_ok(), threshold > 0 && (2f64.powi(-40)..1.0).contains(&rate));
        for found in [
            SampleAndThreshold::for_threshold(epsilon, delta, threshold, relation),
            SampleAndThreshold::for_rate(epsilon, delta, rate, relation),
        ] {
            prop_assert!(found.is_ok() || is_refusal(&found));
            if let Ok(found) = found {
                prop_assert!(found.delta(epsilon).unwrap() <= delta);
            }
        }
        let found = made.and_then(|made| made.delta(epsilon));
        prop_assert!(is_refusal(&found) || found.is_ok_and(|delta| 0.0 < delta && delta <= 1.0));
    }
}

proptest! {
    // As many of each family.
    #![proptest_config(ProptestConfig {
        cases: 24 * ProptestConfig::default().cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_protocol_with_any_arguments_works_or_is_refused((info, given) in families()) {
        let made = Protocol::new(info.name, &given);
        prop_assert!(made.is_ok() || is_refusal(&made), "{:?}", made);
        if let Ok(protocol) = made {
            works_for(&info, protocol);
        }
    }
}

/// Each example has the form that other tests rely on: the smallest values are valid, and k is small.
#[test]
fn the_example_of_every_family_works() {
    for info in Protocol::FAMILIES {
        let protocol = info.example().unwrap();
        assert_eq!((protocol.name(), protocol.takes()), (info.name, info.takes));
        works_for(info, protocol);
    }
}

#[test]
fn arguments_that_are_missing_or_unknown_are_refused() {
    let message = |family: &str, given: &[(&str, Argument)]| match Protocol::family(family) {
        Ok(_) => Protocol::new(family, given).unwrap_err().to_string(),
        Err(error) => Noise::new(family, given).err().unwrap_or(error).to_string(),
    };
    let families = Protocol::FAMILIES.iter().map(|info| (info.name, info.parameters));
    for (name, parameters) in families.chain(Noise::KINDS.iter().map(|info| (info.name, info.parameters))) {
        let example = |without: &Parameter| {
            let others = parameters.iter().filter(|one| *one != without && one.default != DefaultValue::Absent);
            others.map(|one| (one.name, one.example)).collect::<Vec<_>>()
        };
        for parameter in parameters {
            let mut given = example(parameter);
            if parameter.default == DefaultValue::Required {
                assert_eq!(message(name, &given), format!("{} must be given, got nothing", parameter.name));
            }
            let other = match parameter.example {
                Argument::Integer(_) => Argument::Real(2.0),
                Argument::Real(_) | Argument::Word(_) => Argument::Integer(2),
            };
            given.push((parameter.name, other));
            let refused = message(name, &given);
            assert!(refused.starts_with(&format!("{} must be ", parameter.name)), "{refused}");
        }
    }
    let unknown = message("duchi_mean", &[("k", Argument::Integer(2))]);
    assert_eq!(unknown, "parameters must be epsilon, once, got k");
    let twice = message("duchi_mean", &[("epsilon", Argument::Real(1.0)); 2]);
    assert_eq!(twice, "parameters must be epsilon, once, got epsilon");
    let family = Protocol::new("duchi", &[]).unwrap_err().to_string();
    assert!(family.starts_with("family must be one of randomized_response, ") && family.ends_with(", got \"duchi\""));
    let kind = Noise::new("uniform", &[]).unwrap_err().to_string();
    assert!(kind.starts_with("kind must be one of laplace, ") && kind.ends_with(", got \"uniform\""));
    let both =
        [("epsilon", 1.0), ("rho", 1.0), ("sensitivity", 1.0)].map(|(name, value)| (name, Argument::Real(value)));
    assert_eq!(message("discrete_gaussian", &both), "epsilon must be left out where rho is given, got both");
}

proptest! {
    // Tables take up to 300 milliseconds.
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_have_room_for_every_law_that_is_taken(
        x in 1.0..2.0f64,
        exponent in -40..18,
        parties in (0..34u32, 0..3u64).prop_map(|(exponent, more)| (1 << exponent) + more - 1),
        parts in (0..70u64, 0..70u64),
    ) {
        let scale = Scale::from_f64(x * 2f64.powi(exponent)).unwrap();
        for noise in [
            TableNoise::skellam(scale),
            TableNoise::negative_binomial_share(scale, parties),
            TableNoise::staircase(scale, parts.0, parts.1),
        ] {
            prop_assert!(noise.is_ok() || is_refusal(&noise));
            if let Ok(noise) = noise {
                let mut out = [0; 65];
                noise.fill_with(&mut out, &mut SeededRng::new(1).unwrap()).unwrap();
                let [least, bound] = [5e-324, 1.0 - 1e-12].map(|level| noise.magnitude_quantile(level).unwrap());
                prop_assert!(least == 0.0 && out.iter().all(|&x| x.unsigned_abs() as f64 <= bound));
            }
        }
    }
}
