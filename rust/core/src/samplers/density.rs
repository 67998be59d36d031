//! The densities of the samplers, as certified intervals at any precision.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::exp::{Constants, ERROR_ULPS};
use dpnoise_kernels::arith::fixed::{Fixed, Limbs};
use dpnoise_kernels::arith::interval::Interval;

use crate::params::{Ratio, Scale};

/// The shape of a distribution's density f over x = 0, 1, 2, ..., not normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// f(x) = exp(-x / scale)
    Exponential,
    /// f(x) = exp(-x^2 / (2 scale^2))
    Gaussian,
}

/// A density at one precision: f(x) = 2^(-rate x) or 2^(-rate x^2).
#[derive(Clone, Debug)]
pub(super) struct Density<L: Limbs = Vec<u64>> {
    shape: Shape,
    /// log2(e) / scale or log2(e) / (2 scale^2), at most `rate_error` ulps too small.
    rate: Fixed<L>,
    rate_error: u128,
}

/// A density at every precision. That of [`Constants::first`] is kept.
#[derive(Clone, Debug)]
pub(super) struct Law {
    pub(super) shape: Shape,
    pub(super) scale: Scale,
    first: Density,
}

impl Law {
    pub(super) fn new(shape: Shape, scale: Scale) -> Self {
        Self { shape, scale, first: Density::new(shape, scale.ratio(), Constants::first()) }
    }

    /// The density at the precision of `constants`.
    pub(super) fn density(&self, constants: &Constants) -> Density {
        if core::ptr::eq(constants, Constants::first()) {
            self.first.clone()
        } else {
            Density::new(self.shape, self.scale.ratio(), constants)
        }
    }
}

impl Shape {
    /// p and q such that f(p/q scales) < 2^-64: exp(-44.5) and exp(-9.45^2 / 2).
    pub(super) fn reach(self) -> (u128, u128) {
        match self {
            Self::Exponential => (89, 2),
            Self::Gaussian => (189, 20),
        }
    }

    /// A whole number that is at least 1/slope at `start`, where f falls from there at least like exp(-slope x).
    pub(super) fn inverse_slope(self, scale: Ratio, start: u64) -> u64 {
        let whole = scale.numerator().div_ceil(scale.denominator());
        match self {
            Self::Exponential => whole as u64,
            Self::Gaussian => (whole * whole).div_ceil(start.into()) as u64,
        }
    }

    /// The rate as a double: five roundings for an exponential, nine for a Gaussian.
    pub(super) fn rate(self, scale: Ratio) -> f64 {
        let inverse = scale.denominator() as f64 / scale.numerator() as f64;
        match self {
            Self::Exponential => core::f64::consts::LOG2_E * inverse,
            Self::Gaussian => 0.5 * core::f64::consts::LOG2_E * inverse * inverse,
        }
    }
}

impl<L: Limbs> Density<L> {
    pub(super) fn new(shape: Shape, scale: Ratio, constants: &Constants<L>) -> Self {
        let limbs = constants.log2_e.limbs();
        // Less than one ulp too small.
        let inverse = Fixed::from_ratio_vartime(scale.denominator(), scale.numerator(), limbs);
        let (factor, factor_error) = match shape {
            Shape::Exponential => (inverse, 1),
            Shape::Gaussian => {
                let error = 2 * u128::from(inverse.integer()) + 4;
                (inverse.times(&inverse).shifted_right(1), error)
            }
        };
        // The errors of the factor times log2 e < 1.5, of log2 e times the factor, and of the product.
        let rate_error = 2 * factor_error + u128::from(factor.integer()) + 3;
        Self { shape, rate: factor.times(&constants.log2_e), rate_error }
    }

    /// Its shape.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Bounds of f(x), in a time that does not depend on x.
    pub(super) fn at(&self, x: u64, constants: &Constants<L>) -> Interval<L> {
        match self.shape {
            Shape::Exponential => self.power(x, 1, constants),
            Shape::Gaussian => self.power(x, x, constants),
        }
    }

    /// Bounds of exp(-slope k), where f(start + k) = f(start) exp(-slope k) `excess(k)`.
    pub(super) fn decay(&self, start: u64, k: u64, constants: &Constants<L>) -> Interval<L> {
        match self.shape {
            Shape::Exponential => self.power(k, 1, constants),
            Shape::Gaussian => self.power(k, 2 * start, constants),
        }
    }

