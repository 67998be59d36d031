//! The bytes of an [`AnyAccumulator`]. All numbers are little-endian.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `DPNA` |
//! | 1 | kind of the state: 1 for one protocol, 2 for several attributes |
//! | 1 | serial version: 1, and 2 for several attributes |
//! | 2 | flags: 0 |
//! | 8 | length of the whole state in bytes |
//! | 4 | length L of the specification |
//! | L | the canonical specification, JSON in UTF-8 |
//! | 8 | its id, as [`AnyProtocol::spec_id`] gives it |
//! | 8 | n, the number of reports counted |
//! | 4 | number R of reasons for rejection: 4 |
//! | 8 R | the number of reports rejected for each, in the order of [`Protocol::rejection_reasons`] |
//! | 8 m | the counters: how many reports support each value, m = k, or 1 ("yes") for randomised response; or how often each report occurred |
//! | 4 | CRC-32C of everything before |
//!
//! For several attributes there are, instead of n, reasons and counters, the number of reasons for rejection, 4; for each of
//! them how many reports were rejected; and the states of all attributes, whole and in their order.
//!
//! A state has exactly one form: writing what was read gives the same bytes. The checksum detects accidental damage; it
//! does not protect against deliberate changes.

use std::sync::Arc;

use dpnoise_kernels::memory::{collected, room};

use super::accumulator::Accumulator;
use super::attributes::{AnyAccumulator, AttributesAccumulator, Counted};
use crate::error::Error;
use crate::local::any_protocol::{AnyProtocol, Randomiser};
use crate::local::attributes::Attributes;
use crate::local::families::{LIMIT, Protocol};
use crate::local::json;
use crate::local::spec;

const MAGIC: &[u8; 4] = b"DPNA";
const LENGTH_AT: usize = 8;
const PREAMBLE_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

