#![doc = include_str!("quantile.md")]

use core::f64::consts::LN_2;
use core::ops::Range;

use dpnoise_kernels::arch::columns::{self as kernel, Missing, WIDEST};
use dpnoise_kernels::arch::secrecy::{Reason, declassify, poison};
use dpnoise_kernels::arith::mask;
use rand_core::TryCryptoRng;

use super::column::Column;
use super::sum::{finest_exponent, magnitude};
use super::{Exponential, Selector};
use crate::error::Error;
use crate::params::{Ratio, Relation};
use crate::rng::{SecureRng, Wiped};
use crate::samplers::{Grid, Runs};

/// A quantile of a column whose values are clamped to bounds, by the exponential mechanism.
///
/// ```
/// use dpnoise_core::{mechanisms::Quantile, params::{Ratio, Relation}};
/// let half = Ratio::new(1, 2).unwrap();
/// let median = Quantile::new(half, (0.0, 100.0), 1.0, Relation::AddRemove, None)?;
/// let age = median.release(&[23.0, 45.0, f64::NAN, 31.0, 67.0])?;
/// assert!((0.0..=100.0).contains(&age));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Quantile {
    pub(super) q: (i64, i64),
    grid: Grid,
    /// The first and the last multiple of the granularity within the bounds, in steps.
    pub(super) ends: (i64, i64),
    choice: Exponential,
}

/// No column has so many rows.
const LARGEST_REACH: f64 = 1e15;

/// The largest denominator of a quantile. With it the scores of 2^33 rows are exact as doubles.
pub(super) const MAX_DENOMINATOR: u128 = 1_000_000;

