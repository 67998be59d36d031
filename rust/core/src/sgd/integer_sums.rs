//! Correlated noise for sums of integers.

use rand_core::TryCryptoRng;

use super::CorrelatedNoise;
use super::correlated_noise::{Step, UNIT, largest_sigma};
use crate::error::Error;
use crate::threads::Pause;

/// Adds correlated noise to sums of integers.
///
/// With one coefficient the noise is in whole numbers. With more, the noise is in units of 2^-12, so that every sum is a
/// multiple of 2^12 units and the proof of [`CorrelatedNoise`] holds for it; the noisy sum is then rounded to a whole
/// number, half up.
///
/// ```
/// use dpnoise_core::sgd::IntegerSums;
/// let noise = IntegerSums::new(vec![4096, 2048], 1e3, 1.2)?;
/// let mut sums = [3, -7, 0];
/// let mut history = vec![0; noise.noise().history_length(3)];
/// noise.release(0, &mut history, &mut sums, 1, &mut || Ok(()))?;
/// # assert!(sums.iter().all(|sum| sum.abs() < 64_000));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IntegerSums {
    noise: CorrelatedNoise,
    /// A whole number is 2^this units of the noise.
    bits: u32,
}

impl IntegerSums {
    /// Noise with coefficients `numerators` / 2^12, of independent discrete Gaussians of the standard deviation `stddev`.
    ///
    /// `gain` is the largest norm of a row of C^-1, over all steps that will be made, or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the coefficients begin with 1, do not increase, and are at most 2^20; for a `stddev`
    /// below 1, or one with which the recursion might leave the range of 64 bits.
    pub fn new(numerators: Vec<u32>, stddev: f64, gain: f64) -> Result<Self, Error> {
        let bits = if numerators.len() == 1 { 0 } else { UNIT.ilog2() };
        let unit = f64::from(1u32 << bits);
        let largest = largest_sigma(&numerators, gain)? / unit;
        if !(1.0..=largest).contains(&stddev) {
            let allowed = format!("from 1 to {largest:?}, where 64 standard deviations fit into 64 bits");
            return Err(Error::parameter("stddev", format!("{stddev:?}"), allowed));
        }
        Ok(Self { noise: CorrelatedNoise::new(numerators, stddev * unit, gain)?, bits })
    }

    /// The noise.
    #[must_use]
    pub fn noise(&self) -> &CorrelatedNoise {
        &self.noise
    }

    /// Adds the noise of step number `step` to every sum.
    ///
    /// Sums are modulo 2^64 with one coefficient. With more, they are modulo 2^52, and from -2^51 to 2^51 - 1.
    ///
    /// # Errors
    /// As for [`CorrelatedNoise::next`]; then the sums are zeros.
    ///
    /// # Panics
    /// As for [`CorrelatedNoise::next`].
    pub fn release(
        &self,
        step: u64,
        history: &mut [i64],
        sums: &mut [i64],
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
    /// As for [`IntegerSums::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(
        &self,
        step: u64,
        history: &mut [i64],
        sums: &mut [i64],
        rng: &mut R,
    ) -> Result<(), Error> {
        self.noise.given(Step { number: step, history }, sums, rng, &self.emit())
    }

