//! Noise and coins: exact distribution, constant time, in bulk.
//! | module | content |
//! | --- | --- |
//! | [`discrete_laplace`] | P(x) proportional to exp(-\|x\| / scale) |
//! | [`discrete_gaussian`] | P(x) proportional to exp(-x^2 / (2 sigma^2)) |
//! | [`geometric`] | P(x) proportional to exp(-x / scale), for x = 0, 1, 2, ... |
//! | [`TableNoise::skellam`] | the difference of two Poisson variables |
//! | [`TableNoise::staircase`] | P(x) falls in steps |
//! | [`TableNoise::negative_binomial_share`] | what one of several parties adds for a discrete Laplace sum |
//! | [`Sampler`] | the trait of all samplers |
//! | [`Symmetric`] | the trait of noise with error bounds |
//! | [`integer_noise`] | the common sampler of all of these, by one of the next three |
//! | `alias` | numbers of up to three digits, from alias tables |
//! | `pages` | numbers with a page and an entry of it, from alias tables |
//! | [`histogram`] | trials, for larger scales |
//! | [`design`] | the layout of a histogram proposal for a scale |
//! | `density` | the densities, as certified intervals |
//! | `quotients` | laws by the quotients of neighbouring probabilities |
//! | [`bernoulli`] | P(true) = p |
//! | [`selection`] | which candidate: P(i) proportional to exp(-d_i / scale), and permute-and-flip |
//! | `uniform` | an integer below a secret one |
//! | [`grid`] | real values on a grid, and integer noise on them |
//! | [`grid_noise`] | Laplace and Gaussian noise over the real numbers |
//! | `keyed_noise` | noise that a secret brings back |
//! | `last_noise` | noise that is kept for a next release of as many values |
//! | `runs` | which candidate, where many in a row have the same score |
//! | `refine` | the exact decision of the trials that floating point leaves open |
//!
//! # What is promised
//!
//! The output distribution is exact: no floating-point approximation enters it. Running time, memory addresses and
//! allocation depend only on public parameters and on discarded randomness that is independent of the output, except
//!
//! - *refinements*, of probability at most 1.0001 * 2^-27 per trial. The probability that a sample was refined differs
//!   by less than 2^-42 between any two outputs, outside of an event of probability below 2^-61 per trial;
//! - *rests* of alias tables, of probability at most 3 * 2^-56 per number;
//! - *tail events*, of probability at most 2^-64 per accepted value; and the coins of [`bernoulli`] that 64 digits leave
//!   open, of probability at most 2^-64 per coin.
//!
//! The randomness itself is computational: AES-256 or ChaCha12. The proofs stand in the documentation of each sampler.

mod alias;
pub mod bernoulli;
mod candidates;
mod density;
pub mod design;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod geometric;
pub mod grid;
pub mod grid_noise;
pub mod histogram;
pub mod integer_noise;
mod keyed_noise;
mod last_noise;
mod pages;
mod peeling;
mod quotients;
mod refine;
mod runs;
mod sampler;
pub mod selection;
mod symmetric;
mod table_noise;
mod uniform;
mod weighing;

pub use dpnoise_kernels::arch::trials::Layout;

pub use bernoulli::Bernoulli;
pub use candidates::Candidates;
pub use design::Design;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use geometric::Geometric;
pub use grid::Grid;
pub use grid_noise::GridNoise;
pub use histogram::Histogram;
pub use integer_noise::IntegerNoise;
pub use keyed_noise::Keyed;
pub(crate) use last_noise::LastNoise;
pub(crate) use quotients::Quotients;
pub(crate) use runs::Runs;
pub use sampler::Sampler;
pub use selection::Selection;
pub use symmetric::Symmetric;
pub use table_noise::{PartOf, TableNoise};

use crate::error::Error;
use crate::params::Scale;

/// A distribution of integer noise, for code that binds, tests or checks all of them.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name of the distribution.
    pub name: &'static str,
    /// The name of its first parameter, a rational number.
    pub parameter: &'static str,
    /// The names of its other parameters, which are integers, and what these may be.
    pub integers: &'static [(&'static str, &'static str)],
    /// Parameters for tests: some samples are unlikely to be the same twice.
    pub example: (f64, &'static [u64]),
    /// Prepares the tables for the first parameter and the integers.
    pub new: fn(Scale, &[u64]) -> Result<IntegerNoise, Error>,
    /// Prepares the trials of a design, for tests; `None` for noise from a table of probabilities.
    pub with_design: Option<WithDesign>,
}

