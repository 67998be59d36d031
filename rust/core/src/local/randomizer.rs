//! What is done to a value by chance, and what follows from it, for every kind of protocol in one place.

use serde_json::Value;

use super::bit_flip::{BitFlip, Neighbours};
use super::count_mean_sketch::CountMean;
use super::d_bit_flip::SampledFlips;
use super::estimate::Law;
use super::hadamard_count_mean_sketch::HadamardCountMean;
use super::hadamard_response::Hadamard;
use super::hierarchical_range::Hierarchy;
use super::local_hashing::Hashing;
use super::mixture::Mixture;
use super::noisy_sums::NoisySums;
use super::prefix_extension::Prefixes;
use super::rappor::Bloom;
use super::subset_selection::Subset;
use super::two_rounds::{TwoFlips, TwoMixtures};
use super::window::Window;
use super::window_mean::Hybrid;

/// What is done to an encoded value by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Randomizer {
    /// Every bit is flipped by itself, and a report supports the values whose bits are set.
    BitFlip(BitFlip),
    /// The value is kept or replaced, and a report supports what it is.
    Mixture(Mixture),
    /// A hash of the value is kept or replaced, and a report supports the values with that hash.
    Hashing(Hashing),
    /// An entry of the value's row of a Hadamard matrix is kept or replaced, and a report supports the values whose rows
    /// have that entry.
    Hadamard(Hadamard),
    /// A random set of values is made to have the sender's more often, and a report supports all of its members.
    Subset(Subset),
    /// Every bit is flipped once and for ever, and then for every report.
    LongitudinalFlips {
        /// Both rounds.
        flips: TwoFlips,
        /// The epsilon that was asked for of a single report.
        epsilon_first: f64,
    },
    /// A hash of the value is kept or replaced once and for ever, and then for every report.
    LongitudinalHashing {
        /// The hash functions, and both rounds as one.
        hashing: Hashing,
        /// Both rounds.
        rounds: TwoMixtures,
        /// The epsilon that was asked for of a single report.
        epsilon_first: f64,
    },
    /// Some bits are sampled and flipped once and for ever.
    SampledFlips(SampledFlips),
    /// A position becomes any number of a window of outputs, or else any output.
    Window(Window),
    /// One of two windows, chosen without regard to the value.
    Hybrid(Hybrid),
    /// Laplace noise is added to the numbers of a row, and the collector adds them up.
    NoisySums(NoisySums),
    /// An entry of the Hadamard row of the value's node in a random level of a tree is kept or replaced.
    Hierarchy(Hierarchy),
    /// A column of a random row of a table is written as bits, and every bit is flipped by itself.
    CountMean(CountMean),
    /// An entry of the Hadamard transform of a random row of a table is kept or replaced.
    HadamardCountMean(HadamardCountMean),
    /// The same for a prefix of the value, of a random length.
    Prefixes(Prefixes),
    /// The bits of a Bloom filter are flipped once and for ever, and then for every report.
    Bloom(Bloom),
}

impl Randomizer {
    /// How counts follow from the collector's counters; none where reports are not counted by value.
    pub(super) fn law(self, epsilon: f64) -> Option<Law> {
        Some(Law::Supports(match self {
            Self::BitFlip(flip) => flip.support(),
            Self::Mixture(mixture) => mixture.support(),
            Self::Hashing(hashing) | Self::LongitudinalHashing { hashing, .. } => hashing.support(),
            Self::Hadamard(hadamard) => hadamard.support(),
            Self::Subset(subset) => subset.support(),
            Self::LongitudinalFlips { flips, .. } => flips.both().support(),
            Self::SampledFlips(flips) => flips.support(),
            Self::NoisySums(sums) => return Some(sums.law(epsilon)),
            Self::Window(_)
            | Self::Hybrid(_)
            | Self::Hierarchy(_)
            | Self::CountMean(_)
            | Self::HadamardCountMean(_)
            | Self::Prefixes(_)
            | Self::Bloom(_) => return None,
        }))
    }

    /// The logarithm of the largest likelihood ratio of all reports on one value, rounded up, where `neighbours` matters for
    /// flipped bits alone; none when it is the requested epsilon.
    pub(super) fn epsilon(self, neighbours: Neighbours) -> Option<f64> {
        let ratio = match self {
            Self::BitFlip(flip) => flip.likelihood_ratio(neighbours),
            // What else is in a report is drawn without regard to the value.
            Self::Mixture(mixture) => mixture.likelihood_ratio(),
            Self::Hashing(hashing) => hashing.mixture().likelihood_ratio(),
            Self::Hadamard(hadamard) => hadamard.mixture().likelihood_ratio(),
            Self::Subset(subset) => subset.likelihood_ratio(),
            Self::LongitudinalFlips { flips, .. } => flips.permanent().likelihood_ratio(neighbours),
            Self::LongitudinalHashing { rounds, .. } => rounds.permanent().likelihood_ratio(),
            Self::SampledFlips(flips) => flips.likelihood_ratio(),
            Self::Window(window) => window.likelihood_ratio(),
            Self::Hybrid(hybrid) => hybrid.likelihood_ratio(),
            Self::NoisySums(_) => return None,
            Self::Hierarchy(hierarchy) => hierarchy.mixture().likelihood_ratio(),
            Self::CountMean(sketch) => sketch.flip().likelihood_ratio(neighbours),
            Self::HadamardCountMean(sketch) => sketch.mixture().likelihood_ratio(),
            Self::Prefixes(prefixes) => prefixes.count_mean().mixture().likelihood_ratio(),
            Self::Bloom(bloom) => return Some(bloom.epsilon()),
        };
        Some(ratio.epsilon())
    }

