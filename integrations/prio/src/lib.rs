//! Noise for the aggregate shares of libprio-rs: exact, in constant time and in bulk, from the mechanisms of
//! `dpnoise-core`.
//!
//! [`Noise`] is a strategy of the host, so it goes where `PureDpDiscreteLaplace` goes:
//!
//! ```
//! use dpnoise_prio::{Noise, PureDp};
//! use prio::dp::DifferentialPrivacyStrategy;
//! use prio::vdaf::prio3::Prio3;
//! use prio::vdaf::{Aggregator, AggregatorWithNoise};
//!
//! let vdaf = Prio3::new_histogram(2, 100, 10)?; // aggregators, buckets, chunk length
//! let noise = Noise::from_budget(PureDp::new(1.0)?); // epsilon
//!
//! let mut share = vdaf.aggregate(&(), [])?; // of the output shares of all measurements
//! vdaf.add_noise_to_agg_share(&noise, &(), &mut share, 0)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [The README](https://github.com/dpnoise/dpnoise/tree/main/integrations/prio) says what is replaced, guaranteed and
//! refused.
//!
//! The minimum supported Rust version is 1.89.

#![forbid(unsafe_code)]

mod budget;
mod noise;
mod sensitivity;

pub use budget::{ApproximateDp, Budget, PureDp, ZCdp};
pub use noise::Noise;
pub use sensitivity::{NoiseField, Sensitive, Sensitivity};

use prio::dp::DpError;
use prio::flp::FlpError;

/// The host's error for one of ours. It has no kind for a failure of the generator, which the message tells.
fn error(cause: dpnoise_core::Error) -> FlpError {
    DpError::InvalidParameter(cause.to_string()).into()
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
