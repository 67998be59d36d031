//! A generator that plays back given bytes.

use core::fmt;

use rand_core::{TryCryptoRng, TryRng};

/// Plays back the bytes it was given, then fails: **for tests only**.
/// It implements [`TryCryptoRng`] so that every sampler accepts chosen words; it is as secure as its script.
#[derive(Debug)]
pub struct ScriptedRng {
    bytes: Vec<u8>,
    position: usize,
}

/// The script of a [`ScriptedRng`] is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scripted generator has no bytes left")
    }
}

impl core::error::Error for Exhausted {}

impl ScriptedRng {
    /// The generator that gives out `bytes`, in order, once.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), position: 0 }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Exhausted> {
        let mut bytes = [0; N];
        self.try_fill_bytes(&mut bytes)?;
        Ok(bytes)
    }
}

impl TryRng for ScriptedRng {
    type Error = Exhausted;

    fn try_next_u32(&mut self) -> Result<u32, Exhausted> {
        self.take().map(u32::from_le_bytes)
    }

    fn try_next_u64(&mut self) -> Result<u64, Exhausted> {
        self.take().map(u64::from_le_bytes)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Exhausted> {
        let script = self.bytes[self.position..].get(..bytes.len()).ok_or(Exhausted)?;
        bytes.copy_from_slice(script);
        self.position += bytes.len();
        Ok(())
    }
}

impl TryCryptoRng for ScriptedRng {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_played_once_and_then_refused() {
        let mut rng = ScriptedRng::new([1, 2, 3, 4, 5]);
        assert_eq!(rng.try_next_u32(), Ok(0x0403_0201));
        assert_eq!(rng.remaining(), 1);
        assert_eq!(rng.try_next_u32(), Err(Exhausted));
        assert_eq!(rng.remaining(), 1, "a refused request takes nothing");
    }
}
