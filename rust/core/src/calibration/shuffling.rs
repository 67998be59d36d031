//! The epsilon of shuffled reports, proved from above. docs/proofs/shuffling.md has the theorems and the error bounds.

use dpnoise_kernels::arith::ball::Ball;
use dpnoise_kernels::arith::power_of_two;

use crate::error::Error;
use crate::threads::Pause;

/// The precision of the constants.
const BITS: u64 = 192;

/// Twice the largest relative error of a floating-point operation.
const ULP: f64 = f64::EPSILON;

/// More reports than there are people. A bound for fewer reports holds for more.
const MOST: u64 = 1 << 33;

/// Below this delta, the answer is the epsilon of a single report.
const LEAST_DELTA: f64 = power_of_two(-900);

/// So it is below this epsilon of a report: the smallest one that a protocol takes is twice that.
const LEAST_EPSILON: f64 = power_of_two(-21);

/// Probabilities are multiples of a power of this, so that they do not underflow.
const UNIT: f64 = power_of_two(-480);

/// Neutral reports are counted in steps that weigh as much as n reports times this, which makes the result larger by about
/// as much, relatively.
const STRIDE: f64 = power_of_two(-12);

/// The result is larger than the least epsilon that the bound allows by at most this, relatively.
const TOLERANCE: f64 = 1e-9;

/// A fraction: a numerator and a denominator.
pub(crate) type Share = (u128, u128);

fn whole(value: u64) -> Ball {
    Ball::integer(value, BITS)
}

fn zero_or(ball: &Ball) -> f64 {
    if ball.is_positive() { ball.upper_f64() } else { 0.0 }
}

/// The part that reports on all values have in common, and what it tells about two of them.
///
/// There is a distribution w with R(x) >= `mass` w for every value x. Let r0 = R(x0)/w and r1 = R(x1)/w. A report is
/// *telling* if one of them is `low` and the other is `low` times `ratio`; under w both cases are equally likely. The other
/// reports are *neutral*: r0 = r1, which is at most `heaviest`.
#[derive(Clone, Debug)]
pub(crate) struct Blanket {
    ratio: Ball,
    mass: Ball,
    low: Ball,
    heaviest: Ball,
    /// The probability under w of a telling report.
    telling: Ball,
    /// The name of the bound.
    bound: &'static str,
}

impl Blanket {
    /// The blanket of every randomiser with this epsilon (Feldman, McMillan and Talwar 2021).
    pub(crate) fn of_any(epsilon: f64) -> Self {
        let of_two = Self::of_two_values(epsilon);
        Self { mass: whole(1).divided_by(&of_two.ratio), bound: "clones", ..of_two }
    }

    /// The blanket of every randomiser of one of two values with this epsilon.
    pub(crate) fn of_two_values(epsilon: f64) -> Self {
        let ratio = Ball::from_f64(epsilon, BITS).exp();
        let low = whole(2).divided_by(&(&ratio + &whole(1)));
        Self { mass: low.clone(), heaviest: low.clone(), low, telling: whole(1), ratio, bound: "binary" }
    }

    /// The blanket of a randomiser whose reports support some values: a report is `ratio` times likelier for a value that
    /// it supports. Among equally likely reports, so many support a given value, and so many two given values.
    pub(crate) fn of_supports(ratio: Share, one: Share, two: Share) -> Self {
        let ball = |(numerator, denominator): Share| {
            Ball::integer(numerator, BITS).divided_by(&Ball::integer(denominator, BITS))
        };
        let ratio = ball(ratio);
        let mass = whole(1).divided_by(&(&whole(1) + &(&ball(one) * &(&ratio - &whole(1)))));
        let heaviest = if two.0 == 0 { mass.clone() } else { &mass * &ratio };
        let telling = (&ball(one) - &ball(two)).scaled(1);
        Self { telling, low: mass.clone(), mass, heaviest, ratio, bound: "blanket" }
    }

