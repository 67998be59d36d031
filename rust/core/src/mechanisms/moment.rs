//! Means and variances of columns whose values are clamped to bounds, by noisy sums. docs/proofs/queries.md proves that they
//! are private.

use dpnoise_kernels::arch::columns as kernel;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;

use super::DiscreteLaplace;
use super::column::Column;
use super::sum::{Sum, Totals, magnitude};
use crate::error::Error;
use crate::params::{Epsilon, Relation, check_level};
use crate::rng::SecureRng;

/// The mean or the variance of a column: the noisy sum of the values' distances from the middle of the bounds, for a
/// variance also of their squares, divided by the number of values, which under [`Relation::AddRemove`] is noisy, too.
///
/// ```
/// use dpnoise_core::{mechanisms::Moment, params::Relation};
/// let age = Moment::mean((0.0, 100.0), 1.0, Relation::AddRemove)?;
/// let (mean, rows) = age.release(&[23.0, 45.0, f64::NAN, 31.0], 1)?;
/// let error = age.error_of_release(rows.unwrap(), 0.95)?;
/// assert!((0.0..=100.0).contains(&mean) && error > 0.0);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Moment {
    epsilon: Epsilon,
    bounds: (f64, f64),
    middle: f64,
    /// The largest distance from the middle.
    half: f64,
    distances: Sum,
    /// The sum of the squares of a variance, less the middle of their range.
    squares: Option<Sum>,
    /// The noise of the number of values, if that is private.
    count: Option<DiscreteLaplace>,
}

/// What floating-point operations on a bound of the error round off at most, and far more.
const ROUNDED: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

impl Moment {
    /// The mean of values clamped to `bounds`, for `epsilon` under the neighbouring relation `relation`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for bounds that are not finite and in order, and for an epsilon that is not positive and finite
    /// or for which the noise is out of range.
    pub fn mean(bounds: (f64, f64), epsilon: f64, relation: Relation) -> Result<Self, Error> {
        Self::new(bounds, epsilon, relation, false)
    }

    /// Their variance: the mean squared distance from the mean.
    ///
    /// # Errors
    /// As for [`Moment::mean`], and for bounds that are not 1e-120 to 1e150 apart.
    pub fn variance(bounds: (f64, f64), epsilon: f64, relation: Relation) -> Result<Self, Error> {
        Self::new(bounds, epsilon, relation, true)
    }

    fn new(bounds: (f64, f64), epsilon: f64, relation: Relation, squared: bool) -> Result<Self, Error> {
        magnitude(bounds)?;
        let (lower, upper) = bounds;
        let middle = lower / 2.0 + upper / 2.0;
        let half = (upper - middle).max(middle - lower);
        if squared && !(half > 1e-120 && half < 1e150) {
            return Err(Error::parameter("bounds", format!("{bounds:?}"), "1e-120 to 1e150 apart"));
        }
        let epsilon = Epsilon::new(epsilon)?;
        let is_private = relation == Relation::AddRemove;
        let share = share_of(epsilon.get(), 1 + u8::from(squared) + u8::from(is_private));
        // The error of a part would show a share of epsilon, and the bounds of a moment.
        let refused = |_| {
            let allowed = format!(
                "such that, shared by the sums and the count, the noise of each has a scale below 2**940 and, in steps of its grid, from 2**-40 to 2**40 (the bounds are {bounds:?})"
            );
            Error::parameter("epsilon", format!("{:?}", epsilon.get()), allowed)
        };
        let sum = |most: f64| Sum::new((-most, most), share, relation, None).map_err(refused);
        let distances = sum(half)?;
        // Squares are from 0 to half^2: less the middle of this range they need half the noise.
        let squares = if squared { Some(sum(half * half / 2.0)?) } else { None };
        let count = if is_private { Some(DiscreteLaplace::new(share, 1).map_err(refused)?) } else { None };
        Ok(Self { epsilon, bounds, middle, half, distances, squares, count })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.get()
    }

