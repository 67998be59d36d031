//! The discrete Gaussian distribution (Canonne, Kamath and Steinke 2020).
//!
//! It is the sampler of [`super::discrete_laplace`] for f(x) = exp(-x^2 / (2 sigma^2)); what differs is said there.

use core::ops::Deref;

use super::density::Shape;
use super::design::Design;
use super::histogram::Histogram;
use crate::error::Error;
use crate::params::Scale;

/// The discrete Gaussian distribution: P(x) proportional to exp(-x^2 / (2 sigma^2)), over all integers.
///
/// ```
/// use dpnoise_core::{params::Scale, rng::SecureRng, samplers::DiscreteGaussian};
/// let noise = DiscreteGaussian::new(Scale::from_f64(10.0)?)?;
/// let mut samples = [0; 1000];
/// noise.fill(&mut SecureRng::new()?, &mut samples)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteGaussian(Histogram);

impl DiscreteGaussian {
    /// Prepares the tables for a standard deviation parameter sigma from 2^-20 to 2^40.
    ///
    /// # Errors
    /// [`Error::Parameter`] when sigma is smaller.
    pub fn new(sigma: Scale) -> Result<Self, Error> {
        check(sigma)?;
        Ok(Self(Histogram::new(Shape::Gaussian, sigma, true)))
    }

    /// The same distribution by another proposal, for tests.
    ///
    /// # Errors
    /// As for [`DiscreteGaussian::new`].
    ///
    /// # Panics
    /// When the design has no room for this sigma.
    pub fn with_design(sigma: Scale, design: Design) -> Result<Self, Error> {
        check(sigma)?;
        Ok(Self(Histogram::with_design(Shape::Gaussian, sigma, true, design)))
    }
}

fn check(sigma: Scale) -> Result<(), Error> {
    let value = sigma.ratio().to_f64();
    if value >= 2f64.powi(-20) {
        Ok(())
    } else {
        Err(Error::parameter("sigma", format!("{value:e}"), "from 2**-20 to 2**40"))
    }
}

impl Deref for DiscreteGaussian {
    type Target = Histogram;

    fn deref(&self) -> &Histogram {
        &self.0
    }
}

impl From<DiscreteGaussian> for Histogram {
    fn from(sampler: DiscreteGaussian) -> Self {
        sampler.0
    }
}
