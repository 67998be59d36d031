//! The check behind `make constant-time`: what handles secrets is run with its secrets poisoned, and valgrind's memcheck
//! reports each jump and each address that depends on them. `docs/constant_time.md` explains it.

#![allow(clippy::disallowed_methods, reason = "tests may use powi")]

#[cfg(dpnoise_secrecy)]
mod checks;
#[cfg(dpnoise_secrecy)]
mod runner;

#[cfg(dpnoise_secrecy)]
fn main() -> std::process::ExitCode {
    checks::run()
}

#[cfg(not(dpnoise_secrecy))]
fn main() {
    println!("skipped: it needs valgrind and a build of its own, which `make constant-time` makes");
}
