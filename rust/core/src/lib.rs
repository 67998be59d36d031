#![doc = include_str!("../README.md")]
//!
//! ## Layers
//!
//! The layers, each of which may use only those below it:
//!
//! | layer | modules |
//! | --- | --- |
//! | high | [`mechanisms`], [`local`], [`stability`], [`sgd`] |
//! | mid | [`rng`], [`threads`], [`samplers`], [`calibration`] |
//! | leaves | [`params`], [`arguments`], [`error`], [`instruction_set`], [`generator`] |
//!
//! Below all of them is the crate `dpnoise_kernels`, which has the exact arithmetic, the vector code and all `unsafe`.
//!
//! Every function is constant-time in its secrets (data and random words) unless its name ends in `_vartime`;
//! [`samplers`] has the exact promise, and its exceptions of negligible probability.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may use powi"))]

pub mod arguments;
pub mod calibration;
pub mod error;
pub mod generator;
pub mod instruction_set;
pub mod local;
pub mod mechanisms;
pub mod params;
pub mod rng;
pub mod samplers;
pub mod sgd;
pub mod stability;
pub mod threads;

pub use dpnoise_kernels::memory;
pub use error::Error;

/// Writes a file that `make prove` reads.
#[cfg(test)]
fn write_for_the_proofs(name: &str, code: &str) {
    let folder = std::env::var_os("DPNOISE_PROOFS").expect("a folder");
    std::fs::write(std::path::Path::new(&folder).join(name), code).expect("written");
}
