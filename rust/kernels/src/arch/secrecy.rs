//! Marks on secrets, for `make constant-time`.
//!
//! That check compiles the library with `--cfg dpnoise_secrecy` and runs it under valgrind's memcheck. Poisoned memory
//! counts as undefined there, and so does everything computed from it; memcheck reports each jump and each address that
//! depends on it. What may be revealed nevertheless is declassified, for one of the reasons below. In every other build
//! both functions do nothing.
#![allow(unsafe_code, reason = "valgrind is spoken to in inline assembly")]

/// Why something computed from secrets may decide which code is executed and which addresses are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Theorem 1 of `samplers/discrete_laplace.md`: which trials are accepted is independent of the accepted values.
    Rejection,
    /// Theorem 2 there: whether a trial was refined, and how, reveals next to nothing about its value.
    Refinement,
    /// "The tail" there: proposed with a probability that does not depend on data, and in the output with a
    /// probability of at most 2^-64.
    Tail,
    /// `samplers/alias.md`: a digit has the entry that stands for the rest with a probability of at most 2^-56.
    Rest,
    /// `samplers/bernoulli.md`, `mechanisms/persons.md`: 64 digits leave a coin open with a probability of at most 2^-64.
    OpenCoin,
    /// `samplers/selection.md`: more than the fixed number of attempts or bits is needed with a probability below
    /// 2^-57.
    Selection,
    /// `samplers/grid.md`: noise beyond the reach of the kernel has a probability below 2^-738.
    HugeNoise,
    /// What a mechanism releases, made private by its noise: later steps may depend on it.
    Answer,
    /// That a function is not defined for its data: the caller gets an error that says so, and nothing else.
    Refusal,
    /// A check for an overflow that is proved not to occur.
    Overflow,
    /// `rng/noise_key.rs`: the fingerprint of a key is an output of a pseudo-random function under it.
    Fingerprint,
    /// There, too: a seal is such an output, and whether one is right is all that its check tells.
    Seal,
    /// `SECURITY.md`: the time of a quantile depends on the values, because they are sorted, and where those of several
    /// quantiles are read, too.
    Sorting,
    /// `local/attributes.rs`: the attribute that a person reports on is drawn before values are used, and in the report.
    Attribute,
}

/// Declares `secrets` to be secret from here on.
#[inline(always)]
pub fn poison<T>(secrets: &mut [T]) {
    #[cfg(dpnoise_secrecy)]
    memcheck::poison(secrets);
    #[cfg(not(dpnoise_secrecy))]
    let _ = secrets;
}

/// Returns `value`, no longer secret, for the given reason.
#[inline(always)]
#[must_use]
pub fn declassify<T: Copy>(reason: Reason, value: T) -> T {
    #[cfg(dpnoise_secrecy)]
    let value = memcheck::declassify(reason, value);
    #[cfg(not(dpnoise_secrecy))]
    let _ = reason;
    value
}

/// [`declassify`], for kernels that valgrind cannot run. An instruction without effect names the register, and
/// tools/constant_time/machine_code takes the word in it for public from there on.
#[inline(always)]
#[must_use]
#[allow(unused_mut, reason = "only the build for the check changes the word, as far as the optimiser knows")]
pub(super) fn declassify_in_register(_: Reason, mut word: u64) -> u64 {
    #[cfg(all(dpnoise_secrecy, target_arch = "x86_64"))]
    // SAFETY: this does nothing; the address is not used.
    unsafe {
        core::arch::asm!("nop qword ptr [{} + 0x100]", inout(reg) word, options(nomem, nostack, preserves_flags));
    }
    #[cfg(all(dpnoise_secrecy, target_arch = "aarch64"))]
    // SAFETY: this does nothing: it is a prefetch of no known kind.
    unsafe {
        core::arch::asm!("prfm #31, [{}, #0x100]", inout(reg) word, options(nomem, nostack, preserves_flags));
    }
    word
}

