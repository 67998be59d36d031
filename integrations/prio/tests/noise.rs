//! Noise in aggregate shares: exact values, all types and fields, and what is refused.

use std::f64::consts::SQRT_2; // above the root

use dpnoise_core::mechanisms::{DiscreteGaussian, DiscreteLaplace};
use dpnoise_core::rng::{ScriptedRng, SeededRng};
use dpnoise_core::samplers::Sampler;
use dpnoise_prio::{ApproximateDp, Budget, Noise, NoiseField, PureDp, Sensitive, ZCdp};
use prio::dp::DifferentialPrivacyStrategy;
use prio::field::{Field64, Field128};
use prio::flp::TypeWithNoise;
use prio::flp::gadgets::{Mul, ParallelSum};
use prio::flp::types::{Count, Histogram, L1BoundSum, MultihotCountVec, Sum, SumVec};
use prio::vdaf::prio3::Prio3;
use prio::vdaf::xof::XofTurboShake128;
use prio::vdaf::{AggregateShare, AggregatorWithNoise, Collector};

use crate::histogram::aggregate;

type Gadget<F> = ParallelSum<F, Mul>;

/// The primes of the fields.
const P64: u64 = 0xffff_ffff_0000_0001;
const P128: u128 = 0xffff_ffff_ffff_ffe4_0000_0000_0000_0001;

fn seeded(seed: u64) -> SeededRng {
    SeededRng::new(seed).unwrap()
}

/// The noise of the mechanism that the budget gives for the type, from the words of a seed.
fn noise_of<B: Budget, T: Sensitive>(noise: &Noise<B>, typ: &T, seed: u64) -> Vec<i64> {
    let mut samples = vec![0; typ.output_len()];
    let mechanism = noise.mechanism(typ).unwrap();
    mechanism.noise(samples.len()).unwrap().fill_with(&mut samples, &mut seeded(seed)).unwrap();
    samples
}

/// Both shares of true measurements, with noise from the words of two seeds, make the sum of measurements and noise.
fn check<T, B>(
    typ: &T,
    noise: &Noise<B>,
    measurements: &[T::Measurement],
    sums: &[i64],
    unsharded: impl Fn(T::AggregateResult) -> Vec<T::Field>,
) where
    T: Sensitive + TypeWithNoise<Noise<B>>,
    B: Budget,
{
    let vdaf = Prio3::<T, XofTurboShake128, 32>::new(2, 1, 0xffff_0000, typ.clone()).unwrap();
    let mut seed = 0;
    let shares = aggregate(&vdaf, measurements).map(|share| {
        let mut share = share.as_ref().to_vec();
        seed += 1;
        noise.add_with(typ, &mut share, &mut seeded(seed)).unwrap();
        AggregateShare::from(share)
    });
    let found = unsharded(vdaf.unshard(&(), shares, measurements.len()).unwrap());
    let (first, second) = (noise_of(noise, typ, 1), noise_of(noise, typ, 2));
    assert_ne!(first, second);
    let expected: Vec<_> =
        sums.iter().zip(first).zip(second).map(|((sum, a), b)| T::Field::from_noise(sum + a + b)).collect();
    assert_eq!(found, expected, "{typ:?}");

    // Without a generator of the test the noise is fresh.
    let mut shares = [(); 3].map(|()| aggregate(&vdaf, measurements)[0].clone());
    let before = shares.clone();
    for share in &mut shares {
        vdaf.add_noise_to_agg_share(noise, &(), share, measurements.len()).unwrap();
    }
    let drawn: Vec<Vec<T::Field>> = before
        .iter()
        .zip(&shares)
        .map(|(before, after)| after.as_ref().iter().zip(before.as_ref()).map(|(&a, &b)| a - b).collect())
        .collect();
    assert!(drawn[0] != drawn[1] || drawn[1] != drawn[2], "{typ:?}: the same noise three times");
}

fn laplace(epsilon: f64) -> Noise<PureDp> {
    Noise::from_budget(PureDp::new(epsilon).unwrap())
}

