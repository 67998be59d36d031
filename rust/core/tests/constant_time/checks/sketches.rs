//! The local randomisers of texts.

use dpnoise_core::local::{CountMeanSketch, HadamardCountMeanSketch, PrefixExtension, Protocol, Values, fingerprints};

use super::{Check, assert_secret, perturbed, secret, table};

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("texts", || {
            // Of one block and of many, and with the padding in a block of its own.
            for length in [1, 43, 44, 52, 1000] {
                let mut out = [0; 2];
                let offsets = [0, length as i64, 2 * length as i64];
                fingerprints(&secret(&vec![b'x'; 2 * length]), &offsets, &mut out).unwrap();
                assert_secret(&out);
            }
        }),
        ("count mean sketch", || {
            for (rows, width, epsilon) in [(1, 8, 1.0), (300, 64, 1e-4), (7, 1024, 4.0), (2, 1 << 17, 4.0)] {
                let sketch = Protocol::from(CountMeanSketch::new(epsilon, rows, width, 0).unwrap());
                perturbed(&sketch, &[0, 1, i64::MIN].repeat(20));
            }
        }),
        ("Hadamard count mean sketch", || {
            for (rows, width, epsilon) in [(1, 8, 1.0), (300, 64, 1e-4), (7, 1024, 4.0), (2, 1 << 20, 25.0)] {
                let sketch = Protocol::from(HadamardCountMeanSketch::new(epsilon, rows, width, 0).unwrap());
                perturbed(&sketch, &[0, 1, i64::MIN].repeat(700));
            }
        }),
        ("prefix extension", || {
            for (bits, step, rows, width) in [(1, 1, 1, 8), (20, 7, 300, 64), (63, 8, 7, 1024)] {
                let extension = Protocol::from(PrefixExtension::new(bits, 1.0, step, rows, width, 0).unwrap());
                perturbed(&extension, &[0, 1, (1 << (bits - 1)) - 1].repeat(700));
            }
        }),
        ("prefix extension, a value that is refused", || {
            let extension = Protocol::from(PrefixExtension::new(20, 1.0, 8, 1, 8, 0).unwrap());
            assert!(extension.perturb(Values::Integers(&secret(&[3, 1 << 20, 4])), &mut [0; 3], 1).is_err());
        }),
    ])
}
