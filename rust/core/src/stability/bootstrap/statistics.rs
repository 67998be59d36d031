//! Fast functions of a subset, with few values.

use std::sync::Arc;

use dpnoise_kernels::arith::power_of_two;
use dpnoise_kernels::memory::{room, zeroed};

use crate::error::Error;
use crate::rng::Wiped;

/// A function of the rows at some positions of the data, and of nothing else.
pub trait Statistic: Send + Sync {
    /// The number of rows.
    fn positions(&self) -> usize;

    /// The number of possible values.
    fn values(&self) -> usize;

    /// The value, below [`Self::values`], for the rows at these positions: at least one, in ascending order.
    fn value_vartime(&mut self, subset: &[u32]) -> usize;

    /// The same function of the same data, with working memory of its own for another thread.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    fn of_thread(&self) -> Result<Box<dyn Statistic>, Error>;
}

/// The most frequent code; of several, the smallest.
pub struct Mode {
    codes: Codes,
    counts: Vec<u32>,
}

impl Mode {
    /// The mode of codes below `values`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `values` is zero or above 2^32 - 1, [`Error::Data`] for a code that is not below it,
    /// [`Error::Allocation`].
    pub fn new(codes: &[u32], values: usize) -> Result<Self, Error> {
        Self::of(Codes::new(codes, values)?)
    }

    fn of(codes: Codes) -> Result<Self, Error> {
        Ok(Self { counts: zeroed(codes.values)?, codes })
    }
}

impl Statistic for Mode {
    fn positions(&self) -> usize {
        self.codes.codes.len()
    }

    fn values(&self) -> usize {
        self.codes.values
    }

    fn value_vartime(&mut self, subset: &[u32]) -> usize {
        // The count above the code's complement, compared without a branch, since it would be unpredictable.
        let mut best = 0;
        for code in self.codes.at(subset) {
            self.counts[code] += 1;
            best = best.max(u64::from(self.counts[code]) << 32 | u64::from(!(code as u32)));
        }
        self.codes.at(subset).for_each(|code| self.counts[code] = 0);
        !(best as u32) as usize
    }

    fn of_thread(&self) -> Result<Box<dyn Statistic>, Error> {
        Ok(Box::new(Self::of(self.codes.clone())?))
    }
}

/// Up to this many values counting is faster than selecting.
const FEW_VALUES: usize = 256;

/// The lower median: the code of rank ceil(size / 2).
pub struct Median {
    codes: Codes,
    counts: Vec<u32>,
    found: Vec<u32>,
}

impl Median {
    /// The median of codes below `values`.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `values` is zero or above 2^32 - 1, [`Error::Data`] for a code that is not below it,
    /// [`Error::Allocation`].
    pub fn new(codes: &[u32], values: usize) -> Result<Self, Error> {
        Self::of(Codes::new(codes, values)?)
    }

    fn of(codes: Codes) -> Result<Self, Error> {
        let few = codes.values <= FEW_VALUES;
        let found = room(if few { 0 } else { codes.codes.len() })?;
        Ok(Self { counts: vec![0; if few { codes.values } else { 0 }], found, codes })
    }
}

impl Statistic for Median {
    fn positions(&self) -> usize {
        self.codes.codes.len()
    }

    fn values(&self) -> usize {
        self.codes.values
    }

    fn value_vartime(&mut self, subset: &[u32]) -> usize {
        let rank = subset.len().div_ceil(2);
        if self.codes.values <= FEW_VALUES {
            self.counts.fill(0);
            self.codes.at(subset).for_each(|code| self.counts[code] += 1);
            let mut below = 0;
            return self
                .counts
                .iter()
                .take_while(|&&count| {
                    below += count as usize;
                    below < rank
                })
                .count();
        }
        self.found.clear();
        self.found.extend(self.codes.at(subset).map(|code| code as u32));
        *self.found.select_nth_unstable(rank - 1).1 as usize
    }

    fn of_thread(&self) -> Result<Box<dyn Statistic>, Error> {
        Ok(Box::new(Self::of(self.codes.clone())?))
    }
}

/// The sum of entries up to this is finite for any possible number of rows.
const LARGEST: f64 = power_of_two(990);

/// The column of a matrix with the largest sum; the first one of several.
/// The sums are computed in double precision, row after row: rounded, but the same on every machine.
pub struct ArgmaxColumnSum {
    matrix: Arc<Wiped<f64>>,
    columns: usize,
    sums: Vec<f64>,
}

impl ArgmaxColumnSum {
    /// The argmax for a matrix, row after row, with this many columns.
    ///
    /// # Errors
    /// [`Error::Parameter`] when `columns` is zero or does not divide the length, [`Error::Data`] for an entry that is
    /// NaN or above 2^990 in magnitude, [`Error::Allocation`].
    pub fn new(matrix: &[f64], columns: usize) -> Result<Self, Error> {
        if columns == 0 || !matrix.len().is_multiple_of(columns) {
            return Err(Error::parameter("columns", columns, "a positive divisor of the number of entries"));
        }
        if !matrix.iter().all(|entry| entry.abs() <= LARGEST) {
            return Err(Error::data("data", "must be finite numbers of at most 2**990 in magnitude"));
        }
        Self::of(Arc::new(Wiped::copy_of(matrix)?), columns)
    }

