#![doc = include_str!("quantile.md")]

use dpnoise_kernels::arch::secrecy::{Reason, declassify, poison};
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;

use super::sum::{BLOCK, clamp_and_round, finest_exponent, magnitude, steps_of};
use super::{Exponential, Selector};
use crate::error::Error;
use crate::params::{Ratio, Relation};
use crate::rng::{SecureRng, Wiped};
use crate::samplers::{Grid, Runs};

/// A quantile of a column whose values are clamped to bounds, by the exponential mechanism.
///
/// ```
/// use dpnoise_core::{mechanisms::Quantile, params::{Ratio, Relation}};
/// let half = Ratio::new(1, 2).unwrap();
/// let median = Quantile::new(half, (0.0, 100.0), 1.0, Relation::AddRemove, None)?;
/// let age = median.release(&mut [23.0, 45.0, f64::NAN, 31.0, 67.0])?;
/// assert!((0.0..=100.0).contains(&age));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Quantile {
    q: (i64, i64),
    grid: Grid,
    /// The first and the last multiple of the granularity within the bounds, in steps.
    ends: (i64, i64),
    choice: Exponential,
}

/// The largest denominator of a quantile. With it the scores of 2^33 rows are exact as doubles.
const MAX_DENOMINATOR: u128 = 1_000_000;