/// What the check itself needs.
#[cfg(dpnoise_secrecy)]
pub mod memcheck {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::Reason;

    impl Reason {
        /// All reasons, in the order of [`Counts::declassified`].
        pub const ALL: [Self; 14] = [
            Self::Rejection,
            Self::Refinement,
            Self::Tail,
            Self::Rest,
            Self::OpenCoin,
            Self::Selection,
            Self::HugeNoise,
            Self::Answer,
            Self::Refusal,
            Self::Overflow,
            Self::Fingerprint,
            Self::Seal,
            Self::Sorting,
            Self::Attribute,
        ];
    }

    static POISONED: AtomicU64 = AtomicU64::new(0);
    static DECLASSIFIED: [AtomicU64; Reason::ALL.len()] = [const { AtomicU64::new(0) }; _];

    /// Counts since the program started.
    #[derive(Clone, Copy, Debug)]
    pub struct Counts {
        /// Bytes that were poisoned.
        pub poisoned: u64,
        /// Secret values that were declassified, by reason.
        pub declassified: [u64; Reason::ALL.len()],
        /// Jumps and addresses that depend on secrets, as memcheck counts them.
        pub findings: u64,
    }

    /// The counts at this moment.
    #[must_use]
    pub fn counts() -> Counts {
        Counts {
            poisoned: POISONED.load(Relaxed),
            declassified: DECLASSIFIED.each_ref().map(|count| count.load(Relaxed)),
            findings: request(COUNT_ERRORS, [0; 3]),
        }
    }

    /// Whether memcheck runs this program.
    #[must_use]
    pub fn is_watching() -> bool {
        request(RUNNING_ON_VALGRIND, [0; 3]) != 0
    }

    /// Whether a part of each value is secret.
    #[must_use]
    pub fn are_secret<T>(values: &[T]) -> bool {
        let mut secret_bits = vec![0u8; size_of_val(values)];
        let (from, to) = (values.as_ptr().expose_provenance(), secret_bits.as_mut_ptr().expose_provenance());
        request(GET_VBITS, [from as u64, to as u64, secret_bits.len() as u64]);
        secret_bits.chunks_exact(size_of::<T>()).all(|value| value.iter().any(|&bits| bits != 0))
    }

    pub(super) fn poison<T>(secrets: &mut [T]) {
        let bytes = size_of_val(secrets) as u64;
        POISONED.fetch_add(bytes, Relaxed);
        request(MAKE_MEM_UNDEFINED, [secrets.as_mut_ptr().expose_provenance() as u64, bytes, 0]);
    }

    pub(super) fn declassify<T: Copy>(reason: Reason, mut value: T) -> T {
        if are_secret(core::slice::from_ref(&value)) {
            DECLASSIFIED[reason as usize].fetch_add(1, Relaxed);
        }
        request(MAKE_MEM_DEFINED, [(&raw mut value).expose_provenance() as u64, size_of::<T>() as u64, 0]);
        value
    }

    // The codes of valgrind.h and memcheck.h; the tool's own begin with its letters, MC.
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    const COUNT_ERRORS: u64 = 0x1201;
    const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
    const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;
    const GET_VBITS: u64 = 0x4d43_0008;

    /// Asks valgrind; without it the answer is 0.
    fn request(code: u64, [a, b, c]: [u64; 3]) -> u64 {
        let request = [code, a, b, c, 0, 0];
        #[allow(unused_mut, reason = "there is a valgrind to answer on x86-64 alone")]
        let mut answer = 0;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: on a CPU this does nothing: the rotations add up to 128 bits, and a register is exchanged with itself.
        // Valgrind reads the request, and the memory in it belongs to a borrow that the caller holds.
        unsafe {
            core::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") &raw const request,
                inout("rdx") answer,
                options(nostack),
            );
        }
        core::hint::black_box(request);
        answer
    }
}
