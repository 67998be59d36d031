//! ChaCha12 (Bernstein 2008; RFC 8439 with 12 rounds, a 64-bit block counter and a zero nonce), sixteen blocks at once.
//!
//! # The order of the words
//!
//! Word j of block i of a group stands at 16 j + i: the order in which vector code produces them. It is part of the
//! definition of every sampler's output and the same on every CPU. Undoing it would cost as much again as the cipher
//! itself: measured on a Zen 5 core with AVX-512, 72 ns for a group in this order, 123 ns transposed, and 393 ns
//! (18 % of the speed) through the `chacha20` crate, whose generator makes four blocks at a time.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes32, Vectors};

/// The blocks in a group.
pub const BLOCKS: usize = 16;

/// The 256 words of a group of [`BLOCKS`] blocks, as little-endian bytes.
pub type Group = [u8; 64 * BLOCKS];

/// "expand 32-byte k"
pub(super) const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Writes the key stream from block `counter` on to `groups`, one after the other.
pub fn chacha12(instructions: InstructionSet, key: &[u32; 8], counter: u64, groups: &mut [Group]) {
    dispatch!(instructions, fill(key: &[u32; 8], counter: u64, groups: &mut [Group]));
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn fill<S: Vectors>(key: &[u32; 8], mut counter: u64, groups: &mut [Group]) {
    // Each operation of a round depends on the one before. Two groups are interleaved to hide latency, where there are
    // registers for both. With AVX-512 that was 5 % faster on Emerald Rapids and 7 % slower on Zen 4.
    let (pairs, singles) = if S::REGISTERS >= 32 { groups.as_chunks_mut::<2>() } else { (&mut [][..], groups) };
    for pair in pairs {
        // SAFETY: passed on from the caller.
        unsafe { interleaved::<S::Register32, 2>(key, counter, pair) };
        counter = counter.wrapping_add(2 * BLOCKS as u64);
    }
    for group in singles {
        // SAFETY: passed on from the caller.
        unsafe { interleaved::<S::Register32, 1>(key, counter, core::array::from_mut(group)) };
        counter = counter.wrapping_add(BLOCKS as u64);
    }
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn interleaved<V: Lanes32, const GROUPS: usize>(key: &[u32; 8], counter: u64, groups: &mut [Group; GROUPS]) {
    for first in (0..BLOCKS).step_by(V::N) {
        // SAFETY: passed on from the caller; every slice has at least N words, since N divides BLOCKS.
        unsafe {
            let mut rows = [[V::splat(0); 16]; GROUPS];
            for (i, rows) in rows.iter_mut().enumerate() {
                *rows = start(key, counter.wrapping_add((BLOCKS * i + first) as u64));
            }
            rounds(&mut rows);
            for (i, (rows, bytes)) in rows.into_iter().zip(groups.iter_mut()).enumerate() {
                let start: [V; 16] = start(key, counter.wrapping_add((BLOCKS * i + first) as u64));
                for (j, (row, first_row)) in rows.into_iter().zip(start).enumerate() {
                    row.add(first_row).store_le_bytes(&mut bytes[4 * (BLOCKS * j + first)..]);
                }
            }
        }
    }
}

/// The state before the first round, of N blocks from `block` on.
///
/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn start<V: Lanes32>(key: &[u32; 8], block: u64) -> [V; 16] {
    let counters: [u64; BLOCKS] = core::array::from_fn(|i| block.wrapping_add(i as u64));
    // SAFETY: passed on from the caller; there are 16 counters, which is at least N.
    unsafe {
        let mut rows = [V::splat(0); 16];
        for (row, &word) in rows.iter_mut().zip(CONSTANTS.iter().chain(key)) {
            *row = V::splat(word);
        }
        rows[12] = V::load(&counters.map(|count| count as u32));
        rows[13] = V::load(&counters.map(|count| (count >> 32) as u32));
        rows
    }
}

/// The twelve rounds.
///
/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
pub(super) unsafe fn rounds<V: Lanes32, const GROUPS: usize>(groups: &mut [[V; 16]; GROUPS]) {
    // SAFETY: passed on from the caller.
    unsafe {
        for _ in 0..6 {
            for column in 0..4 {
                for rows in &mut *groups {
                    quarter_round(rows, column, 4 + column, 8 + column, 12 + column);
                }
            }
            for column in 0..4 {
                let diagonal = |row: usize| 4 * row + (column + row) % 4;
                for rows in &mut *groups {
                    quarter_round(rows, diagonal(0), diagonal(1), diagonal(2), diagonal(3));
                }
            }
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn quarter_round<V: Lanes32>(rows: &mut [V; 16], a: usize, b: usize, c: usize, d: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        rows[a] = rows[a].add(rows[b]);
        rows[d] = rows[d].xor(rows[a]).rotate_left(16);
        rows[c] = rows[c].add(rows[d]);
        rows[b] = rows[b].xor(rows[c]).rotate_left(12);
        rows[a] = rows[a].add(rows[b]);
        rows[d] = rows[d].xor(rows[a]).rotate_left(8);
        rows[c] = rows[c].add(rows[d]);
        rows[b] = rows[b].xor(rows[c]).rotate_left(7);
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha12Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    const KEY: [u32; 8] = [0x0302_0100, 0x0706_0504, 0xdead_beef, 1, 0, u32::MAX, 0x8000_0000, 42];

    /// The same words from the chacha20 crate, put in our order.
    fn oracle(key: &[u32; 8], counter: u64) -> Vec<u8> {
        let bytes: Vec<u8> = key.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut rng = ChaCha12Rng::from_seed(bytes.try_into().unwrap());
        rng.set_block_pos(counter);
        let stream: [u32; 16 * BLOCKS] = std::array::from_fn(|_| rng.next_u32());
        let word = |i: usize| stream[16 * (i % BLOCKS) + i / BLOCKS];
        (0..16 * BLOCKS).flat_map(|i| word(i).to_le_bytes()).collect()
    }

    #[test]
    fn every_instruction_set_agrees_with_the_chacha20_crate() {
        for instructions in InstructionSet::available() {
            // The last one carries into the high word of the counter within the group.
            for counter in [0, 16, 1 << 31, (1 << 32) - 8] {
                // One group, two in turn, and one more.
                let mut groups = [[0; 64 * BLOCKS]; 3];
                chacha12(instructions, &KEY, counter, &mut groups);
                for (i, group) in (0..).zip(groups) {
                    let expected = oracle(&KEY, counter + i * BLOCKS as u64);
                    assert_eq!(group.as_slice(), expected, "{} {counter}", instructions.name());
                }
            }
        }
    }

    /// Test vector 1 for ChaCha12 with a 256-bit key of zeros, draft-strombergson-chacha-test-vectors-01, section 2.1.
    #[test]
    fn the_published_vector_is_reproduced() {
        let mut group = [0; 64 * BLOCKS];
        chacha12(InstructionSet::PORTABLE, &[0; 8], 0, core::slice::from_mut(&mut group));
        let first_block: Vec<u8> = (0..16).flat_map(|j| &group[4 * BLOCKS * j..][..4]).copied().collect();
        assert_eq!(first_block[..16], *b"\x9b\xf4\x9a\x6a\x07\x55\xf9\x53\x81\x1f\xce\x12\x5f\x26\x83\xd5");
    }
}
