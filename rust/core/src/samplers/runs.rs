//! The exponential mechanism among candidates that come in runs of equal scores. See `selection.md`.

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS};
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;

use super::candidates::Candidates;
use super::grid::Grid;
use super::peeling::Peeling;
use super::uniform::uniform_below;
use super::weighing::{Outcome, Proposal, Share, Weighing};
use crate::error::Error;
use crate::params::Scale;
use crate::rng::Wiped;

/// Scores further than this below 0, in steps of the grid, are raised to this.
const LOWEST: i64 = 1 << 50;

/// This many attempts are always made: both fail with a probability below 2^-65.
const ATTEMPTS: usize = 2;

/// A polynomial close to log2((3 + z) / 2) for z in [-1, 1): the error is below 2^-34.78.
const LOG2: [f64; 13] = [
    0.584_962_500_721_156_2,
    0.480_898_346_656_874_5,
    -0.080_149_724_398_786_02,
    0.017_811_058_429_040_114,
    -0.004_452_765_123_858_411,
    0.001_187_335_583_763_31,
    -0.000_329_813_226_200_035_6,
    9.446_689_382_949_975e-5,
    -2.755_712_787_882_597_8e-5,
    7.774_356_779_156_329e-6,
    -2.328_488_790_033_494_2e-6,
    1.018_053_635_809_704_7e-6,
    -3.123_475_383_708_203_6e-7,
];

/// Raises [`LOG2`] above the logarithm, rounding errors included.
const MARGIN: f64 = 4.365_574_568_510_056e-11; // 1.5 * 2^-35

/// Candidates by the score and the length of each run. A run of length 0 has no candidates.
pub(crate) struct Runs {
    /// At most 0, and 0 for a run that has candidates.
    pub(crate) scores: Wiped<f64>,
    /// At most 2^53 + 1.
    pub(crate) lengths: Wiped<i64>,
}

impl Runs {
    /// At least `count` runs; those that are not filled have no candidates.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub(crate) fn new(count: usize) -> Result<Self, Error> {
        let count = count.next_multiple_of(COLUMNS);
        Ok(Self { scores: Wiped::try_new(count)?, lengths: Wiped::try_new(count)? })
    }

    /// The run and the place within it of a candidate, chosen with probability proportional to exp(score / scale).
    pub(super) fn choose<R: TryCryptoRng + ?Sized>(
        mut self,
        rng: &mut R,
        grid: Grid,
        weighing: &Weighing,
    ) -> Result<(u64, u64), Error> {
        let log_scale = raise_of_doubling(weighing.scale());
        self.raise(grid, log_scale)?;
        let candidates = Candidates::new(grid, &self.scores)?;
        let mut peeling = Peeling::new(weighing, &candidates)?;
        loop {
            let mut outcome = Outcome::default();
            for _ in 0..ATTEMPTS {
                let index = peeling.choose(rng)?;
                let length = self.length_of(index);
                let proposal = Proposal {
                    index,
                    weighed: 0,
                    depth: raise(length, log_scale),
                    share: Share { length: 1 << 8, sum: length.cast_unsigned() << 8 },
                    exists: mask(length != 0),
                };
                outcome.add(index, weighing.accepts(rng, &candidates, &proposal)?);
            }
            if let Some(run) = outcome.settled() {
                let place = uniform_below(rng, self.length_of(run).cast_unsigned().into())?;
                return Ok((run, place as u64));
            }
        }
    }

    /// Replaces each score by that of one candidate that is proposed for the whole run.
    fn raise(&mut self, grid: Grid, log_scale: f64) -> Result<(), Error> {
        let instructions = crate::instruction_set::current()?;
        let mut depths = Wiped::try_new(self.scores.len())?;
        kernel::measure(instructions, grid.exponent(), &0.0, &self.scores, &mut depths);
        for ((score, &length), &depth) in self.scores.iter_mut().zip(&*self.lengths).zip(&*depths) {
            let empty = mask(length == 0).cast_signed();
            let raised = raise(length, log_scale).wrapping_sub(depth.min(LOWEST));
            *score = (raised & !empty | -LOWEST & empty) as f64 * grid.granularity();
        }
        Ok(())
    }

    /// The length of a run.
    fn length_of(&self, run: u64) -> i64 {
        let lengths = self.lengths.iter().enumerate();
        lengths.fold(0, |found, (index, &length)| found | length & mask(index as u64 == run).cast_signed())
    }
}

/// How many steps a score is below 0, as runs are weighed by it.
pub(super) fn depth_of(grid: Grid, score: f64) -> Result<i64, Error> {
    Ok(grid.steps_between(&score, &0.0)?.min(LOWEST))
}

/// By how much the score of a run is raised, in steps, when its length doubles: b ln 2.
fn raise_of_doubling(scale: Scale) -> f64 {
    core::f64::consts::LN_2 * scale.ratio().to_f64()
}

/// By how many steps the score of a run is raised: at least b ln(length), and little more.
fn raise(length: i64, log_scale: f64) -> i64 {
    // The exponent and the fraction of the double are those of the length.
    let bits = (length.max(1) as f64).to_bits();
    let exponent = ((bits >> 52) as i64).wrapping_sub(1023);
    let fraction = f64::from_bits(bits << 12 >> 12 | 1023 << 52);
    let z = 2.0 * fraction - 3.0;
    let log2 = LOG2.iter().rev().fold(0.0, |sum, coefficient| sum * z + coefficient);
    (((exponent as f64 + log2 + MARGIN) * log_scale) as i64).wrapping_add(2)
}

#[cfg(test)]
mod tests {
    use dpnoise_kernels::arith::exp::Constants;
    use dpnoise_kernels::arith::fixed::Fixed;

    use super::*;
    use crate::params::Ratio;
    use crate::samplers::density::{Density, Shape};

    /// length exp(-raise / b) is at most 1, and at least 1 - 2^-33, by the certified exponential.
    #[test]
    fn a_score_is_raised_by_the_logarithm_of_the_length_and_little_more() {
        let constants = Constants::first();
        let powers = (0..=53).flat_map(|k| [-1, 0, 1].map(|d| (1i64 << k) + d)).filter(|&length| length > 0);
        let others =
            (1..20_000).chain((0..20_000).map(|i| (0x1e37_79b9_7f4a_7c15i64.wrapping_mul(i)) >> 11 & ((1 << 53) - 1)));
        for (numerator, denominator) in [(1u128 << 39, 1), (1 << 40, 3), (1 << 44, 1)] {
            let scale = Scale::on_grid(Ratio::new(numerator, denominator).unwrap()).unwrap();
            let (density, log_scale) =
                (Density::new(Shape::Exponential, scale.ratio(), constants), raise_of_doubling(scale));
            let one = Fixed::from_integer(1, 4);
            for length in powers.clone().chain(others.clone()).filter(|&length| length > 0) {
                let kept = density.at(raise(length, log_scale).cast_unsigned(), constants);
                let [low, high] = [kept.low, kept.high].map(|side| side.times_integer(length.cast_unsigned()));
                assert!(!one.is_less(&high), "{length}");
                assert!(one.clone().minus(&low).is_less(&one.clone().shifted_right(33)), "{length}");
            }
        }
    }
}
