//! Sketches: tables of rows with a hash function each, in which every report belongs to one row.
//!
//! A client draws a row uniformly and reports, randomised, which of `width` columns the row's hash function gives its value
//! (the fingerprint of a text). The collector keeps a table, and can estimate the count of any value.
//!
//! # Estimation
//!
//! Let a report of row j support column h_j(v) of its sender's value v with probability p, and any other column with
//! probability q. A value d is supported by the reports that support column h_j(d) of their row j. Another value falls into
//! the same column with probability 1/w, over the choice of the hash functions, so a report of its holder supports d with
//! probability q' = q + (p - q)/w. Hence c = (C - n q') / (p - q') is unbiased over reports and hash functions, if C of n
//! reports support d; in terms of the number T = (C - n q) / (p - q) of people in these columns, c = (T - n/w) w / (w - 1)
//! (Apple 2017, "Learning with privacy at scale", algorithm 5).
//!
//! # Its variance
//!
//! If any three values are hashed independently, the variance over all randomness, including the hash functions, is
//! exactly
//!
//! V(f) + sum of n_v (n_v - 1) over all v other than d / (r (w - 1)),
//!
//! where V(f) = n (q' (1 - q') + f (p - q') (1 - p - q')) / (p - q')^2, f is the frequency of d, n_v the number of
//! people with value v, and r the number of rows. Given the hash functions the reports are independent, and support d
//! with probability q + (p - q) a_v, where a_v is the share of rows in which v and d collide; its variance is (1/w)
//! (1 - 1/w) / r. The first term is that of the randomisation. The second is that of values that collide with d, in the
//! same way for every collection with the same hash functions.
//!
//! The sum is estimated from the table itself. Let T_jx be the estimated number of people in column x of row j, of n_j
//! in that row. The squares of the true numbers sum up to the squares of the T_jx minus their variances, which sum up
//! to n (p (1 - p) + (w - 1) q (1 - q)) / (p - q)^2. In a row they are, in expectation, n_j^2 / w, plus 1 - 1/w for
//! each ordered pair of people with the same value (including a person with themselves). A pair of different people
//! with the same value is in the same row with probability 1/r.

use dpnoise_kernels::memory::zeroed;

use super::text_hash::RowHash;
use crate::arguments::Parameter;
use crate::error::Error;
use crate::local::estimate::{Estimate, Support};
use crate::local::spec::Field;

/// The largest number of cells.
const MAX_CELLS: u64 = 1 << 24;

/// The table's shape and its hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sketch {
    rows: u32,
    width: u32,
    seed: u32,
}

impl Sketch {
    /// The allowed numbers of rows: a row's number has two bytes.
    pub(crate) const ALLOWED_ROWS: &str = "an integer from 1 to 65536";

    /// The allowed widths.
    pub(crate) const ALLOWED_WIDTHS: &str = "a power of two from 8 to 2**20";

    const ALLOWED_SEEDS: &str = "an integer from 0 to 2**32 - 1";

    /// The parameters of protocols whose collector has a table.
    pub(crate) const ROWS: Parameter =
        Parameter::integer("rows", Self::ALLOWED_ROWS, 2, "how many hash functions there are");
    pub(crate) const WIDTH: Parameter = Parameter::integer(
        "width",
        Self::ALLOWED_WIDTHS,
        8,
        "how many columns the collector's table has, a power of two",
    );
    pub(crate) const SEED: Parameter =
        Parameter::integer("seed", Self::ALLOWED_SEEDS, 7, "the public number that the hash functions come from").or(0);

