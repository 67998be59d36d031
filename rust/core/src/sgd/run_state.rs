//! What is public of a run with correlated noise, and brings it back with its key.
//!
//! The noise of step t is that of a ticket: of the domain `dpnoise.sgd.CorrelatedGradient/` and the id of the run in 32
//! hexadecimal digits, the step t, and a nonce that is drawn when the step is made. So a step that is made again after a
//! return to an older state has other noise, and no run has the noise of another one.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `DPNR` |
//! | 1 | version: 1 |
//! | 8 | the fingerprint of the key |
//! | 32 | SHA-256 of the parameters |
//! | 16 | the id of the run, drawn when it starts |
//! | 8 | d, how many numbers a gradient has; 0 before the first step |
//! | 16 for each step | the nonce of its ticket |
//! | 32 | the seal of everything before: see `rng/noise_key.rs` |
//!
//! Numbers are little-endian. The seal is checked before anything else is done with a state. With the tickets of others a
//! run would take back noise that it has not released, and what it has released would be less private than it claims.

use dpnoise_kernels::memory::collected;

use crate::error::Error;
use crate::rng::{NoiseKey, NoiseStream, nonce};

const MAGIC: &[u8; 4] = b"DPNR";

/// The version of the bytes.
const VERSION: u8 = 1;

/// The id of a run, and the nonces of the steps that it has made.
pub(super) struct RunState {
    pub(super) id: [u8; 16],
    pub(super) nonces: Vec<[u8; 16]>,
}

impl RunState {
    /// That of a new run.
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Self { id: nonce()?, nonces: vec![] })
    }

    /// The words for the noise of a step, of the distribution that these bytes describe.
    pub(super) fn words(&self, key: &NoiseKey, step: u64, nonce: &[u8; 16], distribution: &[u8]) -> NoiseStream {
        let domain = format!("dpnoise.sgd.CorrelatedGradient/{:032x}", u128::from_be_bytes(self.id));
        key.words(&domain, step, nonce, distribution)
    }

    /// The state for gradients of `width` numbers, of a run with the parameters of this digest.
    pub(super) fn to_bytes(&self, key: &NoiseKey, parameters: &[u8; 32], width: usize) -> Vec<u8> {
        let mut bytes = [MAGIC, &[VERSION][..], &key.fingerprint(), parameters, &self.id].concat();
        bytes.extend_from_slice(&(width as u64).to_le_bytes());
        bytes.extend_from_slice(self.nonces.as_flattened());
        let seal = key.seal(&bytes);
        bytes.extend_from_slice(&seal);
        bytes
    }

    /// Reads the state of a run with this key and these parameters, and the width of its gradients.
    pub(super) fn from_bytes(bytes: &[u8], key: &NoiseKey, parameters: &[u8; 32]) -> Result<(Self, usize), Error> {
        let invalid = |problem: &str| Error::State(format!("not the state of a run: {problem}"));
        let truncated = || invalid("it is too short");
        if !bytes.starts_with(MAGIC) {
            return Err(invalid("it does not begin with DPNR"));
        }
        let (sealed, seal) = bytes[MAGIC.len()..].split_last_chunk().ok_or_else(truncated)?;
        let (&[version], rest) = sealed.split_first_chunk().ok_or_else(truncated)?;
        if version != VERSION {
            return Err(invalid(&format!("version {version} is not {VERSION}, the one this release reads")));
        }
        let (fingerprint, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
        let (digest, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
        let (&id, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
        let (&width, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
        if *fingerprint != key.fingerprint() {
            return Err(Error::parameter("state", "that of another key", "that of a run with this key"));
        }
        if digest != parameters {
            return Err(Error::parameter("state", "that of others", "that of a run with these parameters"));
        }
        let (nonces, &[]) = rest.as_chunks() else { return Err(truncated()) };
        if !key.has_sealed(&bytes[..bytes.len() - seal.len()], seal) {
            return Err(invalid("it is damaged, or not as the run gave it: the seal is wrong"));
        }
        let width = usize::try_from(u64::from_le_bytes(width));
        let width = width.map_err(|_| invalid("its gradients are too long for this machine"))?;
        Ok((Self { id, nonces: collected(nonces.iter().copied())? }, width))
    }
}
