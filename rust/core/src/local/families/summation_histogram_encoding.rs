//! Summation with histogram encoding: each bit of a one-hot row with Laplace noise of scale 2 / epsilon.
//!
//! Source: Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency estimation", section 4.2.
//!
//! # Privacy
//!
//! Two different one-hot rows differ by 1 in two columns, by 2 in the L1 norm: see `reports/noisy_sums.rs`.
//!
//! # Estimation
//!
//! The sum of a column, minus what every report adds to keep it positive, is the number of people with that value, plus
//! noise of variance 8 / epsilon^2 for each report, for all frequencies.

use dpnoise_kernels::arith::mask;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::mixture::CHUNK;
use crate::local::estimate::Law;
use crate::local::reports::bits::encode_rows;
use crate::local::reports::noisy_sums::{NUMBER_BYTES, NoisySums};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::check_below;
use crate::rng::AnyRng;

/// The summation with histogram encoding of k values.
///
/// A report is epsilon-locally differentially private (Wang, Blocki, Li, Jha 2017, "Locally differentially private
/// protocols for frequency estimation", section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummationHistogramEncoding {
    k: u32,
    epsilon: f64,
    sums: NoisySums,
}

impl SummationHistogramEncoding {
    /// The encoding of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        Ok(Self { k, epsilon, sums: NoisySums::with_laplace(k, epsilon)? })
    }

    /// The encoding of the numbers of rows.
    #[must_use]
    pub fn sums(self) -> NoisySums {
        self.sums
    }
}

impl Family for SummationHistogramEncoding {
    const NAME: &'static str = "summation_histogram_encoding";
    const ABBREVIATION: &'static str = "she";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::K, Parameter::EPSILON];
    type Reports = NoisySums;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.sums.fields()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?)
    }

    fn from_fields(k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon)
    }

    /// The noise is exact, and so is epsilon.
    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below(self.k, values)
    }

    fn random_bits(&self) -> usize {
        // About eight bytes for each number.
        8 * 8 * self.k as usize
    }

    /// Not whole rows: encoding can begin anywhere in a row.
    fn unit(&self) -> usize {
        CHUNK * NUMBER_BYTES
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let (first, unit) = (first / NUMBER_BYTES, u64::from(self.sums.unit()));
        self.sums.fill(&self.sums.laplace(self.epsilon), rng, out, |_, at, numbers| {
            // Every column is compared, none is addressed by value.
            encode_rows(values, self.k as usize, first + at, numbers, |value, start, part| {
                for (column, number) in (start..).zip(part) {
                    *number = (mask(value == column as i64) & unit) as i64;
                }
            });
            Ok(())
        })
    }

    fn reports(&self) -> NoisySums {
        self.sums
    }

    fn law(&self) -> Option<Law> {
        Some(self.sums.law(self.epsilon))
    }
}
