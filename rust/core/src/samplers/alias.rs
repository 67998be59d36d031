#![doc = include_str!("alias.md")]

use dpnoise_kernels::arch::alias::{
    self, COLUMN_BITS, DIGIT_BYTES, DIGITS, Digit, Drawn, ENTRIES, NUMBERS, REST, Table,
};
use dpnoise_kernels::arch::instruction_set::InstructionSet;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::exp::{Constants, FIRST_LIMBS};
use dpnoise_kernels::arith::fixed::{Fixed, Limbs};
use dpnoise_kernels::arith::interval::Interval;
use rand_core::TryCryptoRng;

use super::density::{Density, Law, Shape};
use super::design::{alias_table, reaches};
use super::histogram::Rarities;
use super::refine::{bernoulli, heads, is_below};
use crate::error::Error;
use crate::instruction_set;
use crate::rng::{self, Wiped, wipe};

/// Counts add up to 2^62.
pub(super) const TOTAL: u64 = (ENTRIES as u64) << COLUMN_BITS;

/// A sampler of integers by digits.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    law: Law,
    places: Vec<Place>,
    digits: Vec<Digit>,
    /// A, for each digit.
    counts: Vec<[u64; ENTRIES]>,
}

/// Which digit: entry e < 63 has a probability proportional to f(step e).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    step: u64,
    /// Entries above 0 have two signs, and more digits may follow them.
    signed: bool,
    /// It is the last one: larger entries exist.
    open: bool,
}

impl Place {
    /// The digits of a distribution, or `None` if there is no room for all but 2^-64 of it.
    fn all(law: &Law, signed: bool) -> Option<Vec<Self>> {
        let first = if signed { 62 } else { 63 };
        let steps = match law.shape {
            Shape::Exponential => &[1, first, first * 63][..],
            Shape::Gaussian => &[1],
        };
        let last = steps.iter().position(|&step| reaches(law.shape, u128::from(63 * step), law.scale.ratio()))?;
        let place = |(i, &step)| Self { step, signed: signed && i == 0, open: i == last };
        Some(steps[..=last].iter().enumerate().map(place).collect())
    }

    /// The probabilities of the entries below 63 and of all others together.
    fn probabilities<L: Limbs>(self, density: &Density<L>, constants: &Constants<L>) -> Vec<Interval<L>> {
        match density.shape() {
            Shape::Exponential => self.of_exponential(density, constants),
            Shape::Gaussian => self.of_gaussian(density, constants),
        }
    }

    /// Differences of what follows each other. With q = f(step), an entry is e or more with probability 2 q^e / (1 + q) for
    /// e > 0 where there are signs, and q^e where there are none. Where the last entry is 62, differences are as many times
    /// larger as makes them add up to the same, by 1 / (1 - q^62) or 1 / (1 - q^63).
    fn of_exponential<L: Limbs>(self, density: &Density<L>, constants: &Constants<L>) -> Vec<Interval<L>> {
        let one = Interval::exact(Fixed::from_integer(1, constants.limbs()));
        let q = density.at(self.step, constants);
        let (scale, entries) =
            if self.signed { (one.plus(&q).reciprocal_vartime(), REST as u64 - 1) } else { (one, REST as u64) };
        let zero = self.signed.then(|| q.complement().times(&scale));
        let mut first = scale.times_integer(1 + u64::from(self.signed));
        if !self.open {
            // The difference is from 1/90 to 1, since trials would be used for a larger scale.
            let all = density.at(entries * self.step, constants).complement();
            first = first.times(&all.times_integer(64).reciprocal_vartime()).times_integer(64);
        }
        let mut probabilities = density.at_bins(ENTRIES, q, first, |_| 0);
        for entry in 0..REST {
            let more = probabilities[entry + 1].clone();
            probabilities[entry] = probabilities[entry].clone().minus(&more);
        }
        if let Some(zero) = zero {
            probabilities[0] = zero;
        }
        if !self.open {
            probabilities[REST] = Interval::exact(Fixed::zero(constants.limbs()));
        }
        probabilities
    }

