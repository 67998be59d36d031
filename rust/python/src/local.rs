//! Local differential privacy: the protocols.

use std::sync::{Arc, OnceLock};

use dpnoise_core::arguments::{DefaultValue, Parameter, ParameterKind};
use dpnoise_core::calibration::{self, SampleAndThreshold};
use dpnoise_core::local::{
    self, AnyProtocol, Attributes, COUNTER_LIMIT, Estimate, Law, MeanLaw, Meaning, Protocol, Randomiser,
    RandomizedResponse, Remembering, Scheme, Support, ValueKind, Values,
};
use dpnoise_core::params::Relation;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::PyClass;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString, PyType};

use crate::arguments::{self, Value};
use crate::errors::{ParameterError, to_py};
use crate::memo::LocalMemo;
use crate::numbers::{integer, real, real_down};
use crate::runtime::Threads;
use crate::{buffers, hazmat, runtime};

/// Counts and standard errors.
type Estimated<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// What is announced: the base class of the two below.
#[pyclass(module = "dpnoise._native", frozen, subclass)]
pub(crate) struct LocalSpecification {
    pub(crate) protocol: AnyProtocol,
    epsilon: OnceLock<f64>,
}

impl From<AnyProtocol> for LocalSpecification {
    fn from(protocol: AnyProtocol) -> Self {
        Self { protocol, epsilon: OnceLock::new() }
    }
}

impl LocalSpecification {
    /// With what is of one of the two classes alone.
    fn with<T: PyClass<BaseType = Self>>(self, own: T) -> PyClassInitializer<T> {
        PyClassInitializer::from(self).add_subclass(own)
    }
}

/// An object of one of the two classes.
pub(crate) fn announced(py: Python<'_>, protocol: AnyProtocol) -> PyResult<Bound<'_, PyAny>> {
    let randomiser = protocol.randomiser().clone();
    let specification = LocalSpecification::from(protocol);
    match randomiser {
        Randomiser::One(one) => Bound::new(py, specification.with(LocalProtocol(one))).map(Bound::into_any),
        Randomiser::Several(several) => {
            Bound::new(py, specification.with(LocalAttributes(several))).map(Bound::into_any)
        }
    }
}

#[pymethods]
impl LocalSpecification {
    /// Reads a specification, or a document; with what values stand for, if that says it.
    #[staticmethod]
    fn from_json<'py>(
        py: Python<'py>,
        text: &str,
        limit: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let (protocol, meaning) = AnyProtocol::from_document(text, most(limit)?).map_err(to_py)?;
        Ok((announced(py, protocol)?, meaning.map(|meaning| plain(py, meaning)).transpose()?))
    }

    /// The same protocol for reports about something else, in what is not None.
    fn about<'py>(
        &self,
        py: Python<'py>,
        question: Option<&str>,
        period: Option<&str>,
        meaning: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut protocol = self.protocol.clone();
        if let Some(question) = question {
            protocol = protocol.with_question(question).map_err(to_py)?;
        }
        if let Some(period) = period {
            protocol = protocol.with_period(period).map_err(to_py)?;
        }
        if let Some(meaning) = meaning {
            protocol = protocol.with_meaning(&meant(meaning)?).map_err(to_py)?;
        }
        announced(py, protocol)
    }

    /// Refuses another specification, which came as the argument of this name.
    fn check_same(&self, other: &Self, name: &str) -> PyResult<()> {
        self.protocol.check_same(&other.protocol, name).map_err(to_py)
    }

    /// The same specification, with what values stand for, of which it has a digest.
    fn knowing<'py>(&self, py: Python<'py>, meaning: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        announced(py, self.protocol.knowing(&meant(meaning)?).map_err(to_py)?)
    }

    /// What 0 stands for among the numbers of a mean, and half the distance of what -1 and 1 stand for.
    #[getter]
    fn scale(&self) -> PyResult<(f64, f64)> {
        Ok(self.protocol.scale().map_err(to_py)?.map_or((0.0, 1.0), |scale| scale.middle_and_half()))
    }

    /// Replaces float64 `numbers`, an array that no other code has seen, by where they are between -1 and 1.
    fn to_positions(&self, numbers: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(scale) = self.protocol.scale().map_err(to_py)? {
            let mut numbers = buffers::writable::<f64>(numbers, "numbers", "float64")?;
            let numbers = buffers::elements(&mut numbers, "numbers")?;
            numbers.copy_from_slice(&scale.positions(numbers).map_err(to_py)?);
        }
        Ok(())
    }

    /// Of the family, or of the scheme, in specifications.
    #[getter]
    fn name(&self) -> &'static str {
        match self.protocol.randomiser() {
            Randomiser::One(protocol) => protocol.name(),
            Randomiser::Several(attributes) => attributes.scheme().name(),
        }
    }

    #[getter]
    fn labels(&self) -> Option<String> {
        self.protocol.labels()
    }

    #[getter]
    fn question(&self) -> Option<&str> {
        self.protocol.question()
    }

    #[getter]
    fn period(&self) -> Option<&str> {
        self.protocol.period()
    }

    #[getter]
    fn bare_digest(&self, py: Python<'_>) -> Py<PyBytes> {
        PyBytes::new(py, &self.protocol.bare_digest()).unbind()
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        *self.epsilon.get_or_init(|| self.protocol.epsilon()) // the exact one takes long to compute
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.protocol.delta()
    }

    #[getter]
    fn counter_bytes(&self) -> usize {
        self.protocol.counter_bytes()
    }

    #[getter]
    fn message_header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.protocol.message_header())
    }

    #[getter]
    fn report_bytes(&self) -> usize {
        self.protocol.report_bytes()
    }

    #[getter]
    fn spec_id(&self) -> String {
        self.protocol.spec_id_hex()
    }

    fn to_json(&self) -> &str {
        self.protocol.to_json()
    }
}

