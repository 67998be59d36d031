//! Bit flipping by bit-slicing: 512 independent biased bits at a time, at a fixed cost.
//!
//! A *tile* is 512 data bits (64 bytes). Its randomness is `planes` times 64 bytes, planar, least significant plane
//! first: bit i of plane j is digit j of a uniform number U of bit i, 0 <= U < 2^planes. The new bit is 1 iff U < T,
//! where T is `p` if the data bit is 1 and `q` if it is 0; so it is 1 with probability exactly T / 2^planes.
//!
//! U < T is decided from the lowest digit up: where T has digit 1, `acc = !u | acc`; where it has 0, `acc = !u & acc`.
//! All planes are always read. Stopping at the first digit that decides would be faster, but would reveal the digit of
//! T at which it stopped, which depends on the data bit.
//!
//! The only branches are on the digits of `p` and `q`, which are public.

#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes64, Vectors};

/// The bytes of a tile, and of one plane of its randomness.
pub const TILE_BYTES: usize = 64;

/// Replaces every bit of `data` by 1 with probability `p` / 2^planes where it is 1, and `q` / 2^planes where it is 0.
///
/// Tile after tile takes the next `planes` times 64 bytes of `random`.
///
/// # Panics
/// When `data` is not whole tiles, or `random` is not `planes` times as long, or `planes` is 0 or above 64.
pub fn flip(instructions: InstructionSet, planes: u32, p: u64, q: u64, random: &[u8], data: &mut [u8]) {
    let (tiles, rest) = data.as_chunks_mut::<TILE_BYTES>();
    assert!((1..=64).contains(&planes) && rest.is_empty());
    assert_eq!(random.len(), tiles.len() * planes as usize * TILE_BYTES);
    let planes = planes as usize;
    dispatch!(instructions, flip_tiles(planes: usize, p: u64, q: u64, random: &[u8], tiles: &mut [[u8; TILE_BYTES]]));
}

/// Writes a row of `width` bytes for each of `values`, the least significant bit of a byte first, with only the value's bit
/// set; the last row may be cut off.
///
/// # Panics
/// When `width` is 0.
pub fn one_hot(instructions: InstructionSet, values: &[i64], width: usize, rows: &mut [u8]) {
    assert!(width > 0);
    dispatch!(instructions, one_hot_rows(values: &[i64], width: usize, rows: &mut [u8]));
}

/// # Safety
/// The CPU has the instruction set.
#[inline(always)]
unsafe fn one_hot_rows<S: Vectors>(values: &[i64], width: usize, rows: &mut [u8]) {
    // Plain code, which the compiler vectorises: several rows at once where they are short and their width is known to it. Of
    // three widths that it sees at once it would make a table of addresses.
    let whole = match width {
        _ if core::hint::black_box(width) == 4 => short_rows::<4>(values, rows),
        8 => short_rows::<8>(values, rows),
        16 => short_rows::<16>(values, rows),
        _ => 0,
    };
    for (row, &value) in rows[whole * width..].chunks_mut(width).zip(&values[whole..]) {
        one_hot_part(value, 0, row);
    }
}

/// Writes the rows of one width that are not cut off, and returns their number.
#[inline(always)]
fn short_rows<const WIDTH: usize>(values: &[i64], rows: &mut [u8]) -> usize {
    let (rows, _) = rows.as_chunks_mut::<WIDTH>();
    for (row, &value) in rows.iter_mut().zip(values) {
        one_hot_part(value, 0, row);
    }
    rows.len()
}

