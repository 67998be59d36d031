//! How many reports of local hashing support each value.
//!
//! A report (a, b, hash) supports v if the hash of v is that hash, that is, if (a v + b) mod P is among the residues with it. These
//! are an interval, so seen from a v mod P they are an arc of the circle of residues, which begins somewhere else for each b. There
//! are two ways to count: to walk through all values for every report, and, for many reports on few values, to put all arcs
//! in a table first.

use super::local_hashing::Hashing;
use super::symbols::for_each_number;
use crate::instruction_set::InstructionSet;
use dpnoise_kernels::arch::hashing::{WALKERS, Walks, add_supports};
use dpnoise_kernels::arith::divisor::Divisor;
use dpnoise_kernels::arith::mask;

/// The table of all arcs has the square of P entries; this many circles take 16 MiB.
const MAX_TABULATED_PRIME: usize = 1 << 11;

/// How often a report must occur on average for it to pay to count reports first.
const REPORTS_PER_NUMBER: u64 = 2;

/// How many entries of the table, or values on its circles, are gone through in the time that a table saves for a report.
const ENTRIES_PER_REPORT: usize = 8;

/// The walks that are handed to the kernel at once.
const BATCH: usize = 16;

/// Adds to `counters` how many of the `reports` support each value, and gives the number of reports that are none.
pub(super) fn count(
    instructions: InstructionSet,
    hashing: Hashing,
    reports: &[u8],
    width: usize,
    counters: &mut [u64],
) -> u64 {
    let arcs = Arcs::new(hashing);
    if tabulation_pays(hashing, reports.len() / width, counters.len()) {
        return tabulate(&arcs, hashing.reports(), reports, width, counters);
    }
    let mut walks = [Walks::NONE; BATCH];
    let mut filled = 0;
    let rejected = for_each_number(reports, width, hashing.reports(), |number| {
        let Arc { a, begin, length } = arcs.arc(number);
        // A walk begins where v = 0 is on the circle, seen from the arc.
        let start = (hashing.prime() & mask(begin > 0)) - begin;
        let (walk, i) = (&mut walks[filled / WALKERS], filled % WALKERS);
        walk.starts[i] = (start as u32).to_le_bytes();
        walk.steps[i] = (a as u32).to_le_bytes();
        walk.lengths[i] = (length as u32).to_le_bytes();
        filled += 1;
        if filled == BATCH * WALKERS {
            add_supports(instructions, hashing.prime() as u32, &walks, counters);
            filled = 0;
        }
    });
    let last = &mut walks[..filled.div_ceil(WALKERS)];
    if let Some(walk) = last.last_mut() {
        walk.lengths[(filled - 1) % WALKERS + 1..].fill([0; 4]); // left over from the batch before
    }
    add_supports(instructions, hashing.prime() as u32, last, counters);
    rejected
}

/// About how many bytes of packed bits are counted in the time that one of these reports takes.
pub(super) fn effort(hashing: Hashing, reports: usize, k: usize) -> usize {
    if tabulation_pays(hashing, reports, k) { 32 } else { 256 + k }
}

/// Which values v a report supports: those for which a v mod P is among the `length` residues from `begin` on, going around.
struct Arc {
    a: u64,
    begin: u64,
    length: u64,
}

/// From reports to arcs.
struct Arcs {
    prime: Divisor,
    g: Divisor,
    /// The first residue of each hash, and P.
    firsts: Vec<u64>,
}

impl Arcs {
    fn new(hashing: Hashing) -> Self {
        let g = Divisor::new(hashing.mixture().k());
        let firsts = (0..=g.get()).map(|hash| hashing.first_residue(hash)).collect();
        Self { prime: hashing.prime, g, firsts }
    }

    fn arc(&self, number: u64) -> Arc {
        let (seed, hash) = self.g.divide(number);
        let (a, b) = self.prime.divide(seed);
        let (first, next) = (self.firsts[hash as usize], self.firsts[hash as usize + 1]);
        Arc { a, begin: first + (self.prime.get() & mask(first < b)) - b, length: next - first }
    }
}

