#![doc = include_str!("grid.md")]

use dpnoise_kernels::arch::candidates;
use dpnoise_kernels::arch::grid as kernel;
pub use dpnoise_kernels::arch::grid::Reach;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::power_of_two;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::instruction_set;
use crate::params::Scale;

/// A grid of real numbers: all multiples of a granularity g, a power of two from 2^-1019 to 2^900.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    exponent: i32,
}

/// Integers up to here are exact as doubles.
const EXACT: f64 = (1u64 << 53) as f64;

impl Grid {
    /// The allowed granularities, for error messages.
    pub const ALLOWED: &'static str = "a power of two from 2**-1019 to 2**900";

    /// The grid with granularity `granularity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when it is not a power of two in range.
    pub fn new(granularity: f64) -> Result<Self, Error> {
        let bits = granularity.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        // Only the exponent field of a positive normal power of two is not zero.
        if bits << 12 == 0 && granularity.is_sign_positive() && (-1019..=900).contains(&exponent) {
            Ok(Self { exponent })
        } else {
            Err(Error::parameter("granularity", format!("{granularity:?}"), Self::ALLOWED))
        }
    }

    /// The finest grid in range whose granularity is at least 2^exponent; `None` for an exponent above 900.
    #[must_use]
    pub fn at_least(exponent: i32) -> Option<Self> {
        (exponent <= 900).then_some(Self { exponent: exponent.max(-1019) })
    }

    /// The granularity g.
    #[must_use]
    pub fn granularity(self) -> f64 {
        power_of_two(self.exponent)
    }

    /// The granularity's binary logarithm.
    pub(crate) fn exponent(self) -> i32 {
        self.exponent
    }

    /// 1/g
    fn inverse(self) -> f64 {
        power_of_two(-self.exponent)
    }

    /// The smallest whole number of steps that is at least `length`; `None` from 2^100 on. For public lengths.
    #[must_use]
    pub fn steps_vartime(self, length: f64) -> Option<u128> {
        let steps = length * self.inverse(); // exact, or an underflow of a positive number, or an overflow
        let whole = if length > 0.0 { steps.ceil().max(1.0) } else { 0.0 };
        (whole < power_of_two(100)).then_some(whole as u128)
    }

    /// The steps from `low` up to `high`, both rounded to the grid, half up: negative when it is down, and at most 2^51
    /// either way. Constant-time in finite numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    pub fn steps_between(self, low: &f64, high: &f64) -> Result<i64, Error> {
        let lows = Zeroizing::new([*low; candidates::COLUMNS]);
        let mut steps = Zeroizing::new([0; candidates::COLUMNS]);
        candidates::measure(instruction_set::current()?, self.exponent, high, &*lows, &mut *steps);
        Ok(steps[0])
    }

    /// Rounds every value to the grid, half up, adds `noise` steps, and rounds the exact sum once to a double.
    ///
    /// Constant-time in the values, which must be finite, and in noise within `reach`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `DPNOISE_INSTRUCTION_SET` names no instruction set of this CPU.
    ///
    /// # Panics
    /// When there are fewer values than noise.
    pub fn add_noise(self, reach: Reach, values: &mut [f64], noise: &[i64]) -> Result<(), Error> {
        let instructions = instruction_set::current()?;
        if declassify(Reason::HugeNoise, kernel::add_noise(instructions, reach, self.exponent, noise, values)) {
            self.add_large_noise_vartime(reach, values, noise);
        }
        Ok(())
    }

    /// Adds the noise that the kernel left.
    #[cold]
    fn add_large_noise_vartime(self, reach: Reach, values: &mut [f64], noise: &[i64]) {
        let limit = 1 << reach.bits();
        for (value, &noise) in values.iter_mut().zip(noise) {
            if !(-limit..limit).contains(&noise) {
                *value = self.add_one_vartime(*value, noise);
            }
        }
    }

    /// The same sum in 128-bit integers, which hold any noise: for the noise that the kernel left, and as the reference
    /// for tests.
    fn add_one_vartime(self, x: f64, noise: i64) -> f64 {
        let g = self.granularity();
        if x.abs() < g * EXACT {
            let t = if x.abs() < g / 4.0 { 0.0 } else { x * self.inverse() };
            let rounded = t.floor() as i64 + i64::from(t - t.floor() >= 0.5);
            return (i128::from(rounded) + i128::from(noise)) as f64 * g;
        }
        // x = +-m 2^e with 53 bits in m, that is +-m 2^(e - exponent) steps.
        let bits = x.to_bits();
        let e = ((bits >> 52) & 0x7ff) as i32 - 1075;
        let m = i128::from((bits & ((1 << 52) - 1)) | 1 << 52);
        let shift = e - self.exponent;
        if shift > 64 {
            return x; // the noise is at most half a unit in the last place, and x is even where it is exactly half
        }
        let steps = if x < 0.0 { -(m << shift) } else { m << shift };
        (steps + i128::from(noise)) as f64 * g
    }
}

