//! Hierarchical ranges: a Hadamard response on the value's ancestor in a random level of a tree.
//!
//! The k values, in their order, are the leaves of a tree in which every node has `branching` children (those below the
//! root may be fewer), a power of two. A client draws one of the levels below the root uniformly, and reports the node of
//! this level that its value is under by a Hadamard response with the whole epsilon. A range of values is a union of few
//! nodes, so its count has an error that grows with the logarithm of its length and not with its root.
//!
//! Source: Cormode, Kulkarni, Srivastava 2019, "Answering range queries under local differential privacy", section 4.3 (a
//! hierarchy with Hadamard randomised response), with the levels sampled.
//!
//! Nodes are numbered as in a binary heap: of a level with 2^d nodes, 2^d + i is the i-th. A report is the number
//! 2 (2^d + j) + s, where j < 2^d is the column of the Hadamard matrix of order 2^d, and s the randomised entry of the
//! node's row.
//!
//! # Privacy
//!
//! Level and column are drawn without regard to the value, so only the entry tells anything: randomised response of one
//! bit.
//!
//! # Estimation
//!
//! The collector counts how often each report occurs. Node counts follow by a Walsh-Hadamard transform of every level.

use rand_core::TryCryptoRng;

use super::mixer::{index_bytes, uniform};
use super::mixture::Mixture;
use super::protocol::{Family, MIN_K, Protocol};
use super::randomizer::Randomizer;
use super::symbols::{Symbols, count_numbers};
use crate::error::Error;
use crate::rng::Wiped;

/// The largest number of values: every possible report has a counter, and there are four times as many.
pub const MAX_LEAVES: u64 = 1 << 20;

/// The tree, and what is done to entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hierarchy {
    depth: u32,
    step: u32,
    mixture: Mixture,
}

impl Hierarchy {
    /// The binary logarithm of the number of leaves, those included that are no value.
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

    /// What is done to an entry.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    /// Above the numbers of all reports, of which there are none between levels.
    pub(super) fn reports(self) -> u64 {
        4 << self.depth
    }

    /// Whether a number is that of a report.
    pub(super) fn is_report(self, number: u64) -> bool {
        let level = (number >> 1).checked_ilog2();
        level.is_some_and(|bits| 0 < bits && bits <= self.depth && (self.depth - bits).is_multiple_of(self.step))
    }
}

/// Hierarchical ranges over k ordered values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HierarchicalRange {
    protocol: Protocol,
    hierarchy: Hierarchy,
}

impl HierarchicalRange {
    /// The tree over `k` values whose nodes have `branching` children.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^20, the branching is a power of two from 2 to 2^10, and
    /// 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64, branching: u64) -> Result<Self, Error> {
        if !(MIN_K..=MAX_LEAVES).contains(&k) {
            return Err(Error::parameter("k", k, format!("an integer from {MIN_K} to {MAX_LEAVES}")));
        }
        if !(branching.is_power_of_two() && (2..=1 << 10).contains(&branching)) {
            return Err(Error::parameter("branching", branching, "a power of two from 2 to 1024"));
        }
        let depth = k.next_power_of_two().trailing_zeros();
        let hierarchy = Hierarchy { depth, step: branching.trailing_zeros(), mixture: Mixture::new(2, epsilon)? };
        let randomizer = Randomizer::Hierarchy(hierarchy);
        Ok(Self { protocol: Protocol::new(Family::HierarchicalRange, k as u32, randomizer, epsilon), hierarchy })
    }

    /// The tree that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::Hierarchy(hierarchy) => Some(Self { protocol, hierarchy }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

impl Symbols for HierarchicalRange {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn mixture(&self) -> Mixture {
        self.hierarchy.mixture
    }

    fn seed_bytes(&self) -> usize {
        index_bytes(self.hierarchy.levels()) + index_bytes(1 << self.hierarchy.depth)
    }

