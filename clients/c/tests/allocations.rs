//! Memory: what the shortest specifications may cost, and that no call aborts where there is none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::cmp::Reverse;
use std::ptr::null_mut;
use std::time::Instant;

use dpnoise::*;
use dpnoise_core::Error;
use dpnoise_core::arguments::Argument;
use dpnoise_core::local::*;
use dpnoise_core::memory::zeroed;

use crate::{free, made, message};

/// Allocations of at least so many bytes may fail. Smaller ones have a size that does not come from outside.
const LARGE: usize = 1 << 18;

/// What a thread has allocated, and which of its large allocations fails.
#[derive(Clone, Copy)]
struct Plan {
    held: isize,
    most: isize,
    large: usize,
    fails_at: usize,
}

std::thread_local! {
    static PLAN: Cell<Plan> = const { Cell::new(Plan { held: 0, most: 0, large: 0, fails_at: usize::MAX }) };
}

struct Planted;

#[global_allocator]
static ALLOCATOR: Planted = Planted;

impl Planted {
    /// Whether there is memory for one allocation, of `freed` bytes before.
    fn grants(size: usize, freed: usize) -> bool {
        let granted = PLAN.try_with(|cell| {
            let mut plan = cell.get();
            plan.large += usize::from(size >= LARGE);
            let granted = size < LARGE || plan.large != plan.fails_at;
            if granted {
                plan.held += size as isize - freed as isize;
                plan.most = plan.most.max(plan.held);
            }
            cell.set(plan);
            granted
        });
        granted.unwrap_or(true) // the thread ends
    }
}

// SAFETY: the system's allocator does the work, or nothing is allocated, which null says.
unsafe impl GlobalAlloc for Planted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::grants(layout.size(), 0) { unsafe { System.alloc(layout) } } else { null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::grants(layout.size(), 0) { unsafe { System.alloc_zeroed(layout) } } else { null_mut() }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::grants(size, layout.size()) { unsafe { System.realloc(block, layout, size) } } else { null_mut() }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let _ = PLAN.try_with(|cell| cell.set(Plan { held: cell.get().held - layout.size() as isize, ..cell.get() }));
        unsafe { System.dealloc(block, layout) }
    }
}

/// The most bytes that this thread holds at a time during `work`, beside those that it holds already.
fn most_during(work: impl FnOnce()) -> usize {
    let before = PLAN.get().held;
    PLAN.set(Plan { most: before, ..PLAN.get() });
    work();
    (PLAN.get().most - before).cast_unsigned()
}

/// Protocols of a family with `k` values, or with what takes their place, and this epsilon: for each other parameter
/// its extremes, and for sketches so many cells. A parameter with a new name needs a line here.
fn extremes(info: &FamilyInfo, cells: u64, k: u64, epsilon: f64) -> Vec<Protocol> {
    let integers = |values: &[u64]| values.iter().copied().map(Argument::Integer).collect::<Vec<_>>();
    let reals = |values: &[f64]| values.iter().copied().map(Argument::Real).collect::<Vec<_>>();
    let rows = [1, 2, 8].map(|shares| [cells / k / shares, cells / (k + 1) / shares]).concat();
    let rows: Vec<u64> = rows.into_iter().chain([1]).map(|rows| rows.min(1 << 16)).collect();
    let mut all: Vec<Vec<(&str, Argument)>> = vec![vec![]];
    for parameter in info.parameters {
        let values = match parameter.name {
            "k" | "width" | "num_bloombits" => integers(&[k]),
            "epsilon" | "epsilon_permanent" => reals(&[epsilon]),
            "epsilon_first" => reals(&[epsilon / 2.0]),
            "delta" => reals(&[0.5 / (1u64 << 63) as f64, 0.5]),
            "p" => reals(&[0.75, 0.5]),
            "q" => reals(&[0.25, 0.499, 0.75]),
            "rows" | "num_cohorts" => integers(&rows),
            "num_hashes" => integers(&[1, 2]),
            "g" => integers(&[2, 1 << 8, 1 << 16]),
            "omega" | "d" => integers(&[1, k - 1, k]),
            "branching" => integers(&[2, 1 << 10]),
            "bits" => integers(&[63]),
            "step" => integers(&[16]),
            "prime" => primes(k, epsilon),
            "f" | "permanent" | "seed" => vec![parameter.example],
            other => panic!("{other} needs a line here"),
        };
        all = all
            .iter()
            .flat_map(|given| values.iter().map(|&value| [&given[..], &[(parameter.name, value)]].concat()))
            .collect();
    }
    all.iter().filter_map(|given| Protocol::new(info.name, given).ok()).collect()
}

