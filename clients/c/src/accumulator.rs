//! Collectors: counting reports, and estimating from the counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpnoise_core::Error;
use dpnoise_core::local::{Accumulator, AnyAccumulator, RangeEstimate, fingerprints};
use dpnoise_core::memory::{room, zeroed};

use crate::handles::{Object, dpnoise_accumulator, dpnoise_protocol, get, give};
use crate::memory::{check_apart, edit, hand_over, offer, read};
use crate::protocol::{Announced, text};
use crate::status::{Failure, Outcome, Status, run};

/// The counters of a collector. Several threads may add to one: each counts by itself, and merges under the lock.
struct Counters(Mutex<AnyAccumulator>);

impl Object for Counters {
    const KIND: &'static str = "an accumulator";
}

impl Counters {
    fn state(&self) -> MutexGuard<'_, AnyAccumulator> {
        // What panics under the lock has changed nothing yet: the checks of `merge` come first.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the counters of one attribute.
    fn one(&self) -> Outcome<Accumulator> {
        let state = self.state();
        let message = "accumulator must be of one attribute, got one of several: see dpnoise_accumulator_attribute";
        Ok(state.one().ok_or_else(|| Failure::new(Status::Parameter, message))?.copy()?)
    }

    /// Adds what `add` adds to an empty accumulator.
    fn merge(&self, add: impl FnOnce(&mut AnyAccumulator) -> Result<(), Error>) -> Outcome {
        let protocol = self.state().protocol().clone();
        let mut part = AnyAccumulator::new(protocol)?;
        add(&mut part)?;
        Ok(self.state().merge(&part)?)
    }
}

