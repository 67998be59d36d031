#![doc = include_str!("quantiles.md")]

use core::ops::Range;

use dpnoise_kernels::arch::columns::{BLOCK, Missing};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;

use super::Quantile;
use super::column::Column;
use super::quantile::{MAX_DENOMINATOR, sort_vartime};
use super::real_values::ceil_log2_of_quotient;
use super::sum::{finest_exponent, magnitude};
use crate::error::Error;
use crate::params::{Ratio, Relation};
use crate::rng::{SecureRng, Wiped, fill_bytes};
use crate::samplers::Grid;

/// So many random bits below a step of the granularity tell apart rows of one value.
const FRACTION_BITS: u32 = 20;

/// The binary logarithm of how many places there are at most: all are exact as doubles, as are their distances.
const PLACES_BITS: u32 = 52;

/// The bytes of a random word, of which a row takes one.
const WORD: usize = size_of::<u32>();

/// The steps of a missing value, which no other value has.
const MISSING: i64 = i64::MIN;

/// Several quantiles of a column whose values are clamped to bounds, by the exponential mechanism.
///
/// ```
/// use dpnoise_core::{mechanisms::Quantiles, params::{Ratio, Relation}};
/// let quarters = [1, 2, 3].map(|part| Ratio::new(part, 4).unwrap());
/// let quantiles = Quantiles::new(&quarters, (0.0, 100.0), 1.0, Relation::AddRemove, None)?;
/// let ages = quantiles.release(&[23.0, 45.0, f64::NAN, 31.0, 67.0])?;
/// assert!(ages.len() == 3 && ages.is_sorted());
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Quantiles {
    /// The grid that values are rounded to, and its ends.
    column: Quantile,
    bits: u32,
    /// The choices in the order of their ranks: that in the middle is made first, and those before and after it are
    /// made of the rows on either side.
    nodes: Vec<Quantile>,
    /// The node that answers each rank, in the order in which they were asked.
    asked: Vec<usize>,
    rho: f64,
}

/// A rank between 0 and 1, as a fraction.
type Rank = (u128, u128);

impl Quantiles {
    /// The `q`-quantiles of values clamped to `bounds`, all of them for `epsilon` under the neighbouring relation
    /// `relation`. By default the granularity is 2^-32 of the distance of the bounds, or 2^-52 of the larger one if that
    /// is coarser.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no q, and as for [`Quantile::new`].
    pub fn new(
        q: &[Ratio],
        bounds: (f64, f64),
        epsilon: f64,
        relation: Relation,
        granularity: Option<f64>,
    ) -> Result<Self, Error> {
        let first = *q.first().ok_or_else(|| Error::parameter("q", "none", "one quantile or more"))?;
        let width = (PLACES_BITS - FRACTION_BITS) as i32;
        let exponent = finest_exponent(magnitude(bounds)?).max(ceil_log2_of_quotient(bounds.1 - bounds.0, 1.0) - width);
        let granularity = granularity.or_else(|| Grid::at_least(exponent).map(Grid::granularity));
        // These check the parameters as the caller gave them.
        let column = Quantile::new(first, bounds, epsilon, relation, granularity)?;
        for &other in &q[1..] {
            Quantile::new(other, bounds, epsilon, relation, granularity)?;
        }
        let rank = |q: &Ratio| (q.numerator(), q.denominator());
        let order = |a: &Rank, b: &Rank| (a.0 * b.1).cmp(&(b.0 * a.1));
        let mut ranks: Vec<Rank> = q.iter().map(rank).collect();
        ranks.sort_unstable_by(order);
        ranks.dedup();
        let asked = q.iter().map(|q| ranks.partition_point(|other| order(other, &rank(q)).is_lt())).collect();
        let steps = column.ends.0.abs_diff(column.ends.1);
        let room = PLACES_BITS.saturating_sub(u64::BITS - (steps - 1).leading_zeros());
        let bits = if ranks.len() == 1 { 0 } else { room.min(FRACTION_BITS) };
        // Who replaces a row removes one and adds another.
        let rows_of_a_change = match relation {
            Relation::AddRemove => 1.0,
            Relation::Substitute => 2.0,
        };
        let mut plan = Plan { column: &column, rows_of_a_change, nodes: Vec::with_capacity(ranks.len()) };
        let rho = plan.grow(&ranks, ((0, 1), (1, 1)), epsilon / rows_of_a_change).map_err(|_| {
            let shares = f64::from(height(ranks.len())) * rows_of_a_change;
            let allowed = format!("such that 1/{shares} of it is in the range of epsilon for a single quantile");
            Error::parameter("epsilon", format!("{epsilon:?}"), allowed)
        })?;
        let nodes = plan.nodes;
        Ok(Self { column, bits, nodes, asked, rho })
    }

