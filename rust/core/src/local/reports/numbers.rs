//! Reports that are a number, in as few little-endian bytes as hold the largest one.

use dpnoise_kernels::memory::zeroed;

use super::Reports;
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::local::chance::mixture::CHUNK;
use crate::rng::Wiped;

/// Calls a function for reports of `width` bytes, from 1 to 8.
macro_rules! on_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            _ => $function::<8>($($argument),*),
        }
    };
}

/// Numbers below `end`, each with a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    end: u64,
    most: u64,
}

impl Numbers {
    pub(crate) fn below(end: impl Into<u64>) -> Self {
        Self { end: end.into(), most: u64::MAX }
    }

    /// Numbers whose counters go into a Walsh-Hadamard transform, which is of signed numbers.
    pub(crate) fn to_transform(end: impl Into<u64>) -> Self {
        Self { end: end.into(), most: i64::MAX as u64 }
    }
}

impl Reports for Numbers {
    fn bits(self) -> usize {
        bits_below(self.end)
    }

    fn malformed(self) -> &'static str {
        OUT_OF_RANGE
    }

    fn counters(self) -> usize {
        self.end as usize
    }

    fn most(self) -> u64 {
        self.most
    }

    fn effort(self, _reports: usize) -> usize {
        EFFORT
    }

    fn count(self, _instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let mut counters = zeroed::<u64>(self.counters())?;
        let rejected =
            for_each_number(rows, self.bits().div_ceil(8), self.end, |number| counters[number as usize] += 1);
        Ok((counters, rejected))
    }

    fn are_possible(self, n: u64, counters: &[u64]) -> bool {
        counters.iter().map(|&count| u128::from(count)).sum::<u128>() == u128::from(n)
    }
}

/// The reason for rejecting a number that is too large.
pub(crate) const OUT_OF_RANGE: &str = "value out of range";

/// The work of counting a number, in bytes of packed bits that take the same time to count.
pub(crate) const EFFORT: usize = 2;

/// The bits of numbers below `end`.
pub(crate) fn bits_below(end: u64) -> usize {
    end.next_power_of_two().trailing_zeros() as usize
}

/// Fills `out` with rows of `width` bytes, of the numbers that `draw` puts in a private buffer for up to [`CHUNK`]
/// values at a time.
pub(crate) fn fill_numbers<T>(
    values: &[T],
    width: usize,
    out: &mut [u8],
    mut draw: impl FnMut(&[T], &mut [u32]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut private = Wiped::new(values.len().min(CHUNK));
    let mut numbers = vec![0; private.len()];
    for (values, out) in values.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
        let (private, numbers) = (&mut private[..values.len()], &mut numbers[..values.len()]);
        draw(values, private)?;
        numbers.iter_mut().zip(&*private).for_each(|(number, &drawn)| *number = drawn.into());
        write_numbers(numbers, width, out);
    }
    Ok(())
}

/// Writes every number as a row of `width` bytes.
pub(crate) fn write_numbers(numbers: &[u64], width: usize, out: &mut [u8]) {
    on_width!(width, write(numbers, out));
}

fn write<const WIDTH: usize>(numbers: &[u64], out: &mut [u8]) {
    for (number, row) in numbers.iter().zip(out.as_chunks_mut::<WIDTH>().0) {
        row.copy_from_slice(&number.to_le_bytes()[..WIDTH]);
    }
}

/// Calls `each` with the number of every report that is below `reports`, and returns the number of the others.
pub(crate) fn for_each_number(rows: &[u8], width: usize, reports: u64, mut each: impl FnMut(u64)) -> u64 {
    on_width!(width, read(rows, reports, &mut each))
}

fn read<const WIDTH: usize>(rows: &[u8], reports: u64, each: &mut impl FnMut(u64)) -> u64 {
    let mut rejected = 0;
    for row in rows.as_chunks::<WIDTH>().0 {
        let mut bytes = [0; 8];
        bytes[..WIDTH].copy_from_slice(row);
        let number = u64::from_le_bytes(bytes);
        if number < reports {
            each(number);
        } else {
            rejected += 1;
        }
    }
    rejected
}