/// Makes the counters of a collector, all of them 0; `DPNOISE_STATUS_ALLOCATION` if there is no memory for their
/// `counter_bytes`.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_new(protocol: dpnoise_protocol, out: *mut dpnoise_accumulator) -> Status {
    run(|| {
        let make = || {
            let announced: Arc<Announced> = get("protocol", protocol)?;
            Ok(Counters(Mutex::new(AnyAccumulator::new(announced.protocol.clone())?)))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Reads the state of a collector, as `dpnoise_accumulator_to_bytes`, Python or the command line wrote it. Counters of
/// more than `limit` bytes are refused, as by `dpnoise_protocol_from_json`.
///
/// # Safety
/// `bytes` points to `length` bytes, and `out` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_from_bytes(
    bytes: *const u8,
    length: usize,
    limit: usize,
    out: *mut dpnoise_accumulator,
) -> Status {
    run(|| {
        let make = || {
            // SAFETY: as promised by the caller.
            let bytes = unsafe { read("bytes", bytes, length) }?;
            Ok(Counters(Mutex::new(AnyAccumulator::from_bytes(bytes, limit)?)))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Writes the state to `out`, and the number of its bytes to `length`, also if they do not fit:
/// `DPNOISE_STATUS_MEMORY`.
///
/// # Safety
/// `out` points to `capacity` bytes, and `length` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_to_bytes(
    accumulator: dpnoise_accumulator,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    run(|| {
        let counters: Arc<Counters> = get("accumulator", accumulator)?;
        let bytes = counters.state().to_bytes()?;
        // SAFETY: as promised by the caller.
        unsafe { hand_over(&bytes, out, capacity, length) }
    })
}

/// Makes the handle of the protocol whose reports an accumulator counts: for one that was read from bytes.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_protocol(
    accumulator: dpnoise_accumulator,
    out: *mut dpnoise_protocol,
) -> Status {
    run(|| {
        let make = || {
            let counters: Arc<Counters> = get("accumulator", accumulator)?;
            Ok(Announced::new(counters.state().protocol().clone()))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Adds messages. Message i is the bytes of `messages` from `offsets[i]` to `offsets[i + 1]`, as in an Arrow array:
/// there are n + 1 offsets, and none is smaller than the one before. One that is not a message of this protocol is
/// counted as rejected. The work is shared by up to `threads` threads, at least 1.
///
/// # Safety
/// `messages` points to as many bytes as the last offset says, and `offsets` to n + 1 items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_add_messages(
    accumulator: dpnoise_accumulator,
    messages: *const u8,
    offsets: *const i64,
    n: usize,
    threads: u32,
) -> Status {
    run(|| {
        let counters: Arc<Counters> = get("accumulator", accumulator)?;
        // SAFETY: as promised by the caller.
        let offsets = unsafe { read("offsets", offsets, n.saturating_add(1)) }?;
        let last = offsets.last().and_then(|&last| usize::try_from(last).ok());
        let Some(bytes) = last.filter(|_| offsets[0] >= 0 && offsets.is_sorted()) else {
            let message = "offsets must be as in an Arrow array: from 0 on, never decreasing";
            return Err(Failure::new(Status::Parameter, message));
        };
        // SAFETY: as promised by the caller.
        let messages = unsafe { read("messages", messages, bytes) }?;
        let each = offsets.windows(2).map(|ends| &messages[ends[0] as usize..ends[1] as usize]);
        counters.merge(|part| part.add_messages(each, threads as usize))
    })
}

/// Adds bare reports, one after the other without anything between them. One that is malformed is counted as rejected.
/// The work is shared by up to `threads` threads, at least 1.
///
/// # Safety
/// `reports` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_add_reports(
    accumulator: dpnoise_accumulator,
    reports: *const u8,
    length: usize,
    threads: u32,
) -> Status {
    run(|| {
        let counters: Arc<Counters> = get("accumulator", accumulator)?;
        // SAFETY: as promised by the caller.
        let reports = unsafe { read("reports", reports, length) }?;
        counters.merge(|part| part.add(reports, part.protocol().report_bytes(), threads as usize))
    })
}

/// Adds the counts of another accumulator of the same specification: of the same protocol, and about the same.
#[unsafe(no_mangle)]
pub extern "C" fn dpnoise_accumulator_merge(accumulator: dpnoise_accumulator, other: dpnoise_accumulator) -> Status {
    run(|| {
        let counters: Arc<Counters> = get("accumulator", accumulator)?;
        let other: Arc<Counters> = get("other", other)?;
        if Arc::ptr_eq(&counters, &other) {
            let message = "other must be another accumulator, got this one, whose reports would count twice";
            return Err(Failure::new(Status::Parameter, message));
        }
        // Copied first: no thread ever waits for one lock while it holds another.
        let other = other.state().copy()?;
        Ok(counters.state().merge(&other)?)
    })
}

/// Writes the number of reports counted, and of those rejected; of one of several attributes, the number of people whom
/// its estimates are about. Each pointer may be null, and nothing is written there.
///
/// # Safety
/// Each pointer that is not null points to one item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_counts(
    accumulator: dpnoise_accumulator,
    n: *mut u64,
    rejected: *mut u64,
) -> Status {
    run(|| {
        let counters: Arc<Counters> = get("accumulator", accumulator)?;
        let state = counters.state();
        // SAFETY: as promised by the caller.
        unsafe {
            offer("n", n, state.one().map_or_else(|| state.n(), Accumulator::people))?;
            offer("rejected", rejected, state.rejected())
        }
    })
}

/// Makes the handle of the counters of one of several attributes, by its name in UTF-8, for the calls that estimate. They
/// are those of this moment; reports cannot be added to them, and they have no bytes. Of reports that are about one
/// attribute each, estimates are about all people who reported, of whom those who reported on the attribute are a random
/// sample.
///
/// # Safety
/// `name` points to `length` bytes, and `out` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_attribute(
    accumulator: dpnoise_accumulator,
    name: *const u8,
    length: usize,
    out: *mut dpnoise_accumulator,
) -> Status {
    run(|| {
        let make = || {
            let counters: Arc<Counters> = get("accumulator", accumulator)?;
            // SAFETY: as promised by the caller.
            let name = text("name", unsafe { read("name", name, length) }?, Status::Parameter)?;
            let attribute = counters.state().attribute(name)?;
            Ok(Counters(Mutex::new(attribute)))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// The counters of one attribute, at one moment.
fn counted(accumulator: dpnoise_accumulator) -> Outcome<Accumulator> {
    let held: Arc<Counters> = get("accumulator", accumulator)?;
    held.one()
}

/// The failure where a protocol is not of the kind that a function estimates from.
fn not_of(wanted: &str, state: &Accumulator) -> Failure {
    let message = format!("accumulator must be of {wanted}, got {}", state.protocol().name());
    Failure::new(Status::Parameter, message)
}

fn no_reports() -> Failure {
    Failure::new(Status::Parameter, "accumulator must have at least one report, got none")
}

/// Memory for counts and their standard errors.
///
/// # Safety
/// As for [`edit`].
unsafe fn edit_pair<'a>(counts: *mut f64, standard_errors: *mut f64, n: usize) -> Outcome<[&'a mut [f64]; 2]> {
    check_apart(("counts", counts, n), ("standard_errors", standard_errors, n))?;
    // SAFETY: as promised by the caller, and the two do not overlap.
    Ok(unsafe { [edit("counts", counts, n)?, edit("standard_errors", standard_errors, n)?] })
}

/// Writes how many people have each value, an unbiased estimate that may be negative, to `counts`, and its standard
/// error to `standard_errors`: k items each; for randomized response those of no and of yes.
///
/// Protocols whose reports are not counted by value are refused with `DPNOISE_STATUS_PARAMETER`. The functions below
/// are for them, save RAPPOR, which Python decodes from its state.
///
/// # Safety
/// Both pointers point to `k` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate(
    accumulator: dpnoise_accumulator,
    counts: *mut f64,
    standard_errors: *mut f64,
    k: usize,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        let estimate = state.estimate()?.ok_or_else(|| not_of("reports that are counted by value", &state))?;
        let found = estimate.counts.len();
        if found != k {
            return Err(Failure::new(Status::Memory, format!("k must be {found}, got {k}")));
        }
        // SAFETY: as promised by the caller.
        let out = unsafe { edit_pair(counts, standard_errors, k) }?;
        out[0].copy_from_slice(&estimate.counts);
        out[1].copy_from_slice(&estimate.standard_errors);
        Ok(())
    })
}

/// Writes the mean of people's numbers, an unbiased estimate that may be outside of [-1, 1] or of the bounds of its document,
/// and its standard error. Where only a specification with a digest of the bounds was read, `DPNOISE_STATUS_STATE`: merge a
/// state into an accumulator of the document.
///
/// Protocols that are not for means are refused with `DPNOISE_STATUS_PARAMETER`, and so is an accumulator without a
/// report.
///
/// # Safety
/// Both pointers point to one item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate_mean(
    accumulator: dpnoise_accumulator,
    mean: *mut f64,
    standard_error: *mut f64,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        let law = state.protocol().mean_law().ok_or_else(|| not_of("a protocol for means", &state))?;
        if state.n() == 0 {
            return Err(no_reports());
        }
        let held: Arc<Counters> = get("accumulator", accumulator)?;
        let scale = held.state().protocol().scale()?;
        let found = law.estimate(state.n(), state.counters())?;
        let estimate = scale.map_or(found, |scale| scale.mean(found));
        check_apart(("mean", mean, 1), ("standard_error", standard_error, 1))?;
        // SAFETY: as promised by the caller.
        let out = unsafe { (edit("mean", mean, 1)?, edit("standard_error", standard_error, 1)?) };
        (out.0[0], out.1[0]) = (estimate.mean, estimate.standard_error);
        Ok(())
    })
}

/// Writes how people's numbers in [0, 1] are distributed: the shares of the k bins, which are evenly spaced, are not
/// negative, and sum to 1. `smoothing` is 1 if neighbouring bins are smoothed, as the authors recommend; with 0 the
/// estimate keeps peaks of single bins, and fits noise as well. It takes up to seconds.
///
/// Protocols other than the square wave are refused with `DPNOISE_STATUS_PARAMETER`, and so is an accumulator without a
/// report.
///
/// # Safety
/// `shares` points to `k` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate_density(
    accumulator: dpnoise_accumulator,
    smoothing: u32,
    shares: *mut f64,
    k: usize,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        if smoothing > 1 {
            return Err(Failure::new(Status::Parameter, format!("smoothing must be 0 or 1, got {smoothing}")));
        }
        let density = match state.estimate_density(smoothing == 1) {
            Err(Error::Data { .. }) => return Err(no_reports()),
            found => found?.ok_or_else(|| not_of("a protocol for distributions", &state))?.probabilities,
        };
        let bins = density.len();
        if bins != k {
            return Err(Failure::new(Status::Memory, format!("k must be {bins}, got {k}")));
        }
        // SAFETY: as promised by the caller.
        unsafe { edit("shares", shares, k) }?.copy_from_slice(&density);
        Ok(())
    })
}

