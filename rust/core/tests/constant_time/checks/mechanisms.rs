//! Releases of integers and of real numbers.

use dpnoise_core::mechanisms::{
    DiscreteLaplace, Laplace, Law, Moment, Noise, NoiseBuffer, NoiseInfo, StabilityHistogram, Sum, TruncatedGeometric,
    keep_rows_with_vartime,
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

/// A column with missing values, and with no whole number of vectors.
fn column() -> Vec<f64> {
    let mut values = reals().map(|x| if x == 0.1 { f64::NAN } else { x }).repeat(40);
    values.truncate(1117);
    secret(&values)
}

pub(super) fn checks() -> Vec<Check> {
    [additions(), of_all(), of_some()].into_iter().flatten().collect()
}

/// Each kind of noise, for one value and for an array.
fn of_all() -> Vec<Check> {
    let check = |info: &NoiseInfo| {
        let noise = info.example().unwrap();
        let run = move || {
            let one_by_one = (0..REALS).map(|i| i..i + 1);
            for part in one_by_one.chain(std::iter::once(0..REALS)) {
                let rng = &mut SeededRng::new(1).unwrap();
                if noise.takes_integers() {
                    let mut values = secret(&INTEGERS.repeat(REALS / INTEGERS.len())[part]);
                    noise.release_with(&mut values[..], rng).unwrap();
                    assert_secret(&values);
                } else {
                    let mut values = secret(&reals()[part]);
                    noise.release_with(&mut values[..], rng).unwrap();
                    assert_secret(&values);
                }
            }
        };
        Check { name: format!("mechanism, {}", info.name), run: Box::new(run) }
    };
    Noise::KINDS.iter().map(check).collect()
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

fn of_some() -> Vec<Check> {
    table(&[
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
        ("stability histogram", || {
            let histogram = StabilityHistogram::new(1.0, 1e-6, Relation::AddRemove).unwrap();
            let mut counts = secret(&[1, 0, 14, 15, 1000, i64::MAX, 1]);
            histogram.release_with(&mut counts, &mut SeededRng::new(1).unwrap()).unwrap();
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
                    Sum::new(bounds, 1.0, relation, None).unwrap().release(&column(), 1).unwrap();
                }
            }
        }),
        ("mean and variance of clamped values", || {
            for relation in [Relation::AddRemove, Relation::Substitute] {
                for moment in [Moment::mean, Moment::variance] {
                    moment((-1e-3, 2.0), 1.0, relation).unwrap().release(&column(), 1).unwrap();
                }
            }
        }),
        ("counts of bins", || {
            let edges = [f64::NEG_INFINITY, -1e300, 0.0, 5e-324, 0.5, 1.0, f64::INFINITY];
            let laplace = DiscreteLaplace::new(1.0, 1).unwrap();
            assert_secret(&laplace.release_bins(&edges, &column()).unwrap());
        }),
        ("columns of singles and of integers", || {
            let sum = Sum::new((-2.0, 3.0), 1.0, Relation::AddRemove, None).unwrap();
            let singles: Vec<f32> = column().iter().map(|&x| x as f32).collect();
            sum.release(&singles, 1).unwrap();
            sum.release(&secret(&[i64::MIN, -1, 0, 1, 2, 3, i64::MAX].repeat(200)), 1).unwrap();
        }),
        ("which rows of each person are kept", || {
            let codes = [0, 1, -1, 0, 0, 1, 2, 0, -1, 0, 1].repeat(400);
            assert_secret(&keep_rows_with_vartime(&codes, 3, 2, &mut SeededRng::new(1).unwrap()).unwrap());
        }),
        ("discrete Laplace mechanism, a count", || {
            let rows = secret(&[0u8, 1, 2, 0, 255, 1, 0].repeat(50));
            assert_secret(&[DiscreteLaplace::new(1.0, 1).unwrap().release_count(&rows).unwrap()]);
        }),
    ])
}
