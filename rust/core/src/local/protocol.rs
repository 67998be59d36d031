//! What a report means: family, number of values, probabilities; its canonical specification and id.
//!
//! The specification is JSON with sorted keys and no spaces, for example
//! `{"epsilon":1.0,"k":15,"p":512,"planes":10,"protocol":"optimized_unary_encoding","q":276,"version":1}`:
//! the probabilities are `p` / 2^`planes` and `q` / 2^`planes`, or, instead of these two, `keep` / 2^`planes`, with what
//! else a client has to know (`g` and `prime` of local hashing, the `order` of a Hadamard matrix, the size `omega` of sets,
//! the `width` of windows, the share `alpha` of a hybrid and its second probability); `epsilon` is the one that was
//! requested, as the shortest decimal that reads back as the same double. The id is the first 8 bytes of its
//! SHA-256. Two collectors hold the same protocol if and only if their specifications are the same bytes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::bit_flip::{BitFlip, Neighbours};
use super::count_mean_sketch::CountMeanSketch;
use super::d_bit_flip::DBitFlip;
use super::estimate::{Law, Support};
use super::generalized_randomized_response::GeneralizedRandomizedResponse;
use super::hadamard_count_mean_sketch::HadamardCountMeanSketch;
use super::hadamard_response::HadamardResponse;
use super::hierarchical_range::HierarchicalRange;
use super::laplace_mean::LaplaceMean;
use super::likelihood::check_epsilon;
use super::local_hashing::LocalHashing;
use super::loloha::Loloha;
use super::longitudinal_unary_encoding::{LongitudinalUnaryEncoding, Permanent};
use super::prefix_extension::PrefixExtension;
use super::randomized_response::RandomizedResponse;
use super::randomizer::Randomizer;
use super::rappor::{Probabilities, Rappor};
use super::square_wave::SquareWave;
use super::subset_selection::SubsetSelection;
use super::summation_histogram_encoding::SummationHistogramEncoding;
use super::unary_encoding::UnaryEncoding;
use super::window_mean::WindowMean;
use crate::error::Error;

/// The version of the specification.
const VERSION: u64 = 1;

/// The longest specification that is read.
const MAX_JSON_BYTES: usize = 4096;

/// The smallest number of values.
pub const MIN_K: u64 = 2;

/// The largest number of values; unary encoding makes reports of 2 MiB of them.
pub const MAX_K: u64 = 1 << 24;

const MISSING_REPORT: &str = "missing report";
pub(super) const WRONG_LENGTH: &str = "wrong length";
pub(super) const WRONG_HEADER: &str = "wrong header";

/// The kinds of protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// One bit (Warner 1965).
    RandomizedResponse,
    /// k bits, q = 1 - p (basic RAPPOR).
    SymmetricUnaryEncoding,
    /// k bits, p = 1/2.
    OptimizedUnaryEncoding,
    /// k bits, any p > q.
    UnaryEncoding,
    /// The value or, by chance, any of the k.
    GeneralizedRandomizedResponse,
    /// A random hash of the value, randomised.
    LocalHashing,
    /// A random entry of the value's row of a Hadamard matrix, randomised.
    HadamardResponse,
    /// A random set of values, which has the sender's more often than by chance.
    SubsetSelection,
    /// k bits, flipped once and for ever, and then for every report.
    LongitudinalUnaryEncoding,
    /// A hash of the value, randomised once and for ever, and then for every report.
    Loloha,
    /// Some of k bits, flipped once and for ever.
    DBitFlip,
    /// The sign of a number in [-1, 1], rounded at random and randomised (Duchi, Jordan and Wainwright).
    DuchiMean,
    /// A number in [-1, 1], moved at random within a window (Wang et al. 2019).
    PiecewiseMean,
    /// One of the two, at random (Wang et al. 2019).
    HybridMean,
    /// A number in [-1, 1] with Laplace noise.
    LaplaceMean,
    /// A number in [0, 1], moved at random within a window (Li et al. 2020).
    SquareWave,
    /// k bits, those of a noisy one-hot row that exceed a threshold.
    ThresholdHistogramEncoding,
    /// A one-hot row with Laplace noise.
    SummationHistogramEncoding,
    /// A random row of a table, and in it one of its columns as flipped bits.
    CountMeanSketch,
    /// A random row of a table, and one randomised entry of its Hadamard transform.
    HadamardCountMeanSketch,
    /// The node that a value is under in a random level of a tree, by a Hadamard response.
    HierarchicalRange,
    /// A prefix of the value, of a random length, by a Hadamard count mean sketch.
    PrefixExtension,
    /// A Bloom filter of the value, flipped once and for ever, and then for every report.
    Rappor,
}

