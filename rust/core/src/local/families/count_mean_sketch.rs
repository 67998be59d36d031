//! The count mean sketch: a random row of a table, and the value's column in it as a one-hot row of flipped bits.
//!
//! A client draws a row j of the table uniformly, finds the column of its value by the hash function of that row,
//! writes `width` bits of which only that column's is set, and flips each symmetrically, as symmetric unary encoding
//! does.
//!
//! Source: Apple 2017, "Learning with privacy at scale", algorithms 1 and 2 (CMS).
//!
//! # Privacy
//!
//! The row is drawn independently of the value. Given the row, two values differ in at most two bits, so the guarantee
//! is that of symmetric unary encoding, for any hash functions.
//!
//! # Estimation
//!
//! A report supports the columns whose bits are set; see `reports/sketch.rs`.
//!
//! A report is the row in two bytes, little-endian, then the bits, least significant first. The collector counts, for each
//! row, its reports, and then those with each bit set.

use dpnoise_kernels::arch::planes;
use dpnoise_kernels::memory::collected;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::bit_flip::{BitFlip, Flipper, Neighbours};
use crate::local::chance::mixture::{index_bytes, uniform};
use crate::local::estimate::Estimate;
use crate::local::reports::bits::CHUNK_BYTES;
use crate::local::reports::cohorts::{self, Cohorts, HEADER_BYTES};
use crate::local::reports::sketch::{self, Row, Sketch};
use crate::local::spec::{Field, Given};
use crate::local::values::rows;
use crate::rng::{AnyRng, Wiped};

/// The count mean sketch of values, which are fingerprints of texts.
///
/// A report is epsilon-locally differentially private for any hash functions (Apple 2017, "Learning with privacy at
/// scale", CMS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountMeanSketch {
    epsilon: f64,
    sketch: Sketch,
    flip: BitFlip,
}

impl CountMeanSketch {
    /// The sketch of `rows` rows of `width` bits, with the hash functions of `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless [`Sketch::new`] accepts the shape and 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64, rows: u64, width: u64, seed: u64) -> Result<Self, Error> {
        let sketch = Sketch::new(rows, width, seed)?;
        Ok(Self { epsilon, sketch, flip: BitFlip::symmetric(epsilon, Neighbours::OneHot)? })
    }

    /// The table.
    #[must_use]
    pub fn sketch(self) -> Sketch {
        self.sketch
    }

    /// The flip of each bit.
    #[must_use]
    pub fn flip(self) -> BitFlip {
        self.flip
    }

    /// The bytes of the bits of a report.
    fn bits_bytes(&self) -> usize {
        self.report_bytes() - HEADER_BYTES
    }

    /// The reports whose bits are flipped together.
    fn reports_at_once(&self) -> usize {
        (CHUNK_BYTES / self.bits_bytes()).max(1)
    }
}

impl Family for CountMeanSketch {
    const NAME: &'static str = "count_mean_sketch";
    const ABBREVIATION: &'static str = "cms";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON, Sketch::ROWS, Sketch::WIDTH, Sketch::SEED];
    const NAME_OF_K: &'static str = "width";
    const OF_TEXTS: bool = true;
    type Reports = Cohorts;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.sketch.width()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.flip.fields().into_iter().chain(self.sketch.fields()).collect()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let (epsilon, rows) = (arguments.real("epsilon")?, arguments.integer("rows")?);
        Self::new(epsilon, rows, arguments.integer("width")?, arguments.integer("seed")?)
    }

    fn from_fields(width: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(epsilon, given.integer("rows")?, width, given.integer("seed")?)
    }

    fn epsilon(&self) -> f64 {
        self.flip.likelihood_ratio(Neighbours::OneHot).epsilon()
    }

    /// Every integer is a valid fingerprint.
    fn check(&self, _values: &[i64]) -> Result<(), Error> {
        Ok(())
    }

    fn random_bits(&self) -> usize {
        8 * (index_bytes(self.sketch.rows()) + self.report_bytes() * self.flip.planes() as usize)
    }

    fn unit(&self) -> usize {
        self.reports_at_once() * self.report_bytes()
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let (width, bits_bytes, at_once) = (self.report_bytes(), self.bits_bytes(), self.reports_at_once());
        let values = &values[rows(first, out, width)];
        let mut flipper = Flipper::new(self.flip, values.len() * bits_bytes)?;
        let mut private = Wiped::try_new(values.len().min(at_once) * bits_bytes)?;
        let mut rows = vec![0; values.len().min(at_once)];
        for (values, out) in values.chunks(at_once).zip(out.chunks_mut(at_once * width)) {
            let (rows, private) = (&mut rows[..values.len()], &mut private[..values.len() * bits_bytes]);
            uniform(rng, self.sketch.rows(), rows)?;
            for ((&value, &row), bits) in values.iter().zip(&*rows).zip(private.chunks_exact_mut(bits_bytes)) {
                planes::one_hot_part(self.sketch.hash(row as u32).column(value).into(), 0, bits);
            }
            flipper.flip(rng, private)?;
            cohorts::write(rows, private, out);
        }
        Ok(())
    }

    fn reports(&self) -> Cohorts {
        Cohorts { groups: self.sketch.rows(), bits: self.sketch.width(), malformed: "row out of range" }
    }

    fn estimate_candidates(&self, counters: &[u64], candidates: &[i64]) -> Result<Option<Estimate>, Error> {
        let rows = (0..).zip(counters.chunks_exact(self.reports().of_group()));
        let rows = rows.map(|(j, row)| {
            let supports = collected(row[1..].iter().copied())?;
            Ok(Row { hash: self.sketch.hash(j), n: row[0], supports })
        });
        sketch::estimate(rows, self.k(), self.flip.support(), candidates).map(Some)
    }
}
