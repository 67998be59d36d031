#![doc = include_str!("calibration.md")]

mod curves;
mod root;
mod sample_and_threshold;
mod shuffling;
mod tail;

use crate::error::Error;
use crate::params::{Delta, Epsilon, LARGEST_RADIUS, Rho};
use crate::threads::Pause;
use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::gaussian::exp_or_tiny;
pub(crate) use root::fits;
use root::{PRECISIONS, least_argument};

pub(crate) use curves::{continuous, discrete, smaller, vector};
pub use sample_and_threshold::SampleAndThreshold;
pub(crate) use shuffling::Blanket;
pub(crate) use tail::{persons_threshold, tail_threshold};

/// The allowed sigmas, in sensitivities.
const RATIOS: [f64; 2] = [1.0 / (1u64 << 40) as f64, (1u64 << 60) as f64];

/// The allowed sigmas, over the integers.
const SIGMAS: [f64; 2] = [1.0 / (1u64 << 20) as f64, (1u64 << 44) as f64];

/// The range of a computed positive epsilon.
const EPSILONS: [f64; 2] = [1.0 / (1u64 << 60) as f64, (1u64 << 60) as f64];

/// The largest double below 2 ln(5/2), up to which the classical sigma is proved.
const LARGEST_CLASSICAL: f64 = 1.832_581_463_748_31;

/// More values than any memory holds.
pub(crate) const ANY_COUNT: u64 = 1 << 60;

/// The formula of a Gaussian's sigma for epsilon and delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The least sigma (Balle and Wang 2018).
    Analytic,
    /// sensitivity sqrt(2 ln(1.25/delta)) / epsilon, for epsilon up to 2 ln(5/2).
    Classical,
}

/// An epsilon and a delta to achieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

impl Goal {
    pub(crate) fn new(epsilon: f64, delta: f64) -> Result<Self, Error> {
        Ok(Self { epsilon: Epsilon::new(epsilon)?.get(), delta: Delta::new(delta)?.get() })
    }

    /// Sigma over the sensitivity, for continuous noise.
    pub(crate) fn ratio(self, method: Method) -> Result<f64, Error> {
        let ratio = match method {
            Method::Analytic => least_argument(self.delta, self.guess(), RATIOS, |ratio| {
                continuous(&Ball::from_f64(self.epsilon, ratio.precision()), ratio)
            }),
            Method::Classical if self.epsilon > LARGEST_CLASSICAL => {
                let allowed = format!(
                    "at most {LARGEST_CLASSICAL:?} for method \"classical\" (\"analytic\" is proved for every epsilon)"
                );
                return Err(Error::parameter("epsilon", format!("{:?}", self.epsilon), allowed));
            }
            Method::Classical => self.classical_ratio(),
        };
        ratio.ok_or_else(|| self.out_of_range("below 2**60 sensitivities"))
    }

    /// The least r with 1.25 exp(-(epsilon r)^2 / 2) <= delta.
    fn classical_ratio(self) -> Option<f64> {
        let guess = (2.0 * (1.25 / self.delta).ln()).sqrt() / self.epsilon;
        least_argument(self.delta, guess, RATIOS, |ratio| {
            let x = &Ball::from_f64(self.epsilon, ratio.precision()) * ratio;
            exp_or_tiny(&-&(&x * &x).scaled(-1)).unwrap_or_else(|tiny| tiny).times(5).scaled(-2)
        })
    }

    /// Nearly sigma over the sensitivity.
    pub(crate) fn guess(self) -> f64 {
        let Self { epsilon, delta } = self;
        // Q(x) is at most exp(-x^2 / 2) / 2, and at epsilon = 0 delta is at most 1 / (sqrt(2 pi) ratio).
        let x = |p: f64| (2.0 * (0.5 / p).ln()).max(0.0).sqrt();
        let x = if delta < 0.5 { x(delta) } else { -x(1.0 - delta) };
        let root = (x * x + 2.0 * epsilon).sqrt();
        let ratio = if x > 0.0 { (x + root) / (2.0 * epsilon) } else { 1.0 / (root - x) };
        ratio.min(0.4 / delta)
    }

    /// The least sufficient sigma, `least` or more, for vectors of `count` integers that are at most `shift` apart.
    pub(crate) fn sigma(self, least: f64, shift: &Ball, count: usize) -> Option<f64> {
        let least = least.max(SIGMAS[0]);
        let curve = |sigma: &Ball| vector(&Ball::from_f64(self.epsilon, sigma.precision()), sigma, shift, count as u64);
        if fits(self.delta, least, curve) { Some(least) } else { least_argument(self.delta, least, SIGMAS, curve) }
    }

    /// Sigma for an integer that moves by at most `shift`.
    pub(crate) fn sigma_of_one(self, shift: u64) -> Option<f64> {
        least_argument(self.delta, self.guess() * shift as f64, SIGMAS, self.curve_of_one(shift))
    }

    /// A whole sigma of at most `largest` for an integer that moves by at most `shift`, where 1 less would not do.
    ///
    /// It is the same on all machines, so that it can be announced: which halves of the range are taken follows from
    /// the order of exact numbers alone.
    pub(crate) fn whole_sigma_of_one(self, shift: u64, largest: u32) -> Option<u32> {
        let is_enough = |sigma: u32| fits(self.delta, sigma.into(), self.curve_of_one(shift));
        if !is_enough(largest) {
            return None;
        }
        let (mut too_small, mut enough) = (0, largest);
        while enough - too_small > 1 {
            let middle = too_small.midpoint(enough);
            if is_enough(middle) {
                enough = middle;
            } else {
                too_small = middle;
            }
        }
        Some(enough)
    }