/// What values stand for: those of attributes by their names, a tuple of two bounds, or a list of labels.
fn meant(given: &Bound<'_, PyAny>) -> PyResult<Meaning> {
    if let Ok(attributes) = given.cast::<PyDict>() {
        let each = attributes.iter().map(|(name, given)| Ok((name.extract()?, meant(&given)?)));
        return each.collect::<PyResult<_>>().map(Meaning::Attributes);
    }
    match given.extract() {
        Ok((lower, upper)) => Ok(Meaning::Bounds(lower, upper)),
        Err(_) => given.extract().map(Meaning::Labels),
    }
}

/// The same in Python.
fn plain(py: Python<'_>, meaning: Meaning) -> PyResult<Bound<'_, PyAny>> {
    match meaning {
        Meaning::Labels(labels) => labels.into_bound_py_any(py),
        Meaning::Bounds(lower, upper) => (lower, upper).into_bound_py_any(py),
        Meaning::Attributes(attributes) => {
            let each = PyDict::new(py);
            for (name, meaning) in attributes {
                each.set_item(name, plain(py, meaning)?)?;
            }
            Ok(each.into_any())
        }
    }
}

/// A protocol of any family.
#[pyclass(module = "dpnoise._native", frozen, extends = LocalSpecification)]
pub(crate) struct LocalProtocol(pub(crate) Protocol);

impl LocalProtocol {
    fn made(protocol: Protocol) -> PyClassInitializer<Self> {
        LocalSpecification::from(AnyProtocol::from(protocol)).with(Self(protocol))
    }
}

#[pymethods]
impl LocalProtocol {
    /// The protocol of a family with these arguments; None is for what is chosen.
    #[new]
    #[pyo3(signature = (family, **arguments))]
    fn new(family: &str, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<PyClassInitializer<Self>> {
        let parameters = Protocol::family(family).map_err(to_py)?.parameters;
        Protocol::new(family, &arguments::given(family, parameters, arguments)?).map(Self::made).map_err(to_py)
    }

    #[staticmethod]
    fn randomized_response(py: Python<'_>, p: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let made = RandomizedResponse::with_p(real_down(p, "p")?).map_err(to_py)?;
        Py::new(py, Self::made(made.into()))
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
    fn requested_epsilon(&self) -> f64 {
        self.0.requested_epsilon()
    }

    fn shuffled_epsilon(&self, py: Python<'_>, n: u64, delta: f64) -> PyResult<(f64, &'static str)> {
        runtime::pausing(py, |pause| self.0.shuffled_epsilon(n, delta, pause))
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

    fn variance(&self, n: &Bound<'_, PyAny>, frequency: &Bound<'_, PyAny>) -> PyResult<f64> {
        let n = integer(n, "n", "an integer from 0 to 2**64 - 1")?;
        self.law()?.variance(n, real(frequency, "frequency")?).map_err(to_py)
    }

    fn variance_of_mean(&self, n: &Bound<'_, PyAny>, x: &Bound<'_, PyAny>) -> PyResult<f64> {
        let n = integer(n, "n", MeanLaw::COUNTS)?;
        let law = self.0.mean_law().ok_or_else(|| of_no_mean(&self.0))?;
        law.variance(n, real(x, "x")?).map_err(to_py)
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
        let column = Column::of(&self.0, values)?;
        self.reports(py, column.values()?, out, threads, rng)
    }

    /// Reports for int64 `values`, an array that no other code has seen, of the people of `memo` who answer `question`.
    #[pyo3(signature = (values, memo, question, out, threads, rng=None))]
    #[allow(clippy::too_many_arguments, reason = "those of `perturb`, and what clients remember")]
    fn perturb_remembering(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        memo: &LocalMemo,
        question: &str,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let own = slf.get();
        if own.0.takes() != ValueKind::Remembering {
            return Err(PyTypeError::new_err(format!("clients of {} keep no memo", own.0.name())));
        }
        let values = buffers::readable::<i64>(values, "values", "int64")?;
        let values = buffers::slice(&values, "values")?;
        let people = Values::Remembering(Remembering { values, secrets: memo.0.secrets(), question });
        // Nothing is kept in mind without a report.
        drop(hazmat::given(rng)?);
        if own.0.people(people).map_err(to_py)? > 0 {
            slf.as_super().get().protocol.answer_with(&memo.0, question).map_err(to_py)?;
        }
        own.reports(py, people, out, threads, rng)
    }

    /// Reports for rows of bits: packed ones that no other code has seen, or rows of a byte for each bit.
    #[pyo3(signature = (rows, out, threads, rng=None))]
    fn perturb_encoded(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
        rng: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (array, k) = (buffers::readable::<u8>(rows, "rows", "uint8")?, self.0.k());
        let rows = buffers::slice(&array, "rows")?;
        if array.shape().last() == Some(&(k as usize)) {
            self.reports(py, Values::Rows(&local::pack(k, rows).map_err(to_py)?), out, threads, rng)
        } else {
            self.reports(py, Values::Rows(rows), out, threads, rng)
        }
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

/// People's values, an array that no other code has seen: uint8 for answers, float64 for numbers, and else int64.
enum Column<'py> {
    Answers(PyReadonlyArrayDyn<'py, u8>),
    Numbers(PyReadonlyArrayDyn<'py, f64>),
    Integers(PyReadonlyArrayDyn<'py, i64>),
}

impl<'py> Column<'py> {
    /// Values that the protocol takes.
    fn of(protocol: &Protocol, values: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(match protocol.takes() {
            ValueKind::Answers => Self::Answers(buffers::readable(values, "values", "uint8")?),
            ValueKind::Numbers => Self::Numbers(buffers::readable(values, "values", "float64")?),
            _ => Self::Integers(buffers::readable(values, "values", "int64")?),
        })
    }

    fn values(&self) -> PyResult<Values<'_>> {
        Ok(match self {
            Self::Answers(values) => Values::Answers(buffers::slice(values, "values")?),
            Self::Numbers(values) => Values::Numbers(buffers::slice(values, "values")?),
            Self::Integers(values) => Values::Integers(buffers::slice(values, "values")?),
        })
    }
}

/// Several attributes with their protocols.
#[pyclass(module = "dpnoise._native", frozen, extends = LocalSpecification)]
pub(crate) struct LocalAttributes(Arc<Attributes>);

#[pymethods]
impl LocalAttributes {
    /// Of protocols whose own specifications are about nothing but labels, which the caller gives to the whole.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "extracted from a list")]
    fn new(
        scheme: &str,
        attributes: Vec<(PyBackedStr, PyRef<'_, LocalProtocol>)>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let scheme = Scheme::named(scheme).map_err(to_py)?;
        let attributes: Vec<_> = attributes.iter().map(|(name, protocol)| (&**name, protocol.0)).collect();
        let made = Arc::new(Attributes::new(scheme, &attributes).map_err(to_py)?);
        Ok(LocalSpecification::from(AnyProtocol::from(Arc::clone(&made))).with(Self(made)))
    }

    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<LocalProtocol>)>> {
        let made = |protocol: Protocol| Py::new(py, LocalProtocol::made(protocol));
        self.0.iter().map(|(name, &protocol)| Ok((name.to_owned(), made(protocol)?))).collect()
    }

    fn variance(&self, attribute: &str, n: &Bound<'_, PyAny>, at: &Bound<'_, PyAny>) -> PyResult<f64> {
        let n = integer(n, "n", MeanLaw::COUNTS)?;
        self.0.variance(attribute, n, real(at, "at")?).map_err(to_py)
    }

    /// Reports for a column of values of each attribute.
    fn perturb(
        &self,
        py: Python<'_>,
        columns: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyAny>,
        threads: Threads,
    ) -> PyResult<()> {
        let columns = self.0.iter().zip(&columns).map(|((_, protocol), values)| Column::of(protocol, values));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let values = columns.iter().map(Column::values).collect::<PyResult<Vec<_>>>()?;
        let mut out = buffers::writable::<u8>(out, "out", "uint8")?;
        let out = buffers::elements(&mut out, "out")?;
        runtime::pausing(py, |pause| self.0.perturb(&values, out, threads.get(), pause))
    }
}

pub(crate) fn not_by_value(protocol: &Protocol) -> PyErr {
    PyTypeError::new_err(format!("reports of {} are not counted by value", protocol.name()))
}

pub(crate) fn of_no_mean(protocol: &Protocol) -> PyErr {
    PyTypeError::new_err(format!("reports of {} give no mean", protocol.name()))
}

/// The most bytes of counters: all that there can be for None.
pub(crate) fn most(limit: &Bound<'_, PyAny>) -> PyResult<usize> {
    if limit.is_none() { Ok(usize::MAX) } else { integer(limit, "limit", "None or an integer from 0 to 2**64 - 1") }
}

/// The fields of `dpnoise.local.Parameter`.
type ParameterRow<'py> = (&'static str, Bound<'py, PyType>, bool, Option<Value>, Value, &'static str);

/// The fields of `dpnoise.local.Family`.
type FamilyRow<'py> = (&'static str, &'static str, u8, bool, Vec<ParameterRow<'py>>, Option<&'static str>);

/// The table of families.
#[pyfunction]
fn local_families(py: Python<'_>) -> Vec<FamilyRow<'_>> {
    let row = |parameter: &Parameter| {
        let kind = match parameter.kind {
            ParameterKind::Integer(_) => py.get_type::<PyInt>(),
            ParameterKind::Word(_) => py.get_type::<PyString>(),
            _ => py.get_type::<PyFloat>(),
        };
        let default = match parameter.default {
            DefaultValue::Is(value) => Some(value.into()),
            DefaultValue::Required | DefaultValue::MostAccurate | DefaultValue::Absent => None,
        };
        let required = parameter.default == DefaultValue::Required;
        (parameter.name, kind, required, default, parameter.example.into(), parameter.help)
    };
    let rows = Protocol::FAMILIES.iter().map(|info| {
        let keeps_memo = info.takes == ValueKind::Remembering;
        let parameters = info.parameters.iter().map(row).collect();
        (info.name, info.abbreviation, info.code, keeps_memo, parameters, info.cost)
    });
    rows.collect()
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

/// The epsilon of shuffled reports of any randomiser with this epsilon, and the name of the bound.
#[pyfunction]
fn shuffled_epsilon(py: Python<'_>, epsilon: f64, n: u64, delta: f64) -> PyResult<(f64, &'static str)> {
    runtime::pausing(py, |pause| calibration::shuffled_epsilon(epsilon, n, delta, pause))
}

/// A delta of sample and threshold for this epsilon.
#[pyfunction]
fn sample_and_threshold_delta(
    py: Python<'_>,
    epsilon: f64,
    sample_rate: f64,
    threshold: u64,
    relation: &str,
) -> PyResult<f64> {
    let relation = Relation::from_name(relation).map_err(to_py)?;
    py.detach(|| SampleAndThreshold::new(sample_rate, threshold, relation)?.delta(epsilon)).map_err(to_py)
}

/// The largest sample rate.
#[pyfunction]
fn largest_sample_rate(py: Python<'_>, epsilon: f64, delta: f64, threshold: u64, relation: &str) -> PyResult<f64> {
    let relation = Relation::from_name(relation).map_err(to_py)?;
    let found = py.detach(|| SampleAndThreshold::for_threshold(epsilon, delta, threshold, relation));
    Ok(found.map_err(to_py)?.sample_rate())
}

/// The least threshold.
#[pyfunction]
fn least_threshold(py: Python<'_>, epsilon: f64, delta: f64, sample_rate: f64, relation: &str) -> PyResult<u64> {
    let relation = Relation::from_name(relation).map_err(to_py)?;
    let found = py.detach(|| SampleAndThreshold::for_rate(epsilon, delta, sample_rate, relation));
    Ok(found.map_err(to_py)?.threshold())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("COUNTER_LIMIT", COUNTER_LIMIT)?;
    module.add_function(wrap_pyfunction!(local_families, module)?)?;
    module.add_function(wrap_pyfunction!(shuffled_epsilon, module)?)?;
    module.add_function(wrap_pyfunction!(sample_and_threshold_delta, module)?)?;
    module.add_function(wrap_pyfunction!(largest_sample_rate, module)?)?;
    module.add_function(wrap_pyfunction!(least_threshold, module)?)?;
    module.add_class::<LocalSpecification>()?;
    module.add_class::<LocalProtocol>()?;
    module.add_class::<LocalAttributes>()?;
    module.add_class::<LocalMemo>()?;
    module.add_function(wrap_pyfunction!(text_fingerprints, module)?)
}
