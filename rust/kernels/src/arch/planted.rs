//! Kernels with planted faults, compiled for `make constant-time` and never called: the check of the machine code must
//! refuse each of them, for the reason that is its documentation here.
#![allow(unsafe_code, reason = "kernels over vendor intrinsics")]

use super::lanes::{Lanes64, Vectors};

#[cfg(target_arch = "x86_64")]
type Followed = super::lanes::Avx512;
#[cfg(target_arch = "aarch64")]
type Followed = super::lanes::Neon;
type V = <Followed as Vectors>::U64;

/// Secrets, a table, and room for the result.
type Kernel = unsafe fn(&[i64; 8], &[i64; 64], &mut [i64; 8]);

macro_rules! planted {
    ($(
        #[doc = $refusal:literal]
        $(#[$condition:meta])?
        fn $name:ident($secrets:pat, $table:pat, $out:ident) { $($body:tt)* }
    )*) => {
        /// All of them.
        #[used]
        pub static KERNELS: &[Kernel] = &[$($(#[$condition])? $name),*];

        $(
            #[doc = $refusal]
            $(#[$condition])?
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512dq,popcnt"))]
            #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
            unsafe fn $name($secrets: &[i64; 8], $table: &[i64; 64], $out: &mut [i64; 8]) {
                #[allow(unused_unsafe, reason = "not all of them need it")]
                // SAFETY: compiled for the instruction set, and never called.
                unsafe { $($body)* }
            }
        )*
    };
}

/// A mask of the lanes that hold a small secret.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn small(secrets: &[i64; 8]) -> u64 {
    // SAFETY: passed on from the caller.
    unsafe { V::bitmask(V::load(secrets).less_than(V::splat(1 << 32))) }
}

planted! {
    /// a jump on a secret
    fn branch_on_a_lane(secrets, table, out) {
        if small(secrets) & 1 == 1 {
            out.copy_from_slice(&table[..8]);
        }
    }

    /// a jump on a secret
    fn loop_over_a_mask(secrets, table, out) {
        let mut mask = small(secrets);
        while mask != 0 {
            out[0] ^= table[mask as usize & 7];
            mask &= mask - 1;
        }
    }

    /// an address made of a secret
    fn look_up_in_memory(secrets, table, out) {
        out[0] = table[secrets[0] as usize & 63];
    }

    /// an address made of a secret
    fn store_behind_those_kept(secrets, table, out) {
        out[small(secrets).count_ones() as usize & 7] = table[0];
    }

    /// an address made of a secret
    #[cfg(target_arch = "x86_64")]
    fn gather(secrets, table, out) {
        use core::arch::x86_64::{_mm512_i64gather_epi64, _mm512_loadu_si512, _mm512_storeu_si512};
        let found = _mm512_i64gather_epi64::<8>(_mm512_loadu_si512(secrets.as_ptr().cast()), table.as_ptr().cast());
        _mm512_storeu_si512(out.as_mut_ptr().cast(), found);
    }

    /// a store under a secret mask
    #[cfg(target_arch = "x86_64")]
    fn masked_store(secrets, _, out) {
        use core::arch::x86_64::{_mm512_loadu_si512, _mm512_mask_compressstoreu_epi64};
        let words = _mm512_loadu_si512(secrets.as_ptr().cast());
        _mm512_mask_compressstoreu_epi64(out.as_mut_ptr().cast(), small(secrets) as u8, words);
    }

    /// takes longer for some values than for others
    fn integer_division(secrets, table, out) {
        out[0] = (secrets[0].cast_unsigned() / (table[0].cast_unsigned() | 1)).cast_signed();
    }

    /// takes longer for some values than for others
    fn float_division(secrets, table, out) {
        out[0] = (secrets[0] as f64 / table[0] as f64).to_bits().cast_signed();
    }

    /// takes longer for some values than for others
    fn square_root(secrets, _, out) {
        out[0] = (secrets[0].unsigned_abs() as f64).sqrt().to_bits().cast_signed();
    }
}
