//! AVX-512.

#[allow(clippy::wildcard_imports, reason = "two dozen intrinsics, each named in full where it is used")]
use core::arch::x86_64::*;

use super::{Lanes32, Lanes64, Vectors, Widen};
use crate::arch::secrecy::{Reason, declassify_in_register};

/// AVX-512 F and DQ.
pub(crate) struct Avx512;

impl Vectors for Avx512 {
    const REGISTERS: usize = 32;
    const SEVERAL_REGISTERS: bool = false;
    type U64 = Words64;
    type U32 = Words32;
    type Register32 = Words32;
    type U8 = super::avx2::Bytes; // 64 bytes in a vector would need BW as well
}

/// The first `N` items of `source`, which fill a vector.
///
/// # Safety
/// As for the methods of [`Lanes64`]; `T` is an integer or a float.
#[inline(always)]
unsafe fn load<T, const N: usize>(source: &[T]) -> __m512i {
    const { assert!(size_of::<[T; N]>() == 64) };
    let items: &[T; N] = source.first_chunk().expect("N items");
    // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(items.as_ptr().cast()) }
}

/// Writes a vector to the first `N` items of `target`, which it fills.
///
/// # Safety
/// As for the methods of [`Lanes64`]; `T` is an integer or a float.
#[inline(always)]
unsafe fn store<T, const N: usize>(vector: __m512i, target: &mut [T]) {
    const { assert!(size_of::<[T; N]>() == 64) };
    let items: &mut [T; N] = target.first_chunk_mut().expect("N items");
    // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
    unsafe { _mm512_storeu_si512(items.as_mut_ptr().cast(), vector) }
}

/// Eight words.
#[derive(Clone, Copy)]
pub(crate) struct Words64(__m512i);

impl Lanes64 for Words64 {
    const N: usize = 8;
    type F64 = __m512d;
    type Mask = __mmask8;

    #[inline(always)]
    unsafe fn load_le_bytes_u32(source: &[u8]) -> Self {
        let bytes: &[u8; 32] = source.first_chunk().expect("N words");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { Self(_mm512_cvtepu32_epi64(_mm256_loadu_si256(bytes.as_ptr().cast()))) }
    }

    #[inline(always)]
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize {
        // Compressed in a register first: the form that writes to memory is slow on some CPUs.
        // SAFETY: the caller has the instruction set.
        unsafe { Self(_mm512_maskz_compress_epi64(keep as __mmask8, self.0)).store(target) }
        declassify_in_register(Reason::Rejection, keep.count_ones().into()) as usize
    }

