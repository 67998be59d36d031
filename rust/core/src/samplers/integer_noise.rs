//! Noise on the integers, by the sampler that suits its scale.

use dpnoise_kernels::arch::trials::Tables;
use rand_core::TryCryptoRng;

use super::alias::Alias;
use super::density::{Law, Shape};
use super::design::Design;
use super::histogram::{Histogram, Rarities};
use super::keyed_noise::Keyed;
use super::sampler::Sampler;
use crate::error::Error;
use crate::params::Scale;
use crate::rng::{Wiped, wiped_on_error};

/// A sampler of the integers whose density is an exponential or a Gaussian of the magnitude.
#[derive(Clone, Debug)]
pub struct IntegerNoise {
    law: Law,
    both_signs: bool,
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Alias(Box<Alias>),
    Histogram(Box<Histogram>),
}

/// [`IntegerNoise::perturb`] draws this many samples at a time: they stay in the first-level cache.
const CHUNK: usize = 2048;

impl IntegerNoise {
    /// By alias tables where there are as few digits as they have room for, else by trials.
    pub(super) fn new(shape: Shape, scale: Scale, both_signs: bool) -> Self {
        let law = Law::new(shape, scale);
        if let Some(alias) = Alias::new(&law, both_signs) {
            return Self { law, both_signs, engine: Engine::Alias(Box::new(alias)) };
        }
        Self::by_trials(law, both_signs, Design::for_scale(shape, scale.ratio()))
    }

    /// By the trials of a design, for tests.
    ///
    /// # Panics
    /// When the design has no room for this scale: `weight_bits` outside 8 to 32, a shift above 50, or an expected
    /// number of tail proposals that exceeds the weights.
    pub(super) fn with_design(shape: Shape, scale: Scale, both_signs: bool, design: Design) -> Self {
        Self::by_trials(Law::new(shape, scale), both_signs, design)
    }

    fn by_trials(law: Law, both_signs: bool, design: Design) -> Self {
        let histogram = Histogram::new(law.clone(), both_signs, design);
        Self { law, both_signs, engine: Engine::Histogram(Box::new(histogram)) }
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.law.scale
    }

    /// The tables of the proposal, where the noise is drawn by trials.
    #[must_use]
    pub fn tables(&self) -> Option<&Tables> {
        match &self.engine {
            Engine::Alias(_) => None,
            Engine::Histogram(histogram) => Some(histogram.tables()),
        }
    }

    /// Fills `out` as [`Sampler::fill_with`] does, and counts what is rare. Magnitudes above `i64::MAX` saturate; at the
    /// largest scale that has a probability below 2^(-2^11).
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails; `out` is zero then.
    pub fn fill_counted<R: TryCryptoRng + ?Sized>(&self, out: &mut [i64], rng: &mut R) -> Result<Rarities, Error> {
        wiped_on_error(out, |out| self.try_fill(rng, out))
    }

    /// Draws a sample for each of `values` and combines them by `add`, some at a time.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails, and those of `add`; some of the values are combined then and some are not,
    /// so none may be used.
    pub fn perturb<R: TryCryptoRng + ?Sized, T>(
        &self,
        rng: &mut R,
        values: &mut [T],
        mut add: impl FnMut(&mut [T], &[i64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut samples = Wiped::new(values.len().min(CHUNK));
        for values in values.chunks_mut(CHUNK) {
            let samples = &mut samples[..values.len()];
            self.try_fill(rng, samples)?;
            add(values, samples)?;
        }
        Ok(())
    }

    fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        match &self.engine {
            Engine::Alias(alias) => alias.try_fill(rng, out),
            Engine::Histogram(histogram) => histogram.try_fill(rng, out),
        }
    }
}

impl Sampler for IntegerNoise {
    type Item = i64;

    fn fill_with<R: TryCryptoRng + ?Sized>(&self, out: &mut [i64], rng: &mut R) -> Result<(), Error> {
        self.fill_counted(out, rng).map(drop)
    }
}

impl Keyed for IntegerNoise {
    /// A letter for the shape and the sampler, one for the signs, and the two parts of the scale, as 16 little-endian bytes
    /// each.
    fn identity(&self) -> Vec<u8> {
        let shape = match (self.law.shape, &self.engine) {
            (Shape::Exponential, Engine::Alias(_)) => b'E',
            (Shape::Exponential, Engine::Histogram(_)) => b'e',
            (Shape::Gaussian, Engine::Alias(_)) => b'G',
            (Shape::Gaussian, Engine::Histogram(_)) => b'g',
        };
        let signs = if self.both_signs { b'-' } else { b'+' };
        let ratio = self.law.scale.ratio();
        [&[shape, signs][..], &ratio.numerator().to_le_bytes(), &ratio.denominator().to_le_bytes()].concat()
    }
}
