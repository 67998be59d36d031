//! People's devices: protocols from specifications, memos, reports and messages.

use std::sync::Arc;

use dpnoise_core::local::{
    AnyProtocol, COUNTER_LIMIT, ClientMemo, Protocol, Randomiser, Remembering, ValueKind, Values, fingerprints,
};
use dpnoise_core::memory::{collected, zeroed};
use zeroize::Zeroizing;

use crate::generator::given;
use crate::handles::{Object, dpnoise_generator, dpnoise_memo, dpnoise_protocol, get, give};
use crate::memory::{check_apart, edit, hand_over, offer, read, wiped_on_failure, write};
use crate::status::{Failure, Outcome, Status, run};

/// The bytes of a message before its report.
pub const DPNOISE_HEADER_BYTES: usize = 12;

/// The limit, in bytes, on a collector's counters for a specification that comes from others: 128 MiB.
pub const DPNOISE_COUNTER_LIMIT: usize = 134_217_728;

const _: () = assert!(DPNOISE_COUNTER_LIMIT == COUNTER_LIMIT);

/// Bare reports are written.
pub const DPNOISE_REPORTS: u32 = 0;
/// Messages are written: each is a header and a report.
pub const DPNOISE_MESSAGES: u32 = 1;

/// A protocol takes integers from 0 to k - 1, or below 2^bits for prefixes; 1 for yes and 0 for no.
pub const DPNOISE_INTEGERS: u32 = 0;
/// A protocol takes numbers, in [-1, 1] or within the bounds of its document for means, and in [0, 1] for distributions.
pub const DPNOISE_NUMBERS: u32 = 1;
/// A protocol takes texts in UTF-8.
pub const DPNOISE_TEXTS: u32 = 2;
/// A protocol is of several attributes, each with values of its own. Its reports are counted here, and not made.
pub const DPNOISE_ATTRIBUTES: u32 = 3;

/// A protocol, and the people who answer one question with it, if they keep a memo.
pub(crate) struct Announced {
    pub(crate) protocol: AnyProtocol,
    header: [u8; DPNOISE_HEADER_BYTES],
    width: usize,
    people: Option<People>,
}

struct People {
    memo: Arc<Memo>,
    question: Arc<str>,
}

impl Object for Announced {
    const KIND: &'static str = "a protocol";
}

impl Announced {
    pub(crate) fn new(protocol: AnyProtocol) -> Self {
        Self { header: protocol.message_header(), width: protocol.report_bytes(), protocol, people: None }
    }

    /// The protocol of one attribute.
    fn one(&self) -> Outcome<&Protocol> {
        let several = || Failure::new(Status::Parameter, "protocol must be of one attribute, got one of several");
        self.protocol.one().ok_or_else(several)
    }

    /// Whether people keep a memo.
    fn is_longitudinal(&self) -> bool {
        self.one().is_ok_and(|protocol| protocol.takes() == ValueKind::Remembering)
    }

    fn takes(&self) -> u32 {
        let Some(protocol) = self.protocol.one() else { return DPNOISE_ATTRIBUTES };
        match protocol.takes() {
            _ if protocol.takes_texts() => DPNOISE_TEXTS,
            ValueKind::Numbers => DPNOISE_NUMBERS,
            _ => DPNOISE_INTEGERS,
        }
    }

    fn k(&self) -> u32 {
        match self.protocol.randomiser() {
            Randomiser::One(protocol) => protocol.k(),
            Randomiser::Several(attributes) => attributes.iter().len() as u32,
        }
    }

    /// Refuses values of a kind that the protocol does not take.
    fn check_kind(&self, given: u32) -> Outcome {
        let protocol = self.one()?;
        if given == self.takes() {
            return Ok(());
        }
        let [given, taken] = [given, self.takes()].map(|kind| match kind {
            DPNOISE_INTEGERS => "integers",
            DPNOISE_NUMBERS => "numbers",
            _ => "texts",
        });
        let message = format!("values must be {taken}, which {} takes, got {given}", protocol.name());
        Err(Failure::new(Status::Parameter, message))
    }

