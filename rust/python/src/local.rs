//! Local differential privacy: the protocols.

use std::sync::OnceLock;

use dpnoise_core::Error;
use dpnoise_core::local::{
    self, COUNTER_LIMIT, CountMeanSketch, DBitFlip, DuchiMean, Estimate, GeneralizedRandomizedResponse,
    HadamardCountMeanSketch, HadamardResponse, HierarchicalRange, HybridMean, LaplaceMean, Law, LocalHashing, Loloha,
    LongitudinalUnaryEncoding, MAX_K, MIN_K, OptimizedUnaryEncoding, Permanent, PiecewiseMean, PrefixExtension,
    Probabilities, ProjectiveGeometryResponse, Protocol, RandomizedResponse, Rappor, Remembering, Sketch, SquareWave,
    SubsetSelection, SummationHistogramEncoding, Support, SymmetricUnaryEncoding, ThresholdHistogramEncoding,
    UnaryEncoding, ValueKind, Values,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{ParameterError, to_py};
use crate::memo::LocalMemo;
use crate::numbers::{integer, real, real_down};
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

/// Counts and standard errors.
type Estimated<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A protocol of any family.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalProtocol(pub(crate) Protocol, OnceLock<f64>);

impl From<Protocol> for LocalProtocol {
    fn from(protocol: Protocol) -> Self {
        Self(protocol, OnceLock::new())
    }
}

#[pymethods]
impl LocalProtocol {
    #[staticmethod]
    fn randomized_response(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(RandomizedResponse::new(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn coin_flips() -> Self {
        Protocol::from(RandomizedResponse::coin_flips()).into()
    }

    #[staticmethod]
    fn symmetric_unary_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(SymmetricUnaryEncoding::new(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn optimized_unary_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(OptimizedUnaryEncoding::new(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn unary_encoding(k: &Bound<'_, PyAny>, p: &Bound<'_, PyAny>, q: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(UnaryEncoding::new(number_of_values(k)?, real(p, "p")?, real(q, "q")?))
    }

    #[staticmethod]
    fn generalized_randomized_response(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(GeneralizedRandomizedResponse::new(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon, g))]
    fn local_hashing(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>, g: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let g =
            g.map(|g| integer(g, "g", &format!("None or an integer from 2 to {}", LocalHashing::MAX_G))).transpose()?;
        made(LocalHashing::new(number_of_values(k)?, real_down(epsilon, "epsilon")?, g))
    }

    #[staticmethod]
    fn hadamard_response(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(HadamardResponse::new(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon, prime))]
    fn projective_geometry_response(
        k: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        prime: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let prime = prime.map(|prime| integer(prime, "prime", "None or a prime number below 2**27")).transpose()?;
        made(ProjectiveGeometryResponse::new(number_of_values(k)?, real_down(epsilon, "epsilon")?, prime))
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon, omega))]
    fn subset_selection(
        k: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        omega: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let omega = omega.map(|omega| integer(omega, "omega", "None or an integer from 1 to k - 1")).transpose()?;
        made(SubsetSelection::new(number_of_values(k)?, real_down(epsilon, "epsilon")?, omega))
    }

    #[staticmethod]
    fn laplace_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(LaplaceMean::new(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn longitudinal_unary_encoding(
        k: &Bound<'_, PyAny>,
        epsilon_permanent: &Bound<'_, PyAny>,
        epsilon_first: &Bound<'_, PyAny>,
        permanent: &str,
    ) -> PyResult<Self> {
        let permanent = match permanent {
            "optimized" => Permanent::Optimized,
            "symmetric" => Permanent::Symmetric,
            other => {
                return Err(to_py(Error::parameter(
                    "permanent",
                    format!("{other:?}"),
                    "\"optimized\" or \"symmetric\"",
                )));
            }
        };
        let (k, epsilon_permanent) = (number_of_values(k)?, real_down(epsilon_permanent, "epsilon_permanent")?);
        let epsilon_first = real_down(epsilon_first, "epsilon_first")?;
        made(LongitudinalUnaryEncoding::new(k, epsilon_permanent, epsilon_first, permanent))
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon_permanent, epsilon_first, g))]
    fn loloha(
        k: &Bound<'_, PyAny>,
        epsilon_permanent: &Bound<'_, PyAny>,
        epsilon_first: &Bound<'_, PyAny>,
        g: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let g = g.map(|g| integer(g, "g", &format!("None or an integer from 2 to {}", Loloha::MAX_G))).transpose()?;
        let (k, epsilon_permanent) = (number_of_values(k)?, real_down(epsilon_permanent, "epsilon_permanent")?);
        made(Loloha::new(k, epsilon_permanent, real_down(epsilon_first, "epsilon_first")?, g))
    }

    #[staticmethod]
    fn d_bit_flip(k: &Bound<'_, PyAny>, d: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let d = integer(d, "d", "an integer from 1 to k")?;
        made(DBitFlip::new(number_of_values(k)?, real_down(epsilon, "epsilon")?, d))
    }

    #[staticmethod]
    fn duchi_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(DuchiMean::new(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn piecewise_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(PiecewiseMean::new(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn hybrid_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(HybridMean::new(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn square_wave(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let k = integer(k, "k", &format!("an integer from {MIN_K} to {}", SquareWave::MAX_K))?;
        made(SquareWave::new(k, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn threshold_histogram_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(ThresholdHistogramEncoding::new(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn summation_histogram_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(SummationHistogramEncoding::new(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn hierarchical_range(
        k: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        branching: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let k = integer(k, "k", &format!("an integer from {MIN_K} to {}", HierarchicalRange::MAX_K))?;
        let branching = integer(branching, "branching", "a power of two from 2 to 1024")?;
        made(HierarchicalRange::new(k, real_down(epsilon, "epsilon")?, branching))
    }

    #[staticmethod]
    fn count_mean_sketch(
        epsilon: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let [rows, width, seed] = shape_of_sketch(rows, width, seed)?;
        made(CountMeanSketch::new(real_down(epsilon, "epsilon")?, rows, width, seed))
    }

    #[staticmethod]
    fn hadamard_count_mean_sketch(
        epsilon: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let [rows, width, seed] = shape_of_sketch(rows, width, seed)?;
        made(HadamardCountMeanSketch::new(real_down(epsilon, "epsilon")?, rows, width, seed))
    }

    #[staticmethod]
    fn prefix_extension(
        epsilon: &Bound<'_, PyAny>,
        bits: &Bound<'_, PyAny>,
        step: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (bits, step) =
            (integer(bits, "bits", PrefixExtension::BITS)?, integer(step, "step", PrefixExtension::STEPS)?);
        let [rows, width, seed] = shape_of_sketch(rows, width, seed)?;
        made(PrefixExtension::new(bits, real_down(epsilon, "epsilon")?, step, rows, width, seed))
    }

    #[staticmethod]
    fn rappor(
        num_bloombits: &Bound<'_, PyAny>,
        num_hashes: &Bound<'_, PyAny>,
        num_cohorts: &Bound<'_, PyAny>,
        f: &Bound<'_, PyAny>,
        p: &Bound<'_, PyAny>,
        q: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let num_bloombits = integer(num_bloombits, "num_bloombits", Sketch::WIDTHS)?;
        let num_hashes = integer(num_hashes, "num_hashes", &format!("an integer from 1 to {}", Rappor::MAX_HASHES))?;
        let num_cohorts = integer(num_cohorts, "num_cohorts", Sketch::ROWS)?;
        let given = Probabilities { f: real(f, "f")?, p: real(p, "p")?, q: real(q, "q")? };
        made(Rappor::new(num_bloombits, num_hashes, num_cohorts, given))
    }

    #[staticmethod]
    fn from_json(text: &str, limit: &Bound<'_, PyAny>) -> PyResult<Self> {
        Protocol::from_json(text, most(limit)?).map(Self::from).map_err(to_py)
    }

    #[getter]
    fn family(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn k(&self) -> u32 {
        self.0.k()
    }

    #[getter]
    fn p(&self) -> PyResult<f64> {
        self.support().map(|support| support.probability(support.p))
    }

    #[getter]
    fn q(&self) -> PyResult<f64> {
        self.support().map(|support| support.probability(support.q))
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        *self.1.get_or_init(|| self.0.epsilon()) // the exact one takes long to compute
    }

    #[getter]
    fn requested_epsilon(&self) -> f64 {
        self.0.requested_epsilon()
    }

    #[getter]
    fn epsilon_first(&self) -> PyResult<f64> {
        self.0.epsilon_first().ok_or_else(|| self.one_round())
    }

    #[getter]
    fn requested_epsilon_first(&self) -> PyResult<f64> {
        self.0.requested_epsilon_first().ok_or_else(|| self.one_round())
    }

    #[getter]
    fn counters(&self) -> usize {
        self.0.counters()
    }

    #[getter]
    fn counter_bytes(&self) -> usize {
        self.0.counter_bytes()
    }

    #[getter]
    fn message_header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.message_header())
    }

    #[getter]
    fn report_bytes(&self) -> usize {
        self.0.report_bytes()
    }

    #[getter]
    fn spec_id(&self) -> String {
        self.0.spec_id_hex()
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn variance(&self, n: &Bound<'_, PyAny>, frequency: &Bound<'_, PyAny>) -> PyResult<f64> {
        let n = integer(n, "n", "an integer from 0 to 2**64 - 1")?;
        self.law()?.variance(n, real(frequency, "frequency")?).map_err(to_py)
    }

    /// The counts and standard errors that follow from how many of `n` reports support each value, as uint64.
    fn estimate_supports<'py>(
        &self,
        py: Python<'py>,
        n: u64,
        supports: &Bound<'py, PyAny>,
    ) -> PyResult<Estimated<'py>> {
        let supports = buffers::readable::<u64>(supports, "supports", "uint64")?;
        let estimate = self.law()?.estimate(n, buffers::slice(&supports, "supports")?);
        let Estimate { counts, standard_errors, .. } = estimate.map_err(to_py)?;
        Ok((counts.into_pyarray(py), standard_errors.into_pyarray(py)))
    }

    /// One-hot rows of int64 `values`.
    fn encode(&self, values: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = buffers::readable::<i64>(values, "values", "int64")?;
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let (values, out) = (buffers::slice(&values, "values")?, buffers::elements(&mut out, "out")?);
        local::one_hot(self.0.k(), values, out).map_err(to_py)
    }

    /// Reports for `values`, an array that no other code has seen: int64, uint8 for randomised response, or float64 for
    /// protocols that take numbers.
    #[pyo3(signature = (values, out, threads, rng=None))]
    fn perturb(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match self.0.takes() {
            ValueKind::Answers => {
                let values = buffers::readable::<u8>(values, "values", "uint8")?;
                self.reports(py, Values::Answers(buffers::slice(&values, "values")?), out, threads, rng)
            }
            ValueKind::Numbers => {
                let values = buffers::readable::<f64>(values, "values", "float64")?;
                self.reports(py, Values::Numbers(buffers::slice(&values, "values")?), out, threads, rng)
            }
            _ => {
                let values = buffers::readable::<i64>(values, "values", "int64")?;
                self.reports(py, Values::Integers(buffers::slice(&values, "values")?), out, threads, rng)
            }
        }
    }

    /// Reports for int64 `values`, an array that no other code has seen, of the people of `memo` who answer `question`.
    #[pyo3(signature = (values, memo, question, out, threads, rng=None))]
    #[allow(clippy::too_many_arguments, reason = "those of `perturb`, and what clients remember")]
    fn perturb_remembering(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        memo: &LocalMemo,
        question: &str,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if self.0.takes() != ValueKind::Remembering {
            return Err(PyTypeError::new_err(format!("clients of {} keep no memo", self.0.name())));
        }
        let values = buffers::readable::<i64>(values, "values", "int64")?;
        let values = buffers::slice(&values, "values")?;
        let people = Remembering { values, secrets: memo.0.secrets(), question };
        self.reports(py, Values::Remembering(people), out, threads, rng)
    }

    /// Reports for one-hot rows, an array that no other code has seen.
    #[pyo3(signature = (bits, out, threads, rng=None))]
    fn perturb_encoded(
        &self,
        py: Python<'_>,
        bits: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let bits = buffers::readable::<u8>(bits, "bits", "uint8")?;
        self.reports(py, Values::OneHot(buffers::slice(&bits, "bits")?), out, threads, rng)
    }

    /// Fills int64 `out` with the bits that are set in the Bloom filters of int64 fingerprints: `num_cohorts` times
    /// `num_hashes` for each.
    fn bloom_bits(&self, fingerprints: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let fingerprints = buffers::readable::<i64>(fingerprints, "fingerprints", "int64")?;
        let fingerprints = buffers::slice(&fingerprints, "fingerprints")?;
        let mut out = buffers::writable::<i64>(out, "out", "int64")?;
        let out = buffers::elements(&mut out, "out")?;
        let Protocol::Rappor(rappor) = self.0 else {
            return Err(PyTypeError::new_err(format!("reports of {} are not Bloom filters", self.0.name())));
        };
        let of_each = (rappor.num_cohorts() * rappor.num_hashes()) as usize;
        if out.len() != fingerprints.len() * of_each {
            return Err(ParameterError::new_err(format!("out must have {of_each} entries for every fingerprint")));
        }
        rappor.set_bits(fingerprints, out);
        Ok(())
    }
}

impl LocalProtocol {
    fn reports(
        &self,
        py: Python<'_>,
        values: Values<'_>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let out = buffers::elements(&mut out, "out")?;
        match hazmat::given(rng)? {
            Some(mut rng) => self.0.perturb_with(values, out, &mut *rng).map_err(to_py),
            None => runtime::pausing(py, |pause| self.0.perturb_pausing(values, out, threads.get(), pause)),
        }
    }

    fn law(&self) -> PyResult<Law> {
        self.0.law().ok_or_else(|| not_by_value(&self.0))
    }

    fn support(&self) -> PyResult<Support> {
        self.law()?.support().ok_or_else(|| {
            let family = self.0.name();
            PyAttributeError::new_err(format!("{family} has no p and q: its reports are sums, which nothing flips"))
        })
    }

    fn one_round(&self) -> PyErr {
        PyTypeError::new_err(format!("{} has one round of randomisation", self.0.name()))
    }
}

/// What was made, or why it was refused, as Python has it.
fn made<F: Into<Protocol>>(made: Result<F, Error>) -> PyResult<LocalProtocol> {
    made.map(|family| LocalProtocol::from(family.into())).map_err(to_py)
}

pub(crate) fn not_by_value(protocol: &Protocol) -> PyErr {
    PyTypeError::new_err(format!("reports of {} are not counted by value", protocol.name()))
}

/// The most bytes of counters: all that there can be for None.
pub(crate) fn most(limit: &Bound<'_, PyAny>) -> PyResult<usize> {
    if limit.is_none() { Ok(usize::MAX) } else { integer(limit, "limit", "None or an integer from 0 to 2**64 - 1") }
}

fn number_of_values(k: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer(k, "k", &format!("an integer from {MIN_K} to {MAX_K}"))
}

fn shape_of_sketch(rows: &Bound<'_, PyAny>, width: &Bound<'_, PyAny>, seed: &Bound<'_, PyAny>) -> PyResult<[u64; 3]> {
    let (rows, width) = (integer(rows, "rows", Sketch::ROWS)?, integer(width, "width", Sketch::WIDTHS)?);
    Ok([rows, width, integer(seed, "seed", Sketch::SEEDS)?])
}

/// Fills int64 `out` with the fingerprints of texts: `data`, uint8, from one of the int64 `offsets` to the next.
#[pyfunction]
fn text_fingerprints(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let data = buffers::readable::<u8>(data, "data", "uint8")?;
    let offsets = buffers::readable::<i64>(offsets, "offsets", "int64")?;
    let mut out = buffers::writable::<i64>(out, "out", "int64")?;
    let (data, offsets) = (buffers::slice(&data, "data")?, buffers::slice(&offsets, "offsets")?);
    let out = buffers::elements(&mut out, "out")?;
    runtime::detached(py, || local::fingerprints(data, offsets, out))
}

/// The Walsh-Hadamard transform, in place.
#[pyfunction]
fn walsh_hadamard(numbers: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut numbers = buffers::writable::<i64>(numbers, "numbers", "int64")?;
    local::walsh_hadamard(buffers::elements(&mut numbers, "numbers")?);
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(walsh_hadamard, module)?)?;
    module.add("COUNTER_LIMIT", COUNTER_LIMIT)?;
    module.add_class::<LocalProtocol>()?;
    module.add_class::<LocalMemo>()?;
    module.add_function(wrap_pyfunction!(text_fingerprints, module)?)
}