    /// Epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.column.choice().epsilon()
    }

    /// The cost under zero-concentrated differential privacy, rounded up.
    #[must_use]
    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// The granularity: all releases are multiples of it.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.column.granularity()
    }

    /// A bound on the distance in rows of every release from its quantile, as [`Quantile::rank_error`] has it, with
    /// probability `level` or more for all of them together; in floating point.
    ///
    /// It counts one row at the place of each release: rows beside it, and a rank that is not exact as a fraction, are on
    /// top.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    pub fn rank_error(&self, level: f64) -> Result<f64, Error> {
        let count = (self.last().cast_unsigned() + 1).saturating_mul(self.nodes.len() as u64);
        let own: Result<Vec<f64>, Error> =
            self.nodes.iter().map(|node| Ok(node.choice().error(count, level)? / node.q.1 as f64)).collect();
        Ok(self.worst_error(&own?, 0..self.nodes.len(), (0.0, 0.0)))
    }

    /// The largest error of these nodes, given the errors of the ends between which they are.
    fn worst_error(&self, own: &[f64], nodes: Range<usize>, (low, high): (f64, f64)) -> f64 {
        let Some(middle) = middle_of(&nodes) else { return 0.0 };
        let q = self.nodes[middle].q.0 as f64 / self.nodes[middle].q.1 as f64;
        let error = own[middle] + (1.0 - q) * low + q * high;
        let end = error + 1.0;
        let before = self.worst_error(own, nodes.start..middle, (low, end));
        error.max(before).max(self.worst_error(own, middle + 1..nodes.end, (end, high)))
    }

    /// Releases the quantiles of `values`, a NaN being a missing value, which is left out, in the order in which they
    /// were asked. Each value is read once.
    ///
    /// The time depends on the values, because they are sorted.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Allocation`]; [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn release<'a>(&self, values: impl Into<Column<'a>>) -> Result<Vec<f64>, Error> {
        self.release_with(values, &mut SecureRng::new()?)
    }

    /// The same with randomness from `rng`.
    ///
    /// # Errors
    /// As for [`Quantiles::release`].
    pub fn release_with<'a, R: TryCryptoRng + ?Sized>(
        &self,
        values: impl Into<Column<'a>>,
        rng: &mut R,
    ) -> Result<Vec<f64>, Error> {
        let values = values.into();
        let places = self.places(values, rng)?;
        let present = &places[..values.len()];
        let present = &present[below(present, 0)..];
        let mut found = vec![0; self.nodes.len()];
        self.descend(0..self.nodes.len(), present, (0, self.last()), values.len(), rng, &mut found)?;
        let value = |&node: &usize| self.column.value((found[node] >> self.bits) + self.column.ends.0);
        Ok(self.asked.iter().map(value).collect())
    }

    /// The last place.
    fn last(&self) -> i64 {
        ((self.column.ends.1 - self.column.ends.0 + 1) << self.bits) - 1
    }

    /// The places of all rows in order: the steps of a row from the first end, and a fraction of its own, as one whole
    /// number. Those of missing values are negative. What follows is not used.
    fn places<R: TryCryptoRng + ?Sized>(&self, values: Column<'_>, rng: &mut R) -> Result<Wiped<i64>, Error> {
        let mut places = self.column.steps(values, &mut Missing::new((MISSING, MISSING), 0))?;
        let mut words = Wiped::new(WORD * BLOCK);
        for places in places[..values.len()].chunks_mut(BLOCK) {
            if self.bits > 0 {
                fill_bytes(rng, &mut words[..WORD * places.len()])?;
            }
            for (place, &word) in places.iter_mut().zip(words.as_chunks().0) {
                let fraction = u64::from(u32::from_le_bytes(word)) << self.bits >> u32::BITS;
                let is_missing = mask(*place == MISSING).cast_signed();
                let present = place.wrapping_sub(self.column.ends.0) << self.bits | fraction.cast_signed();
                *place = MISSING & is_missing | present & !is_missing;
            }
        }
        sort_vartime(&mut places[..values.len()]);
        Ok(places)
    }

    /// Finds the places of these nodes, given those of their rows in order, the ends between which they are, and the
    /// number of all rows.
    fn descend<R: TryCryptoRng + ?Sized>(
        &self,
        nodes: Range<usize>,
        rows: &[i64],
        (low, high): (i64, i64),
        all: usize,
        rng: &mut R,
        found: &mut [i64],
    ) -> Result<(), Error> {
        let Some(middle) = middle_of(&nodes) else { return Ok(()) };
        // Without room there is nothing to choose. That follows from what is released, as the ends do.
        let place = if low == high {
            low
        } else {
            declassify(Reason::Answer, self.nodes[middle].choose_in_order(rows, (low, high), all, rng)?)
        };
        found[middle] = place;
        let (before, after) = rows.split_at(below(rows, place));
        self.descend(nodes.start..middle, before, (low, place), all, rng, found)?;
        self.descend(middle + 1..nodes.end, after, (place, high), all, rng, found)
    }
}

