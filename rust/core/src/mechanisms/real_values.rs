//! The grids of mechanisms for real values.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::power_of_two;

use super::additive::{Numbers, OnGrid};
use crate::error::Error;
use crate::samplers::Symmetric;
use crate::samplers::grid::{Grid, Reach, all_finite, reach_of};

/// By default a scale has this many steps or half as many, as a power of two, if that is fine enough.
const STEPS_EXPONENT: i32 = 40;

/// On the default grid rounding adds at most this part of the sensitivity, unless the grid is the finest allowed.
const LEAST_STEPS: f64 = 100.0;

/// Finite doubles, which are rounded to a grid that may depend on how many are released at once.
#[derive(Clone, Copy, Debug)]
pub struct Reals {
    /// The grid that was given, for any number of values.
    given: Option<Grid>,
    /// The default grids are from that of 2^`coarsest` to that of 2^`finest`.
    coarsest: i32,
    finest: i32,
    sensitivity: f64,
}

impl Reals {
    /// The grids of a mechanism whose noise has a scale of more than 2^(`exponent` - 1) and at most 2^`exponent`, and at
    /// most 2^`most` steps for one value; or the one of `granularity`. The finest grid follows from `parameters`.
    ///
    /// `None` when there is no default.
    pub(super) fn new(
        granularity: Option<f64>,
        sensitivity: f64,
        exponent: i32,
        most: i32,
        parameters: &str,
    ) -> Option<Result<Self, Error>> {
        let (coarsest, finest) = (exponent - STEPS_EXPONENT, exponent - most);
        Grid::at_least(coarsest)?;
        let least = Grid::at_least(finest)?.granularity();
        Some(match granularity.map(Grid::new).transpose() {
            Ok(Some(grid)) if grid.granularity() < least => {
                let allowed = format!("at least {least:?} for this {parameters}");
                Err(Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed))
            }
            given => given.map(|given| Self { given, coarsest, finest, sensitivity }),
        })
    }

    /// The grid for a vector whose rounding adds less than `rounding` steps to the sensitivity.
    pub(super) fn grid(self, rounding: u64) -> Grid {
        self.given.unwrap_or_else(|| {
            let fine_enough = -ceil_log2_of_quotient(LEAST_STEPS * rounding as f64, self.sensitivity);
            Grid::at_least(self.coarsest.min(fine_enough).max(self.finest)).expect("the coarsest one is in range")
        })
    }

    /// The error for `count` values whose noise is out of range; `parameter` and its `value` determine the scale.
    pub(super) fn too_many(self, count: usize, parameter: &'static str, value: f64) -> Error {
        if let Some(grid) = self.given {
            let allowed = format!("coarser for a release of {count} values at this {parameter}");
            return Error::parameter("granularity", format!("{:?}", grid.granularity()), allowed);
        }
        let allowed = format!("larger for a release of {count} values, each of which is rounded to a grid");
        Error::parameter(parameter, format!("{value:?}"), allowed)
    }
}

impl Numbers for Reals {
    type Value = f64;
    type Grid = (Grid, Reach);

    const ROUNDING: f64 = 0.5;

    fn granularity((grid, _): &(Grid, Reach)) -> f64 {
        grid.granularity()
    }

    fn check(values: &[f64]) -> Result<(), Error> {
        if declassify(Reason::Refusal, all_finite(values)) {
            Ok(())
        } else {
            Err(Error::data("x", "must be finite: no NaN and no infinity"))
        }
    }

    fn add((grid, reach): &(Grid, Reach), values: &mut [f64], samples: &[i64]) -> Result<(), Error> {
        grid.add_noise(*reach, values, samples)
    }
}

impl<N: Symmetric> OnGrid<N, Reals> {
    pub(super) fn new(grid: Grid, steps: N) -> Self {
        let reach = reach_of(steps.scale());
        Self { steps, grid: (grid, reach) }
    }
}