    /// Writes what `form` says for integers, or for fingerprints of texts.
    fn perturb_integers(&self, values: &[i64], call: Call<'_>) -> Outcome {
        if let Some(People { memo, question }) = &self.people {
            return self
                .perturb(Values::Remembering(Remembering { values, secrets: memo.0.secrets(), question }), call);
        }
        let protocol = self.one()?;
        match protocol.takes() {
            ValueKind::Remembering => {
                let message = format!(
                    "protocol must have a memo, which people keep for {}: make one with dpnoise_protocol_with_memo",
                    protocol.name()
                );
                Err(Failure::new(Status::Parameter, message))
            }
            ValueKind::Answers => {
                // What is no answer becomes 2, which is none either, without a branch.
                let answer = |&value: &i64| value as u8 & 1 | u8::from(value as u64 > 1) << 1;
                let answers = Zeroizing::new(collected(values.iter().map(answer))?);
                self.perturb(Values::Answers(&answers), call)
            }
            _ => self.perturb(Values::Integers(values), call),
        }
    }

    fn perturb(&self, values: Values<'_>, call: Call<'_>) -> Outcome {
        let Call { n, form, threads, generator, out } = call;
        let width = match form {
            DPNOISE_REPORTS => self.width,
            DPNOISE_MESSAGES => DPNOISE_HEADER_BYTES + self.width,
            other => {
                let message = format!("form must be DPNOISE_REPORTS or DPNOISE_MESSAGES, got {other}");
                return Err(Failure::new(Status::Parameter, message));
            }
        };
        if n.checked_mul(width) != Some(out.len()) {
            let message = format!("out must have {n} rows of {width} bytes, got {} bytes", out.len());
            return Err(Failure::new(Status::Memory, message));
        }
        if form == DPNOISE_REPORTS {
            return self.randomise(values, threads, generator, out);
        }
        let mut reports = zeroed(n * self.width)?;
        self.randomise(values, threads, generator, &mut reports)?;
        for (message, report) in out.chunks_exact_mut(width).zip(reports.chunks_exact(self.width)) {
            let (header, body) = message.split_at_mut(DPNOISE_HEADER_BYTES);
            header.copy_from_slice(&self.header);
            body.copy_from_slice(report);
        }
        Ok(())
    }

    fn randomise(&self, values: Values<'_>, threads: u32, generator: dpnoise_generator, out: &mut [u8]) -> Outcome {
        wiped_on_failure(out, |out| {
            match given(generator, threads)? {
                None => self.one()?.perturb(values, out, threads as usize)?,
                Some(generator) => self.one()?.perturb_with(values, out, &mut *generator.lock()?)?,
            }
            Ok(())
        })
    }
}

/// What a call has besides values.
struct Call<'a> {
    n: usize,
    form: u32,
    threads: u32,
    generator: dpnoise_generator,
    out: &'a mut [u8],
}

/// The secrets of some people.
pub(crate) struct Memo(ClientMemo);

impl Object for Memo {
    const KIND: &'static str = "a memo";
}

pub(crate) fn text<'a>(argument: &str, bytes: &'a [u8], status: Status) -> Outcome<&'a str> {
    str::from_utf8(bytes).map_err(|_| Failure::new(status, format!("{argument} must be UTF-8")))
}