/// How many of these places, which are in order, are below `place`.
fn below(places: &[i64], place: i64) -> usize {
    places.partition_point(|&other| declassify(Reason::Sorting, other) < place)
}

/// A tree of choices that is being made, from the first rank to the last.
struct Plan<'a> {
    column: &'a Quantile,
    rows_of_a_change: f64,
    nodes: Vec<Quantile>,
}

impl Plan<'_> {
    /// Makes the nodes of `ranks`, which are between two others, where so much of epsilon is left; returns the largest
    /// rho of a path through them, rounded up.
    fn grow(&mut self, ranks: &[Rank], (low, high): (Rank, Rank), left: f64) -> Result<f64, Error> {
        let Some(middle) = middle_of(&(0..ranks.len())) else { return Ok(0.0) };
        let share = left / f64::from(height(ranks.len()));
        let rest = left - share;
        // What the difference was rounded by is exact: Fast2Sum (Dekker 1971).
        let rest = if left - rest < share { rest.next_down() } else { rest };
        let rank = ranks[middle];
        let before = self.grow(&ranks[..middle], (low, rank), rest)?;
        let (ends, granularity) = (self.column.ends, self.column.granularity());
        let bounds = (self.column.value(ends.0), self.column.value(ends.1));
        let node = Quantile::new(within(low, high, rank), bounds, share, Relation::AddRemove, Some(granularity))?;
        self.nodes.push(node);
        let after = self.grow(&ranks[middle + 1..], (rank, high), rest)?;
        let change = self.rows_of_a_change * share;
        let rho = (change * change).next_up() / 8.0;
        Ok((rho.next_up().min(change) + before.max(after)).next_up())
    }
}

/// Where `rank` is between `low` and `high`, as a fraction that a quantile may have: exactly, or in millionths.
fn within(low: Rank, high: Rank, rank: Rank) -> Ratio {
    let difference = |a: Rank, b: Rank| a.0 * b.1 - b.0 * a.1;
    let (part, whole) = (difference(rank, low) * high.1, difference(high, low) * rank.1);
    let millionths = || (2 * part * MAX_DENOMINATOR + whole) / (2 * whole);
    Ratio::new(part, whole)
        .filter(|exact| exact.denominator() <= MAX_DENOMINATOR)
        .or_else(|| Ratio::new(millionths().clamp(1, MAX_DENOMINATOR - 1), MAX_DENOMINATOR))
        .expect("parts below 2^120")
}

/// The place of the middle one.
fn middle_of(nodes: &Range<usize>) -> Option<usize> {
    (!nodes.is_empty()).then(|| nodes.start.midpoint(nodes.end))
}

