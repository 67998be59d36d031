//! Correlated noise for sums that another library has made in floats.

use zeroize::Zeroizing;

use super::Real;
use crate::error::Error;
use crate::samplers::grid::{Grid, Reach};
use crate::threads::{self, NOISE, Pause};

/// Numbers that are converted at once: they stay in the fastest cache.
const CHUNK: usize = 1 << 10;

/// Puts sums of floats on a grid, and adds noise in steps that are 2^12 times finer.
///
/// Noise of correlated steps is made in the finer ones, of which every sum is a multiple.
///
/// ```
/// use dpnoise_core::sgd::FloatSums;
/// let (mut out, noise) = ([0.0; 3], [0, 1 << 12, -1]);
/// FloatSums::new(0.25)?.add_noise(&[0.3, f64::NAN, -0.125], &noise, &mut out, 1, &mut || Ok(()))?;
/// assert_eq!(out, [0.25, 0.25, -0.25 / 4096.0]);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FloatSums {
    grid: Grid,
    finer: Grid,
}

impl FloatSums {
    /// How much finer the steps of the noise are, as a binary logarithm.
    pub const FINER: i32 = 12;

    /// Sums on the grid of a granularity.
    ///
    /// # Errors
    /// [`Error::Parameter`] when it, or 2^-12 times it, is not a power of two from 2^-1019 to 2^900.
    pub fn new(granularity: f64) -> Result<Self, Error> {
        let finer = Grid::new(granularity * 2f64.powi(-Self::FINER))?;
        Ok(Self { grid: Grid::new(granularity)?, finer })
    }

    /// Rounds every sum to the grid, half up, adds its noise in the finer steps, and writes the exact result, rounded
    /// once to a double and then to the type of the sums.
    ///
    /// A sum that is not finite counts as zero. Constant-time in the sums, and in noise of at least -2^51 and below 2^51.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no threads, and when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU; the
    /// error of `pause`. Then `out` is zeros.
    ///
    /// # Panics
    /// When there are fewer sums or less noise than numbers in `out`.
    pub fn add_noise<T: Real>(
        &self,
        sums: &[T],
        noise: &[i64],
        out: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        threads::in_parts(out, NOISE, threads, pause, |first, out| {
            let mut chunk = Zeroizing::new([0.0; CHUNK]);
            for (index, out) in out.chunks_mut(CHUNK).enumerate() {
                let start = first + index * CHUNK;
                let (own, noise) = (&sums[start..][..out.len()], &noise[start..][..out.len()]);
                let chunk = &mut chunk[..out.len()];
                chunk.iter_mut().zip(own).for_each(|(double, sum)| *double = sum.normal_f64());
                self.grid.add_noise(Reach::Near, chunk, &[0; CHUNK][..own.len()])?;
                self.finer.add_noise(Reach::Near, chunk, noise)?;
                out.iter_mut().zip(&*chunk).for_each(|(out, &double)| *out = T::from_f64(double));
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::go_on;

    const G: f64 = 0.5;

    fn noisy<T: Real>(sums: &[T], noise: &[i64], threads: usize) -> Vec<T> {
        let mut out = vec![T::default(); sums.len()];
        FloatSums::new(G).unwrap().add_noise(sums, noise, &mut out, threads, &mut go_on).unwrap();
        out
    }

    #[test]
    fn sums_are_rounded_before_the_noise_is_added() {
        let sums = [0.0, 0.24, 0.25, -0.25, -0.26, 1e6 + 0.3, 2f64.powi(60), -2f64.powi(90)];
        let steps = [0.0, 0.0, 1.0, 0.0, -1.0, 2e6 + 1.0, 2f64.powi(61), -2f64.powi(91)];
        for noise in [0, 1, -4095, 1 << 50, -(1 << 51), i64::MAX] {
            let expected = steps.map(|k| {
                let exact = (k as i128).checked_shl(12).unwrap() + i128::from(noise);
                exact as f64 * (G / 4096.0)
            });
            assert_eq!(noisy(&sums, &[noise; 8], 1), expected, "{noise}");
        }
    }

    #[test]
    fn what_is_not_finite_or_subnormal_counts_as_zero() {
        let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -0.0, f64::MIN_POSITIVE];
        assert_eq!(noisy(&doubles, &[4096; 6], 1), [G; 6]);
        let singles = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -0.0, f32::MIN_POSITIVE];
        assert_eq!(noisy(&singles, &[-4096; 6], 1), [-0.5; 6]);
        let kept = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, -f32::MIN_POSITIVE];
        assert_eq!(kept.map(Real::normal_f64), kept.map(f64::from));
        let kept = [f64::MAX, f64::MIN, f64::MIN_POSITIVE, -f64::MIN_POSITIVE];
        assert_eq!(kept.map(Real::normal_f64), kept);
    }

    #[test]
    fn every_number_gets_its_own_noise_on_any_number_of_threads() {
        let sums: Vec<f32> = (0..40_001).map(|i| i as f32).collect();
        let noise: Vec<i64> = (0..40_001).map(|i| i << 11).collect();
        let expected: Vec<f32> = (0..40_001).map(|i| (f64::from(i) * 1.25) as f32).collect();
        for threads in [1, 3] {
            assert_eq!(noisy(&sums, &noise, threads), expected);
        }
    }

    #[test]
    fn granularities_out_of_range_are_refused() {
        for bad in [0.0, 3.0, f64::NAN, 2f64.powi(901), 2f64.powi(-1010)] {
            assert!(FloatSums::new(bad).unwrap_err().to_string().starts_with("granularity must be a power of two"));
        }
    }
}
