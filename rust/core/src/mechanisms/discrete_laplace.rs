//! The discrete Laplace mechanism (Ghosh, Roughgarden and Sundararajan 2009, "Universally utility-maximizing privacy
//! mechanisms"; also called the geometric mechanism).
//!
//! For integer values whose L1 sensitivity is at most D it releases x + n, n discrete Laplace with scale D/epsilon. The
//! release is epsilon-differentially private: for neighbours with |x - x'|_1 <= D every output y has
//! P(x -> y) / P(x' -> y) = exp((|y - x'|_1 - |y - x|_1) epsilon / D) <= e^epsilon, and adding with saturation is a
//! function of the exact sum.

use dpnoise_kernels::arch::columns as kernel;
use rand_core::TryCryptoRng;

use super::additive::{Additive, Calibration, Integers, OnGrid};
use super::column::Column;
use super::noise_kind::{EPSILON, NoiseKind, WHOLE_SENSITIVITY};
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::params::{Epsilon, Ratio, Scale};
use crate::rng::{SecureRng, Wiped};
use crate::samplers;

/// Adds discrete Laplace noise to integers.
///
/// ```
/// use dpnoise_core::mechanisms::DiscreteLaplace;
/// let mut counts = [120, 5, 0];
/// DiscreteLaplace::new(1.0, 1)?.release(&mut counts, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub type DiscreteLaplace = Additive<Epsilon, Integers>;

impl DiscreteLaplace {
    /// The mechanism that spends `epsilon` on values whose L1 sensitivity is at most `sensitivity`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an epsilon that is not positive and finite, a sensitivity of 0, or a scale
    /// sensitivity/epsilon outside [2^-40, 2^40].
    pub fn new(epsilon: f64, sensitivity: u64) -> Result<Self, Error> {
        Self::calibrated(Epsilon::new(epsilon)?, sensitivity, Integers)
    }

    /// Releases the number of `rows` that are not 0, with noise.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn release_count(&self, rows: &[u8]) -> Result<i64, Error> {
        self.release_count_with(rows, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`DiscreteLaplace::release_count`].
    pub fn release_count_with<R: TryCryptoRng + ?Sized>(&self, rows: &[u8], rng: &mut R) -> Result<i64, Error> {
        // In blocks that a byte can count, since the compiler then adds up whole vectors of bytes.
        let some = |rows: &[u8]| rows.iter().fold(0u8, |count, &row| count.wrapping_add((row != 0).into()));
        let mut count = [rows.chunks(255).map(some).fold(0i64, |count, more| count.wrapping_add(more.into()))];
        self.release_with(&mut count, rng)?;
        Ok(count[0])
    }

    /// Releases how many of `values` are in each bin: from one of the `edges` up to, but without, the next; the last bin has
    /// its upper edge, too. Values outside, and NaNs, are in none. Each value is read once.
    ///
    /// The time is that of a comparison of each value with each edge, whatever they are.
    ///
    /// # Errors
    /// [`Error::Parameter`] for edges that are not two or more numbers, each above the one before; [`Error::Randomness`].
    pub fn release_bins<'a>(&self, edges: &[f64], values: impl Into<Column<'a>>) -> Result<Vec<i64>, Error> {
        self.release_bins_with(edges, values, &mut SecureRng::new()?)
    }

    /// The same with noise from `rng`.
    ///
    /// # Errors
    /// As for [`DiscreteLaplace::release_bins`].
    pub fn release_bins_with<'a, R: TryCryptoRng + ?Sized>(
        &self,
        edges: &[f64],
        values: impl Into<Column<'a>>,
        rng: &mut R,
    ) -> Result<Vec<i64>, Error> {
        if edges.len() < 2 || edges.iter().any(|edge| edge.is_nan()) || !edges.is_sorted_by(|low, high| low < high) {
            let allowed = "two or more numbers, each above the one before";
            return Err(Error::parameter("edges", format!("{edges:?}"), allowed));
        }
        let instructions = crate::instruction_set::current()?;
        // What is above the number before an edge is not below the edge.
        let mut bounds: Vec<f64> = edges.iter().map(|edge| edge.next_down()).collect();
        bounds[edges.len() - 1] = edges[edges.len() - 1];
        let mut above = Wiped::try_new(edges.len())?;
        values.into().for_each_block(f64::NAN, |_, block| {
            kernel::count_above(instructions, &bounds, block, &mut above);
            if edges[0] == f64::NEG_INFINITY {
                // Nothing is below it.
                let is_lowest = |x: &f64| i64::from(x.to_bits() == f64::NEG_INFINITY.to_bits());
                above[0] = above[0].wrapping_add(block.iter().map(is_lowest).fold(0, i64::wrapping_add));
            }
        });
        let mut bins: Vec<i64> = above.windows(2).map(|pair| pair[0].wrapping_sub(pair[1])).collect();
        self.release_with(&mut bins, rng)?;
        Ok(bins)
    }
}

impl NoiseKind for DiscreteLaplace {
    const NAME: &'static str = "discrete_laplace";
    const PARAMETERS: &'static [Parameter] = &[EPSILON, WHOLE_SENSITIVITY];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.real("epsilon")?, arguments.integer("sensitivity")?)
    }
}

impl Calibration<Integers> for Epsilon {
    type Noise = samplers::DiscreteLaplace;
    type Sensitivity = u64;

    fn depends_on_count(&self, _sensitivity: u64) -> bool {
        false
    }

