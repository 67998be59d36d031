//! The collector's counters of several attributes, and of either kind of specification.

use std::sync::Arc;

use dpnoise_kernels::memory::room;

use super::accumulator::Accumulator;
use super::message;
use crate::error::Error;
use crate::local::any_protocol::{AnyProtocol, Randomiser};
use crate::local::attributes::{Attributes, Malformed, Scheme};
use crate::local::families::{WRONG_HEADER, WRONG_LENGTH};

/// Why reports on several attributes are rejected before any of their protocols sees them.
const REASONS: [&str; 4] = ["unknown attribute", "padding set", WRONG_LENGTH, WRONG_HEADER];

/// Counts reports on several attributes.
#[derive(Debug, PartialEq)]
pub struct AttributesAccumulator {
    pub(super) attributes: Arc<Attributes>,
    /// One for each attribute.
    pub(super) parts: Vec<Accumulator>,
    /// One for each of [`REASONS`].
    pub(super) rejected: [u64; REASONS.len()],
}

impl AttributesAccumulator {
    fn new(attributes: Arc<Attributes>) -> Result<Self, Error> {
        let mut parts = room(attributes.protocols().len())?;
        for &protocol in attributes.protocols() {
            parts.push(Accumulator::new(protocol)?);
        }
        Ok(Self { attributes, parts, rejected: [0; REASONS.len()] })
    }

    fn copy(&self) -> Result<Self, Error> {
        let mut parts = room(self.parts.len())?;
        for part in &self.parts {
            parts.push(part.copy()?);
        }
        Ok(Self { attributes: Arc::clone(&self.attributes), parts, rejected: self.rejected })
    }

    /// Adds reports side by side, and as many rejected ones.
    fn add(&mut self, reports: &[u8], row_bytes: usize, threads: usize, wrong: [u64; 2]) -> Result<(), Error> {
        let width = self.attributes.report_bytes();
        if row_bytes != width || !reports.len().is_multiple_of(width) {
            let allowed = format!("whole rows of {width} bytes");
            return Err(Error::parameter(
                "reports",
                format!("{} bytes in rows of {row_bytes}", reports.len()),
                allowed,
            ));
        }
        let (parts, Malformed { unknown, padded }) = self.attributes.parts(reports)?;
        let mut added = Self::new(Arc::clone(&self.attributes))?;
        added.rejected = [unknown, padded, wrong[0], wrong[1]];
        for (counted, part) in added.parts.iter_mut().zip(parts) {
            counted.add(&part, counted.protocol().report_bytes(), threads)?;
        }
        self.merge(&added)
    }

    /// Adds the counts of `other`, which is of the same attributes.
    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        for (part, other) in self.parts.iter().zip(&other.parts) {
            part.total_with(other.total())?;
        }
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            part.merge(other)?; // there is room, as was just found
        }
        self.rejected.iter_mut().zip(other.rejected).for_each(|(total, count)| *total = total.saturating_add(count));
        Ok(())
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The number of reports counted about each attribute.
    pub fn n_by_attribute(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map(Accumulator::n)
    }

    /// A copy of the counters of the attribute at `position`, for estimates: of [`Scheme::Sampled`] about all who
    /// reported, of whom those who reported on the attribute are a random sample.
    ///
    /// # Errors
    /// [`Error::Parameter`] when there are not so many attributes; [`Error::Allocation`].
    pub fn attribute(&self, position: usize) -> Result<Accumulator, Error> {
        let found = self.parts.get(position);
        let allowed = || format!("below {}, the number of attributes", self.parts.len());
        let part = found.ok_or_else(|| Error::parameter("position", position, allowed()))?.copy()?;
        Ok(match self.attributes.scheme() {
            Scheme::Sampled => part.sampled_from(self.n()),
            Scheme::Split => {
                let n = part.n();
                part.sampled_from(n)
            }
        })
    }

    /// The number of reports counted, of [`Scheme::Split`] also those with malformed parts.
    fn n(&self) -> u64 {
        match self.attributes.scheme() {
            Scheme::Sampled => self.parts.iter().map(Accumulator::n).fold(0, u64::saturating_add),
            Scheme::Split => self.parts.iter().map(Accumulator::total).max().unwrap_or(0),
        }
    }

    /// The number of reports or parts rejected by reason, each reason once.
    fn rejected_reasons(&self) -> Vec<(&'static str, u64)> {
        let own = REASONS.into_iter().zip(self.rejected).filter(|&(_, count)| count > 0);
        let mut reasons: Vec<(&'static str, u64)> = vec![];
        for (reason, count) in own.chain(self.parts.iter().flat_map(Accumulator::rejected_reasons)) {
            match reasons.iter_mut().find(|known| known.0 == reason) {
                Some((_, total)) => *total = total.saturating_add(count),
                None => reasons.push((reason, count)),
            }
        }
        reasons
    }
}

/// Counts reports of what was announced, of either kind.
#[derive(Debug, PartialEq)]
pub struct AnyAccumulator {
    pub(super) protocol: AnyProtocol,
    pub(super) counted: Counted,
}

#[derive(Debug, PartialEq)]
pub(super) enum Counted {
    One(Accumulator),
    Several(AttributesAccumulator),
}

impl From<Accumulator> for AnyAccumulator {
    fn from(counted: Accumulator) -> Self {
        Self { protocol: (*counted.protocol()).into(), counted: Counted::One(counted) }
    }
}

