//! Every function with every argument wrong in every way that it can see.

use dpnoise::*;

use crate::arguments::{Arguments, CANARY, Kind, Wrong, checked};
use crate::mechanisms::MECHANISMS;
use crate::outputs::EXAMPLE;
use crate::{ANSWERS, Generator, free, made, message, protocol};

const TEXTS: &str = "count_mean_sketch";
const REPEATED: &str = "longitudinal_unary_encoding";
const NUMBERS: &str = "square_wave";
/// Of the page on the wire format.
const SEVERAL: &[u8] = br#"{"attributes":[["smokes","{\"epsilon\":1.0986122886681098,\"k\":2,\"p\":3,\"planes\":2,\"protocol\":\"randomized_response\",\"q\":1,\"version\":1}"],["mood","{\"epsilon\":1.0,\"k\":2,\"keep\":473,\"planes\":10,\"protocol\":\"duchi_mean\",\"version\":1,\"width\":1}"]],"protocol":"sampled","version":1}"#;

/// The specification of the first vector of a family.
pub(crate) fn specification(family: &str) -> Vec<u8> {
    let vectors = crate::outputs::vectors();
    let found = vectors.iter().find(|vector| vector.family == family);
    found.expect("a vector of each family").specification.clone()
}

/// One object of each kind.
pub(crate) struct Objects {
    answers: u64,
    numbers: u64,
    texts: u64,
    repeated: u64,
    memo: u64,
    accumulator: u64,
    mean: u64,
    several: u64,
    density: u64,
    ranges: u64,
    sketch: u64,
    prefixes: u64,
    generator: Generator,
    sampler: u64,
    reals: u64,
    integers: u64,
    bounded: u64,
}

impl Objects {
    fn new() -> Self {
        let answers = protocol(ANSWERS);
        let of_several = protocol(SEVERAL);
        let several = made(|out| unsafe { dpnoise_accumulator_new(of_several, out) });
        free(of_several);
        Self {
            several,
            mean: collector("laplace_mean", &[0; 4]),
            density: collector("square_wave", &[0]),
            ranges: collector("hierarchical_range", &[16]),
            sketch: collector("hadamard_count_mean_sketch", &[0]),
            prefixes: collector("prefix_extension", &[0]),
            answers,
            numbers: protocol(&specification(NUMBERS)),
            texts: protocol(&specification(TEXTS)),
            repeated: protocol(&specification(REPEATED)),
            memo: made(|out| unsafe { dpnoise_memo_new(1, out) }),
            accumulator: made(|out| unsafe { dpnoise_accumulator_new(answers, out) }),
            generator: Generator::of(&[0; 4096]),
            sampler: made(|out| unsafe { dpnoise_discrete_laplace_sampler(1.0, out) }),
            reals: made(|out| unsafe { dpnoise_laplace_mechanism(1.0, 1.0, 0.0, out) }),
            integers: made(|out| unsafe { dpnoise_discrete_laplace_mechanism(1.0, 1, out) }),
            bounded: made(|out| unsafe { dpnoise_truncated_discrete_laplace_mechanism(1.0, 1e-6, 1, out) }),
        }
    }

