//! Passes over a column of doubles, of which a NaN is a missing value: sums of the values and of their squares in steps of
//! a grid, the steps themselves, and counts of the values in bins. Each value is read once.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::grid::pick;
use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes64, Vectors};
use crate::arith::power_of_two;

/// The most values of a block: as many, of at most 2^52 steps each, add up to less than 2^63.
pub const BLOCK: usize = 1 << 10;

/// The number of values of a block is a multiple of this. No vector has more lanes.
pub const WIDEST: usize = 8;

/// The bounds that values are clamped to, and the grid that they are rounded to, half up. The bounds are at most 2^52
/// steps in magnitude.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The smallest and the largest value.
    pub bounds: (f64, f64),
    /// How many steps 1 has, a power of two.
    pub steps: f64,
}

impl Range {
    /// The grid of granularity 2^exponent, for exponents from -1019 to 900.
    #[must_use]
    pub fn new(bounds: (f64, f64), exponent: i32) -> Self {
        Self { bounds, steps: power_of_two(-exponent) }
    }
}

/// What is added up of a value x: its distance d = x - `middle`, rounded to `distances`' grid; on request also
/// r^2 - `centre`, where r = (d + `half`) - `half`, clamped to `squares` and rounded to its grid.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// The bounds of x, and the grid of d, which is at most 2^52 steps in magnitude.
    pub distances: Range,
    /// What is subtracted from x.
    pub middle: f64,
    /// The largest magnitude of d.
    pub half: f64,
    /// What is subtracted from squares.
    pub centre: f64,
    /// The bounds and the grid of what is left of them.
    pub squares: Range,
}

/// Sums in steps over the values that are not missing, and the number of those that are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the distances.
    pub distances: i64,
    /// The sum of the shifted squares, or 0 if they were not requested.
    pub squares: i64,
    /// The number of missing values.
    pub missing: i64,
}

/// The sums over a block, with those of squares if `squared`.
///
/// # Panics
/// When the number of values is above [`BLOCK`], or no multiple of [`WIDEST`].
#[must_use]
pub fn sums(instructions: InstructionSet, moments: &Moments, squared: bool, values: &[f64]) -> Sums {
    check(values);
    let mut found = Sums::default();
    let sums = &mut found;
    dispatch!(instructions, sums_lanes(moments: &Moments, squared: bool, values: &[f64], sums: &mut Sums));
    found
}

/// What missing values become, and how many there were: a `share` of them, in units of 2^-62, the lower of two ends. Of those
/// in places of one remainder modulo [`WIDEST`] this is so but for less than one value, wherever they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missing {
    ends: (i64, i64),
    share: u64,
    /// What is left of the share, for each remainder.
    left: [i64; WIDEST],
    /// How many values are missing.
    pub count: i64,
    /// How many of them have become the lower end.
    pub low: i64,
}

impl Missing {
    /// A share, of 1 at most, of values that are still to come.
    #[must_use]
    pub fn new(ends: (i64, i64), share: u64) -> Self {
        Self { ends, share, ..Self::default() }
    }
}

/// Sets each of `steps` to the steps of a value.
///
/// # Panics
/// As for [`sums`]; when there are not as many steps as values.
pub fn steps(instructions: InstructionSet, range: &Range, missing: &mut Missing, values: &[f64], steps: &mut [i64]) {
    check(values);
    assert_eq!(values.len(), steps.len());
    dispatch!(instructions, steps_lanes(range: &Range, missing: &mut Missing, values: &[f64], steps: &mut [i64]));
}

/// Adds to each of `counts` the number of values above the edge in its place. No edge is a NaN.
///
/// # Panics
/// As for [`sums`]; when there are not as many counts as edges.
pub fn count_above(instructions: InstructionSet, edges: &[f64], values: &[f64], counts: &mut [i64]) {
    check(values);
    assert_eq!(edges.len(), counts.len());
    dispatch!(instructions, count_lanes(edges: &[f64], values: &[f64], counts: &mut [i64]));
}

