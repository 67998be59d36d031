//! The noise in shares has the law of the mechanism: the mean and the counts of bins, as libprio-rs tests its sampler.
//!
//! Both bounds hold for every number of samples, so that the false-alarm rate is at most 1e-9.

use dpnoise_core::rng::SeededRng;
use dpnoise_prio::{Noise, ZCdp};
use prio::dp::DifferentialPrivacyStrategy;
use prio::field::{Field64, FieldElement};
use prio::flp::gadgets::{Mul, ParallelSum};
use prio::flp::types::Histogram;

const SAMPLES: usize = 100_000;
const FALSE_ALARM: f64 = 1e-9;

/// The noise in a share of zeros, for the rho that gives a histogram this sigma.
fn drawn(sigma: f64, seed: u64) -> Vec<i64> {
    let histogram = Histogram::<Field64, ParallelSum<Field64, Mul>>::new(SAMPLES, 400).unwrap();
    let noise = Noise::from_budget(ZCdp::new(1.0 / (sigma * sigma)).unwrap());
    let mut share = vec![Field64::zero(); SAMPLES];
    noise.add_with(&histogram, &mut share, &mut SeededRng::new(seed).unwrap()).unwrap();
    // An element in the upper half of the field stands for a negative number.
    let signed = |x: Field64| if u64::from(x) < 1 << 63 { u64::from(x) as i64 } else { -(u64::from(-x) as i64) };
    share.into_iter().map(signed).collect()
}

/// Whether the mean is as near 0 as that of noise whose parameter of subgaussianity is sigma, which holds for discrete
/// Gaussian noise (Canonne, Kamath and Steinke 2020, Corollary 17): |mean| > t has a probability of at most
/// 2 exp(-n t^2 / (2 sigma^2)).
fn mean_is_near(samples: &[i64], sigma: f64) -> bool {
    let mean = samples.iter().sum::<i64>() as f64 / samples.len() as f64;
    mean.abs() <= sigma * (2.0 * (2.0 / FALSE_ALARM).ln() / samples.len() as f64).sqrt()
}

/// Whether the likelihood ratio of the counts of the bins is as for noise of this sigma: n times their relative entropy
/// is at least x > k - 1, of k bins, with a probability of at most exp(-x) (e x / (k - 1))^(k - 1) (Agrawal 2020,
/// "Finite-sample concentration of the multinomial in relative entropy", Theorem I.2).
fn bins_are_near(samples: &[i64], sigma: i64) -> bool {
    let density = |x: i64| (-((x * x) as f64) / (2 * sigma * sigma) as f64).exp();
    let all: f64 = (-40 * sigma..=40 * sigma).map(density).sum();
    // Ten bins within three sigmas, and one for the rest.
    let edges: Vec<i64> = (0..=10).map(|i| -3 * sigma + 6 * sigma * i / 10).collect();
    let mut bins: Vec<(f64, usize)> = edges
        .windows(2)
        .map(|edge| {
            let count = samples.iter().filter(|&&x| (edge[0]..edge[1]).contains(&x)).count();
            ((edge[0]..edge[1]).map(density).sum::<f64>() / all, count)
        })
        .collect();
    let within = bins.iter().fold((0.0, 0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1));
    bins.push((1.0 - within.0, samples.len() - within.1));
    let entropy: f64 = bins
        .iter()
        .filter(|bin| bin.1 != 0)
        .map(|&(p, count)| count as f64 * (count as f64 / (samples.len() as f64 * p)).ln())
        .sum();
    let free = (bins.len() - 1) as f64;
    let chance = |x: f64| free * (1.0 + (x / free).ln()) - x;
    let threshold = (bins.len()..1000).map(|x| x as f64).find(|&x| chance(x) <= FALSE_ALARM.ln()).unwrap();
    entropy < threshold
}

#[test]
fn means_are_near_zero() {
    for sigma in [100.0, 2000.0, 20_000.0] {
        assert!(mean_is_near(&drawn(sigma, 1), sigma), "{sigma}");
    }
}

#[test]
fn a_mean_that_is_off_is_noticed() {
    let samples: Vec<_> = drawn(100.0, 2).into_iter().map(|x| x + 3).collect();
    assert!(!mean_is_near(&samples, 100.0));
}

#[test]
fn bins_have_the_frequencies_of_the_law() {
    for (sigma, seed) in [(10, 3), (100, 4), (1000, 5)] {
        assert!(bins_are_near(&drawn(sigma as f64, seed), sigma), "{sigma}");
    }
}

#[test]
fn a_sigma_that_is_a_tenth_too_small_is_noticed() {
    for (sigma, seed) in [(10, 6), (100, 7), (1000, 8)] {
        assert!(!bins_are_near(&drawn(0.9 * sigma as f64, seed), sigma), "{sigma}");
    }
}
