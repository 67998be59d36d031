//! Delta as a function of epsilon and sigma, for Gaussian noise.

use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::gaussian::{DiscreteTails, exp_or_tiny, mills_ratio};

/// The delta of continuous Gaussian noise whose sigma is `ratio` times the sensitivity (Balle and Wang 2018, Theorem 8),
/// for any real epsilon.
///
/// With a = epsilon ratio and b = 1/(2 ratio) it is Q(a - b) - e^epsilon Q(a + b), Q the upper tail; and since
/// e^epsilon phi(a + b) = phi(a - b) it is phi(a - b) (R(a - b) - R(a + b)), R the Mills ratio.
pub(crate) fn continuous(epsilon: &Ball, ratio: &Ball) -> Ball {
    let one = Ball::integer(1, ratio.precision());
    let a = epsilon * ratio;
    let b = one.divided_by(&ratio.scaled(1));
    let (near, far) = (&a - &b, &a + &b);
    let root = Ball::pi(ratio.precision()).scaled(1).sqrt();
    let square = &near * &near;
    match exp_or_tiny(&-&square.scaled(-1)) {
        Ok(_) if square.upper_f64() > 1e6 => Ball::hull(&Ball::integer(0, ratio.precision()), &one), // precision too low
        Ok(density) => (&density * &(&mills_ratio(&near) - &mills_ratio(&far))).divided_by(&root),
        // The tail at 0 or above is at most exp(-near^2 / 2), and so is its complement below 0.
        Err(tiny) if near.is_positive() => tiny,
        Err(tiny) => &one - &tiny.scaled(1),
    }
}

/// The delta of discrete Gaussian noise for integers that differ by `shift` (Canonne, Kamath and Steinke 2020, Theorem
/// 7).
///
/// P(Y > t) - e^epsilon P(Y > t + shift) with t = epsilon sigma^2 / shift - shift / 2; for another t it would be less.
pub(crate) fn discrete(epsilon: &Ball, sigma: &Ball, shift: u64) -> Ball {
    let precision = sigma.precision();
    let zero = Ball::integer(0, precision);
    let at_most = |bound: Ball| Ball::hull(&zero, &bound);
    let threshold = &(epsilon * &(sigma * sigma)).over(shift) - &Ball::integer(shift, precision).scaled(-1);
    // P(Y > t) <= exp(-t^2 / (2 sigma^2)) for t >= 0.
    let x = threshold.divided_by(sigma);
    if x.is_positive()
        && let Err(tiny) = exp_or_tiny(&-&(&x * &x).scaled(-1))
    {
        return at_most(tiny);
    }
    let Some((least, greatest)) = threshold.floors().filter(|(least, greatest)| greatest - least <= 1) else {
        return at_most(Ball::integer(1, precision)); // the precision does not determine the threshold
    };
    let tails = DiscreteTails::new(sigma.clone());
    let delta = |start: i64| &tails.from(start, &zero) - &tails.from(start + shift as i64, epsilon);
    // Both starts differ by a term that is nearly 0 when both are possible.
    let sum = Ball::hull(&delta(least + 1), &delta(greatest + 1));
    sum.divided_by(&tails.total())
}

/// The same for vectors of `count` integers whose distance is at most `shift` in the L2 norm, or a little more: the
/// smaller of the two bounds that are proved in `calibration.md`.
pub(crate) fn vector(epsilon: &Ball, sigma: &Ball, shift: &Ball, count: u64) -> Ball {
    let precision = sigma.precision();
    let whole = |value: u64| Ball::integer(value, precision);
    let ratio = sigma.divided_by(shift);
    let per_square = whole(1).divided_by(&(sigma * sigma).times(24));
    // Rounding moves the privacy loss by at most the L1 norm of the shift over 2 sigma^2.
    let squared_shift = shift * shift;
    let moving = smaller(whole(count), squared_shift.clone());
    let steps = smaller(&whole(count).sqrt() * shift, squared_shift);
    let (factor, loss) = (&moving * &per_square, (&steps * &per_square).times(12));
    let first = (factor, loss, whole(0));
    // Or rounding moves no probability by more than a factor, outside of a ball around 0.
    let width = &whole(count).scaled(1) + &whole(4 * TAIL_BITS);
    let reach = &(&width * &whole(6932)).over(10_000).sqrt() + &whole(1).divided_by(&ratio);
    let factor = &whole(count) * &per_square;
    let theta = exp_or_tiny(&-&(sigma * sigma).times(19)).unwrap_or_else(|tiny| tiny).scaled(2);
    let loss = &(&factor + &(&(&reach * &reach) * &per_square)) + &(&whole(count) * &theta);
    let second = (factor, loss, whole(1).scaled(-(TAIL_BITS as i64)));
    let is_second = (sigma - &whole(1)).is_positive() && (&second.1 - &first.1).is_negative();
    let (factor, loss, tail) = if is_second { second } else { first };
    if (&whole(1 << 10) - &factor).is_negative() {
        return whole(1); // the bound says nothing
    }
    &(&factor.exp() * &continuous(&(epsilon - &loss), &ratio)) + &tail
}

/// The second bound ignores a tail of probability 2^-1154, negligible beside any double.
const TAIL_BITS: u64 = 1154;

pub(crate) fn smaller(a: Ball, b: Ball) -> Ball {
    if (&a - &b).is_negative() { a } else { b }
}