    /// A table of `rows` rows of `width` columns, with the hash functions of `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 1 <= rows <= 2^16, width is a power of two from 8 to 2^20, rows * width <= 2^24, and
    /// seed < 2^32.
    pub fn new(rows: u64, width: u64, seed: u64) -> Result<Self, Error> {
        if !(1..=1 << 16).contains(&rows) {
            return Err(Error::parameter("rows", rows, Self::ALLOWED_ROWS));
        }
        if !((8..=1 << 20).contains(&width) && width.is_power_of_two()) {
            return Err(Error::parameter("width", width, Self::ALLOWED_WIDTHS));
        }
        if rows * width > MAX_CELLS {
            let given = format!("rows = {rows}, width = {width}");
            return Err(Error::parameter("rows and width", given, "such that rows * width is at most 2**24"));
        }
        let seed = u32::try_from(seed).map_err(|_| Error::parameter("seed", seed, Self::ALLOWED_SEEDS))?;
        Ok(Self { rows: rows as u32, width: width as u32, seed })
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// The number of columns.
    #[must_use]
    pub fn width(self) -> u32 {
        self.width
    }

    /// The seed of the hash functions.
    #[must_use]
    pub fn seed(self) -> u32 {
        self.seed
    }

    /// The number of rows times that of columns.
    #[must_use]
    pub fn cells(self) -> u32 {
        self.rows * self.width
    }

    /// The hash function of a row.
    pub(crate) fn hash(self, row: u32) -> RowHash {
        RowHash::new(self.seed, row, self.width)
    }

    /// Its part of a specification, except the width, which is what other protocols call k.
    pub(crate) fn fields(self) -> [Field; 2] {
        [("rows", self.rows.into()), ("seed", self.seed.into())]
    }
}

/// The counts of one row.
pub(crate) struct Row {
    pub(crate) hash: RowHash,
    /// The number of reports.
    pub(crate) n: u64,
    /// How many of them support each column.
    pub(crate) supports: Vec<u64>,
}

/// Estimates how many people have each of the `candidates`, from rows of `width` columns whose reports support with the
/// probabilities `support`.
///
/// # Errors
/// [`Error::Allocation`].
pub(crate) fn estimate(
    rows: impl Iterator<Item = Result<Row, Error>>,
    width: u32,
    support: Support,
    candidates: &[i64],
) -> Result<Estimate, Error> {
    let w = f64::from(width);
    let (mut n, mut number_of_rows, mut squares, mut by_chance) = (0, 0.0, 0.0, 0.0);
    let mut supported = zeroed::<u64>(candidates.len())?;
    for row in rows {
        let row = row?;
        n += row.n;
        number_of_rows += 1.0;
        let counts = row.supports.iter().map(|&supports| support.count(row.n, supports));
        squares += counts.map(|count| count * count).sum::<f64>();
        by_chance += row.n as f64 * row.n as f64 / w;
        for (supported, &candidate) in supported.iter_mut().zip(candidates) {
            *supported += row.supports[row.hash.column(candidate) as usize];
        }
    }
    let people = n as f64;
    squares -= people * (support.variance(1.0) + (w - 1.0) * support.variance(0.0));
    let pairs = number_of_rows * ((squares - by_chance) * w / (w - 1.0) - people);
    let chances = Chances::new(support, w);
    let counts = supported.iter().map(|&supports| (support.count(n, supports) - people / w) * w / (w - 1.0));
    let standard_error = |&count: &f64| {
        let frequency = if n == 0 { 0.0 } else { (count / people).clamp(0.0, 1.0) };
        let collisions = (pairs - count * (count - 1.0)).max(0.0) / (number_of_rows * (w - 1.0));
        (people * chances.variance(frequency) + collisions).sqrt()
    };
    Estimate::new(n, counts, standard_error)
}

/// The probabilities that a report supports its sender's value, and another one, over random hash functions.
struct Chances {
    p: f64,
    q: f64,
    difference: f64,
}

impl Chances {
    fn new(support: Support, w: f64) -> Self {
        let (p, apart) = (support.probability(support.p), support.probability(support.p - support.q));
        Self { p, q: support.probability(support.q) + apart / w, difference: apart * (w - 1.0) / w }
    }

    fn variance(&self, frequency: f64) -> f64 {
        let Self { p, q, difference } = self;
        q * (1.0 - q) / (difference * difference) + frequency * (1.0 - p - q) / difference
    }
}
