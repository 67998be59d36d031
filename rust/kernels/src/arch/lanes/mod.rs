//! The small vector traits that kernels are written in, and the types of each instruction set.
//!
//! | module | instruction set |
//! | --- | --- |
//! | `portable` | plain code, which the compiler may vectorise for the baseline of the target |
//! | `avx2` | AVX2 and FMA |
//! | `avx512` | AVX-512 F and DQ |
//!
//! All methods are `inline(always)`, so that they take on the `target_feature` of the function that a kernel is called
//! from.
#![allow(unsafe_code, reason = "vendor intrinsics")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
pub(super) use portable::Portable;

/// The vector types of an instruction set.
pub(super) trait Vectors {
    /// The number of vector registers.
    const REGISTERS: usize;
    /// Vectors of 32-bit words.
    type U32: Lanes32;
    /// Vectors of 64-bit words, and doubles.
    type U64: Lanes64;
    /// Two vectors of 64-bit words hold as much as one of these.
    type Narrow: Narrow<Wide = Self::U64>;
}

/// A vector of `N` 32-bit words.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
pub(super) trait Lanes32: Copy {
    /// The number of words.
    const N: usize;

    /// Every lane holds `word`.
    unsafe fn splat(word: u32) -> Self;
    /// The first `N` words of `source`, which has at least as many.
    unsafe fn load(source: &[u32]) -> Self;
    /// Writes the lanes to `target` as little-endian words; it has room for at least `N`.
    unsafe fn store(self, target: &mut [u8]);
    /// Lane by lane, modulo 2^32.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn xor(self, other: Self) -> Self;
    /// Every lane rotated by `LEFT` bits to the left and `RIGHT = 32 - LEFT` to the right.
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self;
}

/// A vector of `N` 64-bit words, or of as many doubles.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
pub(super) trait Lanes64: Copy {
    /// The number of words, at most 64.
    const N: usize;
    /// The same number of doubles.
    type Float: Copy;
    /// A truth value for each lane.
    type Mask: Copy;

    /// Every lane holds `word`.
    unsafe fn splat(word: u64) -> Self;
    /// Lane i holds little-endian word i of `source`, which has at least `N` of them.
    unsafe fn load_u64(source: &[u8]) -> Self;
    /// Asks for the cache line of `address`, which will be read soon; it may be any address.
    unsafe fn prefetch(address: *const u8);
    /// Lane i holds little-endian 32-bit word i of `source`, which has at least `N` of them.
    unsafe fn load_u32(source: &[u8]) -> Self;
    /// Lane i holds word i of `source`, which has at least `N` of them.
    unsafe fn load(source: &[i64]) -> Self;
    /// Writes the lanes to the first `N` words of `target`, which has at least as many.
    unsafe fn store(self, target: &mut [i64]);
    /// Writes the lanes to `target` as little-endian words; it has room for at least `N`.
    unsafe fn store_u64(self, target: &mut [u8]);
    /// Writes the lanes whose bit in `keep` is set to the front of `target`, in order, and anything to the places
    /// behind them; `target` has at least `N` words. Returns how many were chosen. Addresses depend on `keep` alone, which
    /// may be known (Theorem 1).
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize;

