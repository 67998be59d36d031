//! A report as a message of its own, from a device to the collector.
//!
//! | bytes | what |
//! | --- | --- |
//! | 2 | `DP` |
//! | 1 | version: 1 |
//! | 1 | the protocol's kind, its number in `families`; of several attributes 128 or 129 |
//! | 8 | the id of its specification, as [`AnyProtocol::spec_id`] gives it |
//! | `report_bytes` | the report |
//!
//! In bulk, where all reports are of one protocol, they are kept without headers, as a matrix or a column.

use dpnoise_kernels::memory::OutOfMemory;

use super::accumulator::Accumulator;
use crate::error::Error;
use crate::local::any_protocol::AnyProtocol;
use crate::local::families::{Protocol, WRONG_HEADER, WRONG_LENGTH};

const MAGIC: [u8; 2] = *b"DP";
const VERSION: u8 = 1;

/// The bytes before the report.
const HEADER_BYTES: usize = 12;

impl Protocol {
    /// The header of a message: everything before the report.
    #[must_use]
    pub fn message_header(&self) -> [u8; HEADER_BYTES] {
        header(self.code(), self.spec_id())
    }
}

impl AnyProtocol {
    /// The header of a message: everything before the report.
    #[must_use]
    pub fn message_header(&self) -> [u8; HEADER_BYTES] {
        header(self.code(), self.spec_id())
    }
}

fn header(code: u8, [a, b, c, d, e, f, g, h]: [u8; 8]) -> [u8; HEADER_BYTES] {
    [MAGIC[0], MAGIC[1], VERSION, code, a, b, c, d, e, f, g, h]
}

/// The reports in messages with this header and reports of `width` bytes, and how many of the others have a wrong length
/// and a wrong header.
pub(super) fn reports<'a>(
    messages: impl IntoIterator<Item = &'a [u8]>,
    header: [u8; HEADER_BYTES],
    width: usize,
) -> Result<(Vec<u8>, [u64; 2]), Error> {
    let (mut reports, mut wrong) = (vec![], [0; 2]);
    for message in messages {
        match message.strip_prefix(&header) {
            Some(report) if report.len() == width => {
                reports.try_reserve(width).map_err(|_| OutOfMemory)?;
                reports.extend_from_slice(report);
            }
            Some(_) => wrong[0] += 1,
            None => wrong[1] += 1,
        }
    }
    Ok((reports, wrong))
}

impl Accumulator {
    /// Adds reports that come as messages. A message that is not of this protocol is counted as rejected: for a wrong
    /// header, such as that of another protocol, or a wrong length.
    ///
    /// # Errors
    /// As for [`Accumulator::add`]. Then nothing has been added.
    pub fn add_messages<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a [u8]>,
        threads: usize,
    ) -> Result<(), Error> {
        let (reports, wrong) = reports(messages, self.protocol().message_header(), self.protocol().report_bytes())?;
        self.add_received(&reports, wrong, threads)
    }

    /// Adds reports that came as messages, and as many as had a wrong length or header.
    pub(super) fn add_received(&mut self, reports: &[u8], wrong: [u64; 2], threads: usize) -> Result<(), Error> {
        let mut part = Self::new(*self.protocol())?;
        for (reason, count) in [WRONG_LENGTH, WRONG_HEADER].into_iter().zip(wrong) {
            part.reject(reason, count)?;
        }
        part.add(reports, self.protocol().report_bytes(), threads)?;
        self.merge(&part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::families::OptimizedUnaryEncoding;

    #[test]
    fn messages_are_counted_or_rejected_with_the_reason() {
        let protocol = Protocol::from(OptimizedUnaryEncoding::new(9, 1.0).unwrap());
        let other = Protocol::from(OptimizedUnaryEncoding::new(9, 2.0).unwrap());
        let message = |protocol: &Protocol, report: &[u8]| [&protocol.message_header(), report].concat();
        let messages = [
            message(&protocol, &[1, 1]),
            message(&protocol, &[1, 2]),
            message(&other, &[1, 0]),
            message(&protocol, &[1]),
            message(&protocol, &[1, 0, 0]),
            message(&protocol, &[])[..11].to_vec(),
            vec![],
        ];
        let mut counts = Accumulator::new(protocol).unwrap();
        counts.add_messages(messages.iter().map(Vec::as_slice), 1).unwrap();
        assert_eq!((counts.n(), counts.counters()), (1, &[1, 0, 0, 0, 0, 0, 0, 0, 1][..]));
        let reasons: Vec<_> = counts.rejected_reasons().collect();
        assert_eq!(reasons, [("tail bits set", 1), ("wrong length", 2), ("wrong header", 3)]);
    }
}
