#![doc = include_str!("persons.md")]

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::memory::{room, zeroed};
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::rng::{SecureRng, Wiped, fill_bytes};

/// The bytes of a random word, of which a row takes one.
const WORD: usize = size_of::<u64>();

/// For so many rows words are drawn at once.
const BLOCK: usize = 1 << 12;

/// The size of a table for few ids: a power of two.
const FIRST_SLOTS: usize = 1 << 10;

/// The bytes of an id, and how many values each may have.
const BYTES: usize = size_of::<i64>();
const BYTE_VALUES: usize = 1 << u8::BITS;

/// What is left of a person's rows.
#[derive(Clone, Copy, Default)]
struct Left {
    /// How many are to come.
    rows: u32,
    /// How many of them are to be kept.
    keep: u32,
}

impl Left {
    /// Whether the next row is kept: with probability `keep / rows`. The word has the first 64 digits of a uniform number.
    fn keeps_next<R: TryCryptoRng + ?Sized>(&mut self, mut word: u64, rng: &mut R) -> Result<bool, Error> {
        let (rows, mut keep) = (u64::from(self.rows), u64::from(self.keep));
        // With the digits U so far and V to come, the row is kept if (U + V / 2^64) rows < keep, where V is below 1.
        let is_kept = loop {
            let product = u128::from(word).wrapping_mul(rows.into());
            let (whole, fraction) = ((product >> u64::BITS) as u64, product as u64);
            let is_open = (whole.wrapping_add(1) == keep) & (fraction > rows.wrapping_neg());
            if !declassify(Reason::OpenCoin, is_open) {
                break whole < keep;
            }
            // It is if V rows is below what the fraction lacks.
            keep = fraction.wrapping_neg();
            word = rng.try_next_u64().map_err(Error::randomness)?;
        };
        self.keep = self.keep.wrapping_sub(is_kept.into());
        self.rows = self.rows.wrapping_sub(1);
        Ok(is_kept)
    }
}

/// Chooses `most` rows of each person, or all where there are no more: for each row 1 if it is kept, and else 0. All choices
/// from a person's rows are equally likely, and those from the rows of different persons are independent.
///
/// Each row has the code of its person, below `count`, or a negative one if it is left out.
///
/// Time and addresses depend on the codes, but not on which rows are kept.
///
/// ```
/// use dpnoise_core::mechanisms::keep_rows_vartime;
/// let kept = keep_rows_vartime(&[0, 1, 0, -1, 0], 2, 2)?;
/// assert_eq!((kept[0] + kept[2] + kept[4], kept[1], kept[3]), (2, 1, 0));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] if `most` is 0; [`Error::Data`] for a code that is not below `count` and for 2^31 rows or more;
/// [`Error::Allocation`]; [`Error::Randomness`].
pub fn keep_rows_vartime(codes: &[i32], count: usize, most: u64) -> Result<Vec<u8>, Error> {
    keep_rows_with_vartime(codes, count, most, &mut SecureRng::new()?)
}

/// The same with randomness from `rng`: one word for each row, and further ones with a probability below 2^-64 a row.
///
/// # Errors
/// As for [`keep_rows_vartime`].
pub fn keep_rows_with_vartime<R: TryCryptoRng + ?Sized>(
    codes: &[i32],
    count: usize,
    most: u64,
    rng: &mut R,
) -> Result<Vec<u8>, Error> {
    if most == 0 {
        return Err(Error::parameter("most", most, "a positive integer"));
    }
    check_rows("codes", codes.len())?;
    let mut left = Wiped::<Left>::try_new(count.saturating_add(1))?;
    for &code in codes {
        of_code(&mut left, code)?.rows += 1;
    }
    // Of those that are left out, none is kept.
    for person in &mut left[1..] {
        person.keep = person.rows.min(u32::try_from(most).unwrap_or(u32::MAX));
    }
    let mut kept = zeroed(codes.len())?;
    let mut words = Wiped::new(WORD * BLOCK.min(codes.len()));
    for (codes, kept) in codes.chunks(BLOCK).zip(kept.chunks_mut(BLOCK)) {
        let words = &mut words[..WORD * codes.len()];
        fill_bytes(rng, words)?;
        for ((&code, kept), &word) in codes.iter().zip(kept).zip(words.as_chunks().0) {
            *kept = of_code(&mut left, code)?.keeps_next(u64::from_le_bytes(word), rng)?.into();
        }
    }
    Ok(kept)
}

