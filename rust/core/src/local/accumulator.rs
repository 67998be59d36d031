//! The collector's counters: how many reports support each value, because its bit is set or because they are it; or, where
//! reports are not counted by value, how often each report came.
//!
//! The state is whole numbers alone, so merging is associative and commutative, and the result is bit-identical however
//! the reports were split. Adding the same reports, or merging the same state, twice counts them twice.
//!
//! Reports are private already; nothing here needs to be constant-time.

use super::client::check_threads;
use super::estimate::Estimate;
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use super::{
    cohorts, d_bit_flip, hadamard_response, hash_counts, hierarchical_range, sketch, subset_selection, symbols,
};
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::threads::on_threads;
use dpnoise_kernels::arch::popcount::add_column_counts;

/// Below this many bytes of packed bits, or what takes as long, a further thread costs more than it gains.
const BYTES_PER_THREAD: usize = 1 << 21;

/// How many rows are searched for malformed ones before the others are counted together: enough for counting to be fast
/// wherever the malformed ones are. They are copied for that, so they have at most so many bytes, or are one row.
const ROWS_AT_ONCE: usize = 1 << 12;
const BYTES_AT_ONCE: usize = 1 << 24;

/// Counts reports of one protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulator {
    pub(super) protocol: Protocol,
    pub(super) n: u64,
    /// One for every reason of the family.
    pub(super) rejected: Vec<u64>,
    /// One for every value that is counted, none above `n`.
    pub(super) counters: Vec<u64>,
}