/// Reads a specification: the bytes as they came, which must never be written again in another form; or a document with
/// one, in any form of JSON: `{"dpnoise.domain":["red","green"],"dpnoise.protocol":"..."}`, whose labels must be those of
/// the specification. `out` is the handle of the protocol, worth keeping for many reports.
///
/// A specification that is damaged, contradicts itself or has other probabilities than its epsilon gives is refused
/// with `DPNOISE_STATUS_STATE`. Whoever announces a specification chooses its epsilon and delta: an application compares
/// `dpnoise_protocol_epsilon` and `dpnoise_protocol_delta` with what it promises to people, or knows the specification
/// in advance.
///
/// A short specification may ask for much memory. One whose counters, in a collector, have more than `limit` bytes is
/// refused with `DPNOISE_STATUS_PARAMETER`, before any of it is allocated; `DPNOISE_COUNTER_LIMIT` suits what comes from
/// others.
///
/// # Safety
/// `specification` points to `length` bytes, and `out` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_from_json(
    specification: *const u8,
    length: usize,
    limit: usize,
    out: *mut dpnoise_protocol,
) -> Status {
    run(|| {
        let make = || {
            // SAFETY: as promised by the caller.
            let bytes = unsafe { read("specification", specification, length) }?;
            let json = text("specification", bytes, Status::State)?;
            Ok(Announced::new(AnyProtocol::from_json(json, limit)?))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Makes the handle of the same randomiser for another collection: with this question and this period, each of them UTF-8
/// in Unicode's normal form NFC, which is not checked here. One of length 0 stays as it is. So a device that has its
/// specification built in writes the period from its own clock. A memo that `protocol` has is not used.
///
/// A question of more than 255 bytes or a period of more than 63, one with a space at either end or characters that are
/// not seen, is refused with `DPNOISE_STATUS_PARAMETER`.
///
/// # Safety
/// `question` and `period` point to so many bytes, and `out` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_about(
    protocol: dpnoise_protocol,
    question: *const u8,
    question_length: usize,
    period: *const u8,
    period_length: usize,
    out: *mut dpnoise_protocol,
) -> Status {
    run(|| {
        let make = || {
            let announced: Arc<Announced> = get("protocol", protocol)?;
            let mut made = announced.protocol.clone();
            // SAFETY: as promised by the caller.
            let question = unsafe { read("question", question, question_length) }?;
            // SAFETY: as promised by the caller.
            let period = unsafe { read("period", period, period_length) }?;
            if !question.is_empty() {
                made = made.with_question(text("question", question, Status::Parameter)?)?;
            }
            if !period.is_empty() {
                made = made.with_period(text("period", period, Status::Parameter)?)?;
            }
            Ok(Announced::new(made))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Writes the specification of a protocol to `out`, and the number of its bytes to `length`, also if they do not fit:
/// `DPNOISE_STATUS_MEMORY`.
///
/// # Safety
/// `out` points to `capacity` bytes, and `length` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_to_json(
    protocol: dpnoise_protocol,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        // SAFETY: as promised by the caller.
        unsafe { hand_over(announced.protocol.to_json().as_bytes(), out, capacity, length) }
    })
}

/// The bytes of a SHA-256.
pub const DPNOISE_DIGEST_BYTES: usize = 32;

/// Writes the SHA-256 of the specification without labels, question and period: of how reports are made. Who answers a
/// question with another randomiser spends epsilon again.
///
/// # Safety
/// `out` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_bare_digest(
    protocol: dpnoise_protocol,
    out: *mut u8,
    capacity: usize,
) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        let mut length = 0;
        // SAFETY: as promised by the caller.
        unsafe { hand_over(&announced.protocol.bare_digest(), out, capacity, &raw mut length) }
    })
}