/// ceil(log2(a/b)) for positive finite doubles, exactly.
pub(super) fn ceil_log2_of_quotient(a: f64, b: f64) -> i32 {
    let split = |x: f64| {
        // A subnormal number is made normal first.
        let (x, bias) = if x < f64::MIN_POSITIVE { (x * power_of_two(64), 1023 + 64) } else { (x, 1023) };
        let bits = x.to_bits();
        ((bits >> 52) as i32 - bias, bits & ((1 << 52) - 1))
    };
    let ((exponent_a, fraction_a), (exponent_b, fraction_b)) = (split(a), split(b));
    // The significands' quotient is in (1/2, 2); its logarithm rounds up to 1 exactly when it is above 1.
    exponent_a - exponent_b + i32::from(fraction_a > fraction_b)
}

/// Refuses an L1 or L2 sensitivity that is not positive and finite.
pub(super) fn check_sensitivity(sensitivity: f64) -> Result<(), Error> {
    if sensitivity.is_finite() && sensitivity > 0.0 {
        Ok(())
    } else {
        Err(Error::parameter("sensitivity", format!("{sensitivity:?}"), "positive and finite"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_quotients_are_exact() {
        for (a, b) in [(1.0, 1.0), (1.0, 3.0), (3.0, 1.0), (5e-324, 1.0), (1.0, 5e-324), (f64::MAX, 1.5), (6.0, 3.0)] {
            let exponent = ceil_log2_of_quotient(a, b);
            let exact =
                num_rational::BigRational::from_float(a).unwrap() / num_rational::BigRational::from_float(b).unwrap();
            let two = num_rational::BigRational::from_integer(2.into());
            assert!(exact <= two.pow(exponent) && exact > two.pow(exponent - 1), "{a}/{b}");
        }
    }

    /// The largest change of a rounded value, in steps, for a change of `quarters` of a step.
    fn change(grid: Grid, quarters: i32) -> i64 {
        let (g, whole) = (grid.granularity(), 1024.0);
        let mut ends: Vec<f64> =
            (0..4).flat_map(|from| [from, from + quarters].map(|x| g * (whole + f64::from(x) / 4.0))).collect();
        let count = ends.len();
        grid.add_noise(Reach::Near, &mut ends, &vec![0; count]).unwrap();
        ends.chunks(2).map(|ends| ((ends[1] - ends[0]) / g).abs() as i64).max().unwrap()
    }

    /// The largest sum, over `count` rounded values, of the `power` of their change in steps, if the same sum of their
    /// change in quarters of a step before rounding is at most `budget`: by trying all.
    fn most(grid: Grid, count: usize, budget: i32, power: u32) -> i64 {
        if count == 0 {
            return 0;
        }
        let rest = |quarters: i32| most(grid, count - 1, budget - quarters.pow(power), power);
        let fitting = (0..=budget).take_while(|quarters| quarters.pow(power) <= budget);
        fitting.map(|quarters| change(grid, quarters).pow(power) + rest(quarters)).max().unwrap()
    }

    #[test]
    fn rounding_adds_what_it_is_said_to_add() {
        let grid = Grid::new(0.25).unwrap();
        let (mut short_1, mut short_2) = (0, 0);
        for count in 1..=4 {
            for quarters in 1..=9 {
                let single = i64::try_from(grid.steps_vartime(f64::from(quarters) / 16.0).unwrap()).unwrap();
                let root = if count > 1 { (count as i64 - 1).isqrt() + 1 } else { 0 };
                let (steps, squares) = (most(grid, count, quarters, 1), most(grid, count, quarters.pow(2), 2));
                assert!(steps < single + count as i64, "{count} {quarters}: {steps}");
                assert!(squares <= (single + root).pow(2), "{count} {quarters}: {squares}");
                short_1 += u32::from(steps > single);
                short_2 += u32::from(squares > single.pow(2));
            }
        }
        assert!(short_1 > 15 && short_2 > 15, "a bound without the length fails: {short_1} {short_2}");
    }
}
