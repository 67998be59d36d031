#![doc = include_str!("discrete_laplace.md")]

use core::ops::Deref;

use super::density::Shape;
use super::design::Design;
use super::integer_noise::IntegerNoise;
use super::symmetric::Symmetric;
use crate::error::Error;
use crate::params::{Scale, check_level};

/// The discrete Laplace distribution: P(x) proportional to exp(-|x| / scale), over all integers, or those of a radius.
///
/// ```
/// use dpnoise_core::{params::Scale, samplers::{DiscreteLaplace, Sampler}};
/// let noise = DiscreteLaplace::new(Scale::from_f64(10.0)?);
/// let mut samples = [0; 1000];
/// noise.fill(&mut samples, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteLaplace(IntegerNoise);

impl DiscreteLaplace {
    /// Prepares the tables for a scale: some ten microseconds, worth keeping for many calls.
    #[must_use]
    pub fn new(scale: Scale) -> Self {
        Self(IntegerNoise::new(Shape::Exponential, scale, true))
    }

    /// The distribution over the integers of magnitude at most `radius`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a radius that is below the scale or 1, or above 2^62.
    pub fn truncated(self, radius: u64) -> Result<Self, Error> {
        self.0.truncated(radius).map(Self)
    }

    /// The same distribution by another proposal, for tests.
    ///
    /// # Panics
    /// When this scale is out of the range of the design.
    #[must_use]
    pub fn with_design(scale: Scale, design: Design) -> Self {
        Self(IntegerNoise::with_design(Shape::Exponential, scale, true, design))
    }
}

impl Symmetric for DiscreteLaplace {
    fn magnitude_quantile(&self, level: f64) -> Result<f64, Error> {
        check_level(level)?;
        // P(|x| > t) = 2 q^(t + 1) / (1 + q) with q = exp(-1/scale), and so is what lies beyond a radius.
        let scale = self.scale().ratio().to_f64();
        let q = (-1.0 / scale).exp();
        let outer = self.radius().map_or(0.0, |radius| 2.0 / (1.0 + q) * (-(radius as f64 + 1.0) / scale).exp());
        let beyond = (1.0 - level) * (1.0 - outer) + outer;
        let quantile = ((-scale * (beyond * (1.0 + q) / 2.0).ln()).ceil() - 1.0).max(0.0);
        Ok(self.radius().map_or(quantile, |radius| quantile.min(radius as f64)))
    }
}

impl Deref for DiscreteLaplace {
    type Target = IntegerNoise;

    fn deref(&self) -> &IntegerNoise {
        &self.0
    }
}

impl From<DiscreteLaplace> for IntegerNoise {
    fn from(sampler: DiscreteLaplace) -> Self {
        sampler.0
    }
}
