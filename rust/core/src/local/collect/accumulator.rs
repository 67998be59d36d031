//! The collector's counters: how many reports support each value, that is, have its bit set or are the value; or, where
//! reports are not counted by value, how often each report occurred.
//!
//! The state consists of integers, so merging is associative and commutative, and the result is bit-identical however
//! the reports were split. Adding the same reports twice, or merging the same state twice, counts them twice.
//!
//! Reports are private already; nothing here needs to be constant-time.

use dpnoise_kernels::memory::{collected, zeroed};

use crate::error::Error;
use crate::instruction_set;
use crate::local::density::DensityEstimate;
use crate::local::estimate::{Estimate, HeavyHitters};
use crate::local::families::Protocol;
use crate::local::mean::MeanEstimate;
use crate::local::range::RangeEstimate;
use crate::threads::{check_threads, on_threads};

/// Below this many bytes of packed bits, or what takes as long, a further thread costs more than it gains.
const BYTES_PER_THREAD: usize = 1 << 21;

/// What takes some tens of milliseconds.
const PIECE_BYTES: usize = 1 << 27;

/// Counts reports of one protocol.
#[derive(Debug, PartialEq)]
pub struct Accumulator {
    pub(crate) protocol: Protocol,
    pub(crate) n: u64,
    /// One for every reason of the family.
    pub(crate) rejected: Vec<u64>,
    /// One for every value that is counted, none above `n`.
    pub(crate) counters: Vec<u64>,
    /// Of one of several attributes, how many people those who reported on it are a random sample of.
    people: Option<u64>,
}

impl Accumulator {
    /// No reports yet.
    ///
    /// # Errors
    /// [`Error::Allocation`] when there is no memory for the [`counter_bytes`](Protocol::counter_bytes).
    pub fn new(protocol: Protocol) -> Result<Self, Error> {
        Ok(Self::of(protocol, 0, zeroed(protocol.counters())?))
    }

    fn of(protocol: Protocol, n: u64, counters: Vec<u64>) -> Self {
        Self { protocol, n, rejected: vec![0; protocol.rejection_reasons().len()], counters, people: None }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn copy(&self) -> Result<Self, Error> {
        let counters = collected(self.counters.iter().copied())?;
        Ok(Self { rejected: self.rejected.clone(), people: self.people, ..Self::of(self.protocol, self.n, counters) })
    }

    /// The counters of a random sample of `people`, for estimates about all of them.
    pub(in crate::local) fn sampled_from(self, people: u64) -> Self {
        Self { people: Some(people), ..self }
    }

    /// The counters that a state has.
    pub(super) fn from_state(protocol: Protocol, n: u64, rejected: Vec<u64>, counters: Vec<u64>) -> Self {
        Self { rejected, ..Self::of(protocol, n, counters) }
    }

    /// Refuses counters of a sample, which say less than those of which they are a part.
    pub(super) fn check_whole(&self) -> Result<(), Error> {
        match self.people {
            None => Ok(()),
            Some(_) => Err(Error::State("the counters of one of several attributes are for estimates alone".into())),
        }
    }

    /// The accumulator of `n` reports, of which `counters[i]` support value i.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there are as many counters as the protocol has, and they are possible for `n`
    /// reports.
    pub fn from_counters(protocol: Protocol, n: u64, counters: Vec<u64>) -> Result<Self, Error> {
        if counters.len() != protocol.counters() {
            let allowed = format!("{} counters", protocol.counters());
            return Err(Error::parameter("counters", format!("{} counters", counters.len()), allowed));
        }
        if !protocol.are_possible(n, &counters) {
            return Err(Error::parameter("counters", "impossible ones", format!("possible for n = {n} reports")));
        }
        Ok(Self::of(protocol, n, counters))
    }

    /// Adds a matrix of reports with rows of `row_bytes` bytes, on up to `threads` threads.
    ///
    /// A row whose unused bits are not all zero, or whose number is not that of a report, is malformed and is counted
    /// as rejected.
    ///
    /// # Errors
    /// [`Error::Parameter`] for rows of another width than the protocol's, bytes that are not whole rows, or zero
    /// threads; [`Error::State`] when there would be more than 2^64 - 1 reports; [`Error::Allocation`]. Then nothing has
    /// been added.
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
        let threads = threads.min(self.most_threads(rows));
        let part_bytes = rows.div_ceil(threads).max(1) * width;
        let instructions = instruction_set::current()?;
        let protocol = &self.protocol;
        let parts = on_threads(reports.chunks(part_bytes).collect(), |part| protocol.count(instructions, part));
        let parts: Vec<(Vec<u64>, u64)> = parts.into_iter().collect::<Result<_, Error>>()?;
        for (counters, rejected) in parts {
            // Counters stay at most n, and n at most the total, which fits.
            self.counters.iter_mut().zip(counters).for_each(|(total, count)| *total += count);
            self.rejected[0] += rejected;
        }
        self.n = total - self.rejected();
        Ok(())
    }

    /// How many threads `rows` reports are worth. Each has counters of its own, which must not take more memory than the
    /// reports are worth.
    fn most_threads(&self, rows: usize) -> usize {
        1 + rows.saturating_mul(self.protocol.effort(rows)) / BYTES_PER_THREAD.max(self.protocol.counter_bytes())
    }

    /// How many of `rows` reports make a piece: a caller who adds them piece by piece may end in between.
    pub(super) fn piece(&self, rows: usize) -> usize {
        (PIECE_BYTES.max(8 * self.protocol.counter_bytes()) / self.protocol.effort(rows).max(1)).max(1)
    }

