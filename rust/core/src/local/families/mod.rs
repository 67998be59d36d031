//! All protocols as one type: each family is a file here, its names, and a line of the table.

mod count_mean_sketch;
mod d_bit_flip;
mod family;
mod gaussian_mean;
mod generalized_randomized_response;
mod hadamard_count_mean_sketch;
mod hadamard_response;
mod hierarchical_range;
mod laplace_mean;
mod local_hashing;
mod loloha;
mod longitudinal_unary_encoding;
mod prefix_extension;
mod projective_geometry_response;
mod randomized_response;
mod rappor;
mod square_wave;
mod subset_selection;
mod summation_histogram_encoding;
mod unary_encoding;
mod window_means;

use rand_core::TryCryptoRng;

use self::family::Family;
use super::density::DensityEstimate;
use super::estimate::{Estimate, HeavyHitters, Law, Support};
use super::mean::MeanLaw;
use super::range::RangeEstimate;
use super::reports::Reports;
use super::spec::{self, Fields, Given};
use super::values::{Input, ValueKind, Values};
use crate::arguments::{self, Argument, Arguments, Parameter};
use crate::calibration::shuffled_epsilon;
use crate::error::Error;
use crate::instruction_set::InstructionSet;
use crate::threads::{Pause, go_on};

pub use count_mean_sketch::CountMeanSketch;
pub use d_bit_flip::DBitFlip;
pub use gaussian_mean::GaussianMean;
pub use generalized_randomized_response::GeneralizedRandomizedResponse;
pub use hadamard_count_mean_sketch::HadamardCountMeanSketch;
pub use hadamard_response::HadamardResponse;
pub use hierarchical_range::HierarchicalRange;
pub use laplace_mean::LaplaceMean;
pub use local_hashing::LocalHashing;
pub use loloha::Loloha;
pub use longitudinal_unary_encoding::{LongitudinalUnaryEncoding, Permanent};
pub use prefix_extension::PrefixExtension;
pub use projective_geometry_response::ProjectiveGeometryResponse;
pub use randomized_response::RandomizedResponse;
pub use rappor::{Probabilities, Rappor};
pub use square_wave::SquareWave;
pub use subset_selection::SubsetSelection;
pub use summation_histogram_encoding::SummationHistogramEncoding;
pub use unary_encoding::{OptimizedUnaryEncoding, SymmetricUnaryEncoding, ThresholdHistogramEncoding, UnaryEncoding};
pub use window_means::{DuchiMean, HybridMean, PiecewiseMean};

/// Why inputs that are not reports are rejected.
const MISSING_REPORT: &str = "missing report";
pub(crate) const WRONG_LENGTH: &str = "wrong length";
pub(crate) const WRONG_HEADER: &str = "wrong header";

/// The most bytes of counters, 128 MiB, for a specification that comes from others and costs them nothing.
pub const COUNTER_LIMIT: usize = 1 << 27;

/// The name of that parameter.
pub(crate) const LIMIT: &str = "limit";

/// What all protocols of a family have in common.
#[derive(Clone, Copy, Debug)]
pub struct FamilyInfo {
    /// The name in specifications.
    pub name: &'static str,
    /// The abbreviation of the literature.
    pub abbreviation: &'static str,
    /// The number in messages.
    pub code: u8,
    /// The kind of values that reports are made of.
    pub takes: ValueKind,
    /// Whether the values are [`fingerprints`](super::fingerprints) of texts.
    pub takes_texts: bool,
    /// The parameters of [`Protocol::new`].
    pub parameters: &'static [Parameter],
    /// The order of the collector's work, for families that are compared when a collection is planned.
    pub cost: Option<&'static str>,
}

impl FamilyInfo {
    /// An example of the family.
    ///
    /// # Errors
    /// Never: tests make them all.
    pub fn example(&self) -> Result<Protocol, Error> {
        Protocol::new(self.name, &arguments::examples(self.parameters))
    }

    const fn of<F: Family>(code: u8) -> Self {
        Self {
            name: F::NAME,
            abbreviation: F::ABBREVIATION,
            code,
            takes: <F::Values<'static> as Input>::KIND,
            takes_texts: F::OF_TEXTS,
            parameters: F::PARAMETERS,
            cost: F::COST,
        }
    }
}

