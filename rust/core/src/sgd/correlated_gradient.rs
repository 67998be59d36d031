//! Steps of differentially private stochastic gradient descent whose noise is correlated.

use std::fmt;
use std::sync::Arc;

use rand_core::TryCryptoRng;

use super::correlated_noise::{CorrelatedNoise, Step, UNIT, largest_sigma};
use super::noisy_gradient::in_range;
use super::{Clipping, Real};
use crate::error::Error;
use crate::rng::{NoiseKey, ProcessMark, Ticket, Wiped};
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
/// let strategy = Strategy { numerators: vec![4096, 2048], steps: 10, gain: 1.2, sensitivity };
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
    key: Option<Arc<NoiseKey>>,
    tickets: Vec<Ticket>,
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
    /// What the tickets of its noise are for.
    pub const DOMAIN: &str = "dpnoise.sgd.CorrelatedGradient";

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
        let Strategy { numerators, steps, gain, sensitivity } = &strategy;
        if !(numerators.len() as u64..=MAX_STEPS).contains(steps) {
            let given = format!("{steps} for {} coefficients", numerators.len());
            return Err(Error::parameter("steps", given, "at least as many as coefficients, and at most 2**20"));
        }
        if !(1.0..=2f64.powi(32)).contains(sensitivity) {
            return Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "from 1 to 2**32"));
        }
        let this = Self {
            clipping: Clipping::coarse(clip_norm)?,
            noise_multiplier: in_range("noise_multiplier", noise_multiplier, -20, 11)?,
            expected_batch_size: in_range("expected_batch_size", expected_batch_size, -32, 53)?,
            key,
            tickets: vec![],
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

    /// How many numbers a gradient has, if a step has been made.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        self.run.as_ref().filter(|_| self.next_step > 0).map(|run| run.width)
    }

    /// The tickets of the steps that have been made with a key.
    #[must_use]
    pub fn tickets(&self) -> &[Ticket] {
        &self.tickets
    }

    /// The next step for the gradients `rows` of a batch, each as long as `out`; there may be none.
    ///
    /// # Errors
    /// [`Error::Halted`] after the last step and in another process; [`Error::Parameter`] when `out` is not as long as
    /// in the first step, or `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU; [`Error::Randomness`].
    /// Then `out` is zeros, and the step has not been made.
    ///
    /// # Panics
    /// When `out` is empty, `rows` are not whole rows, or `threads` is zero.
    pub fn step<T: Real>(&mut self, rows: &[T], out: &mut [T], threads: usize) -> Result<(), Error> {
        self.begin(out.len())?;
        let mut sums = Wiped::new(out.len());
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
        let history = Wiped::try_new(length).ok_or_else(|| {
            let given = format!("{length} numbers of 8 bytes, more than there is memory for");
            Error::parameter("bands", given, "fewer for so many parameters")
        })?;
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
        if let Some(key) = &self.key {
            let ticket = key.ticket(Self::DOMAIN, number)?;
            ticket.take()?;
            let words = key.stream(&ticket, &noise.identity());
            noise.keyed(&words, step, out, threads, pause, &emit)?;
            self.tickets.push(ticket);
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
        if self.key.is_some() {
            return Err(Error::parameter("rng", "a generator", "left out: the noise comes from the key"));
        }
        self.begin(out.len())?;
        let (number, emit) = (self.next_step, self.emit(sums));
        let Some(Run { noise, history, .. }) = &mut self.run else { unreachable!("it has begun") };
        noise.given(Step { number, history }, out, rng, &emit)?;
        self.next_step += 1;
        Ok(())
    }

    /// Makes the noise of the steps with these tickets again, for gradients of `width` numbers, so that the next step
    /// goes on where they ended.
    ///
    /// # Errors
    /// [`Error::Parameter`] when there is no key or a ticket is of another one, or not of its step of such a run; for
    /// more tickets than steps, and when steps have been made already; [`Error::Randomness`], and the errors of
    /// `pause`. Then no step has been made.
    pub fn resume(
        &mut self,
        width: usize,
        tickets: Vec<Ticket>,
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        let Some(key) = self.key.clone() else {
            return Err(Error::parameter("key", "none", "that of the run that is resumed"));
        };
        if self.next_step > 0 || tickets.len() as u64 > self.strategy.steps {
            let allowed = format!("of at most {} steps, for a run that has not begun", self.strategy.steps);
            return Err(Error::parameter("state", format!("one of {} steps", tickets.len()), allowed));
        }
        for (step, ticket) in (0..).zip(&tickets) {
            key.check(ticket)?;
            if (ticket.step(), ticket.domain()) != (step, Self::DOMAIN) {
                return Err(Error::parameter(
                    "state",
                    "tickets of others",
                    "one with a ticket for each of its steps, in order",
                ));
            }
        }
        self.run = None;
        if tickets.is_empty() {
            return Ok(());
        }
        let replayed = self.replay(&key, width, &tickets, threads, pause);
        if replayed.is_err() {
            self.run = None; // its history is that of no step
            return replayed;
        }
        self.next_step = tickets.len() as u64;
        self.tickets = tickets;
        Ok(())
    }

    fn replay(
        &mut self,
        key: &NoiseKey,
        width: usize,
        tickets: &[Ticket],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        self.begin(width)?;
        let Some(Run { noise, history, .. }) = &mut self.run else { unreachable!("it has begun") };
        let mut nothing = vec![(); width];
        for (number, ticket) in (0..).zip(tickets) {
            let _was_fresh = ticket.take();
            let words = key.stream(ticket, &noise.identity());
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
    use crate::samplers::{DiscreteGaussian, Keyed};

    const STEPS: u64 = 9;

    fn strategy(numerators: &[u32]) -> Strategy {
        Strategy { numerators: numerators.to_vec(), steps: STEPS, gain: 4.0, sensitivity: 2.0 }
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

    /// What the noise must be, from the independent noise of the tickets.
    fn expected(run: &CorrelatedGradient, numerators: &[u32], width: usize) -> Vec<Vec<i64>> {
        let sigma = Scale::on_grid(Ratio::from_f64(run.sigma(width)).unwrap()).unwrap();
        let sampler = DiscreteGaussian::new(sigma).unwrap();
        let mut steps: Vec<Vec<i64>> = vec![];
        for ticket in run.tickets() {
            let mut z = vec![0; width];
            sampler.regenerate(&key(), ticket, 0, &mut z, 1, &mut go_on).unwrap();
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
    fn a_run_goes_on_where_its_tickets_end() {
        let numerators = [4096, 3000, 2000, 1000];
        for done in [0, 1, 3, 4, 8] {
            let mut first = run(&numerators, Some(key()));
            let mut found = noise(&mut first, 5000, done, 2);
            let copies = first.tickets().iter().map(|ticket| Ticket::from_bytes(&ticket.to_bytes()).unwrap()).collect();
            let mut second = run(&numerators, Some(key()));
            second.resume(5000, copies, 1, &mut go_on).unwrap();
            assert_eq!((second.next_step(), second.tickets().len() as u64), (done, done));
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
        assert_eq!((ended, out, run.next_step(), run.tickets().len()), (Err(Error::Interrupted), [0.0; 600], 4, 4));
        found.extend(noise(&mut run, 600, 5, 1));
        assert_eq!(found, expected(&run, &numerators, 600));
    }

    #[test]
    fn an_interrupted_resumption_leaves_no_history() {
        let mut first = run(&[4096, 4000], Some(key()));
        noise(&mut first, 10, 2, 1);
        let bytes: Vec<_> = first.tickets().iter().map(Ticket::to_bytes).collect();
        let tickets = || bytes.iter().map(|bytes| Ticket::from_bytes(bytes).unwrap()).collect();
        let mut second = run(&[4096, 4000], Some(key()));
        let mut left = 1;
        let mut pause = || {
            left -= 1;
            if left < 0 { Err(Error::Interrupted) } else { Ok(()) }
        };
        assert_eq!(second.resume(10, tickets(), 1, &mut pause), Err(Error::Interrupted));
        assert_eq!((second.next_step(), second.width()), (0, None));
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
    fn tickets_of_others_are_refused() {
        let numerators = [4096, 1];
        let ticket = |secret, domain: &str, step| {
            NoiseKey::from_secret_bytes(&[secret; 32]).unwrap().ticket(domain, step).unwrap()
        };
        let refused = |tickets, key| {
            let mut run = run(&numerators, key);
            run.resume(3, tickets, 1, &mut go_on).unwrap_err().to_string()
        };
        let domain = CorrelatedGradient::DOMAIN;
        assert!(refused(vec![ticket(8, domain, 0)], Some(key())).starts_with("ticket must be a ticket of this key"));
        assert!(refused(vec![ticket(7, "", 0)], Some(key())).starts_with("state must be one with a ticket"));
        assert!(refused(vec![ticket(7, domain, 1)], Some(key())).starts_with("state must be one with a ticket"));
        assert!(refused(vec![], None).starts_with("key must be"));
        let many = (0..10).map(|step| ticket(7, domain, step)).collect();
        assert!(refused(many, Some(key())).starts_with("state must be of at most 9 steps"));
        let mut begun = run(&numerators, Some(key()));
        noise(&mut begun, 3, 1, 1);
        assert!(begun.resume(3, vec![], 1, &mut go_on).is_err());
        let wider = begun.release(&[0; 4], &mut [0f32; 4], 1, &mut go_on).unwrap_err().to_string();
        assert_eq!(wider, "gradients must be of 3 parameters as before, got 4");
    }
}
