//! The noise of a step of differentially private stochastic gradient descent.

use std::sync::Arc;

use dpnoise_kernels::arith::power_of_two;
use rand_core::TryCryptoRng;

use super::{Clipping, Real};
use crate::error::Error;
use crate::params::{Ratio, Scale};
use crate::rng::{Wiped, wiped_on_error};
use crate::samplers::{DiscreteGaussian, LastNoise};
use crate::threads::{self, NOISE, Pause, go_on};

/// The mean of clipped gradients, with discrete Gaussian noise on their sum.
///
/// The divisor is the expected batch size, since the actual number of examples in a batch is private. For neighbours
/// that differ by one example, added or removed, a step on all data is 1 / (2 z^2)-zCDP with z the noise multiplier:
/// see `sgd/clipping.md`.
///
/// ```
/// use dpnoise_core::sgd::NoisyGradient;
/// let noisy = NoisyGradient::new(1.0, 1.1, 256.0)?;
/// let mut step = [0.0; 2];
/// noisy.step(&[3.0f32, 4.0, 0.0, -0.5], &mut step, 1)?; // two examples
/// # assert!(step.iter().all(|number| number.is_finite()));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NoisyGradient {
    clipping: Clipping,
    noise_multiplier: f64,
    expected_batch_size: f64,
    last: LastNoise<DiscreteGaussian>,
}

impl NoisyGradient {
    /// Noise of `noise_multiplier` times the sensitivity, for gradients that are clipped to `clip_norm`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a clip norm that is not from 2^-80 to 2^80, a multiplier that is not from 2^-20 to 2^11,
    /// or a batch size that is not from 2^-32 to 2^53.
    pub fn new(clip_norm: f64, noise_multiplier: f64, expected_batch_size: f64) -> Result<Self, Error> {
        let clipping = Clipping::new(clip_norm)?;
        let noise_multiplier = in_range("noise_multiplier", noise_multiplier, -20, 11)?;
        let expected_batch_size = in_range("expected_batch_size", expected_batch_size, -32, 53)?;
        Ok(Self { clipping, noise_multiplier, expected_batch_size, last: LastNoise::default() })
    }

    /// How gradients are clipped and added up.
    #[must_use]
    pub fn clipping(&self) -> &Clipping {
        &self.clipping
    }

    /// The ratio of the noise to the sensitivity.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// The divisor of the noisy sum.
    #[must_use]
    pub fn expected_batch_size(&self) -> f64 {
        self.expected_batch_size
    }

    /// The noise of a sum of `width` numbers, in steps of the grid: its sigma is the multiplier times the sensitivity on
    /// the grid, or less than a part in 2^51 more.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "sigma is from 2^10 to 2^44")]
    pub fn noise(&self, width: usize) -> Arc<DiscreteGaussian> {
        let make = || {
            let sigma = (self.noise_multiplier * self.clipping.sensitivity_steps(width) as f64).next_up();
            DiscreteGaussian::new(Ratio::from_f64(sigma).and_then(Scale::on_grid).expect("sigma is in range"))
        };
        self.last.get_or(width, make).expect("sigma is in range")
    }

    /// The step for the gradients `rows` of a batch, each as long as `out`; there may be none.
    ///
    /// # Errors
    /// [`Error::Randomness`], and then `out` is zero where it was written; [`Error::Allocation`]; [`Error::Parameter`] when
    /// `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    ///
    /// # Panics
    /// When `out` is empty, `rows` are not whole rows, or `threads` is zero.
    pub fn step<T: Real>(&self, rows: &[T], out: &mut [T], threads: usize) -> Result<(), Error> {
        let mut sums = Wiped::try_new(out.len())?;
        self.clipping.add(rows, &mut sums, threads)?;
        self.release(&sums, out, threads, &mut go_on)
    }

    /// Writes to `out` the `sums` in steps of the grid with noise, added modulo 2^64, as numbers divided by the expected
    /// batch size; on up to `threads` threads, and asks `pause` now and then whether to go on.
    ///
    /// # Errors
    /// As for [`NoisyGradient::step`], and the errors of `pause`.
    ///
    /// # Panics
    /// When there are fewer sums than numbers in `out`.
    pub fn release<T: Real>(
        &self,
        sums: &[i64],
        out: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        let noise = self.noise(out.len());
        threads::fill(out, NOISE, threads, pause, |rng, first, out| self.add_noise(&noise, &sums[first..], out, rng))
    }

    /// Writes to `out` what [`NoisyGradient::release`] does, with noise from `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails, and then `out` is zeros.
    ///
    /// # Panics
    /// When there are fewer sums than numbers in `out`.
    pub fn release_with<T: Real, R: TryCryptoRng + ?Sized>(
        &self,
        sums: &[i64],
        out: &mut [T],
        rng: &mut R,
    ) -> Result<(), Error> {
        let noise = self.noise(out.len());
        wiped_on_error(out, |out| self.add_noise(&noise, sums, out, rng))
    }

    fn add_noise<T: Real, R: TryCryptoRng + ?Sized>(
        &self,
        noise: &DiscreteGaussian,
        mut sums: &[i64],
        out: &mut [T],
        rng: &mut R,
    ) -> Result<(), Error> {
        noise.perturb(rng, out, |out, noise| {
            let (own, others) = sums.split_at(out.len());
            sums = others;
            for ((out, &sum), &noise) in out.iter_mut().zip(own).zip(noise) {
                let steps = sum.wrapping_add(noise) as f64;
                *out = T::from_f64(steps * self.clipping.granularity() / self.expected_batch_size);
            }
            Ok(())
        })
    }
}

/// Checks that a parameter is from 2^low to 2^high.
pub(super) fn in_range(name: &'static str, value: f64, low: i32, high: i32) -> Result<f64, Error> {
    if (power_of_two(low)..=power_of_two(high)).contains(&value) {
        Ok(value)
    } else {
        Err(Error::parameter(name, format!("{value:?}"), format!("from 2**{low} to 2**{high}")))
    }
}