    /// An epsilon, at most `local`, for which `n` shuffled reports are (epsilon, delta)-differentially private for the
    /// replacement of one person's value, and the name of the bound. `local` is the epsilon of one report.
    ///
    /// # Errors
    /// That of `pause`.
    pub(crate) fn epsilon(
        &self,
        local: f64,
        n: u64,
        delta: f64,
        pause: &mut Pause<'_>,
    ) -> Result<(f64, &'static str), Error> {
        if delta < LEAST_DELTA || local < LEAST_EPSILON {
            return Ok((local, "local"));
        }
        let crowd = Crowd::new(self, n.min(MOST), delta * power_of_two(-40));
        let mut excess = |epsilon: f64| {
            pause()?;
            Ok::<_, Error>((crowd.delta(&Advantage::new(self, epsilon)) / delta).ln())
        };
        let (mut low, mut high) = (local * power_of_two(-50), local);
        let (mut above, mut below) = (excess(low)?, f64::NEG_INFINITY);
        if above <= 0.0 {
            return Ok((low, self.bound));
        }
        for step in 0.. {
            if high <= low * (1.0 + TOLERANCE) {
                break;
            }
            // The line through the logarithms at both ends, a little to either side of it so that both ends move; but the
            // middle where the line is far from the curve.
            let line = (above / (above - below) + if step % 2 == 0 { 1e-3 } else { -1e-3 }).clamp(0.0, 1.0);
            let share = if step % 3 == 2 || high > 2.0 * low || below.is_infinite() { 0.5 } else { line };
            let next = low * (high / low).powf(share);
            let found = excess(next)?;
            if found <= 0.0 {
                (high, below) = (next, found);
            } else {
                (low, above) = (next, found);
            }
        }
        Ok((high, if high < local { self.bound } else { "local" }))
    }
}

/// The numbers of telling and of neutral reports of the common part.
struct Crowd {
    telling: Law,
    /// The numbers of neutral reports, in steps of `stride`, for blocks of so many numbers of telling reports, the largest
    /// first.
    neutral: Vec<Law>,
    block: f64,
    stride: f64,
}

impl Crowd {
    fn new(blanket: &Blanket, n: u64, negligible: f64) -> Self {
        let telling_share = &blanket.mass * &blanket.telling;
        let telling = Law::new((n - 1) as f64, &telling_share, 1.0, negligible);
        // What is not telling weighs so much in all: at worst it is a few reports of the largest weight.
        let told = (&(&telling_share * &blanket.low) * &(&blanket.ratio + &whole(1))).scaled(-1);
        let rest = &(&whole(1) - &telling_share) * &blanket.heaviest;
        let share = &blanket.mass - &told;
        if !share.is_positive() {
            return Self { telling, neutral: vec![Law::certain(0.0)], block: f64::INFINITY, stride: 1.0 };
        }
        let share = share.divided_by(&rest);
        let block = (n as f64 * STRIDE).ceil();
        let stride = (block * blanket.mass.divided_by(&blanket.heaviest).upper_f64()).round().max(1.0);
        let tops = (0..).map(|index| telling.last() - f64::from(index) * block);
        let neutral = tops
            .take_while(|&top| top >= telling.first)
            .map(|top| Law::new(n as f64 - 1.0 - top, &share, stride, negligible))
            .collect();
        Self { telling, neutral, block, stride }
    }

    /// The delta, from above.
    fn delta(&self, advantage: &Advantage) -> f64 {
        let laws = || self.neutral.iter();
        let first = laws().map(|law| law.first).fold(f64::INFINITY, f64::min);
        let last = laws().map(Law::last).fold(0.0, f64::max);
        let mut sum = (self.telling.unseen + laws().map(|law| law.unseen).fold(0.0, f64::max)) * advantage.most;
        let mut step = first;
        while step <= last {
            let mut tail = Tail::new(advantage, self.telling.last(), step * self.stride);
            for (back, weight) in self.telling.shares.iter().rev().enumerate() {
                let share = self.neutral[(back as f64 / self.block) as usize].share(step);
                if share > 0.0 {
                    sum += weight * share * tail.gain(advantage);
                }
                if back + 1 < self.telling.shares.len() {
                    tail.step(advantage);
                }
            }
            step += 1.0;
        }
        let terms = self.telling.shares.len() as f64 * (last - first + 1.0) + 100.0;
        sum * (1.0 + 2.0 * terms * ULP) + power_of_two(-950)
    }
}

