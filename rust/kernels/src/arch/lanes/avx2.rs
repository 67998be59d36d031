//! AVX2 with FMA.

#[allow(clippy::wildcard_imports, reason = "two dozen intrinsics, each named in full where it is used")]
use core::arch::x86_64::*;

use super::{Lanes8, Lanes32, Lanes64, Vectors, Widen};
use crate::arch::secrecy::{Reason, declassify};

/// AVX2 and FMA.
pub(crate) struct Avx2;

impl Vectors for Avx2 {
    const REGISTERS: usize = 16;
    const SEVERAL_REGISTERS: bool = false;
    type U64 = Words64;
    type U32 = Words32;
    type Register32 = Words32;
    type U8 = Bytes;
}

/// The first `N` items of `source`, which fill a vector.
///
/// # Safety
/// As for the methods of [`Lanes64`]; `T` is an integer or a float.
#[inline(always)]
unsafe fn load<T, const N: usize>(source: &[T]) -> __m256i {
    const { assert!(size_of::<[T; N]>() == 32) };
    let items: &[T; N] = source.first_chunk().expect("N items");
    // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
    unsafe { _mm256_loadu_si256(items.as_ptr().cast()) }
}

/// Writes a vector to the first `N` items of `target`, which it fills.
///
/// # Safety
/// As for the methods of [`Lanes64`]; `T` is an integer or a float.
#[inline(always)]
unsafe fn store<T, const N: usize>(vector: __m256i, target: &mut [T]) {
    const { assert!(size_of::<[T; N]>() == 32) };
    let items: &mut [T; N] = target.first_chunk_mut().expect("N items");
    // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
    unsafe { _mm256_storeu_si256(items.as_mut_ptr().cast(), vector) }
}

/// Four words; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words64(__m256i);

/// For each choice of four lanes, the 32-bit halves of the chosen ones, in order; the others are arbitrary.
const ORDERS: [[u32; 8]; 16] = {
    let mut orders = [[0; 8]; 16];
    let mut keep = 0;
    while keep < 16 {
        let (mut lane, mut count) = (0, 0);
        while lane < 4 {
            if keep >> lane & 1 == 1 {
                orders[keep][2 * count] = 2 * lane;
                orders[keep][2 * count + 1] = 2 * lane + 1;
                count += 1;
            }
            lane += 1;
        }
        keep += 1;
    }
    orders
};

/// A word w below 2^52, as the lower bits of a double between 2^52 and 2^53, makes the double 2^52 + w.
const TWO_52: f64 = 4_503_599_627_370_496.0;

