#![doc = include_str!("selection.md")]

use dpnoise_kernels::arch::candidates::{self as kernel, COLUMNS, Row};
use dpnoise_kernels::arith::mask;
use dpnoise_kernels::memory::collected;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::candidates::{Candidates, Found, Place, fetch_bits};
use super::grid::Grid;
use super::peeling::Peeling;
use super::runs::{Runs, depth_of};
use super::uniform::uniform_below;
use super::weighing::{Outcome, Proposal, Share, Weighing, Workspace, attempts};
use crate::error::Error;
use crate::params::Scale;
use crate::rng::{Wiped, fill_bytes};

/// Chooses among candidates.
///
/// ```
/// use dpnoise_core::{params::Scale, rng::SecureRng, samplers::{Candidates, Grid, Selection}};
/// let candidates = Candidates::new(Grid::new(0.125)?, &[3.0, 4.5, 4.25])?;
/// let chosen = Selection::new(Scale::from_f64(10.0)?)?.softmax(&mut SecureRng::new()?, &candidates)?;
/// assert!(chosen < 3);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selection(Weighing);

impl Selection {
    /// The scale is in steps of the grid.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the scale is below 2^-10.
    pub fn new(scale: Scale) -> Result<Self, Error> {
        let refused = || {
            let value = format!("{:e}", scale.ratio().to_f64());
            Error::parameter("scale", value, "at least 2**-10 steps of the grid")
        };
        Weighing::new(scale).map(Self).ok_or_else(refused)
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.0.scale()
    }

    /// Chooses a candidate with probability proportional to exp(-depth / scale), and returns its index: the exponential
    /// mechanism (McSherry and Talwar 2007).
    ///
    /// With scores of sensitivity D, in steps of the grid, it is epsilon-differentially private for a scale of 2 D /
    /// epsilon, or of D / epsilon if between neighbours all scores rise or all fall.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails, [`Error::Allocation`].
    pub fn softmax<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, candidates: &Candidates<'_>) -> Result<u64, Error> {
        Ok(self.peel(rng, candidates, 1)?[0])
    }

    /// Chooses so many candidates one after the other, each by [`Selection::softmax`] from those that are left, and returns
    /// their indices.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails, [`Error::Allocation`].
    ///
    /// # Panics
    /// When there are fewer candidates.
    pub fn peel<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
        rounds: usize,
    ) -> Result<Vec<u64>, Error> {
        assert!(rounds <= candidates.count());
        let mut peeling = Peeling::new(&self.0, candidates)?;
        // The choices are secret until the last one is made.
        let mut chosen = Wiped::try_new(rounds)?;
        for round in 0..rounds {
            chosen[round] = peeling.choose(rng)?;
            if round + 1 < rounds {
                peeling.retire(chosen[round]);
            }
        }
        Ok(collected(chosen.iter().copied())?)
    }

    /// Chooses a candidate from runs of equal scores by the exponential mechanism, and returns the run and the place
    /// within it.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails, [`Error::Allocation`], and [`Error::Parameter`] when
    /// `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub(crate) fn softmax_of_runs<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        grid: Grid,
        runs: Runs,
    ) -> Result<(u64, u64), Error> {
        runs.choose(rng, grid, &self.0)
    }

    /// Draws a coin that shows heads with probability exp((score - above) / scale), for scores of [`Runs`] the first of
    /// which is not the larger one.
    ///
    /// # Errors
    /// As for [`Selection::softmax_of_runs`].
    pub(crate) fn keeps<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        grid: Grid,
        score: f64,
        above: f64,
    ) -> Result<bool, Error> {
        self.0.keeps(rng, depth_of(grid, score)?.wrapping_sub(depth_of(grid, above)?))
    }

    /// Chooses uniformly among the candidates whose coins show heads, which they do with probability exp(-depth /
    /// scale), and returns its index: permute-and-flip (McKenna and Sheldon 2020).
    ///
    /// It is epsilon-differentially private for the same scales as [`Selection::softmax`].
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails, [`Error::Allocation`].
    pub fn permute_and_flip<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        candidates: &Candidates<'_>,
    ) -> Result<u64, Error> {
        let mut work = Workspace::new(candidates.block());
        let mut words = Wiped::new(8 * candidates.block());
        let mut sums = Wiped::try_new(candidates.blocks().count())?;
        let mut coins = Wiped::try_new(candidates.count() / COLUMNS)?;
        let coins_of_blocks = coins.chunks_exact_mut(candidates.block() / COLUMNS);
        for ((scores, sums), coins) in candidates.blocks().zip(sums.iter_mut()).zip(coins_of_blocks) {
            work.weigh(&self.0, candidates, candidates.best(), scores);
            fill_bytes(rng, &mut words)?;
            kernel::flip(candidates.instructions(), &words, &mut work.weights, coins);
            *sums = kernel::sums(candidates.instructions(), &work.weights);
        }
        let heads = total(&sums);
        // Room for more attempts than are ever made, except with negligible probability: growing would leave a copy
        // behind.
        let mut taken = Zeroizing::new(Vec::with_capacity(8));
        let mut packed = Wiped::new(candidates.block() / COLUMNS);
        let mut outcome = Outcome::default();
        loop {
            for _ in 0..attempts(candidates.count()) {
                let left = heads.saturating_sub(taken.len() as u128);
                let place = Place::of(untaken(uniform_below(rng, left)?, &mut taken), &sums);
                candidates.fetch(place.block(), &mut work.scores);
                work.weigh_fetched(&self.0, candidates, candidates.best());
                fetch_bits(&coins, place.block(), &mut packed);
                for (coins, &bits) in work.weights.chunks_exact_mut(COLUMNS).zip(&*packed) {
                    for (column, coin) in coins.iter_mut().enumerate() {
                        *coin = i64::from(bits >> column & 1);
                    }
                }
                let Found { index, depth, exists } =
                    place.locate(candidates.instructions(), &work.weights, &work.depths);
                let proposal = Proposal { index, weighed: depth, depth, share: Share::WHOLE, exists };
                outcome.add(index, self.0.accepts(rng, candidates, &proposal)?);
            }
            if let Some(index) = outcome.settled() {
                return Ok(index);
            }
        }
    }
}

