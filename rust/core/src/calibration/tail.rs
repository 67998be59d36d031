//! The tail of discrete Laplace noise, compared with a delta exactly.

use dpnoise_kernels::arith::ball::Ball;

use crate::params::{Delta, Epsilon};

/// The smallest t >= `least` with P(noise > t) <= delta, for discrete Laplace noise of scale sensitivity/epsilon; `least` is
/// -1 or more.
///
/// P(noise > t) = r^(t + 1) / (1 + r) with r = exp(-epsilon/sensitivity), for t >= -1.
pub(crate) fn tail_threshold(epsilon: Epsilon, sensitivity: u64, delta: Delta, least: i64) -> i64 {
    let (epsilon, delta) = (epsilon.get(), delta.get());
    let exponent = epsilon / sensitivity as f64;
    let steps = -(delta.ln() + (-exponent).exp().ln_1p()) / exponent;
    // The guess, at most 746 * 2^40, has an error of a few units in the last place.
    let mut threshold = (steps.ceil() as i64 - 1).max(least);
    while threshold > least && is_enough(threshold - 1, epsilon, sensitivity, delta) {
        threshold -= 1;
    }
    while !is_enough(threshold, epsilon, sensitivity, delta) {
        threshold += 1;
    }
    threshold
}

/// Whether r^(t + 1) <= delta (1 + r). They are never equal: r is transcendental, as its exponent is algebraic and not 0.
fn is_enough(t: i64, epsilon: f64, sensitivity: u64, delta: f64) -> bool {
    let mut precision = 128;
    loop {
        let exponent = -&Ball::from_f64(epsilon, precision).over(sensitivity);
        let tail = exponent.times(t.wrapping_add(1).unsigned_abs()).exp();
        let bound = &Ball::from_f64(delta, precision) * &(&Ball::integer(1, precision) + &exponent.exp());
        if let Some(ordering) = tail.compare(&bound) {
            return ordering.is_lt();
        }
        precision *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The closed form t = ceil(ln(1 / (delta (1 + r))) / epsilon) - 1, for parameters at which floating point decides
    /// it.
    #[test]
    fn thresholds_are_those_of_the_closed_form() {
        for (epsilon, delta, expected) in [
            (1.0, 1e-6, 13),
            (0.25, 1e-6, 52),
            (0.25, 0.5e-6, 55),
            (1.0, 0.2, 1), // r / (1 + r) = 0.269, r^2 / (1 + r) = 0.099
            (1.0, 0.27, 0),
            (1.0, 0.73, 0), // 1 / (1 + r) = 0.731
            (1.0, 0.74, -1),
            (30.0, 1e-300, 23),
            (2f64.powi(-40), 1e-300, 758_745_318_000_000),
            (2f64.powi(40), 5e-324, 0),
        ] {
            // A sensitivity of 2 doubles the scale exactly.
            for (least, sensitivity) in [(0, 1), (-1, 1), (-1, 2)] {
                let whole = Epsilon::new(epsilon * sensitivity as f64).unwrap();
                let found = tail_threshold(whole, sensitivity, Delta::new(delta).unwrap(), least);
                let allowed = if expected > 1 << 40 { 1 << 40 } else { 0 };
                assert!((found - expected.max(least)).abs() <= allowed, "{epsilon} {delta}: {found}");
                assert!(is_enough(found, epsilon, 1, delta));
                assert!(found == least || !is_enough(found - 1, epsilon, 1, delta));
            }
        }
    }
}
