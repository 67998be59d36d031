//! A histogram by Prio3 from end to end, with the noise of libprio-rs and with ours, and the time of each step.
//!
//! `cargo run --release --package dpnoise-prio --example histogram [BUCKETS]`

use std::time::Instant;

use dpnoise_prio::{Noise, PureDp};
use prio::dp::distributions::PureDpDiscreteLaplace;
use prio::dp::{DifferentialPrivacyStrategy, PureDpBudget, Rational};
use prio::field::Field128;
use prio::flp::Type;
use prio::vdaf::prio3::{Prio3, Prio3Histogram, optimal_chunk_length};
use prio::vdaf::xof::Xof;
use prio::vdaf::{AggregateShare, Aggregator, AggregatorWithNoise, Client, Collector, OutputShare, VerifyTransition};

fn main() {
    show(std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number of buckets")));
}

pub(crate) fn show(buckets: usize) {
    let vdaf = Prio3::new_histogram(2, buckets, optimal_chunk_length(buckets)).expect("a histogram");
    let measurements = [buckets / 2; 3];
    let epsilon = Rational::from_unsigned(1u8, 1u8).expect("one");
    let host = PureDpDiscreteLaplace::from_budget(PureDpBudget::new(epsilon).expect("positive"));
    run(&vdaf, &measurements, "libprio-rs", &host);
    run(&vdaf, &measurements, "dpnoise", &Noise::from_budget(PureDp::new(1.0).expect("positive")));
}

fn run<S: DifferentialPrivacyStrategy>(vdaf: &Prio3Histogram, measurements: &[usize], name: &str, strategy: &S)
where
    Prio3Histogram: AggregatorWithNoise<32, 16, S>,
{
    let times = |what: &str, start: Instant| println!("{name:>12}: {:8.3} s to {what}", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut shares = aggregate(vdaf, measurements);
    times(&format!("shard, verify and aggregate {} measurements", measurements.len()), start);
    let noise = Instant::now();
    for share in &mut shares {
        vdaf.add_noise_to_agg_share(strategy, &(), share, measurements.len()).expect("noise in range");
    }
    times("add noise to both shares", noise);
    let last = Instant::now();
    let counts = vdaf.unshard(&(), shares, measurements.len()).expect("two shares");
    times("unshard", last);
    times("do all of it", start);
    // A negative number is in the upper half of the field.
    let signed = |x: u128| if x >> 127 == 0 { x as i128 } else { -(u128::from(-Field128::from(x)) as i128) };
    println!("{name:>12}: {} of {} in the bucket", signed(counts[measurements[0]]), measurements.len());
}

/// The shares of the two aggregators of these measurements, each of which is sharded and verified.
pub(crate) fn aggregate<T: Type, P: Xof<32>>(
    vdaf: &Prio3<T, P, 32>,
    measurements: &[T::Measurement],
) -> [AggregateShare<T::Field>; 2] {
    let outputs: Vec<_> = measurements.iter().map(|measurement| verified(vdaf, measurement)).collect();
    [0, 1].map(|id| vdaf.aggregate(&(), outputs.iter().map(|shares| shares[id].clone())).unwrap())
}

fn verified<T: Type, P: Xof<32>>(vdaf: &Prio3<T, P, 32>, measurement: &T::Measurement) -> Vec<OutputShare<T::Field>> {
    let (key, context, nonce): ([u8; 32], _, [u8; 16]) = (rand::random(), b"dpnoise", rand::random());
    let (public, inputs) = vdaf.shard(context, measurement, &nonce).unwrap();
    let begun =
        inputs.iter().enumerate().map(|(id, input)| vdaf.verify_init(&key, context, id, &(), &nonce, &public, input));
    let (states, shares): (Vec<_>, Vec<_>) = begun.map(Result::unwrap).unzip();
    let message = vdaf.verifier_shares_to_message(context, &(), shares).unwrap();
    let ended = states.into_iter().map(|state| vdaf.verify_next(context, state, message.clone()).unwrap());
    ended
        .map(|step| match step {
            VerifyTransition::Finish(share) => share,
            VerifyTransition::Continue(..) => panic!("Prio3 has one round"),
        })
        .collect()
}
