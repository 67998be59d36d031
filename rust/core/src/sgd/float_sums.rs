//! Correlated noise for sums that another library has made in floats.

use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::correlated_noise::{Step, UNIT};
use super::{CorrelatedNoise, Real};
use crate::error::Error;
use crate::samplers::grid::{Grid, Reach};
use crate::threads::Pause;

/// Numbers that are converted at once: they stay in the fastest cache.
const CHUNK: usize = 1 << 10;

/// Puts sums of floats on a grid, and adds correlated noise, whose units are 2^12 times finer.
///
/// Every sum on the grid is a multiple of 2^12 units, so that the proof of [`CorrelatedNoise`] holds for it.
///
/// ```
/// use dpnoise_core::sgd::{CorrelatedNoise, FloatSums};
/// let noise = CorrelatedNoise::new(vec![4096, 2048], 2f64.powi(30), 1.2)?;
/// let mut sums = [0.3, f64::NAN, -0.125];
/// let mut history = vec![0; noise.history_length(3)];
/// FloatSums::new(noise, 2f64.powi(-18))?.release(0, &mut history, &mut sums, 1, &mut || Ok(()))?;
/// # assert!(sums.iter().all(|number| number.is_finite()));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FloatSums {
    noise: CorrelatedNoise,
    grid: Grid,
    finer: Grid,
}

impl FloatSums {
    /// Sums on the grid of a granularity, with noise in 2^-12 steps of it.
    ///
    /// # Errors
    /// [`Error::Parameter`] when it, or 2^-12 times it, is not a power of two from 2^-1019 to 2^900.
    pub fn new(noise: CorrelatedNoise, granularity: f64) -> Result<Self, Error> {
        let grid = Grid::new(granularity)?;
        Ok(Self { noise, grid, finer: Grid::new(granularity / f64::from(UNIT))? })
    }

    /// The noise.
    #[must_use]
    pub fn noise(&self) -> &CorrelatedNoise {
        &self.noise
    }

    /// Rounds every sum to the grid, half up, adds the noise of step number `step`, and leaves the exact result, rounded
    /// once to a double and then to the type of the sums.
    ///
    /// A sum that is not finite counts as zero. Constant-time in the sums, and in noise of at least -2^51 and below 2^51
    /// units.
    ///
    /// # Errors
    /// As for [`CorrelatedNoise::next`]; then the sums are zeros.
    ///
    /// # Panics
    /// As for [`CorrelatedNoise::next`].
    pub fn release<T: Real>(
        &self,
        step: u64,
        history: &mut [i64],
        sums: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        self.noise.fresh(Step { number: step, history }, sums, threads, pause, &self.emit())
    }

    /// Does the same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`CorrelatedNoise::next_with`].
    ///
    /// # Panics
    /// As for [`FloatSums::release`].
    pub fn release_with<T: Real, R: TryCryptoRng + ?Sized>(
        &self,
        step: u64,
        history: &mut [i64],
        sums: &mut [T],
        rng: &mut R,
    ) -> Result<(), Error> {
        self.noise.given(Step { number: step, history }, sums, rng, &self.emit())
    }

