//! The tables of what is run.
//!
//! | file | what is run |
//! | --- | --- |
//! | `random.rs` | the key stream |
//! | `noise.rs` | the noise samplers |
//! | `mechanisms.rs` | releases of integers and of real numbers |
//! | `selection.rs` | choices among candidates, and comparisons with a threshold |
//! | `sgd.rs` | clipped gradients and their noise |
//! | `local.rs` | the local randomisers |
//! | `longitudinal.rs` | those that derive what is permanent from secrets |
//! | `local_numbers.rs` | those of numbers |
//! | `sketches.rs` | those of texts |
//! | `controls.rs` | planted faults, each of which must be found |
//!
//! What is new in the library becomes one more line in one of these tables.

mod controls;
mod local;
mod local_numbers;
mod longitudinal;
mod mechanisms;
mod noise;
mod random;
mod selection;
mod sgd;
mod sketches;

use std::process::ExitCode;

use dpnoise_core::local::{Protocol, Values};
use dpnoise_core::rng::SeededRng;

use crate::runner::{Check, assert_secret, report, secret, table};

/// The reports on such values.
fn perturbed(protocol: &Protocol, values: &[i64]) -> Vec<u8> {
    reports_on(protocol, Values::Integers(&secret(values)), values.len())
}

/// The reports of so many people on values that are secret.
fn reports_on(protocol: &Protocol, values: Values<'_>, people: usize) -> Vec<u8> {
    let mut out = vec![0; people * protocol.report_bytes()];
    protocol.perturb_with(values, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
    out
}

/// Runs everything.
pub(super) fn run() -> ExitCode {
    // The check of the machine code looks for them in this program.
    #[cfg(target_arch = "x86_64")]
    std::hint::black_box(dpnoise_kernels::arch::planted::KERNELS);
    let local = [local::checks(), local_numbers::checks(), longitudinal::checks(), sketches::checks()];
    let central = [random::checks(), noise::checks(), mechanisms::checks(), selection::checks(), sgd::checks()];
    let checks: Vec<Check> = central.into_iter().chain(local).flatten().collect();
    report(&checks, &controls::checks())
}
