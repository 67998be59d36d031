//! Noise and coins: exact distribution, constant time, in bulk.
//! | module | content |
//! | --- | --- |
//! | [`discrete_laplace`] | P(x) proportional to exp(-\|x\| / scale) |
//! | [`discrete_gaussian`] | P(x) proportional to exp(-x^2 / (2 sigma^2)) |
//! | [`geometric`] | P(x) proportional to exp(-x / scale), for x = 0, 1, 2, ... |
//! | [`Sampler`] | the trait of all samplers |
//! | [`histogram`] | the common sampler of the noise |
//! | [`design`] | the layout of a histogram proposal for a scale |
//! | `density` | the densities, as certified intervals |
//! | [`bernoulli`] | P(true) = p |
//! | [`selection`] | which candidate: P(i) proportional to exp(-d_i / scale), and permute-and-flip |
//! | `uniform` | an integer below a secret one |
//! | [`grid`] | real values on a grid, and integer noise on them |
//! | [`grid_noise`] | Laplace and Gaussian noise over the real numbers |
//! | `last_noise` | noise that is kept for a next release of as many values |
//! | `refine` | the exact decision of the trials that floating point leaves open |
//!
//! # What is promised
//!
//! The output distribution is exact: no floating-point approximation enters it. Running time, memory addresses and
//! allocation depend only on public parameters and on discarded randomness that is independent of the output, except
//!
//! - *refinements*, of probability at most 2^-27 per trial. The probability that a sample was refined differs by less
//!   than 2^-42 between any two outputs, outside of an event of probability below 2^-61 per trial;
//! - *tail events*, of probability at most 2^-64 per accepted value; and the coins of [`bernoulli`] that 64 digits leave
//!   open, of probability at most 2^-64 per coin.
//!
//! The randomness itself is computational: ChaCha12. The proofs stand in the documentation of each sampler.

pub mod bernoulli;
mod density;
pub mod design;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod geometric;
pub mod grid;
pub mod grid_noise;
pub mod histogram;
mod last_noise;
mod refine;
mod sampler;
pub mod selection;
mod uniform;

pub use dpnoise_kernels::arch::trials::Layout;

pub use bernoulli::Bernoulli;
pub use design::Design;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use geometric::Geometric;
pub use grid::Grid;
pub use grid_noise::GridNoise;
pub use histogram::Histogram;
pub(crate) use last_noise::LastNoise;
pub use sampler::Sampler;
pub use selection::{Candidates, Selection};
