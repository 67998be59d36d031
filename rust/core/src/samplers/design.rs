//! How a histogram proposal is laid out for a scale.
//!
//! Everything here is a mathematical function of the scale and the [`Design`], independent of machine and precision;
//! `discrete_laplace.md` gives the formulas.

use crate::arch::trials::{BINS, COLUMN_BITS, Layout, TAIL, Tables};
use crate::arith::interval::Interval;
use crate::params::Ratio;

/// The free choices of a proposal. Every design samples the same distribution; they differ in speed, and in how often
/// the rare paths are taken. [`Design::for_scale`] is what the library uses, the others are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// How the bins are laid out.
    pub layout: Layout,
    /// Weights are multiples of 2^(32 - weight_bits), so that only the upper bits of the bin word matter.
    pub weight_bits: u32,
    /// The fast comparison allows for a relative error of 2^-eta_bits.
    pub eta_bits: u32,
}

/// The fast comparison allows for a relative error of 2^-29, so that a trial is left open with a probability of at most
/// 4 * 2^-29 = 2^-27; the error that is proved is below 2^-40.
const ETA_BITS: u32 = 29;

impl Design {
    /// The design for a scale: the finest bins whose tail begins at 44.5 scales or later, so that a value in the tail has
    /// a probability of at most exp(-44.5) < 2^-64.
    #[must_use]
    pub fn for_scale(scale: Ratio) -> Self {
        let layout = if reaches(63, scale) {
            Layout::Single
        } else {
            let mut shift = 0;
            while !reaches(216 << shift, scale) {
                shift += 1;
            }
            Layout::Graded { shift }
        };
        Self { layout, weight_bits: 32, eta_bits: ETA_BITS }
    }
}

/// Whether `tail >= 44.5 scale`.
fn reaches(tail: u128, scale: Ratio) -> bool {
    // With n = q d + r the claim 89 n <= 2 tail d is 89 r <= (2 tail - 89 q) d, and parts are below 2^120.
    let (whole, rest) = (scale.numerator() / scale.denominator(), scale.numerator() % scale.denominator());
    (2 * tail).checked_sub(89 * whole).is_some_and(|slack| 89 * rest <= slack.min(89) * scale.denominator())
}

/// Builds the tables for a target f(x) = 2^(-rate x) with `rate` = log2(e)/scale, or `None` when the precision of the
/// given powers of f does not decide them.
///
/// `power(d)` must give bounds of f(d); it is called for a few d only.
pub(super) fn tables(design: Design, scale: Ratio, power: impl Fn(u64) -> Interval) -> Option<Tables> {
    let folded = matches!(design.layout, Layout::Single | Layout::Graded { shift: 0 });
    let shift = match design.layout {
        Layout::Single => 0,
        Layout::Graded { shift } => shift,
    };
    // The relative weights m 2^e f(x_h): each the one before times f(width), where the width has three values at most.
    let widths = [0, 2, 3].map(|e| (e, power(1 << (shift + e))));
    let mut f = power(0);
    let mut relative = Vec::with_capacity(BINS);
    for bin in 0..BINS as u32 {
        let (_, e) = design.layout.bin_start(bin);
        let copies = if folded && bin > 0 { 2 } else { 1 };
        let size = if bin as usize == TAIL { tail_bound(scale, shift) } else { 1 << e };
        relative.push(f.clone().times_integer(copies * size));
        let (_, step) = widths.iter().find(|(width, _)| *width == e)?;
        f = f.times(step);
    }
    let total = 1u64 << design.weight_bits;
    let sum = relative.iter().skip(1).fold(relative[0].clone(), Interval::plus);
    // Half a unit of slack keeps the quotient off a whole number when the sum is 1 and next to nothing.
    let amplitude = sum.times_integer(2).times_within_vartime(2 * (total - BINS as u64) - 1)?;
    let mut weights = relative.into_iter().map(|w| w.times_integer(amplitude).ceiling()).collect::<Option<Vec<_>>>()?;
    // Rounding up added less than 1 to each of the 64 weights, so the sum is still at most the total.
    weights[0] += total - weights.iter().sum::<u64>();
    let unit = 32 - design.weight_bits;
    let weights: [u32; BINS] = std::array::from_fn(|bin| (weights[bin] << unit) as u32);
    Some(Tables {
        layout: design.layout,
        alias: alias_table(&weights),
        weights,
        amplitude: amplitude << unit,
        folded,
        rate: core::f64::consts::LOG2_E * (scale.denominator() as f64 / scale.numerator() as f64),
        window: 2.0 * 0.5f64.powi(design.eta_bits as i32),
    })
}

