//! What is done to a value by chance, and what follows from it, for every kind of protocol in one place.

use serde_json::Value;

use super::bit_flip::{BitFlip, Neighbours};
use super::estimate::Law;
use super::hadamard_response::Hadamard;
use super::hierarchical_range::Hierarchy;
use super::likelihood::LikelihoodRatio;
use super::local_hashing::Hashing;
use super::mixture::Mixture;
use super::noisy_sums::NoisySums;
use super::subset_selection::Subset;
use super::window::Window;
use super::window_mean::Hybrid;

/// What is done to an encoded value by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A position becomes any number of a window of outputs, or else any output.
    Window(Window),
    /// One of two windows, chosen without regard to the value.
    Hybrid(Hybrid),
    /// Laplace noise is added to the numbers of a row, and the collector adds them up.
    NoisySums(NoisySums),
    /// An entry of the Hadamard row of the value's node in a random level of a tree is kept or replaced.
    Hierarchy(Hierarchy),
}

impl Randomizer {
    /// How counts follow from the collector's counters; none where reports are not counted by value.
    pub(super) fn law(self, epsilon: f64) -> Option<Law> {
        Some(Law::Supports(match self {
            Self::BitFlip(flip) => flip.support(),
            Self::Mixture(mixture) => mixture.support(),
            Self::Hashing(hashing) => hashing.support(),
            Self::Hadamard(hadamard) => hadamard.support(),
            Self::Subset(subset) => subset.support(),
            Self::NoisySums(sums) => return Some(sums.law(epsilon)),
            Self::Window(_) | Self::Hybrid(_) | Self::Hierarchy(_) => return None,
        }))
    }

    /// The largest likelihood ratio of a report, where `neighbours` matters for flipped bits alone; none when it is
    /// e^epsilon, which is no fraction.
    pub(super) fn likelihood_ratio(self, neighbours: Neighbours) -> Option<LikelihoodRatio> {
        Some(match self {
            Self::BitFlip(flip) => flip.likelihood_ratio(neighbours),
            // What else is in a report is drawn without regard to the value.
            Self::Mixture(mixture) => mixture.likelihood_ratio(),
            Self::Hashing(hashing) => hashing.mixture().likelihood_ratio(),
            Self::Hadamard(hadamard) => hadamard.mixture().likelihood_ratio(),
            Self::Subset(subset) => subset.likelihood_ratio(),
            Self::Window(window) => window.likelihood_ratio(),
            Self::Hybrid(hybrid) => hybrid.likelihood_ratio(),
            Self::NoisySums(_) => return None,
            Self::Hierarchy(hierarchy) => hierarchy.mixture().likelihood_ratio(),
        })
    }

    /// The number of different reports, or none when a report has more than a number.
    pub(super) fn reports(self) -> Option<u64> {
        match self {
            Self::BitFlip(_) | Self::Subset(_) | Self::NoisySums(_) => None,
            Self::Mixture(mixture) => Some(mixture.k().into()),
            Self::Hashing(hashing) => Some(hashing.reports()),
            Self::Hadamard(hadamard) => Some(hadamard.reports()),
            Self::Window(window) => Some(window.outputs().into()),
            Self::Hybrid(hybrid) => Some(hybrid.outputs().into()),
            Self::Hierarchy(hierarchy) => Some(hierarchy.reports()),
        }
    }

    /// The most that a report adds to a counter.
    pub(super) fn increment(self) -> u64 {
        match self {
            Self::NoisySums(sums) => sums.largest().into(),
            _ => 1,
        }
    }

    /// Its part of the specification.
    pub(super) fn fields(self) -> Vec<(&'static str, Value)> {
        let kept = |keep: u64, planes: u32| vec![("keep", keep.into()), ("planes", planes.into())];
        let mixed = |mixture: Mixture| kept(mixture.keep(), mixture.planes());
        let windowed =
            |window: Window| mixed(window.mixture()).into_iter().chain([("width", window.width().into())]).collect();
        match self {
            Self::BitFlip(flip) => {
                vec![("p", flip.p().into()), ("planes", flip.planes().into()), ("q", flip.q().into())]
            }
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
            Self::Hierarchy(hierarchy) => {
                mixed(hierarchy.mixture()).into_iter().chain([("branching", hierarchy.branching().into())]).collect()
            }
            Self::NoisySums(sums) => vec![("bound", sums.bound().into()), ("unit", sums.unit().into())],
        }
    }
}
