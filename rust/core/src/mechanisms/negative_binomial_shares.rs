//! Discrete Laplace noise in shares; `shares.md` has the proof.

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Integers, OnGrid, Residues};
use super::skellam::honest;
use crate::calibration::{certain_delta, least_epsilon, zero_or_more};
use crate::error::Error;
use crate::params::Epsilon;
use crate::samplers::{DiscreteLaplace, PartOf, Quotients, TableNoise};

/// Adds for each of several parties a share of discrete Laplace noise: the sum of all releases has exactly that noise.
///
/// ```
/// use dpnoise_core::mechanisms::NegativeBinomialShares;
/// let mechanism = NegativeBinomialShares::new(1.0, 1, 100)?;
/// let released = mechanism.release_one(37)?;
/// assert!(mechanism.delta_for(1.0, 10)? < 0.1); // where ten parties collude
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type NegativeBinomialShares = Additive<SharesPrivacy, Residues>;

/// The epsilon of the sum, and who adds to it.
#[derive(Clone, Copy, Debug)]
pub struct SharesPrivacy {
    epsilon: Epsilon,
    parties: u64,
}

/// The largest sensitivity for which what colluding parties leave is computed, change by change.
const MOST_CHANGES: u64 = 100;

impl NegativeBinomialShares {
    /// The mechanism of which `parties` releases, added up, spend `epsilon` on integers whose L1 sensitivity is at most
    /// `sensitivity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a sensitivity of 0, a scale
    /// sensitivity/epsilon outside [2^-40, 88], or a number of parties that is not from 1 to 2^32.
    pub fn new(epsilon: f64, sensitivity: u64, parties: u64) -> Result<Self, Error> {
        Self::calibrated(SharesPrivacy { epsilon: Epsilon::new(epsilon)?, parties }, sensitivity, Residues)
    }

    /// The epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.privacy.epsilon.get()
    }

    /// The least delta for which the sum is (epsilon, delta)-differentially private towards `colluding` parties, who know
    /// their own shares: for one integer, or a sensitivity of 1; rounded up.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not zero or more and finite, a sensitivity above 100, or unless fewer parties
    /// collude than there are.
    pub fn delta_for(&self, epsilon: f64, colluding: u64) -> Result<f64, Error> {
        let (epsilon, curve) = (zero_or_more(epsilon)?, self.curve(colluding)?);
        // All shares together are discrete Laplace noise.
        let is_pure = colluding == 0 && epsilon >= self.epsilon();
        Ok(if is_pure { 0.0 } else { certain_delta(epsilon, curve) })
    }

    /// The least epsilon for which [`NegativeBinomialShares::delta_for`] is at most `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not above 0 and at most 1, but 0 without colluding parties, and as for
    /// [`NegativeBinomialShares::delta_for`].
    pub fn epsilon_for(&self, delta: f64, colluding: u64) -> Result<f64, Error> {
        let curve = self.curve(colluding)?;
        if delta == 0.0 && colluding == 0 { Ok(self.epsilon()) } else { least_epsilon(delta, curve) }
    }

    fn curve(&self, colluding: u64) -> Result<impl Fn(&Ball) -> Ball, Error> {
        let parties = self.privacy.parties;
        let shares = honest(parties, colluding)?;
        if self.sensitivity > MOST_CHANGES {
            let allowed = format!("at most {MOST_CHANGES} for what colluding parties leave");
            return Err(Error::parameter("sensitivity", self.sensitivity, allowed));
        }
        let scale = self.noise(1)?.scale().ratio();
        let left = Quotients::Shares { scale, shares, parties };
        let changes = 1..=self.sensitivity; // the law is not log-concave: a smaller change might be worse
        Ok(move |epsilon: &Ball| left.delta(epsilon, changes.clone()))
    }
}

impl Calibration<Residues> for SharesPrivacy {
    type Noise = PartOf<DiscreteLaplace>;
    type Sensitivity = u64;

    fn depends_on_count(&self, _sensitivity: u64) -> bool {
        false
    }

    fn noise(&self, sensitivity: u64, _: &Residues, count: usize) -> Result<OnGrid<Self::Noise, Residues>, Error> {
        let whole = self.epsilon.noise(sensitivity, &Integers, count)?.steps;
        let part = TableNoise::negative_binomial_share(whole.scale(), self.parties).map_err(|error| match error {
            Error::Parameter { parameter: "scale", value, .. } => {
                let allowed = format!("such that sensitivity/epsilon is at most 88, not {value}");
                Error::parameter("epsilon", format!("{:?}", self.epsilon.get()), allowed)
            }
            error => error,
        })?;
        Ok(OnGrid { steps: PartOf { part, whole }, grid: () })
    }
}