    /// Bounds of the factor by which f falls beyond the decay.
    pub(super) fn excess(&self, k: u64, constants: &Constants<L>) -> Interval<L> {
        match self.shape {
            Shape::Exponential => Interval::exact(Fixed::from_integer(1, constants.log2_e.limbs())),
            Shape::Gaussian => self.power(k, k, constants),
        }
    }

    /// Bounds of `first` times f at the beginning of the first `count` bins, each from the one before by the ratio
    /// f(x + d) / f(x), where d is the width of the bin: 2^`exponent(bin)` units, which never fall. `ratio` is that of a unit,
    /// from 0 on. From a bin to the next of the same width the ratio of a Gaussian falls by a constant factor, f(d)^2. Two
    /// bins make one of twice the width, for which that factor is its fourth power.
    pub(super) fn at_bins(
        &self,
        count: usize,
        mut ratio: Interval<L>,
        first: Interval<L>,
        exponent: impl Fn(u32) -> u32,
    ) -> Vec<Interval<L>> {
        let mut value = first;
        let mut bend = (self.shape == Shape::Gaussian).then(|| ratio.times(&ratio));
        let bent = |ratio: &Interval<L>, bend: &Option<Interval<L>>| {
            bend.as_ref().map_or_else(|| ratio.clone(), |bend| ratio.times(bend))
        };
        let mut width = 0;
        let mut values = Vec::with_capacity(count);
        for bin in 0..count as u32 {
            while width < exponent(bin) {
                ratio = ratio.times(&bent(&ratio, &bend));
                bend = bend.map(|bend| bend.times(&bend)).map(|square| square.times(&square));
                width += 1;
            }
            let next = value.times(&ratio);
            values.push(core::mem::replace(&mut value, next));
            ratio = bent(&ratio, &bend);
        }
        values
    }

    /// Bounds of 2^(-rate a b).
    fn power(&self, a: u64, b: u64, constants: &Constants<L>) -> Interval<L> {
        let (k, v) = constants.exp2_neg(self.rate.clone().times_integer(a).times_integer(b));
        let limbs = v.limbs();
        // One more ulp for the shift. At 0 the function is 1, exactly.
        let (error, overflow) = (u128::from(a) * u128::from(b)).overflowing_mul(self.rate_error);
        assert!(!declassify(Reason::Overflow, overflow), "the error bound exceeds 128 bits");
        let error = error.saturating_add(ERROR_ULPS + 1);
        let value = v.shifted_right(k);
        let one = Fixed::from_integer(1, limbs);
        let zero = (a == 0) | (b == 0);
        Interval {
            low: one.clone().select(&value.clone().minus_ulps(error), zero),
            high: one.select(&value.plus_ulps(error), zero),
        }
    }
}

#[cfg(test)]
mod tests {
    use dpnoise_kernels::arch::trials::{BINS, Layout};

    use super::*;

    #[test]
    fn bounds_are_tighter_at_higher_precision_and_agree() {
        let scale = Ratio::new(10, 3).unwrap();
        let (first, wide) = (Constants::<Vec<u64>>::new(4), Constants::<Vec<u64>>::new(8));
        for shape in [Shape::Exponential, Shape::Gaussian] {
            for x in [0, 1, 2, 17, 100] {
                let rough = Density::new(shape, scale, &first).at(x, &first);
                let fine = Density::new(shape, scale, &wide).at(x, &wide);
                assert!(!fine.high.truncated(4).is_less(&rough.low));
                assert!(!rough.high.is_less(&fine.low.truncated(4)));
            }
        }
    }

    /// The chain of products and the direct evaluation must overlap.
    #[test]
    fn bins_follow_from_each_other() {
        let constants = Constants::first();
        for (shape, scale) in [(Shape::Exponential, 37), (Shape::Gaussian, 150)] {
            let density = Density::new(shape, Ratio::new(scale, 3).unwrap(), constants);
            for shift in [0, 2] {
                let one = Interval::exact(Fixed::from_integer(1, constants.limbs()));
                let unit = density.at(1 << shift, constants);
                let bins = density.at_bins(BINS, unit, one, |bin| Layout::bin_start(bin).1);
                for (bin, chained) in (0..).zip(bins) {
                    let direct = density.at(Layout::bin_start(bin).0 << shift, constants);
                    assert!(!direct.high.is_less(&chained.low) && !chained.high.is_less(&direct.low), "{shift} {bin}");
                    assert!(!chained.low.clone().plus_ulps(1 << 40).is_less(&chained.high), "still tight");
                }
            }
        }
    }
}
