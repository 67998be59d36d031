//! A number in [-1, 1], randomised so that the mean of many can be estimated without bias.
//!
//! The number is rounded at random to one of k positions, evenly spaced from -1 to 1, and a [`Window`] randomises the
//! position. Three protocols differ in the windows:
//!
//! | | positions | outputs | windows | source |
//! | --- | --- | --- | --- | --- |
//! | Duchi | 2 | 2 | of 1 | Duchi, Jordan and Wainwright 2018, "Minimax optimal procedures for locally private estimation" |
//! | piecewise | k | N | of N / (e^(epsilon/2) + 1) | Wang, Xiao, Yang et al. 2019, "Collecting and analyzing multidimensional data with local differential privacy", algorithm 2, on a grid |
//! | hybrid | | N + 2 | one of the above, at random | Wang et al. 2019, section III-C |
//!
//! The hybrid is piecewise with probability 1 - e^(-epsilon/2) if epsilon is above 0.60935..., and otherwise never.
//! With that choice its largest variance is the smallest of the three.
//!
//! # Privacy
//!
//! See [`Window`]. The report of a hybrid shows which of the two parts was used. That is drawn independently of the
//! number, so the ratio is the larger one of the two parts.
//!
//! # Estimation
//!
//! Outputs r of a window have the expectation (N - 1)/2 + m x (N - width)/2 for the number x, so
//! (2 r - (N - 1)) / (m (N - width)) is an unbiased estimate of x, and any mean of them is one of the mean. The proof page
//! `chance/window.md` has the variance.
//!
//! A report is the output; those of a hybrid are N + r if r is an output of Duchi's part.

use core::fmt::Debug;
use core::hint::black_box;
use core::marker::PhantomData;

use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::likelihood::check_epsilon;
use crate::local::chance::mixture::CHUNK;
use crate::local::chance::window::{Slider, Window};
use crate::local::mean::MeanLaw;
use crate::local::reports::grid::{ROUNDING_BYTES, check_signed, round_at_random};
use crate::local::reports::numbers::{Numbers, fill_numbers};
use crate::local::spec::{Field, Given};
use crate::local::values::rows;
use crate::rng::{AnyRng, Wiped, fill_bytes};

/// The most outputs of a window: enough that the grid costs less than 1 % of the variance, and few enough counters.
const MAX_OUTPUTS: u32 = 1 << 12;

/// The epsilon up to which a hybrid is Duchi's protocol alone (Wang et al. 2019, section III-C).
const PIECEWISE_ABOVE: f64 = 0.609_352_5;

/// The binary digits of the probability that a hybrid uses its piecewise part: few enough that mathematical libraries
/// whose exponentials differ in the last digit round to the same probability.
const ALPHA_DIGITS: u32 = 24;

/// The bytes of the coin that decides this, of which the upper digits are used.
const COIN_BYTES: usize = 4;

/// A protocol for the mean of numbers in [-1, 1], with windows of some kind.
///
/// A report is epsilon-locally differentially private.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowMean<K> {
    epsilon: f64,
    window: Window,
    kind: PhantomData<K>,
}

/// Duchi's protocol: a randomised sign.
///
/// Source: Duchi, Jordan and Wainwright 2018, "Minimax optimal procedures for locally private estimation".
pub type DuchiMean = WindowMean<Duchi>;

/// The piecewise protocol.
///
/// Source: Wang, Xiao, Yang et al. 2019, "Collecting and analyzing multidimensional data with local differential
/// privacy", algorithm 2, on a grid.
pub type PiecewiseMean = WindowMean<Piecewise>;

impl DuchiMean {
    /// The protocol for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        with_windows(epsilon)
    }
}

impl PiecewiseMean {
    /// The protocol for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        with_windows(epsilon)
    }
}

impl<K> WindowMean<K> {
    /// The windows of the positions.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }
}

/// How windows are chosen.
pub(crate) trait Kind: Copy + Debug + PartialEq + Sync {
    /// The name in specifications.
    const NAME: &'static str;

    /// See [`Family`].
    const ABBREVIATION: &'static str;

    fn window(epsilon: f64) -> Result<Window, Error>;
}

/// The kind of [`DuchiMean`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duchi;

