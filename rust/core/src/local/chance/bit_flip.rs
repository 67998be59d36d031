//! Dyadic bit flipping: a bit becomes 1 with probability p / 2^planes if it is 1, and q / 2^planes if it is 0.
//!
//! # Privacy
//!
//! With p > q, the likelihood ratio of one bit's two inputs is at most max(p/q, (1-q)/(1-p)). Two different one-hot
//! rows differ in two bits, each of them set in one of the rows. Their likelihood ratio is at most p(1-q) / ((1-p)q),
//! and this is attained.
//!
//! # The choice of the number of planes
//!
//! The smallest number of planes is chosen whose probabilities, rounded in the private direction, never exceed the
//! requested epsilon and achieve at least 0.999 of it. Sixty-two planes always suffice for a symmetric or optimised
//! flip: if ln((1-q)/q) is x, raising q by at most 2^-62 lowers it by at most 2^-62 / (q(1-q)) <= 2^-60 e^x; that is
//! below 0.001 x for every x from 2^-21 to 32.
//!
//! # Drawing
//!
//! Random words are drawn for several tiles at a time and passed to the kernel.

use dpnoise_kernels::arch::planes::{self, TILE_BYTES};
use rand_core::TryCryptoRng;

use super::likelihood::{LikelihoodRatio, MAX_PLANES, check_epsilon, fewest_planes};
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::local::estimate::Support;
use crate::local::spec::Field;
use crate::rng::{Wiped, fill_bytes};

/// The random bytes drawn at once: few enough to stay in the first-level cache with the bits that they flip.
const RANDOM_BYTES: usize = 1 << 14;

/// The probabilities p / 2^planes and q / 2^planes of a 1, for a data bit 1 and 0, with 0 < q < p < 2^planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitFlip {
    planes: u32,
    p: u64,
    q: u64,
}

/// The number of bits in which neighbouring inputs differ, which determines the likelihood ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// One bit: a single answer, yes or no.
    OneBit,
    /// Two bits, each of them set in one of the inputs: one-hot rows.
    OneHot,
}

impl BitFlip {
    /// The flip with these integer thresholds, without rounding.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < q < p < 2^planes and 2 <= planes <= 62.
    pub fn new(planes: u32, p: u64, q: u64) -> Result<Self, Error> {
        if !(2..=MAX_PLANES).contains(&planes) {
            return Err(Error::parameter("planes", planes, format!("an integer from 2 to {MAX_PLANES}")));
        }
        if !(0 < q && q < p && p < 1 << planes) {
            return Err(Error::parameter("p and q", format!("p = {p}, q = {q}"), "such that 0 < q < p < 2**planes"));
        }
        Ok(Self { planes, p, q })
    }

    /// The flip with these probabilities, which must be in range.
    pub(crate) fn of(planes: u32, p: u64, q: u64) -> Self {
        Self { planes, p, q }
    }