    /// Handles of each kind, by the name of their arguments.
    fn kinds(&self) -> [(&'static str, u64); 6] {
        [
            ("protocol", self.answers),
            ("memo", self.memo),
            ("accumulator", self.accumulator),
            ("generator", self.generator.handle),
            ("sampler", self.sampler),
            ("mechanism", self.reals),
        ]
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let Self { answers, numbers, texts, repeated, memo, accumulator, sampler, reals, integers, .. } = *self;
        let Self { mean, several, density, ranges, sketch, prefixes, .. } = *self;
        [answers, numbers, texts, repeated, memo, accumulator, sampler, reals, integers]
            .into_iter()
            .chain([mean, several, density, ranges, sketch, prefixes])
            .for_each(free);
    }
}

/// An accumulator of the first vector of a family, which has counted a report.
fn collector(family: &str, report: &[u8]) -> u64 {
    let protocol = protocol(&specification(family));
    let accumulator = made(|out| unsafe { dpnoise_accumulator_new(protocol, out) });
    assert_eq!(unsafe { dpnoise_accumulator_add_reports(accumulator, report.as_ptr(), report.len(), 1) }, Status::Ok);
    let mut n = 0;
    let counted = unsafe { dpnoise_accumulator_counts(accumulator, &raw mut n, core::ptr::null_mut()) };
    assert_eq!((counted, n), (Status::Ok, 1), "{family}");
    free(protocol);
    accumulator
}

type Call = fn(&Objects, &mut Arguments) -> Status;

/// What `make` returns; the handle that it has written is freed.
fn making(arguments: &mut Arguments, make: impl FnOnce(&mut Arguments, *mut u64) -> Status) -> Status {
    let mut handles = [u64::MAX];
    let out = arguments.write("out", &mut handles);
    let status = make(arguments, out);
    match (status, handles) {
        (Status::Ok, [handle]) => free(handle),
        // Unless there is no place for it, 0 is written.
        (_, [handle]) => assert!(handle == 0 || message().starts_with("out "), "{handle}"),
    }
    status
}

/// Reports of one person, who is `values`.
macro_rules! perturb {
    ($function:ident, $protocol:expr, $arguments:expr, [$($value:expr),*]) => {{
        let arguments: &mut Arguments = $arguments;
        let mut out = [CANARY; 600];
        let (mut width, mut counters) = (0, 0);
        let none = core::ptr::null_mut();
        let status = unsafe {
            assert_eq!(dpnoise_protocol_facts($protocol, none, none, none, &raw mut width, &raw mut counters), Status::Ok);
            $function(
                arguments.handle("protocol", $protocol),
                $($value,)*
                arguments.length("n", 1),
                DPNOISE_REPORTS,
                1,
                arguments.generator(),
                arguments.write("out", &mut out),
                arguments.length("length", width),
            )
        };
        checked(status, &out[..width])
    }};
}

/// Values that are released, which must be zero after an error.
macro_rules! release {
    ($function:ident, $mechanism:expr, $arguments:expr, $value:expr) => {{
        let arguments: &mut Arguments = $arguments;
        let mut values = [$value; 3];
        let mechanism = arguments.handle("mechanism", $mechanism);
        let pointer = arguments.write("values", &mut values);
        let (n, generator) = (arguments.length("n", 3), arguments.generator());
        let status = unsafe { $function(mechanism, pointer, n, 1, generator) };
        let is_wiped = values.map(|value| value.to_ne_bytes()).as_flattened().iter().all(|&byte| byte == 0);
        assert!(status == Status::Ok || is_wiped || message().starts_with("values "), "{}", message());
        status
    }};
}

/// Every function, with right arguments unless `arguments` replaces one.
const CALLS: &[(&str, Call)] = &[
    ("dpnoise_generator_new", |objects, arguments| {
        let context = core::ptr::from_ref(&*objects.generator.script).cast_mut().cast();
        making(arguments, |_, out| unsafe { dpnoise_generator_new(Some(crate::play), context, out) })
    }),
    ("dpnoise_protocol_from_json", |_, arguments| {
        making(arguments, |arguments, out| unsafe {
            let bytes = arguments.read("specification", ANSWERS);
            dpnoise_protocol_from_json(bytes, arguments.length("length", ANSWERS.len()), 8, out)
        })
    }),
    ("dpnoise_protocol_about", |objects, arguments| {
        making(arguments, |arguments, out| unsafe {
            let protocol = arguments.handle("protocol", objects.answers);
            let (question, period) = (arguments.read("question", b"colour"), arguments.read("period", b"2026-W48"));
            let question_length = arguments.length("question_length", 6);
            let period_length = arguments.length("period_length", 8);
            dpnoise_protocol_about(protocol, question, question_length, period, period_length, out)
        })
    }),
    ("dpnoise_protocol_to_json", |objects, arguments| unsafe {
        let (mut out, mut length) = ([CANARY; ANSWERS.len()], [0]);
        let protocol = arguments.handle("protocol", objects.answers);
        let (pointer, capacity) = (arguments.write("out", &mut out), arguments.length("capacity", ANSWERS.len()));
        let status = dpnoise_protocol_to_json(protocol, pointer, capacity, arguments.write("length", &mut length));
        assert!(status != Status::Ok || (out == ANSWERS && length == [ANSWERS.len()]));
        checked(status, &out)
    }),
    ("dpnoise_protocol_bare_digest", |objects, arguments| unsafe {
        let mut out = [CANARY; DPNOISE_DIGEST_BYTES];
        let protocol = arguments.handle("protocol", objects.answers);
        let pointer = arguments.write("out", &mut out);
        checked(dpnoise_protocol_bare_digest(protocol, pointer, arguments.length("capacity", out.len())), &out)
    }),
    ("dpnoise_protocol_with_memo", |objects, arguments| {
        let own = made(|out| unsafe { dpnoise_memo_new(1, out) }); // its bytes change
        let status = making(arguments, |arguments, out| unsafe {
            let protocol = arguments.handle("protocol", objects.repeated);
            let memo = arguments.handle("memo", own);
            let question = arguments.read("question", b"colour");
            dpnoise_protocol_with_memo(protocol, memo, question, arguments.length("length", 6), out)
        });
        free(own);
        status
    }),
    ("dpnoise_protocol_facts", |objects, arguments| unsafe {
        let (mut takes, mut keeps_memo, mut k, mut width, mut counters) = (9, 9, 0, 0, 0);
        let status = dpnoise_protocol_facts(
            arguments.handle("protocol", objects.answers),
            arguments.optional("takes", &mut takes),
            arguments.optional("keeps_memo", &mut keeps_memo),
            arguments.optional("k", &mut k),
            arguments.optional("report_bytes", &mut width),
            arguments.optional("counter_bytes", &mut counters),
        );
        assert!([0, 9].contains(&takes) && [0, 9].contains(&keeps_memo) && [0, 2].contains(&k) && width <= 1);
        assert!([0, 8].contains(&counters));
        status
    }),
    ("dpnoise_protocol_epsilon", |objects, arguments| unsafe {
        let mut epsilon = [-1.0];
        let protocol = arguments.handle("protocol", objects.answers);
        let status = dpnoise_protocol_epsilon(protocol, arguments.write("epsilon", &mut epsilon));
        assert_eq!(status == Status::Ok, epsilon[0] == 1.098_612_288_668_109_8);
        status
    }),
    ("dpnoise_protocol_delta", |objects, arguments| unsafe {
        let mut delta = [-1.0];
        let protocol = arguments.handle("protocol", objects.answers);
        let status = dpnoise_protocol_delta(protocol, arguments.write("delta", &mut delta));
        assert_eq!(status == Status::Ok, delta[0] == 0.0);
        status
    }),
    ("dpnoise_protocol_header", |objects, arguments| unsafe {
        let mut out = [CANARY; DPNOISE_HEADER_BYTES];
        let protocol = arguments.handle("protocol", objects.answers);
        let pointer = arguments.write("out", &mut out);
        let length = arguments.length("capacity", DPNOISE_HEADER_BYTES);
        checked(dpnoise_protocol_header(protocol, pointer, length), &out)
    }),
    ("dpnoise_perturb_integers", |objects, arguments| {
        let values = arguments.read("values", &[1]);
        perturb!(dpnoise_perturb_integers, objects.answers, arguments, [values])
    }),
    ("dpnoise_perturb_numbers", |objects, arguments| {
        let values = arguments.read("values", &[0.5]);
        perturb!(dpnoise_perturb_numbers, objects.numbers, arguments, [values])
    }),
    ("dpnoise_perturb_texts", |objects, arguments| {
        let (texts, offsets) = (arguments.read("texts", b"plum"), arguments.read("offsets", &[0, 4]));
        perturb!(dpnoise_perturb_texts, objects.texts, arguments, [texts, offsets])
    }),
    ("dpnoise_memo_new", |_, arguments| making(arguments, |_, out| unsafe { dpnoise_memo_new(3, out) })),
    ("dpnoise_memo_from_bytes", |objects, arguments| {
        let (mut bytes, mut length) = ([0; 52], 0);
        let copied = unsafe { dpnoise_memo_to_bytes(objects.memo, bytes.as_mut_ptr(), 52, &raw mut length) };
        assert_eq!((copied, length), (Status::Ok, 52));
        making(arguments, |arguments, out| unsafe {
            dpnoise_memo_from_bytes(arguments.read("bytes", &bytes), arguments.length("length", 52), out)
        })
    }),
    ("dpnoise_memo_to_bytes", |objects, arguments| unsafe {
        let (mut out, mut length) = ([CANARY; 52], [0]);
        let memo = arguments.handle("memo", objects.memo);
        let (pointer, capacity) = (arguments.write("out", &mut out), arguments.length("capacity", 52));
        checked(dpnoise_memo_to_bytes(memo, pointer, capacity, arguments.write("length", &mut length)), &out)
    }),
    ("dpnoise_accumulator_new", |objects, arguments| {
        making(arguments, |arguments, out| unsafe {
            dpnoise_accumulator_new(arguments.handle("protocol", objects.answers), out)
        })
    }),
    ("dpnoise_accumulator_from_bytes", |objects, arguments| {
        let bytes = state(objects.accumulator);
        making(arguments, |arguments, out| unsafe {
            let pointer = arguments.read("bytes", &bytes);
            dpnoise_accumulator_from_bytes(pointer, arguments.length("length", bytes.len()), 8, out)
        })
    }),
    ("dpnoise_accumulator_to_bytes", |objects, arguments| unsafe {
        let (mut out, mut length) = ([CANARY; 400], [0]);
        let accumulator = arguments.handle("accumulator", objects.accumulator);
        let (pointer, capacity) = (arguments.write("out", &mut out), arguments.length("capacity", 400));
        let length = arguments.write("length", &mut length);
        checked(dpnoise_accumulator_to_bytes(accumulator, pointer, capacity, length), &out)
    }),
    ("dpnoise_accumulator_protocol", |objects, arguments| {
        making(arguments, |arguments, out| unsafe {
            dpnoise_accumulator_protocol(arguments.handle("accumulator", objects.accumulator), out)
        })
    }),
    ("dpnoise_accumulator_add_messages", |objects, arguments| unsafe {
        dpnoise_accumulator_add_messages(
            arguments.handle("accumulator", objects.accumulator),
            arguments.read("messages", b"not a message"),
            arguments.read("offsets", &[0, 13]),
            arguments.length("n", 1),
            1,
        )
    }),
    ("dpnoise_accumulator_add_reports", |objects, arguments| unsafe {
        dpnoise_accumulator_add_reports(
            arguments.handle("accumulator", objects.accumulator),
            arguments.read("reports", &[0, 1]),
            arguments.length("length", 2),
            1,
        )
    }),
    ("dpnoise_accumulator_merge", |objects, arguments| {
        let other = made(|out| unsafe { dpnoise_accumulator_new(objects.answers, out) });
        let accumulator = arguments.handle("accumulator", objects.accumulator);
        let status = dpnoise_accumulator_merge(accumulator, arguments.handle("other", other));
        free(other);
        status
    }),
    ("dpnoise_accumulator_counts", |objects, arguments| unsafe {
        let (mut n, mut rejected) = (0, 0);
        dpnoise_accumulator_counts(
            arguments.handle("accumulator", objects.accumulator),
            arguments.optional("n", &mut n),
            arguments.optional("rejected", &mut rejected),
        )
    }),
    ("dpnoise_accumulator_attribute", |objects, arguments| {
        making(arguments, |arguments, out| unsafe {
            let accumulator = arguments.handle("accumulator", objects.several);
            let name = arguments.read("name", b"smokes");
            dpnoise_accumulator_attribute(accumulator, name, arguments.length("length", 6), out)
        })
    }),
    ("dpnoise_accumulator_estimate", |objects, arguments| unsafe {
        // On the heap there is a gap between the two, where a pointer may be wrong by one byte.
        let (mut counts, mut errors) = (vec![-1.0; 2], vec![-1.0; 2]);
        dpnoise_accumulator_estimate(
            arguments.handle("accumulator", objects.accumulator),
            arguments.write("counts", &mut counts),
            arguments.write("standard_errors", &mut errors),
            arguments.length("k", 2),
        )
    }),
    ("dpnoise_accumulator_estimate_mean", |objects, arguments| unsafe {
        let (mut mean, mut error) = (vec![-1.0], vec![-1.0]);
        dpnoise_accumulator_estimate_mean(
            arguments.handle("accumulator", objects.mean),
            arguments.write("mean", &mut mean),
            arguments.write("standard_error", &mut error),
        )
    }),
    ("dpnoise_accumulator_estimate_density", |objects, arguments| unsafe {
        let mut shares = [-1.0; 15];
        dpnoise_accumulator_estimate_density(
            arguments.handle("accumulator", objects.density),
            1,
            arguments.write("shares", &mut shares),
            arguments.length("k", 15),
        )
    }),
    ("dpnoise_accumulator_estimate_ranges", |objects, arguments| unsafe {
        let (mut counts, mut errors) = (vec![-1.0; 2], vec![-1.0; 2]);
        dpnoise_accumulator_estimate_ranges(
            arguments.handle("accumulator", objects.ranges),
            arguments.read("first", &[0, 1]),
            arguments.read("last", &[5, 1]),
            arguments.length("n", 2),
            arguments.write("counts", &mut counts),
            arguments.write("standard_errors", &mut errors),
        )
    }),
    ("dpnoise_accumulator_estimate_quantiles", |objects, arguments| unsafe {
        let mut values = [-1; 2];
        dpnoise_accumulator_estimate_quantiles(
            arguments.handle("accumulator", objects.ranges),
            arguments.read("q", &[0.0, 0.5]),
            arguments.length("n", 2),
            arguments.write("values", &mut values),
        )
    }),
    ("dpnoise_accumulator_estimate_candidates", |objects, arguments| unsafe {
        let (mut counts, mut errors) = (vec![-1.0; 1], vec![-1.0; 1]);
        dpnoise_accumulator_estimate_candidates(
            arguments.handle("accumulator", objects.sketch),
            arguments.read("texts", b"plum"),
            arguments.read("offsets", &[0, 4]),
            arguments.length("n", 1),
            arguments.write("counts", &mut counts),
            arguments.write("standard_errors", &mut errors),
        )
    }),
    ("dpnoise_accumulator_estimate_prefixes", |objects, arguments| unsafe {
        let (mut counts, mut errors, mut values) = (vec![-1.0; 4], vec![-1.0; 4], vec![-1; 4]);
        let (mut found, mut complete) = (vec![9], vec![9]);
        dpnoise_accumulator_estimate_prefixes(
            arguments.handle("accumulator", objects.prefixes),
            0.95,
            arguments.write("values", &mut values),
            arguments.write("counts", &mut counts),
            arguments.write("standard_errors", &mut errors),
            arguments.length("capacity", 4),
            arguments.write("found", &mut found),
            arguments.write("complete", &mut complete),
        )
    }),
    ("dpnoise_discrete_laplace_sampler", |_, arguments| {
        making(arguments, |_, out| unsafe { dpnoise_discrete_laplace_sampler(1.0, out) })
    }),
    ("dpnoise_discrete_gaussian_sampler", |_, arguments| {
        making(arguments, |_, out| unsafe { dpnoise_discrete_gaussian_sampler(1.0, out) })
    }),
    ("dpnoise_truncated_sampler", |objects, arguments| {
        let sampler = arguments.handle("sampler", objects.sampler);
        making(arguments, |_, out| unsafe { dpnoise_truncated_sampler(sampler, 9, out) })
    }),
    ("dpnoise_skellam_sampler", |_, arguments| {
        making(arguments, |_, out| unsafe { dpnoise_skellam_sampler(1.0, out) })
    }),
    ("dpnoise_negative_binomial_share_sampler", |_, arguments| {
        making(arguments, |_, out| unsafe { dpnoise_negative_binomial_share_sampler(1.0, 3, out) })
    }),
    ("dpnoise_staircase_sampler", |_, arguments| {
        making(arguments, |_, out| unsafe { dpnoise_staircase_sampler(1.0, 3, 2, out) })
    }),
    ("dpnoise_sampler_fill", |objects, arguments| unsafe {
        let mut out = [i64::MAX; 3];
        let (sampler, generator) = (arguments.handle("sampler", objects.sampler), arguments.generator());
        let pointer = arguments.write("out", &mut out);
        dpnoise_sampler_fill(sampler, 1, generator, pointer, arguments.length("n", 3))
    }),
    ("dpnoise_mechanism_radius", |objects, arguments| unsafe {
        let mut radius = [u64::MAX];
        let mechanism = arguments.handle("mechanism", objects.bounded);
        dpnoise_mechanism_radius(mechanism, 3, arguments.write("radius", &mut radius))
    }),
    ("dpnoise_mechanism_release_numbers", |objects, arguments| {
        release!(dpnoise_mechanism_release_numbers, objects.reals, arguments, 37.25)
    }),
    ("dpnoise_mechanism_release_integers", |objects, arguments| {
        release!(dpnoise_mechanism_release_integers, objects.integers, arguments, 37_i64)
    }),
];

/// The function without memory of its own.
fn error_of(objects: &Objects, arguments: &mut Arguments) -> Status {
    let mut error = [-1.0];
    let mechanism = arguments.handle("mechanism", objects.reals);
    unsafe { dpnoise_mechanism_error(mechanism, 0.95, 3, arguments.write("error", &mut error)) }
}

type AnyCall = Box<dyn Fn(&Objects, &mut Arguments) -> Status>;

fn every_call() -> impl Iterator<Item = (&'static str, AnyCall)> {
    let others = CALLS.iter().copied().chain([("dpnoise_mechanism_error", error_of as Call)]);
    let others = others.map(|(name, call)| (name, Box::new(call) as AnyCall));
    let mechanisms = MECHANISMS.iter().map(|&(name, make)| -> (_, AnyCall) {
        (name, Box::new(move |_, arguments| making(arguments, |_, out| make(&EXAMPLE, out))))
    });
    others.chain(mechanisms)
}

/// The bytes of an accumulator.
pub(crate) fn state(accumulator: u64) -> Vec<u8> {
    let mut length = 0;
    let none = core::ptr::null_mut();
    unsafe {
        let asked = dpnoise_accumulator_to_bytes(accumulator, none, 0, &raw mut length);
        assert_eq!((asked, message()), (Status::Memory, format!("out must have at least {length} bytes, got 0")));
        let mut bytes = vec![0; length];
        let written = dpnoise_accumulator_to_bytes(accumulator, bytes.as_mut_ptr(), length, &raw mut length);
        assert_eq!(written, Status::Ok);
        bytes
    }
}

/// Makes every call with each of its arguments replaced in turn, as `wrong` says; `check` gets the call's name, the
/// argument's, what it was and the status.
fn replace(wrong: impl Fn(Kind) -> Vec<Wrong>, check: impl Fn(&str, &str, Kind, Status)) {
    let objects = Objects::new();
    for (function, call) in every_call() {
        let mut right = Arguments::default();
        assert_eq!(call(&objects, &mut right), Status::Ok, "{function}: {}", message());
        for (name, kind) in right.seen {
            for wrong in wrong(kind) {
                check(function, name, kind, call(&objects, &mut Arguments::with(name, wrong)));
            }
        }
    }
}

#[test]
fn the_table_has_every_function_of_the_header() {
    let header = include_str!("../dpnoise.h");
    let mut declared: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("dpnoise_status ")?.split_once('('))
        .map(|it| it.0)
        .collect();
    let mut called: Vec<&str> = every_call().map(|call| call.0).chain(["dpnoise_free"]).collect();
    declared.sort_unstable();
    called.sort_unstable();
    assert_eq!(declared, called);
}