impl Kind for Duchi {
    const NAME: &'static str = "duchi_mean";
    const ABBREVIATION: &'static str = "duchi";

    fn window(epsilon: f64) -> Result<Window, Error> {
        Window::new(2, 1, epsilon)
    }
}

/// The kind of [`PiecewiseMean`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piecewise;

impl Kind for Piecewise {
    const NAME: &'static str = "piecewise_mean";
    const ABBREVIATION: &'static str = "pm";

    /// The widest window for which [`MAX_OUTPUTS`] outputs are enough, and the number of outputs of which it is the
    /// right share.
    fn window(epsilon: f64) -> Result<Window, Error> {
        check_epsilon(epsilon)?;
        let windows = (epsilon / 2.0).exp() + 1.0;
        let width = (f64::from(MAX_OUTPUTS) / windows).floor().max(1.0);
        let outputs = (width * windows).round().min(MAX_OUTPUTS.into());
        Window::new(outputs as u32, width as u32, epsilon)
    }
}

fn with_windows<K: Kind>(epsilon: f64) -> Result<WindowMean<K>, Error> {
    Ok(WindowMean { epsilon, window: K::window(epsilon)?, kind: PhantomData })
}

impl<K: Kind> Family for WindowMean<K> {
    const NAME: &'static str = K::NAME;
    const ABBREVIATION: &'static str = K::ABBREVIATION;
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON];
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
        with_windows(arguments.real("epsilon")?)
    }

    fn from_fields(_k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        with_windows(epsilon)
    }

    fn epsilon(&self) -> f64 {
        self.window.likelihood_ratio().epsilon()
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_signed(values)
    }

    fn random_bits(&self) -> usize {
        8 * (ROUNDING_BYTES + self.window.random_bytes())
    }

    /// For a chunk, `rng` gives the words that round, then those of the window.
    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let values = &values[rows(first, out, self.report_bytes())];
        let mut outputs = Outputs::new(self.window, values.len());
        fill_numbers(values, self.report_bytes(), out, |values, drawn| outputs.draw(rng, values, drawn))
    }

    fn reports(&self) -> Numbers {
        Numbers::below(self.window.outputs())
    }

    fn mean_law(&self) -> Option<MeanLaw> {
        Some(MeanLaw::Windows { share: 1.0, first: self.window, second: None })
    }
}

/// The hybrid protocol: one of the two others, at random.
///
/// A report is epsilon-locally differentially private (Wang, Xiao, Yang et al. 2019, section III-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridMean {
    epsilon: f64,
    window: Window,
    duchi: Window,
    alpha: u32,
}

impl HybridMean {
    /// The protocol for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        let (window, duchi) = (Piecewise::window(epsilon)?, Duchi::window(epsilon)?);
        let share = if epsilon > PIECEWISE_ABOVE { -(-epsilon / 2.0).exp_m1() } else { 0.0 };
        let alpha = (share * f64::from(1 << ALPHA_DIGITS)).round() as u32;
        Ok(Self { epsilon, window, duchi, alpha })
    }

    /// The windows of the piecewise part.
    #[must_use]
    pub fn window(self) -> Window {
        self.window
    }

    /// The windows of Duchi's part.
    #[must_use]
    pub fn duchi(self) -> Window {
        self.duchi
    }

    /// The numerator of the probability alpha / 2^24 of the piecewise part.
    #[must_use]
    pub fn alpha(self) -> u32 {
        self.alpha
    }
}

impl Family for HybridMean {
    const NAME: &'static str = "hybrid_mean";
    const ABBREVIATION: &'static str = "hm";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON];
    type Reports = Numbers;
    type Values<'a> = &'a [f64];

