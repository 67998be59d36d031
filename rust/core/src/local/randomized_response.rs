//! Randomised response: one bit, told truly with probability p and falsely with probability 1 - p.
//!
//! Source: Warner 1965, "Randomized response: a survey technique for eliminating evasive answer bias". The two-coin
//! form (answer truly on heads, else as a second coin says) is p = 3/4, epsilon = ln 3.
//!
//! # Privacy
//!
//! A report is epsilon-locally differentially private with epsilon = ln(p / (1-p)).
//!
//! A report is one byte, 0 or 1. Inside, eight values share a byte of every plane, so no random bit is wasted.

use rand_core::TryCryptoRng;

use super::bit_flip::{BitFlip, Neighbours};
use super::client::Randomise;
use super::flipper::Flipper;
use super::protocol::{Family, Protocol};
use super::randomizer::Randomizer;
use crate::error::Error;
use crate::rng::Wiped;
use dpnoise_kernels::arch::planes::TILE_BYTES;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};

/// The values that one tile holds.
const TILE_VALUES: usize = 8 * TILE_BYTES;

/// The tiles that are packed before they are flipped.
const CHUNK_TILES: usize = 16;

/// Binary randomised response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomizedResponse {
    protocol: Protocol,
    flip: BitFlip,
}

impl RandomizedResponse {
    /// Randomised response with p = e^epsilon / (e^epsilon + 1), rounded towards 1/2.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        let flip = BitFlip::symmetric(epsilon, Neighbours::OneBit)?;
        Ok(Self::from_flip(flip, epsilon))
    }

    /// The two-coin form: p = 3/4, q = 1/4, epsilon = ln 3 (rounded up to a double).
    ///
    /// ```
    /// use dpnoise_core::local::RandomizedResponse;
    /// let response = RandomizedResponse::coin_flips();
    /// assert_eq!((response.flip().p(), response.flip().q(), response.flip().planes()), (3, 1, 2));
    /// assert!((response.protocol().epsilon() - 3f64.ln()).abs() < 1e-15);
    /// ```
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn coin_flips() -> Self {
        let flip = BitFlip::new(2, 3, 1).expect("0 < 1 < 3 < 4");
        Self::from_flip(flip, flip.likelihood_ratio(Neighbours::OneBit).epsilon())
    }

    fn from_flip(flip: BitFlip, epsilon: f64) -> Self {
        let protocol = Protocol::new(Family::RandomizedResponse, 2, Randomizer::BitFlip(flip), epsilon);
        Self { protocol, flip }
    }

    /// The randomised response that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match (protocol.family(), protocol.randomizer()) {
            (Family::RandomizedResponse, Randomizer::BitFlip(flip)) => Some(Self { protocol, flip }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The exact probabilities.
    #[must_use]
    pub fn flip(&self) -> BitFlip {
        self.flip
    }
}

impl Randomise for RandomizedResponse {
    /// 0 or 1.
    type Value = u8;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[u8]) -> Result<(), Error> {
        let seen = values.iter().fold(0, |seen, value| seen | value);
        if declassify(Reason::Refusal, seen > 1) {
            Err(Error::data("values", "must be booleans (0 or 1)"))
        } else {
            Ok(())
        }
    }

    fn unit(&self) -> usize {
        TILE_VALUES
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        bytes / 8 * self.flip.planes() as usize
    }

    fn randomise<R>(&self, rng: &mut R, values: &[u8], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let values = &values[first..][..out.len()];
        let mut packed = Wiped::new(CHUNK_TILES * TILE_BYTES);
        let mut flipper = Flipper::new(self.flip, values.len().div_ceil(8))?;
        let chunks = out.chunks_mut(8 * packed.len());
        for (values, out) in values.chunks(8 * packed.len()).zip(chunks) {
            let packed = &mut packed[..values.len().div_ceil(8)];
            for (byte, values) in packed.iter_mut().zip(values.chunks(8)) {
                *byte = values.iter().rev().fold(0, |byte, value| byte << 1 | value);
            }
            flipper.flip(rng, packed)?;
            for (byte, out) in packed.iter().zip(out.chunks_mut(8)) {
                out.iter_mut().enumerate().for_each(|(i, out)| *out = byte >> i & 1);
            }
        }
        Ok(())
    }
}