/// How many choices are on the longest path through a tree of so many.
fn height(nodes: usize) -> u32 {
    usize::BITS - nodes.leading_zeros()
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;

    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    fn ranks(parts: impl IntoIterator<Item = u128>, whole: u128) -> Vec<Ratio> {
        parts.into_iter().map(|part| Ratio::new(part, whole).unwrap()).collect()
    }

    fn quantiles(q: &[Ratio], bounds: (f64, f64), granularity: Option<f64>) -> Result<Quantiles, Error> {
        Quantiles::new(q, bounds, 40.0, Relation::AddRemove, granularity)
    }

    /// The largest sums of epsilons, and of eighths of their squares, over the paths from the first node down.
    fn worst_path(nodes: &[Quantile]) -> (BigRational, BigRational) {
        let exact = |x: f64| BigRational::from_float(x).unwrap();
        let Some(middle) = middle_of(&(0..nodes.len())) else { return (exact(0.0), exact(0.0)) };
        let share = exact(nodes[middle].choice().epsilon());
        let (before, after) = (worst_path(&nodes[..middle]), worst_path(&nodes[middle + 1..]));
        (&share + before.0.max(after.0), &share * &share / exact(8.0) + before.1.max(after.1))
    }

    #[test]
    fn no_path_exceeds_epsilon_and_hardly_anything_is_left() {
        let exact = |x: f64| BigRational::from_float(x).unwrap();
        for k in (1..=40).chain([99, 100, 127, 128, 300]) {
            let q = ranks(1..=k, k + 1);
            for epsilon in [0.1, 1.0, 1.0 / 3.0] {
                for (relation, changed) in [(Relation::AddRemove, 1.0), (Relation::Substitute, 2.0)] {
                    let quantiles = Quantiles::new(&q, (0.0, 1.0), epsilon, relation, None).unwrap();
                    let (sum, rho) = worst_path(&quantiles.nodes);
                    let (sum, rho) = (sum * exact(changed), rho * exact(changed * changed));
                    assert!(sum <= exact(epsilon) && sum > exact(epsilon * (1.0 - 1e-15)), "{k} {epsilon}");
                    let least = exact(quantiles.rho() * (1.0 - 1e-14));
                    assert!(rho <= exact(quantiles.rho()) && least < rho, "{k} {epsilon}");
                    assert_eq!((quantiles.epsilon(), quantiles.nodes.len() as u128), (epsilon, k));
                }
            }
        }
        let pure = Quantiles::new(&ranks([1], 2), (0.0, 1.0), 50.0, Relation::Substitute, None).unwrap();
        assert_eq!(pure.rho(), 50f64.next_up(), "epsilon, where that is less than epsilon^2 / 8");
    }

    #[test]
    fn relative_ranks_are_exact_or_rounded_to_millionths() {
        let relative = |low, high, rank| {
            let found = within(low, high, rank);
            (found.numerator(), found.denominator())
        };
        assert_eq!(relative((0, 1), (1, 1), (3, 7)), (3, 7));
        assert_eq!(relative((1, 10), (7, 10), (3, 10)), (1, 3));
        assert_eq!(relative((1, 3), (1, 1), (2, 3)), (1, 2));
        assert_eq!(relative((1, 7), (999_999, 1_000_000), (1, 2)), (416_667, 1_000_000)); // 2,500,000 / 5,999,993
        assert_eq!(relative((333_333, 1_000_000), (1, 1), (1, 3)), (1, 1_000_000)); // 5e-7
        assert_eq!(relative((0, 1), (1, 3), (333_333, 1_000_000)), (999_999, 1_000_000));
    }

    #[test]
    fn places_have_52_bits_and_fractions_up_to_20() {
        for (bounds, granularity, k, expected) in [
            ((0.0, 100.0), None, 3, (2f64.powi(-25), 20)),
            ((-100.0, 100.0), None, 3, (2f64.powi(-24), 20)),
            ((0.0, 128.0), None, 3, (2f64.powi(-25), 20)),
            ((0.0, 100.0), Some(2f64.powi(-30)), 3, (2f64.powi(-30), 15)),
            ((0.0, 100.0), Some(2f64.powi(-45)), 3, (2f64.powi(-45), 0)),
            ((0.0, 100.0), None, 1, (2f64.powi(-25), 0)),
            ((1e15, 1e15 + 2.0), None, 3, (0.25, 20)),
            ((-(2f64.powi(52)), 2f64.powi(52)), Some(1.0), 3, (1.0, 0)),
            ((0.3, 2.6), Some(1.0), 3, (1.0, 20)),
        ] {
            let quantiles = quantiles(&ranks(1..=k, 10), bounds, granularity).unwrap();
            assert_eq!((quantiles.granularity(), quantiles.bits), expected, "{bounds:?}");
            assert!(quantiles.last() <= 1 << 53);
        }
    }

    #[test]
    fn answers_are_as_asked_and_in_order_whatever_the_values_are() {
        let q = ranks([5, 1, 9, 5, 2], 10);
        let mut rng = SeededRng::new(3).unwrap();
        let ages: Vec<f64> = (0..3000).map(|i| f64::from(18 + i * 7919 % 60)).chain([f64::NAN; 40]).collect();
        for values in [&ages, &vec![], &vec![f64::NAN; 3], &vec![3.5; 1000], &vec![f64::INFINITY, f64::NEG_INFINITY]] {
            for (bounds, granularity) in [((-1.0, 3e9), None), ((0.3, 90.0), Some(1.0)), ((0.0, 2.0), Some(2.0))] {
                for epsilon in [1e-6, 1.0, 100.0] {
                    let quantiles = Quantiles::new(&q, bounds, epsilon, Relation::Substitute, granularity).unwrap();
                    let found = quantiles.release_with(&values[..], &mut rng).unwrap();
                    let is_candidate = |&x: &f64| bounds.0 <= x && x <= bounds.1 && x % quantiles.granularity() == 0.0;
                    assert!(found.iter().all(is_candidate));
                    assert!([1, 4, 0, 2].is_sorted_by_key(|&place: &usize| found[place]) && found[0] == found[3]);
                }
            }
        }
    }

    /// A value that most rows have is on both sides of a quantile, as its rows are; without fractions it is not.
    #[test]
    fn ties_do_no_harm_where_there_are_fractions() {
        let (q, mut rng) = (ranks(1..=9, 10), SeededRng::new(5).unwrap());
        let values: Vec<f64> = (0..10_000).map(|i| if i < 6000 { 1.0 } else { f64::from(i) }).collect();
        let are_near = |upper| {
            let quantiles = quantiles(&q, (0.0, upper), Some(1.0)).unwrap();
            let found = quantiles.release_with(&values, &mut rng).unwrap();
            found.iter().zip(1..).all(|(&x, tenth)| {
                let (target, below) = (1000 * tenth, values.partition_point(|&value| value < x));
                below < target + 50 && target < values.partition_point(|&value| value <= x) + 50
            })
        };
        assert_eq!([2f64.powi(14), 2f64.powi(52)].map(are_near), [true, false]);
    }

    #[test]
    fn a_node_without_room_draws_nothing_and_one_without_rows_does() {
        let quantiles = quantiles(&ranks([1, 2], 3), (0.0, 100.0), None).unwrap();
        let (mut rng, mut found) = (ScriptedRng::new([]), [0, 0]);
        quantiles.descend(0..2, &[], (7, 7), 5, &mut rng, &mut found).unwrap();
        assert_eq!(found, [7, 7]);
        assert!(quantiles.descend(0..2, &[], (7, 8), 5, &mut rng, &mut found).is_err());
    }

    #[test]
    fn the_rank_error_adds_up_those_of_a_path() {
        let level = 0.9;
        let of = |quantiles: &Quantiles| quantiles.rank_error(level).unwrap();
        let one = quantiles(&ranks([1], 4), (0.0, 100.0), Some(1.0)).unwrap();
        let single = Quantile::new(ranks([1], 4)[0], (0.0, 100.0), 40.0, Relation::AddRemove, Some(1.0)).unwrap();
        assert_eq!(of(&one), single.rank_error(level).unwrap());
        // The median, and a quarter whose upper end is off by as much and one row: half of each counts.
        let two = quantiles(&ranks([1, 2], 4), (0.0, 100.0), Some(1.0)).unwrap();
        let own = 2.0 * 0.5 / 20.0 * ((101.0 * 2f64.powi(20)) * 2.0 / 0.1).ln();
        assert!((of(&two) - (own + 0.5 * (own + 1.0))).abs() < 1e-9, "{}", of(&two));
        assert!(two.rank_error(1.0).unwrap_err().to_string().starts_with("level must be between 0 and 1"));
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |q: &[Ratio], bounds, granularity| quantiles(q, bounds, granularity).unwrap_err().to_string();
        let q = ranks([1, 2], 3);
        assert!(message(&[], (0.0, 1.0), None).starts_with("q must be one quantile or more"));
        assert!(message(&ranks([1, 3], 3), (0.0, 1.0), None).starts_with("q must be a fraction between 0 and 1"));
        assert!(message(&q, (1.0, 0.0), None).starts_with("bounds must be two finite numbers"));
        assert!(message(&q, (0.0, 1e300), None).starts_with("bounds must be such that the larger one is at most"));
        assert!(message(&q, (-1e308, 1e308), None).starts_with("bounds must be such that the larger one is at most"));
        assert!(message(&q, (0.0, 1.0), Some(2f64.powi(-60))).starts_with("granularity must be at least"));
        let of = |epsilon| Quantiles::new(&q, (0.0, 1.0), epsilon, Relation::Substitute, None);
        assert!(of(0.0).unwrap_err().to_string().starts_with("epsilon must be positive and finite, got 0.0"));
        // What is in range, but a quarter of it is not.
        let least = (0..1000).map(|power| 2f64.powi(-power)).take_while(|&epsilon| of(epsilon).is_ok()).last().unwrap();
        let shared = "epsilon must be such that 1/4 of it is in the range of epsilon for a single quantile, got ";
        assert_eq!(of(least / 2.0).unwrap_err().to_string(), format!("{shared}{:?}", least / 2.0));
        let random = quantiles(&q, (0.0, 1.0), None).unwrap().release_with(&[0.5], &mut ScriptedRng::new([]));
        assert!(matches!(random, Err(Error::Randomness(_))));
    }
}
