//! AVX-512.

#[allow(clippy::wildcard_imports, reason = "two dozen intrinsics, each named in full where it is used")]
use core::arch::x86_64::*;

use super::{Lanes32, Lanes64, Narrow, Vectors};

/// AVX-512 F and DQ.
pub(crate) struct Avx512;

impl Vectors for Avx512 {
    const REGISTERS: usize = 32;
    type U32 = Words32;
    type U64 = Words64;
    type Narrow = Words32;
}

/// Sixteen words.
#[derive(Clone, Copy)]
pub(crate) struct Words32(__m512i);

impl Lanes32 for Words32 {
    const N: usize = 16;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_set1_epi32(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load(source: &[u32]) -> Self {
        let words: &[u32; 16] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_loadu_si512(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [u8]) {
        let words: &mut [u8; 64] = target.first_chunk_mut().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_add_epi32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_rol_epi32::<LEFT>(self.0)) }
    }
}

/// Eight words.
#[derive(Clone, Copy)]
pub(crate) struct Words64(__m512i);

impl Lanes64 for Words64 {
    const N: usize = 8;
    type Float = __m512d;
    type Mask = __mmask8;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_set1_epi64(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load_u64(source: &[u8]) -> Self {
        let bytes: &[u8; 64] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_loadu_si512(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn prefetch(address: *const u8) {
        // SAFETY: the caller has the instruction set; any address may be asked for.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    unsafe fn load_u32(source: &[u8]) -> Self {
        let bytes: &[u8; 32] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_cvtepu32_epi64(_mm256_loadu_si256(bytes.as_ptr().cast()))) }
    }

    #[inline(always)]
    unsafe fn load(source: &[i64]) -> Self {
        let words: &[i64; 8] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_loadu_si512(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [i64]) {
        let words: &mut [i64; 8] = target.first_chunk_mut().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_u64(self, target: &mut [u8]) {
        let bytes: &mut [u8; 64] = target.first_chunk_mut().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize {
        // To a register first: the form that writes to memory is slow on some CPUs.
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_maskz_compress_epi64(keep as __mmask8, self.0)).store(target) }
        // Valgrind cannot run this; scripts/kernel_flow.py knows that the number may be known.
        keep.count_ones() as usize
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_add_epi64(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_sub_epi64(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_and_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn shl(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn shr(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_srl_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn shl_each(self, counts: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_sllv_epi64(self.0, counts.0)) }
    }

    #[inline(always)]
    unsafe fn less(self, other: Self) -> __mmask8 {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_cmplt_epu64_mask(self.0, other.0) }
    }

    #[inline(always)]
    unsafe fn where_any(self, bits: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_maskz_mov_epi64(_mm512_test_epi64_mask(self.0, bits.0), self.0)) }
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: __mmask8) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_mask_blend_epi64(mask, other.0, self.0)) }
    }

    #[inline(always)]
    unsafe fn load_float(source: &[f64]) -> __m512d {
        let floats: &[f64; 8] = source.first_chunk().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { _mm512_loadu_pd(floats.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_float(float: __m512d, target: &mut [f64]) {
        let floats: &mut [f64; 8] = target.first_chunk_mut().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm512_storeu_pd(floats.as_mut_ptr(), float) }
    }

    #[inline(always)]
    unsafe fn to_float(self) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_cvtepi64_pd(self.0) }
    }

    #[inline(always)]
    unsafe fn as_float(self) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_castsi512_pd(self.0) }
    }

    #[inline(always)]
    unsafe fn from_float(float: __m512d) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_castpd_si512(float)) }
    }

    #[inline(always)]
    unsafe fn float(value: f64) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_set1_pd(value) }
    }

    #[inline(always)]
    unsafe fn fadd(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fsub(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fmul(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn floor(a: __m512d) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a) }
    }

    #[inline(always)]
    unsafe fn fmin(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_min_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn fless(a: __m512d, b: __m512d) -> __mmask8 {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b) }
    }

    #[inline(always)]
    unsafe fn bits(mask: __mmask8) -> u64 {
        mask.into()
    }
}

impl Narrow for Words32 {
    type Wide = Words64;
    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_set1_epi32(word.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn load(source: &[u8]) -> Self {
        let bytes: &[u8; 64] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_loadu_si512(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn load_single(source: &[f32]) -> Self {
        let singles: &[f32; 16] = source.first_chunk().expect("N singles");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_loadu_si512(singles.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: &[u32; 64]) -> Self {
        let quarters = table.as_chunks::<16>().0;
        // SAFETY: the caller has the instruction set; 64 bytes are readable four times, and no alignment is asked for.
        unsafe {
            let a = _mm512_loadu_si512(quarters[0].as_ptr().cast());
            let b = _mm512_loadu_si512(quarters[1].as_ptr().cast());
            let c = _mm512_loadu_si512(quarters[2].as_ptr().cast());
            let d = _mm512_loadu_si512(quarters[3].as_ptr().cast());
            // The permutation looks at the lower 5 bits of the index.
            let (first, second) = (_mm512_permutex2var_epi32(a, self.0, b), _mm512_permutex2var_epi32(c, self.0, d));
            let upper = _mm512_test_epi32_mask(self.0, _mm512_set1_epi32(32));
            Self(_mm512_mask_blend_epi32(upper, first, second))
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_add_epi32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn shl(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_sll_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn shr(self, count: u32) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_srl_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_and_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_min_epu32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn less(self, other: Self) -> __mmask16 {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_cmplt_epu32_mask(self.0, other.0) }
    }

    #[inline(always)]
    unsafe fn where_any(self, bits: Self) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_maskz_mov_epi32(_mm512_test_epi32_mask(self.0, bits.0), self.0)) }
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: __mmask16) -> Self {
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_mask_blend_epi32(mask, other.0, self.0)) }
    }

    #[inline(always)]
    unsafe fn halves(self) -> [Words64; 2] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let (low, high) = (_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
            [Words64(_mm512_cvtepu32_epi64(low)), Words64(_mm512_cvtepu32_epi64(high))]
        }
    }

    #[inline(always)]
    unsafe fn float_halves(self) -> [__m512d; 2] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let (low, high) = (_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
            [_mm512_cvtepu32_pd(low), _mm512_cvtepu32_pd(high)]
        }
    }

    #[inline(always)]
    unsafe fn single_halves(self) -> [__m512d; 2] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let (low, high) = (_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
            [_mm512_cvtps_pd(_mm256_castsi256_ps(low)), _mm512_cvtps_pd(_mm256_castsi256_ps(high))]
        }
    }

    #[inline(always)]
    unsafe fn bits(mask: __mmask16) -> u64 {
        mask.into()
    }
}