    /// The symmetric flip (q = 1 - p) for `epsilon` between `neighbours`: Warner 1965 for one bit, basic RAPPOR
    /// (Erlingsson, Pihur, Korolova 2014) for one-hot rows.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn symmetric(epsilon: f64, neighbours: Neighbours) -> Result<Self, Error> {
        Self::smallest(epsilon, neighbours, |planes, q| Self { planes, p: (1 << planes) - q, q })
    }

    /// The optimised flip for one-hot rows: p = 1/2 and q just above 1/(e^epsilon + 1)
    /// (Wang, Blocki, Li, Jha 2017, section 4.3).
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2^-20 <= epsilon <= 32.
    pub fn optimized(epsilon: f64) -> Result<Self, Error> {
        Self::smallest(epsilon, Neighbours::OneHot, |planes, q| Self { planes, p: 1 << (planes - 1), q })
    }

    /// The flip with the given probabilities for one-hot rows, and the epsilon that they request.
    ///
    /// Probabilities with few binary digits are kept as they are. The requested epsilon is that of p rounded up and q
    /// rounded down to 62 binary digits (most doubles that are not tiny have no more), rounded up to a double.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < q < p < 1, the requested epsilon is in range, and 62 planes achieve 0.999 of it.
    pub fn custom(p: f64, q: f64) -> Result<(Self, f64), Error> {
        for (name, value) in [("p", p), ("q", q)] {
            if !(0.0 < value && value < 1.0) {
                return Err(Error::parameter(name, format!("{value:?}"), "a probability strictly between 0 and 1"));
            }
        }
        if p <= q {
            return Err(Error::parameter("p", format!("{p:?}"), format!("greater than q = {q:?}")));
        }
        let refused = |allowed: &str| Error::parameter("p and q", format!("p = {p:?}, q = {q:?}"), allowed);
        // Scaling by a power of two is exact, and floor and ceil of a double are doubles: nothing is rounded here.
        let scaled = |value: f64, planes: u32| value * (1u64 << planes) as f64;
        let out_of_range = || refused("such that epsilon = ln(p (1 - q) / ((1 - p) q)) is between 2**-20 and 32");
        let outward = (scaled(p, MAX_PLANES).ceil() as u64, scaled(q, MAX_PLANES).floor() as u64);
        let outward = Self::new(MAX_PLANES, outward.0, outward.1).map_err(|_| out_of_range())?;
        let requested = outward.likelihood_ratio(Neighbours::OneHot).epsilon();
        check_epsilon(requested).map_err(|_| out_of_range())?;
        let inward = |planes| {
            let (p, q) = (scaled(p, planes).floor() as u64, scaled(q, planes).ceil() as u64);
            Self::new(planes, p, q).ok().filter(|flip| flip.likelihood_ratio(Neighbours::OneHot).achieves(requested))
        };
        let flip = (2..=MAX_PLANES).find_map(inward).ok_or_else(|| {
            refused("such that probabilities of at most 62 binary digits, p rounded down and q up, achieve 0.999 of their epsilon")
        })?;
        Ok((flip, requested))
    }

    /// The flip with the fewest planes that achieves `epsilon`, where `make(planes, q)` has its q as a free parameter.
    fn smallest(epsilon: f64, neighbours: Neighbours, make: impl Fn(u32, u64) -> Self) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        let ratio = |planes, q| make(planes, q).likelihood_ratio(neighbours);
        let found = fewest_planes(epsilon, 2..=MAX_PLANES, ratio);
        let (planes, q) = found.expect("62 planes suffice, as shown above");
        Ok(make(planes, q))
    }

    /// The largest likelihood ratio between two inputs.
    #[must_use]
    pub fn likelihood_ratio(self, neighbours: Neighbours) -> LikelihoodRatio {
        let one = 1 << self.planes;
        let [p, q, not_p, not_q] = [self.p, self.q, one - self.p, one - self.q].map(u128::from);
        let (numerator, denominator) = match neighbours {
            Neighbours::OneHot => (p * not_q, not_p * q),
            Neighbours::OneBit if p * not_p >= q * not_q => (p, q),
            Neighbours::OneBit => (not_q, not_p),
        };
        LikelihoodRatio { numerator, denominator }
    }

    /// The probabilities that a bit is reported as 1, if it is 1 and if it is 0.
    #[must_use]
    pub fn support(self) -> Support {
        Support { p: self.p, q: self.q, one: 1 << self.planes }
    }

    /// The random bits per output bit.
    #[must_use]
    pub fn planes(self) -> u32 {
        self.planes
    }

    /// The numerator of the probability that a 1 stays a 1.
    #[must_use]
    pub fn p(self) -> u64 {
        self.p
    }

    /// The numerator of the probability that a 0 becomes a 1.
    #[must_use]
    pub fn q(self) -> u64 {
        self.q
    }

    /// Its part of a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        vec![("p", self.p.into()), ("planes", self.planes.into()), ("q", self.q.into())]
    }
}

/// A [`BitFlip`] with a buffer for its random words, which is wiped when dropped.
pub(crate) struct Flipper {
    instructions: InstructionSet,
    flip: BitFlip,
    random: Wiped<u8>,
}

