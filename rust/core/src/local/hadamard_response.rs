//! Hadamard response: one random entry of the value's row of a Hadamard matrix, randomised.
//!
//! The matrix has the smallest power of two K >= k as its order; the entry of row v in column j is the parity of the
//! binary digits that v and j share (Sylvester's construction, 1 for -1). A client draws j uniformly, finds the entry
//! of its value's row, and keeps it with probability e^epsilon / (e^epsilon + 1).
//!
//! Source: Bassily and Smith 2015, "Local, private, efficient protocols for succinct histograms". The protocols of Acharya,
//! Sun and Zhang 2019, "Hadamard response", are others: they send an index alone, and their blocks gain at a large epsilon.
//!
//! # Privacy
//!
//! The column is drawn without regard to the value, so only the entry tells anything: randomised response of one bit.
//!
//! # Estimation
//!
//! A report (j, s) supports v if s is the entry of v's row in column j. Two different rows agree in exactly half of the
//! columns, so another value is supported with probability 1/2. The supports of all values are a Walsh-Hadamard transform
//! of the number of reports by column and sign, in a time in the order of n + K log K.
//!
//! A report is the number 2 j + s.

use rand_core::TryCryptoRng;

use super::estimate::Support;
use super::mixer::{index_bytes, uniform};
use super::mixture::Mixture;
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::symbols::{Symbols, for_each_number};
use crate::error::Error;

/// Which matrix, and what is done to its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hadamard {
    order: u32,
    mixture: Mixture,
}

impl Hadamard {
    /// The number of rows and columns.
    #[must_use]
    pub fn order(self) -> u32 {
        self.order
    }

    /// What is done to an entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    pub(super) fn reports(self) -> u64 {
        2 * u64::from(self.order)
    }

    /// How often a report supports its sender's value, and any other: half of the time.
    #[must_use]
    pub fn support(self) -> Support {
        support_of_entries(self.mixture)
    }
}

/// How often a report supports the row whose entry it is made of, and any other: different rows agree half of the time.
pub(super) fn support_of_entries(mixture: Mixture) -> Support {
    let Support { p, one, .. } = mixture.support();
    Support { p, q: one / 2, one }
}

/// The Hadamard response over k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HadamardResponse {
    protocol: Protocol,
    hadamard: Hadamard,
}

impl HadamardResponse {
    /// The response over `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let hadamard = Hadamard { order: k.next_power_of_two(), mixture: Mixture::new(2, epsilon)? };
        let randomizer = Randomizer::Hadamard(hadamard);
        Ok(Self { protocol: Protocol::new(Family::HadamardResponse, k, randomizer, epsilon), hadamard })
    }

    /// The response that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::Hadamard(hadamard) => Some(Self { protocol, hadamard }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The entry of a row in a column: 0 for 1, and 1 for -1.
    #[must_use]
    #[inline(always)]
    pub fn entry(row: u32, column: u32) -> u32 {
        (row & column).count_ones() & 1
    }
}

impl Symbols for HadamardResponse {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn mixture(&self) -> Mixture {
        self.hadamard.mixture
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.hadamard.order)
    }

    /// Columns.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        uniform(rng, self.hadamard.order, seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        Self::entry(value as u32, seed as u32)
    }
}

/// Adds to `counters` how many of the `reports` support each value, and gives the number of reports that are none.
pub(super) fn count(hadamard: Hadamard, reports: &[u8], width: usize, counters: &mut [u64]) -> u64 {
    // The reports with each column, those with -1 subtracted.
    let mut balance = vec![0i64; hadamard.order as usize];
    let rejected = for_each_number(reports, width, hadamard.reports(), |number| {
        balance[(number >> 1) as usize] += 1 - 2 * (number & 1) as i64;
    });
    let n = (reports.len() / width) as u64 - rejected;
    counters.iter_mut().zip(supports(balance, n)).for_each(|(counter, supports)| *counter += supports);
    rejected
}

/// How many of `n` reports support each row, from the `balance` of those with each column: with 1 less with -1.
pub(super) fn supports(mut balance: Vec<i64>, n: u64) -> Vec<u64> {
    walsh_hadamard(&mut balance);
    // What supports a row less what does not; and all n together.
    balance.into_iter().map(|difference| i64::midpoint(n as i64, difference) as u64).collect()
}

/// The Walsh-Hadamard transform, in place, of a power of two of numbers whose magnitudes sum to less than 2^63.
pub fn walsh_hadamard(numbers: &mut [i64]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_rows_agree_in_half_of_the_columns() {
        for order in [2, 4, 16, 128] {
            for (a, b) in (0..order).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let agree = (0..order).filter(|&j| HadamardResponse::entry(a, j) == HadamardResponse::entry(b, j));
                assert_eq!(agree.count() as u32, order / 2, "{a} {b}");
            }
        }
    }

    #[test]
    fn counting_is_what_is_defined() {
        for k in [2, 3, 8, 100] {
            let response = HadamardResponse::new(k, 1.0).unwrap();
            let (hadamard, width) = (response.hadamard, response.protocol.report_bytes());
            let numbers: Vec<u64> = (0..500).map(|i| i * i % (hadamard.reports() + 1).min(1 << (8 * width))).collect();
            let rows: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect();
            let mut counters = vec![0; k as usize];
            let rejected = count(hadamard, &rows, width, &mut counters);
            let good: Vec<u64> = numbers.into_iter().filter(|&number| number < hadamard.reports()).collect();
            assert_eq!(rejected as usize, 500 - good.len());
            for (v, &counter) in (0..).zip(&counters) {
                let supports =
                    |&&number: &&u64| HadamardResponse::entry(v, (number >> 1) as u32) == (number & 1) as u32;
                assert_eq!(counter as usize, good.iter().filter(supports).count(), "{k} {v}");
            }
        }
    }
}
