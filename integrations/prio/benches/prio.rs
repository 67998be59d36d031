//! Noise for the share of a histogram, beside libprio-rs: its strategy for discrete Laplace noise, and its sampler of
//! discrete Gaussian noise, for which it has no strategy. Prints nanoseconds for each bucket.

use std::hint::black_box;
use std::time::Instant;

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
const RUNS: usize = 15;

fn main() {
    println!("   noise      scale  libprio-rs    dpnoise  dpnoise, a million");
    for (name, times) in [("Laplace", laplace as fn(u64) -> [f64; 3]), ("Gaussian", gaussian)] {
        for scale in SCALES {
            let [host, ours, many] = times(scale);
            println!("{name:>8} {scale:10} {host:11.1} {ours:10.1} {many:19.1}");
        }
    }
}

/// A histogram has an L1 sensitivity of 2.
fn laplace(scale: u64) -> [f64; 3] {
    let epsilon = Rational::from_unsigned(2u64, scale).expect("a positive scale");
    let host = PureDpDiscreteLaplace::from_budget(PureDpBudget::new(epsilon).expect("positive"));
    let ours = Noise::from_budget(PureDp::new(2.0 / scale as f64).expect("positive"));
    least([&mut noising(BUCKETS, &host), &mut noising(BUCKETS, &ours), &mut noising(MANY, &ours)])
}

/// A histogram has an L2 sensitivity of the root of 2, so that sigma is the root of 1 / rho.
fn gaussian(scale: u64) -> [f64; 3] {
    let sampler = DiscreteGaussian::new(Rational::from_unsigned(scale, 1).expect("positive")).expect("positive");
    let mut rng: SeedStreamTurboShake128 = rand::make_rng();
    let ours = Noise::from_budget(ZCdp::new((scale as f64).powf(-2.0)).expect("positive"));
    let mut host = || {
        black_box((0..BUCKETS).map(|_| sampler.sample(&mut rng)).max());
        BUCKETS
    };
    least([&mut host, &mut noising(BUCKETS, &ours), &mut noising(MANY, &ours)])
}

/// Adds the noise of a strategy to a share of so many buckets.
fn noising<S: DifferentialPrivacyStrategy>(buckets: usize, strategy: &S) -> impl FnMut() -> usize
where
    Histogram: TypeWithNoise<S>,
{
    let histogram = Histogram::new(buckets, 1000).expect("a valid type");
    let mut share = vec![Field128::zero(); buckets];
    move || {
        histogram.add_noise_to_agg_share(strategy, &mut share, 1).expect("noise in range");
        buckets
    }
}

/// The least time of each in nanoseconds for each bucket. They take turns, so that all meet the same other programs.
fn least(mut noises: [&mut dyn FnMut() -> usize; 3]) -> [f64; 3] {
    let mut least = [f64::INFINITY; 3];
    for _ in 0..RUNS {
        for (noise, least) in noises.iter_mut().zip(&mut least) {
            let start = Instant::now();
            let buckets = noise();
            *least = least.min(start.elapsed().as_nanos() as f64 / buckets as f64);
        }
    }
    least
}