fn check(values: &[f64]) {
    assert!(values.len() <= BLOCK && values.len().is_multiple_of(WIDEST));
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn sums_lanes<S: Vectors>(moments: &Moments, squared: bool, values: &[f64], sums: &mut Sums) {
    // SAFETY: passed on from the caller; every slice has N items.
    unsafe {
        let zero = S::U64::splat_f64(0.0);
        let mut found = ([zero; 2], [zero; 2], S::U64::splat(0));
        for values in values.chunks_exact(S::U64::N) {
            add_vector::<S::U64>(moments, squared, values, &mut found);
        }
        let (distances, squares, missing) = found;
        *sums = Sums {
            distances: total(integer_of_parts::<S::U64>(distances)),
            squares: total(integer_of_parts::<S::U64>(squares)),
            missing: total(missing),
        };
    }
}

/// The low part of a sum has this many bits.
const LOW_BITS: u32 = 22;

/// What a unit of the high part stands for.
const HIGH_UNIT: f64 = (1u64 << LOW_BITS) as f64;

/// Whole numbers of at most 2^62 in magnitude, lane by lane: a multiple of 2^22, and the rest. Sums of 2^10 that are at
/// most 2^52 have parts that are exact as doubles.
type Parts<V> = [<V as Lanes64>::F64; 2];

/// Adds a vector of values to the sums of [`Sums`], lane by lane.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_vector<V: Lanes64>(
    moments: &Moments,
    squared: bool,
    values: &[f64],
    (distances, squares, missing): &mut (Parts<V>, Parts<V>, V),
) {
    // SAFETY: passed on from the caller.
    unsafe {
        let (x, is_missing) = clamped::<V>(&moments.distances, V::load_f64(values));
        let distance = V::sub_f64(x, V::splat_f64(moments.middle));
        add_parts::<V>(distances, steps_of::<V>(moments.distances.steps, distance), is_missing);
        if squared {
            let half = V::splat_f64(moments.half);
            let rounded = V::sub_f64(V::add_f64(distance, half), half);
            let shifted = V::sub_f64(V::mul_f64(rounded, rounded), V::splat_f64(moments.centre));
            let (shifted, _) = clamped::<V>(&moments.squares, shifted);
            add_parts::<V>(squares, steps_of::<V>(moments.squares.steps, shifted), is_missing);
        }
        *missing = counted(*missing, is_missing);
    }
}

/// Adds whole numbers where they are not missing.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_parts<V: Lanes64>(sums: &mut Parts<V>, steps: V::F64, is_missing: V::Mask) {
    // SAFETY: passed on from the caller.
    unsafe {
        let steps = pick::<V>(V::splat_f64(0.0), steps, is_missing);
        // The last bit of this double, and of those near it, stands for 2^22.
        let rounder = V::splat_f64(ROUNDER * HIGH_UNIT);
        let high = V::sub_f64(V::add_f64(steps, rounder), rounder);
        *sums = [V::add_f64(sums[0], high), V::add_f64(sums[1], V::sub_f64(steps, high))];
    }
}

/// The whole numbers that have these parts.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn integer_of_parts<V: Lanes64>([high, low]: Parts<V>) -> V {
    // SAFETY: passed on from the caller.
    unsafe { integer::<V>(V::mul_f64(high, V::splat_f64(1.0 / HIGH_UNIT))).shl(LOW_BITS).add(integer::<V>(low)) }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn steps_lanes<S: Vectors>(range: &Range, missing: &mut Missing, values: &[f64], steps: &mut [i64]) {
    // SAFETY: passed on from the caller; every slice has N items.
    unsafe {
        let mut left = [S::U64::splat(0); WIDEST];
        for (lanes, left) in left.iter_mut().zip(missing.left.chunks_exact(S::U64::N)) {
            *lanes = S::U64::load(left);
        }
        let mut counts = [S::U64::splat(0); 2];
        for (values, steps) in values.chunks_exact(WIDEST).zip(steps.chunks_exact_mut(WIDEST)) {
            let vectors = values.chunks_exact(S::U64::N).zip(steps.chunks_exact_mut(S::U64::N));
            for ((values, steps), left) in vectors.zip(&mut left) {
                step_vector::<S::U64>(range, missing, values, left, &mut counts).store(steps);
            }
        }
        for (lanes, left) in left.iter().zip(missing.left.chunks_exact_mut(S::U64::N)) {
            lanes.store(left);
        }
        missing.count = missing.count.wrapping_add(total(counts[0]));
        missing.low = missing.low.wrapping_add(total(counts[1]));
    }
}