    fn k(&self) -> u32 {
        self.window.k()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let duchi = self.duchi.mixture();
        let others = [
            ("alpha", self.alpha.into()),
            ("duchi_keep", duchi.keep().into()),
            ("duchi_planes", duchi.planes().into()),
        ];
        self.window.fields().into_iter().chain(others).collect()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.real("epsilon")?)
    }

    fn from_fields(_k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        Self::new(epsilon)
    }

    /// The larger of the parts' likelihood ratios.
    fn epsilon(&self) -> f64 {
        let (window, duchi) = (self.window.likelihood_ratio(), self.duchi.likelihood_ratio());
        if self.alpha == 0 || window.is_at_most(duchi.epsilon()) { duchi.epsilon() } else { window.epsilon() }
    }

    fn check(&self, values: &[f64]) -> Result<(), Error> {
        check_signed(values)
    }

    fn random_bits(&self) -> usize {
        8 * (2 * ROUNDING_BYTES + self.window.random_bytes() + self.duchi.random_bytes() + COIN_BYTES)
    }

    /// For a chunk, `rng` gives the words of each part, the piecewise one first, and then the coins that choose.
    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[f64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let values = &values[rows(first, out, self.report_bytes())];
        let mut outputs = Outputs::new(self.window, values.len());
        let mut duchi = Outputs::new(self.duchi, values.len());
        let mut other = Wiped::new(values.len().min(CHUNK));
        let mut coins = Wiped::new(values.len().min(CHUNK) * COIN_BYTES);
        fill_numbers(values, self.report_bytes(), out, |values, drawn| {
            let (other, coins) = (&mut other[..values.len()], &mut coins[..values.len() * COIN_BYTES]);
            outputs.draw(rng, values, drawn)?;
            duchi.draw(rng, values, other)?;
            fill_bytes(rng, coins)?;
            for ((output, &duchi), &coin) in drawn.iter_mut().zip(&*other).zip(coins.as_chunks().0) {
                let coin = u32::from_le_bytes(coin) >> (u32::BITS - ALPHA_DIGITS);
                // `black_box` keeps the optimiser from turning the mask back into a branch.
                let mask = black_box(u32::from(coin < self.alpha)).wrapping_neg();
                *output = *output & mask | duchi.wrapping_add(self.window.outputs()) & !mask;
            }
            Ok(())
        })
    }

    fn reports(&self) -> Numbers {
        Numbers::below(self.window.outputs() + self.duchi.outputs())
    }

    fn mean_law(&self) -> Option<MeanLaw> {
        let share = f64::from(self.alpha) / f64::from(1 << ALPHA_DIGITS);
        Some(MeanLaw::Windows { share, first: self.window, second: Some(self.duchi) })
    }
}

/// Draws outputs of a window for numbers, with buffers that are wiped when dropped.
struct Outputs {
    k: u32,
    words: Wiped<u8>,
    slider: Slider,
}

impl Outputs {
    /// For about `length` numbers.
    fn new(window: Window, length: usize) -> Self {
        let words = Wiped::new(length.min(CHUNK) * ROUNDING_BYTES);
        Self { k: window.k(), words, slider: Slider::new(window, length) }
    }

    /// Draws an output for each of up to [`CHUNK`] values.
    fn draw<R>(&mut self, rng: &mut R, values: &[f64], outputs: &mut [u32]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let words = &mut self.words[..values.len() * ROUNDING_BYTES];
        fill_bytes(rng, words)?;
        for ((output, &word), &value) in outputs.iter_mut().zip(words.as_chunks().0).zip(values) {
            *output = round_at_random(value, self.k, u64::from_le_bytes(word));
        }
        self.slider.slide(rng, outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::chance::likelihood::{MAX_EPSILON, MIN_EPSILON};

    #[test]
    fn windows_have_the_right_share_of_the_outputs() {
        for (epsilon, width, outputs) in
            [(MIN_EPSILON, 2047, 4094), (1.0, 1546, 4095), (8.0, 73, 4059), (10.0, 27, 4034), (MAX_EPSILON, 1, 4096)]
        {
            let window = Piecewise::window(epsilon).unwrap();
            assert_eq!((window.width(), window.outputs()), (width, outputs), "{epsilon}");
        }
    }

    #[test]
    fn a_hybrid_is_piecewise_as_often_as_it_should() {
        let alpha = |epsilon| f64::from(HybridMean::new(epsilon).unwrap().alpha()) / 2f64.powi(24);
        assert_eq!((alpha(0.5), alpha(PIECEWISE_ABOVE)), (0.0, 0.0));
        assert!((alpha(1.0) - 0.393_469_340_287).abs() < 1e-7 && alpha(32.0) < 1.0);
    }
}
