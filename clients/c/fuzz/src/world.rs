//! The objects that exist, and the calls.

#![allow(unused_unsafe, reason = "some functions of the interface are safe")]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;

use dpnoise::{
    DPNOISE_COUNTER_LIMIT, DPNOISE_DIGEST_BYTES, DPNOISE_HEADER_BYTES, DPNOISE_INTEGERS, DPNOISE_MESSAGES,
    DPNOISE_NUMBERS, DPNOISE_REPORTS, Status,
};

use crate::checks::{checked, ended, hides};
use crate::input::Input;
use crate::mechanisms::{MECHANISMS, Numbers};
use crate::memory::Block;
use crate::planted;
use crate::vectors::{VECTORS, changed_with_checksum, specification};

/// Collecting reports of more values takes too much time.
const MOST_VALUES: u32 = 1 << 12;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Protocol(Facts),
    Memo { people: usize },
    Accumulator { protocol: Facts },
    Generator,
    Sampler,
    Mechanism,
}

/// What is known of a protocol.
#[derive(Clone, Copy, Default, PartialEq)]
struct Facts {
    takes: u32,
    k: u32,
    width: usize,
    people: Option<usize>,
}

/// A handle to be passed, and its kind if it is a live one.
type Picked = (u64, Option<Kind>);

/// The generator of a test: plays its bytes, then fails with `code`.
struct Script {
    bytes: Vec<u8>,
    played: Cell<usize>,
    code: i32,
    /// Its own handle, if it calls the library again.
    reenters: Cell<u64>,
}

/// Plays a script.
///
/// # Safety
/// `context` is a script, and `out` has `length` bytes.
unsafe extern "C" fn play(context: *mut c_void, out: *mut u8, length: usize) -> i32 {
    // SAFETY: the world keeps its scripts until all generators are freed.
    let script = unsafe { &*context.cast::<Script>() };
    if script.reenters.get() != 0 {
        let mut sampler = 0;
        assert_eq!(checked!(dpnoise_discrete_laplace_sampler(1.0, &raw mut sampler)), Status::Ok);
        let mut noise = 0;
        let inner = checked!(dpnoise_sampler_fill(sampler, 1, script.reenters.get(), &raw mut noise, 1));
        assert!(matches!(inner, Status::Randomness | Status::Handle), "a generator is used twice at once: {inner:?}");
        assert_eq!(checked!(dpnoise_free(sampler)), Status::Ok);
    }
    let Some(bytes) = script.bytes[script.played.get()..].get(..length) else {
        return script.code;
    };
    script.played.set(script.played.get() + length);
    // SAFETY: the library passes memory of this length.
    unsafe { out.copy_from_nonoverlapping(bytes.as_ptr(), length) };
    0
}

#[derive(Default)]
pub(crate) struct World {
    live: Vec<(u64, Kind)>,
    freed: Vec<u64>,
    last: u64,
    #[expect(clippy::vec_box, reason = "the library has their addresses")]
    scripts: Vec<Box<Script>>,
}

/// The calls, by the first byte.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Protocol,
    MemoNew,
    MemoFromBytes,
    WithMemo,
    Facts,
    Accumulator,
    AccumulatorFromBytes,
    Generator,
    Perturb,
    AddMessages,
    AddReports,
    Merge,
    Counts,
    Estimate,
    ToBytes,
    Sampler,
    Fill,
    Mechanism,
    Release,
    Error,
    Free,
    EstimateOthers,
    About,
}

const CALLS: [Call; 23] = [
    Call::Protocol,
    Call::MemoNew,
    Call::MemoFromBytes,
    Call::WithMemo,
    Call::Facts,
    Call::Accumulator,
    Call::AccumulatorFromBytes,
    Call::Generator,
    Call::Perturb,
    Call::AddMessages,
    Call::AddReports,
    Call::Merge,
    Call::Counts,
    Call::Estimate,
    Call::ToBytes,
    Call::Sampler,
    Call::Fill,
    Call::Mechanism,
    Call::Release,
    Call::Error,
    Call::Free,
    Call::EstimateOthers,
    Call::About,
];