/// Takes the `rank`-th number that is not taken yet, and returns it. `taken` is sorted.
fn untaken(rank: u128, taken: &mut Vec<u128>) -> u128 {
    let number = taken.iter().fold(rank, |number, &other| number.wrapping_add(u128::from(number >= other)));
    let mut last = number;
    for other in taken.iter_mut() {
        let larger = u128::from(mask(*other > last));
        let swapped = (*other ^ last) & (larger << 64 | larger);
        (*other, last) = (*other ^ swapped, last ^ swapped);
    }
    taken.push(last);
    number
}

/// The sum of all weights.
fn total(sums: &[Row]) -> u128 {
    sums.as_flattened().iter().fold(0, |total, &sum| total.wrapping_add(sum.cast_unsigned().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    #[test]
    fn ranks_among_what_is_left_give_every_order_once() {
        let mut orders = std::collections::HashSet::new();
        for ranks in (0..5).flat_map(|a| (0..4).flat_map(move |b| (0..3).map(move |c| [a, b, c]))) {
            let mut taken = vec![];
            let order = ranks.map(|rank| untaken(rank, &mut taken));
            assert!(taken.is_sorted() && taken.iter().all(|&number| number < 5));
            assert!(orders.insert(order));
        }
        assert_eq!(orders.len(), 60);
        let mut taken = vec![0];
        assert_eq!(untaken(0, &mut taken), 1, "where one was all there is, the next is none");
    }

    /// However far apart they are, and also where a block is emptied.
    #[test]
    fn peeling_to_the_end_chooses_each_once() {
        let selection = Selection::new(Scale::from_f64(3.0).unwrap()).unwrap();
        let grid = Grid::new(1.0).unwrap();
        for count in [1u32, 2, 9, 40, 2050] {
            for apart in [0.0, 1.0, 1e3] {
                let scores: Vec<f64> = (0..count).map(|i| apart * f64::from(i * 37 % count)).collect();
                let candidates = Candidates::new(grid, &scores).unwrap();
                let mut chosen = selection.peel(&mut SeededRng::new(1).unwrap(), &candidates, count as usize).unwrap();
                let in_order = chosen.is_sorted_by_key(|&i| -scores[i as usize] as i64);
                assert!(if apart == 1e3 { in_order } else { count < 40 || !in_order || apart == 0.0 });
                chosen.sort_unstable();
                assert_eq!(chosen, (0..u64::from(count)).collect::<Vec<_>>());
            }
        }
    }

    /// Every best one, in whichever block, and no other: the others' coins show heads with a probability of exp(-10^6).
    #[test]
    fn permute_and_flip_takes_any_of_the_best_and_no_other() {
        let selection = Selection::new(Scale::from_f64(1.0).unwrap()).unwrap();
        for count in [1u64, 9, 2050, 5000] {
            let is_best = |i: u64| i % 1500 == 7 % count;
            let scores: Vec<f64> = (0..count).map(|i| if is_best(i) { 3.0 } else { 3.0 - 1e6 }).collect();
            let candidates = Candidates::new(Grid::new(1.0).unwrap(), &scores).unwrap();
            let choose = |seed| selection.permute_and_flip(&mut SeededRng::new(seed).unwrap(), &candidates).unwrap();
            let chosen: std::collections::BTreeSet<u64> = (0..40).map(choose).collect();
            assert!(chosen.into_iter().eq((0..count).filter(|&i| is_best(i))), "{count}");
        }
    }

    #[test]
    fn bad_input_is_named() {
        let grid = Grid::new(1.0).unwrap();
        assert_eq!(Candidates::new(grid, &[]).err(), Some(Error::data("scores", "must not be empty")));
        let refused = Candidates::new(grid, &[0.0, f64::NAN]).err();
        assert_eq!(refused, Some(Error::data("scores", "must be finite: no NaN and no infinity")));
        let message = Selection::new(Scale::from_f64(2f64.powi(-11)).unwrap()).unwrap_err().to_string();
        assert!(message.starts_with("scale must be at least 2**-10 steps of the grid, got 4.8"), "{message}");
        let selection = Selection::new(Scale::from_f64(1.0).unwrap()).unwrap();
        let candidates = Candidates::new(grid, &[0.0]).unwrap();
        assert!(matches!(selection.softmax(&mut ScriptedRng::new([]), &candidates), Err(Error::Randomness(_))));
        assert!(matches!(
            selection.permute_and_flip(&mut ScriptedRng::new([]), &candidates),
            Err(Error::Randomness(_))
        ));
    }
}