#[test]
fn null_pointers_are_refused_by_name() {
    let null = |kind| if let Kind::Pointer(_) | Kind::Optional(_) = kind { vec![Wrong::Null] } else { vec![] };
    replace(null, |function, name, kind, status| {
        if let Kind::Optional(_) = kind {
            assert_eq!(status, Status::Ok, "{function}: {name}");
        } else {
            assert_eq!(status, Status::Memory, "{function}: {name}");
            assert_eq!(message(), format!("{name} must not be null"), "{function}");
        }
    });
}

#[test]
fn misaligned_pointers_are_refused_by_name() {
    let misaligned = |kind| match kind {
        Kind::Pointer(align) | Kind::Optional(align) if align > 1 => vec![Wrong::Misaligned],
        _ => vec![],
    };
    replace(misaligned, |function, name, _, status| {
        assert_eq!(status, Status::Memory, "{function}: {name}");
        assert_eq!(message(), format!("{name} must be aligned for its type"), "{function}");
    });
}

#[test]
fn lengths_that_no_memory_has_are_refused() {
    let lengths = |kind| match kind {
        Kind::Length => [usize::MAX, isize::MAX as usize + 1].map(Wrong::Length).to_vec(),
        _ => vec![],
    };
    replace(lengths, |function, name, _, status| {
        assert_eq!(status, Status::Memory, "{function}: {name}: {}", message());
    });
}

