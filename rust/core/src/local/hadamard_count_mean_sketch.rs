//! The Hadamard count mean sketch: a random row of a table, and one randomised entry of its Hadamard transform.
//!
//! A client draws a row j of the table and a column l of a Hadamard matrix of order `width` uniformly, finds the column of
//! its value by the hash function of row j, takes that row's entry in column l of the matrix (as in
//! [`hadamard_response`](super::hadamard_response)), and keeps it with probability e^epsilon / (e^epsilon + 1).
//!
//! Source: Apple 2017, "Learning with privacy at scale", algorithms 3 and 4 (HCMS).
//!
//! # Privacy
//!
//! Row and column are drawn without regard to the value, so only the entry tells anything: randomised response of one bit.
//!
//! # Estimation
//!
//! A report (j, l, s) supports those columns of row j whose entry is s: the sender's, and half of the others; see
//! [`sketch`](super::sketch). How many support each column of a row is a Walsh-Hadamard transform of its counters.
//!
//! A report is the number 2 (j width + l) + s, and the collector counts each number.

use core::ops::Range;

use rand_core::TryCryptoRng;

use super::estimate::Support;
use super::hadamard_response::{HadamardResponse, support_of_entries, supports};
use super::mixer::{index_bytes, uniform};
use super::mixture::Mixture;
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use super::sketch::{Row, Sketch};
use super::symbols::Symbols;
use crate::error::Error;

/// Which table, and what is done to the entries of its transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HadamardCountMean {
    sketch: Sketch,
    mixture: Mixture,
}

impl HadamardCountMean {
    pub(super) fn new(sketch: Sketch, mixture: Mixture) -> Self {
        Self { sketch, mixture }
    }

    /// The table.
    #[must_use]
    pub fn sketch(self) -> Sketch {
        self.sketch
    }

    /// What is done to an entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    pub(super) fn reports(self) -> u64 {
        2 * u64::from(self.sketch.cells())
    }

    /// How often a report supports its sender's column, and any other of its row: half of the time.
    pub(super) fn support(self) -> Support {
        support_of_entries(self.mixture)
    }

    /// The entry of the Hadamard matrix in the column that is part of `cell`, in the row that the hash of the value in the
    /// other part, a row of the table, gives.
    #[inline(always)]
    pub(super) fn entry(self, cell: u32, value: impl Fn(u32) -> i64) -> u32 {
        let (row, column) = (cell / self.sketch.width(), cell % self.sketch.width());
        HadamardResponse::entry(self.sketch.hash(row).column(value(row)), column)
    }

    /// What the `counters` say of some rows.
    pub(super) fn rows(self, counters: &[u64], rows: Range<u32>) -> impl Iterator<Item = Row> {
        let width = 2 * self.sketch.width() as usize;
        let counters = &counters[rows.start as usize * width..rows.end as usize * width];
        rows.zip(counters.chunks_exact(width)).map(move |(j, row)| {
            let balance =
                row.as_chunks().0.iter().map(|&[same, other]: &[u64; 2]| same as i64 - other as i64).collect();
            let n = row.iter().sum();
            Row { hash: self.sketch.hash(j), n, supports: supports(balance, n) }
        })
    }
}

/// The Hadamard count mean sketch of values, which are fingerprints of texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HadamardCountMeanSketch {
    protocol: Protocol,
    count_mean: HadamardCountMean,
}

impl HadamardCountMeanSketch {
    /// The sketch of `rows` rows of `width` columns, with the hash functions of `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless [`Sketch::new`] takes the shape and 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64, rows: u64, width: u64, seed: u64) -> Result<Self, Error> {
        let sketch = Sketch::new(rows, width, seed)?;
        let count_mean = HadamardCountMean::new(sketch, Mixture::new(2, epsilon)?);
        let randomizer = Randomizer::HadamardCountMean(count_mean);
        let protocol = Protocol::new(Family::HadamardCountMeanSketch, sketch.width(), randomizer, epsilon);
        Ok(Self { protocol, count_mean })
    }

    /// The sketch that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::HadamardCountMean(count_mean) => Some(Self { protocol, count_mean }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

impl Symbols for HadamardCountMeanSketch {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn mixture(&self) -> Mixture {
        self.count_mean.mixture
    }

    /// Every number is a fingerprint.
    fn check_values(&self, _values: &[i64]) -> Result<(), Error> {
        Ok(())
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.count_mean.sketch.cells())
    }

    /// j width + l.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        uniform(rng, self.count_mean.sketch.cells(), seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        self.count_mean.entry(seed as u32, |_| value)
    }
}
