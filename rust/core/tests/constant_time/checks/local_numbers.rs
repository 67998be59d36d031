//! The local randomisers of numbers.

use dpnoise_core::local::{Client, LaplaceMean, SquareWave, WindowMean};
use dpnoise_core::rng::SeededRng;

use super::{Check, secret, table};

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("means by windows", || {
            // All sizes of coins, index words and reports.
            for epsilon in [1e-4, 0.5, 1.0, 10.0, 30.0] {
                for make in [WindowMean::duchi, WindowMean::piecewise, WindowMean::hybrid] {
                    let mean = make(epsilon).unwrap();
                    let values = secret(&[0.0, 5e-324, -1e-30, 0.3, -1.0].repeat(420));
                    let mut out = vec![0; values.len() * mean.protocol().report_bytes()];
                    mean.perturb(&values, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
                }
            }
        }),
        ("means by windows, a number that is refused", || {
            let mean = WindowMean::piecewise(1.0).unwrap();
            assert!(mean.perturb_secure(&secret(&[0.3, f64::NAN, -1.0]), &mut [0; 6], 1).is_err());
        }),
        ("Laplace mean", || {
            for epsilon in [1e-4, 1.0, 30.0] {
                let mean = LaplaceMean::new(epsilon).unwrap();
                let values = secret(&[0.0, 5e-324, -1e-30, 0.3, -1.0].repeat(420));
                let mut out = vec![0; values.len() * mean.protocol().report_bytes()];
                mean.perturb(&values, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
            }
        }),
        ("square wave", || {
            for (k, epsilon) in [(2, 1.0), (64, 1e-4), (100, 1.0), (4096, 30.0)] {
                let wave = SquareWave::new(k, epsilon).unwrap();
                let values = secret(&[0.0, 5e-324, -0.0, 0.3, 1.0].repeat(420));
                let mut out = vec![0; values.len() * wave.protocol().report_bytes()];
                wave.perturb(&values, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
            }
        }),
        ("square wave, a number that is refused", || {
            let wave = SquareWave::new(64, 1.0).unwrap();
            assert!(wave.perturb_secure(&secret(&[0.3, -0.1, 1.0]), &mut [0; 3], 1).is_err());
        }),
    ])
}