    /// Lane by lane, modulo 2^64.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane, modulo 2^64.
    unsafe fn sub(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn and(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn xor(self, other: Self) -> Self;
    /// Every lane shifted to the left, by less than 64.
    unsafe fn shl(self, count: u32) -> Self;
    /// Every lane shifted to the right, by less than 64.
    unsafe fn shr(self, count: u32) -> Self;
    /// Every lane shifted to the left by its count, which is below 64.
    unsafe fn shl_each(self, counts: Self) -> Self;
    /// Lane by lane, for words below 2^63.
    unsafe fn less(self, other: Self) -> Self::Mask;
    /// The lane where it has one of `bits`, else zero.
    unsafe fn where_any(self, bits: Self) -> Self;
    /// Lane by lane: `self` where `mask` is set, else `other`.
    unsafe fn select(self, other: Self, mask: Self::Mask) -> Self;

    /// The first `N` doubles of `source`, which has at least as many.
    unsafe fn load_float(source: &[f64]) -> Self::Float;
    /// Writes the doubles to the front of `target`, which has room for at least `N`.
    unsafe fn store_float(float: Self::Float, target: &mut [f64]);
    /// The doubles nearest to the words, as signed numbers.
    unsafe fn to_float(self) -> Self::Float;
    /// The doubles with these bits.
    unsafe fn as_float(self) -> Self::Float;
    /// The bits of the doubles.
    unsafe fn from_float(float: Self::Float) -> Self;
    /// Every lane holds `value`.
    unsafe fn float(value: f64) -> Self::Float;
    /// Lane by lane.
    unsafe fn fadd(a: Self::Float, b: Self::Float) -> Self::Float;
    /// Lane by lane.
    unsafe fn fsub(a: Self::Float, b: Self::Float) -> Self::Float;
    /// Lane by lane.
    unsafe fn fmul(a: Self::Float, b: Self::Float) -> Self::Float;
    /// a * b + c, with one rounding or two.
    unsafe fn mul_add(a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    /// The whole number below or at each double, which is below 2^53 in magnitude.
    unsafe fn floor(a: Self::Float) -> Self::Float;
    /// The smaller one, lane by lane.
    unsafe fn fmin(a: Self::Float, b: Self::Float) -> Self::Float;
    /// a < b, lane by lane.
    unsafe fn fless(a: Self::Float, b: Self::Float) -> Self::Mask;

    /// The mask as bits, lane i at bit i.
    unsafe fn bits(mask: Self::Mask) -> u64;
}

/// A vector of 32-bit words, twice as many as the 64-bit words of [`Narrow::Wide`].
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
pub(super) trait Narrow: Copy {
    /// The vectors that have room for half of the lanes each.
    type Wide: Lanes64;
    /// A truth value for each lane.
    type Mask: Copy;

    /// Every lane holds `word`.
    unsafe fn splat(word: u32) -> Self;
    /// Lane i holds little-endian word i of `source`, which has at least as many as there are lanes.
    unsafe fn load(source: &[u8]) -> Self;
    /// Lane i holds the bits of single i of `source`, which has at least as many as there are lanes.
    unsafe fn load_single(source: &[f32]) -> Self;
    /// Lane i holds `table[self[i]]`, by reading the whole table: no address depends on an index. Indices are below 64.
    unsafe fn look_up(self, table: &[u32; 64]) -> Self;
    /// Lane by lane, modulo 2^32.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn and(self, other: Self) -> Self;
    /// The smaller one, lane by lane.
    unsafe fn min(self, other: Self) -> Self;
    /// Every lane shifted to the left, by less than 32.
    unsafe fn shl(self, count: u32) -> Self;
    /// Every lane shifted to the right, by less than 32.
    unsafe fn shr(self, count: u32) -> Self;
    /// Lane by lane, for words below 2^31.
    unsafe fn less(self, other: Self) -> Self::Mask;
    /// The lane where it has one of `bits`, else zero.
    unsafe fn where_any(self, bits: Self) -> Self;
    /// Lane by lane: `self` where `mask` is set, else `other`.
    unsafe fn select(self, other: Self, mask: Self::Mask) -> Self;
    /// The lower and the upper half of the lanes, as 64-bit words.
    unsafe fn halves(self) -> [Self::Wide; 2];
    /// The lower and the upper half of the lanes, as doubles.
    unsafe fn float_halves(self) -> [<Self::Wide as Lanes64>::Float; 2];
    /// The lower and the upper half of the singles with these bits, as doubles.
    unsafe fn single_halves(self) -> [<Self::Wide as Lanes64>::Float; 2];
    /// The mask as bits, lane i at bit i.
    unsafe fn bits(mask: Self::Mask) -> u64;
}
