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
        while !bernoulli(rng, |constants| self.own_share(magnitude, constants))? {
            magnitude += 1;
        }
        Ok(magnitude as u64)
    }

    /// P(|X| = magnitude) / P(|X| >= magnitude).
    fn own_share(&self, magnitude: usize, constants: &Constants) -> Interval {
        let (mut masses, beyond) = self.law.masses(magnitude + 1, precision(constants.limbs()));
        let own = masses.swap_remove(magnitude);
        own.divided_by(&(&own + &beyond)).interval(constants.limbs())
    }

    fn at(&self, constants: &Constants) -> Cow<'_, Probabilities> {
        if core::ptr::eq(constants, Constants::first()) {
            Cow::Borrowed(&self.first)
        } else {
            Cow::Owned(Probabilities::new(self.law, self.counts.entries.len(), constants.limbs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use dpnoise_kernels::arch::instruction_set::InstructionSet;
    use dpnoise_kernels::arith::fixed::Fixed;

    use super::super::histogram::tests::hex;
    use super::*;
    use crate::params::Ratio;
    use crate::rng::ScriptedRng;

    /// A fraction, and the byte with the column and the sign.
    type Word = (u64, u8);

    /// Words without a pattern, the same ones on every machine.
    struct Pattern(u64);

    impl Pattern {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = (self.0 ^ self.0 >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^ x >> 29
        }

        fn word(&mut self) -> Word {
            (self.next() >> 8, self.next() as u8)
        }

        fn table(&mut self) -> Table {
            let mut columns = core::array::from_fn(|_| (self.next() >> 8, self.next() as u8 % 64));
            (columns[3].0, columns[5].0) = (0, (1 << COLUMN_BITS) - 1);
            Table::new(&columns)
        }
    }

    /// The bytes of a block.
    fn block(numbers: &[[Word; 2]; NUMBERS]) -> Vec<u8> {
        let mut bytes = vec![0; 2 * DIGIT_BYTES];
        for (i, words) in numbers.iter().enumerate() {
            for (&(fraction, head), digit) in words.iter().zip(bytes.chunks_exact_mut(DIGIT_BYTES)) {
                let planes = digit.chunks_exact_mut(NUMBERS);
                for (byte, plane) in fraction.to_le_bytes()[..7].iter().chain([&head]).zip(planes) {
                    plane[i] = *byte;
                }
            }
        }
        bytes
    }

    fn chosen(table: &Table, (fraction, head): Word) -> usize {
        let (threshold, alias) = table.columns()[usize::from(head) % ENTRIES];
        if fraction < threshold { usize::from(head) % ENTRIES } else { alias.into() }
    }

    /// A word that leads to an entry.
    fn word_of(table: &Table, entry: usize) -> Word {
        let columns = table.columns();
        let word = |column: usize| {
            let (threshold, alias) = columns[column];
            let own = (column == entry && threshold > 0).then(|| threshold - 1);
            Some((own.or((usize::from(alias) == entry).then_some(threshold))?, column as u8))
        };
        (0..ENTRIES).find_map(word).expect("a word")
    }

    fn list(items: impl IntoIterator<Item = impl ToString>) -> String {
        items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join("; ")
    }

    fn law(of: fn(Ratio) -> Quotients, numerator: u128, denominator: u128, pages: usize) -> Pages {
        Pages::of(of(Ratio::new(numerator, denominator).unwrap()), pages).unwrap()
    }

    /// What a block comes to on every instruction set: each number with its words, page and entry.
    fn kernel_rows(tables: &[Table], pattern: &mut Pattern) -> String {
        let mut rows = Vec::new();
        let near = |table: &Table, (fraction, head): Word, distance: i64| {
            let edge = table.columns()[usize::from(head) % ENTRIES].0;
            let fraction = if distance == i64::MAX { fraction } else { edge.saturating_add_signed(distance) };
            (fraction % (1 << COLUMN_BITS), head)
        };
        for distance in [-1, 0, 1, i64::MAX] {
            // Each column of the pages, and bits that do not count.
            let numbers = core::array::from_fn(|i| {
                let [(fraction, head), second] = [pattern.word(), pattern.word()];
                let first = near(&tables[0], (fraction, head << 6 | i as u8), distance);
                let other = [-1, 0, 1][(i + distance as usize % 3) % 3];
                [first, tables.get(1 + chosen(&tables[0], first)).map_or(second, |table| near(table, second, other))]
            });
            let words = block(&numbers);
            let results = InstructionSet::available().into_iter().map(|set| {
                let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
                alias::run_pages(set, tables, &words, &mut drawn, &mut numbers);
                (drawn.entries, drawn.rest, numbers)
            });
            let results: Vec<_> = results.collect();
            assert!(results.iter().all(|result| result == &results[0]), "{results:?}");
            let ([pages, entries, _], rest, all) = &results[0];
            assert_eq!(*rest, [pages, entries].iter().any(|entries| entries.contains(&(REST as i8))));
            for (i, [(f, h), (g, k)]) in numbers.into_iter().enumerate() {
                let (page, entry, negative, magnitude) = (pages[i], entries[i], all[i] < 0, all[i].unsigned_abs());
                rows.push(format!("({f}, {h}, {g}, {k}, {page}, {entry}, {negative}, {magnitude})"));
            }
        }
        format!("[\n{}]%uint63", rows.join(";\n"))
    }

    /// The number that the words of a block and further ones give in one of its places, and how many words are left.
    fn resolved(pages: &Pages, words: [Word; 2], further: &[u64]) -> (i64, usize) {
        let mut pattern = Pattern(5);
        let mut numbers = core::array::from_fn(|_| [pattern.word(), pattern.word()]);
        numbers[21] = words;
        let script = [block(&numbers), further.iter().flat_map(|word| word.to_le_bytes()).collect()].concat();
        let (mut rng, mut out) = (ScriptedRng::new(script), [0; NUMBERS]);
        assert_eq!(pages.try_fill(&mut rng, &mut out).expect("enough words").tails, 1);
        (out[21], rng.remaining() / 8)
    }

    /// Words for a coin of probability x / 2^(shift - 1), on both sides of the first 63 and 127 bits of it.
    fn edges(x: &Fixed, shift: u32) -> Vec<Vec<u64>> {
        let (mut bits, mut rest) = (u128::from(x.integer()), x.clone());
        let mut limb = || {
            (0..2).fold(0, |limb, _| {
                rest = rest.clone().fraction().times_integer(1 << 32);
                limb << 32 | rest.integer()
            })
        };
        let mut word = || {
            bits = bits << 64 | u128::from(limb());
            (bits >> shift) as u64
        };
        let (prefix, next) = (word() << 1, word());
        let sides =
            [prefix.checked_sub(2).map(|word| vec![word]), next.checked_sub(1).map(|next| vec![prefix | 1, next])];
        sides.into_iter().flatten().chain([vec![prefix, next + 1], vec![prefix + 3]]).collect()
    }

    /// Numbers whose page or entry is the rest: words on both sides of what is lacking, and behind them.
    fn resolved_rows(pages: &Pages) -> String {
        let mut rows = Vec::new();
        let (table, of_pages) = (&pages.tables[0], &pages.tables[1..]);
        let constants = Constants::first();
        let at = pages.at(constants);
        let lacks = |probabilities: &[Ball], counts, entry| {
            edges(&rest_of(probabilities, counts, entry, constants.limbs()).1.low, 2)
        };
        let of_page = |page| lacks(&at.pages, &pages.counts.page, page);
        let of_entry = |page: usize, entry| lacks(&at.entries[page], &pages.counts.entries[page], entry);
        let mut add = |first: Word, (g, k): Word, before: &[u64], coins: Vec<Vec<u64>>, after: &[u64]| {
            for (i, coin) in coins.into_iter().enumerate() {
                let ((f, h), k) = (first, k | (i as u8) << 7);
                let script = [before, &coin, after].concat();
                let (number, left) = resolved(pages, [first, (g, k)], &script);
                rows.push(format!("({f}, {h}, {g}, {k}, [{}], ({number}), {left})", list(script)));
            }
        };
        // Some entry is kept at last.
        let kept = [30, 0, 31, 0, 32, 0, 33, 0];
        let first = word_of(table, REST);
        let second = word_of(&of_pages[1], REST);
        let chosen = [&[REST as u64][..], &of_page(REST)[0]].concat();
        for beyond in [0, 2] {
            let own = pages.own_share(REST * of_pages.len() + beyond, constants);
            let before = [&chosen[..], &vec![u64::MAX; beyond]].concat();
            add(first, second, &before, edges(&own.low, 1), &[u64::MAX, 0]);
        }
        add(first, second, &[1, 0, 33], of_entry(1, 33), &kept);
        add(first, second, &[REST as u64], of_page(REST), &[[u64::MAX; 4], [0; 4]].concat());
        for (page, own) in of_pages.iter().enumerate().take(4) {
            add(first, word_of(own, 7), &[page as u64 | 11 << 6], of_page(page), &[2, 0, 1, 0, 0, 0, 3, 0]);
        }
        for (page, own) in of_pages.iter().enumerate().take(2) {
            let words = [word_of(table, page), word_of(own, REST)];
            for entry in [0, 1, 30, 62, REST] {
                let before = [5, u64::MAX, entry as u64 | 7 << 60];
                add(words[0], words[1], &before[..], of_entry(page, entry), &kept);
            }
        }
        format!("[\n{}]", rows.join(";\n"))
    }

    /// Writes what `make prove` computes again: pages and entries, and numbers that have a rest.
    #[test]
    #[ignore = "make prove runs it"]
    fn results_for_the_proofs() {
        let mut pattern = Pattern(17);
        let made: Vec<_> = (0..12).map(|_| pattern.table()).collect();
        let mut code = "From Coq Require Import ZArith List Uint63.\nFrom Dpnoise Require Import Model.\n".to_owned();
        code += "Import ListNotations.\nOpen Scope Z_scope.\nDefinition table (thresholds entries : list int) :=\n";
        code += "  Digit (map Uint63.to_Z thresholds) (map Uint63.to_Z entries) 1 false.\n";
        let mut tables_of = |name: &str, tables: &[Table]| {
            for (i, table) in tables.iter().enumerate() {
                let columns = table.columns();
                let [thresholds, entries] =
                    [list(columns.map(|column| column.0)), list(columns.map(|column| column.1))];
                writeln!(code, "Definition {name}{i} := table [{thresholds}]%uint63\n  [{entries}]%uint63.").unwrap();
            }
        };
        tables_of("made", &made);
        // The fewer pages, the faster: each coin beyond them takes all quotients. Numbers of pages differ.
        let laws = [
            ("skellam", law(|mu| Quotients::Skellam { mu }, 171, 2, 2)),
            ("staircase", law(|epsilon| Quotients::Staircase { epsilon, width: 27, inner: 13 }, 11, 2, 4)),
            ("share", law(|scale| Quotients::Shares { scale, shares: 1, parties: 3 }, 17, 4, 3)),
        ];
        for (name, law) in &laws {
            tables_of(name, &law.tables);
        }
        let (mut kernel, mut rests) = (Vec::new(), Vec::new());
        // With 63 pages each table stands for some.
        for pages in [1, 4, 16, REST] {
            let of = |page| if page == 0 { 0 } else { 1 + page % 11 };
            let tables: Vec<_> = (0..=pages).map(|page| made[of(page)].clone()).collect();
            let names = list((1..=pages).map(|page| format!("made{}", of(page))));
            kernel.push((format!("made0, [{names}]"), kernel_rows(&tables, &mut pattern)));
        }
        for (name, law) in &laws {
            let names = list((1..law.tables.len()).map(|page| format!("{name}{page}")));
            kernel.push((format!("{name}0, [{names}]"), kernel_rows(&law.tables, &mut pattern)));
            let constants = Constants::first();
            let at = law.at(constants);
            let bounds = |i: usize, Interval { low, high }: Interval| format!("({i}, ({}, {}))", hex(&low), hex(&high));
            let of = |probabilities: &[Ball], counts| {
                list([0, 1, 2, 3, 5, 30, 31, 32, 33, 62, REST].map(|entry| {
                    let (two, lacking) = rest_of(probabilities, counts, entry, constants.limbs());
                    let exact = hex(&Fixed::from_integer(2, constants.limbs()));
                    assert_eq!([hex(&two.low), hex(&two.high)], [exact.clone(), exact]);
                    bounds(entry, lacking)
                }))
            };
            let entries = (0..2).map(|page| of(&at.entries[page], &law.counts.entries[page]));
            let lists: Vec<_> = core::iter::once(of(&at.pages, &law.counts.page)).chain(entries).collect();
            let start = REST * law.counts.entries.len();
            let here = (start..start + 6).map(|magnitude| bounds(magnitude, law.own_share(magnitude, constants)));
            let here = list(here);
            writeln!(code, "Definition {name}_lacks := [[{}]].", lists.join("];\n [")).unwrap();
            writeln!(code, "Definition {name}_here := [{here}].").unwrap();
            let lists = format!("{name}0, [{names}], {name}_lacks, {name}_here");
            rests.push((lists, resolved_rows(law)));
        }
        for (name, all) in [("page_rows", kernel), ("rest_rows", rests)] {
            for (i, (_, rows)) in all.iter().enumerate() {
                writeln!(code, "Definition {name}{i} := {rows}.").unwrap();
            }
            let items = all.iter().enumerate().map(|(i, (lists, _))| format!("({lists}, {name}{i})"));
            writeln!(code, "Definition {name} := [{}].", list(items)).unwrap();
        }
        crate::write_for_the_proofs("PageRows.v", &code);
    }
}
