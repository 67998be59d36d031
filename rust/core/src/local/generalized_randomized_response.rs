//! Generalised randomised response: the value itself, or, by chance, any of the k values ("direct encoding").
//!
//! Definition: the report is the value with probability p = e^epsilon / (e^epsilon + k - 1), and each other value with
//! probability q = 1 / (e^epsilon + k - 1) (Kairouz, Oh, Viswanath 2014, "Extremal mechanisms for local differential
//! privacy"; Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency estimation", section
//! 4.1). It is done as a mixture: the value with probability p - q, otherwise a uniform one of all k.
//!
//! # Privacy
//!
//! A report is epsilon-locally differentially private with epsilon = ln(p/q), see [`Mixture`].
//!
//! A report is a value of ceil(log2 k) bits as 1 to 3 little-endian bytes; unused bits are zero.

use rand_core::TryCryptoRng;

use super::mixture::Mixture;
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::symbols::Symbols;
use crate::error::Error;

/// Randomised response over k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneralizedRandomizedResponse {
    protocol: Protocol,
    mixture: Mixture,
}

impl GeneralizedRandomizedResponse {
    /// Randomised response over `k` values with p/q = e^epsilon, rounded towards 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24, 2^-20 <= epsilon <= 32 and [`Mixture::new`] takes both together.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let mixture = Mixture::new(k, epsilon)?;
        let protocol = Protocol::new(Family::GeneralizedRandomizedResponse, k, Randomizer::Mixture(mixture), epsilon);
        Ok(Self { protocol, mixture })
    }

    /// The randomised response that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match (protocol.family(), protocol.randomizer()) {
            (Family::GeneralizedRandomizedResponse, Randomizer::Mixture(mixture)) => Some(Self { protocol, mixture }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The exact probabilities.
    #[must_use]
    pub fn mixture(&self) -> Mixture {
        self.mixture
    }
}

impl Symbols for GeneralizedRandomizedResponse {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn mixture(&self) -> Mixture {
        self.mixture
    }

    fn seed_bytes(&self) -> usize {
        0
    }

    /// There is one seed only.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, _rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        seeds.fill(0);
        Ok(())
    }

    #[inline(always)]
    fn symbol(&self, _seed: u64, value: i64) -> u32 {
        value as u32
    }
}
