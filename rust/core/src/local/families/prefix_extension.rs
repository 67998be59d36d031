//! Prefix extension: frequent values of a domain that is too large to enumerate, found prefix by prefix.
//!
//! A value has `bits` binary digits. The levels are the lengths of its prefixes: `bits`, `bits` - `step` and so on, as
//! long as they are above 0, the shortest first. A client draws one level and reports its prefix of that length by the
//! Hadamard count mean sketch of that level, with the whole epsilon. The collector estimates the counts of all prefixes
//! of the first length, extends the significant ones in all ways to the next length, and so on. The values that are
//! significant at the last level are the frequent ones, with their counts.
//!
//! Sources: Wang, Li and Jha 2018, "Locally differentially private heavy hitter identification" (the prefix extending
//! method), and Bassily, Nissim, Stemmer and Thakurta 2017, "Practical locally private heavy hitters" (the sketch of
//! each level). In the former, each report is a hash with its own seed, and the collector keeps all reports. With a
//! sketch, the collector's state has a fixed size and is merged by addition, and the time to extend does not depend on
//! the number of reports. The price is that of all sketches: collisions.
//!
//! # Privacy
//!
//! A client sends one report, on one level drawn independently of the value: the guarantee is that of the Hadamard
//! count mean sketch.
//!
//! # Estimation
//!
//! The m clients who drew a level are a random sample of all n. The number m_d of them who have a prefix is estimated
//! with the standard error of sketches. The estimate n m_d / m for all people also has the
//! variance of the sample, n (n/m - 1) f (1 - f) for a prefix of frequency f.
//!
//! Prefixes are hashed as texts of 8 bytes, little-endian. A report is the number 2 (j `width` + l) + s, where
//! j = `rows` * level + row; the collector counts each number.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::memory::collected;
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::local::chance::mixture::{Mixture, index_bytes, uniform};
use crate::local::estimate::Estimate;
use crate::local::family::Family;
use crate::local::parameters::{Arguments, Parameter};
use crate::local::reports::hadamard::TransformedTable;
use crate::local::reports::numbers::Numbers;
use crate::local::reports::sketch::{self, Sketch};
use crate::local::reports::symbols::{self, Symbols};
use crate::local::reports::text_hash::fingerprint;
use crate::local::spec::{Field, Given};
use crate::rng::AnyRng;

/// Prefix extension over values of some binary digits.
///
/// A report is epsilon-locally differentially private (Wang, Li and Jha 2018, "Locally differentially private heavy
/// hitter identification"; Bassily, Nissim, Stemmer and Thakurta 2017, "Practical locally private heavy hitters").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefixExtension {
    epsilon: f64,
    bits: u32,
    step: u32,
    rows: u32,
    /// The tables of all levels, one below the other.
    tables: TransformedTable,
}

impl PrefixExtension {
    /// The allowed numbers of binary digits: these fit a signed integer.
    pub const BITS: &str = "an integer from 1 to 63";

    /// The allowed steps: the collector tries all extensions of a prefix.
    pub const STEPS: &str = "an integer from 1 to 16";

    /// The protocol for values of `bits` binary digits, whose prefixes grow by `step`, with a table of `rows` rows of `width`
    /// columns for each length and the hash functions of `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 1 <= bits <= 63, 1 <= step <= 16, [`Sketch::new`] accepts the tables, they have at
    /// most 2^24 cells together, and 2^-20 <= epsilon <= 32.
    pub fn new(bits: u64, epsilon: f64, step: u64, rows: u64, width: u64, seed: u64) -> Result<Self, Error> {
        if !(1..=63).contains(&bits) {
            return Err(Error::parameter("bits", bits, Self::BITS));
        }
        if !(1..=16).contains(&step) {
            return Err(Error::parameter("step", step, Self::STEPS));
        }
        let table = Sketch::new(rows, width, seed)?;
        let levels = bits.div_ceil(step);
        let tables = Sketch::new(levels * rows, width, seed).map_err(|_| {
            let allowed = "such that levels * rows is at most 65536 and levels * rows * width at most 2**24";
            let given = format!("{levels} levels of rows = {rows} and width = {width}");
            Error::parameter("bits, step, rows and width", given, allowed)
        })?;
        let tables = TransformedTable { sketch: tables, mixture: Mixture::new(2, epsilon)? };
        Ok(Self { epsilon, bits: bits as u32, step: step as u32, rows: table.rows(), tables })
    }

