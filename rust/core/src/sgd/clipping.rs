#![doc = include_str!("clipping.md")]

use std::iter::once;
use std::ops::Range;

use dpnoise_kernels::arch::clipping::{self as kernel, LANES, ROWS, Real};
use dpnoise_kernels::arith::power_of_two;

use super::addition::{Addition, Matrix, add};
use crate::error::Error;
use crate::instruction_set::{self, InstructionSet};
use crate::rng::{Wiped, wiped_on_error};
use crate::threads::{Pause, available_threads, go_on, on_threads};

/// Clips the gradient of each example to a norm, and adds them up in whole steps of a grid.
///
/// ```
/// use dpnoise_core::sgd::Clipping;
/// let clipping = Clipping::new(1.0)?;
/// let mut sums = [0; 2];
/// clipping.add(&[3.0, 4.0, 0.0, -0.5], &mut sums, 1)?; // two examples
/// let [first, second] = sums.map(|steps| steps as f64 * clipping.granularity());
/// assert!((first - 0.6).abs() < 1e-8 && (second - 0.3).abs() < 1e-8);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clipping {
    clip_norm: f64,
    granularity: f64,
}

/// The clip norm is above 2^(this - 1) steps, and at most 2^this.
const FINE: i32 = 32;

/// The same for [`Clipping::coarse`].
const COARSE: i32 = 22;

/// The least and the largest clip norm are 2^-this and 2^this.
const RANGE_EXPONENT: i32 = 80;

/// With fewer columns per thread than this, another thread costs more than it gains, for some hundred rows. The number
/// of rows is private, so it must not decide how many threads are started.
const THREAD_COLUMNS: usize = 1 << 9;

/// The numbers that are added up between two pauses: some tens of milliseconds.
const PIECE: usize = 1 << 28;

/// The most rows that may be added in one call.
const MOST_ROWS: usize = 1 << 31;

impl Clipping {
    /// Clipping to the L2 norm `clip_norm`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when it is not from 2^-80 to 2^80.
    pub fn new(clip_norm: f64) -> Result<Self, Error> {
        Self::with_steps(clip_norm, FINE)
    }

    /// Clipping on a grid that is 2^10 times as coarse, where sums have room for noise on a finer grid.
    ///
    /// # Errors
    /// As for [`Clipping::new`].
    pub fn coarse(clip_norm: f64) -> Result<Self, Error> {
        Self::with_steps(clip_norm, COARSE)
    }

    fn with_steps(clip_norm: f64, steps_exponent: i32) -> Result<Self, Error> {
        if !(power_of_two(-RANGE_EXPONENT)..=power_of_two(RANGE_EXPONENT)).contains(&clip_norm) {
            let allowed = format!("from 2**-{RANGE_EXPONENT} to 2**{RANGE_EXPONENT}");
            return Err(Error::parameter("clip_norm", format!("{clip_norm:?}"), allowed));
        }
        let exponent = (clip_norm.to_bits() >> 52) as i32 - 1023; // of a normal number
        let is_power_of_two = clip_norm.to_bits() << 12 == 0;
        let granularity = power_of_two(exponent + i32::from(!is_power_of_two) - steps_exponent);
        Ok(Self { clip_norm, granularity })
    }

    /// The norm that no gradient exceeds once it is clipped.
    #[must_use]
    pub fn clip_norm(&self) -> f64 {
        self.clip_norm
    }

