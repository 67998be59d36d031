//! Local randomisers that derive from secrets.

use dpnoise_core::local::{
    ClientMemo, DBitFlip, Loloha, LongitudinalUnaryEncoding, Permanent, Probabilities, Protocol, Rappor, Remembering,
    Values,
};
use dpnoise_core::rng::SeededRng;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};

use super::{Check, assert_secret, secret, table};

/// Reports on some values of people with some secrets, all of them poisoned.
fn report_with_memo(protocol: impl Into<Protocol>) {
    let protocol = protocol.into();
    let k = i64::from(protocol.k());
    let values = secret(&[0, 1, k / 2, k - 1].repeat(10));
    let secrets = secret(&[[0x5a; 32]; 40]);
    let mut out = vec![0; values.len() * protocol.report_bytes()];
    let people = Values::Remembering(Remembering { values: &values, secrets: &secrets, question: "question" });
    protocol.perturb_with(people, &mut out, &mut SeededRng::new(1).unwrap()).unwrap();
    assert_secret(&out);
}

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("longitudinal unary encoding", || {
            for (k, permanent, first) in [(2, 2.0, 1.0), (15, 1.0, 0.5), (1000, 4.0, 0.01), (40_000, 2.0, 1.0)] {
                let encoding = LongitudinalUnaryEncoding::new(k, permanent, first, Permanent::Optimized).unwrap();
                report_with_memo(encoding);
            }
        }),
        ("LOLOHA", || {
            for (k, g) in [(2, None), (15, Some(2)), (1000, Some(5)), (1 << 24, Some(256))] {
                let loloha = Loloha::new(k, 2.0, 1.0, g).unwrap();
                report_with_memo(loloha);
            }
        }),
        ("dBitFlip", || {
            for (k, d) in [(2, 1), (15, 4), (1000, 300)] {
                let flips = DBitFlip::new(k, 1.0, d).unwrap();
                report_with_memo(flips);
            }
        }),
        ("RAPPOR", || {
            let given = Probabilities { f: 0.3, p: 0.4, q: 0.75 };
            for (bits, hashes, cohorts) in [(8, 1, 1), (64, 2, 300), (1 << 15, 8, 7)] {
                let rappor = Rappor::new(bits, hashes, cohorts, given).unwrap();
                report_with_memo(rappor);
            }
        }),
        ("comparing memos", || {
            let memos = [1, 2].map(|_| ClientMemo::generate(10).unwrap());
            assert!(!declassify(Reason::Refusal, memos[0] == memos[1]));
        }),
    ])
}
