//! Per-example clipping: squares of a row, the factors of some rows, and the addition of scaled rows on a grid, as
//! `sgd/clipping.md` defines and proves them.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{self, Lanes32, Lanes64, Vectors, Widen};

/// Rows are padded with zeros to a multiple of this many numbers, which is also the number of partial sums of squares.
pub const LANES: usize = 32;

/// Factors are made for this many rows at once.
pub const ROWS: usize = 8;

/// No instruction set needs more pairs of vectors for the partial sums.
const MOST_PAIRS: usize = 4;

/// 3/2 2^52: added to a number below 2^51 in magnitude, it rounds that to an integer, half to even. The bits of the sum
/// minus those of this constant are the integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// How many bytes ahead rows from memory are prefetched. With hardware prefetching alone, both passes take a fifth more
/// time (1000 columns: f32 21 %, f64 20 %).
pub const AHEAD: usize = 1 << 12;

/// The bytes of a cache line.
const LINE: usize = 64;

/// The factors by which rows are multiplied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Factors {
    /// The factor of each row.
    scales: [f64; ROWS],
    /// All ones, or zero for a row that counts as zeros.
    masks: [i64; ROWS],
}

/// A number of a gradient: `f32` or `f64`. Singles below 2^-126 and doubles below 2^-511 in magnitude count as zero.
#[allow(private_bounds, reason = "there are no other such numbers")]
pub trait Real: Copy + Default + Send + Sync + Loaded {
    /// The nearest number to a double.
    fn from_f64(value: f64) -> Self;

    /// The number as a double; zero if it is an infinity, a NaN or subnormal.
    fn normal_f64(self) -> f64;
}

impl Real for f32 {
    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    #[inline]
    fn normal_f64(self) -> f64 {
        // 1 to 254 for a normal number: the mask is computed without a comparison, which could become a branch.
        let exponent = (self.to_bits() >> 23) & 0xff;
        let is_normal = ((exponent + 255) >> 8) & !((exponent + 1) >> 8);
        f64::from(f32::from_bits(self.to_bits() & is_normal.wrapping_neg()))
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> f64 {
        value
    }

    #[inline]
    fn normal_f64(self) -> f64 {
        let exponent = (self.to_bits() >> 52) & 0x7ff;
        let is_normal = ((exponent + 2047) >> 11) & !((exponent + 1) >> 11);
        f64::from_bits(self.to_bits() & is_normal.wrapping_neg())
    }
}

/// `make constant-time` compiles this crate without the callers that choose the type, and would find no kernel.
#[cfg(all(dpnoise_secrecy, target_arch = "aarch64"))]
#[used]
static INSTANCES: fn() = || {
    let squares = [add_squares::<f32> as *const (), add_squares::<f64> as *const ()];
    let scaled = [add_scaled::<f32> as *const (), add_scaled::<f64> as *const ()];
    core::hint::black_box((squares, scaled));
};

/// Adds the square of number i of row r to `sums[r][i % LANES]`, for rows of `stride` numbers; the numbers that do not
/// fill the lanes are left out. Meanwhile prefetches the beginning of `soon`, half as many numbers as are read.
pub fn add_squares<T: Real>(
    instructions: InstructionSet,
    rows: &[T],
    stride: usize,
    soon: &[T],
    sums: &mut [[f64; LANES]],
) {
    dispatch!(instructions, squares<T: Real>(rows: &[T], stride: usize, soon: &[T], sums: &mut [[f64; LANES]]));
}

/// Multiplies each of some rows of `stride` numbers by its factor, rounds the products to integers, half to even, and
/// adds these to `sums`, modulo 2^64. Products must be below 2^51. Meanwhile prefetches the memory `ahead` bytes after each
/// number and the beginning of `soon`, half as many numbers as are read.
///
/// # Panics
/// When `sums` is not padded to a multiple of [`LANES`], or longer than a row, or there are more than [`ROWS`].
pub fn add_scaled<T: Real>(
    instructions: InstructionSet,
    rows: &[T],
    stride: usize,
    ahead: usize,
    soon: &[T],
    factors: &Factors,
    sums: &mut [i64],
) {
    dispatch!(
        instructions,
        scaled<T: Real>(rows: &[T], stride: usize, ahead: usize, soon: &[T], factors: &Factors, sums: &mut [i64])
    );
}

/// The factors of rows whose squares sum up to `squares`: the smaller one of `unit`, a power of two, and
/// `ceiling / sqrt(squares)`, which may be rounded down by a part in 2^28 and up by one in 2^50; and zero for sums that
/// are not finite.
///
/// `ceiling` and `unit` are from 1/2 to 2^500.
#[must_use]
pub fn factors(instructions: InstructionSet, ceiling: f64, unit: f64, squares: &[f64; ROWS]) -> Factors {
    let mut all = Factors::default();
    let factors = &mut all;
    dispatch!(instructions, scale(ceiling: f64, unit: f64, squares: &[f64; ROWS], factors: &mut Factors));
    all
}

/// Vectors of doubles.
type Pair<S> = [<<S as Vectors>::U64 as Lanes64>::F64; 2];

/// Loads numbers into vectors of doubles.
trait Loaded: Sized {
    /// The first numbers of `source`, as many as a pair of vectors holds; zero where they are tiny or `mask` is zero
    /// instead of all ones.
    ///
    /// # Safety
    /// As for the methods of [`Lanes64`].
    unsafe fn load<S: Vectors>(source: &[Self], mask: u64) -> Pair<S>;

