//! Alias tables of 64 entries and 62 bits: 64 numbers at a time, one digit of each after the other, or a page and an entry.
//!
//! Entry 63 stands for what 62 bits cannot say of the probabilities; the caller decides it exactly. No exponential is
//! computed, nothing is rejected and every number takes the same words. See `samplers/alias.md` and
//! `samplers/pages.md` for the proofs.
#![allow(unsafe_code, reason = "kernels over vendor intrinsics")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes8, Vectors};

/// The numbers in a block.
pub const NUMBERS: usize = 64;

/// The entries of a table.
pub const ENTRIES: usize = 64;

/// The entry of what is left over.
pub const REST: usize = ENTRIES - 1;

/// The most digits of a number.
pub const DIGITS: usize = 3;

/// A column of a table covers 2^56 of the 2^62 words.
pub const COLUMN_BITS: u32 = 56;

/// The bytes of a column's fraction.
const FRACTION_BYTES: usize = COLUMN_BITS as usize / 8;

/// The bytes of a digit of a block: the lowest byte of all numbers' fractions, and so on to the seventh, then a byte of
/// each with the column in its lower 6 bits and the sign in bit 7.
pub const DIGIT_BYTES: usize = (FRACTION_BYTES + 1) * NUMBERS;

/// An alias table (Walker 1977), byte by byte of its thresholds.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Table {
    thresholds: [[u8; ENTRIES]; FRACTION_BYTES],
    aliases: [u8; ENTRIES],
}

/// A digit, which is public.
#[derive(Clone, Debug)]
pub struct Digit {
    /// The table of the entries.
    pub table: Table,
    /// What the entry is multiplied by.
    pub step: i32,
    /// For the first digit: its words have the signs of the numbers, and where its entry is zero, so is the number.
    pub signed: bool,
}

/// What a block's numbers are made of.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The entries, digit by digit, each with the sign of its number; zero where they do not count.
    pub entries: [[i8; NUMBERS]; DIGITS],
    /// Whether some entry is [`REST`].
    pub rest: bool,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { entries: [[0; NUMBERS]; DIGITS], rest: false }
    }
}

impl Table {
    /// The table with these columns: a fraction below the first leads to the column's entry, others to the second.
    #[must_use]
    pub fn new(columns: &[(u64, u8); ENTRIES]) -> Self {
        Self {
            thresholds: core::array::from_fn(|byte| columns.map(|(threshold, _)| (threshold >> (8 * byte)) as u8)),
            aliases: columns.map(|(_, alias)| alias),
        }
    }

    /// The columns that it was made of.
    #[must_use]
    pub fn columns(&self) -> [(u64, u8); ENTRIES] {
        let threshold = |i: usize| self.thresholds.iter().rev().fold(0, |word, byte| word << 8 | u64::from(byte[i]));
        core::array::from_fn(|i| (threshold(i), self.aliases[i]))
    }

    /// The entry that the words of a digit choose for number `i`, at addresses that depend on them.
    #[must_use]
    pub fn entry_vartime(&self, words: &[u8; DIGIT_BYTES], i: usize) -> usize {
        let column = words[FRACTION_BYTES * NUMBERS + i] as usize % ENTRIES;
        let below = (0..FRACTION_BYTES).rev().map(|byte| words[NUMBERS * byte + i]);
        let own = below.lt((0..FRACTION_BYTES).rev().map(|byte| self.thresholds[byte][column]));
        if own { column } else { self.aliases[column].into() }
    }
}

/// Draws the numbers of a block from its words, of which there are [`DIGIT_BYTES`] for each digit: the sums of the entries
/// times their steps. A number with an entry that is [`REST`] must be drawn in another way.
///
/// # Panics
/// When there are no digits, more than [`DIGITS`], or words for another number of them.
pub fn run(
    instructions: InstructionSet,
    digits: &[Digit],
    words: &[u8],
    drawn: &mut Drawn,
    numbers: &mut [i64; NUMBERS],
) {
    assert!((1..=DIGITS).contains(&digits.len()) && words.len() == DIGIT_BYTES * digits.len());
    dispatch!(
        instructions,
        run_lanes(digits: &[Digit], words: &[u8], drawn: &mut Drawn, numbers: &mut [i64; NUMBERS])
    );
}

/// Draws the numbers of a block from its words, of which there are twice [`DIGIT_BYTES`]: the first choose a page by the first
/// table, and the second have the signs and choose an entry by the table of each page, of which one counts. Number [`REST`] p + e is entry e of page p. These are digits 0
/// and 1 of `drawn`, without signs. A number with one that is [`REST`] must be drawn in another way.
///
/// # Panics
/// When there are no tables, more than [`REST`] pages, or other words.
pub fn run_pages(
    instructions: InstructionSet,
    tables: &[Table],
    words: &[u8],
    drawn: &mut Drawn,
    numbers: &mut [i64; NUMBERS],
) {
    assert!((1..=ENTRIES).contains(&tables.len()) && words.len() == 2 * DIGIT_BYTES);
    dispatch!(
        instructions,
        run_pages_lanes(tables: &[Table], words: &[u8], drawn: &mut Drawn, numbers: &mut [i64; NUMBERS])
    );
}

