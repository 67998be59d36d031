//! The bytes of an [`Accumulator`]. All numbers are little-endian.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `DPNA` |
//! | 1 | family of the state: 1, counters |
//! | 1 | serial version: 1 |
//! | 2 | flags: 0 |
//! | 8 | length of the whole state in bytes |
//! | 4 | length L of the specification |
//! | L | the canonical specification, JSON in UTF-8 |
//! | 8 | its id, as [`Protocol::spec_id`] gives it |
//! | 8 | n, the number of reports counted |
//! | 4 | number R of reasons for rejection: 4 |
//! | 8 R | the number of reports rejected for each, in the order of [`Protocol::rejection_reasons`] |
//! | 8 m | the counters: how many reports support each value, m = k, or 1 ("yes") for randomised response; or how often each report occurred |
//! | 4 | CRC-32C of everything before |
//!
//! A state has exactly one form: writing what was read gives the same bytes. The checksum detects accidental damage; it
//! does not protect against deliberate changes.

use dpnoise_kernels::memory::{collected, room};

use super::accumulator::Accumulator;
use crate::error::Error;
use crate::local::registry::{LIMIT, Protocol};

const MAGIC: &[u8; 4] = b"DPNA";
const FAMILY: u8 = 1;
const VERSION: u8 = 1;
const PREAMBLE_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

impl Accumulator {
    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let spec = self.protocol.to_json();
        let numbers = 1 + self.rejected.len() + self.counters.len();
        let length = PREAMBLE_BYTES + 4 + spec.len() + 8 + 4 + 8 * numbers + CHECKSUM_BYTES;
        let mut bytes = room(length)?;
        bytes.extend(MAGIC);
        bytes.extend([FAMILY, VERSION, 0, 0]);
        bytes.extend((length as u64).to_le_bytes());
        bytes.extend((spec.len() as u32).to_le_bytes());
        bytes.extend(spec.as_bytes());
        bytes.extend(self.protocol.spec_id());
        bytes.extend(self.n.to_le_bytes());
        bytes.extend((self.rejected.len() as u32).to_le_bytes());
        for number in self.rejected.iter().chain(&self.counters) {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// [`Error::State`] that says what is wrong, when the bytes are not the state of an accumulator;
    /// [`Error::Parameter`] when its counters have more than `limit` bytes; [`Error::Allocation`].
    pub fn from_bytes(bytes: &[u8], limit: usize) -> Result<Self, Error> {
        let mut body = Reader(checked_body(bytes)?);
        let spec_length = u32::from_le_bytes(body.array("specification")?);
        let spec = body.take(spec_length as usize, "specification")?;
        let spec = str::from_utf8(spec).map_err(|_| damaged("the specification is not UTF-8"))?;
        let protocol = Protocol::from_json(spec, limit).map_err(|error| match error {
            Error::Parameter { parameter: LIMIT, .. } => error,
            error => damaged(&error.to_string()),
        })?;
        if body.array("specification id")? != protocol.spec_id() {
            return Err(damaged("the specification id is not that of the specification"));
        }
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
        Ok(Self { protocol, n, rejected, counters })
    }
}

/// The bytes between preamble and checksum, once both are found right.
fn checked_body(bytes: &[u8]) -> Result<&[u8], Error> {
    let mut preamble = Reader(bytes);
    if preamble.take(MAGIC.len(), "preamble")? != MAGIC {
        return Err(Error::State("not the state of an accumulator: it does not begin with DPNA".into()));
    }
    let [family, version, flags @ ..]: [u8; 4] = preamble.array("preamble")?;
    if version > VERSION {
        let problem =
            format!("the state has serial version {version}; this release reads up to {VERSION}: upgrade dpnoise");
        return Err(Error::State(problem));
    }
    if (family, version, flags) != (FAMILY, VERSION, [0, 0]) {
        return Err(damaged("unknown family, version or flags"));
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
}
