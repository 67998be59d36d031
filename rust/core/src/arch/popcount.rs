//! Positional population count: how many rows of a packed bit matrix have bit i set, for every i.
//!
//! The matrix is read as *super-rows*: the fewest whole rows that make whole 64-bit words, and at least eight of
//! them. So every width works without padding, and no width is slow: bit b of word w always means the same column.
//! Sixteen super-rows at a time go through a tree of carry-save adders (Harley and Seal), whose carry is added to a
//! bit-sliced counter; only once in 255 such groups are the bit planes spread to ordinary counters.
//!
//! Time and addresses depend only on the shape of the matrix.

/// The words that go through the adders side by side.
const LANES: usize = 8;

/// Super-rows in one pass through the adder tree.
const GROUP: usize = 16;

/// The binary digits of the bit-sliced counters.
const PLANES: usize = 12;

/// How many groups, and after them up to 15 single super-rows, a bit-sliced counter holds: 255 * 16 + 15 < 2^12.
const MAX_GROUPS: usize = 255;

/// The words of a super-row that are counted in one pass over the matrix; their counters stay in the first-level cache.
const STRIP_WORDS: usize = 16 * LANES;

/// The bytes that are read strip by strip before going on, so that each comes from memory once.
const BLOCK_BYTES: usize = 1 << 15;

/// One bit-sliced counter for each of 64 `L` columns.
type Counter<const L: usize> = [[u64; L]; PLANES];

/// Adds to `counters[i]` the number of rows in which bit i, least significant bit of a byte first, is set.
///
/// # Panics
/// When `row_bytes` is zero, `rows` is not whole rows, there are not 8 `row_bytes` counters, or a counter overflows.
pub fn add_column_counts(rows: &[u8], row_bytes: usize, counters: &mut [u64]) {
    assert!(row_bytes > 0 && rows.len().is_multiple_of(row_bytes));
    assert_eq!(counters.len(), 8 * row_bytes);
    let words = words_per_super_row(row_bytes);
    let batch_bytes = 8 * words * (GROUP * MAX_GROUPS + GROUP - 1);
    let whole = rows.len() / (8 * words) * (8 * words);
    let (super_rows, rest) = rows.split_at(whole);
    for batch in super_rows.chunks(batch_bytes) {
        add_batch(batch, words, row_bytes, counters);
    }
    for row in rest.chunks_exact(row_bytes) {
        for (&byte, counters) in row.iter().zip(counters.as_chunks_mut::<8>().0) {
            for (bit, counter) in counters.iter_mut().enumerate() {
                *counter += u64::from(byte >> bit & 1);
            }
        }
    }
}

/// The words of a super-row.
fn words_per_super_row(row_bytes: usize) -> usize {
    let whole_words = row_bytes >> row_bytes.trailing_zeros().min(3);
    whole_words * LANES.div_ceil(whole_words)
}

/// Counts up to `GROUP * MAX_GROUPS + GROUP - 1` super-rows of `words` words.
fn add_batch(batch: &[u8], words: usize, row_bytes: usize, counters: &mut [u64]) {
    let super_row_bytes = 8 * words;
    let block_bytes = GROUP * super_row_bytes * (BLOCK_BYTES / (GROUP * super_row_bytes)).max(1);
    for first in (0..words).step_by(STRIP_WORDS) {
        let strip = first..words.min(first + STRIP_WORDS);
        let wide = strip.len() / LANES;
        let mut wide_counters = [[[0; LANES]; PLANES]; STRIP_WORDS / LANES];
        let mut narrow_counters = [[[0; 1]; PLANES]; LANES - 1];
        let narrow_first = first + wide * LANES;
        for block in batch.chunks(block_bytes) {
            for (i, counter) in wide_counters[..wide].iter_mut().enumerate() {
                add_block(block, super_row_bytes, first + i * LANES, counter);
            }
            for (i, counter) in narrow_counters[..strip.end - narrow_first].iter_mut().enumerate() {
                add_block(block, super_row_bytes, narrow_first + i, counter);
            }
        }
        for (i, counter) in wide_counters[..wide].iter().enumerate() {
            spread(counter, first + i * LANES, row_bytes, counters);
        }
        for (i, counter) in narrow_counters[..strip.end - narrow_first].iter().enumerate() {
            spread(counter, narrow_first + i, row_bytes, counters);
        }
    }
}

