//! Report noisy max with one-sided geometric noise, which is permute-and-flip (McKenna and Sheldon 2020,
//! "Permute-and-flip: a new mechanism for differentially private selection").
//! [`crate::samplers::selection`] proves that the two are the same on a grid, and private.

use core::ops::Deref;

use rand_core::TryCryptoRng;

use super::Selector;
use crate::error::Error;
use crate::rng::SecureRng;

/// Chooses the candidate with the largest score after one-sided geometric noise is added to each.
///
/// ```
/// use dpnoise_core::mechanisms::ReportNoisyMax;
/// let chosen = ReportNoisyMax::new(1.0, 1.0, false)?.release(&[120.0, 80.0, 119.0])?;
/// assert!(chosen < 3);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReportNoisyMax(Selector);

impl ReportNoisyMax {
    /// The mechanism that spends `epsilon` on scores each of which changes by at most `sensitivity`; `monotonic` when they
    /// all change in the same direction, which halves the scale.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite or whose quotient is out of
    /// range.
    pub fn new(epsilon: f64, sensitivity: f64, monotonic: bool) -> Result<Self, Error> {
        Selector::new(epsilon, sensitivity, monotonic, 1).map(Self)
    }

    /// The index of the chosen score.
    ///
    /// # Errors
    /// [`Error::Data`] when there are no scores or one is not finite; [`Error::Randomness`].
    pub fn release(&self, scores: &[f64]) -> Result<u64, Error> {
        self.release_with(scores, &mut SecureRng::new()?)
    }

    /// The index of the chosen score, with randomness from `rng`.
    ///
    /// # Errors
    /// As for [`Self::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(&self, scores: &[f64], rng: &mut R) -> Result<u64, Error> {
        self.selection().permute_and_flip(rng, &self.candidates(scores)?)
    }
}

impl Deref for ReportNoisyMax {
    type Target = Selector;

    fn deref(&self) -> &Selector {
        &self.0
    }
}
