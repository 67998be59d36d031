//! The distribution of numbers from the outputs of windows, by expectation maximisation.
//!
//! Every sender has a position, whose [`Window`] gave an output. A step takes the positions' probabilities of now for
//! true, and gives each position its share of the expected senders of all outputs; the likelihood of the counts never
//! falls. Smoothing then moves a quarter of each position's probability to each neighbour; where there is no neighbour,
//! the quarter stays. Steps end when the logarithm of the likelihood changes by little.
//!
//! Source: Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li 2020, "Estimating numerical distributions under local
//! differential privacy", section 5.
//!
//! # Sums over windows
//!
//! A step takes the sums of all windows twice. Differences of running sums would be fast, but their cancellation errors
//! are larger than some of the probabilities. Instead, the items are cut into blocks of the width of a window, so that
//! each window is the end of a block and the beginning of the next one. The running sums of each block, from its
//! beginning and from its end, give all windows with one addition each (van Herk 1992; Gil and Werman 1993). Nothing is
//! ever subtracted, and items are not negative, so a sum of w items has a relative error of at most w 2^-53, as if it
//! had been added up by itself.
//!
//! Nothing here is private: it is computed from reports that their senders randomised.

use dpnoise_kernels::memory::{collected, zeroed};

use super::chance::window::Window;
use crate::error::Error;

const MOST_STEPS: usize = 10_000;

/// The largest epsilon of the paper's experiments; beyond it the first step would soon meet a tolerance that grows with
/// e^epsilon.
const MOST_LAX_EPSILON: f64 = 2.5;

/// How people's numbers are distributed, estimated from their reports.
#[derive(Clone, Debug, PartialEq)]
pub struct DensityEstimate {
    /// The share of people at each position, not negative; they sum to 1.
    pub probabilities: Vec<f64>,
    /// The number of reports.
    pub n: u64,
}

/// The probabilities of the positions that maximise the likelihood of `n` reports, of which `counters[i]` are output i,
/// until a step changes its logarithm by less than 0.001, or without `smoothing` by less than 0.001 e^epsilon.
///
/// # Errors
/// [`Error::Data`] for no reports; [`Error::Allocation`].
pub(crate) fn estimate(
    window: Window,
    epsilon: f64,
    n: u64,
    counters: &[u64],
    smoothing: bool,
) -> Result<DensityEstimate, Error> {
    if n == 0 {
        return Err(Error::data("collected", "must have at least one report, got none"));
    }
    let tolerance = if smoothing { 1e-3 } else { 1e-3 * epsilon.min(MOST_LAX_EPSILON).exp() };
    let mut steps = Steps::new(window, counters)?;
    let mut before = f64::NEG_INFINITY;
    for _ in 1..MOST_STEPS {
        let likelihood = steps.likelihood();
        if (likelihood - before).abs() < tolerance {
            break;
        }
        before = likelihood;
        steps.step(smoothing);
    }
    Ok(DensityEstimate { probabilities: collected(steps.shares().iter().copied())?, n })
}

/// Expectation maximisation, from equal probabilities on.
struct Steps<'a> {
    width: usize,
    /// What a position adds to each output of its window, and to all outputs.
    inside: f64,
    anywhere: f64,
    counters: &'a [u64],
    /// The positions' probabilities, with width - 1 zeros on both sides: windows of these give the outputs.
    padded: Vec<f64>,
    /// The outputs' probabilities; and then how many reports of each there are for each one expected.
    outputs: Vec<f64>,
    /// What each position's probability is multiplied by.
    factors: Vec<f64>,
    /// Memory for sums.
    running: Vec<f64>,
}

impl<'a> Steps<'a> {
    fn new(window: Window, counters: &'a [u64]) -> Result<Self, Error> {
        let (kept, replaced) = window.mixture().kept_and_replaced();
        let (k, width, outputs) = (window.k() as usize, window.width() as usize, window.outputs() as usize);
        if counters.len() != outputs {
            return Err(Error::data("counters", format!("must be {outputs}")));
        }
        let mut steps = Self {
            width,
            inside: kept / width as f64,
            anywhere: replaced / outputs as f64,
            counters,
            padded: zeroed(k + 2 * (width - 1))?,
            outputs: zeroed(outputs)?,
            factors: zeroed(k)?,
            running: zeroed(k + 2 * (width - 1))?,
        };
        steps.shares_mut().fill(1.0 / k as f64);
        Ok(steps)
    }

    /// The positions' probabilities.
    fn shares(&self) -> &[f64] {
        &self.padded[self.width - 1..][..self.factors.len()]
    }

