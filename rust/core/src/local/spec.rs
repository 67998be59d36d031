//! Specifications: the meaning of a report as canonical JSON, and its id.
//!
//! A specification is JSON with sorted keys and no spaces, for example
//! `{"epsilon":1.0,"k":15,"p":512,"planes":10,"protocol":"optimized_unary_encoding","q":276,"version":1}`. The
//! probabilities are `p` / 2^`planes` and `q` / 2^`planes`, or, instead of these two, `keep` / 2^`planes`, together
//! with everything else that a client needs (`g` and `prime` of local hashing, the `order` of a Hadamard matrix, the
//! size `omega` of sets, the `width` of windows, the share `alpha` of a hybrid and its second probability). `epsilon`
//! is the requested one, as the shortest decimal that reads back as the same double. The id is the first 8 bytes of the
//! SHA-256. Two collectors hold the same protocol if and only if their specifications are the same bytes.

use core::str::FromStr;

use sha2::{Digest, Sha256};

use super::json::{self, Item, Value};
use crate::error::Error;

/// A parameter: its name, and its value.
pub(crate) type Field = (&'static str, Value);

/// The version of specifications.
pub(crate) const VERSION: u64 = 1;

/// The longest specification that is read.
const MAX_JSON_BYTES: usize = 4096;

/// The smallest number of values.
pub const MIN_K: u64 = 2;

/// The largest number of values; reports of unary encoding then have 2 MiB.
pub const MAX_K: u64 = 1 << 24;

/// Checks a number of values.
pub(crate) fn check_k(k: u64) -> Result<u32, Error> {
    if (MIN_K..=MAX_K).contains(&k) {
        Ok(k as u32)
    } else {
        Err(Error::parameter("k", k, format!("an integer from {MIN_K} to {MAX_K}")))
    }
}

/// Fields of a specification by their names, as JSON or as the texts that they are.
pub(crate) type Fields = Vec<(&'static str, String)>;

/// The canonical specification of the protocol of this name with these other fields.
pub(crate) fn to_json(protocol: &str, fields: Fields) -> String {
    let mut fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    fields.extend([format!("\"protocol\":\"{protocol}\""), format!("\"version\":{VERSION}")]);
    fields.sort_unstable(); // as the names are: the quotation mark after them is less than what is in them
    format!("{{{}}}", fields.join(","))
}

/// The SHA-256 of a canonical specification.
pub(crate) fn digest(json: &str) -> [u8; 32] {
    Sha256::digest(json).into()
}

/// The first 8 bytes of the digest: the id.
pub(crate) fn id(json: &str) -> [u8; 8] {
    let digest = digest(json);
    core::array::from_fn(|i| digest[i])
}

/// Refuses a version of specifications that this release does not read.
pub(crate) fn check_version(version: u64) -> Result<(), Error> {
    if version == VERSION {
        Ok(())
    } else {
        Err(invalid(&format!("version {version} is not {VERSION}, the one this release reads")))
    }
}

/// The fields of a specification as given.
pub(crate) struct Given<'a>(Vec<(&'a str, Item<'a>)>);

impl<'a> Given<'a> {
    /// Reads a JSON object of this version.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Error> {
        if text.len() > MAX_JSON_BYTES {
            return Err(invalid(&format!("it is longer than {MAX_JSON_BYTES} bytes")));
        }
        let fields = json::fields(text)
            .map_err(|problem| invalid(&format!("it is not JSON of numbers and texts: {problem}")))?;
        let given = Self(fields);
        check_version(given.integer("version")?)?;
        Ok(given)
    }

    /// Takes the fields of these names out, with their texts.
    pub(crate) fn take(&mut self, names: &[&'static str]) -> Result<Fields, Error> {
        let mut taken = vec![];
        for &name in names {
            while let Some(position) = self.0.iter().position(|field| field.0 == name) {
                match self.0.remove(position).1 {
                    Item::Text(text) => taken.push((name, text)),
                    Item::Number(_) => return Err(invalid(&format!("the field {name:?} is not text"))),
                }
            }
        }
        Ok(taken)
    }

    fn field(&self, name: &str) -> Result<&Item<'a>, Error> {
        let found = self.0.iter().rev().find(|field| field.0 == name); // the last one, as other readers take
        found.map(|field| &field.1).ok_or_else(|| invalid(&format!("the field {name:?} is missing")))
    }

    /// The name of the protocol.
    pub(crate) fn protocol(&self) -> Result<&str, Error> {
        match self.field("protocol")? {
            Item::Text(name) => Ok(name),
            Item::Number(_) => Err(invalid("the field \"protocol\" is not text")),
        }
    }

    /// A parameter that is a whole number.
    pub(crate) fn integer(&self, name: &str) -> Result<u64, Error> {
        self.parsed(name, "a non-negative integer")
    }

    /// A parameter that is a real number.
    pub(crate) fn number(&self, name: &str) -> Result<f64, Error> {
        self.parsed(name, "a number")
    }

    fn parsed<T: FromStr>(&self, name: &str, kind: &str) -> Result<T, Error> {
        let parsed = match self.field(name)? {
            Item::Number(number) => number.parse().ok(),
            Item::Text(_) => None,
        };
        parsed.ok_or_else(|| invalid(&format!("the field {name:?} is not {kind}")))
    }

    /// Checks that the given fields are the `parameters`, which were computed from some of them, and no others.
    pub(crate) fn check(&self, parameters: &[Field]) -> Result<(), Error> {
        let is_known =
            |name: &str| ["protocol", "version"].contains(&name) || parameters.iter().any(|own| own.0 == name);
        if let Some((unknown, _)) = self.0.iter().find(|field| !is_known(field.0)) {
            return Err(invalid(&format!("unknown field {unknown:?}")));
        }
        for &(name, value) in parameters {
            let given = match value {
                Value::Integer(_) => Value::Integer(self.integer(name)?),
                Value::Real(_) => Value::Real(self.number(name)?),
            };
            if given != value {
                return Err(inconsistent());
            }
        }
        Ok(())
    }
}

/// Refuses a specification in another form than the canonical one. Clients take the id of the bytes that they were given:
/// if these were others, all of their reports would be rejected.
pub(crate) fn check_canonical(text: &str, canonical: &str) -> Result<(), Error> {
    if text.trim_matches(json::SPACE) == canonical {
        Ok(())
    } else {
        Err(invalid(&format!(
            "its id is that of its bytes, so they must be exactly as to_json gave them; these were written in another \
             form: announce and keep {canonical}"
        )))
    }
}

/// The error for an unknown protocol.
pub(crate) fn unknown(protocol: &str, known: &[&str]) -> Error {
    invalid(&format!("unknown protocol {protocol:?}; this release knows {}", known.join(", ")))
}

/// The error for a specification that contradicts itself.
pub(crate) fn inconsistent() -> Error {
    invalid("its probabilities are not those that its epsilon gives")
}

pub(crate) fn invalid(problem: &str) -> Error {
    Error::State(format!("not a protocol specification: {problem}"))
}
