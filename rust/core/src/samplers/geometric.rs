//! The geometric distribution: one-sided exponential noise.
//!
//! It is the sampler of [`super::discrete_laplace`] with m = 1 for all bins and no sign; the proofs are the same.

use core::ops::Deref;

use super::density::Shape;
use super::design::Design;
use super::integer_noise::IntegerNoise;
use crate::params::Scale;

/// The geometric distribution: P(x) proportional to exp(-x / scale), over x = 0, 1, 2, ...
///
/// ```
/// use dpnoise_core::{params::Scale, samplers::{Geometric, Sampler}};
/// assert!(Geometric::new(Scale::from_f64(10.0)?).sample()? >= 0);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Geometric(IntegerNoise);

impl Geometric {
    /// Prepares the tables for a scale.
    #[must_use]
    pub fn new(scale: Scale) -> Self {
        Self(IntegerNoise::new(Shape::Exponential, scale, false))
    }

    /// The same distribution by another proposal, for tests.
    ///
    /// # Panics
    /// When this scale is out of the range of the design.
    #[must_use]
    pub fn with_design(scale: Scale, design: Design) -> Self {
        Self(IntegerNoise::with_design(Shape::Exponential, scale, false, design))
    }
}

impl Deref for Geometric {
    type Target = IntegerNoise;

    fn deref(&self) -> &IntegerNoise {
        &self.0
    }
}

impl From<Geometric> for IntegerNoise {
    fn from(sampler: Geometric) -> Self {
        sampler.0
    }
}