/// The reach of noise of a scale of at most 2^52 steps, beyond which it has a probability below 2^-738.
#[must_use]
pub fn reach_of(scale: Scale) -> Reach {
    if scale.ratio().to_f64() <= (1u64 << 42) as f64 { Reach::Near } else { Reach::Far }
}

/// Whether all values are finite. Every value is always checked.
#[must_use]
pub fn all_finite(values: &[f64]) -> bool {
    // Only the exponents of infinities and NaN are so large that one more does not fit.
    let more = |x: &f64| (x.to_bits() & (u64::MAX >> 1)) + (1 << 52);
    values.iter().fold(0, |all, x| all | more(x)) >> 63 == 0
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::*;
    use crate::instruction_set::InstructionSet;
    use crate::params::Ratio;

    fn exact(x: f64) -> BigRational {
        BigRational::from_float(x).unwrap()
    }

    /// Doubles at and around powers of two, of both signs: most of those from 2^-3 to 2^120 steps, and some others.
    fn boundaries(exponent: i32) -> impl Iterator<Item = f64> {
        let kept = move |e: &i32| (-3..=120).contains(&(e - exponent)) || e % 13 == 0;
        (-1074..=1000).filter(kept).flat_map(|e| {
            let x = if e < -1022 { f64::from_bits(1 << (e + 1074)) } else { f64::from_bits(((e + 1023) as u64) << 52) };
            [x, x.next_up(), x.next_down(), 1.5 * x].into_iter().flat_map(|x| [x, -x])
        })
    }

    fn all_ways() -> impl Iterator<Item = (InstructionSet, Reach)> {
        let sets = InstructionSet::available().into_iter();
        sets.flat_map(|instructions| [Reach::Near, Reach::Far].map(|reach| (instructions, reach)))
    }

    /// The references: the exact sums of `x` and each noise, which the standard library's parser rounds to doubles.
    fn references(grid: Grid, x: f64, noise: &[i64]) -> Vec<f64> {
        let half = BigRational::new(1.into(), 2.into());
        let nearest = (exact(x) / exact(grid.granularity()) + half).floor().to_integer();
        // A step of 2^-k is 5^k / 10^k, a finite decimal.
        let k = 0.max(-grid.exponent) as u32;
        let step = BigInt::from(5).pow(k) << 0.max(grid.exponent);
        noise.iter().map(|noise| format!("{}e-{k}", (&nearest + noise) * &step).parse().unwrap()).collect()
    }

    /// Every value with every noise, on every instruction set and in every place of a vector.
    #[test]
    fn the_release_is_the_correctly_rounded_exact_sum() {
        const NOISE: [i64; 21] = [
            0,
            1,
            -1,
            3,
            -12345,
            (1 << 26) - 1,
            -(1 << 26),
            (1 << 46) + 1,
            -(1 << 51),
            (1 << 51) - 1,
            1 << 51,
            -(1 << 53) - 1,
            (1 << 53) + 1,
            (1 << 60) - (1 << 25),
            -(1 << 60) + 1,
            -(1 << 62),
            (1 << 62) - 1,
            1 << 62,
            -(1 << 62) - 1,
            i64::MAX,
            i64::MIN,
        ];
        for exponent in [-1019, -300, -40, 17, 900] {
            let grid = Grid { exponent };
            let values: Vec<f64> = boundaries(exponent).flat_map(|x| [x; NOISE.len()]).collect();
            let noise: Vec<i64> = NOISE.iter().copied().cycle().take(values.len()).collect();
            let expected: Vec<f64> = boundaries(exponent).flat_map(|x| references(grid, x, &NOISE)).collect();
            for (instructions, reach) in all_ways() {
                let mut released = values.clone();
                assert!(
                    kernel::add_noise(instructions, reach, exponent, &noise, &mut released),
                    "some noise is beyond the reach"
                );
                grid.add_large_noise_vartime(reach, &mut released, &noise);
                let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                for (i, (got, want)) in bits(&released).into_iter().zip(bits(&expected)).enumerate() {
                    let way = (instructions.name(), reach);
                    assert_eq!(got, want, "{:e} + {} on 2^{exponent}, {way:?}", values[i], noise[i]);
                }
            }
            for ((&x, &n), &want) in values.iter().zip(&noise).zip(&expected) {
                assert_eq!(grid.add_one_vartime(x, n), want, "{x:e} + {n} on 2^{exponent}");
            }
        }
        let mut largest = [f64::MAX, f64::MIN];
        Grid { exponent: 900 }.add_noise(Reach::Near, &mut largest, &[i64::MAX, i64::MIN]).unwrap();
        assert_eq!(largest, [f64::MAX, f64::MIN]);
    }

    #[test]
    fn every_length_is_released_and_not_an_item_more() {
        let grid = Grid { exponent: -2 };
        for (instructions, reach) in all_ways() {
            for length in 0..40 {
                let mut values = [0.6; 41];
                assert!(!kernel::add_noise(instructions, reach, -2, &vec![3; length], &mut values));
                let expected = if length == 0 { 0.6 } else { references(grid, 0.6, &[3])[0] };
                assert!(values[..length].iter().all(|&x| x == expected) && values[length..].iter().all(|&x| x == 0.6));
            }
        }
    }

    /// Neighbouring inputs can produce the same outputs: only r + n counts.
    #[test]
    fn the_release_depends_on_the_integer_sum_alone() {
        let grid = Grid { exponent: -3 };
        for (x, y, shift) in [(0.1, 0.35, 2), (-7.3, 1e3 - 7.3, 8000), (0.062_499, -0.062_5, 0)] {
            let noise: Vec<i64> = (-100..100).collect();
            let shifted: Vec<i64> = noise.iter().map(|n| n + shift).collect();
            let (mut xs, mut ys) = ([x; 200], [y; 200]);
            grid.add_noise(Reach::Near, &mut xs, &shifted).unwrap();
            grid.add_noise(Reach::Near, &mut ys, &noise).unwrap();
            assert_eq!(xs.map(f64::to_bits), ys.map(f64::to_bits), "{x} {y}");
        }
    }

    #[test]
    fn only_powers_of_two_are_granularities() {
        for good in [2f64.powi(-1019), 0.25, 1.0, 2f64.powi(900)] {
            assert_eq!(Grid::new(good).unwrap().granularity(), good);
        }
        for bad in [0.0, -1.0, 3.0, 0.1, f64::NAN, f64::INFINITY, 2f64.powi(901), 5e-324, 2f64.powi(-1020)] {
            assert!(Grid::new(bad).unwrap_err().to_string().starts_with("granularity must be a power of two"));
        }
    }

    #[test]
    fn steps_are_rounded_up() {
        let grid = Grid::new(0.5).unwrap();
        for (length, steps) in [(0.5, 1), (0.500_001, 2), (5e-324, 1), (0.0, 0), (1e6, 2_000_000)] {
            assert_eq!(grid.steps_vartime(length), Some(steps));
        }
        assert_eq!([2f64.powi(99), 1e300].map(|length| grid.steps_vartime(length)), [None; 2]);
        assert_eq!(Grid { exponent: 900 }.steps_vartime(5e-324), Some(1), "an underflow still counts as a step");
    }

    #[test]
    fn scales_up_to_2_to_the_42_are_near() {
        for (steps, reach) in [(1 << 42, Reach::Near), ((1 << 42) + 1, Reach::Far)] {
            assert_eq!(reach_of(Scale::on_fine_grid(Ratio::new(steps, 1).unwrap()).unwrap()), reach);
        }
    }
}
