//! The strategy: noise for aggregate shares.

use dpnoise_core::Error;
use dpnoise_core::mechanisms::{Additive, Integers};
use dpnoise_core::samplers::{self, Sampler};
use prio::dp::DifferentialPrivacyStrategy;
use prio::flp::gadgets::{Mul, ParallelSumGadget};
use prio::flp::types::{Count, Histogram, L1BoundSum, MultihotCountVec, Sum, SumVec};
use prio::flp::{FlpError, TypeWithNoise};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::{Budget, NoiseField, Sensitive, error};

/// The strategy that adds to every element of an aggregate share the noise that the budget `B` requires.
///
/// Every aggregator adds all the noise, so the aggregate is private as long as one of them is honest. Neighbours differ
/// in one measurement, which is replaced, and the number of measurements is public. What is released is a function of the
/// release of the mechanism: the exact aggregate plus noise, modulo p.
///
/// The calls of `AggregatorWithNoise` and `TypeWithNoise` draw from a freshly keyed secure generator each, and ignore
/// the number of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise<B> {
    budget: B,
}

impl<B: Budget> DifferentialPrivacyStrategy for Noise<B> {
    type Budget = B;

    fn from_budget(budget: B) -> Self {
        Self { budget }
    }
}

impl<B: Budget> Noise<B> {
    /// The mechanism of each aggregator, which knows its scale and error bounds.
    ///
    /// # Errors
    /// [`FlpError::DifferentialPrivacy`] for noise out of range, as for a scale beyond 2^40.
    pub fn mechanism<T: Sensitive>(&self, typ: &T) -> Result<Additive<B::Privacy, Integers>, FlpError> {
        self.budget.mechanism(typ.sensitivity()?).map_err(error)
    }

    /// Adds noise to an aggregate share as `add_noise_to_agg_share` does, with random words of `rng`: for tests, and
    /// for generators of your own.
    ///
    /// # Errors
    /// As for `add_noise_to_agg_share`: [`FlpError::DifferentialPrivacy`] for noise out of range, a share of another
    /// length than that of the type, and a failure of the generator. The share is then as it was.
    pub fn add_with<T: Sensitive, R: TryCryptoRng + ?Sized>(
        &self,
        typ: &T,
        share: &mut [T::Field],
        rng: &mut R,
    ) -> Result<(), FlpError> {
        self.add_drawn(typ, share, |histogram, noise| histogram.fill_with(noise, rng))
    }

    fn add_drawn<T: Sensitive>(
        &self,
        typ: &T,
        share: &mut [T::Field],
        draw: impl FnOnce(&samplers::IntegerNoise, &mut [i64]) -> Result<(), Error>,
    ) -> Result<(), FlpError> {
        if share.len() != typ.output_len() {
            let allowed = format!("{}, the length of the type's output", typ.output_len());
            return Err(error(Error::parameter("the length of the share", share.len(), allowed)));
        }
        let histogram = self.mechanism(typ)?.noise(share.len()).map_err(error)?;
        let mut noise = Zeroizing::new(vec![0; share.len()]);
        draw(&histogram, &mut noise).map_err(error)?;
        for (element, &noise) in share.iter_mut().zip(noise.iter()) {
            *element += T::Field::from_noise(noise);
        }
        Ok(())
    }
}

macro_rules! with_noise {
    ($($name:ident<F $(, $gadget:ident)?>),*) => {$(
        impl<B: Budget, F: NoiseField $(, $gadget: ParallelSumGadget<F, Mul> + Eq + 'static)?> TypeWithNoise<Noise<B>>
            for $name<F $(, $gadget)?>
        {
            fn add_noise_to_agg_share(&self, noise: &Noise<B>, share: &mut [F], _: usize) -> Result<(), FlpError> {
                noise.add_drawn(self, share, |histogram, samples| histogram.fill(samples, 1))
            }
        }
    )*};
}

with_noise!(Count<F>, Sum<F>, Histogram<F, S>, SumVec<F, S>, L1BoundSum<F, S>, MultihotCountVec<F, S>);
