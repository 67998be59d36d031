#![doc = include_str!("sum.md")]

use core::mem;
use std::sync::Arc;

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;

use super::real_values::ceil_log2_of_quotient;
use crate::error::Error;
use crate::params::{Epsilon, Ratio, Relation, Scale};
use crate::rng::SecureRng;
use crate::samplers::grid::{Grid, Reach};
use crate::samplers::{self, Sampler, Symmetric};
use crate::threads::{available_threads, on_threads};

/// The sum of a column whose values are clamped to bounds, with discrete Laplace noise.
///
/// ```
/// use dpnoise_core::{mechanisms::Sum, params::Relation};
/// let hours = Sum::new((0.0, 80.0), 1.0, Relation::AddRemove, None)?;
/// let total = hours.release(&mut [40.0, 37.5, f64::NAN, 168.0], 1)?;
/// # assert!(total.is_finite());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sum {
    epsilon: Epsilon,
    bounds: (f64, f64),
    relation: Relation,
    /// How many steps a missing value is above the lower bound.
    missing: i64,
    grid: Grid,
    /// The sensitivity in steps of the grid.
    steps: u64,
    noise: Arc<samplers::DiscreteLaplace>,
}

/// A bound has at most 2^this steps, so that every clamped value is exact as a double.
const BOUND_EXPONENT: i32 = 52;

/// By default the noise's scale has at most this many steps, as a power of two.
const SCALE_EXPONENT: i32 = 40;

/// This many values of at most 2^52 steps add up to less than 2^63.
pub(super) const BLOCK: usize = 1 << 10;

/// Below this many values for each a further thread costs more than it gains.
const THREAD_UNIT: usize = 1 << 16;

