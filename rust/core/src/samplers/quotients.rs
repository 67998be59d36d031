//! Symmetric laws that are given by the quotients of neighbouring probabilities; `pages.md` derives them.

use core::cmp::Ordering;
use core::ops::RangeInclusive;

use dpnoise_kernels::arith::ball::Ball;

use crate::params::Ratio;

/// A symmetric law on the integers by its quotients r(x) = P(x) / P(x - 1) for x = 1, 2, ..., all from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotients {
    /// The difference of two Poisson variables with this mean.
    Skellam { mu: Ratio },
    /// The difference of two negative binomial variables of shape shares / parties, at most 1, and ratio q = exp(-1 / scale).
    Shares { scale: Ratio, shares: u64, parties: u64 },
    /// exp(-epsilon) at x = inner, inner + width, inner + 2 width, ..., else 1.
    Staircase { epsilon: Ratio, width: u64, inner: u64 },
}

impl Quotients {
    /// The masses of the first `count` magnitudes, where 0 has 1, and of all others together.
    pub(super) fn masses(self, count: usize, precision: u64) -> (Vec<Ball>, Ball) {
        let zero = || Ball::integer(0, precision);
        let one = Ball::integer(1, precision);
        let (quotients, beyond) = self.quotients(count as u64, precision);
        let mut mass = one.clone();
        let mut all = vec![one];
        all.extend(quotients.iter().map(|quotient| {
            mass = &mass * quotient;
            mass.scaled(1)
        }));
        let most = &all[all.len() - 1] * &beyond;
        let rest = all.split_off(count).iter().fold(Ball::hull(&zero(), &most), |sum, mass| &sum + mass);
        (all, rest)
    }

    /// About how many magnitudes it takes until the masses have fallen by so many bits, and more.
    fn reach(self, bits: u64) -> u64 {
        // For e.
        let span = match self {
            Self::Skellam { mu } => mu.to_f64().sqrt() / 4.0,
            Self::Shares { scale, .. } => scale.to_f64(),
            Self::Staircase { epsilon, width, .. } => width as f64 / epsilon.to_f64(),
        };
        ((span + 1.0) * (0.7 * bits as f64 + 50.0)) as u64
    }

    /// For a change of one integer by 1 to `most`, the largest sum of all P(y) - e^epsilon P(y - change) that are positive: delta.
    pub(crate) fn delta(self, epsilon: &Ball, changes: RangeInclusive<u64>) -> Ball {
        let precision = epsilon.precision();
        let count = (self.reach(precision) + changes.end()) as usize;
        let (masses, beyond) = self.masses(count, precision);
        let zero = Ball::integer(0, precision);
        let mass = |y: i64| masses.get(y.unsigned_abs() as usize).map(|mass| mass.scaled(-i64::from(y != 0)));
        // Delta falls as epsilon grows.
        let limit = Ball::integer(1u64 << 40, precision);
        let factor = if (epsilon - &limit).is_positive() { limit.exp() } else { epsilon.exp() };
        let excess = |own: &Ball, other: Option<Ball>| {
            let value = other.as_ref().map(|other| own - &(&factor * other));
            match value {
                Some(value) if value.is_positive() => value,
                Some(value) if value.is_negative() => zero.clone(),
                // It is no more than P(y), which says more where the other one is not known well.
                Some(value) if other.is_some_and(|other| other.accuracy() > 8) => Ball::hull(&zero, &value),
                _ => Ball::hull(&zero, own),
            }
        };
        let end = count as i64;
        let magnitudes: Vec<Ball> = (0..end).filter_map(mass).collect();
        let delta = |change: u64| {
            // P does not grow with the magnitude: P(y) > P(y - change) only for a y that is nearer to 0.
            let nearer = 1 - end..=(change as i64 - 1) / 2;
            let excesses = nearer.map(|y| excess(&magnitudes[y.unsigned_abs() as usize], mass(y - change as i64)));
            excesses.fold(Ball::hull(&zero, &beyond), |sum, excess| &sum + &excess)
        };
        let worst = changes.map(delta).reduce(larger).unwrap_or_else(|| zero.clone());
        worst.divided_by(&masses.iter().fold(beyond.clone(), |total, mass| &total + mass))
    }