    fn noise(&self, sensitivity: u64, _: &Integers, _: usize) -> Result<OnGrid<Self::Noise, Integers>, Error> {
        let steps = Ratio::new(sensitivity.into(), 1)
            .ok_or_else(|| Error::parameter("sensitivity", sensitivity, "a positive integer"))?;
        let scale = Ratio::from_f64(self.get())
            .and_then(|epsilon| steps.checked_div(epsilon))
            .and_then(|ratio| Scale::new(ratio).ok())
            .ok_or_else(|| {
                let allowed =
                    format!("such that sensitivity/epsilon is from 2**-40 to 2**40 (sensitivity is {sensitivity})");
                Error::parameter("epsilon", format!("{:?}", self.get()), allowed)
            })?;
        Ok(OnGrid { steps: samplers::DiscreteLaplace::new(scale), grid: () })
    }
}

#[cfg(test)]
mod tests {
    use dpnoise_kernels::arch::saturating::add_saturating;

    use super::*;
    use crate::instruction_set::InstructionSet;
    use crate::rng::{ScriptedRng, SeededRng};
    use crate::samplers::Sampler;

    #[test]
    fn bad_parameters_are_named() {
        for (epsilon, sensitivity, expected) in [
            (0.0, 1, "epsilon must be positive and finite, got 0.0"),
            (f64::NAN, 1, "epsilon must be positive and finite, got NaN"),
            (1.0, 0, "sensitivity must be a positive integer, got 0"),
            (
                1e-13,
                1,
                "epsilon must be such that sensitivity/epsilon is from 2**-40 to 2**40 (sensitivity is 1), got 1e-13",
            ),
        ] {
            assert_eq!(DiscreteLaplace::new(epsilon, sensitivity).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_count_is_of_all_rows_that_are_not_zero() {
        let mechanism = DiscreteLaplace::new(0.5, 1).unwrap();
        for (rows, count) in [(vec![], 0), (vec![0, 1, 2, 255, 0], 3), (vec![1; 100_003], 100_003)] {
            let seeded = || SeededRng::new(7).unwrap();
            let mut expected = [count];
            mechanism.release_with(&mut expected, &mut seeded()).unwrap();
            assert_eq!(mechanism.release_count_with(&rows, &mut seeded()), Ok(expected[0]));
        }
        assert!(mechanism.release_count_with(&[1], &mut ScriptedRng::new([])).is_err());
    }

    /// By the definition, with values at, just below and just above edges, that are as far apart as can be, and with
    /// numbers of edges and values that fill no whole number of groups and vectors.
    #[test]
    fn bins_have_their_lower_edges_and_the_last_one_both() {
        const INFINITY: f64 = f64::INFINITY;
        let mechanism = DiscreteLaplace::new(1e6, 1).unwrap();
        let many: Vec<f64> = (0..97).map(|i| f64::from(i * i) / 7.0 - 300.0).collect();
        let all_edges: [&[f64]; 7] = [
            &[0.0, 1.0],
            &[-0.0, 5e-324, 1e300],
            &[f64::MIN, 0.1, 0.3, 7.3, f64::MAX],
            &[-INFINITY, 0.1],
            &[-INFINITY, f64::MIN, INFINITY],
            &[0.0, 18.0, 65.0, INFINITY],
            &many,
        ];
        for edges in all_edges {
            let near = edges.iter().flat_map(|edge| [edge.next_down(), *edge, edge.next_up()]);
            let mut values: Vec<f64> = near.chain([0.0, -0.0, 1e308, INFINITY, -INFINITY, f64::NAN]).collect();
            values = values.repeat(2100 / values.len());
            for length in [0, 1, 7, 8, 1024, 1025, values.len()] {
                let values = &values[..length.min(values.len())];
                let last = edges.len() - 2;
                let is_in =
                    |bin: usize, x: f64| edges[bin] <= x && (x < edges[bin + 1] || bin == last && x == edges[bin + 1]);
                let expected: Vec<i64> =
                    (0..=last).map(|bin| values.iter().filter(|&&x| is_in(bin, x)).count() as i64).collect();
                assert_eq!(mechanism.release_bins(edges, values), Ok(expected), "{edges:?} {length}");
            }
        }
        for edges in [&[][..], &[1.0], &[1.0, 1.0], &[0.0, f64::NAN], &[f64::NAN, 1.0]] {
            let refused = mechanism.release_bins(edges, &[0.5]).unwrap_err().to_string();
            assert!(refused.starts_with("edges must be two or more numbers, each above the one before, got ["));
        }
    }

    #[test]
    fn the_noise_is_added_and_saturates() {
        let mechanism = DiscreteLaplace::new(0.5, 3).unwrap();
        let noise = mechanism.noise(3).unwrap();
        assert_eq!(noise.scale().ratio(), Ratio::new(6, 1).unwrap());
        let mut samples = [0; 3];
        noise.fill_with(&mut samples, &mut SeededRng::new(1).unwrap()).unwrap();
        let mut values = [10, 20, 30];
        mechanism.release_with(&mut values, &mut SeededRng::new(1).unwrap()).unwrap();
        assert_eq!(values, [10 + samples[0], 20 + samples[1], 30 + samples[2]]);
        assert!(mechanism.release_with(&mut values, &mut ScriptedRng::new([0; 100])).is_err());
        assert_eq!(values, [0; 3], "no value is left behind when the randomness fails");
    }

    #[test]
    fn sums_saturate_on_every_instruction_set() {
        const EDGES: [i64; 9] = [i64::MIN, i64::MIN + 1, -7, -1, 0, 1, 7, i64::MAX - 1, i64::MAX];
        let pairs: Vec<(i64, i64)> = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))).collect();
        for instructions in InstructionSet::available() {
            for length in 0..pairs.len() {
                let (mut values, noise): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
                add_saturating(instructions, &mut values, &noise[..length]);
                for (i, (&(a, b), &sum)) in pairs.iter().zip(&values).enumerate() {
                    assert_eq!(sum, if i < length { a.saturating_add(b) } else { a }, "{}", instructions.name());
                }
            }
        }
    }
}
