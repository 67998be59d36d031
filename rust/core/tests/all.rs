//! The integration tests, as one program.

mod any_rng;
mod local_enumeration;
mod local_longitudinal;
mod local_mixture;
mod local_privacy;
mod local_reports;
mod local_state;
mod parameters;
mod toy_enumeration;