/// # Safety
/// As for the methods of [`Lanes8`].
#[inline(always)]
unsafe fn run_pages_lanes<S: Vectors>(tables: &[Table], words: &[u8], drawn: &mut Drawn, numbers: &mut [i64; NUMBERS]) {
    let ([words, common], _) = words.as_chunks::<DIGIT_BYTES>() else { unreachable!("two of them") };
    let [pages, entries @ ..] = tables else { unreachable!("one or more") };
    for first in (0..NUMBERS).step_by(S::U8::N) {
        // SAFETY: passed on from the caller; N bytes follow, since N divides the numbers.
        unsafe {
            let none = S::U8::splat(0);
            let (page, _) = choose::<S::U8>(pages, words, first);
            let mut chosen = none;
            for (table, own) in entries.iter().zip(0..) {
                let (entry, _) = choose::<S::U8>(table, common, first);
                let other = none.is_below(page.xor(S::U8::splat(own)), none);
                chosen = chosen.select(entry, other);
            }
            page.store(&mut drawn.entries[0][first..]);
            chosen.store(&mut drawn.entries[1][first..]);
        }
    }
    // Plain code, as above.
    let [pages, entries, _] = &drawn.entries;
    let heads = &common[FRACTION_BYTES * NUMBERS..];
    for (((number, &page), &entry), &head) in numbers.iter_mut().zip(pages).zip(entries).zip(heads) {
        let sign = -i32::from(head >> 7);
        let magnitude = i32::from(page).wrapping_mul(REST as i32).wrapping_add(entry.into());
        *number = (magnitude ^ sign).wrapping_sub(sign).into();
    }
    drawn.rest = has_rest(&drawn.entries[..2]);
}

/// # Safety
/// As for the methods of [`Lanes8`].
#[inline(always)]
unsafe fn run_lanes<S: Vectors>(
    digits: &[Digit],
    words: &[u8],
    Drawn { entries, rest }: &mut Drawn,
    numbers: &mut [i64; NUMBERS],
) {
    let (words, _) = words.as_chunks::<DIGIT_BYTES>();
    for first in (0..NUMBERS).step_by(S::U8::N) {
        // SAFETY: passed on from the caller; N bytes follow, since N divides the numbers.
        unsafe {
            let none = S::U8::splat(0);
            let (mut sign, mut counts) = (none, S::U8::splat(u8::MAX));
            for ((digit, words), entries) in digits.iter().zip(words).zip(&mut *entries) {
                let (entry, head) = choose::<S::U8>(&digit.table, words, first);
                if digit.signed {
                    sign = head.is_negative();
                    counts = none.is_below(entry, none);
                }
                entry.xor(sign).sub(sign).and(counts).store(&mut entries[first..]);
            }
        }
    }
    // Plain code, which the compiler vectorises; nothing overflows.
    for (number, &entry) in numbers.iter_mut().zip(&entries[0]) {
        *number = entry.into();
    }
    for (digit, entries) in digits[1..].iter().zip(&entries[1..]) {
        for (number, &entry) in numbers.iter_mut().zip(entries) {
            *number = number.wrapping_add(i32::from(entry).wrapping_mul(digit.step).into());
        }
    }
    *rest = has_rest(&entries[..digits.len()]);
}

/// Whether some entry is [`REST`].
#[inline(always)]
fn has_rest(entries: &[[i8; NUMBERS]]) -> bool {
    // REST + 1 is the first number with bit 6.
    let any = entries.as_flattened().iter().fold(0, |any, entry| any | entry.unsigned_abs().wrapping_add(1));
    any >> 6 != 0
}