    /// The rows of each table.
    #[must_use]
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// The randomisation of the entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.tables.mixture
    }

    /// The number of lengths.
    #[must_use]
    pub fn levels(self) -> u32 {
        self.last_level() + 1
    }

    fn last_level(self) -> u32 {
        (self.bits - 1) / self.step
    }

    /// The prefix that a value has at this level. Levels are random words and must not decide a branch, such as that of
    /// an overflow check.
    #[inline(always)]
    fn prefix(self, value: i64, level: u32) -> i64 {
        let longer = self.last_level().wrapping_sub(level);
        value.wrapping_shr(self.step.wrapping_mul(longer))
    }
}

/// What the sketch counts for a prefix: the fingerprint of its 8 bytes. The hash functions of rows are linear, so three
/// prefixes at equal distances would collide too often.
#[inline(always)]
fn hashed(prefix: i64) -> i64 {
    fingerprint(&prefix.to_le_bytes())
}

impl Family for PrefixExtension {
    const NAME: &'static str = "prefix_extension";
    const ABBREVIATION: &'static str = "pem";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::integer("bits", Self::BITS, 8, "the binary digits of a value"),
        Parameter::EPSILON,
        Parameter::integer("step", Self::STEPS, 4, "how many binary digits prefixes grow by").or(8),
        Sketch::ROWS,
        Sketch::WIDTH,
        Sketch::SEED,
    ];
    const NAME_OF_K: &'static str = "width";
    type Reports = Numbers;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.tables.sketch.width()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let own = [
            ("bits", self.bits.into()),
            ("rows", self.rows.into()),
            ("seed", self.tables.sketch.seed().into()),
            ("step", self.step.into()),
        ];
        self.mixture().fields().into_iter().chain(own).collect()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let [bits, step, rows, width, seed] =
            ["bits", "step", "rows", "width", "seed"].map(|name| arguments.integer(name));
        Self::new(bits?, arguments.real("epsilon")?, step?, rows?, width?, seed?)
    }

    fn from_fields(width: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        let [bits, step, rows, seed] = ["bits", "step", "rows", "seed"].map(|name| given.integer(name));
        Self::new(bits?, epsilon, step?, rows?, width, seed?)
    }

    fn epsilon(&self) -> f64 {
        self.mixture().likelihood_ratio().epsilon()
    }

    /// Checks in one pass without a branch that all values have at most `bits` binary digits.
    fn check(&self, values: &[i64]) -> Result<(), Error> {
        let bits = self.bits;
        let outside = values.iter().fold(0, |outside, &value| outside | (value as u64) >> bits);
        if declassify(Reason::Refusal, outside == 0) {
            Ok(())
        } else {
            Err(Error::data("values", format!("must be integers in [0, 2**bits) with bits = {bits}")))
        }
    }

    fn random_bits(&self) -> usize {
        symbols::random_bits(self)
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        symbols::randomise(self, self.report_bytes(), rng, values, first, out)
    }

    fn reports(&self) -> Numbers {
        self.tables.reports()
    }

    fn estimate_prefixes(
        &self,
        n: u64,
        counters: &[u64],
        level: u32,
        candidates: &[i64],
    ) -> Result<Option<Estimate>, Error> {
        if level > self.last_level() {
            return Ok(None);
        }
        let first = level * self.rows;
        let rows = self.tables.rows(counters, first..first + self.rows);
        let candidates = collected(candidates.iter().map(|&prefix| hashed(prefix)))?;
        let mut sample = sketch::estimate(rows, self.k(), self.tables.support(), &candidates)?;
        if sample.n == 0 {
            return Ok(Some(Estimate { n, ..sample }));
        }
        let (people, share) = (n as f64, n as f64 / sample.n as f64);
        for (count, error) in sample.counts.iter_mut().zip(&mut sample.standard_errors) {
            let frequency = (*count / sample.n as f64).clamp(0.0, 1.0);
            let scaled = share * *error;
            *error = (scaled * scaled + people * (share - 1.0) * frequency * (1.0 - frequency)).sqrt();
            *count *= share;
        }
        Ok(Some(Estimate { n, ..sample }))
    }
}

impl Symbols for PrefixExtension {
    fn mixture(&self) -> Mixture {
        self.tables.mixture
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.tables.sketch.cells())
    }

    /// j width + l.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        uniform(rng, self.tables.sketch.cells(), seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        self.tables.entry(seed as u32, |row| hashed(self.prefix(value, row / self.rows)))
    }
}