    fn shares_mut(&mut self) -> &mut [f64] {
        &mut self.padded[self.width - 1..][..self.factors.len()]
    }

    /// Computes the probabilities of all outputs.
    fn spread(&mut self) {
        let whole: f64 = self.shares().iter().sum();
        sums_of_windows(&self.padded, self.width, &mut self.running, &mut self.outputs);
        for output in &mut self.outputs {
            *output = self.anywhere * whole + self.inside * *output;
        }
    }

    /// Computes for each position the expectation of what its outputs have.
    fn gather(&mut self) {
        let whole: f64 = self.outputs.iter().sum();
        sums_of_windows(&self.outputs, self.width, &mut self.running, &mut self.factors);
        for factor in &mut self.factors {
            *factor = self.anywhere * whole + self.inside * *factor;
        }
    }

    /// The logarithm of the likelihood of the probabilities of now.
    fn likelihood(&mut self) -> f64 {
        self.spread();
        let seen = self.counters.iter().zip(&self.outputs).filter(|&(&counter, _)| counter > 0);
        seen.map(|(&counter, expected)| counter as f64 * expected.ln()).sum()
    }

    /// A step, after [`likelihood`](Self::likelihood).
    fn step(&mut self, smoothing: bool) {
        for (output, &counter) in self.outputs.iter_mut().zip(self.counters) {
            *output = if counter == 0 { 0.0 } else { counter as f64 / *output };
        }
        self.gather();
        let k = self.factors.len();
        let shares = &mut self.padded[self.width - 1..][..k];
        for (share, factor) in shares.iter_mut().zip(&self.factors) {
            *share *= factor;
        }
        if smoothing {
            let mut before = shares[0];
            for position in 0..k {
                let (here, after) = (shares[position], shares[(position + 1).min(k - 1)]);
                shares[position] = before / 4.0 + here / 2.0 + after / 4.0;
                before = here;
            }
        }
        let whole: f64 = shares.iter().sum();
        for share in shares {
            *share /= whole;
        }
    }
}

