#![doc = include_str!("../README.md")]
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

/// The examples of the page in the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/backends/prio.md")]
mod page {}
