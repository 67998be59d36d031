//! Calls of everything that is built on kernels, whose instructions are counted beside those of the samplers.

use std::hint::black_box;

use dpnoise_core::Error;
use dpnoise_core::local::{
    Accumulator, GeneralizedRandomizedResponse, LocalHashing, OptimizedUnaryEncoding, ProjectiveGeometryResponse,
    Protocol, Values,
};
use dpnoise_core::mechanisms::{DiscreteLaplace, Exponential, Moment, Quantile, Sum};
use dpnoise_core::params::{Ratio, Relation};
use dpnoise_core::rng::SeededRng;
use dpnoise_core::sgd::{Clipping, CorrelatedNoise};
use rand_core::Rng;

/// What is called, made ready.
pub(crate) type Call = Box<dyn FnMut() -> Result<(), Error>>;

/// A call that does its work on so many items.
pub(crate) struct Calls {
    pub(crate) name: &'static str,
    pub(crate) items: usize,
    pub(crate) set_up: fn(usize) -> Result<Call, Error>,
}

const fn calls(name: &'static str, items: usize, set_up: fn(usize) -> Result<Call, Error>) -> Calls {
    Calls { name, items, set_up }
}

pub(crate) const ALL: [Calls; 18] = [
    calls("ChaCha12, byte", 1 << 14, |bytes| {
        let (mut rng, mut out) = (rng()?, vec![0; bytes]);
        Ok(Box::new(move || {
            rng.fill_bytes(black_box(&mut out));
            Ok(())
        }))
    }),
    calls("unary encoding of 128 values, report", 1 << 9, |n| client(OptimizedUnaryEncoding::new(128, 1.0)?, n)),
    calls("count of rows of 2 bytes, row", 1 << 14, |n| server(OptimizedUnaryEncoding::new(15, 1.0)?, n)),
    calls("count of rows of 13 bytes, row", 1 << 12, |n| server(OptimizedUnaryEncoding::new(100, 1.0)?, n)),
    calls("count of rows of 128 bytes, row", 1 << 10, |n| server(OptimizedUnaryEncoding::new(1024, 1.0)?, n)),
    calls("randomized response of 128 values, report", 1 << 12, |n| {
        client(GeneralizedRandomizedResponse::new(128, 1.0)?, n)
    }),
    calls("projective geometry response of 22,000 values, report", 1 << 12, |n| {
        client(ProjectiveGeometryResponse::new(22_000, 1.0, None)?, n)
    }),
    calls("estimate of projective geometry response, 22,000 values, value", 22_000, |k| {
        let mut counts = Accumulator::new(ProjectiveGeometryResponse::new(k as u64, 1.0, None)?.into())?;
        let width = counts.protocol().report_bytes();
        counts.add(&vec![1; k * width], width, 1)?;
        Ok(Box::new(move || {
            black_box(counts.estimate().expect("it has memory"));
            Ok(())
        }))
    }),
    calls("count of local hashing, 128 values, report", 1 << 9, |n| server(LocalHashing::new(128, 1.0, None)?, n)),
    calls("exponential mechanism, score", 1 << 12, |n| {
        let (mechanism, mut rng) = (Exponential::new(1.0, 1.0, false)?, rng()?);
        let scores: Vec<f64> = (0..n).map(|i| (i % 100) as f64).collect();
        Ok(Box::new(move || mechanism.release_with(black_box(&scores), &mut rng).map(drop)))
    }),
    calls("clip and sum of 16 rows of float32, number", 1 << 14, |n| {
        let (clipping, mut sums) = (Clipping::new(1.0)?, vec![0; n / 16]);
        let rows: Vec<f32> = (0..n).map(|i| (i % 100) as f32).collect();
        Ok(Box::new(move || clipping.add(black_box(&rows), &mut sums, 1)))
    }),
    calls("clip and sum of 16 rows of float64, number", 1 << 14, |n| {
        let (clipping, mut sums) = (Clipping::new(1.0)?, vec![0; n / 16]);
        let rows: Vec<f64> = (0..n).map(|i| (i % 100) as f64).collect();
        Ok(Box::new(move || clipping.add(black_box(&rows), &mut sums, 1)))
    }),
    calls("correlated noise of 16 bands, number", 1 << 12, |n| {
        let numerators = (0..16).map(|i| 4096 - 200 * i).collect();
        let (noise, mut rng) = (CorrelatedNoise::new(numerators, 1e10, 4.0)?, rng()?);
        let (mut history, mut out, mut step) = (vec![0; noise.history_length(n)], vec![0; n], 0);
        Ok(Box::new(move || {
            step += 1;
            noise.next_with(step, &mut history, black_box(&mut out), &mut rng)
        }))
    }),
    calls("sum of floats, row", ROWS, |n| {
        let (sum, column, mut rng) = (Sum::new(BOUNDS, 1.0, Relation::AddRemove, None)?, floats(n), rng()?);
        Ok(Box::new(move || sum.release_with(black_box(&column), 1, &mut rng).map(drop)))
    }),
    calls("sum of integers, row", ROWS, |n| {
        let (sum, mut rng) = (Sum::new(BOUNDS, 1.0, Relation::AddRemove, None)?, rng()?);
        let column: Vec<i64> = (0..n as i64).map(|i| i % 128).collect();
        Ok(Box::new(move || sum.release_with(black_box(&column), 1, &mut rng).map(drop)))
    }),
    calls("variance of floats, row", ROWS, |n| {
        let (moment, column, mut rng) = (Moment::variance(BOUNDS, 1.0, Relation::AddRemove)?, floats(n), rng()?);
        Ok(Box::new(move || moment.release_with(black_box(&column), 1, &mut rng).map(drop)))
    }),
    calls("histogram of 10 bins, row", ROWS, |n| {
        let (noise, column, mut rng) = (DiscreteLaplace::new(1.0, 1)?, floats(n), rng()?);
        let edges: Vec<f64> = (0..=10).map(|i| f64::from(10 * i)).collect();
        Ok(Box::new(move || noise.release_bins_with(&edges, black_box(&column), &mut rng).map(drop)))
    }),
    calls("median of 100,000 floats, row", 100_000, |n| {
        let half = Ratio::new(1, 2).expect("it is a fraction");
        let (median, column) = (Quantile::new(half, BOUNDS, 1.0, Relation::AddRemove, None)?, floats(n));
        let mut rng = rng()?;
        Ok(Box::new(move || median.release_with(black_box(&column), &mut rng).map(drop)))
    }),
];

