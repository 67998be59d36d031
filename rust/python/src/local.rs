//! Local differential privacy: the protocols.

use std::ops::Range;

use dpnoise_core::Error;
use dpnoise_core::local::estimate::{Law, Support};
use dpnoise_core::local::hadamard_response;
use dpnoise_core::local::hierarchical_range::MAX_LEAVES;
use dpnoise_core::local::local_hashing::MAX_G;
use dpnoise_core::local::longitudinal_unary_encoding::Permanent;
use dpnoise_core::local::memo::Secret;
use dpnoise_core::local::prefix_extension::Prefixes;
use dpnoise_core::local::protocol::{MAX_K, MIN_K};
use dpnoise_core::local::rappor::{MAX_HASHES, Probabilities, Rappor};
use dpnoise_core::local::sketch::Sketch;
use dpnoise_core::local::square_wave;
use dpnoise_core::local::{
    Client, CountMeanSketch, DBitFlip, GeneralizedRandomizedResponse, HadamardCountMeanSketch, HadamardResponse,
    HierarchicalRange, LaplaceMean, LocalHashing, Loloha, Longitudinal, LongitudinalUnaryEncoding, PrefixExtension,
    Protocol, RandomizedResponse, Remembering, SquareWave, SubsetSelection, SummationHistogramEncoding, UnaryEncoding,
    WindowMean, loloha, text_hash,
};
use numpy::Element;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{ParameterError, to_py};
use crate::memo::LocalMemo;
use crate::numbers::{integer, real, real_down};
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

/// Long work comes back to the interpreter after this many bytes of reports, to see whether the user has pressed Ctrl-C.
const STEP_BYTES: usize = 1 << 24;

/// What was made, or why it was refused, as Python has it.
macro_rules! made {
    ($made:expr) => {
        $made.map(|made| Self(*made.protocol())).map_err(to_py)
    };
}

/// A protocol of any family.
#[pyclass(module = "dpnoise._native", frozen)]
pub(crate) struct LocalProtocol(pub(crate) Protocol);

