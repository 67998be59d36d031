//! The check of `make constant-time` for aggregate shares: as in rust/core/tests/constant_time, valgrind reports each
//! jump and each address that depends on noise or on a share.

#[cfg(dpnoise_secrecy)]
#[path = "../../../rust/core/tests/constant_time/runner.rs"]
mod runner;

#[cfg(dpnoise_secrecy)]
mod checks {
    use std::hint::black_box;
    use std::process::ExitCode;

    use dpnoise_core::rng::SeededRng;
    use dpnoise_prio::{ApproximateDp, Budget, Noise, NoiseField, PureDp, Sensitive, ZCdp};
    use prio::dp::distributions::DiscreteLaplace;
    use prio::dp::{DifferentialPrivacyStrategy, Rational};
    use prio::field::{Field64, Field128, FieldElement};
    use prio::flp::TypeWithNoise;
    use prio::flp::gadgets::{Mul, ParallelSum};
    use prio::flp::types::{Count, Histogram, L1BoundSum, MultihotCountVec, Sum, SumVec};
    use rand::distr::Distribution;

    use crate::runner::{assert_secret, report, secret, table};

    /// Adds noise of every budget to a secret share.
    fn noised<T>(typ: &T)
    where
        T: Sensitive + TypeWithNoise<Noise<PureDp>> + TypeWithNoise<Noise<ZCdp>> + TypeWithNoise<Noise<ApproximateDp>>,
    {
        with(typ, PureDp::new(0.3).unwrap());
        with(typ, ZCdp::new(0.01).unwrap());
        with(typ, ApproximateDp::new(1.0, 1e-6).unwrap());
    }

    fn with<T: TypeWithNoise<Noise<B>>, B: Budget>(typ: &T, budget: B) {
        let mut share = secret(&vec![T::Field::one(); typ.output_len()]);
        typ.add_noise_to_agg_share(&Noise::from_budget(budget), &mut share, 10).unwrap();
        assert_secret(&share);
    }

    fn all_types<F: NoiseField>(number: fn(u64) -> F::Integer) {
        noised(&Count::<F>::new());
        noised(&Sum::<F>::new(number(1000)).unwrap());
        noised(&Histogram::<F, ParallelSum<F, Mul>>::new(1117, 30).unwrap());
        noised(&SumVec::<F, ParallelSum<F, Mul>>::new(number(9), 30, 5).unwrap());
        noised(&L1BoundSum::<F, ParallelSum<F, Mul>>::new(number(9), 30, 5).unwrap());
        noised(&MultihotCountVec::<F, ParallelSum<F, Mul>>::new(30, 5, 5).unwrap());
    }

    pub(super) fn run() -> ExitCode {
        let checks = table(&[
            ("all types, elements of 64 bits", || all_types::<Field64>(u64::from)),
            ("all types, elements of 128 bits", || all_types::<Field128>(u128::from)),
            ("noise modulo p", || {
                for noise in secret(&[0, 1, -1, 1 << 40, i64::MAX, i64::MIN]) {
                    assert_secret(&[Field64::from_noise(noise)]);
                    assert_secret(&[Field128::from_noise(noise)]);
                }
            }),
        ]);
        let controls = table(&[
            ("noise modulo p, by cases", || {
                for noise in secret(&[5i64, -5]) {
                    black_box(match noise {
                        0.. => black_box(Field64::from(noise as u64)),
                        _ => black_box(-Field64::from(noise.unsigned_abs())),
                    });
                }
            }),
            ("noise that stops where the share is zero", || {
                black_box(secret(&[Field64::from(1), Field64::zero()]).iter().position(|&x| x == Field64::zero()));
            }),
            ("libprio-rs' sampler of discrete Laplace noise", || {
                let sampler = DiscreteLaplace::new(Rational::from_unsigned(10u8, 1u8).unwrap()).unwrap();
                black_box(sampler.sample(&mut SeededRng::new(1).unwrap()));
            }),
        ]);
        report(&checks, &controls)
    }
}

#[cfg(dpnoise_secrecy)]
fn main() -> std::process::ExitCode {
    checks::run()
}

#[cfg(not(dpnoise_secrecy))]
fn main() {
    println!("skipped: it needs valgrind and a build of its own, which `make constant-time` makes");
}
