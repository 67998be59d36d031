//! Steps of differentially private stochastic gradient descent whose noise is correlated.

use std::fmt;
use std::sync::Arc;

use dpnoise_kernels::arith::power_of_two;
use rand_core::TryCryptoRng;
use sha2::{Digest, Sha256};

use super::correlated_noise::{CorrelatedNoise, Step, UNIT, largest_sigma};
use super::noisy_gradient::in_range;
use super::run_state::RunState;
use super::{Clipping, Real};
use crate::error::Error;
use crate::rng::{NoiseKey, ProcessMark, Wiped, nonce};
use crate::threads::{Pause, go_on};

/// The most steps: the range of the recursion is proved for so many.
const MAX_STEPS: u64 = 1 << 20;

/// The longest gradient: 2^40 numbers, or all that there can be.
const MAX_WIDTH: usize = match 1usize.checked_shl(40) {
    Some(width) => width,
    None => usize::MAX,
};

/// What a [`CorrelatedGradient`] needs to know of a matrix C, the strategy.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// The coefficients of its bands times 2^12: 2^12, and then numbers that do not increase.
    pub numerators: Vec<u32>,
    /// The number of its rows.
    pub steps: u64,
    /// The largest norm of a row of its inverse, at least 1, or more.
    pub gain: f64,
    /// The largest norm of C u, or more, for the u that the pattern of participation admits with rows of norm 1.
    pub sensitivity: f64,
    /// That pattern, in words: a run can be resumed with the same words only.
    pub participation: String,
}

/// The means of clipped gradients, step by step, with noise that is correlated between steps.
///
/// All steps together are 1 / (2 z^2)-zCDP with z the noise multiplier, for neighbours that differ by one example whose
/// participations the strategy's sensitivity covers: see `docs/proofs/correlated_noise.md`.
///
/// It belongs to the process that made it: a copy in the child of a fork would make the same steps a second time.
///
/// ```
/// use dpnoise_core::sgd::{CorrelatedGradient, Strategy};
/// // 1 and 1/2 in each column, and each example takes part in one step
/// let sensitivity = 1.25f64.sqrt().next_up();
/// let participation = "once".into();
/// let strategy = Strategy { numerators: vec![4096, 2048], steps: 10, gain: 1.2, sensitivity, participation };
/// let mut run = CorrelatedGradient::new(strategy, 1.0, 1.1, 256.0, None)?;
/// let mut step = [0.0; 2];
/// run.step(&[3.0f32, 4.0, 0.0, -0.5], &mut step, 1)?; // two examples
/// # assert!(step.iter().all(|number| number.is_finite()));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct CorrelatedGradient {
    strategy: Strategy,
    clipping: Clipping,
    noise_multiplier: f64,
    expected_batch_size: f64,
    keyed: Option<(Arc<NoiseKey>, RunState)>,
    next_step: u64,
    run: Option<Run>,
    /// The process in which it was made.
    process: ProcessMark,
}

/// What begins with the first step, when the number of parameters is known.
struct Run {
    width: usize,
    noise: CorrelatedNoise,
    history: Wiped<i64>,
}

