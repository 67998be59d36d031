#![doc = include_str!("sum.md")]

use std::sync::Arc;

use dpnoise_kernels::arch::columns as kernel;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;

use super::column::Column;
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
/// let total = hours.release(&[40.0, 37.5, f64::NAN, 168.0], 1)?;
/// # assert!(total.is_finite());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sum {
    epsilon: Epsilon,
    bounds: (f64, f64),
    relation: Relation,
    /// As how many steps a missing value counts.
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
        let [low, high, middle] = on_grid.map(|bound| (bound / grid.granularity()) as i64); // exact
        let steps = match relation {
            Relation::AddRemove => low.unsigned_abs().max(high.unsigned_abs()),
            Relation::Substitute => high.abs_diff(low),
        };
        let Some(sensitivity) = Ratio::new(steps.into(), 1) else {
            return refused(format!("so fine that the bounds {lower:?} and {upper:?} differ on the grid"));
        };
        let scale = Ratio::from_f64(epsilon.get()).and_then(|epsilon| sensitivity.checked_div(epsilon));
        let scale = scale.and_then(Scale::on_grid).ok_or_else(out_of_range)?;
        let missing = if relation == Relation::AddRemove { 0 } else { middle };
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

    /// Releases the sum of `values`, a NaN being a missing value. Each value is read once.
    ///
    /// Under [`Relation::Substitute`] up to `threads` threads share the values. Under [`Relation::AddRemove`] this many
    /// threads are started, at most one for each processor, for any number of values: the number of rows is private,
    /// and one more thread for one more row would reveal it.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn release<'a>(&self, values: impl Into<Column<'a>>, threads: usize) -> Result<f64, Error> {
        self.release_with(values, threads, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Sum::release`].
    pub fn release_with<'a, R: TryCryptoRng + ?Sized>(
        &self,
        values: impl Into<Column<'a>>,
        threads: usize,
        rng: &mut R,
    ) -> Result<f64, Error> {
        let values = values.into();
        self.release_sum(self.sum(values, self.threads(values.len(), threads))?, rng)
    }

    /// The exact sum in steps of the grid, on `count` threads; it cannot overflow.
    fn sum(&self, values: Column<'_>, count: usize) -> Result<i128, Error> {
        let range = self.range();
        let moments = kernel::Moments { distances: range, middle: 0.0, half: 0.0, centre: 0.0, squares: range };
        let totals = Totals::new(&moments, false, values, count)?;
        Ok(totals.distances.wrapping_add(self.of_missing(totals.missing)))
    }

    /// The bounds of values, and the grid.
    pub(super) fn range(&self) -> kernel::Range {
        kernel::Range::new(self.bounds, self.grid.exponent())
    }

    /// What so many missing values add to the sum.
    pub(super) fn of_missing(&self, missing: i64) -> i128 {
        i128::from(missing).wrapping_mul(self.missing.into())
    }

    /// The release of a sum in steps of the grid.
    pub(super) fn release_sum<R: TryCryptoRng + ?Sized>(&self, sum: i128, rng: &mut R) -> Result<f64, Error> {
        let noisy = sum.wrapping_add(self.noise.sample_with(rng)?.into());
        Ok(declassify(Reason::Answer, noisy) as f64 * self.granularity())
    }

    /// The number of threads to start for `rows` rows.
    pub(super) fn threads(&self, rows: usize, threads: usize) -> usize {
        match self.relation {
            Relation::AddRemove => threads.min(available_threads()).max(1),
            Relation::Substitute => threads.min(rows.div_ceil(THREAD_UNIT)).max(1),
        }
    }
}

/// The sums of a column: [`kernel::Sums`] of all its blocks.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) distances: i128,
    pub(super) squares: i128,
    pub(super) missing: i64,
}

impl Totals {
    /// The sums of `values`, on `count` threads, with those of squares if `squared`.
    pub(super) fn new(
        moments: &kernel::Moments,
        squared: bool,
        values: Column<'_>,
        count: usize,
    ) -> Result<Self, Error> {
        let instructions = crate::instruction_set::current()?;
        let totals = on_threads(parts(values, count), |part| {
            let mut totals = Self::default();
            let filled = part.for_each_block(f64::NAN, |_, block| {
                let sums = kernel::sums(instructions, moments, squared, block);
                let (distances, squares) = (sums.distances.into(), sums.squares.into());
                totals = totals.plus(Self { distances, squares, missing: sums.missing });
            });
            totals.missing = totals.missing.wrapping_sub(filled as i64);
            totals
        });
        Ok(totals.into_iter().fold(Self::default(), Self::plus))
    }

    fn plus(self, other: Self) -> Self {
        Self {
            distances: self.distances.wrapping_add(other.distances),
            squares: self.squares.wrapping_add(other.squares),
            missing: self.missing.wrapping_add(other.missing),
        }
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

/// The values in `count` parts of nearly equal size.
fn parts(values: Column<'_>, count: usize) -> Vec<Column<'_>> {
    let mut rest = values;
    let cut = |taken| {
        let part;
        (part, rest) = rest.split_at(rest.len() / (count - taken));
        part
    };
    (0..count).map(cut).collect()
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
                        assert_eq!(
                            BigInt::from(sum.sum(Column::F64(&values), threads).unwrap()),
                            expected,
                            "{bounds:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_number_of_threads_tells_nothing_of_the_number_of_rows_where_that_is_private() {
        let sum = |relation| Sum::new((0.0, 1.0), 1.0, relation, None).unwrap();
        for rows in [0, 1, 2, THREAD_UNIT, THREAD_UNIT + 1, 5 * THREAD_UNIT] {
            for threads in [1, 2, 3, usize::MAX] {
                let started = sum(Relation::AddRemove).threads(rows, threads);
                assert_eq!(started, threads.min(available_threads()));
                let values = vec![0.0; rows];
                let lengths: Vec<_> = parts(Column::F64(&values), started).iter().map(|part| part.len()).collect();
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
                let one = |sum: &Sum, value: f64| sum.sum(Column::F64(&[value]), 1).unwrap();
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
        let released = sum.release_with(&[1.0, 2.1, 40.0], 1, &mut SeededRng::new(5).unwrap()).unwrap();
        assert_eq!(released, 13.0 + noise as f64 * 0.25);
        assert!(sum.release_with(&[1.0], 1, &mut ScriptedRng::new([0; 8])).is_err());
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
