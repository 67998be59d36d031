//! Reports that are points of a projective space over a prime field, of which each value is supported by those on its
//! hyperplane: the numbering, the draw of such a point, and counting.
//!
//! # The numbering
//!
//! The space of dimension t over q elements has K = (q^t - 1) / (q - 1) points. Let off_j = (q^j - 1) / (q - 1). The
//! number r with off_j <= r < off_(j+1) stands for the t digits, in base q and lowest first, of r - off_j + q^j: its
//! highest nonzero digit is a 1, in place j. Values have these digits; reports have the same in the reverse order, so
//! that their *first* nonzero digit is a 1. A report supports a value if the sum of the products of their digits is 0
//! modulo q. So c = off_(t-1) reports support a value, and off_(t-2) of them another one, too.
//!
//! `docs/proofs/projective_geometry.md` proves what is said here and below.

use core::hint::black_box;

use dpnoise_kernels::arith::divisor::SmallDivisor;
use dpnoise_kernels::memory::{collected, zeroed};

use crate::error::Error;
use crate::local::chance::mixture::CHUNK;
use crate::rng::Wiped;

/// The most points: there is a counter for each.
pub(crate) const MAX_POINTS: u64 = 1 << 27;

/// A projective space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    prime: u32,
    dimension: u32,
}

impl Space {
    /// The smallest space over `prime` elements, a prime below 2^27, that has `k` points; `None` when it has more than
    /// 2^27.
    pub(crate) fn with_points(prime: u32, k: u32) -> Option<Self> {
        let mut space = Self { prime, dimension: 2 };
        while space.points() < u64::from(k) {
            space.dimension += 1;
        }
        (space.points() <= MAX_POINTS).then_some(space)
    }

    /// The number q of elements of the field.
    #[must_use]
    pub fn prime(self) -> u32 {
        self.prime
    }

    /// The number t of digits of a point.
    #[must_use]
    pub fn dimension(self) -> u32 {
        self.dimension
    }

    /// The number K of points.
    #[must_use]
    pub fn points(self) -> u64 {
        self.offset(self.dimension)
    }

    /// The number c of points on a hyperplane.
    #[must_use]
    pub fn points_of_hyperplane(self) -> u64 {
        self.offset(self.dimension - 1)
    }

    /// q^place.
    pub(crate) fn power(self, place: u32) -> u64 {
        u64::from(self.prime).pow(place)
    }

    /// The number of points whose highest nonzero digit is in a place below this one.
    pub(crate) fn offset(self, place: u32) -> u64 {
        (0..place).fold(0, |offset, _| u64::from(self.prime) * offset + 1)
    }
}

/// The points of hyperplanes, for up to [`CHUNK`] values at a time.
///
/// Time and addresses depend on the space alone: every place of digits is processed for every value, and masks select.
/// All numbers that are kept are below 2^28; an overflow check would be a branch on a secret.
pub(crate) struct Hyperplanes {
    prime: SmallDivisor,
    /// q^p for the places p of digits that a number below c has, from 0 to t - 2.
    powers: Vec<SmallDivisor>,
    scratch: [Wiped<u32>; 6],
}

impl Hyperplanes {
    /// For about `length` values.
    pub(crate) fn of(space: Space, length: usize) -> Self {
        Self {
            prime: SmallDivisor::new(space.prime),
            powers: (0..space.dimension - 1).map(|place| SmallDivisor::new(space.power(place) as u32)).collect(),
            scratch: core::array::from_fn(|_| Wiped::new(length.min(CHUNK))),
        }
    }

