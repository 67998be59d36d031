//! The votes of random subsets: the counting half of A_samp (Smith and Thakurta 2013, "Differentially private feature
//! selection via stability arguments, and the robustness of the lasso"; Dwork and Roth 2014, "The algorithmic foundations
//! of differential privacy", Algorithm 14).
//! | module | content |
//! | --- | --- |
//! | [`subsets`] | random subsets, drawn without being stored |
//! | [`statistics`] | the vote of each subset |
//! The subsets do not depend on the data, and privacy holds for all subsets: it depends on the number of subsets that
//! contain a position, which is counted. So subsets are public, and their distribution matters only for utility. The
//! votes are secret.

pub mod statistics;
pub mod subsets;

pub use statistics::{ArgmaxColumnSum, Median, Mode, Statistic};
pub use subsets::Subsets;

use dpnoise_kernels::memory::collected;
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::rng::{SecureRng, Wiped};
use crate::threads::on_threads;

/// Draws subsets and counts their votes.
///
/// ```
/// use dpnoise_core::stability::bootstrap::{Bootstrap, Mode};
/// let mut votes = Bootstrap::new(&Mode::new(&[0, 1, 1, 1, 1, 1], 2)?, 0.4, 2)?;
/// votes.add_vartime(10_000)?;
/// let counts = votes.counts()?; // for 0, for 1, and for none if the subset is empty
/// assert!(counts[1] > counts[0] && counts.iter().sum::<u64>() == 10_000);
/// assert!(votes.most_appearances() < 5_000);
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct Bootstrap {
    voters: Vec<Voter>,
}

/// The state of one thread.
struct Voter {
    statistic: Box<dyn Statistic>,
    subsets: Subsets,
    counts: Wiped<u64>,
}

impl Bootstrap {
    /// Prepares for subsets that have each position with probability `q`, and for this many threads.
    ///
    /// # Errors
    /// As for [`Subsets::new`], and [`Error::Allocation`].
    ///
    /// # Panics
    /// When `threads` is zero.
    pub fn new(statistic: &dyn Statistic, q: f64, threads: usize) -> Result<Self, Error> {
        assert!(threads > 0);
        let voter = || {
            Ok(Voter {
                statistic: statistic.of_thread()?,
                subsets: Subsets::new(statistic.positions(), q)?,
                counts: Wiped::try_new(statistic.values() + 1)?,
            })
        };
        Ok(Self { voters: (0..threads).map(|_| voter()).collect::<Result<_, Error>>()? })
    }

    /// Draws `subsets` more, shared among the threads, each of which has its own freshly keyed generator.
    ///
    /// # Errors
    /// [`Error::Randomness`]; discard the votes then.
    pub fn add_vartime(&mut self, subsets: u64) -> Result<(), Error> {
        let threads = self.voters.len() as u64;
        let shares = (0..threads).map(|i| subsets / threads + u64::from(i < subsets % threads));
        let parts = self.voters.iter_mut().zip(shares).collect();
        let results = on_threads(parts, |(voter, share)| voter.vote_vartime(&mut SecureRng::new()?, share));
        results.into_iter().collect()
    }

    /// The same on one thread, with words from `rng`.
    ///
    /// # Errors
    /// [`Error::Randomness`]; discard the votes then.
    pub fn add_with_vartime<R: TryCryptoRng + ?Sized>(&mut self, subsets: u64, rng: &mut R) -> Result<(), Error> {
        self.voters[0].vote_vartime(rng, subsets)
    }

    /// The number of votes for each value; the last is that of empty subsets, which vote for none.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn counts(&self) -> Result<Vec<u64>, Error> {
        let values = self.voters[0].counts.len();
        Ok(collected((0..values).map(|value| self.voters.iter().map(|voter| voter.counts[value]).sum()))?)
    }

    /// The largest number of subsets that contain the same position.
    #[must_use]
    pub fn most_appearances(&self) -> u64 {
        let appearances = |position| self.voters.iter().map(move |voter| voter.subsets.appearances(position)).sum();
        (0..self.voters[0].statistic.positions()).map(appearances).max().unwrap_or(0)
    }
}

impl Voter {
    fn vote_vartime<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R, subsets: u64) -> Result<(), Error> {
        let Self { statistic, subsets: source, counts } = self;
        let none = counts.len() - 1;
        source.draw(rng, subsets, |subset| {
            let value = if subset.is_empty() { none } else { statistic.value_vartime(subset) };
            counts[value] += 1;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SeededRng;

    fn mode(threads: usize) -> Bootstrap {
        Bootstrap::new(&Mode::new(&[0, 1, 2, 2], 3).unwrap(), 0.3, threads).unwrap()
    }

    #[test]
    fn parts_make_the_whole() {
        let (mut whole, mut parts) = (mode(1), mode(1));
        let seeded = || SeededRng::new(5).unwrap();
        whole.add_with_vartime(10_000, &mut seeded()).unwrap();
        let rng = &mut seeded();
        for subsets in [1, 0, 2999, 7000] {
            parts.add_with_vartime(subsets, rng).unwrap();
        }
        assert_eq!(parts.counts().unwrap(), whole.counts().unwrap());
        assert_eq!(parts.most_appearances(), whole.most_appearances());
    }

    #[test]
    fn threads_share_the_subsets_and_merge_their_counts() {
        for threads in [1, 2, 3, 8] {
            let mut votes = mode(threads);
            for subsets in [0, 1, 2, 7, 99_990] {
                votes.add_vartime(subsets).unwrap();
            }
            let counts = votes.counts().unwrap();
            assert_eq!(counts.iter().sum::<u64>(), 100_000);
            // 0.7^4 of the subsets are empty; every position is in 0.3 of them. Both within 10 standard deviations.
            assert!(counts[3].abs_diff(24_010) < 1_400, "{counts:?}");
            assert!(votes.most_appearances().abs_diff(30_000) < 1_500);
        }
    }
}
