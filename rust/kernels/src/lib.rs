#![doc = include_str!("../README.md")]
//!
//! | module | what |
//! | --- | --- |
//! | [`arith`] | exact numbers |
//! | [`arch`] | vector kernels, and calls of the operating system |
//!
//! Every function is constant-time in its secrets unless its name ends in `_vartime`; `samplers` of dpnoise-core says
//! what that guarantees.

pub mod arch;
pub mod arith;