    /// Replaces each w of `numbers` by the report w of those that support a value: a bijection from the numbers below c.
    ///
    /// The t - 1 digits of w are those of the report but one, z. It is in the place s where the value, in the order of
    /// reports, has its highest digit, which is a 1: so exactly one z makes the sum of the products 0. Let the digits of
    /// w stand for the number W = H q^s + L, with L < q^s. Then those of the report stand for H q^(s+1) + z q^s + L.
    pub(crate) fn draw(&mut self, values: &[i64], numbers: &mut [u32]) {
        let (prime, q) = (self.prime, self.prime.get());
        let highest = self.powers.len() - 1;
        let top = self.powers[highest].get() * q;
        let [masks, digits, rest, low, missing, sums] =
            self.scratch.each_mut().map(|buffer| &mut buffer[..numbers.len()]);

        // With the highest digit in place j, W is w + q^j - off_j. Where that is 2 q^j or more, the highest digit is in a
        // higher place; one place more adds (q - 2) q^j.
        digits.iter_mut().zip(&*numbers).for_each(|(digits, &w)| *digits = w.wrapping_add(1));
        for &power in &self.powers[..highest] {
            let step = (q - 2) * power.get();
            let reached = set_masks(masks, digits.iter().map(|&digits| digits >= 2 * power.get()));
            digits.iter_mut().zip(reached).for_each(|(digits, &reached)| *digits = digits.wrapping_add(step & reached));
        }

        // A value that is not 0 is 1 + its lowest digit + q times the value with the other digits; 0 has the digit 1.
        // Modulo q, a prefix of W is its last digit. The sum of the products is below q W < 2 q^(t-1).
        rest.iter_mut().zip(values).for_each(|(rest, &value)| *rest = value as u32);
        low.copy_from_slice(digits);
        missing.fill(top);
        sums.fill(2 * top);
        for &power in self.powers.iter().rev() {
            let counts = set_masks(masks, rest.iter().map(|&rest| rest != 0));
            let people = rest.iter_mut().zip(counts).zip(&*digits).zip(&mut *low).zip(&mut *missing).zip(&mut *sums);
            for (((((rest, &counts), &digits), low), missing), sum) in people {
                let digit;
                (*rest, digit) = prime.divide(rest.wrapping_sub(1) & counts);
                let (prefix, suffix) = power.divide(digits);
                *sum = sum.wrapping_sub(digit.wrapping_mul(prefix));
                *low ^= (*low ^ suffix) & counts;
                *missing ^= (*missing ^ power.get()) & counts;
            }
        }

        // With h for the number of H, w = q^s h + off_s + L, and the report is q^(s+1) h + off_(s+1) + z q^s + L. For
        // H = 0 it is w.
        let longer = set_masks(masks, digits.iter().zip(&*low).map(|(digits, low)| digits != low));
        let people = numbers.iter_mut().zip(longer).zip(&*low).zip(&*missing).zip(&*sums);
        for ((((number, &longer), &low), &missing), &sum) in people {
            let (_, z) = prime.divide(sum);
            let report = q.wrapping_mul(*number).wrapping_add(1).wrapping_add(z.wrapping_mul(missing));
            let report = report.wrapping_sub((q - 1).wrapping_mul(low));
            *number ^= (*number ^ report) & longer;
        }
    }
}

/// Sets a mask of ones where a condition holds, and one of zeros elsewhere. `black_box` keeps the optimiser from turning
/// the masks back into branches.
fn set_masks(masks: &mut [u32], conditions: impl Iterator<Item = bool>) -> &[u32] {
    masks.iter_mut().zip(conditions).for_each(|(mask, holds)| *mask = u32::from(holds).wrapping_neg());
    black_box(masks)
}

/// The sums that are worked on at a time: they fit in a second-level cache, with as many others beside them.
const TILE: usize = 1 << 15;

/// For each of the values below `k`, the number of reports that support it, from the number of reports by number.
///
/// A value of block j has its highest nonzero digit, a 1, in place j; only the first j + 1 digits of reports matter.
/// Let the suffix b be the digits of a value from place l to place j. Let F(b, a, z) be the number of reports that begin
/// with the l digits a, and whose next digits, multiplied by those of b, sum to z modulo q. For b = 1, in place j,
/// these are the reports that begin with a and z. A suffix is extended by a digit e in front:
///
/// F(eb, a, z) = sum over the digits u of F(b, au, z - e u).
///
/// A suffix from place 0 is a value. Its a is empty, and F(b, a, 0) is its support.
///
/// Of a = 0...0 only z = 0 is needed: F(eb, 0...0, 0) = F(b, 0...0, 0) + F(b, 0...01, -e). Any other a is a point, with
/// the number that reports have: 0...01 is 0, and point i followed by the digit u is 1 + i q + u.
///
/// Suffixes are extended depth first, so that most sums are in cache when they are added.
///
/// # Errors
/// [`Error::Allocation`].
pub(crate) fn supports(space: Space, k: u32, counters: &[u64]) -> Result<Vec<u64>, Error> {
    let q = space.prime as usize;
    let mut supports = zeroed(k as usize)?;
    // Reports by their first j + 1 digits: those that begin with zeros, and the others.
    let (mut zeros, mut by_prefix) = (0, counters);
    let mut shortened: Vec<u64>;
    for j in (1..space.dimension).rev() {
        let (last_is_one, sums) = by_prefix.split_first().expect("there are at least j + 1 prefixes");
        let (first, next) = (space.offset(j) as usize, space.offset(j + 1).min(k.into()) as usize);
        if first < next {
            let supports = &mut supports[first..next];
            let suffixes = |l| supports.len().div_ceil(space.power(l) as usize).min(q);
            let mut scratch = zeroed((1..j).map(|l| suffixes(l) * q * space.offset(l) as usize).sum())?;
            count(q, space.power(j) as usize, zeros, sums, &mut scratch, supports);
        }
        zeros += last_is_one;
        shortened = collected(sums.chunks_exact(q).map(|extended| extended.iter().sum()))?;
        by_prefix = &shortened;
    }
    supports[0] = zeros;
    Ok(supports)
}

