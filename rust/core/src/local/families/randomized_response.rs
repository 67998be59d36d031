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
//!
//! # A given epsilon, or a given p
//!
//! A given epsilon has the fewest planes that achieve 0.999 of it, so p is coarse: for ln 4 it is 0.79980. A given p
//! is used exactly, and epsilon follows. Both have the same specification, epsilon and the probabilities. A reader
//! accepts the probabilities that the epsilon gives, and otherwise only the epsilon that the probabilities give.

use dpnoise_kernels::arch::planes::TILE_BYTES;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::power_of_two;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::local::chance::bit_flip::{BitFlip, Flipper, Neighbours};
use crate::local::chance::likelihood::check_epsilon;
use crate::local::estimate::{Estimate, Law};
use crate::local::reports::bits::Bits;
use crate::local::spec::{Field, Given, inconsistent};
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

    /// Randomised response with exactly this probability of the truth, and epsilon = ln(p / (1 - p)), rounded up.
    ///
    /// ```
    /// use dpnoise_core::local::{Protocol, RandomizedResponse};
    /// let response = Protocol::from(RandomizedResponse::with_p(0.8)?);
    /// assert_eq!(response.support().map(|support| support.probability(support.p)), Some(0.8));
    /// assert!(response.epsilon() >= 4f64.ln() && response.epsilon() < 4f64.ln() + 1e-15);
    /// # Ok::<(), dpnoise_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 1/2 < p < 1 and 2^-20 <= epsilon <= 32.
    pub fn with_p(p: f64) -> Result<Self, Error> {
        let refused = |allowed: &str| Error::parameter("p", format!("{p:?}"), allowed);
        if !(0.5 < p && p < 1.0) {
            return Err(refused("a probability between 1/2 and 1, both excluded"));
        }
        // A double in this range is a multiple of 2^-53, and scaling by a power of two is exact.
        let numerator = (p * (1u64 << 53) as f64) as u64;
        let excess = numerator.trailing_zeros();
        let (planes, p) = (53 - excess, numerator >> excess);
        let flip = BitFlip::of(planes, p, (1 << planes) - p);
        let epsilon = flip.likelihood_ratio(Neighbours::OneBit).epsilon();
        check_epsilon(epsilon)
            .map_err(|_| refused("a probability whose epsilon = ln(p / (1 - p)) is between 2**-20 and 32"))?;
        Ok(Self { epsilon, flip })
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
        Self::with_p(0.75).expect("1/2 < 3/4 < 1")
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

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        if k != 2 {
            return Err(Error::parameter("k", k, "2 for randomized_response"));
        }
        let of_epsilon = Self::new(epsilon)?;
        let (p, planes) = (given.integer("p")?, given.integer("planes")?);
        if (p, planes) == (of_epsilon.flip.p(), of_epsilon.flip.planes().into()) {
            return Ok(of_epsilon);
        }
        Self::with_p(p as f64 * power_of_two(-(planes.min(64) as i32))).map_err(|_| inconsistent())
    }

    fn epsilon(&self) -> f64 {
        self.flip.likelihood_ratio(Neighbours::OneBit).epsilon()
    }

    fn blanket(&self) -> Option<Blanket> {
        let ratio = self.flip.likelihood_ratio(Neighbours::OneBit);
        Some(Blanket::of_supports(ratio.into(), (1, 2), (0, 1)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::{COUNTER_LIMIT, Protocol};

    const BEYOND: &str = "a probability whose epsilon = ln(p / (1 - p)) is between 2**-20 and 32";
    const NO_PROBABILITY: &str = "a probability between 1/2 and 1, both excluded";

    #[test]
    fn a_given_p_is_used_exactly() {
        for p in [0.8, 0.75, 0.5625, 0.999, 1.0 - 1e-13, 0.500_000_5, 0.6f64.next_up()] {
            let response = RandomizedResponse::with_p(p).unwrap();
            let (flip, made) = (response.flip(), Protocol::from(response));
            assert_eq!(flip.p() as f64 / power_of_two(flip.planes() as i32), p);
            assert_eq!(flip.q(), (1 << flip.planes()) - flip.p());
            assert!(flip.p() % 2 == 1, "the fewest planes");
            assert_eq!(response.epsilon, made.epsilon());
            assert_eq!(Protocol::from_json(&made.to_json(), COUNTER_LIMIT), Ok(made));
        }
    }

    #[test]
    fn an_impossible_p_names_what_is_possible() {
        for (p, allowed) in [
            (0.5, NO_PROBABILITY),
            (0.2, NO_PROBABILITY),
            (1.0, NO_PROBABILITY),
            (f64::NAN, NO_PROBABILITY),
            (0.5f64.next_up(), BEYOND),
            (1f64.next_down(), BEYOND),
        ] {
            let message = RandomizedResponse::with_p(p).unwrap_err().to_string();
            assert_eq!(message, format!("p must be {allowed}, got {p:?}"));
        }
    }

    /// What is read has the probabilities of its epsilon, or the epsilon of its probabilities.
    #[test]
    fn a_specification_claims_no_other_epsilon() {
        let response = RandomizedResponse::with_p(0.8).unwrap();
        let (json, (epsilon, flip)) = (Protocol::from(response).to_json(), (response.epsilon, response.flip));
        let text = |epsilon: f64, p: u64, planes: u64, q: u64| {
            let law = format!(r#""p":{p},"planes":{planes},"protocol":"randomized_response","q":{q}"#);
            format!(r#"{{"epsilon":{epsilon:?},"k":2,{law},"version":1}}"#)
        };
        let (p, planes, q) = (flip.p(), 52, flip.q());
        assert_eq!(text(epsilon, p, planes, q), json);
        for changed in [
            text(epsilon.next_up(), p, planes, q),
            text(epsilon.next_down(), p, planes, q),
            text(1.0, p, planes, q),
            text(epsilon, p + 1, planes, q - 1),
            text(epsilon, p, planes, q - 1),
            text(epsilon, 2 * p, planes + 1, 2 * q),
            text(epsilon, p, 0, q),
            text(epsilon, p, u64::MAX, q),
        ] {
            let message = Protocol::from_json(&changed, COUNTER_LIMIT).unwrap_err().to_string();
            assert!(message.ends_with("its probabilities are not those that its epsilon gives"), "{message}");
        }
    }
}