#[test]
fn short_memory_is_refused() {
    let short = |kind| if kind == Kind::Length { vec![Wrong::Length(0)] } else { vec![] };
    // Nothing to change, to add, to fill, to release or to estimate is no mistake, and no words are a question.
    let estimates = ["estimate_ranges", "estimate_quantiles", "estimate_candidates", "estimate_prefixes"];
    let may_be_empty =
        ["about", "add_messages", "add_reports", "fill", "release_numbers", "release_integers", "with_memo"];
    replace(short, |function, name, _, status| {
        let is_fine = may_be_empty.iter().chain(&estimates).any(|end| function.ends_with(end));
        assert_eq!(status == Status::Ok, is_fine, "{function}: {name}: {status:?}");
    });
}

#[test]
fn handles_that_are_not_of_the_right_kind_are_refused_by_name() {
    let others = Objects::new();
    let freed = made(|out| unsafe { dpnoise_memo_new(1, out) });
    free(freed);
    for (other, handle) in others.kinds().into_iter().chain([("", freed), ("", u64::MAX), ("", 0)]) {
        let wrong = |kind| match kind {
            Kind::Handle => vec![Wrong::Handle(handle)],
            Kind::Generator if handle != 0 => vec![Wrong::Handle(handle)],
            _ => vec![],
        };
        replace(wrong, |function, name, _, status| {
            let kind = if name == "other" { "accumulator" } else { name };
            if kind == other {
                return;
            }
            assert_eq!(status, Status::Handle, "{function}: {name} = {other}");
            let found = if other.is_empty() { "one that was freed or never given" } else { other };
            let start = format!("{name} must be the handle of a");
            assert!(
                message().starts_with(&start)
                    && message().contains(&format!(" {kind}, got "))
                    && message().ends_with(found),
                "{}",
                message()
            );
        });
    }
}