/// The supports of the values that end with a suffix b from place l on: of all q^l, which is `power`, or of the first.
///
/// `zeros` is F(b, 0...0, 0), and `sums` has a row of the q numbers F(b, a, z) for each other a. `scratch` has room for
/// the rows of the suffixes that b is extended to, for one length after the other.
fn count(q: usize, power: usize, zeros: u64, sums: &[u64], scratch: &mut [u64], supports: &mut [u64]) {
    let (last_is_one, rest) = sums.split_at(q);
    // For e from 0 on.
    let zeros = last_is_one[..1].iter().chain(last_is_one[1..].iter().rev()).map(|sum| zeros + sum);
    if rest.is_empty() {
        supports.iter_mut().zip(zeros).for_each(|(support, zeros)| *support = zeros);
        return;
    }
    let (power, size) = (power / q, rest.len() / q);
    let (extended, scratch) = scratch.split_at_mut(supports.len().div_ceil(power) * size);
    match q {
        2 => extend_unrolled::<2>(rest, extended),
        3 => extend_unrolled::<3>(rest, extended),
        5 => extend_unrolled::<5>(rest, extended),
        _ => extend(q, rest, extended),
    }
    for ((sums, supports), zeros) in extended.chunks_exact(size).zip(supports.chunks_mut(power)).zip(zeros) {
        count(q, power, zeros, sums, scratch, supports);
    }
}

/// The rows of eb for the first digits e, one after the other, from those of b but the first, which is that of 0...01.
///
/// Of a large prime's rows, as many as stay in cache are added for all e before the next ones.
fn extend(q: usize, sums: &[u64], extended: &mut [u64]) {
    let rows = TILE.div_ceil(q);
    extended.fill(0);
    for (a, by_last_digit) in sums.chunks_exact(q * q).enumerate() {
        for (first, tile) in (0..q).step_by(rows).zip(by_last_digit.chunks(rows * q)) {
            for (e, extended) in extended.chunks_exact_mut(sums.len() / q).enumerate() {
                let extended = &mut extended[a * q..][..q];
                for (u, row) in (first..).zip(tile.chunks_exact(q)) {
                    let shift = e * u % q;
                    let (start, end) = row.split_at(q - shift);
                    add(&mut extended[..shift], end);
                    add(&mut extended[shift..], start);
                }
            }
        }
    }
}

/// Adds numbers whose sums are below 2^64: checks for overflow would take longer than the additions.
fn add(sums: &mut [u64], numbers: &[u64]) {
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum = sum.wrapping_add(*number));
}