impl CorrelatedGradient {
    /// Noise of `noise_multiplier` times the sensitivity of the whole run, for gradients that are clipped to
    /// `clip_norm`. With a key, [`CorrelatedGradient::resume`] makes the noise again.
    ///
    /// # Errors
    /// [`Error::Parameter`] as for [`NoisyGradient::new`](super::NoisyGradient::new) and [`CorrelatedNoise::new`], for
    /// fewer steps than coefficients or more than 2^20, and for a sensitivity below 1; [`Error::Randomness`].
    pub fn new(
        strategy: Strategy,
        clip_norm: f64,
        noise_multiplier: f64,
        expected_batch_size: f64,
        key: Option<Arc<NoiseKey>>,
    ) -> Result<Self, Error> {
        let Strategy { numerators, steps, gain, sensitivity, .. } = &strategy;
        if !(numerators.len() as u64..=MAX_STEPS).contains(steps) {
            let given = format!("{steps} for {} coefficients", numerators.len());
            return Err(Error::parameter("steps", given, "at least as many as coefficients, and at most 2**20"));
        }
        if !(1.0..=power_of_two(32)).contains(sensitivity) {
            return Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "from 1 to 2**32"));
        }
        let this = Self {
            clipping: Clipping::coarse(clip_norm)?,
            noise_multiplier: in_range("noise_multiplier", noise_multiplier, -20, 11)?,
            expected_batch_size: in_range("expected_batch_size", expected_batch_size, -32, 53)?,
            keyed: key.map(|key| RunState::new().map(|state| (key, state))).transpose()?,
            next_step: 0,
            run: None,
            process: ProcessMark::new()?,
            strategy: strategy.clone(),
        };
        let most = largest_sigma(numerators, *gain)? / this.sigma(MAX_WIDTH);
        if most < 1.0 {
            let limit = noise_multiplier * most * (1.0 - 1e-4); // four digits of it are shown, which may be rounded up
            let allowed = format!("at most {limit:.4e} for this strategy and participation");
            return Err(Error::parameter("noise_multiplier", noise_multiplier, allowed));
        }
        Ok(this)
    }

    /// Another run with these parameters, from its first step.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn start(&self, key: Option<Arc<NoiseKey>>) -> Result<Self, Error> {
        let strategy = self.strategy.clone();
        Self::new(strategy, self.clipping.clip_norm(), self.noise_multiplier, self.expected_batch_size, key)
    }

    /// How gradients are clipped and added up.
    #[must_use]
    pub fn clipping(&self) -> &Clipping {
        &self.clipping
    }

    /// The ratio of the noise to the sensitivity of the run.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// The divisor of the noisy sums.
    #[must_use]
    pub fn expected_batch_size(&self) -> f64 {
        self.expected_batch_size
    }

    /// How many steps have been made.
    #[must_use]
    pub fn next_step(&self) -> u64 {
        self.next_step
    }

    /// What no other run has, if there is a key. A resumed run keeps it.
    #[must_use]
    pub fn id(&self) -> Option<[u8; 16]> {
        self.keyed.as_ref().map(|(_, state)| state.id)
    }

    /// What [`CorrelatedGradient::resume`] needs besides the key. It is public, and sealed by the key.
    ///
    /// # Errors
    /// [`Error::Parameter`] when there is no key.
    pub fn state(&self) -> Result<Vec<u8>, Error> {
        let Some((key, state)) = &self.keyed else {
            return Err(Error::parameter("key", "None", "given to start() for a run that can be resumed"));
        };
        let width = self.run.as_ref().filter(|_| self.next_step > 0).map_or(0, |run| run.width);
        Ok(state.to_bytes(key, &self.digest(), width))
    }

    /// That of all that the noise and its privacy depend on.
    fn digest(&self) -> [u8; 32] {
        let Strategy { numerators, steps, sensitivity, participation, .. } = &self.strategy;
        let mut digest = Sha256::new_with_prefix((numerators.len() as u64).to_le_bytes());
        for numerator in numerators {
            digest.update(numerator.to_le_bytes());
        }
        digest.update(steps.to_le_bytes());
        for number in [*sensitivity, self.clipping.clip_norm(), self.noise_multiplier, self.expected_batch_size] {
            digest.update(number.to_bits().to_le_bytes());
        }
        digest.chain_update(participation).finalize().into()
    }

    /// The next step for the gradients `rows` of a batch, each as long as `out`; there may be none.
    ///
    /// # Errors
    /// [`Error::Halted`] after the last step and in another process; [`Error::Parameter`] when `out` is not as long as
    /// in the first step, or `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU; [`Error::Randomness`];
    /// [`Error::Allocation`], where fewer bands need less. Then `out` is zeros, and the step has not been made.
    ///
    /// # Panics
    /// When `out` is empty, `rows` are not whole rows, or `threads` is zero.
    pub fn step<T: Real>(&mut self, rows: &[T], out: &mut [T], threads: usize) -> Result<(), Error> {
        self.begin(out.len())?;
        let mut sums = Wiped::try_new(out.len())?;
        self.clipping.add(rows, &mut sums, threads)?;
        self.release(&sums, out, threads, &mut go_on)
    }

    /// Checks that there is another step for gradients of this width.
    ///
    /// # Errors
    /// Those of [`CorrelatedGradient::step`] that are known before a batch is read.
    pub fn begin(&mut self, width: usize) -> Result<(), Error> {
        if !self.process.is_current() {
            let problem =
                "a run cannot go on in another process than the one that started it: start or resume one there";
            return Err(Error::Halted(problem.into()));
        }
        if self.next_step == self.strategy.steps {
            return Err(Error::Halted(format!("all {} steps of the strategy have been made", self.next_step)));
        }
        match &self.run {
            Some(run) if run.width == width => return Ok(()),
            Some(run) if self.next_step > 0 => {
                let allowed = format!("of {} parameters as before", run.width);
                return Err(Error::parameter("gradients", width, allowed));
            }
            _ => {}
        }
        if width > MAX_WIDTH {
            return Err(Error::parameter("gradients", width, "of at most 2**40 parameters"));
        }
        let noise = CorrelatedNoise::new(self.strategy.numerators.clone(), self.sigma(width), self.strategy.gain)?;
        let length = noise.history_length(width);
        let history = Wiped::try_new(length)?;
        self.run = Some(Run { width, noise, history });
        Ok(())
    }

    /// Writes to `out` the `sums` in steps of the grid with the noise of the next step, added modulo 2^64, as numbers
    /// divided by the expected batch size; asks `pause` now and then whether to go on. Sums wrap around above 2^29 clip
    /// norms.
    ///
    /// # Errors
    /// As for [`CorrelatedGradient::step`], and the errors of `pause`.
    ///
    /// # Panics
    /// When there are fewer sums than numbers in `out`.
    pub fn release<T: Real>(
        &mut self,
        sums: &[i64],
        out: &mut [T],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        self.begin(out.len())?;
        let (number, emit) = (self.next_step, self.emit(sums));
        let Some(Run { noise, history, .. }) = &mut self.run else { unreachable!("it has begun") };
        let step = Step { number, history };
        if let Some((key, state)) = &mut self.keyed {
            let nonce = nonce()?;
            let words = state.words(key, number, &nonce, &noise.identity());
            noise.keyed(&words, step, out, threads, pause, &emit)?;
            state.nonces.push(nonce);
        } else {
            noise.fresh(step, out, threads, pause, &emit)?;
        }
        self.next_step += 1;
        Ok(())
    }

    /// Writes to `out` what [`CorrelatedGradient::release`] does, with noise from `rng`.
    ///
    /// # Errors
    /// As for [`CorrelatedGradient::step`], and [`Error::Parameter`] when there is a key.
    ///
    /// # Panics
    /// When there are fewer sums than numbers in `out`.
    pub fn release_with<T: Real, R: TryCryptoRng + ?Sized>(
        &mut self,
        sums: &[i64],
        out: &mut [T],
        rng: &mut R,
    ) -> Result<(), Error> {
        if self.keyed.is_some() {
            return Err(Error::parameter("rng", "a generator", "left out: the noise comes from the key"));
        }
        self.begin(out.len())?;
        let (number, emit) = (self.next_step, self.emit(sums));
        let Some(Run { noise, history, .. }) = &mut self.run else { unreachable!("it has begun") };
        noise.given(Step { number, history }, out, rng, &emit)?;
        self.next_step += 1;
        Ok(())
    }

    /// Makes the noise of the steps of a run again, so that the next step goes on where they ended.
    ///
    /// # Errors
    /// [`Error::State`] for what [`CorrelatedGradient::state`] has not given, or others have written;
    /// [`Error::Parameter`] when there is no key, the state is of another key or of other parameters, and when steps
    /// have been made already. Nothing has been drawn then. [`Error::Randomness`], and the errors of `pause`. No step has
    /// been made after an error.
    pub fn resume(&mut self, state: &[u8], threads: usize, pause: &mut Pause<'_>) -> Result<(), Error> {
        let Some((key, _)) = &self.keyed else {
            return Err(Error::parameter("key", "none", "that of the run that is resumed"));
        };
        if self.next_step > 0 {
            let given = format!("one for a run that has made {} steps", self.next_step);
            return Err(Error::parameter("state", given, "for a run that has made none"));
        }
        let key = Arc::clone(key);
        let (state, width) = RunState::from_bytes(state, &key, &self.digest())?;
        self.run = None;
        let replayed = if state.nonces.is_empty() { Ok(()) } else { self.replay(&key, &state, width, threads, pause) };
        if replayed.is_err() {
            self.run = None; // its history is that of no step
            return replayed;
        }
        self.next_step = state.nonces.len() as u64;
        self.keyed = Some((key, state));
        Ok(())
    }

    fn replay(
        &mut self,
        key: &NoiseKey,
        state: &RunState,
        width: usize,
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        self.begin(width)?;
        let Some(Run { noise, history, .. }) = &mut self.run else { unreachable!("it has begun") };
        let mut nothing = vec![(); width];
        for (number, nonce) in (0..).zip(&state.nonces) {
            let words = state.words(key, number, nonce, &noise.identity());
            noise.keyed(&words, Step { number, history }, &mut nothing, threads, pause, &|_, _, _| {})?;
        }
        Ok(())
    }

    /// What adds noise to its part of `sums`, and writes the numbers that are released.
    fn emit<'a, T: Real>(&self, sums: &'a [i64]) -> impl Fn(usize, &[i64], &mut [T]) + Sync + use<'a, T> {
        let (granularity, divisor) = (self.clipping.granularity() / f64::from(UNIT), self.expected_batch_size);
        move |first, noise, out| {
            for ((out, &sum), &noise) in out.iter_mut().zip(&sums[first..]).zip(noise) {
                let units = sum.wrapping_mul(i64::from(UNIT)).wrapping_add(noise) as f64;
                *out = T::from_f64(units * granularity / divisor);
            }
        }
    }

    /// The parameter of the discrete Gaussians for gradients of `width` numbers, in 2^-12 steps of the grid.
    fn sigma(&self, width: usize) -> f64 {
        let multiplier = (self.noise_multiplier * self.strategy.sensitivity).next_up();
        let units = self.clipping.sensitivity_steps(width) * u64::from(UNIT);
        (multiplier * units as f64).next_up()
    }
}

