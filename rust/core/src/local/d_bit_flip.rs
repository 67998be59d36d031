//! dBitFlipPM: some bits of the row of a value, flipped once and for ever.
//!
//! A client samples d of the k values once and for ever, and reports the bits of those alone: each is flipped, and the
//! flipped row of a value stays the same. The row depends only on which sampled value it is, if any: there are d + 1 of
//! them. Source: Ding, Kulkarni and Yekhanin 2017, "Collecting telemetry data privately".
//!
//! # Privacy
//!
//! The sample is drawn without regard to values, and may be known. Two values differ in at most two of the sampled bits, so
//! that a symmetric flip for one-hot rows achieves epsilon; for d = 1 they differ in one, and a flip for one bit does. All
//! reports on one value are one. Reports on m values tell up to m times as much about them, at most d + 1 times; and they
//! may show *when* the value changed, since nothing is flipped again.
//!
//! # Estimation
//!
//! A report supports the values whose bits are 1. A value is sampled with probability d / k, so it is supported with
//! probability p d / k if it is the sender's, and q d / k otherwise: the collector need not know the sample.
//!
//! # Constant time
//!
//! The sample is drawn by rejection, from words derived from the secret alone, whatever the value is. The words of a
//! permanent row are derived for the value, or for none; flipping takes the same time for all.
//!
//! A report has k bits, least significant first; those of values that are not sampled are 0.

use rand_core::TryCryptoRng;

use super::accumulator::count_well_formed;
use super::bit_flip::{BitFlip, Neighbours};
use super::estimate::Support;
use super::flipper::Flipper;
use super::likelihood::{LikelihoodRatio, MAX_PLANES};
use super::memo::{Derivation, Purpose, Secret};
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::remembering::Longitudinal;
use super::subset_selection::{MAX_K, SetDrawer};
use super::unary_encoding::encode_part;
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::rng::Wiped;
use dpnoise_kernels::arith::mask;

/// How many bits are sampled, and how they are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampledFlips {
    k: u32,
    d: u32,
    flip: BitFlip,
}

impl SampledFlips {
    /// The number of sampled bits.
    #[must_use]
    pub fn d(self) -> u32 {
        self.d
    }

    /// How they are flipped.
    #[must_use]
    pub fn flip(self) -> BitFlip {
        self.flip
    }

    /// The largest likelihood ratio between two inputs.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        self.flip.likelihood_ratio(neighbours(self.d))
    }

    /// How often a report has the bit of its sender's value, and of any other.
    #[must_use]
    pub fn support(self) -> Support {
        let (k, d) = (u64::from(self.k), u64::from(self.d));
        let Support { p, q, one } = self.flip.support();
        Support { p: d * p, q: d * q, one: k * one }
    }
}

/// In how many of `d` sampled bits the rows of two values differ, at most.
fn neighbours(d: u32) -> Neighbours {
    if d == 1 { Neighbours::OneBit } else { Neighbours::OneHot }
}

/// dBitFlipPM over k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DBitFlip {
    protocol: Protocol,
    flips: SampledFlips,
}

impl DBitFlip {
    /// The protocol that reports `d` of the bits of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^16, 1 <= d <= k and 2^-20 <= epsilon <= 32, or when a denominator of 2^62 does
    /// not achieve 0.999 of epsilon.
    pub fn new(k: u64, d: u64, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        if k > MAX_K {
            return Err(Error::parameter("k", k, format!("an integer from 2 to {MAX_K} where values are sampled")));
        }
        if !(1..=u64::from(k)).contains(&d) {
            return Err(Error::parameter("d", d, format!("an integer from 1 to k = {k}")));
        }
        let flip = BitFlip::symmetric(epsilon, neighbours(d as u32))?;
        if flip.planes() + k.next_power_of_two().trailing_zeros() > MAX_PLANES {
            let allowed = "such that probabilities over a denominator of at most 2**62 achieve 0.999 of epsilon";
            return Err(Error::parameter("k and epsilon", format!("k = {k}, epsilon = {epsilon:?}"), allowed));
        }
        let flips = SampledFlips { k, d: d as u32, flip };
        let protocol = Protocol::new(Family::DBitFlip, k, Randomizer::SampledFlips(flips), epsilon);
        Ok(Self { protocol, flips })
    }

    /// The protocol that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::SampledFlips(flips) => Some(Self { protocol, flips }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

impl Longitudinal for DBitFlip {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn random_bytes(&self) -> usize {
        4 * self.flips.k as usize + self.flips.flip.planes() as usize * self.protocol.report_bytes()
    }

    /// The words derived for a person give the sample, as a set of d in subset selection. Those derived for the value, or
    /// for k if it is not sampled, flip the row, as in unary encoding. `rng` gives nothing.
    fn report<R: TryCryptoRng + ?Sized>(
        &self,
        _: &mut R,
        derivation: &Derivation,
        secrets: &[Secret],
        values: &[i64],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let SampledFlips { k, d, flip } = self.flips;
        let width = self.protocol.report_bytes();
        let mut drawer = SetDrawer::new(k, d);
        let mut flipper = Flipper::new(flip, width)?;
        let (mut sample, mut row) = (Wiped::new(width), Wiped::new(width));
        for ((out, secret), &value) in out.chunks_mut(width).zip(secrets).zip(values) {
            drawer.draw(&mut derivation.stream(secret, Purpose::Person, 0)?, &mut sample)?;
            encode_part(value, 0, &mut row);
            row.iter_mut().zip(&*sample).for_each(|(row, sampled)| *row &= sampled);
            let is_sampled = mask(row.iter().fold(0, |any, byte| any | byte) != 0);
            let state = value as u64 & is_sampled | u64::from(k) & !is_sampled;
            flipper.flip(&mut derivation.stream(secret, Purpose::Answer, state)?, &mut row)?;
            row.iter_mut().zip(&*sample).for_each(|(row, sampled)| *row &= sampled);
            out.copy_from_slice(&row);
        }
        Ok(())
    }
}

/// Adds to `counters` how many of the `reports` support each value, and gives the number of those that have more than d
/// bits set, or unused ones.
pub(super) fn count(
    instructions: InstructionSet,
    flips: SampledFlips,
    reports: &[u8],
    width: usize,
    counters: &mut Vec<u64>,
) -> u64 {
    let unused = u8::MAX.checked_shl(flips.k - 8 * (width as u32 - 1)).unwrap_or(0);
    let is_malformed =
        |row: &[u8]| row[width - 1] & unused != 0 || row.iter().map(|byte| byte.count_ones()).sum::<u32>() > flips.d;
    counters.resize(8 * width, 0);
    let rejected = count_well_formed(instructions, reports, width, counters, is_malformed);
    counters.truncate(flips.k as usize);
    rejected
}