/// Makes the handle of a protocol with the memo of the people who answer, for protocols in which people keep one. `out`
/// then stands for this question alone: the same words, in UTF-8, must be given each time it is asked, and other words
/// for another question. Give them in Unicode's normal form NFC, which is not checked here: two spellings of a text are
/// two questions. If the specification names a question, it must be this one.
///
/// The memo keeps in mind that its people answer the question with this randomiser, and another one, which would cost
/// epsilon again, is refused with `DPNOISE_STATUS_STATE`; labels and period may change. So store the memo's bytes after
/// this call and before reports are sent.
///
/// A memo that `protocol` has already is not used. `protocol` and `memo` may be freed before `out`; the secrets are wiped
/// when both the memo and all protocols made with it are freed.
///
/// # Safety
/// `question` points to `length` bytes, and `out` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_with_memo(
    protocol: dpnoise_protocol,
    memo: dpnoise_memo,
    question: *const u8,
    length: usize,
    out: *mut dpnoise_protocol,
) -> Status {
    run(|| {
        let make = || {
            let announced: Arc<Announced> = get("protocol", protocol)?;
            let memo: Arc<Memo> = get("memo", memo)?;
            // SAFETY: as promised by the caller.
            let question = text("question", unsafe { read("question", question, length) }?, Status::Parameter)?;
            let protocol = announced.one()?;
            if !announced.is_longitudinal() {
                let message = format!("protocol must be one in which people keep a memo, got {}", protocol.name());
                return Err(Failure::new(Status::Parameter, message));
            }
            announced.protocol.answer_with(&memo.0, question)?;
            let people = People { memo, question: question.into() };
            Ok(Announced { people: Some(people), ..Announced::new(announced.protocol.clone()) })
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Writes facts about a protocol. Each pointer may be null, and nothing is written there then.
///
/// - `takes`: what values are: `DPNOISE_INTEGERS`, `DPNOISE_NUMBERS` or `DPNOISE_TEXTS`; or `DPNOISE_ATTRIBUTES`.
/// - `keeps_memo`: 1 if people keep a memo, 0 if not.
/// - `k`: the number of values; for sketches that of columns, for RAPPOR that of bits, and for several attributes theirs.
/// - `report_bytes`: the bytes of a report. A message has `DPNOISE_HEADER_BYTES` more.
/// - `counter_bytes`: the bytes of a collector's counters.
///
/// # Safety
/// Each pointer that is not null points to one item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_facts(
    protocol: dpnoise_protocol,
    takes: *mut u32,
    keeps_memo: *mut u32,
    k: *mut u32,
    report_bytes: *mut usize,
    counter_bytes: *mut usize,
) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        // SAFETY: as promised by the caller.
        unsafe {
            offer("takes", takes, announced.takes())?;
            offer("keeps_memo", keeps_memo, announced.is_longitudinal().into())?;
            offer("k", k, announced.k())?;
            offer("report_bytes", report_bytes, announced.width)?;
            offer("counter_bytes", counter_bytes, announced.protocol.counter_bytes())
        }
    })
}

/// Writes the epsilon of a report, rounded up; of all reports on one value together where people keep a memo. This
/// takes up to a millisecond.
///
/// # Safety
/// `epsilon` points to a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_epsilon(protocol: dpnoise_protocol, epsilon: *mut f64) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        // SAFETY: as promised by the caller.
        unsafe { write("epsilon", epsilon, announced.protocol.epsilon()) }
    })
}

/// Writes the delta of a report: 0, unless the guarantee is (epsilon, delta)-differential privacy, as for `gaussian_mean`.
///
/// # Safety
/// `delta` points to a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_delta(protocol: dpnoise_protocol, delta: *mut f64) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        // SAFETY: as promised by the caller.
        unsafe { write("delta", delta, announced.protocol.delta()) }
    })
}

/// Writes the `DPNOISE_HEADER_BYTES` bytes of a message before its report. The last 8 of them are the id of the
/// specification.
///
/// # Safety
/// `out` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_protocol_header(protocol: dpnoise_protocol, out: *mut u8, capacity: usize) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        let mut length = 0;
        // SAFETY: as promised by the caller.
        unsafe { hand_over(&announced.header, out, capacity, &raw mut length) }
    })
}

/// Randomises the integers of `n` people: a row for each of them in `out`, the first one first.
///
/// `form` is `DPNOISE_REPORTS`, and a row is a report, or `DPNOISE_MESSAGES`, and a row is a message. The work is
/// shared by up to `threads` threads, at least 1. `generator` is 0, or one that takes the place of the system's; then
/// the calling thread does all the work.
///
/// Time and addresses do not depend on the values. If the call fails there is no report in `out`: it is as it was, or
/// zero.
///
/// `out` must not overlap the values.
///
/// # Safety
/// `values` points to `n` items, and `out` to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_perturb_integers(
    protocol: dpnoise_protocol,
    values: *const i64,
    n: usize,
    form: u32,
    threads: u32,
    generator: dpnoise_generator,
    out: *mut u8,
    length: usize,
) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        announced.check_kind(DPNOISE_INTEGERS)?;
        check_apart(("out", out, length), ("values", values, n))?;
        // SAFETY: as promised by the caller.
        let (values, out) = unsafe { (read("values", values, n)?, edit("out", out, length)?) };
        announced.perturb_integers(values, Call { n, form, threads, generator, out })
    })
}

