//! Numbers from alias tables: their fractions are at a threshold or next to it.
use std::fmt::Write as _;
use std::ops::Deref;

use dpnoise_core::samplers::{DiscreteGaussian, DiscreteLaplace, Geometric, IntegerNoise};
use dpnoise_kernels::arch::alias::{self, DIGIT_BYTES, Drawn, NUMBERS, REST};
use dpnoise_kernels::arch::instruction_set::InstructionSet;

use crate::{HEAD, Words, real};

/// Numbers of all distributions.
pub(crate) fn code() -> String {
    let mut all: Vec<(_, IntegerNoise)> = Vec::new();
    for scale in [0.01, 1.0, 10.0, 1000.0] {
        all.push(("false true", DiscreteLaplace::new(real(scale)).deref().clone()));
    }
    for scale in [3.0, 1000.0] {
        all.push(("false false", Geometric::new(real(scale)).deref().clone()));
    }
    for scale in [0.5, 1.0, 6.0] {
        all.push(("true true", DiscreteGaussian::new(real(scale)).expect("a scale").deref().clone()));
    }
    let mut words = Words(13);
    let mut code = HEAD.to_owned();
    let mut names = Vec::new();
    for (i, (law, noise)) in all.iter().enumerate() {
        let (digits, scale) = (noise.digits().expect("drawn from alias tables"), noise.scale().ratio());
        writeln!(code, "Definition law{i} := Law {law} {} {}.", scale.numerator(), scale.denominator()).unwrap();
        let digit_code = digits.iter().map(|digit| {
            let columns = digit.table.columns();
            let list = |item: fn(&(u64, u8)) -> u64| {
                columns.iter().map(item).map(|item| item.to_string()).collect::<Vec<_>>().join("; ")
            };
            format!(
                "Digit [{}]%Z\n  [{}]%Z {} {}",
                list(|column| column.0),
                list(|column| column.1.into()),
                digit.step,
                digit.signed
            )
        });
        writeln!(code, "Definition digits{i} := [{}].", digit_code.collect::<Vec<_>>().join(";\n  ")).unwrap();
        let mut rows = Vec::new();
        for distance in [-1, 0, 1, i64::MAX] {
            let mut block = vec![0; DIGIT_BYTES * digits.len()];
            let mut pairs = vec![Vec::new(); NUMBERS];
            for (d, (digit, block)) in digits.iter().zip(block.chunks_exact_mut(DIGIT_BYTES)).enumerate() {
                let columns = digit.table.columns();
                for (j, pairs) in pairs.iter_mut().enumerate() {
                    // Each column of the first digit, and bits that do not count.
                    let column = if d == 0 { j as u8 } else { words.next() as u8 % 64 };
                    let head = (words.next() as u8) << 6 | column;
                    let edge = columns[usize::from(column)].0.saturating_add_signed(distance);
                    let fraction = if distance == i64::MAX { words.next() } else { edge } % (1 << alias::COLUMN_BITS);
                    for (byte, plane) in
                        fraction.to_le_bytes()[..7].iter().chain([&head]).zip(block.chunks_exact_mut(NUMBERS))
                    {
                        plane[j] = *byte;
                    }
                    pairs.push(format!("({fraction}, {head})"));
                }
            }
            let drawn = InstructionSet::available().into_iter().map(|set| {
                let (mut drawn, mut numbers) = (Drawn::default(), [0; NUMBERS]);
                alias::run(set, digits, &block, &mut drawn, &mut numbers);
                (drawn.entries, drawn.rest, numbers)
            });
            let drawn: Vec<_> = drawn.collect();
            assert!(drawn.iter().all(|results| results == &drawn[0]), "{drawn:?}");
            let (entries, any_rest, numbers) = &drawn[0];
            let is_rest =
                |j: usize| entries[..digits.len()].iter().any(|entries| entries[j].unsigned_abs() as usize == REST);
            assert_eq!(*any_rest, (0..NUMBERS).any(is_rest));
            for (j, pairs) in pairs.iter().enumerate() {
                let rest = is_rest(j);
                rows.push(format!(
                    "([{}], {}, {}, {rest})",
                    pairs.join("; "),
                    numbers[j] < 0,
                    numbers[j].unsigned_abs()
                ));
            }
        }
        writeln!(
            code,
            "Definition rows{i} : list (list (int * int) * bool * int * bool) := [\n{}]%uint63.",
            rows.join(";\n")
        )
        .unwrap();
        names.push(format!("(law{i}, digits{i}, rows{i})"));
    }
    writeln!(code, "Definition numbers := [{}].", names.join("; ")).unwrap();
    code
}
