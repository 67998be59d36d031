//! The parts that a draw is made of, each by itself, on every instruction set of this CPU.

#[path = "../core/benches/cases/mod.rs"]
mod cases;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use dpnoise_core::instruction_set::InstructionSet;
use dpnoise_core::params::Scale;
use dpnoise_core::rng::SeededRng;
use dpnoise_core::samplers::{Design, DiscreteGaussian, DiscreteLaplace, IntegerNoise, Sampler};
use dpnoise_kernels::arch::chacha::{Group, chacha12};
use dpnoise_kernels::arch::columns::{self, BLOCK, Missing, Moments, Range};
use dpnoise_kernels::arch::grid::{self, Reach};
use dpnoise_kernels::arch::trials::{self, FEW_TRIALS, TRIALS, Trials};
use dpnoise_kernels::arch::{planes, popcount};
use rand_core::Rng;

use crate::cases::{SAMPLES, Samples};

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    key_stream(&mut criterion);
    trials(&mut criterion);
    grid_addition(&mut criterion);
    bit_planes(&mut criterion);
    column_counts(&mut criterion);
    columns(&mut criterion);
    refinements(&mut criterion);
    draws(&mut criterion);
    set_up(&mut criterion);
    criterion.final_summary();
}

fn key_stream(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("ChaCha12");
    let mut groups: Vec<Group> = vec![[0; size_of::<Group>()]; 16];
    benches.throughput(Throughput::Bytes(groups.as_flattened().len() as u64));
    for instructions in InstructionSet::available() {
        benches.bench_function(BenchmarkId::new("key stream", instructions.name()), |bench| {
            bench.iter(|| chacha12(instructions, black_box(&[7; 8]), 0, &mut groups));
        });
    }
}

