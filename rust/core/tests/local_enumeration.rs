//! The bit-flipping kernel, enumerated: every random word once, every threshold, exact counts.

use dpnoise_core::instruction_set;
use dpnoise_kernels::arch::planes::{self, TILE_BYTES};

/// A kernel to examine: planes, p, q, random bytes, data.
type Kernel = fn(u32, u64, u64, &[u8], &mut [u8]);

fn flip(planes: u32, p: u64, q: u64, random: &[u8], data: &mut [u8]) {
    planes::flip(instruction_set::current().unwrap(), planes, p, q, random, data);
}

/// The tiles in which lane i of all lanes has the random word i: for each tile, plane after plane.
fn every_word_once(planes: u32) -> Vec<u8> {
    let lanes = 1usize << planes.max(9);
    let mut random = vec![0u8; lanes / 8 * planes as usize];
    for lane in 0..lanes {
        let (tile, bit) = (lane / 512, lane % 512);
        for plane in 0..planes as usize {
            let digit = (lane >> plane & 1) as u8;
            random[(tile * planes as usize + plane) * TILE_BYTES + bit / 8] |= digit << (bit % 8);
        }
    }
    random
}

/// How many of the 2^planes words set a bit that was `data`.
fn ones(kernel: Kernel, planes: u32, (p, q): (u64, u64), data: bool, random: &[u8]) -> u64 {
    let mut bits = vec![if data { 0xff } else { 0 }; random.len() / planes as usize];
    kernel(planes, p, q, random, &mut bits);
    let set: u64 = bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let repeats = (8 * bits.len() as u64) >> planes;
    assert_eq!(set % repeats, 0, "every word comes equally often");
    set / repeats
}

/// Whether a bit 1 stays with exactly p of 2^planes words, and a bit 0 is set with exactly q, for all p and q in turn.
fn is_exact(kernel: Kernel, planes: u32) -> bool {
    let random = every_word_once(planes);
    let top = 1u64 << planes;
    (1..top).all(|threshold| {
        let pair = (threshold, top - threshold);
        ones(kernel, planes, pair, true, &random) == pair.0 && ones(kernel, planes, pair, false, &random) == pair.1
    })
}

#[test]
fn every_threshold_has_exactly_its_probability() {
    for planes in 1..=10 {
        assert!(is_exact(flip, planes), "{planes}");
    }
}

/// All pairs, so that every combination of the digits of p and q is met at every place.
#[test]
fn p_and_q_do_not_disturb_each_other() {
    let random = every_word_once(6);
    for p in 1..64 {
        for q in 1..64 {
            assert_eq!(ones(flip, 6, (p, q), true, &random), p);
            assert_eq!(ones(flip, 6, (p, q), false, &random), q);
        }
    }
}

#[test]
fn data_bits_of_one_tile_do_not_disturb_each_other() {
    let random = every_word_once(9);
    let mut bits = [0b0101_0011; TILE_BYTES];
    flip(9, 400, 77, &random, &mut bits);
    for lane in 0..512 {
        let threshold = if 0b0101_0011 >> (lane % 8) & 1 == 1 { 400 } else { 77 };
        assert_eq!(bits[lane / 8] >> (lane % 8) & 1 == 1, lane < threshold);
    }
}

/// The positive control: kernels with a plausible fault do not pass.
#[test]
fn planted_faults_are_caught() {
    // Turning the random planes round would change nothing, as every word comes once; turning the thresholds does.
    let most_significant_first: Kernel = |planes, p, q, random, data| {
        let turn = |threshold: u64| threshold.reverse_bits() >> (64 - planes);
        flip(planes, turn(p), turn(q), random, data);
    };
    let off_by_one: Kernel = |planes, p, q, random, data| flip(planes, p, q - 1, random, data);
    let one_plane_short: Kernel = |planes, p, q, random, data| flip(planes, p & !1, q & !1, random, data);
    let stuck_plane: Kernel = |planes, p, q, random, data| {
        let mut random = random.to_vec();
        random[..TILE_BYTES].fill(0);
        flip(planes, p, q, &random, data);
    };
    let swapped: Kernel = |planes, p, q, random, data| flip(planes, q, p, random, data);
    for fault in [most_significant_first, off_by_one, one_plane_short, stuck_plane, swapped] {
        assert!(!is_exact(fault, 5));
    }
}
