//! Rows of bits of sixteen people, in tiles: tile j has word j of each row, little-endian. So a tile of random words, one
//! from each person's stream, flips as many bits as there are.
//!
//! Time and memory addresses do not depend on bits.

use dpnoise_kernels::arch::chacha_keys::{PEOPLE, Words};

/// The bytes of a word.
const WORD_BYTES: usize = 4;

/// Word j of the row of each person.
pub(crate) type Tile = [[u8; WORD_BYTES]; PEOPLE];

/// The tiles that are made and flipped at once.
pub(crate) const TILES: usize = 16;

/// Some tiles of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The word of rows that the first of them has.
    pub(crate) first: usize,
    /// How many there are.
    pub(crate) length: usize,
}

/// The number of tiles of rows of `width` bytes.
pub(crate) fn tiles(width: usize) -> usize {
    width.div_ceil(WORD_BYTES)
}

/// The parts of rows of `width` bytes, all but the last one of [`TILES`] tiles.
pub(crate) fn parts(width: usize) -> impl Iterator<Item = Part> {
    let tiles = tiles(width);
    (0..tiles).step_by(TILES).map(move |first| Part { first, length: TILES.min(tiles - first) })
}

/// Ones where the words are the same, which are below 2^31, and zeros elsewhere.
#[inline(always)]
pub(crate) fn same(a: u32, b: u32) -> u32 {
    ((a ^ b).wrapping_sub(1).cast_signed() >> 31).cast_unsigned()
}

/// Sets the bit of each person's row that has the number in `bits`, which is below 2^31, if it is in these tiles, of which
/// the first one has words `first`.
pub(crate) fn set_bits(bits: &Words, first: usize, tiles: &mut [Tile]) {
    let (mut words, mut masks) = ([0; PEOPLE], [0; PEOPLE]);
    for ((&bit, word), mask) in bits.iter().zip(&mut words).zip(&mut masks) {
        (*word, *mask) = (bit >> 5, 1 << (bit & 31));
    }
    for (j, tile) in (first as u32..).zip(tiles) {
        for ((bytes, word), mask) in tile.iter_mut().zip(words).zip(masks) {
            *bytes = (u32::from_le_bytes(*bytes) | mask & same(word, j)).to_le_bytes();
        }
    }
}

/// Writes words `first` and on of rows of `width` bytes to `out`, which has at most sixteen rows.
pub(crate) fn write_rows(first: usize, tiles: &[Tile], width: usize, out: &mut [u8]) {
    for (i, row) in out.chunks_exact_mut(width).enumerate() {
        for (bytes, tile) in row[WORD_BYTES * first..].chunks_mut(WORD_BYTES).zip(tiles) {
            bytes.copy_from_slice(&tile[i][..bytes.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_bits_that_are_set() {
        for width in [1, 2, 4, 5, 11, 64, 200] {
            let bits = core::array::from_fn(|i| (i * 113 % (8 * width + 9)) as u32);
            let mut out = vec![0xff; 11 * width];
            for Part { first, length } in parts(width) {
                let mut tiles = vec![Tile::default(); length];
                set_bits(&[3; PEOPLE], first, &mut tiles);
                set_bits(&bits, first, &mut tiles);
                write_rows(first, &tiles, width, &mut out);
            }
            for (row, bit) in out.chunks(width).zip(bits) {
                let is_set = |i: usize| row[i / 8] >> (i % 8) & 1 == 1;
                assert!((0..8 * width).all(|i| is_set(i) == (i == 3 || i == bit as usize)), "{width} {bit}");
            }
        }
    }
}