/// [`extend`] for a prime whose rows are too short for loops.
fn extend_unrolled<const Q: usize>(sums: &[u64], extended: &mut [u64]) {
    let mut extended = extended.chunks_exact_mut(sums.len() / Q);
    let mut extended: [&mut [[u64; Q]]; Q] =
        core::array::from_fn(|_| extended.next().unwrap_or_default().as_chunks_mut().0);
    for (a, by_last_digit) in sums.as_chunks::<Q>().0.as_chunks::<Q>().0.iter().enumerate() {
        for (e, extended) in extended.iter_mut().enumerate() {
            if let Some(row) = extended.get_mut(a) {
                let sum = |z| (0..Q).fold(0u64, |sum, u| sum.wrapping_add(by_last_digit[u][(z + (Q - e) * u) % Q]));
                *row = core::array::from_fn(sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digits of a value, lowest first.
    fn digits(space: Space, number: u64) -> Vec<u64> {
        let place = (0..space.dimension).rev().find(|&place| space.offset(place) <= number).unwrap();
        let all = number - space.offset(place) + space.power(place);
        (0..space.dimension).map(|place| all / space.power(place) % u64::from(space.prime)).collect()
    }

    fn is_supported(space: Space, value: u64, report: u64) -> bool {
        let products = digits(space, value).into_iter().zip(digits(space, report).into_iter().rev());
        products.map(|(v, r)| v * r).sum::<u64>().is_multiple_of(space.prime.into())
    }

    fn spaces() -> impl Iterator<Item = Space> {
        let all =
            [2, 3, 5, 7, 11].into_iter().flat_map(|prime| (2..10).map(move |dimension| Space { prime, dimension }));
        all.filter(|space| space.points() < 2000)
    }

    #[test]
    fn each_value_has_the_reports_on_its_hyperplane_once_each() {
        for space in spaces() {
            let c = space.points_of_hyperplane() as usize;
            let mut hyperplanes = Hyperplanes::of(space, c);
            for value in 0..space.points() {
                let mut reports: Vec<u32> = (0..c as u32).collect();
                hyperplanes.draw(&vec![value as i64; c], &mut reports);
                reports.sort_unstable();
                let expected: Vec<u32> =
                    (0..space.points() as u32).filter(|&report| is_supported(space, value, report.into())).collect();
                assert_eq!(reports, expected, "{space:?} {value}");
            }
        }
    }

    /// Nothing overflows in the largest spaces, near the numbers where there is one digit more.
    #[test]
    fn the_largest_spaces_have_reports_on_the_hyperplane() {
        let largest = [(134_217_689, 2), (11_579, 3), (509, 4), (19, 7), (3, 17), (2, 27)];
        for space in largest.map(|(prime, dimension)| Space { prime, dimension }) {
            assert!(space.points() <= MAX_POINTS);
            let near = |end: u64| {
                let starts = (1..=space.dimension).map(|place| space.offset(place)).filter(move |&start| start <= end);
                let near = starts.flat_map(|start| (start.saturating_sub(3)..start + 3).chain([start * 5 / 7]));
                near.filter(move |&number| number < end).collect::<std::collections::BTreeSet<_>>()
            };
            let drawn = near(space.points_of_hyperplane());
            let mut hyperplanes = Hyperplanes::of(space, CHUNK);
            for value in near(space.points()) {
                let mut reports: Vec<u32> = drawn.iter().map(|&w| w as u32).collect();
                hyperplanes.draw(&vec![value as i64; reports.len()], &mut reports);
                let on_hyperplane = |report: u64| report < space.points() && is_supported(space, value, report);
                assert!(reports.iter().all(|&report| on_hyperplane(report.into())), "{space:?} {value}");
                reports.sort_unstable();
                assert!(reports.is_sorted_by(|a, b| a < b), "{space:?} {value}");
            }
        }
    }

    fn some_counters(space: Space) -> Vec<u64> {
        (0..space.points()).map(|r| r * r * 77_777 % 1009).collect()
    }

    fn supports_by_definition(space: Space, value: u64, counters: &[u64]) -> u64 {
        (0..).zip(counters).filter(|&(report, _)| is_supported(space, value, report)).map(|(_, count)| count).sum()
    }

    #[test]
    fn counting_is_what_is_defined() {
        for space in spaces() {
            let (points, last_block) = (space.points(), space.points_of_hyperplane());
            let counters = some_counters(space);
            let expected: Vec<u64> = (0..points).map(|value| supports_by_definition(space, value, &counters)).collect();
            for k in [2, 3, last_block, last_block + 1, points / 2, points - 1, points] {
                assert_eq!(supports(space, k as u32, &counters).unwrap(), expected[..k as usize], "{space:?} {k}");
            }
        }
    }

    #[test]
    fn rows_of_a_large_prime_are_added_in_tiles() {
        let space = Space { prime: 211, dimension: 3 };
        assert!(TILE.div_ceil(211) < 211);
        let counters = some_counters(space);
        let k = 1 + 211 + 211 * 57 + 100; // ends within a suffix's values
        let supports = supports(space, k, &counters).unwrap();
        assert_eq!(supports.len(), k as usize);
        for value in [0, 1, 2, 211, 212, 213, 422, 423, 424, 635, 5000, 12_238, 12_239, k - 1] {
            let expected = supports_by_definition(space, value.into(), &counters);
            assert_eq!(supports[value as usize], expected, "{value}");
        }
    }
}