    fn of(matrix: Arc<Wiped<f64>>, columns: usize) -> Result<Self, Error> {
        Ok(Self { matrix, columns, sums: zeroed(columns)? })
    }
}

impl Statistic for ArgmaxColumnSum {
    fn positions(&self) -> usize {
        self.matrix.len() / self.columns
    }

    fn values(&self) -> usize {
        self.columns
    }

    fn value_vartime(&mut self, subset: &[u32]) -> usize {
        self.sums.fill(0.0);
        for &position in subset {
            let start = position as usize * self.columns;
            let row = &self.matrix[start..start + self.columns];
            self.sums.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry);
        }
        let mut best = 0;
        for (column, sum) in self.sums.iter().enumerate() {
            if *sum > self.sums[best] {
                best = column;
            }
        }
        best
    }

    fn of_thread(&self) -> Result<Box<dyn Statistic>, Error> {
        Ok(Box::new(Self::of(Arc::clone(&self.matrix), self.columns)?))
    }
}

/// The codes of all rows.
#[derive(Clone)]
struct Codes {
    codes: Arc<Wiped<u32>>,
    values: usize,
}

impl Codes {
    fn new(codes: &[u32], values: usize) -> Result<Self, Error> {
        if values == 0 || u32::try_from(values).is_err() {
            return Err(Error::parameter("values", values, "from 1 to 2**32 - 1"));
        }
        if codes.iter().any(|&code| code as usize >= values) {
            return Err(Error::data("data", "must be codes below the number of values"));
        }
        Ok(Self { codes: Arc::new(Wiped::copy_of(codes)?), values })
    }

    fn at(&self, subset: &[u32]) -> impl Iterator<Item = usize> {
        subset.iter().map(|&position| self.codes[position as usize] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All subsets of all rows of codes below 3, of length 5.
    fn exhaust(make: impl Fn(&[u32]) -> Box<dyn Statistic>, oracle: impl Fn(&[u32]) -> usize) {
        for number in 0..3u32.pow(5) {
            let codes: Vec<u32> = (0..5).map(|digit| number / 3u32.pow(digit) % 3).collect();
            let mut statistic = make(&codes);
            for mask in 1..32u32 {
                let subset: Vec<u32> = (0..5).filter(|position| mask >> position & 1 == 1).collect();
                let found: Vec<u32> = subset.iter().map(|&position| codes[position as usize]).collect();
                assert_eq!(statistic.value_vartime(&subset), oracle(&found), "{codes:?} {subset:?}");
            }
        }
    }

    #[test]
    fn the_mode_is_the_smallest_of_the_most_frequent() {
        let count = |codes: &[u32], value| codes.iter().filter(|&&code| code == value).count();
        exhaust(
            |codes| Box::new(Mode::new(codes, 3).unwrap()),
            |codes| (0..3).rev().max_by_key(|&value| count(codes, value)).unwrap() as usize,
        );
    }

    #[test]
    fn the_median_is_the_lower_one() {
        let lower = |codes: &[u32]| {
            let mut sorted = codes.to_vec();
            sorted.sort_unstable();
            sorted[sorted.len().div_ceil(2) - 1] as usize
        };
        for values in [3, FEW_VALUES, FEW_VALUES + 1] {
            exhaust(|codes| Box::new(Median::new(codes, values).unwrap()), lower);
        }
    }

    #[test]
    fn the_first_of_the_largest_columns_is_found() {
        let mut statistic = ArgmaxColumnSum::new(&[1.0, 2.0, 2.0, 3.0, 2.0, 2.0, 9.0, -9.0, 0.5], 3).unwrap();
        assert_eq!((statistic.positions(), statistic.values()), (3, 3));
        for (subset, expected) in [(&[0][..], 1), (&[1], 0), (&[0, 1], 0), (&[2], 0), (&[0, 1, 2], 0), (&[0, 0], 1)] {
            assert_eq!(statistic.value_vartime(subset), expected, "{subset:?}");
        }
    }

    #[test]
    fn bad_data_are_refused() {
        assert!(Mode::new(&[0, 3], 3).is_err() && Median::new(&[0, 3], 3).is_err());
        assert!(Mode::new(&[], 0).is_err());
        assert!(ArgmaxColumnSum::new(&[1.0, 2.0, 3.0], 2).is_err());
        assert!(ArgmaxColumnSum::new(&[1.0], 0).is_err());
        assert_eq!(LARGEST, 2f64.powi(990));
        assert!(ArgmaxColumnSum::new(&[LARGEST, -LARGEST], 2).is_ok());
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, LARGEST.next_up()] {
            assert!(ArgmaxColumnSum::new(&[1.0, bad], 2).is_err());
        }
    }
}
