//! Stability: answers that no neighbour would change, and how far data are from those that have another answer.
//!
//! A distance to instability is an integer that changes by at most 1 between neighbours, so it can be tested with little
//! noise. [`StabilityTest`] is that test.

mod stability_test;

pub use stability_test::StabilityTest;
