//! Discrete Laplace noise in shares; `shares.md` has the proof.

use super::additive::{Additive, Calibration, Curve, Guarantee, Integers, OnGrid, Privacy, Residues};
use super::noise_kind::{EPSILON, NoiseKind, PARTIES, WHOLE_SENSITIVITY};
use super::skellam::honest;
use crate::arguments::{Arguments, Parameter};
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
}

impl NoiseKind for NegativeBinomialShares {
    const NAME: &'static str = "negative_binomial_shares";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, WHOLE_SENSITIVITY, PARTIES];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let epsilon = arguments.real("epsilon")?;
        Self::new(epsilon, arguments.integer("sensitivity")?, arguments.integer("parties")?)
    }
}

impl Privacy for SharesPrivacy {
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(self.epsilon.get(), 0.0)
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

    fn curve(mechanism: &NegativeBinomialShares, colluding: u64) -> Result<Curve<'_>, Error> {
        let parties = mechanism.privacy.parties;
        let shares = honest(parties, colluding)?;
        if mechanism.sensitivity > MOST_CHANGES {
            let allowed = format!("at most {MOST_CHANGES} for what colluding parties leave");
            return Err(Error::parameter("sensitivity", mechanism.sensitivity, allowed));
        }
        let left = Quotients::Shares { scale: mechanism.noise(1)?.scale().ratio(), shares, parties };
        // The law is not log-concave: a smaller change might be worse.
        Ok(Box::new(move |epsilon| left.delta(epsilon, 1..=mechanism.sensitivity)))
    }
}
