#![doc = include_str!("grid.md")]

use crate::error::Error;

/// A grid of real numbers: all multiples of a granularity g, a power of two from 2^-1019 to 2^900.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    exponent: i32,
}

/// Integers up to here are exact as doubles.
const EXACT: f64 = (1u64 << 53) as f64;

impl Grid {
    /// What a granularity may be, for error messages.
    pub const ALLOWED: &'static str = "a power of two from 2**-1019 to 2**900";

    /// The grid with granularity `granularity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when it is not a power of two in range.
    pub fn new(granularity: f64) -> Result<Self, Error> {
        let bits = granularity.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        // A positive normal power of two has nothing but its exponent field.
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
        f64::from_bits(((self.exponent + 1023) as u64) << 52)
    }

    /// 1/g
    fn inverse(self) -> f64 {
        f64::from_bits(((1023 - self.exponent) as u64) << 52)
    }

    /// The smallest whole number of steps that is at least `length`; `None` from 2^100 on. For public lengths.
    #[must_use]
    pub fn steps_vartime(self, length: f64) -> Option<u128> {
        let steps = length * self.inverse(); // exact, or an underflow of a positive number, or an overflow
        let whole = if length > 0.0 { steps.ceil().max(1.0) } else { 0.0 };
        (whole < 2f64.powi(100)).then_some(whole as u128)
    }

    /// Rounds `x` to the grid, half up, adds `noise` steps, and rounds the exact sum once to a double. Magnitudes beyond
    /// the largest double saturate. Constant-time in `x`, which must be finite; and in `noise` up to 2^53, beyond which
    /// a scale of at most 2^44 steps goes with a probability below 2^-738.
    #[must_use]
    pub fn add_noise(self, x: f64, noise: i64) -> f64 {
        if noise.unsigned_abs() > 1 << 53 {
            return self.add_noise_vartime(x, noise);
        }
        let g = self.granularity();
        let x = self.without_dust(x);
        let (near, coarse) = self.split(x);
        // Two exact terms; the addition rounds their exact sum, correctly.
        let far = x + noise as f64 * g;
        let near = near.saturating_add(noise) as f64 * g;
        select(coarse, far, near).clamp(f64::MIN, f64::MAX)
    }

    /// `x`, or 0 where it is so small, below g/4, that it rounds to 0 in any case. Arithmetic on subnormal numbers takes
    /// longer on many processors, and no number below 2^-1021 = g/4 gets beyond this point.
    fn without_dust(self, x: f64) -> f64 {
        let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        f64::from_bits(x.to_bits() & u64::from(exponent >= self.exponent - 2).wrapping_neg())
    }

    /// `x` rounded to the grid, as a number of steps, and whether it is so large (2^53 steps) that it lies on the grid
    /// already and the number of steps was not computed.
    fn split(self, x: f64) -> (i64, bool) {
        let coarse = x.abs() * self.inverse() >= EXACT;
        let t = select(coarse, 0.0, x * self.inverse());
        // Rounding towards zero and correcting is the floor without a library call.
        let truncated = t as i64;
        let floor = truncated - i64::from(truncated as f64 > t);
        // The difference is exact where it matters, so this is half up, and commutes with shifts by whole steps.
        (floor + i64::from(t - floor as f64 >= 0.5), coarse)
    }

