//! Calls at the same time, and calls within calls.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use dpnoise::*;

use crate::{ANSWERS, Generator, free, made, message, protocol};

/// The report on yes, with this generator.
fn report(protocol: u64, generator: u64) -> (Status, u8) {
    let (yes, mut out) = (1, 0xa5);
    let status = unsafe {
        dpnoise_perturb_integers(protocol, &raw const yes, 1, DPNOISE_REPORTS, 1, generator, &raw mut out, 1)
    };
    (status, out)
}

#[test]
fn objects_that_are_freed_during_a_call_live_until_it_ends() {
    let handle = protocol(ANSWERS);
    let (own, expected) = (Rc::new(Cell::new(0)), report(handle, Generator::of(&[0; 4096]).handle));
    let shared = Rc::clone(&own);
    let generator = Generator::with(&[0; 4096], move || {
        let generator = shared.take();
        if generator != 0 {
            thread::spawn(move || [handle, generator].into_iter().for_each(free)).join().unwrap();
        }
    });
    own.set(generator.handle);
    assert_eq!(report(handle, generator.handle), expected);
    assert_eq!((expected.0, own.get()), (Status::Ok, 0), "the generator was asked");
    assert_eq!(report(handle, 0).0, Status::Handle);
}

#[test]
fn a_generator_that_uses_itself_gets_an_error() {
    let handle = protocol(ANSWERS);
    let (own, inner) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
    let (shared, noted) = (Rc::clone(&own), Rc::clone(&inner));
    let generator = Generator::with(&[0; 4096], move || noted.set(Some(report(handle, shared.get()))));
    own.set(generator.handle);
    assert_eq!(report(handle, generator.handle).0, Status::Ok);
    assert_eq!(inner.get(), Some((Status::Randomness, 0)));
    assert_eq!(message(), "the given generator is in use by another call, nothing was released");
    free(handle);
}

#[test]
fn a_generator_serves_one_thread_at_a_time() {
    let handle = protocol(ANSWERS);
    let entered = Arc::new([Barrier::new(2), Barrier::new(2)]);
    let (inside, is_first) = (Arc::clone(&entered), AtomicBool::new(true));
    let generator = Generator::with(&[0; 4096], move || {
        if is_first.swap(false, Ordering::Relaxed) {
            inside.iter().for_each(|barrier| _ = barrier.wait());
        }
    });
    let shared = generator.handle;
    thread::scope(|scope| {
        let other = scope.spawn(move || report(handle, shared));
        entered[0].wait(); // the other thread is within its call
        assert_eq!(report(handle, shared).0, Status::Randomness);
        assert_eq!(message(), "the given generator is in use by another call, nothing was released");
        entered[1].wait();
        assert_eq!(other.join().unwrap().0, Status::Ok);
    });
    assert_eq!(report(handle, shared).0, Status::Ok, "it is free again");
    free(handle);
}

#[test]
fn messages_are_those_of_the_own_thread() {
    assert_eq!(dpnoise_free(u64::MAX), Status::Handle);
    let own = message();
    thread::spawn(|| {
        assert_eq!(message(), "");
        let status = unsafe { dpnoise_memo_new(1, core::ptr::null_mut()) };
        assert_eq!((status, message().as_str()), (Status::Memory, "out must not be null"));
    })
    .join()
    .unwrap();
    assert_eq!(message(), own);
}

#[test]
fn threads_make_use_and_free_objects_at_the_same_time() {
    let shared = protocol(ANSWERS);
    let counts = made(|out| unsafe { dpnoise_accumulator_new(shared, out) });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let own = protocol(ANSWERS);
                    let (status, report) = report(if report(own, 0).1 == 0 { shared } else { own }, 0);
                    let added = unsafe { dpnoise_accumulator_add_reports(counts, &raw const report, 1, 1) };
                    assert_eq!((status, added), (Status::Ok, Status::Ok));
                    free(own);
                }
            });
        }
    });
    let (mut n, mut rejected) = (0, 0);
    let status = unsafe { dpnoise_accumulator_counts(counts, &raw mut n, &raw mut rejected) };
    assert_eq!((status, n, rejected), (Status::Ok, 400, 0));
    [counts, shared].into_iter().for_each(free);
}