impl Accumulator {
    /// No reports yet.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        let rejected = vec![0; protocol.family().rejection_reasons().len()];
        Self { protocol, n: 0, rejected, counters: vec![0; protocol.counters()] }
    }

    /// What `n` reports leave behind of which `counters[i]` support value i.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there are as many counters as the protocol has, and `n` reports can lead to them.
    pub fn from_counters(protocol: Protocol, n: u64, counters: Vec<u64>) -> Result<Self, Error> {
        if counters.len() != protocol.counters() {
            let allowed = format!("{} counters", protocol.counters());
            return Err(Error::parameter("counters", format!("{} counters", counters.len()), allowed));
        }
        if !are_possible(&protocol, n, &counters) {
            return Err(Error::parameter("counters", "others", format!("what n = {n} reports can lead to")));
        }
        Ok(Self { n, counters, ..Self::new(protocol) })
    }

    /// Adds a matrix of reports with rows of `row_bytes` bytes, on up to `threads` threads.
    ///
    /// A row whose unused bits are not all zero, or whose number is not that of a report, is malformed: it is not counted,
    /// but counted as rejected.
    ///
    /// # Errors
    /// [`Error::Parameter`] for rows of another width than the protocol's, bytes that are no whole rows, or no threads;
    /// [`Error::State`] when there would be more than 2^64 - 1 reports. Then nothing has been added.
    pub fn add(&mut self, reports: &[u8], row_bytes: usize, threads: usize) -> Result<(), Error> {
        check_threads(threads)?;
        let width = self.protocol.report_bytes();
        if row_bytes != width {
            let allowed = format!("rows of {width} bytes ({})", self.describe());
            return Err(Error::parameter("reports", format!("rows of {row_bytes} bytes"), allowed));
        }
        if !reports.len().is_multiple_of(width) {
            let allowed = format!("whole rows of {width} bytes");
            return Err(Error::parameter("reports", format!("{} bytes", reports.len()), allowed));
        }
        let rows = reports.len() / width;
        let total = self.total_with(rows as u64)?;
        let threads = threads.min(1 + effort(&self.protocol, rows) / BYTES_PER_THREAD);
        let part_bytes = rows.div_ceil(threads).max(1) * width;
        let instructions = instruction_set::current()?;
        let protocol = &self.protocol;
        let parts = on_threads(reports.chunks(part_bytes).collect(), |part| count(instructions, protocol, part));
        for (counters, rejected) in parts {
            // Counters stay at most n, and n at most the total, which fits.
            self.counters.iter_mut().zip(counters).for_each(|(total, count)| *total += count);
            self.rejected[0] += rejected;
        }
        self.n = total - self.rejected();
        Ok(())
    }

    /// Counts `count` rows as rejected for one of the reasons of the protocol's family; for those that are no report and
    /// cannot be given to [`Accumulator::add`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown reason; [`Error::State`] when there would be more than 2^64 - 1 reports. Then
    /// nothing has been added.
    pub fn reject(&mut self, reason: &str, count: u64) -> Result<(), Error> {
        let reasons = self.protocol.family().rejection_reasons();
        let Some(index) = reasons.iter().position(|&known| known == reason) else {
            return Err(Error::parameter("reason", format!("{reason:?}"), format!("one of {}", reasons.join(", "))));
        };
        self.total_with(count)?;
        self.rejected[index] += count;
        Ok(())
    }

    /// Adds the counts of `other`.
    ///
    /// # Errors
    /// [`Error::State`] when `other` is of another protocol, or there would be more than 2^64 - 1 reports. Then nothing
    /// has been added.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.protocol != other.protocol {
            let (own, others) = (self.describe(), other.describe());
            return Err(Error::State(format!("cannot merge states of two protocols: {own}, and {others}")));
        }
        self.total_with(other.total())?;
        self.n += other.n;
        self.rejected.iter_mut().zip(&other.rejected).for_each(|(total, count)| *total += count);
        self.counters.iter_mut().zip(&other.counters).for_each(|(total, count)| *total += count);
        Ok(())
    }

    /// The protocol of the reports.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The number of reports counted.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The number of reports rejected.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// The number of reports rejected, by reason; reasons that did not occur are left out.
    pub fn rejected_reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = self.protocol.family().rejection_reasons().into_iter();
        reasons.zip(self.rejected.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// How many reports support each value, or how often each report came.
    #[must_use]
    pub fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// Unbiased estimates of how many people have each value: k of them, for randomised response "no" and "yes"; none
    /// where reports are not counted by value.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        let estimate = self.protocol.law()?.estimate(self.n, &self.counters);
        if self.protocol.family() != Family::RandomizedResponse {
            return Some(estimate);
        }
        let (yes, error) = (estimate.counts[0], estimate.standard_errors[0]);
        Some(Estimate { counts: vec![self.n as f64 - yes, yes], standard_errors: vec![error; 2], n: self.n })
    }

    /// Estimates, unbiased over reports and hash functions, of how many people have each of the `candidates`, which are
    /// fingerprints of texts; none where reports are not those of a sketch.
    #[must_use]
    pub fn estimate_candidates(&self, candidates: &[i64]) -> Option<Estimate> {
        let width = self.protocol.k();
        match self.protocol.randomizer() {
            Randomizer::CountMean(sketch) => {
                let support = sketch.flip().support();
                Some(sketch::estimate(sketch.rows(&self.counters), width, support, candidates))
            }
            Randomizer::HadamardCountMean(sketch) => {
                let rows = sketch.rows(&self.counters, 0..sketch.sketch().rows());
                Some(sketch::estimate(rows, width, sketch.support(), candidates))
            }
            _ => None,
        }
    }

    /// Estimates of how many people have values that begin like each of the `candidates`, prefixes of one level of
    /// [`prefix_extension`](super::prefix_extension); none where reports are of another protocol, or there is no such level.
    #[must_use]
    pub fn estimate_prefixes(&self, level: u32, candidates: &[i64]) -> Option<Estimate> {
        match self.protocol.randomizer() {
            Randomizer::Prefixes(prefixes) if level < prefixes.levels() => {
                Some(prefixes.estimate(&self.counters, self.n, level, candidates))
            }
            _ => None,
        }
    }

    /// All reports seen.
    fn total(&self) -> u64 {
        self.n + self.rejected()
    }

    /// All reports seen, and `more`, if the counters have room for them.
    fn total_with(&self, more: u64) -> Result<u64, Error> {
        let most = self.protocol.randomizer().most_reports();
        let total = self.total().checked_add(more).filter(|&total| total <= most);
        total.ok_or_else(|| Error::State(format!("there would be more than {most} reports")))
    }

    fn describe(&self) -> String {
        let (family, id) = (self.protocol.family(), self.protocol.spec_id_hex());
        format!("{} with {} = {}, specification {id}", family.name(), family.name_of_k(), self.protocol.k())
    }
}

/// Whether `n` reports can lead to these counters.
pub(super) fn are_possible(protocol: &Protocol, n: u64, counters: &[u64]) -> bool {
    if n > protocol.randomizer().most_reports() {
        return false;
    }
    match protocol.randomizer() {
        Randomizer::BitFlip(_)
        | Randomizer::Hashing(_)
        | Randomizer::Hadamard(_)
        | Randomizer::Subset(_)
        | Randomizer::LongitudinalFlips { .. }
        | Randomizer::LongitudinalHashing { .. }
        | Randomizer::SampledFlips(_) => counters.iter().all(|&count| count <= n),
        Randomizer::NoisySums(sums) => {
            let most = u128::from(n) * u128::from(sums.largest());
            counters.iter().all(|&sum| u128::from(sum) <= most)
        }
        // Each report counts once.
        Randomizer::Mixture(_)
        | Randomizer::Window(_)
        | Randomizer::Hybrid(_)
        | Randomizer::HadamardCountMean(_)
        | Randomizer::Prefixes(_) => count_once(n, counters),
        Randomizer::CountMean(_) | Randomizer::Bloom(_) => {
            cohorts::are_possible(n, 1 + protocol.k() as usize, counters)
        }
        Randomizer::Hierarchy(hierarchy) => {
            let between = counters.iter().enumerate().filter(|&(number, _)| !hierarchy.is_report(number as u64));
            count_once(n, counters) && between.map(|(_, &count)| count).all(|count| count == 0)
        }
    }
}