/// The steps of a vector of values.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn step_vector<V: Lanes64>(
    range: &Range,
    missing: &Missing,
    values: &[f64],
    left: &mut V,
    counts: &mut [V; 2],
) -> V {
    // SAFETY: passed on from the caller.
    unsafe {
        let (zero, whole) = (V::splat(0), V::splat(1 << 62));
        let (x, is_missing) = clamped::<V>(range, V::load_f64(values));
        let x = steps_of::<V>(range.steps, x);
        // An integer of at most 2^52 in magnitude, of which only a half is one of at most 2^51.
        let half = V::mul_f64(x, V::splat_f64(0.5));
        let rounder = V::splat_f64(ROUNDER);
        let floor = V::sub_f64(V::add_f64(half, rounder), rounder);
        let rest = V::sub_f64(x, V::add_f64(floor, floor)); // -1, 0 or 1
        let steps = integer::<V>(floor).shl(1).add(integer::<V>(rest));
        let sum = left.add(V::splat(missing.share).select(zero, is_missing));
        let is_low = V::splat((1 << 62) - 1).less_than(sum);
        *left = sum.sub(whole.select(zero, is_low));
        *counts = [counted(counts[0], is_missing), counted(counts[1], is_low)];
        let (low, high) = missing.ends;
        let end = V::splat(low.cast_unsigned()).select(V::splat(high.cast_unsigned()), is_low);
        end.select(steps, is_missing)
    }
}

/// So many edges are compared with each value while it is in a register.
const EDGES: usize = 4;

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn count_lanes<S: Vectors>(edges: &[f64], values: &[f64], counts: &mut [i64]) {
    for (edges, counts) in edges.chunks(EDGES).zip(counts.chunks_mut(EDGES)) {
        // SAFETY: passed on from the caller; every slice has N items.
        unsafe {
            let (mut bounds, mut sums) = ([S::U64::splat_f64(f64::INFINITY); EDGES], [S::U64::splat(0); EDGES]);
            for (bound, &edge) in bounds.iter_mut().zip(edges) {
                *bound = S::U64::splat_f64(edge);
            }
            for values in values.chunks_exact(S::U64::N) {
                add_above::<S::U64>(&bounds, values, &mut sums);
            }
            for (count, &sum) in counts.iter_mut().zip(&sums) {
                *count = count.wrapping_add(total(sum));
            }
        }
    }
}

/// Adds the values above each of the bounds, lane by lane.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_above<V: Lanes64>(bounds: &[V::F64; EDGES], values: &[f64], sums: &mut [V; EDGES]) {
    // SAFETY: passed on from the caller.
    unsafe {
        let x = V::load_f64(values);
        for (sum, &bound) in sums.iter_mut().zip(bounds) {
            *sum = counted(*sum, V::less_than_f64(bound, x));
        }
    }
}

/// One more in each lane where the mask is set.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn counted<V: Lanes64>(counts: V, mask: V::Mask) -> V {
    // SAFETY: passed on from the caller. All ones are -1, and on most instruction sets are what a mask is.
    unsafe { counts.sub(V::splat(u64::MAX).select(V::splat(0), mask)) }
}

/// The values, clamped to the bounds, and whether they are missing; those that are become the lower bound.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn clamped<V: Lanes64>(range: &Range, x: V::F64) -> (V::F64, V::Mask) {
    // SAFETY: passed on from the caller.
    unsafe {
        let (lower, upper) = (V::splat_f64(range.bounds.0), V::splat_f64(range.bounds.1));
        let magnitude = V::bitcast_u64(x).and(V::splat(u64::MAX >> 1));
        let is_missing = V::splat(f64::INFINITY.to_bits()).less_than(magnitude);
        (V::min_f64(V::max_f64(x, lower), upper), is_missing)
    }
}

