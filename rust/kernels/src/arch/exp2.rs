//! The fast exponential that kernels share.
#![allow(unsafe_code, reason = "arithmetic over vendor intrinsics")]

use super::lanes::Lanes64;

/// 2^(exponent - t) for t >= 0: with a relative error below 2^-45 up to t = 1000, and a number near 2^(exponent - 1000)
/// beyond. Exponents are at most 70.
///
/// Unless it is `FUSED`, every operation is rounded separately, so that all instruction sets give the same bits. The
/// bound holds either way.
///
/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
pub(super) unsafe fn exp2_minus<V: Lanes64, const FUSED: bool>(exponent: V, t: V::F64) -> V::F64 {
    // Adding and subtracting 1.5 * 2^52 rounds to an integer k, whose bits are then in the low bits of the sum.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    // SAFETY: passed on from the caller.
    unsafe {
        let t = V::min_f64(t, V::splat_f64(1000.0));
        let rounded = V::add_f64(t, V::splat_f64(ROUNDER));
        let r = V::sub_f64(t, V::sub_f64(rounded, V::splat_f64(ROUNDER))); // exact, in [-1/2, 1/2]
        let power = exponent.add(V::splat(1023)).sub(V::bitcast_u64(rounded)).shl(52).bitcast_f64(); // 2^(exponent - k)
        // Even and odd powers side by side: two short chains of operations instead of a long one.
        let square = V::mul_f64(r, r);
        let [pairs @ .., highest] = &COEFFICIENTS;
        let [mut even, mut odd] = [V::splat_f64(highest[0]), V::splat_f64(highest[1])];
        for pair in pairs.iter().rev() {
            even = multiply_add::<V, FUSED>(even, square, V::splat_f64(pair[0]));
            odd = multiply_add::<V, FUSED>(odd, square, V::splat_f64(pair[1]));
        }
        V::mul_f64(power, multiply_add::<V, FUSED>(odd, r, even))
    }
}

/// # Safety
/// As for the methods of [`Lanes64`].
#[inline(always)]
unsafe fn multiply_add<V: Lanes64, const FUSED: bool>(a: V::F64, b: V::F64, c: V::F64) -> V::F64 {
    // SAFETY: passed on from the caller.
    unsafe { if FUSED { V::mul_add_f64(a, b, c) } else { V::add_f64(V::mul_f64(a, b), c) } }
}