#[test]
fn handles_are_freed_once() {
    let memo = made(|out| unsafe { dpnoise_memo_new(1, out) });
    free(memo);
    for handle in [memo, memo, u64::MAX] {
        assert_eq!(dpnoise_free(handle), Status::Handle);
        assert_eq!(message(), "handle must be a live one, got one that was freed or never given");
    }
    assert_eq!(dpnoise_free(0), Status::Ok);
    let next = made(|out| unsafe { dpnoise_memo_new(1, out) });
    assert!(next > memo, "no handle is given twice");
    free(next);
}

#[test]
fn memory_that_is_written_must_not_overlap_what_is_read() {
    let objects = Objects::new();
    let mut words = [0i64; 4];
    let pointer = words.as_mut_ptr();
    let integers = unsafe {
        dpnoise_perturb_integers(objects.answers, pointer, 2, DPNOISE_REPORTS, 1, 0, pointer.add(1).cast(), 2)
    };
    assert_eq!((integers, message().as_str()), (Status::Memory, "out must not overlap values"));
    let numbers = unsafe {
        dpnoise_perturb_numbers(objects.numbers, pointer.cast(), 1, DPNOISE_REPORTS, 1, 0, pointer.cast(), 1)
    };
    assert_eq!((numbers, message().as_str()), (Status::Memory, "out must not overlap values"));
    for (texts, out, other) in [(2, 0, "offsets"), (2, 2, "texts")] {
        words = [0, 4, 0, 0];
        let pointer = words.as_mut_ptr();
        let status = unsafe {
            let (texts, out) = (pointer.add(texts).cast(), pointer.add(out).cast());
            dpnoise_perturb_texts(objects.texts, texts, pointer, 1, DPNOISE_REPORTS, 1, 0, out, 4)
        };
        assert_eq!((status, message()), (Status::Memory, format!("out must not overlap {other}")));
    }
    let mut both = [0.0; 3];
    let (one, two) = (both.as_mut_ptr(), both.as_mut_ptr().wrapping_add(1));
    let estimated = unsafe { dpnoise_accumulator_estimate(objects.accumulator, one, two, 2) };
    assert_eq!((estimated, message().as_str()), (Status::Memory, "counts must not overlap standard_errors"));
    let estimated = unsafe { dpnoise_accumulator_estimate_mean(objects.mean, one, one) };
    assert_eq!((estimated, message().as_str()), (Status::Memory, "mean must not overlap standard_error"));
    let (mut words, mut flag) = ([0i64; 2], 0);
    let integers = words.as_mut_ptr();
    let estimated = unsafe { dpnoise_accumulator_estimate_ranges(objects.ranges, integers, integers, 1, one, two) };
    assert_eq!(estimated, Status::Ok, "{}", message());
    let doubles: *mut f64 = integers.cast();
    let estimated = unsafe { dpnoise_accumulator_estimate_ranges(objects.ranges, integers, integers, 1, doubles, two) };
    assert_eq!((estimated, message().as_str()), (Status::Memory, "counts must not overlap first"));
    let estimated = unsafe { dpnoise_accumulator_estimate_quantiles(objects.ranges, doubles, 1, integers) };
    assert_eq!((estimated, message().as_str()), (Status::Memory, "values must not overlap q"));
    let estimated =
        unsafe { dpnoise_accumulator_estimate_candidates(objects.sketch, [].as_ptr(), integers, 1, doubles, two) };
    assert_eq!((estimated, message().as_str()), (Status::Memory, "counts must not overlap offsets"));
    let mut found = 0;
    let (found, flag) = (&raw mut found, &raw mut flag);
    let estimated =
        unsafe { dpnoise_accumulator_estimate_prefixes(objects.prefixes, 0.5, integers, one, doubles, 1, found, flag) };
    assert_eq!((estimated, message().as_str()), (Status::Memory, "standard_errors must not overlap values"));
}

