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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::histogram::tests::edge;
    use super::*;
    use crate::params::Scale;
    use crate::rng::ScriptedRng;

    const OTHERS: [i8; DIGITS] = [5, 7, 9];
    const ALL: i8 = REST as i8;

    /// Digits as they were drawn, and the words that are there to resolve them.
    #[derive(Clone)]
    struct Script {
        entries: [i8; DIGITS],
        words: Vec<u64>,
    }

    impl Script {
        /// The number and how many words are left, or `None` where there are too few.
        fn run(&self, alias: &Alias) -> Option<(i64, usize)> {
            let mut rng = ScriptedRng::new(self.words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
            let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
            for (digit, entry) in drawn.entries.iter_mut().zip(self.entries) {
                digit[0] = entry;
            }
            alias.resolve(&mut rng, &drawn, &mut numbers).ok()?;
            Some((numbers[0], rng.remaining() / 8))
        }

        /// The same with another word.
        fn with(&self, i: usize, word: u64) -> Self {
            let mut script = self.clone();
            script.words[i] = word;
            script
        }

        /// Word `i` on both sides of where the outcome changes first, and last: what lies between needs further words.
        fn edges(&self, i: usize, alias: &Alias) -> [Self; 3] {
            let outcome = |word| self.with(i, word).run(alias);
            let first = outcome(0);
            let [low, open] = edge([0, u64::MAX], |word| outcome(word) != first);
            let second = outcome(open);
            let [_, end] = edge([open, u64::MAX], |word| outcome(word) != second);
            [low, open, end].map(|word| self.with(i, word))
        }
    }

    /// Writes what `make prove` computes again: numbers that are resolved, with words on both sides of what entries lack.
    #[test]
    #[ignore = "make prove runs it"]
    fn results_for_the_proofs() {
        let mut state = 11_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^ x >> 29
        };
        // Those of proofs/data/numbers.rs.
        let laplace = [0.01, 1.0, 10.0, 1000.0].map(|scale| (Shape::Exponential, true, scale));
        let geometric = [3.0, 1000.0].map(|scale| (Shape::Exponential, false, scale));
        let gaussian = [0.5, 1.0, 6.0].map(|scale| (Shape::Gaussian, true, scale));
        let mut lists = Vec::new();
        for (shape, signed, scale) in laplace.into_iter().chain(geometric).chain(gaussian) {
            let law = Law::new(shape, Scale::from_f64(scale).expect("a scale"));
            let alias = Alias::new(&law, signed).expect("a small scale");
            let digits = alias.places.len();
            let drawn = |places: &[usize]| {
                let mut entries = OTHERS;
                entries[digits..].fill(0);
                for &place in places {
                    entries[place] = ALL;
                }
                entries
            };
            // An entry that some words are left for, of each digit: what ends attempts.
            let kept = |digit| {
                let is_kept =
                    |&entry: &u64| Script { entries: drawn(&[digit]), words: vec![entry, 0] }.run(&alias).is_some();
                (0..REST as u64).find(is_kept).expect("an entry that lacks something")
            };
            let ends: Vec<u64> = (0..digits).flat_map(|digit| [kept(digit), 0]).collect();
            let mut scripts = Vec::new();
            let mut script = |places: &[usize], words: &[u64]| {
                let mut entries = drawn(places);
                if signed && random() % 2 == 1 {
                    entries = entries.map(|entry| -entry);
                }
                let random = (0..8).map(|_| random()).collect::<Vec<_>>();
                Script { entries, words: [words, &random, &ends.repeat(digits + 2)].concat() }
            };
            for digit in 0..digits {
                for entry in [0, 1, 62, 63] {
                    scripts.extend(script(&[digit], &[entry | 5 << 6, 0]).edges(1, &alias));
                }
            }
            // The tail, where entries from 63 on are no rarer than 63 bits show: its first coin, and what a Gaussian lacks after
            // a head.
            let tail = script(&[digits - 1], &[63, 0, 0, u64::MAX, 0]);
            if scale == 6.0 || (scale == 1.0 && shape == Shape::Exponential) {
                scripts.extend((2..=4).flat_map(|i| tail.edges(i, &alias)));
            }
            // All digits; a zero that the words give, and one that they gave.
            let all: Vec<usize> = (0..digits).collect();
            scripts.push(script(&all, &[64, 0]));
            scripts.extend((0..2).map(|_| script(&all, &[])));
            if signed {
                let mut zero = script(&all, &[]);
                zero.entries = [0; DIGITS];
                scripts.push(zero);
            }
            let rows = scripts.iter().filter_map(|script| {
                // Coq takes long where many words are compared.
                let (number, left) = script.run(&alias).filter(|&(_, left)| left + 10 >= script.words.len())?;
                let list = |items: String| format!("[{items}]");
                let entries = script.entries[..digits].iter().map(|entry| format!("({entry})")).collect::<Vec<_>>();
                let words = script.words.iter().map(u64::to_string).collect::<Vec<_>>();
                Some(format!("({}, {}, ({number}), {left})", list(entries.join("; ")), list(words.join("; "))))
            });
            let rows = rows.collect::<Vec<_>>();
            assert!(rows.len() > 4, "{} of {}", rows.len(), scripts.len());
            lists.push(format!("[\n{}]", rows.join(";\n")));
        }
        let mut code = "From Coq Require Import ZArith List.\nImport ListNotations.\nOpen Scope Z_scope.\n".to_owned();
        writeln!(code, "Definition rests : list (list (list Z * list Z * Z * Z)) := [{}].", lists.join(";\n")).unwrap();
        crate::write_for_the_proofs("Rests.v", &code);
    }
}