macro_rules! all_types {
    ($field:ident, $integer:ident, $noise:expr) => {{
        let noise = &$noise;
        let one = |x: $integer| vec![$field::from(x)];
        let all = |xs: Vec<$integer>| xs.into_iter().map($field::from).collect();
        check(&Count::<$field>::new(), noise, &[true, false, true, true], &[3], one);
        check(&Sum::<$field>::new(1000).unwrap(), noise, &[1000, 7, 0], &[1007], one);
        let histogram = Histogram::<$field, Gadget<$field>>::new(5, 2).unwrap();
        check(&histogram, noise, &[0, 4, 4, 1], &[1, 1, 0, 0, 2], all);
        let sums = SumVec::<$field, Gadget<$field>>::new(9, 3, 2).unwrap();
        check(&sums, noise, &[vec![9, 0, 3], vec![1, 0, 9]], &[10, 0, 12], all);
        let bounded = L1BoundSum::<$field, Gadget<$field>>::new(9, 3, 2).unwrap();
        check(&bounded, noise, &[vec![9, 0, 0], vec![1, 5, 3]], &[10, 5, 3], all);
        let counts = MultihotCountVec::<$field, Gadget<$field>>::new(3, 2, 2).unwrap();
        check(&counts, noise, &[vec![true, false, true], vec![false, false, true]], &[1, 0, 2], all);
    }};
}

/// The scales are so large that three equal draws of one number have a probability below 1e-9.
#[test]
fn both_shares_sum_to_the_aggregate_and_both_noises() {
    let gaussian = Noise::from_budget(ZCdp::new(1e-12).unwrap());
    let approximate = Noise::from_budget(ApproximateDp::new(1e-4, 1e-9).unwrap());
    all_types!(Field64, u64, laplace(1e-6));
    all_types!(Field128, u128, laplace(1e-6));
    all_types!(Field64, u64, gaussian);
    all_types!(Field128, u128, gaussian);
    all_types!(Field64, u64, approximate);
    all_types!(Field128, u128, approximate);
}

/// The same words give these values on every CPU.
#[test]
fn noise_below_zero_wraps() {
    let mut share = [Field64::from(3); 6];
    let histogram = Histogram::<Field64, Gadget<Field64>>::new(6, 2).unwrap();
    laplace(0.5).add_with(&histogram, &mut share, &mut seeded(1)).unwrap();
    let mut large = [Field128::from(3); 6];
    let histogram = Histogram::<Field128, Gadget<Field128>>::new(6, 2).unwrap();
    laplace(0.5).add_with(&histogram, &mut large, &mut seeded(1)).unwrap();
    assert_eq!(share.map(u64::from), [5, 15, 3, 0, P64 - 6, 4]);
    assert_eq!(large.map(u128::from), [5, 15, 3, 0, P128 - 6, 4]);
}

#[test]
fn every_sign_and_size_is_reduced() {
    for noise in [0, 1, -1, 5, -5, 1 << 40, -(1 << 40), i64::MAX, i64::MIN] {
        let expected = i128::from(noise).rem_euclid(P64.into()) as u64;
        assert_eq!(u64::from(Field64::from_noise(noise)), expected);
        let expected = if noise < 0 { P128 - u128::from(noise.unsigned_abs()) } else { noise as u128 };
        assert_eq!(u128::from(Field128::from_noise(noise)), expected);
    }
}

#[test]
fn the_mechanisms_are_those_of_the_sensitivities() {
    let histogram = Histogram::<Field128, Gadget<Field128>>::new(1000, 30).unwrap();
    assert_eq!(laplace(0.5).mechanism(&histogram).unwrap().scale(), 4.0);
    let scale = Noise::from_budget(ZCdp::new(1e-4).unwrap()).mechanism(&histogram).unwrap().scale();
    assert_eq!(scale, DiscreteGaussian::with_rho(1e-4, None, SQRT_2).unwrap().scale());
    let mechanism = Noise::from_budget(ApproximateDp::new(1.0, 1e-6).unwrap()).mechanism(&histogram).unwrap();
    let expected = DiscreteGaussian::new(1.0, 1e-6, SQRT_2).unwrap();
    assert_eq!(mechanism.noise(1000).unwrap().real_scale(), expected.noise(1000).unwrap().real_scale());
    let sums = SumVec::<Field128, Gadget<Field128>>::new(100, 7, 5).unwrap();
    assert_eq!(laplace(0.25).mechanism(&sums).unwrap().scale(), DiscreteLaplace::new(0.25, 700).unwrap().scale());
}