impl Quantile {
    /// The `q`-quantile of values clamped to `bounds`, for `epsilon` under the neighbouring relation `relation`.
    /// By default the granularity is the finest allowed: the larger bound has at most 2^52 steps.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a q that is not below 1 or has a denominator above 10^6, an epsilon that is not positive
    /// and finite or out of range, bounds that are not finite and in order, and a granularity that is not a power of
    /// two, too fine, or has fewer than two multiples within the bounds.
    pub fn new(
        q: Ratio,
        bounds: (f64, f64),
        epsilon: f64,
        relation: Relation,
        granularity: Option<f64>,
    ) -> Result<Self, Error> {
        if q.numerator() >= q.denominator() || q.denominator() > MAX_DENOMINATOR {
            let allowed = "a fraction between 0 and 1, both excluded, with a denominator of at most 10**6";
            return Err(Error::parameter("q", format!("{}/{}", q.numerator(), q.denominator()), allowed));
        }
        let (part, whole) = (q.numerator() as i64, q.denominator() as i64);
        let magnitude = magnitude(bounds)?;
        let default = Grid::at_least(finest_exponent(magnitude)).ok_or_else(|| {
            let allowed = "such that the larger one is at most 2**952 in magnitude";
            Error::parameter("bounds", format!("{bounds:?}"), allowed)
        })?;
        let grid = granularity.map_or(Ok(default), Grid::new)?;
        let refused = |allowed| Err(Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed));
        if grid.granularity() < default.granularity() {
            return refused(format!("at least {:?} for these bounds", default.granularity()));
        }
        let ends = (ceil_steps(bounds.0, grid), -ceil_steps(-bounds.1, grid));
        if ends.0 >= ends.1 {
            return refused("so fine that two multiples of it are within the bounds".into());
        }
        let sensitivity = match relation {
            Relation::AddRemove => part.max(whole - part),
            Relation::Substitute => whole,
        };
        let choice = Exponential::new(epsilon, sensitivity as f64, false)?;
        Ok(Self { q: (part, whole), grid, ends, choice })
    }

    /// The exponential mechanism that chooses, on scores that are multiplied by the denominator of q.
    #[must_use]
    pub fn choice(&self) -> &Selector {
        &self.choice
    }

    /// The granularity: a release is a multiple of it.
    #[must_use]
    pub fn granularity(&self) -> f64 {
        self.grid.granularity()
    }

    /// A bound on the distance in rows of a release from the quantile, with probability `level` or more: where of n
    /// values L are below it and G above it, on the distance of q n from the interval [L, n - G]; in floating point.
    ///
    /// The values are those clamped to the bounds and rounded to the grid.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    pub fn rank_error(&self, level: f64) -> Result<f64, Error> {
        Ok(self.choice.error(self.ends.0.abs_diff(self.ends.1) + 1, level)? / self.q.1 as f64)
    }

    /// Releases the quantile of `values`, a NaN being a missing value, which is left out. Each value is read once.
    ///
    /// The time depends on the values, because they are sorted.
    ///
    /// # Errors
    /// [`Error::Randomness`]; [`Error::Allocation`]; [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn release<'a>(&self, values: impl Into<Column<'a>>) -> Result<f64, Error> {
        self.release_with(values, &mut SecureRng::new()?)
    }

    /// The same with randomness from `rng`.
    ///
    /// # Errors
    /// As for [`Quantile::release`].
    pub fn release_with<'a, R: TryCryptoRng + ?Sized>(
        &self,
        values: impl Into<Column<'a>>,
        rng: &mut R,
    ) -> Result<f64, Error> {
        let step = self.choose(&mut self.column(values.into())?, self.reach(), rng)?;
        Ok(declassify(Reason::Answer, step) as f64 * self.granularity())
    }

    /// The steps of all values, where missing ones are at the ends in the proportion in which the quantile divides the others.
    /// So its rank among all rows tells nothing of how many are missing: it is less by at most [`SLACK`].
    fn column(&self, values: Column<'_>) -> Result<Steps, Error> {
        let (part, whole) = self.q;
        let mut missing = Missing::new(self.ends, self.share());
        let padded = self.steps(values, &mut missing)?;
        let present = (values.len() as i64).wrapping_sub(missing.count);
        let target = part.wrapping_mul(present).wrapping_add(whole.wrapping_mul(missing.low));
        Ok(Steps { padded, rows: values.len(), target })
    }

    /// The quantile in units of 2^-62, rounded down.
    fn share(&self) -> u64 {
        (((self.q.0 as u128) << 62) / self.q.1 as u128) as u64
    }

    /// The steps of all values. What follows is not used.
    pub(super) fn steps(&self, values: Column<'_>, missing: &mut Missing) -> Result<Wiped<i64>, Error> {
        let bounds = (self.value(self.ends.0), self.value(self.ends.1));
        let range = kernel::Range::new(bounds, self.grid.exponent());
        let instructions = crate::instruction_set::current()?;
        let mut steps = Wiped::try_zeroed(values.len().saturating_add(WIDEST))?;
        values.for_each_block(0.0, |first, block| {
            kernel::steps(instructions, &range, missing, block, &mut steps[first..][..block.len()]);
        });
        Ok(steps)
    }

    /// So many gaps on either side of the quantile are looked at one by one: the candidates of all others, which weigh at
    /// most exp(-b reach / scale) each and are at most 2^53 + 1, together weigh less than 2^-64 of the one at the quantile.
    fn reach(&self) -> i64 {
        (117.0 * LN_2 * self.choice.scale() / self.q.1 as f64).ceil().min(LARGEST_REACH) as i64 + 1
    }

    /// Chooses a multiple of the granularity.
    fn choose<R: TryCryptoRng + ?Sized>(&self, column: &mut Steps, reach: i64, rng: &mut R) -> Result<i64, Error> {
        self.choose_from(&self.gaps(column, reach)?, column.values(), rng)
    }

    /// The same among values in order, between ends of their own. They are some of `all`; the time shows that number alone.
    pub(super) fn choose_in_order<R: TryCryptoRng + ?Sized>(
        &self,
        values: &[i64],
        ends: (i64, i64),
        all: usize,
        rng: &mut R,
    ) -> Result<i64, Error> {
        self.choose_from(&self.gaps_in_order(values, ends, all, self.reach())?, values, rng)
    }

    fn choose_from<R: TryCryptoRng + ?Sized>(&self, gaps: &Gaps, values: &[i64], rng: &mut R) -> Result<i64, Error> {
        loop {
            let (run, step) = gaps.choose(&self.choice, rng)?;
            // A candidate beyond the gaps that are sorted is proposed with too large a weight.
            if !declassify(Reason::Selection, gaps.is_coarse(run))
                || self.is_kept_vartime(gaps, values, run, step, rng)?
            {
                return Ok(step);
            }
        }
    }

    /// The gaps of values in order: `reach`, and a few more, on either side of the quantile, or as many as all values have.
    /// Where there is no value, there is an end.
    fn gaps_in_order(&self, values: &[i64], ends: (i64, i64), all: usize, reach: i64) -> Result<Gaps, Error> {
        let (part, whole) = self.q;
        let target = part.wrapping_mul(values.len() as i64);
        let is_window = is_window(all, reach);
        let margin = usize::from(is_window);
        // The quantile's rank, which is private, or less by at most two: a division would take a time that depends on it.
        let middle = ((values.len() as u128).wrapping_mul(self.share().into()) >> 62) as i64;
        let (first, count) = if is_window {
            (middle.wrapping_sub(reach + SLACK - 2), (2 * reach + SLACK) as usize + 2)
        } else {
            (0, all + 2)
        };
        let mut steps = Wiped::try_new(count + 2 * margin)?;
        let end = steps.len() - 1;
        (steps[0], steps[end]) = ends;
        for (step, index) in steps[margin..][..count].iter_mut().zip(first - 1..) {
            *step = if index < 0 { ends.0 } else { values.get(index as usize).copied().unwrap_or(ends.1) };
        }
        Ok(Gaps { steps, is_window, first: first - margin as i64, target, whole })
    }

    /// Sorts `reach` gaps, and a few more, on either side of the quantile. The gaps beyond them are one run on either side,
    /// with the score of the nearest.
    fn gaps(&self, column: &mut Steps, reach: i64) -> Result<Gaps, Error> {
        let ((part, whole), rows) = (self.q, column.rows as i64);
        let middle = (i128::from(part) * i128::from(rows) / i128::from(whole)) as i64;
        let is_window = is_window(column.rows, reach);
        let (first, last) =
            if is_window { ((middle - (reach + SLACK)).max(0), (middle + reach).min(rows)) } else { (0, rows) };
        let margin = usize::from(is_window);
        let count = (last - first) as usize + 2;
        let mut near = Wiped::try_new(count + 2 * margin)?;
        let end = near.len() - 1;
        (near[0], near[end]) = self.ends;
        // The gap of a number is between the value of that rank and the next one, or an end.
        (near[margin], near[margin + count - 1]) = self.ends;
        let (before, after) = (usize::from(first == 0), usize::from(last == rows));
        let ranks = (first as usize).saturating_sub(1)..(last as usize + 1).min(column.rows);
        let inner = margin + before..margin + count - after;
        in_order_vartime(column.values(), ranks, &mut near[inner])?;
        Ok(Gaps { steps: near, is_window, first: first - margin as i64, target: column.target, whole })
    }

    /// Whether a candidate of a coarse run is kept: with the quotient of its weight and that of its proposal. It is called
    /// with a probability below 2^-64.
    #[cold]
    fn is_kept_vartime<R: TryCryptoRng + ?Sized>(
        &self,
        gaps: &Gaps,
        values: &[i64],
        run: u64,
        step: i64,
        rng: &mut R,
    ) -> Result<bool, Error> {
        let proposed = gaps.score(run as i64);
        self.choice.selection().keeps(rng, self.choice.grid(), gaps.score_vartime(values, run, step), proposed)
    }

    /// The value of so many steps.
    pub(super) fn value(&self, steps: i64) -> f64 {
        steps as f64 * self.granularity()
    }
}

