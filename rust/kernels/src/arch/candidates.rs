//! Scores as depths below the best one, their weights, and the candidate that a number falls on: the passes over all
//! candidates of which a selection consists. See `samplers/selection.md` for the definitions and the proofs.
//!
//! Arrays of candidates have a multiple of [`COLUMNS`] items and are read as rows of that many. Every operation on
//! doubles is rounded separately, so that all instruction sets give the same weights.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use core::array;

use super::exp2::exp2_minus;
use super::grid::round;
use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes64, Vectors};
use crate::arith::power_of_two;

/// The candidates in a row. No vector has more lanes.
pub const COLUMNS: usize = 8;

/// The weight of the best candidate: C in `samplers/selection.md`.
pub const UNIT: u64 = 1 << UNIT_BITS;

/// The binary logarithm of [`UNIT`].
pub const UNIT_BITS: u32 = 51;

/// The largest difference between scores; larger ones are reduced to this.
pub const FURTHEST: u64 = 1 << 51;

/// The score of a candidate that cannot be chosen.
pub const RETIRED: f64 = f64::NEG_INFINITY;

/// The depth of a candidate that cannot be chosen.
pub const RETIRED_DEPTH: i64 = 1 << 62;

/// A target that no sum of weights reaches.
pub const NOWHERE: i64 = 1 << 62;

/// 1.5 * 2^52: added to a number of at most 2^51 in magnitude, it rounds that to an integer, which is then in the low
/// bits of the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The factor that raises a computed weight above the exact one.
const MARGIN: f64 = 1.0 + 9.094_947_017_729_282e-13; // 1 + 2^-40

/// A number for each column.
pub type Row = [i64; COLUMNS];

/// The largest score of each column, and the bits of the largest magnitude.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extremes {
    /// The largest scores; subnormal numbers count as 0.
    pub best: [f64; COLUMNS],
    /// The bits of the largest magnitudes; those of infinity or more when a score is not finite.
    pub magnitude: Row,
}

/// Where the targets of a block fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The row of the first candidate of each column up to which the weights exceed the target; 0 if there is none.
    pub rows: Row,
    /// The depths of these candidates; 0 if there is none.
    pub depths: Row,
}

/// Finds the largest score and the largest magnitude of each column.
///
/// # Panics
/// When there are no scores, or they are not whole rows.
#[must_use]
pub fn extremes(instructions: InstructionSet, scores: &[f64]) -> Extremes {
    assert!(!scores.is_empty() && scores.len().is_multiple_of(COLUMNS));
    let mut found = Extremes::default();
    let extremes = &mut found;
    dispatch!(instructions, extremes_lanes(scores: &[f64], extremes: &mut Extremes));
    found
}

/// Sets each depth to the number of steps of 2^exponent from `best` down to the score, both rounded to the grid:
/// negative where the score is above, and at most [`FURTHEST`] in magnitude; or to [`RETIRED_DEPTH`].
///
/// # Panics
/// When the scores are not whole rows, or not as many as depths; or the exponent is outside [-1019, 900].
pub fn measure(instructions: InstructionSet, exponent: i32, best: &f64, scores: &[f64], depths: &mut [i64]) {
    assert!((-1019..=900).contains(&exponent));
    assert!(scores.len().is_multiple_of(COLUMNS) && scores.len() == depths.len());
    dispatch!(instructions, measure_lanes(exponent: i32, best: &f64, scores: &[f64], depths: &mut [i64]));
}

/// Sets each weight to a whole number that is at least [`UNIT`] 2^(-rate d) for the depth d, and little more; and to 0
/// where the candidate is retired.
///
/// # Panics
/// When the depths are not whole rows, or not as many as weights.
pub fn weigh(instructions: InstructionSet, rate: f64, depths: &[i64], weights: &mut [i64]) {
    assert!(depths.len().is_multiple_of(COLUMNS) && depths.len() == weights.len());
    dispatch!(instructions, weigh_lanes(rate: f64, depths: &[i64], weights: &mut [i64]));
}

