//! Kernels: random words and parameters in, words out. No randomness is drawn here and nothing is allocated.
//!
//! | module | what |
//! | --- | --- |
//! | [`instruction_set`] | which instruction sets this CPU offers, and how a kernel is compiled for each |
//! | `lanes` | the vector traits that kernels are written in |
//! | [`chacha`] | ChaCha12, sixteen blocks at a time |
//! | [`chacha_keys`] | the same under sixteen keys |
//! | [`aes`] | AES-256 in counter mode, where the CPU has instructions for it |
//! | [`alias`] | numbers from alias tables, 64 at a time |
//! | [`trials`] | the histogram proposal of the noise samplers, 64 trials at a time |
//! | `exp2` | the fast exponential, with its error bound |
//! | [`candidates`] | scores as depths below the best, their weights, and the candidate that a number falls on |
//! | [`grid`] | integer noise on real numbers |
//! | [`saturating`] | integer noise on integers |
//! | [`clipping`] | squares, scaling and exact addition of clipped gradients |
//! | [`columns`] | sums and counts of a column, and its values in steps |
//! | [`correlation`] | a step of correlated noise |
//! | [`planes`] | biased bits from bit planes: the local randomisers |
//! | [`hashing`] | which values the reports of local hashing support |
//! | [`popcount`] | column sums of a packed bit matrix |
//! | [`registers`] | clearing the vector registers afterwards |
//! | [`fork`] | a number that is reset in the child of a fork |
//! | [`secrecy`] | marks on secrets, and reasons to declassify, for `make constant-time` |
//! | `planted` | kernels with planted faults, compiled for `make constant-time` alone |
//!
//! A kernel is written once, over a trait, and gives the same output from the same input on every instruction set.
//! `unsafe` is used for vendor intrinsics, behind an [`InstructionSet`] that proves that the CPU has them, and for
//! calls of the operating system.

pub mod aes;
pub mod alias;
pub mod candidates;
pub mod chacha;
pub mod chacha_keys;
pub mod clipping;
pub mod columns;
pub mod correlation;
mod exp2;
pub mod fork;
pub mod grid;
pub mod hashing;
pub mod instruction_set;
mod lanes;
pub mod planes;
#[cfg(all(dpnoise_secrecy, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod planted;
pub mod popcount;
pub mod registers;
pub mod saturating;
pub mod secrecy;
pub mod trials;

pub use instruction_set::InstructionSet;