/// Whether the counters add up to `n`.
fn count_once(n: u64, counters: &[u64]) -> bool {
    counters.iter().map(|&count| u128::from(count)).sum::<u128>() == u128::from(n)
}

/// The counters of the well-formed rows, and the number of the others.
fn count(instructions: InstructionSet, protocol: &Protocol, reports: &[u8]) -> (Vec<u64>, u64) {
    let width = protocol.report_bytes();
    let mut counters = vec![0; protocol.counters()];
    let rejected = match protocol.randomizer() {
        Randomizer::BitFlip(_) | Randomizer::LongitudinalFlips { .. } => {
            return count_bits(instructions, protocol, reports);
        }
        Randomizer::CountMean(_) | Randomizer::Bloom(_) => cohorts::count(instructions, reports, width, &mut counters),
        Randomizer::Mixture(_)
        | Randomizer::Window(_)
        | Randomizer::Hybrid(_)
        | Randomizer::HadamardCountMean(_)
        | Randomizer::Prefixes(_) => symbols::count_numbers(reports, width, &mut counters),
        Randomizer::Hashing(hashing) | Randomizer::LongitudinalHashing { hashing, .. } => {
            hash_counts::count(instructions, hashing, reports, width, &mut counters)
        }
        Randomizer::Hadamard(hadamard) => hadamard_response::count(hadamard, reports, width, &mut counters),
        Randomizer::Subset(subset) => subset_selection::count(instructions, subset, reports, width, &mut counters),
        Randomizer::Hierarchy(hierarchy) => hierarchical_range::count(hierarchy, reports, width, &mut counters),
        Randomizer::NoisySums(sums) => sums.count(reports, &mut counters),
        Randomizer::SampledFlips(flips) => d_bit_flip::count(instructions, flips, reports, width, &mut counters),
    };
    (counters, rejected)
}

/// About how many bytes of packed bits are counted in the time that these reports take.
fn effort(protocol: &Protocol, rows: usize) -> usize {
    rows.saturating_mul(match protocol.randomizer() {
        Randomizer::BitFlip(_) | Randomizer::LongitudinalFlips { .. } | Randomizer::NoisySums(_) => {
            protocol.report_bytes()
        }
        Randomizer::Subset(_) | Randomizer::SampledFlips(_) => 4 * protocol.report_bytes(),
        Randomizer::Mixture(_)
        | Randomizer::Hadamard(_)
        | Randomizer::Window(_)
        | Randomizer::Hybrid(_)
        | Randomizer::Hierarchy(_)
        | Randomizer::HadamardCountMean(_)
        | Randomizer::Prefixes(_) => 2,
        Randomizer::CountMean(_) | Randomizer::Bloom(_) => 64 + protocol.report_bytes(),
        Randomizer::Hashing(hashing) | Randomizer::LongitudinalHashing { hashing, .. } => {
            hash_counts::effort(hashing, rows, protocol.k() as usize)
        }
    })
}

/// Malformed rows are looked for only when the count of an unused bit says that there are some.
fn count_bits(instructions: InstructionSet, protocol: &Protocol, reports: &[u8]) -> (Vec<u64>, u64) {
    let (width, unused) = (protocol.report_bytes(), protocol.unused_bits());
    let mut counters = vec![0; 8 * width];
    let mut rejected = 0;
    add_column_counts(instructions, reports, width, &mut counters);
    if counters[protocol.report_bits()..].iter().any(|&count| count > 0) {
        counters.fill(0);
        rejected = count_well_formed(instructions, reports, width, &mut counters, |row| row[width - 1] & unused != 0);
    }
    counters.truncate(protocol.report_bits());
    (counters, rejected)
}

/// Counts the bits of rows that are not malformed, and gives the number of the others.
pub(super) fn count_well_formed(
    instructions: InstructionSet,
    rows: &[u8],
    width: usize,
    counters: &mut [u64],
    is_malformed: impl Fn(&[u8]) -> bool,
) -> u64 {
    let mut rejected = 0;
    for some in rows.chunks(ROWS_AT_ONCE.min(BYTES_AT_ONCE / width).max(1) * width) {
        let good = some.chunks_exact(width).filter(|row| !is_malformed(row));
        let bad = some.len() / width - good.clone().count();
        if bad == 0 {
            add_column_counts(instructions, some, width, counters);
        } else {
            add_column_counts(instructions, &good.collect::<Vec<_>>().concat(), width, counters);
        }
        rejected += bad as u64;
    }
    rejected
}
