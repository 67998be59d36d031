//! Division by a public number, in a time that does not depend on the dividend.

use super::mask;

/// A divisor below 2^32. The machine's own division may take longer for some numbers than for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Divisor {
    divisor: u64,
    /// ceil(2^64 / divisor), for a divisor of at least 2.
    reciprocal: u64,
}

impl Divisor {
    /// The divisor `divisor`, from 2 to 2^32 - 1.
    ///
    /// # Panics
    /// For 0 or 1.
    #[must_use]
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 1);
        let divisor = u64::from(divisor);
        Self { divisor, reciprocal: u64::MAX / divisor + 1 }
    }

    /// The divisor as a number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.divisor
    }

    /// Quotient and remainder of `x`, which is below 2^63.
    ///
    /// The reciprocal exceeds 2^64 / divisor by less than 1, so its product with x, divided by 2^64, exceeds the exact
    /// quotient by less than x / 2^64 < 1: the estimate is right or one too large, and then the remainder is negative.
    #[must_use]
    #[inline(always)]
    pub fn divide(self, x: u64) -> (u64, u64) {
        let estimate = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x.wrapping_sub(estimate.wrapping_mul(self.divisor));
        let too_large = mask(rest >> 63 == 1);
        (estimate.wrapping_add(too_large), rest.wrapping_add(too_large & self.divisor))
    }
}

/// A divisor of numbers below 2^31. Its quotients need no correction, so the optimiser makes vectors of loops over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SmallDivisor {
    divisor: u32,
    /// ceil(2^shift / divisor), with 2^(shift - 32) < divisor <= 2^(shift - 31).
    reciprocal: u32,
    shift: u32,
}

impl SmallDivisor {
    /// The divisor `divisor`, from 1 to 2^31 - 1.
    ///
    /// # Panics
    /// For 0, and from 2^31 on.
    #[must_use]
    pub fn new(divisor: u32) -> Self {
        assert!((1..1 << 31).contains(&divisor));
        let shift = 31 + divisor.next_power_of_two().trailing_zeros();
        Self { divisor, reciprocal: (1u64 << shift).div_ceil(divisor.into()) as u32, shift }
    }

    /// The divisor as a number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.divisor
    }

    /// Quotient and remainder of `x`, which is below 2^31.
    ///
    /// The reciprocal exceeds 2^shift / divisor by less than 1, so its product with x, divided by 2^shift, exceeds
    /// x / divisor by less than x / 2^shift < 2^(31 - shift) <= 1 / divisor: there is no integer in between.
    #[must_use]
    #[inline(always)]
    pub fn divide(self, x: u32) -> (u32, u32) {
        let quotient = ((u64::from(x) * u64::from(self.reciprocal)) >> self.shift) as u32;
        (quotient, x.wrapping_sub(quotient.wrapping_mul(self.divisor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_quotients_are_those_of_the_machine() {
        let largest = (1u32 << 31) - 1;
        for divisor in [1, 2, 3, 5, 17, 65_535, 65_536, 65_537, 11_579 * 11_579, 1 << 30, (1 << 30) + 1, largest] {
            let d = SmallDivisor::new(divisor);
            let most = largest / divisor;
            let multiples = [0, 1, 2, 3, 1000, most / 2, most - 1, most].into_iter().filter(|&times| times <= most);
            let numbers = multiples.flat_map(|times| [(times * divisor).saturating_sub(1), times * divisor]);
            for x in numbers.chain([largest]) {
                assert_eq!(d.divide(x), (x / divisor, x % divisor), "{x} / {divisor}");
            }
        }
    }

    #[test]
    fn quotients_are_those_of_the_machine() {
        let largest = (1 << 63) - 1;
        for divisor in [2, 3, 5, 17, 65_521, 65_536, 16_777_259, u32::MAX - 1, u32::MAX] {
            let d = Divisor::new(divisor);
            let near = |x: u64| [x.saturating_sub(1), x, x + 1];
            let multiples = [1, 2, 3, 1000, 1 << 30, largest / d.get() - 1];
            let numbers = multiples.into_iter().flat_map(|times| near(times * d.get()));
            for x in numbers.chain([0, 1, largest - 1, largest]) {
                assert_eq!(d.divide(x), (x / d.get(), x % d.get()), "{x} / {divisor}");
            }
        }
    }
}
