//! Reports that are a bit for each value, least significant bit of a byte first: rows of data bits, and of flipped bits.

use core::ops::Deref;

use dpnoise_kernels::arch::planes::{self, TILE_BYTES};
use dpnoise_kernels::arch::popcount::add_column_counts;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::memory::{room, zeroed};

use super::Reports;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::local::spec::check_k;
use crate::local::values::{check_below, check_out};
use crate::rng::Wiped;

/// The rows that are searched for malformed ones at once, before the well-formed ones are counted together: enough for
/// fast counting wherever the malformed ones are. Well-formed rows may be copied, so their bytes are limited, too,
/// except for a single row.
const ROWS_AT_ONCE: usize = 1 << 12;
const BYTES_AT_ONCE: usize = 1 << 24;

/// The bits encoded before they are flipped, while they are in the first-level cache.
pub(crate) const CHUNK_BYTES: usize = 64 * TILE_BYTES;

/// Rows of this many bits; unused bits of the last byte are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits(pub(crate) u32);

impl Bits {
    /// The bytes of a row.
    pub(crate) fn width(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// The bits of the last byte that are not used.
    pub(crate) fn unused(self) -> u8 {
        let used_in_last = (self.0 - 1) % 8 + 1;
        !(0xff >> (8 - used_in_last))
    }

    /// Checks without a branch on the data that every row has one of the used bits set, or none.
    ///
    /// # Errors
    /// [`Error::Data`] otherwise, [`Error::Parameter`] when `rows` is not whole rows.
    pub(crate) fn check_rows(self, rows: &[u8]) -> Result<(), Error> {
        let (width, unused) = (self.width(), self.unused());
        check_whole(rows, width)?;
        let wrong = rows
            .chunks_exact(width)
            .fold(0, |wrong, row| wrong | beyond_the_first_bit(row) | u64::from(row[row.len() - 1] & unused));
        if declassify(Reason::Refusal, wrong != 0) {
            let problem = format!("must each have at most one of the first k = {} bits set, and no other", self.0);
            return Err(Error::data("rows", problem));
        }
        Ok(())
    }

    /// Clears the unused bits of every row's last byte in `chunk`, which begins at byte `at` of the matrix of rows.
    pub(crate) fn clear_unused(self, at: usize, chunk: &mut [u8]) {
        let (width, unused) = (self.width(), self.unused());
        if unused != 0 {
            let to_last = width - 1 - at % width;
            chunk.iter_mut().skip(to_last).step_by(width).for_each(|byte| *byte &= !unused);
        }
    }
}

impl Reports for Bits {
    fn bits(self) -> usize {
        self.0 as usize
    }

    fn malformed(self) -> &'static str {
        "tail bits set"
    }

    fn counters(self) -> usize {
        self.bits()
    }

    fn effort(self, _reports: usize) -> usize {
        self.width()
    }

    /// Malformed rows are searched for only if the count of an unused bit shows that there are some.
    fn count(self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let (width, unused) = (self.width(), self.unused());
        let mut counters = zeroed(8 * width)?;
        let mut rejected = 0;
        add_column_counts(instructions, rows, width, &mut counters)?;
        if counters[self.bits()..].iter().any(|&count| count > 0) {
            counters.fill(0);
            rejected = count_well_formed(instructions, rows, width, &mut counters, |row| row[width - 1] & unused != 0)?;
        }
        counters.truncate(self.bits());
        Ok((counters, rejected))
    }
}

/// Counts the bits of well-formed rows, and returns the number of malformed ones.
pub(crate) fn count_well_formed(
    instructions: InstructionSet,
    rows: &[u8],
    width: usize,
    counters: &mut [u64],
    is_malformed: impl Fn(&[u8]) -> bool,
) -> Result<u64, Error> {
    let mut rejected = 0;
    for some in rows.chunks(ROWS_AT_ONCE.min(BYTES_AT_ONCE / width).max(1) * width) {
        let good = some.chunks_exact(width).filter(|row| !is_malformed(row));
        let bad = some.len() / width - good.clone().count();
        if bad == 0 {
            add_column_counts(instructions, some, width, counters)?;
        } else {
            let mut rows = room(some.len() - bad * width)?;
            good.for_each(|row| rows.extend_from_slice(row));
            add_column_counts(instructions, &rows, width, counters)?;
        }
        rejected += bad as u64;
    }
    Ok(rejected)
}

/// Checks that `rows` is whole rows of `width` bytes.
fn check_whole(rows: &[u8], width: usize) -> Result<(), Error> {
    if rows.len().is_multiple_of(width) {
        return Ok(());
    }
    Err(Error::parameter("rows", format!("{} bytes", rows.len()), format!("whole, of {width} bytes each")))
}

/// Zero if and only if at most one bit of the row is set.
fn beyond_the_first_bit(row: &[u8]) -> u64 {
    let (words, rest) = row.as_chunks();
    let last = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    // The places of a word that are set in any of the words, and in two of them.
    let (once, twice) = words
        .iter()
        .map(|&bytes| u64::from_le_bytes(bytes))
        .fold((last, 0), |(once, twice), word| (once | word, twice | once & word));
    twice | once & once.wrapping_sub(1)
}

