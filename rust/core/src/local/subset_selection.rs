//! Subset selection: omega of the k values, the sender's among them more often than by chance.
//!
//! A uniformly random set of omega values is drawn. With some probability it is made to have the sender's value: if it
//! does not yet, a uniformly random member is replaced by it. Given that it has the value, the set is uniform among those
//! that do, and given that it does not, among those that do not; so it is subset selection in the sense of Ye and Barg
//! 2018, "Optimal schemes for discrete distribution estimation under locally differential privacy", and of Wang, Huang,
//! Wang et al. 2016, "Mutual information optimally local private discrete distribution estimation". The choice
//! omega = k / (e^epsilon + 1), rounded, is nearly optimal for the squared error of all counts together.
//!
//! # Privacy
//!
//! With m = keep / 2^planes, a set has the sender's value with probability p = m + (1 - m) omega / k. A set is
//! p (k - omega) / ((1 - p) omega) = 1 + m k / ((1 - m) omega) times as likely for a sender whose value it has as for one
//! whose value it has not: C(k-1, omega-1) sets share p, and C(k-1, omega) share 1 - p.
//!
//! # Estimation
//!
//! A report supports its omega values. Another value than the sender's is in it with probability (omega - p) / (k - 1),
//! the same for all.
//!
//! # Constant time
//!
//! Value by value, i is taken into the set if one of k - i equally likely numbers is below the number of members still
//! missing (Fan, Muller and Rezucha 1962). All members and numbers are secret: whoever knew the first set, and sees
//! the report, would see what was replaced. So everything is done with masks, in two passes over all k values. Index
//! words are rejected as in `mixer`, and that says nothing about the others.
//!
//! A report has k bits, least significant first, omega of them set.

use rand_core::TryCryptoRng;

use super::accumulator::count_well_formed;
use super::client::{Randomise, check_below_k};
use super::estimate::Support;
use super::likelihood::LikelihoodRatio;
use super::mixture::Mixture;
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::rng::{Wiped, fill_bytes};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::mask;

/// The largest number of values: a client draws a random word for each.
pub const MAX_K: u32 = 1 << 16;

/// The bytes of an index word, and of a coin.
const INDEX_BYTES: usize = 4;
const COIN_BYTES: usize = 8;

/// About as many index words are drawn at once: few enough for the first-level cache.
const CHUNK_WORDS: usize = 1 << 12;

/// The size of the sets, and the probability keep / 2^planes with which they are made to have the sender's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subset {
    omega: u32,
    mixture: Mixture,
}

impl Subset {
    fn new(k: u32, omega: u32, epsilon: f64) -> Result<Self, Error> {
        Ok(Self { omega, mixture: Mixture::of_windows(k, omega, epsilon)? })
    }

    /// The number of values.
    #[must_use]
    pub fn k(self) -> u32 {
        self.mixture.k()
    }

    /// The number of members.
    #[must_use]
    pub fn omega(self) -> u32 {
        self.omega
    }

    /// The binary digits of the probability.
    #[must_use]
    pub fn planes(self) -> u32 {
        self.mixture.planes()
    }

    /// The numerator of the probability.
    #[must_use]
    pub fn keep(self) -> u64 {
        self.mixture.keep()
    }

    /// The largest likelihood ratio between two inputs.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        self.mixture.window_ratio(self.omega)
    }

    /// How often a report has its sender's value and any other; rounded to 52 binary digits.
    #[must_use]
    pub fn support(self) -> Support {
        let (k, omega, keep) = (u128::from(self.mixture.k()), u128::from(self.omega), u128::from(self.keep()));
        let all = k << self.planes();
        let p = keep * k + ((1 << self.planes()) - keep) * omega;
        let q = omega * all - p;
        let digits = |probability: f64| (probability * (1u64 << 62) as f64) as u64;
        Support { p: digits(p as f64 / all as f64), q: digits(q as f64 / (all * (k - 1)) as f64), one: 1 << 62 }
    }
}

/// Subset selection among k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubsetSelection {
    protocol: Protocol,
    subset: Subset,
}

impl SubsetSelection {
    /// Sets of `omega` of `k` values, or of the optimal number of them: k / (e^epsilon + 1), rounded, at least 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^16, 1 <= omega < k and 2^-20 <= epsilon <= 32, or when a denominator of 2^62
    /// does not achieve 0.999 of epsilon.
    pub fn new(k: u64, omega: Option<u64>, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        if k > MAX_K {
            return Err(Error::parameter("k", k, format!("an integer from 2 to {MAX_K} for subset selection")));
        }
        let omega = match omega {
            None => (f64::from(k) / (epsilon.exp() + 1.0)).round_ties_even().clamp(1.0, f64::from(k - 1)) as u32,
            Some(omega) if (1..u64::from(k)).contains(&omega) => omega as u32,
            Some(omega) => {
                return Err(Error::parameter("omega", omega, format!("an integer from 1 to k - 1 = {}", k - 1)));
            }
        };
        let subset = Subset::new(k, omega, epsilon)?;
        let protocol = Protocol::new(Family::SubsetSelection, k, Randomizer::Subset(subset), epsilon);
        Ok(Self { protocol, subset })
    }

