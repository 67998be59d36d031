//! A number in [-1, 1] with Laplace noise of scale 2 / epsilon: a collector adds reports up to find the mean.
//!
//! Source: Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to sensitivity in private data analysis", used by every
//! person for themselves.
//!
//! The number is rounded at random to a multiple of 1 / unit, so that its mean stays what it is, and discrete Laplace noise is
//! added: see [`noisy_sums`](super::noisy_sums). Rounding does not depend on the noise, and a mean of private
//! distributions is as private as they are.

use std::sync::Arc;

use rand_core::TryCryptoRng;

use super::client::Randomise;
use super::noisy_sums::{CHUNK, NUMBER_BYTES, NoisySums};
use super::numbers::{ROUNDING_BYTES, check_signed, round_at_random};
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use crate::error::Error;
use crate::rng::{Wiped, fill_bytes};
use crate::samplers::DiscreteLaplace;

/// The Laplace mechanism for the mean of numbers in [-1, 1].
#[derive(Clone, Debug)]
pub struct LaplaceMean {
    protocol: Protocol,
    sums: NoisySums,
    noise: Arc<DiscreteLaplace>,
}

impl LaplaceMean {
    /// The mechanism for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        let sums = NoisySums::new(1, epsilon)?;
        let protocol = Protocol::new(Family::LaplaceMean, positions(sums), Randomizer::NoisySums(sums), epsilon);
        Ok(Self { protocol, sums, noise: sums.noise(epsilon) })
    }

    /// The mechanism that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match (protocol.family(), protocol.randomizer()) {
            (Family::LaplaceMean, Randomizer::NoisySums(sums)) => {
                Some(Self { protocol, sums, noise: sums.noise(protocol.requested_epsilon()) })
            }
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

/// The multiples of 1 / unit from -1 to 1.
fn positions(sums: NoisySums) -> u32 {
    2 * sums.unit() + 1
}

impl Randomise for LaplaceMean {
    type Value = f64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_signed(values)
    }

    fn unit(&self) -> usize {
        CHUNK * NUMBER_BYTES
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        // About as many for the noise of a number as for its rounding.
        (bytes / NUMBER_BYTES).saturating_mul(2 * ROUNDING_BYTES)
    }

    /// For a chunk, `rng` gives the words that round, then the noise.
    fn randomise<R>(&self, rng: &mut R, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let first = first / NUMBER_BYTES;
        let mut words = Wiped::new((out.len() / NUMBER_BYTES).min(CHUNK) * ROUNDING_BYTES);
        self.sums.fill(&self.noise, rng, out, |rng, at, numbers| {
            let words = &mut words[..numbers.len() * ROUNDING_BYTES];
            fill_bytes(rng, words)?;
            let values = &values[first + at..];
            for ((number, &value), &word) in numbers.iter_mut().zip(values).zip(words.as_chunks().0) {
                let position = round_at_random(value, positions(self.sums), u64::from_le_bytes(word));
                *number = i64::from(position).wrapping_sub(self.sums.unit().into());
            }
            Ok(())
        })
    }
}
