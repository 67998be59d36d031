//! Generalised randomised response: the value, or with some probability a uniform one of the k values ("direct
//! encoding").
//!
//! Definition: the report is the value with probability p = e^epsilon / (e^epsilon + k - 1), and each other value with
//! probability q = 1 / (e^epsilon + k - 1) (Kairouz, Oh, Viswanath 2014, "Extremal mechanisms for local differential
//! privacy"; Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency estimation", section
//! 4.1). It is implemented as a mixture: the value with probability p - q, otherwise a uniform one of all k.
//!
//! # Privacy
//!
//! A report is epsilon-locally differentially private with epsilon = ln(p/q); see [`Mixture`].
//!
//! A report is a value of ceil(log2 k) bits as 1 to 3 little-endian bytes; unused bits are zero.

use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::local::chance::mixture::Mixture;
use crate::local::estimate::Law;
use crate::local::reports::numbers::Numbers;
use crate::local::reports::symbols::{self, Symbols};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::check_below;
use crate::rng::AnyRng;

/// Randomised response over k values.
///
/// A report is epsilon-locally differentially private (Kairouz, Oh, Viswanath 2014; Wang, Blocki, Li, Jha 2017, section
/// 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneralizedRandomizedResponse {
    epsilon: f64,
    mixture: Mixture,
}

impl GeneralizedRandomizedResponse {
    /// Randomised response over `k` values with p/q = e^epsilon, rounded towards 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24, 2^-20 <= epsilon <= 32 and [`Mixture::new`] accepts both together.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        Ok(Self { epsilon, mixture: Mixture::new(check_k(k)?, epsilon)? })
    }

    /// The exact probabilities.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }
}

impl Family for GeneralizedRandomizedResponse {
    const NAME: &'static str = "generalized_randomized_response";
    const ABBREVIATION: &'static str = "grr";
    const COST: Option<&'static str> = Some("n");
    const PARAMETERS: &'static [Parameter] = &[Parameter::K, Parameter::EPSILON];
    type Reports = Numbers;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.mixture.k()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.mixture.fields()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?)
    }

    fn from_fields(k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon)
    }

    fn epsilon(&self) -> f64 {
        self.mixture.likelihood_ratio().epsilon()
    }

    fn blanket(&self) -> Option<Blanket> {
        let ratio = self.mixture.likelihood_ratio();
        Some(Blanket::of_supports(ratio.into(), (1, self.k().into()), (0, 1)))
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below(self.k(), values)
    }

    fn random_bits(&self) -> usize {
        symbols::random_bits(self)
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        symbols::randomise(self, self.report_bytes(), rng, values, first, out)
    }

    fn reports(&self) -> Numbers {
        Numbers::below(self.k())
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.mixture.support()))
    }
}

impl Symbols for GeneralizedRandomizedResponse {
    fn mixture(&self) -> Mixture {
        self.mixture
    }

    fn seed_bytes(&self) -> usize {
        0
    }

    /// There is only one seed.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, _rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        seeds.fill(0);
        Ok(())
    }

    #[inline(always)]
    fn symbol(&self, _seed: u64, value: i64) -> u32 {
        value as u32
    }
}