/// Replaces each weight by a coin that shows 1 with a probability of the weight over [`UNIT`], and packs the coins of each
/// row into a byte, those of the first column lowest. Each takes 8 bytes of `words`.
///
/// # Panics
/// When the weights are not whole rows, or there are not as many words or bytes.
pub fn flip(instructions: InstructionSet, words: &[u8], weights: &mut [i64], packed: &mut [u8]) {
    assert!(words.len() == 8 * weights.len() && weights.len() == COLUMNS * packed.len());
    dispatch!(instructions, flip_lanes(words: &[u8], weights: &mut [i64], packed: &mut [u8]));
}

/// The sum of the weights of each column; it must be below 2^62.
///
/// # Panics
/// When the weights are not whole rows.
#[must_use]
pub fn sums(instructions: InstructionSet, weights: &[i64]) -> Row {
    assert!(weights.len().is_multiple_of(COLUMNS));
    let mut row = [0; COLUMNS];
    let sums = &mut row;
    dispatch!(instructions, sums_lanes(weights: &[i64], sums: &mut Row));
    row
}

/// Finds in each column, with these sums, the candidate that its target falls on.
///
/// # Panics
/// When the weights are not whole rows, or not as many as depths.
#[must_use]
pub fn locate(instructions: InstructionSet, weights: &[i64], depths: &[i64], sums: &Row, targets: &Row) -> Found {
    assert!(weights.len().is_multiple_of(COLUMNS) && weights.len() == depths.len());
    let mut result = Found::default();
    let found = &mut result;
    dispatch!(instructions, locate_lanes(weights: &[i64], depths: &[i64], sums: &Row, targets: &Row, found: &mut Found));
    result
}

/// Copies the scores to `kept` if all bits of `chosen` are set; if none is, leaves `kept` as it was.
///
/// # Panics
/// When the scores are not whole rows, or not as many as there are places.
pub fn keep_if(instructions: InstructionSet, chosen: &u64, scores: &[f64], kept: &mut [f64]) {
    assert!(scores.len().is_multiple_of(COLUMNS) && scores.len() == kept.len());
    dispatch!(instructions, keep_if_lanes(chosen: &u64, scores: &[f64], kept: &mut [f64]));
}

