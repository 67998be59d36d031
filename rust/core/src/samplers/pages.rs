#![doc = include_str!("pages.md")]

use std::borrow::Cow;

use dpnoise_kernels::arch::alias::{self, COLUMN_BITS, DIGIT_BYTES, Drawn, ENTRIES, NUMBERS, REST, Table};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::exp::{Constants, FIRST_LIMBS};
use dpnoise_kernels::arith::interval::Interval;
use rand_core::TryCryptoRng;

use super::alias::{TOTAL, fill_blocks, rest};
use super::design::alias_table;
use super::histogram::Rarities;
use super::quotients::Quotients;
use super::refine::bernoulli;
use crate::error::Error;

/// A sampler of symmetric integers by pages of 63 magnitudes.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    law: Quotients,
    /// That of the pages, and those of their entries.
    tables: Vec<Table>,
    counts: Counts,
    /// The probabilities at the precision of [`Constants::first`].
    first: Probabilities,
}

/// How many words a page has, and an entry of each page.
#[derive(Clone, Debug)]
struct Counts {
    page: [u64; ENTRIES],
    entries: Vec<[u64; ENTRIES]>,
}

/// The probabilities of the pages, and in each page those of its entries; [`REST`] is what no page has.
#[derive(Clone, Debug)]
struct Probabilities {
    pages: Vec<Ball>,
    entries: Vec<Vec<Ball>>,
}

/// The bits for intervals of so many limbs: thousands of products lose fewer than 64.
fn precision(limbs: usize) -> u64 {
    64 * (limbs as u64 + 1)
}

impl Probabilities {
    fn new(law: Quotients, pages: usize, limbs: usize) -> Self {
        let precision = precision(limbs);
        let (masses, beyond) = law.masses(REST * pages, precision);
        let sum = |masses: &[Ball]| masses.iter().fold(Ball::integer(0, precision), |sum, mass| &sum + mass);
        let zero = || Ball::integer(0, precision);
        let mut pages: Vec<_> = masses.chunks(REST).map(sum).collect();
        let shares = |masses: &[Ball], of: &Ball| masses.iter().map(|mass| mass.divided_by(of)).collect::<Vec<_>>();
        let in_page = |(masses, page): (&[Ball], &Ball)| [shares(masses, page), vec![zero()]].concat();
        let entries = masses.chunks(REST).zip(&pages).map(in_page).collect();
        pages.resize_with(REST, zero);
        pages.push(beyond);
        Self { pages: shares(&pages, &sum(&pages)), entries }
    }
}

/// For each probability that many words less a half, rounded down, and the others for the rest; or `None` where the balls do
/// not decide them.
fn counts(probabilities: &[Ball]) -> Option<[u64; ENTRIES]> {
    let mut counts = [0; ENTRIES];
    for (count, probability) in counts.iter_mut().zip(&probabilities[..REST]) {
        let half = Ball::integer(1, probability.precision()).scaled(-1);
        let (low, high) = (&in_words(probability) - &half).floors()?;
        *count = Some(low.max(0).cast_unsigned()).filter(|&count| count == high.max(0).cast_unsigned())?;
    }
    counts[REST] = TOTAL - counts.iter().sum::<u64>();
    Some(counts)
}

/// A probability in words of [`TOTAL`].
fn in_words(probability: &Ball) -> Ball {
    probability.scaled(TOTAL.ilog2().into())
}

/// What its count of words leaves of an entry's probability for the rest, at most 3/2, behind a 2 that it is a share of.
fn rest_of(probabilities: &[Ball], counts: &[u64; ENTRIES], entry: usize, limbs: usize) -> (Interval, Interval) {
    let count = if entry == REST { 0 } else { counts[entry] };
    let [two, count] = [2, count].map(|words| Ball::integer(words, 64));
    (two.interval(limbs), (&in_words(&probabilities[entry]) - &count).interval(limbs))
}

impl Pages {
    /// The tables of a law.
    ///
    /// # Panics
    /// When a number is beyond 63 pages with a probability of 2^-62 or more.
    pub(super) fn new(law: Quotients) -> Self {
        [4, 16, REST].iter().find_map(|&pages| Self::of(law, pages)).expect("pages for nearly all numbers")
    }

