//! Randomised response: one bit, reported truthfully with probability p and flipped with probability 1 - p.
//!
//! Source: Warner 1965, "Randomized response: a survey technique for eliminating evasive answer bias". The two-coin
//! form (answer truthfully on heads, otherwise as a second coin says) is p = 3/4, epsilon = ln 3.
//!
//! # Privacy
//!
//! A report is epsilon-locally differentially private with epsilon = ln(p / (1-p)).
//!
//! A report is one byte, 0 or 1. Internally, eight values share a byte of every plane, so no random bit is wasted.

use dpnoise_kernels::arch::planes::TILE_BYTES;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};

use crate::error::Error;
use crate::local::chance::bit_flip::{BitFlip, Flipper, Neighbours};
use crate::local::estimate::{Estimate, Law};
use crate::local::family::Family;
use crate::local::parameters::{Arguments, Parameter};
use crate::local::reports::bits::Bits;
use crate::local::spec::{Field, Given};
use crate::rng::{AnyRng, Wiped};

/// The values that one tile holds.
const TILE_VALUES: usize = 8 * TILE_BYTES;

/// The tiles that are packed before they are flipped.
const CHUNK_TILES: usize = 16;

/// Binary randomised response.
///
/// A report is epsilon-locally differentially private (Warner 1965, "Randomized response: a survey technique for
/// eliminating evasive answer bias").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomizedResponse {
    epsilon: f64,
    flip: BitFlip,
}

impl RandomizedResponse {
    /// Randomised response with p = e^epsilon / (e^epsilon + 1), rounded towards 1/2.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn new(epsilon: f64) -> Result<Self, Error> {
        Ok(Self { epsilon, flip: BitFlip::symmetric(epsilon, Neighbours::OneBit)? })
    }

    /// The two-coin form: p = 3/4, q = 1/4, epsilon = ln 3 (rounded up to a double).
    ///
    /// ```
    /// use dpnoise_core::local::{Protocol, RandomizedResponse};
    /// let response = RandomizedResponse::coin_flips();
    /// assert_eq!((response.flip().p(), response.flip().q(), response.flip().planes()), (3, 1, 2));
    /// assert!((Protocol::from(response).epsilon() - 3f64.ln()).abs() < 1e-15);
    /// ```
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn coin_flips() -> Self {
        let flip = BitFlip::new(2, 3, 1).expect("0 < 1 < 3 < 4");
        Self { epsilon: flip.likelihood_ratio(Neighbours::OneBit).epsilon(), flip }
    }

    /// The exact probabilities.
    #[must_use]
    pub fn flip(self) -> BitFlip {
        self.flip
    }
}

impl Family for RandomizedResponse {
    const NAME: &'static str = "randomized_response";
    const ABBREVIATION: &'static str = "rr";
    const COST: Option<&'static str> = Some("n");
    const PARAMETERS: &'static [Parameter] = &[Parameter::EPSILON];
    type Reports = Bits;
    /// 0 or 1.
    type Values<'a> = &'a [u8];

    fn k(&self) -> u32 {
        2
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.flip.fields()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.real("epsilon")?)
    }

    fn from_fields(k: u64, epsilon: f64, _given: &Given) -> Result<Self, Error> {
        if k == 2 { Self::new(epsilon) } else { Err(Error::parameter("k", k, "2 for randomized_response")) }
    }

    fn epsilon(&self) -> f64 {
        self.flip.likelihood_ratio(Neighbours::OneBit).epsilon()
    }

    fn check(&self, values: &[u8]) -> Result<(), Error> {
        let seen = values.iter().fold(0, |seen, value| seen | value);
        if declassify(Reason::Refusal, seen > 1) {
            Err(Error::data("values", "must be booleans (0 or 1)"))
        } else {
            Ok(())
        }
    }

    fn random_bits(&self) -> usize {
        self.flip.planes() as usize
    }

    fn unit(&self) -> usize {
        TILE_VALUES
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[u8], first: usize, out: &mut [u8]) -> Result<(), Error> {
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

    fn reports(&self) -> Bits {
        Bits(1)
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.flip.support()))
    }

    /// Reports support only "yes"; the estimates are for "no" and "yes".
    fn estimate(&self, n: u64, counters: &[u64]) -> Result<Option<Estimate>, Error> {
        let Some(law) = self.law() else { return Ok(None) };
        let estimate = law.estimate(n, counters)?;
        let (yes, error) = (estimate.counts[0], estimate.standard_errors[0]);
        Ok(Some(Estimate { counts: vec![n as f64 - yes, yes], standard_errors: vec![error; 2], n }))
    }
}