/// A whole number that is at least 1 / (2^shift (1 - exp(-1/scale))), since 1 - exp(-1/b) >= 1 / (b + 1).
pub(super) fn tail_bound(scale: Ratio, shift: u32) -> u64 {
    let (n, d) = (scale.numerator(), scale.denominator());
    ((n + d).div_ceil(d).div_ceil(1 << shift)) as u64
}

/// The alias table (Walker 1977, Vose 1991) of weights that sum to 2^32, in whole numbers.
///
/// A column that is short of its 2^26 is topped up by one that has too much; last come, first served, so that the table
/// is a function of the weights alone.
fn alias_table(weights: &[u32; BINS]) -> [u32; BINS] {
    const CAPACITY: u64 = 1 << COLUMN_BITS;
    let mut rest = weights.map(u64::from);
    let mut table = [0; BINS];
    let (mut short, mut long): (Vec<usize>, Vec<usize>) = (0..BINS).partition(|&bin| rest[bin] < CAPACITY);
    while let Some(bin) = short.pop() {
        // What is missing in short columns is too much in long ones, as the weights sum to 64 capacities.
        let donor = *long.last().expect("a donor is left");
        table[bin] = (rest[bin] as u32) << 6 | donor as u32;
        rest[donor] -= CAPACITY - rest[bin];
        if rest[donor] < CAPACITY {
            long.pop();
            short.push(donor);
        }
    }
    for bin in long {
        table[bin] = bin as u32; // a full column: both ways lead to it
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_begins_at_44_and_a_half_scales() {
        let layout = |numerator, denominator| Design::for_scale(Ratio::new(numerator, denominator).unwrap()).layout;
        assert_eq!(layout(1, 1000), Layout::Single);
        assert_eq!(layout(126, 89), Layout::Single);
        assert_eq!(layout(126 << 60, (89 << 60) - 1), Layout::Graded { shift: 0 });
        assert_eq!(layout(432, 89), Layout::Graded { shift: 0 });
        assert_eq!(layout(433, 89), Layout::Graded { shift: 1 });
        assert_eq!(layout(1 << 40, 1), Layout::Graded { shift: 38 });
        assert_eq!(layout(1 << 44, 1), Layout::Graded { shift: 42 });
    }

    #[test]
    fn the_alias_table_gives_every_bin_its_weight() {
        let mut weights = [1u32; BINS];
        for heavy in [0, 5, 63] {
            let mut lopsided = weights;
            lopsided[heavy] = u32::MAX - 62;
            assert_exact(&lopsided);
        }
        weights = std::array::from_fn(|bin| (bin as u32 + 1) << 20);
        weights[40] += (u32::MAX - weights.iter().sum::<u32>()) + 1;
        assert_exact(&weights);
        assert_exact(&[1 << COLUMN_BITS; BINS]);
    }

    fn assert_exact(weights: &[u32; BINS]) {
        let mut words = [0u64; BINS];
        for (column, entry) in alias_table(weights).into_iter().enumerate() {
            words[column] += u64::from(entry >> 6);
            words[(entry & 63) as usize] += (1 << COLUMN_BITS) - u64::from(entry >> 6);
        }
        assert_eq!(words, weights.map(u64::from));
    }
}
