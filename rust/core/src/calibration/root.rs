//! The argument at which a decreasing privacy curve reaches a delta, with a proved upper bound.

use core::cmp::Ordering;

use dpnoise_kernels::arith::ball::Ball;

/// Precisions at which a comparison is tried.
pub(super) const PRECISIONS: [u64; 6] = [64, 128, 256, 512, 1024, 2048];

/// The result exceeds the exact one by less than this, relatively.
const TOLERANCE: f64 = 5e-13;

/// A value of the curve beside the delta to reach.
#[derive(Clone, Copy, Debug)]
struct Probe {
    argument: f64,
    /// Whether the value is proved to be at most that delta.
    fits: bool,
    /// Its approximate distance above delta, in logits: it only guides the search.
    excess: f64,
}

/// A double x in `range` with `curve(x) <= delta`, at most [`TOLERANCE`] above the least one if the curve decreases;
/// `None` if there is none. `guess` only affects the time.
pub(super) fn least_argument(delta: f64, guess: f64, range: [f64; 2], curve: impl Fn(&Ball) -> Ball) -> Option<f64> {
    let probe = |argument| probe(&curve, argument, delta);
    let [mut low, mut high] = range;
    let mut found = false;
    let mut last = probe(guess.clamp(low, high));
    narrow(last, &mut low, &mut high, &mut found);
    let mut next = (last.argument * if last.fits { 0.75 } else { 1.25 }).clamp(low, high);
    while high / low > 1.0 + TOLERANCE {
        let probed = probe(next);
        narrow(probed, &mut low, &mut high, &mut found);
        let root = secant(last, probed);
        last = probed;
        let near = (root / probed.argument - 1.0).abs() < 1e-8;
        if near && low < root && root < high {
            for aside in [1.0 + 0.4 * TOLERANCE, 1.0 - 0.4 * TOLERANCE] {
                narrow(probe((root * aside).clamp(low, high)), &mut low, &mut high, &mut found);
            }
        }
        // Never more than a factor of 4 at once, and never out of the bracket.
        let step = (root / probed.argument).clamp(0.25, 4.0);
        next = probed.argument * if step.is_nan() { 1.0 } else { step };
        if !(low < next && next < high) || near {
            next = (low * high).sqrt();
        }
    }
    found.then_some(high)
}

fn narrow(probed: Probe, low: &mut f64, high: &mut f64, found: &mut bool) {
    if probed.fits {
        *high = high.min(probed.argument);
        *found = true;
    } else {
        *low = low.max(probed.argument);
    }
}

/// Whether `curve(argument) <= delta` is proved.
pub(crate) fn fits(delta: f64, argument: f64, curve: impl Fn(&Ball) -> Ball) -> bool {
    probe(&curve, argument, delta).fits
}

fn probe(curve: &impl Fn(&Ball) -> Ball, argument: f64, delta: f64) -> Probe {
    let mut result = Probe { argument, fits: false, excess: f64::NAN };
    for precision in PRECISIONS {
        let value = curve(&Ball::from_f64(argument, precision));
        let target = Ball::from_f64(delta, precision);
        let one = Ball::integer(1, precision);
        let logit = |p: &Ball| p.ln_of_middle() - (&one - p).ln_of_middle();
        result.excess = logit(&value) - logit(&target);
        if let Some(order) = value.compare(&target) {
            result.fits = order == Ordering::Less;
            break;
        }
    }
    result
}

/// Where the line through two values, on a logarithmic scale, is zero.
fn secant(a: Probe, b: Probe) -> f64 {
    let (x, y) = (a.argument.ln(), b.argument.ln());
    (y - b.excess * (y - x) / (b.excess - a.excess)).exp()
}
