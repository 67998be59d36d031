//! The local randomisers.

use dpnoise_core::instruction_set;
use dpnoise_core::local::{
    Attributes, DuchiMean, GeneralizedRandomizedResponse, HadamardResponse, HierarchicalRange, LocalHashing,
    OptimizedUnaryEncoding, ProjectiveGeometryResponse, Protocol, RandomizedResponse, Remembering, Scheme,
    SubsetSelection, SummationHistogramEncoding, SymmetricUnaryEncoding, ValueKind, Values, one_hot, pack,
};
use dpnoise_core::rng::SeededRng;
use dpnoise_core::threads::go_on;
use dpnoise_kernels::arch::planes::{TILE_BYTES, flip};

use super::{Check, assert_secret, perturbed, reports_on, secret, table};

/// Numbers of values whose rows have no whole word, some, and more than one chunk, or are of a width that is written in
/// vectors.
const SIZES: [u64; 7] = [2, 15, 32, 64, 128, 1000, 40_000];

fn encodings() -> impl Iterator<Item = Protocol> {
    SIZES.into_iter().map(|k| OptimizedUnaryEncoding::new(k, 1.0).unwrap().into())
}

/// Some values, poisoned, and room for their rows.
fn values_and_rows(encoding: &Protocol) -> (Vec<i64>, Vec<u8>) {
    let k = i64::from(encoding.k());
    let values = [0, 1, k / 2, k - 1].repeat(if k < 1000 { 17 } else { 1 }); // some are left over from vectors
    (secret(&values), vec![0; values.len() * encoding.report_bytes()])
}

