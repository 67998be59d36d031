//! The small vector trait that kernels over 32-bit words are written in.
#![allow(unsafe_code, reason = "vendor intrinsics")]

/// A vector of `N` 32-bit words.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instruction set, from a function compiled for it.
/// All are `inline(always)`, so that they take on the caller's `target_feature`.
pub(super) trait Lanes: Copy {
    /// The number of words.
    const N: usize;

    /// Every lane holds `word`.
    unsafe fn splat(word: u32) -> Self;
    /// The first `N` words of `source`, which has at least as many.
    unsafe fn load(source: &[u32]) -> Self;
    /// Writes the lanes to the first `N` words of `target`, which has at least as many.
    unsafe fn store(self, target: &mut [u32]);
    /// Lane by lane, modulo 2^32.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn xor(self, other: Self) -> Self;
    /// Every lane rotated by `LEFT` bits to the left and `RIGHT = 32 - LEFT` to the right.
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self;
}

/// Plain code, which the compiler may vectorise for the baseline of the target.
#[derive(Clone, Copy)]
pub(super) struct Portable([u32; 4]);

impl Lanes for Portable {
    const N: usize = 4;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        Self([word; 4])
    }

    #[inline(always)]
    unsafe fn load(source: &[u32]) -> Self {
        Self(*source.first_chunk().expect("N words"))
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [u32]) {
        *target.first_chunk_mut().expect("N words") = self.0;
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        Self(self.0.map(|word| word.rotate_left(LEFT as u32)))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64 as intel;

    use super::Lanes;

    impl Lanes for intel::__m256i {
        const N: usize = 8;

        #[inline(always)]
        unsafe fn splat(word: u32) -> Self {
            // SAFETY: the caller has AVX2.
            unsafe { intel::_mm256_set1_epi32(word.cast_signed()) }
        }

        #[inline(always)]
        unsafe fn load(source: &[u32]) -> Self {
            let words: &[u32; 8] = source.first_chunk().expect("N words");
            // SAFETY: the caller has AVX2; 32 bytes are readable, and no alignment is asked for.
            unsafe { intel::_mm256_loadu_si256(words.as_ptr().cast()) }
        }

        #[inline(always)]
        unsafe fn store(self, target: &mut [u32]) {
            let words: &mut [u32; 8] = target.first_chunk_mut().expect("N words");
            // SAFETY: the caller has AVX2; 32 bytes are writable, and no alignment is asked for.
            unsafe { intel::_mm256_storeu_si256(words.as_mut_ptr().cast(), self) }
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: the caller has AVX2.
            unsafe { intel::_mm256_add_epi32(self, other) }
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller has AVX2.
            unsafe { intel::_mm256_xor_si256(self, other) }
        }

        #[inline(always)]
        unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
            // SAFETY: the caller has AVX2.
            unsafe {
                intel::_mm256_or_si256(intel::_mm256_slli_epi32::<LEFT>(self), intel::_mm256_srli_epi32::<RIGHT>(self))
            }
        }
    }

    impl Lanes for intel::__m512i {
        const N: usize = 16;

        #[inline(always)]
        unsafe fn splat(word: u32) -> Self {
            // SAFETY: the caller has AVX-512F.
            unsafe { intel::_mm512_set1_epi32(word.cast_signed()) }
        }

        #[inline(always)]
        unsafe fn load(source: &[u32]) -> Self {
            let words: &[u32; 16] = source.first_chunk().expect("N words");
            // SAFETY: the caller has AVX-512F; 64 bytes are readable, and no alignment is asked for.
            unsafe { intel::_mm512_loadu_si512(words.as_ptr().cast()) }
        }

        #[inline(always)]
        unsafe fn store(self, target: &mut [u32]) {
            let words: &mut [u32; 16] = target.first_chunk_mut().expect("N words");
            // SAFETY: the caller has AVX-512F; 64 bytes are writable, and no alignment is asked for.
            unsafe { intel::_mm512_storeu_si512(words.as_mut_ptr().cast(), self) }
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: the caller has AVX-512F.
            unsafe { intel::_mm512_add_epi32(self, other) }
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller has AVX-512F.
            unsafe { intel::_mm512_xor_si512(self, other) }
        }

        #[inline(always)]
        unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
            // SAFETY: the caller has AVX-512F.
            unsafe { intel::_mm512_rol_epi32::<LEFT>(self) }
        }
    }
}