/// Runs of candidates of one score: values in order, and the gaps between neighbours.
struct Gaps {
    steps: Wiped<i64>,
    /// Whether the first and the last gap are all those beyond the others.
    is_window: bool,
    /// The number of values below the first gap.
    first: i64,
    /// The rank of the quantile times `whole`, the denominator.
    target: i64,
    whole: i64,
}

impl Gaps {
    /// Whether candidates of a run have scores of their own, which are not above that of the run.
    fn is_coarse(&self, run: u64) -> bool {
        let is_outer = mask(run == 0) | mask(run == self.steps.len() as u64 - 2);
        self.is_window & (is_outer != 0)
    }

    /// The score of a run, times the denominator.
    fn score(&self, run: i64) -> f64 {
        -(self.whole.wrapping_mul(self.first.wrapping_add(run)).wrapping_sub(self.target).wrapping_abs() as f64)
    }

    /// The score that a candidate of a coarse run has by itself, among all values in any order.
    fn score_vartime(&self, values: &[i64], run: u64, step: i64) -> f64 {
        let before = values.iter().filter(|&&value| value < step || run == 0 && value == step).count();
        self.score(before as i64 - self.first)
    }

    /// The runs, the last of which is the value at the quantile, and how many are on the left.
    fn runs(&self) -> Result<(Runs, u64), Error> {
        let gaps = self.steps.len() - 1;
        let mut runs = Runs::new(gaps + 1)?;
        let mut lefts = 0u64;
        for ((run, ends), gap) in self.steps.windows(2).enumerate().zip(self.first..) {
            lefts = lefts.wrapping_add(mask(self.whole.wrapping_mul(gap) <= self.target) & 1);
            runs.scores[run] = self.score(run as i64);
            runs.lengths[run] = ends[1].wrapping_sub(ends[0]);
        }
        runs.lengths[gaps] = 1;
        Ok((runs, lefts))
    }