/// Prepares the trials of a design.
pub type WithDesign = fn(Scale, Design) -> Result<IntegerNoise, Error>;

/// All distributions of integer noise.
pub const INTEGER_NOISE: [Named; 6] = [
    Named {
        name: "discrete_laplace",
        parameter: "scale",
        integers: &[],
        example: (1e6, &[]),
        new: |scale, _| Ok(DiscreteLaplace::new(scale).into()),
        with_design: Some(|scale, design| Ok(DiscreteLaplace::with_design(scale, design).into())),
    },
    Named {
        name: "discrete_gaussian",
        parameter: "sigma",
        integers: &[],
        example: (1e6, &[]),
        new: |sigma, _| DiscreteGaussian::new(sigma).map(IntegerNoise::from),
        with_design: Some(|sigma, design| DiscreteGaussian::with_design(sigma, design).map(IntegerNoise::from)),
    },
    Named {
        name: "geometric",
        parameter: "scale",
        integers: &[],
        example: (1e6, &[]),
        new: |scale, _| Ok(Geometric::new(scale).into()),
        with_design: Some(|scale, design| Ok(Geometric::with_design(scale, design).into())),
    },
    Named {
        name: "skellam",
        parameter: "mu",
        integers: &[],
        example: (1.0, &[]),
        new: |mu, _| TableNoise::skellam(mu).map(IntegerNoise::from),
        with_design: None,
    },
    Named {
        name: "negative_binomial_share",
        parameter: "scale",
        integers: &[("parties", "an integer from 1 to 2**32")],
        example: (10.0, &[7]),
        new: |scale, integers| TableNoise::negative_binomial_share(scale, integers[0]).map(IntegerNoise::from),
        with_design: None,
    },
    Named {
        name: "staircase",
        parameter: "epsilon",
        integers: &[("width", "a positive integer"), ("inner", "a positive integer")],
        example: (1.0, &[80, 3]),
        new: |epsilon, integers| TableNoise::staircase(epsilon, integers[0], integers[1]).map(IntegerNoise::from),
        with_design: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::RealScale;
    use crate::rng::SeededRng;

    /// A checksum of some samples, each as 8 bytes.
    fn checksum<S: Sampler>(sampler: S, bits: impl Fn(S::Item) -> u64) -> u32 {
        let mut samples = vec![S::Item::default(); 5000];
        sampler.fill_with(&mut samples, &mut SeededRng::new(1).unwrap()).unwrap();
        samples.into_iter().fold(0, |crc, sample| crc32c::crc32c_append(crc, &bits(sample).to_le_bytes()))
    }

    /// One output on every architecture. A change of these numbers is one that users notice.
    #[test]
    fn samples_are_stable() {
        let integers = |noise: IntegerNoise| checksum(noise, i64::cast_unsigned);
        let reals = |noise: Result<GridNoise, _>| checksum(noise.unwrap(), f64::to_bits);
        for (b, expected) in [
            (0.3, [0x33ee_8fe1, 0xd89a_f3ee, 0x8b62_c8ec, 0x8143_a39f, 0x5515_21e6]),
            (30.0, [0xd893_57de, 0x2958_18b7, 0x2e70_7bbd, 0x4387_192d, 0xaf83_8fe8]),
            (1e3, [0x3cb9_bcb9, 0x07f9_c8fb, 0x423b_c3bc, 0x30ff_598f, 0xd208_5f98]),
            (1e9, [0xcd6a_ee1f, 0x5bb5_31ba, 0xcec4_646b, 0xcef9_b581, 0x4e0d_eda7]),
        ] {
            let (scale, real) = (Scale::from_f64(b).unwrap(), RealScale::from_f64(b).unwrap());
            let by_scale = INTEGER_NOISE.iter().filter(|noise| noise.with_design.is_some());
            let mut found: Vec<_> = by_scale.map(|noise| integers((noise.new)(scale, &[]).unwrap())).collect();
            found.extend([GridNoise::laplace(real, None), GridNoise::gaussian(real, None)].map(reals));
            assert_eq!(found, expected, "{b}: {found:#x?}");
        }
    }
}
