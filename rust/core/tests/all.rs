//! The integration tests, as one program.

#![allow(clippy::disallowed_methods, reason = "tests may use powi")]

mod alias_enumeration;
mod any_rng;
mod local_about;
mod local_enumeration;
mod local_longitudinal;
mod local_mixture;
mod local_privacy;
mod local_reports;
mod local_state;
mod parameters;
mod toy_enumeration;