    /// The same sum in 128-bit integers: for noise that a double does not hold, and as the reference for tests.
    fn add_noise_vartime(self, x: f64, noise: i64) -> f64 {
        let x = self.without_dust(x);
        let (near, coarse) = self.split(x);
        let g = self.granularity();
        if !coarse {
            return (i128::from(near) + i128::from(noise)) as f64 * g;
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
        ((steps + i128::from(noise)) as f64 * g).clamp(f64::MIN, f64::MAX)
    }
}

/// `a` if `choice`, else `b`, without a branch.
fn select(choice: bool, a: f64, b: f64) -> f64 {
    let keep = u64::from(choice).wrapping_neg();
    f64::from_bits(a.to_bits() & keep | b.to_bits() & !keep)
}

/// Whether all values are finite. Every value is looked at, whatever the others are.
#[must_use]
pub fn all_finite(values: &[f64]) -> bool {
    values.iter().fold(true, |finite, x| finite & x.is_finite())
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::*;

    fn exact(x: f64) -> BigRational {
        BigRational::from_float(x).unwrap()
    }

    /// Doubles at and around every power of two, of both signs.
    fn boundaries() -> impl Iterator<Item = f64> {
        (-1074..=1000).flat_map(|e| {
            let x = if e < -1022 { f64::from_bits(1 << (e + 1074)) } else { f64::from_bits(((e + 1023) as u64) << 52) };
            [x, x.next_up(), x.next_down(), 1.5 * x].into_iter().flat_map(|x| [x, -x])
        })
    }

    #[test]
    fn rounding_is_half_up_for_every_magnitude() {
        for exponent in [-1019, -300, -40, 0, 17, 600, 900] {
            let grid = Grid { exponent };
            let half = BigRational::new(1.into(), 2.into());
            for x in boundaries() {
                let (steps, coarse) = grid.split(grid.without_dust(x));
                let t = exact(x) / exact(grid.granularity());
                if coarse {
                    assert!(t.is_integer(), "{x:e} skips the rounding and so must be on the grid 2^{exponent}");
                } else {
                    assert_eq!(BigInt::from(steps), (t + &half).floor().to_integer(), "{x:e} on 2^{exponent}");
                }
            }
        }
    }

    /// The reference: the exact rational sum, rounded to the nearest double by the standard library's parser.
    fn reference(grid: Grid, x: f64, noise: i64) -> f64 {
        let half = BigRational::new(1.into(), 2.into());
        let steps = (exact(x) / exact(grid.granularity()) + half).floor().to_integer() + noise;
        let sum = BigRational::from(steps) * exact(grid.granularity());
        let (numerator, denominator) = sum.into_raw();
        // A dyadic rational n / 2^k is n 5^k / 10^k, a finite decimal.
        let k = denominator.bits() - 1;
        let digits = numerator * BigInt::from(5).pow(k as u32);
        let parsed: f64 = format!("{digits}e-{k}").parse().unwrap();
        parsed.clamp(f64::MIN, f64::MAX)
    }

    #[test]
    fn the_release_is_the_correctly_rounded_exact_sum() {
        for exponent in [-1019, -40, 900] {
            let grid = Grid { exponent };
            for x in boundaries().step_by(13) {
                for noise in [0, 1, -1, 3, -12345, (1 << 46) + 1, -(1 << 53), (1 << 53) + 1, i64::MAX / 2] {
                    let released = grid.add_noise(x, noise);
                    assert_eq!(released, reference(grid, x, noise), "{x:e} + {noise} on 2^{exponent}");
                    assert_eq!(released, grid.add_noise_vartime(x, noise), "{x:e} + {noise} on 2^{exponent}");
                }
            }
        }
        assert_eq!(Grid { exponent: 900 }.add_noise(f64::MAX, i64::MAX), f64::MAX);
    }

    /// Neighbouring inputs can produce the same outputs: only r + n counts.
    #[test]
    fn the_release_depends_on_the_integer_sum_alone() {
        let grid = Grid { exponent: -3 };
        for (x, y, shift) in [(0.1, 0.35, 2), (-7.3, 1e3 - 7.3, 8000), (0.062_499, -0.062_5, 0)] {
            for noise in -100..100 {
                assert_eq!(grid.add_noise(x, noise + shift), grid.add_noise(y, noise), "{x} {y}");
            }
        }
    }

    /// No arithmetic is done on a number that is subnormal, or becomes so when divided by g.
    #[test]
    fn dust_is_cleared_before_any_arithmetic() {
        for exponent in [-1019, -40, 0, 900] {
            let grid = Grid { exponent };
            for x in boundaries() {
                let kept = grid.without_dust(x);
                let steps = kept * grid.inverse();
                assert!(kept == 0.0 || kept.is_normal() && (steps.is_normal() || steps.is_infinite()), "{x:e}");
                assert!(kept == x || x.abs() < grid.granularity() / 4.0, "{x:e}");
            }
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
        assert_eq!(grid.steps_vartime(1e300), None);
        assert_eq!(Grid { exponent: 900 }.steps_vartime(5e-324), Some(1), "an underflow still counts as a step");
    }
}
