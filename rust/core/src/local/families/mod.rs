//! The families of protocols: each of them with all its facets, its source and its tests.

mod count_mean_sketch;
mod d_bit_flip;
mod generalized_randomized_response;
mod hadamard_count_mean_sketch;
mod hadamard_response;
mod hierarchical_range;
mod laplace_mean;
mod local_hashing;
mod loloha;
mod longitudinal_unary_encoding;
mod prefix_extension;
mod randomized_response;
mod rappor;
mod square_wave;
mod subset_selection;
mod summation_histogram_encoding;
mod unary_encoding;
mod window_means;

pub use count_mean_sketch::CountMeanSketch;
pub use d_bit_flip::DBitFlip;
pub use generalized_randomized_response::GeneralizedRandomizedResponse;
pub use hadamard_count_mean_sketch::HadamardCountMeanSketch;
pub use hadamard_response::HadamardResponse;
pub use hierarchical_range::HierarchicalRange;
pub use laplace_mean::LaplaceMean;
pub use local_hashing::LocalHashing;
pub use loloha::Loloha;
pub use longitudinal_unary_encoding::{LongitudinalUnaryEncoding, Permanent};
pub use prefix_extension::PrefixExtension;
pub use randomized_response::RandomizedResponse;
pub use rappor::{Probabilities, Rappor};
pub use square_wave::SquareWave;
pub use subset_selection::SubsetSelection;
pub use summation_histogram_encoding::SummationHistogramEncoding;
pub use unary_encoding::{OptimizedUnaryEncoding, SymmetricUnaryEncoding, ThresholdHistogramEncoding, UnaryEncoding};
pub use window_means::{DuchiMean, HybridMean, PiecewiseMean};