    fn of_gaussian<L: Limbs>(self, density: &Density<L>, constants: &Constants<L>) -> Vec<Interval<L>> {
        let limbs = constants.limbs();
        let one = Interval::exact(Fixed::from_integer(1, limbs));
        // It is below 2^(-64 k^2) from 63 k on, and all of it from there on is below twice that.
        let count = REST * (limbs - 1).isqrt() + REST;
        let mut masses = density.at_bins(count, density.at(self.step, constants), one, |_| 0);
        let tail = masses.drain(REST + 1..).collect::<Vec<_>>();
        masses[REST] = tail.iter().fold(masses[REST].clone(), Interval::plus);
        masses[REST].high = masses[REST].high.clone().plus_ulps(2);
        masses[1..].iter_mut().for_each(|mass| *mass = mass.clone().times_integer(2));
        let inverse = masses[1..].iter().fold(masses[0].clone(), Interval::plus).reciprocal_vartime();
        masses.iter().map(|mass| mass.times(&inverse)).collect()
    }

    /// For each entry the largest whole number below its probability times 2^62, and for 63 what is left; or `None` when
    /// the precision does not decide them.
    fn counts<L: Limbs>(self, density: &Density<L>, constants: &Constants<L>) -> Option<[u64; ENTRIES]> {
        let below = |x: &Fixed<L>| (x.integer() + u64::from(!x.is_whole())).clamp(1, TOTAL) - 1;
        let mut counts = [0; ENTRIES];
        for (count, probability) in counts.iter_mut().zip(self.probabilities(density, constants)).take(REST) {
            let scaled = probability.times_integer(TOTAL);
            *count = Some(below(&scaled.low)).filter(|&count| count == below(&scaled.high))?;
        }
        counts[REST] = TOTAL - counts.iter().sum::<u64>();
        Some(counts)
    }
}

impl Alias {
    /// The tables of a distribution, or `None` for scales that are too large for [`DIGITS`] digits, or one of a
    /// Gaussian.
    pub(super) fn new(law: &Law, signed: bool) -> Option<Self> {
        let places = Place::all(law, signed)?;
        let counts = counts(&places, law, Constants::shorter()).unwrap_or_else(|| {
            let mut limbs = FIRST_LIMBS;
            loop {
                limbs *= 2;
                if let Some(counts) = counts(&places, law, &Constants::<Vec<u64>>::new(limbs)) {
                    break counts;
                }
            }
        });
        let digit = |(place, counts): (&Place, &[u64; ENTRIES])| Digit {
            table: Table::new(&alias_table(counts, 1 << COLUMN_BITS)),
            step: place.step as i32,
            signed: place.signed,
        };
        let digits = places.iter().zip(&counts).map(digit).collect();
        Some(Self { law: law.clone(), places, digits, counts })
    }

    /// The tables of the digits.
    pub(super) fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// Fills `out`; where it fails, only in part.
    pub(super) fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        fill_blocks(rng, out, self.places.len(), |rng, instructions, words, drawn, numbers| {
            alias::run(instructions, &self.digits, words, drawn, numbers);
            if declassify(Reason::Rest, drawn.rest) {
                return self.resolve(rng, &declassify(Reason::Rest, *drawn), numbers);
            }
            Ok(0)
        })
    }

    /// Draws the entries that stand for the rest, number by number and digit by digit. Returns how many numbers had some.
    fn resolve<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        Drawn { entries, .. }: &Drawn,
        numbers: &mut [i64; NUMBERS],
    ) -> Result<u64, Error> {
        let mut resolved = 0;
        for (i, number) in numbers.iter_mut().enumerate() {
            let negative = entries[0][i] < 0;
            let entries: [u64; DIGITS] = entries.map(|entries| entries[i].unsigned_abs().into());
            if !entries.contains(&(REST as u64)) {
                continue;
            }
            let mut magnitude = 0;
            for (digit, (place, mut entry)) in self.places.iter().zip(entries).enumerate() {
                if entry == REST as u64 {
                    entry = self.rest(rng, digit)?;
                }
                magnitude += entry * place.step;
                if place.signed && entry == 0 {
                    break;
                }
            }
            *number = if negative { -magnitude.cast_signed() } else { magnitude.cast_signed() };
            resolved += 1;
        }
        Ok(resolved)
    }

    /// An entry of a digit with the probabilities that its counts fall short of.
    fn rest<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, digit: usize) -> Result<u64, Error> {
        let (place, counts) = (self.places[digit], &self.counts[digit]);
        let entry = rest(rng, |entry, constants| {
            let mut probabilities = place.probabilities(&self.law.density(constants), constants);
            let whole = |number| Interval::exact(Fixed::from_integer(number, constants.limbs()));
            let count = whole(if entry == REST { 0 } else { counts[entry] });
            (whole(1), probabilities.swap_remove(entry).times_integer(TOTAL).minus(&count))
        })?;
        if entry == REST { self.tail(rng, place) } else { Ok(entry as u64) }
    }

    /// An entry from 63 on, of the last digit.
    fn tail<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, Place { step, .. }: Place) -> Result<u64, Error> {
        let start = REST as u64 * step;
        loop {
            let beyond = heads(rng, |constants| self.law.density(constants).decay(start, step, constants))?;
            if self.law.shape == Shape::Exponential
                || bernoulli(rng, |constants| self.law.density(constants).excess(beyond, constants))?
            {
                return Ok(REST as u64 + beyond);
            }
        }
    }
}

