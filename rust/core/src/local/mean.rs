//! Unbiased means of numbers in [-1, 1] from the collector's counters, and their standard errors.
//!
//! A report stands for a number whose expectation is the sender's. The mean of these numbers is the estimate, and the
//! mean of their squares says how much they vary around it. Sources: Wang, Xiao, Yang et al. 2019, "Collecting and
//! analyzing multidimensional data with local differential privacy", sections III-B and III-C, for windows; Dwork,
//! McSherry, Nissim and Smith 2006, "Calibrating noise to sensitivity in private data analysis", for noise.
//!
//! Nothing here is private: it is computed from reports that their senders randomised.

use super::chance::window::Window;
use super::reports::noisy_sums::NoisySums;
use crate::error::Error;

/// A mean of people's numbers, estimated from their reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    /// Unbiased, not clamped: for few people it may be outside of [-1, 1].
    pub mean: f64,
    /// The standard deviation of `mean`, of the randomisation and of sampling the people from a population.
    pub standard_error: f64,
    /// The number of reports.
    pub n: u64,
}

/// How the mean of people's numbers follows from counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanLaw {
    /// A counter is the number of reports of one output: of a window, or, after its outputs, of another one. The first
    /// window is taken with the probability `share`.
    Windows {
        /// The probability of the first window.
        share: f64,
        /// The first window.
        first: Window,
        /// The other one.
        second: Option<Window>,
    },
    /// The counter is the sum of numbers with noise.
    Sum {
        /// The encoding of a number.
        sums: NoisySums,
        /// The variance of the noise of a number.
        noise: f64,
    },
}

impl MeanLaw {
    /// The allowed numbers of reports.
    pub const COUNTS: &str = "an integer from 1 to 2**64 - 1";

    /// The mean from the `counters` of `n` reports.
    ///
    /// # Errors
    /// [`Error::Data`] for no reports, and unless there is a counter for each output, or one for a sum.
    pub fn estimate(&self, n: u64, counters: &[u64]) -> Result<MeanEstimate, Error> {
        if n == 0 {
            return Err(Error::data("collected", "must have at least one report, got none"));
        }
        let counted = match self {
            Self::Windows { first, second, .. } => first.outputs() + second.map_or(0, Window::outputs),
            Self::Sum { .. } => 1,
        };
        if counters.len() != counted as usize {
            return Err(Error::data("counters", format!("must be {counted}")));
        }
        let (mean, square) = match self {
            Self::Windows { first, second, .. } => {
                let (of_first, of_second) = counters.split_at(first.outputs() as usize);
                let numbers = numbers(first).zip(of_first).chain(second.iter().flat_map(numbers).zip(of_second));
                numbers.fold((0.0, 0.0), |(mean, square), (number, &counter)| {
                    let share = counter as f64 / n as f64;
                    (mean + share * number, square + share * number * number)
                })
            }
            Self::Sum { sums, noise } => {
                let sum = i128::from(counters[0]) - i128::from(n) * i128::from(sums.bound());
                // A sum does not show the spread of people's numbers, which is at most 1.
                (sum as f64 / (n as f64 * f64::from(sums.unit())), noise + 1.0)
            }
        };
        // The true mean is within [-1, 1]. The randomisation alone has a known variance, which is a lower bound: a few
        // reports may happen to be alike.
        let clamped = mean.clamp(-1.0, 1.0);
        let variance = (square - clamped * clamped).max(self.over_windows(least_variance));
        Ok(MeanEstimate { mean, standard_error: (variance / n as f64).sqrt(), n })
    }

    /// The variance of the mean of `n` reports when all people have the number `x`, over the randomisation.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 1 <= n and -1 <= x <= 1.
    pub fn variance(&self, n: u64, x: f64) -> Result<f64, Error> {
        if n == 0 {
            return Err(Error::parameter("n", n, Self::COUNTS));
        }
        if !(-1.0..=1.0).contains(&x) {
            return Err(Error::parameter("x", format!("{x:?}"), "between -1 and 1"));
        }
        let of_one = match self {
            Self::Windows { .. } => self.over_windows(|window| variance(window, x)),
            Self::Sum { sums, noise } => {
                let unit = f64::from(sums.unit());
                noise + rounding((1.0 + x) * unit) / (unit * unit)
            }
        };
        Ok(of_one / n as f64)
    }

    /// The mean over the windows of what one gives, or the variance of the noise.
    fn over_windows(&self, of: impl Fn(&Window) -> f64) -> f64 {
        match self {
            Self::Windows { share, first, second } => {
                share * of(first) + second.map_or(0.0, |second| (1.0 - share) * of(&second))
            }
            Self::Sum { noise, .. } => *noise,
        }
    }
}

/// The number that each output of a window stands for.
fn numbers(window: &Window) -> impl Iterator<Item = f64> + use<> {
    let (outputs, step) =
        (f64::from(window.outputs()), window.mixture().kept_and_replaced().0 * f64::from(window.k() - 1));
    (0..window.outputs()).map(move |output| (2.0 * f64::from(output) - (outputs - 1.0)) / step)
}

/// The variance of that number for a sender with the number `x`.
fn variance(window: &Window, x: f64) -> f64 {
    let ((kept, replaced), steps) = (window.mixture().kept_and_replaced(), f64::from(window.k() - 1));
    let distance = x * steps / 2.0;
    let rounded = kept * rounding(f64::midpoint(1.0, x) * steps);
    let unit = 2.0 / (kept * steps);
    least_variance(window) + (rounded + kept * replaced * distance * distance) * unit * unit
}

/// A lower bound on that variance: without rounding, and with the window in the middle.
fn least_variance(window: &Window) -> f64 {
    let (kept, replaced) = window.mixture().kept_and_replaced();
    let uniform = |count: u32| (f64::from(count) * f64::from(count) - 1.0) / 12.0;
    let unit = 2.0 / (kept * f64::from(window.k() - 1));
    (kept * uniform(window.width()) + replaced * uniform(window.outputs())) * unit * unit
}

/// The variance of a number that is rounded at random to one of the integers around it.
fn rounding(number: f64) -> f64 {
    let upwards = number.fract();
    upwards * (1.0 - upwards)
}
