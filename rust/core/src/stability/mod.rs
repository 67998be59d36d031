//! Stability: answers that no neighbour would change, and the distance of data to data with another answer.
//!
//! A distance to instability is an integer that changes by at most 1 between neighbours, so it can be tested with little
//! noise. [`StabilityTest`] is that test.

pub mod bootstrap;
mod iqr;
mod median;
mod mode;
mod threshold;

pub use iqr::{Discretization, interquartile_range, iqr_distance_vartime, iqr_distance_within_vartime};
pub use median::median_distance_vartime;
pub use mode::{Mode, mode_of_counts_vartime, mode_vartime};
pub use threshold::StabilityTest;

use crate::error::Error;
use crate::params::Relation;

/// A type of numbers in data.
pub trait Number: Copy + PartialOrd {
    /// Whether it is neither a NaN nor an infinity.
    fn is_finite(self) -> bool;
}

impl Number for f64 {
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Number for i64 {
    fn is_finite(self) -> bool {
        true
    }
}

impl Number for u64 {
    fn is_finite(self) -> bool {
        true
    }
}

fn not_finite() -> Error {
    Error::data("x", "must be finite: no NaN and no infinity")
}

/// Refuses values that are not finite, given in ascending order with any NaN last.
fn check_ends<T: Number>(sorted: &[T]) -> Result<(), Error> {
    let finite = sorted.first().into_iter().chain(sorted.last()).all(|end| end.is_finite());
    if finite { Ok(()) } else { Err(not_finite()) }
}

/// Refuses empty data if their number is public; if it is private, empty data are valid.
fn check_number_of_values(n: usize, relation: Relation) -> Result<(), Error> {
    if n == 0 && relation == Relation::Substitute {
        return Err(Error::parameter("x", n, "one or more values"));
    }
    Ok(())
}

/// The distance to instability of an answer that `margin` additions and removals can change, but no fewer: a
/// substitution counts as two of them.
fn distance_from_margin(margin: u64, relation: Relation) -> u64 {
    match relation {
        Relation::AddRemove => margin - 1,
        Relation::Substitute => margin.div_ceil(2) - 1,
    }
}

/// The first position from `first` on, below `limit`, from which on a condition holds; otherwise `limit`.
/// The time is logarithmic in the distance of the position from `first`.
fn gallop(first: usize, limit: usize, met: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (first, 1);
    while step <= limit.saturating_sub(low) && !met(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = limit.min(low + step - 1);
    while low < high {
        let middle = low.midpoint(high);
        if met(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