/// What is left of the rows with this code; first of those with a negative one.
fn of_code(left: &mut [Left], code: i32) -> Result<&mut Left, Error> {
    let place = (i64::from(code).max(-1) + 1) as usize;
    left.get_mut(place).ok_or_else(|| Error::data("codes", "must be below the number of persons"))
}

/// Numbers of rows, and so of persons, are below 2^31.
fn check_rows(argument: &'static str, rows: usize) -> Result<(), Error> {
    if i32::try_from(rows).is_ok() { Ok(()) } else { Err(Error::data(argument, "must have less than 2**31 rows")) }
}

/// The code of each id, from 0 on in the order of first rows, and the ids in this order.
///
/// Time and addresses depend on the ids. Those that a stranger has chosen are found as fast as others: where an id is looked
/// up follows from random numbers that nobody knows.
///
/// ```
/// use dpnoise_core::mechanisms::codes_vartime;
/// assert_eq!(codes_vartime(&[70, -3, 70, 5])?, (vec![0, 1, 0, 2], vec![70, -3, 5]));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`] for 2^31 rows or more; [`Error::Allocation`]; [`Error::Randomness`].
pub fn codes_vartime(ids: &[i64]) -> Result<(Vec<i32>, Vec<i64>), Error> {
    check_rows("ids", ids.len())?;
    let mut table = Table::new()?;
    let mut codes = room(ids.len())?;
    for &id in ids {
        codes.push(table.code(id)?);
    }
    Ok((codes, table.ids))
}

/// A hash table with linear probing, at most half full.
struct Table {
    hash: Tabulation,
    /// The hash of an id, above 1 plus its code; or 0.
    slots: Wiped<u64>,
    /// The ids by their codes.
    ids: Vec<i64>,
}

impl Table {
    fn new() -> Result<Self, Error> {
        Ok(Self { hash: Tabulation::new()?, slots: Wiped::new(FIRST_SLOTS), ids: room(FIRST_SLOTS / 2)? })
    }

