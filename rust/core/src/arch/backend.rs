//! The choice of instruction set, made at run time.

use std::sync::OnceLock;

use crate::error::Error;

/// The environment variable that forces a backend.
const VARIABLE: &str = "DPNOISE_BACKEND";

/// An instruction set that this CPU has. Values come only from [`Backend::available`] and so are proof of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Backend {
    /// The code that runs everywhere.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The names that are known, on whatever CPU.
    pub const NAMES: [&str; 3] = ["portable", "avx2", "avx512"];

    /// What this CPU offers, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only x86-64 has more to offer")]
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
        found
    }

    /// The backend in use: the fastest one, or what the environment variable `DPNOISE_BACKEND` names, if it is not empty.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the variable names a backend that does not exist or that this CPU lacks.
    pub fn current() -> Result<Self, Error> {
        static CURRENT: OnceLock<Result<Backend, Error>> = OnceLock::new();
        CURRENT
            .get_or_init(|| Self::choose(std::env::var(VARIABLE).ok().as_deref().filter(|name| !name.is_empty())))
            .clone()
    }

    fn choose(forced: Option<&str>) -> Result<Self, Error> {
        let available = Self::available();
        let Some(name) = forced else {
            return Ok(*available.last().unwrap_or(&Self::PORTABLE));
        };
        available.iter().copied().find(|backend| backend.name() == name).ok_or_else(|| {
            let names = available.iter().map(|backend| backend.name()).collect::<Vec<_>>().join(", ");
            Error::parameter(VARIABLE, format!("{name:?}"), format!("unset or a backend of this CPU ({names})"))
        })
    }

    /// Its name: one of [`Backend::NAMES`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => Self::NAMES[0],
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Self::NAMES[1],
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => Self::NAMES[2],
        }
    }

    pub(super) fn kind(self) -> Kind {
        self.0
    }
}

/// Calls a kernel, a function that is generic over the [`InstructionSet`](super::lanes::InstructionSet), in the version
/// for a backend: `on_backend!(backend, kernel(argument: Type, ...))`.
///
/// Secrets are passed behind references: scripts/kernel_flow.py takes what is passed by value to be public.
macro_rules! on_backend {
    ($backend:expr, $kernel:ident($($argument:ident: $type:ty),*)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,popcnt")]
        fn avx2($($argument: $type),*) {
            // SAFETY: compiled for the instruction set, and called only where the CPU has it.
            unsafe { $kernel::<crate::arch::lanes::Avx2>($($argument),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,popcnt")]
        fn avx512($($argument: $type),*) {
            // SAFETY: compiled for the instruction set, and called only where the CPU has it.
            unsafe { $kernel::<crate::arch::lanes::Avx512>($($argument),*) }
        }
        // Of a function whose address is taken the optimiser leaves the arguments as they are declared here, where
        // scripts/kernel_flow.py reads them.
        #[cfg(all(dpnoise_secrecy, target_arch = "x86_64"))]
        #[used]
        static KERNEL: unsafe fn($($type),*) = avx512;
        match $backend.kind() {
            // SAFETY: plain code runs on every CPU.
            crate::arch::backend::Kind::Portable => unsafe {
                $kernel::<crate::arch::lanes::Portable>($($argument),*)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `Backend` exists only on a CPU with AVX2 and FMA.
            crate::arch::backend::Kind::Avx2 => unsafe { avx2($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `Backend` exists only on a CPU with AVX-512 F and DQ.
            crate::arch::backend::Kind::Avx512 => unsafe { avx512($($argument),*) },
        }
    }};
}

pub(super) use on_backend;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_chosen_and_any_other_can_be_forced() {
        let available = Backend::available();
        assert_eq!(Backend::choose(None), Ok(*available.last().unwrap()));
        for backend in available {
            assert_eq!(Backend::choose(Some(backend.name())), Ok(backend));
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_choices() {
        let message = Backend::choose(Some("sse9")).unwrap_err().to_string();
        assert!(message.contains("DPNOISE_BACKEND") && message.contains("sse9") && message.contains("portable"));
    }
}
