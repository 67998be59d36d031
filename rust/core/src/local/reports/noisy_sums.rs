//! Reports that are numbers with discrete noise, which the collector sums.
//!
//! A number from -1 to 1 is encoded as a multiple of 1 / `unit`, so that all arithmetic is on integers. Two inputs
//! differ by at most 2 `unit` in the L1 norm, so Laplace noise of scale t = 2 `unit` / epsilon makes a report
//! epsilon-locally differentially private: exactly epsilon, since the noise is exact. `families/gaussian_mean.rs` has
//! the proof for Gaussian noise. The noise itself is not truncated: a noisy number is clamped to -`bound` ... `bound`,
//! which is post-processing. Clamping changes it with a probability below e^-64, and keeps a single dishonest client
//! from adding more than 64 scales of Laplace noise, or 12 sigmas. The noisy number plus `bound` is sent in four bytes;
//! if that is above 2 `bound`, the report is malformed.
//!
//! `unit` is the largest power of two up to 2^20 with which the scale is at most 2^21, or sigma at most 2^24: so a sum
//! over 2^35 reports fits into a counter, and rounding to 1 / `unit` is negligible beside the noise.

use core::hint::black_box;
use core::mem;

use dpnoise_kernels::memory::zeroed;
use rand_core::TryCryptoRng;

use super::Reports;
use super::grid::{ROUNDING_BYTES, round_at_random};
use super::numbers::OUT_OF_RANGE;
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::local::chance::likelihood::check_epsilon;
use crate::local::chance::mixture::CHUNK;
use crate::local::estimate::Law;
use crate::local::spec::Field;
use crate::params::{Ratio, Scale};
use crate::rng::{Wiped, fill_bytes};
use crate::samplers::IntegerNoise;
use crate::samplers::{DiscreteLaplace, Sampler};

/// The bytes of a number.
pub(crate) const NUMBER_BYTES: usize = 4;

/// The binary logarithm of the largest scale of the noise.
const MAX_SCALE_LOG2: i32 = 21;

/// The scales between the largest honest number without noise and the bound.
const SCALES: u32 = 64;

/// The largest number of units, as a power of two.
pub(crate) const MAX_UNIT_LOG2: u32 = 20;

/// The random bits of a rounded number: its noise takes about as many as its rounding.
pub(crate) const ROUNDED_BITS: usize = 8 * 2 * ROUNDING_BYTES;

/// The encoding of numbers with noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoisySums {
    unit: u32,
    bound: u32,
    columns: u32,
}

