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

/// For each of the values below `k`, the number of reports that support it, from the number of reports by number.
///
/// A value of block j has its highest nonzero digit, a 1, in place j; only the first j + 1 digits of reports matter. Let
/// F(b, a, z) be the number of reports whose digits begin with a, of length l, and whose products with the digits of the
/// value from place l on, which are b and that 1, have the sum z. It is made for all suffixes b and prefixes a at once,
/// from l = j, where b is empty, down to l = 0, where F(b, -, 0) is the support of the value b: each of the q digits e
/// that a suffix is extended by takes q additions for each prefix and sum.
///
/// Prefix 0 is zero, and prefix 1 + i has the digits of point i. So prefix a, extended by the digit u, is prefix 2 +
/// (a - 1) q + u, and prefix 0 can only be extended by 0, to 0, or by 1, to 1.
pub(crate) fn supports(space: Space, k: u32, counters: &[u64]) -> Vec<u64> {
    let q = space.prime as usize;
    let mut supports = vec![0; k as usize];
    let mut by_prefix: Vec<u64> = core::iter::once(0).chain(counters.iter().copied()).collect();
    for j in (0..space.dimension).rev() {
        let (first, next) = (space.offset(j) as usize, space.offset(j + 1).min(k.into()) as usize);
        if first < next {
            support_of_block(space, j, &by_prefix, &mut supports[first..next]);
        }
        by_prefix = shortened(q, &by_prefix);
    }
    supports
}

/// The numbers of reports by prefixes with one digit less.
fn shortened(q: usize, by_prefix: &[u64]) -> Vec<u64> {
    let zero = by_prefix[..2].iter().sum();
    core::iter::once(zero).chain(by_prefix[2..].chunks_exact(q).map(|extended| extended.iter().sum())).collect()
}

fn support_of_block(space: Space, j: u32, by_prefix: &[u64], supports: &mut [u64]) {
    let q = space.prime as usize;
    let mut by_sum = vec![0; q * (1 + space.offset(j) as usize)];
    by_sum[..2].copy_from_slice(&by_prefix[..2]);
    by_sum[q..].copy_from_slice(&by_prefix[2..]);
    for l in (0..j).rev() {
        let (parent_prefixes, prefixes) = (1 + space.offset(l + 1) as usize, 1 + space.offset(l) as usize);
        let suffixes = supports.len().div_ceil(space.power(l) as usize);
        let mut extended = vec![0; suffixes * prefixes * q];
        for (b, extended) in extended.chunks_exact_mut(prefixes * q).enumerate() {
            let (parent, e) = (b / q, b % q);
            let parent = &by_sum[parent * parent_prefixes * q..][..parent_prefixes * q];
            for (a, extended) in extended.chunks_exact_mut(q).enumerate() {
                let (first, digits) = if a == 0 { (0, 2) } else { (2 + (a - 1) * q, q) };
                for u in 0..digits {
                    let (row, shift) = (&parent[(first + u) * q..][..q], e * u % q);
                    for (z, sum) in extended.iter_mut().enumerate() {
                        *sum += row[if z < shift { z + q - shift } else { z - shift }];
                    }
                }
            }
        }
        by_sum = extended;
    }
    supports.iter_mut().zip(by_sum.chunks_exact(q)).for_each(|(support, by_sum)| *support = by_sum[0]);
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
            [2, 3, 5, 7, 11].into_iter().flat_map(|prime| (2..6).map(move |dimension| Space { prime, dimension }));
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

    #[test]
    fn counting_is_what_is_defined() {
        for space in spaces() {
            let points = space.points();
            let counters: Vec<u64> = (0..points).map(|r| r * r * 77_777 % 1009).collect();
            let mut expected = vec![0; points as usize];
            for (value, support) in (0..).zip(&mut expected) {
                let supporting = (0..points).filter(|&report| is_supported(space, value, report));
                *support = supporting.map(|report| counters[report as usize]).sum();
            }
            for k in [2, 3, points / 2, points - 1, points] {
                assert_eq!(supports(space, k as u32, &counters), expected[..k as usize], "{space:?} {k}");
            }
        }
    }
}