impl AnyAccumulator {
    /// No reports yet.
    ///
    /// # Errors
    /// [`Error::Allocation`] when there is no memory for the counters.
    pub fn new(protocol: AnyProtocol) -> Result<Self, Error> {
        let counted = match protocol.randomiser() {
            Randomiser::One(one) => Accumulator::new(*one).map(Counted::One)?,
            Randomiser::Several(several) => AttributesAccumulator::new(Arc::clone(several)).map(Counted::Several)?,
        };
        Ok(Self { protocol, counted })
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn copy(&self) -> Result<Self, Error> {
        let counted = match &self.counted {
            Counted::One(counted) => counted.copy().map(Counted::One)?,
            Counted::Several(counted) => counted.copy().map(Counted::Several)?,
        };
        Ok(Self { protocol: self.protocol.clone(), counted })
    }

    /// What was announced.
    #[must_use]
    pub fn protocol(&self) -> &AnyProtocol {
        &self.protocol
    }

    /// The counters of one attribute; `None` for those of several.
    #[must_use]
    pub fn one(&self) -> Option<&Accumulator> {
        match &self.counted {
            Counted::One(counted) => Some(counted),
            Counted::Several(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn one_mut(&mut self) -> Option<&mut Accumulator> {
        match &mut self.counted {
            Counted::One(counted) => Some(counted),
            Counted::Several(_) => None,
        }
    }

    /// A copy of the counters of the attribute of this name, for estimates.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown name, or for one attribute; [`Error::Allocation`].
    pub fn attribute(&self, name: &str) -> Result<Self, Error> {
        let allowed = "of several attributes";
        let several = self.several().ok_or_else(|| Error::parameter("accumulator", "one of one", allowed))?;
        let counted = several.attribute(several.attributes().position(name)?)?;
        let protocol = self.protocol.of_attribute(name, *counted.protocol());
        Ok(Self { protocol, counted: Counted::One(counted) })
    }

    /// Those of several attributes.
    #[must_use]
    pub fn several(&self) -> Option<&AttributesAccumulator> {
        match &self.counted {
            Counted::One(_) => None,
            Counted::Several(counted) => Some(counted),
        }
    }

    /// Adds a matrix of reports with rows of `row_bytes` bytes, on up to `threads` threads.
    ///
    /// Malformed reports are counted as rejected: those that the protocol of their attribute rejects and, of
    /// [`Scheme::Sampled`], those with the number of no attribute, or with padding that is not zero. In a report of
    /// [`Scheme::Split`] a malformed part costs that part alone.
    ///
    /// # Errors
    /// As for [`Accumulator::add`]. Then nothing has been added.
    pub fn add(&mut self, reports: &[u8], row_bytes: usize, threads: usize) -> Result<(), Error> {
        match &mut self.counted {
            Counted::One(counted) => counted.add(reports, row_bytes, threads),
            Counted::Several(counted) => counted.add(reports, row_bytes, threads, [0; 2]),
        }
    }

    /// How many of `rows` reports take some tens of milliseconds to count. A caller who adds them in such pieces, to an
    /// accumulator of their own, may end in between.
    #[must_use]
    pub fn piece(&self, rows: usize) -> usize {
        match &self.counted {
            Counted::One(counted) => counted.piece(rows),
            Counted::Several(counted) => counted.parts.iter().map(|part| part.piece(rows)).min().unwrap_or(rows),
        }
    }

    /// Adds reports that come as messages. A message that is not of this specification is counted as rejected: for a wrong
    /// header, such as that of reports about something else, or a wrong length.
    ///
    /// # Errors
    /// As for [`Accumulator::add`]. Then nothing has been added.
    pub fn add_messages<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a [u8]>,
        threads: usize,
    ) -> Result<(), Error> {
        let (header, width) = (self.protocol.message_header(), self.protocol.report_bytes());
        let (reports, wrong) = message::reports(messages, header, width)?;
        match &mut self.counted {
            Counted::One(counted) => counted.add_received(&reports, wrong, threads),
            Counted::Several(counted) => counted.add(&reports, width, threads, wrong),
        }
    }

    /// Adds the counts of `other`.
    ///
    /// # Errors
    /// [`Error::State`] when `other` is of another specification, or there would be more than 2^64 - 1 reports. Then
    /// nothing has been added.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.protocol.check_same(&other.protocol, "other")?;
        match (&mut self.counted, &other.counted) {
            (Counted::One(counted), Counted::One(other)) => counted.merge(other),
            (Counted::Several(counted), Counted::Several(other)) => counted.merge(other),
            _ => Err(Error::State("cannot merge states of one attribute and of several".into())),
        }
    }

    /// The number of reports counted, of [`Scheme::Split`] also those with malformed parts.
    #[must_use]
    pub fn n(&self) -> u64 {
        match &self.counted {
            Counted::One(counted) => counted.n(),
            Counted::Several(counted) => counted.n(),
        }
    }

    /// The number of reports rejected, of [`Scheme::Split`] of parts.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected_reasons().iter().map(|&(_, count)| count).fold(0, u64::saturating_add)
    }

    /// The number of reports rejected, by reason; reasons that did not occur are left out.
    #[must_use]
    pub fn rejected_reasons(&self) -> Vec<(&'static str, u64)> {
        match &self.counted {
            Counted::One(counted) => counted.rejected_reasons().collect(),
            Counted::Several(counted) => counted.rejected_reasons(),
        }
    }
}