/// Writes to `sums` that of each `width` items in a row; `running` has as many items.
fn sums_of_windows(items: &[f64], width: usize, running: &mut [f64], sums: &mut [f64]) {
    // From the beginning of each block.
    for (block, running) in items.chunks(width).zip(running.chunks_mut(width)) {
        let mut sum = 0.0;
        for (item, running) in block.iter().zip(running) {
            sum += item;
            *running = sum;
        }
    }
    // From the end of each block in which windows begin, which is whole.
    for (block, sums) in sums.chunks_mut(width).enumerate() {
        let start = block * width;
        let mut sum: f64 = items[start + sums.len()..start + width].iter().sum();
        for (offset, window) in sums.iter_mut().enumerate().rev() {
            sum += items[start + offset];
            *window = if offset == 0 { sum } else { sum + running[start + offset + width - 1] };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::SquareWave;

    /// Numbers in [0, 1), the same in each run.
    fn numbers(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed;
        core::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        })
    }

    #[test]
    fn sums_are_those_of_the_windows() {
        for width in 1..12 {
            for length in width..40 {
                let items: Vec<f64> = numbers(7).map(f64::exp2).take(length).collect();
                let (mut running, mut sums) = (vec![0.0; length], vec![0.0; length - width + 1]);
                sums_of_windows(&items, width, &mut running, &mut sums);
                for (sum, window) in sums.iter().zip(items.windows(width)) {
                    let expected: f64 = window.iter().sum();
                    assert!((sum - expected).abs() <= 1e-14 * expected, "{width} {length}");
                }
            }
        }
    }

    #[test]
    fn nothing_cancels_beside_large_items() {
        let mut items = vec![1e-40; 50];
        items[7] = 1e40;
        let (mut running, mut sums) = (vec![0.0; 50], vec![0.0; 46]);
        sums_of_windows(&items, 5, &mut running, &mut sums);
        assert!(sums[8..].iter().all(|sum| (sum - 5e-40).abs() < 1e-54));
        // The positive control: a difference of running sums has lost the small items.
        let total: Vec<f64> = items.iter().scan(0.0, |sum, item| Some((*sum += item, *sum).1)).collect();
        assert_eq!(total[20] - total[15], 0.0);
    }

    #[test]
    fn windows_spread_as_they_are_defined() {
        for (k, epsilon) in [(2, 1.0), (9, 1.0), (5, 9.0), (64, 0.01)] {
            let window = SquareWave::new(k, epsilon).unwrap().window();
            let (outputs, (kept, replaced)) = (window.outputs() as usize, window.mixture().kept_and_replaced());
            let inside =
                |output: usize, position: usize| (position..position + window.width() as usize).contains(&output);
            let chance = |output, position| {
                replaced / outputs as f64
                    + if inside(output, position) { kept / f64::from(window.width()) } else { 0.0 }
            };
            let counters = vec![0; outputs];
            let mut steps = Steps::new(window, &counters).unwrap();
            let shares: Vec<f64> = numbers(1).take(k as usize).collect();
            steps.shares_mut().copy_from_slice(&shares);
            steps.spread();
            for (output, &found) in steps.outputs.iter().enumerate() {
                let expected: f64 = shares.iter().enumerate().map(|(l, share)| share * chance(output, l)).sum();
                assert!((found - expected).abs() <= 1e-13 * expected, "{k} {epsilon}");
            }
            let weights: Vec<f64> = numbers(2).take(outputs).collect();
            steps.outputs.copy_from_slice(&weights);
            steps.gather();
            for (position, &found) in steps.factors.iter().enumerate() {
                let expected: f64 = weights.iter().enumerate().map(|(r, weight)| weight * chance(r, position)).sum();
                assert!((found - expected).abs() <= 1e-13 * expected, "{k} {epsilon}");
            }
        }
    }

    /// As many reports of each kind as are expected of 10^15 people.
    fn expected_counters(window: Window, shares: &[f64]) -> Vec<u64> {
        let none = vec![0; window.outputs() as usize];
        let mut steps = Steps::new(window, &none).unwrap();
        steps.shares_mut().copy_from_slice(shares);
        steps.spread();
        steps.outputs.iter().map(|share| (share * 1e15).round() as u64).collect()
    }

    fn distribution(k: u64, seed: u64) -> Vec<f64> {
        let weights: Vec<f64> = numbers(seed).map(|number| -(1.0 - number).ln()).take(k as usize).collect();
        let whole: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / whole).collect()
    }

    #[test]
    fn the_likelihood_never_falls() {
        for (k, epsilon) in [(8, 1.0), (64, 0.5), (64, 4.0), (256, 2.0)] {
            let window = SquareWave::new(k, epsilon).unwrap().window();
            // Counts with noise, which no distribution expects.
            let exact = expected_counters(window, &distribution(k, 3));
            let noisy = exact
                .iter()
                .zip(numbers(4))
                .map(|(&count, number)| (count as f64 / 1e11 * (0.8 + 0.4 * number)) as u64);
            let counters: Vec<u64> = noisy.collect();
            let path = |smoothing| {
                let mut steps = Steps::new(window, &counters).unwrap();
                let likelihoods = (0..200).map(|_| (steps.likelihood(), steps.step(smoothing)).0);
                likelihoods.collect::<Vec<f64>>()
            };
            let (plain, smoothed) = (path(false), path(true));
            assert!(plain.windows(2).all(|pair| pair[1] - pair[0] >= -1e-12 * plain[0].abs()), "{k} {epsilon}");
            // The positive control: smoothing gives some likelihood up.
            assert!(smoothed[199] < plain[199], "{k} {epsilon}");
        }
    }

    #[test]
    fn expected_counts_give_the_truth() {
        for (k, epsilon) in [(4, 1.0), (16, 1.0), (16, 4.0)] {
            let (window, truth) = (SquareWave::new(k, epsilon).unwrap().window(), distribution(k, 5));
            let error = |shares: &[f64]| {
                let counters = expected_counters(window, shares);
                let mut steps = Steps::new(window, &counters).unwrap();
                for _ in 0..20_000 {
                    steps.likelihood();
                    steps.step(false);
                }
                let errors = steps.shares().iter().zip(&truth).map(|(found, share)| (found - share).abs());
                errors.fold(0.0, f64::max)
            };
            assert!(error(&truth) < 1e-3, "{k} {epsilon}");
            // The positive control: the counts of another distribution.
            let reversed: Vec<f64> = truth.iter().rev().copied().collect();
            assert!(error(&reversed) > 1e-2, "{k} {epsilon}");
        }
    }

    #[test]
    fn no_reports_are_refused() {
        let window = SquareWave::new(4, 1.0).unwrap().window();
        let refused = estimate(window, 1.0, 0, &vec![0; window.outputs() as usize], true);
        assert_eq!(refused.unwrap_err().to_string(), "collected must have at least one report, got none");
        assert!(estimate(window, 1.0, 3, &[3], true).is_err());
    }
}
