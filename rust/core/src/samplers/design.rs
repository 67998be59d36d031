//! The layout of a histogram proposal for a scale.
//!
//! Everything here is a mathematical function of the scale and the [`Design`], independent of machine and precision;
//! `discrete_laplace.md` gives the formulas.

use dpnoise_kernels::arch::trials::{BINS, COLUMN_BITS, Layout, Sides, TAIL, Tables};
use dpnoise_kernels::arith::exp::Constants;
use dpnoise_kernels::arith::fixed::{Fixed, Limbs};
use dpnoise_kernels::arith::interval::Interval;
use dpnoise_kernels::arith::power_of_two;

use super::density::{Density, Shape};
use crate::params::Ratio;

/// The free parameters of a proposal. Every design samples the same distribution; designs differ in speed, and in the
/// frequency of the rare paths. The library chooses a design by the scale; others are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// The layout of the bins.
    pub layout: Layout,
    /// Weights are multiples of 2^(32 - weight_bits), so that only the upper bits of the bin word matter.
    pub weight_bits: u32,
    /// The fast comparison allows for a relative error of 2^-eta_bits.
    pub eta_bits: u32,
}

/// The fast comparison allows for a relative error of 2^-29, so that a trial is left open with a probability of about
/// 4 * 2^-29 = 2^-27 at most; the error that is proved is below 2^-40.
const ETA_BITS: u32 = 29;

impl Design {
    /// The design for a scale: the finest bins whose tail begins where the density is below 2^-64 of its maximum (44.5
    /// scales for an exponential, 9.45 for a Gaussian).
    pub(super) fn for_scale(shape: Shape, scale: Ratio) -> Self {
        let mut shift = 0;
        while !reaches(shape, 216 << shift, scale) {
            shift += 1;
        }
        Self { layout: Layout { shift }, weight_bits: 32, eta_bits: ETA_BITS }
    }
}

/// Whether the density is below 2^-64 at `tail`: whether `tail >= p/q scale`.
pub(super) fn reaches(shape: Shape, tail: u128, scale: Ratio) -> bool {
    // With n = w d + r the claim p n <= q tail d is p r <= (q tail - p w) d, and parts are below 2^120.
    let (p, q) = shape.reach();
    let (whole, rest) = (scale.numerator() / scale.denominator(), scale.numerator() % scale.denominator());
    (q * tail).checked_sub(p * whole).is_some_and(|slack| p * rest <= slack.min(p) * scale.denominator())
}

/// Builds the tables of a proposal for a density, or `None` when the precision does not decide them.
pub(super) fn tables<L: Limbs>(
    design: Design,
    shape: Shape,
    scale: Ratio,
    both_signs: bool,
    constants: &Constants<L>,
) -> Option<Tables> {
    let Design { layout, weight_bits, eta_bits } = design;
    let sides = match (both_signs, layout.shift) {
        (false, _) => Sides::One,
        (true, 0) => Sides::Folded,
        (true, _) => Sides::Two,
    };
    // The relative weights g = m 2^e f(x_h), for the tail m B f(x_T).
    let tail = Layout::bin_start(TAIL as u32).0 << layout.shift;
    let tail_size = (shape.inverse_slope(scale, tail) + 1).div_ceil(1 << layout.shift);
    let density = Density::new(shape, scale, constants);
    let one = Interval::exact(Fixed::from_integer(1, constants.limbs()));
    let starts = density.at_bins(BINS, density.at(1 << layout.shift, constants), one, |bin| Layout::bin_start(bin).1);
    let relative = starts.into_iter().enumerate().map(|(bin, f)| {
        let size = if bin == TAIL { tail_size } else { 1 << Layout::bin_start(bin as u32).1 };
        f.times_integer(size << u32::from(sides == Sides::Folded && bin > 0))
    });
    let relative: Vec<Interval<L>> = relative.collect();
    let total = 1u64 << weight_bits;
    let sum = relative.iter().skip(1).fold(relative[0].clone(), Interval::plus);
    // Half a unit of slack keeps the quotient from being an integer if the sum is 1 and a tiny remainder.
    let amplitude = sum.times_integer(2).times_within_vartime(2 * (total - BINS as u64) - 1)?;
    let mut weights = relative.into_iter().map(|w| w.times_integer(amplitude).ceiling()).collect::<Option<Vec<_>>>()?;
    // Rounding up added less than 1 to each of the 64 weights, so the sum is still at most the total.
    weights[0] += total - weights.iter().sum::<u64>();
    let unit = 32 - weight_bits;
    let weights: [u32; BINS] = std::array::from_fn(|bin| (weights[bin] << unit) as u32);
    Some(Tables {
        layout,
        alias: alias_table(&weights.map(u64::from), 1 << COLUMN_BITS)
            .map(|(own, alias)| (own as u32) << 6 | u32::from(alias)),
        weights,
        amplitude: amplitude << unit,
        sides,
        square: shape == Shape::Gaussian,
        rate: shape.rate(scale),
        window: power_of_two(1 - eta_bits as i32),
    })
}

