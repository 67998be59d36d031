//! Reports that are a number: a public seed and one of g symbols, which depends on the value and is randomised.
//!
//! The seed is drawn independently of the value. Seed and value give a symbol, a [`Mixture`] of all symbols randomises
//! it, and the report is the number seed * g + symbol. So a report reveals about the value only what the randomised
//! symbol reveals.

use rand_core::TryCryptoRng;

use super::numbers::write_numbers;
use crate::error::Error;
use crate::local::chance::mixture::{CHUNK, Mixer, Mixture};
use crate::local::values::rows;
use crate::rng::Wiped;

/// A protocol of this kind. Time and addresses must not depend on a value or a symbol.
pub(crate) trait Symbols {
    /// The randomisation of symbols.
    fn mixture(&self) -> Mixture;

    /// About how many random bytes a seed takes.
    fn seed_bytes(&self) -> usize;

    /// Draws a seed for each of `seeds`.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error>;

    /// The symbol of a value.
    fn symbol(&self, seed: u64, value: i64) -> u32;
}

/// About how many random bits a report takes.
pub(crate) fn random_bits(protocol: &impl Symbols) -> usize {
    8 * (protocol.mixture().random_bytes() + protocol.seed_bytes())
}

/// Fills `out`, which begins at byte `first` of all reports of `width` bytes on `values`.
pub(crate) fn randomise<S, R>(
    protocol: &S,
    width: usize,
    rng: &mut R,
    values: &[i64],
    first: usize,
    out: &mut [u8],
) -> Result<(), Error>
where
    S: Symbols,
    R: TryCryptoRng + ?Sized,
{
    let values = &values[rows(first, out, width)];
    let mut mixer = Mixer::new(protocol.mixture(), values.len());
    let mut symbols = Wiped::new(values.len().min(CHUNK));
    let mut numbers = vec![0; symbols.len()];
    for (values, out) in values.chunks(CHUNK).zip(out.chunks_mut(CHUNK * width)) {
        let (symbols, numbers) = (&mut symbols[..values.len()], &mut numbers[..values.len()]);
        protocol.draw_seeds(rng, numbers)?;
        for ((symbol, &seed), &value) in symbols.iter_mut().zip(&*numbers).zip(values) {
            *symbol = protocol.symbol(seed, value);
        }
        mixer.mix(rng, symbols)?;
        write_reports(numbers, symbols, protocol.mixture().k(), width, out);
    }
    Ok(())
}

/// Turns the seeds in `numbers` into reports with these `symbols`, of which there are `g`, and writes them to `out`.
pub(crate) fn write_reports(numbers: &mut [u64], symbols: &[u32], g: u32, width: usize, out: &mut [u8]) {
    for (number, &symbol) in numbers.iter_mut().zip(symbols) {
        // Reports are below 2^62; an overflow check would be a branch on a secret.
        *number = number.wrapping_mul(g.into()).wrapping_add(symbol.into());
    }
    write_numbers(numbers, width, out);
}
