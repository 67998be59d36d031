//! The forms of reports: how they are encoded and written on devices, and counted by the collector.
//!
//! | module | what |
//! | --- | --- |
//! | `bits` | a bit for each value, of which one is set before they are flipped |
//! | `sets` | a bit for each value, of which some number is set |
//! | `numbers` | a number in a few bytes |
//! | `symbols` | a number made of a public seed and a randomised symbol |
//! | `hashing` | a number made of a hash function and a randomised hash |
//! | `hadamard` | a number made of a column of a Hadamard matrix and a randomised entry |
//! | `cohorts` | the number of a group, and bits |
//! | `noisy_sums` | numbers with Laplace noise |
//! | `grid` | numbers as positions on a grid |
//! | `sketch` | tables of rows with a hash function each, and what follows from their counts |
//! | `text_hash` | texts as numbers, and numbers as columns |

pub(crate) mod bits;
pub(crate) mod cohorts;
pub(crate) mod grid;
pub(crate) mod hadamard;
pub(crate) mod hashing;
pub(crate) mod noisy_sums;
pub(crate) mod numbers;
pub(crate) mod sets;
pub(crate) mod sketch;
pub(crate) mod symbols;
pub(crate) mod text_hash;

use crate::instruction_set::InstructionSet;

/// The form of the reports of a protocol. They are private already; nothing here needs to be constant-time.
pub(crate) trait Reports: Copy {
    /// The bits of a report.
    fn bits(self) -> usize;

    /// What is wrong with a report that no honest client makes.
    fn malformed(self) -> &'static str;

    /// The number of counters: one for each value that reports support, or for each report that there is.
    fn counters(self) -> usize;

    /// The most reports that the counters have room for, and so has what is computed of them.
    fn most(self) -> u64 {
        u64::MAX
    }

    /// About how many bytes of packed bits are counted in the time that one of so many reports takes.
    fn effort(self, reports: usize) -> usize;

    /// The counters of the well-formed rows, and the number of the others.
    fn count(self, instructions: InstructionSet, rows: &[u8]) -> (Vec<u64>, u64);

    /// Whether `n` reports can lead to these counters.
    fn are_possible(self, n: u64, counters: &[u64]) -> bool {
        counters.iter().all(|&count| count <= n)
    }
}