    // Not by `load` and `store`: if lanes are loaded as integers, replaced under a secret mask and stored, the
    // optimiser makes a store under that mask.
    #[inline(always)]
    unsafe fn load_f64(source: &[f64]) -> __m512d {
        let doubles: &[f64; 8] = source.first_chunk().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are readable, and no alignment is asked for.
        unsafe { _mm512_loadu_pd(doubles.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_f64(a: __m512d, target: &mut [f64]) {
        let doubles: &mut [f64; 8] = target.first_chunk_mut().expect("N doubles");
        // SAFETY: the caller has the instruction set; that many bytes are writable, and no alignment is asked for.
        unsafe { _mm512_storeu_pd(doubles.as_mut_ptr(), a) }
    }

    intrinsics! {
        fn splat(word: u64) -> Self { Self(_mm512_set1_epi64(word.cast_signed())) }
        fn load(source: &[i64]) -> Self { Self(load::<_, 8>(source)) }
        fn load_le_bytes(source: &[u8]) -> Self { Self(load::<_, 64>(source)) }
        fn store(self, target: &mut [i64]) { store::<_, 8>(self.0, target) }
        fn store_le_bytes(self, target: &mut [u8]) { store::<_, 64>(self.0, target) }

        fn add(self, other: Self) -> Self { Self(_mm512_add_epi64(self.0, other.0)) }
        fn sub(self, other: Self) -> Self { Self(_mm512_sub_epi64(self.0, other.0)) }
        fn and(self, other: Self) -> Self { Self(_mm512_and_si512(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm512_xor_si512(self.0, other.0)) }
        fn shl(self, count: u32) -> Self { Self(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn shr(self, count: u32) -> Self { Self(_mm512_srl_epi64(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn shl_each(self, counts: Self) -> Self { Self(_mm512_sllv_epi64(self.0, counts.0)) }
        fn less_than(self, other: Self) -> __mmask8 { _mm512_cmplt_epu64_mask(self.0, other.0) }
        fn zero_unless_any(self, bits: Self) -> Self {
            Self(_mm512_maskz_mov_epi64(_mm512_test_epi64_mask(self.0, bits.0), self.0))
        }
        fn select(self, other: Self, mask: __mmask8) -> Self { Self(_mm512_mask_blend_epi64(mask, other.0, self.0)) }

        fn convert_f64(self) -> __m512d { _mm512_cvtepi64_pd(self.0) }
        fn convert_f64_below_2_52(self) -> __m512d { self.convert_f64() }
        fn bitcast_f64(self) -> __m512d { _mm512_castsi512_pd(self.0) }
        fn bitcast_u64(a: __m512d) -> Self { Self(_mm512_castpd_si512(a)) }

        fn splat_f64(value: f64) -> __m512d { _mm512_set1_pd(value) }
        fn add_f64(a: __m512d, b: __m512d) -> __m512d { _mm512_add_pd(a, b) }
        fn sub_f64(a: __m512d, b: __m512d) -> __m512d { _mm512_sub_pd(a, b) }
        fn mul_f64(a: __m512d, b: __m512d) -> __m512d { _mm512_mul_pd(a, b) }
        fn mul_add_f64(a: __m512d, b: __m512d, c: __m512d) -> __m512d { _mm512_fmadd_pd(a, b, c) }
        fn min_f64(a: __m512d, b: __m512d) -> __m512d { _mm512_min_pd(a, b) }
        fn max_f64(a: __m512d, b: __m512d) -> __m512d { _mm512_max_pd(a, b) }
        fn floor_f64(a: __m512d) -> __m512d {
            _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a)
        }
        fn less_than_f64(a: __m512d, b: __m512d) -> __mmask8 { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b) }
    }

    #[inline(always)]
    unsafe fn bitmask(mask: __mmask8) -> u64 {
        mask.into()
    }
}

/// Sixteen words.
#[derive(Clone, Copy)]
pub(crate) struct Words32(__m512i);

impl Lanes32 for Words32 {
    const N: usize = 16;
    type Mask = __mmask16;

    intrinsics! {
        fn splat(word: u32) -> Self { Self(_mm512_set1_epi32(word.cast_signed())) }
        fn load(source: &[u32]) -> Self { Self(load::<_, 16>(source)) }
        fn load_le_bytes(source: &[u8]) -> Self { Self(load::<_, 64>(source)) }
        fn load_f32(source: &[f32]) -> Self { Self(load::<_, 16>(source)) }
        fn store_le_bytes(self, target: &mut [u8]) { store::<_, 64>(self.0, target) }
        fn look_up(self, table: &[u32; 64]) -> Self {
            let (a, b) = (load::<_, 16>(&table[..16]), load::<_, 16>(&table[16..]));
            let (c, d) = (load::<_, 16>(&table[32..]), load::<_, 16>(&table[48..]));
            // The permutation uses the lower 5 bits of the index.
            let (first, second) = (_mm512_permutex2var_epi32(a, self.0, b), _mm512_permutex2var_epi32(c, self.0, d));
            let upper = _mm512_test_epi32_mask(self.0, _mm512_set1_epi32(32));
            Self(_mm512_mask_blend_epi32(upper, first, second))
        }
        fn look_up_4(self, table: &[u32; 4]) -> Self {
            let table = _mm512_castsi512_ps(_mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())));
            Self(_mm512_castps_si512(_mm512_permutevar_ps(table, self.0)))
        }

        fn add(self, other: Self) -> Self { Self(_mm512_add_epi32(self.0, other.0)) }
        fn and(self, other: Self) -> Self { Self(_mm512_and_si512(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm512_xor_si512(self.0, other.0)) }
        fn min(self, other: Self) -> Self { Self(_mm512_min_epu32(self.0, other.0)) }
        fn shl(self, count: u32) -> Self { Self(_mm512_sll_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn shr(self, count: u32) -> Self { Self(_mm512_srl_epi32(self.0, _mm_cvtsi32_si128(count.cast_signed()))) }
        fn rotate_left(self, count: u32) -> Self { Self(_mm512_rolv_epi32(self.0, Self::splat(count).0)) }
        fn less_than(self, other: Self) -> __mmask16 { _mm512_cmplt_epu32_mask(self.0, other.0) }
        fn zero_unless_any(self, bits: Self) -> Self {
            Self(_mm512_maskz_mov_epi32(_mm512_test_epi32_mask(self.0, bits.0), self.0))
        }
        fn select(self, other: Self, mask: __mmask16) -> Self { Self(_mm512_mask_blend_epi32(mask, other.0, self.0)) }
    }

    #[inline(always)]
    unsafe fn bitmask(mask: __mmask16) -> u64 {
        mask.into()
    }
}

impl Widen for Words32 {
    type Wide = Words64;

    intrinsics! {
        fn widen(self) -> [Words64; 2] {
            let [low, high] = halves(self.0);
            [Words64(_mm512_cvtepu32_epi64(low)), Words64(_mm512_cvtepu32_epi64(high))]
        }
        fn widen_f64(self) -> [__m512d; 2] {
            let [low, high] = halves(self.0);
            [_mm512_cvtepu32_pd(low), _mm512_cvtepu32_pd(high)]
        }
        fn widen_f32(self) -> [__m512d; 2] {
            let [low, high] = halves(self.0);
            [_mm512_cvtps_pd(_mm256_castsi256_ps(low)), _mm512_cvtps_pd(_mm256_castsi256_ps(high))]
        }
    }
}

/// The lower and the upper half of a vector.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn halves(vector: __m512i) -> [__m256i; 2] {
    // SAFETY: the caller has the instruction set.
    unsafe { [_mm512_castsi512_si256(vector), _mm512_extracti64x4_epi64::<1>(vector)] }
}