/// For each number of digits the largest prime that leads to four times as many points as the default, which is the last.
fn primes(k: u64, epsilon: f64) -> Vec<Argument> {
    let made = |prime| ProjectiveGeometryResponse::new(k, epsilon, prime).ok();
    let default = made(None).map(ProjectiveGeometryResponse::space);
    let points = default.map_or(0.0, |space| space.points() as f64);
    let largest = (1..8).map(|digits| (4.1 * points).powf(1.0 / f64::from(digits)) as u64);
    let found = largest.filter_map(|largest| {
        let mut primes = (2..=largest).rev().take(1 << 10).chain([134_217_689]);
        primes.find(|&prime| made(Some(prime)).is_some())
    });
    found.chain(default.map(|space| space.prime().into())).map(Argument::Integer).collect()
}

/// All that a specification leads to, on a device of a person and in a collector: reading it, a report, counting it,
/// estimating, and the state written and read.
fn everything(json: &str) -> Result<(), Error> {
    let protocol = Protocol::from_json(json, COUNTER_LIMIT)?;
    let (width, memo) = (protocol.report_bytes(), ClientMemo::generate(1)?);
    let values = match protocol.takes() {
        ValueKind::Numbers => Values::Numbers(&[0.0]),
        ValueKind::Answers => Values::Answers(&[0]),
        ValueKind::Remembering => {
            Values::Remembering(Remembering { values: &[0], secrets: memo.secrets(), question: "" })
        }
        _ => Values::Integers(&[0]),
    };
    let mut report = zeroed(width)?;
    protocol.perturb(values, &mut report, 1)?;
    let mut counts = Accumulator::new(protocol)?;
    counts.add(&report, width, 1)?;
    assert_eq!((counts.n(), counts.rejected()), (1, 0));
    drop(report);
    counts.estimate()?;
    counts.estimate_candidates(&[0])?;
    counts.estimate_prefixes(0.5)?;
    counts.estimate_density(true)?;
    if let Some(ranges) = counts.estimate_ranges()? {
        ranges.range(0, ranges.k() - 1)?;
        ranges.quantile(0.5)?;
    }
    Accumulator::from_bytes(&counts.to_bytes()?, COUNTER_LIMIT).map(drop)
}

/// Of each family, some of the largest protocols that are read with this limit, by counters and estimates together.
fn largest(limit: usize) -> impl Iterator<Item = Vec<Protocol>> {
    Protocol::FAMILIES.iter().map(move |info| {
        let counters = limit as u64 / 8;
        let ks = (0..4).flat_map(|halved| [-1, 0, 1].map(|more| (counters >> halved).wrapping_add_signed(more)));
        let epsilons = [MIN_EPSILON, 0.1, 1.0, 5.0, MAX_EPSILON];
        let all = ks
            .chain([2, 3, 8, 512, 1 << 12, 1 << 16, 1 << 20])
            .flat_map(|k| epsilons.map(|epsilon| extremes(info, counters, k, epsilon)));
        let (mut read, refused): (Vec<_>, Vec<_>) =
            all.flatten().partition(|protocol| Protocol::from_json(&protocol.to_json(), limit).is_ok());
        for protocol in refused {
            assert!(protocol.counter_bytes() > limit, "{}", protocol.to_json());
            assert_eq!(Protocol::from_json(&protocol.to_json(), usize::MAX), Ok(protocol));
        }
        let size = |protocol: &Protocol| {
            (protocol.counters() + protocol.k() as usize, protocol.counters(), protocol.report_bytes())
        };
        read.sort_by_key(|protocol| Reverse(size(protocol)));
        read.dedup_by_key(|protocol| size(protocol));
        assert!(!read.is_empty(), "{}", info.name);
        read.truncate(4);
        read
    })
}