/// The counts of all digits.
fn counts<L: Limbs>(places: &[Place], law: &Law, constants: &Constants<L>) -> Option<Vec<[u64; ENTRIES]>> {
    let density = Density::new(law.shape, law.scale.ratio(), constants);
    places.iter().map(|place| place.counts(&density, constants)).collect()
}

/// Draws an entry with the probabilities that counts fall short of: w and a of its coin, heads with a / w. [`REST`] is what no
/// entry has.
pub(super) fn rest<R: TryCryptoRng + ?Sized>(
    rng: &mut R,
    sides: impl Fn(usize, &Constants) -> (Interval, Interval),
) -> Result<usize, Error> {
    loop {
        let mut word = || rng.try_next_u64().map_err(Error::randomness);
        let (entry, prefix) = (word()? as usize % ENTRIES, word()? >> 1);
        let kept = is_below(rng, Reason::Rest, prefix, |constants| sides(entry, constants))?;
        if declassify(Reason::Rest, kept) {
            return Ok(entry);
        }
    }
}

/// Fills `out` by blocks of numbers that have the words of so many digits each. `draw` returns in how many numbers of a block
/// it had to decide the rest. Where it fails, `out` is filled only in part.
pub(super) fn fill_blocks<R: TryCryptoRng + ?Sized>(
    rng: &mut R,
    out: &mut [i64],
    digits: usize,
    draw: impl Fn(&mut R, InstructionSet, &[u8], &mut Drawn, &mut [i64; NUMBERS]) -> Result<u64, Error>,
) -> Result<Rarities, Error> {
    let instructions = instruction_set::current()?;
    let block_bytes = DIGIT_BYTES * digits;
    let Workspace { words, drawn, spare } = &mut Workspace::new(blocks(out.len()) * block_bytes);
    let mut rarities = Rarities::default();
    let mut missing = out;
    while !missing.is_empty() {
        let words = &mut words[..blocks(missing.len()) * block_bytes];
        rng::fill_bytes(rng, words)?;
        for words in words.chunks_exact(block_bytes) {
            let (part, later) = missing.split_at_mut(missing.len().min(NUMBERS));
            // Numbers go straight to their place where there is room for a whole block.
            let numbers = part.first_chunk_mut().unwrap_or(spare);
            rarities.tails += draw(rng, instructions, words, drawn, numbers)?;
            if part.len() < NUMBERS {
                part.copy_from_slice(&spare[..part.len()]);
            }
            rarities.trials += NUMBERS as u64;
            missing = later;
        }
    }
    Ok(rarities)
}

/// How many blocks' words are fetched at once.
fn blocks(missing: usize) -> usize {
    if missing < 4 * NUMBERS { 1 } else { 4 }
}

/// The working memory of a call.
struct Workspace {
    words: Wiped<u8>,
    drawn: Drawn,
    /// The numbers of a block for which there is not enough room.
    spare: [i64; NUMBERS],
}

impl Workspace {
    fn new(bytes: usize) -> Self {
        Self { words: Wiped::new(bytes), drawn: Drawn::default(), spare: [0; NUMBERS] }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        wipe(core::slice::from_mut(&mut self.drawn));
        wipe(&mut self.spare);
    }
}
