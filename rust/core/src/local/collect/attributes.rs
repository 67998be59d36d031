//! The collector's counters of several attributes, and of either kind of specification.

use std::sync::Arc;

use dpnoise_kernels::memory::room;

use super::accumulator::Accumulator;
use super::message;
use crate::error::Error;
use crate::local::attributes::{Attributes, Malformed, Scheme};
use crate::local::families::{Protocol, WRONG_HEADER, WRONG_LENGTH};

/// What is announced: the protocol of one attribute, or several attributes with theirs.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyProtocol {
    /// Of one attribute.
    One(Protocol),
    /// Of several.
    Several(Arc<Attributes>),
}

impl From<Protocol> for AnyProtocol {
    fn from(protocol: Protocol) -> Self {
        Self::One(protocol)
    }
}

impl From<Attributes> for AnyProtocol {
    fn from(attributes: Attributes) -> Self {
        Self::Several(Arc::new(attributes))
    }
}

/// An expression on the protocol of one attribute, or on several attributes.
macro_rules! on_either {
    ($self:expr, $either:ident => $result:expr) => {
        match $self {
            Self::One($either) => $result,
            Self::Several($either) => $result,
        }
    };
}

impl AnyProtocol {
    /// Reads a specification of either kind.
    ///
    /// # Errors
    /// As for [`Protocol::from_json`] and [`Attributes::from_json`].
    pub fn from_json(text: &str, limit: usize) -> Result<Self, Error> {
        if Attributes::are_in(text) {
            Attributes::from_json(text, limit).map(Self::from)
        } else {
            Protocol::from_json(text, limit).map(Self::from)
        }
    }

    /// The epsilon of the guarantee, rounded up.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        on_either!(self, either => either.epsilon())
    }

    /// The delta of the guarantee, rounded up.
    #[must_use]
    pub fn delta(&self) -> f64 {
        on_either!(self, either => either.delta())
    }

    /// The bytes of a report.
    #[must_use]
    pub fn report_bytes(&self) -> usize {
        on_either!(self, either => either.report_bytes())
    }

    /// The bytes of a collector's counters.
    #[must_use]
    pub fn counter_bytes(&self) -> usize {
        on_either!(self, either => either.counter_bytes())
    }

    /// The header of a message: everything before the report.
    #[must_use]
    pub fn message_header(&self) -> [u8; 12] {
        on_either!(self, either => either.message_header())
    }
}

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

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.attributes != other.attributes {
            let (own, others) = (self.attributes.to_json(), other.attributes.to_json());
            return Err(Error::State(format!("cannot merge states of other attributes: {own}, and {others}")));
        }
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
pub enum AnyAccumulator {
    /// Of one attribute.
    One(Accumulator),
    /// Of several.
    Several(AttributesAccumulator),
}

impl AnyAccumulator {
    /// No reports yet.
    ///
    /// # Errors
    /// [`Error::Allocation`] when there is no memory for the counters.
    pub fn new(protocol: AnyProtocol) -> Result<Self, Error> {
        match protocol {
            AnyProtocol::One(protocol) => Accumulator::new(protocol).map(Self::One),
            AnyProtocol::Several(attributes) => AttributesAccumulator::new(attributes).map(Self::Several),
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn copy(&self) -> Result<Self, Error> {
        match self {
            Self::One(counted) => counted.copy().map(Self::One),
            Self::Several(counted) => counted.copy().map(Self::Several),
        }
    }

    /// What was announced.
    #[must_use]
    pub fn protocol(&self) -> AnyProtocol {
        match self {
            Self::One(counted) => (*counted.protocol()).into(),
            Self::Several(counted) => AnyProtocol::Several(Arc::clone(&counted.attributes)),
        }
    }

    /// The counters of one attribute; `None` for those of several.
    #[must_use]
    pub fn one(&self) -> Option<&Accumulator> {
        match self {
            Self::One(counted) => Some(counted),
            Self::Several(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn one_mut(&mut self) -> Option<&mut Accumulator> {
        match self {
            Self::One(counted) => Some(counted),
            Self::Several(_) => None,
        }
    }

    /// Those of several attributes.
    #[must_use]
    pub fn several(&self) -> Option<&AttributesAccumulator> {
        match self {
            Self::One(_) => None,
            Self::Several(counted) => Some(counted),
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
        match self {
            Self::One(counted) => counted.add(reports, row_bytes, threads),
            Self::Several(counted) => counted.add(reports, row_bytes, threads, [0; 2]),
        }
    }

    /// How many of `rows` reports take some tens of milliseconds to count. A caller who adds them in such pieces, to an
    /// accumulator of their own, may end in between.
    #[must_use]
    pub fn piece(&self, rows: usize) -> usize {
        match self {
            Self::One(counted) => counted.piece(rows),
            Self::Several(counted) => counted.parts.iter().map(|part| part.piece(rows)).min().unwrap_or(rows),
        }
    }

    /// Adds reports that come as messages, as [`Accumulator::add_messages`] does.
    ///
    /// # Errors
    /// As for [`Accumulator::add`]. Then nothing has been added.
    pub fn add_messages<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a [u8]>,
        threads: usize,
    ) -> Result<(), Error> {
        match self {
            Self::One(counted) => counted.add_messages(messages, threads),
            Self::Several(counted) => {
                let (header, width) = (counted.attributes.message_header(), counted.attributes.report_bytes());
                let (reports, wrong) = message::reports(messages, header, width)?;
                counted.add(&reports, width, threads, wrong)
            }
        }
    }

    /// Adds the counts of `other`.
    ///
    /// # Errors
    /// [`Error::State`] when `other` is of another specification, or there would be more than 2^64 - 1 reports. Then
    /// nothing has been added.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        match (self, other) {
            (Self::One(counted), Self::One(other)) => counted.merge(other),
            (Self::Several(counted), Self::Several(other)) => counted.merge(other),
            _ => Err(Error::State("cannot merge states of one attribute and of several".into())),
        }
    }

    /// The number of reports counted, of [`Scheme::Split`] also those with malformed parts.
    #[must_use]
    pub fn n(&self) -> u64 {
        on_either!(self, counted => counted.n())
    }

    /// The number of reports rejected, of [`Scheme::Split`] of parts.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected_reasons().iter().map(|&(_, count)| count).fold(0, u64::saturating_add)
    }

    /// The number of reports rejected, by reason; reasons that did not occur are left out.
    #[must_use]
    pub fn rejected_reasons(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::One(counted) => counted.rejected_reasons().collect(),
            Self::Several(counted) => counted.rejected_reasons(),
        }
    }

    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        on_either!(self, counted => counted.to_bytes())
    }
}