    fn emit<T: Real>(&self) -> impl Fn(usize, &[i64], &mut [T]) + Sync + use<T> {
        let (grid, finer) = (self.grid, self.finer);
        move |_, noise, sums| {
            let mut doubles = Zeroizing::new([0.0; CHUNK]);
            for (sums, noise) in sums.chunks_mut(CHUNK).zip(noise.chunks(CHUNK)) {
                let doubles = &mut doubles[..sums.len()];
                doubles.iter_mut().zip(&*sums).for_each(|(double, sum)| *double = sum.normal_f64());
                let added = grid.add_noise(Reach::Near, doubles, &[0; CHUNK][..noise.len()]);
                added
                    .and_then(|()| finer.add_noise(Reach::Near, doubles, noise))
                    .expect("the step has an instruction set");
                sums.iter_mut().zip(&*doubles).for_each(|(sum, &double)| *sum = T::from_f64(double));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SeededRng;
    use crate::threads::go_on;

    const G: f64 = 0.5;

    fn float_sums(numerators: &[u32], sigma: f64) -> FloatSums {
        FloatSums::new(CorrelatedNoise::new(numerators.to_vec(), sigma, 1.2).unwrap(), G).unwrap()
    }

    fn noisy<T: Real>(sums: &[T], noise: &[i64]) -> Vec<T> {
        let mut sums = sums.to_vec();
        float_sums(&[4096], 1.0).emit()(0, noise, &mut sums);
        sums
    }

    #[test]
    fn sums_are_rounded_before_the_noise_is_added() {
        let sums = [0.0, 0.24, 0.25, -0.25, -0.26, 1e6 + 0.3, 2f64.powi(60), -2f64.powi(90)];
        let steps = [0.0, 0.0, 1.0, 0.0, -1.0, 2e6 + 1.0, 2f64.powi(61), -2f64.powi(91)];
        for noise in [0, 1, -4095, 1 << 50, -(1 << 51), i64::MAX] {
            let expected = steps.map(|k| (((k as i128) << 12) + i128::from(noise)) as f64 * (G / 4096.0));
            assert_eq!(noisy(&sums, &[noise; 8]), expected, "{noise}");
        }
    }

    #[test]
    fn what_is_not_finite_or_subnormal_counts_as_zero() {
        let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -0.0, f64::MIN_POSITIVE];
        assert_eq!(noisy(&doubles, &[4096; 6]), [G; 6]);
        let singles = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -0.0, f32::MIN_POSITIVE];
        assert_eq!(noisy(&singles, &[-4096; 6]), [-0.5; 6]);
        let kept = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, -f32::MIN_POSITIVE];
        assert_eq!(kept.map(Real::normal_f64), kept.map(f64::from));
        let kept = [f64::MAX, f64::MIN, f64::MIN_POSITIVE, -f64::MIN_POSITIVE];
        assert_eq!(kept.map(Real::normal_f64), kept);
    }

    /// From the same words: more than a chunk and more than a block, two steps.
    #[test]
    fn a_release_is_the_sum_and_the_noise_of_the_step() {
        const N: usize = 5001;
        let grid = float_sums(&[4096, 2048], 1e6);
        let noise = grid.noise();
        let sums: Vec<f64> = (0..N).map(|i| i as f64).collect();
        let mut histories = [(); 2].map(|()| vec![0; noise.history_length(N)]);
        let mut rngs = [(); 2].map(|()| SeededRng::new(3).unwrap());
        for step in 0..2 {
            let (mut released, mut alone) = (sums.clone(), vec![0; N]);
            grid.release_with(step, &mut histories[0], &mut released, &mut rngs[0]).unwrap();
            noise.next_with(step, &mut histories[1], &mut alone, &mut rngs[1]).unwrap();
            let expected: Vec<f64> = sums.iter().zip(&alone).map(|(x, &n)| x + n as f64 * (G / 4096.0)).collect();
            assert_eq!(released, expected);
        }
    }

    #[test]
    fn every_number_gets_its_own_noise_on_any_number_of_threads() {
        let grid = float_sums(&[4096], 2f64.powi(-20)); // whose noise is always zero
        let sums: Vec<f32> = (0..40_001).map(|i| i as f32).collect();
        for threads in [1, 3] {
            let mut released = sums.clone();
            grid.release(0, &mut [], &mut released, threads, &mut go_on).unwrap();
            assert_eq!(released, sums);
        }
    }

    #[test]
    fn granularities_out_of_range_are_refused() {
        for bad in [0.0, 3.0, f64::NAN, 2f64.powi(901), 2f64.powi(-1010)] {
            let noise = CorrelatedNoise::new(vec![4096], 1.0, 1.0).unwrap();
            assert!(
                FloatSums::new(noise, bad).unwrap_err().to_string().starts_with("granularity must be a power of two")
            );
        }
    }
}
