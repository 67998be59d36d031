//! Hierarchical ranges: a Hadamard response on the value's ancestor in a random level of a tree.
//!
//! The k values, in their order, are the leaves of a tree in which every node has `branching` children (the root may
//! have fewer), a power of two. A client draws one of the levels below the root uniformly, and reports the ancestor of
//! its value at this level by a Hadamard response with the whole epsilon. A range of values is a union of few nodes, so
//! the error of its count grows with the logarithm of its length and not with its square root.
//!
//! Source: Cormode, Kulkarni, Srivastava 2019, "Answering range queries under local differential privacy", section 4.3
//! (a hierarchy with Hadamard randomised response), with the levels sampled.
//!
//! Nodes are numbered as in a binary heap: of a level with 2^d nodes, 2^d + i is the i-th. A report is the number
//! 2 (2^d + j) + s, where j < 2^d is the column of the Hadamard matrix of order 2^d, and s the randomised entry of the
//! node's row.
//!
//! # Privacy
//!
//! Level and column are drawn independently of the value, so only the entry depends on it: randomised response of one
//! bit.
//!
//! # Estimation
//!
//! The collector counts how often each report occurs. Node counts follow by a Walsh-Hadamard transform of every level.

use core::hint::black_box;

use dpnoise_kernels::memory::collected;
use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::local::chance::mixture::{Mixture, index_bytes, uniform};
use crate::local::range::{RangeEstimate, TreeShape};
use crate::local::reports::Reports;
use crate::local::reports::hadamard::walsh_hadamard;
use crate::local::reports::numbers::Numbers;
use crate::local::reports::symbols::{self, Symbols};
use crate::local::spec::{Field, Given, MIN_K};
use crate::local::values::check_below;
use crate::rng::{AnyRng, Wiped};

/// Hierarchical ranges over k ordered values.
///
/// A report is epsilon-locally differentially private (Cormode, Kulkarni, Srivastava 2019, "Answering range queries
/// under local differential privacy", section 4.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HierarchicalRange {
    k: u32,
    epsilon: f64,
    depth: u32,
    step: u32,
    mixture: Mixture,
}

const BRANCHINGS: &str = "a power of two from 2 to 1024";

impl HierarchicalRange {
    /// The largest number of values: every possible report has a counter, and there are four times as many.
    pub const MAX_K: u64 = 1 << 20;

    /// The tree over `k` values whose nodes have `branching` children.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^20, the branching is a power of two from 2 to 2^10, and
    /// 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64, branching: u64) -> Result<Self, Error> {
        if !(MIN_K..=Self::MAX_K).contains(&k) {
            return Err(Error::parameter("k", k, format!("an integer from {MIN_K} to {}", Self::MAX_K)));
        }
        if !(branching.is_power_of_two() && (2..=1 << 10).contains(&branching)) {
            return Err(Error::parameter("branching", branching, BRANCHINGS));
        }
        let (depth, step) = (k.next_power_of_two().trailing_zeros(), branching.trailing_zeros());
        Ok(Self { k: k as u32, epsilon, depth, step, mixture: Mixture::new(2, epsilon)? })
    }

    /// The binary logarithm of the number of leaves, including those that are not values.
    #[must_use]
    pub fn depth(self) -> u32 {
        self.depth
    }

    /// The largest number of children of a node.
    #[must_use]
    pub fn branching(self) -> u32 {
        1 << self.step
    }

    /// The number of levels below the root.
    #[must_use]
    pub fn levels(self) -> u32 {
        self.depth.div_ceil(self.step)
    }

    /// The randomisation of the entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }
}

impl Family for HierarchicalRange {
    const NAME: &'static str = "hierarchical_range";
    const ABBREVIATION: &'static str = "hierarchical";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::k("an integer from 2 to 1048576"),
        Parameter::EPSILON,
        Parameter::integer("branching", BRANCHINGS, 4, "the children of a node, a power of two").or(4),
    ];
    type Reports = Nodes;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.mixture.fields();
        fields.push(("branching", self.branching().into()));
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?, arguments.integer("branching")?)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon, given.integer("branching")?)
    }

    fn epsilon(&self) -> f64 {
        self.mixture.likelihood_ratio().epsilon()
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below(self.k, values)
    }

    fn random_bits(&self) -> usize {
        symbols::random_bits(self)
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        symbols::randomise(self, self.report_bytes(), rng, values, first, out)
    }

    fn reports(&self) -> Nodes {
        Nodes { depth: self.depth, step: self.step }
    }

    fn estimate_ranges(&self, n: u64, counters: &[u64]) -> Result<Option<RangeEstimate>, Error> {
        let (keep, _) = self.mixture.kept_and_replaced();
        // A report agrees with its node's row with probability (1 + keep) / 2, and with others' with 1 / 2. So its
        // standard deviation is at most 1 / keep, in multiples of what a person counts.
        let shape = TreeShape::new(self.k as usize, self.branching() as usize, 1.0 / keep)?;
        let levels = (0..self.levels()).map(|level| {
            let bits = self.depth - level * self.step;
            let reports = counters[2 << bits..4 << bits].as_chunks().0;
            let mut balance = collected(reports.iter().map(|&[same, other]: &[u64; 2]| same as i64 - other as i64))?;
            walsh_hadamard(&mut balance);
            let reached = self.k.div_ceil(1 << (level * self.step)) as usize;
            let counts = collected(balance[..reached].iter().map(|&balance| balance as f64 / keep))?;
            Ok((counts, reports.as_flattened().iter().sum()))
        });
        RangeEstimate::new(shape, n, levels).map(Some)
    }
}

