//! What makes mechanisms, as a table for the tests and for fuzzing.

use dpnoise::*;

/// The arguments of these functions: each takes those that it has.
pub(crate) struct Numbers {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) sensitivity: f64,
    pub(crate) whole: u64,
    pub(crate) granularity: f64,
    pub(crate) parties: u64,
}

/// A function of the interface, by its name.
type Made = (&'static str, fn(&Numbers, *mut dpnoise_mechanism) -> Status);

/// In the order of `dpnoise_core::mechanisms::Noise::KINDS`.
pub(crate) const MECHANISMS: &[Made] = &[
    ("dpnoise_laplace_mechanism", |n, out| unsafe {
        dpnoise_laplace_mechanism(n.epsilon, n.sensitivity, n.granularity, out)
    }),
    ("dpnoise_gaussian_mechanism", |n, out| unsafe {
        dpnoise_gaussian_mechanism(n.epsilon, n.delta, n.sensitivity, n.granularity, out)
    }),
    ("dpnoise_discrete_laplace_mechanism", |n, out| unsafe {
        dpnoise_discrete_laplace_mechanism(n.epsilon, n.whole, out)
    }),
    ("dpnoise_discrete_gaussian_mechanism", |n, out| unsafe {
        dpnoise_discrete_gaussian_mechanism(n.epsilon, n.delta, n.sensitivity, out)
    }),
    ("dpnoise_truncated_discrete_laplace_mechanism", |n, out| unsafe {
        dpnoise_truncated_discrete_laplace_mechanism(n.epsilon, n.delta, n.whole, out)
    }),
    ("dpnoise_truncated_discrete_gaussian_mechanism", |n, out| unsafe {
        dpnoise_truncated_discrete_gaussian_mechanism(n.epsilon, n.delta, n.sensitivity, out)
    }),
    ("dpnoise_staircase_mechanism", |n, out| unsafe { dpnoise_staircase_mechanism(n.epsilon, n.whole, out) }),
    ("dpnoise_skellam_mechanism", |n, out| unsafe {
        dpnoise_skellam_mechanism(n.epsilon, n.delta, n.whole, n.parties, out)
    }),
    ("dpnoise_negative_binomial_shares_mechanism", |n, out| unsafe {
        dpnoise_negative_binomial_shares_mechanism(n.epsilon, n.whole, n.parties, out)
    }),
];
