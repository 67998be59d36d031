//! Collectors: counting reports, and estimating from the counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpnoise_core::local::{Accumulator, AnyAccumulator, Estimate};

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
    fn merge(&self, add: impl FnOnce(&mut AnyAccumulator) -> Result<(), dpnoise_core::Error>) -> Outcome {
        let protocol = self.state().protocol();
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
            Ok(Announced::new(counters.state().protocol()))
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

/// Adds the counts of another accumulator of the same protocol.
#[unsafe(no_mangle)]
pub extern "C" fn dpnoise_accumulator_merge(accumulator: dpnoise_accumulator, other: dpnoise_accumulator) -> Status {
    run(|| {
        let counters: Arc<Counters> = get("accumulator", accumulator)?;
        let other: Arc<Counters> = get("other", other)?;
        // Copied first: the two may be the same, and no thread ever waits for one lock while it holds another.
        let other = other.state().copy()?;
        Ok(counters.state().merge(&other)?)
    })
}

/// Writes the number of reports counted, and of those rejected. Each pointer may be null, and nothing is written there.
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
            offer("n", n, state.n())?;
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
            let state = counters.state();
            let Some(several) = state.several() else {
                let message = "accumulator must be of several attributes, got one of one";
                return Err(Failure::new(Status::Parameter, message));
            };
            let attribute = several.attribute(several.attributes().position(name)?)?;
            Ok(Counters(Mutex::new(AnyAccumulator::One(attribute))))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, make) }
    })
}

/// Writes how many people have each value, an unbiased estimate that may be negative, to `counts`, and its standard
/// error to `standard_errors`: k items each; for randomized response those of no and of yes.
///
/// Protocols whose reports are not counted by value are refused with `DPNOISE_STATUS_PARAMETER`: means, which have
/// `dpnoise_accumulator_estimate_mean`, sketches and distributions. Python estimates the latter from their state.
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
        let held: Arc<Counters> = get("accumulator", accumulator)?;
        let state = held.one()?;
        let Some(Estimate { counts: own, standard_errors: errors, .. }) = state.estimate()? else {
            let name = state.protocol().name();
            let message = format!("accumulator must be of reports that are counted by value, got {name}");
            return Err(Failure::new(Status::Parameter, message));
        };
        if own.len() != k {
            return Err(Failure::new(Status::Memory, format!("k must be {}, got {k}", own.len())));
        }
        check_apart(("counts", counts, k), ("standard_errors", standard_errors, k))?;
        // SAFETY: as promised by the caller.
        let out = unsafe { (edit("counts", counts, k)?, edit("standard_errors", standard_errors, k)?) };
        out.0.copy_from_slice(&own);
        out.1.copy_from_slice(&errors);
        Ok(())
    })
}

/// Writes the mean of people's numbers, an unbiased estimate that may be outside of [-1, 1], and its standard error.
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
        let held: Arc<Counters> = get("accumulator", accumulator)?;
        let state = held.one()?;
        let Some(law) = state.protocol().mean_law() else {
            let message = format!("accumulator must be of a protocol for means, got {}", state.protocol().name());
            return Err(Failure::new(Status::Parameter, message));
        };
        if state.n() == 0 {
            return Err(Failure::new(Status::Parameter, "accumulator must have at least one report, got none"));
        }
        let estimate = law.estimate(state.n(), state.counters())?;
        check_apart(("mean", mean, 1), ("standard_error", standard_error, 1))?;
        // SAFETY: as promised by the caller.
        let out = unsafe { (edit("mean", mean, 1)?, edit("standard_error", standard_error, 1)?) };
        (out.0[0], out.1[0]) = (estimate.mean, estimate.standard_error);
        Ok(())
    })
}