/// A binomial law, in steps of a stride: probabilities from above.
struct Law {
    /// The first step with a probability.
    first: f64,
    shares: Vec<f64>,
    /// The probability of all other steps together.
    unseen: f64,
}

impl Law {
    fn certain(step: f64) -> Self {
        Self { first: step, shares: vec![1.0], unseen: 0.0 }
    }

    /// The law of the successes among `trials`, of this probability each: step i is from i `stride` to (i + 1) `stride`.
    /// About as much as is `negligible` is left out on each side.
    fn new(trials: f64, probability: &Ball, stride: f64, negligible: f64) -> Self {
        let failure = &whole(1) - probability;
        if trials <= 0.0 || !probability.is_positive() {
            return Self::certain(0.0);
        }
        if !failure.is_positive() {
            return Self::certain((trials / stride).floor());
        }
        let odds = probability.divided_by(&failure).upper_f64();
        // Probabilities relative to the likeliest number, up to where they are negligible.
        let mode = ((trials + 1.0) * probability.upper_f64()).floor().min(trials);
        let fewer = |x: f64| x / ((trials - x + 1.0) * odds);
        let more = |x: f64| (trials - x) * odds / (x + 1.0);
        let (below, lowest) = Self::side(mode, |x| x - 1.0, fewer, negligible);
        let (above, highest) = Self::side(mode, |x| x + 1.0, more, negligible);
        let total: f64 = below.iter().chain(&above).sum::<f64>() + 1.0;
        let error = 1.0 + (3.0 * (below.len() + above.len()) as f64 + 100.0) * 4.0 * ULP;
        let low = mode - below.len() as f64;
        let mut shares = Vec::new();
        let first = (low / stride).floor();
        for (index, weight) in below.iter().rev().chain(&[1.0]).chain(&above).enumerate() {
            let step = (((low + index as f64) / stride).floor() - first) as usize;
            shares.resize(step + 1, 0.0);
            shares[step] += weight / total * error;
        }
        Self { first, shares, unseen: (lowest + highest) / total * error }
    }

    /// The probabilities on one side of the mode, relative to it, and a bound on the sum of those left out.
    fn side(mode: f64, next: impl Fn(f64) -> f64, ratio: impl Fn(f64) -> f64, negligible: f64) -> (Vec<f64>, f64) {
        let (mut x, mut weight, mut found) = (mode, 1.0, Vec::new());
        loop {
            let factor = ratio(x);
            weight *= factor;
            // The ratios fall, so that the rest is at most a geometric series.
            let rest = if factor < 1.0 { weight / (1.0 - factor) } else { f64::INFINITY };
            if rest <= negligible {
                return (found, rest);
            }
            found.push(weight);
            x = next(x);
        }
    }

    fn last(&self) -> f64 {
        self.first + self.shares.len() as f64 - 1.0
    }

    fn share(&self, step: f64) -> f64 {
        let index = step - self.first;
        if index < 0.0 { 0.0 } else { self.shares.get(index as usize).copied().unwrap_or(0.0) }
    }
}

/// What telling and neutral reports are worth, for one epsilon.
struct Advantage {
    /// (e - E)/2, from above.
    near: f64,
    /// (e + 1)(E - 1)/2, from below.
    far: f64,
    /// What a neutral report takes, from below.
    push: f64,
    /// The first value is the likelier one if its share of s telling reports is more than this, from below.
    slope: f64,
    /// What a neutral report adds to that number of telling reports, from below.
    shift: f64,
    /// What the advantage of a telling report is worth in delta, from above.
    scale: f64,
    /// The largest advantage of a telling report in delta, from above.
    most: f64,
    /// What a wrong k may change, for each unit of probability.
    slack: f64,
}