/// Prints what the specifications cost that are read with this limit.
fn check_costs(limit: usize) {
    println!("| family | specification | counters | report | most memory | per byte | seconds |");
    for protocols in largest(limit) {
        let costs = protocols.iter().map(|protocol| {
            let (json, start) = (protocol.to_json(), Instant::now());
            let most = most_during(|| everything(&json).unwrap());
            (most, json, protocol, start.elapsed().as_secs_f64())
        });
        let (most, json, protocol, seconds) = costs.max_by_key(|&(most, ..)| most).unwrap();
        let (name, bytes, report) = (protocol.name(), json.len(), protocol.report_bytes());
        let counters = protocol.counter_bytes();
        println!("| {name} | {bytes} | {counters} | {report} | {most} | {} | {seconds:.2} |", most / bytes);
        assert!(bytes <= 1000 && counters <= limit && most <= 5 * limit, "{json}: {most} bytes");
    }
}

#[test]
fn a_specification_costs_at_most_five_times_the_limit() {
    check_costs(1 << 20);
}

#[test]
#[ignore = "takes minutes"]
fn a_specification_costs_at_most_five_times_the_default_limit() {
    check_costs(COUNTER_LIMIT);
}

/// Runs `call` with its first large allocation failing, with the second one, and so on until none fails; `check` looks
/// at how it ended. Returns how many failed.
fn fail_each<T>(mut call: impl FnMut() -> T, mut check: impl FnMut(T, bool)) -> usize {
    for failing in 1.. {
        PLAN.set(Plan { large: 0, fails_at: failing, ..PLAN.get() });
        let ended = call();
        let failed = PLAN.get().large >= failing;
        PLAN.set(Plan { fails_at: usize::MAX, ..PLAN.get() });
        check(ended, failed);
        if !failed {
            return failing - 1;
        }
    }
    unreachable!("some call has enough memory")
}

#[test]
fn protocols_of_all_families_survive_every_failure() {
    for protocols in largest(8 * LARGE) {
        let (protocol, json) = (protocols[0], protocols[0].to_json());
        let failures = fail_each(
            || everything(&json),
            |ended, failed| assert_eq!(ended, if failed { Err(Error::Allocation) } else { Ok(()) }, "{json}"),
        );
        println!("{}: {failures}", protocol.name());
        assert!(failures >= 4 || protocol.counter_bytes() < LARGE, "{json}: {failures}");
    }
}

/// A call, and what it is called with.
type Call<'a> = (&'static str, Box<dyn FnMut() -> Status + 'a>);

/// Calls a function that makes an object, and frees that.
fn freed(make: impl FnOnce(*mut u64) -> Status) -> Status {
    let mut handle = 0;
    let status = make(&raw mut handle);
    assert_eq!(status == Status::Ok, handle != 0);
    if handle != 0 {
        free(handle);
    }
    status
}

fn count_of(accumulator: u64) -> u64 {
    let mut n = 0;
    assert_eq!(unsafe { dpnoise_accumulator_counts(accumulator, &raw mut n, null_mut()) }, Status::Ok);
    n
}

/// A call with memory of its own.
fn call<'a>(name: &'static str, call: impl FnMut() -> Status + 'a) -> Call<'a> {
    (name, Box::new(call))
}

/// Checks that each call, with any of its large allocations failing, says so, and adds nothing to `accumulator`.
fn check_calls(calls: Vec<Call<'_>>, accumulator: u64) {
    for (name, mut call) in calls {
        let mut n = count_of(accumulator);
        let failures = fail_each(&mut *call, |status, failed| {
            assert_eq!(status, if failed { Status::Allocation } else { Status::Ok }, "{name}");
            assert!(!failed || message() == "there is not enough memory, and nothing was released", "{}", message());
            let counted = count_of(accumulator);
            assert!(counted == n || !failed, "{name} has added something");
            n = counted;
        });
        println!("{name}: {failures}");
        assert!(failures >= 1, "{name} allocates nothing");
    }
}