    /// a b + c, the same on every instruction set, if b is such a number or a factor.
    ///
    /// # Safety
    /// As for the methods of [`Lanes64`].
    unsafe fn multiply_add<V: Lanes64>(a: V::F64, b: V::F64, c: V::F64) -> V::F64;
}

impl Loaded for f32 {
    #[inline(always)]
    unsafe fn load<S: Vectors>(source: &[f32], mask: u64) -> Pair<S> {
        /// Every single except zero and subnormal ones has one of these bits.
        const EXPONENT: u32 = 0xff << 23;
        // SAFETY: passed on from the caller.
        unsafe { S::U32::load_f32(source).zero_unless_any(S::U32::splat(EXPONENT & mask as u32)).widen_f32() }
    }

    #[inline(always)]
    unsafe fn multiply_add<V: Lanes64>(a: V::F64, b: V::F64, c: V::F64) -> V::F64 {
        // SAFETY: passed on from the caller. A single has 24 digits and a factor 29: so the product is exact.
        unsafe { V::mul_add_f64(a, b, c) }
    }
}

impl Loaded for f64 {
    #[inline(always)]
    unsafe fn load<S: Vectors>(source: &[f64], mask: u64) -> Pair<S> {
        /// Every double of at least 2^-511 in magnitude has one of these bits.
        const UPPER: u64 = 0b11 << 61;
        let half = |first: usize| {
            // SAFETY: passed on from the caller.
            unsafe {
                let given = S::U64::bitcast_u64(S::U64::load_f64(&source[first..]));
                given.zero_unless_any(S::U64::splat(UPPER & mask)).bitcast_f64()
            }
        };
        [half(0), half(S::U64::N)]
    }

