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
use dpnoise_kernels::memory::{collected, room};
use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::mixture::{Mixture, index_bytes, uniform};
use crate::local::estimate::{Estimate, HeavyHitters};
use crate::local::normal::normal_quantile;
use crate::local::reports::hadamard::TransformedTable;
use crate::local::reports::numbers::Numbers;
use crate::local::reports::sketch::{self, Sketch};
use crate::local::reports::symbols::{self, Symbols};
use crate::local::reports::text_hash::fingerprint;
use crate::local::spec::{Field, Given};
use crate::rng::AnyRng;

/// The most prefixes of a length that are tried: crafted reports that support all of them cost only seconds.
const MOST_CANDIDATES: usize = 1 << 20;

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

    /// Estimates of how many people have values with each of the `candidates` as a prefix, all of this level.
    fn count_prefixes(&self, n: u64, counters: &[u64], level: u32, candidates: &[i64]) -> Result<Estimate, Error> {
        let first = level * self.rows;
        let rows = self.tables.rows(counters, first..first + self.rows);
        let candidates = collected(candidates.iter().map(|&prefix| hashed(prefix)))?;
        let mut sample = sketch::estimate(rows, self.tables.sketch.width(), self.tables.support(), &candidates)?;
        if sample.n == 0 {
            return Ok(Estimate { n, ..sample });
        }
        let (people, share) = (n as f64, n as f64 / sample.n as f64);
        for (count, error) in sample.counts.iter_mut().zip(&mut sample.standard_errors) {
            let frequency = (*count / sample.n as f64).clamp(0.0, 1.0);
            let scaled = share * *error;
            *error = (scaled * scaled + people * (share - 1.0) * frequency * (1.0 - frequency)).sqrt();
            *count *= share;
        }
        Ok(Estimate { n, ..sample })
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

/// The `prefixes`, each of them extended by `grown` binary digits in all ways.
fn extensions(prefixes: &[i64], grown: u32) -> Result<Vec<i64>, Error> {
    let mut extended = room(prefixes.len() << grown)?;
    extended.extend(prefixes.iter().flat_map(|prefix| (0..1 << grown).map(move |digits| prefix << grown | digits)));
    Ok(extended)
}

/// The candidates whose intervals, which extend `quantile` standard errors, are above zero; those of larger counts
/// first.
fn significant(candidates: &[i64], estimate: &Estimate, quantile: f64, complete: bool) -> Result<HeavyHitters, Error> {
    let Estimate { counts, standard_errors, n } = estimate;
    let mut order = room(candidates.len())?;
    order.extend((0..candidates.len()).filter(|&i| counts[i] - quantile * standard_errors[i] > 0.0));
    // Those of the same count stay in their order. A stable sort would take memory of its own.
    order.sort_unstable_by(|&a, &b| counts[b].total_cmp(&counts[a]).then(a.cmp(&b)));
    let of = |numbers: &[f64]| collected(order.iter().map(|&i| numbers[i]));
    let estimate = Estimate { counts: of(counts)?, standard_errors: of(standard_errors)?, n: *n };
    let values = collected(order.iter().map(|&i| candidates[i]))?;
    Ok(HeavyHitters { values, estimate, quantile, tested: candidates.len(), complete })
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
        level: f64,
        people: Option<u64>,
    ) -> Result<Option<HeavyHitters>, Error> {
        let nothing = Estimate { counts: vec![], standard_errors: vec![], n };
        let mut found = HeavyHitters {
            values: collected([0].into_iter())?, // the empty prefix, which everybody has
            estimate: nothing,
            quantile: 0.0,
            tested: 0,
            complete: true,
        };
        for length in 0..self.levels() {
            let grown = if length == 0 { (self.bits - 1) % self.step + 1 } else { self.step };
            let extended = MOST_CANDIDATES >> grown;
            found.complete &= found.values.len() <= extended;
            found.values.truncate(extended);
            let candidates = extensions(&found.values, grown)?;
            let mut estimate = self.count_prefixes(n, counters, length, &candidates)?;
            if let Some(people) = people {
                estimate = estimate.of_all_people(people);
            }
            let quantile = normal_quantile(level, candidates.len() as u64)?;
            found = significant(&candidates, &estimate, quantile, found.complete)?;
        }
        Ok(Some(found))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::{Accumulator, Protocol, Values};
    use crate::rng::SeededRng;

    /// The counters of reports on values, so many of each.
    fn collected_of(protocol: PrefixExtension, values: &[(i64, usize)], seed: u64) -> Accumulator {
        let values: Vec<i64> = values.iter().flat_map(|&(value, people)| vec![value; people]).collect();
        let mut reports = vec![0; values.len() * protocol.report_bytes()];
        let protocol = Protocol::from(protocol);
        protocol.perturb_with(Values::Integers(&values), &mut reports, &mut SeededRng::new(seed).unwrap()).unwrap();
        let mut state = Accumulator::new(protocol).unwrap();
        state.add(&reports, protocol.report_bytes(), 1).unwrap();
        state
    }

    #[test]
    fn frequent_values_are_found_whatever_the_lengths() {
        for (bits, step) in [(1, 1), (7, 8), (8, 8), (20, 8), (20, 7), (63, 16)] {
            let protocol = PrefixExtension::new(bits, 8.0, step, 256, 64, 0).unwrap();
            let values = [((1 << (bits - 1) | ((1 << (bits - 1)) - 1)), 40_000), (((1u64 << bits) / 3) as i64, 20_000)];
            let state = collected_of(protocol, &values, 1);
            let found = state.estimate_prefixes(1.0 - 1e-9).unwrap().unwrap();
            assert_eq!(found.values, values.map(|value| value.0), "{bits} {step}");
            for ((count, error), (_, people)) in
                found.estimate.counts.iter().zip(&found.estimate.standard_errors).zip(values)
            {
                assert!((count - people as f64).abs() < 7.0 * error, "{bits} {step}: {count} {error}");
            }
            assert!(found.complete && found.quantile > 6.0 && found.estimate.n == 60_000);
            let of_all = state.sampled_from(120_000).estimate_prefixes(1.0 - 1e-9).unwrap().unwrap();
            assert_eq!((of_all.values, of_all.estimate.counts[0]), (found.values, 2.0 * found.estimate.counts[0]));
        }
    }

    #[test]
    fn candidates_are_the_most_frequent_ones_in_order() {
        let estimate =
            Estimate { counts: vec![2.0, 5.0, 9.0, 5.0, 1.0], standard_errors: vec![1.0, 1.0, 5.0, 1.0, 0.1], n: 9 };
        let found = significant(&[10, 11, 12, 13, 14], &estimate, 2.0, true).unwrap();
        assert_eq!((found.values, found.estimate.counts), (vec![11, 13, 14], vec![5.0, 5.0, 1.0]));
        assert_eq!(extensions(&[1, 0], 2).unwrap(), [4, 5, 6, 7, 0, 1, 2, 3]);
    }

    /// The first column of a Hadamard matrix has the same entry for all values.
    #[test]
    fn reports_that_support_everything_are_not_all_tried() {
        let protocol = PrefixExtension::new(16, 4.0, 4, 64, 16, 0).unwrap();
        let mut state = collected_of(protocol, &[(0xbeef, 8000)], 2);
        let width = protocol.report_bytes();
        let crafted = (0..4 * 64).flat_map(|row: u32| (row * 16 * 2).to_le_bytes()[..width].to_vec());
        state.add(&crafted.collect::<Vec<u8>>().repeat(40), width, 1).unwrap();
        let found = state.estimate_prefixes(0.95).unwrap().unwrap();
        assert!(found.tested <= MOST_CANDIDATES && !found.values.is_empty());
    }

    /// Linear hash functions of the values themselves would: 68 % of the intervals held.
    #[test]
    fn neighbouring_frequent_values_do_not_spoil_intervals() {
        let (heavy, mut held) = (1000..1016, 0);
        for seed in 0..10 {
            let protocol = PrefixExtension::new(16, 16.0, 16, 256, 64, seed).unwrap();
            let state = collected_of(protocol, &heavy.clone().map(|value| (value, 6000)).collect::<Vec<_>>(), seed);
            let candidates: Vec<i64> = (heavy.start - 16..heavy.end + 16).collect();
            let found = protocol.count_prefixes(state.n(), state.counters(), 0, &candidates).unwrap();
            for ((candidate, count), error) in candidates.iter().zip(&found.counts).zip(&found.standard_errors) {
                let truth = if heavy.contains(candidate) { 6000.0 } else { 0.0 };
                held += usize::from((count - truth).abs() < 1.96 * error);
            }
        }
        assert!(held > 10 * 48 * 9 / 10, "{held}");
    }
}
