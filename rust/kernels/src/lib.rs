#![doc = include_str!("../README.md")]
//!
//! | module | what |
//! | --- | --- |
//! | [`arith`] | exact numbers |
//! | [`arch`] | vector kernels, and calls of the operating system |
//! | [`memory`] | memory, or an error |
//!
//! Every function is constant-time in its secrets unless its name ends in `_vartime`; `samplers` of dpnoise-core says
//! what that guarantees.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may use powi"))]

pub mod arch;
pub mod arith;
pub mod memory;