impl World {
    pub(crate) fn call(&mut self, input: &mut Input<'_>) {
        match CALLS[input.below(CALLS.len())] {
            Call::Protocol => self.protocol(input),
            Call::MemoNew => self.memo_new(input),
            Call::MemoFromBytes => self.memo_from_bytes(input),
            Call::WithMemo => self.with_memo(input),
            Call::Facts => self.facts(input),
            Call::Accumulator => self.accumulator(input),
            Call::AccumulatorFromBytes => self.accumulator_from_bytes(input),
            Call::Generator => self.generator(input),
            Call::Perturb => self.perturb(input),
            Call::AddMessages => self.add_messages(input),
            Call::AddReports => self.add_reports(input),
            Call::Merge => self.merge(input),
            Call::Counts => self.counts(input),
            Call::Estimate => {
                self.estimate(input);
                self.estimate_mean(input);
            }
            Call::ToBytes => self.to_bytes(input),
            Call::Sampler => self.sampler(input),
            Call::Fill => self.fill(input),
            Call::Mechanism => self.mechanism(input),
            Call::Release => self.release(input),
            Call::Error => self.error(input),
            Call::Free => self.free(input),
            Call::EstimateOthers => {
                self.estimate_others(input);
                self.attribute(input);
            }
            Call::About => self.about(input),
        }
    }

    /// Frees what is left: nothing may be lost.
    pub(crate) fn end(&mut self) {
        while let Some((handle, _)) = self.live.pop() {
            assert_eq!(checked!(dpnoise_free(handle)), Status::Ok);
        }
    }

    // --- handles -----------------------------------------------------------------------------------------------------

    /// A handle, mostly of a live object of the wanted kind.
    fn pick(&self, input: &mut Input<'_>, wanted: fn(&Kind) -> bool) -> Picked {
        let of_kind: Vec<_> = self.live.iter().filter(|(_, kind)| wanted(kind)).collect();
        let handle = match input.byte() {
            255 => input.u64(),
            254 => 0,
            choice @ 240..254 if !self.freed.is_empty() => self.freed[usize::from(choice) % self.freed.len()],
            choice @ 224..240 if !self.live.is_empty() => self.live[usize::from(choice) % self.live.len()].0,
            _ if of_kind.is_empty() => 0,
            choice => of_kind[of_kind.len() - 1 - usize::from(choice) % of_kind.len()].0,
        };
        (handle, self.live.iter().find(|live| live.0 == handle).map(|live| live.1).filter(wanted))
    }

    fn pick_protocol(&self, input: &mut Input<'_>) -> (u64, Option<Facts>) {
        let (handle, kind) = self.pick(input, |kind| matches!(kind, Kind::Protocol(_)));
        (handle, if let Some(Kind::Protocol(facts)) = kind { Some(facts) } else { None })
    }

    fn pick_accumulator(&self, input: &mut Input<'_>) -> (u64, Option<Facts>) {
        let (handle, kind) = self.pick(input, |kind| matches!(kind, Kind::Accumulator { .. }));
        (handle, if let Some(Kind::Accumulator { protocol }) = kind { Some(protocol) } else { None })
    }

    /// A generator: mostly the system's, or one of the live ones. The last is whether it may be passed.
    fn pick_generator(&self, input: &mut Input<'_>) -> (u64, bool) {
        if input.byte() < 128 {
            return (0, true);
        }
        let (handle, kind) = self.pick(input, |kind| *kind == Kind::Generator);
        (handle, handle == 0 || kind.is_some())
    }

    /// Checks what a function that makes an object has written, and keeps the object.
    fn made(&mut self, status: Status, out: &Block, kind: Kind) -> Option<u64> {
        let handle = out.word();
        if status != Status::Ok {
            assert!(!out.is_right() || handle == 0, "a handle is given after an error");
            return None;
        }
        assert!(handle > self.last, "a handle is given twice");
        self.last = handle;
        self.live.push((handle, kind));
        Some(handle)
    }

    // --- objects of people's devices ---------------------------------------------------------------------------------

    fn protocol(&mut self, input: &mut Input<'_>) {
        let json = specification(input);
        let mut out = Block::for_words(1, input);
        let mut specification = Block::of_bytes(&json, input);
        let length = json.len() + usize::from(planted::is("read-past"));
        let limit = DPNOISE_COUNTER_LIMIT;
        let status = checked!(dpnoise_protocol_from_json(specification.pointer(), length, limit, out.pointer()));
        if let Some(handle) = self.made(status, &out, Kind::Protocol(Facts::default())) {
            self.learn(handle, None);
        }
    }

    /// Asks for the facts of a new protocol.
    fn learn(&mut self, handle: u64, people: Option<usize>) {
        let mut facts = Facts { people, ..Facts::default() };
        let mut keeps_memo = 2;
        let (takes, k, width) = (&raw mut facts.takes, &raw mut facts.k, &raw mut facts.width);
        let status = checked!(dpnoise_protocol_facts(handle, takes, &raw mut keeps_memo, k, width, null_mut()));
        assert_eq!(status, Status::Ok);
        assert!(facts.takes <= 3 && keeps_memo <= 1 && facts.k >= 2 && facts.width >= 1);
        self.live.last_mut().expect("the new one").1 = Kind::Protocol(facts);
    }