    /// The subset selection that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::Subset(subset) => Some(Self { protocol, subset }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The people whose randomness is drawn at once.
    fn chunk(&self) -> usize {
        (CHUNK_WORDS / (self.subset.k() as usize + 1)).max(1)
    }

    /// The numbers that index words are made into: below k, k - 1, ..., 1 for the members, and below omega for which
    /// member is replaced.
    fn ranges(&self) -> Vec<u32> {
        (1..=self.subset.k()).rev().chain([self.subset.omega]).collect()
    }
}

impl Randomise for SubsetSelection {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below_k(self.subset.k(), values)
    }

    fn unit(&self) -> usize {
        self.chunk() * self.protocol.report_bytes()
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        let each = INDEX_BYTES * (self.subset.k() as usize + 1) + COIN_BYTES;
        (bytes / self.protocol.report_bytes()).saturating_mul(each)
    }

    /// For a chunk of max(1, floor(4096 / (k + 1))) people, `rng` gives the k + 1 index words of each, then their coins,
    /// then what rejected index words are replaced with. Index words have 32 bits; coins have 64, of which the upper
    /// `planes` count.
    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let width = self.protocol.report_bytes();
        let values = &values[first / width..][..out.len() / width];
        let ranges = self.ranges();
        let rejected_below: Vec<u32> = ranges.iter().map(|&range| rejected_below(range)).collect();
        let chunk = self.chunk().min(values.len().max(1));
        let mut random = Wiped::new(chunk * (INDEX_BYTES * ranges.len() + COIN_BYTES));
        let mut members = Wiped::new(ranges.len() - 1);
        for (values, out) in values.chunks(chunk).zip(out.chunks_mut(chunk * width)) {
            let random = &mut random[..values.len() * (INDEX_BYTES * ranges.len() + COIN_BYTES)];
            fill_bytes(rng, random)?;
            let (words, coins) = random.split_at_mut(values.len() * INDEX_BYTES * ranges.len());
            let (words, coins) = (words.as_chunks_mut().0, coins.as_chunks().0);
            for words in words.chunks_mut(ranges.len()) {
                replace_rejected(rng, words, &ranges, &rejected_below)?;
            }
            let rows = out.chunks_mut(width).zip(words.chunks(ranges.len()));
            for (((row, words), coin), &value) in rows.zip(coins).zip(values) {
                let numbers = words.iter().zip(&ranges).map(|(&word, &range)| number(word, range));
                let force = u64::from_le_bytes(*coin) >> (64 - self.subset.planes()) < self.subset.keep();
                select(self.subset.omega, value as u32, force, numbers, &mut members);
                pack(&members, row);
            }
        }
        Ok(())
    }
}

/// Draws sets of as many of k values, all equally likely, in constant time.
pub(super) struct SetDrawer {
    size: u32,
    ranges: Vec<u32>,
    rejected_below: Vec<u32>,
    words: Wiped<[u8; INDEX_BYTES]>,
    members: Wiped<u8>,
}

impl SetDrawer {
    pub(super) fn new(k: u32, size: u32) -> Self {
        let ranges: Vec<u32> = (1..=k).rev().collect();
        let rejected_below = ranges.iter().map(|&range| rejected_below(range)).collect();
        let (words, members) = (Wiped::new(ranges.len()), Wiped::new(ranges.len()));
        Self { size, ranges, rejected_below, words, members }
    }

    /// Writes a set to `set`, a bit for each value, least significant first: `rng` gives k index words, and then what
    /// rejected ones are replaced with.
    pub(super) fn draw<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, set: &mut [u8]) -> Result<(), Error> {
        fill_bytes(rng, self.words.as_flattened_mut())?;
        replace_rejected(rng, &mut self.words, &self.ranges, &self.rejected_below)?;
        let numbers = self.words.iter().zip(&self.ranges).map(|(&word, &range)| number(word, range));
        select(self.size, 0, false, numbers, &mut self.members);
        pack(&self.members, set);
        Ok(())
    }
}

/// The number below `range` that an index word stands for.
fn number(word: [u8; INDEX_BYTES], range: u32) -> u32 {
    ((u64::from(u32::from_le_bytes(word)) * u64::from(range)) >> 32) as u32
}

/// Below which remainder an index word is rejected.
fn rejected_below(range: u32) -> u32 {
    range.wrapping_neg() % range
}