/// Makes the enumeration of these families, and `on_family!`, which evaluates one expression for a protocol of any
/// family. That inner macro needs a `$` of its own, which is passed in.
macro_rules! families {
    ($dollar:tt $($code:literal $family:ident,)*) => {
        /// The checked parameters of a local protocol. Public: they are part of what is announced.
        ///
        /// ```
        /// use dpnoise_core::local::{Accumulator, COUNTER_LIMIT, Protocol, Values};
        /// // What was announced:
        /// let protocol = Protocol::from_json(
        ///     r#"{"epsilon":1.0,"k":15,"keep":841,"planes":13,"protocol":"generalized_randomized_response","version":1}"#,
        ///     COUNTER_LIMIT,
        /// )?;
        /// let answers = [3, 14, 3, 0];
        /// let mut reports = vec![0; answers.len() * protocol.report_bytes()];
        /// protocol.perturb(Values::Integers(&answers), &mut reports, 1)?; // on each person's device
        ///
        /// let mut collected = Accumulator::new(protocol)?;
        /// collected.add(&reports, protocol.report_bytes(), 1)?;
        /// assert_eq!(collected.estimate()?.unwrap().counts.len(), 15);
        /// # Ok::<(), dpnoise_core::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Protocol {
            $(#[doc = concat!("See [`", stringify!($family), "`].")]
            $family($family),)*
        }

        /// The numbers of families in messages.
        enum Code {
            $($family = $code,)*
        }

        $(impl From<$family> for Protocol {
            fn from(family: $family) -> Self {
                Self::$family(family)
            }
        })*

        macro_rules! on_family {
            ($dollar protocol:expr, $dollar family:ident => $dollar result:expr) => {
                match $dollar protocol {
                    $(Protocol::$family($dollar family) => $dollar result,)*
                }
            };
        }

        impl Protocol {
            /// All families.
            pub const FAMILIES: &'static [FamilyInfo] = &[$(FamilyInfo::of::<$family>($code),)*];

            /// The protocol of this family, by its name in specifications, with these arguments.
            ///
            /// ```
            /// use dpnoise_core::arguments::Argument;
            /// use dpnoise_core::local::{OptimizedUnaryEncoding, Protocol};
            /// let given = [("k", Argument::Integer(15)), ("epsilon", Argument::Real(1.0))];
            /// let protocol = Protocol::new("optimized_unary_encoding", &given)?;
            /// assert_eq!(protocol, OptimizedUnaryEncoding::new(15, 1.0)?.into());
            /// # Ok::<(), dpnoise_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// [`Error::Parameter`] for an unknown family, and when a parameter is missing, unknown, given twice or out
            /// of range.
            pub fn new(family: &str, given: &[(&str, Argument)]) -> Result<Self, Error> {
                match family {
                    $(<$family as Family>::NAME => {
                        let arguments = Arguments::new(<$family as Family>::PARAMETERS, given)?;
                        <$family as Family>::from_arguments(&arguments).map(Self::$family)
                    })*
                    other => Err(unknown_family(other)),
                }
            }

            /// Reads a specification as [`Protocol::to_json`] gave it, with or without white space around it, and
            /// checks that its probabilities are those that its epsilon gives. Its counters may have up to `limit`
            /// bytes: [`COUNTER_LIMIT`] for specifications of others.
            ///
            /// # Errors
            /// [`Error::State`] when it is not a specification, contradicts itself or was written again in another
            /// form, [`Error::Parameter`] when a parameter is out of range, or the counters have more bytes.
            pub fn from_json(text: &str, limit: usize) -> Result<Self, Error> {
                let protocol = Self::read(&Given::parse(text)?)?;
                spec::check_canonical(text, &protocol.to_json())?;
                protocol.check_limit(limit)?;
                Ok(protocol)
            }

            /// Reads the fields of a specification that say how reports are made.
            pub(crate) fn read(given: &Given) -> Result<Self, Error> {
                match given.protocol()? {
                    $(<$family as Family>::NAME => family::read(given).map(Self::$family),)*
                    other => Err(spec::unknown(other, &[$(<$family as Family>::NAME),*])),
                }
            }

            /// The number of the family in messages.
            pub(crate) fn code(&self) -> u8 {
                match self {
                    $(Self::$family(_) => Code::$family as u8,)*
                }
            }

            /// The name of the family in specifications.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$family(_) => <$family as Family>::NAME,)*
                }
            }

            /// The name of the number of values: for sketches it is that of the columns of their tables.
            pub(crate) fn name_of_k(&self) -> &'static str {
                match self {
                    $(Self::$family(_) => <$family as Family>::NAME_OF_K,)*
                }
            }

            /// Whether the values that reports are made of are [`fingerprints`](super::fingerprints) of texts.
            #[must_use]
            pub fn takes_texts(&self) -> bool {
                match self {
                    $(Self::$family(_) => <$family as Family>::OF_TEXTS,)*
                }
            }

            /// The kind of values that reports are made of. Unary encodings, which take [`ValueKind::Integers`], also
            /// take [`ValueKind::Rows`].
            #[must_use]
            pub fn takes(&self) -> ValueKind {
                match self {
                    $(Self::$family(_) => <<$family as Family>::Values<'_> as Input>::KIND,)*
                }
            }
        }
    };
}

