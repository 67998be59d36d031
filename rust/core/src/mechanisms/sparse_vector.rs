//! The sparse vector technique: which of a stream of values are above a threshold; only positive answers cost privacy.
#![doc = include_str!("sparse_vector.md")]

use std::sync::Arc;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::params::{Epsilon, Ratio, RealScale, Scale};
use crate::rng::{ProcessMark, SecureRng, Wiped};
use crate::samplers::grid::{Grid, all_finite};
use crate::samplers::{self, DiscreteLaplace, Sampler};

/// Answers which values are above a threshold, until it has given `max_positives` positive answers.
///
/// ```
/// use dpnoise_core::mechanisms::AboveThreshold;
/// let mut run = AboveThreshold::new(1.0, 100.0, 1.0, 1, false)?.start()?;
/// while !run.is_halted() {
///     run.is_above(250.0)?;
/// }
/// assert!(run.is_above(250.0).is_err());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AboveThreshold {
    epsilon: Epsilon,
    threshold: f64,
    sensitivity: f64,
    max_positives: u64,
    monotonic: bool,
    grid: Grid,
    /// The noise of the threshold, and that of each value.
    noise: [Arc<DiscreteLaplace>; 2],
}

/// One pass over a stream. It costs epsilon for any number of values.
///
/// It belongs to the process that started it: a copy in the child of a fork would give further positive answers with the
/// same noise on the threshold. (A virtual machine's snapshot that is restored twice makes two copies, which cannot be
/// detected.)
pub struct Run {
    mechanism: AboveThreshold,
    /// The noise of the threshold.
    noise: Wiped<i64>,
    positives: u64,
    /// The process in which it was started.
    process: ProcessMark,
}

/// The budget is split into multiples of one part in this many.
const PARTS: u32 = 1024;

/// Unless it is the finest grid of all, the larger scale has about this many steps, as a power of two.
const STEPS_EXPONENT: i32 = 40;

impl AboveThreshold {
    /// The mechanism that spends `epsilon` on a stream of values each of which changes by at most `sensitivity`;
    /// `monotonic` when they all change in the same direction, which halves the noise of the values.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon or sensitivity that is not positive and finite or whose quotient is out of
    /// range, a threshold that is not finite, and for `max_positives` outside 1 to 2^32 - 1.
    pub fn new(
        epsilon: f64,
        threshold: f64,
        sensitivity: f64,
        max_positives: u64,
        monotonic: bool,
    ) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon)?;
        if !threshold.is_finite() {
            return Err(Error::parameter("threshold", format!("{threshold:?}"), "finite"));
        }
        if !(sensitivity.is_finite() && sensitivity > 0.0) {
            return Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "positive and finite"));
        }
        if !(1..1 << 32).contains(&max_positives) {
            return Err(Error::parameter("max_positives", max_positives, "an integer from 1 to 2**32 - 1"));
        }
        let (grid, noise) = noise(epsilon.get(), sensitivity, max_positives, monotonic).ok_or_else(|| {
            let allowed = format!(
                "such that sensitivity/epsilon is below 2**900 and, in steps of the grid, in range (sensitivity is {sensitivity:?})"
            );
            Error::parameter("epsilon", format!("{:?}", epsilon.get()), allowed)
        })?;
        Ok(Self { epsilon, threshold, sensitivity, max_positives, monotonic, grid, noise: noise.map(Arc::new) })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.get()
    }

    /// The threshold.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The most that a value changes.
    #[must_use]
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// How many positive answers a run gives.
    #[must_use]
    pub fn max_positives(&self) -> u64 {
        self.max_positives
    }

    /// Whether all values change in the same direction.
    #[must_use]
    pub fn is_monotonic(&self) -> bool {
        self.monotonic
    }

    /// The granularity of the grid.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.grid.granularity()
    }

    /// The scales of the noise of the threshold and of the noise of a value, in their unit.
    #[must_use]
    pub fn scales(&self) -> [f64; 2] {
        self.noise.each_ref().map(|noise| noise.scale().ratio().to_f64() * self.granularity())
    }

    /// Starts a run: draws the noise of the threshold, and spends epsilon.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn start(&self) -> Result<Run, Error> {
        self.start_with(&mut SecureRng::new()?)
    }

    /// Starts a run with noise from `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn start_with<R: TryCryptoRng + ?Sized>(&self, rng: &mut R) -> Result<Run, Error> {
        let mut noise = Wiped::new(1);
        self.noise[0].fill_with(&mut noise, rng)?;
        Ok(Run { mechanism: self.clone(), noise, positives: 0, process: ProcessMark::new()? })
    }
}

