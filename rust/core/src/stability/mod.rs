//! Stability: answers that no neighbour would change, and how far data are from those that have another answer.
//!
//! A distance to instability is an integer that changes by at most 1 between neighbours, so it can be tested with little
//! noise. [`StabilityTest`] is that test.

mod iqr;
mod stability_test;

pub use iqr::{Discretization, interquartile_range, iqr_distance_vartime};
pub use stability_test::StabilityTest;

use crate::error::Error;

/// Refuses values that are not finite, given in ascending order with any NaN last.
fn check_ends(sorted: &[f64]) -> Result<(), Error> {
    if sorted.first().into_iter().chain(sorted.last()).all(|end| end.is_finite()) {
        Ok(())
    } else {
        Err(Error::data("x", "must be finite: no NaN and no infinity"))
    }
}

/// The first place from `first` on, below `limit`, where a condition is met that is met from there on; else `limit`.
/// Quick where it is close: the time is logarithmic in how far it is.
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