    fn memo_new(&mut self, input: &mut Input<'_>) {
        let people = if input.rarely() { u64::MAX - input.u64() % (1 << 58) } else { (input.byte() % 20).into() };
        let mut out = Block::for_words(1, input);
        let status = checked!(dpnoise_memo_new(people, out.pointer()));
        self.made(status, &out, Kind::Memo { people: people as usize });
    }

    fn memo_from_bytes(&mut self, input: &mut Input<'_>) {
        let bytes = changed_with_checksum(input, |vector| &vector.memo);
        let mut out = Block::for_words(1, input);
        let mut memo = Block::of_bytes(&bytes, input);
        let status = checked!(dpnoise_memo_from_bytes(memo.pointer(), bytes.len(), out.pointer()));
        let people = bytes.get(8).map_or(0, |&n| n.into()); // the lowest byte of their number
        self.made(status, &out, Kind::Memo { people });
    }

    fn with_memo(&mut self, input: &mut Input<'_>) {
        let (protocol, facts) = self.pick_protocol(input);
        let (memo, kind) = self.pick(input, |kind| matches!(kind, Kind::Memo { .. }));
        let words = if input.rarely() { input.bytes(9) } else { "Which one?".as_bytes() };
        let mut out = Block::for_words(1, input);
        let mut question = Block::of_bytes(words, input);
        let status =
            checked!(dpnoise_protocol_with_memo(protocol, memo, question.pointer(), words.len(), out.pointer()));
        let Some(handle) = self.made(status, &out, Kind::Protocol(Facts::default())) else { return };
        assert!(facts.is_some(), "a handle that is not a protocol's was taken for one");
        let Some(Kind::Memo { people }) = kind else { panic!("a handle that is not a memo's was taken for one") };
        self.learn(handle, Some(people));
    }

    fn about(&mut self, input: &mut Input<'_>) {
        let (protocol, facts) = self.pick_protocol(input);
        let words = ["Which one?", "2026-W48"].map(str::as_bytes);
        let words = words.map(|usual| if input.rarely() { input.bytes(9) } else { usual });
        let mut out = Block::for_words(1, input);
        let [mut question, mut period] = words.map(|text| Block::of_bytes(text, input));
        let status = checked!(dpnoise_protocol_about(
            protocol,
            question.pointer(),
            words[0].len(),
            period.pointer(),
            words[1].len(),
            out.pointer()
        ));
        let Some(handle) = self.made(status, &out, Kind::Protocol(Facts::default())) else { return };
        assert!(facts.is_some(), "a handle that is not a protocol's was taken for one");
        self.learn(handle, None);

        let [one, two] = [protocol, handle].map(|protocol| {
            let mut digest = [0; DPNOISE_DIGEST_BYTES];
            let status = checked!(dpnoise_protocol_bare_digest(protocol, digest.as_mut_ptr(), digest.len()));
            (status, digest)
        });
        assert!(one == two && one.0 == Status::Ok, "the randomiser is another one");
        let mut length = 0;
        let status = checked!(dpnoise_protocol_to_json(handle, null_mut(), 0, &raw mut length));
        assert_eq!(status, Status::Memory);
        let capacity = if input.rarely() { length - 1 } else { length };
        let mut written = Block::for_bytes(capacity, input);
        let status = checked!(dpnoise_protocol_to_json(handle, written.pointer(), capacity, &raw mut length));
        assert_eq!(status == Status::Ok, capacity == length && written.is_right());
        if status != Status::Ok {
            written.check_untouched_or_zero("a specification");
            return;
        }
        let (json, limit) = (written.bytes(), DPNOISE_COUNTER_LIMIT);
        let mut again = 0;
        let status = checked!(dpnoise_protocol_from_json(json.as_ptr(), json.len(), limit, &raw mut again));
        assert_eq!(status, Status::Ok, "what was written is not read");
        assert_eq!(checked!(dpnoise_free(again)), Status::Ok);
        self.last = again;
    }