/// Whether [`tabulate`] is faster than to walk through all values for every report, as it is for many reports on few values.
fn tabulation_pays(hashing: Hashing, reports: usize, k: usize) -> bool {
    let prime = hashing.prime() as usize;
    let fits = prime <= MAX_TABULATED_PRIME && i32::try_from(reports).is_ok();
    fits && prime * (prime + k) <= ENTRIES_PER_REPORT * reports
}

/// [`count`] in two steps, with a table that has P entries for every a. A report supports the values v for which a v mod P is
/// on an arc of the circle of residues: it adds 1 where the arc begins, and takes 1 away where it has ended. Afterwards running
/// sums along a circle say how many arcs each residue is on, and the values collect that from the P circles.
fn tabulate(arcs: &Arcs, most: u64, reports: &[u8], width: usize, counters: &mut [u64]) -> u64 {
    let prime = arcs.prime.get() as usize;
    let mut changes = vec![0i32; prime * prime];
    let mut add = |number: u64, times: i32| {
        let Arc { a, begin, length } = arcs.arc(number);
        let circle = &mut changes[a as usize * prime..][..prime];
        // No branches: they could not be predicted.
        let goes_around = begin + length >= prime as u64;
        let end = begin + length - (prime as u64 & mask(goes_around));
        circle[begin as usize] += times;
        circle[end as usize] -= times;
        circle[0] += times & mask(goes_around) as i32;
    };
    let rejected = if most * REPORTS_PER_NUMBER <= (reports.len() / width) as u64 {
        // Most reports occur more than once: each is looked at once.
        let mut times = vec![0; most as usize];
        let rejected = for_each_number(reports, width, most, |number| times[number as usize] += 1);
        (0..).zip(times).for_each(|(number, times)| add(number, times));
        rejected
    } else {
        for_each_number(reports, width, most, |number| add(number, 1))
    };
    for (a, circle) in changes.chunks_exact_mut(prime).enumerate() {
        let mut sum = 0;
        for entry in &mut *circle {
            sum += *entry;
            *entry = sum;
        }
        let mut residue = 0;
        for counter in &mut *counters {
            *counter += circle[residue] as u64;
            residue += a;
            residue -= if residue < prime { 0 } else { prime };
        }
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Protocol;
    use super::super::{LocalHashing, Randomizer};
    use super::*;

    fn hashing_of(protocol: &Protocol) -> Hashing {
        match protocol.randomizer() {
            Randomizer::Hashing(hashing) => hashing,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counting_is_what_is_defined() {
        for (k, g, n) in
            [(2, 2, 2500), (15, 4, 70), (15, 4, 2500), (13, 40, 2500), (100, 300, 2500), (1024, 4, 2500), (31, 2, 999)]
        {
            let local = LocalHashing::new(k, Some(g), 1.0).unwrap();
            let (hashing, width) = (hashing_of(local.protocol()), local.protocol().report_bytes());
            let numbers: Vec<u64> =
                (0..n).map(|i| (i * i * i * 77_777) % (hashing.reports() + 1).min(1 << (8 * width))).collect();
            let rows: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect();
            let supports = |v: u32, number: u64| {
                let (seed, hash) = (number / g, number % g);
                u64::from(hashing.hash(seed / hashing.prime(), seed % hashing.prime(), v)) == hash
            };
            for instructions in InstructionSet::available() {
                let mut counters = vec![0; k as usize];
                let rejected = count(instructions, hashing, &rows, width, &mut counters);
                let good: Vec<u64> = numbers.iter().copied().filter(|&number| number < hashing.reports()).collect();
                assert_eq!(rejected as usize, numbers.len() - good.len());
                for (v, &counter) in (0..).zip(&counters) {
                    let expected = good.iter().filter(|&&number| supports(v, number)).count();
                    assert_eq!(counter as usize, expected, "{k} {g} {v} {}", instructions.name());
                }
            }
        }
    }
}