impl Family {
    /// In the order of their codes: new ones come last.
    const ALL: [Self; 23] = [
        Self::RandomizedResponse,
        Self::SymmetricUnaryEncoding,
        Self::OptimizedUnaryEncoding,
        Self::UnaryEncoding,
        Self::GeneralizedRandomizedResponse,
        Self::LocalHashing,
        Self::HadamardResponse,
        Self::SubsetSelection,
        Self::LongitudinalUnaryEncoding,
        Self::Loloha,
        Self::DBitFlip,
        Self::DuchiMean,
        Self::PiecewiseMean,
        Self::HybridMean,
        Self::LaplaceMean,
        Self::SquareWave,
        Self::ThresholdHistogramEncoding,
        Self::SummationHistogramEncoding,
        Self::CountMeanSketch,
        Self::HadamardCountMeanSketch,
        Self::HierarchicalRange,
        Self::PrefixExtension,
        Self::Rappor,
    ];

    /// The name in specifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RandomizedResponse => "randomized_response",
            Self::SymmetricUnaryEncoding => "symmetric_unary_encoding",
            Self::OptimizedUnaryEncoding => "optimized_unary_encoding",
            Self::UnaryEncoding => "unary_encoding",
            Self::GeneralizedRandomizedResponse => "generalized_randomized_response",
            Self::LocalHashing => "local_hashing",
            Self::HadamardResponse => "hadamard_response",
            Self::SubsetSelection => "subset_selection",
            Self::LongitudinalUnaryEncoding => "longitudinal_unary_encoding",
            Self::Loloha => "loloha",
            Self::DBitFlip => "d_bit_flip",
            Self::DuchiMean => "duchi_mean",
            Self::PiecewiseMean => "piecewise_mean",
            Self::HybridMean => "hybrid_mean",
            Self::LaplaceMean => "laplace_mean",
            Self::SquareWave => "square_wave",
            Self::ThresholdHistogramEncoding => "threshold_histogram_encoding",
            Self::SummationHistogramEncoding => "summation_histogram_encoding",
            Self::CountMeanSketch => "count_mean_sketch",
            Self::HadamardCountMeanSketch => "hadamard_count_mean_sketch",
            Self::HierarchicalRange => "hierarchical_range",
            Self::PrefixExtension => "prefix_extension",
            Self::Rappor => "rappor",
        }
    }

    /// What the number of values is called: for sketches they are the columns of their tables, for RAPPOR the bits of a row.
    pub(super) fn name_of_k(self) -> &'static str {
        match self {
            Self::CountMeanSketch | Self::HadamardCountMeanSketch | Self::PrefixExtension => "width",
            Self::Rappor => "num_bloombits",
            _ => "k",
        }
    }

    /// The number of the kind in messages.
    #[must_use]
    pub fn code(self) -> u8 {
        let before = Self::ALL.iter().take_while(|&&family| family != self).count();
        1 + before as u8
    }

    /// Why reports are rejected, in the order in which the counts are stored; the first is found by looking at a
    /// report, the others are for what is none.
    #[must_use]
    pub fn rejection_reasons(self) -> [&'static str; 4] {
        let malformed = match self {
            Self::RandomizedResponse
            | Self::SymmetricUnaryEncoding
            | Self::OptimizedUnaryEncoding
            | Self::UnaryEncoding
            | Self::LongitudinalUnaryEncoding
            | Self::ThresholdHistogramEncoding => "tail bits set",
            Self::GeneralizedRandomizedResponse
            | Self::LocalHashing
            | Self::HadamardResponse
            | Self::Loloha
            | Self::DuchiMean
            | Self::PiecewiseMean
            | Self::HybridMean
            | Self::LaplaceMean
            | Self::SquareWave
            | Self::SummationHistogramEncoding
            | Self::HadamardCountMeanSketch
            | Self::HierarchicalRange
            | Self::PrefixExtension => "value out of range",
            Self::SubsetSelection => "not a set of omega values",
            Self::CountMeanSketch => "row out of range",
            Self::Rappor => "cohort out of range",
            Self::DBitFlip => "not a set of at most d values",
        };
        [malformed, MISSING_REPORT, WRONG_LENGTH, WRONG_HEADER]
    }
}

