//! A store of noise, for callers who release values one at a time.

use core::{fmt, mem};
use std::sync::Arc;

use super::additive::{Additive, Calibration, Numbers, OnGrid};
use crate::error::Error;
use crate::rng::{ProcessMark, SecureRng, Wiped};

/// So many samples take about as long as the key they are drawn with.
const SAMPLES: usize = 256;

/// A mechanism whose noise is drawn some hundred samples at a time, under a fresh key from the operating system, which is
/// wiped then.
/// Each release has noise of its own, which is overwritten when it is used. The child of a fork discards the noise of
/// the parent, as [`WordBuffer`](crate::rng::WordBuffer) does with words. A virtual machine's snapshot that is restored
/// twice cannot be detected, and repeats what is left in the store.
///
/// ```
/// use dpnoise_core::mechanisms::{Laplace, NoiseBuffer};
/// let mut buffer = NoiseBuffer::new(&Laplace::new(1.0, 1.0, None)?)?;
/// let (first, second) = (buffer.release(37.25)?, buffer.release(37.25)?);
/// # assert_ne!(first, second);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct NoiseBuffer<P: Calibration<V>, V: Numbers> {
    noise: Arc<OnGrid<P::Noise, V>>,
    samples: Wiped<i64>,
    /// The number of samples that have been used.
    used: usize,
    /// The process in which they were drawn.
    process: ProcessMark,
}

impl<P: Calibration<V>, V: Numbers> NoiseBuffer<P, V> {
    /// An empty store, which is filled when the first value is released.
    ///
    /// # Errors
    /// [`Error::Randomness`] when the operating system's generator fails, and those of [`Additive::noise`].
    pub fn new(mechanism: &Additive<P, V>) -> Result<Self, Error> {
        let noise = mechanism.noise(1)?;
        Ok(Self { noise, samples: Wiped::new(SAMPLES), used: SAMPLES, process: ProcessMark::new()? })
    }

    /// Releases one value.
    ///
    /// # Errors
    /// Those of [`Numbers::check`] and [`Numbers::add`], and [`Error::Randomness`] when a refill fails.
    pub fn release(&mut self, value: V::Value) -> Result<V::Value, Error> {
        let mut values = [value];
        V::check(&values)?;
        if self.used == self.samples.len() || !self.process.is_current() {
            self.refill()?;
        }
        let sample = mem::take(&mut self.samples[self.used]);
        self.used += 1;
        V::add(&self.noise.grid, &mut values, &[sample])?;
        Ok(values[0])
    }

    #[cold]
    fn refill(&mut self) -> Result<(), Error> {
        let process = ProcessMark::new()?;
        self.used = self.samples.len();
        self.noise.fill_counted(&mut self.samples, &mut SecureRng::new()?)?;
        (self.used, self.process) = (0, process);
        Ok(())
    }
}

impl<P: Calibration<V>, V: Numbers> fmt::Debug for NoiseBuffer<P, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoiseBuffer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::mechanisms::{DiscreteLaplace, Laplace};

    #[test]
    fn every_sample_is_used_once_in_order_and_overwritten() {
        let mut buffer = NoiseBuffer::new(&DiscreteLaplace::new(1e-9, 1).unwrap()).unwrap();
        let first = buffer.release(5).unwrap() - 5;
        let stored = buffer.samples.to_vec();
        assert_eq!(stored[0], 0);
        let rest: Vec<i64> = (1..SAMPLES as i64).map(|x| buffer.release(x).unwrap() - x).collect();
        assert_eq!(rest, stored[1..]);
        assert!(buffer.samples.iter().all(|&sample| sample == 0));
        let next: Vec<i64> = (0..SAMPLES).map(|_| buffer.release(0).unwrap()).collect();
        // With a scale of 10^9 no sample comes twice but with a probability of 10^-4, and never more than a few do.
        let all: HashSet<i64> = [first].into_iter().chain(rest).chain(next).collect();
        assert!(all.len() > 2 * SAMPLES - 8);
    }

    #[test]
    fn noise_of_another_process_is_not_used() {
        let mut buffer = NoiseBuffer::new(&DiscreteLaplace::new(1e-9, 1).unwrap()).unwrap();
        buffer.release(0).unwrap();
        let stored = buffer.samples.to_vec();
        assert_eq!(buffer.release(0).unwrap(), stored[1], "the same process goes on");
        buffer.process = ProcessMark::of_another(); // as it is in the child of a fork
        let fresh: HashSet<i64> = (0..SAMPLES).map(|_| buffer.release(0).unwrap()).collect();
        assert!(stored[2..].iter().filter(|sample| fresh.contains(sample)).count() < 8);
    }

    #[test]
    fn a_refused_value_uses_no_noise() {
        let mut buffer = NoiseBuffer::new(&Laplace::new(1.0, 1.0, None).unwrap()).unwrap();
        assert_eq!(buffer.release(f64::NAN), Err(Error::data("x", "must be finite: no NaN and no infinity")));
        assert_eq!(buffer.used, SAMPLES, "nothing was drawn");
        buffer.release(1.0).unwrap();
        assert!(buffer.release(f64::INFINITY).is_err());
        assert_eq!(buffer.used, 1);
    }
}