/// The rows of a column, and the bounds of its values.
const ROWS: usize = 1 << 16;
const BOUNDS: (f64, f64) = (0.0, 100.0);

/// Values that are not in order and not all within [`BOUNDS`].
fn floats(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i * 40_503 % 65_537) as f64 / 512.0).collect()
}

fn rng() -> Result<SeededRng, Error> {
    SeededRng::new(1)
}

fn reports(protocol: &Protocol, values: &[i64], rng: &mut SeededRng, out: &mut [u8]) -> Result<(), Error> {
    protocol.perturb_with(Values::Integers(values), out, rng)
}

fn values(protocol: &Protocol, n: usize) -> (Vec<i64>, Vec<u8>) {
    ((0..n as i64).map(|i| i % i64::from(protocol.k())).collect(), vec![0; n * protocol.report_bytes()])
}

fn client(protocol: impl Into<Protocol>, n: usize) -> Result<Call, Error> {
    let protocol = protocol.into();
    let ((values, mut out), mut rng) = (values(&protocol, n), rng()?);
    Ok(Box::new(move || reports(&protocol, black_box(&values), &mut rng, &mut out)))
}

fn server(protocol: impl Into<Protocol>, n: usize) -> Result<Call, Error> {
    let protocol = protocol.into();
    let (values, mut rows) = values(&protocol, n);
    reports(&protocol, &values, &mut rng()?, &mut rows)?;
    let mut counts = Accumulator::new(protocol)?;
    Ok(Box::new(move || counts.add(black_box(&rows), protocol.report_bytes(), 1)))
}