#[cfg(not(dpnoise_chosen))]
families! { $
    1 RandomizedResponse,
    2 SymmetricUnaryEncoding,
    3 OptimizedUnaryEncoding,
    4 UnaryEncoding,
    5 GeneralizedRandomizedResponse,
    6 LocalHashing,
    7 HadamardResponse,
    8 SubsetSelection,
    9 LongitudinalUnaryEncoding,
    10 Loloha,
    11 DBitFlip,
    12 DuchiMean,
    13 PiecewiseMean,
    14 HybridMean,
    15 LaplaceMean,
    16 SquareWave,
    17 ThresholdHistogramEncoding,
    18 SummationHistogramEncoding,
    19 CountMeanSketch,
    20 HadamardCountMeanSketch,
    21 HierarchicalRange,
    22 PrefixExtension,
    23 Rappor,
    24 ProjectiveGeometryResponse,
    25 GaussianMean,
}

// Some of these lines, for a client that is downloaded: `make web PROTOCOLS=...`.
#[cfg(dpnoise_chosen)]
include!(env!("DPNOISE_CHOSEN"));

fn unknown_family(name: &str) -> Error {
    let known: Vec<_> = Protocol::FAMILIES.iter().map(|info| info.name).collect();
    Error::parameter("family", format!("{name:?}"), format!("one of {}", known.join(", ")))
}