    /// Of protocols with two rounds, the epsilon of a single report, and the one asked for.
    pub(super) fn first(self) -> Option<(f64, f64)> {
        match self {
            Self::LongitudinalFlips { flips, epsilon_first } => {
                Some((flips.both().likelihood_ratio(Neighbours::OneHot).epsilon(), epsilon_first))
            }
            Self::LongitudinalHashing { rounds, epsilon_first, .. } => {
                Some((rounds.likelihood_ratio().epsilon(), epsilon_first))
            }
            Self::Bloom(bloom) => Some(bloom.first()),
            _ => None,
        }
    }

    /// The number of different reports, or none when a report has more than a number.
    pub(super) fn reports(self) -> Option<u64> {
        match self {
            Self::BitFlip(_)
            | Self::Subset(_)
            | Self::LongitudinalFlips { .. }
            | Self::SampledFlips(_)
            | Self::NoisySums(_)
            | Self::CountMean(_)
            | Self::Bloom(_) => None,
            Self::Mixture(mixture) => Some(mixture.k().into()),
            Self::Hashing(hashing) | Self::LongitudinalHashing { hashing, .. } => Some(hashing.reports()),
            Self::Hadamard(hadamard) => Some(hadamard.reports()),
            Self::Window(window) => Some(window.outputs().into()),
            Self::Hybrid(hybrid) => Some(hybrid.outputs().into()),
            Self::Hierarchy(hierarchy) => Some(hierarchy.reports()),
            Self::HadamardCountMean(sketch) => Some(sketch.reports()),
            Self::Prefixes(prefixes) => Some(prefixes.count_mean().reports()),
        }
    }

    /// The most reports that the counters have room for, and so has what is computed of them: the Walsh-Hadamard transform
    /// is of signed numbers.
    pub(super) fn most_reports(self) -> u64 {
        match self {
            Self::NoisySums(sums) => u64::MAX / u64::from(sums.largest()),
            Self::Hierarchy(_) | Self::HadamardCountMean(_) | Self::Prefixes(_) => i64::MAX as u64,
            _ => u64::MAX,
        }
    }

    /// Its part of the specification.
    pub(super) fn fields(self) -> Vec<(&'static str, Value)> {
        let kept = |keep: u64, planes: u32| vec![("keep", keep.into()), ("planes", planes.into())];
        let mixed = |mixture: Mixture| kept(mixture.keep(), mixture.planes());
        let windowed =
            |window: Window| mixed(window.mixture()).into_iter().chain([("width", window.width().into())]).collect();
        let flipped =
            |flip: BitFlip| vec![("p", flip.p().into()), ("planes", flip.planes().into()), ("q", flip.q().into())];
        match self {
            Self::BitFlip(flip) => flipped(flip),
            Self::Mixture(mixture) => mixed(mixture),
            Self::Hashing(hashing) => {
                let family = [("g", hashing.mixture().k().into()), ("prime", hashing.prime().into())];
                mixed(hashing.mixture()).into_iter().chain(family).collect()
            }
            Self::Hadamard(hadamard) => {
                mixed(hadamard.mixture()).into_iter().chain([("order", hadamard.order().into())]).collect()
            }
            Self::Subset(subset) => {
                kept(subset.keep(), subset.planes()).into_iter().chain([("omega", subset.omega().into())]).collect()
            }
            Self::LongitudinalFlips { flips, epsilon_first } => {
                flips.fields().into_iter().chain([("epsilon_first", epsilon_first.into())]).collect()
            }
            Self::LongitudinalHashing { hashing, rounds, epsilon_first } => {
                let (permanent, instantaneous) = (rounds.permanent(), rounds.instantaneous());
                vec![
                    ("epsilon_first", epsilon_first.into()),
                    ("g", permanent.k().into()),
                    ("instantaneous_keep", instantaneous.keep().into()),
                    ("instantaneous_planes", instantaneous.planes().into()),
                    ("permanent_keep", permanent.keep().into()),
                    ("permanent_planes", permanent.planes().into()),
                    ("prime", hashing.prime().into()),
                ]
            }
            Self::SampledFlips(flips) => flipped(flips.flip()).into_iter().chain([("d", flips.d().into())]).collect(),
            Self::Window(window) => windowed(window),
            Self::Hybrid(hybrid) => {
                let duchi = hybrid.duchi().mixture();
                let others = [
                    ("alpha", hybrid.alpha().into()),
                    ("duchi_keep", duchi.keep().into()),
                    ("duchi_planes", duchi.planes().into()),
                ];
                windowed(hybrid.window()).into_iter().chain(others).collect()
            }
            Self::CountMean(sketch) => flipped(sketch.flip()).into_iter().chain(sketch.sketch().fields()).collect(),
            Self::HadamardCountMean(sketch) => {
                mixed(sketch.mixture()).into_iter().chain(sketch.sketch().fields()).collect()
            }
            Self::Prefixes(prefixes) => {
                let own = [
                    ("bits", prefixes.bits().into()),
                    ("rows", prefixes.rows().into()),
                    ("seed", prefixes.count_mean().sketch().seed().into()),
                    ("step", prefixes.step().into()),
                ];
                mixed(prefixes.count_mean().mixture()).into_iter().chain(own).collect()
            }
            Self::Bloom(bloom) => bloom.fields(),
            Self::Hierarchy(hierarchy) => {
                mixed(hierarchy.mixture()).into_iter().chain([("branching", hierarchy.branching().into())]).collect()
            }
            Self::NoisySums(sums) => vec![("bound", sums.bound().into()), ("unit", sums.unit().into())],
        }
    }
}
