//! Random words: the secure generator, and two reproducible ones for tests.
//!
//! Samplers take any [`rand_core::TryCryptoRng`]. The library itself gives them a fresh [`SecureRng`] for every call
//! and thread. No generator state lives longer, so neither a `fork()` nor a restored snapshot of a virtual machine can
//! repeat a stream. The exceptions are [`WordBuffer`], for callers who need millions of single words, and
//! [`NoiseBuffer`](crate::mechanisms::NoiseBuffer), for those who release as many single values. An object with
//! secrets that lives longer than a call has a [`ProcessMark`], which detects that it is used in another process.

mod any;
mod key_stream;
mod noise_key;
mod process;
mod scripted;
mod wipe;
mod word_buffer;

pub(crate) use any::AnyRng;
pub use key_stream::{SecureRng, SeededRng};
pub use noise_key::{BLOCK, NoiseKey, Ticket};
pub(crate) use noise_key::{NoiseStream, nonce};
pub use process::ProcessMark;
pub use scripted::{Exhausted, ScriptedRng};
pub(crate) use wipe::{Wiped, wipe, wiped_on_error};
pub use word_buffer::WordBuffer;

use rand_core::TryCryptoRng;

use crate::error::Error;

/// Fills `bytes` from `rng`.
///
/// # Errors
/// [`Error::Randomness`] when `rng` fails; `bytes` must not be used then.
pub fn fill_bytes<R: TryCryptoRng + ?Sized>(rng: &mut R, bytes: &mut [u8]) -> Result<(), Error> {
    rng.try_fill_bytes(bytes).map_err(Error::randomness)
}
