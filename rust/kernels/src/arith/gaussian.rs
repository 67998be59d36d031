#![doc = include_str!("gaussian.md")]

use std::sync::OnceLock;

use super::ball::Ball;

/// Sums are computed term by term where sigma is below this, or where terms fall by a factor of e within
/// [`STEEP`] terms; elsewhere by the formula of Euler and Maclaurin.
const SMOOTH: u64 = 32;
const STEEP: u64 = 8;

/// The largest number of terms of that formula.
const TERMS: usize = 24;

/// For exponents below this, exp is only bounded.
const TINY: i64 = -(1 << 16);

/// The Mills ratio R(x) = (1 - Phi(x)) / phi(x) of the standard normal distribution, for any real x.
#[must_use]
pub fn mills_ratio(x: &Ball) -> Ball {
    let precision = x.precision();
    let square = x * x;
    // The series may lose a quarter of the precision by cancellation.
    if (&square - &Ball::integer(precision / 4, precision)).is_positive() {
        if x.is_positive() {
            return by_continued_fraction(x);
        }
        return &half_turn(&square).scaled(1) - &by_continued_fraction(&-x);
    }
    // x^(2 n + 1) / (2 n + 1)!!, from n = 0.
    let mut sum = x.clone();
    let mut term = x.clone();
    let falling = 2.0 * square.upper_f64();
    for n in 1u64.. {
        term = (&term * &square).over(2 * n + 1);
        if (2 * n + 3) as f64 > falling && term.is_negligible(precision) {
            // From here on every term is less than half of the one before.
            return &half_turn(&square) - &sum.widened(&term.times(2));
        }
        sum = &sum + &term;
    }
    unreachable!("the terms tend to zero")
}

/// sqrt(pi / 2) exp(square / 2)
fn half_turn(square: &Ball) -> Ball {
    &Ball::pi(square.precision()).scaled(-1).sqrt() * &square.scaled(-1).exp()
}

/// The Mills ratio of a positive x: 1 / (x + 1 / (x + 2 / (x + 3 / ...))), whose tails are between x and x + k / x.
fn by_continued_fraction(x: &Ball) -> Ball {
    let root = 0.36 * x.precision() as f64 / x.upper_f64();
    let depth = (root * root / 2.0).min(1e6) as u64 + 8;
    let mut tail = Ball::hull(x, &(x + &Ball::integer(depth, x.precision()).divided_by(x)));
    for k in (1..depth).rev() {
        tail = x + &Ball::integer(k, x.precision()).divided_by(&tail);
    }
    Ball::integer(1, x.precision()).divided_by(&tail)
}

/// exp(x); as an error, where that is negligible, a ball that contains it.
///
/// # Errors
/// When x is certainly below -2^16.
pub fn exp_or_tiny(x: &Ball) -> Result<Ball, Ball> {
    let limit = Ball::integer(TINY, x.precision());
    let tiny = || Ball::hull(&Ball::integer(0, x.precision()), &limit.exp());
    if (&limit - x).is_positive() { Err(tiny()) } else { Ok(x.exp()) }
}

/// Tail sums of g(k) = exp(-k^2 / (2 sigma^2)) over the integers.
#[derive(Clone, Debug)]
pub struct DiscreteTails {
    sigma: Ball,
    /// 1 / sigma^2
    inverse_square: Ball,
}

impl DiscreteTails {
    /// For a positive sigma.
    #[must_use]
    pub fn new(sigma: Ball) -> Self {
        let inverse_square = Ball::integer(1, sigma.precision()).divided_by(&(&sigma * &sigma));
        Self { sigma, inverse_square }
    }

    /// The sum of all g(k).
    #[must_use]
    pub fn total(&self) -> Ball {
        &self.ratio(0).scaled(1) - &Ball::integer(1, self.sigma.precision())
    }

    /// exp(exponent) times the sum of g(k) over k >= `start`, where exp(exponent) must not be huge unless g(start) is small.
    #[must_use]
    pub fn from(&self, start: i64, exponent: &Ball) -> Ball {
        if start <= 0 {
            let all = &exponent.exp() * &self.total();
            return &all - &self.from(1 - start, exponent);
        }
        let start_squared = Ball::integer(i128::from(start) * i128::from(start), self.sigma.precision());
        let exponent = exponent - &(&start_squared * &self.inverse_square).scaled(-1);
        match exp_or_tiny(&exponent) {
            Ok(first) => &first * &self.ratio(start),
            // Relative to its first term the sum is at most 1 + sigma sqrt(pi / 2).
            Err(tiny) => &tiny * &(&self.sigma.scaled(1) + &Ball::integer(1, tiny.precision())),
        }
    }

    /// The sum of g(k) / g(start) over k >= `start` >= 0.
    fn ratio(&self, start: i64) -> Ball {
        let precision = self.sigma.precision();
        let few = (&self.sigma - &Ball::integer(SMOOTH, precision)).is_negative();
        let slope = &Ball::integer(start, precision) * &self.inverse_square;
        if few || (&slope.times(STEEP) - &Ball::integer(1, precision)).is_positive() {
            self.ratio_term_by_term(start)
        } else {
            self.ratio_by_euler_and_maclaurin(start)
        }
    }