    fn code(&mut self, id: i64) -> Result<i32, Error> {
        let hash = self.hash.of(id);
        let mut at = hash as usize & (self.slots.len() - 1);
        while self.slots[at] != 0 {
            let code = (self.slots[at] as u32 - 1) as usize;
            if (self.slots[at] >> 32) as u32 == hash && self.ids[code] == id {
                return Ok(code as i32);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.ids.push(id);
        self.slots[at] = u64::from(hash) << 32 | self.ids.len() as u64;
        if self.ids.len() == self.slots.len() / 2 {
            self.grow()?;
        }
        Ok((self.ids.len() - 1) as i32)
    }

    fn grow(&mut self) -> Result<(), Error> {
        let mut slots = Wiped::try_zeroed(2 * self.slots.len())?;
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            let mut at = (slot >> 32) as usize & (slots.len() - 1);
            while slots[at] != 0 {
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = slot;
        }
        self.ids.try_reserve_exact(self.ids.len()).map_err(|_| Error::Allocation)?;
        self.slots = slots;
        Ok(())
    }
}

/// Simple tabulation hashing: a random number for each value of each byte of an id.
struct Tabulation(Box<[[u32; BYTE_VALUES]; BYTES]>);

impl Tabulation {
    fn new() -> Result<Self, Error> {
        let mut numbers = Box::new([[0; BYTE_VALUES]; BYTES]);
        let mut bytes = Wiped::new(size_of_val(&*numbers));
        fill_bytes(&mut SecureRng::new()?, &mut bytes)?;
        for (number, &bytes) in numbers.as_flattened_mut().iter_mut().zip(bytes.as_chunks().0) {
            *number = u32::from_le_bytes(bytes);
        }
        Ok(Self(numbers))
    }

    fn of(&self, id: i64) -> u32 {
        let of_bytes = id.to_le_bytes().into_iter().zip(&*self.0);
        of_bytes.fold(0, |hash, (byte, numbers)| hash ^ numbers[usize::from(byte)])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use num_bigint::BigUint;

    use super::*;
    use crate::rng::ScriptedRng;

    fn script(words: &[u64]) -> ScriptedRng {
        ScriptedRng::new(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    fn keep(codes: &[i32], most: u64, words: &[u64]) -> Vec<u8> {
        let mut rng = script(words);
        let kept = keep_rows_with_vartime(codes, 2, most, &mut rng).unwrap();
        assert_eq!(rng.remaining(), 0, "a word for each row");
        kept
    }

    /// Row by row: a row is kept for a number U with U rows < keep, and is open where the digits of a word do not decide that.
    #[test]
    fn the_coin_of_a_row_is_exact() {
        for rows in (1..=40).chain([255, 1 << 20, (1 << 31) - 1]) {
            for keep in (0..=rows.min(40)).chain([rows / 2, rows - 1, rows]) {
                let (quotient, rest) =
                    ((u128::from(keep) << 64) / u128::from(rows), (u128::from(keep) << 64) % u128::from(rows));
                let (edge, next_edge) = (quotient as u64, ((rest << 64) / u128::from(rows)) as u64);
                for first in [0, edge.wrapping_sub(1), edge, edge.wrapping_add(1), u64::MAX] {
                    for second in [0, next_edge.wrapping_sub(1), next_edge.wrapping_add(1), u64::MAX] {
                        let digits = BigUint::from(first) << 64u32 | BigUint::from(second);
                        let expected = digits * rows < BigUint::from(keep) << 128u32;
                        let (mut left, mut rng) = (Left { rows, keep }, script(&[second]));
                        assert_eq!(
                            left.keeps_next(first, &mut rng),
                            Ok(expected),
                            "{keep} of {rows}: {first} {second}"
                        );
                        assert_eq!((left.rows, left.keep), (rows - 1, keep.wrapping_sub(expected.into())));
                        assert_eq!(rng.remaining() == 0, rest != 0 && first == edge);
                    }
                }
            }
        }
        let third = u64::MAX / 3; // 0.0101...
        assert!(Left { rows: 3, keep: 1 }.keeps_next(third, &mut script(&[third, third])).is_err());
        assert_eq!(Left { rows: 3, keep: 1 }.keeps_next(third, &mut script(&[third, third - 1])), Ok(true));
    }

    const SHARES: u64 = 6;

    /// Whether all choices of `most` rows of each of two persons are equally likely. The words of the rows are all
    /// combinations of those in the middle of sixths of their range, which have equal shares of the range for up to three rows.
    fn is_uniform(codes: &[i32], most: usize, choose: impl Fn(&[u64]) -> Vec<u8>) -> bool {
        let mut times = HashMap::<Vec<u8>, u64>::new();
        let combinations = SHARES.pow(codes.len() as u32);
        for number in 0..combinations {
            let shares = (0..codes.len() as u32).map(|row| number / SHARES.pow(row) % SHARES);
            let words: Vec<u64> = shares.map(|share| (2 * share + 1) * (u64::MAX / (2 * SHARES))).collect();
            *times.entry(choose(&words)).or_default() += 1;
        }
        let rows_of = |code: i32| codes.iter().filter(|&&other| other == code).count();
        let kept_of = |kept: &[u8], code: i32| {
            codes.iter().zip(kept).filter(|&(&other, &kept)| other == code && kept == 1).count()
        };
        let is_choice = |kept: &Vec<u8>| {
            let (first, second) = (kept_of(kept, 0), kept_of(kept, 1));
            let all = kept.iter().map(|&kept| usize::from(kept)).sum::<usize>();
            first == most.min(rows_of(0)) && second == most.min(rows_of(1)) && all == first + second
        };
        // Of up to three rows one is kept, or one is not.
        let sets = |rows: usize| if most < rows { rows as u64 } else { 1 };
        let choices = sets(rows_of(0)) * sets(rows_of(1));
        times.len() as u64 == choices
            && times.iter().all(|(kept, &times)| is_choice(kept) && times * choices == combinations)
    }

    #[test]
    fn all_choices_are_equally_likely_and_independent_between_persons() {
        for codes in [[0, 1, 0, -1, 1, 0], [i32::MIN, 1, 1, 1, -7, 0], [-1, 0, 1, 0, 1, -1]] {
            for most in [1, 2, 3, 100] {
                assert!(is_uniform(&codes, most, |words| keep(&codes, most as u64, words)), "{codes:?} {most}");
            }
        }
    }

    #[test]
    fn planted_faults_are_seen() {
        let codes = [0, 1, 0, -1, 1, 0];
        // Which row of its person a row is.
        let place = |row: usize| codes[..row].iter().filter(|&&code| code == codes[row]).count();
        let values = [4, 1, 2, 0, 3, 5];
        let is_smaller = |row: usize, other: &usize| codes[*other] == codes[row] && values[*other] < values[row];
        for most in [1, 2] {
            let those = |is_kept: &dyn Fn(usize) -> bool| -> Vec<u8> {
                (0..codes.len()).map(|row| (codes[row] >= 0 && is_kept(row)).into()).collect()
            };
            assert!(!is_uniform(&codes, most, |_| those(&|row| place(row) < most)), "the first rows");
            let rank = |row: usize| (0..codes.len()).filter(|other| is_smaller(row, other)).count();
            assert!(!is_uniform(&codes, most, |_| those(&|row| rank(row) < most)), "the smallest values");
            let last = codes.map(|code| if code < 0 { 1 } else { code });
            assert!(!is_uniform(&codes, most, |words| keep(&last, most as u64, words)), "missing as the last person");
            assert!(!is_uniform(&codes, most, |words| keep(&codes, most as u64 + 1, words)), "one row too many");
        }
        // The words of the first person's rows for all others.
        let of_first = |words: &[u64]| {
            let words: Vec<u64> = (0..codes.len()).map(|row| words[[0, 2, 5][place(row)]]).collect();
            keep(&codes, 1, &words)
        };
        assert!(!is_uniform(&codes, 1, of_first), "one order for all persons");
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_drawn() {
        let refused = |codes: &[i32], count, most| {
            keep_rows_with_vartime(codes, count, most, &mut script(&[])).unwrap_err().to_string()
        };
        assert_eq!(refused(&[0], 1, 0), "most must be a positive integer, got 0");
        for codes in [[0, 2, -1], [i32::MAX, 0, 0]] {
            assert_eq!(refused(&codes, 2, 1), "codes must be below the number of persons");
        }
        assert_eq!(refused(&[0], usize::MAX, 1), Error::Allocation.to_string());
        assert!(refused(&[0], 1, 1).starts_with("the source of randomness failed"));
        assert_eq!(keep_rows_vartime(&[], 0, 1), Ok(vec![]));
        assert_eq!(keep_rows_vartime(&[-1; 3], 0, 1), Ok(vec![0; 3]));
        assert_eq!(keep_rows_vartime(&vec![0; 10_000], 1, u64::MAX), Ok(vec![1; 10_000]));
        assert_eq!(check_rows("ids", 1 << 31).unwrap_err().to_string(), "ids must have less than 2**31 rows");
        assert!(check_rows("ids", (1 << 31) - 1).is_ok());
    }

    /// By a dictionary, for ids that are alike in many bytes, and in a table whose hashes are all the same: there only a comparison
    /// of the ids tells them apart.
    #[test]
    fn each_id_has_one_code_of_its_own() {
        let spread = |i: i64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        let repeated = (0..5000).map(|i| i * i % 1999);
        for ids in [
            vec![],
            vec![0, -1, i64::MIN, i64::MAX, 0, 1 << 32, 1],
            repeated.clone().collect(),
            repeated.clone().map(|i| i << 48).collect(),
            repeated.map(spread).collect(),
        ] {
            let mut known = HashMap::new();
            let mut distinct = vec![];
            let number = |&id: &i64| {
                *known.entry(id).or_insert_with(|| {
                    distinct.push(id);
                    distinct.len() as i32 - 1
                })
            };
            let expected: Vec<i32> = ids.iter().map(number).collect();
            let mut alike = Table { hash: Tabulation(Box::new([[7; BYTE_VALUES]; BYTES])), ..Table::new().unwrap() };
            let codes: Vec<i32> = ids.iter().map(|&id| alike.code(id).unwrap()).collect();
            assert_eq!((codes, alike.ids), (expected.clone(), distinct.clone()));
            assert_eq!(codes_vartime(&ids), Ok((expected, distinct)));
        }
    }

    #[test]
    fn hashes_are_made_of_fresh_numbers() {
        let [one, other] = [(); 2].map(|()| Tabulation::new().unwrap());
        assert_ne!(one.0, other.0);
        let id = 0x0123_4567_89ab_cdef;
        let numbers = [0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01].iter().zip(&*one.0);
        assert_eq!(one.of(id), numbers.fold(0, |hash, (&byte, numbers): (&usize, _)| hash ^ numbers[byte]));
    }
}
