//! Kernels with planted faults, compiled for `make constant-time` and never called: the check of the machine code must
//! refuse each of them.
#![allow(unsafe_code, reason = "kernels over vendor intrinsics")]

use core::arch::x86_64::{
    __m512i, _mm512_castpd_si512, _mm512_castsi512_pd, _mm512_cmplt_epi64_mask, _mm512_div_pd, _mm512_i64gather_epi64,
    _mm512_loadu_si512, _mm512_mask_compressstoreu_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
};

/// Secrets, a table, and room for the result.
type Kernel = unsafe fn(&[i64; 8], &[i64; 64], &mut [i64; 8]);

/// All of them.
pub const KERNELS: [Kernel; 7] =
    [branch_on_a_lane, loop_over_a_mask, secret_address, gather, masked_store, integer_division, float_division];

#[target_feature(enable = "avx512f")]
fn load(words: &[i64; 8]) -> __m512i {
    // SAFETY: 64 bytes are readable, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(words: __m512i, target: &mut [i64; 8]) {
    // SAFETY: 64 bytes are writable, and no alignment is asked for.
    unsafe { _mm512_storeu_si512(target.as_mut_ptr().cast(), words) }
}

#[target_feature(enable = "avx512f")]
fn negative(words: &[i64; 8]) -> u8 {
    _mm512_cmplt_epi64_mask(load(words), _mm512_setzero_si512())
}

#[target_feature(enable = "avx512f")]
fn branch_on_a_lane(secrets: &[i64; 8], table: &[i64; 64], out: &mut [i64; 8]) {
    if negative(secrets) & 1 == 1 {
        out.copy_from_slice(&table[..8]);
    }
}

#[target_feature(enable = "avx512f")]
fn loop_over_a_mask(secrets: &[i64; 8], table: &[i64; 64], out: &mut [i64; 8]) {
    let mut mask = negative(secrets);
    while mask != 0 {
        out[0] ^= table[mask as usize & 7];
        mask &= mask - 1;
    }
}

#[target_feature(enable = "avx512f")]
fn secret_address(secrets: &[i64; 8], table: &[i64; 64], out: &mut [i64; 8]) {
    out[0] = table[secrets[0] as usize & 63];
}

#[target_feature(enable = "avx512f")]
fn gather(secrets: &[i64; 8], table: &[i64; 64], out: &mut [i64; 8]) {
    // SAFETY: never called; an index beyond the table would be read out of bounds.
    store(unsafe { _mm512_i64gather_epi64::<8>(load(secrets), table.as_ptr().cast()) }, out);
}

#[target_feature(enable = "avx512f")]
fn masked_store(secrets: &[i64; 8], _table: &[i64; 64], out: &mut [i64; 8]) {
    // SAFETY: at most 64 bytes are written, and no alignment is asked for.
    unsafe { _mm512_mask_compressstoreu_epi64(out.as_mut_ptr().cast(), negative(secrets), load(secrets)) }
}

#[target_feature(enable = "avx512f")]
fn integer_division(secrets: &[i64; 8], table: &[i64; 64], out: &mut [i64; 8]) {
    out[0] = secrets[0].wrapping_div(table[0] | 1);
}

#[target_feature(enable = "avx512f")]
fn float_division(secrets: &[i64; 8], table: &[i64; 64], out: &mut [i64; 8]) {
    let (a, b) = (load(secrets), load(table.first_chunk().expect("8 of 64")));
    store(_mm512_castpd_si512(_mm512_div_pd(_mm512_castsi512_pd(a), _mm512_castsi512_pd(b))), out);
}
