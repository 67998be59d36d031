//! Summation with histogram encoding: each bit of a one-hot row with Laplace noise of scale 2 / epsilon.
//!
//! Source: Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency estimation", section 4.2.
//!
//! # Privacy
//!
//! Two one-hot rows differ by 1 in two columns, by 2 altogether: see [`noisy_sums`](super::noisy_sums).
//!
//! # Estimation
//!
//! The sum of a column, without what every report adds to keep it positive, is the number of people with that value, with
//! noise of variance 8 / epsilon^2 for each report, whatever the frequencies are.

use std::sync::Arc;

use rand_core::TryCryptoRng;

use super::client::{Randomise, check_below_k};
use super::noisy_sums::{CHUNK, NUMBER_BYTES, NoisySums};
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::unary_encoding::encode_rows;
use crate::error::Error;
use crate::samplers::DiscreteLaplace;
use dpnoise_kernels::arith::mask;

/// The summation with histogram encoding of k values.
#[derive(Clone, Debug)]
pub struct SummationHistogramEncoding {
    protocol: Protocol,
    sums: NoisySums,
    noise: Arc<DiscreteLaplace>,
}

impl SummationHistogramEncoding {
    /// The encoding of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let sums = NoisySums::new(k, epsilon)?;
        let protocol = Protocol::new(Family::SummationHistogramEncoding, k, Randomizer::NoisySums(sums), epsilon);
        Ok(Self { protocol, sums, noise: sums.noise(epsilon) })
    }

    /// The encoding that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match (protocol.family(), protocol.randomizer()) {
            (Family::SummationHistogramEncoding, Randomizer::NoisySums(sums)) => {
                Some(Self { protocol, sums, noise: sums.noise(protocol.requested_epsilon()) })
            }
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

impl Randomise for SummationHistogramEncoding {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below_k(self.protocol.k(), values)
    }

    fn unit(&self) -> usize {
        CHUNK * NUMBER_BYTES
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        // About eight for each number, which has four.
        bytes.saturating_mul(2)
    }

    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let first = first / NUMBER_BYTES;
        self.sums.fill(&self.noise, rng, out, |_, at, numbers| {
            self.encode_from(values, first + at, numbers);
            Ok(())
        })
    }
}

impl SummationHistogramEncoding {
    /// Writes the numbers of the rows of `values` that begin with the one at index `at`: every column is compared, none is
    /// addressed by value.
    fn encode_from(&self, values: &[i64], at: usize, numbers: &mut [i64]) {
        let unit = u64::from(self.sums.unit());
        encode_rows(values, self.protocol.k() as usize, at, numbers, |value, start, part| {
            for (column, number) in (start..).zip(part) {
                *number = (mask(value == column as i64) & unit) as i64;
            }
        });
    }
}