impl Flipper {
    /// A flipper for about `bytes` bytes of bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub(crate) fn new(flip: BitFlip, bytes: usize) -> Result<Self, Error> {
        let tile = flip.planes() as usize * TILE_BYTES;
        let tiles = bytes.div_ceil(TILE_BYTES).clamp(1, RANDOM_BYTES / tile);
        Ok(Self { instructions: instruction_set::current()?, flip, random: Wiped::new(tiles * tile) })
    }

    /// Flips every bit of `data`. A last, incomplete tile uses the random words of a whole one.
    pub(crate) fn flip<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, data: &mut [u8]) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::super::likelihood::{MAX_EPSILON, MIN_EPSILON};
    use super::*;
    use dpnoise_kernels::arith::log::ln_upper_vartime;

    #[test]
    fn dyadic_probabilities_are_kept() {
        for (p, q, planes, numerators) in [(0.75, 0.25, 2, (3, 1)), (0.5, 0.25, 2, (2, 1)), (0.5, 0.375, 3, (4, 3))] {
            let (flip, requested) = BitFlip::custom(p, q).unwrap();
            assert_eq!((flip.planes, (flip.p, flip.q)), (planes, numerators));
            assert_eq!(requested, flip.likelihood_ratio(Neighbours::OneHot).epsilon());
        }
        let coins = BitFlip::new(2, 3, 1).unwrap().likelihood_ratio(Neighbours::OneBit);
        assert_eq!(coins.epsilon(), ln_upper_vartime(3, 1));
    }

    /// No q with fewer planes achieves epsilon, and a q smaller by one is no longer private.
    #[test]
    fn the_choice_is_the_smallest_and_the_closest() {
        for epsilon in [MIN_EPSILON, 0.01, 0.5, 1.0, 3f64.ln(), 4.0] {
            let flip = BitFlip::optimized(epsilon).unwrap();
            let closer = BitFlip { q: flip.q - 1, ..flip };
            assert!(closer.q == 0 || !closer.likelihood_ratio(Neighbours::OneHot).is_at_most(epsilon), "{epsilon}");
            let planes = flip.planes - 1;
            let none = (1..1u64 << (planes - 1).min(10)).all(|q| {
                let fewer = BitFlip { planes, p: 1 << (planes - 1), q: (1 << (planes - 1)) - q };
                !fewer.likelihood_ratio(Neighbours::OneHot).achieves(epsilon)
            });
            assert!(none, "{epsilon}");
        }
    }

    #[test]
    fn the_variance_of_the_optimised_flip_follows_the_closed_form() {
        let e = 1f64.exp();
        let optimized = BitFlip::optimized(1.0).unwrap().support().variance(0.0);
        assert!((optimized * (e - 1.0).powi(2) / (4.0 * e) - 1.0).abs() < 0.01);
    }

    #[test]
    fn impossible_parameters_name_what_would_work() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, MIN_EPSILON.next_down(), MAX_EPSILON.next_up()] {
            for refused in [BitFlip::optimized(bad), BitFlip::symmetric(bad, Neighbours::OneBit)] {
                let message = refused.unwrap_err().to_string();
                assert_eq!(message, format!("epsilon must be between 2**-20 and 32, got {bad:?}"));
            }
        }
        let message = |p, q| BitFlip::custom(p, q).unwrap_err().to_string();
        assert_eq!(message(1.0, 0.5), "p must be a probability strictly between 0 and 1, got 1.0");
        assert_eq!(message(0.5, f64::NAN), "q must be a probability strictly between 0 and 1, got NaN");
        assert_eq!(message(0.5, 0.5), "p must be greater than q = 0.5, got 0.5");
        assert!(message(1.0 - 1e-16, 5e-324).contains("is between 2**-20 and 32, got p = "));
        assert!(message(0.5, 0.5f64.next_down()).contains("is between 2**-20 and 32"));
        assert!(message(1e-17, 1e-18).contains("62 binary digits"));
    }
}
