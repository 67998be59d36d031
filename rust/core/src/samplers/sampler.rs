//! The trait of samplers: one sample or many, with secure randomness or the caller's.

use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::rng::SecureRng;
use crate::threads::{self, NOISE, Pause, go_on};

/// A distribution with its tables.
pub trait Sampler: Sync {
    /// The type of a sample.
    type Item: Copy + Default + Send;

    /// Fills `out` with independent samples, with random words of `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails; `out` is the default value then.
    fn fill_with<R: TryCryptoRng + ?Sized>(&self, out: &mut [Self::Item], rng: &mut R) -> Result<(), Error>;

    /// Fills `out` with independent samples on up to `threads` threads, with a freshly keyed secure generator each.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no threads. [`Error::Randomness`]; then `out` has the default value where it was written.
    fn fill(&self, out: &mut [Self::Item], threads: usize) -> Result<(), Error> {
        self.fill_pausing(out, threads, &mut go_on)
    }

    /// Fills `out` as [`Sampler::fill`] does, and calls `pause` between pieces of work.
    ///
    /// # Errors
    /// As for [`Sampler::fill`], and the error of `pause`.
    fn fill_pausing(&self, out: &mut [Self::Item], threads: usize, pause: &mut Pause<'_>) -> Result<(), Error> {
        threads::fill(out, NOISE, threads, pause, |rng, _, part| self.fill_with(part, rng))
    }

    /// One sample, with a freshly keyed secure generator.
    ///
    /// # Errors
    /// [`Error::Randomness`] when the system has no randomness.
    fn sample(&self) -> Result<Self::Item, Error> {
        self.sample_with(&mut SecureRng::new()?)
    }

    /// One sample, with random words of `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails.
    fn sample_with<R: TryCryptoRng + ?Sized>(&self, rng: &mut R) -> Result<Self::Item, Error> {
        let mut out = [Self::Item::default()];
        self.fill_with(&mut out, rng)?;
        Ok(out[0])
    }
}