/// The parameters.
impl Protocol {
    /// The family of this name in specifications.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown family.
    pub fn family(name: &str) -> Result<&'static FamilyInfo, Error> {
        let found = Self::FAMILIES.iter().find(|info| info.name == name);
        found.ok_or_else(|| unknown_family(name))
    }

    /// The number of values that an answer may have. It is the number of positions for protocols on numbers, of columns
    /// of a table for sketches, and of bits of a Bloom filter for RAPPOR.
    #[must_use]
    pub fn k(&self) -> u32 {
        on_family!(self, family => family.k())
    }

    /// The requested epsilon.
    #[must_use]
    pub fn requested_epsilon(&self) -> f64 {
        on_family!(self, family => family.requested_epsilon())
    }

    /// The epsilon of the guarantee: the exact one, rounded up to a double. It is never above the requested one, and at
    /// least 0.999 of it except for thresholding, which loses some of it.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        on_family!(self, family => family.epsilon())
    }

    /// The delta of the guarantee: 0 for most protocols, whose guarantee is that of epsilon alone.
    #[must_use]
    pub fn delta(&self) -> f64 {
        on_family!(self, family => family.delta())
    }

    /// An epsilon, proved and at most that of a report, for which `n` reports whose senders and order a shuffler has removed
    /// are (epsilon, delta)-differentially private for the replacement of one person's value. It is the smaller one of
    /// [`shuffled_epsilon`], which holds for every protocol, and of the bound by the part that reports on all values have in
    /// common (Balle, Bell, Gascon and Nissim 2019, "The privacy blanket of the shuffle model"), where that is known.
    /// Beside it the name of the bound: "local" or "clones" as there; "blanket" for the part that follows from the
    /// protocol's probabilities, and "binary" for that of all protocols for one of two values.
    ///
    /// # Errors
    /// As for [`shuffled_epsilon`]; and [`Error::Parameter`] for a protocol with a delta.
    pub fn shuffled_epsilon(&self, n: u64, delta: f64, pause: &mut Pause<'_>) -> Result<(f64, &'static str), Error> {
        if self.delta() > 0.0 {
            return Err(Error::parameter("protocol", self.name(), "one with a delta of 0"));
        }
        let local = self.epsilon();
        let of_any = shuffled_epsilon(local, n, delta, pause)?;
        let Some(blanket) = on_family!(self, family => family.blanket()) else { return Ok(of_any) };
        let found = blanket.epsilon(local, n, delta, pause)?;
        Ok(if found.0 < of_any.0 { found } else { of_any })
    }

    /// For protocols with two rounds, the epsilon of a single report, where [`Protocol::epsilon`] is that of all
    /// reports on one value together; exact and rounded up, at least 0.999 of the requested one.
    #[must_use]
    pub fn epsilon_first(&self) -> Option<f64> {
        on_family!(self, family => family.first()).map(|(achieved, _)| achieved)
    }

    /// For protocols with two rounds, the epsilon requested for a single report.
    #[must_use]
    pub fn requested_epsilon_first(&self) -> Option<f64> {
        on_family!(self, family => family.first()).map(|(_, requested)| requested)
    }

    /// The canonical specification of how reports are made, whatever they are about.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.json_with(vec![])
    }

    /// The canonical specification with these further fields.
    pub(crate) fn json_with(&self, further: Fields) -> String {
        on_family!(self, family => family.to_json(further))
    }

    /// The first 8 bytes of the SHA-256 of the canonical specification.
    #[must_use]
    pub fn spec_id(&self) -> [u8; 8] {
        spec::id(&self.to_json())
    }

    /// [`Protocol::spec_id`] in hexadecimal.
    #[must_use]
    pub fn spec_id_hex(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.spec_id()))
    }
}

/// People's devices.
impl Protocol {
    /// The number of people, once it is checked that these values can be reported on.
    ///
    /// # Errors
    /// [`Error::Data`] unless all values can be reported on, [`Error::Parameter`] when they are not of the kind that
    /// [`Protocol::takes`] gives.
    pub fn people(&self, values: Values<'_>) -> Result<usize, Error> {
        on_family!(self, family => family::people(family, values))
    }

    /// Randomises the value of each person on up to `threads` threads, each with a freshly keyed secure generator: one
    /// row of `report_bytes` bytes of `out` for each.
    ///
    /// # Errors
    /// [`Error::Data`] unless all values can be reported on; the message does not say which cannot.
    /// [`Error::Parameter`] when the values are not of the kind that [`Protocol::takes`] gives, when `out` does not
    /// have one row per value, and for zero threads. Both come before anything is drawn. [`Error::Randomness`] when the
    /// system has no randomness; then `out` is zero where it was written.
    pub fn perturb(&self, values: Values<'_>, out: &mut [u8], threads: usize) -> Result<(), Error> {
        self.perturb_pausing(values, out, threads, &mut go_on)
    }

    /// Randomises values as [`Protocol::perturb`] does, and asks `pause` now and then whether to go on.
    ///
    /// # Errors
    /// As for [`Protocol::perturb`], and the errors of `pause`; then `out` is zero where it was written.
    pub fn perturb_pausing(
        &self,
        values: Values<'_>,
        out: &mut [u8],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        on_family!(self, family => family::perturb(family, values, out, threads, pause))
    }

    /// Randomises the value of each person with random words of `rng`, in their order.
    ///
    /// # Errors
    /// As for [`Protocol::perturb`]; [`Error::Randomness`] when `rng` fails.
    pub fn perturb_with<R>(&self, values: Values<'_>, out: &mut [u8], rng: &mut R) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        on_family!(self, family => family::perturb_with(family, values, out, rng))
    }
}

/// The collector.
impl Protocol {
    /// The bits of a report.
    #[must_use]
    pub fn report_bits(&self) -> usize {
        on_family!(self, family => family.reports().bits())
    }