    fn facts(&mut self, input: &mut Input<'_>) {
        let (protocol, facts) = self.pick_protocol(input);
        let mut numbers = [0; 4].map(|_| Block::for_words(1, input));
        let [takes, k, width, counters] = &mut numbers;
        let (takes, k) = (takes.pointer(), k.pointer());
        let status =
            checked!(dpnoise_protocol_facts(protocol, takes, null_mut(), k, width.pointer(), counters.pointer()));
        assert!(facts.is_some() || status == Status::Handle);
        let mut epsilon = Block::for_words(1, input);
        let status = checked!(dpnoise_protocol_epsilon(protocol, epsilon.pointer()));
        assert!(status != Status::Ok || f64::from_bits(epsilon.word()) > 0.0);
        let mut delta = Block::for_words(1, input);
        let status = checked!(dpnoise_protocol_delta(protocol, delta.pointer()));
        assert!(status != Status::Ok || (0.0..=1.0).contains(&f64::from_bits(delta.word())));
        let length = if input.rarely() { input.below(12) } else { DPNOISE_HEADER_BYTES + input.below(2) };
        let mut header = Block::for_bytes(length, input);
        let status = checked!(dpnoise_protocol_header(protocol, header.pointer(), length));
        let fits = facts.is_some() && length >= DPNOISE_HEADER_BYTES && header.is_right();
        assert_eq!(status == Status::Ok, fits);
        if status != Status::Ok {
            header.check_untouched_or_zero("a header");
        }
    }

    fn generator(&mut self, input: &mut Input<'_>) {
        let vector = &VECTORS[input.below(VECTORS.len())];
        let mut bytes = if input.rarely() { input.bytes(64).to_vec() } else { vector.random.clone() };
        if input.byte() >= 192 {
            bytes.truncate(input.u16().into());
        }
        let reenters = input.rarely();
        let code = if input.rarely() { input.u32() as i32 } else { 1 };
        let script = Box::new(Script { bytes, played: Cell::new(0), code: code.max(1), reenters: Cell::new(0) });
        let context = std::ptr::from_ref(&*script).cast_mut().cast();
        self.scripts.push(script);
        let fill = (!input.rarely()).then_some(play as unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> i32);
        let mut out = Block::for_words(1, input);
        let status = checked!(dpnoise_generator_new(fill, context, out.pointer()));
        if let Some(handle) = self.made(status, &out, Kind::Generator).filter(|_| reenters) {
            self.scripts.last().expect("the new one").reenters.set(handle);
        }
    }

    fn perturb(&mut self, input: &mut Input<'_>) {
        let (protocol, facts) = self.pick_protocol(input);
        let (generator, may_be_passed) = self.pick_generator(input);
        let known = facts.unwrap_or(Facts { width: 1, k: 2, ..Facts::default() });
        if known.width > 1 << 12 {
            return;
        }
        let n = match known.people {
            Some(people) if !input.rarely() => people,
            _ => input.below(20),
        };
        let (form, row) = match input.byte() {
            255 => (input.u32(), known.width),
            choice if choice % 2 == 0 => (DPNOISE_REPORTS, known.width),
            _ => (DPNOISE_MESSAGES, DPNOISE_HEADER_BYTES + known.width),
        };
        let threads = if input.rarely() { input.u32() } else { 1 + u32::from(input.byte() % 3) };
        let length = if input.rarely() { input.byte().into() } else { n * row };
        let takes = if input.rarely() { u32::from(input.byte() % 3) } else { known.takes };
        let mut out = Block::for_bytes(length, input);
        let status = match takes {
            DPNOISE_INTEGERS => {
                let values: Vec<u64> = (0..n).map(|_| integer(input, known.k)).collect();
                let mut block = Block::of_words(&values, input);
                let status = checked!(dpnoise_perturb_integers(
                    protocol,
                    block.pointer(),
                    n,
                    form,
                    threads,
                    generator,
                    out.pointer(),
                    length
                ));
                hides(values.iter().map(|&value| (value as i64).to_string()));
                hides(values.iter().map(u64::to_string));
                status
            }
            DPNOISE_NUMBERS => {
                let values: Vec<u64> = (0..n).map(|_| number(input)).collect();
                let mut block = Block::of_words(&values, input);
                let status = checked!(dpnoise_perturb_numbers(
                    protocol,
                    block.pointer(),
                    n,
                    form,
                    threads,
                    generator,
                    out.pointer(),
                    length
                ));
                hides(values.iter().map(|&value| format!("{:?}", f64::from_bits(value))));
                status
            }
            _ => {
                let (texts, offsets) = strings(input, n);
                let mut block = Block::of_bytes(&texts, input);
                let mut ends = Block::of_words(&offsets, input);
                let status = checked!(dpnoise_perturb_texts(
                    protocol,
                    block.pointer(),
                    ends.pointer(),
                    n,
                    form,
                    threads,
                    generator,
                    out.pointer(),
                    length
                ));
                hides([String::from_utf8_lossy(&texts).into_owned()]);
                status
            }
        };
        if planted::is("report-after-error") && status != Status::Ok {
            out.plant();
        }
        if status != Status::Ok {
            out.check_untouched_or_zero("a report");
            return;
        }
        assert!(may_be_passed, "a handle that is not a generator's was taken for one");
        let facts = facts.expect("a handle that is not a protocol's was taken for one");
        if form == DPNOISE_REPORTS && facts.k <= MOST_VALUES {
            self.check_reports(protocol, &out.bytes(), n);
        }
    }

