//! The local randomisers of texts.

use dpnoise_core::local::{Client, CountMeanSketch, HadamardCountMeanSketch, PrefixExtension, text_hash};

use super::{Check, assert_secret, perturbed, secret, table};

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("texts", || {
            // Of one block and of many, and with the padding in a block of its own.
            for length in [1, 43, 44, 52, 1000] {
                let mut out = [0; 2];
                let offsets = [0, length as i64, 2 * length as i64];
                text_hash::fingerprints(&secret(&vec![b'x'; 2 * length]), &offsets, &mut out).unwrap();
                assert_secret(&out);
            }
        }),
        ("count mean sketch", || {
            for (rows, width, epsilon) in [(1, 8, 1.0), (300, 64, 1e-4), (7, 1024, 4.0), (2, 1 << 17, 4.0)] {
                let sketch = CountMeanSketch::new(epsilon, rows, width, 0).unwrap();
                perturbed(&sketch, sketch.protocol(), &[0, 1, i64::MIN].repeat(20));
            }
        }),
        ("Hadamard count mean sketch", || {
            for (rows, width, epsilon) in [(1, 8, 1.0), (300, 64, 1e-4), (7, 1024, 4.0), (2, 1 << 20, 25.0)] {
                let sketch = HadamardCountMeanSketch::new(epsilon, rows, width, 0).unwrap();
                perturbed(&sketch, sketch.protocol(), &[0, 1, i64::MIN].repeat(700));
            }
        }),
        ("prefix extension", || {
            for (bits, step, rows, width) in [(1, 1, 1, 8), (20, 7, 300, 64), (63, 8, 7, 1024)] {
                let extension = PrefixExtension::new(1.0, bits, step, rows, width, 0).unwrap();
                perturbed(&extension, extension.protocol(), &[0, 1, (1 << (bits - 1)) - 1].repeat(700));
            }
        }),
        ("prefix extension, a value that is refused", || {
            let extension = PrefixExtension::new(1.0, 20, 8, 1, 8, 0).unwrap();
            assert!(extension.perturb_secure(&secret(&[3, 1 << 20, 4]), &mut [0; 3], 1).is_err());
        }),
    ])
}