impl Lanes64 for Words64 {
    const N: usize = 4;
    type F64 = __m256d;
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn load_le_bytes_u32(source: &[u8]) -> Self {
        let bytes: &[u8; 16] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_cvtepu32_epi64(_mm_loadu_si128(bytes.as_ptr().cast()))) }
    }

    #[inline(always)]
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize {
        // Once declassified, it may be the index of a table.
        let keep = declassify(Reason::Rejection, keep);
        // SAFETY: the caller has the instruction set.
        unsafe {
            let order = load::<_, 8>(&ORDERS[keep as usize & 15]);
            Self(_mm256_permutevar8x32_epi32(self.0, order)).store(target);
        }
        keep.count_ones() as usize
    }

    // Not by `load` and `store`: see avx512.rs.
    #[inline(always)]
    unsafe fn load_f64(source: &[f64]) -> __m256d {
        let doubles: &[f64; 4] = source.first_chunk().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { _mm256_loadu_pd(doubles.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_f64(a: __m256d, target: &mut [f64]) {
        let doubles: &mut [f64; 4] = target.first_chunk_mut().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm256_storeu_pd(doubles.as_mut_ptr(), a) }
    }

    intrinsics! {
        fn splat(word: u64) -> Self { Self(_mm256_set1_epi64x(word.cast_signed())) }
        fn load(source: &[i64]) -> Self { Self(load::<_, 4>(source)) }
        fn load_le_bytes(source: &[u8]) -> Self { Self(load::<_, 32>(source)) }
        fn store(self, target: &mut [i64]) { store::<_, 4>(self.0, target) }
        fn store_le_bytes(self, target: &mut [u8]) { store::<_, 32>(self.0, target) }

        fn add(self, other: Self) -> Self { Self(_mm256_add_epi64(self.0, other.0)) }
        fn sub(self, other: Self) -> Self { Self(_mm256_sub_epi64(self.0, other.0)) }
        fn and(self, other: Self) -> Self { Self(_mm256_and_si256(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm256_xor_si256(self.0, other.0)) }
        fn shl(self, count: u32) -> Self { Self(_mm256_sll_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn shr(self, count: u32) -> Self { Self(_mm256_srl_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn shl_each(self, counts: Self) -> Self { Self(_mm256_sllv_epi64(self.0, counts.0)) }
        fn less_than(self, other: Self) -> __m256i { _mm256_cmpgt_epi64(other.0, self.0) }
        fn zero_unless_any(self, bits: Self) -> Self {
            let none = _mm256_cmpeq_epi64(_mm256_and_si256(self.0, bits.0), _mm256_setzero_si256());
            Self(_mm256_andnot_si256(none, self.0))
        }
        fn select(self, other: Self, mask: __m256i) -> Self { Self(_mm256_blendv_epi8(other.0, self.0, mask)) }
        fn bitmask(mask: __m256i) -> u64 { _mm256_movemask_pd(_mm256_castsi256_pd(mask)) as u64 }

        fn convert_f64(self) -> __m256d {
            // Each half is placed in the significand of a double of fixed exponent, 2^84 or 2^52; the upper one with
            // its sign bit flipped, which adds 2^63. Subtracting all that from the upper one is exact, and the sum is
            // rounded once.
            const TWO_84: f64 = 19_342_813_113_834_066_795_298_816.0;
            const TWO_63: f64 = 9_223_372_036_854_775_808.0;
            let flip = Self::bitcast_u64(Self::splat_f64(TWO_84)).xor(Self::splat(1 << 31));
            let upper = _mm256_xor_si256(_mm256_srli_epi64::<32>(self.0), flip.0);
            let lower = _mm256_blend_epi32::<0b1010_1010>(self.0, Self::bitcast_u64(Self::splat_f64(TWO_52)).0);
            let upper = _mm256_sub_pd(Self(upper).bitcast_f64(), Self::splat_f64(TWO_84 + TWO_63 + TWO_52));
            _mm256_add_pd(upper, Self(lower).bitcast_f64())
        }
        fn convert_f64_below_2_52(self) -> __m256d {
            let base = Self::splat_f64(TWO_52);
            Self::sub_f64(self.xor(Self::bitcast_u64(base)).bitcast_f64(), base)
        }
        fn bitcast_f64(self) -> __m256d { _mm256_castsi256_pd(self.0) }
        fn bitcast_u64(a: __m256d) -> Self { Self(_mm256_castpd_si256(a)) }

        fn splat_f64(value: f64) -> __m256d { _mm256_set1_pd(value) }
        fn add_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_add_pd(a, b) }
        fn sub_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_sub_pd(a, b) }
        fn mul_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_mul_pd(a, b) }
        fn mul_add_f64(a: __m256d, b: __m256d, c: __m256d) -> __m256d { _mm256_fmadd_pd(a, b, c) }
        fn min_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_min_pd(a, b) }
        fn max_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_max_pd(a, b) }
        fn floor_f64(a: __m256d) -> __m256d { _mm256_floor_pd(a) }
        fn less_than_f64(a: __m256d, b: __m256d) -> __m256i { _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_LT_OQ>(a, b)) }
    }
}

/// Eight words; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words32(__m256i);

impl Lanes32 for Words32 {
    const N: usize = 8;
    type Mask = __m256i;