    /// A level and a column of each.
    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        let Hierarchy { depth, step, .. } = self.hierarchy;
        let mut columns = Wiped::new(seeds.len());
        uniform(rng, self.hierarchy.levels(), seeds)?;
        uniform(rng, 1 << depth, &mut columns)?;
        for (seed, &column) in seeds.iter_mut().zip(&*columns) {
            // A check for overflow would be a jump on what is still a secret.
            let levels_up = (*seed as u32).wrapping_mul(step);
            let nodes = 1u64.wrapping_shl(depth.wrapping_sub(levels_up));
            *seed = nodes | column & nodes.wrapping_sub(1);
        }
        Ok(())
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        // The leading ones of seed and node are those of their level: they meet, and add 1 to the parity.
        let bits = 31u32.wrapping_sub((seed as u32 | 1).leading_zeros());
        let node = (1 << self.hierarchy.depth | value as u32).wrapping_shr(self.hierarchy.depth.wrapping_sub(bits));
        (node & seed as u32).count_ones() & 1 ^ 1
    }
}

/// Adds to `counters` how often each report occurs, and gives the number of reports that are none.
pub(super) fn count(hierarchy: Hierarchy, reports: &[u8], width: usize, counters: &mut [u64]) -> u64 {
    let beyond = count_numbers(reports, width, counters);
    let between = counters.iter_mut().enumerate().filter(|&(number, _)| !hierarchy.is_report(number as u64));
    between.fold(beyond, |rejected, (_, count)| rejected + core::mem::take(count))
}

#[cfg(test)]
mod tests {
    use super::super::Accumulator;
    use super::super::hadamard_response::HadamardResponse;
    use super::*;
    use crate::rng::SeededRng;

    #[test]
    fn seeds_are_of_all_levels_and_columns_alike() {
        for (k, branching, levels) in
            [(2, 4, vec![1]), (5, 2, vec![1, 2, 3]), (16, 4, vec![2, 4]), (17, 4, vec![1, 3, 5])]
        {
            let range = HierarchicalRange::new(k, 1.0, branching).unwrap();
            let mut counts = vec![0; range.hierarchy.reports() as usize / 2];
            let mut seeds = vec![0; 100_000];
            range.draw_seeds(&mut SeededRng::new(1).unwrap(), &mut seeds).unwrap();
            for seed in seeds {
                counts[seed as usize] += 1;
            }
            for (seed, &count) in counts.iter().enumerate() {
                let bits = seed.checked_ilog2().unwrap_or(99);
                let is_level = levels.contains(&bits);
                assert_eq!(range.hierarchy.is_report(2 * seed as u64), is_level, "{k} {seed}");
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
                    let entry = HadamardResponse::entry(value >> (4 - bits), column);
                    assert_eq!(range.symbol(u64::from(1 << bits | column), value.into()), entry);
                }
            }
        }
    }

    #[test]
    fn reports_between_levels_are_rejected() {
        let range = HierarchicalRange::new(16, 1.0, 4).unwrap();
        let protocol = *range.protocol();
        let mut counted = Accumulator::new(protocol);
        // Of levels of 1, 2, 4, 8 and 16 nodes there are the third and the last.
        counted.add(&[0, 2, 4, 7, 8, 15, 16, 31, 32, 63, 64, 255], 1, 1).unwrap();
        assert_eq!((counted.n(), counted.rejected()), (4, 8));
        assert_eq!([8, 15, 32, 63].map(|number| counted.counters()[number]), [1; 4]);
        assert_eq!(Accumulator::from_bytes(&counted.to_bytes()).as_ref(), Ok(&counted));
        let mut counters = counted.counters().to_vec();
        counters.swap(8, 16);
        assert!(Accumulator::from_counters(protocol, 4, counters).is_err());
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |k, branching| HierarchicalRange::new(k, 1.0, branching).unwrap_err().to_string();
        assert_eq!(message(1, 4), "k must be an integer from 2 to 1048576, got 1");
        assert_eq!(message(9, 6), "branching must be a power of two from 2 to 1024, got 6");
    }
}
