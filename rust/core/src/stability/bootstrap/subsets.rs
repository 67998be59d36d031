//! Random subsets of positions.

use dpnoise_kernels::memory::{room, zeroed};
use rand_core::TryCryptoRng;

use crate::error::Error;
use crate::params::{Delta, Scale};
use crate::samplers::{Geometric, Sampler};

/// The number of skips to draw at a time: they fit into the first-level cache.
const SKIPS: usize = 2048;

/// A stream of random subsets of the positions 0 to n - 1: each subset contains each position independently with
/// probability q. It counts the subsets that contain each position.
/// The time is proportional to the number of positions in subsets, n q for each subset on average: the gap between one
/// and the next, also across subsets, is geometric. q is rounded to that of the double nearest to the geometric
/// distribution's scale, -1 / ln(1 - q).
pub struct Subsets {
    n: u64,
    skips: Geometric,
    drawn: Vec<i64>,
    /// The number of `drawn` that are used up.
    used: usize,
    /// The next position in a subset, counted from the beginning of the next subset.
    next: Option<u64>,
    subset: Vec<u32>,
    appearances: Vec<u32>,
}

impl Subsets {
    /// Subsets of `n` positions.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `n` is zero or above 2^32 - 1, or `q` is not between 2^-39 and 1; [`Error::Allocation`].
    pub fn new(n: usize, q: f64) -> Result<Self, Error> {
        if n == 0 || u32::try_from(n).is_err() {
            return Err(Error::parameter("n", n, "from 1 to 2**32 - 1"));
        }
        let probability = || Error::parameter("q", format!("{q:?}"), "from 2**-39 to 1 - 2**-53");
        let scale = -1.0 / (-Delta::new(q).map_err(|_| probability())?.get()).ln_1p();
        Ok(Self {
            n: n as u64,
            skips: Geometric::new(Scale::from_f64(scale).map_err(|_| probability())?),
            drawn: vec![0; SKIPS],
            used: SKIPS,
            next: None,
            subset: room(n)?,
            appearances: zeroed(n)?,
        })
    }

    /// Draws `count` subsets and passes each to `visit`, in ascending order.
    ///
    /// # Errors
    /// [`Error::Randomness`]; discard the stream then.
    pub fn draw<R: TryCryptoRng + ?Sized>(
        &mut self,
        rng: &mut R,
        count: u64,
        mut visit: impl FnMut(&[u32]),
    ) -> Result<(), Error> {
        for _ in 0..count {
            self.subset.clear();
            let mut position = match self.next {
                Some(position) => position,
                None => self.skip(rng)?,
            };
            while position < self.n {
                self.subset.push(position as u32);
                // A saturated count is above every limit.
                let appearances = &mut self.appearances[position as usize];
                *appearances = appearances.saturating_add(1);
                position += 1 + self.skip(rng)?;
            }
            self.next = Some(position - self.n);
            visit(&self.subset);
        }
        Ok(())
    }

    /// The number of subsets that contained a position; at most 2^32 - 1.
    ///
    /// # Panics
    /// When there is no such position.
    #[must_use]
    pub fn appearances(&self, position: usize) -> u64 {
        self.appearances[position].into()
    }

    /// The number of positions between one in a subset and the next.
    fn skip<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<u64, Error> {
        if self.used == SKIPS {
            self.skips.fill_with(&mut self.drawn, rng)?;
            self.used = 0;
        }
        self.used += 1;
        Ok(self.drawn[self.used - 1].unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    #[test]
    fn bad_parameters_are_named() {
        for (n, q, expected) in [
            (0, 0.5, "n must be from 1 to 2**32 - 1, got 0"),
            (1 << 32, 0.5, "n must be from 1 to 2**32 - 1, got 4294967296"),
            (5, 0.0, "q must be from 2**-39 to 1 - 2**-53, got 0.0"),
            (5, 1e-15, "q must be from 2**-39 to 1 - 2**-53, got 1e-15"),
            (5, 1.0, "q must be from 2**-39 to 1 - 2**-53, got 1.0"),
            (5, f64::NAN, "q must be from 2**-39 to 1 - 2**-53, got NaN"),
        ] {
            assert_eq!(Subsets::new(n, q).err().unwrap().to_string(), expected);
        }
        for q in [2f64.powi(-39), 1.0f64.next_down()] {
            assert!(Subsets::new(5, q).is_ok());
        }
    }

    #[test]
    fn appearances_are_what_was_shown() {
        let mut subsets = Subsets::new(50, 0.1).unwrap();
        let mut seen = [0; 50];
        for _ in 0..3 {
            let count_of = |subset: &[u32]| {
                assert!(subset.is_sorted_by(|a, b| a < b));
                for &position in subset {
                    seen[position as usize] += 1;
                }
            };
            subsets.draw(&mut SeededRng::new(1).unwrap(), 1000, count_of).unwrap();
        }
        assert!((0..50).all(|position| subsets.appearances(position) == seen[position]));
        subsets.appearances[3] = u32::MAX;
        subsets.draw(&mut SeededRng::new(1).unwrap(), 1000, |_| {}).unwrap();
        assert_eq!(subsets.appearances(3), u64::from(u32::MAX));
    }

    /// All pairs of a subset of three positions and the next subset, by a chi-square test.
    #[test]
    fn every_subset_is_as_frequent_as_it_should_be() {
        let statistic = |q: f64, claimed: f64| {
            const SUBSETS: u64 = 400_000;
            let (mut subsets, mut previous) = (Subsets::new(3, q).unwrap(), 0);
            let mut counts = [0u64; 64];
            let mut visit = |subset: &[u32]| {
                let mask = subset.iter().map(|position| 1usize << position).sum::<usize>();
                counts[previous << 3 | mask] += 1;
                previous = mask;
            };
            subsets.draw(&mut SeededRng::new(7).unwrap(), SUBSETS, &mut visit).unwrap();
            let chi_square = |(pair, &count): (usize, &u64)| {
                let ones = pair.count_ones() as i32;
                let expected = SUBSETS as f64 * claimed.powi(ones) * (1.0 - claimed).powi(6 - ones);
                (count as f64 - expected).powi(2) / expected
            };
            counts.iter().enumerate().map(chi_square).sum::<f64>()
        };
        // The quantile of 63 degrees of freedom at 1 - 1e-9 is 153. Pairs overlap, so the seed is fixed.
        for q in [0.3, 0.45] {
            assert!(statistic(q, q) < 153.0, "{}", statistic(q, q));
            assert!(statistic(q, q * 1.02) > 153.0, "a fault that must be seen");
        }
    }

    #[test]
    fn a_source_that_runs_dry_is_an_error() {
        assert!(Subsets::new(5, 0.1).unwrap().draw(&mut ScriptedRng::new([]), 1, |_| {}).is_err());
    }
}