impl Sum {
    /// The sum of values clamped to `bounds`, for `epsilon` under the neighbouring relation `relation`.
    /// The default granularity is the finest allowed: the noise's scale has at most 2^40 steps, and the bounds at most
    /// 2^52.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite or for which the noise is out of range, for
    /// bounds that are not finite and in order, and for a granularity that is not a power of two, too fine, or so
    /// coarse that both bounds are rounded to the same point.
    pub fn new(bounds: (f64, f64), epsilon: f64, relation: Relation, granularity: Option<f64>) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon)?;
        let (lower, upper) = bounds;
        let magnitude = magnitude(bounds)?;
        let length = match relation {
            Relation::AddRemove => magnitude,
            Relation::Substitute => upper / 2.0 - lower / 2.0, // half of it: twice may be too large for a double
        };
        let out_of_range = || {
            let allowed = format!(
                "such that the noise's scale is below 2**940 and, in steps of the grid, from 2**-40 to 2**44 (the bounds are {lower:?} and {upper:?})"
            );
            Error::parameter("epsilon", format!("{:?}", epsilon.get()), allowed)
        };
        let doubled = i32::from(relation == Relation::Substitute);
        let exponent =
            (ceil_log2_of_quotient(length, epsilon.get()) + doubled - SCALE_EXPONENT).max(finest_exponent(magnitude));
        let default = Grid::at_least(exponent).ok_or_else(out_of_range)?;
        let grid = granularity.map_or(Ok(default), Grid::new)?;
        let refused = |allowed| Err(Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed));
        if grid.granularity() < default.granularity() {
            return refused(format!("at least {:?} for these bounds and epsilon", default.granularity()));
        }
        let mut on_grid = [lower, upper, lower / 2.0 + upper / 2.0];
        grid.add_noise(Reach::Near, &mut on_grid, &[0; 3])?;
        let [low, high] = [on_grid[0], on_grid[1]].map(|bound| steps_of(bound, grid));
        let steps = match relation {
            Relation::AddRemove => low.unsigned_abs().max(high.unsigned_abs()),
            Relation::Substitute => high.abs_diff(low),
        };
        let Some(sensitivity) = Ratio::new(steps.into(), 1) else {
            return refused(format!("so fine that the bounds {lower:?} and {upper:?} differ on the grid"));
        };
        let scale = Ratio::from_f64(epsilon.get()).and_then(|epsilon| sensitivity.checked_div(epsilon));
        let scale = scale.and_then(Scale::on_grid).ok_or_else(out_of_range)?;
        let missing = if relation == Relation::AddRemove { -low } else { steps_of(on_grid[2], grid) - low };
        let noise = Arc::new(samplers::DiscreteLaplace::new(scale));
        Ok(Self { epsilon, bounds, relation, missing, grid, steps, noise })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.get()
    }

    /// The most that one person can change the sum on the grid.
    #[must_use]
    pub fn sensitivity(&self) -> f64 {
        self.steps as f64 * self.granularity()
    }

    /// The granularity of the grid.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.grid.granularity()
    }

    /// The scale of the noise.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.noise.scale().ratio().to_f64() * self.granularity()
    }

    /// The smallest t such that the noise is at most t with probability `level` or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    pub fn error(&self, level: f64) -> Result<f64, Error> {
        Ok(self.noise.magnitude_quantile(level)? * self.granularity())
    }

    /// Releases the sum of `values`, a NaN being a missing value. The values are overwritten.
    ///
    /// Under [`Relation::Substitute`] up to `threads` threads share the values. Under [`Relation::AddRemove`] this many
    /// threads are started, at most one for each processor, for any number of values: the number of rows is private,
    /// and one more thread for one more row would reveal it.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn release(&self, values: &mut [f64], threads: usize) -> Result<f64, Error> {
        self.release_with(values, threads, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Sum::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(
        &self,
        values: &mut [f64],
        threads: usize,
        rng: &mut R,
    ) -> Result<f64, Error> {
        let noisy =
            self.sum(values, self.threads(values.len(), threads))?.wrapping_add(self.noise.sample_with(rng)?.into());
        Ok(declassify(Reason::Answer, noisy) as f64 * self.granularity())
    }

    /// The exact sum in steps of the grid, on `count` threads; it cannot overflow. The values are overwritten with
    /// zeros.
    fn sum(&self, values: &mut [f64], count: usize) -> Result<i128, Error> {
        let sums = on_threads(parts(values, count), |part| {
            part.chunks_mut(BLOCK)
                .try_fold(0, |sum: i128, block| Ok(sum.wrapping_add(self.sum_of_block(block)?.into())))
        });
        sums.into_iter().try_fold(0, |total: i128, sum: Result<i128, Error>| Ok(total.wrapping_add(sum?)))
    }

    /// The number of threads to start for `rows` rows.
    fn threads(&self, rows: usize, threads: usize) -> usize {
        match self.relation {
            Relation::AddRemove => threads.min(available_threads()).max(1),
            Relation::Substitute => threads.min(rows.div_ceil(THREAD_UNIT)).max(1),
        }
    }

    fn sum_of_block(&self, values: &mut [f64]) -> Result<i64, Error> {
        let missing = clamp_and_round(values, self.bounds, self.grid)?;
        let sum = values.iter().map(|&value| steps_of(value, self.grid)).fold(0, i64::wrapping_add);
        values.fill(0.0);
        Ok(sum.wrapping_add(missing.wrapping_mul(self.missing)))
    }
}

/// The larger magnitude of the bounds.
///
/// # Errors
/// [`Error::Parameter`] for bounds that are not finite and in order.
pub(super) fn magnitude((lower, upper): (f64, f64)) -> Result<f64, Error> {
    if !(lower.is_finite() && upper.is_finite() && lower < upper) {
        let allowed = "two finite numbers, the lower one first";
        return Err(Error::parameter("bounds", format!("({lower:?}, {upper:?})"), allowed));
    }
    Ok(lower.abs().max(upper.abs()))
}

/// The binary logarithm of the finest granularity for bounds of this magnitude.
pub(super) fn finest_exponent(magnitude: f64) -> i32 {
    ceil_log2_of_quotient(magnitude, 1.0) - BOUND_EXPONENT
}

/// Clamps each value of a block to the bounds and rounds it to the grid, half up. A NaN becomes the lower bound, since a
/// choice of a third number would be a jump; returns how many there are.
pub(super) fn clamp_and_round(block: &mut [f64], (lower, upper): (f64, f64), grid: Grid) -> Result<i64, Error> {
    // A pass of its own: in one loop with the next the compiler makes a jump of it.
    let missing = block.iter().map(|value| i64::from(value.is_nan())).fold(0, i64::wrapping_add);
    for value in &mut *block {
        *value = value.max(lower).min(upper);
    }
    grid.add_noise(Reach::Near, block, &[0; BLOCK][..block.len()])?;
    Ok(missing)
}

