//! Generators of all types as one type.

use core::fmt;

use rand_core::{TryCryptoRng, TryRng};

/// A generator of any type. What takes it is compiled once, for all types: code for browsers is small, and the calls are
/// for many words each.
pub(crate) struct AnyRng<'a>(&'a mut dyn Fill);

impl<'a> AnyRng<'a> {
    pub(crate) fn new(rng: &'a mut impl TryCryptoRng) -> Self {
        Self(rng)
    }
}

trait Fill {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failed>;
}

impl<R: TryCryptoRng> Fill for R {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failed> {
        self.try_fill_bytes(bytes).map_err(|error| Failed(error.to_string()))
    }
}

/// Why the generator failed.
#[derive(Debug)]
pub(crate) struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Failed {}

impl TryRng for AnyRng<'_> {
    type Error = Failed;

    fn try_next_u32(&mut self) -> Result<u32, Failed> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Failed> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Failed> {
        self.0.fill(bytes)
    }
}

impl TryCryptoRng for AnyRng<'_> {}
