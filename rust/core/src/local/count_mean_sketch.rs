//! The count mean sketch: a random row of a table, and in it one of its columns as a one-hot row of flipped bits.
//!
//! A client draws a row j of the table uniformly, finds the column of its value by the hash function of that row, writes
//! `width` bits of which that column's alone is set, and flips each symmetrically, as symmetric unary encoding does.
//!
//! Source: Apple 2017, "Learning with privacy at scale", algorithms 1 and 2 (CMS).
//!
//! # Privacy
//!
//! The row is drawn without regard to the value, and given the row two values differ in at most two bits: the guarantee is
//! that of symmetric unary encoding, whatever the hash functions are.
//!
//! # Estimation
//!
//! A report supports the columns whose bits are set; see [`sketch`](super::sketch).
//!
//! A report is the row in two bytes, little-endian, then the bits, least significant first. The collector counts, for each
//! row, its reports, and then those with each bit set.

use rand_core::TryCryptoRng;

use super::bit_flip::{BitFlip, Neighbours};
use super::client::Randomise;
use super::cohorts::{self, HEADER_BYTES};
use super::flipper::Flipper;
use super::mixer::{index_bytes, uniform};
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use super::sketch::{Row, Sketch};
use super::unary_encoding::{CHUNK_BYTES, encode_part};
use crate::error::Error;
use crate::rng::Wiped;

/// Which table, and what is done to its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountMean {
    sketch: Sketch,
    flip: BitFlip,
}

impl CountMean {
    /// The table.
    #[must_use]
    pub fn sketch(self) -> Sketch {
        self.sketch
    }

    /// What is done to a bit.
    #[must_use]
    pub fn flip(self) -> BitFlip {
        self.flip
    }

    pub(super) fn report_bits(self) -> usize {
        8 * HEADER_BYTES + self.sketch.width() as usize
    }

    /// What the `counters` say of each row.
    pub(super) fn rows(self, counters: &[u64]) -> impl Iterator<Item = Row> {
        let rows = (0..).zip(counters.chunks_exact(1 + self.sketch.width() as usize));
        rows.map(move |(j, row)| Row { hash: self.sketch.hash(j), n: row[0], supports: row[1..].to_vec() })
    }
}

/// The count mean sketch of values, which are fingerprints of texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountMeanSketch {
    protocol: Protocol,
    count_mean: CountMean,
}

impl CountMeanSketch {
    /// The sketch of `rows` rows of `width` bits, with the hash functions of `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless [`Sketch::new`] takes the shape and 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64, rows: u64, width: u64, seed: u64) -> Result<Self, Error> {
        let sketch = Sketch::new(rows, width, seed)?;
        let count_mean = CountMean { sketch, flip: BitFlip::symmetric(epsilon, Neighbours::OneHot)? };
        let randomizer = Randomizer::CountMean(count_mean);
        Ok(Self { protocol: Protocol::new(Family::CountMeanSketch, sketch.width(), randomizer, epsilon), count_mean })
    }

    /// The sketch that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::CountMean(count_mean) => Some(Self { protocol, count_mean }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The bytes of the bits of a report.
    fn bits_bytes(&self) -> usize {
        self.protocol.report_bytes() - HEADER_BYTES
    }

    /// The reports whose bits are flipped together.
    fn reports_at_once(&self) -> usize {
        (CHUNK_BYTES / self.bits_bytes()).max(1)
    }
}

impl Randomise for CountMeanSketch {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Every number is a fingerprint.
    fn check(&self, _values: &[i64]) -> Result<(), Error> {
        Ok(())
    }

    fn unit(&self) -> usize {
        self.reports_at_once() * self.protocol.report_bytes()
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        let rows = bytes / self.protocol.report_bytes() * index_bytes(self.count_mean.sketch.rows());
        bytes.saturating_mul(self.count_mean.flip.planes() as usize).saturating_add(rows)
    }

    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let CountMean { sketch, flip } = self.count_mean;
        let (width, bits_bytes, at_once) = (self.protocol.report_bytes(), self.bits_bytes(), self.reports_at_once());
        let values = &values[first / width..][..out.len() / width];
        let mut flipper = Flipper::new(flip, values.len() * bits_bytes)?;
        let mut private = Wiped::new(values.len().min(at_once) * bits_bytes);
        let mut rows = vec![0; values.len().min(at_once)];
        for (values, out) in values.chunks(at_once).zip(out.chunks_mut(at_once * width)) {
            let (rows, private) = (&mut rows[..values.len()], &mut private[..values.len() * bits_bytes]);
            uniform(rng, sketch.rows(), rows)?;
            for ((&value, &row), bits) in values.iter().zip(&*rows).zip(private.chunks_exact_mut(bits_bytes)) {
                encode_part(sketch.hash(row as u32).column(value).into(), 0, bits);
            }
            flipper.flip(rng, private)?;
            cohorts::write(rows, private, out);
        }
        Ok(())
    }
}
