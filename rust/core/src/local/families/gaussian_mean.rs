//! A number in [-1, 1] with Gaussian noise; the collector sums reports to estimate the mean.
//!
//! Sources: Dwork, Kenthapadi, McSherry, Mironov and Naor 2006, "Our data, ourselves: privacy via distributed noise
//! generation", applied by each person locally; Balle and Wang 2018, "Improving the Gaussian mechanism for differential
//! privacy", for the least sigma; Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", for
//! integers.
//!
//! The number is rounded at random to a multiple of 1 / unit, without bias, and discrete Gaussian noise is added: see
//! `reports/noisy_sums.rs`. Sigma is a whole number of these steps.
//!
//! # Privacy
//!
//! A report is (epsilon, delta)-locally differentially private: P(S | x) <= e^epsilon P(S | x') + delta for all numbers
//! x, x' and all sets S of reports.
//!
//! - *Noise.* Two multiples of 1 / unit differ by a <= 2 unit steps. The smallest delta for these two is that of Theorem 7
//!   of Canonne, Kamath and Steinke, for integers that differ by a. It grows with a, as the proofs of
//!   [`crate::calibration`] show, and for a = 2 unit it is proved to be at most delta.
//! - *Rounding.* It is independent of the noise. With the probabilities w of the multiples i for x, and w' for x',
//!   P(S | x) = sum over i, j of w(i) w'(j) P(S | i), and P(S | i) <= e^epsilon P(S | j) + delta for each pair. The sum
//!   of the right-hand sides is e^epsilon P(S | x') + delta.
//! - *Clamping* is post-processing. The tail is not cut off before: the report of a number beyond the bound is the bound,
//!   with all of its probability.

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Goal;
use crate::error::Error;
use crate::local::chance::likelihood::check_epsilon;
use crate::local::mean::MeanLaw;
use crate::local::reports::grid::check_signed;
use crate::local::reports::noisy_sums::{MAX_UNIT_LOG2, NoisySums, ROUNDED_BITS};
use crate::local::spec::{Field, Given};
use crate::params::{Ratio, Scale};
use crate::rng::AnyRng;
use crate::samplers::DiscreteGaussian;

/// The smallest delta: 2^-64.
const MIN_DELTA: f64 = 1.0 / (1u128 << 64) as f64;

/// The largest sigma, in steps.
const MAX_SIGMA: u32 = 1 << 24;

/// The sigmas between the largest honest number without noise and the bound: noise is beyond with a probability of at
/// most 2 e^(-12^2 / 2), which is below e^-71.
const SIGMAS: u32 = 12;

/// The Gaussian mechanism for the mean of numbers in [-1, 1].
///
/// A report is (epsilon, delta)-locally differentially private (Balle and Wang 2018, "Improving the Gaussian mechanism
/// for differential privacy"; Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianMean {
    epsilon: f64,
    delta: f64,
    sigma: u32,
    sums: NoisySums,
}

impl GaussianMean {
    /// The mechanism for `epsilon` and `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32 and 2^-64 <= delta < 1.
    ///
    /// # Panics
    /// Never: in this range there is a sigma.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        if !(MIN_DELTA..1.0).contains(&delta) {
            return Err(Error::parameter("delta", format!("{delta:?}"), "at least 2**-64 and below 1"));
        }
        let goal = Goal::new(epsilon, delta)?;
        let mut units = (0..=MAX_UNIT_LOG2).rev().map(|log2| 1u32 << log2);
        let found = units.find_map(|unit| Some((unit, goal.whole_sigma_of_one(2 * u64::from(unit), MAX_SIGMA)?)));
        let (unit, sigma) = found.expect("2^24 is enough for the smallest epsilon and delta, as a test shows");
        Ok(Self { epsilon, delta, sigma, sums: NoisySums::new(1, unit, SIGMAS * sigma) })
    }

    /// The encoding of a number.
    #[must_use]
    pub fn sums(self) -> NoisySums {
        self.sums
    }

    /// Sigma, in steps of 1 / unit.
    #[must_use]
    pub fn sigma(self) -> u32 {
        self.sigma
    }

    fn noise(self) -> Result<DiscreteGaussian, Error> {
        let sigma = Ratio::new(self.sigma.into(), 1).expect("it is positive");
        DiscreteGaussian::new(Scale::new(sigma)?)
    }
}