    /// Checks that a collector counts all reports.
    fn check_reports(&mut self, protocol: u64, reports: &[u8], n: usize) {
        let mut accumulator = 0;
        assert_eq!(checked!(dpnoise_accumulator_new(protocol, &raw mut accumulator)), Status::Ok);
        let added = checked!(dpnoise_accumulator_add_reports(accumulator, reports.as_ptr(), reports.len(), 1));
        assert_eq!(added, Status::Ok);
        let (mut counted, mut rejected) = (0, 0);
        let counts = checked!(dpnoise_accumulator_counts(accumulator, &raw mut counted, &raw mut rejected));
        assert_eq!((counts, counted, rejected), (Status::Ok, n as u64, 0));
        assert_eq!(checked!(dpnoise_free(accumulator)), Status::Ok);
        self.last = self.last.max(accumulator);
    }

    // --- collectors --------------------------------------------------------------------------------------------------

    fn accumulator(&mut self, input: &mut Input<'_>) {
        let (protocol, facts) = self.pick_protocol(input);
        if facts.is_some_and(|facts| facts.k > MOST_VALUES) {
            return;
        }
        let mut out = Block::for_words(1, input);
        let status = checked!(dpnoise_accumulator_new(protocol, out.pointer()));
        assert!(status != Status::Ok || facts.is_some(), "a handle that is not a protocol's was taken for one");
        self.made(status, &out, Kind::Accumulator { protocol: facts.unwrap_or_default() });
    }

    fn accumulator_from_bytes(&mut self, input: &mut Input<'_>) {
        let bytes = changed_with_checksum(input, |vector| &vector.state);
        if bytes.len() > 1 << 15 {
            return;
        }
        let mut out = Block::for_words(1, input);
        let mut state = Block::of_bytes(&bytes, input);
        let limit = DPNOISE_COUNTER_LIMIT;
        let status = checked!(dpnoise_accumulator_from_bytes(state.pointer(), bytes.len(), limit, out.pointer()));
        let Some(handle) = self.made(status, &out, Kind::Accumulator { protocol: Facts::default() }) else { return };
        let (size, again) = self.bytes_of(handle, bytes.len(), input);
        assert!(size == bytes.len() && again.is_none_or(|again| again == bytes), "a state has two forms");
    }

    /// The size of the state of an accumulator, and the state if it could be written.
    fn bytes_of(&mut self, handle: u64, capacity: usize, input: &mut Input<'_>) -> (usize, Option<Vec<u8>>) {
        let mut out = Block::for_bytes(capacity, input);
        let mut length = usize::MAX;
        let status = checked!(dpnoise_accumulator_to_bytes(handle, out.pointer(), capacity, &raw mut length));
        (length, (status == Status::Ok).then(|| out.bytes()[..length].to_vec()))
    }

    fn add_messages(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let vector = &VECTORS[input.below(VECTORS.len())];
        let mut messages = vec![];
        let mut offsets = vec![0];
        for _ in 0..input.below(9) {
            let mut message = vector.messages[input.below(vector.messages.len())].clone();
            if input.rarely() {
                message = input.bytes(20).to_vec();
            }
            messages.extend(message);
            offsets.push(messages.len() as u64);
        }
        spoil(input, &mut offsets);
        // Only the last offset says where the messages end: memory is longer, not shorter, if others are wrong.
        let end = *offsets.last().expect("the first");
        messages.resize(if end < 1 << 16 { end as usize } else { 0 }, 0);
        let mut block = Block::of_bytes(&messages, input);
        let mut ends = Block::of_words(&offsets, input);
        if end >= 1 << 16 && i64::try_from(end).is_ok() && offsets.is_sorted() {
            return; // it would promise memory that is not there
        }
        let threads = u32::from(input.byte() % 4);
        let status = checked!(dpnoise_accumulator_add_messages(
            accumulator,
            block.pointer(),
            ends.pointer(),
            offsets.len() - 1,
            threads
        ));
        assert!(status != Status::Ok || facts.is_some(), "a handle that is not an accumulator's was taken for one");
    }

