//! The Hadamard count mean sketch: a random row of a table, and one randomised entry of its Hadamard transform.
//!
//! A client draws a row j of the table and a column l of a Hadamard matrix of order `width` uniformly, finds the column of
//! its value by the hash function of row j, takes that row's entry in column l of the matrix (as in
//! Hadamard response), and keeps it with probability e^epsilon / (e^epsilon + 1).
//!
//! Source: Apple 2017, "Learning with privacy at scale", algorithms 3 and 4 (HCMS).
//!
//! # Privacy
//!
//! Row and column are drawn independently of the value, so only the entry depends on it: randomised response of one
//! bit.
//!
//! # Estimation
//!
//! A report (j, l, s) supports those columns of row j whose entry is s: the sender's, and half of the others; see
//! `reports/sketch.rs`. The numbers of reports that support each column of a row are a Walsh-Hadamard transform of its
//! counters.
//!
//! A report is the number 2 (j width + l) + s, and the collector counts each number.

use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::mixture::{Mixture, index_bytes, uniform};
use crate::local::estimate::Estimate;
use crate::local::reports::hadamard::TransformedTable;
use crate::local::reports::numbers::Numbers;
use crate::local::reports::sketch::{self, Sketch};
use crate::local::reports::symbols::{self, Symbols};
use crate::local::spec::{Field, Given};
use crate::rng::AnyRng;

/// The Hadamard count mean sketch of values, which are fingerprints of texts.
///
/// A report is epsilon-locally differentially private for any hash functions (Apple 2017, "Learning with privacy at
/// scale", HCMS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HadamardCountMeanSketch {
    epsilon: f64,
    table: TransformedTable,
}

impl HadamardCountMeanSketch {
    /// The sketch of `rows` rows of `width` columns, with the hash functions of `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless [`Sketch::new`] accepts the shape and 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64, rows: u64, width: u64, seed: u64) -> Result<Self, Error> {
        let sketch = Sketch::new(rows, width, seed)?;
        Ok(Self { epsilon, table: TransformedTable { sketch, mixture: Mixture::new(2, epsilon)? } })
    }

    /// The table.
    #[must_use]
    pub fn sketch(self) -> Sketch {
        self.table.sketch
    }

    /// The randomisation of the entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.table.mixture
    }
}

impl Family for HadamardCountMeanSketch {
    const NAME: &'static str = "hadamard_count_mean_sketch";
    const ABBREVIATION: &'static str = "hcms";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON, Sketch::ROWS, Sketch::WIDTH, Sketch::SEED];
    const NAME_OF_K: &'static str = "width";
    const OF_TEXTS: bool = true;
    type Reports = Numbers;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.sketch().width()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.mixture().fields().into_iter().chain(self.sketch().fields()).collect()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let (epsilon, rows) = (arguments.real("epsilon")?, arguments.integer("rows")?);
        Self::new(epsilon, rows, arguments.integer("width")?, arguments.integer("seed")?)
    }

    fn from_fields(width: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(epsilon, given.integer("rows")?, width, given.integer("seed")?)
    }

    fn epsilon(&self) -> f64 {
        self.mixture().likelihood_ratio().epsilon()
    }

    /// Every integer is a valid fingerprint.
    fn check(&self, _values: &[i64]) -> Result<(), Error> {
        Ok(())
    }

    fn random_bits(&self) -> usize {
        symbols::random_bits(self)
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        symbols::randomise(self, self.report_bytes(), rng, values, first, out)
    }

    fn reports(&self) -> Numbers {
        self.table.reports()
    }

    fn estimate_candidates(&self, counters: &[u64], candidates: &[i64]) -> Result<Option<Estimate>, Error> {
        let rows = self.table.rows(counters, 0..self.sketch().rows());
        sketch::estimate(rows, self.k(), self.table.support(), candidates).map(Some)
    }
}

impl Symbols for HadamardCountMeanSketch {
    fn mixture(&self) -> Mixture {
        self.table.mixture
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.sketch().cells())
    }

    /// j width + l.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        uniform(rng, self.sketch().cells(), seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        self.table.entry(seed as u32, |_| value)
    }
}
