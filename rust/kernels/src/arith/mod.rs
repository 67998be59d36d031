//! Exact numbers: fixed-limb fixed point with error bounds, the certified exponential, exact logarithm tests.
//!
//! - [`ball`]: real numbers with a radius, for public numbers.
//! - [`divisor`]: division by a public number in constant time.
//! - [`fixed`]: multi-limb fixed point; constant-time for a given number of limbs.
//! - [`interval`]: numbers between two bounds.
//! - [`exp`]: 2^-t with a proved error bound, and the constants it needs.
//! - [`gaussian`]: tails of continuous and discrete Gaussians.
//! - [`log`]: exact comparisons of a fraction with e^epsilon.

pub mod ball;
pub mod divisor;
pub mod exp;
pub mod fixed;
pub mod gaussian;
pub mod interval;
pub mod log;

/// 2^exponent, for an exponent in [-1022, 1023]: exact, as [`f64::powi`] need not be.
#[inline]
#[must_use]
pub const fn power_of_two(exponent: i32) -> f64 {
    debug_assert!(-1022 <= exponent && exponent <= 1023, "the power must be a normal number");
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// All ones if `condition`, else zero. `black_box` keeps the optimiser from turning the mask back into a branch.
#[inline]
#[must_use]
pub fn mask(condition: bool) -> u64 {
    core::hint::black_box(u64::from(condition)).wrapping_neg()
}
