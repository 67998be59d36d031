//! The tail of discrete Laplace noise, compared with a delta exactly.

use dpnoise_kernels::arith::ball::Ball;

use super::power;
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

/// The smallest T >= 1 that the noisy counts of new values reach with a probability of at most delta where one person has
/// `rows` rows, whatever values these have: t(rows) <= delta and 1 - (1 - t(1))^rows <= delta with t(v) = P(v + noise >= T),
/// for discrete Laplace noise of scale rows/epsilon.
pub(crate) fn persons_threshold(epsilon: Epsilon, rows: u64, delta: Delta) -> i64 {
    let (epsilon, delta) = (epsilon.get(), delta.get());
    let exponent = epsilon / rows as f64;
    // The k with P(noise >= k) = p, for these logarithms of p and 1 - p: nearly, and up to 746 * 2^40.
    let steps = |of_p: f64, of_rest: f64| {
        let of_sum = (-exponent).exp().ln_1p();
        if of_p + of_sum <= 0.0 { -(of_p + of_sum) / exponent } else { 1.0 + (of_rest + of_sum) / exponent }
    };
    let (of_delta, of_rest) = (delta.ln(), (-delta).ln_1p());
    let of_each = of_rest / rows as f64;
    // Where 1 - (1 - delta)^(1/rows) may be subnormal, it is delta/rows.
    let of_one = if delta < 1e-100 { of_delta - (rows as f64).ln() } else { (-of_each.exp_m1()).ln() };
    let guess = (rows as f64 + steps(of_delta, of_rest)).max(1.0 + steps(of_one, of_each));
    let mut threshold = (guess.ceil() as i64).max(1);
    while threshold > 1 && are_unseen(threshold - 1, epsilon, rows, delta) {
        threshold -= 1;
    }
    while !are_unseen(threshold, epsilon, rows, delta) {
        threshold += 1;
    }
    threshold
}

/// Whether both probabilities are at most delta. They are never equal to it, since r is transcendental.
fn are_unseen(threshold: i64, epsilon: f64, rows: u64, delta: f64) -> bool {
    let is_less = |probability: &dyn Fn(&Ball) -> Ball| {
        let mut precision = 128;
        loop {
            let exponent = -&Ball::from_f64(epsilon, precision).over(rows);
            if let Some(ordering) = probability(&exponent).compare(&Ball::from_f64(delta, precision)) {
                return ordering.is_lt();
            }
            precision *= 2;
        }
    };
    let rest = |probability: &Ball| &Ball::integer(1, probability.precision()) - probability;
    is_less(&|exponent| reached(threshold, rows, exponent))
        && is_less(&|exponent| rest(&power(&rest(&reached(threshold, 1, exponent)), rows)))
}

