//! Weights of candidates, and the proposals that are made by them. See `selection.md`.

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, UNIT_BITS};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::fixed::Fixed;
use dpnoise_kernels::arith::interval::Interval;
use dpnoise_kernels::arith::{mask, power_of_two};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::candidates::Candidates;
use super::density::{Law, Shape};
use super::refine::{bernoulli, is_below};
use crate::error::Error;
use crate::params::Scale;
use crate::rng::Wiped;

/// The sums of the weights of blocks are at most 2^62.
const SUM_BITS: u32 = 62;

/// The weights exp(-depth/scale).
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    rate: f64,
    law: Law,
}

impl Weighing {
    /// The weights of a scale, or `None` when it is below 2^-10: so the rate times a depth stays below 2^62.
    pub(super) fn new(scale: Scale) -> Option<Self> {
        let rate = Shape::Exponential.rate(scale.ratio());
        (rate <= power_of_two(11)).then(|| Self { rate, law: Law::new(Shape::Exponential, scale) })
    }

    /// The scale.
    pub(super) fn scale(&self) -> Scale {
        self.law.scale
    }

    /// Whether a candidate is accepted: with the probability of [`Proposal`], exactly.
    pub(super) fn accepts<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
        proposal: &Proposal,
    ) -> Result<bool, Error> {
        let prefix = rng.try_next_u64().map_err(Error::randomness)? >> 1;
        let row = Zeroizing::new([proposal.weighed; COLUMNS]);
        let mut weights = Zeroizing::new([0; COLUMNS]);
        kernel::weigh(candidates.instructions(), self.rate, &*row, &mut *weights);
        let accepted = is_below(rng, Reason::Selection, prefix, |constants| {
            let limbs = constants.log2_e.limbs();
            // All are at most 1, and exact.
            let part = |number: u64, bits: u32| Fixed::from_integer(number, limbs).shifted_right(bits.into());
            let weight = part(weights[0].cast_unsigned(), UNIT_BITS).times(&part(proposal.share.length, SUM_BITS));
            let density = self.law.density(constants).at(proposal.depth.cast_unsigned(), constants);
            (Interval::exact(weight), density.times(&Interval::exact(part(proposal.share.sum, SUM_BITS))))
        })?;
        Ok(mask(accepted) & proposal.exists != 0)
    }

    /// Draws a coin that shows heads with probability exp(-depth / scale), exactly.
    pub(super) fn keeps<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, depth: i64) -> Result<bool, Error> {
        bernoulli(rng, |constants| self.law.density(constants).at(depth.cast_unsigned(), constants))
    }

    /// Computes the depths of scores below `best`, and their weights.
    pub(super) fn weigh_scores(
        &self,
        candidates: &Candidates<'_>,
        best: f64,
        scores: &[f64],
        depths: &mut [i64],
        weights: &mut [i64],
    ) {
        kernel::measure(candidates.instructions(), candidates.grid().exponent(), &best, scores, depths);
        kernel::weigh(candidates.instructions(), self.rate, depths, weights);
    }
}

/// The number of attempts that are always made: all of them fail with a probability below 2^-64.
pub(super) fn attempts(count: usize) -> usize {
    match count {
        0..=0x2_0000 => 2,
        0x2_0001..=0x1000_0000 => 3,
        _ => 4,
    }
}

/// The working memory for one block.
pub(super) struct Workspace {
    pub(super) scores: Wiped<f64>,
    pub(super) depths: Wiped<i64>,
    pub(super) weights: Wiped<i64>,
}

impl Workspace {
    pub(super) fn new(block: usize) -> Self {
        Self { scores: Wiped::new(block), depths: Wiped::new(block), weights: Wiped::new(block) }
    }

    pub(super) fn weigh(&mut self, weighing: &Weighing, candidates: &Candidates<'_>, best: f64, scores: &[f64]) {
        weighing.weigh_scores(candidates, best, scores, &mut self.depths, &mut self.weights);
    }

    pub(super) fn weigh_fetched(&mut self, weighing: &Weighing, candidates: &Candidates<'_>, best: f64) {
        weighing.weigh_scores(candidates, best, &self.scores, &mut self.depths, &mut self.weights);
    }
}

/// How a block is proposed, and what it weighs, in units of 2^-62: the first is at least the second times the block's
/// share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) length: u64,
    pub(super) sum: u64,
}

impl Share {
    /// Of candidates that are proposed without choosing a block first.
    pub(super) const WHOLE: Self = Self { length: 1 << SUM_BITS, sum: 1 << SUM_BITS };
}

/// A candidate that was proposed with the weight A length/sum, where A is that of the depth `weighed`. It is accepted with
/// the quotient of C exp(-depth/scale) and that weight.
pub(super) struct Proposal {
    pub(super) index: u64,
    pub(super) weighed: i64,
    pub(super) depth: i64,
    pub(super) share: Share,
    /// All ones if there is one.
    pub(super) exists: u64,
}

/// The first of the candidates that are accepted.
#[derive(Default)]
pub(super) struct Outcome {
    index: u64,
    settled: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, index: u64, accepted: bool) {
        let accepted = mask(accepted);
        self.index |= index & accepted & !self.settled;
        self.settled |= accepted;
    }

    pub(super) fn settled(&self) -> Option<u64> {
        declassify(Reason::Selection, self.settled != 0).then_some(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_all_in_vain_with_a_probability_below_2_to_the_minus_64() {
        for count in [1, 1 << 17, (1 << 17) + 1, 1 << 28, (1 << 28) + 1, 1 << 33] {
            let in_vain = 2.01 * 2f64.powi(-39) + 3.01 * count as f64 * 2f64.powi(-51);
            assert!(in_vain.powi(attempts(count) as i32) < 2f64.powi(-64), "{count}");
        }
    }
}