/// The protocol whose counters have eight times [`LARGE`] bytes, and its row of bits [`LARGE`] / 8.
const K: usize = LARGE;

fn unary() -> u64 {
    crate::protocol(Protocol::from(OptimizedUnaryEncoding::new(K as u64, 1.0).unwrap()).to_json().as_bytes())
}

#[test]
fn collectors_survive_every_failure() {
    let unary = unary();
    let [accumulator, other] = [0; 2].map(|_| made(|out| unsafe { dpnoise_accumulator_new(unary, out) }));
    let (people, reports) = (16, vec![0; 16 * K / 8]);
    let mut header = [0; DPNOISE_HEADER_BYTES];
    assert_eq!(unsafe { dpnoise_protocol_header(unary, header.as_mut_ptr(), header.len()) }, Status::Ok);
    let messages: Vec<u8> = reports.chunks(K / 8).flat_map(|report| [&header, report].concat()).collect();
    let offsets: Vec<i64> = (0..=people).map(|message| (messages.len() / people * message) as i64).collect();
    let (state, mut written) = (crate::calls::state(accumulator), crate::calls::state(accumulator));
    let (mut counts, mut errors) = (vec![0.0; K], vec![0.0; K]);
    let calls = vec![
        call("accumulator_new", || freed(|out| unsafe { dpnoise_accumulator_new(unary, out) })),
        call("accumulator_from_bytes", || {
            let (bytes, length) = (state.as_ptr(), state.len());
            freed(|out| unsafe { dpnoise_accumulator_from_bytes(bytes, length, DPNOISE_COUNTER_LIMIT, out) })
        }),
        call("accumulator_to_bytes", || {
            let (out, capacity, mut length) = (written.as_mut_ptr(), written.len(), 0);
            unsafe { dpnoise_accumulator_to_bytes(accumulator, out, capacity, &raw mut length) }
        }),
        call("accumulator_add_reports", || unsafe {
            dpnoise_accumulator_add_reports(accumulator, reports.as_ptr(), reports.len(), 1)
        }),
        call("accumulator_add_messages", || unsafe {
            dpnoise_accumulator_add_messages(accumulator, messages.as_ptr(), offsets.as_ptr(), people, 1)
        }),
        call("accumulator_merge", || dpnoise_accumulator_merge(accumulator, other)),
        call("accumulator_estimate", || unsafe {
            dpnoise_accumulator_estimate(accumulator, counts.as_mut_ptr(), errors.as_mut_ptr(), K)
        }),
    ];
    check_calls(calls, accumulator);
    assert!(count_of(accumulator) > 0);
    [unary, accumulator, other].into_iter().for_each(free);
}