/// Packs rows of k bytes, each 0 or 1, to rows of ceil(k / 8) bytes, which are wiped when they are dropped. **The rows are
/// not private yet.**
///
/// # Errors
/// [`Error::Data`] unless all bytes are 0 or 1, [`Error::Parameter`] unless 2 <= k <= 2^24 and they are whole rows;
/// [`Error::Allocation`].
pub fn pack(k: u32, bytes: &[u8]) -> Result<impl Deref<Target = [u8]> + use<>, Error> {
    let bits = Bits(check_k(k.into())?);
    let (k, width) = (bits.bits(), bits.width());
    check_whole(bytes, k)?;
    let mut rows = Wiped::try_new(bytes.len() / k * width)?;
    let mut seen = 0;
    let mut packed = |word: u64| {
        seen |= word;
        // Bit 8 i is added at 8 places, of which 56 + i alone is in the highest byte. No two share one, so nothing carries.
        (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    for (bytes, row) in bytes.chunks_exact(k).zip(rows.chunks_exact_mut(width)) {
        let (eights, rest) = bytes.as_chunks();
        row.iter_mut().zip(eights).for_each(|(byte, &eight)| *byte = packed(u64::from_le_bytes(eight)));
        if !rest.is_empty() {
            // The last eight bytes are read at once, without those that are packed already; a short row has not so many.
            let short = || rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            let last = |&eight: &[u8; 8]| u64::from_le_bytes(eight) >> (64 - 8 * rest.len());
            row[width - 1] = packed(bytes.last_chunk().map_or_else(short, last));
        }
    }
    if declassify(Reason::Refusal, seen & !0x0101_0101_0101_0101 != 0) {
        return Err(Error::data("rows", "must be 0 or 1 in every column"));
    }
    Ok(rows)
}

/// Writes a row of ceil(k / 8) bytes for every value, with only the value's bit set. **The rows are not private yet.**
///
/// # Errors
/// [`Error::Data`] unless all values are in [0, k), [`Error::Parameter`] when `out` does not have one row per value.
pub fn one_hot(k: u32, values: &[i64], out: &mut [u8]) -> Result<(), Error> {
    let width = Bits(k).width();
    check_below(k, values)?;
    check_out(out, values.len(), width)?;
    planes::one_hot(instruction_set::current()?, values, width, out);
    Ok(())
}

/// Writes the bytes of the one-hot matrix of `values` that begin at byte `at` to `chunk`.
pub(crate) fn encode_from(instructions: InstructionSet, values: &[i64], width: usize, at: usize, chunk: &mut [u8]) {
    let (values, rows) = encode_first(values, width, at, chunk, planes::one_hot_part);
    planes::one_hot(instructions, values, width, rows);
}

/// Calls `encode(value, start, part)` for the parts of rows of `width` items that a chunk is made of, which begins at
/// item `at` of the matrix of all rows; `start` is where in its row the part begins.
pub(crate) fn encode_rows<T>(
    values: &[i64],
    width: usize,
    at: usize,
    chunk: &mut [T],
    encode: impl Fn(i64, usize, &mut [T]),
) {
    let (values, rows) = encode_first(values, width, at, chunk, &encode);
    for (&value, part) in values.iter().zip(rows.chunks_mut(width)) {
        encode(value, 0, part);
    }
}

/// The same for the first row, if `at` is not where it begins. Returns what follows it.
fn encode_first<'a, 'b, T>(
    values: &'a [i64],
    width: usize,
    at: usize,
    chunk: &'b mut [T],
    encode: impl Fn(i64, usize, &mut [T]),
) -> (&'a [i64], &'b mut [T]) {
    let (row, start) = (at / width, at % width);
    if start == 0 {
        return (&values[row..], chunk);
    }
    let (first, rows) = chunk.split_at_mut(chunk.len().min(width - start));
    encode(values[row], start, first);
    (&values[row + 1..], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_rows_are_one_hot() {
        for k in [2, 7, 8, 9, 15, 32, 64, 128, 256, 2048, 2049, 5000] {
            let values: Vec<i64> = (0..k.into()).collect();
            let width = Bits(k).width();
            let mut bits = vec![0xff; values.len() * width];
            one_hot(k, &values, &mut bits).unwrap();
            for (value, row) in bits.chunks_exact(width).enumerate() {
                let expected = |i: usize| if i == value / 8 { 1 << (value % 8) } else { 0 };
                assert!(row.iter().enumerate().all(|(i, &byte)| byte == expected(i)), "{k} {value}");
            }
            let mut window = vec![0; bits.len().min(300)];
            for at in (0..bits.len() - window.len()).step_by(97) {
                for instructions in InstructionSet::available() {
                    window.fill(0xff);
                    encode_from(instructions, &values, width, at, &mut window);
                    assert_eq!(window, bits[at..at + window.len()], "{}", instructions.name());
                }
            }
        }
    }
}
