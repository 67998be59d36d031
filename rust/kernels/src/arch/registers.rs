//! Clearing the vector registers.
//!
//! A kernel leaves random words and samples in them. They would stay there until the registers are used again, and
//! could still reach memory: a dynamic linker that binds a function when it is first called saves all vector registers
//! on the stack, and so does the operating system when it delivers a signal.
#![allow(unsafe_code, reason = "instructions that name registers")]

/// Writes zeros to registers, by one instruction each, given as its parts before and after the register's name.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! zero {
    ($before:literal, $after:literal, $($register:tt)*) => {
        // SAFETY: nothing is written but the registers, which are named as outputs.
        unsafe {
            core::arch::asm!(
                $(concat!($before, $register, $after),)*
                $(out($register) _,)*
                options(nomem, nostack, preserves_flags),
            );
        }
    };
}

/// Clears the vector registers of a CPU with AVX or AVX-512, whatever instruction set is in use: the C library copies
/// memory with the registers that the CPU has.
#[cfg(target_arch = "x86_64")]
pub fn clear() {
    #[target_feature(enable = "avx512f")]
    fn clear_upper() {
        zero!("vpxord ", ", zmm0, zmm0",
            "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23"
            "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31");
    }
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512 F.
        unsafe { clear_upper() }
    }
    if is_x86_feature_detected!("avx") {
        // SAFETY: the CPU has AVX.
        unsafe { core::arch::x86_64::_mm256_zeroall() }
    }
}

/// Clears the vector registers.
#[cfg(target_arch = "aarch64")]
pub fn clear() {
    zero!("movi ", ".2d, #0",
        "v0" "v1" "v2" "v3" "v4" "v5" "v6" "v7" "v8" "v9" "v10" "v11" "v12" "v13" "v14" "v15"
        "v16" "v17" "v18" "v19" "v20" "v21" "v22" "v23" "v24" "v25" "v26" "v27" "v28" "v29" "v30" "v31");
}

/// Does nothing on this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn clear() {}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    extern "C" fn clear() {
        super::clear();
    }

    /// What is left of a secret in a register after a call of [`super::clear`].
    macro_rules! cleared {
        ($register:literal) => {{
            let mut word: u64 = 0x5ec2_e7c0_ffee_5ec2;
            // SAFETY: a call of a function that takes and gives nothing, with what it may change declared.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                core::arch::asm!(
                    concat!("vmovq ", $register, ", rax"), "call {}", concat!("vmovq rax, ", $register),
                    sym clear, inout("rax") word, clobber_abi("C"),
                );
                #[cfg(target_arch = "aarch64")]
                core::arch::asm!(
                    concat!("fmov ", $register, ", x0"), "bl {}", concat!("fmov x0, ", $register),
                    sym clear, inout("x0") word, clobber_abi("C"),
                );
            }
            word
        }};
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn no_secret_stays_in_a_register() {
        if !is_x86_feature_detected!("avx") {
            return println!("skipped: this CPU has no AVX");
        }
        assert_eq!([cleared!("xmm0"), cleared!("xmm3"), cleared!("xmm5")], [0; 3]);
        // On Windows registers 6 to 15 keep their lower half across calls, so that no kernel leaves anything there.
        if !cfg!(windows) {
            assert_eq!([cleared!("xmm7"), cleared!("xmm15")], [0; 2]);
        }
        if !is_x86_feature_detected!("avx512f") {
            return println!("skipped in part: this CPU has no AVX-512");
        }
        assert_eq!([cleared!("xmm16"), cleared!("xmm23"), cleared!("xmm31")], [0; 3]);
    }

    #[test]
    #[cfg(target_arch = "aarch64")]
    fn no_secret_stays_in_a_register() {
        // Registers 8 to 15 keep their lower half across calls, so that no kernel leaves anything there.
        assert_eq!([cleared!("d0"), cleared!("d7"), cleared!("d16"), cleared!("d31")], [0; 4]);
    }
}
