#![doc = include_str!("../README.md")]
//!
//! | module | what |
//! | --- | --- |
//! | [`arith`] | exact numbers |
//! | [`arch`] | kernels over vectors, and what the operating system is asked for |
//!
//! Every function is constant-time in its secrets unless its name ends in `_vartime`; what that promises is written in
//! `samplers` of dpnoise-core.

pub mod arch;
pub mod arith;