/// The checked parameters of a local protocol. Public: they are part of what is announced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    family: Family,
    k: u32,
    randomizer: Randomizer,
    requested_epsilon: f64,
    epsilon: f64,
}

impl Protocol {
    pub(super) fn new(family: Family, k: u32, randomizer: Randomizer, requested_epsilon: f64) -> Self {
        let epsilon = randomizer.epsilon(neighbours(family)).unwrap_or(requested_epsilon);
        Self { family, k, randomizer, requested_epsilon, epsilon }
    }

    /// The kind of protocol.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// The number of values that an answer may have; for numbers, of the positions that they are put on, and for sketches of
    /// the columns of their tables, for RAPPOR of the bits of a Bloom filter.
    #[must_use]
    pub fn k(&self) -> u32 {
        self.k
    }

    /// What is done by chance, with its exact probabilities.
    #[must_use]
    pub fn randomizer(&self) -> Randomizer {
        self.randomizer
    }

    /// How counts follow from the collector's counters; none where reports are not counted by value.
    #[must_use]
    pub fn law(&self) -> Option<Law> {
        let law = self.randomizer.law(self.requested_epsilon);
        law.filter(|_| self.family != Family::LaplaceMean)
    }

    /// How often a report supports its sender's value and any other; none where reports do not support values.
    #[must_use]
    pub fn support(&self) -> Option<Support> {
        self.law().and_then(Law::support)
    }

    /// The epsilon that was asked for.
    #[must_use]
    pub fn requested_epsilon(&self) -> f64 {
        self.requested_epsilon
    }

    /// The epsilon of the guarantee: the exact one, rounded up to a double; never above the requested one, and at least
    /// 0.999 of it except for thresholding, which gives some of it away.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The epsilon of a single report, of protocols with two rounds, where [`Protocol::epsilon`] is that of all reports on
    /// one value together; exact and rounded up, at least 0.999 of the requested one.
    #[must_use]
    pub fn epsilon_first(&self) -> Option<f64> {
        self.randomizer.first().map(|(achieved, _)| achieved)
    }

    /// The epsilon that was asked for of a single report, of protocols with two rounds.
    #[must_use]
    pub fn requested_epsilon_first(&self) -> Option<f64> {
        self.randomizer.first().map(|(_, requested)| requested)
    }

    /// The bits of a report.
    #[must_use]
    pub fn report_bits(&self) -> usize {
        let bits_of = |reports: u64| reports.next_power_of_two().trailing_zeros() as usize;
        match self.randomizer {
            Randomizer::NoisySums(sums) => 8 * sums.report_bytes(),
            Randomizer::CountMean(sketch) => sketch.report_bits(),
            Randomizer::Bloom(bloom) => bloom.report_bits(),
            randomizer => randomizer.reports().map_or(self.counters(), bits_of),
        }
    }

    /// What the collector counts: the values that reports support, of randomised response only "yes"; or all reports.
    #[must_use]
    pub fn counters(&self) -> usize {
        match (self.family, self.randomizer) {
            (Family::RandomizedResponse, _) => 1,
            (_, Randomizer::Window(window)) => window.outputs() as usize,
            (_, Randomizer::Hybrid(hybrid)) => hybrid.outputs() as usize,
            (_, Randomizer::Hierarchy(hierarchy)) => hierarchy.reports() as usize,
            (_, Randomizer::CountMean(sketch)) => sketch.sketch().rows() as usize * (1 + self.k as usize),
            (_, Randomizer::Bloom(bloom)) => bloom.num_cohorts() as usize * bloom.cohort_counters(),
            (_, Randomizer::HadamardCountMean(sketch)) => sketch.reports() as usize,
            (_, Randomizer::Prefixes(prefixes)) => prefixes.count_mean().reports() as usize,
            (_, Randomizer::NoisySums(sums)) => sums.columns() as usize,
            _ => self.k as usize,
        }
    }

    /// The bytes of a report.
    #[must_use]
    pub fn report_bytes(&self) -> usize {
        self.report_bits().div_ceil(8)
    }

    /// The bits of a report's last byte that are not used, and must be zero.
    pub(super) fn unused_bits(&self) -> u8 {
        let used_in_last = (self.report_bits() - 1) % 8 + 1;
        !(0xff >> (8 - used_in_last))
    }

