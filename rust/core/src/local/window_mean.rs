//! A number in [-1, 1], randomised such that the mean of many can be estimated without bias.
//!
//! The number is rounded at random to one of k positions, evenly spaced from -1 to 1, and a [`Window`] makes the report of
//! it. Three protocols differ in the windows:
//!
//! | | positions | outputs | windows | source |
//! | --- | --- | --- | --- | --- |
//! | Duchi | 2 | 2 | of 1 | Duchi, Jordan and Wainwright 2018, "Minimax optimal procedures for locally private estimation" |
//! | piecewise | k | N | of N / (e^(epsilon/2) + 1) | Wang, Xiao, Yang et al. 2019, "Collecting and analyzing multidimensional data with local differential privacy", algorithm 2, on a grid |
//! | hybrid | | N + 2 | one of the above, at random | Wang et al. 2019, section III-C |
//!
//! The hybrid is piecewise with probability 1 - e^(-epsilon/2) if epsilon is above 0.60935..., and never if it is not; with
//! that choice its largest variance is the smallest of all three.
//!
//! # Privacy
//!
//! See [`Window`]. Which of its two parts a hybrid uses is in the report, and was drawn without regard to the number: the
//! ratio is the larger of those of the parts.
//!
//! # Estimation
//!
//! Outputs r of a window have the expectation (N - 1)/2 + m x (N - width)/2 for the number x, so
//! (2 r - (N - 1)) / (m (N - width)) is an unbiased estimate of x, and any mean of them is one of the mean. The proof page
//! `window.md` beside this file has the variance.
//!
//! A report is the output; those of a hybrid are N + r if r is an output of Duchi's part.

use core::hint::black_box;

use rand_core::TryCryptoRng;

use super::client::Randomise;
use super::likelihood::{LikelihoodRatio, check_epsilon};
use super::mixer::CHUNK;
use super::numbers::{ROUNDING_BYTES, check_signed, round_at_random};
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use super::symbols::write_numbers;
use super::window::{Slider, Window};
use crate::error::Error;
use crate::rng::{Wiped, fill_bytes};

/// The most outputs of a window: enough that the grid costs less than 1 % of the variance, and few enough counters.
const MAX_OUTPUTS: u32 = 1 << 12;

/// The epsilon up to which a hybrid is Duchi's protocol alone (Wang et al. 2019, section III-C).
const PIECEWISE_ABOVE: f64 = 0.609_352_5;

/// The binary digits of the probability of a hybrid to use its piecewise part: so few that mathematical libraries which
/// differ in the last digit of the exponential round to the same ones.
const ALPHA_DIGITS: u32 = 24;

/// The bytes of the coin that decides about it, of which the upper digits count.
const COIN_BYTES: usize = 4;

/// Two windows, of which the first is used with probability alpha / 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hybrid {
    window: Window,
    duchi: Window,
    alpha: u32,
}

impl Hybrid {
    /// The piecewise part.
    #[must_use]
    pub fn window(self) -> Window {
        self.window
    }

    /// Duchi's part.
    #[must_use]
    pub fn duchi(self) -> Window {
        self.duchi
    }

    /// The numerator of the probability of the piecewise part.
    #[must_use]
    pub fn alpha(self) -> u32 {
        self.alpha
    }

    /// The number of outputs of both parts.
    #[must_use]
    pub fn outputs(self) -> u32 {
        self.window.outputs() + self.duchi.outputs()
    }

    /// The larger of the parts' likelihood ratios.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        let (window, duchi) = (self.window.likelihood_ratio(), self.duchi.likelihood_ratio());
        if self.alpha == 0 || window.is_at_most(duchi.epsilon()) { duchi } else { window }
    }
}

/// A protocol for the mean of numbers in [-1, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowMean {
    protocol: Protocol,
    window: Window,
    hybrid: Option<Hybrid>,
}