/// Writes how many people have a value from `first[i]` to `last[i]`, both included, for each of `n` ranges: an unbiased
/// estimate that may be negative, and an upper bound on its standard error. That of a value v alone is the range from v
/// to v.
///
/// Protocols that are not for ranges are refused with `DPNOISE_STATUS_PARAMETER`, and so is a range that does not have
/// 0 <= first <= last < k.
///
/// # Safety
/// All four pointers point to `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate_ranges(
    accumulator: dpnoise_accumulator,
    first: *const i64,
    last: *const i64,
    n: usize,
    counts: *mut f64,
    standard_errors: *mut f64,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        // SAFETY: as promised by the caller.
        let (firsts, lasts) = unsafe { (read("first", first, n)?, read("last", last, n)?) };
        for (name, written) in [("counts", counts), ("standard_errors", standard_errors)] {
            check_apart((name, written, n), ("first", first, n))?;
            check_apart((name, written, n), ("last", last, n))?;
        }
        // SAFETY: as promised by the caller.
        let out = unsafe { edit_pair(counts, standard_errors, n) }?;
        let ranges = state.estimate_ranges()?.ok_or_else(|| not_of("a protocol for ranges", &state))?;
        let mut found = room(n)?;
        for (&first, &last) in firsts.iter().zip(lasts) {
            let value = |name, value: i64, least| {
                let allowed = || Error::parameter(name, value, RangeEstimate::allowed(least, ranges.k()));
                usize::try_from(value).map_err(|_| allowed())
            };
            let first = value("first", first, 0)?;
            found.push(ranges.range(first, value("last", last, first)?)?);
        }
        let [counts, errors] = out;
        for ((count, error), &found) in counts.iter_mut().zip(errors).zip(&found) {
            (*count, *error) = found;
        }
        Ok(())
    })
}

