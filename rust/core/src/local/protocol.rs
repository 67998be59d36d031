//! What a report means: family, number of values, probabilities; its canonical specification and id.
//!
//! The specification is JSON with sorted keys and no spaces, for example
//! `{"epsilon":1.0,"k":15,"p":512,"planes":10,"protocol":"optimized_unary_encoding","q":276,"version":1}`:
//! the probabilities are `p` / 2^`planes` and `q` / 2^`planes`, and `epsilon` is the one that was requested, as the
//! shortest decimal that reads back as the same double. The id is the first 8 bytes of its SHA-256. Two collectors hold
//! the same protocol if and only if their specifications are the same bytes.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::bit_flip::{BitFlip, Neighbours, check_epsilon};
use super::estimate;
use super::randomized_response::RandomizedResponse;
use super::unary_encoding::{UnaryEncoding, check_k};
use crate::error::Error;

/// The version of the specification.
const VERSION: u64 = 1;

/// The longest specification that is read.
const MAX_JSON_BYTES: usize = 4096;

const FIELDS: [&str; 7] = ["epsilon", "k", "p", "planes", "protocol", "q", "version"];

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
}

impl Family {
    const ALL: [Self; 4] =
        [Self::RandomizedResponse, Self::SymmetricUnaryEncoding, Self::OptimizedUnaryEncoding, Self::UnaryEncoding];

    /// The name in specifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RandomizedResponse => "randomized_response",
            Self::SymmetricUnaryEncoding => "symmetric_unary_encoding",
            Self::OptimizedUnaryEncoding => "optimized_unary_encoding",
            Self::UnaryEncoding => "unary_encoding",
        }
    }
}

/// The checked parameters of a local protocol. Public: they are part of what is announced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    family: Family,
    k: u32,
    flip: BitFlip,
    requested_epsilon: f64,
    epsilon: f64,
}

impl Protocol {
    pub(super) fn new(family: Family, k: u32, flip: BitFlip, requested_epsilon: f64) -> Self {
        Self { family, k, flip, requested_epsilon, epsilon: flip.epsilon(neighbours(family)) }
    }

    /// The kind of protocol.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// The number of values that an answer may have.
    #[must_use]
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The exact bit-flipping probabilities.
    #[must_use]
    pub fn flip(&self) -> BitFlip {
        self.flip
    }

    /// The probability that a set bit stays set, as the nearest double.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.flip.probability(self.flip.p())
    }

    /// The probability that a clear bit is set, as the nearest double.
    #[must_use]
    pub fn q(&self) -> f64 {
        self.flip.probability(self.flip.q())
    }

    /// The epsilon that was asked for.
    #[must_use]
    pub fn requested_epsilon(&self) -> f64 {
        self.requested_epsilon
    }

    /// The epsilon of the guarantee: the exact one, rounded up to a double; at least 0.999 of the requested one and
    /// never above it.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The bits of a report, each of which is counted.
    #[must_use]
    pub fn report_bits(&self) -> usize {
        match self.family {
            Family::RandomizedResponse => 1,
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

    /// The variance of the estimated count of a value of frequency `frequency` among `n` reports.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the frequency is not in [0, 1].
    pub fn variance(&self, n: u64, frequency: f64) -> Result<f64, Error> {
        estimate::variance(self.flip, n, frequency)
    }

    /// The canonical specification.
    #[must_use]
    pub fn to_json(&self) -> String {
        let fields: [Value; 7] = [
            self.requested_epsilon.into(),
            self.k.into(),
            self.flip.p().into(),
            self.flip.planes().into(),
            self.family.name().into(),
            self.flip.q().into(),
            VERSION.into(),
        ];
        let fields: Vec<String> =
            FIELDS.iter().zip(fields).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    /// The first 8 bytes of the SHA-256 of the canonical specification.
    #[must_use]
    pub fn spec_id(&self) -> [u8; 8] {
        let digest: [u8; 32] = Sha256::digest(self.to_json()).into();
        core::array::from_fn(|i| digest[i])
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
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(invalid(&format!("unknown field {unknown:?}")));
        }
        let version = integer(&fields, "version")?;
        if version != VERSION {
            return Err(invalid(&format!("version {version} is not {VERSION}, the one this release reads")));
        }
        let family = family(&fields)?;
        let k = integer(&fields, "k")?;
        let epsilon = number(&fields, "epsilon")?;
        let planes = u32::try_from(integer(&fields, "planes")?).unwrap_or(u32::MAX);
        let flip = BitFlip::new(planes, integer(&fields, "p")?, integer(&fields, "q")?)?;
        check_epsilon(epsilon)?;
        Self::from_parts(family, k, flip, epsilon)
    }

    fn from_parts(family: Family, k: u64, flip: BitFlip, epsilon: f64) -> Result<Self, Error> {
        let expected = match family {
            Family::RandomizedResponse if k != 2 => return Err(Error::parameter("k", k, "2 for randomized_response")),
            Family::RandomizedResponse => *RandomizedResponse::new(epsilon)?.protocol(),
            Family::SymmetricUnaryEncoding => *UnaryEncoding::symmetric(k, epsilon)?.protocol(),
            Family::OptimizedUnaryEncoding => *UnaryEncoding::optimized(k, epsilon)?.protocol(),
            Family::UnaryEncoding => {
                // The doubles that were given are not recorded; what they promise can be checked without them.
                let k = check_k(k)?;
                let fewest_planes = flip.planes() == 2 || flip.p() % 2 == 1 || flip.q() % 2 == 1;
                if !(fewest_planes && flip.achieves(epsilon, Neighbours::OneHot)) {
                    return Err(inconsistent());
                }
                Self::new(family, k, flip, epsilon)
            }
        };
        if expected.flip == flip { Ok(expected) } else { Err(inconsistent()) }
    }
}

fn neighbours(family: Family) -> Neighbours {
    match family {
        Family::RandomizedResponse => Neighbours::OneBit,
        _ => Neighbours::OneHot,
    }
}

/// Checks a number of threads.
pub(super) fn check_threads(threads: usize) -> Result<(), Error> {
    if threads == 0 { Err(Error::parameter("threads", threads, "at least 1, or not given")) } else { Ok(()) }
}

fn invalid(problem: &str) -> Error {
    Error::State(format!("not a protocol specification: {problem}"))
}

fn inconsistent() -> Error {
    invalid("p, q and planes are not those that its epsilon gives")
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