    /// The step of the grid, a power of two: at least 2^-32 and less than 2^-31 of the clip norm, or 2^-22 and 2^-21.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.granularity
    }

    /// By how many steps one example can change sums of `width` numbers, in the L2 norm: those of the clip norm, and half
    /// the square root of `width` for rounding; rounded up.
    #[must_use]
    pub fn sensitivity_steps(&self, width: usize) -> u64 {
        let root = (width as u64).isqrt();
        let root = root + u64::from(root * root < width as u64);
        (self.clip_norm / self.granularity).ceil() as u64 + root.div_ceil(2)
    }

    /// Adds to `sums` the gradients `rows` of some examples, each as long as `sums`: every one clipped and rounded to
    /// whole steps. A row that has a NaN or an infinity, or whose sum of squares is beyond the largest double, counts as
    /// zeros.
    ///
    /// The result is the same for every order of the rows, every number of threads and on every CPU. How many of the
    /// `threads` are used follows from the number of columns and that of processors alone.
    ///
    /// Sums are modulo 2^64. They are exact while the total of all that is added to the same `sums` is at most 2^31
    /// clip norms, or 2^41 on the coarse grid.
    ///
    /// # Errors
    /// [`Error::Data`] for more than 2^31 rows; [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no
    /// instruction set of this CPU.
    ///
    /// # Panics
    /// When `sums` is empty, `rows` are not whole rows, or `threads` is zero.
    pub fn add<T: Real>(&self, rows: &[T], sums: &mut [i64], threads: usize) -> Result<(), Error> {
        self.add_together(&[Matrix::new(rows, sums.len())], sums, threads)
    }

    /// Does the same for gradients in pieces, such as the layers of a model: the gradient of an example is a row of
    /// each of the `matrices`, and is clipped as one. `sums` has the sums of the first matrix, then those of the second
    /// one and so on.
    ///
    /// ```
    /// use dpnoise_core::sgd::{Clipping, Matrix};
    /// let clipping = Clipping::new(1.0)?;
    /// let (weights, biases) = ([3.0, 4.0, 0.0, -0.3], [12.0, 0.4]); // two examples
    /// let mut sums = [0; 3];
    /// clipping.add_together(&[Matrix::new(&weights, 2), Matrix::new(&biases, 1)], &mut sums, 1)?;
    /// let expected = [3.0 / 13.0, 4.0 / 13.0 - 0.3, 12.0 / 13.0 + 0.4];
    /// assert!(sums.iter().zip(expected).all(|(&steps, x)| (steps as f64 * clipping.granularity() - x).abs() < 1e-7));
    /// # Ok::<(), dpnoise_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Clipping::add`].
    ///
    /// # Panics
    /// When the columns of the matrices are not as many as `sums`, or the matrices differ in their number of rows; when
    /// there are no matrices, or `threads` is zero.
    pub fn add_together<T: Real>(&self, matrices: &[Matrix<T>], sums: &mut [i64], threads: usize) -> Result<(), Error> {
        self.add_together_pausing(matrices, sums, threads, &mut go_on)
    }

    /// The same, with `pause` called before each piece of work.
    ///
    /// # Errors
    /// As for [`Clipping::add`], and that of `pause`; `sums` are zero then.
    ///
    /// # Panics
    /// As [`Clipping::add_together`] does.
    pub fn add_together_pausing<T: Real>(
        &self,
        matrices: &[Matrix<T>],
        sums: &mut [i64],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        let instructions = instruction_set::current()?;
        let (height, width) = (matrices[0].height(), sums.len());
        assert!(matrices.iter().all(|matrix| matrix.height() == height));
        assert_eq!(matrices.iter().map(Matrix::width).sum::<usize>(), width);
        assert!(threads > 0);
        check_height(height)?;
        let count = threads.min(available_threads()).min(width.div_ceil(THREAD_COLUMNS));
        let piece = (PIECE / width).max(1);
        wiped_on_error(sums, |sums| {
            (0..height).step_by(piece).try_for_each(|first| {
                pause()?;
                let rows = first..height.min(first + piece);
                let matrices: Vec<_> = matrices.iter().map(|matrix| matrix.rows(rows.clone())).collect();
                self.add_in_parts(instructions, &matrices, sums, count)
            })
        })
    }

    /// Adds all rows in this many parts of nearly equal size, each on a thread of its own.
    fn add_in_parts<T: Real>(
        &self,
        instructions: InstructionSet,
        matrices: &[Matrix<T>],
        sums: &mut [i64],
        count: usize,
    ) -> Result<(), Error> {
        let height = matrices[0].height();
        let mut others = (1..count).map(|_| Wiped::try_new(sums.len())).collect::<Result<Vec<_>, _>>()?;
        let targets = once(&mut *sums).chain(others.iter_mut().map(|sums| &mut **sums));
        let parts = (0..count).map(|part| height * part / count..height * (part + 1) / count);
        on_threads(parts.zip(targets).collect(), |(rows, sums)| self.add_rows(instructions, matrices, rows, sums));
        for part in others {
            add(sums, &part);
        }
        Ok(())
    }

    /// Adds some rows, on one thread.
    fn add_rows<T: Real>(
        &self,
        instructions: InstructionSet,
        matrices: &[Matrix<T>],
        rows: Range<usize>,
        sums: &mut [i64],
    ) {
        let width = sums.len();
        let ceiling = self.ceiling(width, matrices.len());
        let mut sums = sums;
        let mut additions = vec![];
        for &matrix in matrices {
            let (own, others) = sums.split_at_mut(matrix.width());
            additions.push(Addition::new(matrix, width, own));
            sums = others;
        }
        for first in rows.clone().step_by(ROWS) {
            let block = first..rows.end.min(first + ROWS);
            let mut squares = [[0.0; LANES]; ROWS];
            for addition in &mut additions {
                addition.add_squares(instructions, block.clone(), &mut squares);
            }
            let factors = kernel::factors(instructions, ceiling, self.granularity.recip(), &squares.map(sum));
            for addition in &mut additions {
                addition.add_scaled(instructions, block.clone(), &factors);
            }
        }
        additions.into_iter().for_each(Addition::finish);
    }

    /// The length, in steps, to which rows of `width` numbers in this many matrices are clipped: enough below the clip
    /// norm that no rounding makes a row longer than that.
    fn ceiling(&self, width: usize, matrices: usize) -> f64 {
        let roundings = width as f64 / LANES as f64 + matrices as f64 + 99.0;
        self.clip_norm / self.granularity * (1.0 - roundings * power_of_two(-53))
    }
}

