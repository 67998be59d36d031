//! What every family of protocols defines, and how reports are made in bulk, in the same way for all families.

use core::fmt::Debug;

use rand_core::TryCryptoRng;

use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::local::chance::likelihood::check_epsilon;
use crate::local::density::DensityEstimate;
use crate::local::derivation::Streams;
use crate::local::estimate::{Estimate, HeavyHitters, Law};
use crate::local::mean::MeanLaw;
use crate::local::range::RangeEstimate;
use crate::local::reports::Reports;
use crate::local::spec::{self, Field, Fields, Given};
use crate::local::values::{Input, ValueKind, Values, check_out};
use crate::rng::{AnyRng, SecureRng, wiped_on_error};
use crate::threads::{self, Division, Pause, check_threads};

/// Below this many random bytes a further thread costs more than it gains.
const RANDOM_BYTES_PER_THREAD: usize = 1 << 19;

/// The caller is asked whether to go on before about this many bytes of reports are made.
const PIECE_BYTES: usize = 1 << 24;

/// A family of protocols, which differ only in their parameters. Everything specific to a family is here.
pub(crate) trait Family: Copy + Debug + PartialEq + Sync {
    /// The name in specifications.
    const NAME: &'static str;

    /// The abbreviation of the literature, which is the name on the command line.
    const ABBREVIATION: &'static str;

    /// The parameters of [`from_arguments`](Self::from_arguments).
    const PARAMETERS: &'static [Parameter];

    /// The order of the collector's work, for families that are compared when a collection is planned.
    const COST: Option<&'static str>;

    /// The name of the number of values: for sketches it is that of the columns of their tables, for RAPPOR that of the
    /// bits of a row.
    const NAME_OF_K: &'static str = "k";

    /// Whether values are [`fingerprints`](crate::local::fingerprints) of texts.
    const OF_TEXTS: bool = false;

    /// The form of the reports.
    type Reports: Reports;

    /// What reports are made of.
    type Values<'a>: Input<'a>;

    // --- parameters --------------------------------------------------------------------------------------------------

    /// The number of values; for protocols on numbers, of the positions that numbers are put on.
    fn k(&self) -> u32;

    /// The requested epsilon.
    fn requested_epsilon(&self) -> f64;

    /// The parameters in specifications, except these two.
    fn fields(&self) -> Vec<Field>;

    /// The protocol with these arguments.
    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error>;

    /// The protocol with `k` values, the requested `epsilon`, which is in range, and the other `given` parameters. The
    /// caller checks afterwards that the given fields are those of the protocol.
    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error>;

    // --- privacy -----------------------------------------------------------------------------------------------------

    /// The logarithm of the largest likelihood ratio of all reports on one value, rounded up.
    fn epsilon(&self) -> f64;

    /// How much a probability may exceed e^epsilon times another one: 0 where epsilon is that logarithm.
    fn delta(&self) -> f64 {
        0.0
    }

    /// For protocols with two rounds: the same for a single report, and the epsilon requested for it.
    fn first(&self) -> Option<(f64, f64)> {
        None
    }

    /// What the reports on all values have in common, for the privacy of shuffled reports; `None` where only epsilon is
    /// used. Here that is of every randomiser of one of two values.
    fn blanket(&self) -> Option<Blanket> {
        let takes_two_values = self.k() == 2 && Self::NAME_OF_K == "k" && self.law().is_some();
        takes_two_values.then(|| Blanket::of_two_values(self.epsilon()))
    }

    // --- people's devices: time and addresses must not depend on a value or a secret ---------------------------------

