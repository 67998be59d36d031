//! Hadamard response: one random entry of the value's row of a Hadamard matrix, randomised.
//!
//! The matrix has the smallest power of two K >= k as its order; the entry of row v in column j is the parity of the
//! binary digits that v and j share (Sylvester's construction, 1 for -1). A client draws j uniformly, finds the entry
//! of its value's row, and keeps it with probability e^epsilon / (e^epsilon + 1).
//!
//! Source: Bassily and Smith 2015, "Local, private, efficient protocols for succinct histograms". The protocols of
//! Acharya, Sun and Zhang 2019, "Hadamard response", are different: they send only an index, and their blocks are
//! better at a large epsilon.
//!
//! # Privacy
//!
//! The column is drawn independently of the value, so only the entry depends on it: randomised response of one bit.
//!
//! # Estimation
//!
//! A report (j, s) supports v if s is the entry of v's row in column j. Two different rows agree in exactly half of the
//! columns, so another value is supported with probability 1/2. The supports of all values are a Walsh-Hadamard
//! transform of the number of reports by column and sign, in time O(n + K log K).
//!
//! A report is the number 2 j + s.

use dpnoise_kernels::memory::zeroed;
use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::local::chance::mixture::{Mixture, index_bytes, uniform};
use crate::local::estimate::Law;
use crate::local::reports::Reports;
use crate::local::reports::hadamard::{entry, support_of_entries, supports};
use crate::local::reports::numbers::{EFFORT, OUT_OF_RANGE, bits_below, for_each_number};
use crate::local::reports::symbols::{self, Symbols};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::check_below;
use crate::rng::AnyRng;

/// The Hadamard response over k values.
///
/// A report is epsilon-locally differentially private (Bassily and Smith 2015, "Local, private, efficient protocols for
/// succinct histograms").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HadamardResponse {
    k: u32,
    epsilon: f64,
    mixture: Mixture,
}

impl HadamardResponse {
    /// The response over `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        Ok(Self { k: check_k(k)?, epsilon, mixture: Mixture::new(2, epsilon)? })
    }

    /// The number of rows and columns of the matrix.
    #[must_use]
    pub fn order(self) -> u32 {
        self.k.next_power_of_two()
    }

    /// The randomisation of the entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }
}

impl Family for HadamardResponse {
    const NAME: &'static str = "hadamard_response";
    const ABBREVIATION: &'static str = "hr";
    const COST: Option<&'static str> = Some("n + k log k");
    const PARAMETERS: &'static [Parameter] = &[Parameter::K, Parameter::EPSILON];
    type Reports = Entries;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.mixture.fields();
        fields.push(("order", self.order().into()));
        fields
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
        Some(Blanket::of_supports(ratio.into(), (1, 2), (1, 4)))
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below(self.k, values)
    }

    fn random_bits(&self) -> usize {
        symbols::random_bits(self)
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        symbols::randomise(self, self.report_bytes(), rng, values, first, out)
    }

    fn reports(&self) -> Entries {
        Entries { k: self.k }
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(support_of_entries(self.mixture)))
    }
}

impl Symbols for HadamardResponse {
    fn mixture(&self) -> Mixture {
        self.mixture
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.order())
    }

    /// Draws columns.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        uniform(rng, self.order(), seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        entry(value as u32, seed as u32)
    }
}

/// Entries of the rows of k values in the columns of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Entries {
    k: u32,
}

impl Entries {
    fn end(self) -> u64 {
        2 * u64::from(self.k.next_power_of_two())
    }
}

impl Reports for Entries {
    fn bits(self) -> usize {
        bits_below(self.end())
    }

    fn malformed(self) -> &'static str {
        OUT_OF_RANGE
    }

    fn counters(self) -> usize {
        self.k as usize
    }

    fn effort(self, _reports: usize) -> usize {
        EFFORT
    }

    fn count(self, _instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        // For each column, the number of reports with entry 1 minus that with -1.
        let mut balance = zeroed::<i64>(self.end() as usize / 2)?;
        let width = self.bits().div_ceil(8);
        let rejected = for_each_number(rows, width, self.end(), |number| {
            balance[(number >> 1) as usize] += 1 - 2 * (number & 1) as i64;
        });
        let n = (rows.len() / width) as u64 - rejected;
        let mut counters = supports(balance, n);
        counters.truncate(self.counters());
        Ok((counters, rejected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_is_what_is_defined() {
        for k in [2, 3, 8, 100] {
            let response = HadamardResponse::new(k, 1.0).unwrap();
            let (reports, width) = (response.reports(), response.report_bytes());
            let all = 2 * u64::from(response.order());
            let numbers: Vec<u64> = (0..500).map(|i| i * i % (all + 1).min(1 << (8 * width))).collect();
            let rows: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect();
            let (counters, rejected) = reports.count(crate::instruction_set::current().unwrap(), &rows).unwrap();
            let good: Vec<u64> = numbers.into_iter().filter(|&number| number < all).collect();
            assert_eq!(rejected as usize, 500 - good.len());
            for (v, &counter) in (0..).zip(&counters) {
                let supports = |&&number: &&u64| entry(v, (number >> 1) as u32) == (number & 1) as u32;
                assert_eq!(counter as usize, good.iter().filter(supports).count(), "{k} {v}");
            }
        }
    }
}
