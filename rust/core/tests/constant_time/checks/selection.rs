//! Choices among candidates, and comparisons with a threshold.

use dpnoise_core::mechanisms::{AboveThreshold, Exponential, Quantile, Quantiles, ReportNoisyMax, TopK};
use dpnoise_core::params::{Ratio, Relation};
use dpnoise_core::rng::SeededRng;
use dpnoise_core::samplers::Grid;
use dpnoise_core::stability::StabilityTest;

use super::{Check, assert_secret, secret, table};

/// Ties, scores from near to so far below that their weights vanish, subnormal and huge ones, in one block, in the rest of
/// one, and in several.
fn scores(count: usize) -> Vec<f64> {
    let pattern = [3.0, 3.0, 2.75, -1.0, -40.0, -75.0, -900.0, 5e-324, -1e300, 1.5];
    secret(&pattern.into_iter().cycle().take(count).collect::<Vec<_>>())
}

const COUNTS: [usize; 5] = [1, 10, 2048, 2060, 5000];

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("exponential mechanism", || {
            for (seed, count) in (1..).zip(COUNTS) {
                let mechanism = Exponential::new(1.0, 1.0, false).unwrap();
                let chosen = mechanism.release_with(&scores(count), &mut SeededRng::new(seed).unwrap());
                assert_secret(&[chosen.unwrap()]);
            }
        }),
        ("report noisy max", || {
            for (seed, count) in (1..).zip(COUNTS) {
                let mechanism = ReportNoisyMax::new(1.0, 1.0, false).unwrap();
                let chosen = mechanism.release_with(&scores(count), &mut SeededRng::new(seed).unwrap());
                assert_secret(&[chosen.unwrap()]);
            }
        }),
        ("top k", || {
            for count in [10, 2060] {
                let mechanism = TopK::new(5, 1.0, 1.0, true).unwrap();
                let chosen = mechanism.release_with(&scores(count), &mut SeededRng::new(1).unwrap());
                assert_secret(&chosen.unwrap());
            }
        }),
        ("quantile, once its values are sorted", || {
            for count in [0, 1, 10, 2060] {
                let q = Ratio::new(1, 3).unwrap();
                let quantile = Quantile::new(q, (-2.0, 1e6), 1.0, Relation::AddRemove, None).unwrap();
                let values = [3.0, f64::NAN, 3.0, -1e300, 5e-324, 7e5, f64::INFINITY, 0.5];
                let values = secret(&values.into_iter().cycle().take(count).collect::<Vec<_>>());
                quantile.release_with(&values, &mut SeededRng::new(1).unwrap()).unwrap();
            }
        }),
        ("several quantiles, once their values are sorted", || {
            for count in [0, 1, 10, 2060] {
                let q = [1, 2, 3].map(|part| Ratio::new(part, 4).unwrap());
                let quantiles = Quantiles::new(&q, (-2.0, 1e6), 1.0, Relation::AddRemove, None).unwrap();
                let values = [3.0, f64::NAN, 3.0, -1e300, 5e-324, 7e5, f64::INFINITY, 0.5];
                let values = secret(&values.into_iter().cycle().take(count).collect::<Vec<_>>());
                quantiles.release_with(&values, &mut SeededRng::new(1).unwrap()).unwrap();
            }
        }),
        ("scores that are refused", || {
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let refused = Exponential::new(1.0, 1.0, false).unwrap().release(&secret(&[1.0, bad, 0.0]));
                assert!(refused.is_err());
            }
        }),
        ("steps between real numbers", || {
            for value in [0.0, 5e-324, -0.1, 1e300, -1e-310] {
                let grid = Grid::new(2f64.powi(-40)).unwrap();
                assert_secret(&[grid.steps_between(&1.0, &secret(&[value])[0]).unwrap()]);
            }
        }),
        ("sparse vector", || {
            let mechanism = AboveThreshold::new(1.0, 0.5, 1.0, 6, false).unwrap();
            let mut run = mechanism.start_with(&mut SeededRng::new(1).unwrap()).unwrap();
            for value in [0.0, 5e-324, -1e300, 1e300, 2.0, -2.0] {
                run.is_above_with(secret(&[value])[0], &mut SeededRng::new(2).unwrap()).unwrap();
            }
        }),
        ("stability test", || {
            let test = StabilityTest::new(1.0, 1e-6).unwrap();
            for distance in [0, 14, i64::MIN, i64::MAX] {
                test.passes_with(secret(&[distance])[0], &mut SeededRng::new(1).unwrap()).unwrap();
            }
        }),
    ])
}
