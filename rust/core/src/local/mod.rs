//! Local differential privacy: every person randomises their own answer, and only randomised reports are collected.
//!
//! | module | what |
//! | --- | --- |
//! | [`protocol`] | what a report means: the checked parameters, their canonical specification and its id |
//! | `client` | what people's devices do, the same way for every protocol |
//! | `remembering` | what devices of people do who are asked again and again |
//! | [`likelihood`] | exact likelihood ratios, and the fewest binary digits that achieve an epsilon |
//! | [`bit_flip`] | dyadic bit-flipping probabilities |
//! | [`randomizer`] | what is done by chance, for every kind of protocol in one place |
//! | `threshold` | the bit flip of thresholding with histogram encoding |
//! | [`mixture`] | dyadic probabilities of keeping a value, or else drawing any |
//! | [`unary_encoding`] | one of k values as a row of k randomised bits |
//! | [`randomized_response`] | one randomised bit |
//! | [`generalized_randomized_response`] | one of k values as itself, randomised |
//! | [`local_hashing`] | a random hash of the value, randomised |
//! | `hash_counts` | how many of its reports support each value |
//! | [`hadamard_response`] | a random entry of the value's row of a Hadamard matrix, randomised |
//! | [`subset_selection`] | omega of the k values, the sender's among them more often than by chance |
//! | [`window`] | dyadic probabilities of staying in a window, or else drawing any number |
//! | [`window_mean`] | a number in [-1, 1], randomised for its mean |
//! | [`square_wave`] | a number in [0, 1], randomised for its distribution |
//! | `numbers` | numbers as positions on a grid |
//! | [`summation_histogram_encoding`] | a one-hot row with Laplace noise |
//! | [`laplace_mean`] | a number with Laplace noise |
//! | [`noisy_sums`] | reports that are numbers with Laplace noise |
//! | [`hierarchical_range`] | the value's node in a random level of a tree |
//! | [`count_mean_sketch`] | a random row of a table, and in it one of its columns as flipped bits |
//! | [`hadamard_count_mean_sketch`] | a random row of a table, and one randomised entry of its transform |
//! | [`prefix_extension`] | a prefix of the value, of a random length, by such a sketch |
//! | [`rappor`] | a Bloom filter of the value, randomised once and for ever, and again for every report |
//! | [`sketch`] | the tables of these: hash functions and estimation |
//! | [`text_hash`] | texts as numbers, and numbers as columns |
//! | `cohorts` | reports that are the number of a group and bits, counted group by group |
//! | `symbols` | reports that are a number: a public seed and a randomised symbol |
//! | [`longitudinal_unary_encoding`] | unary encoding for people who are asked again and again |
//! | [`loloha`] | local hashing for people who are asked again and again |
//! | [`d_bit_flip`] | a sample of the k bits, randomised once and for ever |
//! | [`two_rounds`] | a permanent round of randomisation, and one for each report |
//! | [`memo`] | what people keep between reports: a secret each |
//! | [`accumulator`] | the collector's counters: add and merge |
//! | [`message`] | a report as a message of its own |
//! | [`state`] | the bytes of the collector's counters |
//! | [`estimate`] | unbiased counts and their standard errors |
//! | `flipper` | bits in, randomised bits out, tile by tile |
//! | `mixer` | values in, randomised values out, chunk by chunk |
//!
//! ```
//! use dpnoise_core::local::{Accumulator, Client, UnaryEncoding};
//! let encoding = UnaryEncoding::optimized(15, 1.0)?;
//! let answers = [3, 14, 3, 0];
//! let mut reports = vec![0; answers.len() * encoding.protocol().report_bytes()];
//! encoding.perturb_secure(&answers, &mut reports, 1)?; // on each person's device
//!
//! let mut collected = Accumulator::new(*encoding.protocol());
//! collected.add(&reports, encoding.protocol().report_bytes(), 1)?;
//! assert_eq!(collected.estimate().unwrap().counts.len(), 15);
//! # Ok::<(), dpnoise_core::Error>(())
//! ```

pub mod accumulator;
pub mod bit_flip;
mod client;
mod cohorts;
pub mod count_mean_sketch;
pub mod d_bit_flip;
pub mod estimate;
mod flipper;
pub mod generalized_randomized_response;
pub mod hadamard_count_mean_sketch;
pub mod hadamard_response;
mod hash_counts;
pub mod hierarchical_range;
pub mod laplace_mean;
pub mod likelihood;
pub mod local_hashing;
pub mod loloha;
pub mod longitudinal_unary_encoding;
pub mod memo;
pub mod message;
mod mixer;
pub mod mixture;
pub mod noisy_sums;
mod numbers;
pub mod prefix_extension;
pub mod protocol;
pub mod randomized_response;
pub mod randomizer;
pub mod rappor;
mod remembering;
pub mod sketch;
pub mod square_wave;
pub mod state;
pub mod subset_selection;
pub mod summation_histogram_encoding;
mod symbols;
pub mod text_hash;
mod threshold;
pub mod two_rounds;
pub mod unary_encoding;
pub mod window;
pub mod window_mean;

pub use accumulator::Accumulator;
pub use bit_flip::BitFlip;
pub use client::Client;
pub use count_mean_sketch::CountMeanSketch;
pub use d_bit_flip::DBitFlip;
pub use estimate::Estimate;
pub use generalized_randomized_response::GeneralizedRandomizedResponse;
pub use hadamard_count_mean_sketch::HadamardCountMeanSketch;
pub use hadamard_response::HadamardResponse;
pub use hierarchical_range::{HierarchicalRange, Hierarchy};
pub use laplace_mean::LaplaceMean;
pub use likelihood::LikelihoodRatio;
pub use local_hashing::LocalHashing;
pub use loloha::Loloha;
pub use longitudinal_unary_encoding::LongitudinalUnaryEncoding;
pub use memo::ClientMemo;
pub use mixture::Mixture;
pub use noisy_sums::NoisySums;
pub use prefix_extension::PrefixExtension;
pub use protocol::{Family, Protocol};
pub use randomized_response::RandomizedResponse;
pub use randomizer::Randomizer;
pub use rappor::Rappor;
pub use remembering::{Longitudinal, Remembering};
pub use square_wave::SquareWave;
pub use subset_selection::SubsetSelection;
pub use summation_histogram_encoding::SummationHistogramEncoding;
pub use unary_encoding::UnaryEncoding;
pub use window::Window;
pub use window_mean::WindowMean;