    /// A radius of noise from `least` on with `curve(epsilon, radius) <= delta`, where 1 less would not do; `None` if there
    /// is none up to 2^62. `guess` only affects the time.
    pub(crate) fn radius(self, guess: f64, least: u64, curve: impl Fn(&Ball, u64) -> Ball) -> Option<u64> {
        let is_enough = |radius| fits(self.delta, self.epsilon, |epsilon| curve(epsilon, radius));
        let (mut too_small, mut enough) = (least - 1, LARGEST_RADIUS + 1);
        let (mut next, mut step) = ((guess as u64).clamp(least, LARGEST_RADIUS), 1u64);
        while enough - too_small > 1 {
            next = if is_enough(next) {
                enough = next;
                next.saturating_sub(step)
            } else {
                too_small = next;
                next.saturating_add(step)
            };
            step = step.saturating_mul(2);
            if !(too_small < next && next < enough) {
                next = too_small.midpoint(enough);
            }
        }
        (enough <= LARGEST_RADIUS).then_some(enough)
    }

    fn curve_of_one(self, shift: u64) -> impl Fn(&Ball) -> Ball {
        move |sigma| discrete(&Ball::from_f64(self.epsilon, sigma.precision()), sigma, shift)
    }

    /// The error for a sigma out of range.
    pub(crate) fn out_of_range(self, sigma: &str) -> Error {
        let allowed = format!("such that sigma is {sigma} (delta is {:?})", self.delta);
        Error::parameter("epsilon", format!("{:?}", self.epsilon), allowed)
    }
}

/// The least double r with r^2 >= 1/(2 rho): sigma over the sensitivity (Canonne, Kamath and Steinke 2020, Theorem 14).
pub(crate) fn concentrated_ratio(rho: Rho) -> f64 {
    let rho = Ball::from_f64(rho.get(), 1 << 8);
    let is_enough = |ratio: f64| {
        let ratio = Ball::from_f64(ratio, 1 << 8);
        !(&Ball::integer(1, 1 << 8) - &(&rho * &(&ratio * &ratio)).scaled(1)).is_positive()
    };
    // Within a few units in the last place; the squares of doubles are exact in 256 bits.
    let ratio = Ball::integer(1, 1 << 8).divided_by(&rho.scaled(1).sqrt()).upper_f64();
    if is_enough(ratio.next_down()) { ratio.next_down() } else { ratio }
}

/// An epsilon, proved and at most `epsilon`, for which `n` reports whose senders and order a shuffler has removed are
/// (epsilon, delta)-differentially private for the replacement of one person's value. Each is a report of an
/// `epsilon`-locally differentially private randomiser (Feldman, McMillan and Talwar 2021, "Hiding among the clones").
/// Beside it the name of the bound: "clones", or "local" where that is not below `epsilon`.
///
/// # Errors
/// [`Error::Parameter`] unless 0 < epsilon <= 32, n >= 1 and 0 < delta < 1; and that of `pause`, which is called before each
/// step of the search.
pub fn shuffled_epsilon(epsilon: f64, n: u64, delta: f64, pause: &mut Pause<'_>) -> Result<(f64, &'static str), Error> {
    check_local_epsilon(epsilon)?;
    if n == 0 {
        return Err(Error::parameter("n", n, "at least 1"));
    }
    Blanket::of_any(epsilon).epsilon(epsilon, n, Delta::new(delta)?.get(), pause)
}

/// Checks an epsilon of reports, where more than 32 protects nobody.
fn check_local_epsilon(epsilon: f64) -> Result<(), Error> {
    if epsilon > 0.0 && epsilon <= 32.0 {
        Ok(())
    } else {
        Err(Error::parameter("epsilon", format!("{epsilon:?}"), "above 0 and at most 32"))
    }
}

/// Checks an epsilon to find a delta for: like [`least_epsilon`] it may be 0.
pub(crate) fn zero_or_more(epsilon: f64) -> Result<f64, Error> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        Ok(epsilon)
    } else {
        Err(Error::parameter("epsilon", format!("{epsilon:?}"), "zero or more and finite"))
    }
}

/// The least epsilon with `curve(epsilon) <= delta`, or 0; like [`certain_delta`] delta may be 1.
pub(crate) fn least_epsilon(delta: f64, curve: impl Fn(&Ball) -> Ball) -> Result<f64, Error> {
    let refused = |allowed| Error::parameter("delta", format!("{delta:?}"), allowed);
    if !(delta > 0.0 && delta <= 1.0) {
        return Err(refused("above 0 and at most 1"));
    }
    if delta == 1.0 || fits(delta, 0.0, &curve) {
        return Ok(0.0);
    }
    least_argument(delta, 1.0, EPSILONS, curve).ok_or_else(|| refused("such that epsilon is below 2**60"))
}

/// A proved upper bound of `curve(epsilon)`, which exceeds it by less than a share of 1e-15, unless it is nearly 0.
pub(crate) fn certain_delta(epsilon: f64, curve: impl Fn(&Ball) -> Ball) -> f64 {
    let mut least = 1f64;
    for precision in &PRECISIONS[1..] {
        let delta = curve(&Ball::from_f64(epsilon, *precision));
        least = least.min(delta.upper_f64());
        if delta.accuracy() > 56 || least < f64::MIN_POSITIVE {
            break;
        }
    }
    least
}

fn power(base: &Ball, mut exponent: u64) -> Ball {
    let (mut square, mut product) = (base.clone(), Ball::integer(1, base.precision()));
    while exponent > 0 {
        if exponent % 2 == 1 {
            product = &product * &square;
        }
        square = &square * &square;
        exponent /= 2;
    }
    product
}
