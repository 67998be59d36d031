//! The mechanism that adds noise to every value: written once, for real values and for integers.

use core::fmt::Debug;
use core::ops::Deref;
use std::sync::Arc;

use dpnoise_kernels::arch::saturating::add_saturating;
use dpnoise_kernels::arith::ball::Ball;
use rand_core::TryCryptoRng;

use crate::arguments::Argument;
use crate::calibration::{certain_delta, least_epsilon, zero_or_more};
use crate::error::Error;
use crate::instruction_set;
use crate::rng::{SecureRng, wiped_on_error};
use crate::samplers::{IntegerNoise, LastNoise, Symmetric};
use crate::threads::{self, NOISE, Pause, go_on};

/// A number of values as one that memory can have.
pub(super) fn addressable(count: u64) -> Result<usize, Error> {
    usize::try_from(count).map_err(|_| Error::parameter("count", count, format!("at most {}", usize::MAX)))
}

/// The values of a release, which overwrites them.
#[derive(Debug)]
pub enum Values<'a> {
    /// Real numbers.
    Reals(&'a mut [f64]),
    /// Integers.
    Integers(&'a mut [i64]),
}

impl<'a> From<&'a mut [f64]> for Values<'a> {
    fn from(values: &'a mut [f64]) -> Self {
        Self::Reals(values)
    }
}

impl<'a> From<&'a mut [i64]> for Values<'a> {
    fn from(values: &'a mut [i64]) -> Self {
        Self::Integers(values)
    }
}

/// The types of values.
pub trait Number: Copy + Default + Send + Sync {
    /// Whether it is the type of integers.
    const IS_INTEGER: bool;

    /// The values, if they are of this type.
    fn of(values: Values<'_>) -> Option<&mut [Self]>;
}

impl Number for f64 {
    const IS_INTEGER: bool = false;

    fn of(values: Values<'_>) -> Option<&mut [Self]> {
        if let Values::Reals(values) = values { Some(values) } else { None }
    }
}

impl Number for i64 {
    const IS_INTEGER: bool = true;

    fn of(values: Values<'_>) -> Option<&mut [Self]> {
        if let Values::Integers(values) = values { Some(values) } else { None }
    }
}

/// The numbers that a mechanism takes and releases: [`Integers`], [`Residues`], or [`Reals`](super::Reals) on their grids. Unless
/// an implementation says otherwise, they are integers, and all of them are taken.
pub trait Numbers: Clone + Debug + Send + Sync {
    /// The type of a number.
    type Value: Number;

    /// The grid of a release.
    type Grid: Clone + Debug + Send + Sync;

    /// How far a number is from its rounding to the grid, at most, in steps.
    const ROUNDING: f64 = 0.0;

    /// The granularity of a grid.
    fn granularity(_grid: &Self::Grid) -> f64 {
        1.0
    }

    /// Refuses values that the mechanism is not defined for, in a time that does not depend on them.
    ///
    /// # Errors
    /// [`Error::Data`], which does not reveal the value.
    fn check(_values: &[Self::Value]) -> Result<(), Error> {
        Ok(())
    }

    /// Adds to every value a sample of noise, in steps of the grid.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    fn add(grid: &Self::Grid, values: &mut [Self::Value], samples: &[i64]) -> Result<(), Error>;
}

/// Integers of 64 bits; sums outside their range saturate.
#[derive(Clone, Copy, Debug)]
pub struct Integers;

impl Numbers for Integers {
    type Value = i64;
    type Grid = ();

    fn add((): &(), values: &mut [i64], samples: &[i64]) -> Result<(), Error> {
        add_saturating(instruction_set::current()?, values, samples);
        Ok(())
    }
}

/// Integers modulo 2^64, as those that several parties add up: sums outside the range of 64 bits wrap around, so that the sum of
/// all releases is a function of the sum of all values and all noise.
#[derive(Clone, Copy, Debug)]
pub struct Residues;

impl Numbers for Residues {
    type Value = i64;
    type Grid = ();

    fn add((): &(), values: &mut [i64], samples: &[i64]) -> Result<(), Error> {
        for (value, &sample) in values.iter_mut().zip(samples) {
            *value = value.wrapping_add(sample);
        }
        Ok(())
    }
}

/// Integer noise, and the grid that its steps are of.
#[derive(Clone, Debug)]
pub struct OnGrid<N, V: Numbers> {
    pub(super) steps: N,
    pub(super) grid: V::Grid,
}

impl<N: Symmetric, V: Numbers> OnGrid<N, V> {
    /// The granularity of the grid; 1 for integers.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        V::granularity(&self.grid)
    }

    /// The scale of the noise, in the unit of the values.
    #[must_use]
    pub fn real_scale(&self) -> f64 {
        self.scale().ratio().to_f64() * self.granularity()
    }
}

impl<N: Symmetric, V: Numbers> Deref for OnGrid<N, V> {
    type Target = IntegerNoise;