/// Writes, for each of `n` shares `q`, the smallest value that this share of all people do not exceed: an estimate; 0.5
/// is for the median.
///
/// Protocols that are not for ranges are refused with `DPNOISE_STATUS_PARAMETER`, and so is a share that is not from 0
/// to 1.
///
/// # Safety
/// Both pointers point to `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate_quantiles(
    accumulator: dpnoise_accumulator,
    q: *const f64,
    n: usize,
    values: *mut i64,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        check_apart(("values", values, n), ("q", q, n))?;
        // SAFETY: as promised by the caller.
        let (shares, out) = unsafe { (read("q", q, n)?, edit("values", values, n)?) };
        let ranges = state.estimate_ranges()?.ok_or_else(|| not_of("a protocol for ranges", &state))?;
        let mut found = room(n)?;
        for &share in shares {
            found.push(ranges.quantile(share)? as i64);
        }
        out.copy_from_slice(&found);
        Ok(())
    })
}

/// Writes how many people have each of `n` texts: an estimate that is unbiased over reports and hash functions and may be
/// negative, and its standard error. Texts are given as to `dpnoise_perturb_texts`, in UTF-8.
///
/// Protocols that are not sketches are refused with `DPNOISE_STATUS_PARAMETER`.
///
/// # Safety
/// `texts` points to as many bytes as the last offset says, `offsets` to n + 1 items, and the others to `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate_candidates(
    accumulator: dpnoise_accumulator,
    texts: *const u8,
    offsets: *const i64,
    n: usize,
    counts: *mut f64,
    standard_errors: *mut f64,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        let ends = n.saturating_add(1);
        // SAFETY: as promised by the caller.
        let offsets = unsafe { read("offsets", offsets, ends) }?;
        let bytes = offsets.last().and_then(|&last| usize::try_from(last).ok()).unwrap_or(0);
        for (name, written) in [("counts", counts), ("standard_errors", standard_errors)] {
            check_apart((name, written, n), ("offsets", offsets.as_ptr(), ends))?;
            check_apart((name, written, n), ("texts", texts, bytes))?;
        }
        // SAFETY: as promised by the caller.
        let (texts, out) = unsafe { (read("texts", texts, bytes)?, edit_pair(counts, standard_errors, n)?) };
        let mut candidates = zeroed(n)?;
        fingerprints(texts, offsets, &mut candidates)?;
        let estimate = state.estimate_candidates(&candidates)?.ok_or_else(|| not_of("a sketch", &state))?;
        out[0].copy_from_slice(&estimate.counts);
        out[1].copy_from_slice(&estimate.standard_errors);
        Ok(())
    })
}

