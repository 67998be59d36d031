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
//! | `projective` | a number of a point in a projective space |
//! | `cohorts` | the number of a group, and bits |
//! | `noisy_sums` | numbers with Laplace or Gaussian noise |
//! | `grid` | numbers as positions on a grid |
//! | `sketch` | tables of rows with a hash function each, and what follows from their counts |
//! | `tiles` | rows of bits of sixteen people, word by word |
//! | `text_hash` | texts as numbers, and numbers as columns |

pub(crate) mod bits;
pub(crate) mod cohorts;
pub(crate) mod grid;
pub(crate) mod hadamard;
pub(crate) mod hashing;
pub(crate) mod noisy_sums;
pub(crate) mod numbers;
pub(crate) mod projective;
pub(crate) mod sets;
pub(crate) mod sketch;
pub(crate) mod symbols;
pub(crate) mod text_hash;
pub(crate) mod tiles;

use crate::error::Error;
use crate::instruction_set::InstructionSet;

/// The form of the reports of a protocol. They are private already; nothing here needs to be constant-time.
pub(crate) trait Reports: Copy {
    /// The bits of a report.
    fn bits(self) -> usize;

    /// The reason for rejecting a malformed report, which no honest client sends.
    fn malformed(self) -> &'static str;

    /// The number of counters: one for each value that reports support, or for each possible report.
    fn counters(self) -> usize;

    /// The most reports for which neither the counters nor what is computed from them overflow.
    fn most(self) -> u64 {
        u64::MAX
    }

    /// The work of counting one of `reports` reports, in bytes of packed bits that take the same time to count.
    fn effort(self, reports: usize) -> usize;

    /// The counters of the well-formed rows, and the number of malformed ones.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    fn count(self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error>;

    /// Whether these counters are possible for `n` reports.
    fn are_possible(self, n: u64, counters: &[u64]) -> bool {
        counters.iter().all(|&count| count <= n)
    }
}
