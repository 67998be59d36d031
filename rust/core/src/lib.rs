#![doc = include_str!("../README.md")]
//!
//! ## Layers
//!
//! The layers, each of which may use only those below it:
//!
//! | layer | modules |
//! | --- | --- |
//! | high | [`mechanisms`], [`local`], [`stability`], [`sgd`] |
//! | mid | [`rng`], [`samplers`] |
//! | low | [`arith`], [`arch`] |
//! | leaves | [`params`], [`error`] |
//!
//! Every function is constant-time in its secrets (data and random words) unless its name ends in `_vartime`; what
//! exactly that promises, and its exceptions of negligible probability, is written in [`samplers`].

pub mod arch;
pub mod arith;
pub mod error;
pub mod local;
pub mod mechanisms;
pub mod params;
pub mod rng;
pub mod samplers;
pub mod sgd;
pub mod stability;

pub use error::Error;
