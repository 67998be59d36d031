//! Bit flipping by bit-slicing: 512 independent biased bits at a time, at a fixed cost.
//!
//! A *tile* is 512 data bits (64 bytes). Its randomness is `planes` times 64 bytes, planar, least significant plane
//! first: bit i of plane j is digit j of a uniform number U of bit i, 0 <= U < 2^planes. The new bit is 1 iff U < T,
//! where T is `p` if the data bit is 1 and `q` if it is 0; so it is 1 with probability exactly T / 2^planes.
//!
//! U < T is decided from the lowest digit up: where T has digit 1, `acc = !u | acc`; where it has 0, `acc = !u & acc`.
//! All planes are always read. Stopping at the first digit that decides would be faster, and would tell the digit of T
//! at which it stopped, which depends on the data bit.
//!
//! The only branches are on the digits of `p` and `q`, which are public.

/// The bytes of a tile, and of one plane of its randomness.
pub const TILE_BYTES: usize = 64;

type Words = [u64; TILE_BYTES / 8];

/// Replaces every bit of `data` by 1 with probability `p` / 2^planes where it is 1, and `q` / 2^planes where it is 0.
///
/// Tile after tile takes the next `planes` times 64 bytes of `random`.
///
/// # Panics
/// When `data` is not whole tiles, or `random` is not `planes` times as long, or `planes` is 0 or above 64.
pub fn flip(planes: u32, p: u64, q: u64, random: &[u8], data: &mut [u8]) {
    let (tiles, rest) = data.as_chunks_mut::<TILE_BYTES>();
    assert!((1..=64).contains(&planes) && rest.is_empty());
    assert_eq!(random.len(), tiles.len() * planes as usize * TILE_BYTES);
    for (tile, random) in tiles.iter_mut().zip(random.chunks_exact(planes as usize * TILE_BYTES)) {
        flip_tile(p, q, random.as_chunks().0, tile);
    }
}

#[inline]
fn flip_tile(p: u64, q: u64, planes: &[[u8; TILE_BYTES]], tile: &mut [u8; TILE_BYTES]) {
    let data = words(tile);
    let mut acc: Words = [0; _];
    for (digit, plane) in planes.iter().enumerate() {
        let random = words(plane);
        match (p >> digit & 1, q >> digit & 1) {
            (0, 0) => each(&mut acc, |acc, i| !random[i] & acc),
            (0, _) => each(&mut acc, |acc, i| majority(!random[i], acc, !data[i])),
            (_, 0) => each(&mut acc, |acc, i| majority(!random[i], acc, data[i])),
            _ => each(&mut acc, |acc, i| !random[i] | acc),
        }
    }
    for (bytes, word) in tile.as_chunks_mut().0.iter_mut().zip(acc) {
        *bytes = word.to_le_bytes();
    }
}

fn words(bytes: &[u8; TILE_BYTES]) -> Words {
    let bytes = bytes.as_chunks().0;
    core::array::from_fn(|i| u64::from_le_bytes(bytes[i]))
}

#[inline]
fn each(acc: &mut Words, step: impl Fn(u64, usize) -> u64) {
    for (i, acc) in acc.iter_mut().enumerate() {
        *acc = step(*acc, i);
    }
}

/// `if digit { a | b } else { a & b }`, for every bit.
#[inline]
fn majority(a: u64, b: u64, digit: u64) -> u64 {
    a & b | digit & (a | b)
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
            let data: Vec<u8> = (0..3 * TILE_BYTES).map(|_| byte()).collect();
            let random: Vec<u8> = (0..planes as usize * data.len()).map(|_| byte()).collect();
            let mut flipped = data.clone();
            flip(planes, p, q, &random, &mut flipped);
            assert_eq!(flipped, naive(planes, p, q, &random, &data), "{planes} {p} {q}");
        }
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn randomness_of_the_wrong_length_is_refused() {
        flip(3, 5, 2, &[0; 2 * TILE_BYTES], &mut [0; TILE_BYTES]);
    }
}