#[pymethods]
impl LocalProtocol {
    #[staticmethod]
    fn randomized_response(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(RandomizedResponse::new(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn coin_flips() -> Self {
        Self(*RandomizedResponse::coin_flips().protocol())
    }

    #[staticmethod]
    fn symmetric_unary_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(UnaryEncoding::symmetric(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn optimized_unary_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(UnaryEncoding::optimized(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn unary_encoding(k: &Bound<'_, PyAny>, p: &Bound<'_, PyAny>, q: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(UnaryEncoding::custom(number_of_values(k)?, real(p, "p")?, real(q, "q")?))
    }

    #[staticmethod]
    fn generalized_randomized_response(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let response = GeneralizedRandomizedResponse::new(number_of_values(k)?, real_down(epsilon, "epsilon")?);
        made!(response)
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon, g))]
    fn local_hashing(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>, g: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let g = g.map(|g| integer(g, "g", &format!("None or an integer from 2 to {MAX_G}"))).transpose()?;
        let hashing = LocalHashing::new(number_of_values(k)?, g, real_down(epsilon, "epsilon")?);
        made!(hashing)
    }

    #[staticmethod]
    fn hadamard_response(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let response = HadamardResponse::new(number_of_values(k)?, real_down(epsilon, "epsilon")?);
        made!(response)
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon, omega))]
    fn subset_selection(
        k: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        omega: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let omega = omega.map(|omega| integer(omega, "omega", "None or an integer from 1 to k - 1")).transpose()?;
        let selection = SubsetSelection::new(number_of_values(k)?, omega, real_down(epsilon, "epsilon")?);
        made!(selection)
    }

    #[staticmethod]
    fn laplace_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(LaplaceMean::new(real_down(epsilon, "epsilon")?))
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
        let encoding = LongitudinalUnaryEncoding::new(k, epsilon_permanent, epsilon_first, permanent);
        made!(encoding)
    }

    #[staticmethod]
    #[pyo3(signature = (k, epsilon_permanent, epsilon_first, g))]
    fn loloha(
        k: &Bound<'_, PyAny>,
        epsilon_permanent: &Bound<'_, PyAny>,
        epsilon_first: &Bound<'_, PyAny>,
        g: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let g = g.map(|g| integer(g, "g", &format!("None or an integer from 2 to {}", loloha::MAX_G))).transpose()?;
        let (k, epsilon_permanent) = (number_of_values(k)?, real_down(epsilon_permanent, "epsilon_permanent")?);
        let protocol = Loloha::new(k, g, epsilon_permanent, real_down(epsilon_first, "epsilon_first")?);
        made!(protocol)
    }

    #[staticmethod]
    fn d_bit_flip(k: &Bound<'_, PyAny>, d: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let d = integer(d, "d", "an integer from 1 to k")?;
        let protocol = DBitFlip::new(number_of_values(k)?, d, real_down(epsilon, "epsilon")?);
        made!(protocol)
    }

    #[staticmethod]
    fn duchi_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(WindowMean::duchi(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn piecewise_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(WindowMean::piecewise(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn hybrid_mean(epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(WindowMean::hybrid(real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn square_wave(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let k = integer(k, "k", &format!("an integer from {MIN_K} to {}", square_wave::MAX_K))?;
        made!(SquareWave::new(k, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn threshold_histogram_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        made!(UnaryEncoding::threshold(number_of_values(k)?, real_down(epsilon, "epsilon")?))
    }

    #[staticmethod]
    fn summation_histogram_encoding(k: &Bound<'_, PyAny>, epsilon: &Bound<'_, PyAny>) -> PyResult<Self> {
        let encoding = SummationHistogramEncoding::new(number_of_values(k)?, real_down(epsilon, "epsilon")?);
        made!(encoding)
    }

    #[staticmethod]
    fn hierarchical_range(
        k: &Bound<'_, PyAny>,
        epsilon: &Bound<'_, PyAny>,
        branching: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let k = integer(k, "k", &format!("an integer from {MIN_K} to {MAX_LEAVES}"))?;
        let branching = integer(branching, "branching", "a power of two from 2 to 1024")?;
        let range = HierarchicalRange::new(k, real_down(epsilon, "epsilon")?, branching);
        made!(range)
    }

    #[staticmethod]
    fn count_mean_sketch(
        epsilon: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let [rows, width, seed] = shape_of_sketch(rows, width, seed)?;
        let sketch = CountMeanSketch::new(real_down(epsilon, "epsilon")?, rows, width, seed);
        made!(sketch)
    }

    #[staticmethod]
    fn hadamard_count_mean_sketch(
        epsilon: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let [rows, width, seed] = shape_of_sketch(rows, width, seed)?;
        let sketch = HadamardCountMeanSketch::new(real_down(epsilon, "epsilon")?, rows, width, seed);
        made!(sketch)
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
        let (bits, step) = (integer(bits, "bits", Prefixes::BITS)?, integer(step, "step", Prefixes::STEPS)?);
        let [rows, width, seed] = shape_of_sketch(rows, width, seed)?;
        let extension = PrefixExtension::new(real_down(epsilon, "epsilon")?, bits, step, rows, width, seed);
        made!(extension)
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
        let num_hashes = integer(num_hashes, "num_hashes", &format!("an integer from 1 to {MAX_HASHES}"))?;
        let num_cohorts = integer(num_cohorts, "num_cohorts", Sketch::ROWS)?;
        let given = Probabilities { f: real(f, "f")?, p: real(p, "p")?, q: real(q, "q")? };
        made!(Rappor::new(num_bloombits, num_hashes, num_cohorts, given))
    }

    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        Protocol::from_json(text).map(Self).map_err(to_py)
    }

    #[getter]
    fn family(&self) -> &'static str {
        self.0.family().name()
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
        self.0.epsilon()
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

    /// One-hot rows of int64 `values`.
    fn encode(&self, values: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = buffers::readable::<i64>(values, "values", "int64")?;
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let (values, out) = (buffers::slice(&values, "values")?, buffers::elements(&mut out, "out")?);
        self.unary()?.encode(values, out).map_err(to_py)
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
        let threads = threads.get();
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let out = buffers::elements(&mut out, "out")?;
        macro_rules! clients {
            ($($client:ident takes $dtype:literal,)*) => {
                $(if let Some(client) = $client::from_protocol(self.0) {
                    return self.perturb_with(py, &client, values, $dtype, out, threads, rng);
                })*
            };
        }
        clients! {
            RandomizedResponse takes "uint8",
            GeneralizedRandomizedResponse takes "int64",
            LocalHashing takes "int64",
            HadamardResponse takes "int64",
            SubsetSelection takes "int64",
            WindowMean takes "float64",
            SquareWave takes "float64",
            HierarchicalRange takes "int64",
            LaplaceMean takes "float64",
            SummationHistogramEncoding takes "int64",
            CountMeanSketch takes "int64",
            HadamardCountMeanSketch takes "int64",
            PrefixExtension takes "int64",
        }
        self.perturb_with(py, &self.unary()?, values, "int64", out, threads, rng)
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
        let threads = threads.get();
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let out = buffers::elements(&mut out, "out")?;
        let asked = (memo.0.secrets(), question);
        macro_rules! clients {
            ($($client:ident,)*) => {
                $(if let Some(client) = $client::from_protocol(self.0) {
                    return self.perturb_remembering_with(py, &client, values, asked, out, threads, rng);
                })*
            };
        }
        clients! {
            LongitudinalUnaryEncoding,
            Loloha,
            DBitFlip,
            Rappor,
        }
        Err(PyTypeError::new_err(format!("clients of {} keep no memo", self.0.family().name())))
    }

    /// Fills int64 `out` with the bits that are set in the Bloom filters of int64 fingerprints: `num_cohorts` times
    /// `num_hashes` for each.
    fn bloom_bits(&self, fingerprints: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let fingerprints = buffers::readable::<i64>(fingerprints, "fingerprints", "int64")?;
        let fingerprints = buffers::slice(&fingerprints, "fingerprints")?;
        let mut out = buffers::writable::<i64>(out, "out", "int64")?;
        let out = buffers::elements(&mut out, "out")?;
        let rappor = Rappor::from_protocol(self.0).ok_or_else(|| not_counted_so(&self.0))?;
        let bloom = rappor.bloom();
        let of_each = (bloom.num_cohorts() * bloom.num_hashes()) as usize;
        if out.len() != fingerprints.len() * of_each {
            return Err(ParameterError::new_err(format!("out must have {of_each} entries for every fingerprint")));
        }
        bloom.set_bits(fingerprints, out);
        Ok(())
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
        let threads = threads.get();
        let encoding = self.unary()?;
        let bits = buffers::readable::<u8>(bits, "bits", "uint8")?;
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let (bits, out) = (buffers::slice(&bits, "bits")?, buffers::elements(&mut out, "out")?);
        if let Some(mut rng) = hazmat::given(rng)? {
            return encoding.perturb_encoded(bits, out, &mut *rng).map_err(to_py);
        }
        encoding.check_encoded(bits).map_err(to_py)?;
        let width = self.0.report_bytes();
        in_steps(py, bits.len() / width, width, out, |rows, out| {
            encoding.perturb_encoded_secure(&bits[rows.start * width..rows.end * width], out, threads)
        })
    }
}

impl LocalProtocol {
    #[allow(clippy::too_many_arguments, reason = "those of `perturb`, and what it has found out")]
    fn perturb_with<C>(
        &self,
        py: Python<'_>,
        client: &C,
        values: &Bound<'_, PyAny>,
        dtype: &'static str,
        out: &mut [u8],
        threads: usize,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()>
    where
        C: Client<Value: Element + Sync> + Sync,
    {
        let values = buffers::readable::<C::Value>(values, "values", dtype)?;
        let values = buffers::slice(&values, "values")?;
        if let Some(mut rng) = hazmat::given(rng)? {
            return client.perturb(values, out, &mut *rng).map_err(to_py);
        }
        client.check_values(values).map_err(to_py)?;
        let width = self.0.report_bytes();
        in_steps(py, values.len(), width, out, |rows, out| client.perturb_secure(&values[rows], out, threads))
    }

    #[allow(clippy::too_many_arguments, reason = "those of `perturb_remembering`, and what it has found out")]
    fn perturb_remembering_with<P: Longitudinal>(
        &self,
        py: Python<'_>,
        protocol: &P,
        values: &Bound<'_, PyAny>,
        (secrets, question): (&[Secret], &str),
        out: &mut [u8],
        threads: usize,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let values = buffers::readable::<i64>(values, "values", "int64")?;
        let values = buffers::slice(&values, "values")?;
        let client = Remembering::new(protocol, secrets, question);
        if let Some(mut rng) = hazmat::given(rng)? {
            return client.perturb(values, out, &mut *rng).map_err(to_py);
        }
        client.check_values(values).map_err(to_py)?;
        let width = self.0.report_bytes();
        in_steps(py, values.len(), width, out, |rows, out| {
            Remembering::new(protocol, &secrets[rows.clone()], question).perturb_secure(&values[rows], out, threads)
        })
    }

    fn law(&self) -> PyResult<Law> {
        self.0.law().ok_or_else(|| not_counted_so(&self.0))
    }

    fn support(&self) -> PyResult<Support> {
        self.law()?.support().ok_or_else(|| {
            let family = self.0.family().name();
            PyAttributeError::new_err(format!("{family} has no p and q: its reports are sums, which nothing flips"))
        })
    }

    fn one_round(&self) -> PyErr {
        PyTypeError::new_err(format!("{} has one round of randomisation", self.0.family().name()))
    }

    fn unary(&self) -> PyResult<UnaryEncoding> {
        let other = || PyTypeError::new_err(format!("{} has no encoded form", self.0.family().name()));
        UnaryEncoding::from_protocol(self.0).ok_or_else(other)
    }
}

/// Runs `work` without the GIL on part after part of the `rows` rows of `out`, of `width` bytes, telling it which these are;
/// when it fails or is interrupted, all of `out` is wiped.
fn in_steps<F>(py: Python<'_>, rows: usize, width: usize, out: &mut [u8], work: F) -> PyResult<()>
where
    F: Fn(Range<usize>, &mut [u8]) -> Result<(), Error> + Sync,
{
    if rows * width != out.len() {
        return Err(ParameterError::new_err("out must have one row for every row that comes in"));
    }
    let step = (STEP_BYTES / width).max(1);
    let parts = out.chunks_mut(step * width).enumerate();
    let result = runtime::interruptible(py, parts, |(index, out)| {
        let first = index * step;
        work(first..first + out.len() / width, out)
    });
    if result.is_err() {
        out.fill(0);
    }
    result
}

pub(crate) fn not_counted_so(protocol: &Protocol) -> PyErr {
    PyTypeError::new_err(format!("reports of {} are not counted so", protocol.family().name()))
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
    runtime::detached(py, || text_hash::fingerprints(data, offsets, out))
}

/// The Walsh-Hadamard transform, in place.
#[pyfunction]
fn walsh_hadamard(numbers: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut numbers = buffers::writable::<i64>(numbers, "numbers", "int64")?;
    hadamard_response::walsh_hadamard(buffers::elements(&mut numbers, "numbers")?);
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(walsh_hadamard, module)?)?;
    module.add_class::<LocalProtocol>()?;
    module.add_class::<LocalMemo>()?;
    module.add_function(wrap_pyfunction!(text_fingerprints, module)?)
}