/// Retires the candidate with this index.
///
/// # Panics
/// When the scores are not whole rows.
pub fn retire(instructions: InstructionSet, index: &u64, scores: &mut [f64]) {
    assert!(scores.len().is_multiple_of(COLUMNS));
    dispatch!(instructions, retire_lanes(index: &u64, scores: &mut [f64]));
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn extremes_lanes<S: Vectors>(scores: &[f64], extremes: &mut Extremes) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        for first in (0..COLUMNS).step_by(V::<S>::N) {
            let sign = V::<S>::splat(1 << 63);
            let (zero, smallest) = (V::<S>::splat(0), V::<S>::splat(f64::MIN_POSITIVE.to_bits()));
            let mut opposite = V::<S>::splat_f64(f64::INFINITY);
            let mut magnitude = zero;
            for row in (first..scores.len()).step_by(COLUMNS) {
                let score = V::<S>::bitcast_u64(V::<S>::load_f64(&scores[row..]));
                let size = score.and(V::<S>::splat(u64::MAX >> 1));
                magnitude = size.select(magnitude, magnitude.less_than(size));
                // Subnormal numbers, for which arithmetic may take longer, are 0 on every grid.
                let score = zero.select(score, size.less_than(smallest));
                opposite = V::<S>::min_f64(opposite, score.xor(sign).bitcast_f64());
            }
            let best = V::<S>::bitcast_u64(opposite).xor(sign).bitcast_f64();
            V::<S>::store_f64(best, &mut extremes.best[first..]);
            magnitude.store(&mut extremes.magnitude[first..]);
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn measure_lanes<S: Vectors>(exponent: i32, best: &f64, scores: &[f64], depths: &mut [i64]) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        let best = round::<V<S>>(exponent, V::<S>::splat_f64(*best));
        let inverse = V::<S>::splat_f64(power_of_two(-exponent));
        let (zero, furthest, rounder) =
            (V::<S>::splat_f64(0.0), V::<S>::splat_f64(FURTHEST as f64), V::<S>::splat_f64(ROUNDER));
        for first in (0..scores.len()).step_by(V::<S>::N) {
            let given = V::<S>::load_f64(&scores[first..]);
            let score = round::<V<S>>(exponent, given);
            // Exact up to the furthest; where it is inexact, it is more than that.
            let steps = V::<S>::min_f64(V::<S>::mul_f64(V::<S>::sub_f64(best, score), inverse), furthest);
            let steps = V::<S>::sub_f64(zero, V::<S>::min_f64(V::<S>::sub_f64(zero, steps), furthest));
            let depth = V::<S>::bitcast_u64(V::<S>::add_f64(steps, rounder)).sub(V::<S>::bitcast_u64(rounder));
            let magnitude = V::<S>::bitcast_u64(given).and(V::<S>::splat(u64::MAX >> 1));
            let is_finite = magnitude.less_than(V::<S>::splat(f64::INFINITY.to_bits()));
            depth.select(V::<S>::splat(RETIRED_DEPTH.cast_unsigned()), is_finite).store(&mut depths[first..]);
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn weigh_lanes<S: Vectors>(rate: f64, depths: &[i64], weights: &mut [i64]) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        let (rate, rounder) = (V::<S>::splat_f64(rate), V::<S>::splat_f64(ROUNDER));
        let (margin, unit_bits) = (V::<S>::splat_f64(MARGIN), V::<S>::splat(UNIT_BITS.into()));
        let (unit, retired) = (V::<S>::splat(UNIT), V::<S>::splat(RETIRED_DEPTH.cast_unsigned()));
        for first in (0..depths.len()).step_by(V::<S>::N) {
            let depth = V::<S>::load(&depths[first..]);
            let t = V::<S>::mul_f64(depth.convert_f64(), rate);
            let weight = V::<S>::mul_f64(exp2_minus::<V<S>, false>(unit_bits, t), margin);
            let whole = V::<S>::bitcast_u64(V::<S>::add_f64(weight, rounder));
            let raised = whole.sub(V::<S>::bitcast_u64(rounder)).add(V::<S>::splat(1));
            let limited = raised.select(unit, raised.less_than(unit));
            limited.select(V::<S>::splat(0), depth.less_than(retired)).store(&mut weights[first..]);
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn flip_lanes<S: Vectors>(words: &[u8], weights: &mut [i64], packed: &mut [u8]) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        for (row, packed) in packed.iter_mut().enumerate() {
            let mut byte = 0;
            for column in (0..COLUMNS).step_by(V::<S>::N) {
                let first = row * COLUMNS + column;
                let uniform = V::<S>::load_le_bytes(&words[8 * first..]).shr(64 - UNIT_BITS);
                let heads = uniform.less_than(V::<S>::load(&weights[first..]));
                V::<S>::splat(1).select(V::<S>::splat(0), heads).store(&mut weights[first..]);
                byte |= V::<S>::bitmask(heads) << column;
            }
            *packed = byte as u8;
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn sums_lanes<S: Vectors>(weights: &[i64], sums: &mut Row) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        for first in (0..COLUMNS).step_by(V::<S>::N) {
            let mut sum = V::<S>::splat(0);
            for row in (first..weights.len()).step_by(COLUMNS) {
                sum = sum.add(V::<S>::load(&weights[row..]));
            }
            sum.store(&mut sums[first..]);
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn locate_lanes<S: Vectors>(weights: &[i64], depths: &[i64], sums: &Row, targets: &Row, found: &mut Found) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        for first in (0..COLUMNS).step_by(V::<S>::N) {
            let target = V::<S>::load(&targets[first..]);
            let mut sum = V::<S>::load(&sums[first..]);
            let [mut at, mut depth] = [V::<S>::splat(0); 2];
            // From the last row up, so that the first one whose sum exceeds the target remains.
            for row in (0..weights.len() / COLUMNS).rev() {
                let exceeds = target.less_than(sum);
                at = V::<S>::splat(row as u64).select(at, exceeds);
                depth = V::<S>::load(&depths[row * COLUMNS + first..]).select(depth, exceeds);
                sum = sum.sub(V::<S>::load(&weights[row * COLUMNS + first..]));
            }
            at.store(&mut found.rows[first..]);
            depth.store(&mut found.depths[first..]);
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn keep_if_lanes<S: Vectors>(chosen: &u64, scores: &[f64], kept: &mut [f64]) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        let chosen = V::<S>::splat(*chosen);
        for first in (0..scores.len()).step_by(V::<S>::N) {
            let old = V::<S>::bitcast_u64(V::<S>::load_f64(&kept[first..]));
            let difference = V::<S>::bitcast_u64(V::<S>::load_f64(&scores[first..])).xor(old);
            V::<S>::store_f64(old.xor(difference.and(chosen)).bitcast_f64(), &mut kept[first..]);
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn retire_lanes<S: Vectors>(index: &u64, scores: &mut [f64]) {
    type V<S> = <S as Vectors>::U64;
    // SAFETY: passed on from the caller; every slice has at least N items, since N divides the length of a row.
    unsafe {
        let columns: Row = array::from_fn(|column| column as i64);
        let (index, one) = (V::<S>::splat(*index), V::<S>::splat(1));
        let [retired, infinity] = [RETIRED, f64::INFINITY].map(|bound| V::<S>::splat(bound.to_bits()));
        for first in (0..scores.len()).step_by(V::<S>::N) {
            let place = V::<S>::load(&columns).add(V::<S>::splat(first as u64));
            // A minimum, because the optimiser turns a choice between the old score and a new one into a masked store.
            let bound = retired.select(infinity, place.xor(index).less_than(one)).bitcast_f64();
            let score = V::<S>::min_f64(V::<S>::load_f64(&scores[first..]), bound);
            V::<S>::store_f64(score, &mut scores[first..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::exp::Constants;
    use crate::arith::fixed::Fixed;

    /// Rounded to whole numbers, half up, and subtracted.
    #[test]
    fn depths_are_those_of_the_rounded_scores() {
        let scores = [3.5, 3.499, -1e308, 0.0, 5e-324, -0.5, -0.75, 2.25];
        let expected = [1, 2, FURTHEST as i64, 5, 5, 5, 6, 3];
        for instructions in InstructionSet::available() {
            let mut depths = [0; COLUMNS];
            measure(instructions, 0, &4.6, &scores, &mut depths);
            assert_eq!(depths, expected, "{}", instructions.name());
            measure(instructions, -1019, &f64::MAX, &[-f64::MAX; 8], &mut depths);
            assert_eq!(depths, [FURTHEST as i64; 8]);
            measure(instructions, -1019, &-f64::MAX, &[f64::MAX; 8], &mut depths);
            assert_eq!(depths, [-(FURTHEST as i64); 8]);
            measure(instructions, 3, &-12.0, &[3.0, 4.0, 12.0, -12.1, -4.1, -11.9, 1e15, 0.0], &mut depths);
            assert_eq!(depths, [-1, -2, -3, 1, 0, 0, -125_000_000_000_001, -1]);
            measure(instructions, -40, &(2048.0 * (1.0 - 2f64.powi(-51))), &[0.0; 8], &mut depths);
            assert_eq!(depths, [(1 << 51) - 1; 8]);
        }
    }

    #[test]
    fn extremes_are_found_in_every_place() {
        for instructions in InstructionSet::available() {
            for length in [8, 16, 40] {
                for place in 0..length {
                    let mut scores = vec![-2.0; length];
                    scores[place] = -1.5;
                    let mut found = extremes(instructions, &scores);
                    assert_eq!(found.best[place % 8], -1.5);
                    found.best[place % 8] = -2.0;
                    assert_eq!(found.best, [-2.0; 8]);
                    scores[place] = f64::NAN;
                    let found = extremes(instructions, &scores);
                    assert!(found.magnitude[place % 8] > f64::INFINITY.to_bits() as i64);
                }
            }
        }
    }

    /// A >= C w and A <= C w (1 + 2^-39) + 3/2, by the certified exponential; and no instruction set differs.
    #[test]
    fn weights_are_above_the_exact_ones_and_close() {
        let constants = Constants::first();
        let depths: Vec<i64> = (0..4000).map(|i| i * i * 97_003).chain([1, FURTHEST as i64]).collect();
        let depths: Vec<i64> = depths.into_iter().chain([RETIRED_DEPTH; 6]).collect();
        let rate = core::f64::consts::LOG2_E * 2f64.powi(-35);
        let mut reference = vec![0; depths.len()];
        weigh(InstructionSet::PORTABLE, rate, &depths, &mut reference);
        for instructions in InstructionSet::available() {
            let mut weights = vec![0; depths.len()];
            weigh(instructions, rate, &depths, &mut weights);
            assert_eq!(weights, reference, "{}", instructions.name());
        }
        assert_eq!((reference[0], &reference[4002..]), (1 << 51, &[0; 6][..]));
        for (&depth, &weight) in depths.iter().zip(&reference).take(4002) {
            let t = constants.log2_e.clone().times_integer(depth as u64).shifted_right(35);
            let (k, v) = constants.exp2_neg(t);
            let exact = v.shifted_right(k).times_integer(UNIT);
            let weight = Fixed::from_integer(weight as u64, 4);
            assert!(!weight.is_less(&exact), "{depth}");
            let bound = exact.clone().plus(&exact.shifted_right(39)).plus(&Fixed::from_ratio_vartime(3, 2, 4));
            assert!(!bound.plus_ulps(1 << 70).is_less(&weight), "{depth}");
        }
    }

    #[test]
    fn every_target_falls_on_its_candidate() {
        let weights: Vec<i64> = (0..40).map(|i| [3, 0, 1, 2][(i / 8 + i) % 4]).collect();
        let depths: Vec<i64> = (100..140).collect();
        for instructions in InstructionSet::available() {
            let sums = sums(instructions, &weights);
            for column in 0..COLUMNS {
                let mut target = 0;
                for row in 0..5 {
                    for _ in 0..weights[row * 8 + column] {
                        let mut targets = [NOWHERE; 8];
                        targets[column] = target;
                        let mut expected = Found::default();
                        (expected.rows[column], expected.depths[column]) = (row as i64, depths[row * 8 + column]);
                        assert_eq!(locate(instructions, &weights, &depths, &sums, &targets), expected);
                        target += 1;
                    }
                }
                assert_eq!(sums[column], target);
            }
        }
    }

    #[test]
    fn coins_compare_the_leading_bits() {
        let weights = [0, 1, 5, UNIT as i64, 5, 5, 1, 0];
        let words = [0, 0, 4 << 13 | 0x1fff, u64::MAX, 5 << 13, 6 << 13, 1 << 13, u64::MAX];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        for instructions in InstructionSet::available() {
            let (mut coins, mut packed) = (weights, [0]);
            flip(instructions, &bytes, &mut coins, &mut packed);
            assert_eq!((coins, packed), ([0, 1, 1, 1, 0, 0, 0, 0], [0b1110]), "{}", instructions.name());
        }
    }

    #[test]
    fn the_retired_are_marked_and_have_no_weight() {
        for instructions in InstructionSet::available() {
            for index in 0..24 {
                let mut scores: Vec<f64> = (0..24).map(f64::from).collect();
                let mut expected = scores.clone();
                expected[index] = f64::NEG_INFINITY;
                retire(instructions, &(index as u64), &mut scores);
                assert_eq!(scores, expected);
                let (mut depths, mut weights) = (vec![0; 24], vec![7; 24]);
                measure(instructions, 0, &23.0, &scores, &mut depths);
                weigh(instructions, 1.0, &depths, &mut weights);
                for i in 0..24 {
                    assert_eq!(depths[i], if i == index { RETIRED_DEPTH } else { 23 - i as i64 });
                    assert_eq!(weights[i] == 0, i == index);
                }
            }
        }
    }

    #[test]
    fn scores_are_kept_or_not() {
        for instructions in InstructionSet::available() {
            let (scores, mut kept) = ([1.5, -0.0, 3.0, f64::NEG_INFINITY, 5.0, 6.0, 7.0, 8.0], [2.5; 8]);
            keep_if(instructions, &0, &scores, &mut kept);
            assert_eq!(kept, [2.5; 8]);
            keep_if(instructions, &u64::MAX, &scores, &mut kept);
            assert_eq!(kept.map(f64::to_bits), scores.map(f64::to_bits));
        }
    }
}
