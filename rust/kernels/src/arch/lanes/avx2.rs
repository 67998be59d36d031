//! AVX2 with FMA.

#[allow(clippy::wildcard_imports, reason = "two dozen intrinsics, each named in full where it is used")]
use core::arch::x86_64::*;

use super::{Lanes32, Lanes64, Narrow, Vectors};
use crate::arch::secrecy::{Reason, declassify};

/// AVX2 and FMA.
pub(crate) struct Avx2;

impl Vectors for Avx2 {
    const REGISTERS: usize = 16;
    type U32 = Words32;
    type U64 = Words64;
    type Narrow = Words32;
}

/// Eight words.
#[derive(Clone, Copy)]
pub(crate) struct Words32(__m256i);

impl Lanes32 for Words32 {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_set1_epi32(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load(source: &[u32]) -> Self {
        let words: &[u32; 8] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_loadu_si256(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [u8]) {
        let words: &mut [u8; 32] = target.first_chunk_mut().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_add_epi32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_or_si256(_mm256_slli_epi32::<LEFT>(self.0), _mm256_srli_epi32::<RIGHT>(self.0))) }
    }
}

/// Four words; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words64(__m256i);

/// For each choice of four lanes, the 32-bit halves of the chosen ones, in order; then anything.
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

impl Lanes64 for Words64 {
    const N: usize = 4;
    type Float = __m256d;
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_set1_epi64x(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load_u64(source: &[u8]) -> Self {
        let bytes: &[u8; 32] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_loadu_si256(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: the caller has the instruction set; any address may be asked for.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn load_u32(source: &[u8]) -> Self {
        let bytes: &[u8; 16] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_cvtepu32_epi64(_mm_loadu_si128(bytes.as_ptr().cast()))) }
    }

    #[inline(always)]
    unsafe fn load(source: &[i64]) -> Self {
        let words: &[i64; 4] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_loadu_si256(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [i64]) {
        let words: &mut [i64; 4] = target.first_chunk_mut().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_u64(self, target: &mut [u8]) {
        let bytes: &mut [u8; 32] = target.first_chunk_mut().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize {
        // Once it may be known, it may address a table.
        let keep = declassify(Reason::Rejection, keep);
        let order = &ORDERS[keep as usize & 15];
        // SAFETY: the caller has the instruction set; 32 bytes are readable, and no alignment is asked for.
        unsafe {
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            Self(_mm256_permutevar8x32_epi32(self.0, order)).store(target);
        }
        keep.count_ones() as usize
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_add_epi64(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_sub_epi64(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_and_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn shl(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_sll_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn shr(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_srl_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn shl_each(self, counts: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_sllv_epi64(self.0, counts.0)) }
    }

    #[inline(always)]
    unsafe fn less(self, other: Self) -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_cmpgt_epi64(other.0, self.0) }
    }

    #[inline(always)]
    unsafe fn where_any(self, bits: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let none = _mm256_cmpeq_epi64(_mm256_and_si256(self.0, bits.0), _mm256_setzero_si256());
            Self(_mm256_andnot_si256(none, self.0))
        }
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: __m256i) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_blendv_epi8(other.0, self.0, mask)) }
    }

    #[inline(always)]
    unsafe fn load_float(source: &[f64]) -> __m256d {
        let floats: &[f64; 4] = source.first_chunk().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { _mm256_loadu_pd(floats.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_float(float: __m256d, target: &mut [f64]) {
        let floats: &mut [f64; 4] = target.first_chunk_mut().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm256_storeu_pd(floats.as_mut_ptr(), float) }
    }

    #[inline(always)]
    unsafe fn to_float(self) -> __m256d {
        // Each half is placed in the significand of a double of fixed exponent, 2^84 or 2^52; the upper one with its
        // sign bit flipped, which adds 2^63. Taking all that off the upper one is exact, and the sum is rounded once.
        const TWO_84: f64 = 19_342_813_113_834_066_795_298_816.0;
        const TWO_63: f64 = 9_223_372_036_854_775_808.0;
        const TWO_52: f64 = 4_503_599_627_370_496.0;
        // SAFETY: the caller has the instruction set.
        unsafe {
            let flip = Self::from_float(Self::float(TWO_84)).xor(Self::splat(1 << 31));
            let upper = _mm256_xor_si256(_mm256_srli_epi64::<32>(self.0), flip.0);
            let lower = _mm256_blend_epi32::<0b1010_1010>(self.0, Self::from_float(Self::float(TWO_52)).0);
            let upper = _mm256_sub_pd(Self(upper).as_float(), Self::float(TWO_84 + TWO_63 + TWO_52));
            _mm256_add_pd(upper, Self(lower).as_float())
        }
    }

    #[inline(always)]
    unsafe fn as_float(self) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_castsi256_pd(self.0) }
    }

    #[inline(always)]
    unsafe fn from_float(float: __m256d) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_castpd_si256(float)) }
    }

    #[inline(always)]
    unsafe fn float(value: f64) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_set1_pd(value) }
    }

    #[inline(always)]
    unsafe fn fadd(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fsub(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fmul(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn floor(a: __m256d) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_floor_pd(a) }
    }

    #[inline(always)]
    unsafe fn fmin(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_min_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fless(a: __m256d, b: __m256d) -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_LT_OQ>(a, b)) }
    }

    #[inline(always)]
    unsafe fn bits(mask: __m256i) -> u64 {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(mask)) as u64 }
    }
}