impl Family for GaussianMean {
    const NAME: &'static str = "gaussian_mean";
    const ABBREVIATION: &'static str = "gaussian";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON, Parameter::DELTA];
    type Reports = NoisySums;
    type Values<'a> = &'a [f64];

    fn k(&self) -> u32 {
        self.sums.positions()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![("delta", self.delta.into()), ("sigma", self.sigma.into())];
        fields.extend(self.sums.fields());
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.real("epsilon")?, arguments.real("delta")?)
    }

    fn from_fields(_k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(epsilon, given.number("delta")?)
    }

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn delta(&self) -> f64 {
        self.delta
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_signed(values)
    }

    fn random_bits(&self) -> usize {
        ROUNDED_BITS
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let noise = self.noise()?;
        self.sums.fill_rounded(&noise, rng, values, first, out)
    }

    fn reports(&self) -> NoisySums {
        self.sums
    }

    /// The variance of discrete Gaussian noise is at most the square of sigma, and less by a share below 2^(-2^20).
    fn mean_law(&self) -> Option<MeanLaw> {
        let sigma = f64::from(self.sigma) / f64::from(self.sums.unit());
        Some(MeanLaw::Sum { sums: self.sums, noise: sigma * sigma })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::chance::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use crate::local::mean::MeanLaw;

    const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

    #[test]
    fn sigmas_are_in_range_at_all_corners() {
        for epsilon in [MIN_EPSILON, 1e-3, 1.0, MAX_EPSILON] {
            for delta in [MIN_DELTA, 1e-9, 0.5, ALMOST_ONE] {
                let mean = GaussianMean::new(epsilon, delta).unwrap();
                let (unit, sigma) = (mean.sums.unit(), mean.sigma);
                // Far finer than the noise, and large reports fit.
                assert!((1 << 16..=MAX_SIGMA).contains(&sigma), "{epsilon} {delta}: {sigma}");
                assert!(unit == 1 << MAX_UNIT_LOG2 || sigma > MAX_SIGMA / 4, "{epsilon} {delta}: {unit} {sigma}");
                assert!(mean.sums.bound() < 1 << 28 && mean.sums.bound() - unit == 12 * sigma);
            }
        }
    }

    #[test]
    fn sigma_is_the_smallest_of_all_that_are_large_enough() {
        for (epsilon, delta) in [(0.01, 1e-6), (1.0, 1e-6), (1.0, 0.01), (8.0, 1e-9), (MAX_EPSILON, 0.5)] {
            let mean = GaussianMean::new(epsilon, delta).unwrap();
            // The analytic sigma of continuous noise is nearly that of discrete noise on so fine a grid.
            let ratio = Goal::new(epsilon, delta).unwrap().ratio(crate::calibration::Method::Analytic).unwrap();
            let continuous = ratio * 2.0 * f64::from(mean.sums.unit());
            assert_eq!(f64::from(mean.sigma), continuous.ceil(), "{epsilon} {delta}");
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for bad in [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY, MIN_DELTA.next_down()] {
            let message = GaussianMean::new(1.0, bad).unwrap_err().to_string();
            assert_eq!(message, format!("delta must be at least 2**-64 and below 1, got {bad:?}"));
        }
        let message = GaussianMean::new(33.0, 1e-6).unwrap_err().to_string();
        assert_eq!(message, "epsilon must be between 2**-20 and 32, got 33.0");
    }

    #[test]
    fn the_variance_is_that_of_the_noise() {
        let mean = GaussianMean::new(1.0, 1e-6).unwrap();
        let Some(MeanLaw::Sum { noise, .. }) = mean.mean_law() else { unreachable!() };
        // sigma is 4.2247 for a sensitivity of 1, and the sensitivity is 2.
        assert!((noise - 4.0 * 4.2247 * 4.2247).abs() < 1e-2, "{noise}");
    }
}
