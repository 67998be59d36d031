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
use super::flipper::{Flipper, useful_threads, wiped_on_error};
use super::protocol::{Family, Protocol, check_threads};
use crate::arch::planes::TILE_BYTES;
use crate::arch::secrecy::{Reason, declassify};
use crate::error::Error;
use crate::rng::{Wiped, fill_parallel};

/// The values that one tile holds.
const TILE_VALUES: usize = 8 * TILE_BYTES;

/// The tiles that are packed before they are flipped.
const CHUNK_TILES: usize = 16;

/// Binary randomised response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomizedResponse(Protocol);

impl RandomizedResponse {
    /// Randomised response with p = e^epsilon / (e^epsilon + 1), rounded towards 1/2.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        let flip = BitFlip::symmetric(epsilon, Neighbours::OneBit)?;
        Ok(Self(Protocol::new(Family::RandomizedResponse, 2, flip, epsilon)))
    }

    /// The two-coin form: p = 3/4, q = 1/4, epsilon = ln 3 (rounded up to a double).
    ///
    /// ```
    /// use dpnoise_core::local::RandomizedResponse;
    /// let protocol = *RandomizedResponse::coin_flips().protocol();
    /// assert_eq!((protocol.p(), protocol.q()), (0.75, 0.25));
    /// assert!((protocol.epsilon() - 3f64.ln()).abs() < 1e-15);
    /// ```
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn coin_flips() -> Self {
        let flip = BitFlip::new(2, 3, 1).expect("0 < 1 < 3 < 4");
        Self(Protocol::new(Family::RandomizedResponse, 2, flip, flip.epsilon(Neighbours::OneBit)))
    }

    /// The randomised response that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        (protocol.family() == Family::RandomizedResponse).then_some(Self(protocol))
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.0
    }

    /// Randomises every value (0 or 1) with random words of `rng`.
    ///
    /// # Errors
    /// [`Error::Data`] unless all values are 0 or 1, and [`Error::Parameter`] when `out` is not as long as `values`,
    /// before anything is drawn; [`Error::Randomness`] when `rng` fails: then `out` is all zero.
    pub fn perturb<R>(&self, values: &[u8], out: &mut [u8], rng: &mut R) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        Self::check_values(values)?;
        check_out(values, out)?;
        wiped_on_error(out, |out| self.randomise(rng, values, out))
    }

    /// Randomises every value on up to `threads` threads, each with a freshly keyed secure generator.
    ///
    /// # Errors
    /// As for [`RandomizedResponse::perturb`], and [`Error::Parameter`] for no threads.
    pub fn perturb_secure(&self, values: &[u8], out: &mut [u8], threads: usize) -> Result<(), Error> {
        Self::check_values(values)?;
        check_out(values, out)?;
        check_threads(threads)?;
        let threads = useful_threads(self.0.flip(), out.len() / 8, threads);
        fill_parallel(out, TILE_VALUES, threads, |rng, first, part| {
            self.randomise(rng, &values[first..first + part.len()], part)
        })
    }

    /// Checks that all values are 0 or 1, in one pass without a branch.
    ///
    /// # Errors
    /// [`Error::Data`] otherwise.
    pub fn check_values(values: &[u8]) -> Result<(), Error> {
        let seen = values.iter().fold(0, |seen, value| seen | value);
        if declassify(Reason::Refusal, seen > 1) {
            Err(Error::data("values", "must be booleans (0 or 1)"))
        } else {
            Ok(())
        }
    }

    fn randomise<R>(&self, rng: &mut R, values: &[u8], out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let mut packed = Wiped::new(CHUNK_TILES * TILE_BYTES);
        let mut flipper = Flipper::new(self.0.flip(), values.len().div_ceil(8))?;
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

fn check_out(values: &[u8], out: &[u8]) -> Result<(), Error> {
    if out.len() == values.len() {
        return Ok(());
    }
    Err(Error::parameter("out", format!("{} values", out.len()), format!("{} values long", values.len())))
}
