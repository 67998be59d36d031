//! Windows: a number near the true one with probability keep / 2^planes, otherwise a uniform one.
//!
//! There are k positions and N = k + width - 1 outputs. The *window* of position l consists of l, l + 1, ...,
//! l + width - 1. A position is replaced by a uniform output of its window, and a [`Mixture`] of all N outputs
//! randomises that. A window of width 1 is generalised randomised response.
//!
//! # Privacy
//!
//! With m = keep / 2^planes, an output has probability (1 - m)/N + m/width if it is in the window, and (1 - m)/N if it
//! is not. Every output is outside of some window unless k = 1. So the largest likelihood ratio of two positions is
//! 1 + m N / ((1 - m) width), an exact fraction. If the position is itself drawn at random, depending on the sender's
//! number, the probabilities are averages of these, and their ratio is no larger.

use rand_core::TryCryptoRng;

use super::likelihood::LikelihoodRatio;
use super::mixture::{CHUNK, Mixer, Mixture, index_bytes, uniform};
use crate::error::Error;
use crate::local::spec::Field;
use crate::rng::Wiped;

/// The width of windows, and the probability keep / 2^planes of an output within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    width: u32,
    mixture: Mixture,
}

impl Window {
    /// Windows of `width` >= 1 of `outputs` > `width` numbers for `epsilon`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32, or when a denominator of 2^62 does not achieve 0.999 of it.
    pub(crate) fn new(outputs: u32, width: u32, epsilon: f64) -> Result<Self, Error> {
        Ok(Self { width, mixture: Mixture::of_windows(outputs, width, epsilon)? })
    }

    /// The number of positions.
    #[must_use]
    pub fn k(self) -> u32 {
        self.outputs() - self.width + 1
    }

    /// How many outputs are in a window.
    #[must_use]
    pub fn width(self) -> u32 {
        self.width
    }

    /// The number of outputs.
    #[must_use]
    pub fn outputs(self) -> u32 {
        self.mixture.k()
    }

    /// The mixture that randomises a uniform output of the window.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    /// The largest likelihood ratio between two positions.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        self.mixture.window_ratio(self.width)
    }

    /// Its part of a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        let mut fields = self.mixture.fields();
        fields.push(("width", self.width.into()));
        fields
    }

    /// The random bytes for one position, not counting rejected words.
    pub(crate) fn random_bytes(self) -> usize {
        index_bytes(self.width) + self.mixture.random_bytes()
    }
}

/// A [`Window`] with buffers, which are wiped when dropped.
pub(crate) struct Slider {
    window: Window,
    offsets: Wiped<u64>,
    mixer: Mixer,
}

impl Slider {
    /// A slider for about `length` positions.
    pub(crate) fn new(window: Window, length: usize) -> Self {
        Self { window, offsets: Wiped::new(length.min(CHUNK)), mixer: Mixer::new(window.mixture, length) }
    }

    /// Replaces up to [`CHUNK`] positions, all below k, by outputs: `rng` gives the places in the windows, and then the
    /// words of the mixture.
    pub(crate) fn slide<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, positions: &mut [u32]) -> Result<(), Error> {
        let offsets = &mut self.offsets[..positions.len()];
        uniform(rng, self.window.width, offsets)?;
        for (position, &offset) in positions.iter_mut().zip(&*offsets) {
            *position = position.wrapping_add(offset as u32);
        }
        self.mixer.mix(rng, positions)
    }
}