/// Packs members, 1 each, as bits, least significant first.
fn pack(members: &[u8], row: &mut [u8]) {
    for (byte, members) in row.iter_mut().zip(members.chunks(8)) {
        *byte = members.iter().rev().fold(0, |byte, member| byte << 1 | member);
    }
}

/// Replaces the words that would make some numbers more likely than others (Lemire 2019).
fn replace_rejected<R>(rng: &mut R, words: &mut [[u8; 4]], ranges: &[u32], rejected_below: &[u32]) -> Result<(), Error>
where
    R: TryCryptoRng + ?Sized,
{
    let is_rejected = |word: [u8; 4], range: u32, below: u32| u32::from_le_bytes(word).wrapping_mul(range) < below;
    let bounds = || ranges.iter().zip(rejected_below);
    let any =
        words.iter().zip(bounds()).fold(false, |any, (&word, (&range, &below))| any | is_rejected(word, range, below));
    if declassify(Reason::Rejection, any) {
        for (word, (&range, &below)) in words.iter_mut().zip(bounds()) {
            while declassify(Reason::Rejection, is_rejected(*word, range, below)) {
                fill_bytes(rng, word)?;
            }
        }
    }
    Ok(())
}

/// Sets `members[i]` to 1 for the omega values i of the set, and to 0 for the others.
fn select(omega: u32, value: u32, force: bool, mut numbers: impl Iterator<Item = u32>, members: &mut [u8]) {
    // All numbers are below 2^31, so differences tell by their sign which one is smaller.
    let is_less = |a: u32, b: u32| a.wrapping_sub(b) >> 31;
    let is_same = |a: u32, b: u32| (a ^ b).wrapping_sub(1) >> 31;
    let (mut missing, mut has_value) = (omega, 0);
    for ((i, member), number) in (0..).zip(&mut *members).zip(&mut numbers) {
        let taken = is_less(number, missing);
        missing = missing.wrapping_sub(taken);
        has_value |= taken & is_same(i, value);
        *member = taken as u8;
    }
    let replace = mask(force) as u32 & 1 & (has_value ^ 1);
    let victim = numbers.next().unwrap_or_default();
    let mut before = 0;
    for (i, member) in (0..).zip(members) {
        let taken = u32::from(*member);
        let dropped = taken & is_same(before, victim) & replace;
        before = before.wrapping_add(taken);
        *member = ((taken ^ dropped) | (is_same(i, value) & replace)) as u8;
    }
}

/// Adds to `counters` how many of the `reports` have each value, and gives the number of those that are no set of omega.
pub(super) fn count(
    instructions: InstructionSet,
    subset: Subset,
    reports: &[u8],
    width: usize,
    counters: &mut Vec<u64>,
) -> u64 {
    let unused = u8::MAX.checked_shl(subset.k() - 8 * (width as u32 - 1)).unwrap_or(0);
    let is_malformed = |row: &[u8]| {
        row[width - 1] & unused != 0 || row.iter().map(|byte| byte.count_ones()).sum::<u32>() != subset.omega
    };
    counters.resize(8 * width, 0);
    let rejected = count_well_formed(instructions, reports, width, counters, is_malformed);
    counters.truncate(subset.k() as usize);
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence of numbers once, every value, both coins: the set is uniform among those with or without the value.
    #[test]
    fn sets_are_as_likely_as_announced() {
        for (k, omega) in [(2, 1), (4, 1), (4, 2), (5, 2), (5, 4), (6, 3)] {
            let selection = SubsetSelection::new(k, Some(omega), 1.0).unwrap();
            let ranges = selection.ranges();
            let sequences: u32 = ranges.iter().product();
            let set = |mut sequence: u32, value: u32, force: bool| {
                let numbers = ranges.iter().map(|range| {
                    let number = sequence % range;
                    sequence /= range;
                    number
                });
                let mut members = vec![0; k as usize];
                select(omega as u32, value, force, numbers, &mut members);
                assert_eq!(members.iter().map(|&member| u64::from(member)).sum::<u64>(), omega);
                members.iter().rev().fold(0, |set, &member| set << 1 | usize::from(member))
            };
            let choose = |n: u64, m: u64| (1..=m).fold(1, |product, i| product * (n - m + i) / i);
            for value in 0..k as u32 {
                for (force, sets) in [(false, choose(k, omega)), (true, choose(k - 1, omega - 1))] {
                    let mut counts = vec![0; 1 << k];
                    (0..sequences).for_each(|sequence| counts[set(sequence, value, force)] += 1);
                    let possible: Vec<u32> = counts.iter().copied().filter(|&count| count > 0).collect();
                    assert_eq!(possible, vec![sequences / sets as u32; sets as usize], "{k} {omega} {value} {force}");
                    assert!(
                        !force || counts.iter().enumerate().all(|(set, &count)| count == 0 || set >> value & 1 == 1)
                    );
                }
            }
        }
    }
}
