//! The vector traits that kernels are written in, and the types of each instruction set.
//!
//! | module | instruction set |
//! | --- | --- |
//! | `portable` | plain code, which the compiler may vectorise for the baseline of the target |
//! | `avx2` | AVX2 and FMA |
//! | `avx512` | AVX-512 F and DQ |
//! | `neon` | NEON |
//!
//! A vector holds unsigned words, of 8, 32 or 64 bits, and its methods work lane by lane. They are named for what they do:
//!
//! - `add`, `less_than`, `splat` and so on work on words; with the ending `_f64` on doubles, as many as 64-bit words.
//! - `load` and `store` move numbers in native byte order, `load_le_bytes` and `store_le_bytes` little-endian bytes.
//! - `widen` makes 64-bit lanes from 32-bit lanes: the result has two vectors, that of the lower half first.
//! - `convert` keeps values and `bitcast` keeps bits; the ending names the type of the result.
//!
//! All methods are `inline(always)`, so that they take on the `target_feature` of the function that a kernel is called
//! from. Another instruction set is another module here, with a variant of `Kind`, a name and a function of `dispatch!` in
//! `instruction_set.rs`; the tests of all kernels then compare it with plain code.
#![allow(unsafe_code, reason = "vendor intrinsics")]

/// Methods of a vector trait, made of intrinsics on registers. For memory there are `load` and `store`, which check
/// lengths.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! intrinsics {
    ($(fn $name:ident($($arguments:tt)*) $(-> $result:ty)? { $($body:tt)* })*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arguments)*) $(-> $result)? {
                // SAFETY: the trait requires that the caller has the instruction set, and nothing here requires more.
                unsafe { $($body)* }
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(super) use neon::Neon;
pub(super) use portable::Portable;

/// Prefetches the cache line of `address`, which may be any address; where `FAR`, no nearer than the second-level cache.
/// Only x86-64 has a stable intrinsic for it.
#[inline(always)]
pub(super) fn prefetch<const FAR: bool>(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all CPUs of the target have SSE, and a prefetch reads nothing.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        if FAR { _mm_prefetch::<_MM_HINT_T1>(address.cast()) } else { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The vector types of an instruction set.
pub(super) trait Vectors {
    /// The number of vector registers.
    const REGISTERS: usize;
    /// Whether a [`Vectors::U64`] is several registers, which are enough to hide the latency of operations.
    const SEVERAL_REGISTERS: bool;
    /// Vectors of 64-bit words, and doubles.
    type U64: Lanes64;
    /// Vectors of 32-bit words, twice as many as a [`Vectors::U64`] has.
    type U32: Widen<Wide = Self::U64>;
    /// 32-bit words in one register, for kernels that need most of the registers. In [`Vectors::U32`] there are several
    /// registers where these are small, or the latency of table scans matters more.
    type Register32: Lanes32;
    /// Vectors of bytes.
    type U8: Lanes8;
}

/// A vector of `N` bytes. A mask is all ones or zero.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
pub(super) trait Lanes8: Copy {
    /// The number of bytes, at most 64.
    const N: usize;

    /// Every lane holds `byte`.
    unsafe fn splat(byte: u8) -> Self;
    /// The first `N` bytes of `source`, which has at least as many.
    unsafe fn load(source: &[u8]) -> Self;
    /// Writes the lanes to `target`; it has room for at least `N`.
    unsafe fn store(self, target: &mut [i8]);
    /// Lane i holds `table[self[i]]`, by reading the whole table: no address depends on an index. Indices are below 64.
    unsafe fn look_up(self, table: &[u8; 64]) -> Self;
    /// Bitwise and.
    unsafe fn and(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// The difference modulo 2^8.
    unsafe fn sub(self, other: Self) -> Self;
    /// Whether bit 7 is set.
    unsafe fn is_negative(self) -> Self;
    /// Whether `self` is below `other`, or equal to it where the mask `ties` is set.
    unsafe fn is_below(self, other: Self, ties: Self) -> Self;
    /// `self` where `mask` is set, else `other`.
    unsafe fn select(self, other: Self, mask: Self) -> Self;
}

/// A vector of `N` 32-bit words.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
pub(super) trait Lanes32: Copy {
    /// The number of words.
    const N: usize;
    /// A truth value for each lane.
    type Mask: Copy;

    /// Every lane holds `word`.
    unsafe fn splat(word: u32) -> Self;
    /// The first `N` words of `source`, which has at least as many.
    unsafe fn load(source: &[u32]) -> Self;
    /// Lane i holds little-endian word i of `source`, which has at least `N` of them.
    unsafe fn load_le_bytes(source: &[u8]) -> Self;
    /// Lane i holds the bits of single i of `source`, which has at least `N` of them.
    unsafe fn load_f32(source: &[f32]) -> Self;
    /// Writes the lanes to `target` as little-endian words; it has room for at least `N`.
    unsafe fn store_le_bytes(self, target: &mut [u8]);
    /// Lane i holds `table[self[i]]`, by reading the whole table: no address depends on an index. Indices are below 64.
    unsafe fn look_up(self, table: &[u32; 64]) -> Self;
    /// Lane i holds `table[self[i]]`, as [`Lanes32::look_up`] finds it. Indices are below 4.
    unsafe fn look_up_4(self, table: &[u32; 4]) -> Self;

    /// The sum modulo 2^32.
    unsafe fn add(self, other: Self) -> Self;
    /// Bitwise and.
    unsafe fn and(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// The smaller one.
    unsafe fn min(self, other: Self) -> Self;
    /// Every lane shifted to the left, by less than 32.
    unsafe fn shl(self, count: u32) -> Self;
    /// Every lane shifted to the right, by less than 32.
    unsafe fn shr(self, count: u32) -> Self;
    /// Every lane rotated to the left, by 1 to 31.
    unsafe fn rotate_left(self, count: u32) -> Self;
    /// Whether `self` is below `other`, for words below 2^31.
    unsafe fn less_than(self, other: Self) -> Self::Mask;
    /// Each lane that has one of `bits` set, else zero.
    unsafe fn zero_unless_any(self, bits: Self) -> Self;
    /// `self` where `mask` is set, else `other`.
    unsafe fn select(self, other: Self, mask: Self::Mask) -> Self;
    /// The mask as bits, lane i at bit i.
    unsafe fn bitmask(mask: Self::Mask) -> u64;
}

/// A vector of 32-bit words that two vectors of 64-bit words can hold.
///
/// # Safety
/// As for the methods of [`Lanes32`].
pub(super) trait Widen: Lanes32 {
    /// A vector of half as many 64-bit words.
    type Wide: Lanes64;

    /// The words.
    unsafe fn widen(self) -> [Self::Wide; 2];
    /// The words, as doubles.
    unsafe fn widen_f64(self) -> [<Self::Wide as Lanes64>::F64; 2];
    /// The singles with these bits, as doubles.
    unsafe fn widen_f32(self) -> [<Self::Wide as Lanes64>::F64; 2];
}

/// A vector of `N` 64-bit words, or of as many doubles.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
pub(super) trait Lanes64: Copy {
    /// The number of words, at most 64.
    const N: usize;
    /// The same number of doubles.
    type F64: Copy;
    /// A truth value for each lane.
    type Mask: Copy;

    /// Every lane holds `word`.
    unsafe fn splat(word: u64) -> Self;
    /// Lane i holds word i of `source`, which has at least `N` of them.
    unsafe fn load(source: &[i64]) -> Self;
    /// Lane i holds little-endian word i of `source`, which has at least `N` of them.
    unsafe fn load_le_bytes(source: &[u8]) -> Self;
    /// Lane i holds little-endian 32-bit word i of `source`, which has at least `N` of them.
    unsafe fn load_le_bytes_u32(source: &[u8]) -> Self;
    /// Writes the lanes to the first `N` words of `target`, which has at least as many.
    unsafe fn store(self, target: &mut [i64]);
    /// Writes the lanes to `target` as little-endian words; it has room for at least `N`.
    unsafe fn store_le_bytes(self, target: &mut [u8]);
    /// Writes the lanes whose bit in `keep` is set to the front of `target`, in order, and arbitrary words to the
    /// places behind them; `target` has at least `N` words. Returns how many were chosen. Addresses depend only on
    /// `keep`, which may be declassified (Theorem 1).
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize;

    /// The sum modulo 2^64.
    unsafe fn add(self, other: Self) -> Self;
    /// The difference modulo 2^64.
    unsafe fn sub(self, other: Self) -> Self;
    /// Bitwise and.
    unsafe fn and(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// Every lane shifted to the left, by less than 64.
    unsafe fn shl(self, count: u32) -> Self;
    /// Every lane shifted to the right, by less than 64.
    unsafe fn shr(self, count: u32) -> Self;
    /// Every lane shifted to the left by its count, which is below 64.
    unsafe fn shl_each(self, counts: Self) -> Self;
    /// Whether `self` is below `other`, for words below 2^63.
    unsafe fn less_than(self, other: Self) -> Self::Mask;
    /// Each lane that has one of `bits` set, else zero.
    unsafe fn zero_unless_any(self, bits: Self) -> Self;
    /// `self` where `mask` is set, else `other`.
    unsafe fn select(self, other: Self, mask: Self::Mask) -> Self;
    /// The mask as bits, lane i at bit i.
    unsafe fn bitmask(mask: Self::Mask) -> u64;

    /// The doubles nearest to the words, as signed numbers.
    unsafe fn convert_f64(self) -> Self::F64;
    /// The words, which are below 2^52, as doubles.
    unsafe fn convert_f64_below_2_52(self) -> Self::F64;
    /// The doubles with these bits.
    unsafe fn bitcast_f64(self) -> Self::F64;
    /// The bits of the doubles.
    unsafe fn bitcast_u64(a: Self::F64) -> Self;

    /// Every lane holds `value`.
    unsafe fn splat_f64(value: f64) -> Self::F64;
    /// The first `N` doubles of `source`, which has at least as many.
    unsafe fn load_f64(source: &[f64]) -> Self::F64;
    /// Writes the doubles to the front of `target`, which has room for at least `N`.
    unsafe fn store_f64(a: Self::F64, target: &mut [f64]);
    /// a + b
    unsafe fn add_f64(a: Self::F64, b: Self::F64) -> Self::F64;
    /// a - b
    unsafe fn sub_f64(a: Self::F64, b: Self::F64) -> Self::F64;
    /// a * b
    unsafe fn mul_f64(a: Self::F64, b: Self::F64) -> Self::F64;
    /// a * b + c, with one rounding or two.
    unsafe fn mul_add_f64(a: Self::F64, b: Self::F64, c: Self::F64) -> Self::F64;
    /// The smaller one; b where either is a NaN.
    unsafe fn min_f64(a: Self::F64, b: Self::F64) -> Self::F64;
    /// The larger one; b where either is a NaN.
    unsafe fn max_f64(a: Self::F64, b: Self::F64) -> Self::F64;
    /// The whole number below or at each double, which is below 2^53 in magnitude.
    unsafe fn floor_f64(a: Self::F64) -> Self::F64;
    /// a < b
    unsafe fn less_than_f64(a: Self::F64, b: Self::F64) -> Self::Mask;
}
