//! Releases of integers and of real numbers.

use dpnoise_core::mechanisms::{
    DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Law, Method, NegativeBinomialShares, NoiseBuffer, Skellam,
    Staircase, Sum, TruncatedDiscreteGaussian, TruncatedDiscreteLaplace, TruncatedGeometric,
};
use dpnoise_core::params::Relation;
use dpnoise_core::rng::SeededRng;
use dpnoise_core::samplers::grid::{Grid, Reach, all_finite};

use super::{Check, assert_secret, secret, table};

/// Of both signs: subnormal to huge, on the grid and between its points, on both sides of where the addition changes its
/// way.
fn reals() -> [f64; REALS] {
    let magnitudes =
        [0.0, 5e-324, 1e-310, 2.5e-308, 1e-13, 0.1, 0.5, 1.0, 8191.999, 8192.0, 8192.5, 1e16, 1e300, f64::MAX];
    std::array::from_fn(|i| if i % 2 == 0 { magnitudes[i / 2] } else { -magnitudes[i / 2] })
}

const REALS: usize = 28;

const INTEGERS: [i64; 7] = [0, 1, -1, 1000, -(1 << 40), i64::MAX, i64::MIN];

pub(super) fn checks() -> Vec<Check> {
    [additions(), of_reals(), of_integers()].into_iter().flatten().collect()
}

fn additions() -> Vec<Check> {
    table(&[
        ("adding noise on a grid", || {
            for granularity in [2f64.powi(-1019), 2f64.powi(-40), 2f64.powi(900)] {
                let near = [0, 1, -12_345, 1 << 46, -(1 << 51)].map(|noise| (Reach::Near, noise));
                let far = [0, 1, -12_345, 1 << 26, -(1 << 62)].map(|noise| (Reach::Far, noise));
                for (reach, noise) in near.into_iter().chain(far) {
                    let mut values = secret(&reals());
                    let noise = secret(&[noise; REALS]);
                    Grid::new(granularity).unwrap().add_noise(reach, &mut values, &noise).unwrap();
                    assert_secret(&values);
                }
            }
        }),
        ("looking for infinities and NaN", || {
            for bad in [1.0, f64::NAN, f64::NEG_INFINITY] {
                assert_secret(&[all_finite(&secret(&[0.0, 5e-324, bad, 1e300]))]);
            }
        }),
    ])
}

fn of_reals() -> Vec<Check> {
    table(&[
        ("Laplace, one value", || {
            let mechanism = Laplace::new(1.0, 1.0, None).unwrap();
            for x in reals() {
                assert_secret(&[mechanism.release_one(secret(&[x])[0]).unwrap()]);
            }
        }),
        ("Laplace, one value, with noise from a store", || {
            let mut buffer = NoiseBuffer::new(&Laplace::new(1.0, 1.0, None).unwrap()).unwrap();
            for x in reals() {
                assert_secret(&[buffer.release(secret(&[x])[0]).unwrap()]);
            }
        }),
        ("truncated geometric partition selection", || {
            let law = Law { epsilon: 0.5, turn: (9.0, 0.4), start: (9.0, 0.75), last: (30.0, 0.25) };
            let mut selection = TruncatedGeometric::new(law).unwrap();
            for people in [-3.0, 0.0, 1.0, 8.0, 9.0, 10.0, 29.0, 30.0, 31.0, 1e300] {
                assert_secret(&[selection.should_keep(secret(&[people])[0]).unwrap()]);
            }
        }),
        ("Laplace, an array", || {
            let mut values = secret(&reals());
            Laplace::new(0.1, 1.0, None).unwrap().release_with(&mut values, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&values);
        }),
        ("Laplace, an array on a fine grid", || {
            let mut values = secret(&reals());
            let mechanism = Laplace::new(1.0, 1.0, Some(2f64.powi(-51))).unwrap();
            mechanism.release_with(&mut values, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&values);
        }),
        ("Laplace, an array on two threads", || {
            let mut values = secret(&vec![37.25; 20_000]);
            Laplace::new(1.0, 1.0, Some(0.25)).unwrap().release(&mut values, 2).unwrap();
            assert_secret(&values);
        }),
        ("Laplace, an array that is refused", || {
            let mut values = secret(&[0.5, f64::NAN, 0.5]);
            let refused = Laplace::new(1.0, 1.0, None).unwrap().release(&mut values, 1);
            assert!(refused.is_err());
        }),
        ("sum of clamped values", || {
            for relation in [Relation::AddRemove, Relation::Substitute] {
                for bounds in [(-1.0, 1.0), (1e6, 1e6 + 1.0), (-1e-300, 1e-300)] {
                    let mut values = reals().map(|x| if x == 0.1 { f64::NAN } else { x }).repeat(40);
                    values.truncate(1117); // no whole number of vectors
                    let mut values = secret(&values);
                    Sum::new(bounds, 1.0, relation, None).unwrap().release(&mut values, 1).unwrap();
                }
            }
        }),
        ("Gaussian, one value", || {
            let mechanism = Gaussian::new(1.0, 1e-6, 1.0, Method::Analytic, None).unwrap();
            for x in reals() {
                assert_secret(&[mechanism.release_one(secret(&[x])[0]).unwrap()]);
            }
        }),
        ("Gaussian, an array", || {
            let mut values = secret(&reals());
            let mechanism = Gaussian::with_rho(0.1, None, 1.0, None).unwrap();
            mechanism.release_with(&mut values, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&values);
        }),
    ])
}