#[test]
fn estimates_of_another_protocol_are_refused_by_name() {
    let objects = Objects::new();
    let (mut numbers, mut values, mut found, mut complete) = ([0.0; 2], [0; 1], 0, 0);
    let (one, two, value) = (numbers.as_mut_ptr(), numbers.as_mut_ptr().wrapping_add(1), values.as_mut_ptr());
    let (found, complete) = (&raw mut found, &raw mut complete);
    let (ends, q) = ([0, 0], [0.5]);
    let first = ends.as_ptr();
    let mean = objects.mean;
    let refused = unsafe {
        [
            ("a protocol for distributions", dpnoise_accumulator_estimate_density(mean, 1, one, 1), message()),
            ("a protocol for ranges", dpnoise_accumulator_estimate_ranges(mean, first, first, 1, one, two), message()),
            ("a protocol for ranges", dpnoise_accumulator_estimate_quantiles(mean, q.as_ptr(), 1, value), message()),
            ("a sketch", dpnoise_accumulator_estimate_candidates(mean, [].as_ptr(), first, 1, one, two), message()),
            (
                "prefix extension",
                dpnoise_accumulator_estimate_prefixes(mean, 0.5, value, one, two, 1, found, complete),
                message(),
            ),
        ]
    };
    for (wanted, status, message) in refused {
        let expected = format!("accumulator must be of {wanted}, got laplace_mean");
        assert_eq!((status, message), (Status::Parameter, expected));
    }
    let smoothed = unsafe { dpnoise_accumulator_estimate_density(objects.density, 2, one, 1) };
    assert_eq!((smoothed, message().as_str()), (Status::Parameter, "smoothing must be 0 or 1, got 2"));
}
