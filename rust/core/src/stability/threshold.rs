//! The test whether data are stable (Dwork and Roth 2014, "The algorithmic foundations of differential privacy",
//! Algorithm 13, with noise over the integers).

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use rand_core::TryCryptoRng;

use crate::calibration::tail_threshold;
use crate::error::Error;
use crate::params::{Delta, Epsilon, Ratio, Scale};
use crate::rng::{SecureRng, Wiped};
use crate::samplers::{DiscreteLaplace, Sampler};

/// Tests whether a distance is large: epsilon-differentially private if the distance changes by at most 1 between
/// neighbours, and passed by a distance of 0 with a probability of at most delta.
///
/// ```
/// use dpnoise_core::stability::StabilityTest;
/// let test = StabilityTest::new(1.0, 1e-6)?;
/// assert_eq!(test.threshold(), 13);
/// assert!(test.passes(1000)?);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StabilityTest {
    epsilon: Epsilon,
    delta: Delta,
    threshold: i64,
    noise: DiscreteLaplace,
}

impl StabilityTest {
    /// The test that spends `epsilon` and `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not from 2^-40 to 2^40, or a delta that is not between 0 and 1.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, Error> {
        let (epsilon, delta) = (Epsilon::new(epsilon)?, Delta::new(delta)?);
        let scale = Ratio::from_f64(epsilon.get())
            .and_then(|epsilon| Ratio::new(1, 1)?.checked_div(epsilon))
            .and_then(|ratio| Scale::new(ratio).ok())
            .ok_or_else(|| Error::parameter("epsilon", format!("{:?}", epsilon.get()), "from 2**-40 to 2**40"))?;
        Ok(Self { epsilon, delta, threshold: tail_threshold(epsilon, 1, delta, 0), noise: DiscreteLaplace::new(scale) })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.get()
    }

    /// Delta.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta.get()
    }

    /// The smallest t >= 0 with P(noise > t) <= delta, for discrete Laplace noise of scale 1/epsilon.
    #[must_use]
    pub fn threshold(&self) -> i64 {
        self.threshold
    }

    /// Whether `distance`, with noise, is above the threshold.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn passes(&self, distance: i64) -> Result<bool, Error> {
        self.passes_with(distance, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn passes_with<R: TryCryptoRng + ?Sized>(&self, distance: i64, rng: &mut R) -> Result<bool, Error> {
        let mut noise = Wiped::new(1);
        self.noise.fill_with(&mut noise, rng)?;
        let [distance, noise, threshold] = [distance, noise[0], self.threshold].map(i128::from);
        Ok(declassify(Reason::Answer, distance.wrapping_add(noise) > threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    #[test]
    fn bad_parameters_are_named() {
        for (epsilon, delta, expected) in [
            (0.0, 0.1, "epsilon must be positive and finite, got 0.0"),
            (f64::NAN, 0.1, "epsilon must be positive and finite, got NaN"),
            (1e-13, 0.1, "epsilon must be from 2**-40 to 2**40, got 1e-13"),
            (1.0, 0.0, "delta must be between 0 and 1, both excluded, got 0.0"),
            (1.0, 1.0, "delta must be between 0 and 1, both excluded, got 1.0"),
        ] {
            assert_eq!(StabilityTest::new(epsilon, delta).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_distance_passes_when_it_is_above_the_threshold_with_its_noise() {
        let test = StabilityTest::new(0.5, 0.01).unwrap();
        for seed in 0..200 {
            let mut noise = [0];
            test.noise.fill_with(&mut noise, &mut SeededRng::new(seed).unwrap()).unwrap();
            for distance in [0, 5, 8, 9, 10, i64::MAX, i64::MIN] {
                let passes = test.passes_with(distance, &mut SeededRng::new(seed).unwrap()).unwrap();
                assert_eq!(passes, distance.saturating_add(noise[0]) > test.threshold());
            }
        }
        assert!(test.passes_with(9, &mut ScriptedRng::new([])).is_err());
    }
}