fn of_integers() -> Vec<Check> {
    table(&[
        ("discrete Laplace mechanism, a count", || {
            let rows = secret(&[0u8, 1, 2, 0, 255, 1, 0].repeat(50));
            assert_secret(&[DiscreteLaplace::new(1.0, 1).unwrap().release_count(&rows).unwrap()]);
        }),
        ("discrete Laplace mechanism, one value", || {
            let mechanism = DiscreteLaplace::new(1.0, 1).unwrap();
            for x in INTEGERS {
                assert_secret(&[mechanism.release_one(secret(&[x])[0]).unwrap()]);
            }
        }),
        ("discrete Laplace mechanism, an array", || {
            let mut values = secret(&INTEGERS);
            DiscreteLaplace::new(0.5, 3).unwrap().release_with(&mut values, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&values);
        }),
        ("discrete Gaussian mechanism, one value", || {
            let mechanism = DiscreteGaussian::new(1.0, 1e-6, 1.0).unwrap();
            for x in INTEGERS {
                assert_secret(&[mechanism.release_one(secret(&[x])[0]).unwrap()]);
            }
        }),
        ("discrete Gaussian mechanism, an array", || {
            let mut values = secret(&INTEGERS);
            let mechanism = DiscreteGaussian::new(0.5, 1e-6, 3.0).unwrap();
            mechanism.release_with(&mut values, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&values);
        }),
        ("mechanisms with noise of tables, an array", || {
            let mut values = [(); 3].map(|()| secret(&INTEGERS));
            let [staircase, skellam, shares] = &mut values;
            let rng = &mut SeededRng::new(1).unwrap();
            Staircase::new(0.5, 1).unwrap().release_with(staircase, rng).unwrap();
            Skellam::new(1.0, 0.1, 1, 2).unwrap().release_with(skellam, rng).unwrap();
            NegativeBinomialShares::new(1.0, 2, 2).unwrap().release_with(shares, rng).unwrap();
            assert_secret(&values.concat());
        }),
        ("mechanisms with bounded noise, an array", || {
            let (mut laplace, mut gaussian) = (secret(&INTEGERS), secret(&INTEGERS));
            let rng = &mut SeededRng::new(1).unwrap();
            TruncatedDiscreteLaplace::with_radius(0.5, 3, 1).unwrap().release_with(&mut laplace, rng).unwrap();
            TruncatedDiscreteGaussian::new(0.5, 0.3, 1.0).unwrap().release_with(&mut gaussian, rng).unwrap();
            assert_secret(&laplace);
            assert_secret(&gaussian);
        }),
    ])
}
