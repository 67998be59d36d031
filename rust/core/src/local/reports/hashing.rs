//! Reports that are a number made of a hash function and a randomised hash: the functions, and counting.
//!
//! # The hash functions
//!
//! v -> floor(g x / P) with x = (a v + b) mod P, where P is the smallest prime that is at least k and g, and a and b
//! are drawn uniformly from 0 to P - 1. All P^2 of them are used. So x for two different values is uniform over all
//! pairs of residues (Carter and Wegman 1979, "Universal classes of hash functions"), and the hashes of two values are
//! the same with a probability that is known exactly, the sum of (c / P)^2 over the classes of c residues each. No
//! other assumption on the hash functions is made, and estimates are unbiased for every k.
//!
//! A report is the number (a P + b) g + hash.
//!
//! # Counting
//!
//! A report (a, b, hash) supports v if the hash of v is that hash, that is, if (a v + b) mod P is among the residues
//! with it. These residues are an interval. In terms of a v mod P it is an arc of the circle of residues, whose
//! beginning depends on b. There are two ways to count: to walk through all values for every report; or, for many
//! reports on few values, to enter all arcs in a table first.

use dpnoise_kernels::arch::hashing::{WALKERS, Walks, add_supports};
use dpnoise_kernels::arith::divisor::Divisor;
use dpnoise_kernels::arith::mask;
use dpnoise_kernels::memory::{room, zeroed};
use rand_core::TryCryptoRng;

use super::Reports;
use super::numbers::{OUT_OF_RANGE, bits_below, for_each_number};
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::local::chance::mixture::{Mixture, index_bytes, uniform};
use crate::local::estimate::Support;
use crate::local::spec::Field;

/// The largest number of hashes.
pub(crate) const MAX_G: u64 = 1 << 16;

/// Reports fit 8 bytes, with room for sums.
const MAX_REPORT_BITS: u32 = 62;

/// The table of all arcs has the square of P entries; this many circles take 16 MiB.
const MAX_TABULATED_PRIME: usize = 1 << 11;

/// The average number of occurrences of a report from which it pays to count equal reports first.
const REPORTS_PER_NUMBER: u64 = 2;

/// How many entries of the table, or values on its circles, are processed in the time that a table saves for a report.
const ENTRIES_PER_REPORT: usize = 8;

/// The walks that are passed to the kernel at once.
const BATCH: usize = 16;

/// The hash functions, and the randomisation of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    k: u32,
    prime: Divisor,
    mixture: Mixture,
}

impl Hashing {
    /// The hash functions of `k` values, for hashes that the `mixture` randomises.
    pub(crate) fn new(k: u32, mixture: Mixture) -> Result<Self, Error> {
        let g = mixture.k();
        let prime = (k.max(g)..=u32::MAX).find(|&p| is_prime(p)).expect("there is a prime below twice every number");
        if u128::from(prime) * u128::from(prime) * u128::from(g) > 1 << MAX_REPORT_BITS {
            let allowed = "such that k**2 g is below 2**62";
            return Err(Error::parameter("k and g", format!("k = {k}, g = {g}"), allowed));
        }
        Ok(Self { k, prime: Divisor::new(prime), mixture })
    }

    /// The prime P.
    #[must_use]
    pub fn prime(self) -> u64 {
        self.prime.get()
    }

    /// The randomisation of a hash.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    /// The number of different reports.
    fn reports(self) -> u64 {
        self.prime() * self.prime() * u64::from(self.mixture.k())
    }

    /// The number of values.
    #[must_use]
    pub fn k(self) -> u32 {
        self.k
    }