    /// The canonical specification.
    #[must_use]
    pub fn to_json(&self) -> String {
        let fields: Vec<String> =
            self.fields().into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    fn fields(&self) -> BTreeMap<&'static str, Value> {
        let mut fields = BTreeMap::from([
            ("epsilon", self.requested_epsilon.into()),
            (self.family.name_of_k(), self.k.into()),
            ("protocol", self.family.name().into()),
            ("version", VERSION.into()),
        ]);
        fields.extend(self.randomizer.fields());
        fields
    }

    /// The first 8 bytes of the SHA-256 of the canonical specification.
    #[must_use]
    pub fn spec_id(&self) -> [u8; 8] {
        let digest = self.spec_digest();
        core::array::from_fn(|i| digest[i])
    }

    /// The SHA-256 of the canonical specification.
    pub(super) fn spec_digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_json()).into()
    }

    /// [`Protocol::spec_id`] in hexadecimal.
    #[must_use]
    pub fn spec_id_hex(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.spec_id()))
    }

    /// Reads a specification, canonical or not, and checks that its probabilities are those that its epsilon gives.
    ///
    /// # Errors
    /// [`Error::State`] when it is not a specification or contradicts itself, [`Error::Parameter`] when a parameter is
    /// out of range.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_JSON_BYTES {
            return Err(invalid(&format!("it is longer than {MAX_JSON_BYTES} bytes")));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| invalid(&format!("it is not JSON: {error}")))?;
        let Value::Object(fields) = value else {
            return Err(invalid("it is not a JSON object"));
        };
        let version = integer(&fields, "version")?;
        if version != VERSION {
            return Err(invalid(&format!("version {version} is not {VERSION}, the one this release reads")));
        }
        let family = family(&fields)?;
        let k = integer(&fields, family.name_of_k())?;
        let epsilon = number(&fields, "epsilon")?;
        check_epsilon(epsilon)?;
        let expected = match family {
            Family::RandomizedResponse if k != 2 => return Err(Error::parameter("k", k, "2 for randomized_response")),
            Family::RandomizedResponse => *RandomizedResponse::new(epsilon)?.protocol(),
            Family::SymmetricUnaryEncoding => *UnaryEncoding::symmetric(k, epsilon)?.protocol(),
            Family::OptimizedUnaryEncoding => *UnaryEncoding::optimized(k, epsilon)?.protocol(),
            Family::ThresholdHistogramEncoding => *UnaryEncoding::threshold(k, epsilon)?.protocol(),
            Family::UnaryEncoding => {
                // The doubles that were given are not recorded; what they promise can be checked without them.
                let k = check_k(k)?;
                let planes = u32::try_from(integer(&fields, "planes")?).unwrap_or(u32::MAX);
                let flip = BitFlip::new(planes, integer(&fields, "p")?, integer(&fields, "q")?)?;
                let fewest_planes = flip.planes() == 2 || flip.p() % 2 == 1 || flip.q() % 2 == 1;
                if !(fewest_planes && flip.likelihood_ratio(Neighbours::OneHot).achieves(epsilon)) {
                    return Err(inconsistent());
                }
                Self::new(family, k, Randomizer::BitFlip(flip), epsilon)
            }
            Family::GeneralizedRandomizedResponse => *GeneralizedRandomizedResponse::new(k, epsilon)?.protocol(),
            Family::LocalHashing => *LocalHashing::new(k, Some(integer(&fields, "g")?), epsilon)?.protocol(),
            Family::HadamardResponse => *HadamardResponse::new(k, epsilon)?.protocol(),
            Family::SummationHistogramEncoding => *SummationHistogramEncoding::new(k, epsilon)?.protocol(),
            Family::CountMeanSketch => {
                let (rows, seed) = (integer(&fields, "rows")?, integer(&fields, "seed")?);
                *CountMeanSketch::new(epsilon, rows, k, seed)?.protocol()
            }
            Family::HadamardCountMeanSketch => {
                let (rows, seed) = (integer(&fields, "rows")?, integer(&fields, "seed")?);
                *HadamardCountMeanSketch::new(epsilon, rows, k, seed)?.protocol()
            }
            Family::PrefixExtension => {
                let (bits, step) = (integer(&fields, "bits")?, integer(&fields, "step")?);
                let (rows, seed) = (integer(&fields, "rows")?, integer(&fields, "seed")?);
                *PrefixExtension::new(epsilon, bits, step, rows, k, seed)?.protocol()
            }
            Family::Rappor => {
                let (hashes, cohorts) = (integer(&fields, "num_hashes")?, integer(&fields, "num_cohorts")?);
                let [f, p, q] = ["prob_f", "prob_p", "prob_q"].map(|name| number(&fields, name));
                *Rappor::new(k, hashes, cohorts, Probabilities { f: f?, p: p?, q: q? })?.protocol()
            }
            Family::HierarchicalRange => {
                *HierarchicalRange::new(k, epsilon, integer(&fields, "branching")?)?.protocol()
            }
            Family::SubsetSelection => *SubsetSelection::new(k, Some(integer(&fields, "omega")?), epsilon)?.protocol(),
            Family::LongitudinalUnaryEncoding => {
                let (p, planes) = (integer(&fields, "permanent_p")?, integer(&fields, "permanent_planes")?);
                let is_half = (1..64).contains(&planes) && p == 1 << (planes - 1);
                let permanent = if is_half { Permanent::Optimized } else { Permanent::Symmetric };
                let first = number(&fields, "epsilon_first")?;
                *LongitudinalUnaryEncoding::new(k, epsilon, first, permanent)?.protocol()
            }
            Family::Loloha => {
                let first = number(&fields, "epsilon_first")?;
                *Loloha::new(k, Some(integer(&fields, "g")?), epsilon, first)?.protocol()
            }
            Family::DBitFlip => *DBitFlip::new(k, integer(&fields, "d")?, epsilon)?.protocol(),
            Family::DuchiMean => *WindowMean::duchi(epsilon)?.protocol(),
            Family::PiecewiseMean => *WindowMean::piecewise(epsilon)?.protocol(),
            Family::LaplaceMean => *LaplaceMean::new(epsilon)?.protocol(),
            Family::HybridMean => *WindowMean::hybrid(epsilon)?.protocol(),
            Family::SquareWave => *SquareWave::new(k, epsilon)?.protocol(),
        };
        let known = expected.fields();
        if let Some(unknown) = fields.keys().find(|name| !known.contains_key(name.as_str())) {
            return Err(invalid(&format!("unknown field {unknown:?}")));
        }
        if u64::from(expected.k) != k || expected.requested_epsilon != epsilon {
            return Err(inconsistent());
        }
        for (name, value) in expected.randomizer.fields() {
            let agrees =
                if value.is_f64() { value == number(&fields, name)? } else { value == integer(&fields, name)? };
            if !agrees {
                return Err(inconsistent());
            }
        }
        Ok(expected)
    }
}

