//! The discrete Gaussian distribution (Canonne, Kamath and Steinke 2020).
//! It is the sampler of [`super::discrete_laplace`] for f(x) = exp(-x^2 / (2 sigma^2)); the differences are documented
//! there.

use core::ops::Deref;

use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::gaussian::DiscreteTails;
use dpnoise_kernels::arith::power_of_two;

use super::density::Shape;
use super::design::Design;
use super::integer_noise::IntegerNoise;
use super::symmetric::Symmetric;
use crate::error::Error;
use crate::params::{Scale, check_level};

/// The discrete Gaussian distribution: P(x) proportional to exp(-x^2 / (2 sigma^2)), over all integers, or those of a
/// radius.
///
/// ```
/// use dpnoise_core::{params::Scale, samplers::{DiscreteGaussian, Sampler}};
/// let noise = DiscreteGaussian::new(Scale::from_f64(10.0)?)?;
/// let mut samples = [0; 1000];
/// noise.fill(&mut samples, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteGaussian(IntegerNoise);

impl DiscreteGaussian {
    /// Prepares the tables for a standard deviation parameter sigma from 2^-20 to 2^40.
    ///
    /// # Errors
    /// [`Error::Parameter`] when sigma is smaller.
    pub fn new(sigma: Scale) -> Result<Self, Error> {
        check(sigma)?;
        Ok(Self(IntegerNoise::new(Shape::Gaussian, sigma, true)))
    }

    /// The distribution over the integers of magnitude at most `radius`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a radius that is below sigma or 1, or above 2^62.
    pub fn truncated(self, radius: u64) -> Result<Self, Error> {
        self.0.truncated(radius).map(Self)
    }

    /// The same distribution by another proposal, for tests.
    ///
    /// # Errors
    /// As for [`DiscreteGaussian::new`].
    ///
    /// # Panics
    /// When this sigma is out of the range of the design.
    pub fn with_design(sigma: Scale, design: Design) -> Result<Self, Error> {
        check(sigma)?;
        Ok(Self(IntegerNoise::with_design(Shape::Gaussian, sigma, true, design)))
    }
}

impl Symmetric for DiscreteGaussian {
    fn magnitude_quantile(&self, level: f64) -> Result<f64, Error> {
        check_level(level)?;
        let sigma = self.scale().ratio().to_f64();
        let tails = DiscreteTails::new(Ball::from_f64(sigma, 96));
        let tail = |start: i64| tails.from(start, &Ball::integer(0, 96));
        let outer = self.radius().map_or(Ball::integer(0, 96), |radius| tail(radius.cast_signed() + 1));
        let inner = &tails.total() - &outer.scaled(1);
        let beyond = &(&Ball::from_f64(1.0 - level, 96).scaled(-1) * &inner) + &outer;
        let covers = |t: i64| !(&tail(t + 1) - &beyond).is_positive();
        // P(|x| > t) <= 2 exp(-t^2 / (2 sigma^2))
        let mut high = (sigma * (2.0 * (2.0 / (1.0 - level)).ln()).sqrt()).ceil() as i64 + 1;
        let mut low = -1;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if covers(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(self.radius().map_or(high, |radius| high.min(radius.cast_signed())) as f64)
    }
}

fn check(sigma: Scale) -> Result<(), Error> {
    let value = sigma.ratio().to_f64();
    if value >= power_of_two(-20) {
        Ok(())
    } else {
        Err(Error::parameter("sigma", format!("{value:e}"), "from 2**-20 to 2**40"))
    }
}

impl Deref for DiscreteGaussian {
    type Target = IntegerNoise;

    fn deref(&self) -> &IntegerNoise {
        &self.0
    }
}

impl From<DiscreteGaussian> for IntegerNoise {
    fn from(sampler: DiscreteGaussian) -> Self {
        sampler.0
    }
}