    /// Counts `count` rows as rejected for one of the reasons of the protocol's family. This is for inputs that are not
    /// reports and cannot be passed to [`Accumulator::add`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown reason; [`Error::State`] when there would be more than 2^64 - 1 reports. Then
    /// nothing has been added.
    pub fn reject(&mut self, reason: &str, count: u64) -> Result<(), Error> {
        let reasons = self.protocol.rejection_reasons();
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
        other.check_whole()?;
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

    /// The number of people whom estimates are about: of one of several attributes that each person reports one of, all
    /// who reported, and otherwise [`n`](Self::n).
    #[must_use]
    pub fn people(&self) -> u64 {
        self.people.unwrap_or(self.n)
    }

    /// The number of reports rejected.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// The number of reports rejected, by reason; reasons that did not occur are left out.
    pub fn rejected_reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = self.protocol.rejection_reasons().into_iter();
        reasons.zip(self.rejected.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// How many reports support each value, or how often each report occurred.
    #[must_use]
    pub fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// The same, without a copy.
    #[must_use]
    pub fn into_counters(self) -> Vec<u64> {
        self.counters
    }

    /// Unbiased estimates of how many people have each value: k of them, for randomised response "no" and "yes"; `None`
    /// where reports are not counted by value.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn estimate(&self) -> Result<Option<Estimate>, Error> {
        Ok(self.protocol.estimate(self.n, &self.counters)?.map(|estimate| self.of_all_people(estimate)))
    }

    /// The mean of people's numbers; `None` if reports do not stand for numbers in [-1, 1].
    ///
    /// # Errors
    /// [`Error::Data`] when no report was counted.
    pub fn estimate_mean(&self) -> Result<Option<MeanEstimate>, Error> {
        let law = self.protocol.mean_law();
        let estimate = law.map(|law| law.estimate(self.n, &self.counters)).transpose()?;
        Ok(estimate.map(|estimate| MeanEstimate { n: self.people(), ..estimate }))
    }

    /// Estimates, unbiased over reports and hash functions, of how many people have each of the `candidates`, which are
    /// fingerprints of texts; `None` if the protocol is not a sketch.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn estimate_candidates(&self, candidates: &[i64]) -> Result<Option<Estimate>, Error> {
        let estimate = self.protocol.estimate_candidates(&self.counters, candidates)?;
        Ok(estimate.map(|estimate| self.of_all_people(estimate)))
    }

    /// How many people have each value and each range of values; `None` if the protocol is not of ranges.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn estimate_ranges(&self) -> Result<Option<RangeEstimate>, Error> {
        let ranges = self.protocol.estimate_ranges(self.n, &self.counters)?;
        Ok(ranges.map(|ranges| ranges.of_all_people(self.people())))
    }

    /// How people's numbers in [0, 1] are distributed, with or without `smoothing` of neighbouring bins in each step;
    /// `None` if the protocol is not the square wave.
    ///
    /// # Errors
    /// [`Error::Data`] when no report was counted; [`Error::Allocation`].
    pub fn estimate_density(&self, smoothing: bool) -> Result<Option<DensityEstimate>, Error> {
        let density = self.protocol.estimate_density(self.n, &self.counters, smoothing)?;
        Ok(density.map(|density| DensityEstimate { n: self.people(), ..density }))
    }

    /// The frequent values of [`PrefixExtension`](crate::local::PrefixExtension); `None` for another protocol.
    ///
    /// A prefix is extended, and a value is in the result, if the lower end of its interval is above zero, where all
    /// intervals of prefixes of that length hold together with the probability `level`. At most 2^20 prefixes of a
    /// length are tried, those that extend the most frequent ones.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < level < 1; [`Error::Allocation`].
    pub fn estimate_prefixes(&self, level: f64) -> Result<Option<HeavyHitters>, Error> {
        self.protocol.estimate_prefixes(self.n, &self.counters, level, self.people)
    }

    fn of_all_people(&self, estimate: Estimate) -> Estimate {
        match self.people {
            Some(people) => estimate.of_all_people(people),
            None => estimate,
        }
    }

    /// All reports seen.
    pub(super) fn total(&self) -> u64 {
        self.n + self.rejected()
    }

    /// All reports seen, and `more`, if the counters have room for them.
    pub(super) fn total_with(&self, more: u64) -> Result<u64, Error> {
        self.check_whole()?;
        let most = self.protocol.most_reports();
        let total = self.total().checked_add(more).filter(|&total| total <= most);
        total.ok_or_else(|| Error::State(format!("there would be more than {most} reports")))
    }

    fn describe(&self) -> String {
        let Self { protocol, .. } = self;
        let (name, id) = (protocol.name(), protocol.spec_id_hex());
        format!("{name} with {} = {}, specification {id}", protocol.name_of_k(), protocol.k())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::OptimizedUnaryEncoding;

    #[test]
    fn further_threads_take_no_more_memory_than_the_reports() {
        for (k, rows, threads) in
            [(15, 1000, 1), (15, 1 << 20, 2), (1 << 21, 1, 1), (1 << 21, 256, 5), (1 << 24, 63, 1)]
        {
            let protocol = Protocol::OptimizedUnaryEncoding(OptimizedUnaryEncoding::new(k, 1.0).unwrap());
            let accumulator = Accumulator::new(protocol).unwrap();
            assert_eq!(accumulator.most_threads(rows), threads, "{k} {rows}");
            let counters = (threads - 1) * accumulator.protocol.counter_bytes();
            assert!(counters <= rows * accumulator.protocol.report_bytes());
        }
    }
}