    fn add_reports(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let width = facts.map_or(1, |facts| facts.width);
        let length = if input.rarely() { input.byte().into() } else { width * input.below(4) };
        let mut reports = input.bytes(length).to_vec();
        reports.resize(length, 0);
        let mut block = Block::of_bytes(&reports, input);
        let threads = u32::from(input.byte() % 4);
        let status = checked!(dpnoise_accumulator_add_reports(accumulator, block.pointer(), length, threads));
        assert!(status != Status::Ok || facts.is_some(), "a handle that is not an accumulator's was taken for one");
    }

    fn merge(&mut self, input: &mut Input<'_>) {
        let (one, two) = (self.pick_accumulator(input), self.pick_accumulator(input));
        let status = checked!(dpnoise_accumulator_merge(one.0, two.0));
        assert!(status != Status::Ok || (one.1.is_some() && two.1.is_some()));
    }

    fn counts(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let [mut n, mut rejected] = [0; 2].map(|_| Block::for_words(1, input));
        let status = checked!(dpnoise_accumulator_counts(accumulator, n.pointer(), rejected.pointer()));
        assert!(facts.is_some() || status == Status::Handle);

        let mut protocol = 0;
        let status = checked!(dpnoise_accumulator_protocol(accumulator, &raw mut protocol));
        assert!(status == if facts.is_some() { Status::Ok } else { Status::Handle });
        assert_eq!(checked!(dpnoise_free(protocol)), Status::Ok); // 0 is nothing, and may be freed
        self.last = self.last.max(protocol);
    }

    fn estimate(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let k = if input.rarely() { input.below(50) } else { facts.map_or(2, |facts| facts.k) as usize };
        let [mut counts, mut errors] = [0; 2].map(|_| Block::for_words(k, input));
        let second = if input.rarely() { counts.pointer() } else { errors.pointer() };
        let status = checked!(dpnoise_accumulator_estimate(accumulator, counts.pointer(), second, k));
        if status == Status::Ok {
            assert!(facts.is_some() && second == errors.pointer());
        } else {
            counts.check_untouched_or_zero("an estimate");
            errors.check_untouched_or_zero("an estimate");
        }
    }

    fn attribute(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let mut name = Block::of_bytes(b"smokes", input);
        let mut out = Block::for_words(1, input);
        let status = checked!(dpnoise_accumulator_attribute(accumulator, name.pointer(), 6, out.pointer()));
        self.made(status, &out, Kind::Accumulator { protocol: facts.unwrap_or_default() });
    }

    fn estimate_mean(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let [mut mean, mut error] = [0; 2].map(|_| Block::for_words(1, input));
        let second = if input.rarely() { mean.pointer() } else { error.pointer() };
        let status = checked!(dpnoise_accumulator_estimate_mean(accumulator, mean.pointer(), second));
        if status == Status::Ok {
            assert!(facts.is_some() && second == error.pointer());
        } else {
            mean.check_untouched_or_zero("a mean");
            error.check_untouched_or_zero("a mean");
        }
    }

    fn estimate_others(&mut self, input: &mut Input<'_>) {
        let (accumulator, facts) = self.pick_accumulator(input);
        let n = input.below(4);
        let [mut counts, mut errors, mut values] = [0; 3].map(|_| Block::for_words(n, input));
        let second = if input.rarely() { counts.pointer() } else { errors.pointer() };
        let firsts: Vec<u64> = (0..n).map(|_| input.byte().into()).collect();
        let lasts: Vec<u64> = firsts.iter().map(|first| first + u64::from(input.byte() % 8)).collect();
        let [mut first, mut last] = [firsts, lasts].map(|words| Block::of_words(&words, input));
        let texts = input.bytes(n).to_vec();
        let ends: Vec<u64> = (0..=texts.len() as u64).collect();
        let (mut offsets, mut bytes) = (Block::of_words(&ends, input), Block::of_bytes(&texts, input));
        let status = match input.below(5) {
            0 => {
                let (first, last) = (first.pointer(), last.pointer());
                checked!(dpnoise_accumulator_estimate_ranges(accumulator, first, last, n, counts.pointer(), second))
            }
            1 => checked!(dpnoise_accumulator_estimate_quantiles(accumulator, first.pointer(), n, values.pointer())),
            2 => {
                let (texts, offsets, n) = (bytes.pointer(), offsets.pointer(), texts.len());
                let counts = counts.pointer();
                checked!(dpnoise_accumulator_estimate_candidates(accumulator, texts, offsets, n, counts, second))
            }
            3 => {
                let k = if input.rarely() { n } else { facts.map_or(2, |facts| facts.k) as usize };
                let (mut shares, smoothing) = (Block::for_words(k, input), input.below(3) as u32);
                checked!(dpnoise_accumulator_estimate_density(accumulator, smoothing, shares.pointer(), k))
            }
            _ => {
                let [mut found, mut complete] = [0; 2].map(|_| Block::for_words(1, input));
                let level = f64::from(input.byte()) / 255.0;
                let (values, counts) = (values.pointer(), counts.pointer());
                let (found, complete) = (found.pointer(), complete.pointer());
                checked!(dpnoise_accumulator_estimate_prefixes(
                    accumulator,
                    level,
                    values,
                    counts,
                    second,
                    n,
                    found,
                    complete
                ))
            }
        };
        if status == Status::Ok {
            assert!(facts.is_some(), "a handle that is not an accumulator's was taken for one");
        } else {
            for block in [&counts, &errors, &values] {
                block.check_untouched_or_zero("an estimate");
            }
        }
    }