impl Run {
    /// The number of positive answers so far.
    #[must_use]
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// Whether it has given all its positive answers.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.positives == self.mechanism.max_positives
    }

    /// Whether `value`, with noise, is at least the threshold with its noise.
    ///
    /// # Errors
    /// [`Error::Halted`] when the run is halted, or was started by another process; [`Error::Data`] when the value is not
    /// finite; [`Error::Randomness`].
    pub fn is_above(&mut self, value: f64) -> Result<bool, Error> {
        self.is_above_with(value, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Run::is_above`].
    pub fn is_above_with<R: TryCryptoRng + ?Sized>(&mut self, value: f64, rng: &mut R) -> Result<bool, Error> {
        if !self.process.is_current() {
            return Err(Error::Halted(
                "a run cannot go on in another process than the one that started it: start another run, which costs epsilon again"
                    .into(),
            ));
        }
        if self.is_halted() {
            let max_positives = self.mechanism.max_positives;
            return Err(Error::Halted(format!(
                "this run has given its max_positives={max_positives} positive answers: start another run, which costs epsilon again"
            )));
        }
        if !declassify(Reason::Refusal, all_finite(&[value])) {
            return Err(Error::data("value", "must be finite: no NaN and no infinity"));
        }
        let mut noise = Wiped::new(1);
        self.mechanism.noise[1].fill_with(&mut noise, rng)?;
        let steps = self.mechanism.grid.steps_between(&self.mechanism.threshold, &value)?;
        let [steps, noise, threshold_noise] = [steps, noise[0], self.noise[0]].map(i128::from);
        let above = steps.wrapping_add(noise).wrapping_sub(threshold_noise) >= 0;
        let above = declassify(Reason::Answer, above);
        self.positives += u64::from(above);
        Ok(above)
    }
}

/// The grid, and the noise of the threshold and of a value, in its steps.
fn noise(epsilon: f64, sensitivity: f64, max_positives: u64, monotonic: bool) -> Option<(Grid, [DiscreteLaplace; 2])> {
    // Each positive answer costs in proportion to the shift of its comparison between neighbours.
    let shifts = u128::from(max_positives) * if monotonic { 1 } else { 2 };
    // The split that minimises the variance of the difference of the two noises: 1 to shifts^(2/3).
    let share = (f64::from(PARTS) / (1.0 + (shifts as f64).powf(2.0 / 3.0))).round().clamp(1.0, f64::from(PARTS - 1));
    let shares = [share as u32, PARTS - share as u32].map(u128::from);
    let largest = shifts as f64 * f64::from(PARTS) / shares[1] as f64 * (sensitivity / epsilon);
    let grid = Grid::at_least(RealScale::from_f64(largest)?.ceil_log2() - STEPS_EXPONENT)?;
    let steps = grid.steps_vartime(sensitivity)?;
    let epsilon = Ratio::from_f64(epsilon)?;
    let noise = |shifts: u128, share: u128| {
        let steps = steps.checked_mul(shifts)?.checked_mul(PARTS.into())?;
        Some(samplers::DiscreteLaplace::new(Scale::on_grid(Ratio::new(steps, share)?.checked_div(epsilon)?)?))
    };
    Some((grid, [noise(1, shares[0])?, noise(shifts, shares[1])?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    /// The comparison, redone with the same noise.
    #[test]
    fn a_value_is_above_when_its_noisy_excess_is() {
        let mechanism = AboveThreshold::new(1.0, 10.0, 1.0, u32::MAX.into(), false).unwrap();
        let seeded = |seed| SeededRng::new(seed).unwrap();
        let g = mechanism.granularity();
        for seed in 0..200 {
            let mut run = mechanism.start_with(&mut seeded(seed)).unwrap();
            let threshold_noise = mechanism.noise[0].sample_with(&mut seeded(seed)).unwrap();
            let noise = mechanism.noise[1].sample_with(&mut seeded(seed + 1)).unwrap();
            let edge = 10.0 + (threshold_noise - noise) as f64 * g;
            for (value, expected) in [(edge, true), (edge - g, false), (1e300, true), (-1e300, false)] {
                assert_eq!(run.is_above_with(value, &mut seeded(seed + 1)), Ok(expected), "{seed} {value}");
            }
        }
    }

    #[test]
    fn a_run_halts_and_stays_in_its_process() {
        let mechanism = AboveThreshold::new(10.0, 0.0, 1.0, 2, false).unwrap();
        let mut run = mechanism.start().unwrap();
        assert_eq!(run.is_above(-1e9), Ok(false));
        assert_eq!((run.is_above(1e9), run.is_halted()), (Ok(true), false));
        assert_eq!((run.is_above(1e9), run.is_halted(), run.positives()), (Ok(true), true, 2));
        let message = run.is_above(-1e9).unwrap_err().to_string();
        assert!(message.starts_with("this run has given its max_positives=2 positive answers"), "{message}");
        let mut inherited = mechanism.start().unwrap();
        inherited.process = ProcessMark::of_another();
        assert!(matches!(inherited.is_above(0.0), Err(Error::Halted(_))));
    }

    #[test]
    fn bad_input_is_named_and_nothing_is_drawn() {
        let make = |epsilon, threshold, sensitivity, max_positives| {
            AboveThreshold::new(epsilon, threshold, sensitivity, max_positives, false).unwrap_err().to_string()
        };
        for (message, start) in [
            (make(0.0, 0.0, 1.0, 1), "epsilon must be positive and finite, got 0.0"),
            (make(1.0, f64::NAN, 1.0, 1), "threshold must be finite, got NaN"),
            (make(1.0, 0.0, 0.0, 1), "sensitivity must be positive and finite, got 0.0"),
            (make(1.0, 0.0, 1.0, 0), "max_positives must be an integer from 1 to 2**32 - 1, got 0"),
            (make(1e-300, 0.0, 1.0, 1), "epsilon must be such that"),
        ] {
            assert!(message.starts_with(start), "{message}");
        }
        let mechanism = AboveThreshold::new(1.0, 0.0, 1.0, 1, false).unwrap();
        let mut run = mechanism.start().unwrap();
        let refused = run.is_above_with(f64::INFINITY, &mut ScriptedRng::new([]));
        assert_eq!(refused, Err(Error::data("value", "must be finite: no NaN and no infinity")));
        assert!(matches!(run.is_above_with(0.0, &mut ScriptedRng::new([])), Err(Error::Randomness(_))));
        assert!(mechanism.start_with(&mut ScriptedRng::new([])).is_err());
    }
}
