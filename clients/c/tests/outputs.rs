//! What the functions write: what `dpnoise_core` makes of the same random bytes, or zeros.

use std::sync::LazyLock;

use dpnoise::*;
use dpnoise_core::mechanisms::{Laplace, Noise};
use dpnoise_core::params::Scale;
use dpnoise_core::rng::ScriptedRng;
use dpnoise_core::samplers::{self, Sampler, TableNoise};
use serde_json::Value;

use crate::arguments::CANARY;
use crate::calls::state;
use crate::mechanisms::{MECHANISMS, Numbers};
use crate::{Generator, free, made, message, protocol};

/// An entry of tests/vectors/local.json.
pub(crate) struct Vector {
    pub(crate) family: String,
    pub(crate) specification: Vec<u8>,
    values: Vec<Value>,
    random: Vec<u8>,
    memo: Vec<u8>,
    question: String,
    reports: Vec<u8>,
    messages: Vec<Vec<u8>>,
    malformed: Vec<u8>,
    state: Vec<u8>,
}

/// The vectors of all clients.
pub(crate) fn vectors() -> &'static [Vector] {
    static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| {
        let file: Value = serde_json::from_str(include_str!("../../../tests/vectors/local.json")).unwrap();
        file.as_array().unwrap().iter().map(vector).collect()
    });
    &VECTORS
}