impl NoisySums {
    /// Reports of `columns` numbers with Laplace noise for an epsilon; two inputs differ by at most 2 in the L1 norm.
    pub(crate) fn with_laplace(columns: u32, epsilon: f64) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        // epsilon is a normal double: its exponent is the integer part of its binary logarithm.
        let log2 = (epsilon.to_bits() >> 52) as i32 - 1023;
        let unit = 1u32 << (MAX_SCALE_LOG2 - 1 + log2.min(0));
        let scale = (2.0 * f64::from(unit) / epsilon).ceil() as u32;
        Ok(Self::new(columns, unit, SCALES * scale))
    }

    /// Reports of `columns` numbers, each clamped at `reach` steps beyond -1 and 1.
    pub(crate) fn new(columns: u32, unit: u32, reach: u32) -> Self {
        Self { unit, bound: unit + reach, columns }
    }

    /// The integer that encodes 1.
    #[must_use]
    pub fn unit(self) -> u32 {
        self.unit
    }

    /// The multiples of 1 / unit from -1 to 1.
    pub(crate) fn positions(self) -> u32 {
        2 * self.unit + 1
    }

    /// The largest magnitude of a noisy number, to which it is clamped.
    #[must_use]
    pub fn bound(self) -> u32 {
        self.bound
    }

    /// The largest number that is sent.
    fn largest(self) -> u32 {
        2 * self.bound
    }

    /// Its part of a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        vec![("bound", self.bound.into()), ("unit", self.unit.into())]
    }

    /// The Laplace noise for an epsilon.
    pub(crate) fn laplace(self, epsilon: f64) -> DiscreteLaplace {
        DiscreteLaplace::new(self.scale(epsilon))
    }

    fn scale(self, epsilon: f64) -> Scale {
        let steps = Ratio::new(2 * u128::from(self.unit), 1);
        let scale = steps.zip(Ratio::from_f64(epsilon)).and_then(|(steps, epsilon)| steps.checked_div(epsilon));
        scale
            .and_then(|scale| Scale::new(scale).ok())
            .expect("from 2^-5 to 2^21, with a denominator of 53 bits at most")
    }

    /// How counts follow from sums of numbers with Laplace noise.
    pub(crate) fn law(self, epsilon: f64) -> Law {
        Law::Sums { unit: self.unit, offset: self.bound, variance: self.variance(epsilon) }
    }

    /// The variance of Laplace noise, divided by the square of the unit.
    pub(crate) fn variance(self, epsilon: f64) -> f64 {
        let unit = f64::from(self.unit);
        let sinh = (epsilon / (4.0 * unit)).sinh() * unit;
        0.5 / (sinh * sinh)
    }

    /// Fills `out`, which begins at byte `first` of all reports, with numbers from -1 to 1, rounded at random and with
    /// noise. For a chunk, `rng` gives the words that round, then the noise.
    pub(crate) fn fill_rounded<R: TryCryptoRng + ?Sized>(
        self,
        noise: &IntegerNoise,
        rng: &mut R,
        values: &[f64],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let first = first / NUMBER_BYTES;
        let mut words = Wiped::new((out.len() / NUMBER_BYTES).min(CHUNK) * ROUNDING_BYTES);
        self.fill(noise, rng, out, |rng, at, numbers| {
            let words = &mut words[..numbers.len() * ROUNDING_BYTES];
            fill_bytes(rng, words)?;
            let values = &values[first + at..];
            for ((number, &value), &word) in numbers.iter_mut().zip(values).zip(words.as_chunks().0) {
                let position = round_at_random(value, self.positions(), u64::from_le_bytes(word));
                *number = i64::from(position).wrapping_sub(self.unit.into());
            }
            Ok(())
        })
    }

    /// Fills `out` with numbers: `exact(rng, at, numbers)` writes the exact ones from index `at` on to a private
    /// buffer, where noise is added to them.
    pub(crate) fn fill<R, E>(self, noise: &IntegerNoise, rng: &mut R, out: &mut [u8], mut exact: E) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
        E: FnMut(&mut R, usize, &mut [i64]) -> Result<(), Error>,
    {
        let numbers = out.as_chunks_mut::<NUMBER_BYTES>().0;
        let mut private = Wiped::new(2 * numbers.len().min(CHUNK));
        let (bound, most, sign) = (i64::from(self.bound), 2 * i64::from(self.bound), black_box(i64::BITS - 1));
        for (index, out) in numbers.chunks_mut(CHUNK).enumerate() {
            let (sums, added) = private[..2 * out.len()].split_at_mut(out.len());
            exact(rng, index * CHUNK, sums)?;
            noise.fill_with(added, rng)?;
            for ((out, &sum), &added) in out.iter_mut().zip(&*sums).zip(&*added) {
                let number = sum.wrapping_add(added).wrapping_add(bound);
                *out = (clamp(number, most, sign) as u32).to_le_bytes();
            }
        }
        Ok(())
    }
}

/// The number, but not below 0 and not above `most`; `sign` is 63. The compiler must not know that: what it recognises as
/// a comparison is a branch where it has no vectors.
fn clamp(number: i64, most: i64, sign: u32) -> i64 {
    let from_most = (number & !number.wrapping_shr(sign)).wrapping_sub(most);
    most.wrapping_add(from_most & from_most.wrapping_shr(sign))
}

impl NoisySums {
    /// Adds the well-formed rows to the counters, and returns the number of malformed ones. Words of 32 bits hold the sums
    /// of a few rows, so that most additions are of words half as long as counters.
    fn add_rows(self, rows: &[u8], counters: &mut [u64]) -> Result<u64, Error> {
        let width = NUMBER_BYTES * counters.len();
        let at_once = (u32::MAX / self.largest()) as usize;
        let mut sums = zeroed::<u32>(counters.len())?;
        let mut rejected = 0;
        for some in rows.chunks(at_once * width) {
            for row in some.chunks_exact(width) {
                let numbers = row.as_chunks::<NUMBER_BYTES>().0;
                // The highest bit of `wrong` shows that a number is above the largest one, which is below 2^31.
                let wrong = sums.iter_mut().zip(numbers).fold(0, |wrong, (sum, &number)| {
                    let number = u32::from_le_bytes(number);
                    *sum = sum.wrapping_add(number);
                    wrong | number | self.largest().wrapping_sub(number)
                });
                if wrong >> 31 == 1 {
                    rejected += 1;
                    for (sum, &number) in sums.iter_mut().zip(numbers) {
                        *sum = sum.wrapping_sub(u32::from_le_bytes(number));
                    }
                }
            }
            // At most `most` reports are counted, so that no sum overflows: without a check the loop is vector code.
            for (counter, sum) in counters.iter_mut().zip(&mut sums) {
                *counter = counter.wrapping_add(u64::from(mem::take(sum)));
            }
        }
        Ok(rejected)
    }
}

