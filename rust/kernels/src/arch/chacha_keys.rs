//! ChaCha12 under sixteen keys at once: blocks of sixteen people's streams.
//!
//! Lane i of each word belongs to person i, so a group has the words in the order of [`chacha`](super::chacha), with
//! people in the place of blocks: word j of person i stands at 16 j + i.

#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::chacha::{BLOCKS, CONSTANTS, Group, rounds};
use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes32, Vectors};

/// The people whose blocks are made at once.
pub const PEOPLE: usize = BLOCKS;

/// A word of each person.
pub type Words = [u32; PEOPLE];

/// Writes block after block of each person's stream to `groups`, under the keys `key`. The last four words of a
/// person's first state are `input`; the first of these counts blocks.
pub fn chacha12_keys(instructions: InstructionSet, key: &[Words; 8], input: &[Words; 4], groups: &mut [Group]) {
    dispatch!(instructions, fill(key: &[Words; 8], input: &[Words; 4], groups: &mut [Group]));
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn fill<S: Vectors>(key: &[Words; 8], input: &[Words; 4], groups: &mut [Group]) {
    // As for one key, two groups are interleaved where there are registers for both.
    let (pairs, singles) = if S::REGISTERS >= 32 { groups.as_chunks_mut::<2>() } else { (&mut [][..], groups) };
    let of_singles = 2 * pairs.len() as u32;
    for (count, pair) in (0..).step_by(2).zip(pairs) {
        // SAFETY: passed on from the caller.
        unsafe { interleaved::<S::Register32, 2>(key, input, count, pair) };
    }
    for (count, group) in (of_singles..).zip(singles) {
        // SAFETY: passed on from the caller.
        unsafe { interleaved::<S::Register32, 1>(key, input, count, core::array::from_mut(group)) };
    }
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn interleaved<V: Lanes32, const GROUPS: usize>(
    key: &[Words; 8],
    input: &[Words; 4],
    count: u32,
    groups: &mut [Group; GROUPS],
) {
    for first in (0..PEOPLE).step_by(V::N) {
        // SAFETY: passed on from the caller; every slice has at least N words, since N divides PEOPLE.
        unsafe {
            let mut rows = [[V::splat(0); 16]; GROUPS];
            for (count, rows) in (count..).zip(&mut rows) {
                *rows = start(key, input, count, first);
            }
            rounds(&mut rows);
            for ((count, rows), bytes) in (count..).zip(rows).zip(groups.iter_mut()) {
                let start: [V; 16] = start(key, input, count, first);
                for (j, (row, first_row)) in rows.into_iter().zip(start).enumerate() {
                    row.add(first_row).store_le_bytes(&mut bytes[4 * (PEOPLE * j + first)..]);
                }
            }
        }
    }
}

/// The state before the first round, `count` blocks behind the first, of N people from person `first` on.
///
/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn start<V: Lanes32>(key: &[Words; 8], input: &[Words; 4], count: u32, first: usize) -> [V; 16] {
    // SAFETY: passed on from the caller; N words follow, since N divides PEOPLE.
    unsafe {
        let mut rows = [V::splat(0); 16];
        for (row, word) in rows.iter_mut().zip(CONSTANTS) {
            *row = V::splat(word);
        }
        for (row, words) in rows[4..].iter_mut().zip(key.iter().chain(input)) {
            *row = V::load(&words[first..]);
        }
        rows[12] = rows[12].add(V::splat(count));
        rows
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha12Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    /// The crate has a counter of 64 bits, and a stream number of 64 bits behind it.
    #[test]
    fn every_instruction_set_agrees_with_the_chacha20_crate() {
        let word = |j: usize, i: usize| 0x9e37_79b9u32.wrapping_mul((16 * i + j) as u32 + 1).rotate_left(i as u32);
        let [key, input]: [[Words; 8]; 2] =
            [0, 8].map(|at| core::array::from_fn(|j| core::array::from_fn(|i| word(at + j, i))));
        let input: [Words; 4] = *input.first_chunk().unwrap();
        for instructions in InstructionSet::available() {
            let mut groups = [[0; 64 * BLOCKS]; 5];
            chacha12_keys(instructions, &key, &input, &mut groups);
            for i in 0..PEOPLE {
                let own = key.map(|words: Words| words[i].to_le_bytes());
                let [low, high] = [0, 2].map(|j| u64::from(input[j][i]) | u64::from(input[j + 1][i]) << 32);
                let mut rng = ChaCha12Rng::from_seed(own.as_flattened().try_into().unwrap());
                rng.set_stream(high);
                rng.set_block_pos(low);
                for group in groups {
                    let blocks = group.as_chunks::<4>().0.iter().skip(i).step_by(PEOPLE);
                    assert!(blocks.copied().map(u32::from_le_bytes).eq([(); 16].map(|()| rng.next_u32())));
                }
            }
        }
    }
}