    fn deref(&self) -> &IntegerNoise {
        &self.steps
    }
}

/// What a release is promised to cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// Epsilon, unless there is only a rho.
    pub epsilon: Option<f64>,
    /// Delta, unless there is only a rho.
    pub delta: Option<f64>,
    /// The parameter of zero-concentrated differential privacy, when that was given.
    pub rho: Option<f64>,
}

impl Guarantee {
    pub(super) fn new(epsilon: f64, delta: f64) -> Self {
        Self { epsilon: Some(epsilon), delta: Some(delta), rho: None }
    }
}

/// How delta follows from epsilon.
pub type Curve<'a> = Box<dyn Fn(&Ball) -> Ball + 'a>;

/// Privacy parameters.
pub trait Privacy: Clone + Debug + Send + Sync {
    /// The guarantee.
    fn guarantee(&self) -> Guarantee;
}

/// Privacy parameters, which determine the noise for numbers of the kind `V`.
pub trait Calibration<V: Numbers>: Privacy {
    /// The distribution of the noise.
    type Noise: Symmetric;

    /// The type of a sensitivity.
    type Sensitivity: Copy + Debug + Into<Argument> + Send + Sync;

    /// Whether several values that are released at once may need more noise than one.
    fn depends_on_count(&self, sensitivity: Self::Sensitivity) -> bool;

    /// The noise for a release of `count` values at once, one or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the noise for that many values is out of range.
    fn noise(&self, sensitivity: Self::Sensitivity, numbers: &V, count: usize)
    -> Result<OnGrid<Self::Noise, V>, Error>;

    /// How delta follows from epsilon for a release of `count` values, or for shares towards as many colluding parties, who
    /// know their own.
    ///
    /// # Errors
    /// [`Error::Parameter`] as for [`Calibration::noise`], and where this is not computed.
    fn curve(_mechanism: &Additive<Self, V>, _count: u64) -> Result<Curve<'_>, Error> {
        Err(Error::parameter("mechanism", "another one", "one for whose noise a delta is computed"))
    }
}

/// A mechanism that adds to numbers of the kind `V` the noise that the privacy parameters `P` require.
#[derive(Clone, Debug)]
pub struct Additive<P: Calibration<V>, V: Numbers> {
    pub(super) privacy: P,
    pub(super) sensitivity: P::Sensitivity,
    numbers: V,
    /// The noise for one value.
    noise: Arc<OnGrid<P::Noise, V>>,
    last: LastNoise<OnGrid<P::Noise, V>>,
}

impl<P: Calibration<V>, V: Numbers> Additive<P, V> {
    pub(super) fn calibrated(privacy: P, sensitivity: P::Sensitivity, numbers: V) -> Result<Self, Error> {
        let noise = Arc::new(privacy.noise(sensitivity, &numbers, 1)?);
        Ok(Self { privacy, sensitivity, numbers, noise, last: LastNoise::default() })
    }

