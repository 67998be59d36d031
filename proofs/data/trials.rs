//! Trials: at the edges of what the kernel accepts, rejects and leaves open.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Deref;

use dpnoise_core::samplers::{Design, DiscreteGaussian, DiscreteLaplace, Geometric, IntegerNoise, Layout};
use dpnoise_kernels::arch::instruction_set::InstructionSet;
use dpnoise_kernels::arch::trials::{self, FEW_TRIALS, Sides, TAIL, TRIALS, Tables, Trials};

use crate::{HEAD, Words, ratio, real};

/// How many different trials of a table are written, at the least.
const ROWS: usize = 256;

/// What a trial comes to, as the model numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Rejected,
    Accepted,
    Undecided,
    Tail,
}

/// The bin, offset and acceptance words of a trial.
type Trial = (u32, u64, u64);

/// What the trials of a block come to.
fn outcomes(set: InstructionSet, tables: &Tables, block: &[Trial]) -> Vec<(Outcome, i64)> {
    let mut words: Vec<_> = block.iter().flat_map(|trial| trial.0.to_le_bytes()).collect();
    words.extend(block.iter().flat_map(|trial| trial.1.to_le_bytes().into_iter().take(tables.layout.offset_bytes())));
    words.extend(block.iter().flat_map(|trial| trial.2.to_le_bytes()));
    let (mut all, mut packed) = (Trials::default(), [0; TRIALS]);
    trials::run(set, tables, &words, &mut all, &mut packed);
    let mut packed = packed.into_iter();
    let outcome = |i: usize| match [all.accepted, all.undecided, all.tail].map(|mask| mask >> i & 1) {
        [0, 0, 0] => (Outcome::Rejected, all.values[i]),
        [_, 0, 0] => (Outcome::Accepted, packed.next().expect("a value")),
        [0, _, 0] => (Outcome::Undecided, all.values[i]),
        _ => (Outcome::Tail, 0),
    };
    (0..block.len()).map(outcome).collect()
}

/// What a trial comes to, in all lanes of a block.
fn outcome(set: InstructionSet, tables: &Tables, trial: Trial) -> (Outcome, i64) {
    let all = outcomes(set, tables, &[trial; TRIALS]);
    assert!(all.iter().all(|one| one == &all[0]), "every lane is alike");
    all[0]
}

/// What the exact decision takes a trial for is what the kernel proposes: by a bin's values and its size, these fix it.
fn check_proposal(tables: &Tables, (bin, offset, accept): Trial, (outcome, value): (Outcome, i64)) {
    let proposal = trials::proposal(tables, bin, offset, accept);
    assert_eq!(proposal.bin == TAIL, outcome == Outcome::Tail, "{proposal:?}");
    if outcome != Outcome::Tail {
        let (start, e) = Layout::bin_start(proposal.bin as u32);
        let in_bin = (proposal.magnitude >> tables.layout.shift) - start;
        let copies = u32::from(tables.sides == Sides::Folded && proposal.magnitude > 0);
        assert!(proposal.value() == value && in_bin >> e == 0, "{proposal:?}");
        assert_eq!(proposal.amplitude, tables.amplitude << (e + copies), "{proposal:?}");
        assert_eq!((proposal.weight, proposal.uniform), (tables.weights[proposal.bin], accept >> 1), "{proposal:?}");
    }
}

/// The distributions: every shape, kind of signs and width of offsets, and scales with long parts.
fn distributions() -> Vec<(&'static str, IntegerNoise)> {
    let of_shift = |shift| Design { layout: Layout { shift }, weight_bits: 32, eta_bits: 29 };
    let mut all: Vec<(_, IntegerNoise)> = Vec::new();
    // Where the library uses other tables than those of trials, trials are asked for.
    for scale in [ratio(1, 1000), ratio(126, 89), ratio(10, 3)] {
        all.push(("Laplace", DiscreteLaplace::with_design(scale, of_shift(0)).deref().clone()));
    }
    // Magnitudes of 52 bits and more are converted otherwise.
    all.push(("Laplace", DiscreteLaplace::with_design(real(1e12), of_shift(46)).deref().clone()));
    for scale in [real(6000.0), real(3e5), real(3e9), ratio((1 << 100) + 7, (1 << 80) + 1)] {
        all.push(("Laplace", DiscreteLaplace::new(scale).deref().clone()));
    }
    all.push(("Gaussian", DiscreteGaussian::with_design(real(0.5), of_shift(0)).expect("a scale").deref().clone()));
    for scale in [ratio(41, 6), real(10.0), real(1e3), real(2e8), real(1e12)] {
        all.push(("Gaussian", DiscreteGaussian::new(scale).expect("a scale").deref().clone()));
    }
    for scale in [real(4e5), real(2e6), real(7e8), real(1e10), real(1e12), ratio((1 << 100) + 7, (1 << 70) + 1)] {
        all.push(("Geometric", Geometric::new(scale).deref().clone()));
    }
    all
}