    /// The candidate at a place of a run.
    fn candidate(&self, lefts: u64, run: u64, place: u64) -> i64 {
        let is_left = mask(run < lefts);
        let is_value = mask(run == self.steps.len() as u64 - 1);
        // A gap on the left begins with its lower end, one on the right follows upon it.
        let lower = lefts & is_value | run & !is_value;
        let offset = place.wrapping_add(!is_left & !is_value & 1);
        let numbered = self.steps.iter().zip(0..);
        let start = numbered.fold(0, |found, (step, i)| found | step & mask(i == lower).cast_signed());
        start.wrapping_add(offset.cast_signed())
    }

    /// Chooses a run, and a candidate of it.
    fn choose<R: TryCryptoRng + ?Sized>(&self, choice: &Selector, rng: &mut R) -> Result<(u64, i64), Error> {
        let (runs, lefts) = self.runs()?;
        let (run, place) = choice.selection().softmax_of_runs(rng, choice.grid(), runs)?;
        Ok((run, self.candidate(lefts, run, place)))
    }
}

/// The smallest whole number of steps that is at least `x`, for a public x of at most 2^52 steps.
fn ceil_steps(x: f64, grid: Grid) -> i64 {
    let steps = (x * grid.granularity().recip()).ceil() as i64; // exact but for an underflow
    if x > 0.0 { steps.max(1) } else { steps }
}

/// A column in steps, and the rank of the quantile among all rows, times its denominator.
struct Steps {
    /// What follows the rows is not used.
    padded: Wiped<i64>,
    rows: usize,
    target: i64,
}

impl Steps {
    fn values(&mut self) -> &mut [i64] {
        &mut self.padded[..self.rows]
    }
}

/// By how much the rank of the quantile among all rows may be less than its share of them: by two for each remainder of
/// [`Missing`].
const SLACK: i64 = 2 * WIDEST as i64;

/// Whether there are more gaps than those that are sorted.
fn is_window(rows: usize, reach: i64) -> bool {
    rows as i64 > 2 * reach + SLACK
}

/// Sorts all values, in a time that depends on them.
pub(super) fn sort_vartime(values: &mut [i64]) {
    for value in &mut *values {
        *value = declassify(Reason::Sorting, *value);
    }
    values.sort_unstable();
    poison(values);
}

/// So many values are sorted to find between which the wanted ones are.
const SAMPLE: usize = 1 << 13;

/// Writes the values of these ranks in order, in a time that depends on the values, which are reordered.
fn in_order_vartime(values: &mut [i64], ranks: Range<usize>, out: &mut [i64]) -> Result<(), Error> {
    for value in &mut *values {
        *value = declassify(Reason::Sorting, *value);
    }
    let mut found = near_vartime(values, &ranks)?;
    let (below, near) = match &mut found {
        Some((below, near, count)) => (*below, &mut near[..*count]),
        None => (0, &mut *values),
    };
    let (first, end) = (ranks.start - below, ranks.end - below);
    if end < near.len() {
        near.select_nth_unstable(end);
    }
    if first > 0 {
        near[..end].select_nth_unstable(first);
    }
    near[first..end].sort_unstable();
    out.copy_from_slice(&near[first..end]);
    poison(out);
    poison(values);
    Ok(())
}