impl fmt::Debug for CorrelatedGradient {
    /// Prints nothing of the noise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorrelatedGradient").field("next_step", &self.next_step).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Ratio, Scale};
    use crate::rng::SeededRng;
    use crate::samplers::{DiscreteGaussian, Keyed, Sampler};

    const STEPS: u64 = 9;

    fn strategy(numerators: &[u32]) -> Strategy {
        let participation = "once".into();
        Strategy { numerators: numerators.to_vec(), steps: STEPS, gain: 4.0, sensitivity: 2.0, participation }
    }

    fn key() -> Arc<NoiseKey> {
        Arc::new(NoiseKey::from_secret_bytes(&[7; 32]).unwrap())
    }

    fn run(numerators: &[u32], key: Option<Arc<NoiseKey>>) -> CorrelatedGradient {
        CorrelatedGradient::new(strategy(numerators), 1.0, 0.5, 1.0, key).unwrap()
    }

    /// The noise of each step, in units, of releases of zeros.
    fn noise(run: &mut CorrelatedGradient, width: usize, steps: u64, threads: usize) -> Vec<Vec<i64>> {
        let unit = run.clipping().granularity() / f64::from(UNIT);
        let mut released = |_| {
            let mut out = vec![0f64; width];
            run.release(&vec![0; width], &mut out, threads, &mut go_on).unwrap();
            out.into_iter().map(|x| (x / unit) as i64).collect()
        };
        (0..steps).map(&mut released).collect()
    }