/// P(count + noise >= threshold), for r with this logarithm: P(noise >= k) is r^k / (1 + r) for k >= 0, and by symmetry
/// 1 - r^(1 - k) / (1 + r) for others.
fn reached(threshold: i64, count: u64, exponent: &Ball) -> Ball {
    let one = Ball::integer(1, exponent.precision());
    let tail = |steps: u64| exponent.times(steps).exp().divided_by(&(&one + &exponent.exp()));
    let steps = i128::from(threshold) - i128::from(count);
    if steps >= 0 { tail(steps as u64) } else { &one - &tail((1 - steps) as u64) }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

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

    /// Numbers with so many binary digits, of which the last twenty may be wrong.
    const DIGITS: u32 = 240;

    fn times(a: &BigInt, b: &BigInt) -> BigInt {
        (a * b) >> DIGITS
    }

    /// All ways in which so many rows can be in values, the most in one value first.
    fn partitions(rows: i64, most: i64) -> Vec<Vec<i64>> {
        if rows == 0 {
            return vec![vec![]];
        }
        let with =
            |first: i64| partitions(rows - first, first).into_iter().map(move |rest| [vec![first], rest].concat());
        (1..=rows.min(most)).flat_map(with).collect()
    }

    /// By the definition, with another arithmetic: whatever values a person's rows have, they are seen with a probability of at
    /// most delta, and not so with a threshold that is smaller by 1.
    #[test]
    fn thresholds_for_persons_are_the_least() {
        let one = BigInt::from(1) << DIGITS;
        let fixed = |x: f64| BigInt::from((x * 2f64.powi(100)) as u128) << (DIGITS - 100);
        for epsilon in [0.25, 1.0, 4.0, 8.0] {
            for rows in 1..=8 {
                // The series of the exponential function.
                let x = -fixed(epsilon) / rows;
                let (mut r, mut term) = (BigInt::ZERO, one.clone());
                for n in 1..100 {
                    r += &term;
                    term = times(&term, &x) / n;
                }
                let tail = |steps: i64| {
                    let power = (0..steps).fold(one.clone(), |power, _| times(&power, &r));
                    (power << DIGITS) / (&one + &r)
                };
                let reached = |steps: i64| if steps >= 0 { tail(steps) } else { &one - tail(1 - steps) };
                let worst = |threshold: i64| {
                    let unseen = |counts: Vec<i64>| {
                        counts
                            .iter()
                            .fold(one.clone(), |unseen, count| times(&unseen, &(&one - reached(threshold - count))))
                    };
                    &one - partitions(rows, rows).into_iter().map(unseen).min().unwrap()
                };
                for delta in [1e-9, 1e-3, 0.3, 0.6, 0.97] {
                    let exact = Delta::new(delta).unwrap();
                    let threshold = persons_threshold(Epsilon::new(epsilon).unwrap(), rows as u64, exact);
                    assert!(worst(threshold) < fixed(delta), "{epsilon} {rows} {delta}: {threshold}");
                    assert!(
                        threshold == 1 || worst(threshold - 1) > fixed(delta),
                        "{epsilon} {rows} {delta}: {threshold}"
                    );
                }
            }
        }
    }

    /// The control: delta/m for one row at epsilon/m, with a true delta of 1.8 and of 94 times the claim.
    #[test]
    fn a_share_of_delta_for_each_row_is_too_little() {
        for (epsilon, rows, shared, expected, times) in [(4.0, 2, 12, 13, 1.8), (8.0, 5, 15, 18, 94.0)] {
            let (whole, delta) = (Epsilon::new(epsilon).unwrap(), 1e-9);
            let share = Delta::new(delta / rows as f64).unwrap();
            assert_eq!(tail_threshold(whole, rows, share, -1) + 2, shared);
            assert_eq!(persons_threshold(whole, rows, Delta::new(delta).unwrap()), expected);
            let exponent = Ball::from_f64(-epsilon, 128).over(rows);
            let seen = reached(shared, rows, &exponent).upper_f64();
            assert!((seen / delta / times - 1.0).abs() < 0.02, "{seen}");
        }
    }

    #[test]
    fn thresholds_for_persons_are_found_at_the_ends_of_the_parameters() {
        let least = 2f64.powi(-40);
        for (epsilon, delta) in
            [(least, 1e-300), (least, 0.9), (1.0, 5e-324), (1.0, 1e-100), (1e3, 1e-9), (2f64.powi(40), 5e-324)]
        {
            for rows in [1, 2, 1000, 1 << 40] {
                let whole = epsilon * if epsilon < 1.0 { rows as f64 } else { 1.0 };
                let (epsilon, delta) = (Epsilon::new(whole).unwrap(), Delta::new(delta).unwrap());
                let threshold = persons_threshold(epsilon, rows, delta);
                assert!(are_unseen(threshold, whole, rows, delta.get()), "{whole} {rows}");
                assert!(threshold == 1 || !are_unseen(threshold - 1, whole, rows, delta.get()), "{whole} {rows}");
                if rows == 1 {
                    assert_eq!(threshold, tail_threshold(epsilon, 1, delta, -1) + 2);
                }
            }
        }
    }
}