/// Distributions have few bins: nothing of theirs is large.
#[test]
fn estimates_survive_every_failure() {
    let made_of = |protocol: Protocol| {
        let protocol = crate::protocol(protocol.to_json().as_bytes());
        let accumulator = made(|out| unsafe { dpnoise_accumulator_new(protocol, out) });
        free(protocol);
        accumulator
    };
    let [ranges, sketch, prefixes] = [
        HierarchicalRange::new(LARGE as u64, 1.0, 1024).unwrap().into(),
        HadamardCountMeanSketch::new(1.0, 1, LARGE as u64, 0).unwrap().into(),
        PrefixExtension::new(32, 1.0, 16, 1, 8, 0).unwrap().into(),
    ]
    .map(made_of);
    let (firsts, shares, ends) = (vec![0; LARGE], vec![0.0; LARGE], vec![0; LARGE + 1]);
    let (mut counts, mut errors, mut values) = (vec![0.0; LARGE], vec![0.0; LARGE], vec![0; LARGE]);
    let (mut found, mut complete) = (0, 0);
    let calls = vec![
        call("accumulator_estimate_ranges", || unsafe {
            let (first, out) = (firsts.as_ptr(), [counts.as_mut_ptr(), errors.as_mut_ptr()]);
            dpnoise_accumulator_estimate_ranges(ranges, first, first, LARGE, out[0], out[1])
        }),
        call("accumulator_estimate_quantiles", || unsafe {
            dpnoise_accumulator_estimate_quantiles(ranges, shares.as_ptr(), LARGE, values.as_mut_ptr())
        }),
    ];
    check_calls(calls, ranges);
    let calls = vec![call("accumulator_estimate_candidates", || unsafe {
        let (ends, out) = (ends.as_ptr(), [counts.as_mut_ptr(), errors.as_mut_ptr()]);
        dpnoise_accumulator_estimate_candidates(sketch, [].as_ptr(), ends, LARGE, out[0], out[1])
    })];
    check_calls(calls, sketch);
    let calls = vec![call("accumulator_estimate_prefixes", || unsafe {
        let (values, counts, errors) = (values.as_mut_ptr(), counts.as_mut_ptr(), errors.as_mut_ptr());
        let (found, complete) = (&raw mut found, &raw mut complete);
        dpnoise_accumulator_estimate_prefixes(prefixes, 0.95, values, counts, errors, LARGE, found, complete)
    })];
    check_calls(calls, prefixes);
    [ranges, sketch, prefixes].into_iter().for_each(free);
}

#[test]
fn devices_survive_every_failure() {
    let sketch = Protocol::from(CountMeanSketch::new(1.0, 2, 8, 0).unwrap()).to_json();
    let [unary, answers, texts] = [unary(), crate::protocol(crate::ANSWERS), crate::protocol(sketch.as_bytes())];
    let accumulator = made(|out| unsafe { dpnoise_accumulator_new(answers, out) });
    let memo = made(|out| unsafe { dpnoise_memo_new(LARGE as u64 / 32, out) });
    let save = |saved: &mut [u8]| {
        let mut length = 0;
        unsafe { dpnoise_memo_to_bytes(memo, saved.as_mut_ptr(), saved.len(), &raw mut length) }
    };
    let (mut saved, mut again) = (vec![0; LARGE + 20], vec![0; LARGE + 20]);
    assert_eq!(save(&mut saved), Status::Ok);
    let (values, ends) = (vec![0; LARGE], vec![0; LARGE + 1]);
    let [mut messages, mut reports, mut rows] =
        [16 * (K / 8 + DPNOISE_HEADER_BYTES), LARGE, 3 * LARGE].map(|length| vec![0; length]);
    let calls = vec![
        call("memo_new", || freed(|out| unsafe { dpnoise_memo_new(LARGE as u64 / 32, out) })),
        call("memo_from_bytes", || freed(|out| unsafe { dpnoise_memo_from_bytes(saved.as_ptr(), saved.len(), out) })),
        call("memo_to_bytes", || save(&mut again)),
        call("perturb_integers, as messages", || {
            let (values, out, length) = (values.as_ptr(), messages.as_mut_ptr(), messages.len());
            unsafe { dpnoise_perturb_integers(unary, values, 16, DPNOISE_MESSAGES, 1, 0, out, length) }
        }),
        call("perturb_integers, as answers", || {
            let (values, out, length) = (values.as_ptr(), reports.as_mut_ptr(), reports.len());
            unsafe { dpnoise_perturb_integers(answers, values, LARGE, DPNOISE_REPORTS, 1, 0, out, length) }
        }),
        call("perturb_texts", || {
            let (texts_of, ends, out, length) = ([].as_ptr(), ends.as_ptr(), rows.as_mut_ptr(), rows.len());
            unsafe { dpnoise_perturb_texts(texts, texts_of, ends, LARGE, DPNOISE_REPORTS, 1, 0, out, length) }
        }),
    ];
    check_calls(calls, accumulator);
    [unary, answers, texts, accumulator, memo].into_iter().for_each(free);
}