/// The alias table (Walker 1977, Vose 1991) of weights that sum to 64 capacities, in whole numbers: for each column how many
/// of its words lead to the column's entry, and the entry that the others lead to.
/// A column below its capacity is filled from a column above it, in last-in-first-out order, which makes the table a
/// function of the weights alone.
pub(super) fn alias_table(weights: &[u64; BINS], capacity: u64) -> [(u64, u8); BINS] {
    let mut rest = *weights;
    let mut table = std::array::from_fn(|bin| (0, bin as u8)); // a full column: both ways lead to it
    let [mut short, mut long] = [(); 2].map(|()| Vec::with_capacity(BINS));
    (0..BINS).for_each(|bin| if rest[bin] < capacity { &mut short } else { &mut long }.push(bin));
    while let Some(bin) = short.pop() {
        // The deficit of short columns equals the excess of long ones.
        let donor = *long.last().expect("a donor is left");
        table[bin] = (rest[bin], donor as u8);
        rest[donor] -= capacity - rest[bin];
        if rest[donor] < capacity {
            long.pop();
            short.push(donor);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::params::Scale;
    use dpnoise_kernels::arith::exp::FIRST_LIMBS;

    #[test]
    fn the_tail_begins_where_it_should() {
        let layout = |numerator, denominator| {
            Design::for_scale(Shape::Exponential, Ratio::new(numerator, denominator).unwrap()).layout
        };
        assert_eq!(layout(1, 1000), Layout { shift: 0 });
        assert_eq!(layout(432, 89), Layout { shift: 0 });
        assert_eq!(layout(433, 89), Layout { shift: 1 });
        assert_eq!(layout(1 << 40, 1), Layout { shift: 38 });
        assert_eq!(layout(1 << 52, 1), Layout { shift: 50 });
        let layout = |numerator, denominator| {
            Design::for_scale(Shape::Gaussian, Ratio::new(numerator, denominator).unwrap()).layout
        };
        assert_eq!(layout(20, 3), Layout { shift: 0 });
        assert_eq!(layout(1 << 44, 1), Layout { shift: 40 });
    }

    #[test]
    fn the_alias_table_gives_every_bin_its_weight() {
        for capacity in [1 << COLUMN_BITS, 1 << 56] {
            for heavy in [0, 5, 63] {
                let mut lopsided = [1; BINS];
                lopsided[heavy] = 64 * capacity - 63;
                assert_exact(&lopsided, capacity);
            }
            let mut weights = std::array::from_fn(|bin| (bin as u64 + 1) * capacity / 64);
            weights[40] += 64 * capacity - weights.iter().sum::<u64>();
            assert_exact(&weights, capacity);
            assert_exact(&[capacity; BINS], capacity);
        }
    }

    fn assert_exact(weights: &[u64; BINS], capacity: u64) {
        let mut words = [0; BINS];
        for (column, (own, alias)) in alias_table(weights, capacity).into_iter().enumerate() {
            assert!(own < capacity);
            words[column] += own;
            words[usize::from(alias)] += capacity - own;
        }
        assert_eq!(&words, weights);
    }

    /// Scales of every size up to 2^`largest`, some with long parts.
    fn scales(smallest: i32, largest: i32) -> impl Strategy<Value = Ratio> {
        let double = (smallest..=largest, 1.0..2.0).prop_map(|(exponent, x)| Ratio::from_f64(x * 2f64.powi(exponent)));
        let part = || (0..120u32, any::<u128>()).prop_map(|(bits, part)| part >> (127 - bits) | 1);
        let fraction = (part(), part()).prop_map(|(numerator, denominator)| Ratio::new(numerator, denominator));
        let in_range = move |ratio: &Ratio| {
            Scale::on_fine_grid(*ratio).is_some()
                && (2f64.powi(smallest)..=2f64.powi(largest)).contains(&ratio.to_f64())
        };
        prop_oneof![double, fraction].prop_filter_map("a scale", move |ratio| ratio.filter(in_range))
    }

    fn shapes_and_scales() -> impl Strategy<Value = (Shape, bool, Ratio)> {
        prop_oneof![
            (Just(Shape::Exponential), any::<bool>(), scales(-40, 52)),
            (Just(Shape::Gaussian), Just(true), scales(-20, 44)),
        ]
    }

    /// Twice the precision that made the tables.
    static WIDE: LazyLock<Constants> = LazyLock::new(|| Constants::new(2 * FIRST_LIMBS));

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        /// What the proof of exactness rests on, at any scale.
        #[test]
        fn the_tables_are_sound((shape, both_signs, scale) in shapes_and_scales()) {
            let design = Design::for_scale(shape, scale);
            let tables = tables(design, shape, scale, both_signs, &WIDE).unwrap();
            let whole = |n: u64| Fixed::from_integer(n, 2 * FIRST_LIMBS);
            let at_most = |a: &Fixed, b: &Fixed| !b.is_less(a);

            // The tail begins where the density is below 2^-64, and not a bin later than that.
            let (shift, start) = (design.layout.shift, Layout::bin_start(TAIL as u32).0 << design.layout.shift);
            prop_assert!(reaches(shape, start.into(), scale));
            prop_assert!(shift == 0 || !reaches(shape, 216 << (shift - 1), scale));

            prop_assert_eq!(tables.weights.iter().map(|&weight| u64::from(weight)).sum::<u64>(), 1 << 32);
            assert_exact(&tables.weights.map(u64::from), 1 << COLUMN_BITS);

            // C m 2^e f(x) <= W, so that acceptance is a probability; and W is not larger than it must be.
            let density = Density::new(shape, scale, &WIDE);
            let copies = |bin: usize| u32::from(tables.sides == Sides::Folded && bin > 0);
            let masses: Vec<Interval> = (0..TAIL).map(|bin| {
                let (units, e) = Layout::bin_start(bin as u32);
                density.at(units << shift, &WIDE).times_integer(1 << (e + copies(bin)))
            }).collect();
            for (bin, mass) in masses.iter().enumerate() {
                let (mass, weight) = (mass.clone().times_integer(tables.amplitude), tables.weights[bin].into());
                prop_assert!(at_most(&mass.high, &whole(weight)), "bin {}", bin);
                prop_assert!(bin == 0 || mass.low.plus(&whole(1)).integer() >= weight, "bin {}", bin);
            }
            // The same for the tail, whose values beyond its start have the geometric sum 1 / (1 - q(1)) at most.
            let kept = density.at(start, &WIDE).times_integer(tables.amplitude << copies(TAIL));
            let mass = density.decay(start, 1, &WIDE).complement().times_integer(1 << shift);
            let room = mass.times_integer(tables.weights[TAIL].into());
            prop_assert!(at_most(&kept.high, &room.low));
            prop_assert_eq!(tables.weights[TAIL], 1, "the tail is proposed with a probability of 2^-32");
        }

        /// Tables are a function of the scale, not of the precision that they are computed at.
        #[test]
        fn precision_does_not_show((shape, both_signs, scale) in shapes_and_scales()) {
            let design = Design::for_scale(shape, scale);
            let wide = tables(design, shape, scale, both_signs, &WIDE).unwrap();
            // A weight is left open with a probability below 2^-30.
            let short = tables(design, shape, scale, both_signs, Constants::short()).unwrap();
            prop_assert_eq!((short.alias, short.weights, short.amplitude), (wide.alias, wide.weights, wide.amplitude));
        }
    }
}
