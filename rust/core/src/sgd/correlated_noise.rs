//! Correlated Gaussian noise, in integers, step by step.

use dpnoise_kernels::arch::correlation::{TILE, WEIGHT_BITS, subtract_weighted};
use dpnoise_kernels::arith::power_of_two;
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::instruction_set;
use crate::params::{Ratio, Scale};
use crate::rng::{BLOCK, NoiseStream, SecureRng, Wiped, wiped_on_error};
use crate::samplers::{DiscreteGaussian, Keyed, Sampler};
use crate::threads::{self, Division, NOISE, Pause};

/// Coefficients are multiples of 1 / this.
pub(super) const UNIT: u32 = 1 << WEIGHT_BITS;

/// The division of a step: its pieces take longer than those of independent noise.
const RECURSION: Division = Division { piece: 1 << 20, ..NOISE };

/// So many standard deviations fit into the sums of the recursion; more do not occur.
const DEVIATIONS: f64 = 64.0;

/// Noise that is correlated from step to step: w = C^-1 z, rounded, with independent discrete Gaussians z and a lower
/// triangular Toeplitz matrix C with few bands (DP-FTRL, banded matrix factorisation).
///
/// w_t = z_t - R(sum of c_j w_(t-j) for j from 1 to bands - 1), where R rounds to the nearest integer and half up. The
/// noise of the last steps is in the caller's memory, the history: whoever has it can take the noise away.
/// `docs/proofs/correlated_noise.md` proves what `CorrelatedGradient` makes of it.
///
/// A history has a row of [`TILE`] numbers for each band, then those of the next [`TILE`] coordinates, and so on: a
/// step reads it once from front to back. The row of step t is that of number t modulo the bands. It replaces a row
/// that is not needed any more, so that a step that failed can be tried again.
#[derive(Clone, Debug)]
pub struct CorrelatedNoise {
    numerators: Vec<u32>,
    noise: DiscreteGaussian,
}

/// The number of a step, and the history of those before it.
pub(super) struct Step<'a> {
    pub(super) number: u64,
    pub(super) history: &'a mut [i64],
}

impl CorrelatedNoise {
    /// Noise with coefficients `numerators` / 2^12 and discrete Gaussians of parameter `sigma`.
    ///
    /// `gain` is the largest norm of a row of C^-1, over all steps that will be made, or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the coefficients begin with 1, do not increase, and are at most 2^20; for sigma that
    /// is not from 2^-20 to 2^44, or with which the recursion might leave the range of 64 bits.
    pub fn new(numerators: Vec<u32>, sigma: f64, gain: f64) -> Result<Self, Error> {
        let largest = largest_sigma(&numerators, gain)?;
        let scale = Ratio::from_f64(sigma).filter(|_| sigma <= largest).and_then(Scale::on_grid).ok_or_else(|| {
            let allowed = format!("from 2**-20 to {largest:e}, where 64 standard deviations fit into 64 bits");
            Error::parameter("sigma", format!("{sigma:e}"), allowed)
        })?;
        Ok(Self { numerators, noise: DiscreteGaussian::new(scale)? })
    }

    /// How many numbers a history of noise of this width has. They are zeros before the first step.
    #[must_use]
    pub fn history_length(&self, width: usize) -> usize {
        width.next_multiple_of(TILE) * self.rows()
    }

    /// Writes the noise of step number `step` to `out`, and to the history of the earlier steps.
    ///
    /// # Errors
    /// [`Error::Randomness`], [`Error::Parameter`] for no threads, and the error of `pause`; then `out` is zeros, and
    /// the step may be made again.
    ///
    /// # Panics
    /// When the history has not the length for so many numbers.
    pub fn next(
        &self,
        step: u64,
        history: &mut [i64],
        out: &mut [i64],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        self.fresh(Step { number: step, history }, out, threads, pause, &copy)
    }

    /// Does the same with noise from `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails; then `out` is zeros.
    ///
    /// # Panics
    /// As for [`CorrelatedNoise::next`].
    pub fn next_with<R: TryCryptoRng + ?Sized>(
        &self,
        step: u64,
        history: &mut [i64],
        out: &mut [i64],
        rng: &mut R,
    ) -> Result<(), Error> {
        self.given(Step { number: step, history }, out, rng, &copy)
    }

    /// A step with freshly keyed generators; `emit` makes outputs of the noise from some index on.
    pub(super) fn fresh<T: Copy + Default + Send>(
        &self,
        step: Step<'_>,
        out: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
        emit: &(impl Fn(usize, &[i64], &mut [T]) + Sync),
    ) -> Result<(), Error> {
        self.in_parts(step, out, threads, pause, |first, step, out| {
            let mut rng = SecureRng::new()?;
            self.part(first, step, out, &mut |_, noise| self.noise.fill_with(noise, &mut rng), emit)
        })
    }

