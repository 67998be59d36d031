//! A number in [-1, 1] with Laplace noise of scale 2 / epsilon; the collector sums reports to estimate the mean.
//!
//! Source: Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to sensitivity in private data analysis", applied by
//! each person locally.
//!
//! The number is rounded at random to a multiple of 1 / unit, without bias, and discrete Laplace noise is added: see
//! `reports/noisy_sums.rs`. Rounding does not depend on the noise, and a mixture of private distributions is as private
//! as they are.

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::mean::MeanLaw;
use crate::local::reports::grid::check_signed;
use crate::local::reports::noisy_sums::{NoisySums, ROUNDED_BITS};
use crate::local::spec::{Field, Given};
use crate::rng::AnyRng;

/// The Laplace mechanism for the mean of numbers in [-1, 1].
///
/// A report is epsilon-locally differentially private (Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to
/// sensitivity in private data analysis").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaplaceMean {
    epsilon: f64,
    sums: NoisySums,
}

impl LaplaceMean {
    /// The mechanism for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        Ok(Self { epsilon, sums: NoisySums::with_laplace(1, epsilon)? })
    }
}

impl Family for LaplaceMean {
    const NAME: &'static str = "laplace_mean";
    const ABBREVIATION: &'static str = "laplace";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON];
    type Reports = NoisySums;
    type Values<'a> = &'a [f64];

    fn k(&self) -> u32 {
        self.sums.positions()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.sums.fields()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.real("epsilon")?)
    }

    fn from_fields(_k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        Self::new(epsilon)
    }

    /// The noise is exact, and so is epsilon.
    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_signed(values)
    }

    fn random_bits(&self) -> usize {
        ROUNDED_BITS
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        self.sums.fill_rounded(&self.sums.laplace(self.epsilon), rng, values, first, out)
    }

    fn reports(&self) -> NoisySums {
        self.sums
    }

    fn mean_law(&self) -> Option<MeanLaw> {
        Some(MeanLaw::Sum { sums: self.sums, noise: self.sums.variance(self.epsilon) })
    }
}