impl Advantage {
    fn new(blanket: &Blanket, epsilon: f64) -> Self {
        let (one, e) = (whole(1), &blanket.ratio);
        let grown = Ball::from_f64(epsilon, BITS).exp();
        let excess = &grown - &one;
        let near = (e - &grown).scaled(-1);
        let far = (&(e + &one) * &excess).scaled(-1);
        let push = (&excess * &blanket.heaviest).divided_by(&blanket.low);
        let worth = &(e - &one) * &(&grown + &one);
        let slope = (&(&grown * e) - &one).divided_by(&worth);
        let scale = &blanket.low * &blanket.telling;
        let from_below = |ball: &Ball| zero_or(ball) * (1.0 - 8.0 * ULP);
        Self {
            near: near.upper_f64().max(0.0),
            far: from_below(&far),
            push: from_below(&push),
            slope: from_below(&slope),
            shift: from_below(&push.divided_by(&worth)),
            scale: scale.upper_f64(),
            most: (&scale * &near).upper_f64().max(0.0),
            slack: 64.0 * ULP * worth.upper_f64(),
        }
    }
}

/// The probabilities of Bin(c, 1/2) around a number k of telling reports, while c becomes smaller: of c + 1 telling
/// reports, k for the first value make it the likelier one.
struct Tail {
    c: f64,
    k: f64,
    /// Whether k may be 1 too small.
    uncertain: bool,
    /// P(Bin(c, 1/2) = k - 1) in units of `UNIT` to the power `scaled`, with a relative error of so many [`ULP`].
    point: f64,
    relative: f64,
    /// P(Bin(c, 1/2) >= k) in the same units, and how much smaller it may be.
    above: f64,
    error: f64,
    scaled: usize,
    /// The number of neutral reports.
    neutral: f64,
}

impl Tail {
    fn new(advantage: &Advantage, c: f64, neutral: f64) -> Self {
        let (k, uncertain) = Self::least(advantage, c, neutral);
        let mut found = Self { c, k, uncertain, point: 0.0, relative: 0.0, above: 0.0, error: 0.0, scaled: 0, neutral };
        if k > c + 1.0 {
            return found; // the first value is never the likelier one, and with fewer telling reports neither
        }
        // Probabilities relative to that of a number in the middle.
        let middle = (c / 2.0).floor().min(k - 1.0);
        let up = |x: f64| (c - x) / (x + 1.0);
        let (mut total, mut weight, mut x) = (1.0, 1.0, middle);
        while x < c && weight > total * ULP * ULP {
            weight *= up(x);
            total += weight;
            x += 1.0;
        }
        let mut steps = x - middle;
        (weight, x) = (1.0, middle);
        while x > 0.0 && weight > total * ULP * ULP {
            weight /= up(x - 1.0);
            total += weight;
            x -= 1.0;
        }
        steps += middle - x;
        (weight, x) = (1.0, middle);
        while x < k - 1.0 {
            weight *= up(x);
            x += 1.0;
            if weight < UNIT {
                weight /= UNIT;
                found.scaled += 1;
            }
        }
        found.point = weight / total;
        let mut sum = 0.0;
        while x < c && weight > sum * ULP * ULP {
            weight *= up(x);
            sum += weight;
            x += 1.0;
        }
        steps += x - middle;
        found.relative = 4.0 * steps + 100.0;
        found.above = sum / total;
        found.error = found.above * found.relative * ULP;
        found
    }

    /// The least number of telling reports for the first value that makes it the likelier one, or one less, and whether
    /// that is possible.
    fn least(advantage: &Advantage, c: f64, neutral: f64) -> (f64, bool) {
        let from_below = (c + 1.0) * advantage.slope + neutral * advantage.shift;
        let floor = from_below.floor();
        (floor + 1.0, (from_below * (1.0 + 32.0 * ULP)).floor() > floor)
    }

