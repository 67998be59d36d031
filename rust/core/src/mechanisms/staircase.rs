//! The staircase mechanism; `shares.md` has the proof.

use super::additive::{Additive, Calibration, Guarantee, Integers, OnGrid, Privacy};
use super::noise_kind::{EPSILON, NoiseKind, WHOLE_SENSITIVITY};
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::params::{Epsilon, Scale};
use crate::samplers::TableNoise;

/// Adds staircase noise to one integer: the noise with the least mean magnitude for its epsilon (Geng and Viswanath 2014).
///
/// ```
/// use dpnoise_core::mechanisms::Staircase;
/// let released = Staircase::new(4.0, 20)?.release_one(1234)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type Staircase = Additive<StaircasePrivacy, Integers>;

/// The epsilon of staircase noise.
#[derive(Clone, Copy, Debug)]
pub struct StaircasePrivacy(Epsilon);

impl Staircase {
    /// The mechanism that spends `epsilon` on an integer that changes by at most `sensitivity`, or for a sensitivity of 1
    /// on integers of which one does.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite or above 2^40, or a sensitivity that is not from
    /// 1 to 3969 epsilon / (44 + epsilon).
    pub fn new(epsilon: f64, sensitivity: u64) -> Result<Self, Error> {
        Self::calibrated(StaircasePrivacy(Epsilon::new(epsilon)?), sensitivity, Integers)
    }
}

impl NoiseKind for Staircase {
    const NAME: &'static str = "staircase";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, WHOLE_SENSITIVITY];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.real("epsilon")?, arguments.integer("sensitivity")?)
    }
}

impl Privacy for StaircasePrivacy {
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(self.0.get(), 0.0)
    }
}

/// The inner width with the least mean magnitude of the noise, in floating point.
fn inner(epsilon: f64, width: u64) -> u64 {
    // The mass of all further steps relative to the first, b + b^2 + ... with b = exp(-epsilon), and the sum of k b^k.
    let further = 1.0 / epsilon.exp_m1();
    let weighted = further * (1.0 + further);
    let width = width as f64;
    let mean = |inner: &f64| {
        let first = inner * (inner - 1.0) / 2.0;
        let steps = width * (inner - width + (width - 1.0) / 2.0) * further + width * width * weighted;
        (first + steps) / (inner - 0.5 + width * further)
    };
    let inners = (1..=width as u64).map(|inner| inner as f64);
    inners.min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(1.0) as u64
}

/// Refuses several integers that may change together: noise of tables protects only one, or a change by 1.
pub(super) fn check_count(sensitivity: u64, count: usize) -> Result<(), Error> {
    if sensitivity > 1 && count > 1 {
        let allowed = format!("one integer for a sensitivity above 1 (sensitivity is {sensitivity})");
        return Err(Error::parameter("x", format!("{count} of them"), allowed));
    }
    Ok(())
}

impl Calibration<Integers> for StaircasePrivacy {
    type Noise = TableNoise;
    type Sensitivity = u64;

    fn depends_on_count(&self, sensitivity: u64) -> bool {
        sensitivity > 1
    }

    fn noise(&self, sensitivity: u64, _: &Integers, count: usize) -> Result<OnGrid<TableNoise, Integers>, Error> {
        check_count(sensitivity, count)?;
        let epsilon = Scale::from_f64(self.0.get()).map_err(|error| error.of("epsilon"))?;
        let inner = inner(self.0.get(), sensitivity.min(1 << 12));
        let steps = TableNoise::staircase(epsilon, sensitivity, inner).map_err(|error| error.of("sensitivity"))?;
        Ok(OnGrid { steps, grid: () })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean magnitude for each inner width, term by term; and the ratio of neighbours that are up to a width apart.
    #[test]
    fn the_noise_is_private_and_has_the_least_error() {
        for (epsilon, width) in [(1.0, 1i64), (1.0, 9), (3.0, 40), (4.0, 50), (0.5, 7), (12.0, 60)] {
            let density = |x: i64, inner: i64| (-epsilon * ((x.abs() + width - inner) / width) as f64).exp();
            let reach = (60.0 / epsilon) as i64 * width + width;
            let mean = |inner| {
                let masses = (-reach..=reach).map(|x| (x.abs() as f64, density(x, inner)));
                let (sum, total) = masses.fold((0.0, 0.0), |(sum, total), (x, mass)| (sum + x * mass, total + mass));
                sum / total
            };
            let found = inner(epsilon, width as u64) as i64;
            assert!((1..=width).all(|other| mean(found) <= mean(other) * (1.0 + 1e-12)), "{epsilon} {width} {found}");
            for x in -3 * width..3 * width {
                for shift in 1..=width {
                    let steps = |x: i64| (x.abs() + width - found) / width;
                    assert!((steps(x) - steps(x + shift)).abs() <= 1);
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let message = |epsilon, sensitivity| Staircase::new(epsilon, sensitivity).unwrap_err().to_string();
        assert_eq!(message(0.0, 1), "epsilon must be positive and finite, got 0.0");
        assert!(message(1.0, 0).starts_with("sensitivity must be from 1 to"), "{}", message(1.0, 0));
        assert!(message(1.0, 89).starts_with("sensitivity must be from 1 to"));
        assert!(message(1e-3, 1).starts_with("sensitivity must be from 1 to"));
        assert!(message(1e-200, 1).starts_with("epsilon must be a rational number"));
        let two = Staircase::new(1.0, 2).unwrap().release(&mut [1, 2], 1).unwrap_err().to_string();
        assert_eq!(two, "x must be one integer for a sensitivity above 1 (sensitivity is 2), got 2 of them");
        Staircase::new(1.0, 1).unwrap().release(&mut [1, 2], 1).unwrap();
    }
}