    /// The quotients from 1 to `count` and some further ones, and how many times the last mass all that follow have at most.
    fn quotients(self, count: u64, precision: u64) -> (Vec<Ball>, Ball) {
        let whole = |n: u64| Ball::integer(n, precision);
        let of = |ratio: Ratio| {
            Ball::integer(ratio.numerator(), precision).divided_by(&Ball::integer(ratio.denominator(), precision))
        };
        let last = count + self.reach(precision);
        match self {
            Self::Skellam { mu } => {
                let mu = of(mu);
                let quotients = backwards(last, precision, |x, next| mu.divided_by(&(&whole(x) + &(&mu * next))));
                // They fall, and the last ones are not known well.
                let beyond = whole(1).divided_by(&(&whole(1) - &quotients[count as usize - 1]));
                (quotients, beyond)
            }
            Self::Shares { scale, shares, parties } => {
                let q = (-&whole(1).divided_by(&of(scale))).exp();
                let (both, m, n) = (&whole(1) + &(&q * &q), u128::from(shares), u128::from(parties));
                let times = |q: &Ball, factor: u128| q * &Ball::integer(factor, precision);
                let quotients = backwards(last, precision, |x, next| {
                    let x = u128::from(x);
                    let divisor = &times(&both, n * x) - &(&times(&q, (x + 1) * n - m) * next);
                    times(&q, (x - 1) * n + m).divided_by(&divisor)
                });
                (quotients, whole(1).divided_by(&(&whole(1) - &q)))
            }
            Self::Staircase { epsilon, width, inner } => {
                let down = (-&of(epsilon)).exp();
                let quotient = |x: u64| if x % width == inner % width { down.clone() } else { whole(1) };
                let beyond = whole(width).divided_by(&(&whole(1) - &down));
                ((1..=last).map(quotient).collect(), beyond)
            }
        }
    }
}

fn larger(a: Ball, b: Ball) -> Ball {
    match a.compare(&b) {
        Some(Ordering::Greater) => a,
        Some(_) => b,
        None => b.widened(&(&a - &b)),
    }
}

/// The quotients from 1 to `last`, each by the next: one chain from 0 and one from 1 have each of them between themselves. Where
/// a chain is certainly above 1, 1 is nearer.
fn backwards(last: u64, precision: u64, quotient: impl Fn(u64, &Ball) -> Ball) -> Vec<Ball> {
    let one = Ball::integer(1, precision);
    let mut ends = [Ball::integer(0, precision), one.clone()];
    let mut quotients: Vec<_> = (1..=last)
        .rev()
        .map(|x| {
            ends = ends.each_ref().map(|end| {
                let value = quotient(x, end);
                if (&value - &one).is_positive() { one.clone() } else { value }
            });
            Ball::hull(&ends[0], &ends[1])
        })
        .collect();
    quotients.reverse();
    quotients
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: u64 = 256;

    fn whole(n: u64) -> Ball {
        Ball::integer(n, BITS)
    }

    /// The probabilities of -reach to reach, where what is beyond is below 2^-200.
    fn law(quotients: Quotients, reach: usize) -> Vec<Ball> {
        let (masses, beyond) = quotients.masses(reach + 1, BITS);
        let sum = masses.iter().fold(beyond.clone(), |sum, mass| &sum + mass);
        assert!(beyond.divided_by(&sum).is_negligible(200));
        let of = |x: usize| masses[x].divided_by(&sum).scaled(-i64::from(x > 0));
        (0..=reach).rev().map(of).chain((1..=reach).map(of)).collect()
    }

    fn assert_equal(a: &Ball, b: &Ball) {
        assert!((a - b).is_negligible(190) && a.accuracy() > 100, "{a:?} {b:?}");
    }

    #[test]
    fn skellam_is_the_difference_of_poisson_variables() {
        for mu in [1u64, 7] {
            let found = law(Quotients::Skellam { mu: Ratio::new(mu.into(), 1).unwrap() }, 200);
            let mut poisson = vec![(-&whole(mu)).exp()];
            for k in 1..300 {
                poisson.push(poisson[k - 1].times(mu).over(k as u64));
            }
            for x in 0..30 {
                let sum = (0..250).fold(whole(0), |sum, k| &sum + &(&poisson[k] * &poisson[k + x]));
                assert_equal(&found[200 + x], &sum);
            }
        }
    }

    /// The sums over 1, 2 and 10 parties, by convolution.
    #[test]
    fn shares_add_up_to_discrete_laplace() {
        let (scale, reach) = (Ratio::new(1, 2).unwrap(), 75);
        let q = (-&whole(2)).exp();
        let first = (&whole(1) - &q).divided_by(&(&whole(1) + &q));
        for parties in [1, 2, 10] {
            let share = law(Quotients::Shares { scale, shares: 1, parties }, reach);
            let mut sum = share.clone();
            for _ in 1..parties {
                let of = |x: usize| {
                    let ys = x.saturating_sub(reach)..=(x + reach).min(2 * reach);
                    ys.fold(whole(0), |total, y| &total + &(&share[y] * &sum[x + reach - y]))
                };
                sum = (0..=2 * reach).map(of).collect();
            }
            let mut expected = first.clone();
            for x in 0..30 {
                assert_equal(&sum[reach + x], &expected);
                assert_equal(&sum[reach - x], &expected);
                expected = &expected * &q;
            }
        }
    }

    #[test]
    fn a_staircase_falls_where_it_should() {
        let epsilon = Ratio::new(3, 1).unwrap();
        let found = law(Quotients::Staircase { epsilon, width: 4, inner: 2 }, 240);
        let steps = |x: u64| (x + 2) / 4;
        for x in 0..40 {
            assert_equal(&found[240 + x as usize], &(&found[240] * &(-&whole(3 * steps(x))).exp()));
        }
    }
}