    #[inline(always)]
    unsafe fn multiply_add<V: Lanes64>(a: V::F64, b: V::F64, c: V::F64) -> V::F64 {
        // SAFETY: passed on from the caller.
        unsafe { V::add_f64(V::mul_f64(a, b), c) }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn squares<S: Vectors, T: Real>(rows: &[T], stride: usize, soon: &[T], sums: &mut [[f64; LANES]]) {
    let pair = 2 * S::U64::N;
    let mut soon = soon.chunks_exact(LANES / 2);
    for (row, sums) in rows.chunks_exact(stride).zip(sums) {
        // SAFETY: passed on from the caller; a pair of vectors divides the partial sums.
        unsafe {
            let mut totals = [[S::U64::splat_f64(0.0); 2]; MOST_PAIRS];
            for (total, sums) in totals.iter_mut().zip(sums.chunks_exact(pair)) {
                *total = [S::U64::load_f64(sums), S::U64::load_f64(&sums[S::U64::N..])];
            }
            for numbers in row.chunks_exact(LANES) {
                prefetch::<_, LANES>(numbers, AHEAD);
                if let Some(soon) = soon.next() {
                    prefetch::<_, { LANES / 2 }>(soon, 0);
                }
                for (total, numbers) in totals.iter_mut().zip(numbers.chunks_exact(pair)) {
                    *total = add_squared::<S, _>(numbers, *total);
                }
            }
            for (total, sums) in totals.into_iter().zip(sums.chunks_exact_mut(pair)) {
                S::U64::store_f64(total[0], sums);
                S::U64::store_f64(total[1], &mut sums[S::U64::N..]);
            }
        }
    }
}

/// Prefetches `COUNT` numbers, those `ahead` bytes after the start of `numbers`.
#[inline(always)]
fn prefetch<T, const COUNT: usize>(numbers: &[T], ahead: usize) {
    for offset in (0..COUNT * size_of::<T>()).step_by(LINE) {
        lanes::prefetch::<false>(numbers.as_ptr().cast::<u8>().wrapping_add(ahead).wrapping_add(offset));
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_squared<S: Vectors, T: Loaded>(numbers: &[T], [low, high]: Pair<S>) -> Pair<S> {
    // SAFETY: passed on from the caller.
    unsafe {
        let [a, b] = T::load::<S>(numbers, u64::MAX);
        [T::multiply_add::<S::U64>(a, a, low), T::multiply_add::<S::U64>(b, b, high)]
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn scaled<S: Vectors, T: Real>(
    rows: &[T],
    stride: usize,
    ahead: usize,
    soon: &[T],
    factors: &Factors,
    sums: &mut [i64],
) {
    assert!(sums.len().is_multiple_of(LANES) && sums.len() <= stride && rows.len() <= ROWS * stride);
    let pair = 2 * S::U64::N;
    let mut soon = soon.chunks_exact(LANES / 2);
    let count = (rows.len() / stride) as u64;
    for (sums, first) in sums.chunks_exact_mut(LANES).zip((0..stride).step_by(LANES)) {
        // SAFETY: passed on from the caller; a pair of vectors divides the lanes.
        unsafe {
            let mut totals = [[S::U64::splat(0); 2]; MOST_PAIRS];
            for (total, sums) in totals.iter_mut().zip(sums.chunks_exact(pair)) {
                let excess = S::U64::splat(count.wrapping_mul(ROUNDER.to_bits()));
                *total = [S::U64::load(sums).sub(excess), S::U64::load(&sums[S::U64::N..]).sub(excess)];
            }
            let factors = factors.scales.iter().zip(&factors.masks);
            for (row, (&scale, &mask)) in rows.chunks_exact(stride).zip(factors) {
                let numbers = &row[first..][..LANES];
                prefetch::<_, LANES>(numbers, ahead);
                if let Some(soon) = soon.next() {
                    prefetch::<_, { LANES / 2 }>(soon, 0);
                }
                for (total, numbers) in totals.iter_mut().zip(numbers.chunks_exact(pair)) {
                    *total = add_product::<S, _>(numbers, scale, mask.cast_unsigned(), *total);
                }
            }
            for (total, sums) in totals.into_iter().zip(sums.chunks_exact_mut(pair)) {
                total[0].store(sums);
                total[1].store(&mut sums[S::U64::N..]);
            }
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn add_product<S: Vectors, T: Loaded>(numbers: &[T], scale: f64, mask: u64, totals: [S::U64; 2]) -> [S::U64; 2] {
    // SAFETY: passed on from the caller.
    unsafe {
        let (scale, rounder) = (S::U64::splat_f64(scale), S::U64::splat_f64(ROUNDER));
        let mut totals = totals;
        for (total, vector) in totals.iter_mut().zip(T::load::<S>(numbers, mask)) {
            *total = total.add(S::U64::bitcast_u64(T::multiply_add::<S::U64>(vector, scale, rounder)));
        }
        totals
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn scale<S: Vectors>(ceiling: f64, unit: f64, squares: &[f64; ROWS], factors: &mut Factors) {
    /// The upper 29 digits of a double, rounded down, with its sign and exponent.
    const UPPER: u64 = u64::MAX << 24;
    for first in (0..ROWS).step_by(S::U64::N) {
        // SAFETY: passed on from the caller; the lanes divide the rows.
        unsafe {
            let given = S::U64::load_f64(&squares[first..]);
            let magnitude = S::U64::bitcast_u64(given).and(S::U64::splat(u64::MAX >> 1));
            let finite = magnitude.less_than(S::U64::splat(f64::INFINITY.to_bits()));
            let wanted = S::U64::mul_f64(S::U64::splat_f64(ceiling), inverse_square_root::<S::U64>(given));
            let wanted = S::U64::bitcast_u64(wanted).and(S::U64::splat(UPPER));
            let unit = S::U64::splat(unit.to_bits());
            let (zero, ones) = (S::U64::splat(0), S::U64::splat(u64::MAX));
            let scale = wanted.select(unit, wanted.less_than(unit)).select(zero, finite);
            S::U64::store_f64(scale.bitcast_f64(), &mut factors.scales[first..]);
            ones.select(zero, finite).store(&mut factors.masks[first..]);
        }
    }
}

/// 1/sqrt(x) to a relative error of 2^-50, without a division, for x from 2^-1022; for 0, a number above 2^500.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn inverse_square_root<V: Lanes64>(x: V::F64) -> V::F64 {
    /// These bits minus half of those of x are the bits of an approximation to 4%.
    const GUESS: u64 = 0x5fe6_eb50_c7b5_37a9;
    // SAFETY: passed on from the caller.
    unsafe {
        let mut y = V::splat(GUESS).sub(V::bitcast_u64(x).shr(1)).bitcast_f64();
        for _ in 0..4 {
            // Half of y is taken and not of x, which could become subnormal: processors take longer for such numbers.
            let half = V::mul_f64(y, V::splat_f64(0.5));
            let correction = V::sub_f64(V::splat_f64(1.5), V::mul_f64(V::mul_f64(x, half), y));
            y = V::mul_f64(y, correction);
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::super::lanes::Portable;
    use super::*;
    use crate::arith::power_of_two;

    fn pseudo_random(length: usize) -> impl Iterator<Item = u64> {
        let mut state = length as u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 32
        })
        .take(length)
    }

    /// All kinds of singles and doubles: every exponent, infinities and NaN among them, half of them moderate.
    fn singles(length: usize) -> Vec<f32> {
        let moderate = |word: u64| (word as u32 & 0x83ff_ffff | 0x3c00_0000) ^ (word as u32 & 0x8000_0000);
        pseudo_random(length).map(|w| f32::from_bits(if w >> 63 == 0 { w as u32 } else { moderate(w) })).collect()
    }

    fn doubles(length: usize) -> Vec<f64> {
        let moderate = |word: u64| word & !(0xff << 54) | 0xff << 54;
        pseudo_random(length).map(|w| f64::from_bits(if w & 1 == 0 { w } else { moderate(w) & !(1 << 62) })).collect()
    }

    fn bits(numbers: &[f64]) -> Vec<u64> {
        // It is not specified which of several NaNs results.
        numbers.iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
    }

    fn agree<T: Real>(numbers: &[T]) {
        for instructions in InstructionSet::available() {
            for (height, width, stride) in
                [(0, 32, 32), (1, 32, 32), (3, 64, 70), (8, 96, 96), (8, 32, 41), (2, 224, 224)]
            {
                let results = |instructions| {
                    let rows = &numbers[..height * stride];
                    let mut squares = [[1.5; LANES]; ROWS];
                    add_squares(instructions, rows, stride, &[], &mut squares);
                    let norms = [0.0, 5e-324, 0.3, 1.0, 1e300, f64::INFINITY, f64::NAN, -f64::NAN];
                    let factors = factors(instructions, 1e9, power_of_two(31), &norms);
                    let mut sums = vec![-3; width];
                    add_scaled(instructions, rows, stride, AHEAD, &[], &factors, &mut sums);
                    (bits(squares.as_flattened()), bits(&factors.scales), factors.masks, sums)
                };
                let expected = results(InstructionSet::PORTABLE);
                assert_eq!(results(instructions), expected, "{} {height} {width}", instructions.name());
            }
        }
    }

    #[test]
    fn all_instruction_sets_agree_bit_for_bit() {
        agree(&singles(1000));
        agree(&doubles(1000));
    }

    fn exact(x: f64) -> BigRational {
        BigRational::from_float(x).unwrap()
    }

    /// The relative error of y as an inverse square root of x is e when y^2 x is (1 + e)^2.
    #[test]
    fn inverse_square_roots_have_a_relative_error_below_2_to_the_minus_50() {
        type V = <Portable as Vectors>::U64;
        let limit = BigRational::new(1.into(), BigInt::from(1u64 << 49)); // about twice as much, for the square
        let mut numbers: Vec<f64> = (1..2047u64)
            .step_by(9)
            .flat_map(|e| [0, 1, (1 << 52) - 1, 0x6_a09e_667f_3bcd].map(|m| f64::from_bits(e << 52 | m)))
            .collect();
        numbers.extend(pseudo_random(4000).map(|word| f64::from_bits(0x3fe0_0000_0000_0000 + (word >> 11))));
        for eight in numbers.chunks_exact(8) {
            let mut roots = [0.0; 8];
            // SAFETY: plain code runs on every CPU.
            unsafe { V::store_f64(inverse_square_root::<V>(V::load_f64(eight)), &mut roots) }
            for (&x, y) in eight.iter().zip(roots) {
                let error = exact(y) * exact(y) * exact(x) - BigRational::from_integer(1.into());
                assert!(error.clone() < limit && -error < limit, "{x:e} {y:e}");
            }
        }
    }

    #[test]
    fn factors_are_never_too_large_and_hardly_too_small() {
        let ceiling = 3e9;
        let slack = |exponent: i32| exact(1.0 + 2f64.powi(exponent));
        for (word, e) in pseudo_random(2000).zip((-900..900).cycle().step_by(7)) {
            let square = f64::from_bits((word >> 12) | ((e + 1023) as u64) << 52);
            let factor = exact(factors(InstructionSet::PORTABLE, ceiling, 2f64.powi(505), &[square; ROWS]).scales[3]);
            let ratio = factor.clone() * factor * exact(square) / (exact(ceiling) * exact(ceiling));
            assert!(ratio < slack(-48) && ratio * slack(-26) > exact(1.0), "{square:e}");
        }
        let unit = 2f64.powi(30);
        let norms =
            [0.0, 1e-300, (ceiling / unit).powi(2) * 0.999, 1e300, f64::MAX, f64::INFINITY, f64::NAN, -f64::NAN];
        for instructions in InstructionSet::available() {
            let Factors { scales, masks } = factors(instructions, ceiling, unit, &norms);
            assert_eq!(scales[..3], [unit; 3]);
            assert!(scales[3] > 0.0 && scales[4] > 0.0 && scales[5..] == [0.0; 3]);
            assert_eq!(masks, [-1, -1, -1, -1, -1, 0, 0, 0]);
        }
    }

    #[test]
    fn tiny_numbers_count_as_zero_and_squares_are_exact() {
        for instructions in InstructionSet::available() {
            let mut sums = [[0.0; LANES]];
            let mut row = [0.0; LANES];
            row[..4].copy_from_slice(&[f32::MIN_POSITIVE.next_down(), f32::MIN_POSITIVE, 3.0, f32::MAX]);
            add_squares::<f32>(instructions, &row, LANES, &[], &mut sums);
            assert_eq!(sums[0][..4], [0.0, power_of_two(-252), 9.0, f64::from(f32::MAX) * f64::from(f32::MAX)]);
            let mut row = [0.0; LANES];
            row[..4].copy_from_slice(&[power_of_two(-511).next_down(), -power_of_two(-511), 3.0, 1e200]);
            sums = [[0.0; LANES]];
            add_squares::<f64>(instructions, &row, LANES, &[], &mut sums);
            assert_eq!(sums[0][..4], [0.0, f64::MIN_POSITIVE, 9.0, f64::INFINITY]);
        }
    }
}
