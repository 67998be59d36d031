//! Noise for the share of a histogram, beside libprio-rs: its strategy for discrete Laplace noise, and its sampler of
//! discrete Gaussian noise, for which it has no strategy. Times are of all buckets; the throughput is in buckets.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use dpnoise_prio::{Noise, PureDp, ZCdp};
use prio::dp::distributions::{DiscreteGaussian, PureDpDiscreteLaplace};
use prio::dp::{DifferentialPrivacyStrategy, PureDpBudget, Rational};
use prio::field::{Field128, FieldElement};
use prio::flp::TypeWithNoise;
use prio::flp::gadgets::{Mul, ParallelSum};
use prio::vdaf::xof::SeedStreamTurboShake128;
use rand::distr::Distribution;

type Histogram = prio::flp::types::Histogram<Field128, ParallelSum<Field128, Mul>>;

const BUCKETS: usize = 1000;
const MANY: usize = 1_000_000;
const SCALES: [u64; 5] = [1, 10, 1000, 1_000_000, 1 << 32];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    laplace(&mut criterion);
    gaussian(&mut criterion);
    criterion.final_summary();
}

/// Times a strategy on a share of so many buckets.
fn time<S: DifferentialPrivacyStrategy>(criterion: &mut Criterion, name: &str, scale: u64, buckets: usize, strategy: &S)
where
    Histogram: TypeWithNoise<S>,
{
    let histogram = Histogram::new(buckets, 1000).expect("a valid type");
    let mut share = vec![Field128::zero(); buckets];
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(buckets as u64));
    group.bench_function(BenchmarkId::from_parameter(scale), |bench| {
        bench.iter(|| histogram.add_noise_to_agg_share(strategy, &mut share, 1).expect("noise in range"));
    });
    group.finish();
}

/// A histogram has an L1 sensitivity of 2.
fn laplace(criterion: &mut Criterion) {
    for scale in SCALES {
        let epsilon = Rational::from_unsigned(2u64, scale).expect("a positive scale");
        let host = PureDpDiscreteLaplace::from_budget(PureDpBudget::new(epsilon).expect("positive"));
        let ours = Noise::from_budget(PureDp::new(2.0 / scale as f64).expect("positive"));
        time(criterion, "discrete Laplace, libprio-rs", scale, BUCKETS, &host);
        time(criterion, "discrete Laplace, dpnoise", scale, BUCKETS, &ours);
        time(criterion, "discrete Laplace, dpnoise, a million", scale, MANY, &ours);
    }
}

/// A histogram has an L2 sensitivity of the root of 2, so that sigma is the root of 1 / rho.
fn gaussian(criterion: &mut Criterion) {
    for scale in SCALES {
        let sampler = DiscreteGaussian::new(Rational::from_unsigned(scale, 1).expect("positive")).expect("positive");
        let mut rng: SeedStreamTurboShake128 = rand::make_rng();
        let mut group = criterion.benchmark_group("discrete Gaussian, libprio-rs");
        group.throughput(Throughput::Elements(BUCKETS as u64));
        group.bench_function(BenchmarkId::from_parameter(scale), |bench| {
            bench.iter(|| (0..BUCKETS).map(|_| sampler.sample(&mut rng)).max());
        });
        group.finish();
        let ours = Noise::from_budget(ZCdp::new((scale as f64).powf(-2.0)).expect("positive"));
        time(criterion, "discrete Gaussian, dpnoise", scale, BUCKETS, &ours);
        time(criterion, "discrete Gaussian, dpnoise, a million", scale, MANY, &ours);
    }
}