    /// The bytes of a report.
    #[must_use]
    pub fn report_bytes(&self) -> usize {
        on_family!(self, family => family.report_bytes())
    }

    /// The number of counters: one for each value that reports support (only "yes" for randomised response), or one for
    /// each possible report.
    #[must_use]
    pub fn counters(&self) -> usize {
        on_family!(self, family => family.reports().counters())
    }

    /// The bytes of these counters. A call of the collector takes a few times as much for a while, and with several
    /// threads about as much again as the reports that it counts.
    #[must_use]
    pub fn counter_bytes(&self) -> usize {
        size_of::<u64>() * self.counters()
    }

    pub(crate) fn check_limit(&self, limit: usize) -> Result<(), Error> {
        let bytes = self.counter_bytes();
        if bytes <= limit {
            return Ok(());
        }
        let (name, of_values, k) = (self.name(), self.name_of_k(), self.k());
        let allowed = format!("at least {bytes}, the bytes of the counters of {name} with {of_values} = {k}");
        Err(Error::parameter(LIMIT, limit, allowed))
    }

    /// How counts follow from the collector's counters; `None` where reports are not counted by value.
    #[must_use]
    pub fn law(&self) -> Option<Law> {
        on_family!(self, family => family.law())
    }

    /// How the mean of people's numbers follows from the collector's counters; `None` where reports do not stand for
    /// numbers in [-1, 1].
    #[must_use]
    pub fn mean_law(&self) -> Option<MeanLaw> {
        on_family!(self, family => family.mean_law())
    }

    /// The probabilities with which a report supports its sender's value and any other; `None` where reports do not
    /// support values.
    #[must_use]
    pub fn support(&self) -> Option<Support> {
        self.law().and_then(Law::support)
    }

    /// The reasons for rejecting reports, in the order in which the counts are stored. The first one is for malformed
    /// reports, the others are for inputs that are not reports.
    #[must_use]
    pub fn rejection_reasons(&self) -> [&'static str; 4] {
        let malformed = on_family!(self, family => family.reports().malformed());
        [malformed, MISSING_REPORT, WRONG_LENGTH, WRONG_HEADER]
    }

    /// The most reports that the counters have room for.
    pub(crate) fn most_reports(&self) -> u64 {
        on_family!(self, family => family.reports().most())
    }

    /// The work of counting one of `reports` reports, in bytes of packed bits that take the same time to count.
    pub(crate) fn effort(&self, reports: usize) -> usize {
        on_family!(self, family => family.reports().effort(reports))
    }

    /// The counters of the well-formed rows, and the number of malformed ones.
    pub(crate) fn count(&self, instructions: InstructionSet, rows: &[u8]) -> Result<(Vec<u64>, u64), Error> {
        on_family!(self, family => family.reports().count(instructions, rows))
    }

    /// Whether these counters are possible for `n` reports.
    pub(crate) fn are_possible(&self, n: u64, counters: &[u64]) -> bool {
        n <= self.most_reports() && on_family!(self, family => family.reports().are_possible(n, counters))
    }

    pub(crate) fn estimate(&self, n: u64, counters: &[u64]) -> Result<Option<Estimate>, Error> {
        on_family!(self, family => family.estimate(n, counters))
    }

    pub(crate) fn estimate_candidates(&self, counters: &[u64], candidates: &[i64]) -> Result<Option<Estimate>, Error> {
        on_family!(self, family => family.estimate_candidates(counters, candidates))
    }

    pub(crate) fn estimate_ranges(&self, n: u64, counters: &[u64]) -> Result<Option<RangeEstimate>, Error> {
        on_family!(self, family => family.estimate_ranges(n, counters))
    }

    pub(crate) fn estimate_density(
        &self,
        n: u64,
        counters: &[u64],
        smoothing: bool,
    ) -> Result<Option<DensityEstimate>, Error> {
        on_family!(self, family => family.estimate_density(n, counters, smoothing))
    }

    pub(crate) fn estimate_prefixes(
        &self,
        n: u64,
        counters: &[u64],
        level: f64,
        people: Option<u64>,
    ) -> Result<Option<HeavyHitters>, Error> {
        on_family!(self, family => family.estimate_prefixes(n, counters, level, people))
    }
}