impl Quantile {
    /// The `q`-quantile of values clamped to `bounds`, for `epsilon` under the neighbouring relation `relation`.
    /// By default the granularity is the finest allowed: the larger bound has at most 2^52 steps.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a q that is not below 1 or has a denominator above 10^6, an epsilon that is not positive
    /// and finite or out of range, bounds that are not finite and in order, and a granularity that is not a power of
    /// two, too fine, or has fewer than two multiples within the bounds.
    pub fn new(
        q: Ratio,
        bounds: (f64, f64),
        epsilon: f64,
        relation: Relation,
        granularity: Option<f64>,
    ) -> Result<Self, Error> {
        if q.numerator() >= q.denominator() || q.denominator() > MAX_DENOMINATOR {
            let allowed = "a fraction between 0 and 1, both excluded, with a denominator of at most 10**6";
            return Err(Error::parameter("q", format!("{}/{}", q.numerator(), q.denominator()), allowed));
        }
        let (part, whole) = (q.numerator() as i64, q.denominator() as i64);
        let magnitude = magnitude(bounds)?;
        let default = Grid::at_least(finest_exponent(magnitude)).ok_or_else(|| {
            let allowed = "such that the larger one is at most 2**952 in magnitude";
            Error::parameter("bounds", format!("{bounds:?}"), allowed)
        })?;
        let grid = granularity.map_or(Ok(default), Grid::new)?;
        let refused = |allowed| Err(Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed));
        if grid.granularity() < default.granularity() {
            return refused(format!("at least {:?} for these bounds", default.granularity()));
        }
        let ends = (ceil_steps(bounds.0, grid), -ceil_steps(-bounds.1, grid));
        if ends.0 >= ends.1 {
            return refused("so fine that two multiples of it are within the bounds".into());
        }
        let sensitivity = match relation {
            Relation::AddRemove => part.max(whole - part),
            Relation::Substitute => whole,
        };
        let choice = Exponential::new(epsilon, sensitivity as f64, false)?;
        Ok(Self { q: (part, whole), grid, ends, choice })
    }

    /// The exponential mechanism that chooses, on scores that are multiplied by the denominator of q.
    #[must_use]
    pub fn choice(&self) -> &Selector {
        &self.choice
    }

    /// The granularity: a release is a multiple of it.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.grid.granularity()
    }

    /// A bound on the distance in rows of a release from the quantile, with probability `level` or more: where of n
    /// values L are below it and G above it, on the distance of q n from the interval [L, n - G]; in floating point.
    ///
    /// The values are those clamped to the bounds and rounded to the grid.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    pub fn rank_error(&self, level: f64) -> Result<f64, Error> {
        Ok(self.choice.error(self.ends.0.abs_diff(self.ends.1) + 1, level)? / self.q.1 as f64)
    }

    /// Releases the quantile of `values`, a NaN being a missing value, which is left out. The values are overwritten.
    ///
    /// The time depends on the values, because they are sorted.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Allocation`]; [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn release(&self, values: &mut [f64]) -> Result<f64, Error> {
        self.release_with(values, &mut SecureRng::new()?)
    }

    /// The same with randomness from `rng`.
    ///
    /// # Errors
    /// As for [`Quantile::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(&self, values: &mut [f64], rng: &mut R) -> Result<f64, Error> {
        let (mut steps, missing) = self.steps(values)?;
        sort_vartime(&mut steps);
        let step = self.choose(&steps, missing, rng)?;
        Ok(declassify(Reason::Answer, step) as f64 * self.granularity())
    }

    /// The steps of all values, where a missing value counts as the first end, between the two ends; and the number of
    /// missing values. The values are overwritten with zeros.
    fn steps(&self, values: &mut [f64]) -> Result<(Wiped<i64>, i64), Error> {
        let bounds = (self.value(self.ends.0), self.value(self.ends.1));
        let (mut steps, mut missing) = (Wiped::try_new(values.len() + 2)?, 0i64);
        steps[0] = self.ends.0;
        steps[values.len() + 1] = self.ends.1;
        for (values, steps) in values.chunks_mut(BLOCK).zip(steps[1..].chunks_mut(BLOCK)) {
            missing = missing.wrapping_add(clamp_and_round(values, bounds, self.grid)?);
            for (value, step) in values.iter_mut().zip(steps) {
                *step = steps_of(core::mem::take(value), self.grid);
            }
        }
        Ok((steps, missing))
    }

    /// Chooses a multiple of the granularity, given the ends and the values between them in order, with so many missing
    /// values first.
    fn choose<R: TryCryptoRng + ?Sized>(&self, steps: &[i64], missing: i64, rng: &mut R) -> Result<i64, Error> {
        let (part, whole) = self.q;
        let gaps = steps.len() - 1;
        let rows = (gaps as i64).wrapping_sub(1).wrapping_sub(missing);
        let target = part.wrapping_mul(rows).wrapping_add(whole.wrapping_mul(missing));
        let mut runs = Runs::new(gaps + 1)?;
        let mut lefts = 0u64;
        for (gap, ends) in steps.windows(2).enumerate() {
            let excess = whole.wrapping_mul(gap as i64).wrapping_sub(target);
            lefts = lefts.wrapping_add(mask(excess <= 0) & 1);
            runs.scores[gap] = -(excess.wrapping_abs() as f64);
            runs.lengths[gap] = ends[1].wrapping_sub(ends[0]);
        }
        runs.lengths[gaps] = 1; // the value at the quantile, of score 0
        let (run, place) = self.choice.selection().softmax_of_runs(rng, self.choice.grid(), runs)?;
        let is_left = mask(run < lefts);
        let is_value = mask(run == gaps as u64);
        // A gap on the left begins with its lower end, one on the right follows upon it.
        let lower = lefts & is_value | run & !is_value;
        let offset = place.wrapping_add(!is_left & !is_value & 1);
        let start = steps.iter().zip(0..).fold(0, |found, (step, i)| found | step & mask(i == lower).cast_signed());
        Ok(start.wrapping_add(offset.cast_signed()))
    }

    /// The value of so many steps.
    fn value(&self, steps: i64) -> f64 {
        steps as f64 * self.granularity()
    }
}

/// The smallest whole number of steps that is at least `x`, for a public x of at most 2^52 steps.
fn ceil_steps(x: f64, grid: Grid) -> i64 {
    let steps = (x * grid.granularity().recip()).ceil() as i64; // exact but for an underflow
    if x > 0.0 { steps.max(1) } else { steps }
}