impl Symbols for HierarchicalRange {
    fn mixture(&self) -> Mixture {
        self.mixture
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.levels()) + index_bytes(1 << self.depth)
    }

    /// Draws a level and a column for each.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        let mut columns = Wiped::<u64>::new(seeds.len());
        uniform(rng, self.levels(), seeds)?;
        uniform(rng, 1 << self.depth, &mut columns)?;
        // Valgrind takes the instruction that sets one bit of a register for an address made of the number of the bit.
        let one = black_box(1u64);
        for (seed, &column) in seeds.iter_mut().zip(&*columns) {
            // An overflow check would be a branch on what is still secret.
            let levels_up = (*seed as u32).wrapping_mul(self.step);
            let nodes = one.wrapping_shl(self.depth.wrapping_sub(levels_up));
            *seed = nodes | column & nodes.wrapping_sub(1);
        }
        Ok(())
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        // The leading ones of seed and node are both that of their level, so they coincide and add 1 to the parity.
        let bits = 31u32.wrapping_sub((seed as u32 | 1).leading_zeros());
        let node = (1 << self.depth | value as u32).wrapping_shr(self.depth.wrapping_sub(bits));
        (node & seed as u32).count_ones() & 1 ^ 1
    }
}

/// Numbers of nodes of some levels, each with an entry.
#[derive(Clone, Copy)]
pub(crate) struct Nodes {
    depth: u32,
    step: u32,
}

impl Nodes {
    /// The numbers of all reports, and those between levels, which are not reports.
    fn numbers(self) -> Numbers {
        Numbers::to_transform(4u64 << self.depth)
    }

    fn is_report(self, number: u64) -> bool {
        let level = (number >> 1).checked_ilog2();
        level.is_some_and(|bits| 0 < bits && bits <= self.depth && (self.depth - bits).is_multiple_of(self.step))
    }
}

impl Reports for Nodes {
    fn bits(self) -> usize {
        self.numbers().bits()
    }

    fn malformed(self) -> &'static str {
        self.numbers().malformed()
    }

    fn counters(self) -> usize {
        self.numbers().counters()
    }

    fn most(self) -> u64 {
        self.numbers().most()
    }

    fn effort(self, reports: usize) -> usize {
        self.numbers().effort(reports)
    }

    fn count(self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let (mut counters, beyond) = self.numbers().count(instructions, rows)?;
        let between = counters.iter_mut().zip(0..).filter(|&(_, number)| !self.is_report(number));
        let rejected = between.fold(beyond, |rejected, (count, _)| rejected + core::mem::take(count));
        Ok((counters, rejected))
    }

    fn are_possible(self, n: u64, counters: &[u64]) -> bool {
        let mut between = counters.iter().zip(0..).filter(|&(_, number)| !self.is_report(number));
        self.numbers().are_possible(n, counters) && between.all(|(&count, _)| count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::reports::hadamard;
    use crate::rng::SeededRng;

    #[test]
    fn seeds_are_of_all_levels_and_columns_alike() {
        for (k, branching, levels) in
            [(2, 4, vec![1]), (5, 2, vec![1, 2, 3]), (16, 4, vec![2, 4]), (17, 4, vec![1, 3, 5])]
        {
            let range = HierarchicalRange::new(k, 1.0, branching).unwrap();
            let mut counts = vec![0; range.reports().counters() / 2];
            let mut seeds = vec![0; 100_000];
            range.draw_seeds(&mut SeededRng::new(1).unwrap(), &mut seeds).unwrap();
            for seed in seeds {
                counts[seed as usize] += 1;
            }
            for (seed, &count) in counts.iter().enumerate() {
                let bits = seed.checked_ilog2().unwrap_or(99);
                let is_level = levels.contains(&bits);
                assert_eq!(range.reports().is_report(2 * seed as u64), is_level, "{k} {seed}");
                let expected = if is_level { 1e5 / levels.len() as f64 / f64::from(1 << bits) } else { 0.0 };
                assert!((f64::from(count) - expected).abs() <= 6.0 * expected.sqrt(), "{k} {seed}: {count}");
            }
        }
    }

    #[test]
    fn symbols_are_entries_of_the_node() {
        let range = HierarchicalRange::new(13, 1.0, 4).unwrap();
        for value in 0..13 {
            for (bits, columns) in [(2u32, 4), (4, 16)] {
                for column in 0..columns {
                    let entry = hadamard::entry(value >> (4 - bits), column);
                    assert_eq!(range.symbol(u64::from(1 << bits | column), value.into()), entry);
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |k, branching| HierarchicalRange::new(k, 1.0, branching).unwrap_err().to_string();
        assert_eq!(message(1, 4), "k must be an integer from 2 to 1048576, got 1");
        assert_eq!(message(9, 6), "branching must be a power of two from 2 to 1024, got 6");
    }
}