    /// Checks without a branch that all values can be reported on: the time does not show how many cannot, or which.
    fn check(&self, values: Self::Values<'_>) -> Result<(), Error>;

    /// About how many random bits a report takes, derived ones included.
    fn random_bits(&self) -> usize;

    /// The bytes of reports in multiples of which threads share the work.
    fn unit(&self) -> usize {
        <Self::Values<'static>>::unit(self.report_bytes())
    }

    /// Fills `out`, which begins at byte `first` of the matrix of all reports on `values`, all of them checked. Nothing
    /// may be written to `out` before it is randomised, since `out` may be memory that others can read.
    fn randomise(
        &self,
        rng: &mut AnyRng<'_>,
        values: Self::Values<'_>,
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error>;

    // --- collecting --------------------------------------------------------------------------------------------------

    /// The form of the reports.
    fn reports(&self) -> Self::Reports;

    /// How counts follow from the collector's counters; `None` where reports are not counted by value.
    fn law(&self) -> Option<Law> {
        None
    }

    /// Unbiased estimates of how many people have each value; `None` where reports are not counted by value.
    fn estimate(&self, n: u64, counters: &[u64]) -> Result<Option<Estimate>, Error> {
        self.law().map(|law| law.estimate(n, counters)).transpose()
    }

    /// How a mean follows from the collector's counters; `None` where reports do not stand for numbers in [-1, 1].
    fn mean_law(&self) -> Option<MeanLaw> {
        None
    }

    /// Estimates of how many people have each of the `candidates`, fingerprints of texts; `None` except for sketches.
    fn estimate_candidates(&self, _counters: &[u64], _candidates: &[i64]) -> Result<Option<Estimate>, Error> {
        Ok(None)
    }

    /// Estimates of how many people have each value and each range of values; `None` except for hierarchical ranges.
    fn estimate_ranges(&self, _n: u64, _counters: &[u64]) -> Result<Option<RangeEstimate>, Error> {
        Ok(None)
    }

    /// The distribution of numbers, smoothed or not; `None` except for the square wave.
    fn estimate_density(&self, _n: u64, _counters: &[u64], _smoothing: bool) -> Result<Option<DensityEstimate>, Error> {
        Ok(None)
    }

    /// The frequent values, at this confidence level, of all `people`, if the senders are a random sample of them;
    /// `None` except for prefix extension.
    fn estimate_prefixes(
        &self,
        _n: u64,
        _counters: &[u64],
        _level: f64,
        _people: Option<u64>,
    ) -> Result<Option<HeavyHitters>, Error> {
        Ok(None)
    }

    // --- what follows ------------------------------------------------------------------------------------------------

    /// The bytes of a report.
    fn report_bytes(&self) -> usize {
        self.reports().bits().div_ceil(8)
    }

    /// All parameters in specifications.
    fn all_fields(&self) -> Vec<Field> {
        let mut fields = vec![(Self::NAME_OF_K, self.k().into()), ("epsilon", self.requested_epsilon().into())];
        fields.extend(self.fields());
        fields
    }

    /// The canonical specification with these further fields.
    fn to_json(&self, further: Fields) -> String {
        let mut fields = further;
        fields.extend(self.all_fields().into_iter().map(|(name, value)| (name, value.to_string())));
        spec::to_json(Self::NAME, fields)
    }

    /// What is permanent in the answers to a question.
    fn streams(&self, question: &str) -> Result<Streams, Error> {
        Streams::new(spec::digest(&self.to_json(vec![])), question)
    }
}

/// Reads the given protocol, and checks that its parameters are those that its epsilon gives.
pub(crate) fn read<F: Family>(given: &Given) -> Result<F, Error> {
    let (k, epsilon) = (given.integer(F::NAME_OF_K)?, given.number("epsilon")?);
    check_epsilon(epsilon)?;
    let family = F::from_fields(k, epsilon, given)?;
    given.check(&family.all_fields())?;
    Ok(family)
}

/// Fills `out` with the reports on `values`, all of them with random words of `rng`, in their order.
pub(crate) fn perturb_with<F, R>(family: &F, values: Values<'_>, out: &mut [u8], mut rng: &mut R) -> Result<(), Error>
where
    F: Family,
    R: TryCryptoRng + ?Sized,
{
    let values = checked(family, values, out)?;
    wiped_on_error(out, |out| family.randomise(&mut AnyRng::new(&mut rng), values, 0, out))
}

/// Fills `out` with the reports on `values`, on up to `threads` threads, as many as are worth starting, each with a
/// freshly keyed secure generator; `pause` is asked before each piece of the work.
pub(crate) fn perturb<F: Family>(
    family: &F,
    values: Values<'_>,
    out: &mut [u8],
    threads: usize,
    pause: &mut Pause<'_>,
) -> Result<(), Error> {
    let values = checked(family, values, out)?;
    check_threads(threads)?;
    let unit = family.unit();
    let piece = (PIECE_BYTES / unit).max(1) * unit;
    let random_bytes = (piece.min(out.len()) / family.report_bytes()).saturating_mul(family.random_bits()) / 8;
    let threads = threads.min(1 + random_bytes / RANDOM_BYTES_PER_THREAD);
    // One type for the closures of all families, so that `fill` is compiled once.
    let randomise: &Part<'_> = &|rng, first, part| family.randomise(&mut AnyRng::new(rng), values, first, part);
    threads::fill(out, Division { piece, unit }, threads, pause, randomise)
}

/// Makes the reports of a part, which begins at this byte of the matrix of all reports.
type Part<'a> = dyn Fn(&mut SecureRng, usize, &mut [u8]) -> Result<(), Error> + Sync + 'a;

/// The number of people, once it is checked that the family takes these values.
pub(crate) fn people<F: Family>(family: &F, values: Values<'_>) -> Result<usize, Error> {
    taken(family, values).map(|values| values.people(family.report_bytes()))
}

/// The values, once it is checked that the family takes this kind, that all of them can be reported on, and that `out`
/// has a row for each.
fn checked<'a, F: Family>(family: &F, values: Values<'a>, out: &[u8]) -> Result<F::Values<'a>, Error> {
    let (values, width) = (taken(family, values)?, family.report_bytes());
    check_out(out, values.people(width), width)?;
    Ok(values)
}

/// The values, once it is checked that the family takes this kind, and that all of them can be reported on.
fn taken<'a, F: Family>(family: &F, values: Values<'a>) -> Result<F::Values<'a>, Error> {
    let given = values.kind();
    let values = <F::Values<'a>>::of(values).ok_or_else(|| of_another_kind(given, <F::Values<'a>>::KIND, F::NAME))?;
    family.check(values)?;
    Ok(values)
}

/// The error for values of another kind than the family of this name takes.
fn of_another_kind(given: ValueKind, taken: ValueKind, family: &str) -> Error {
    Error::parameter("values", given.name(), format!("{}, which {family} takes", taken.name()))
}
