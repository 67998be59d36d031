//! What runs the tables of checks and of planted faults, and reports on them: for all programs of this kind.

use std::hint::black_box;
use std::process::ExitCode;

use dpnoise_core::instruction_set;
use dpnoise_kernels::arch::secrecy::memcheck::{self, Counts};
use dpnoise_kernels::arch::secrecy::{Reason, poison};

/// Something to run. It makes its secrets by [`secret`] or by a generator, and hands its output to [`assert_secret`].
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) run: Box<dyn Fn()>,
}

/// The checks of a table with one line for each.
pub(crate) fn table(lines: &[(&str, fn())]) -> Vec<Check> {
    lines.iter().map(|&(name, run)| Check { name: name.into(), run: Box::new(run) }).collect()
}

/// A poisoned copy, in memory: of a value that stays in a register valgrind would not know that it is secret.
pub(crate) fn secret<T: Clone>(values: &[T]) -> Vec<T> {
    let mut values = values.to_vec();
    poison(&mut values);
    black_box(values)
}

/// # Panics
/// When some value is known: then something on its way was declassified that should not be, or never was poisoned.
pub(crate) fn assert_secret<T>(values: &[T]) {
    assert!(memcheck::are_secret(values), "an output is not secret");
}

/// Runs everything and prints the report; fails if a check found something or a planted fault was not found.
pub(crate) fn report(checks: &[Check], controls: &[Check]) -> ExitCode {
    assert!(memcheck::is_watching(), "valgrind must run this program, as `make constant-time` has it do");
    let instructions = instruction_set::current().expect("an instruction set of this CPU").name();
    let start = memcheck::counts();

    println!("{instructions}: {} checks that must find nothing", checks.len());
    let leaking = checks.iter().filter(|check| findings(check) != 0).count();
    println!("declassified in these checks");
    for (reason, count) in Reason::ALL.into_iter().zip(since(start).declassified) {
        let (name, why) = explained(reason);
        println!("  {count:>8}  {name}: {why}");
    }

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
        Reason::Tail => ("tail", "a tail value is in the output with a probability of at most 2^-64 (there, The tail)"),
        Reason::Rest => {
            ("rest", "a digit has the entry of the rest with a probability of at most 2^-56 (alias.md, Time)")
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
        Reason::Sorting => (
            "sorting",
            "a quantile's values, while they are sorted and divided; they are secret again then (SECURITY.md)",
        ),
        Reason::Attribute => {
            ("attribute", "which attribute a person reports on: drawn before values are used (local/attributes.rs)")
        }
    }
}
