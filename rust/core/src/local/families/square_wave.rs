//! The square wave: a number in [0, 1], randomised so that the distribution of many can be estimated.
//!
//! The number is put into one of k bins, and the report is drawn by a [`Window`] of 2 b + 1 of k + 2 b outputs: the
//! bins up to b away are likelier than the others. The share b / k is the one with the largest mutual information of
//! input and report: (epsilon e^epsilon - e^epsilon + 1) / (2 e^epsilon (e^epsilon - 1 - epsilon)).
//!
//! Source: Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li 2020, "Estimating numerical distributions under local differential
//! privacy", section 5, where the number is put into bins before it is randomised.
//!
//! # Privacy
//!
//! See [`Window`]; all numbers of a bin are treated alike.
//!
//! # Estimation
//!
//! The collector counts how often each output occurred. The distribution of largest likelihood is found iteratively,
//! with or without smoothing.
//!
//! A report is the output.

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::likelihood::check_epsilon;
use crate::local::chance::window::{Slider, Window};
use crate::local::density::{self, DensityEstimate};
use crate::local::reports::grid::{bin, check_unsigned};
use crate::local::reports::numbers::{Numbers, fill_numbers};
use crate::local::spec::{Field, Given};
use crate::local::values::rows;
use crate::rng::AnyRng;

/// The square wave over k bins.
///
/// A report is epsilon-locally differentially private (Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li 2020, "Estimating
/// numerical distributions under local differential privacy").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquareWave {
    epsilon: f64,
    window: Window,
}

impl SquareWave {
    /// The largest number of bins.
    pub const MAX_K: u64 = 1 << 12;

    /// The square wave over `k` bins.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^12 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        if !(2..=Self::MAX_K).contains(&k) {
            return Err(Error::parameter("k", k, format!("an integer from 2 to {}", Self::MAX_K)));
        }
        check_epsilon(epsilon)?;
        let k = k as u32;
        let reach = (half_width(epsilon) * f64::from(k)).floor() as u32;
        Ok(Self { epsilon, window: Window::new(k + 2 * reach, 2 * reach + 1, epsilon)? })
    }

    /// The windows of the bins.
    #[must_use]
    pub fn window(self) -> Window {
        self.window
    }
}

/// The best half width of a window over [0, 1]: from 1/2 for a small epsilon to 0 for a large one.
fn half_width(epsilon: f64) -> f64 {
    // Numerator and denominator are divided by e^epsilon; `exp_m1` avoids the cancellation.
    let above = epsilon + (-epsilon).exp_m1();
    let below = epsilon.exp_m1() - epsilon;
    above / (2.0 * below)
}

impl Family for SquareWave {
    const NAME: &'static str = "square_wave";
    const ABBREVIATION: &'static str = "sw";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter::integer("k", "an integer from 2 to 4096", 16, "how many bins"), Parameter::EPSILON];
    type Reports = Numbers;
    type Values<'a> = &'a [f64];

    fn k(&self) -> u32 {
        self.window.k()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.window.fields()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?)
    }

    fn from_fields(k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon)
    }

    fn epsilon(&self) -> f64 {
        self.window.likelihood_ratio().epsilon()
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_unsigned(values)
    }

    fn random_bits(&self) -> usize {
        8 * self.window.random_bytes()
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let values = &values[rows(first, out, self.report_bytes())];
        let mut slider = Slider::new(self.window, values.len());
        fill_numbers(values, self.report_bytes(), out, |values, outputs| {
            for (output, &value) in outputs.iter_mut().zip(values) {
                *output = bin(value, self.k());
            }
            slider.slide(rng, outputs)
        })
    }

    fn reports(&self) -> Numbers {
        Numbers::below(self.window.outputs())
    }

    fn estimate_density(&self, n: u64, counters: &[u64], smoothing: bool) -> Result<Option<DensityEstimate>, Error> {
        density::estimate(self.window, self.epsilon(), n, counters, smoothing).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::chance::likelihood::{MAX_EPSILON, MIN_EPSILON};

    #[test]
    fn half_widths_are_those_of_the_closed_form() {
        let e = 1f64.exp();
        assert!((half_width(1.0) - 1.0 / (2.0 * e * (e - 2.0))).abs() < 1e-15);
        // The series for a small epsilon: 1/2 - epsilon/3.
        assert!((half_width(MIN_EPSILON) - 0.5 + MIN_EPSILON / 3.0).abs() < 1e-8);
        assert!((half_width(0.01) - 0.5 + 0.01 / 3.0).abs() < 1e-4);
    }

    #[test]
    fn windows_are_as_wide_as_they_should() {
        for (k, epsilon, width) in [(2, MIN_EPSILON, 1), (64, MIN_EPSILON, 63), (1024, 1.0, 525), (64, MAX_EPSILON, 1)]
        {
            assert_eq!(SquareWave::new(k, epsilon).unwrap().window.width(), width, "{k} {epsilon}");
        }
        assert!(SquareWave::new(4097, 1.0).is_err());
    }
}