    /// The scale of the noise of the sum of distances.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.distances.scale()
    }

    /// A bound on the error that the noise makes for a column of `rows` values, with probability `level` or more, in floating
    /// point: at most the largest difference of two answers, which it is where the noisy number of values may be 0.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    pub fn error(&self, rows: u64, level: f64) -> Result<f64, Error> {
        self.bound(level, |counted| (rows as f64, rows as f64 - counted))
    }

    /// A bound on the error of an answer that was released with this number of `rows`, noisy under [`Relation::AddRemove`] and
    /// else the true one: as [`Moment::error`], but it follows from what is released alone.
    ///
    /// # Errors
    /// As for [`Moment::error`].
    pub fn error_of_release(&self, rows: i64, level: f64) -> Result<f64, Error> {
        self.bound(level, |counted| (rows as f64 + counted, rows as f64))
    }

    /// A bound on the error, given the largest number of values and the smallest noisy one for an error of that number.
    fn bound(&self, level: f64, numbers: impl Fn(f64) -> (f64, f64)) -> Result<f64, Error> {
        check_level(level)?;
        let parts = 1 + u8::from(self.squares.is_some()) + u8::from(self.count.is_some());
        let each = 1.0 - (1.0 - level) / f64::from(parts);
        let counted = self.count.as_ref().map_or(Ok(0.0), |count| count.error(each, 1))?;
        let (rows, divisor) = numbers(counted);
        // The sum is off by a, the count by c: (s + a) / (n + c) - s / n is (a - c s / n) / (n + c). What floats and the grid make
        // of a value, and of the answer, is less than 16 steps.
        let of = |sum: &Sum| -> Result<f64, Error> {
            let off = sum.error(each)? + 16.0 * rows * sum.granularity() + sum.range().bounds.1 * counted;
            Ok(if divisor > 0.0 { off / divisor } else { f64::INFINITY })
        };
        let mean = of(&self.distances)?;
        let (lower, upper) = self.bounds;
        let (error, widest) = match &self.squares {
            None => {
                let magnitude = lower.abs().max(upper.abs());
                (mean + (magnitude.next_up() - magnitude), upper - lower) // the middle is added in floats
            }
            Some(squares) => (of(squares)? + mean * (2.0 * self.half + mean), self.half * self.half),
        };
        Ok(error.min(widest) * ROUNDED)
    }

    /// Releases the moment of `values`, clamped to its range: the bounds for a mean, and 0 and the square of half their
    /// distance for a variance. A NaN is a missing value: under [`Relation::AddRemove`] it is left out, and under
    /// [`Relation::Substitute`] it counts as the middle of the bounds, with half of the largest squared distance.
    ///
    /// Beside it stands, under [`Relation::AddRemove`], the noisy number of values, which the same epsilon pays for.
    ///
    /// Each value is read once. The threads are those of [`Sum::release`].
    ///
    /// # Errors
    /// As for [`Sum::release`], and [`Error::Data`] without rows under [`Relation::Substitute`].
    pub fn release<'a>(&self, values: impl Into<Column<'a>>, threads: usize) -> Result<(f64, Option<i64>), Error> {
        self.release_with(values, threads, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Moment::release`].
    pub fn release_with<'a, R: TryCryptoRng + ?Sized>(
        &self,
        values: impl Into<Column<'a>>,
        threads: usize,
        rng: &mut R,
    ) -> Result<(f64, Option<i64>), Error> {
        let values = values.into();
        if values.len() == 0 && self.count.is_none() {
            return Err(Error::data("column", "must have rows"));
        }
        let centre = self.half * self.half / 2.0;
        let distances = kernel::Range { bounds: self.bounds, ..self.distances.range() };
        let squares = self.squares.as_ref().map_or(distances, Sum::range);
        let moments = kernel::Moments { distances, middle: self.middle, half: self.half, centre, squares };
        let threads = self.distances.threads(values.len(), threads);
        let totals = Totals::new(&moments, self.squares.is_some(), values, threads)?;
        let mut rows = None;
        if let Some(count) = &self.count {
            let mut present = [(values.len() as i64).wrapping_sub(totals.missing)];
            count.release_with(&mut present, rng)?;
            rows = Some(declassify(Reason::Answer, present[0]));
        }
        let mut noisy =
            |sum: &Sum, total: i128| sum.release_sum(total.wrapping_add(sum.of_missing(totals.missing)), rng);
        let distances = noisy(&self.distances, totals.distances)?;
        let squares = self.squares.as_ref().map(|sum| noisy(sum, totals.squares)).transpose()?;
        Ok((self.answer(distances, squares, rows.unwrap_or(values.len() as i64)), rows))
    }

    /// The answer that follows from noisy sums and from the number of values.
    fn answer(&self, distances: f64, squares: Option<f64>, rows: i64) -> f64 {
        let rows = rows.max(1) as f64;
        let mean = distances / rows;
        match squares {
            None => (self.middle + mean).clamp(self.bounds.0, self.bounds.1),
            Some(squares) => {
                let largest = self.half * self.half;
                (squares / rows + largest / 2.0 - mean * mean).clamp(0.0, largest)
            }
        }
    }
}

/// Epsilon divided by `parts`, rounded down: the parts add up to at most epsilon, exactly.
fn share_of(epsilon: f64, parts: u8) -> f64 {
    let share = epsilon / f64::from(parts);
    // With one rounding, the sign is that of the difference.
    if share.mul_add(f64::from(parts), -epsilon) > 0.0 { share.next_down() } else { share }
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;

    use super::*;
    use crate::rng::SeededRng;

    #[test]
    fn parts_of_epsilon_are_no_more_than_the_whole() {
        let exact = |x: f64| BigRational::from_float(x).unwrap();
        let mut smaller = 0;
        for epsilon in (1..400).map(|i| f64::from(i) / 37.0).chain([1.0, 0.1, 1e-3, 5e-324, 1e-320, 1e300]) {
            for parts in 1..=3u8 {
                let share = share_of(epsilon, parts);
                let whole = |share: f64| exact(share) * exact(f64::from(parts));
                assert!(whole(share) <= exact(epsilon) && whole(share.next_up()) > exact(epsilon), "{epsilon} {parts}");
                smaller += usize::from(share < epsilon / f64::from(parts));
            }
        }
        assert!(smaller > 0, "the control: dividing is not enough");
    }

    /// The definition in exact fractions, at an epsilon without noise: the moments are those of the values that are not
    /// missing, or of all of them.
    #[test]
    fn moments_are_those_of_clamped_values() {
        let column = [f64::NEG_INFINITY, 1.5, 7.25, f64::NAN, 3.0, 1e300, -2.0, f64::NAN, 6.0].repeat(300);
        for (relation, bounds) in [(Relation::AddRemove, (-1.0, 8.0)), (Relation::Substitute, (0.0, 6.5))] {
            let (lower, upper) = bounds;
            let (middle, half) = (f64::midpoint(lower, upper), (upper - lower) / 2.0);
            let present: Vec<f64> =
                column.iter().filter(|x| !x.is_nan()).map(|x: &f64| x.clamp(lower, upper)).collect();
            let missing = if relation == Relation::AddRemove { 0.0 } else { (column.len() - present.len()) as f64 };
            let rows = present.len() as f64 + missing;
            let mean = present.iter().map(|x| x - middle).sum::<f64>() / rows;
            let square =
                (present.iter().map(|x| (x - middle).powi(2)).sum::<f64>() + missing * half * half / 2.0) / rows;
            for (moment, expected) in [
                (Moment::mean(bounds, 1e6, relation), middle + mean),
                (Moment::variance(bounds, 1e6, relation), square - mean * mean),
            ] {
                let moment = moment.unwrap();
                for threads in [1, 3] {
                    let (released, _) = moment.release_with(&column, threads, &mut SeededRng::new(1).unwrap()).unwrap();
                    let bound = moment.error(rows as u64, 1.0 - 1e-12).unwrap();
                    assert!((released - expected).abs() <= bound && bound < 1e-3, "{released} {expected}");
                }
            }
        }
        let substitute = Moment::mean((0.0, 1.0), 1.0, Relation::Substitute).unwrap();
        assert_eq!(substitute.release(&[0.0; 0], 1).unwrap_err().to_string(), "column must have rows");
    }

    /// For every error of the count within its bound, and the largest errors of the sums and none, in exact fractions. The bound is
    /// nearly reached; one that takes the noisy count for the true one is exceeded: the control.
    #[test]
    fn errors_of_releases_are_bounded_by_what_is_released() {
        let exact = |x: f64| BigRational::from_float(x).unwrap();
        let (level, middle, half) = (0.9, 1.0, 4.0);
        let bounds = (middle - half, middle + half);
        let columns =
            (1..=6).flat_map(|rows| (0..=rows).map(move |low| [vec![-half; low], vec![half; rows - low]].concat()));
        let columns: Vec<Vec<f64>> = columns.chain([vec![0.0], vec![1.0, -half, 2.0]]).collect();
        for (new, parts, share) in [(Moment::mean as fn(_, _, _) -> _, 2.0, 0.999), (Moment::variance, 3.0, 0.6)] {
            let moment = new(bounds, 6.0, Relation::AddRemove).unwrap();
            let each = 1.0 - (1.0 - level) / parts;
            let counted = moment.count.as_ref().unwrap().error(each, 1).unwrap() as i64;
            let distances = moment.distances.error(each).unwrap();
            let squares = moment.squares.as_ref().map_or(0.0, |sum| sum.error(each).unwrap());
            let mut exceeded = [false; 2];
            for column in &columns {
                let rows = column.len() as i64;
                let mean_of = |f: &dyn Fn(f64) -> f64| {
                    column.iter().map(|&x| exact(f(x))).sum::<BigRational>() / exact(rows as f64)
                };
                let (mean, square) = (mean_of(&|x| x), mean_of(&|x| x * x));
                let truth = if parts == 2.0 { exact(middle) + mean } else { square - &mean * &mean };
                let sum: f64 = column.iter().sum();
                let of_squares: f64 = column.iter().map(|x| x * x - half * half / 2.0).sum();
                for noisy in rows - counted..=rows + counted {
                    let bound = moment.error_of_release(noisy, level).unwrap();
                    for (a, b) in [-1.0, 0.0, 1.0].into_iter().flat_map(|a| [-1.0, 0.0, 1.0].map(|b| (a, b))) {
                        let squares = moment.squares.as_ref().map(|_| of_squares + b * squares);
                        let off = exact(moment.answer(sum + a * distances, squares, noisy)) - &truth;
                        let off = off.clone().max(-off);
                        assert!(off <= exact(bound), "{column:?} {noisy} {a} {b}");
                        exceeded[0] |= off > exact(share * bound);
                        exceeded[1] |= parts == 3.0 || noisy > 0 && off > exact(distances / noisy as f64);
                    }
                }
            }
            assert_eq!(exceeded, [true; 2]);
        }
    }

    #[test]
    fn the_noisy_number_of_values_is_released_where_the_true_one_is_private() {
        let column = [1.0, 2.0, f64::NAN, 7.0, 5.0];
        let seeded = || SeededRng::new(3).unwrap();
        for new in [Moment::mean, Moment::variance] {
            let moment = new((0.0, 8.0), 0.5, Relation::AddRemove).unwrap();
            let mut count = [4];
            moment.count.as_ref().unwrap().release_with(&mut count, &mut seeded()).unwrap();
            assert_eq!(moment.release_with(&column, 1, &mut seeded()).unwrap().1, Some(count[0]));
            let widest = moment.error_of_release(0, 0.9).unwrap();
            assert_eq!(moment.error_of_release(i64::MIN, 0.9), Ok(widest));
            assert!(moment.error_of_release(1 << 40, 0.9).unwrap() < widest);
            // The bound for a true number is another one for each.
            assert_ne!(moment.error(1000, 0.9), moment.error(1001, 0.9));
            assert!(moment.error_of_release(5, 1.0).is_err());

            let moment = new((0.0, 8.0), 0.5, Relation::Substitute).unwrap();
            assert_eq!(moment.release_with(&column, 1, &mut seeded()).unwrap().1, None);
            assert_eq!(moment.error_of_release(1000, 0.9), moment.error(1000, 0.9));
        }
    }

    /// A processor may take a hundred times as long for subnormal numbers: the distance is rounded first, so that a square
    /// other than 0 is a normal number for the nearest bounds that are allowed.
    #[test]
    fn squares_are_never_subnormal() {
        let half: f64 = 1.0001e-120;
        for x in (380..1075).map(|k| 2f64.powi(-k)).chain([5e-324, half]).flat_map(|x| [x, -x]) {
            let square = ((x + half) - half).powi(2);
            assert!(square == 0.0 || square.is_normal(), "{x}");
        }
    }
}
