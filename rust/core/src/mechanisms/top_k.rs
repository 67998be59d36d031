//! The k best candidates by peeling: the exponential mechanism k times, without replacement.
//! This is the distribution of the k largest scores after Gumbel noise is added to each (Durfee and Rogers 2019,
//! "Practical differentially private top-k selection with pay-what-you-get composition").
//! [`crate::samplers::selection`] has the proofs.

use core::ops::Deref;

use rand_core::TryCryptoRng;

use super::Selector;
use crate::error::Error;
use crate::rng::SecureRng;

/// Chooses k candidates, in the order of the rounds.
///
/// ```
/// use dpnoise_core::mechanisms::TopK;
/// let chosen = TopK::new(2, 1.0, 1.0, false)?.release(&[120.0, 80.0, 119.0])?;
/// assert!(chosen.len() == 2 && chosen[0] != chosen[1]);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopK {
    k: u64,
    selector: Selector,
}

impl TopK {
    /// The mechanism that spends `epsilon`, in `k` equal parts, on scores each of which changes by at most `sensitivity`;
    /// `monotonic` when they all change in the same direction, which halves the scale.
    ///
    /// # Errors
    /// [`Error::Parameter`] when k is not from 1 to 2^32 - 1, for an epsilon or sensitivity that is not positive and finite
    /// or whose quotient is out of range.
    pub fn new(k: u64, epsilon: f64, sensitivity: f64, monotonic: bool) -> Result<Self, Error> {
        if !(1..1 << 32).contains(&k) {
            return Err(Error::parameter("k", k, "an integer from 1 to 2**32 - 1"));
        }
        Ok(Self { k, selector: Selector::new(epsilon, sensitivity, monotonic, k)? })
    }

    /// The number of candidates to choose.
    #[must_use]
    pub fn k(&self) -> u64 {
        self.k
    }

    /// The indices of the chosen scores.
    ///
    /// # Errors
    /// [`Error::Parameter`] when there are fewer than k scores; [`Error::Data`] when one is not finite;
    /// [`Error::Randomness`].
    pub fn release(&self, scores: &[f64]) -> Result<Vec<u64>, Error> {
        self.release_with(scores, &mut SecureRng::new()?)
    }

    /// The indices of the chosen scores, with randomness from `rng`.
    ///
    /// # Errors
    /// As for [`TopK::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(&self, scores: &[f64], rng: &mut R) -> Result<Vec<u64>, Error> {
        if (scores.len() as u64) < self.k {
            let allowed = format!("at most the number of scores, which is {}", scores.len());
            return Err(Error::parameter("k", self.k, allowed));
        }
        self.selection().peel(rng, &self.candidates(scores)?, self.k as usize)
    }
}

impl Deref for TopK {
    type Target = Selector;

    fn deref(&self) -> &Selector {
        &self.selector
    }
}