    fn ratio_term_by_term(&self, start: i64) -> Ball {
        let precision = self.sigma.precision();
        let one = Ball::integer(1, precision);
        // g(k + 1) / g(k), which falls by the same factor with every k.
        let slope = Ball::integer(2 * i128::from(start) + 1, precision);
        let exp = |x: &Ball| exp_or_tiny(x).unwrap_or_else(|tiny| tiny);
        let mut quotient = exp(&-&(&slope * &self.inverse_square).scaled(-1));
        let step = exp(&-&self.inverse_square);
        let (mut sum, mut term) = (one.clone(), one.clone());
        loop {
            term = &term * &quotient;
            quotient = &quotient * &step;
            if term.is_negligible(precision) {
                return sum.widened(&term.divided_by(&(&one - &quotient)));
            }
            sum = &sum + &term;
        }
    }

    fn ratio_by_euler_and_maclaurin(&self, start: i64) -> Ball {
        let precision = self.sigma.precision();
        let one = Ball::integer(1, precision);
        let x = Ball::integer(start, precision).divided_by(&self.sigma);
        let mut sum = &(&self.sigma * &mills_ratio(&x)) + &one.scaled(-1);
        // What is left after n / 2 terms is at most 37 sigma n! / (2 pi sigma)^n e^x.
        let circle = &Ball::pi(precision).scaled(1) * &self.sigma;
        let per_term = one.divided_by(&(&circle * &circle));
        let mut rest = &self.sigma.times(37) * &x.exp();
        // h(n) = He_n(x) / sigma^n, by the recurrence of the Hermite polynomials.
        let slope = &x.divided_by(&self.sigma);
        let (mut before, mut h) = (one, slope.clone());
        for (n, coefficient) in (1..).step_by(2).zip(bernoulli_coefficients()) {
            sum = &sum + &(&coefficient.at_precision(precision) * &h);
            rest = (&rest * &per_term).times(n * (n + 1));
            if rest.is_negligible(precision) {
                break;
            }
            let even = &(slope * &h) - &(&self.inverse_square * &before).times(n);
            h = &(slope * &even) - &(&self.inverse_square * &h).times(n + 1);
            before = even;
        }
        sum.widened(&rest)
    }
}

/// B(2 j) / (2 j)! for j = 1, 2, ...: the coefficients c of (x/2) coth(x/2), whose product with sinh(x/2) / (x/2) is
/// cosh(x/2).
fn bernoulli_coefficients() -> &'static [Ball] {
    static COEFFICIENTS: OnceLock<Vec<Ball>> = OnceLock::new();
    &COEFFICIENTS.get_or_init(|| {
        // 4^-i / (2 i)! and 4^-i / (2 i + 1)!
        let (mut cosh, mut sinh) = (vec![Ball::integer(1, 512)], vec![Ball::integer(1, 512)]);
        for n in (2..=2 * TERMS as u64).step_by(2) {
            cosh.push(sinh[sinh.len() - 1].over(4 * n));
            sinh.push(cosh[cosh.len() - 1].over(n + 1));
        }
        let mut coefficients: Vec<Ball> = Vec::new();
        for (j, first) in cosh.into_iter().enumerate() {
            let known = coefficients.iter().enumerate();
            let next = known.fold(first, |rest, (i, c)| &rest - &(c * &sinh[j - i]));
            coefficients.push(next);
        }
        coefficients
    })[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a ball contains a number given by its digits, and is narrow.
    fn is(ball: &Ball, digits: &str) -> bool {
        let (whole, fraction) = digits.split_once('.').unwrap();
        let numerator: num_bigint::BigInt = format!("{whole}{fraction}").parse().unwrap();
        let denominator = num_bigint::BigInt::from(10).pow(fraction.len() as u32);
        let value = Ball::integer(numerator, 400).divided_by(&Ball::integer(denominator.clone(), 400));
        let unit = Ball::integer(1, 400).divided_by(&Ball::integer(denominator, 400));
        (&(ball - &value) - &unit).is_negative() && (&(ball - &value) + &unit).is_positive()
    }

    #[test]
    fn the_constants_are_those_of_the_tables() {
        assert!(is(&Ball::pi(192), "3.14159265358979323846264338327950288419716939937510"));
        assert!(is(&Ball::integer(1, 192).exp(), "2.71828182845904523536028747135266249775724709369995"));
        assert!(is(&Ball::integer(2, 192).sqrt(), "1.41421356237309504880168872420969807856967187537694"));
        // B(2)/2! = 1/12, B(4)/4! = -1/720, B(12)/12! = -691/2730/12!
        let c = bernoulli_coefficients();
        assert!(is(&c[0], "0.083333333333333333333333333333333333333333333333333"));
        assert!(is(&c[1], "-0.001388888888888888888888888888888888888888888888888"));
        assert!(is(&c[5].times(479_001_600).times(2730), "-691.000000000000000000000000000000"));
    }
}