    /// The parameters in a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        vec![("g", self.mixture.k().into()), ("prime", self.prime().into())]
    }

    /// About how many random bytes a seed takes.
    pub(crate) fn seed_bytes(self) -> usize {
        2 * index_bytes(self.prime() as u32)
    }

    /// The hash of a value, in a time that does not depend on it. Products are below 2^50; an overflow check would be a
    /// branch on a secret.
    #[must_use]
    #[inline(always)]
    pub fn hash(self, a: u64, b: u64, value: u32) -> u32 {
        let (_, x) = self.prime.divide(a.wrapping_mul(value.into()).wrapping_add(b));
        self.prime.divide(x.wrapping_mul(self.mixture.k().into())).0 as u32
    }

    /// Draws the seeds a P + b of hash functions: first all a, then all b.
    pub(crate) fn draw_seeds<R: TryCryptoRng + ?Sized>(self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        let prime = self.prime();
        let mut b = vec![0; seeds.len()];
        uniform(rng, prime as u32, seeds)?;
        uniform(rng, prime as u32, &mut b)?;
        seeds.iter_mut().zip(b).for_each(|(seed, b)| *seed = seed.wrapping_mul(prime).wrapping_add(b));
        Ok(())
    }

    /// The hash of a value by the function with this seed.
    #[inline(always)]
    pub(crate) fn hash_with(self, seed: u64, value: u32) -> u32 {
        let (a, b) = self.prime.divide(seed);
        self.hash(a, b, value)
    }

    /// The first residue with this hash.
    fn first_residue(self, hash: u64) -> u64 {
        (hash * self.prime()).div_ceil(u64::from(self.mixture.k()))
    }

    /// Of the P^2 hash functions, how many give two different values the same hash.
    pub(crate) fn collisions(self) -> u64 {
        let classes =
            (0..u64::from(self.mixture.k())).map(|hash| self.first_residue(hash + 1) - self.first_residue(hash));
        classes.map(|residues| residues * residues).sum()
    }

    /// The probabilities that a report supports its sender's value and any other. The sender's value is supported when
    /// the hash is kept, or replaced by itself. Another value is supported when the hash is kept and both values have
    /// it, or when the hash is replaced by that of the other value.
    ///
    /// Rounded to 52 binary digits.
    #[must_use]
    pub fn support(self) -> Support {
        let g = f64::from(self.mixture.k());
        let one = (1u64 << self.mixture.planes()) as f64;
        let keep = self.mixture.keep() as f64 / one;
        let replaced = ((1u64 << self.mixture.planes()) - self.mixture.keep()) as f64 / one / g;
        let same = self.collisions() as f64 / (self.prime() as f64 * self.prime() as f64);
        let digits = |probability: f64| (probability * (1u64 << 62) as f64) as u64;
        Support { p: digits(keep + replaced), q: digits(keep * same + replaced), one: 1 << 62 }
    }
}

pub(crate) fn is_prime(p: u32) -> bool {
    p > 1 && (2..=p.isqrt()).all(|d| !p.is_multiple_of(d))
}

/// The number of hashes with the smallest variance of a rare value's count, at most k: e^epsilon + 1, rounded.
pub(crate) fn optimal_g(k: u32, epsilon: f64) -> u64 {
    // The conversion saturates for numbers beyond the integers.
    (epsilon.exp().round() as u64).saturating_add(1).clamp(2, MAX_G.min(k.into()))
}

impl Reports for Hashing {
    fn bits(self) -> usize {
        bits_below(self.reports())
    }

    fn malformed(self) -> &'static str {
        OUT_OF_RANGE
    }

    fn counters(self) -> usize {
        self.k as usize
    }

    fn effort(self, reports: usize) -> usize {
        if tabulation_pays(self, reports, self.counters()) { 32 } else { 256 + self.counters() }
    }

    fn count(self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let mut counters = zeroed(self.counters())?;
        let rejected = count(instructions, self, rows, self.bits().div_ceil(8), &mut counters)?;
        Ok((counters, rejected))
    }
}

