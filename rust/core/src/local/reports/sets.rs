//! Reports that are a bit for each of k values, of which some number is set; and how sets are drawn in constant time.
//!
//! # Constant time
//!
//! Value by value, i joins the set if a uniform number below k - i is less than the number of members still missing
//! (Fan, Muller and Rezucha 1962). All members and numbers are secret, so everything is done with masks, in two passes
//! over all k values. Index words are rejected as in `mixture`; a rejection reveals nothing about the other words.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::mask;
use dpnoise_kernels::memory::zeroed;
use rand_core::TryCryptoRng;

use super::Reports;
use super::bits::{Bits, count_well_formed};
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::rng::fill_bytes;

/// The largest number of values: a client draws a random word for each.
pub(crate) const MAX_K: u32 = 1 << 16;

/// The bytes of an index word.
pub(crate) const INDEX_BYTES: usize = 4;

/// Sets of `fewest` to `most` of k values, as rows of k bits, least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sets {
    pub(crate) k: u32,
    pub(crate) fewest: u32,
    pub(crate) most: u32,
    pub(crate) malformed: &'static str,
}

impl Reports for Sets {
    fn bits(self) -> usize {
        self.k as usize
    }

    fn malformed(self) -> &'static str {
        self.malformed
    }

    fn counters(self) -> usize {
        self.bits()
    }

    fn effort(self, _reports: usize) -> usize {
        4 * Bits(self.k).width()
    }

    fn count(self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let (width, unused) = (Bits(self.k).width(), Bits(self.k).unused());
        let sizes = self.fewest..=self.most;
        let is_malformed = |row: &[u8]| {
            row[width - 1] & unused != 0 || !sizes.contains(&row.iter().map(|byte| byte.count_ones()).sum())
        };
        let mut counters = zeroed(8 * width)?;
        let rejected = count_well_formed(instructions, rows, width, &mut counters, is_malformed)?;
        counters.truncate(self.bits());
        Ok((counters, rejected))
    }
}

/// The number below `range` that an index word stands for.
pub(crate) fn number(word: [u8; INDEX_BYTES], range: u32) -> u32 {
    ((u64::from(u32::from_le_bytes(word)) * u64::from(range)) >> 32) as u32
}

/// The remainder below which an index word is rejected.
pub(crate) fn rejected_below(range: u32) -> u32 {
    range.wrapping_neg() % range
}

/// Packs members, 1 each, as bits, least significant first.
pub(crate) fn pack(members: &[u8], row: &mut [u8]) {
    for (byte, members) in row.iter_mut().zip(members.chunks(8)) {
        *byte = members.iter().rev().fold(0, |byte, member| byte << 1 | member);
    }
}

/// Replaces the words that would make some numbers more likely than others (Lemire 2019).
pub(crate) fn replace_rejected<R>(
    rng: &mut R,
    words: &mut [[u8; 4]],
    ranges: &[u32],
    rejected_below: &[u32],
) -> Result<(), Error>
where
    R: TryCryptoRng + ?Sized,
{
    let is_rejected = |word: [u8; 4], range: u32, below: u32| u32::from_le_bytes(word).wrapping_mul(range) < below;
    let bounds = || ranges.iter().zip(rejected_below);
    let any =
        words.iter().zip(bounds()).fold(false, |any, (&word, (&range, &below))| any | is_rejected(word, range, below));
    if declassify(Reason::Rejection, any) {
        for (word, (&range, &below)) in words.iter_mut().zip(bounds()) {
            while declassify(Reason::Rejection, is_rejected(*word, range, below)) {
                fill_bytes(rng, word)?;
            }
        }
    }
    Ok(())
}

/// Sets `members[i]` to 1 for the omega values i of the set, and to 0 for the others.
pub(crate) fn select(omega: u32, value: u32, force: bool, mut numbers: impl Iterator<Item = u32>, members: &mut [u8]) {
    // All numbers are below 2^31, so the sign of a difference tells which one is smaller.
    let is_less = |a: u32, b: u32| a.wrapping_sub(b) >> 31;
    let is_same = |a: u32, b: u32| (a ^ b).wrapping_sub(1) >> 31;
    let (mut missing, mut has_value) = (omega, 0);
    for ((i, member), number) in (0..).zip(&mut *members).zip(&mut numbers) {
        let taken = is_less(number, missing);
        missing = missing.wrapping_sub(taken);
        has_value |= taken & is_same(i, value);
        *member = taken as u8;
    }
    let replace = mask(force) as u32 & 1 & (has_value ^ 1);
    let victim = numbers.next().unwrap_or_default();
    let mut before = 0;
    for (i, member) in (0..).zip(members) {
        let taken = u32::from(*member);
        let dropped = taken & is_same(before, victim) & replace;
        before = before.wrapping_add(taken);
        *member = ((taken ^ dropped) | (is_same(i, value) & replace)) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence of numbers once, every value, both coins: the set is uniform among those with or without the
    /// value.
    #[test]
    fn sets_are_as_likely_as_announced() {
        for (k, omega) in [(2u64, 1), (4, 1), (4, 2), (5, 2), (5, 4), (6, 3)] {
            let ranges: Vec<u32> = (1..=k as u32).rev().chain([omega as u32]).collect();
            let sequences: u32 = ranges.iter().product();
            let set = |mut sequence: u32, value: u32, force: bool| {
                let numbers = ranges.iter().map(|range| {
                    let number = sequence % range;
                    sequence /= range;
                    number
                });
                let mut members = vec![0; k as usize];
                select(omega as u32, value, force, numbers, &mut members);
                assert_eq!(members.iter().map(|&member| u64::from(member)).sum::<u64>(), omega);
                members.iter().rev().fold(0, |set, &member| set << 1 | usize::from(member))
            };
            let choose = |n: u64, m: u64| (1..=m).fold(1, |product, i| product * (n - m + i) / i);
            for value in 0..k as u32 {
                for (force, sets) in [(false, choose(k, omega)), (true, choose(k - 1, omega - 1))] {
                    let mut counts = vec![0; 1 << k];
                    (0..sequences).for_each(|sequence| counts[set(sequence, value, force)] += 1);
                    let possible: Vec<u32> = counts.iter().copied().filter(|&count| count > 0).collect();
                    assert_eq!(possible, vec![sequences / sets as u32; sets as usize], "{k} {omega} {value} {force}");
                    assert!(
                        !force || counts.iter().enumerate().all(|(set, &count)| count == 0 || set >> value & 1 == 1)
                    );
                }
            }
        }
    }
}