/// The polynomial of degree 9 that comes closest to 2^-r on [-1/2, 1/2], relative to it, with coefficients rounded to
/// doubles: for an even and an odd power at a time. Its relative error is below 2^-46. (Taylor's polynomial needs degree 11
/// for that.)
const COEFFICIENTS: [[f64; 2]; 5] = [
    [1.000_000_000_000_012_7, -0.693_147_180_559_871],
    [0.240_226_506_956_496_53, -0.055_504_108_668_685_58],
    [0.009_618_129_192_067_202, -0.001_333_355_761_760_987_9],
    [0.000_154_034_349_480_814_24, -1.525_298_483_557_836_7e-5],
    [1.325_940_561_120_419_2e-6, -1.015_033_726_097_641_7e-7],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::lanes::{Portable, Vectors};
    use crate::arith::exp::Constants;
    use crate::arith::fixed::Fixed;
    use crate::arith::power_of_two;

    type V = <Portable as Vectors>::U64;

    fn exp2_neg(t: f64) -> f64 {
        // SAFETY: plain code runs on every CPU.
        unsafe { exp2_minus::<V, false>(V::splat(63), [t; V::N])[0] * 2f64.powi(-63) }
    }

    /// The claimed bound on a grid of arguments, against the certified exponential.
    #[test]
    fn the_fast_exponential_is_within_its_bound() {
        let constants = Constants::first();
        for i in 0..20_000u64 {
            let t = i as f64 * 0.003_217_111 + if i % 7 == 0 { 0.5 } else { 0.0 };
            let (k, v) = constants.exp2_neg(Fixed::from_f64_vartime(t, 4).unwrap());
            // v as a double: its leading 62 bits.
            let exact = v.times_integer(1 << 62).integer() as f64 * 2f64.powi(-62 - k as i32);
            let error = (exp2_neg(t) / exact - 1.0).abs();
            // Below 2^-46 for the polynomial, and some roundings.
            assert!(error < 2f64.powf(-45.9), "{t}: 2^{}", error.log2());
        }
        assert!(exp2_neg(1e14) < 2f64.powi(-990) && exp2_neg(1e14) > 0.0);
    }

    /// Writes what `make prove` computes again: the coefficients, and results on every instruction set, as bits.
    #[test]
    #[ignore = "make prove runs it"]
    fn results_for_the_proofs() {
        use crate::arch::instruction_set::{InstructionSet, dispatch};
        use std::fmt::Write as _;

        /// # Safety
        /// As for the methods of [`Lanes64`].
        #[inline(always)]
        unsafe fn lanes<S: Vectors>(exponent: &u64, t: &f64, result: &mut f64) {
            let mut lanes = [0.0; 16];
            // SAFETY: passed on from the caller.
            unsafe {
                let power = exp2_minus::<S::U64, true>(S::U64::splat(*exponent), S::U64::splat_f64(*t));
                S::U64::store_f64(power, &mut lanes);
            }
            *result = lanes[0];
        }

        let mut code = "From Coq Require Import Reals Uint63 List.\nImport ListNotations.\n".to_owned();
        let mut bits = "Definition coefficients : list (bool * int) := [".to_owned();
        for (i, c) in COEFFICIENTS.as_flattened().iter().enumerate() {
            let exponent = 1075 - (c.to_bits() >> 52 & 0x7ff);
            let significand = c.to_bits() & ((1 << 52) - 1) | 1 << 52;
            let sign = if *c < 0.0 { "-" } else { "" };
            writeln!(code, "Notation c{i} := ({sign}{significand} / {})%R (only parsing).", 1u128 << exponent).unwrap();
            let separator = if i > 0 { "; " } else { "" };
            write!(bits, "{separator}({}, {})", *c < 0.0, c.to_bits() & i64::MAX as u64).unwrap();
        }
        writeln!(code, "{bits}]%uint63.").unwrap();

        let mut state = 7u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        // t, exponent, and the result with operations that are rounded one by one, and with those that are fused.
        code.push_str("Definition exponentials : list (int * int * int * int) := [\n");
        for i in 0..5_120u64 {
            let uniform = (word() >> 11) as f64 * power_of_two(-53);
            let t = match i % 8 {
                0 => uniform * 1e3,
                1 => uniform * 0.5,
                2 => uniform * power_of_two(-((word() % 140) as i32)),
                3 => (word() % 1000) as f64 + 0.5,
                4 => ((word() % 1000) as f64 + 0.5).next_down(),
                5 => 1000.0 + uniform * 1e12,
                _ => uniform * 70.0,
            };
            let exponent = 63 + word() % 8;
            let results = InstructionSet::available().into_iter().map(|set| {
                let (exponent, t, result) = (&exponent, &t, &mut 0f64);
                dispatch!(set, lanes(exponent: &u64, t: &f64, result: &mut f64));
                result.to_bits()
            });
            let results: Vec<u64> = results.collect();
            let [separate, fused @ ..] = &results[..] else { unreachable!("one or more") };
            assert!(fused.iter().all(|result| result == &fused[0]), "{t} {results:?}");
            let separator = if i > 0 { ";\n" } else { "" };
            write!(code, "{separator}({}, {exponent}, {separate}, {})", t.to_bits(), fused[0]).unwrap();
        }
        code.push_str("]%uint63.\n");
        let folder = std::env::var_os("DPNOISE_PROOFS").expect("a folder");
        std::fs::write(std::path::Path::new(&folder).join("Exponentials.v"), code).unwrap();
    }
}
