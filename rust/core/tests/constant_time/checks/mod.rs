//! The tables of what is run, and the report on it.
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

use std::hint::black_box;
use std::process::ExitCode;

use dpnoise_core::instruction_set;
use dpnoise_core::local::{Protocol, Values};
use dpnoise_core::rng::SeededRng;
use dpnoise_kernels::arch::secrecy::memcheck::{self, Counts};
use dpnoise_kernels::arch::secrecy::{Reason, poison};

/// Something to run. It makes its secrets by [`secret`] or by a generator, and hands its output to [`assert_secret`].
struct Check {
    name: String,
    run: Box<dyn Fn()>,
}

/// The checks of a table with one line for each.
fn table(lines: &[(&str, fn())]) -> Vec<Check> {
    lines.iter().map(|&(name, run)| Check { name: name.into(), run: Box::new(run) }).collect()
}

/// A poisoned copy, in memory: of a value that stays in a register valgrind would not know that it is secret.
fn secret<T: Clone>(values: &[T]) -> Vec<T> {
    let mut values = values.to_vec();
    poison(&mut values);
    black_box(values)
}

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

/// # Panics
/// When some value is known: then something on its way was declassified that should not be, or never was poisoned.
fn assert_secret<T>(values: &[T]) {
    assert!(memcheck::are_secret(values), "an output is not secret");
}

/// Runs everything and prints the report; fails if a check found something or a planted fault was not found.
pub(super) fn run() -> ExitCode {
    assert!(memcheck::is_watching(), "valgrind must run this program, as `make constant-time` has it do");
    #[cfg(target_arch = "x86_64")]
    black_box(dpnoise_kernels::arch::planted::KERNELS); // the check of the machine code looks for them in this program
    let instructions = instruction_set::current().expect("an instruction set of this CPU").name();
    let start = memcheck::counts();

    let local = [local::checks(), local_numbers::checks(), longitudinal::checks(), sketches::checks()];
    let central = [random::checks(), noise::checks(), mechanisms::checks(), selection::checks(), sgd::checks()];
    let checks = central.into_iter().chain(local);
    let checks: Vec<Check> = checks.flatten().collect();
    println!("{instructions}: {} checks that must find nothing", checks.len());
    let leaking = checks.iter().filter(|check| findings(check) != 0).count();
    println!("declassified in these checks");
    for (reason, count) in Reason::ALL.into_iter().zip(since(start).declassified) {
        let (name, why) = explained(reason);
        println!("  {count:>8}  {name}: {why}");
    }

    let controls = controls::checks();
    println!("{instructions}: {} planted faults that must be found", controls.len());
    let missed = controls.iter().filter(|control| findings(control) == 0).count();
    println!("{instructions}: {leaking} checks found something, {missed} planted faults were missed");
    if leaking + missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a check, prints its line of the report, and returns what was found.
fn findings(check: &Check) -> u64 {
    let start = memcheck::counts();
    (check.run)();
    let counts = since(start);
    let declassified = Reason::ALL.into_iter().zip(counts.declassified).filter(|&(_, count)| count != 0);
    let declassified: Vec<_> = declassified.map(|(reason, count)| format!("{} {count}", explained(reason).0)).collect();
    let declassified = declassified.join(", ");
    let line =
        format!("{:<58}{:>7} bytes poisoned{:>6} found   {declassified}", check.name, counts.poisoned, counts.findings);
    println!("  {}", line.trim_end());
    counts.findings
}

fn since(start: Counts) -> Counts {
    let now = memcheck::counts();
    Counts {
        poisoned: now.poisoned - start.poisoned,
        declassified: std::array::from_fn(|i| now.declassified[i] - start.declassified[i]),
        findings: now.findings - start.findings,
    }
}

/// A name for the reason, and why what is declassified for it gives nothing away.
fn explained(reason: Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::Rejection => {
            ("rejection", "which trials are accepted is independent of the values (discrete_laplace.md, Theorem 1)")
        }
        Reason::Refinement => {
            ("refinement", "that a trial was refined is, to 2^-42, independent of its value (there, Theorem 2)")
        }
        Reason::Tail => {
            ("tail", "a tail value is in the output with a probability of at most 1.17 * 2^-64 (there, The tail)")
        }
        Reason::OpenCoin => {
            ("open coin", "64 digits leave a coin open with a probability of at most 2^-64 (bernoulli.md, Time)")
        }
        Reason::Selection => {
            ("selection", "a call needs more than it always takes with a probability below 2^-57 (selection.md, Time)")
        }
        Reason::HugeNoise => {
            ("huge noise", "beyond the kernel's reach, with a probability below 2^-738 (grid.md, The release)")
        }
        Reason::Answer => ("answer", "what a mechanism has released, such as how often values were above a threshold"),
        Reason::Refusal => ("refusal", "whether the input is valid, which is all that the error tells (SECURITY.md)"),
        Reason::Overflow => ("overflow", "an assertion that never fails (arith/fixed.rs, samplers/density.rs)"),
        Reason::Fingerprint => ("fingerprint", "an output of HMAC under a noise key, made to be public (noise_key.rs)"),
        Reason::Seal => ("seal", "such an output, too, and whether one that was given is right (noise_key.rs)"),
        Reason::Sorting => {
            ("sorting", "a quantile's values, while they are sorted; they are secret again then (SECURITY.md)")
        }
        Reason::Attribute => {
            ("attribute", "which attribute a person reports on: drawn before values are used (local/attributes.rs)")
        }
    }
}