/// Trials of all distributions.
pub(crate) fn code() -> String {
    let sets = InstructionSet::available();
    let [separate, .., fused] = sets[..] else { panic!("an instruction set with fused operations is needed") };
    let mut words = Words(11);
    let mut code = HEAD.to_owned();
    let mut names = Vec::new();
    for (i, (name, noise)) in distributions().iter().enumerate() {
        let tables = noise.tables().expect("drawn by trials");
        let scale = noise.scale().ratio();
        let list = |items: &[u32]| items.iter().map(u32::to_string).collect::<Vec<_>>().join("; ");
        writeln!(code, "(* {name}, scale {}/{} *)", scale.numerator(), scale.denominator()).unwrap();
        let (gaussian, two_sided) = (*name == "Gaussian", *name != "Geometric");
        writeln!(
            code,
            "Definition law{i} := Law {gaussian} {two_sided} {} {}.",
            scale.numerator(),
            scale.denominator()
        )
        .unwrap();
        writeln!(
            code,
            "Definition tables{i} := Tables {} {:?} {} (of_bits false {}) (of_bits false {}) {}\n  [{}]%Z\n  [{}]%Z.",
            tables.layout.shift,
            tables.sides,
            tables.square,
            tables.rate.to_bits(),
            tables.window.to_bits(),
            tables.amplitude,
            list(&tables.alias),
            list(&tables.weights),
        )
        .unwrap();
        // Bin word, upper and lower half of the offset and of the acceptance word; outcome where operations are rounded one by
        // one, and where they are fused; whether the value is negative, and its magnitude.
        writeln!(code, "Definition rows{i} : list int := [").unwrap();
        let (mut rows, mut known) = (BTreeSet::new(), Vec::new());
        for proposal in 0.. {
            if rows.len() >= ROWS && proposal > 66 {
                break;
            }
            // Zeros of both signs and the last words of all, which chance would not bring; each bin's own column; any words.
            let any = words.next();
            let (bin, offset, sign) = match proposal {
                0 | 1 => (0, 0, proposal),
                2 => (u32::MAX, u64::MAX, any & 1),
                3..67 => ((proposal as u32 - 3) << 26, words.next(), any & 1),
                _ => ((any >> 32) as u32, words.next(), any & 1),
            };
            let offset = if tables.layout.offset_bytes() == 4 { offset & u64::from(u32::MAX) } else { offset };
            let mut add = |uniform: u64| {
                let accept = uniform << 1 | sign;
                let trial = (bin, offset, accept);
                let results: Vec<_> = sets.iter().map(|&set| outcome(set, tables, trial)).collect();
                assert!(results[1..].iter().all(|result| result == &results[1]), "{results:?}");
                assert!(results.iter().all(|&(_, value)| value == results[0].1), "{results:?}");
                check_proposal(tables, trial, results[1]);
                known.push((trial, [results[0], results[1]]));
                let [half, rest] = [|word: u64| word >> 32, |word: u64| word & u64::from(u32::MAX)];
                let (kinds, value) = ([results[0].0, results[1].0].map(|kind| kind as u8), results[0].1);
                rows.insert(format!(
                    "{bin}; {}; {}; {}; {}; {}; {}; {}; {}",
                    half(offset),
                    rest(offset),
                    half(accept),
                    rest(accept),
                    kinds[0],
                    kinds[1],
                    u8::from(value < 0),
                    value.unsigned_abs()
                ));
            };
            add(words.next() >> 1);
            // The last prefix that is accepted, the first that is rejected, and their neighbours.
            for set in [separate, fused] {
                for beyond in [|outcome| outcome != Outcome::Accepted, |outcome| outcome == Outcome::Rejected] {
                    let (mut low, mut high) = (0, (1u64 << 63) - 1);
                    while high - low > 1 {
                        // A block of prefixes at once, as far from each other as they can be.
                        let step = (high - low).div_ceil(TRIALS as u64 + 1);
                        let prefix = |i: usize| (low + (i as u64 + 1) * step).min(high);
                        let block: [Trial; TRIALS] = std::array::from_fn(|i| (bin, offset, prefix(i) << 1 | sign));
                        let results = outcomes(set, tables, &block);
                        let found = (0..TRIALS).find(|&i| prefix(i) == high || beyond(results[i].0));
                        let (below, above) = (low + found.unwrap_or(TRIALS) as u64 * step, found.map_or(high, prefix));
                        (low, high) = (below, above);
                    }
                    add(low);
                    add(high);
                }
            }
        }
        // Beside others a trial comes to the same.
        for block in [TRIALS, FEW_TRIALS].iter().flat_map(|&size| known.chunks_exact(size)) {
            let trials: Vec<_> = block.iter().map(|&(trial, _)| trial).collect();
            for (j, &set) in sets.iter().enumerate() {
                let alone: Vec<_> = block.iter().map(|(_, results)| results[j.min(1)]).collect();
                assert_eq!(outcomes(set, tables, &trials), alone, "{}", set.name());
            }
        }
        writeln!(code, "{}]%uint63.", Vec::from_iter(rows).join(";\n")).unwrap();
        names.push(format!("(law{i}, tables{i}, rows{i})"));
    }
    const { assert!(TAIL == 63, "as in the model") };
    writeln!(code, "Definition trials := [{}].", names.join("; ")).unwrap();
    code
}