/// Randomises the numbers of `n` people, as `dpnoise_perturb_integers` does. Where a document has bounds, numbers are clamped
/// to them; where only its specification was read, which has a digest of them, `DPNOISE_STATUS_STATE`.
///
/// # Safety
/// `values` points to `n` items, and `out` to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_perturb_numbers(
    protocol: dpnoise_protocol,
    values: *const f64,
    n: usize,
    form: u32,
    threads: u32,
    generator: dpnoise_generator,
    out: *mut u8,
    length: usize,
) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        announced.check_kind(DPNOISE_NUMBERS)?;
        check_apart(("out", out, length), ("values", values, n))?;
        // SAFETY: as promised by the caller.
        let (values, out) = unsafe { (read("values", values, n)?, edit("out", out, length)?) };
        let call = Call { n, form, threads, generator, out };
        match announced.protocol.scale()? {
            None => announced.perturb(Values::Numbers(values), call),
            Some(scale) => announced.perturb(Values::Numbers(&scale.positions(values)?), call),
        }
    })
}

/// Randomises the texts of `n` people, as `dpnoise_perturb_integers` does. Text i is the bytes of `texts` from
/// `offsets[i]` to `offsets[i + 1]`, as in an Arrow array: there are n + 1 offsets, the first is 0, and none is smaller
/// than the one before.
///
/// The time depends on the lengths of the texts in steps of 64 bytes, and on nothing else of them. That they are UTF-8
/// is not checked, since that takes a time that depends on the text.
///
/// # Safety
/// `texts` points to as many bytes as the last offset says, `offsets` to n + 1 items, and `out` to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_perturb_texts(
    protocol: dpnoise_protocol,
    texts: *const u8,
    offsets: *const i64,
    n: usize,
    form: u32,
    threads: u32,
    generator: dpnoise_generator,
    out: *mut u8,
    length: usize,
) -> Status {
    run(|| {
        let announced: Arc<Announced> = get("protocol", protocol)?;
        announced.check_kind(DPNOISE_TEXTS)?;
        let ends = n.saturating_add(1);
        check_apart(("out", out, length), ("offsets", offsets, ends))?;
        // SAFETY: as promised by the caller.
        let (offsets, out) = unsafe { (read("offsets", offsets, ends)?, edit("out", out, length)?) };
        let bytes = offsets.last().and_then(|&last| usize::try_from(last).ok()).unwrap_or(0);
        check_apart(("out", out.as_mut_ptr(), length), ("texts", texts, bytes))?;
        // SAFETY: as promised by the caller.
        let texts = unsafe { read("texts", texts, bytes) }?;
        let mut values = Zeroizing::new(zeroed(n)?);
        fingerprints(texts, offsets, &mut values)?;
        announced.perturb_integers(&values, Call { n, form, threads, generator, out })
    })
}

/// Draws the secrets of `n` people, from which everything is derived that stays the same in their reports. A device
/// makes one for itself, once, and stores its bytes.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_memo_new(n: u64, out: *mut dpnoise_memo) -> Status {
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, || Ok(Memo(ClientMemo::generate(n)?))) })
}

/// Reads the bytes of a memo, as `dpnoise_memo_to_bytes` wrote them. Bytes that are damaged are refused with
/// `DPNOISE_STATUS_STATE`: a device that then makes a new memo answers anew, which costs its epsilon again.
///
/// # Safety
/// `bytes` points to `length` bytes, and `out` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_memo_from_bytes(bytes: *const u8, length: usize, out: *mut dpnoise_memo) -> Status {
    run(|| {
        // SAFETY: as promised by the caller.
        let make = || Ok(Memo(ClientMemo::from_bytes(unsafe { read("bytes", bytes, length) }?)?));
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Writes the bytes of a memo to `out`, and their number to `length`, also if they do not fit: `DPNOISE_STATUS_MEMORY`.
/// Whoever has them has the secrets: store them as the platform stores secrets, and wipe `out`.
///
/// # Safety
/// `out` points to `capacity` bytes, and `length` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_memo_to_bytes(
    memo: dpnoise_memo,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    run(|| {
        let memo: Arc<Memo> = get("memo", memo)?;
        // SAFETY: as promised by the caller.
        unsafe { hand_over(&Zeroizing::new(memo.0.to_bytes()?), out, capacity, length) }
    })
}