/// The chosen entries of the N numbers from `first` on, and the bytes with their signs.
///
/// # Safety
/// As for the methods of [`Lanes8`].
#[inline(always)]
unsafe fn choose<V: Lanes8>(table: &Table, words: &[u8; DIGIT_BYTES], first: usize) -> (V, V) {
    let (planes, _) = words.as_chunks::<NUMBERS>();
    // SAFETY: passed on from the caller.
    unsafe {
        let head = V::load(&planes[FRACTION_BYTES][first..]);
        let column = head.and(V::splat(REST as u8));
        let mut below = V::splat(0);
        for (plane, thresholds) in planes.iter().zip(&table.thresholds) {
            below = V::load(&plane[first..]).is_below(column.look_up(thresholds), below);
        }
        (column.select(column.look_up(&table.aliases), below), head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(count: usize, signed: bool) -> Vec<Digit> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 8
        };
        [1, 62, 62 * 63][..count]
            .iter()
            .map(|&step| {
                let mut columns = core::array::from_fn(|_| (next(), (next() >> 50) as u8 & 63));
                (columns[3].0, columns[5].0) = (0, (1 << COLUMN_BITS) - 1);
                Digit { table: Table::new(&columns), step, signed: signed && step == 1 }
            })
            .collect()
    }

    /// The threshold of a column.
    fn threshold(table: &Table, column: usize) -> u64 {
        table.columns()[column].0
    }

    /// Sets the fraction and the last byte of number `i` in the words of a digit.
    fn put(words: &mut [u8], i: usize, fraction: u64, head: u8) {
        for j in 0..7 {
            words[NUMBERS * j + i] = (fraction >> (8 * j)) as u8;
        }
        words[NUMBERS * 7 + i] = head;
    }

    /// What the documentation says, with numbers of 64 bits: the entry of number i.
    fn plain_entry(table: &Table, words: &[u8], i: usize) -> u8 {
        let column = words[NUMBERS * 7 + i] & 63;
        let fraction = (0..7).fold(0, |word, j| word | u64::from(words[NUMBERS * j + i]) << (8 * j));
        if fraction < threshold(table, column.into()) { column } else { table.aliases[usize::from(column)] }
    }

    /// The entries of number i, and its sign.
    fn plain(digits: &[Digit], words: &[u8], i: usize) -> (Vec<u8>, bool) {
        let digits = digits.iter().zip(words.chunks(DIGIT_BYTES));
        (digits.map(|(digit, words)| plain_entry(&digit.table, words, i)).collect(), words[NUMBERS * 7 + i] >> 7 == 1)
    }

    /// Every column of every digit at its threshold and on both sides of it, with both signs, on every instruction set.
    #[test]
    fn every_class_of_words_is_drawn_as_defined() {
        for count in 1..=DIGITS {
            let [digits, unsigned] = [true, false].map(|signed| digits(count, signed));
            for (offset, negative) in [(-1i64, 0), (0, 0x80), (1, 0), (0, 0xc0)] {
                for turn in 0..ENTRIES {
                    let mut words = vec![0u8; count * DIGIT_BYTES];
                    for (d, digit) in digits.iter().enumerate() {
                        for i in 0..NUMBERS {
                            let column = (i + turn * d) % ENTRIES;
                            let fraction = threshold(&digit.table, column).wrapping_add_signed(offset);
                            put(&mut words[DIGIT_BYTES * d..], i, fraction, column as u8 | negative);
                        }
                    }
                    for (signed, digits) in [(true, &digits), (false, &unsigned)] {
                        for instructions in InstructionSet::available() {
                            let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
                            run(instructions, digits, &words, &mut drawn, &mut numbers);
                            let mut any = false;
                            for (i, &number) in numbers.iter().enumerate() {
                                let (entries, minus) = plain(digits, &words, i);
                                let counts = |d: usize| !signed || d == 0 || entries[0] > 0;
                                let sum: i64 = (0..count)
                                    .filter(|&d| counts(d))
                                    .map(|d| i64::from(entries[d]) * i64::from(digits[d].step))
                                    .sum();
                                any |= (0..count).any(|d| counts(d) && entries[d] == REST as u8);
                                let expected = if signed && minus { -sum } else { sum };
                                assert_eq!(number, expected, "{} {entries:?}", instructions.name());
                            }
                            assert_eq!(drawn.rest, any, "{}", instructions.name());
                        }
                    }
                    if count == 1 {
                        break;
                    }
                }
            }
        }
    }
    /// Pages and entries at their thresholds and below them, for one page, some, and all, on every instruction set.
    #[test]
    fn a_page_and_its_entry_are_drawn_as_defined() {
        let tables: Vec<Table> = (0..22).flat_map(|_| digits(DIGITS, false)).map(|digit| digit.table).collect();
        for pages in [1, 16, REST] {
            let tables = &tables[..=pages];
            let (page, entries) = (&tables[0], &tables[1..]);
            let mut rests = 0;
            for turn in 0..2 * ENTRIES {
                let mut words = [0; 2 * DIGIT_BYTES];
                let (first, second) = words.split_at_mut(DIGIT_BYTES);
                for i in 0..NUMBERS {
                    let (own, other) = (i % ENTRIES, (5 * i + turn) % ENTRIES);
                    put(first, i, threshold(page, own).wrapping_sub(turn as u64 & 1), own as u8);
                    let negative = (turn as u8 & 2) << 6;
                    put(second, i, threshold(&entries[turn % pages], other), other as u8 | negative);
                }
                for instructions in InstructionSet::available() {
                    let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
                    run_pages(instructions, tables, &words, &mut drawn, &mut numbers);
                    let mut any = false;
                    for (i, &number) in numbers.iter().enumerate() {
                        let (words, common) = words.as_chunks::<DIGIT_BYTES>().0.split_at(1);
                        let own = plain_entry(page, &words[0], i);
                        let entry = entries.get(usize::from(own)).map_or(0, |table| plain_entry(table, &common[0], i));
                        assert_eq!([drawn.entries[0][i], drawn.entries[1][i]], [own as i8, entry as i8]);
                        assert_eq!(page.entry_vartime(&words[0], i), own.into());
                        any |= own == REST as u8 || entry == REST as u8;
                        let magnitude = 63 * i64::from(own) + i64::from(entry);
                        assert_eq!(
                            number,
                            if turn & 2 == 2 { -magnitude } else { magnitude },
                            "{}",
                            instructions.name()
                        );
                    }
                    assert_eq!(drawn.rest, any, "{}", instructions.name());
                    rests += u32::from(any);
                }
            }
            assert!(rests > 0);
        }
    }
}