/// The number of steps nearest to each double, half up, where 1 has so many; it is at most 2^52 in magnitude.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn steps_of<V: Lanes64>(steps: f64, x: V::F64) -> V::F64 {
    // SAFETY: passed on from the caller.
    unsafe {
        // Subnormal numbers take longer, and round to 0, as all do below half a step: but for these, the sum of a number of
        // steps and 1/2 is exact, or on the same side of whole numbers. The bits of 2^a have the exponent 1023 + a: those of
        // `steps`, 2^a, and of half a step, 2^(-1 - a), add up to 2045.
        let half = (2045u64 << 52).wrapping_sub(steps.to_bits());
        let magnitude = V::bitcast_u64(x).and(V::splat(u64::MAX >> 1));
        let x = pick::<V>(V::splat_f64(0.0), x, magnitude.less_than(V::splat(half)));
        V::floor_f64(V::add_f64(V::mul_f64(x, V::splat_f64(steps)), V::splat_f64(0.5)))
    }
}

/// 1.5 * 2^52: added to a number of at most 2^51 in magnitude, it rounds that to an integer, which is then in the low bits of
/// the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The integers with these values, of at most 2^51 in magnitude.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn integer<V: Lanes64>(x: V::F64) -> V {
    // SAFETY: passed on from the caller.
    unsafe { V::bitcast_u64(V::add_f64(x, V::splat_f64(ROUNDER))).sub(V::splat(ROUNDER.to_bits())) }
}