/// Counts words `word` to `word + L - 1` of every super-row of `block`.
fn add_block<const L: usize>(block: &[u8], super_row_bytes: usize, word: usize, counter: &mut Counter<L>) {
    let mut planes = *counter;
    let groups = block.chunks_exact(GROUP * super_row_bytes);
    for super_row in groups.remainder().chunks_exact(super_row_bytes) {
        ripple(&mut planes, 0, load(super_row, word));
    }
    for group in groups {
        let at = |i: usize| load(&group[i * super_row_bytes..], word);
        let [ones, twos, fours, eights, ..] = &mut planes;
        let mut pair = |i: usize| carry_save(ones, at(i), at(i + 1));
        let mut quad = |i: usize| carry_save(twos, pair(i), pair(i + 2));
        let mut oct = |i: usize| carry_save(fours, quad(i), quad(i + 4));
        let sixteens = carry_save(eights, oct(0), oct(8));
        ripple(&mut planes, 4, sixteens);
    }
    *counter = planes;
}

#[inline]
fn load<const L: usize>(super_row: &[u8], word: usize) -> [u64; L] {
    let bytes = super_row[8 * word..8 * (word + L)].as_chunks().0;
    core::array::from_fn(|i| u64::from_le_bytes(bytes[i]))
}

/// `sum + a + b` in every bit: the low digit replaces `sum`, the high digit is returned.
#[inline]
fn carry_save<const L: usize>(sum: &mut [u64; L], a: [u64; L], b: [u64; L]) -> [u64; L] {
    core::array::from_fn(|i| {
        let half = sum[i] ^ a[i];
        let carry = sum[i] & a[i] | half & b[i];
        sum[i] = half ^ b[i];
        carry
    })
}

/// Adds `carry` to the counter's digits from `first` on.
#[inline]
fn ripple<const L: usize>(planes: &mut Counter<L>, first: usize, mut carry: [u64; L]) {
    for plane in &mut planes[first..] {
        for (digit, carry) in plane.iter_mut().zip(&mut carry) {
            (*digit, *carry) = (*digit ^ *carry, *digit & *carry);
        }
    }
}

/// Adds the counts of words `word` to `word + L - 1` to their columns' counters.
fn spread<const L: usize>(counter: &Counter<L>, word: usize, row_bytes: usize, counters: &mut [u64]) {
    let used = PLANES - counter.iter().rev().take_while(|plane| plane.iter().all(|&digits| digits == 0)).count();
    for lane in 0..L {
        for byte in 0..8 {
            let column = (8 * (word + lane) + byte) % row_bytes;
            for (bit, total) in counters[8 * column..8 * column + 8].iter_mut().enumerate() {
                let digits = counter[..used].iter().enumerate();
                *total += digits.map(|(j, plane)| (plane[lane] >> (8 * byte + bit) & 1) << j).sum::<u64>();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(rows: &[u8], row_bytes: usize) -> Vec<u64> {
        let bit = |row: &[u8], i: usize| u64::from(row[i / 8] >> (i % 8) & 1);
        let rows = || rows.chunks_exact(row_bytes);
        (0..8 * row_bytes).map(|i| rows().map(|row| bit(row, i)).sum()).collect()
    }

    fn pseudo_random(length: usize) -> Vec<u8> {
        let step = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Some((*state >> 56) as u8)
        };
        std::iter::from_fn({
            let mut state = length as u64;
            move || step(&mut state)
        })
        .take(length)
        .collect()
    }

    #[test]
    fn every_width_and_height_agrees_with_the_plain_loop() {
        for row_bytes in [1, 2, 3, 7, 8, 13, 16, 65, 125, 128, 255, 512, 2049] {
            for rows in [0, 1, 7, 8, 9, 63, 64, 127, 128, 129, 1023, 1024, 1500] {
                let matrix = pseudo_random(rows * row_bytes);
                let mut counters = vec![5; 8 * row_bytes];
                add_column_counts(&matrix, row_bytes, &mut counters);
                let expected: Vec<u64> = naive(&matrix, row_bytes).iter().map(|count| count + 5).collect();
                assert_eq!(counters, expected, "{row_bytes} {rows}");
            }
        }
    }

    /// All ones reach the highest digit of the bit-sliced counters, in one full batch and just beyond it.
    #[test]
    fn full_counters_do_not_overflow() {
        for row_bytes in [1, 13, 16, 64] {
            let full = (GROUP * MAX_GROUPS + GROUP - 1) * 8 * words_per_super_row(row_bytes) / row_bytes;
            for rows in [full - 1, full, full + 1, 2 * full + 3] {
                let mut counters = vec![0; 8 * row_bytes];
                add_column_counts(&vec![0xff; rows * row_bytes], row_bytes, &mut counters);
                assert!(counters.iter().all(|&count| count == rows as u64), "{row_bytes} {rows}");
            }
        }
    }

    #[test]
    fn super_rows_are_whole_words_and_whole_rows() {
        for (row_bytes, words) in [(1, 8), (2, 8), (3, 9), (8, 8), (13, 13), (16, 8), (125, 125), (128, 16), (512, 64)]
        {
            assert_eq!(words_per_super_row(row_bytes), words);
            assert_eq!(8 * words % row_bytes, 0);
        }
    }
}