    /// What the noise must be, from the independent noise of the steps.
    fn expected(run: &CorrelatedGradient, numerators: &[u32], width: usize) -> Vec<Vec<i64>> {
        let sigma = Scale::on_grid(Ratio::from_f64(run.sigma(width)).unwrap()).unwrap();
        let sampler = DiscreteGaussian::new(sigma).unwrap();
        let mut steps: Vec<Vec<i64>> = vec![];
        let (key, state) = run.keyed.as_ref().unwrap();
        for (step, nonce) in (0..).zip(&state.nonces) {
            let mut z = vec![0; width];
            let words = state.words(key, step, nonce, &sampler.identity());
            words.fill(0, &mut z, |rng, block| sampler.fill_with(block, rng)).unwrap();
            for (i, z) in z.iter_mut().enumerate() {
                let before = steps.iter().rev().zip(&numerators[1..]);
                let sum: i128 = before.map(|(w, &m)| i128::from(w[i]) * i128::from(m)).sum();
                *z -= ((2 * sum + i128::from(UNIT)).div_euclid(2 * i128::from(UNIT))) as i64;
            }
            steps.push(z);
        }
        steps
    }

    #[test]
    fn the_noise_is_that_of_the_recursion() {
        for numerators in [&[4096][..], &[4096, 4096], &[4096, 2049, 1], &[4096, 3000, 2000, 2000, 1999, 7, 0, 0, 0]] {
            for width in [1, 511, 512, 513, 4095, 4097, 40_000] {
                let mut run = run(numerators, Some(key()));
                let found = noise(&mut run, width, STEPS, 3);
                assert_eq!(found, expected(&run, numerators, width), "{numerators:?} {width}");
                assert!(found.iter().flatten().any(|&w| w.abs() > 1 << 30));
            }
        }
    }