/// `a` or `b` in each lane, by bit `BIT = 31 - LEFT` of the index there.
///
/// # Safety
/// As for the methods of [`Narrow`].
#[inline(always)]
unsafe fn choose<const LEFT: i32>(a: __m256i, b: __m256i, index: __m256i) -> __m256i {
    // SAFETY: the caller has the instruction set.
    unsafe {
        // The blend looks at the sign of each lane: move the bit there.
        let sign = _mm256_castsi256_ps(_mm256_slli_epi32::<LEFT>(index));
        _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), sign))
    }
}

impl Narrow for Words32 {
    type Wide = Words64;
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_set1_epi32(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load(source: &[u8]) -> Self {
        let bytes: &[u8; 32] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_loadu_si256(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn load_single(source: &[f32]) -> Self {
        let singles: &[f32; 8] = source.first_chunk().expect("N singles");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm256_loadu_si256(singles.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: &[u32; 64]) -> Self {
        // SAFETY: the caller has the instruction set; 32 bytes are readable eight times, and no alignment is asked for.
        unsafe {
            let mut parts = [self.0; 8];
            for (part, eighth) in parts.iter_mut().zip(table.as_chunks::<8>().0) {
                // The permutation looks at the lower 3 bits of the index.
                *part = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(eighth.as_ptr().cast()), self.0);
            }
            for i in 0..4 {
                parts[i] = choose::<28>(parts[2 * i], parts[2 * i + 1], self.0);
            }
            for i in 0..2 {
                parts[i] = choose::<27>(parts[2 * i], parts[2 * i + 1], self.0);
            }
            Self(choose::<26>(parts[0], parts[1], self.0))
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_add_epi32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn shl(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_sll_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn shr(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_srl_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_and_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_min_epu32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn less(self, other: Self) -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_cmpgt_epi32(other.0, self.0) }
    }

    #[inline(always)]
    unsafe fn where_any(self, bits: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let none = _mm256_cmpeq_epi32(_mm256_and_si256(self.0, bits.0), _mm256_setzero_si256());
            Self(_mm256_andnot_si256(none, self.0))
        }
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: __m256i) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm256_blendv_epi8(other.0, self.0, mask)) }
    }

    #[inline(always)]
    unsafe fn halves(self) -> [Words64; 2] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let (low, high) = (_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            [Words64(_mm256_cvtepu32_epi64(low)), Words64(_mm256_cvtepu32_epi64(high))]
        }
    }

    #[inline(always)]
    unsafe fn float_halves(self) -> [__m256d; 2] {
        // As the lower bits of a double between 2^52 and 2^53 they count whole numbers above 2^52.
        const TWO_52: f64 = 4_503_599_627_370_496.0;
        // SAFETY: the caller has the instruction set.
        unsafe {
            let base = Words64::float(TWO_52);
            let mut floats = [base; 2];
            for (float, half) in floats.iter_mut().zip(self.halves()) {
                *float = Words64::fsub(half.xor(Words64::from_float(base)).as_float(), base);
            }
            floats
        }
    }

    #[inline(always)]
    unsafe fn single_halves(self) -> [__m256d; 2] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let (low, high) = (_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            [_mm256_cvtps_pd(_mm_castsi128_ps(low)), _mm256_cvtps_pd(_mm_castsi128_ps(high))]
        }
    }

    #[inline(always)]
    unsafe fn bits(mask: __m256i) -> u64 {
        // SAFETY: the caller has the instruction set.
        unsafe { u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(mask)).cast_unsigned()) }
    }
}
