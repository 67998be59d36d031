//! The C interface of dpnoise: reports of local protocols from a specification, their collection, and noise.
//!
//! `dpnoise.h` is made from this crate. Compiled for wasm32 it is the module of `clients/web`.
//!
//! | module | what | feature |
//! | --- | --- | --- |
//! | `status` | status codes, messages of errors, panics | |
//! | `handles` | the table of all objects that callers hold | |
//! | `memory` | what pointers of callers point to | |
//! | `generator` | random words of the system or of a callback | |
//! | `protocol` | specifications, memos, reports and messages | `client` |
//! | `accumulator` | the collector's counters | `collector` |
//! | `noise` | samplers and mechanisms | `noise` |
//! | `host` | memory and randomness of a WebAssembly host | on wasm32 |
//!
//! Everything is constant-time in private values as `dpnoise_core` is. Callers pass private memory: nothing here prints
//! it, and copies of it are wiped.

#![allow(unsafe_code, reason = "pointers of callers; each is read and written in `memory`")]
#![allow(non_camel_case_types, reason = "names of C")]

mod generator;
mod handles;
mod memory;
mod status;

#[cfg(feature = "collector")]
mod accumulator;
/// cbindgen:ignore
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod host;
#[cfg(feature = "noise")]
mod noise;
#[cfg(feature = "client")]
mod protocol;

#[cfg(feature = "collector")]
pub use accumulator::*;
pub use generator::*;
pub use handles::{
    dpnoise_accumulator, dpnoise_free, dpnoise_generator, dpnoise_mechanism, dpnoise_memo, dpnoise_protocol,
    dpnoise_sampler,
};
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use host::*;
#[cfg(feature = "noise")]
pub use noise::*;
#[cfg(feature = "client")]
pub use protocol::*;
pub use status::{Status, dpnoise_error_message};

/// The version of this interface. It changes when a function changes or goes; new functions do not change it.
pub const DPNOISE_ABI_VERSION: u32 = 1;

/// The version of the interface of this library, to be compared with `DPNOISE_ABI_VERSION` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn dpnoise_abi_version() -> u32 {
    DPNOISE_ABI_VERSION
}
