//! Mechanisms: a query's value in, a differentially private release out.
//! A mechanism is immutable and its parameters are checked when it is made. [`Additive`] is the mechanism that adds noise:
//! to one value or many, with the library's own randomness or the caller's. [`Laplace`], [`Gaussian`],
//! [`DiscreteLaplace`] and [`DiscreteGaussian`] are this mechanism for two kinds of privacy parameters and two kinds of
//! numbers; [`TruncatedDiscreteLaplace`] and [`TruncatedDiscreteGaussian`] bound the noise, [`Staircase`], [`Skellam`] and
//! [`NegativeBinomialShares`] draw it from tables. [`Selector`] is the common part of mechanisms that choose among candidates by their scores.

mod additive;
mod discrete_gaussian;
mod discrete_laplace;
mod exponential;
mod gaussian;
mod gaussian_privacy;
mod laplace;
mod negative_binomial_shares;
mod noise_buffer;
mod noisy_max;
mod quantile;
mod real_values;
mod selector;
mod skellam;
mod sparse_vector;
mod staircase;
mod sum;
mod top_k;
mod truncated_gaussian;
mod truncated_geometric;
mod truncated_laplace;

pub use crate::calibration::Method;
pub use additive::{Additive, Calibration, Integers, Numbers, OnGrid, Residues};
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use exponential::Exponential;
pub use gaussian::Gaussian;
pub use gaussian_privacy::GaussianPrivacy;
pub use laplace::Laplace;
pub use negative_binomial_shares::{NegativeBinomialShares, SharesPrivacy};
pub use noise_buffer::NoiseBuffer;
pub use noisy_max::ReportNoisyMax;
pub use quantile::Quantile;
pub use real_values::Reals;
pub use selector::Selector;
pub use skellam::{Skellam, SkellamPrivacy};
pub use sparse_vector::{AboveThreshold, Run};
pub use staircase::{Staircase, StaircasePrivacy};
pub use sum::Sum;
pub use top_k::TopK;
pub use truncated_gaussian::{TruncatedDiscreteGaussian, TruncatedGaussianPrivacy};
pub use truncated_geometric::{Law, TruncatedGeometric};
pub use truncated_laplace::{TruncatedDiscreteLaplace, TruncatedLaplacePrivacy};