    #[test]
    fn a_run_goes_on_where_its_state_ends() {
        let numerators = [4096, 3000, 2000, 1000];
        for done in [0, 1, 3, 4, 8] {
            let mut first = run(&numerators, Some(key()));
            let mut found = noise(&mut first, 5000, done, 2);
            let state = first.state().unwrap();
            let mut second = run(&numerators, Some(key()));
            second.resume(&state, 1, &mut go_on).unwrap();
            assert_eq!((second.next_step(), second.id(), second.state()), (done, first.id(), Ok(state)));
            found.extend(noise(&mut second, 5000, STEPS - done, 1));
            assert_eq!(found, expected(&second, &numerators, 5000));
        }
    }

    #[test]
    fn a_step_that_failed_is_made_again() {
        let numerators = [4096, 3000, 2000];
        let mut run = run(&numerators, Some(key()));
        let mut found = noise(&mut run, 600, 4, 1);
        let mut out = [1f32; 600];
        let ended = run.release(&[0; 600], &mut out, 1, &mut || Err(Error::Interrupted));
        assert_eq!((ended, out, run.next_step()), (Err(Error::Interrupted), [0.0; 600], 4));
        found.extend(noise(&mut run, 600, 5, 1));
        assert_eq!(found, expected(&run, &numerators, 600));
    }

    #[test]
    fn an_interrupted_resumption_leaves_no_history() {
        let mut first = run(&[4096, 4000], Some(key()));
        noise(&mut first, 10, 2, 1);
        let state = first.state().unwrap();
        let mut second = run(&[4096, 4000], Some(key()));
        let mut left = 1;
        let mut pause = || {
            left -= 1;
            if left < 0 { Err(Error::Interrupted) } else { Ok(()) }
        };
        assert_eq!(second.resume(&state, 1, &mut pause), Err(Error::Interrupted));
        assert!(second.next_step() == 0 && second.run.is_none() && second.id() != first.id());
        let found = noise(&mut second, 10, 3, 1);
        assert_eq!(found, expected(&second, &[4096, 4000], 10));
    }