impl Reports for NoisySums {
    fn bits(self) -> usize {
        8 * NUMBER_BYTES * self.columns as usize
    }

    fn malformed(self) -> &'static str {
        OUT_OF_RANGE
    }

    fn counters(self) -> usize {
        self.columns as usize
    }

    fn most(self) -> u64 {
        u64::MAX / u64::from(self.largest())
    }

    fn effort(self, _reports: usize) -> usize {
        NUMBER_BYTES * self.columns as usize
    }

    /// Adds up the well-formed rows.
    fn count(self, _instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        let mut counters = zeroed(self.counters())?;
        let rejected = self.add_rows(rows, &mut counters)?;
        Ok((counters, rejected))
    }

    fn are_possible(self, n: u64, counters: &[u64]) -> bool {
        let most = u128::from(n) * u128::from(self.largest());
        counters.iter().all(|&sum| u128::from(sum) <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::chance::likelihood::{MAX_EPSILON, MIN_EPSILON};

    #[test]
    fn numbers_are_clamped_without_a_comparison() {
        for most in [2, 7, 2 * (1 << 28), i64::from(u32::MAX)] {
            for near in [0, most, 1 << 40, -(1 << 62), i64::MAX - 3, i64::MIN + 3] {
                for number in near - 3..=near + 3 {
                    assert_eq!(clamp(number, most, 63), number.clamp(0, most), "{number} {most}");
                }
            }
        }
    }

    /// More rows than are added in words of 32 bits, some of them malformed by one number.
    #[test]
    fn sums_are_those_of_the_well_formed_rows() {
        for epsilon in [MIN_EPSILON, 1.0, MAX_EPSILON] {
            for columns in [1, 3, 100] {
                let sums = NoisySums::with_laplace(columns, epsilon).unwrap();
                let largest = sums.largest();
                let wrong = [largest + 1, 1 << 31, (1 << 31) + largest, u32::MAX];
                let mut expected = vec![0u64; columns as usize];
                let mut rows = vec![];
                for i in 0..100u32 {
                    let mut row: Vec<u32> = (0..columns).map(|j| largest - (i * j) % 7).collect();
                    if i % 3 == 1 {
                        row[(i % columns) as usize] = wrong[i as usize % 4];
                    } else {
                        expected.iter_mut().zip(&row).for_each(|(sum, &number)| *sum += u64::from(number));
                    }
                    rows.extend(row.into_iter().flat_map(u32::to_le_bytes));
                }
                let instructions = crate::instruction_set::current().unwrap();
                assert_eq!(sums.count(instructions, &rows), Ok((expected, 33)), "{epsilon} {columns}");
            }
        }
    }

    #[test]
    fn scales_are_exact_and_bounded() {
        for epsilon in [MIN_EPSILON, 0.1, 0.5, 1.0, 1.0f64.next_down(), 3.3, MAX_EPSILON] {
            let sums = NoisySums::with_laplace(1, epsilon).unwrap();
            let scale = sums.scale(epsilon).ratio();
            let (numerator, denominator) = (scale.numerator(), scale.denominator());
            assert!(numerator <= denominator << MAX_SCALE_LOG2, "{epsilon}");
            assert!(sums.unit == 1 << 20 || numerator * 2 > denominator << MAX_SCALE_LOG2, "{epsilon}");
            // 2 unit / epsilon without rounding, since epsilon is a dyadic fraction.
            let exact = Ratio::from_f64(epsilon).unwrap();
            assert_eq!(numerator * exact.numerator(), 2 * u128::from(sums.unit) * denominator * exact.denominator());
            let (sent, t) = (u64::from(sums.largest()), scale.to_f64());
            assert!(sent < 1 << 29 && f64::from(sums.bound - sums.unit) >= 64.0 * t);
            // The variance of a continuous Laplace distribution of this scale is 2 t^2, nearly that of the discrete one.
            let unit = f64::from(sums.unit);
            assert!((sums.variance(epsilon) * unit * unit / (2.0 * t * t) - 1.0).abs() < 0.01);
        }
    }
}