    /// A step with a generator of the caller.
    pub(super) fn given<T: Copy + Default, R: TryCryptoRng + ?Sized>(
        &self,
        step: Step<'_>,
        out: &mut [T],
        rng: &mut R,
        emit: &impl Fn(usize, &[i64], &mut [T]),
    ) -> Result<(), Error> {
        assert_eq!(step.history.len(), self.history_length(out.len()));
        wiped_on_error(out, |out| self.part(0, step, out, &mut |_, noise| self.noise.fill_with(noise, rng), emit))
    }

    /// A step with the words of a ticket, that of [`CorrelatedNoise::identity`].
    pub(super) fn keyed<T: Copy + Default + Send>(
        &self,
        words: &NoiseStream,
        step: Step<'_>,
        out: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
        emit: &(impl Fn(usize, &[i64], &mut [T]) + Sync),
    ) -> Result<(), Error> {
        self.in_parts(step, out, threads, pause, |first, step, out| {
            let mut draw =
                |first, noise: &mut [i64]| words.fill(first, noise, |rng, block| self.noise.fill_with(block, rng));
            self.part(first, step, out, &mut draw, emit)
        })
    }

    /// What the words of a ticket are bound to: the distribution of the independent noise.
    pub(super) fn identity(&self) -> Vec<u8> {
        self.noise.identity()
    }

    /// Noise of one step alone needs no history.
    fn rows(&self) -> usize {
        if self.numerators.len() == 1 { 0 } else { self.numerators.len() }
    }

    /// Runs `work` on parts of the history and of `out`, each on a thread; it is told the index of its first number.
    fn in_parts<T: Copy + Default + Send>(
        &self,
        step: Step<'_>,
        out: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
        work: impl Fn(usize, Step<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let Step { number, history } = step;
        assert_eq!(history.len(), self.history_length(out.len()));
        let length = |width| self.history_length(width);
        // All of it, since `out` may hold sums that noise is to be added to.
        wiped_on_error(out, |out| {
            threads::in_parts_beside(history, length, out, RECURSION, threads, pause, |first, history, out| {
                work(first, Step { number, history }, out)
            })
        })
    }

    /// Makes the numbers from `first` on, on one thread.
    fn part<T>(
        &self,
        first: usize,
        step: Step<'_>,
        out: &mut [T],
        draw: &mut impl FnMut(u64, &mut [i64]) -> Result<(), Error>,
        emit: &impl Fn(usize, &[i64], &mut [T]),
    ) -> Result<(), Error> {
        let instructions = instruction_set::current()?;
        let (rows, weights) = (self.rows(), self.weights(step.number));
        let mut history = step.history.as_chunks_mut::<TILE>().0;
        let (mut scratch, mut sums) = (Wiped::new(BLOCK), Wiped::new(TILE));
        let sums = sums.first_chunk_mut().expect("it has this length");
        for (index, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = first + index * BLOCK;
            let (noise, padding) = scratch.split_at_mut(out.len());
            draw(first as u64, noise)?;
            padding.fill(0);
            if rows > 0 {
                for noise in scratch.as_chunks_mut::<TILE>().0.iter_mut().take(out.len().div_ceil(TILE)) {
                    let (tile, others) = history.split_at_mut(rows);
                    subtract_weighted(instructions, tile, &weights, sums, noise);
                    tile[(step.number % rows as u64) as usize] = *noise;
                    history = others;
                }
            }
            emit(first, &scratch[..out.len()], out);
        }
        Ok(())
    }

    /// The weights of the rows of a history at a step; that of the step's own row, of noise that has gone out of use,
    /// is zero.
    fn weights(&self, step: u64) -> Vec<u32> {
        let bands = self.numerators.len() as u64;
        let weight = |row: u64| match (step % bands + bands - row) % bands {
            0 => 0,
            ago => self.numerators[ago as usize],
        };
        (0..bands).map(weight).collect()
    }
}

/// The largest sigma for which the recursion stays in 64 bits, after a check of the coefficients.
pub(super) fn largest_sigma(numerators: &[u32], gain: f64) -> Result<f64, Error> {
    let is_valid = numerators.first() == Some(&UNIT) && numerators.is_sorted_by(|a, b| a >= b);
    if !is_valid || numerators.len() > 1 << 20 {
        let allowed = "1 and then at most 2**20 - 1 numbers from 1 down to 0 that do not increase";
        return Err(Error::parameter("coefficients", "others", allowed));
    }
    if !(1.0..=power_of_two(64)).contains(&gain) {
        return Err(Error::parameter("gain", format!("{gain:?}"), "from 1 to 2**64"));
    }
    let total: u64 = numerators[1..].iter().map(|&numerator| u64::from(numerator)).sum();
    Ok((power_of_two(63) / (DEVIATIONS * gain * total as f64)).min(power_of_two(44)))
}

fn copy(_: usize, noise: &[i64], out: &mut [i64]) {
    out.copy_from_slice(noise);
}