    intrinsics! {
        fn splat(word: u32) -> Self { Self(_mm256_set1_epi32(word.cast_signed())) }
        fn load(source: &[u32]) -> Self { Self(load::<_, 8>(source)) }
        fn load_le_bytes(source: &[u8]) -> Self { Self(load::<_, 32>(source)) }
        fn load_f32(source: &[f32]) -> Self { Self(load::<_, 8>(source)) }
        fn store_le_bytes(self, target: &mut [u8]) { store::<_, 32>(self.0, target) }
        fn look_up(self, table: &[u32; 64]) -> Self {
            let mut parts = [self.0; 8];
            for (part, eighth) in parts.iter_mut().zip(table.as_chunks::<8>().0) {
                // The permutation uses the lower 3 bits of the index.
                *part = _mm256_permutevar8x32_epi32(load::<_, 8>(eighth), self.0);
            }
            for i in 0..4 {
                parts[i] = choose::<28>(parts[2 * i], parts[2 * i + 1], self.0);
            }
            for i in 0..2 {
                parts[i] = choose::<27>(parts[2 * i], parts[2 * i + 1], self.0);
            }
            Self(choose::<26>(parts[0], parts[1], self.0))
        }
        fn look_up_4(self, table: &[u32; 4]) -> Self {
            let table = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())));
            Self(_mm256_castps_si256(_mm256_permutevar_ps(table, self.0)))
        }

        fn add(self, other: Self) -> Self { Self(_mm256_add_epi32(self.0, other.0)) }
        fn and(self, other: Self) -> Self { Self(_mm256_and_si256(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm256_xor_si256(self.0, other.0)) }
        fn min(self, other: Self) -> Self { Self(_mm256_min_epu32(self.0, other.0)) }
        fn shl(self, count: u32) -> Self { Self(_mm256_sll_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn shr(self, count: u32) -> Self { Self(_mm256_srl_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn rotate_left(self, count: u32) -> Self { Self(_mm256_or_si256(self.shl(count).0, self.shr(32 - count).0)) }
        fn less_than(self, other: Self) -> __m256i { _mm256_cmpgt_epi32(other.0, self.0) }
        fn zero_unless_any(self, bits: Self) -> Self {
            let none = _mm256_cmpeq_epi32(_mm256_and_si256(self.0, bits.0), _mm256_setzero_si256());
            Self(_mm256_andnot_si256(none, self.0))
        }
        fn select(self, other: Self, mask: __m256i) -> Self { Self(_mm256_blendv_epi8(other.0, self.0, mask)) }
        fn bitmask(mask: __m256i) -> u64 {
            u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(mask)).cast_unsigned())
        }
    }
}

impl Widen for Words32 {
    type Wide = Words64;

    intrinsics! {
        fn widen(self) -> [Words64; 2] {
            let (low, high) = (_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            [Words64(_mm256_cvtepu32_epi64(low)), Words64(_mm256_cvtepu32_epi64(high))]
        }
        fn widen_f64(self) -> [__m256d; 2] {
            let [low, high] = self.widen(); // not by `map`: a closure has no target features unless it is inlined
            [low.convert_f64_below_2_52(), high.convert_f64_below_2_52()]
        }
        fn widen_f32(self) -> [__m256d; 2] {
            let (low, high) = (_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            [_mm256_cvtps_pd(_mm_castsi128_ps(low)), _mm256_cvtps_pd(_mm_castsi128_ps(high))]
        }
    }
}

/// `a` or `b` in each lane, by bit `BIT = 31 - LEFT` of the index there.
///
/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn choose<const LEFT: i32>(a: __m256i, b: __m256i, index: __m256i) -> __m256i {
    // SAFETY: the caller has the instruction set.
    unsafe {
        // The blend uses the sign bit of each lane, so the bit is moved there.
        let sign = _mm256_castsi256_ps(_mm256_slli_epi32::<LEFT>(index));
        _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), sign))
    }
}

/// 32 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(__m256i);

impl Lanes8 for Bytes {
    const N: usize = 32;

    #[inline(always)]
    unsafe fn look_up(self, table: &[u8; 64]) -> Self {
        let quarters = table.as_chunks::<16>().0;
        // SAFETY: the caller has the instruction set; 16 bytes are readable, and no alignment is asked for.
        unsafe {
            let part = |i: usize| {
                let quarter = _mm256_broadcastsi128_si256(_mm_loadu_si128(quarters[i].as_ptr().cast()));
                _mm256_shuffle_epi8(quarter, self.0)
            };
            // Bits 4 and 5 of an index, as bit 7 of its byte, decide between the four.
            let (bit_4, bit_5) = (_mm256_slli_epi16::<3>(self.0), _mm256_slli_epi16::<2>(self.0));
            let low = _mm256_blendv_epi8(part(0), part(1), bit_4);
            let high = _mm256_blendv_epi8(part(2), part(3), bit_4);
            Self(_mm256_blendv_epi8(low, high, bit_5))
        }
    }

    intrinsics! {
        fn splat(byte: u8) -> Self { Self(_mm256_set1_epi8(byte.cast_signed())) }
        fn load(source: &[u8]) -> Self { Self(load::<_, 32>(source)) }
        fn store(self, target: &mut [i8]) { store::<_, 32>(self.0, target) }
        fn and(self, other: Self) -> Self { Self(_mm256_and_si256(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm256_xor_si256(self.0, other.0)) }
        fn sub(self, other: Self) -> Self { Self(_mm256_sub_epi8(self.0, other.0)) }
        fn is_negative(self) -> Self { Self(_mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0)) }
        fn is_below(self, other: Self, ties: Self) -> Self {
            let at_most = _mm256_cmpeq_epi8(_mm256_min_epu8(self.0, other.0), self.0);
            let equal = _mm256_cmpeq_epi8(self.0, other.0);
            Self(_mm256_andnot_si256(_mm256_andnot_si256(ties.0, equal), at_most))
        }
        fn select(self, other: Self, mask: Self) -> Self { Self(_mm256_blendv_epi8(other.0, self.0, mask.0)) }
    }
}
