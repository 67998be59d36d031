//! A step of correlated noise: independent noise minus the weighted noise of earlier steps, in integers.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Vectors, prefetch};

/// Weights are multiples of 2^-this.
pub const WEIGHT_BITS: u32 = 12;

/// The numbers in a row of a tile: 4 KiB, so that the rows of a tile are read as one run of memory.
pub const TILE: usize = 512;

/// The numbers in a cache line.
const LINE: usize = 8;

/// The rows that are added at a time.
const ROWS: usize = 4;

/// Subtracts from `noise` the sum of `tile`'s rows times `weights`, rounded to a multiple of 2^12, half up, and divided
/// by 2^12: `noise[i] -= (sum_r weights[r] tile[r][i] + 2^11) >> 12`, all modulo 2^64. `sums` is working memory: on the
/// stack it would leave noise behind.
///
/// # Panics
/// When there are not as many rows as weights.
pub fn subtract_weighted(
    instructions: InstructionSet,
    tile: &[[i64; TILE]],
    weights: &[u32],
    sums: &mut [i64; TILE],
    noise: &mut [i64; TILE],
) {
    assert_eq!(tile.len(), weights.len());
    dispatch!(
        instructions,
        subtract(tile: &[[i64; TILE]], weights: &[u32], sums: &mut [i64; TILE], noise: &mut [i64; TILE])
    );
}

/// Plain code, which the compiler vectorises. The product of the lower halves is exact in 64 bits and that of the upper
/// halves is needed modulo 2^32, so vectors that multiply 32 bits suffice.
///
/// # Safety
/// None is needed; `dispatch!` calls all kernels alike.
#[inline(always)]
unsafe fn subtract<S: Vectors>(tile: &[[i64; TILE]], weights: &[u32], sums: &mut [i64; TILE], noise: &mut [i64; TILE]) {
    sums.fill(1 << (WEIGHT_BITS - 1));
    let (groups, last) = tile.as_chunks::<ROWS>();
    let (group_weights, last_weights) = weights.as_chunks::<ROWS>();
    for (rows, weights) in groups.iter().zip(group_weights) {
        add_weighted(rows, weights, sums);
    }
    for (row, weight) in last.iter().zip(last_weights) {
        add_weighted(core::array::from_ref(row), &[*weight], sums);
    }
    for (noise, &mut sum) in noise.iter_mut().zip(sums) {
        *noise = noise.wrapping_sub(sum >> WEIGHT_BITS);
    }
}

#[inline(always)]
fn add_weighted<const N: usize>(rows: &[[i64; TILE]; N], weights: &[u32; N], sums: &mut [i64; TILE]) {
    for (line, sums) in sums.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
        for row in rows {
            prefetch::<false>(row[line * LINE..].as_ptr().wrapping_add(ROWS * TILE).cast());
        }
        for (i, sum) in sums.iter_mut().enumerate() {
            let (mut low, mut high) = (sum.cast_unsigned(), 0u64);
            for (row, &weight) in rows.iter().zip(weights) {
                let word = row[line * LINE + i].cast_unsigned();
                low = low.wrapping_add((word & u64::from(u32::MAX)) * u64::from(weight));
                high = high.wrapping_add((word >> 32) * u64::from(weight));
            }
            *sum = low.wrapping_add(high << 32).cast_signed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(i: usize) -> i64 {
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed() >> (i * 7 % 61)
    }

    /// Any weights and numbers, also sums that wrap around: the same on every instruction set, and as in 128 bits.
    #[test]
    fn the_sum_is_that_of_wide_integers() {
        for height in 0..=9 {
            let tile: Vec<[i64; TILE]> =
                (0..height).map(|row| core::array::from_fn(|i| number(row * TILE + i))).collect();
            let weights: Vec<u32> =
                (0..height as u32).map(|row| [4096, 0, 1, 4095, u32::MAX][row as usize % 5]).collect();
            let noise: [i64; TILE] = core::array::from_fn(|i| number(i * i + 3));
            let expected: [i64; TILE] = core::array::from_fn(|i| {
                let sum: i128 = tile.iter().zip(&weights).map(|(row, &m)| i128::from(row[i]) * i128::from(m)).sum();
                noise[i].wrapping_sub(((sum + (1 << 11)) as i64) >> WEIGHT_BITS)
            });
            for instructions in InstructionSet::available() {
                let mut found = noise;
                subtract_weighted(instructions, &tile, &weights, &mut [7; TILE], &mut found);
                assert_eq!(found, expected, "{height} {}", instructions.name());
            }
        }
    }

    /// Half is rounded up for both signs: so that rounding commutes with the addition of whole numbers.
    #[test]
    fn halves_are_rounded_up() {
        let halves = [2048, -2048, 2047, -2049, 6144, -6144, 6143];
        let tile = [core::array::from_fn(|i| halves[i % halves.len()])];
        for instructions in InstructionSet::available() {
            let mut noise = [0; TILE];
            subtract_weighted(instructions, &tile, &[1], &mut [7; TILE], &mut noise);
            assert_eq!(noise[..halves.len()], [-1, 0, 0, 1, -2, 1, -1], "{}", instructions.name());
        }
    }
}
