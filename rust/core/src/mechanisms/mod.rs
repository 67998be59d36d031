//! Mechanisms: a query's value in, a differentially private release out.
//! A mechanism is immutable and its parameters are checked when it is made. [`Noisy`] is the trait of mechanisms that
//! add noise: to one value or many, with the library's own randomness or the caller's. [`Selector`] is the common part
//! of mechanisms that choose among candidates by their scores.

pub mod calibration;
mod discrete_gaussian;
mod discrete_laplace;
mod exponential;
mod gaussian;
mod laplace;
mod noise_buffer;
mod noisy_max;
mod quantile;
mod real_values;
mod selector;
mod sparse_vector;
mod sum;
mod top_k;
mod truncated_geometric;

pub use calibration::Method;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use exponential::Exponential;
pub use gaussian::Gaussian;
pub use laplace::Laplace;
pub use noise_buffer::NoiseBuffer;
pub use noisy_max::ReportNoisyMax;
pub use quantile::Quantile;
pub use real_values::OnGrid;
pub use selector::Selector;
pub use sparse_vector::{AboveThreshold, Run};
pub use sum::Sum;
pub use top_k::TopK;
pub use truncated_geometric::{Law, TruncatedGeometric};

use core::ops::Deref;
use std::sync::Arc;

use dpnoise_kernels::arch::saturating;
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::instruction_set;
use crate::rng::{SecureRng, wiped_on_error};
use crate::samplers::Histogram;
use crate::threads::{self, NOISE, Pause, go_on};

/// A mechanism that adds integer noise to values of one type.
pub trait Noisy: Sync {
    /// The type of a query's value.
    type Value: Copy + Default + Send + Sync;

    /// The sampler of the noise.
    type Noise: Deref<Target = Histogram> + Send + Sync;

    /// The noise for a release of `count` values at once.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the noise for that many values is out of range.
    fn noise(&self, count: usize) -> Result<Arc<Self::Noise>, Error>;

    /// Refuses values that the mechanism is not defined for, in a time that does not depend on them.
    ///
    /// # Errors
    /// [`Error::Data`], which does not reveal the value.
    fn check(&self, values: &[Self::Value]) -> Result<(), Error>;

    /// Adds to every value a sample of `noise`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    fn add(noise: &Self::Noise, values: &mut [Self::Value], samples: &[i64]) -> Result<(), Error>;

    /// Replaces each of `values` by its release, on up to `threads` threads with a freshly keyed generator each.
    ///
    /// # Errors
    /// Those of [`Noisy::check`] and [`Noisy::noise`], and [`Error::Parameter`] for no threads, with `values` as they were;
    /// and [`Error::Randomness`], with `values` overwritten.
    fn release(&self, values: &mut [Self::Value], threads: usize) -> Result<(), Error> {
        self.release_pausing(values, threads, &mut go_on)
    }

    /// Releases values as [`Noisy::release`] does, and calls `pause` between pieces of work.
    ///
    /// # Errors
    /// As for [`Noisy::release`]; and the error of `pause`, with `values` overwritten.
    fn release_pausing(&self, values: &mut [Self::Value], threads: usize, pause: &mut Pause<'_>) -> Result<(), Error> {
        self.check(values)?;
        let noise = self.noise(values.len())?;
        threads::fill(values, NOISE, threads, pause, |rng, _, part| {
            noise.perturb(rng, part, |values, samples| Self::add(&noise, values, samples))
        })
    }

    /// Replaces each of `values` by its release, with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Noisy::release`].
    fn release_with<R: TryCryptoRng + ?Sized>(&self, values: &mut [Self::Value], rng: &mut R) -> Result<(), Error> {
        self.check(values)?;
        let noise = self.noise(values.len())?;
        wiped_on_error(values, |values| {
            noise.perturb(rng, values, |values, samples| Self::add(&noise, values, samples))
        })
    }

    /// Releases one value.
    ///
    /// # Errors
    /// As for [`Noisy::release`].
    fn release_one(&self, value: Self::Value) -> Result<Self::Value, Error> {
        let mut values = [value];
        self.release_with(&mut values, &mut SecureRng::new()?)?;
        Ok(values[0])
    }
}

/// Adds integers; sums outside the range of 64 bits saturate.
fn add_saturating(values: &mut [i64], noise: &[i64]) -> Result<(), Error> {
    saturating::add_saturating(instruction_set::current()?, values, noise);
    Ok(())
}
