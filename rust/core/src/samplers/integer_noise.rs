//! Noise on the integers, by the sampler that suits its scale.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
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
    /// The largest magnitude, if there is one.
    radius: Option<u64>,
    engine: Engine,
}

/// The largest radius.
pub(crate) const LARGEST_RADIUS: u64 = 1 << 62;

#[derive(Clone, Debug)]
enum Engine {
    Alias(Box<Alias>),
    Histogram(Box<Histogram>),
}

/// [`IntegerNoise::perturb`], and a truncated distribution, draws this many samples at a time: they stay in the
/// first-level cache.
const CHUNK: usize = 2048;

impl IntegerNoise {
    /// By alias tables where there are as few digits as they have room for, else by trials.
    pub(super) fn new(shape: Shape, scale: Scale, both_signs: bool) -> Self {
        let law = Law::new(shape, scale);
        if let Some(alias) = Alias::new(&law, both_signs) {
            return Self { law, both_signs, radius: None, engine: Engine::Alias(Box::new(alias)) };
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
        Self { law, both_signs, radius: None, engine: Engine::Histogram(Box::new(histogram)) }
    }

    /// The distribution under the condition that the magnitude is at most `radius`: samples beyond are drawn again.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a radius below the scale, where most samples could be beyond it, of 0, or above 2^62.
    pub fn truncated(self, radius: u64) -> Result<Self, Error> {
        let scale = self.law.scale.ratio();
        let least = scale.numerator().div_ceil(scale.denominator());
        if u128::from(radius) < least || radius > LARGEST_RADIUS {
            return Err(Error::parameter("radius", radius, format!("from {least} (the scale, rounded up) to 2**62")));
        }
        Ok(Self { radius: Some(radius), ..self })
    }

    /// The largest magnitude, for a truncated distribution.
    #[must_use]
    pub fn radius(&self) -> Option<u64> {
        self.radius
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
        let Some(radius) = self.radius else {
            return self.engine.try_fill(rng, out);
        };
        let mut rarities = Rarities::default();
        for mut missing in out.chunks_mut(CHUNK) {
            while !missing.is_empty() {
                rarities += self.engine.try_fill(rng, missing)?;
                missing = beyond_kept(missing, radius);
            }
        }
        Ok(rarities)
    }
}

impl Engine {
    fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        match self {
            Self::Alias(alias) => alias.try_fill(rng, out),
            Self::Histogram(histogram) => histogram.try_fill(rng, out),
        }
    }
}

/// Moves the samples of magnitude at most `radius` to the front, in their order, and returns the room behind them. Time
/// shows which samples were beyond it: these are independent of the others, and are not kept.
fn beyond_kept(samples: &mut [i64], radius: u64) -> &mut [i64] {
    let is_beyond = |sample: i64| sample.unsigned_abs() > radius;
    let any = samples.iter().fold(false, |any, &sample| any | is_beyond(sample));
    if !declassify(Reason::Rejection, any) {
        return &mut [];
    }
    let mut kept = 0;
    for i in 0..samples.len() {
        if !declassify(Reason::Rejection, is_beyond(samples[i])) {
            samples[kept] = samples[i];
            kept += 1;
        }
    }
    &mut samples[kept..]
}

impl Sampler for IntegerNoise {
    type Item = i64;

    fn fill_with<R: TryCryptoRng + ?Sized>(&self, out: &mut [i64], rng: &mut R) -> Result<(), Error> {
        self.fill_counted(out, rng).map(drop)
    }
}

impl Keyed for IntegerNoise {
    /// A letter for the shape and the sampler, one for the signs, and the two parts of the scale, as 16 little-endian bytes
    /// each; then the radius of a truncated distribution, as 8.
    fn identity(&self) -> Vec<u8> {
        let shape = match (self.law.shape, &self.engine) {
            (Shape::Exponential, Engine::Alias(_)) => b'E',
            (Shape::Exponential, Engine::Histogram(_)) => b'e',
            (Shape::Gaussian, Engine::Alias(_)) => b'G',
            (Shape::Gaussian, Engine::Histogram(_)) => b'g',
        };
        let signs = if self.both_signs { b'-' } else { b'+' };
        let ratio = self.law.scale.ratio();
        let radius = self.radius.map(u64::to_le_bytes);
        let parts = [ratio.numerator().to_le_bytes(), ratio.denominator().to_le_bytes()];
        [&[shape, signs][..], parts.as_flattened(), radius.as_slice().as_flattened()].concat()
    }
}