/// A sampler for every layout: the finest bins, and offset words of four and of eight bytes.
fn layouts() -> [(&'static str, IntegerNoise); 4] {
    let laplace = |b| DiscreteLaplace::new(scale(b)).into();
    let gaussian = |b| DiscreteGaussian::new(scale(b)).expect("sigma is in range").into();
    [
        ("no shift", gaussian(10.0)),
        ("offsets of 4 bytes", laplace(1e4)),
        ("offsets of 8 bytes", laplace(1e12)),
        ("offsets of 8 bytes, Gaussian", gaussian(1e12)),
    ]
}

fn scale(b: f64) -> Scale {
    Scale::from_f64(b).expect("scales are in range")
}

fn seeded() -> SeededRng {
    SeededRng::new(1).expect("the instruction set exists")
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    seeded().fill_bytes(&mut bytes);
    bytes
}

fn trials(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("trials");
    let (mut trials, mut packed) = (Trials::default(), [0; TRIALS]);
    for (count, size) in [(TRIALS, ""), (FEW_TRIALS, ", small block")] {
        benches.throughput(Throughput::Elements(count as u64));
        for (layout, sampler) in layouts() {
            let tables = sampler.tables().expect("a scale of the histogram");
            let words = random_bytes(tables.layout.bytes(count));
            for instructions in InstructionSet::available() {
                benches.bench_function(BenchmarkId::new(format!("{layout}{size}"), instructions.name()), |bench| {
                    bench.iter(|| trials::run(instructions, tables, black_box(&words), &mut trials, &mut packed));
                });
            }
        }
    }
}

fn grid_addition(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("addition on the grid");
    let mut noise = vec![0; 2048];
    DiscreteLaplace::new(scale(1e12)).fill_with(&mut noise, &mut seeded()).expect("a seeded generator does not fail");
    let mut values = vec![0.0; noise.len()];
    benches.throughput(Throughput::Elements(noise.len() as u64));
    for instructions in InstructionSet::available() {
        for reach in [Reach::Near, Reach::Far] {
            let id = BenchmarkId::new("2048 values", format!("{} {reach:?}", instructions.name()));
            benches.bench_function(id, |bench| {
                bench.iter(|| {
                    values.fill(0.1);
                    grid::add_noise(instructions, reach, -40, black_box(&noise), &mut values)
                });
            });
        }
    }
}

fn bit_planes(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("biased bits");
    let mut data = vec![0; 64 * planes::TILE_BYTES];
    benches.throughput(Throughput::Elements(8 * data.len() as u64));
    for count in [2, 13, 62] {
        let random = random_bytes(data.len() * count as usize);
        let (p, q) = (1 << (count - 1), 1);
        for instructions in InstructionSet::available() {
            benches.bench_function(BenchmarkId::new(format!("{count} planes"), instructions.name()), |bench| {
                bench.iter(|| planes::flip(instructions, count, p, q, black_box(&random), &mut data));
            });
        }
    }
}

fn column_counts(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("column counts");
    for row_bytes in [1, 2, 13, 16, 125, 128, 512] {
        let matrix = random_bytes((1 << 18) / row_bytes * row_bytes);
        let mut counters = vec![0; 8 * row_bytes];
        benches.throughput(Throughput::Elements(8 * matrix.len() as u64));
        for instructions in InstructionSet::available() {
            benches.bench_function(
                BenchmarkId::new(format!("rows of {row_bytes} bytes"), instructions.name()),
                |bench| {
                    bench.iter(|| {
                        popcount::add_column_counts(instructions, black_box(&matrix), row_bytes, &mut counters)
                            .unwrap();
                    });
                },
            );
        }
    }
}

fn columns(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("column");
    let values: Vec<f64> = random_bytes(BLOCK).into_iter().map(f64::from).collect();
    let (distances, squares) = (Range::new((0.0, 100.0), -33), Range::new((-1250.0, 1250.0), -29));
    let moments = Moments { distances, middle: 50.0, half: 50.0, centre: 1250.0, squares };
    let edges: Vec<f64> = (0..=10).map(|i| f64::from(10 * i)).collect();
    let (mut steps, mut counts) = (vec![0; BLOCK], vec![0; edges.len()]);
    benches.throughput(Throughput::Elements(BLOCK as u64));
    for set in InstructionSet::available() {
        let mut bench = |part: &str, work: &mut dyn FnMut(&[f64])| {
            let id = BenchmarkId::new(part, set.name());
            benches.bench_function(id, |bench| bench.iter(|| work(black_box(&values))));
        };
        for (part, squared) in [("sum", false), ("sum and squares", true)] {
            bench(part, &mut |values| _ = black_box(columns::sums(set, &moments, squared, values)));
        }
        bench("steps", &mut |values| {
            columns::steps(set, &distances, &mut Missing::default(), values, black_box(&mut steps));
        });
        bench("10 bins", &mut |values| columns::count_above(set, &edges, values, black_box(&mut counts)));
    }
}

/// The time per refinement, where many trials need one; that of the trials is included.
fn refinements(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("refinement");
    let scale = scale(1e4);
    let laplace = IntegerNoise::from(DiscreteLaplace::new(scale));
    let gaussian = IntegerNoise::from(DiscreteGaussian::new(scale).expect("sigma is in range"));
    let design = |usual: &IntegerNoise| Design {
        layout: usual.tables().expect("a scale of the histogram").layout,
        weight_bits: 32,
        eta_bits: 4,
    };
    let samplers: [(&str, IntegerNoise); 2] = [
        ("discrete Laplace", DiscreteLaplace::with_design(scale, design(&laplace)).into()),
        (
            "discrete Gaussian",
            DiscreteGaussian::with_design(scale, design(&gaussian)).expect("sigma is in range").into(),
        ),
    ];
    let mut samples = vec![0; SAMPLES];
    for (name, sampler) in samplers {
        let mut draw = || sampler.fill_counted(&mut samples, &mut seeded()).expect("a seeded generator does not fail");
        benches.throughput(Throughput::Elements(draw().refinements));
        benches.bench_function(BenchmarkId::new(name, "10000"), |bench| bench.iter(&mut draw));
    }
}

fn draws(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("draws");
    benches.throughput(Throughput::Elements(SAMPLES as u64));
    let (mut rng, mut samples) = (seeded(), Samples::default());
    for case in cases::all() {
        let sampler = case.set_up();
        benches.bench_function(BenchmarkId::new(case.sampler, case.parameter), |bench| {
            bench.iter(|| sampler.draw(&mut rng, &mut samples));
        });
    }
}

fn set_up(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("set-up");
    benches.throughput(Throughput::Elements(1));
    for case in cases::all() {
        benches.bench_function(BenchmarkId::new(case.sampler, case.parameter), |bench| {
            bench.iter(|| black_box(&case).set_up());
        });
    }
}