/// The sum of all lanes.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn total<V: Lanes64>(v: V) -> i64 {
    let mut lanes = [0; WIDEST];
    // SAFETY: passed on from the caller.
    unsafe { v.store(&mut lanes) };
    lanes.iter().fold(0, |sum: i64, &lane| sum.wrapping_add(lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at and near bounds and halves of steps, subnormal, huge, infinite and missing ones.
    fn values() -> Vec<f64> {
        let near = [-3.2, 0.0, 0.1, 7.7, 0.125, -0.125, 0.375, 1e15, 1e15 + 2.0, 2.5, -2.5];
        let near = near.into_iter().flat_map(|x: f64| [x, x.next_up(), x.next_down()]);
        let far = [-0.0, 5e-324, -1e-310, 1e300, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY];
        let missing = [0x7ff8 << 48, 0xfff8 << 48, 0x7ff0_0000_0000_07a2, u64::MAX].map(f64::from_bits);
        near.chain(far).chain(missing).cycle().take(BLOCK).collect()
    }

    const RANGES: [((f64, f64), i32); 6] = [
        ((-3.2, 7.7), -2),
        ((0.1, 0.3), -53),
        ((0.0, 1.0), -52),
        ((1e15, 1e15 + 2.0), -2),
        ((-1e-310, 3e-310), -1019),
        ((-1e280, 3e285), 900),
    ];

    /// Half up, by the operations that are exact.
    fn steps_of(range: &Range, x: f64) -> i64 {
        let t = x.max(range.bounds.0).min(range.bounds.1) * range.steps;
        t.floor() as i64 + i64::from(t - t.floor() >= 0.5)
    }

    #[test]
    fn steps_and_their_sums_are_the_same_on_every_instruction_set() {
        let values = values();
        for (bounds, exponent) in RANGES {
            let range = Range::new(bounds, exponent);
            for length in [0, WIDEST, 3 * WIDEST, BLOCK] {
                let values = &values[..length];
                let expected: Vec<i64> =
                    values.iter().map(|&x| if x.is_nan() { -7 } else { steps_of(&range, x) }).collect();
                let present = values.iter().zip(&expected).filter(|(x, _)| !x.is_nan());
                let sum = present.clone().map(|(_, steps)| steps).sum::<i64>();
                let moments = Moments { distances: range, middle: 0.0, half: 0.0, centre: 0.0, squares: range };
                for instructions in InstructionSet::available() {
                    let mut found = vec![0; length];
                    let mut missing = Missing::new((-7, -7), 1 << 60);
                    steps(instructions, &range, &mut missing, values, &mut found);
                    assert_eq!(found, expected, "{range:?} {}", instructions.name());
                    let missing = (length - present.clone().count()) as i64;
                    let expected = Sums { distances: sum, squares: 0, missing };
                    assert_eq!(sums(instructions, &moments, false, values), expected, "{range:?}");
                }
            }
        }
    }

    /// In blocks and wherever they are: of those in places of one remainder, as many as the share and no more.
    #[test]
    fn missing_values_are_shared_by_the_ends_on_every_instruction_set() {
        let range = Range::new((0.0, 9.0), 0);
        for share in [0u64, 1, 1 << 60, (1 << 62) / 3, (1 << 62) - 1, 1 << 62] {
            let values: Vec<f64> = (0..BLOCK).map(|i| if (i * i / 7 + i) % 5 < 2 { f64::NAN } else { 4.0 }).collect();
            let (mut counts, mut expected) = ([0u128; WIDEST], vec![4; BLOCK]);
            for (i, _) in values.iter().enumerate().filter(|(_, x)| x.is_nan()) {
                let count = &mut counts[i % WIDEST];
                let low = |count: u128| (count * u128::from(share)) >> 62;
                *count += 1;
                expected[i] = if low(*count) > low(*count - 1) { -1 } else { 10 };
            }
            for instructions in InstructionSet::available() {
                let (mut missing, mut found) = (Missing::new((-1, 10), share), vec![0; BLOCK]);
                for (values, found) in values.chunks(256).zip(found.chunks_mut(256)) {
                    steps(instructions, &range, &mut missing, values, found);
                }
                assert_eq!(found, expected, "{share} {}", instructions.name());
                let count = |end| expected.iter().filter(|&&step| step == end).count() as i64;
                assert_eq!((missing.count, missing.low), (count(-1) + count(10), count(-1)));
            }
        }
    }

    #[test]
    fn squares_are_those_of_rounded_distances_on_every_instruction_set() {
        let values = values();
        for (lower, upper) in [(-3.2, 7.7), (0.1, 0.3), (2e10, 2e10 + 1.0)] {
            let middle: f64 = lower / 2.0 + upper / 2.0;
            let half = (upper - middle).max(middle - lower);
            let centre = half * half / 2.0;
            let exponent = |most: f64| most.log2().ceil() as i32 - 50;
            let moments = Moments {
                distances: Range::new((lower, upper), exponent(half)),
                middle,
                half,
                centre,
                squares: Range::new((-centre, centre), exponent(centre)),
            };
            let mut expected = Sums::default();
            for &x in &values {
                if x.is_nan() {
                    expected.missing += 1;
                    continue;
                }
                let distance = x.max(lower).min(upper) - middle;
                let whole = Range { bounds: (-half, half), ..moments.distances };
                expected.distances += steps_of(&whole, distance);
                expected.squares += steps_of(&moments.squares, ((distance + half) - half).powi(2) - centre);
            }
            for instructions in InstructionSet::available() {
                assert_eq!(sums(instructions, &moments, true, &values), expected, "{lower} {}", instructions.name());
            }
        }
    }

    #[test]
    fn values_above_edges_are_counted_on_every_instruction_set() {
        let values = values();
        for count in [1, 2, 4, 5, 11] {
            let edges = [f64::NEG_INFINITY, -3.2, -0.0, 5e-324, 0.1, 2.5, 7.7, 1e15, 1e300, f64::MAX, f64::INFINITY];
            let edges = &edges[..count];
            let expected: Vec<i64> =
                edges.iter().map(|edge| 1000 + values.iter().filter(|x| *x > edge).count() as i64).collect();
            for instructions in InstructionSet::available() {
                let mut found = vec![1000; count];
                count_above(instructions, edges, &values, &mut found);
                assert_eq!(found, expected, "{}", instructions.name());
            }
        }
    }
}
