//! The Skellam mechanism; `shares.md` has the proof.

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Integers, OnGrid};
use super::staircase::check_count;
use crate::calibration::{Goal, certain_delta, fits, least_epsilon};
use crate::error::Error;
use crate::params::{Delta, Epsilon, Ratio, Scale};
use crate::samplers::{PartOf, Quotients, TableNoise};

/// Adds Skellam noise to an integer, or a share of it for each of several parties, whose sum is private.
///
/// ```
/// use dpnoise_core::mechanisms::Skellam;
/// let released = Skellam::new(1.0, 1e-6, 1, 10)?.release_one(37)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type Skellam = Additive<SkellamPrivacy, Integers>;

/// An epsilon and a delta, and the noise of all parties together.
#[derive(Clone, Copy, Debug)]
pub struct SkellamPrivacy {
    goal: Goal,
    mu: f64,
    parties: u64,
}

/// The range of mu, and a share of it that is not worth a search.
const RANGE: [f64; 2] = [1.0 / (1u64 << 40) as f64, TableNoise::LARGEST_MU as f64];
const TOLERANCE: f64 = 1.0 / (1u64 << 12) as f64;

impl Skellam {
    /// The mechanism of which `parties` releases, added up, spend `epsilon` and `delta` on an integer that changes by at most
    /// `sensitivity`, or for a sensitivity of 1 on integers of which one does.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a delta that is not between 0 and 1, a
    /// sensitivity of 0, an epsilon for which mu is above 90,000, or a number of parties that is not from 1 to 2^32.
    pub fn new(epsilon: f64, delta: f64, sensitivity: u64, parties: u64) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        if sensitivity == 0 {
            return Err(Error::parameter("sensitivity", sensitivity, "a positive integer"));
        }
        if !(1..=1 << 32).contains(&parties) {
            return Err(Error::parameter("parties", parties, "from 1 to 2**32"));
        }
        let is_enough = |mu: f64| fits(goal.delta, goal.epsilon, |epsilon| curve(epsilon, mu, sensitivity));
        let [least, mut high] = RANGE;
        let mut low = least * parties as f64; // the range is that of a share
        // No noise with mu of 90,000 has a deviation as large as this sensitivity.
        if sensitivity > 1 << 20 || !is_enough(high) {
            let allowed =
                format!("such that mu is at most {high} (delta is {delta:?}, and the sensitivity {sensitivity})");
            return Err(Error::parameter("epsilon", format!("{epsilon:?}"), allowed));
        }
        while high > low * (1.0 + TOLERANCE) {
            let middle = (low * high).sqrt();
            *(if is_enough(middle) { &mut high } else { &mut low }) = middle;
        }
        // Rounded up to 21 bits, so that a share of it is a short fraction.
        let low_bits = (1 << 32) - 1;
        let mu = f64::from_bits((high.to_bits() + low_bits) & !low_bits);
        Self::calibrated(SkellamPrivacy { goal, mu, parties }, sensitivity, Integers)
    }

    /// The epsilon.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.privacy.goal.epsilon
    }

    /// The delta.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.privacy.goal.delta
    }

    /// The least delta for which the sum of all parties' releases is (epsilon, delta)-differentially private, rounded up.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite.
    pub fn delta_for(&self, epsilon: f64) -> Result<f64, Error> {
        Ok(certain_delta(Epsilon::new(epsilon)?, |epsilon| curve(epsilon, self.privacy.mu, self.sensitivity)))
    }

    /// The least epsilon for which [`Skellam::delta_for`] is at most `delta`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a delta that is not between 0 and 1.
    pub fn epsilon_for(&self, delta: f64) -> Result<f64, Error> {
        least_epsilon(Delta::new(delta)?, |epsilon| curve(epsilon, self.privacy.mu, self.sensitivity))
    }
}

/// The delta for one integer.
fn curve(epsilon: &Ball, mu: f64, sensitivity: u64) -> Ball {
    let mu = Ratio::from_f64(mu).expect("a positive double in range");
    Quotients::Skellam { mu }.delta(epsilon, sensitivity)
}

impl Calibration<Integers> for SkellamPrivacy {
    type Noise = PartOf<TableNoise>;
    type Sensitivity = u64;

    fn depends_on_count(&self, sensitivity: u64) -> bool {
        sensitivity > 1
    }

    fn noise(&self, sensitivity: u64, _: &Integers, count: usize) -> Result<OnGrid<Self::Noise, Integers>, Error> {
        check_count(sensitivity, count)?;
        let whole = Scale::from_f64(self.mu)?;
        let part = Ratio::new(self.parties.into(), 1).and_then(|parties| whole.ratio().checked_div(parties));
        let part = Scale::new(part.expect("parts of less than 120 bits"))?;
        let steps = PartOf { part: TableNoise::skellam(part)?, whole: TableNoise::skellam(whole)? };
        Ok(OnGrid { steps, grid: () })
    }
}
