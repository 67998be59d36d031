//! The Skellam mechanism; `shares.md` has the proof.

use dpnoise_kernels::arith::ball::Ball;

use super::additive::{Additive, Calibration, Curve, Guarantee, OnGrid, Privacy, Residues};
use super::noise_kind::{DELTA, EPSILON, NoiseKind, PARTIES, WHOLE_SENSITIVITY};
use super::staircase::check_count;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::{Goal, fits};
use crate::error::Error;
use crate::params::{Ratio, Scale};
use crate::samplers::{PartOf, Quotients, TableNoise};

/// Adds Skellam noise to an integer, or a share of it for each of several parties, whose sum is private.
///
/// ```
/// use dpnoise_core::mechanisms::Skellam;
/// let released = Skellam::new(1.0, 1e-6, 1, 10)?.release_one(37)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type Skellam = Additive<SkellamPrivacy, Residues>;

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

/// The largest sensitivity: the time of a delta grows with it.
const LARGEST: u64 = 1 << 12;

impl Skellam {
    /// The mechanism of which `parties` releases, added up, spend `epsilon` and `delta` on an integer that changes by at most
    /// `sensitivity`, or for a sensitivity of 1 on integers of which one does.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a delta that is not between 0 and 1, a
    /// sensitivity that is not from 1 to 4096, an epsilon for which mu is above 90,000, or a number of parties that is not from 1 to 2^32.
    pub fn new(epsilon: f64, delta: f64, sensitivity: u64, parties: u64) -> Result<Self, Error> {
        let goal = Goal::new(epsilon, delta)?;
        if !(1..=LARGEST).contains(&sensitivity) {
            return Err(Error::parameter("sensitivity", sensitivity, format!("an integer from 1 to {LARGEST}")));
        }
        if !(1..=1 << 32).contains(&parties) {
            return Err(Error::parameter("parties", parties, "from 1 to 2**32"));
        }
        let is_enough = |mu| fits(goal.delta, goal.epsilon, |epsilon| curve(epsilon, exact(mu), sensitivity));
        let [least, mut high] = RANGE;
        let mut low = least * parties as f64; // the range is that of a share
        if !is_enough(high) {
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
        Self::calibrated(SkellamPrivacy { goal, mu, parties }, sensitivity, Residues)
    }
}

impl NoiseKind for Skellam {
    const NAME: &'static str = "skellam";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, DELTA, WHOLE_SENSITIVITY, PARTIES];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let (sensitivity, parties) = (arguments.integer("sensitivity")?, arguments.integer("parties")?);
        Self::new(arguments.real("epsilon")?, arguments.real("delta")?, sensitivity, parties)
    }
}

impl Privacy for SkellamPrivacy {
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(self.goal.epsilon, self.goal.delta)
    }
}

/// How many of the parties do not collude.
pub(super) fn honest(parties: u64, colluding: u64) -> Result<u64, Error> {
    parties
        .checked_sub(colluding)
        .filter(|&honest| honest > 0)
        .ok_or_else(|| Error::parameter("colluding", colluding, format!("below the number of parties, {parties}")))
}

fn exact(mu: f64) -> Ratio {
    Ratio::from_f64(mu).expect("a positive double in range")
}

/// The mean of so many of the parties' shares.
fn share(mu: f64, shares: u64, parties: u64) -> Ratio {
    let (mu, [shares, parties]) = (exact(mu), [shares, parties].map(u128::from));
    Ratio::new(mu.numerator() * shares, mu.denominator() * parties).expect("mu has 21 bits")
}

/// The delta for one integer.
fn curve(epsilon: &Ball, mu: Ratio, sensitivity: u64) -> Ball {
    // The law is log-concave: the largest change is the worst.
    Quotients::Skellam { mu }.delta(epsilon, sensitivity..=sensitivity)
}

impl Calibration<Residues> for SkellamPrivacy {
    type Noise = PartOf<TableNoise>;
    type Sensitivity = u64;

    fn depends_on_count(&self, sensitivity: u64) -> bool {
        sensitivity > 1
    }

    fn noise(&self, sensitivity: u64, _: &Residues, count: usize) -> Result<OnGrid<Self::Noise, Residues>, Error> {
        check_count(sensitivity, count)?;
        let of = |parties| TableNoise::skellam(Scale::new(share(self.mu, 1, parties))?);
        let whole = of(1)?;
        let part = if self.parties == 1 { whole.clone() } else { of(self.parties)? };
        Ok(OnGrid { steps: PartOf { part, whole }, grid: () })
    }

    fn curve(mechanism: &Skellam, colluding: u64) -> Result<Curve<'_>, Error> {
        let SkellamPrivacy { mu, parties, .. } = mechanism.privacy;
        let left = share(mu, honest(parties, colluding)?, parties);
        Ok(Box::new(move |epsilon| curve(epsilon, left, mechanism.sensitivity)))
    }
}