    fn to_bytes(&mut self, input: &mut Input<'_>) {
        let is_memo = input.byte() % 2 == 0;
        let (handle, kind) = self.pick(input, |kind| matches!(kind, Kind::Memo { .. } | Kind::Accumulator { .. }));
        let (mut length, mut needed) = (Block::for_words(1, input), usize::MAX);
        let first = if is_memo {
            checked!(dpnoise_memo_to_bytes(handle, null_mut(), 0, &raw mut needed))
        } else {
            checked!(dpnoise_accumulator_to_bytes(handle, null_mut(), 0, &raw mut needed))
        };
        if first != Status::Memory {
            // The counters of one of several attributes are for estimates alone.
            let is_part = !is_memo && matches!(kind, Some(Kind::Accumulator { .. }));
            let expected = if is_part { Status::State } else { Status::Handle };
            assert_eq!((first, needed), (expected, usize::MAX));
            return;
        }
        let is_short = input.rarely() || planted::is("write-past");
        let capacity = if is_short { needed.saturating_sub(1) } else { needed + input.below(3) };
        let mut out = Block::for_bytes(capacity, input);
        let told = if planted::is("write-past") { needed } else { capacity };
        let status = if is_memo {
            checked!(dpnoise_memo_to_bytes(handle, out.pointer(), told, length.pointer()))
        } else {
            checked!(dpnoise_accumulator_to_bytes(handle, out.pointer(), told, length.pointer()))
        };
        assert!(kind.is_some());
        if status != Status::Ok {
            out.check_untouched_or_zero("a secret");
        }
    }

    // --- noise -------------------------------------------------------------------------------------------------------

    fn sampler(&mut self, input: &mut Input<'_>) {
        let (choice, scale) = (if input.rarely() { input.below(6) } else { input.below(3) }, input.parameter());
        let (whole, kind) = self.pick(input, |kind| *kind == Kind::Sampler);
        let radius = integer(input, 1000);
        let mut out = Block::for_words(1, input);
        let status = match choice {
            0 => checked!(dpnoise_discrete_laplace_sampler(scale, out.pointer())),
            1 => checked!(dpnoise_discrete_gaussian_sampler(scale, out.pointer())),
            2 => checked!(dpnoise_truncated_sampler(whole, radius, out.pointer())),
            3 => checked!(dpnoise_skellam_sampler(scale, out.pointer())),
            4 => checked!(dpnoise_negative_binomial_share_sampler(scale, radius, out.pointer())),
            _ => checked!(dpnoise_staircase_sampler(scale, radius, radius / 2, out.pointer())),
        };
        assert!(choice != 2 || status != Status::Ok || kind.is_some());
        self.made(status, &out, Kind::Sampler);
    }

    fn fill(&mut self, input: &mut Input<'_>) {
        let (sampler, kind) = self.pick(input, |kind| *kind == Kind::Sampler);
        let (generator, may_be_passed) = self.pick_generator(input);
        let n = input.byte().into();
        let threads = u32::from(input.byte() % 4);
        let mut out = Block::for_words(n, input);
        let status = checked!(dpnoise_sampler_fill(sampler, threads, generator, out.pointer(), n));
        if status == Status::Ok {
            assert!(kind.is_some() && may_be_passed);
        } else {
            out.check_untouched_or_zero("noise");
        }
    }

    fn mechanism(&mut self, input: &mut Input<'_>) {
        let choice = if input.rarely() { input.below(MECHANISMS.len()) } else { input.below(6) };
        let (whole, parties) = (integer(input, 1000), integer(input, 1000));
        let (epsilon, delta) = (input.parameter(), if input.rarely() { input.parameter() } else { 1e-6 });
        let (sensitivity, granularity) = (input.parameter(), if input.rarely() { input.parameter() } else { 0.0 });
        let mut out = Block::for_words(1, input);
        let (function, make) = MECHANISMS[choice];
        let numbers = Numbers { epsilon, delta, sensitivity, whole, granularity, parties };
        let status = ended(function, make(&numbers, out.pointer()));
        self.made(status, &out, Kind::Mechanism);
    }