    /// The tables of so many pages, or `None` where a number is beyond them with a probability of 2^-62 or more.
    fn of(law: Quotients, pages: usize) -> Option<Self> {
        let counts = |at: &Probabilities| {
            let entries = at.entries.iter().map(|entries| counts(entries)).collect::<Option<_>>();
            Some(Counts { page: counts(&at.pages)?, entries: entries? })
        };
        let mut limbs = FIRST_LIMBS;
        let first = Probabilities::new(law, pages, limbs);
        // What no page has must be less than a word, too, for the coins of `rest`.
        if !(&Ball::integer(1, 64) - &in_words(&first.pages[REST])).is_positive() {
            return None;
        }
        let mut found = counts(&first);
        while found.is_none() {
            limbs *= 2;
            found = counts(&Probabilities::new(law, pages, limbs));
        }
        let counts = found?;
        let table = |counts: &[u64; ENTRIES]| Table::new(&alias_table(counts, 1 << COLUMN_BITS));
        let tables = core::iter::once(&counts.page).chain(&counts.entries).map(table).collect();
        Some(Self { law, tables, counts, first })
    }

    /// The smallest t with P(|x| <= t) >= `level`, in floating point.
    pub(super) fn magnitude_quantile(&self, level: f64) -> u64 {
        let Probabilities { pages, entries } = &self.first;
        let of_page = |(page, entries): (&Ball, &Vec<Ball>)| {
            entries[..REST].iter().map(|entry| (page * entry).upper_f64()).collect::<Vec<_>>()
        };
        let probabilities: Vec<f64> = pages.iter().zip(entries).flat_map(of_page).collect();
        // From the largest magnitude down, until more than 1 - level are beyond the next smaller one.
        let mut beyond = 0.0;
        let larger = probabilities.iter().rev().take_while(|&probability| {
            beyond += probability;
            beyond <= 1.0 - level
        });
        (probabilities.len() - 1).saturating_sub(larger.count()) as u64
    }

    /// Fills `out`; where it fails, only in part.
    pub(super) fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        fill_blocks(rng, out, 2, |rng, instructions, words, drawn, numbers| {
            alias::run_pages(instructions, &self.tables, words, drawn, numbers);
            if declassify(Reason::Rest, drawn.rest) {
                return self.resolve(rng, words, &declassify(Reason::Rest, *drawn), numbers);
            }
            Ok(0)
        })
    }

    /// Draws the pages and entries that stand for the rest, number by number. Returns how many numbers had some.
    fn resolve<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        words: &[u8],
        Drawn { entries: [pages, entries, _], .. }: &Drawn,
        numbers: &mut [i64; NUMBERS],
    ) -> Result<u64, Error> {
        let Some(words) = words.last_chunk() else { unreachable!("two digits") };
        let mut resolved = 0;
        for (i, number) in numbers.iter_mut().enumerate() {
            let (page, entry) = (pages[i] as usize, entries[i] as usize);
            if page == REST || entry == REST {
                let magnitude = self.magnitude(rng, words, i, page, entry)?.cast_signed();
                *number = if words[DIGIT_BYTES - NUMBERS + i] >> 7 == 1 { -magnitude } else { magnitude };
                resolved += 1;
            }
        }
        Ok(resolved)
    }

    /// The magnitude of number `i`, whose page or entry is [`REST`].
    fn magnitude<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        words: &[u8; DIGIT_BYTES],
        i: usize,
        mut page: usize,
        mut entry: usize,
    ) -> Result<u64, Error> {
        if page == REST {
            page = rest(rng, |page, constants| {
                rest_of(&self.at(constants).pages, &self.counts.page, page, constants.limbs())
            })?;
            if page == REST {
                return self.beyond(rng);
            }
            entry = self.tables[1 + page].entry_vartime(words, i);
        }
        if entry == REST {
            entry = rest(rng, |entry, constants| {
                rest_of(&self.at(constants).entries[page], &self.counts.entries[page], entry, constants.limbs())
            })?;
        }
        Ok((REST * page + entry) as u64)
    }

    /// A magnitude that no page has: the first one, unless a coin says that it is larger, and so on.
    fn beyond<R: TryCryptoRng + ?Sized>(&self, rng: &mut R) -> Result<u64, Error> {
        let mut magnitude = REST * self.counts.entries.len();
        while !bernoulli(rng, |constants| {
            let (mut masses, beyond) = self.law.masses(magnitude + 1, precision(constants.limbs()));
            let own = masses.swap_remove(magnitude);
            own.divided_by(&(&own + &beyond)).interval(constants.limbs())
        })? {
            magnitude += 1;
        }
        Ok(magnitude as u64)
    }

    fn at(&self, constants: &Constants) -> Cow<'_, Probabilities> {
        if core::ptr::eq(constants, Constants::first()) {
            Cow::Borrowed(&self.first)
        } else {
            Cow::Owned(Probabilities::new(self.law, self.counts.entries.len(), constants.limbs()))
        }
    }
}
