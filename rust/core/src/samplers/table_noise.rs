//! Noise whose probabilities stand in a table: Skellam, staircase, and negative binomial shares.

use core::ops::Deref;

use super::integer_noise::IntegerNoise;
use super::quotients::Quotients;
use super::symmetric::Symmetric;
use crate::error::Error;
use crate::params::{Scale, check_level};

/// A symmetric distribution on the integers whose probabilities stand in a table: it is prepared in 1 to 400 milliseconds.
///
/// ```
/// use dpnoise_core::{params::Scale, samplers::{Sampler, TableNoise}};
/// let noise = TableNoise::skellam(Scale::from_f64(50.0)?)?;
/// let mut samples = [0; 1000];
/// noise.fill(&mut samples, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableNoise(IntegerNoise);

impl TableNoise {
    /// The largest mean of Skellam noise.
    pub const LARGEST_MU: u32 = 90_000;

    /// The Skellam distribution: the difference of two independent Poisson variables of mean `mu`, of variance 2 mu.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a mean above 90,000.
    pub fn skellam(mu: Scale) -> Result<Self, Error> {
        at_most(mu, "mu", Self::LARGEST_MU)?;
        Ok(Self(IntegerNoise::by_pages(Quotients::Skellam { mu: mu.ratio() }, b'S', mu, mu, &[])))
    }

    /// What each of a number of parties adds for a sum that is exactly discrete Laplace: the difference of two
    /// independent negative binomial variables of shape 1 / parties and success probability 1 - exp(-1 / scale).
    ///
    /// # Errors
    /// [`Error::Parameter`] for a scale above 88, or a number of parties that is not from 1 to 2^32.
    pub fn negative_binomial_share(scale: Scale, parties: u64) -> Result<Self, Error> {
        if !(1..=1 << 32).contains(&parties) {
            return Err(Error::parameter("parties", parties, "from 1 to 2**32"));
        }
        at_most(scale, "scale", 88)?;
        let law = Quotients::Shares { scale: scale.ratio(), shares: 1, parties };
        Ok(Self(IntegerNoise::by_pages(law, b'N', scale, scale, &[parties])))
    }

    /// The staircase distribution: P(x) falls by exp(-epsilon) from |x| = inner - 1 to inner, and again after each further
    /// `width` magnitudes.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a width that is not from 1 to 3969 epsilon / (44 + epsilon), or an inner width that is not
    /// from 1 to `width`.
    pub fn staircase(epsilon: Scale, width: u64, inner: u64) -> Result<Self, Error> {
        let value = epsilon.ratio().to_f64();
        let most = (3969.0 * value / (44.0 + value)) as u64;
        if !(1..=most).contains(&width) {
            let allowed = format!("from 1 to 3969 epsilon / (44 + epsilon), which is {most} for epsilon = {value}");
            return Err(Error::parameter("width", width, allowed));
        }
        if !(1..=width).contains(&inner) {
            return Err(Error::parameter("inner", inner, format!("from 1 to the width, {width}")));
        }
        let law = Quotients::Staircase { epsilon: epsilon.ratio(), width, inner };
        let scale = Scale::from_f64(width as f64 / value)?;
        Ok(Self(IntegerNoise::by_pages(law, b'T', scale, epsilon, &[width, inner])))
    }
}

/// Checks that the tables have room.
fn at_most(scale: Scale, name: &'static str, most: u32) -> Result<(), Error> {
    let ratio = scale.ratio();
    if ratio.numerator().div_ceil(ratio.denominator()) > most.into() {
        return Err(Error::parameter(name, ratio.to_f64(), format!("at most {most}")));
    }
    Ok(())
}

impl Symmetric for TableNoise {
    fn magnitude_quantile(&self, level: f64) -> Result<f64, Error> {
        check_level(level)?;
        Ok(self.quantile_of_pages(level).map_or(f64::NAN, |quantile| quantile as f64))
    }
}

/// What one of several parties adds, and what all of them add together, which error bounds are about.
#[derive(Clone, Debug)]
pub struct PartOf<S> {
    pub(crate) part: TableNoise,
    pub(crate) whole: S,
}

impl<S: Symmetric> Symmetric for PartOf<S> {
    fn magnitude_quantile(&self, level: f64) -> Result<f64, Error> {
        self.whole.magnitude_quantile(level)
    }
}

impl<S> Deref for PartOf<S> {
    type Target = IntegerNoise;

    fn deref(&self) -> &IntegerNoise {
        &self.part
    }
}

impl Deref for TableNoise {
    type Target = IntegerNoise;

    fn deref(&self) -> &IntegerNoise {
        &self.0
    }
}

impl From<TableNoise> for IntegerNoise {
    fn from(sampler: TableNoise) -> Self {
        sampler.0
    }
}