/// The values near these ranks, in any order: how many are below them, and they themselves with their number; `None` where
/// there are few values, or a sample does not find them.
fn near_vartime(values: &[i64], ranks: &Range<usize>) -> Result<Option<(usize, Wiped<i64>, usize)>, Error> {
    let (stride, room) = (values.len() / SAMPLE, values.len() / 8);
    if stride < 16 {
        return Ok(None);
    }
    let mut sample = Wiped::try_new(SAMPLE)?;
    for (sampled, value) in sample.iter_mut().zip(values.iter().step_by(stride)) {
        *sampled = *value;
    }
    sample.sort_unstable();
    // More than five standard deviations of the rank in a sample.
    let margin = SAMPLE / 32;
    let low = (ranks.start / stride).checked_sub(margin).map_or(i64::MIN, |place| sample[place.min(SAMPLE - 1)]);
    let high = sample.get(ranks.end / stride + margin).map_or(i64::MAX, |&value| value);
    let mut near = Wiped::try_new(room + 1)?;
    let (mut below, mut count) = (0, 0);
    for &value in values {
        below += usize::from(value < low);
        near[count] = value; // written over unless it is counted
        count = (count + usize::from(low <= value && value <= high)).min(room);
    }
    let has_all = count < room && below <= ranks.start && ranks.end <= below + count;
    Ok(has_all.then_some((below, near, count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    fn quantile(q: (u128, u128), bounds: (f64, f64), granularity: Option<f64>) -> Result<Quantile, Error> {
        Quantile::new(Ratio::new(q.0, q.1).unwrap(), bounds, 40.0, Relation::AddRemove, granularity)
    }

    /// How far q n is from [L, n - G], in rows.
    fn distance(values: &[f64], q: f64, released: f64) -> f64 {
        let present: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let count = |keep: &dyn Fn(f64) -> bool| present.iter().filter(|&&value| keep(value)).count() as f64;
        let target = q * present.len() as f64;
        (count(&|value| value < released) - target).max(target - count(&|value| value <= released)).max(0.0)
    }

    #[test]
    fn releases_are_near_the_quantile_however_wide_the_bounds_are() {
        let mut rng = SeededRng::new(7).unwrap();
        let ages: Vec<f64> = (0..3000).map(|i| f64::from(18 + i * 7919 % 60)).chain([f64::NAN; 40]).collect();
        let ties: Vec<f64> = (0..1000).map(|i| if i % 10 < 6 { 1.0 } else { 2.0 }).collect();
        let offset: Vec<f64> = (0..500).map(|i| 1.8e9 + f64::from(i)).collect();
        for values in [&ages, &ties, &offset, &vec![], &vec![f64::NAN; 3], &vec![f64::INFINITY, f64::NEG_INFINITY]] {
            for upper in [3e9, 1e12, 1e15] {
                for (part, whole) in [(1, 2), (1, 10), (999_999, 1_000_000)] {
                    let quantile = quantile((part, whole), (-1.0, upper), None).unwrap();
                    let q = part as f64 / whole as f64;
                    let released = quantile.release_with(values, &mut rng).unwrap();
                    assert!((-1.0..=upper).contains(&released) && released % quantile.granularity() == 0.0);
                    let clamped: Vec<f64> = values.iter().map(|value| value.max(-1.0).min(upper)).collect();
                    let clamped: Vec<f64> =
                        clamped.into_iter().zip(values).filter(|(_, v)| !v.is_nan()).map(|(c, _)| c).collect();
                    assert!(distance(&clamped, q, released) <= quantile.rank_error(1.0 - 1e-13).unwrap());
                }
            }
        }
    }

    #[test]
    fn candidates_lie_within_the_bounds() {
        for (bounds, granularity, ends) in [
            ((0.0, 100.0), None, (0, 100 << 45)),
            ((0.3, 2.6), Some(1.0), (1, 2)),
            ((-2.6, -0.3), Some(0.5), (-5, -1)),
            ((5e-324, 1e280), Some(2f64.powi(900)), (1, (1e280 / 2f64.powi(900)) as i64)),
        ] {
            let quantile = quantile((1, 3), bounds, granularity).unwrap();
            assert_eq!(quantile.ends, ends, "{bounds:?}");
            quantile.release(&[1.0, f64::NAN, -1e308, 0.5]).unwrap();
        }
    }

    /// A column with ties, missing values and values at the bounds, which are 0 and 15.
    fn column() -> Vec<f64> {
        const NAN: f64 = f64::NAN;
        let values = [3.0, 9.0, 3.0, NAN, 0.0, 12.0, 7.0, 3.0, 11.0, NAN, 1.0, 5.0, 9.5, 15.0, 2.0, NAN, 8.0, 20.0];
        values.iter().chain(values.map(|x| x * 0.7 + 2.0).iter()).copied().collect()
    }

    /// The score of each candidate from 0 to 15 by its definition.
    fn scores(quantile: &Quantile, column: &[f64]) -> Vec<i64> {
        let (a, b) = quantile.q;
        let present = column.iter().filter(|x| !x.is_nan()).map(|x| (x.clamp(0.0, 15.0) + 0.5) as i64);
        let present: Vec<i64> = present.collect();
        let count = |is_counted: &dyn Fn(i64) -> bool| present.iter().filter(|&&x| is_counted(x)).count() as i64;
        let target = a * present.len() as i64;
        (0..=15).map(|c| -(b * count(&|x| x < c) - target).max(target - b * count(&|x| x <= c)).max(0)).collect()
    }

    /// Every candidate is proposed in one run, and the score with which it is proposed and kept is that of the definition,
    /// exactly: for ties, values at the bounds, missing values, and few gaps or all of them.
    #[test]
    fn the_law_is_the_same_however_few_gaps_are_sorted() {
        let ends = [0.0, 15.0, f64::NAN, 15.0, 0.0, f64::NAN, f64::NAN, 0.0].repeat(4);
        let (column, missing, ties) = (column(), [f64::NAN; 25], [4.0; 29]);
        for column in [&column, &column[..7], &column[5..33], &ends, &missing, &ties, &[]] {
            for (part, whole) in [(1, 2), (1, 10), (97, 100), (2, 3), (1, 1_000_000), (999_999, 1_000_000)] {
                let quantile = quantile((part, whole), (0.0, 15.0), Some(1.0)).unwrap();
                for reach in [1, 2, 4, 1000] {
                    let rows = column.len();
                    let mut of_none = Missing::new((-1, -1), 0);
                    let mut in_order = quantile.steps(Column::F64(column), &mut of_none).unwrap()[..rows].to_vec();
                    in_order.retain(|&step| step >= 0);
                    in_order.sort_unstable();
                    let mut steps = quantile.column(Column::F64(column)).unwrap();
                    let sorted = quantile.gaps(&mut steps, reach).unwrap();
                    let given = quantile.gaps_in_order(&in_order, (0, 15), rows, reach).unwrap();
                    let of_none = quantile.gaps_in_order(&[], (0, 15), rows, reach).unwrap();
                    assert_eq!(given.steps.len(), of_none.steps.len(), "the time tells nothing of how many there are");
                    for (gaps, values) in [(sorted, &*steps.values()), (given, &in_order)] {
                        assert_eq!(gaps.is_window, is_window(rows, reach));
                        let (runs, lefts) = gaps.runs().unwrap();
                        let mut found = [None; 16];
                        for (run, &length) in (0u64..).zip(&*runs.lengths) {
                            for place in 0..length.cast_unsigned() {
                                let candidate = gaps.candidate(lefts, run, place);
                                let mut score = runs.scores[run as usize];
                                if gaps.is_coarse(run) {
                                    let proposed = score;
                                    score = gaps.score_vartime(values, run, candidate);
                                    assert!(score <= proposed && proposed <= -(whole as f64 * reach as f64));
                                }
                                assert!(found[candidate as usize].replace(score as i64).is_none());
                            }
                        }
                        let expected: Vec<_> = scores(&quantile, column).into_iter().map(Some).collect();
                        assert_eq!(&found[..], expected, "{column:?} {part}/{whole} {reach}");
                    }
                }
            }
        }
    }

    /// What is released has that law, and not the law of the proposals.
    #[test]
    fn candidates_beyond_the_sorted_gaps_are_thinned() {
        let q = Ratio::new(1, 2).unwrap();
        let quantile = Quantile::new(q, (0.0, 15.0), 0.1, Relation::AddRemove, Some(1.0)).unwrap();
        let column = column().repeat(3);
        let steps = || quantile.column(Column::F64(&column)).unwrap();
        let (mut rng, mut counts) = (SeededRng::new(11).unwrap(), [0u32; 16]);
        for _ in 0..20_000 {
            let step = quantile.choose(&mut steps(), 1, &mut rng).unwrap();
            counts[step as usize] += 1;
        }
        let chi_square = |scores: &[f64]| {
            let weights: Vec<f64> = scores.iter().map(|score| (score / quantile.choice.scale()).exp()).collect();
            let unit = 20_000.0 / weights.iter().sum::<f64>();
            let off = |(&count, weight): (&u32, &f64)| (f64::from(count) - unit * weight).powi(2) / (unit * weight);
            counts.iter().zip(&weights).map(off).sum::<f64>()
        };
        let scores: Vec<f64> = scores(&quantile, &column).into_iter().map(|score| score as f64).collect();
        let gaps = quantile.gaps(&mut steps(), 1).unwrap();
        let lowest = gaps.score(0).min(gaps.score(gaps.steps.len() as i64 - 2));
        let unthinned: Vec<f64> = scores.iter().map(|score| score.max(lowest)).collect();
        let (found, planted) = (chi_square(&scores), chi_square(&unthinned));
        assert!(found < 73.0 && planted > 200.0, "{found} {planted}"); // 15 degrees of freedom: 1e-9
    }

    /// Whether a sample finds the values near the ranks or not.
    #[test]
    fn the_values_of_ranks_are_those_of_all_in_order() {
        let many = 1 << 18;
        let spread = |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).cast_signed();
        let columns: [(Vec<i64>, bool); 5] = [
            ((0..many).map(spread).collect(), true),
            ((0..many as i64).collect(), true),
            ((0..many).map(|i| spread(i) % 100).collect(), true),
            ((0..many).map(|i| if i % 5 < 3 { 7 } else { spread(i) }).collect(), false),
            ((0..many).map(|i| if i % (many / SAMPLE) == 0 { 0 } else { spread(i) }).collect(), false),
        ];
        for (values, is_found) in columns {
            let mut expected = values.clone();
            expected.sort_unstable();
            for ranks in [0..1, 0..200, many / 2..many / 2 + 200, many - 3..many] {
                let (mut given, mut found) = (values.clone(), vec![0; ranks.len()]);
                in_order_vartime(&mut given, ranks.clone(), &mut found).unwrap();
                assert_eq!(found, expected[ranks.clone()]);
                if ranks.start == many / 2 {
                    assert_eq!(near_vartime(&values, &ranks).unwrap().is_some(), is_found);
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |q, bounds, granularity| quantile(q, bounds, granularity).unwrap_err().to_string();
        assert!(message((1, 1), (0.0, 1.0), None).starts_with("q must be a fraction between 0 and 1, both excluded"));
        assert!(message((1, 1_000_001), (0.0, 1.0), None).ends_with("got 1/1000001"));
        assert!(
            message((1, 2), (1.0, 0.0), None).starts_with("bounds must be two finite numbers, the lower one first")
        );
        assert!(message((1, 2), (0.0, 1e300), None).starts_with("bounds must be such that the larger one is at most"));
        assert!(message((1, 2), (0.0, 1.0), Some(0.3)).starts_with("granularity must be a power of two"));
        assert!(message((1, 2), (0.0, 1.0), Some(4.0)).starts_with("granularity must be so fine that two multiples"));
        let fine = message((1, 2), (0.0, 1.0), Some(2f64.powi(-60)));
        assert_eq!(
            fine,
            format!("granularity must be at least {:?} for these bounds, got {:?}", 2f64.powi(-52), 2f64.powi(-60))
        );
        let median = quantile((1, 2), (0.0, 1.0), None).unwrap();
        assert!(median.rank_error(1.0).unwrap_err().to_string().starts_with("level must be between 0 and 1"));
        assert!(matches!(median.release_with(&[0.5], &mut ScriptedRng::new([])), Err(Error::Randomness(_))));
    }
}