    fn emit(&self) -> impl Fn(usize, &[i64], &mut [i64]) + Sync + use<> {
        let bits = self.bits;
        let half = (1 << bits) >> 1;
        move |_, noise, sums| {
            for (sum, &noise) in sums.iter_mut().zip(noise) {
                *sum = (*sum << bits).wrapping_add(noise).wrapping_add(half) >> bits;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SeededRng;
    use crate::threads::go_on;

    fn noisy(numerators: &[u32], sum: i64, noise: i64) -> i64 {
        let mut sums = [sum];
        IntegerSums::new(numerators.to_vec(), 1.0, 1.2).unwrap().emit()(0, &[noise], &mut sums);
        sums[0]
    }

    #[test]
    fn one_coefficient_adds_whole_numbers_modulo_2_to_the_64() {
        for (sum, noise) in [(0, 0), (5, -7), (i64::MAX, 1), (i64::MIN, -1), (-1, i64::MIN)] {
            assert_eq!(noisy(&[4096], sum, noise), sum.wrapping_add(noise));
        }
    }

    #[test]
    fn several_add_units_and_round_half_up_afterwards_modulo_2_to_the_52() {
        for sum in [0, 1, -1, 1 << 40, (1 << 51) - 1, -(1 << 51), (1 << 52) + 3, i64::MAX] {
            for noise in [0, 1, 2047, 2048, 6143, 6144, -1, -2048, -2049, 1 << 50, -(1 << 50)] {
                let exact = (i128::from(sum) * 4096 + i128::from(noise) + 2048).div_euclid(4096);
                let expected = exact << 76 >> 76; // of 52 bits
                assert_eq!(i128::from(noisy(&[4096, 1], sum, noise)), expected, "{sum} {noise}");
            }
        }
    }

    /// From the same words: more than a block, three steps.
    #[test]
    fn a_release_is_the_sum_and_the_noise_of_the_step() {
        const N: usize = 5001;
        let sums: Vec<i64> = (0..N as i64).map(|i| i * i * if i % 2 == 0 { 1 } else { -1 }).collect();
        for (numerators, unit) in [(vec![4096], 1), (vec![4096, 2048, 7], 4096)] {
            let integers = IntegerSums::new(numerators.clone(), 1e6, 1.2).unwrap();
            let noise = CorrelatedNoise::new(numerators, 1e6 * unit as f64, 1.2).unwrap();
            let mut histories = [(); 2].map(|()| vec![0; noise.history_length(N)]);
            let mut rngs = [(); 2].map(|()| SeededRng::new(3).unwrap());
            for step in 0..3 {
                let (mut released, mut alone) = (sums.clone(), vec![0; N]);
                integers.release_with(step, &mut histories[0], &mut released, &mut rngs[0]).unwrap();
                noise.next_with(step, &mut histories[1], &mut alone, &mut rngs[1]).unwrap();
                let expected: Vec<_> =
                    sums.iter().zip(&alone).map(|(x, n)| (x * unit + n + unit / 2).div_euclid(unit)).collect();
                assert_eq!(released, expected);
            }
        }
    }

    #[test]
    fn every_number_gets_its_own_noise_on_any_number_of_threads() {
        let integers = IntegerSums::new(vec![4096], 1.0, 1.0).unwrap();
        let sums: Vec<i64> = (0..40_001).map(|i| i * 1000).collect();
        for threads in [1, 3] {
            let mut released = sums.clone();
            integers.release(0, &mut [], &mut released, threads, &mut go_on).unwrap();
            // Noise of 64 standard deviations does not occur.
            assert!(released.iter().zip(&sums).all(|(a, b)| (a - b).abs() < 64));
            assert_ne!(released, sums);
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let message =
            |numerators: &[u32], stddev| IntegerSums::new(numerators.to_vec(), stddev, 1.2).unwrap_err().to_string();
        for bad in [0.0, -1.0, 1f64.next_down(), f64::NAN, f64::INFINITY, 2f64.powi(44).next_up()] {
            assert!(message(&[4096], bad).starts_with("stddev must be from 1 to 17592186044416.0, "), "{bad}");
        }
        assert!(message(&[4096, 1], 2f64.powi(32).next_up()).starts_with("stddev must be from 1 to 4294967296.0, "));
        assert!(message(&[4096, 4097], 1.0).starts_with("coefficients must be"));
        for (numerators, stddev) in [(vec![4096], 1.0), (vec![4096], 2f64.powi(44)), (vec![4096, 1], 2f64.powi(32))] {
            IntegerSums::new(numerators, stddev, 1.2).unwrap();
        }
    }
}