/// Writes the bytes from `start` on of the one-hot row of `value`: every word is compared, none is addressed by value.
#[inline(always)]
pub fn one_hot_part(value: i64, start: usize, part: &mut [u8]) {
    let target = (value as u64).wrapping_sub(8 * start as u64);
    let (target_word, bit) = (target >> 6, 1 << (target & 63));
    let word = |i: usize| {
        let difference = i as u64 ^ target_word;
        bit & ((difference | difference.wrapping_neg()) >> 63).wrapping_sub(1)
    };
    let (words, rest) = part.as_chunks_mut();
    let last = word(words.len()).to_le_bytes();
    for (i, bytes) in words.iter_mut().enumerate() {
        *bytes = word(i).to_le_bytes();
    }
    rest.iter_mut().zip(last).for_each(|(byte, last)| *byte = last);
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn flip_tiles<S: Vectors>(planes: usize, p: u64, q: u64, random: &[u8], tiles: &mut [[u8; TILE_BYTES]]) {
    // Four tiles are interleaved to hide latency: each operation on a tile depends on the one before.
    let (groups, rest) = tiles.as_chunks_mut::<4>();
    let (group_random, rest_random) = random.split_at(groups.len() * 4 * planes * TILE_BYTES);
    for (group, random) in groups.iter_mut().zip(group_random.chunks_exact(4 * planes * TILE_BYTES)) {
        // SAFETY: passed on from the caller.
        unsafe { flip_group::<S::U64, 4>(planes, p, q, random, group) };
    }
    for (tile, random) in rest.iter_mut().zip(rest_random.chunks_exact(planes * TILE_BYTES)) {
        // SAFETY: passed on from the caller.
        unsafe { flip_group::<S::U64, 1>(planes, p, q, random, core::array::from_mut(tile)) };
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn flip_group<V: Lanes64, const TILES: usize>(
    planes: usize,
    p: u64,
    q: u64,
    random: &[u8],
    tiles: &mut [[u8; TILE_BYTES]; TILES],
) {
    for first in (0..TILE_BYTES).step_by(8 * V::N) {
        // SAFETY: passed on from the caller; N words follow, since N divides the words of a tile.
        unsafe {
            let (zeros, ones) = (V::splat(0), V::splat(u64::MAX));
            let mut data = [zeros; TILES];
            for (data, tile) in data.iter_mut().zip(tiles.iter()) {
                *data = V::load_le_bytes(&tile[first..]);
            }
            let mut acc = [zeros; TILES];
            for digit in 0..planes {
                let (p, q) = (p >> digit & 1 == 1, q >> digit & 1 == 1);
                for (i, acc) in acc.iter_mut().enumerate() {
                    let inverse = V::load_le_bytes(&random[(i * planes + digit) * TILE_BYTES + first..]).xor(ones);
                    // `inverse | acc` where the threshold's digit is 1, else `inverse & acc`.
                    let both = inverse.and(*acc);
                    let either = both.xor(inverse.xor(*acc));
                    *acc = match (p, q) {
                        (false, false) => both,
                        (true, true) => either,
                        (true, false) => both.xor(data[i].and(inverse.xor(*acc))),
                        (false, true) => either.xor(data[i].and(inverse.xor(*acc))),
                    };
                }
            }
            for (acc, tile) in acc.into_iter().zip(tiles.iter_mut()) {
                acc.store_le_bytes(&mut tile[first..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit for bit the definition: U < T, with U read digit by digit.
    fn naive(planes: u32, p: u64, q: u64, random: &[u8], data: &[u8]) -> Vec<u8> {
        let bit = |bytes: &[u8], i: usize| u64::from(bytes[i / 8] >> (i % 8) & 1);
        let mut out = vec![0; data.len()];
        for i in 0..8 * data.len() {
            let (tile, lane) = (i / 512, i % 512);
            let digit = |j: usize| bit(random, 512 * (tile * planes as usize + j) + lane);
            let u: u64 = (0..planes as usize).map(|j| digit(j) << j).sum();
            let threshold = if bit(data, i) == 1 { p } else { q };
            out[i / 8] |= u8::from(u < threshold) << (i % 8);
        }
        out
    }

    #[test]
    fn the_kernel_agrees_with_its_definition() {
        let mut state = 1u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        for (planes, p, q) in [(1, 1, 1), (2, 3, 1), (7, 64, 35), (13, 5000, 1), (62, (1 << 62) - 1, 12345), (64, 9, 2)]
        {
            let data: Vec<u8> = (0..9 * TILE_BYTES).map(|_| byte()).collect(); // two groups, and one tile
            let random: Vec<u8> = (0..planes as usize * data.len()).map(|_| byte()).collect();
            for instructions in InstructionSet::available() {
                let mut flipped = data.clone();
                flip(instructions, planes, p, q, &random, &mut flipped);
                assert_eq!(flipped, naive(planes, p, q, &random, &data), "{planes} {p} {q} {}", instructions.name());
            }
        }
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn randomness_of_the_wrong_length_is_refused() {
        flip(InstructionSet::PORTABLE, 3, 5, 2, &[0; 2 * TILE_BYTES], &mut [0; TILE_BYTES]);
    }
}
