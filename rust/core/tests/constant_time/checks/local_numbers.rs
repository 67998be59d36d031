//! The local randomisers of numbers.

use dpnoise_core::local::{
    DuchiMean, GaussianMean, HybridMean, LaplaceMean, PiecewiseMean, Protocol, SquareWave, Values,
};

use super::{Check, reports_on, secret, table};

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("means by windows", || {
            // All sizes of coins, index words and reports.
            for epsilon in [1e-4, 0.5, 1.0, 10.0, 30.0] {
                let means: [Protocol; 3] = [
                    DuchiMean::new(epsilon).unwrap().into(),
                    PiecewiseMean::new(epsilon).unwrap().into(),
                    HybridMean::new(epsilon).unwrap().into(),
                ];
                for mean in means {
                    let values = secret(&[0.0, 5e-324, -1e-30, 0.3, -1.0].repeat(420));
                    reports_on(&mean, Values::Numbers(&values), values.len());
                }
            }
        }),
        ("means by windows, a number that is refused", || {
            let mean = Protocol::from(PiecewiseMean::new(1.0).unwrap());
            assert!(mean.perturb(Values::Numbers(&secret(&[0.3, f64::NAN, -1.0])), &mut [0; 6], 1).is_err());
        }),
        ("means with noise", || {
            for epsilon in [1e-4, 1.0, 30.0] {
                let means: [Protocol; 2] =
                    [LaplaceMean::new(epsilon).unwrap().into(), GaussianMean::new(epsilon, 1e-6).unwrap().into()];
                for mean in means {
                    let values = secret(&[0.0, 5e-324, -1e-30, 0.3, -1.0].repeat(420));
                    reports_on(&mean, Values::Numbers(&values), values.len());
                }
            }
        }),
        ("square wave", || {
            for (k, epsilon) in [(2, 1.0), (64, 1e-4), (100, 1.0), (4096, 30.0)] {
                let wave = Protocol::from(SquareWave::new(k, epsilon).unwrap());
                let values = secret(&[0.0, 5e-324, -0.0, 0.3, 1.0].repeat(420));
                reports_on(&wave, Values::Numbers(&values), values.len());
            }
        }),
        ("square wave, a number that is refused", || {
            let wave = Protocol::from(SquareWave::new(64, 1.0).unwrap());
            assert!(wave.perturb(Values::Numbers(&secret(&[0.3, -0.1, 1.0])), &mut [0; 3], 1).is_err());
        }),
    ])
}