/// The sum of some numbers, added up in pairs.
fn sum(mut numbers: [f64; LANES]) -> f64 {
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for i in 0..count {
            numbers[i] += numbers[i + count];
        }
    }
    numbers[0]
}

fn check_height(height: usize) -> Result<(), Error> {
    if height > MOST_ROWS { Err(Error::data("gradients", "must have at most 2**31 rows")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::mem::replace;

    use super::*;

    /// Numbers of all magnitudes and signs.
    fn wild(length: usize) -> Vec<f64> {
        let number = |i: usize| ((i * i % 1009) as f64 - 504.0) * 2f64.powi((i * 7 % 41) as i32 - 30);
        (0..length).map(|i| if i == length / 3 { f64::NAN } else { number(i + 1) }).collect()
    }

    fn sums<T: Real>(clipping: &Clipping, rows: &[T], width: usize, threads: usize) -> Vec<i64> {
        let mut sums = vec![0; width];
        clipping
            .add_in_parts(instruction_set::current().unwrap(), &[Matrix::new(rows, width)], &mut sums, threads)
            .unwrap();
        sums
    }

    #[test]
    fn more_rows_than_the_sums_have_room_for_are_refused() {
        assert_eq!(check_height(MOST_ROWS), Ok(()));
        assert!(matches!(check_height(MOST_ROWS + 1), Err(Error::Data { .. })));
    }

    #[test]
    fn an_interrupt_leaves_nothing_half_added() {
        let mut sums = [7; 2];
        let rows = [1.0, 2.0];
        let ended =
            Clipping::new(1.0)
                .unwrap()
                .add_together_pausing(&[Matrix::new(&rows, 2)], &mut sums, 1, &mut || Err(Error::Interrupted));
        assert!(matches!(ended, Err(Error::Interrupted)));
        assert_eq!(sums, [0; 2]);
    }

    fn order_and_threads_do_not_matter<T: Real>(from: impl Fn(f64) -> T) {
        let clipping = Clipping::new(0.7).unwrap();
        for (height, width) in [(0, 3), (1, 1), (13, 5), (9, 32), (17, 33), (5, 300), (40, 20_000), (137, 131_079)] {
            let rows: Vec<T> = wild(height * width).into_iter().map(&from).collect();
            let reversed: Vec<T> = rows.chunks(width).rev().flatten().copied().collect();
            let expected = sums(&clipping, &rows, width, 1);
            let mut one_by_one = vec![0; width];
            for row in rows.chunks(width) {
                clipping.add(row, &mut one_by_one, 1).unwrap();
            }
            assert_eq!(one_by_one, expected, "{height} {width}");
            for threads in [1, 2, 7] {
                assert_eq!(sums(&clipping, &rows, width, threads), expected, "{height} {width} {threads}");
                assert_eq!(sums(&clipping, &reversed, width, threads), expected, "{height} {width} {threads}");
            }
            assert!(height < 3 || expected.iter().any(|&steps| steps != 0));
        }
    }

    #[test]
    fn the_sum_is_the_same_in_any_order_and_on_any_number_of_threads() {
        order_and_threads_do_not_matter(|x| x);
        order_and_threads_do_not_matter(|x| x as f32);
    }

    /// The sums of the columns of `rows`, split into matrices of these widths.
    fn sums_together<T: Real>(clipping: &Clipping, rows: &[T], widths: &[usize], threads: usize) -> Vec<i64> {
        let width = widths.iter().sum();
        let layers = widths.iter().scan(0, |first, width| Some(replace(first, *first + width)..*first));
        let layers: Vec<Vec<T>> =
            layers.map(|columns| rows.chunks(width).flat_map(|row| &row[columns.clone()]).copied().collect()).collect();
        let matrices: Vec<_> = layers.iter().zip(widths).map(|(layer, &width)| Matrix::new(layer, width)).collect();
        let mut sums = vec![0; width];
        clipping.add_in_parts(instruction_set::current().unwrap(), &matrices, &mut sums, threads).unwrap();
        sums
    }

    const LAYERS: [&[usize]; 5] = [&[1, 1], &[31, 1, 40], &[64, 300, 7, 33], &[2000, 3, 9000], &[40_000, 5, 100_000]];

    fn layers_are_clipped_as_one<T: Real>(from: impl Fn(f64) -> T) {
        for (widths, height) in LAYERS.into_iter().zip([3, 50, 17, 9, 20]) {
            let width: usize = widths.iter().sum();
            let rows: Vec<T> = wild(height * width).into_iter().map(&from).collect();
            // Rows that are not clipped are the same however they are added up: their factor is 1.
            let generous = Clipping::new(2f64.powi(30)).unwrap();
            let expected = sums(&generous, &rows, width, 1);
            assert_eq!(sums_together(&generous, &rows, widths, 1), expected, "{widths:?}");
            assert!(expected.iter().any(|&steps| steps != 0), "{widths:?}");
            let clipping = Clipping::new(0.7).unwrap();
            let expected = sums(&clipping, &rows, width, 1);
            let found = sums_together(&clipping, &rows, widths, 1);
            let limit = height as i64 * ((1 << 32 >> 27) + 1); // factors have 29 digits
            assert!(expected.iter().zip(&found).all(|(one, other)| (one - other).abs() <= limit), "{widths:?}");
            assert!(expected.iter().any(|&steps| steps.abs() > 1 << 20), "{widths:?}");
            let reversed: Vec<T> = rows.chunks(width).rev().flatten().copied().collect();
            for threads in [1, 2, 7] {
                assert_eq!(sums_together(&clipping, &reversed, widths, threads), found, "{widths:?} {threads}");
            }
        }
    }

    #[test]
    fn layers_of_a_model_are_clipped_as_one() {
        layers_are_clipped_as_one(|x| x);
        layers_are_clipped_as_one(|x| x as f32);
    }

    #[test]
    #[should_panic(expected = "all(|matrix| matrix.height() == height)")]
    fn layers_must_have_as_many_rows() {
        let matrices = [Matrix::new(&[1.0, 2.0], 1), Matrix::new(&[1.0], 1)];
        let _ = Clipping::new(1.0).unwrap().add_together(&matrices, &mut [0; 2], 1);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn layers_must_have_a_column_for_each_sum() {
        let _ = Clipping::new(1.0).unwrap().add_together(&[Matrix::new(&[1.0, 2.0], 1)], &mut [0; 2], 1);
    }

    #[test]
    fn rows_within_the_norm_are_exact() {
        let clipping = Clipping::new(1.0).unwrap();
        let g = clipping.granularity();
        assert_eq!(g, 2f64.powi(-32));
        let steps = |x: f64| sums(&clipping, &[x], 1, 1)[0];
        assert_eq!(
            [0.5, 1.5, 2.5, -0.5, -1.5, 0.4999, 1e-300, 5e-324].map(|x| steps(x * g)),
            [0, 2, 2, 0, -2, 0, 0, 0]
        );
        assert_eq!(steps(0.999_999), (0.999_999 / g).round_ties_even() as i64);
        assert_eq!(sums(&clipping, &[0.25f32, -0.5, 0.25, 0.0], 2, 1), [1 << 31, -1 << 31]);
    }

    #[test]
    fn rows_that_are_not_finite_count_as_zeros() {
        let clipping = Clipping::new(1.0).unwrap();
        for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e160] {
            for (width, place) in [(1, 0), (33, 32), (33, 5), (64, 63)] {
                let mut rows = vec![0.001; 2 * width];
                rows[place] = bad;
                let expected = sums(&clipping, &rows[width..], width, 1);
                assert_eq!(sums(&clipping, &rows, width, 1), expected, "{bad}");
                assert_eq!(sums_together(&clipping, &rows, &vec![1; width], 1), expected, "{bad}");
            }
        }
        assert_eq!(sums(&clipping, &[f32::INFINITY, 0.0, f32::NAN, 1.0], 2, 1), [0, 0]);
        assert!(sums(&clipping, &[f32::MAX, f32::MAX], 2, 1).iter().all(|&steps| steps > 3_000_000_000), "no overflow");
    }

    /// The length of a clipped row, squared; or of one that is in two matrices, if that is longer.
    fn length(clipping: &Clipping, row: &[impl Real]) -> u128 {
        let square = |steps: i64| u128::from(steps.unsigned_abs()).pow(2);
        let whole = sums(clipping, row, row.len(), 1).into_iter().map(square).sum();
        let halves = [row.len() / 2, row.len().div_ceil(2)];
        if halves[0] == 0 {
            return whole;
        }
        whole.max(sums_together(clipping, row, &halves, 1).into_iter().map(square).sum())
    }

    /// Rows at the norm and far beyond it, and rows whose every number is rounded away from zero.
    #[test]
    fn no_row_is_longer_than_the_sensitivity() {
        for clip_norm in [1.0, 0.7, 1.0f64.next_down(), 3e-20, 1e20] {
            let clipping = Clipping::new(clip_norm).unwrap();
            for width in [1, 2, 31, 32, 100, 1000] {
                let limit = u128::from(clipping.sensitivity_steps(width)).pow(2);
                let even = clip_norm / (width as f64).sqrt();
                let half_up = (even / clipping.granularity()).floor() + 0.500_001;
                let mut longest = 0;
                for magnitude in [even, even.next_up(), half_up * clipping.granularity(), 1e30 * even, 1e-9 * even] {
                    longest = longest.max(length(&clipping, &vec![magnitude; width]));
                    longest = longest.max(length(&clipping, &vec![magnitude as f32; width]));
                }
                for factor in [0.5, 1.0, 2.0, 1e10] {
                    let row: Vec<f64> = wild(90).iter().cycle().take(width).map(|x| x * factor * even).collect();
                    longest = longest.max(length(&clipping, &row));
                }
                assert!(longest <= limit, "{clip_norm} {width}");
                let nearly = u128::from((clip_norm / clipping.granularity() * 0.999_999) as u64).pow(2);
                assert!(longest >= nearly, "{clip_norm} {width}: clipped too much");
            }
        }
    }

    /// Equal numbers at the norm that are a little more than half a step above the grid are all rounded up: the clip
    /// norm alone would be too small as the sensitivity.
    #[test]
    fn rounding_makes_rows_longer_than_the_norm() {
        let clipping = Clipping::new(1.0).unwrap();
        let even = |width: usize| 2f64.powi(32) / (width as f64).sqrt();
        let mut found = 0;
        for width in (1..1000).filter(|&width| (0.51..0.6).contains(&even(width).fract())) {
            let row = vec![(even(width).floor() + 0.505) * clipping.granularity(); width];
            let clipped = length(&clipping, &row);
            assert!(clipped > 1 << 64 && clipped <= u128::from(clipping.sensitivity_steps(width)).pow(2), "{width}");
            found += 1;
        }
        assert!(found > 10);
        let extra = |width| clipping.sensitivity_steps(width) - (1 << 32);
        assert_eq!([0, 1, 2, 4, 5, 9, 16, 17, 1 << 20].map(extra), [0, 1, 1, 1, 2, 2, 2, 3, 512]);
    }

    #[test]
    fn bad_clip_norms_are_named() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-30, 1e30] {
            let message = Clipping::new(bad).unwrap_err().to_string();
            assert!(message.starts_with("clip_norm must be from 2**-80 to 2**80, got"), "{message}");
        }
        for (clip_norm, exponent) in [(1.0, -32), (1.5, -31), (2.0, -31), (2f64.powi(80), 48), (2f64.powi(-80), -112)] {
            assert_eq!(Clipping::new(clip_norm).unwrap().granularity(), 2f64.powi(exponent));
        }
    }
}