    /// The advantage of the first value for each telling report, from above.
    fn gain(&self, advantage: &Advantage) -> f64 {
        let pushed = self.neutral * advantage.push / (self.c + 1.0);
        let point = self.point * (1.0 + self.relative * ULP);
        let tail = (self.above - 1.01 * self.error).max(0.0);
        let gain = point * (advantage.near - pushed / 2.0) - tail * (advantage.far + pushed);
        // The rounding of the numbers above, and a term too many.
        let rounding = 64.0 * ULP * (point * (advantage.near + pushed) + tail * (advantage.far + pushed));
        let slack = rounding + if self.uncertain { advantage.slack * point } else { 0.0 };
        let unit = [1.0, UNIT, UNIT * UNIT].get(self.scaled).copied().unwrap_or(0.0);
        (gain.max(0.0) + slack) * advantage.scale * unit
    }

    /// One telling report less.
    fn step(&mut self, advantage: &Advantage) {
        let (c, k) = (self.c, self.k);
        // P(Bin(c - 1, 1/2) = k - 1) / 2
        let half = self.point * (c - k + 1.0) / c;
        self.c -= 1.0;
        (self.k, self.uncertain) = Self::least(advantage, self.c, self.neutral);
        if self.k == k {
            self.above -= half;
            self.point = 2.0 * half;
        } else {
            self.above += half;
            self.point *= 2.0 * (k - 1.0) / c;
        }
        self.relative += 3.0;
        self.error += ULP * (self.above.abs() + half * self.relative);
        if self.scaled > 0 && self.point.max(self.above) > 1.0 / UNIT.sqrt() {
            self.point *= UNIT;
            self.above *= UNIT;
            self.error *= UNIT;
            self.scaled -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of reports of k-ary randomised response with ratio 3.
    fn of_three(k: u128) -> Blanket {
        Blanket::of_supports((3, 1), (1, k), (0, 1))
    }

    #[test]
    fn two_reports_have_the_delta_of_their_enumeration() {
        // Randomised response of ratio 3 among 2 and 3 values, two reports, e^epsilon = 5/2; alone, 1/8 and 1/10.
        for (k, least) in [(2, 0.09375), (3, 0.06)] {
            let blanket = of_three(k);
            let crowd = Crowd::new(&blanket, 2, power_of_two(-60));
            let found = crowd.delta(&Advantage::new(&blanket, 2.5f64.ln()));
            assert!((least..0.125).contains(&found), "{k} {found}");
        }
    }

    #[test]
    fn a_report_without_others_has_its_own_delta() {
        let blanket = of_three(2);
        for grown in [1.5f64, 2.0, 2.75] {
            let found = Crowd::new(&blanket, 1, power_of_two(-60)).delta(&Advantage::new(&blanket, grown.ln()));
            let exact = (3.0 - grown) / 4.0;
            let margin = (found / exact - 1.0) / ULP; // of the sum, twice 101, and of the gain: see below
            assert!((350.0..1000.0).contains(&margin), "{grown} {margin}");
        }
        let never = Advantage::new(&blanket, 3.5f64.ln()); // more than a report's own
        assert_eq!(Crowd::new(&blanket, 1, 0.0).delta(&never), power_of_two(-950));
    }

    #[test]
    fn what_is_left_out_counts() {
        let blanket = of_three(2);
        let advantage = Advantage::new(&blanket, 1.1f64.ln());
        let law = |negligible: f64| Law::new(60.0, &whole(2).divided_by(&whole(5)), 1.0, negligible);
        let delta = |negligible: f64| Crowd::new(&blanket, 60, negligible).delta(&advantage);
        let (all, most) = (law(power_of_two(-60)), delta(power_of_two(-60)));
        for negligible in [1e-3, 0.1, 0.5, 0.9] {
            let cut = law(negligible);
            let seen: f64 = (0..cut.shares.len()).map(|step| all.share(cut.first + step as f64)).sum();
            assert!(cut.unseen >= 1.0 - seen && cut.unseen > 0.0, "{negligible}");
            assert!(delta(negligible) >= most * (1.0 - 1e-9), "{negligible}");
        }
    }

    #[test]
    fn a_number_that_rounding_may_have_lowered_is_uncertain() {
        let mut advantage = Advantage::new(&of_three(2), 0.5);
        for (slope, expected) in [
            (0.5, (6.0, false)),
            (0.5 * (1.0 - 4.0 * ULP), (5.0, true)),
            (0.5 * (1.0 - 100.0 * ULP), (5.0, false)),
            (0.45, (5.0, false)),
        ] {
            advantage.slope = slope;
            assert_eq!(Tail::least(&advantage, 9.0, 0.0), expected, "{slope}");
        }
        // One term too many, whose amount is negative, is made up for.
        let mut tail = Tail::new(&advantage, 9.0, 0.0);
        let certain = tail.gain(&advantage);
        tail.uncertain = true;
        let more = (tail.gain(&advantage) - certain) / (advantage.slack * tail.point * advantage.scale);
        assert!((more - 1.0).abs() < 0.1, "{more}");
    }

    /// The logarithm of what a tail keeps in units.
    fn of_units(value: f64, tail: &Tail) -> f64 {
        value.ln() + tail.scaled as f64 * UNIT.ln()
    }

    #[test]
    fn a_tail_after_steps_is_the_tail_made_anew() {
        let blanket = Blanket::of_two_values(3.0);
        let mut left_units = 0;
        for (epsilon, c, neutral) in [(0.1, 400.0, 0.0), (1.5, 900.0, 3.0), (2.5, 1200.0, 0.0), (2.9, 1500.0, 7.0)] {
            let advantage = Advantage::new(&blanket, epsilon);
            let mut tail = Tail::new(&advantage, c, neutral);
            let relative = tail.relative;
            while tail.k < tail.c {
                let scaled = tail.scaled;
                tail.step(&advantage);
                left_units += scaled - tail.scaled;
                if tail.above > 0.0 {
                    assert!(tail.error >= ULP * tail.above && tail.error < 1e-9 * tail.above, "{epsilon} {}", tail.c);
                }
                let anew = Tail::new(&advantage, tail.c, neutral);
                assert_eq!((tail.k, tail.uncertain), (anew.k, anew.uncertain));
                let apart = of_units(tail.point, &tail) - of_units(anew.point, &anew);
                assert!(apart.abs() <= (tail.relative + anew.relative) * ULP, "{epsilon} {} {apart}", tail.c);
                let apart = of_units(tail.above, &tail) - of_units(anew.above, &anew);
                assert!(anew.above == 0.0 || apart.abs() < 1e-9, "{epsilon} {} {apart}", tail.c);
            }
            assert_eq!(tail.relative, relative + 3.0 * (c - tail.c));
        }
        assert!(left_units > 0);
    }

    #[test]
    fn a_gain_is_that_of_the_enumeration_and_its_margins() {
        let (local, epsilon) = (2.0f64, 0.75f64);
        let (e, grown) = (local.exp(), epsilon.exp());
        let advantage = Advantage::new(&Blanket::of_two_values(local), epsilon);
        for (c, neutral) in [(0u32, 0.0), (5, 0.0), (12, 2.0), (30, 0.0), (40, 5.0)] {
            let s = f64::from(c + 1);
            // (the number of telling reports for the first value, its probability)
            let mut probability = power_of_two(-(c as i32) - 1);
            let mut exact = 0.0;
            for count in 0..=c + 1 {
                let j = f64::from(count);
                let worth = (e - grown) * j - (grown * e - 1.0) * (s - j) - neutral * advantage.push;
                exact += probability * worth.max(0.0) / s;
                probability *= (s - j) / (j + 1.0);
            }
            let tail = Tail::new(&advantage, f64::from(c), neutral);
            let pushed = neutral * advantage.push / s;
            let (point, above) = (tail.point * (advantage.near + pushed), tail.above * (advantage.far + pushed));
            let margin = (tail.gain(&advantage) / advantage.scale - exact) / (ULP * (point + above));
            assert!((0.9..1.1).contains(&(margin / (tail.relative + 64.0))), "{c} {margin}");
        }
    }
}
