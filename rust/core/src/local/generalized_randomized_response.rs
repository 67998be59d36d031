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

use super::client::{Randomise, check_below_k};
use super::mixer::{CHUNK, Mixer, random_bytes};
use super::mixture::Mixture;
use super::protocol::{Family, Protocol, Randomizer, check_k};
use crate::error::Error;
use crate::rng::Wiped;

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

impl Randomise for GeneralizedRandomizedResponse {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below_k(self.protocol.k(), values)
    }

    fn unit(&self) -> usize {
        CHUNK * self.protocol.report_bytes()
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        (bytes / self.protocol.report_bytes()).saturating_mul(random_bytes(self.mixture))
    }

    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let width = self.protocol.report_bytes();
        let rows = out.len() / width;
        let values = &values[first / width..][..rows];
        let mut mixer = Mixer::new(self.mixture, rows);
        let mut private = Wiped::new(rows.min(CHUNK));
        for (values, out) in values.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
            let private = &mut private[..values.len()];
            private.iter_mut().zip(values).for_each(|(private, &value)| *private = value as u32);
            mixer.mix(rng, private)?;
            match width {
                1 => write::<1>(private, out),
                2 => write::<2>(private, out),
                _ => write::<3>(private, out),
            }
        }
        Ok(())
    }
}

fn write<const WIDTH: usize>(values: &[u32], out: &mut [u8]) {
    for (value, row) in values.iter().zip(out.as_chunks_mut::<WIDTH>().0) {
        row.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
    }
}

/// Adds to `counters` how many of the `reports` are each value, and gives the number of reports that are none.
pub(super) fn count(reports: &[u8], width: usize, counters: &mut [u64]) -> u64 {
    match width {
        1 => count_rows::<1>(reports, counters),
        2 => count_rows::<2>(reports, counters),
        _ => count_rows::<3>(reports, counters),
    }
}

fn count_rows<const WIDTH: usize>(reports: &[u8], counters: &mut [u64]) -> u64 {
    let mut rejected = 0;
    for row in reports.as_chunks::<WIDTH>().0 {
        let mut bytes = [0; 4];
        bytes[..WIDTH].copy_from_slice(row);
        match counters.get_mut(u32::from_le_bytes(bytes) as usize) {
            Some(counter) => *counter += 1,
            None => rejected += 1,
        }
    }
    rejected
}