impl Accumulator {
    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::State`] for the counters of one of several attributes; [`Error::Allocation`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.state(&self.protocol.to_json())
    }

    /// The state of a collection with this specification.
    fn state(&self, spec: &str) -> Result<Vec<u8>, Error> {
        self.check_whole()?;
        let counts = 8 + 4 + 8 * (self.rejected.len() + self.counters.len());
        Kind::One.state(spec, counts, |bytes| {
            bytes.extend(self.n.to_le_bytes());
            bytes.extend((self.rejected.len() as u32).to_le_bytes());
            for number in self.rejected.iter().chain(&self.counters) {
                bytes.extend(number.to_le_bytes());
            }
        })
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// [`Error::State`] that says what is wrong, when the bytes are not the state of an accumulator;
    /// [`Error::Parameter`] when its counters have more than `limit` bytes; [`Error::Allocation`].
    pub fn from_bytes(bytes: &[u8], limit: usize) -> Result<Self, Error> {
        let mut body = Reader(Kind::One.body(bytes)?);
        let protocol = body.specification(|json| Protocol::from_json(json, limit))?;
        Self::read(protocol, body)
    }

    /// Reads what follows the specification.
    fn read(protocol: Protocol, mut body: Reader<'_>) -> Result<Self, Error> {
        let n = body.number("number of reports")?;
        let reasons = u32::from_le_bytes(body.array("number of reasons")?);
        let mut rejected = vec![0; protocol.rejection_reasons().len()];
        if reasons as usize != rejected.len() {
            return Err(damaged(&format!("{reasons} reasons for rejection instead of {}", rejected.len())));
        }
        for count in &mut rejected {
            *count = body.number("number of rejected reports")?;
        }
        let (total, most) =
            (rejected.iter().try_fold(n, |total, &count| total.checked_add(count)), protocol.most_reports());
        if total.is_none_or(|total| total > most) {
            return Err(damaged(&format!("it counts more than {most} reports")));
        }
        let expected = protocol.counters();
        if body.0.len() != 8 * expected {
            return Err(damaged(&format!("{} bytes of counters instead of {}", body.0.len(), 8 * expected)));
        }
        let counters = collected(body.0.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)))?;
        if !protocol.are_possible(n, &counters) {
            return Err(damaged("its counters are not possible for its number of reports"));
        }
        Ok(Self::from_state(protocol, n, rejected, counters))
    }
}

impl AttributesAccumulator {
    /// The state of a collection with this specification.
    fn state(&self, spec: &str) -> Result<Vec<u8>, Error> {
        let mut states = room(self.parts.len())?;
        for part in &self.parts {
            states.push(part.to_bytes()?);
        }
        let counts = 4 + 8 * self.rejected.len() + states.iter().map(Vec::len).sum::<usize>();
        Kind::Several.state(spec, counts, |bytes| {
            bytes.extend((self.rejected.len() as u32).to_le_bytes());
            for number in self.rejected {
                bytes.extend(number.to_le_bytes());
            }
            for state in states {
                bytes.extend(state);
            }
        })
    }

    /// Reads what follows the specification.
    fn read(attributes: &Arc<Attributes>, mut body: Reader<'_>) -> Result<Self, Error> {
        let (reasons, mut rejected) = (u32::from_le_bytes(body.array("number of reasons")?), [0; 4]);
        if reasons as usize != rejected.len() {
            return Err(damaged(&format!("{reasons} reasons for rejection instead of {}", rejected.len())));
        }
        for count in &mut rejected {
            *count = body.number("number of rejected reports")?;
        }
        let mut parts = room(attributes.iter().len())?;
        for (name, protocol) in attributes.iter() {
            let length = Reader(body.0.get(LENGTH_AT..).unwrap_or_default()).number("attributes")?;
            let state = body.take(usize::try_from(length).unwrap_or(usize::MAX), "attributes")?;
            let part = Accumulator::from_bytes(state, usize::MAX)?;
            if part.protocol() != protocol {
                return Err(damaged(&format!("the protocol of attribute {name:?} is not that of its specification")));
            }
            parts.push(part);
        }
        if !body.0.is_empty() {
            return Err(damaged("bytes follow the last attribute"));
        }
        Ok(Self { attributes: Arc::clone(attributes), parts, rejected })
    }
}

impl AnyAccumulator {
    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        match &self.counted {
            Counted::One(counted) => counted.state(self.protocol.to_json()),
            Counted::Several(counted) => counted.state(self.protocol.to_json()),
        }
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// [`Error::State`] that says what is wrong, when the bytes are not the state of an accumulator;
    /// [`Error::Parameter`] when its counters have more than `limit` bytes; [`Error::Allocation`].
    pub fn from_bytes(bytes: &[u8], limit: usize) -> Result<Self, Error> {
        let of_several = bytes.get(MAGIC.len()) == Some(&(Kind::Several as u8));
        let kind = if of_several { Kind::Several } else { Kind::One };
        let mut body = Reader(kind.body(bytes)?);
        let protocol = body.specification(|json| AnyProtocol::from_specification(json, limit))?;
        let counted = match (kind, protocol.randomiser()) {
            (Kind::One, Randomiser::One(one)) => Counted::One(Accumulator::read(*one, body)?),
            (Kind::Several, Randomiser::Several(several)) => {
                Counted::Several(AttributesAccumulator::read(several, body)?)
            }
            _ => return Err(damaged("its kind is not that of its specification")),
        };
        Ok(Self { protocol, counted })
    }
}

/// What a state is of: the number in its preamble.
#[derive(Clone, Copy)]
enum Kind {
    One = 1,
    Several = 2,
}

impl Kind {
    /// The version that is written and read.
    fn version(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Several => 2, // the first one ended with another checksum
        }
    }

    /// A state with this specification, and the `counts` bytes that `write` appends.
    fn state(self, spec: &str, counts: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, Error> {
        let length = PREAMBLE_BYTES + 4 + spec.len() + 8 + counts + CHECKSUM_BYTES;
        let mut bytes = room(length)?;
        bytes.extend(MAGIC);
        bytes.extend([self as u8, self.version(), 0, 0]);
        bytes.extend((length as u64).to_le_bytes());
        bytes.extend((spec.len() as u32).to_le_bytes());
        bytes.extend(spec.as_bytes());
        bytes.extend(spec::id(spec));
        write(&mut bytes);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// The bytes between preamble and checksum, once both are found right.
    fn body(self, bytes: &[u8]) -> Result<&[u8], Error> {
        let mut preamble = Reader(bytes);
        if preamble.take(MAGIC.len(), "preamble")? != MAGIC {
            return Err(Error::State("not the state of an accumulator: it does not begin with DPNA".into()));
        }
        let [kind, version, flags @ ..]: [u8; 4] = preamble.array("preamble")?;
        let known = self.version();
        if [Self::One, Self::Several].iter().any(|&other| other as u8 == kind && kind != self as u8) {
            let wanted = match self {
                Self::One => "one protocol, got that of several attributes",
                Self::Several => "several attributes, got that of one protocol",
            };
            return Err(Error::State(format!("the state must be of {wanted}")));
        }
        if version > known {
            let problem =
                format!("the state has serial version {version}; this release reads up to {known}: upgrade dpnoise");
            return Err(Error::State(problem));
        }
        if kind == self as u8 && version > 0 && version < known && flags == [0, 0] {
            let problem = format!(
                "the state of several attributes has serial version {version}, which no release wrote, and this one \
                 reads {known}: count the reports again"
            );
            return Err(Error::State(problem));
        }
        if (kind, version, flags) != (self as u8, known, [0, 0]) {
            return Err(damaged("unknown kind, version or flags"));
        }
        let (expected, length) = (preamble.number("preamble")?, bytes.len());
        if (length as u64) < expected {
            return Err(Error::State(format!("the state is truncated: {length} of {expected} bytes")));
        }
        if length as u64 > expected {
            return Err(damaged(&format!("{length} bytes instead of {expected}")));
        }
        let (checked, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(|| truncated("checksum"))?;
        if crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
            return Err(damaged("the checksum is wrong"));
        }
        checked.get(PREAMBLE_BYTES..).ok_or_else(|| truncated("preamble"))
    }
}

fn damaged(problem: &str) -> Error {
    Error::State(format!("the state is damaged: {problem}"))
}

fn truncated(part: &str) -> Error {
    Error::State(format!("the state is truncated in its {part}"))
}

/// The bytes not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize, part: &str) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| truncated(part))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &str) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| truncated(part))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self, part: &str) -> Result<u64, Error> {
        self.array(part).map(u64::from_le_bytes)
    }

    /// What `read` makes of the specification, whose id follows it.
    fn specification<T>(&mut self, read: impl FnOnce(&str) -> Result<T, Error>) -> Result<T, Error> {
        let length = u32::from_le_bytes(self.array("specification")?);
        let bytes = self.take(length as usize, "specification")?;
        let text = str::from_utf8(bytes).map_err(|_| damaged("the specification is not UTF-8"))?;
        let specified = read(text).map_err(|error| match error {
            Error::Parameter { parameter: LIMIT, .. } | Error::Allocation => error,
            error => damaged(&error.to_string()),
        })?;
        if self.array("specification id")? != spec::id(text) {
            return Err(damaged("the specification id is not that of the specification"));
        }
        if text.trim_matches(json::SPACE) != text {
            return Err(damaged("there is white space around its specification"));
        }
        Ok(specified)
    }
}
