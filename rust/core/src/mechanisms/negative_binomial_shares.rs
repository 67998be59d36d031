//! Discrete Laplace noise in shares; `shares.md` has the proof.

use core::cmp::Ordering;

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Integers, OnGrid};
use crate::calibration::{certain_delta, least_epsilon};
use crate::error::Error;
use crate::params::{Delta, Epsilon};
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
pub type NegativeBinomialShares = Additive<SharesPrivacy, Integers>;

/// The epsilon of the sum, and who adds to it.
#[derive(Clone, Copy, Debug)]
pub struct SharesPrivacy {
    epsilon: Epsilon,
    parties: u64,
}

impl NegativeBinomialShares {
    /// The mechanism of which `parties` releases, added up, spend `epsilon` on integers whose L1 sensitivity is at most
    /// `sensitivity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a sensitivity of 0, a scale
    /// sensitivity/epsilon outside [2^-40, 88], or a number of parties that is not from 1 to 2^32.
    pub fn new(epsilon: f64, sensitivity: u64, parties: u64) -> Result<Self, Error> {
        Self::calibrated(SharesPrivacy { epsilon: Epsilon::new(epsilon)?, parties }, sensitivity, Integers)
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
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, or unless fewer parties collude than there are.
    pub fn delta_for(&self, epsilon: f64, colluding: u64) -> Result<f64, Error> {
        let (epsilon, curve) = (Epsilon::new(epsilon)?, self.curve(colluding)?);
        // All shares together are discrete Laplace noise.
        let is_pure = colluding == 0 && epsilon.get() >= self.epsilon();
        Ok(if is_pure { 0.0 } else { certain_delta(epsilon, curve) })
    }

    /// The least epsilon for which [`NegativeBinomialShares::delta_for`] is at most `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not between 0 and 1, or unless fewer parties collude than there are.
    pub fn epsilon_for(&self, delta: f64, colluding: u64) -> Result<f64, Error> {
        least_epsilon(Delta::new(delta)?, self.curve(colluding)?)
    }

    fn curve(&self, colluding: u64) -> Result<impl Fn(&Ball) -> Ball, Error> {
        let parties = self.privacy.parties;
        if colluding >= parties {
            return Err(Error::parameter("colluding", colluding, format!("below the number of parties, {parties}")));
        }
        let scale = self.noise(1)?.scale().ratio();
        let left = Quotients::Shares { scale, shares: parties - colluding, parties };
        let sensitivity = self.sensitivity;
        // The law is not log-concave: a smaller change might be worse.
        Ok(move |epsilon: &Ball| {
            let deltas = (1..=sensitivity).map(|change| left.delta(epsilon, change));
            deltas.reduce(larger).unwrap_or_else(|| Ball::integer(0, epsilon.precision()))
        })
    }
}

fn larger(a: Ball, b: Ball) -> Ball {
    match a.compare(&b) {
        Some(Ordering::Greater) => a,
        Some(_) => b,
        None => b.widened(&(&a - &b)),
    }
}

impl Calibration<Integers> for SharesPrivacy {
    type Noise = PartOf<DiscreteLaplace>;
    type Sensitivity = u64;

    fn depends_on_count(&self, _sensitivity: u64) -> bool {
        false
    }

    fn noise(
        &self,
        sensitivity: u64,
        numbers: &Integers,
        count: usize,
    ) -> Result<OnGrid<Self::Noise, Integers>, Error> {
        let whole = self.epsilon.noise(sensitivity, numbers, count)?.steps;
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