/// Sorts the values, in a time that depends on them.
fn sort_vartime(steps: &mut [i64]) {
    for step in &mut *steps {
        *step = declassify(Reason::Sorting, *step);
    }
    steps.sort_unstable();
    poison(steps);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    fn quantile(q: (u128, u128), bounds: (f64, f64), granularity: Option<f64>) -> Result<Quantile, Error> {
        Quantile::new(Ratio::new(q.0, q.1).unwrap(), bounds, 40.0, Relation::AddRemove, granularity)
    }

    /// How far q n is from [L, n - G], in rows.
    fn distance(values: &[f64], q: f64, released: f64) -> f64 {
        let present: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let count = |keep: &dyn Fn(f64) -> bool| present.iter().filter(|&&value| keep(value)).count() as f64;
        let target = q * present.len() as f64;
        (count(&|value| value < released) - target).max(target - count(&|value| value <= released)).max(0.0)
    }

    #[test]
    fn releases_are_near_the_quantile_however_wide_the_bounds_are() {
        let mut rng = SeededRng::new(7).unwrap();
        let ages: Vec<f64> = (0..3000).map(|i| f64::from(18 + i * 7919 % 60)).chain([f64::NAN; 40]).collect();
        let ties: Vec<f64> = (0..1000).map(|i| if i % 10 < 6 { 1.0 } else { 2.0 }).collect();
        let offset: Vec<f64> = (0..500).map(|i| 1.8e9 + f64::from(i)).collect();
        for values in [&ages, &ties, &offset, &vec![], &vec![f64::NAN; 3], &vec![f64::INFINITY, f64::NEG_INFINITY]] {
            for upper in [3e9, 1e12, 1e15] {
                for (part, whole) in [(1, 2), (1, 10), (999_999, 1_000_000)] {
                    let quantile = quantile((part, whole), (-1.0, upper), None).unwrap();
                    let q = part as f64 / whole as f64;
                    let released = quantile.release_with(&mut values.clone(), &mut rng).unwrap();
                    assert!((-1.0..=upper).contains(&released) && released % quantile.granularity() == 0.0);
                    let clamped: Vec<f64> = values.iter().map(|value| value.max(-1.0).min(upper)).collect();
                    let clamped: Vec<f64> =
                        clamped.into_iter().zip(values).filter(|(_, v)| !v.is_nan()).map(|(c, _)| c).collect();
                    assert!(distance(&clamped, q, released) <= quantile.rank_error(1.0 - 1e-13).unwrap());
                }
            }
        }
    }

    #[test]
    fn values_are_overwritten_and_candidates_lie_within_the_bounds() {
        for (bounds, granularity, ends) in [
            ((0.0, 100.0), None, (0, 100 << 45)),
            ((0.3, 2.6), Some(1.0), (1, 2)),
            ((-2.6, -0.3), Some(0.5), (-5, -1)),
            ((5e-324, 1e280), Some(2f64.powi(900)), (1, (1e280 / 2f64.powi(900)) as i64)),
        ] {
            let quantile = quantile((1, 3), bounds, granularity).unwrap();
            assert_eq!(quantile.ends, ends, "{bounds:?}");
            let mut values = [1.0, f64::NAN, -1e308, 0.5];
            quantile.release(&mut values).unwrap();
            assert_eq!(values, [0.0; 4]);
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |q, bounds, granularity| quantile(q, bounds, granularity).unwrap_err().to_string();
        assert!(message((1, 1), (0.0, 1.0), None).starts_with("q must be a fraction between 0 and 1, both excluded"));
        assert!(message((1, 1_000_001), (0.0, 1.0), None).ends_with("got 1/1000001"));
        assert!(
            message((1, 2), (1.0, 0.0), None).starts_with("bounds must be two finite numbers, the lower one first")
        );
        assert!(message((1, 2), (0.0, 1e300), None).starts_with("bounds must be such that the larger one is at most"));
        assert!(message((1, 2), (0.0, 1.0), Some(0.3)).starts_with("granularity must be a power of two"));
        assert!(message((1, 2), (0.0, 1.0), Some(4.0)).starts_with("granularity must be so fine that two multiples"));
        let fine = message((1, 2), (0.0, 1.0), Some(2f64.powi(-60)));
        assert_eq!(
            fine,
            format!("granularity must be at least {:?} for these bounds, got {:?}", 2f64.powi(-52), 2f64.powi(-60))
        );
        let median = quantile((1, 2), (0.0, 1.0), None).unwrap();
        assert!(median.rank_error(1.0).unwrap_err().to_string().starts_with("level must be between 0 and 1"));
        assert!(matches!(median.release_with(&mut [0.5], &mut ScriptedRng::new([])), Err(Error::Randomness(_))));
    }
}
