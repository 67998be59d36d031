//! The samplers that are measured: by time in `parts.rs`, by instructions in `instructions.rs`.

use dpnoise_core::Error;
use dpnoise_core::params::{RealScale, Scale};
use dpnoise_core::rng::SeededRng;
use dpnoise_core::samplers::{
    Bernoulli, DiscreteGaussian, DiscreteLaplace, Geometric, GridNoise, IntegerNoise, Sampler, TableNoise,
};

/// The samples of one draw.
pub(crate) const SAMPLES: usize = 1 << 14;

/// A sampler of any kind.
pub(crate) enum Prepared {
    Integers(IntegerNoise),
    Reals(GridNoise),
    Coins(Bernoulli),
}

/// Room for the samples of one draw.
pub(crate) struct Samples {
    integers: Vec<i64>,
    reals: Vec<f64>,
    coins: Vec<bool>,
}

/// A sampler and a parameter for it.
pub(crate) struct Case {
    pub(crate) sampler: &'static str,
    /// The parameter, as it is written in tables.
    pub(crate) parameter: &'static str,
    value: f64,
    make: fn(f64) -> Result<Prepared, Error>,
}

const SCALES: &[(&str, f64)] =
    &[("0.01", 0.01), ("1", 1.0), ("10", 10.0), ("1000", 1e3), ("10^6", 1e6), ("2^40", (1u64 << 40) as f64)];
const MEANS: &[(&str, f64)] = &[("1", 1.0), ("1000", 1e3), ("80000", 8e4)];
const SHARED: &[(&str, f64)] = &[("1", 1.0), ("10", 10.0)];
const EPSILONS: &[(&str, f64)] = &[("1", 1.0), ("8", 8.0)];
const PROBABILITIES: &[(&str, f64)] = &[("0.5", 0.5), ("0.1", 0.1), ("0.001", 0.001)];

/// A sampler's name, its parameters, and how it is made.
type Row = (&'static str, &'static [(&'static str, f64)], fn(f64) -> Result<Prepared, Error>);

const SAMPLERS: [Row; 9] = [
    ("discrete Laplace", SCALES, |b| Ok(Prepared::Integers(DiscreteLaplace::new(Scale::from_f64(b)?).into()))),
    ("discrete Gaussian", SCALES, |b| Ok(Prepared::Integers(DiscreteGaussian::new(Scale::from_f64(b)?)?.into()))),
    ("geometric", SCALES, |b| Ok(Prepared::Integers(Geometric::new(Scale::from_f64(b)?).into()))),
    ("Skellam", MEANS, |mu| TableNoise::skellam(Scale::from_f64(mu)?).map(table)),
    ("negative binomial share of 10", SHARED, |b| {
        TableNoise::negative_binomial_share(Scale::from_f64(b)?, 10).map(table)
    }),
    ("staircase of 20", EPSILONS, |epsilon| TableNoise::staircase(Scale::from_f64(epsilon)?, 20, 5).map(table)),
    ("float Laplace", SCALES, |b| GridNoise::laplace(real(b), None).map(Prepared::Reals)),
    ("float Gaussian", SCALES, |b| GridNoise::gaussian(real(b), None).map(Prepared::Reals)),
    ("Bernoulli", PROBABILITIES, |p| Bernoulli::new(p).map(Prepared::Coins)),
];

fn table(noise: TableNoise) -> Prepared {
    Prepared::Integers(noise.into())
}

fn real(scale: f64) -> RealScale {
    RealScale::from_f64(scale).expect("scales are positive and finite")
}

/// Every sampler with each of its parameters.
pub(crate) fn all() -> impl Iterator<Item = Case> {
    SAMPLERS.into_iter().flat_map(|(sampler, parameters, make)| {
        parameters.iter().map(move |&(parameter, value)| Case { sampler, parameter, value, make })
    })
}

impl Case {
    pub(crate) fn set_up(&self) -> Prepared {
        (self.make)(self.value).expect("parameters are in range")
    }
}

impl Prepared {
    /// Draws [`SAMPLES`] samples.
    pub(crate) fn draw(&self, rng: &mut SeededRng, samples: &mut Samples) {
        match self {
            Self::Integers(sampler) => sampler.fill_with(&mut samples.integers, rng),
            Self::Reals(sampler) => sampler.fill_with(&mut samples.reals, rng),
            Self::Coins(sampler) => sampler.fill_with(&mut samples.coins, rng),
        }
        .expect("a seeded generator does not fail");
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self { integers: vec![0; SAMPLES], reals: vec![0.0; SAMPLES], coins: vec![false; SAMPLES] }
    }
}
