//! The square wave: a number in [0, 1], randomised such that the distribution of many can be estimated.
//!
//! The number is put into one of k bins, and a [`Window`] of 2 b + 1 of k + 2 b outputs makes the report: the bins up to b
//! away are likelier than the others. The share b / k is the one with the largest mutual information of input and
//! report: (epsilon e^epsilon - e^epsilon + 1) / (2 e^epsilon (e^epsilon - 1 - epsilon)).
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
//! What the collector keeps is how often each output came. The distribution that makes these counts likeliest is found
//! step by step, with or without smoothing.
//!
//! A report is the output.

use rand_core::TryCryptoRng;

use super::client::Randomise;
use super::likelihood::check_epsilon;
use super::mixer::CHUNK;
use super::numbers::{bin, check_unsigned};
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use super::symbols::write_numbers;
use super::window::{Slider, Window};
use crate::error::Error;
use crate::rng::Wiped;

/// The largest number of bins.
pub const MAX_K: u32 = 1 << 12;

/// The square wave over k bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquareWave {
    protocol: Protocol,
    window: Window,
}

impl SquareWave {
    /// The square wave over `k` bins.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^12 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        if !(2..=MAX_K.into()).contains(&k) {
            return Err(Error::parameter("k", k, format!("an integer from 2 to {MAX_K}")));
        }
        check_epsilon(epsilon)?;
        let k = k as u32;
        let reach = (half_width(epsilon) * f64::from(k)).floor() as u32;
        let window = Window::new(k + 2 * reach, 2 * reach + 1, epsilon)?;
        Ok(Self { protocol: Protocol::new(Family::SquareWave, k, Randomizer::Window(window), epsilon), window })
    }

    /// The square wave that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match (protocol.family(), protocol.randomizer()) {
            (Family::SquareWave, Randomizer::Window(window)) => Some(Self { protocol, window }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

/// The best half width of a window over [0, 1]: from 1/2 for a small epsilon to 0 for a large one.
fn half_width(epsilon: f64) -> f64 {
    // Divided by e^epsilon, and with what cancels in one function.
    let above = epsilon + (-epsilon).exp_m1();
    let below = epsilon.exp_m1() - epsilon;
    above / (2.0 * below)
}

impl Randomise for SquareWave {
    type Value = f64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_unsigned(values)
    }

    fn unit(&self) -> usize {
        CHUNK * self.protocol.report_bytes()
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        (bytes / self.protocol.report_bytes()).saturating_mul(self.window.random_bytes())
    }

    fn randomise<R>(&self, rng: &mut R, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let width = self.protocol.report_bytes();
        let rows = out.len() / width;
        let values = &values[first / width..][..rows];
        let mut slider = Slider::new(self.window, rows);
        let mut outputs = Wiped::new(rows.min(CHUNK));
        let mut reports = vec![0; outputs.len()];
        for (values, out) in values.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
            let (outputs, reports) = (&mut outputs[..values.len()], &mut reports[..values.len()]);
            for (output, &value) in outputs.iter_mut().zip(values) {
                *output = bin(value, self.protocol.k());
            }
            slider.slide(rng, outputs)?;
            for (report, &output) in reports.iter_mut().zip(&*outputs) {
                *report = output.into();
            }
            write_numbers(reports, width, out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use super::*;

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
