//! Local hashing: a random hash of the value, randomised.
//!
//! A client draws a hash function from k values to g, hashes its value, and keeps the hash with probability e^epsilon /
//! (e^epsilon + g - 1), replacing it by another one otherwise. The choice g = e^epsilon + 1 is optimal (Wang, Blocki,
//! Li and Jha 2017, "Locally differentially private protocols for frequency estimation").
//!
//! The hash functions are those of `reports/hashing.rs`.
//!
//! # Privacy
//!
//! The hash function is drawn independently of the value, so only the hash depends on it: generalised randomised
//! response over g values.
//!
//! A report is the number (a P + b) g + hash.

use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::local::chance::mixture::Mixture;
use crate::local::estimate::Law;
use crate::local::reports::hashing::{Hashing, MAX_G, optimal_g};
use crate::local::reports::symbols::{self, Symbols};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::check_below;
use crate::rng::AnyRng;

/// Local hashing of k values.
///
/// A report is epsilon-locally differentially private (Wang, Blocki, Li and Jha 2017, "Locally differentially private
/// protocols for frequency estimation").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalHashing {
    epsilon: f64,
    hashing: Hashing,
}

impl LocalHashing {
    /// The largest number of hashes.
    pub const MAX_G: u64 = MAX_G;

    /// The largest number of values: the collector compares every report with every value.
    pub const MAX_K: u64 = 1 << 16;

    /// Local hashing of `k` values to `g`, or to the optimal number: e^epsilon + 1, rounded, but at most k.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^16, 2 <= g <= 2^16, 2^-20 <= epsilon <= 32, and [`Mixture::new`] accepts
    /// g and epsilon together.
    pub fn new(k: u64, epsilon: f64, g: Option<u64>) -> Result<Self, Error> {
        let k = check_k(k)?;
        if u64::from(k) > Self::MAX_K {
            let allowed = format!(
                "an integer from 2 to {} for local hashing, whose collector compares every report with every value; for \
                 more values take projective geometry response, which has the same error",
                Self::MAX_K
            );
            return Err(Error::parameter("k", k, allowed));
        }
        let g = g.unwrap_or_else(|| optimal_g(k, epsilon));
        if !(2..=MAX_G).contains(&g) {
            return Err(Error::parameter("g", g, format!("an integer from 2 to {MAX_G}")));
        }
        Ok(Self { epsilon, hashing: Hashing::new(k, Mixture::new(g as u32, epsilon)?)? })
    }

    /// The hash functions.
    #[must_use]
    pub fn hashing(self) -> Hashing {
        self.hashing
    }
}

impl Family for LocalHashing {
    const NAME: &'static str = "local_hashing";
    const ABBREVIATION: &'static str = "lh";
    const COST: Option<&'static str> = Some("n + k**2");
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::k("an integer from 2 to 65536"),
        Parameter::EPSILON,
        Parameter::integer("g", "an integer from 2 to 65536", 2, "how many hashes").or_most_accurate(),
    ];
    type Reports = Hashing;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.hashing.k()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.hashing.mixture().fields().into_iter().chain(self.hashing.fields()).collect()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?, arguments.optional("g")?)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon, Some(given.integer("g")?))
    }

    fn epsilon(&self) -> f64 {
        self.hashing.mixture().likelihood_ratio().epsilon()
    }

    fn blanket(&self) -> Option<Blanket> {
        let mixture = self.hashing.mixture();
        let (g, functions) = (u128::from(mixture.k()), u128::from(self.hashing.prime()).pow(2));
        let both = (self.hashing.collisions().into(), g * functions);
        Some(Blanket::of_supports(mixture.likelihood_ratio().into(), (1, g), both))
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

    fn reports(&self) -> Hashing {
        self.hashing
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.hashing.support()))
    }
}

impl Symbols for LocalHashing {
    fn mixture(&self) -> Mixture {
        self.hashing.mixture()
    }

    fn seed_bytes(&self) -> usize {
        self.hashing.seed_bytes()
    }

    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        self.hashing.draw_seeds(rng, seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        self.hashing.hash_with(seed, value as u32)
    }
}