    #[test]
    fn gradients_are_added_in_steps_of_the_grid() {
        let (mut noisy, mut silent) = (run(&[4096, 100], None), run(&[4096, 100], None));
        for _ in 0..STEPS {
            let (mut a, mut b) = ([0f64; 3], [0f64; 3]);
            let (mut one, mut other) = (SeededRng::new(1).unwrap(), SeededRng::new(1).unwrap());
            noisy.release_with(&[1 << 22, -(1 << 21), 1], &mut a, &mut one).unwrap();
            silent.release_with(&[0; 3], &mut b, &mut other).unwrap();
            let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            assert_eq!(difference, [1.0, -0.5, 2f64.powi(-22)]);
        }
        let mut out = [1f32; 2];
        let mut run = run(&[4096], None);
        run.step(&[3.0, 4.0, 0.0, f32::NAN], &mut out, 1).unwrap();
        assert!(out.iter().all(|x| x.is_finite()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let message = |result: Result<CorrelatedGradient, Error>| result.unwrap_err().to_string();
        let made = |strategy, noise_multiplier| CorrelatedGradient::new(strategy, 1.0, noise_multiplier, 1.0, None);
        for numerators in [&[][..], &[4095], &[4096, 4097], &[4096, 1, 2], &[0]] {
            assert!(message(made(strategy(numerators), 1.0)).starts_with("coefficients must be"), "{numerators:?}");
        }
        assert!(message(made(Strategy { steps: 1, ..strategy(&[4096, 1]) }, 1.0)).starts_with("steps must be"));
        assert!(message(made(Strategy { sensitivity: 0.9, ..strategy(&[4096]) }, 1.0)).starts_with("sensitivity"));
        assert!(message(made(strategy(&[4096]), 600.0)).starts_with("noise_multiplier must be at most 4.5"));
        assert!(message(made(strategy(&[4096]), 1e9)).starts_with("noise_multiplier must be from 2**-20"));
        assert!(message(made(Strategy { steps: 1 << 21, ..strategy(&[4096]) }, 1.0)).contains("at most 2**20"));
        for gain in [f64::NAN, 0.0, 0.999, f64::INFINITY] {
            assert!(message(made(Strategy { gain, ..strategy(&[4096, 1]) }, 1.0)).starts_with("gain must be from 1"));
        }
        let wild = Strategy { gain: 1e3, ..strategy(&[4096; 9]) };
        assert!(made(wild.clone(), 1e-3).is_ok());
        assert!(message(made(wild, 10.0)).starts_with("noise_multiplier must be at most"));

        let mut run = run(&[4096, 1], Some(key()));
        noise(&mut run, 4, STEPS, 1);
        let mut out = [1f32; 4];
        let ended = run.step(&[0.0; 8], &mut out, 1).unwrap_err();
        assert_eq!(ended, Error::Halted("all 9 steps of the strategy have been made".into()));
        let mut inherited =
            CorrelatedGradient { process: ProcessMark::of_another(), ..made(strategy(&[4096]), 1.0).unwrap() };
        assert!(inherited.step(&[0.0; 8], &mut out, 1).unwrap_err().to_string().contains("another process"));
    }

    #[test]
    fn what_is_no_state_of_such_a_run_is_refused() {
        let resumed = |state: &[u8], strategy, key| {
            let mut run = CorrelatedGradient::new(strategy, 1.0, 0.5, 1.0, key).unwrap();
            run.resume(state, 1, &mut go_on)
        };
        let mut own = run(&[4096, 1], Some(key()));
        noise(&mut own, 3, 2, 1);
        let (state, numerators) = (own.state().unwrap(), [4096, 1]);
        let refused = |state: &[u8]| resumed(state, strategy(&numerators), Some(key())).unwrap_err().to_string();
        assert_eq!(resumed(&state, strategy(&numerators), Some(key())), Ok(()));
        for length in 0..state.len() {
            assert!(refused(&state[..length]).starts_with("not the state of a run: it "), "{length}");
        }
        for bit in 0..8 * state.len() {
            let mut changed = state.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                0..4 => "not the state of a run: it does not begin with DPNR",
                4 => "not the state of a run: version",
                5..13 => "state must be that of a run with this key, got that of another key",
                13..45 => "state must be that of a run with these parameters, got that of others",
                _ => "not the state of a run: it is damaged, or not as the run gave it: the seal is wrong",
            };
            assert!(refused(&changed).starts_with(expected), "{bit}");
        }

        let (of_key, of_parameters) = ("state must be that of a run with this key", "with these parameters");
        let message = |strategy, key| resumed(&state, strategy, key).unwrap_err().to_string();
        let other = Arc::new(NoiseKey::from_secret_bytes(&[8; 32]).unwrap());
        assert!(message(strategy(&numerators), Some(other)).starts_with(of_key));
        assert!(message(strategy(&numerators), None).starts_with("key must be that of the run"));
        for other in [
            strategy(&[4096, 2]),
            strategy(&[4096, 1, 0]),
            Strategy { steps: 10, ..strategy(&numerators) },
            Strategy { sensitivity: 2f64.next_up(), ..strategy(&numerators) },
            Strategy { participation: "twice".into(), ..strategy(&numerators) },
        ] {
            assert!(message(other, Some(key())).contains(of_parameters));
        }
        assert!(own.resume(&state, 1, &mut go_on).unwrap_err().to_string().contains("made 2 steps"));
        let mut resumed = run(&numerators, Some(key()));
        resumed.resume(&state, 1, &mut go_on).unwrap();
        let wider = resumed.release(&[0; 4], &mut [0f32; 4], 1, &mut go_on).unwrap_err().to_string();
        assert_eq!(wider, "gradients must be of 3 parameters as before, got 4");
    }
}
