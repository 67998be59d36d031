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

use dpnoise_kernels::arith::divisor::Divisor;

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

/// The points of hyperplanes. Time and addresses depend on the space alone: every place of digits is processed for every
/// value, and masks select. Sums and products are below 2^63; an overflow check would be a branch on a secret.
pub(crate) struct Hyperplanes {
    prime: Divisor,
    /// q^(t-1).
    top: Divisor,
    /// From 1 to t - 1.
    places: Vec<Place>,
}

/// Place i of digits.
struct Place {
    /// q^i.
    power: u64,
    /// off_i: numbers from this on have their highest nonzero digit in this place or in a higher one.
    offset: u64,
    /// A number's digits stand for q^j - off_j more than the number; this is that for j = i, minus that for j = i - 1.
    step: u64,
    /// q^(t-i) - q^(t-1-i).
    lowered: u64,
}

impl Hyperplanes {
    pub(crate) fn of(space: Space) -> Self {
        let t = space.dimension;
        let place = |i| Place {
            power: space.power(i),
            offset: space.offset(i),
            step: space.power(i - 1) * u64::from(space.prime - 2),
            lowered: space.power(t - i) - space.power(t - 1 - i),
        };
        let top = Divisor::new(space.power(t - 1) as u32);
        Self { prime: Divisor::new(space.prime), top, places: (1..t).map(place).collect() }
    }

    /// The report `w` of those that support `value`: a bijection from the numbers below c.
    ///
    /// The t - 1 digits of `w` are those of the report but one. The missing one is in the place where the value, in
    /// the order of reports, has its highest digit, which is a 1: so exactly one digit makes the sum of the products 0.
    #[inline(always)]
    pub(crate) fn report(&self, value: u32, w: u32) -> u32 {
        let (value, w) = (u64::from(value), u64::from(w));
        let (mut digits_of_value, mut digits_of_w) = (value.wrapping_add(1), w.wrapping_add(1));
        let mut missing = self.top.get(); // q^s, with s the place of the missing digit
        for place in &self.places {
            let reached = at_least(value, place.offset);
            digits_of_value = digits_of_value.wrapping_add(place.step & reached);
            digits_of_w = digits_of_w.wrapping_add(place.step & at_least(w, place.offset));
            missing = missing.wrapping_sub(place.lowered & reached);
        }
        // The digits of the value from the highest but one on, those of w from the lowest on. Products of digits count
        // where the value's are below its highest one.
        let q = self.prime.get();
        let (_, mut value) = self.top.divide(digits_of_value);
        let (mut w, mut power) = (digits_of_w, 1);
        let (mut digits_of_report, mut sum) = (0u64, 0u64);
        for place in &self.places {
            let (value_digit, w_digit);
            (value_digit, value) = self.top.divide(value.wrapping_mul(q));
            (w, w_digit) = self.prime.divide(w);
            let counts = at_least(power, missing);
            sum = sum.wrapping_add(value_digit.wrapping_mul(w_digit) & counts);
            let moved = power ^ (power ^ place.power) & counts;
            digits_of_report = digits_of_report.wrapping_add(w_digit.wrapping_mul(moved));
            power = place.power;
        }
        let (_, sum) = self.prime.divide(sum);
        let (_, digit) = self.prime.divide(q.wrapping_sub(sum));
        digits_of_report = digits_of_report.wrapping_add(digit.wrapping_mul(missing));
        let steps = self
            .places
            .iter()
            .fold(1u64, |steps, place| steps.wrapping_add(place.step & at_least(digits_of_report, place.power)));
        digits_of_report.wrapping_sub(steps) as u32
    }
}

/// All ones if x >= y, else zero, for numbers below 2^63.
#[inline(always)]
fn at_least(x: u64, y: u64) -> u64 {
    !((x.wrapping_sub(y).cast_signed() >> 63).cast_unsigned())
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
pub(crate) fn supports(space: Space, k: u32, counters: &[u64]) -> Vec<u64> {
    let q = space.prime as usize;
    let mut supports = vec![0; k as usize];
    // Reports by their first j + 1 digits: those that begin with zeros, and the others.
    let (mut zeros, mut by_prefix) = (0, counters);
    let mut shortened: Vec<u64>;
    for j in (1..space.dimension).rev() {
        let (last_is_one, sums) = by_prefix.split_first().expect("there are at least j + 1 prefixes");
        let (first, next) = (space.offset(j) as usize, space.offset(j + 1).min(k.into()) as usize);
        if first < next {
            let supports = &mut supports[first..next];
            let suffixes = |l| supports.len().div_ceil(space.power(l) as usize).min(q);
            let mut scratch = vec![0; (1..j).map(|l| suffixes(l) * q * space.offset(l) as usize).sum()];
            count(q, space.power(j) as usize, zeros, sums, &mut scratch, supports);
        }
        zeros += last_is_one;
        shortened = sums.chunks_exact(q).map(|extended| extended.iter().sum()).collect();
        by_prefix = &shortened;
    }
    supports[0] = zeros;
    supports
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
            let hyperplanes = Hyperplanes::of(space);
            for value in 0..space.points() {
                let mut reports: Vec<u64> = (0..space.points_of_hyperplane() as u32)
                    .map(|w| hyperplanes.report(value as u32, w).into())
                    .collect();
                reports.sort_unstable();
                let expected: Vec<u64> =
                    (0..space.points()).filter(|&report| is_supported(space, value, report)).collect();
                assert_eq!(reports, expected, "{space:?} {value}");
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
                assert_eq!(supports(space, k as u32, &counters), expected[..k as usize], "{space:?} {k}");
            }
        }
    }

    #[test]
    fn rows_of_a_large_prime_are_added_in_tiles() {
        let space = Space { prime: 211, dimension: 3 };
        assert!(TILE.div_ceil(211) < 211);
        let counters = some_counters(space);
        let k = 1 + 211 + 211 * 57 + 100; // ends within a suffix's values
        let supports = supports(space, k, &counters);
        assert_eq!(supports.len(), k as usize);
        for value in [0, 1, 2, 211, 212, 213, 422, 423, 424, 635, 5000, 12_238, 12_239, k - 1] {
            let expected = supports_by_definition(space, value.into(), &counters);
            assert_eq!(supports[value as usize], expected, "{value}");
        }
    }
}