fn neighbours(family: Family) -> Neighbours {
    match family {
        Family::RandomizedResponse => Neighbours::OneBit,
        _ => Neighbours::OneHot,
    }
}

/// Checks a number of values.
pub(super) fn check_k(k: u64) -> Result<u32, Error> {
    if (MIN_K..=MAX_K).contains(&k) {
        Ok(k as u32)
    } else {
        Err(Error::parameter("k", k, format!("an integer from {MIN_K} to {MAX_K}")))
    }
}

fn invalid(problem: &str) -> Error {
    Error::State(format!("not a protocol specification: {problem}"))
}

fn inconsistent() -> Error {
    invalid("its probabilities are not those that its epsilon gives")
}

fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Error> {
    fields.get(name).ok_or_else(|| invalid(&format!("the field {name:?} is missing")))
}

fn integer(fields: &Map<String, Value>, name: &str) -> Result<u64, Error> {
    let value = field(fields, name)?;
    value.as_u64().ok_or_else(|| invalid(&format!("the field {name:?} is not a non-negative integer")))
}

fn number(fields: &Map<String, Value>, name: &str) -> Result<f64, Error> {
    field(fields, name)?.as_f64().ok_or_else(|| invalid(&format!("the field {name:?} is not a number")))
}

fn family(fields: &Map<String, Value>) -> Result<Family, Error> {
    let name = field(fields, "protocol")?.as_str().ok_or_else(|| invalid("the field \"protocol\" is not text"))?;
    Family::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
        let known = Family::ALL.map(Family::name).join(", ");
        invalid(&format!("unknown protocol {name:?}; this release knows {known}"))
    })
}
