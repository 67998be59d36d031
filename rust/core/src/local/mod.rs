//! Local differential privacy: every person randomises their own answer, and only randomised reports are collected.
//!
//! A [`Protocol`] is of one of the families below, or read from a specification. It makes the reports on people's devices,
//! and an [`Accumulator`] collects them.
//!
//! | module | what | may use |
//! | --- | --- | --- |
//! | `json` | the JSON of specifications, read and written | |
//! | `spec` | specifications: parameters, canonical JSON, id | `json` |
//! | `parameters` | the parameters that several protocols have | `spec` |
//! | `estimate` | unbiased counts and their standard errors | |
//! | `normal` | how many standard errors an interval extends | |
//! | `range` | counts of ranges of ordered values, by least squares over a tree | |
//! | `memo` | what devices keep between reports: one secret per person, and how questions were answered | |
//! | `chance` | exact probabilities, and the samplers that use them | `spec`, `parameters`, `estimate` |
//! | `derivation` | random words derived from people's secrets | `chance`, `memo` |
//! | `values` | the values that reports are made of | `chance`, `memo` |
//! | `reports` | the forms of reports: encoded, written, counted | those above |
//! | `density` | distributions of numbers, by expectation maximisation | `chance` |
//! | `mean` | unbiased means and their standard errors | `chance`, `reports` |
//! | `family` | what a family of protocols consists of, and reports in bulk | those above |
//! | `families` | the families, a file each, and all of them as one type, a line each | those above |
//! | `attributes` | several attributes of each person in one report | those above |
//! | `about` | what reports are about: labels, bounds, question, period | `json`, `spec`, `mean`, `families` |
//! | `any_protocol` | what is announced: a protocol of one attribute or of several, and what it is about | those above |
//! | `collect` | the collector's counters, their serialised form, and messages | those above |
//!
//! ```
//! use dpnoise_core::local::{Accumulator, OptimizedUnaryEncoding, Protocol, Values};
//! let protocol = Protocol::from(OptimizedUnaryEncoding::new(15, 1.0)?);
//! let answers = [3, 14, 3, 0];
//! let mut reports = vec![0; answers.len() * protocol.report_bytes()];
//! protocol.perturb(Values::Integers(&answers), &mut reports, 1)?; // on each person's device
//!
//! let mut collected = Accumulator::new(protocol)?;
//! collected.add(&reports, protocol.report_bytes(), 1)?;
//! assert_eq!(collected.estimate()?.unwrap().counts.len(), 15);
//! # Ok::<(), dpnoise_core::Error>(())
//! ```
//!
//! For repeated questions, each person keeps a secret:
//!
//! ```
//! use dpnoise_core::local::{
//!     AnyProtocol, ClientMemo, LongitudinalUnaryEncoding, Permanent, Protocol, Remembering, Values,
//! };
//! let protocol = Protocol::from(LongitudinalUnaryEncoding::new(15, 2.0, 1.0, Permanent::Optimized)?);
//! let memo = ClientMemo::generate(2)?; // what their devices keep
//! AnyProtocol::from(protocol).answer_with(&memo, "favourite colour")?; // and with no other protocol
//! let (today, mut reports) = ([3, 14], [0; 4]);
//! let people = Remembering { values: &today, secrets: memo.secrets(), question: "favourite colour" };
//! protocol.perturb(Values::Remembering(people), &mut reports, 1)?;
//! # Ok::<(), dpnoise_core::Error>(())
//! ```

mod about;
mod any_protocol;
mod attributes;
mod chance;
mod collect;
mod density;
mod derivation;
mod estimate;
mod families;
mod json;
mod mean;
mod memo;
mod normal;
mod parameters;
mod range;
mod reports;
mod spec;
mod values;

pub use about::{Meaning, Scale};
pub use any_protocol::{AnyProtocol, Randomiser};
pub use attributes::{Attributes, Scheme};
pub use chance::bit_flip::{BitFlip, Neighbours};
pub use chance::likelihood::{LikelihoodRatio, MAX_EPSILON, MIN_EPSILON};
pub use chance::mixture::Mixture;
pub use chance::two_rounds::{TwoFlips, TwoMixtures};
pub use chance::window::Window;
pub use collect::{Accumulator, AnyAccumulator, AttributesAccumulator};
pub use density::DensityEstimate;
pub use estimate::{Estimate, HeavyHitters, Law, Support};
pub use families::*;
pub use mean::{MeanEstimate, MeanLaw};
pub use memo::{ClientMemo, Secret};
pub use normal::normal_quantile;

pub use range::{RangeEstimate, TreeShape};
pub use reports::bits::{one_hot, pack};
pub use reports::hadamard::entry as hadamard_entry;
pub use reports::hashing::Hashing;
pub use reports::noisy_sums::NoisySums;
pub use reports::sketch::Sketch;
pub use reports::text_hash::fingerprints;
pub use spec::{MAX_K, MIN_K};
pub use values::{Remembering, ValueKind, Values};
