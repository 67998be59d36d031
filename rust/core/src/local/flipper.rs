//! Bits in, randomised bits out: random words are drawn for some tiles at a time and handed to the kernel.

use rand_core::TryCryptoRng;

use super::bit_flip::BitFlip;
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::rng::{Wiped, fill_bytes};
use dpnoise_kernels::arch::planes::{self, TILE_BYTES};

/// The random bytes drawn at once: few enough to stay in the first-level cache with the bits that they flip.
const RANDOM_BYTES: usize = 1 << 14;

/// A [`BitFlip`] with a buffer for its random words, which is wiped when dropped.
pub(super) struct Flipper {
    instructions: InstructionSet,
    flip: BitFlip,
    random: Wiped<u8>,
}

impl Flipper {
    /// A flipper for about `bytes` bytes of bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub(super) fn new(flip: BitFlip, bytes: usize) -> Result<Self, Error> {
        let tile = flip.planes() as usize * TILE_BYTES;
        let tiles = bytes.div_ceil(TILE_BYTES).clamp(1, RANDOM_BYTES / tile);
        Ok(Self { instructions: instruction_set::current()?, flip, random: Wiped::new(tiles * tile) })
    }

    /// Flips every bit of `data`. A last, incomplete tile takes the random words of a whole one.
    pub(super) fn flip<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, data: &mut [u8]) -> Result<(), Error> {
        let (planes, p, q) = (self.flip.planes(), self.flip.p(), self.flip.q());
        let whole = data.len() / TILE_BYTES * TILE_BYTES;
        let (tiles, rest) = data.split_at_mut(whole);
        for tiles in tiles.chunks_mut(self.random.len() / planes as usize) {
            let random = &mut self.random[..tiles.len() * planes as usize];
            fill_bytes(rng, random)?;
            planes::flip(self.instructions, planes, p, q, random, tiles);
        }
        if !rest.is_empty() {
            let mut tile = Wiped::new(TILE_BYTES);
            tile[..rest.len()].copy_from_slice(rest);
            let random = &mut self.random[..planes as usize * TILE_BYTES];
            fill_bytes(rng, random)?;
            planes::flip(self.instructions, planes, p, q, random, &mut tile);
            rest.copy_from_slice(&tile[..rest.len()]);
        }
        Ok(())
    }
}
