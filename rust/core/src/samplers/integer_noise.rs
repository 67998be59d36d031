//! Noise on the integers, by the sampler that suits its scale.

use dpnoise_kernels::arch::alias::Digit;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arch::trials::Tables;
use rand_core::TryCryptoRng;

use super::alias::Alias;
use super::density::{Law, Shape};
use super::design::Design;
use super::histogram::{Histogram, Rarities};
use super::keyed_noise::Keyed;
use super::pages::Pages;
use super::quotients::Quotients;
use super::sampler::Sampler;
use crate::error::Error;
use crate::params::{LARGEST_RADIUS, Scale};
use crate::rng::{Wiped, wiped_on_error};

/// A sampler of integers.
#[derive(Clone, Debug)]
pub struct IntegerNoise {
    scale: Scale,
    /// What no other distribution has: see [`Keyed::identity`].
    identity: Vec<u8>,
    /// The largest magnitude, if there is one.
    radius: Option<u64>,
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Alias(Box<Alias>),
    Histogram(Box<Histogram>),
    Pages(Box<Pages>),
}

/// [`IntegerNoise::perturb`], and a truncated distribution, draws this many samples at a time: they stay in the
/// first-level cache.
const CHUNK: usize = 2048;

impl IntegerNoise {
    /// By alias tables where there are as few digits as they have room for, else by trials.
    pub(super) fn new(shape: Shape, scale: Scale, both_signs: bool) -> Self {
        let law = Law::new(shape, scale);
        if let Some(alias) = Alias::new(&law, both_signs) {
            let letter = if shape == Shape::Gaussian { b'G' } else { b'E' };
            return Self::of(letter, both_signs, scale, &[], Engine::Alias(Box::new(alias)));
        }
        Self::by_trials(law, both_signs, Design::for_scale(shape, scale.ratio()))
    }

    /// By pages of alias tables, which must have room for the law. The letter and the parameters are those of the identity.
    pub(super) fn by_pages(law: Quotients, letter: u8, scale: Scale, parameter: Scale, more: &[u64]) -> Self {
        Self { scale, ..Self::of(letter, true, parameter, more, Engine::Pages(Box::new(Pages::new(law)))) }
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
        let letter = if law.shape == Shape::Gaussian { b'g' } else { b'e' };
        let scale = law.scale;
        let histogram = Histogram::new(law, both_signs, design);
        Self::of(letter, both_signs, scale, &[], Engine::Histogram(Box::new(histogram)))
    }

    /// The identity is a letter for the distribution and its sampler, one for the signs, the two parts of the scale as 16
    /// little-endian bytes each, and further parameters as 8.
    fn of(letter: u8, both_signs: bool, scale: Scale, more: &[u64], engine: Engine) -> Self {
        let signs = if both_signs { b'-' } else { b'+' };
        let mut identity = vec![letter, signs];
        identity.extend([scale.ratio().numerator(), scale.ratio().denominator()].map(u128::to_le_bytes).as_flattened());
        identity.extend(more.iter().flat_map(|part| part.to_le_bytes()));
        Self { scale, identity, radius: None, engine }
    }

    /// The distribution under the condition that the magnitude is at most `radius`: samples beyond are drawn again.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a radius below the scale, or the median of the magnitude of noise from tables, where most
    /// samples could be beyond it, of 0, or above 2^62.
    pub fn truncated(self, radius: u64) -> Result<Self, Error> {
        let scale = self.scale.ratio();
        let (least, what) = match self.quantile_of_pages(0.5) {
            Some(median) => (median.max(1), "the median of the magnitude, or 1"),
            None => (scale.numerator().div_ceil(scale.denominator()) as u64, "the scale, rounded up"),
        };
        if !(least..=LARGEST_RADIUS).contains(&radius) {
            return Err(Error::parameter("radius", radius, format!("from {least} ({what}) to 2**62")));
        }
        Ok(Self { radius: Some(radius), ..self })
    }

    /// The largest magnitude, for a truncated distribution.
    #[must_use]
    pub fn radius(&self) -> Option<u64> {
        self.radius
    }

    /// The scale; mu for Skellam noise, that of the sum for shares, and width/epsilon, rounded, for a staircase.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The tables of the proposal, where the noise is drawn by trials.
    #[must_use]
    pub fn tables(&self) -> Option<&Tables> {
        match &self.engine {
            Engine::Histogram(histogram) => Some(histogram.tables()),
            Engine::Alias(_) | Engine::Pages(_) => None,
        }
    }

    /// The tables of the digits, where the noise is drawn from alias tables.
    #[must_use]
    pub fn digits(&self) -> Option<&[Digit]> {
        if let Engine::Alias(alias) = &self.engine { Some(alias.digits()) } else { None }
    }

    /// The smallest t with P(|x| <= t) >= `level`, in floating point, where the noise is drawn by pages.
    pub(super) fn quantile_of_pages(&self, level: f64) -> Option<u64> {
        if let Engine::Pages(pages) = &self.engine { Some(pages.magnitude_quantile(level)) } else { None }
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
            Self::Pages(pages) => pages.try_fill(rng, out),
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
    /// That of the whole distribution; then the radius of a truncated one, as 8 little-endian bytes.
    fn identity(&self) -> Vec<u8> {
        let radius = self.radius.map(u64::to_le_bytes);
        [&self.identity, radius.as_slice().as_flattened()].concat()
    }
}