    /// What a release costs.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        self.privacy.guarantee()
    }

    /// A delta for which a release of `count` values is (epsilon, delta)-differentially private: for one integer, and a
    /// sensitivity that is whole, the least one (for Gaussian noise by Theorem 7 of Canonne, Kamath and Steinke 2020). For
    /// shares it is that of the sum of all parties' releases towards `count` colluding parties, for one integer or a
    /// sensitivity of 1. Rounded up.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not zero or more and finite, as for [`Additive::noise`], unless fewer
    /// parties collude than there are, and for noise whose delta is not computed.
    pub fn delta_for(&self, epsilon: f64, count: u64) -> Result<f64, Error> {
        let (epsilon, curve) = (zero_or_more(epsilon)?, P::curve(self, count)?);
        let Guarantee { epsilon: whole, delta, .. } = self.guarantee();
        // All shares together are noise of an epsilon alone.
        let is_pure = count == 0 && delta == Some(0.0) && whole <= Some(epsilon);
        Ok(if is_pure { 0.0 } else { certain_delta(epsilon, curve) })
    }

    /// The least epsilon for which [`Additive::delta_for`] is at most `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not above 0 and at most 1, but 0 for all shares of noise of an epsilon alone,
    /// and as for [`Additive::delta_for`].
    pub fn epsilon_for(&self, delta: f64, count: u64) -> Result<f64, Error> {
        let (curve, whole) = (P::curve(self, count)?, self.guarantee());
        match whole.epsilon.filter(|_| count == 0 && delta == 0.0 && whole.delta == Some(0.0)) {
            Some(epsilon) => Ok(epsilon),
            None => least_epsilon(delta, curve),
        }
    }

    /// Whether the values are integers; else they are real numbers.
    #[must_use]
    pub fn takes_integers(&self) -> bool {
        V::Value::IS_INTEGER
    }

    /// The sensitivity: in the L1 norm for Laplace, in the L2 norm for Gaussian noise.
    #[must_use]
    pub fn sensitivity(&self) -> P::Sensitivity {
        self.sensitivity
    }

    /// The granularity of the grid for one value; 1 for integers.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.noise.granularity()
    }

    /// The scale of the noise of one value, in its own unit; sigma for Gaussian noise.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.noise.real_scale()
    }

    /// The noise for a release of `count` values at once.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the noise for that many values is out of range.
    pub fn noise(&self, count: usize) -> Result<Arc<OnGrid<P::Noise, V>>, Error> {
        if count <= 1 || !self.privacy.depends_on_count(self.sensitivity) {
            return Ok(Arc::clone(&self.noise));
        }
        self.last.get_or(count, || self.privacy.noise(self.sensitivity, &self.numbers, count))
    }

    /// The smallest multiple t of the granularity, and half a step for the rounding of real values, such that the error
    /// of each value in a release of `count` values is at most t with probability `level` or more.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1), or as for [`Additive::noise`].
    pub fn error(&self, level: f64, count: usize) -> Result<f64, Error> {
        let noise = self.noise(count)?;
        Ok((noise.steps.magnitude_quantile(level)? + V::ROUNDING) * noise.granularity())
    }

    /// Replaces each of `values` by its release, on up to `threads` threads with a freshly keyed generator each.
    ///
    /// # Errors
    /// [`Error::Data`] for real values that are not finite, those of [`Additive::noise`], and [`Error::Parameter`] for no
    /// threads, with `values` as they were; and [`Error::Randomness`], with `values` overwritten.
    pub fn release(&self, values: &mut [V::Value], threads: usize) -> Result<(), Error> {
        self.release_pausing(values, threads, &mut go_on)
    }

    /// Releases values as [`Additive::release`] does, and calls `pause` between pieces of work.
    ///
    /// # Errors
    /// As for [`Additive::release`]; and the error of `pause`, with `values` overwritten.
    pub fn release_pausing(&self, values: &mut [V::Value], threads: usize, pause: &mut Pause<'_>) -> Result<(), Error> {
        V::check(values)?;
        let noise = self.noise(values.len())?;
        // All of them: those that no noise has been added to are private.
        wiped_on_error(values, |values| {
            threads::fill(values, NOISE, threads, pause, |rng, _, part| {
                noise.perturb(rng, part, |values, samples| V::add(&noise.grid, values, samples))
            })
        })
    }

    /// Replaces each of `values` by its release, with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Additive::release`].
    pub fn release_with<R: TryCryptoRng + ?Sized>(&self, values: &mut [V::Value], rng: &mut R) -> Result<(), Error> {
        V::check(values)?;
        let noise = self.noise(values.len())?;
        wiped_on_error(values, |values| {
            noise.perturb(rng, values, |values, samples| V::add(&noise.grid, values, samples))
        })
    }

    /// Releases one value.
    ///
    /// # Errors
    /// As for [`Additive::release`].
    pub fn release_one(&self, value: V::Value) -> Result<V::Value, Error> {
        let mut values = [value];
        self.release_with(&mut values, &mut SecureRng::new()?)?;
        Ok(values[0])
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::mechanisms::{DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace};
    use crate::threads::NOISE;

    #[test]
    fn no_private_value_is_left_where_a_release_ended() {
        let mut values = vec![7; 2 * NOISE.piece + 1];
        let mut pauses = 0;
        let mut pause = || {
            pauses += 1;
            if pauses == 2 { Err(Error::Interrupted) } else { Ok(()) }
        };
        let ended = DiscreteLaplace::new(1.0, 1).unwrap().release_pausing(&mut values, 2, &mut pause);
        assert_eq!(ended, Err(Error::Interrupted));
        assert!(values.iter().all(|&value| value == 0));
    }

    /// The noise has a scale of 4 steps of 1/4, or of 4.
    #[test]
    fn an_error_bound_counts_the_rounding_of_real_values() {
        let (real, whole) = (Laplace::new(1.0, 1.0, Some(0.25)).unwrap(), DiscreteLaplace::new(0.25, 1).unwrap());
        assert_eq!((real.scale(), real.granularity()), (1.0, 0.25));
        assert_eq!((whole.scale(), whole.granularity()), (4.0, 1.0));
        let real_gaussian = Gaussian::with_rho(0.5, None, 1.0, Some(0.25)).unwrap();
        let whole_gaussian = DiscreteGaussian::with_rho(1.0 / 32.0, None, 1.0).unwrap();
        for level in [1e-9, 0.5, 0.95, 1.0 - 1e-9] {
            assert_eq!(real.error(level, 1).unwrap(), 0.25 * (whole.error(level, 1).unwrap() + 0.5));
            let steps = whole_gaussian.error(level, 1).unwrap();
            assert_eq!(real_gaussian.error(level, 1).unwrap(), 0.25 * (steps + 0.5));
        }
    }
}