impl WindowMean {
    /// Duchi's protocol: a randomised sign.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn duchi(epsilon: f64) -> Result<Self, Error> {
        Ok(Self::of(Family::DuchiMean, duchi_window(epsilon)?, epsilon))
    }

    /// The piecewise protocol.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn piecewise(epsilon: f64) -> Result<Self, Error> {
        Ok(Self::of(Family::PiecewiseMean, piecewise_window(epsilon)?, epsilon))
    }

    /// The hybrid of the two.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn hybrid(epsilon: f64) -> Result<Self, Error> {
        let (window, duchi) = (piecewise_window(epsilon)?, duchi_window(epsilon)?);
        let share = if epsilon > PIECEWISE_ABOVE { -(-epsilon / 2.0).exp_m1() } else { 0.0 };
        let hybrid = Hybrid { window, duchi, alpha: (share * f64::from(1 << ALPHA_DIGITS)).round() as u32 };
        let protocol = Protocol::new(Family::HybridMean, window.k(), Randomizer::Hybrid(hybrid), epsilon);
        Ok(Self { protocol, window, hybrid: Some(hybrid) })
    }

    fn of(family: Family, window: Window, epsilon: f64) -> Self {
        let protocol = Protocol::new(family, window.k(), Randomizer::Window(window), epsilon);
        Self { protocol, window, hybrid: None }
    }

    /// The protocol for means that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match (protocol.family(), protocol.randomizer()) {
            (Family::DuchiMean | Family::PiecewiseMean, Randomizer::Window(window)) => {
                Some(Self { protocol, window, hybrid: None })
            }
            (_, Randomizer::Hybrid(hybrid)) => Some(Self { protocol, window: hybrid.window, hybrid: Some(hybrid) }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

fn duchi_window(epsilon: f64) -> Result<Window, Error> {
    Window::new(2, 1, epsilon)
}

/// The widest window that is not too wide for [`MAX_OUTPUTS`], and the outputs that it is the right share of.
fn piecewise_window(epsilon: f64) -> Result<Window, Error> {
    check_epsilon(epsilon)?;
    let windows = (epsilon / 2.0).exp() + 1.0;
    let width = (f64::from(MAX_OUTPUTS) / windows).floor().max(1.0);
    let outputs = (width * windows).round().min(MAX_OUTPUTS.into());
    Window::new(outputs as u32, width as u32, epsilon)
}

impl Randomise for WindowMean {
    type Value = f64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_signed(values)
    }

    fn unit(&self) -> usize {
        CHUNK * self.protocol.report_bytes()
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        let duchi = self.hybrid.map_or(0, |hybrid| ROUNDING_BYTES + hybrid.duchi.random_bytes() + COIN_BYTES);
        let each = ROUNDING_BYTES + self.window.random_bytes() + duchi;
        (bytes / self.protocol.report_bytes()).saturating_mul(each)
    }

    /// For a chunk, `rng` gives the words that round, then what the window takes; for a hybrid, then both for Duchi's
    /// part, and the coins that choose.
    fn randomise<R>(&self, rng: &mut R, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let width = self.protocol.report_bytes();
        let rows = out.len() / width;
        let values = &values[first / width..][..rows];
        let mut outputs = Outputs::new(self.window, rows);
        let mut other = self.hybrid.map(|hybrid| (hybrid, Outputs::new(hybrid.duchi, rows)));
        let mut coins = Wiped::new(rows.min(CHUNK) * COIN_BYTES);
        let mut reports = vec![0; rows.min(CHUNK)];
        for (values, out) in values.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
            let reports = &mut reports[..values.len()];
            let outputs = outputs.draw(rng, values)?;
            if let Some((hybrid, duchi)) = &mut other {
                let duchi = duchi.draw(rng, values)?;
                let coins = &mut coins[..values.len() * COIN_BYTES];
                fill_bytes(rng, coins)?;
                for ((output, &duchi), &coin) in outputs.iter_mut().zip(&*duchi).zip(coins.as_chunks().0) {
                    let coin = u32::from_le_bytes(coin) >> (u32::BITS - ALPHA_DIGITS);
                    // `black_box` keeps the optimiser from turning the mask back into a branch.
                    let mask = black_box(u32::from(coin < hybrid.alpha)).wrapping_neg();
                    *output = *output & mask | duchi.wrapping_add(hybrid.window.outputs()) & !mask;
                }
            }
            for (report, &output) in reports.iter_mut().zip(&*outputs) {
                *report = output.into();
            }
            write_numbers(reports, width, out);
        }
        Ok(())
    }
}

/// Draws outputs of a window for numbers, with buffers that are wiped when dropped.
struct Outputs {
    k: u32,
    words: Wiped<u8>,
    drawn: Wiped<u32>,
    slider: Slider,
}

impl Outputs {
    fn new(window: Window, rows: usize) -> Self {
        let chunk = rows.min(CHUNK);
        Self {
            k: window.k(),
            words: Wiped::new(chunk * ROUNDING_BYTES),
            drawn: Wiped::new(chunk),
            slider: Slider::new(window, rows),
        }
    }

    fn draw<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, values: &[f64]) -> Result<&mut [u32], Error> {
        let words = &mut self.words[..values.len() * ROUNDING_BYTES];
        let outputs = &mut self.drawn[..values.len()];
        fill_bytes(rng, words)?;
        for ((output, &word), &value) in outputs.iter_mut().zip(words.as_chunks().0).zip(values) {
            *output = round_at_random(value, self.k, u64::from_le_bytes(word));
        }
        self.slider.slide(rng, outputs)?;
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use super::*;

    #[test]
    fn windows_have_the_right_share_of_the_outputs() {
        for (epsilon, width, outputs) in
            [(MIN_EPSILON, 2047, 4094), (1.0, 1546, 4095), (8.0, 73, 4059), (10.0, 27, 4034), (MAX_EPSILON, 1, 4096)]
        {
            let window = piecewise_window(epsilon).unwrap();
            assert_eq!((window.width(), window.outputs()), (width, outputs), "{epsilon}");
        }
    }

    #[test]
    fn a_hybrid_is_piecewise_as_often_as_it_should() {
        let alpha = |epsilon| match WindowMean::hybrid(epsilon).unwrap().protocol.randomizer() {
            Randomizer::Hybrid(hybrid) => f64::from(hybrid.alpha()) / 2f64.powi(24),
            _ => unreachable!(),
        };
        assert_eq!((alpha(0.5), alpha(PIECEWISE_ABOVE)), (0.0, 0.0));
        assert!((alpha(1.0) - 0.393_469_340_287).abs() < 1e-7 && alpha(32.0) < 1.0);
    }
}