    fn release(&mut self, input: &mut Input<'_>) {
        let (mechanism, kind) = self.pick(input, |kind| *kind == Kind::Mechanism);
        let (generator, may_be_passed) = self.pick_generator(input);
        let n = input.below(40);
        let threads = u32::from(input.byte() % 4);
        let is_number = input.byte() % 2 == 0;
        let values: Vec<u64> = (0..n).map(|_| if is_number { number(input) } else { integer(input, 1000) }).collect();
        let mut block = Block::of_words(&values, input);
        let status = if is_number {
            checked!(dpnoise_mechanism_release_numbers(mechanism, block.pointer(), n, threads, generator))
        } else {
            checked!(dpnoise_mechanism_release_integers(mechanism, block.pointer(), n, threads, generator))
        };
        if status == Status::Ok {
            assert!(kind.is_some() && may_be_passed);
            return;
        }
        if block.is_right() {
            block.check_zero("values");
        }
        hides(values.iter().map(|&value| format!("{:?}", f64::from_bits(value))));
        hides(values.iter().map(|&value| (value as i64).to_string()));
    }

    fn error(&mut self, input: &mut Input<'_>) {
        let (mechanism, kind) = self.pick(input, |kind| *kind == Kind::Mechanism);
        let level = if input.rarely() { f64::from_bits(input.u64()) } else { f64::from(input.byte()) / 255.0 };
        let n = if input.rarely() { input.u64() as usize } else { input.byte().into() };
        let mut out = Block::for_words(1, input);
        if input.rarely() {
            let status = checked!(dpnoise_mechanism_radius(mechanism, n, out.pointer()));
            assert!(status != Status::Ok || kind.is_some());
            return;
        }
        let status = checked!(dpnoise_mechanism_error(mechanism, level, n, out.pointer()));
        if status == Status::Ok {
            assert!(kind.is_some() && f64::from_bits(out.word()) >= 0.0);
        } else {
            out.check_untouched_or_zero("a bound");
        }
    }

    // --- all ---------------------------------------------------------------------------------------------------------

    fn free(&mut self, input: &mut Input<'_>) {
        let (handle, kind) = self.pick(input, |_| true);
        if planted::is("double-free") {
            planted::double_free();
        }
        if planted::is("freed-lives") && kind.is_some() {
            self.live.retain(|live| live.0 != handle);
            self.freed.push(handle);
        } else {
            let status = checked!(dpnoise_free(handle));
            let expected = if kind.is_some() || handle == 0 { Status::Ok } else { Status::Handle };
            assert_eq!(status, expected);
            if kind.is_some() {
                self.live.retain(|live| live.0 != handle);
                self.freed.push(handle);
            }
        }
        for &freed in &self.freed {
            assert_eq!(checked!(dpnoise_free(freed)), Status::Handle, "a freed handle lives");
        }
    }
}

/// A private integer, mostly one that can be reported on.
fn integer(input: &mut Input<'_>, k: u32) -> u64 {
    if input.rarely() { input.u64() } else { u64::from(input.byte()) % u64::from(k) }
}

/// The bits of a private number, mostly one that can be reported on.
fn number(input: &mut Input<'_>) -> u64 {
    if input.rarely() { input.u64() } else { (f64::from(input.byte()) / 255.0).to_bits() }
}

/// Private texts and their offsets, which are rarely wrong.
fn strings(input: &mut Input<'_>, n: usize) -> (Vec<u8>, Vec<u64>) {
    let mut texts = vec![];
    let mut offsets = vec![0];
    for _ in 0..n {
        let length = input.byte() % 80;
        let word = input.bytes(5);
        texts.extend(word.iter().cycle().take(if word.is_empty() { 0 } else { length.into() }));
        offsets.push(texts.len() as u64);
    }
    spoil(input, &mut offsets);
    // The memory is as long as the last offset says, where that can be.
    let end = *offsets.last().expect("the first");
    if end < 1 << 16 {
        texts.resize(end as usize, b'x');
    } else if i64::try_from(end).is_ok() {
        *offsets.last_mut().expect("the first") = texts.len() as u64;
    }
    (texts, offsets)
}

/// Rarely makes an offset wrong.
fn spoil(input: &mut Input<'_>, offsets: &mut [u64]) {
    if input.rarely() {
        let at = input.below(offsets.len());
        offsets[at] = if input.rarely() { input.u64() } else { input.byte().into() };
    }
}