#[allow(clippy::too_many_lines, reason = "a table")]
pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("the example of every family", || {
            // What is left over from vectors is done by other instructions.
            for (info, people) in Protocol::FAMILIES.iter().flat_map(|info| [1, 2, 3, 6, 2107].map(|n| (info, n))) {
                let protocol = info.example().unwrap();
                let out = match info.takes {
                    ValueKind::Answers => {
                        let answers = secret(&[0, 1, 1].repeat(people)[..people]);
                        reports_on(&protocol, Values::Answers(&answers), people)
                    }
                    ValueKind::Numbers => {
                        let numbers = secret(&[0.3, 0.0, 1.0].repeat(people)[..people]);
                        reports_on(&protocol, Values::Numbers(&numbers), people)
                    }
                    ValueKind::Remembering => {
                        let (values, secrets) =
                            (secret(&[3, 0, 1].repeat(people)[..people]), secret(&vec![[7; 32]; people]));
                        let question = "question";
                        let remembering = Remembering { values: &values, secrets: &secrets, question };
                        reports_on(&protocol, Values::Remembering(remembering), people)
                    }
                    _ => perturbed(&protocol, &[3, 0, 1].repeat(people)[..people]),
                };
                drop(out);
            }
        }),
        ("several attributes", || {
            let asked =
                [("answer", RandomizedResponse::coin_flips().into()), ("number", DuchiMean::new(1.0).unwrap().into())];
            for scheme in [Scheme::Sampled, Scheme::Split] {
                let attributes = Attributes::new(scheme, &asked).unwrap();
                let (answers, numbers) = (secret(&[0, 1, 1].repeat(700)), secret(&[0.5, -1.0, 1.0].repeat(700)));
                let mut out = vec![0; answers.len() * 2];
                let columns = [Values::Answers(&answers), Values::Numbers(&numbers)];
                attributes.perturb(&columns, &mut out, 1, &mut go_on).unwrap();
                // The first byte of a report is the number of the attribute, or one of the reports.
                assert_secret(&out.chunks(2).map(|report| report[1]).collect::<Vec<_>>());
            }
        }),
        ("several attributes, a value that is refused", || {
            let asked =
                [("answer", RandomizedResponse::coin_flips().into()), ("number", DuchiMean::new(1.0).unwrap().into())];
            let attributes = Attributes::new(Scheme::Split, &asked).unwrap();
            let (answers, numbers) = (secret(&[0, 1]), secret(&[0.5, 1.5]));
            let columns = [Values::Answers(&answers), Values::Numbers(&numbers)];
            assert!(attributes.perturb(&columns, &mut [0; 4], 1, &mut go_on).is_err());
        }),
        ("flipping bits, the kernel", || {
            for (planes, p, q) in [(2, 3, 1), (13, 5000, 1), (62, 1 << 61, 12_345)] {
                let random = secret(&vec![0x5a; planes as usize * 6 * TILE_BYTES]);
                let mut data = secret(&[0x81; 6 * TILE_BYTES]);
                flip(instruction_set::current().unwrap(), planes, p, q, &random, &mut data);
                assert_secret(&data);
            }
        }),
        ("randomised response", || {
            let values = secret(&[0, 1, 1, 0, 1].repeat(205));
            let mut out = vec![0; values.len()];
            let response = Protocol::from(RandomizedResponse::coin_flips());
            response.perturb_with(Values::Answers(&values), &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
            assert_secret(&out);
        }),
        ("randomised response, a value that is refused", || {
            let mut out = [0; 3];
            let response = Protocol::from(RandomizedResponse::coin_flips());
            assert!(response.perturb(Values::Answers(&secret(&[0, 2, 1])), &mut out, 1).is_err());
        }),
        ("one-hot encoding", || {
            for encoding in encodings() {
                let (values, mut rows) = values_and_rows(&encoding);
                one_hot(encoding.k(), &values, &mut rows).unwrap();
                assert_secret(&rows);
            }
        }),
        ("unary encoding", || {
            for encoding in encodings() {
                let (values, mut rows) = values_and_rows(&encoding);
                encoding.perturb_with(Values::Integers(&values), &mut rows, &mut SeededRng::new(1).unwrap()).unwrap();
                assert_secret(&rows);
            }
        }),
        ("unary encoding of rows", || {
            for encoding in encodings() {
                let (values, mut rows) = values_and_rows(&encoding);
                one_hot(encoding.k(), &values, &mut rows).unwrap();
                let mut out = vec![0; rows.len()];
                encoding.perturb(Values::Rows(&rows), &mut out, 2).unwrap();
                assert_secret(&out);
            }
        }),
        ("unary encoding of rows, one that is refused", || {
            for encoding in encodings() {
                let width = encoding.report_bytes();
                let rows = secret(&[3].repeat(2 * width));
                assert!(encoding.perturb(Values::Rows(&rows), &mut vec![0; rows.len()], 1).is_err());
            }
        }),
        ("packing bytes", || {
            for k in encodings().map(|encoding| encoding.k()).chain([7]) {
                let bytes = secret(&[1, 0].repeat(k as usize));
                assert_secret(&pack(k, &bytes).unwrap());
            }
        }),
        ("packing bytes, one that is refused", || {
            for k in encodings().map(|encoding| encoding.k()).chain([7]) {
                assert!(pack(k, &secret(&[1, 2].repeat(k as usize))).is_err());
            }
        }),
        ("generalised randomised response", || {
            // All sizes of coins, index words and reports.
            for (k, epsilon) in [(2, 1.0), (255, 4.0), (15, 1e-4), (3, 25.0), (1000, 5.0), (70_001, 20.0)] {
                let response = Protocol::from(GeneralizedRandomizedResponse::new(k, epsilon).unwrap());
                assert_secret(&perturbed(&response, &[0, 1, k as i64 - 1].repeat(700)));
            }
        }),
        ("generalised randomised response, a value that is refused", || {
            let response = Protocol::from(GeneralizedRandomizedResponse::new(15, 1.0).unwrap());
            assert!(response.perturb(Values::Integers(&secret(&[3, 15, 4])), &mut [0; 3], 1).is_err());
        }),
        ("local hashing", || {
            // All sizes of coins, index words and reports.
            for (k, g, epsilon) in
                [(2, 2, 1.0), (15, 4, 1.0), (128, 300, 1e-4), (1000, 4, 25.0), (60_001, 9, 4.0), (1 << 16, 3000, 9.0)]
            {
                let hashing = Protocol::from(LocalHashing::new(k, epsilon, Some(g)).unwrap());
                perturbed(&hashing, &[0, 1, k as i64 - 1].repeat(700));
            }
        }),
        ("Hadamard response", || {
            for (k, epsilon) in [(2, 1.0), (200, 1e-4), (1000, 25.0), (1 << 24, 1.0)] {
                let response = Protocol::from(HadamardResponse::new(k, epsilon).unwrap());
                perturbed(&response, &[0, 1, k as i64 - 1].repeat(700));
            }
        }),
        ("subset selection", || {
            for (k, epsilon) in [(2, 1.0), (15, 1e-4), (128, 1.0), (5000, 3.0)] {
                let selection = Protocol::from(SubsetSelection::new(k, epsilon, None).unwrap());
                assert_secret(&perturbed(&selection, &[0, 1, k as i64 - 1].repeat(20)));
            }
        }),
        ("projective geometry response", || {
            // From 2 to 25 digits, all sizes of coins and index words, and an odd number of people, of whom no vector has
            // the last one.
            let cases = [
                (2, 1.0, Some(2)),
                (1 << 24, 0.5, Some(2)),
                (22_000, 1.0, None),
                (22_000, 1e-4, None),
                (1_000_000, 3.0, Some(23)),
                (22_000, 25.0, Some(149)),
                (7000, 5.0, Some(7001)),
            ];
            for (k, epsilon, prime) in cases {
                let response = Protocol::from(ProjectiveGeometryResponse::new(k, epsilon, prime).unwrap());
                assert_secret(&perturbed(&response, &[0, k as i64 / 3, k as i64 - 1].repeat(467)));
            }
        }),
        ("hierarchical ranges", || {
            for (k, branching) in [(2, 2), (200, 4), (5000, 16), (1 << 20, 2)] {
                let range = Protocol::from(HierarchicalRange::new(k, 1.0, branching).unwrap());
                perturbed(&range, &[0, 1, k as i64 - 1].repeat(700));
            }
        }),
        ("summation with histogram encoding", || {
            for (k, epsilon) in [(2, 1.0), (15, 1e-4), (5000, 30.0)] {
                let encoding = Protocol::from(SummationHistogramEncoding::new(k, epsilon).unwrap());
                assert_secret(&perturbed(&encoding, &[0, 1, k as i64 - 1].repeat(20)));
            }
        }),
        ("unary encoding, a value that is refused", || {
            let encoding = Protocol::from(SymmetricUnaryEncoding::new(15, 1.0).unwrap());
            assert!(encoding.perturb(Values::Integers(&secret(&[3, 15, 4])), &mut [0; 6], 1).is_err());
        }),
    ])
}
