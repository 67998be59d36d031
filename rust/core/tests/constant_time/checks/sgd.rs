//! Clipped gradients and their noise.

use std::sync::Arc;

use dpnoise_core::rng::NoiseKey;
use dpnoise_core::sgd::{
    Clipping, CorrelatedGradient, CorrelatedNoise, FloatSums, IntegerSums, Matrix, NoisyGradient, Real, Strategy,
};
use dpnoise_core::threads::go_on;

use super::{Check, assert_secret, secret, table};

/// Rows of `width` numbers: at, below and far beyond the norm, subnormal, huge, and not finite.
fn rows(width: usize) -> Vec<f64> {
    let magnitudes = [0.5, 1.0, 1e-3, 1e30, 1e200, 5e-324, 1e-310, 1e-170, 0.0, f64::MAX, f64::INFINITY, f64::NAN];
    magnitudes.iter().flat_map(|&x| (0..width).map(move |i| if i % 3 == 0 { x } else { -1e-3 * x })).collect()
}

fn sums<T: Real>(width: usize, from: impl Fn(f64) -> T) {
    for clip_norm in [1.0, 1e-20] {
        let rows: Vec<T> = rows(width).into_iter().map(&from).collect();
        let mut sums = vec![0; width];
        Clipping::new(clip_norm).unwrap().add(&secret(&rows), &mut sums, 1).unwrap();
        assert_secret(&sums);
    }
}

fn correlated(key: Option<Arc<NoiseKey>>) {
    let (numerators, participation) = (vec![4096, 2048, 1000], "once".into());
    let strategy = Strategy { numerators, steps: 5, gain: 2.0, sensitivity: 2.0, participation };
    let mut run = CorrelatedGradient::new(strategy, 1.0, 1.1, 10.0, key.clone()).unwrap();
    let mut step = vec![0.0; 77];
    (0..4).for_each(|_| run.step(&secret(&rows(77)), &mut step, 1).unwrap());
    if key.is_some() {
        let state = run.state().unwrap();
        run = run.start(key).unwrap();
        run.resume(&state, 1, &mut go_on).unwrap();
    }
    run.step(&secret(&rows(77)), &mut step, 1).unwrap();
    assert_secret(&step);
}

fn float_sums<T: Real>(from: impl Fn(f64) -> T) {
    let noise = CorrelatedNoise::new(vec![4096, 2048], 1e10, 1.2).unwrap();
    let mut sums = secret(&rows(77).into_iter().map(from).collect::<Vec<T>>());
    let mut history = vec![0; noise.history_length(sums.len())];
    FloatSums::new(noise, 2f64.powi(-20)).unwrap().release(0, &mut history, &mut sums, 1, &mut go_on).unwrap();
    assert_secret(&sums);
}

fn integer_sums(numerators: &[u32]) {
    let integers = IntegerSums::new(numerators.to_vec(), 1e8, 1.2).unwrap();
    let mut sums = secret(&(0..77).map(|i| (i - 38) << 50).collect::<Vec<i64>>());
    let mut history = vec![0; integers.noise().history_length(sums.len())];
    integers.release(0, &mut history, &mut sums, 1, &mut go_on).unwrap();
    assert_secret(&sums);
}

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("clipped gradients, singles", || [1, 5, 32, 77, 1030].into_iter().for_each(|width| sums(width, |x| x as f32))),
        ("clipped gradients, doubles", || [1, 5, 32, 77, 1030].into_iter().for_each(|width| sums(width, |x| x))),
        ("clipped gradients, on two threads", || {
            let mut sums = vec![0; 77];
            Clipping::new(1.0).unwrap().add(&secret(&rows(77).repeat(300)), &mut sums, 2).unwrap();
            assert_secret(&sums);
        }),
        ("clipped gradients of two layers", || {
            let layers = [5, 77].map(|width| (secret(&rows(width)), width));
            let mut sums = vec![0; 82];
            let matrices = layers.each_ref().map(|(numbers, width)| Matrix::new(numbers, *width));
            Clipping::new(1.0).unwrap().add_together(&matrices, &mut sums, 1).unwrap();
            assert_secret(&sums);
        }),
        ("a step with noise", || {
            let mut step = vec![0.0; 77];
            NoisyGradient::new(1.0, 1.1, 10.0).unwrap().step(&secret(&rows(77)), &mut step, 1).unwrap();
            assert_secret(&step);
        }),
        ("steps with correlated noise", || correlated(None)),
        ("steps with correlated noise of a key, and a resumption", || {
            correlated(Some(Arc::new(NoiseKey::generate().unwrap())));
        }),
        ("correlated noise and its history", || {
            let noise = CorrelatedNoise::new(vec![4096, 3000, 2000, 1000, 1], 1e10, 2.0).unwrap();
            let (mut history, mut out) = (vec![0; noise.history_length(700)], vec![0; 700]);
            (0..7).for_each(|step| noise.next(step, &mut history, &mut out, 1, &mut go_on).unwrap());
            assert_secret(&out);
            assert_secret(&history[..5 * 512]);
        }),
        ("correlated noise on sums of singles", || float_sums(|x| x as f32)),
        ("correlated noise on sums of doubles", || float_sums(|x| x)),
        ("independent noise on sums of integers", || integer_sums(&[4096])),
        ("correlated noise on sums of integers", || integer_sums(&[4096, 2048])),
    ])
}