/// The generator fails after the first words, and within the last ones of the second chunk.
#[test]
fn a_generator_that_fails_leaves_the_share_as_it_was() {
    let histogram = Histogram::<Field64, Gadget<Field64>>::new(40_000, 100).unwrap();
    let before: Vec<_> = (0..40_000).map(Field64::from).collect();
    let mut needed = ScriptedRng::new(vec![0x5a; 1 << 20]);
    laplace(1.0).add_with(&histogram, &mut before.clone(), &mut needed).unwrap();
    let needed = (1 << 20) - needed.remaining();
    for bytes in [0, 100, needed / 2, needed - 1] {
        let mut share = before.clone();
        let failed = laplace(1.0).add_with(&histogram, &mut share, &mut ScriptedRng::new(vec![0x5a; bytes]));
        assert_eq!(
            failed.unwrap_err().to_string(),
            "differential privacy error: invalid parameter: the source of randomness failed, nothing was released: \
             the scripted generator has no bytes left"
        );
        assert!(share == before, "{bytes}");
    }
}

#[test]
fn bad_budgets_are_refused() {
    let refused = |error: prio::dp::DpError| error.to_string();
    for epsilon in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let expected = format!("invalid parameter: epsilon must be positive and finite, got {epsilon:?}");
        assert_eq!(refused(PureDp::new(epsilon).unwrap_err()), expected);
        assert_eq!(refused(ApproximateDp::new(epsilon, 0.1).unwrap_err()), expected);
        let expected = expected.replace("epsilon", "rho");
        assert_eq!(refused(ZCdp::new(epsilon).unwrap_err()), expected);
    }
    for delta in [0.0, 1.0, f64::NAN] {
        let expected = format!("invalid parameter: delta must be between 0 and 1, both excluded, got {delta:?}");
        assert_eq!(refused(ApproximateDp::new(1.0, delta).unwrap_err()), expected);
    }
}

/// Nothing is drawn: the generator has no words.
#[test]
fn noise_out_of_range_and_other_lengths_are_refused() {
    let histogram = Histogram::<Field64, Gadget<Field64>>::new(3, 1).unwrap();
    let large = Sum::<Field64>::new(1 << 41).unwrap();
    let nothing = || ScriptedRng::new([]);
    let mut share = [Field64::from(5); 3];
    let gaussian = Noise::from_budget(ZCdp::new(1e-30).unwrap());
    let errors = [
        laplace(1e-13).add_with(&histogram, &mut share, &mut nothing()),
        laplace(1.0).add_with(&large, &mut share[..1], &mut nothing()),
        gaussian.add_with(&histogram, &mut share, &mut nothing()),
        gaussian.add_with(&large, &mut share[..1], &mut nothing()),
        laplace(1.0).add_with(&histogram, &mut share[..2], &mut nothing()),
        histogram.add_noise_to_agg_share(&laplace(1.0), &mut share[..2], 10),
    ];
    let messages = errors.map(|error| error.unwrap_err().to_string());
    let begin = "differential privacy error: invalid parameter: ";
    assert_eq!(
        messages.each_ref().map(|message| message.strip_prefix(begin).unwrap()),
        [
            "epsilon must be such that sensitivity/epsilon is from 2**-40 to 2**40 (sensitivity is 2), got 1e-13",
            "epsilon must be such that sensitivity/epsilon is from 2**-40 to 2**40 (sensitivity is 2199023255552), got 1.0",
            "rho must be such that sigma is from 2**-20 to 2**40 (sensitivity is 1.4142135623730951), got 1e-30",
            "sensitivity must be a number from 1 to 2**40, got 2199023255552.0",
            "the length of the share must be 3, the length of the type's output, got 2",
            "the length of the share must be 3, the length of the type's output, got 2",
        ]
    );
    assert_eq!(share, [Field64::from(5); 3]);
}