fn vector(entry: &Value) -> Vector {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let all = |field: &str| entry[field].as_array().unwrap().iter().map(|item| hex(item.as_str().unwrap())).collect();
    let given: Value = serde_json::from_str(&text("specification")).unwrap();
    let reports: Vec<Vec<u8>> = all("reports");
    Vector {
        family: given["protocol"].as_str().unwrap().into(),
        specification: text("specification").into(),
        values: entry["values"].as_array().unwrap().clone(),
        random: hex(&text("random")),
        memo: hex(&text("memo")),
        question: text("question"),
        reports: reports.concat(),
        messages: all("messages"),
        malformed: hex(&text("malformed")),
        state: hex(&text("state")),
    }
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The handle of the protocol, with the memo where people keep one.
fn announced(vector: &Vector) -> u64 {
    let bare = protocol(&vector.specification);
    if vector.memo.is_empty() {
        return bare;
    }
    let (memo, question) = (&vector.memo, &vector.question);
    let memo = made(|out| unsafe { dpnoise_memo_from_bytes(memo.as_ptr(), memo.len(), out) });
    let with = made(|out| unsafe { dpnoise_protocol_with_memo(bare, memo, question.as_ptr(), question.len(), out) });
    // The new one keeps what it needs.
    free(bare);
    free(memo);
    with
}

/// Randomises the values of a vector.
fn perturb(vector: &Vector, protocol: u64, form: u32, generator: u64, out: &mut [u8]) -> Status {
    let (n, values) = (vector.values.len(), &vector.values);
    let (out, length) = (out.as_mut_ptr(), out.len());
    if values[0].is_string() {
        let texts: Vec<&str> = values.iter().map(|value| value.as_str().unwrap()).collect();
        let ends = texts.iter().scan(0, |end, text| {
            *end += text.len() as i64;
            Some(*end)
        });
        let (offsets, texts): (Vec<i64>, _) = ([0].into_iter().chain(ends).collect(), texts.concat());
        unsafe { dpnoise_perturb_texts(protocol, texts.as_ptr(), offsets.as_ptr(), n, form, 1, generator, out, length) }
    } else if values[0].is_f64() {
        let numbers: Vec<f64> = values.iter().map(|value| value.as_f64().unwrap()).collect();
        unsafe { dpnoise_perturb_numbers(protocol, numbers.as_ptr(), n, form, 1, generator, out, length) }
    } else {
        let integers: Vec<i64> = values.iter().map(|value| value.as_i64().unwrap()).collect();
        unsafe { dpnoise_perturb_integers(protocol, integers.as_ptr(), n, form, 1, generator, out, length) }
    }
}

#[test]
fn reports_messages_and_states_are_those_of_the_vectors() {
    for vector in vectors() {
        let protocol = announced(vector);
        let generator = Generator::of(&vector.random);
        let mut reports = vec![CANARY; vector.reports.len()];
        assert_eq!(perturb(vector, protocol, DPNOISE_REPORTS, generator.handle, &mut reports), Status::Ok);
        assert_eq!((&reports, generator.played()), (&vector.reports, vector.random.len()), "{}", vector.family);

        let generator = Generator::of(&vector.random);
        let expected = vector.messages[..vector.values.len()].concat();
        let mut messages = vec![CANARY; expected.len()];
        assert_eq!(perturb(vector, protocol, DPNOISE_MESSAGES, generator.handle, &mut messages), Status::Ok);
        assert_eq!(messages, expected, "{}", vector.family);

        let accumulator = made(|out| unsafe { dpnoise_accumulator_new(protocol, out) });
        let (mut all, mut offsets) = (vec![], vec![0]);
        for message in &vector.messages {
            all.extend(message);
            offsets.push(all.len() as i64);
        }
        let (messages, n) = (all.as_ptr(), offsets.len() - 1);
        let added = unsafe { dpnoise_accumulator_add_messages(accumulator, messages, offsets.as_ptr(), n, 2) };
        assert_eq!((added, &state(accumulator)), (Status::Ok, &vector.state), "{}", vector.family);
        let (malformed, mut n, mut rejected) = (&vector.malformed, 0, 0);
        let (added, counted) = unsafe {
            (
                dpnoise_accumulator_add_reports(accumulator, malformed.as_ptr(), malformed.len(), 1),
                dpnoise_accumulator_counts(accumulator, &raw mut n, &raw mut rejected),
            )
        };
        assert_eq!((added, counted, n, rejected), (Status::Ok, Status::Ok, 8, 3), "{}", vector.family);
        [accumulator, protocol].into_iter().for_each(free);
    }
}

#[test]
fn a_generator_that_fails_leaves_no_report() {
    for vector in vectors().iter().filter(|vector| !vector.random.is_empty()) {
        let protocol = announced(vector);
        for form in [DPNOISE_REPORTS, DPNOISE_MESSAGES] {
            for length in [0, vector.random.len() - 1] {
                let generator = Generator::of(&vector.random[..length]);
                let row = vector.reports.len() / vector.values.len() + form as usize * DPNOISE_HEADER_BYTES;
                let mut out = vec![CANARY; vector.values.len() * row];
                let status = perturb(vector, protocol, form, generator.handle, &mut out);
                assert_eq!(status, Status::Randomness, "{}", vector.family);
                assert!(message().ends_with("nothing was released: the given generator returned 7"), "{}", message());
                let all = |byte| out.iter().all(|&other| other == byte);
                assert!(all(0) || all(CANARY), "{}", vector.family);
            }
        }
        free(protocol);
    }
}

#[test]
fn the_noise_is_that_of_the_core() {
    let random: Vec<u8> = (0..=255).cycle().take(1 << 14).collect();
    let script = || ScriptedRng::new(random.clone());
    let sigma = Scale::from_f64(3.5).unwrap();
    let mut expected = [0; 100];
    samplers::DiscreteGaussian::new(sigma).unwrap().fill_with(&mut expected, &mut script()).unwrap();
    let sampler = made(|out| unsafe { dpnoise_discrete_gaussian_sampler(3.5, out) });
    let (mut out, generator) = ([0; 100], Generator::of(&random));
    let status = unsafe { dpnoise_sampler_fill(sampler, 1, generator.handle, out.as_mut_ptr(), 100) };
    assert_eq!((status, out), (Status::Ok, expected));

    let truncated = made(|out| unsafe { dpnoise_truncated_sampler(sampler, 4, out) });
    samplers::DiscreteGaussian::new(sigma)
        .unwrap()
        .truncated(4)
        .unwrap()
        .fill_with(&mut expected, &mut script())
        .unwrap();
    let generator = Generator::of(&random);
    let status = unsafe { dpnoise_sampler_fill(truncated, 1, generator.handle, out.as_mut_ptr(), 100) };
    assert_eq!((status, out), (Status::Ok, expected));
    assert!(expected.iter().all(|sample| sample.abs() <= 4));

    let mut expected = [37.25, -1.0];
    Laplace::new(0.5, 2.0, Some(0.25)).unwrap().release_with(&mut expected, &mut script()).unwrap();
    let laplace = made(|out| unsafe { dpnoise_laplace_mechanism(0.5, 2.0, 0.25, out) });
    assert_eq!(released(laplace, [37.25, -1.0], &random), expected);

    [sampler, truncated, laplace].into_iter().for_each(free);
}

/// The numbers of the core's examples.
pub(crate) const EXAMPLE: Numbers =
    Numbers { epsilon: 0.5, delta: 0.01, sensitivity: 1.0, whole: 1, granularity: 0.0, parties: 3 };

#[test]
fn mechanisms_are_those_of_the_core() {
    let random: Vec<u8> = (0..=255).cycle().take(1 << 14).collect();
    let kinds: Vec<_> = Noise::KINDS.iter().map(|kind| format!("dpnoise_{}_mechanism", kind.name)).collect();
    let functions: Vec<_> = MECHANISMS.iter().map(|(function, _)| *function).collect();
    assert_eq!(functions, kinds, "tests/mechanisms.rs must have a function for each of the core's kinds of noise");
    for (kind, (function, make)) in Noise::KINDS.iter().zip(MECHANISMS) {
        let (core, mechanism) = (kind.example().unwrap(), made(|out| make(&EXAMPLE, out)));
        let script = &mut ScriptedRng::new(random.clone());
        if core.takes_integers() {
            let mut expected = [37, i64::MAX];
            core.release_with(&mut expected[..], script).unwrap();
            assert_eq!(released_integers(mechanism, &random), expected, "{function}");
        } else {
            let mut expected = [37.25, -1.0];
            core.release_with(&mut expected[..], script).unwrap();
            assert_eq!(released(mechanism, [37.25, -1.0], &random), expected, "{function}");
        }
        let expected = core.radius(2).unwrap().map_or((Status::Handle, 0), |bound| (Status::Ok, bound));
        assert_eq!(radius(mechanism), expected, "{function}");
        free(mechanism);
    }
    assert_eq!(message(), "mechanism must be one for bounded noise, got one for noise without a bound");
}

/// A call that makes something.
type Making = fn(*mut u64) -> Status;

#[test]
fn noise_of_tables_is_that_of_the_core() {
    let random: Vec<u8> = (0..=255).cycle().take(1 << 14).collect();
    let script = || ScriptedRng::new(random.clone());
    let scale = |value| Scale::from_f64(value).unwrap();
    for (core, handle) in [
        (TableNoise::skellam(scale(7.5)), made(|out| unsafe { dpnoise_skellam_sampler(7.5, out) })),
        (
            TableNoise::negative_binomial_share(scale(7.5), 3),
            made(|out| unsafe { dpnoise_negative_binomial_share_sampler(7.5, 3, out) }),
        ),
        (TableNoise::staircase(scale(7.5), 9, 2), made(|out| unsafe { dpnoise_staircase_sampler(7.5, 9, 2, out) })),
    ] {
        let (mut expected, mut out, generator) = ([0; 100], [0; 100], Generator::of(&random));
        core.unwrap().fill_with(&mut expected, &mut script()).unwrap();
        let status = unsafe { dpnoise_sampler_fill(handle, 1, generator.handle, out.as_mut_ptr(), 100) };
        assert_eq!((status, out), (Status::Ok, expected));
        free(handle);
    }

    let calls: [(Making, &str); 5] = [
        (|out| unsafe { dpnoise_skellam_sampler(0.0, out) }, "mu must be a rational number"),
        (|out| unsafe { dpnoise_staircase_sampler(-1.0, 1, 1, out) }, "epsilon must be a rational number"),
        (|out| unsafe { dpnoise_staircase_mechanism(1.0, 99, out) }, "sensitivity must be from 1 to"),
        (|out| unsafe { dpnoise_skellam_mechanism(1e-9, 1e-6, 1, 1, out) }, "epsilon must be such that mu is"),
        (
            |out| unsafe { dpnoise_negative_binomial_shares_mechanism(1e-3, 1, 1, out) },
            "epsilon must be such that sensitivity/epsilon is at most 88",
        ),
    ];
    for (call, problem) in calls {
        let mut handle = 0;
        let status = call(&raw mut handle);
        assert!(status == Status::Parameter && message().starts_with(problem), "{}", message());
    }
}

fn released_integers(mechanism: u64, random: &[u8]) -> [i64; 2] {
    let (mut values, generator) = ([37, i64::MAX], Generator::of(random));
    let status = unsafe { dpnoise_mechanism_release_integers(mechanism, values.as_mut_ptr(), 2, 1, generator.handle) };
    assert_eq!(status, Status::Ok, "{}", message());
    values
}

fn radius(mechanism: u64) -> (Status, u64) {
    let mut radius = 0;
    (unsafe { dpnoise_mechanism_radius(mechanism, 2, &raw mut radius) }, radius)
}

fn released(mechanism: u64, mut values: [f64; 2], random: &[u8]) -> [f64; 2] {
    let generator = Generator::of(random);
    let status = unsafe { dpnoise_mechanism_release_numbers(mechanism, values.as_mut_ptr(), 2, 1, generator.handle) };
    assert_eq!(status, Status::Ok, "{}", message());
    values
}

#[test]
fn values_are_zero_after_a_release_that_failed() {
    let reals = made(|out| unsafe { dpnoise_laplace_mechanism(1.0, 1.0, 0.0, out) });
    let integers = made(|out| unsafe { dpnoise_discrete_laplace_mechanism(1.0, 1, out) });
    let (dry, freed) = (Generator::of(&[]), Generator::of(&[]));
    free(freed.handle);
    for (mechanism, value, threads, generator, expected, problem) in [
        (integers, 37.25, 1, 0, Status::Handle, "mechanism must be one for real values, got one for integers"),
        (reals, f64::NAN, 1, 0, Status::Data, "values must be finite: no NaN and no infinity"),
        (reals, 37.25, 0, 0, Status::Parameter, "threads must be at least 1, or not given, got 0"),
        (reals, 37.25, 0, dry.handle, Status::Parameter, "threads must be at least 1, or not given, got 0"),
        (
            reals,
            37.25,
            1,
            freed.handle,
            Status::Handle,
            "generator must be the handle of a generator, got one that was freed or never given",
        ),
        (
            reals,
            37.25,
            1,
            dry.handle,
            Status::Randomness,
            "the source of randomness failed, nothing was released: the given generator returned 7",
        ),
    ] {
        let mut values = [11.5, value, 13.5];
        let status =
            unsafe { dpnoise_mechanism_release_numbers(mechanism, values.as_mut_ptr(), 3, threads, generator) };
        assert_eq!((status, message().as_str(), values), (expected, problem, [0.0; 3]));
    }
    let mut values = [37_i64; 3];
    let status = unsafe { dpnoise_mechanism_release_integers(reals, values.as_mut_ptr(), 3, 1, 0) };
    assert_eq!((status, values), (Status::Handle, [0; 3]));
    [reals, integers].into_iter().for_each(free);
}

#[test]
fn the_error_of_any_number_of_values_can_be_asked() {
    for (name, make) in MECHANISMS {
        let mechanism = made(|out| make(&EXAMPLE, out));
        let mut last = 0.0;
        for n in [0, 1, 1 << 20, usize::MAX >> 1, usize::MAX] {
            let mut error = f64::NAN;
            match unsafe { dpnoise_mechanism_error(mechanism, 0.95, n, &raw mut error) } {
                Status::Ok => assert!(error >= last, "{name} {n}"),
                status => assert_eq!(status, Status::Parameter, "{name} {n}: {}", message()),
            }
            last = error.max(last);
        }
        free(mechanism);
    }
}