/// Writes frequent values, the most frequent first, how many people have each, and the standard errors of these counts.
///
/// A value is found, and a prefix of values is extended, if its count is significantly above zero: at the confidence
/// `level`, which is between 0 and 1, all prefixes of a length together. `found` gets the number of values that were
/// found, of which the first `capacity` are written: if there were more, call again with more memory. `complete` gets 1,
/// or 0 if more prefixes were significant than can be extended: at most 2^20 of a length are tried, which takes seconds.
///
/// Protocols other than prefix extension are refused with `DPNOISE_STATUS_PARAMETER`.
///
/// # Safety
/// `values`, `counts` and `standard_errors` point to `capacity` items, and the others to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_accumulator_estimate_prefixes(
    accumulator: dpnoise_accumulator,
    level: f64,
    values: *mut i64,
    counts: *mut f64,
    standard_errors: *mut f64,
    capacity: usize,
    found: *mut usize,
    complete: *mut u32,
) -> Status {
    run(|| {
        let state = counted(accumulator)?;
        for (name, numbers) in [("counts", counts), ("standard_errors", standard_errors)] {
            check_apart((name, numbers, capacity), ("values", values, capacity))?;
            check_apart((name, numbers, capacity), ("found", found, 1))?;
            check_apart((name, numbers, capacity), ("complete", complete, 1))?;
        }
        check_apart(("found", found, 1), ("values", values, capacity))?;
        check_apart(("complete", complete, 1), ("values", values, capacity))?;
        check_apart(("found", found, 1), ("complete", complete, 1))?;
        // SAFETY: as promised by the caller, and none of these overlap.
        let (values, out) =
            unsafe { (edit("values", values, capacity)?, edit_pair(counts, standard_errors, capacity)?) };
        // SAFETY: as promised by the caller, and the two do not overlap.
        let (found, complete) = unsafe { (edit("found", found, 1)?, edit("complete", complete, 1)?) };
        let hitters = state.estimate_prefixes(level)?.ok_or_else(|| not_of("prefix extension", &state))?;
        let written = hitters.values.len().min(capacity);
        values[..written].copy_from_slice(&hitters.values[..written]);
        out[0][..written].copy_from_slice(&hitters.estimate.counts[..written]);
        out[1][..written].copy_from_slice(&hitters.estimate.standard_errors[..written]);
        (found[0], complete[0]) = (hitters.values.len(), hitters.complete.into());
        Ok(())
    })
}
