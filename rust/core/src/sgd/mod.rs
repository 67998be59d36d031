//! Differentially private stochastic gradient descent (Abadi et al. 2016): per-example clipping and summation, and the
//! noise of a step, independent or correlated.
//!
//! | type | what |
//! | --- | --- |
//! | [`Clipping`] | clips the gradient of each example to a norm, and adds them up in whole steps of a grid |
//! | [`Matrix`] | a layer's part of the gradients, where those of several are clipped together |
//! | [`NoisyGradient`] | adds discrete Gaussian noise to that sum |
//! | [`CorrelatedNoise`] | makes noise that is correlated from step to step |
//! | [`CorrelatedGradient`] | adds that noise to the sums of a run |
//! | [`FloatSums`] | puts sums that were made in floats on a grid, and adds noise in finer steps |
//! | [`IntegerSums`] | adds noise to sums of integers |

mod addition;
mod clipping;
mod correlated_gradient;
mod correlated_noise;
mod float_sums;
mod integer_sums;
mod noisy_gradient;
mod run_state;

pub use addition::Matrix;
pub use clipping::Clipping;
pub use correlated_gradient::{CorrelatedGradient, Strategy};
pub use correlated_noise::CorrelatedNoise;
pub use float_sums::FloatSums;
pub use integer_sums::IntegerSums;
pub use noisy_gradient::NoisyGradient;

pub use dpnoise_kernels::arch::clipping::Real;