/// Adds to `counters` how many of the `reports` support each value, and returns the number of malformed ones.
fn count(
    instructions: InstructionSet,
    hashing: Hashing,
    reports: &[u8],
    width: usize,
    counters: &mut [u64],
) -> Result<u64, Error> {
    let arcs = Arcs::new(hashing)?;
    if tabulation_pays(hashing, reports.len() / width, counters.len()) {
        return tabulate(&arcs, hashing.reports(), reports, width, counters);
    }
    let mut walks = [Walks::NONE; BATCH];
    let mut filled = 0;
    let rejected = for_each_number(reports, width, hashing.reports(), |number| {
        let Arc { a, begin, length } = arcs.arc(number);
        // A walk begins at the place of v = 0 on the circle, relative to the beginning of the arc.
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
    Ok(rejected)
}

/// The values v that a report supports: those for which a v mod P is among the `length` residues from `begin` on,
/// cyclically.
struct Arc {
    a: u64,
    begin: u64,
    length: u64,
}

/// Converts reports to arcs.
struct Arcs {
    prime: Divisor,
    g: Divisor,
    /// The first residue of each hash, and P.
    firsts: Vec<u64>,
}

impl Arcs {
    fn new(hashing: Hashing) -> Result<Self, Error> {
        let g = hashing.mixture().k();
        let mut firsts = room(g as usize + 1)?;
        firsts.extend((0..=g).map(|hash| hashing.first_residue(hash.into())));
        Ok(Self { prime: hashing.prime, g: Divisor::new(g), firsts })
    }

    fn arc(&self, number: u64) -> Arc {
        let (seed, hash) = self.g.divide(number);
        let (a, b) = self.prime.divide(seed);
        let (first, next) = (self.firsts[hash as usize], self.firsts[hash as usize + 1]);
        Arc { a, begin: first + (self.prime.get() & mask(first < b)) - b, length: next - first }
    }
}

/// Whether [`tabulate`] is faster than walking through all values for every report, as it is for many reports on few
/// values.
fn tabulation_pays(hashing: Hashing, reports: usize, k: usize) -> bool {
    let prime = hashing.prime() as usize;
    let fits = prime <= MAX_TABULATED_PRIME && i32::try_from(reports).is_ok();
    fits && prime * (prime + k) <= ENTRIES_PER_REPORT * reports
}

/// [`count`] in two steps, with a table that has P entries for every a. A report supports the values v for which a v
/// mod P is on an arc of the circle of residues: it adds 1 where the arc begins, and subtracts 1 behind its end.
/// Running sums along each circle then give the number of arcs on each residue, and each value adds up its residues on
/// the P circles.
fn tabulate(arcs: &Arcs, most: u64, reports: &[u8], width: usize, counters: &mut [u64]) -> Result<u64, Error> {
    let prime = arcs.prime.get() as usize;
    let mut changes = zeroed::<i32>(prime * prime)?;
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
        // Most reports occur more than once: equal ones are processed once.
        let mut times = zeroed(most as usize)?;
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
    Ok(rejected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashing(k: u32, g: u32) -> Hashing {
        Hashing::new(k, Mixture::new(g, 1.0).unwrap()).unwrap()
    }

    #[test]
    fn counting_is_what_is_defined() {
        for (k, g, n) in
            [(2, 2, 2500), (15, 4, 70), (15, 4, 2500), (13, 40, 2500), (100, 300, 2500), (1024, 4, 2500), (31, 2, 999)]
        {
            let hashing = hashing(k, g);
            let (width, g) = (hashing.bits().div_ceil(8), u64::from(g));
            let numbers: Vec<u64> =
                (0..n).map(|i| (i * i * i * 77_777) % (hashing.reports() + 1).min(1 << (8 * width))).collect();
            let rows: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect();
            let supports = |v: u32, number: u64| {
                let (seed, hash) = (number / g, number % g);
                u64::from(hashing.hash(seed / hashing.prime(), seed % hashing.prime(), v)) == hash
            };
            for instructions in InstructionSet::available() {
                let (counters, rejected) = hashing.count(instructions, &rows).unwrap();
                let good: Vec<u64> = numbers.iter().copied().filter(|&number| number < hashing.reports()).collect();
                assert_eq!(rejected as usize, numbers.len() - good.len());
                for (v, &counter) in (0..).zip(&counters) {
                    let expected = good.iter().filter(|&&number| supports(v, number)).count();
                    assert_eq!(counter as usize, expected, "{k} {g} {v} {}", instructions.name());
                }
            }
        }
    }

    #[test]
    fn primes_are_primes() {
        let primes: Vec<u32> = (0..30).filter(|&p| is_prime(p)).collect();
        assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        assert!(is_prime(65_521) && !is_prime(65_521 * 3) && is_prime(16_777_259) && !is_prime(4093 * 4093));
    }

    /// All hash functions, all pairs of values: the shares are those of the support.
    #[test]
    fn two_values_have_the_same_hash_exactly_as_often_as_is_said() {
        for (k, g) in [(2, 2), (3, 2), (5, 4), (10, 4), (13, 7), (4, 9)] {
            let hashing = hashing(k, g);
            let prime = hashing.prime();
            let functions = || (0..prime).flat_map(|a| (0..prime).map(move |b| (a, b)));
            let mixture = hashing.mixture;
            let keep = mixture.keep() as f64 / (1u64 << mixture.planes()) as f64;
            for (v, w) in (0..k).flat_map(|v| (0..v).map(move |w| (v, w))) {
                let same = functions().filter(|&(a, b)| hashing.hash(a, b, v) == hashing.hash(a, b, w)).count();
                let same = same as f64 / (prime * prime) as f64;
                let support = hashing.support();
                let q = keep * same + (1.0 - keep) / g as f64;
                assert!((support.probability(support.q) - q).abs() < 1e-15, "{k} {g}: {v} {w}");
            }
            assert!(
                functions().all(|(a, b)| u64::from(hashing.hash(a, b, 1)) == (a + b) % prime * u64::from(g) / prime)
            );
        }
    }
}
