//! Reports that are a number: a public seed and one of g symbols, which depends on the value and is randomised.
//!
//! The seed is drawn without regard to the value. Seed and value give a symbol, a [`Mixture`] of all symbols is made of
//! it, and the report is the number seed * g + symbol, in as few little-endian bytes as hold the largest one. So whoever
//! sees a report learns about the value only what the randomised symbol says.

use rand_core::TryCryptoRng;

use super::client::{Randomise, check_below_k};
use super::mixer::{CHUNK, Mixer, random_bytes};
use super::mixture::Mixture;
use super::protocol::Protocol;
use crate::error::Error;
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

/// A protocol of this kind. Nothing here may let time or addresses depend on a value or a symbol.
pub trait Symbols: Sync {
    fn protocol(&self) -> &Protocol;

    /// What is done to the symbols.
    fn mixture(&self) -> Mixture;

    /// Checks that all values can be reported on.
    fn check_values(&self, values: &[i64]) -> Result<(), Error> {
        check_below_k(self.protocol().k(), values)
    }

    /// About how many random bytes a seed takes.
    fn seed_bytes(&self) -> usize;

    /// Draws a seed for each of `seeds`.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error>;

    /// The symbol of a value.
    fn symbol(&self, seed: u64, value: i64) -> u32;
}

impl<T: Symbols> Randomise for T {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        Symbols::protocol(self)
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        self.check_values(values)
    }

    fn unit(&self) -> usize {
        CHUNK * Symbols::protocol(self).report_bytes()
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        let each = random_bytes(self.mixture()) + self.seed_bytes();
        (bytes / Symbols::protocol(self).report_bytes()).saturating_mul(each)
    }

    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let width = Symbols::protocol(self).report_bytes();
        let rows = out.len() / width;
        let values = &values[first / width..][..rows];
        let mut mixer = Mixer::new(self.mixture(), rows);
        let mut symbols = Wiped::new(rows.min(CHUNK));
        let mut numbers = vec![0; symbols.len()];
        for (values, out) in values.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
            let (symbols, numbers) = (&mut symbols[..values.len()], &mut numbers[..values.len()]);
            self.draw_seeds(rng, numbers)?;
            for ((symbol, &seed), &value) in symbols.iter_mut().zip(&*numbers).zip(values) {
                *symbol = self.symbol(seed, value);
            }
            mixer.mix(rng, symbols)?;
            write_reports(numbers, symbols, self.mixture().k(), width, out);
        }
        Ok(())
    }
}

/// Makes `numbers`, the seeds, into those of the reports of `symbols`, of which there are `g`, and writes them to `out`.
pub(super) fn write_reports(numbers: &mut [u64], symbols: &[u32], g: u32, width: usize, out: &mut [u8]) {
    for (number, &symbol) in numbers.iter_mut().zip(symbols) {
        // Reports are below 2^62; a check for overflow would be a jump on a secret.
        *number = number.wrapping_mul(g.into()).wrapping_add(symbol.into());
    }
    write_numbers(numbers, width, out);
}

/// Writes every number as a row of `width` bytes.
pub(super) fn write_numbers(numbers: &[u64], width: usize, out: &mut [u8]) {
    on_width!(width, write(numbers, out));
}

fn write<const WIDTH: usize>(numbers: &[u64], out: &mut [u8]) {
    for (number, row) in numbers.iter().zip(out.as_chunks_mut::<WIDTH>().0) {
        row.copy_from_slice(&number.to_le_bytes()[..WIDTH]);
    }
}

/// Calls `each` with the number of every report that is below `reports`, and gives the number of the others.
pub(super) fn for_each_number(rows: &[u8], width: usize, reports: u64, mut each: impl FnMut(u64)) -> u64 {
    on_width!(width, read(rows, reports, &mut each))
}

/// Adds to `counters` how often each number occurs, and gives the number of reports that have no counter.
pub(super) fn count_numbers(reports: &[u8], width: usize, counters: &mut [u64]) -> u64 {
    for_each_number(reports, width, counters.len() as u64, |number| counters[number as usize] += 1)
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