/// The values in `count` parts of nearly equal size.
fn parts(values: &mut [f64], count: usize) -> Vec<&mut [f64]> {
    let mut rest = values;
    let cut = |taken| {
        let length = rest.len() / (count - taken);
        let part;
        (part, rest) = mem::take(&mut rest).split_at_mut(length);
        part
    };
    (0..count).map(cut).collect()
}

/// The steps of a value on the grid, at most 2^52 in magnitude.
pub(super) fn steps_of(value: f64, grid: Grid) -> i64 {
    // 1.5 * 2^52: added to a number of at most 2^51 in magnitude, it rounds that to an integer, which is then in the low
    // bits of the sum. So the number is halved first, and the rest added. A cast would compare the number with the ends
    // of its range, by a jump.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let in_low_bits = |sum: f64, zero: f64| sum.to_bits().wrapping_sub(zero.to_bits()).cast_signed();
    let half = value * (0.5 * grid.granularity().recip()); // exact, by a power of two
    let whole = half + ROUNDER;
    let rest = half - (whole - ROUNDER); // -1/2, 0 or 1/2
    let halves = in_low_bits(rest + 0.5 * ROUNDER, 0.5 * ROUNDER);
    in_low_bits(whole, ROUNDER).wrapping_mul(2).wrapping_add(halves)
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    /// The definition in exact fractions.
    fn reference(sum: &Sum, values: &[f64]) -> BigInt {
        let exact = |x: f64| BigRational::from_float(x).unwrap();
        let half = BigRational::new(1.into(), 2.into());
        let rounded = |x: f64| (exact(x) / exact(sum.granularity()) + &half).floor().to_integer();
        let (lower, upper) = sum.bounds;
        let missing = if sum.relation == Relation::AddRemove { 0.0 } else { lower / 2.0 + upper / 2.0 };
        values.iter().map(|&x| rounded(if x.is_nan() { missing } else { x.clamp(lower, upper) })).sum()
    }

    fn columns() -> Vec<Vec<f64>> {
        let wild = vec![0.0, -0.0, 5e-324, -1e-300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300, -3.5, 0.1, 7.3];
        let long = (0..5000).map(|i| f64::from(i) * 0.01 - 20.0).collect();
        vec![vec![], vec![0.3], wild.repeat(40), long]
    }

    #[test]
    fn the_sum_is_exact_in_any_order_and_on_any_number_of_threads() {
        for relation in [Relation::AddRemove, Relation::Substitute] {
            for (bounds, granularity) in [
                ((0.0, 1.0), None),
                ((-1e9, 1e9), None),
                ((1e15, 1e15 + 2.0), None),
                ((-3.0, 7.0), Some(0.25)),
                ((-1e-300, 1e-300), None),
                ((f64::MIN / 4.0, f64::MAX / 4.0), None),
            ] {
                let Ok(sum) = Sum::new(bounds, 0.7, relation, granularity) else {
                    assert!(bounds.1 > 1e200);
                    continue;
                };
                for column in columns() {
                    let expected = reference(&sum, &column);
                    for threads in [1, 3] {
                        let mut values = column.clone();
                        values.reverse();
                        assert_eq!(BigInt::from(sum.sum(&mut values, threads).unwrap()), expected, "{bounds:?}");
                        assert!(values.iter().all(|&value| value == 0.0), "no value is left behind");
                    }
                }
            }
        }
    }

    #[test]
    fn steps_are_whole_numbers_up_to_2_to_the_52() {
        let grid = Grid::new(0.25).unwrap();
        let ends = [0, 1, 2, 3, 1000, (1 << 51) - 1, 1 << 51, (1 << 51) + 1, (1 << 52) - 1, 1 << 52];
        for steps in ends.into_iter().flat_map(|steps: i64| [steps, -steps]) {
            assert_eq!(steps_of(steps as f64 * 0.25, grid), steps);
        }
    }

    #[test]
    fn the_number_of_threads_tells_nothing_of_the_number_of_rows_where_that_is_private() {
        let sum = |relation| Sum::new((0.0, 1.0), 1.0, relation, None).unwrap();
        for rows in [0, 1, 2, THREAD_UNIT, THREAD_UNIT + 1, 5 * THREAD_UNIT] {
            for threads in [1, 2, 3, usize::MAX] {
                let started = sum(Relation::AddRemove).threads(rows, threads);
                assert_eq!(started, threads.min(available_threads()));
                let mut values = vec![0.0; rows];
                let lengths: Vec<_> = parts(&mut values, started).iter().map(|part| part.len()).collect();
                assert_eq!((lengths.len(), lengths.iter().sum()), (started, rows));
                assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
            }
        }
        assert_eq!([THREAD_UNIT, THREAD_UNIT + 1].map(|rows| sum(Relation::Substitute).threads(rows, 3)), [1, 2]);
    }

    /// Every pair of values, and every value against none: no change of the sum exceeds the sensitivity, and one
    /// reaches it.
    #[test]
    fn the_sensitivity_holds_and_is_reached() {
        let values = [f64::NAN, f64::NEG_INFINITY, -1e300, -5.2, -1.0, -0.0, 0.05, 0.1, 0.3, 1.0, 6.9, 7.0, 1e300];
        for bounds in [(-5.2, 7.0), (0.1, 0.3), (-7.0, -1.0), (1e6, 1e6 + 1.0)] {
            for granularity in [None, Some(0.125)] {
                let one = |sum: &Sum, value: f64| sum.sum(&mut [value], 1).unwrap();
                let sum = Sum::new(bounds, 1.0, Relation::AddRemove, granularity).unwrap();
                let moved = values.iter().map(|&x| one(&sum, x).unsigned_abs()).max().unwrap();
                assert_eq!(moved, sum.steps.into(), "{bounds:?} add/remove");
                let sum = Sum::new(bounds, 1.0, Relation::Substitute, granularity).unwrap();
                let pairs = values.iter().flat_map(|&x| values.iter().map(move |&y| (x, y)));
                let moved = pairs.map(|(x, y)| (one(&sum, x) - one(&sum, y)).unsigned_abs()).max().unwrap();
                assert_eq!(moved, sum.steps.into(), "{bounds:?} substitute");
            }
        }
    }

    #[test]
    fn the_release_is_the_exact_noisy_sum_rounded_once() {
        let sum = Sum::new((0.0, 10.0), 0.5, Relation::AddRemove, Some(0.25)).unwrap();
        assert_eq!((sum.sensitivity(), sum.scale(), sum.granularity()), (10.0, 20.0, 0.25));
        let noise = sum.noise.sample_with(&mut SeededRng::new(5).unwrap()).unwrap();
        let released = sum.release_with(&mut [1.0, 2.1, 40.0], 1, &mut SeededRng::new(5).unwrap()).unwrap();
        assert_eq!(released, 13.0 + noise as f64 * 0.25);
        assert!(sum.release_with(&mut [1.0], 1, &mut ScriptedRng::new([0; 8])).is_err());
    }

    #[test]
    fn bad_parameters_are_named() {
        let start = |epsilon, bounds, granularity| {
            Sum::new(bounds, epsilon, Relation::Substitute, granularity).unwrap_err().to_string()
        };
        assert!(start(0.0, (0.0, 1.0), None).starts_with("epsilon must be positive and finite, got 0.0"));
        let bounds = "bounds must be two finite numbers, the lower one first, got ";
        assert_eq!(start(1.0, (1.0, 1.0), None), format!("{bounds}(1.0, 1.0)"));
        assert_eq!(start(1.0, (0.0, f64::NAN), None), format!("{bounds}(0.0, NaN)"));
        assert!(start(1.0, (0.0, 1.0), Some(0.3)).starts_with("granularity must be a power of two"));
        assert!(start(1.0, (0.0, 1.0), Some(2f64.powi(-60))).starts_with("granularity must be at least"));
        assert!(start(1.0, (0.0, 0.25), Some(1.0)).starts_with("granularity must be so fine that the bounds"));
        assert!(start(1e-300, (0.0, 1.0), None).starts_with("epsilon must be such that"));
        assert!(start(1e-290, (0.0, 1e300), None).starts_with("epsilon must be such that"));
    }
}
