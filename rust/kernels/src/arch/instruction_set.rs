//! Instruction sets, found at run time, and how kernels are compiled for each.

/// An instruction set that this CPU has. Values come only from [`InstructionSet::available`], and so prove that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl InstructionSet {
    /// The code that runs everywhere.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// All known names, whichever of them this CPU has.
    pub const NAMES: [&str; 4] = ["portable", "avx2", "avx512", "neon"];

    /// The instruction sets of this CPU, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only x86-64 and aarch64 have more to offer")]
        let mut found = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            let popcnt = is_x86_feature_detected!("popcnt");
            if popcnt && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                found.push(Self(Kind::Avx2));
            }
            if popcnt && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                found.push(Self(Kind::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon") {
            found.push(Self(Kind::Neon));
        }
        found
    }

    /// Its name: one of [`InstructionSet::NAMES`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => Self::NAMES[0],
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Self::NAMES[1],
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => Self::NAMES[2],
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => Self::NAMES[3],
        }
    }

    pub(super) fn kind(self) -> Kind {
        self.0
    }
}

/// Calls a kernel, a function that is generic over [`Vectors`](super::lanes::Vectors), in the version for an instruction
/// set: `dispatch!(instructions, kernel(argument: Type, ...))`.
///
/// A kernel may have one more type parameter: `dispatch!(instructions, kernel<T: Real>(argument: &[T], ...))`.
///
/// Secrets are passed by reference: tools/constant_time/machine_code treats what is passed by value as public.
macro_rules! dispatch {
    (
        $instructions:expr,
        $kernel:ident $(<$parameter:ident: $bound:ident>)? ($($argument:ident: $type:ty),*)
    ) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,popcnt")]
        fn avx2$(<$parameter: $bound>)?($($argument: $type),*) {
            // SAFETY: compiled for the instruction set, and called only where the CPU has it.
            unsafe { $kernel::<crate::arch::lanes::Avx2 $(, $parameter)?>($($argument),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,popcnt")]
        fn avx512$(<$parameter: $bound>)?($($argument: $type),*) {
            // SAFETY: compiled for the instruction set, and called only where the CPU has it.
            unsafe { $kernel::<crate::arch::lanes::Avx512 $(, $parameter)?>($($argument),*) }
        }
        // All CPUs of the target have NEON, so that callers could inline this, where its machine code is not checked.
        #[cfg(target_arch = "aarch64")]
        #[target_feature(enable = "neon")]
        #[inline(never)]
        fn neon$(<$parameter: $bound>)?($($argument: $type),*) {
            // SAFETY: compiled for the instruction set, and called only where the CPU has it.
            unsafe { $kernel::<crate::arch::lanes::Neon $(, $parameter)?>($($argument),*) }
        }
        #[cfg(all(dpnoise_secrecy, target_arch = "x86_64"))]
        crate::arch::instruction_set::keep_arguments!(avx512 $($parameter)? ($($type),*));
        #[cfg(all(dpnoise_secrecy, target_arch = "aarch64"))]
        crate::arch::instruction_set::keep_arguments!(neon $($parameter)? ($($type),*));
        match $instructions.kind() {
            // SAFETY: plain code runs on every CPU.
            crate::arch::instruction_set::Kind::Portable => unsafe {
                $kernel::<crate::arch::lanes::Portable $(, $parameter)?>($($argument),*)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `InstructionSet` exists only on a CPU with AVX2 and FMA.
            crate::arch::instruction_set::Kind::Avx2 => unsafe { avx2($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `InstructionSet` exists only on a CPU with AVX-512 F and DQ.
            crate::arch::instruction_set::Kind::Avx512 => unsafe { avx512($($argument),*) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: this `InstructionSet` exists only on a CPU with NEON.
            crate::arch::instruction_set::Kind::Neon => unsafe { neon($($argument),*) },
        }
    }};
}

/// Takes the address of a kernel, so that the optimiser leaves its arguments as they are declared, where
/// tools/constant_time/machine_code reads them.
#[cfg(dpnoise_secrecy)]
macro_rules! keep_arguments {
    ($kernel:ident ($($type:ty),*)) => {
        #[used]
        static KERNEL: unsafe fn($($type),*) = $kernel;
    };
    ($kernel:ident $parameter:ident ($($type:ty),*)) => {
        core::hint::black_box::<unsafe fn($($type),*)>($kernel::<$parameter>);
    };
}

pub(super) use dispatch;
#[cfg(dpnoise_secrecy)]
pub(super) use keep_arguments;
