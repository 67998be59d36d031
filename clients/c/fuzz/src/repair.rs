//! Makes right what protects bytes from change, so that a changed input reaches what is behind.

use dpnoise_core::arguments::{Argument, ParameterKind};
use dpnoise_core::local::{AnyProtocol, Attributes, Protocol, Scheme};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Makes the CRC-32C at the end right.
pub(crate) fn checksum(bytes: &mut [u8]) {
    if let Some((body, checksum)) = bytes.split_last_chunk_mut() {
        *checksum = crc32c::crc32c(body).to_le_bytes();
    }
}

/// Makes the specification of a state canonical, and right what [`protection`] makes right.
pub(crate) fn state(bytes: &mut Vec<u8>) {
    canonical(bytes);
    protection(bytes);
}

/// `None` when the state is too short.
fn canonical(bytes: &mut Vec<u8>) -> Option<()> {
    let &length = bytes.get(16..)?.first_chunk()?;
    let end = 20 + u32::from_le_bytes(length) as usize;
    let mut inner = bytes.get(20..end)?.to_vec();
    specification(&mut inner);
    bytes[16..20].copy_from_slice(&(inner.len() as u32).to_le_bytes());
    bytes.splice(20..end, inner);
    Some(())
}

/// Makes the length, the id of the specification and the checksum of a state right, and those of the states in it.
fn protection(bytes: &mut [u8]) {
    length_and_id(bytes);
    checksum(bytes);
}

/// `None` when the state is too short.
fn length_and_id(bytes: &mut [u8]) -> Option<()> {
    let length = bytes.len();
    bytes.get_mut(8..16)?.copy_from_slice(&(length as u64).to_le_bytes());
    let &specification = bytes.get(16..)?.first_chunk()?;
    let id_at = 20 + u32::from_le_bytes(specification) as usize;
    let digest = Sha256::digest(bytes.get(20..id_at)?);
    bytes.get_mut(id_at..id_at + 8)?.copy_from_slice(&digest[..8]);
    let mut states = if bytes[4] == 2 { bytes.get_mut(id_at + 44..length - 4)? } else { &mut [] };
    while let Some(&declared) = states.get(8..)?.first_chunk() {
        let declared = usize::try_from(u64::from_le_bytes(declared)).ok().filter(|&declared| declared >= 16)?;
        let (part, rest) = states.split_at_mut_checked(declared)?;
        protection(part);
        states = rest;
    }
    Some(())
}

/// Makes the probabilities those of the parameters, and the form the canonical one.
pub(crate) fn specification(bytes: &mut Vec<u8>) {
    if let Some(protocol) = announced(bytes) {
        *bytes = protocol.to_json().into();
    }
}

/// What a specification announces, of one protocol or of several attributes, by the parameters alone.
pub(crate) fn announced(json: &[u8]) -> Option<AnyProtocol> {
    let made = of_parameters(json).map(AnyProtocol::from).or_else(|| several(json).map(AnyProtocol::from))?;
    let json: Value = serde_json::from_slice(json).ok()?;
    let asked = json["question"].as_str().and_then(|question| made.with_question(question).ok()).unwrap_or(made);
    Some(json["period"].as_str().and_then(|period| asked.with_period(period).ok()).unwrap_or(asked))
}

fn several(json: &[u8]) -> Option<Attributes> {
    let json: Value = serde_json::from_slice(json).ok()?;
    let read = |pair: &Value| Some((pair[0].as_str()?.to_owned(), of_parameters(pair[1].as_str()?.as_bytes())?));
    let named: Vec<(String, Protocol)> = json["attributes"].as_array()?.iter().map(read).collect::<Option<_>>()?;
    let attributes: Vec<_> = named.iter().map(|(name, protocol)| (&**name, *protocol)).collect();
    Attributes::new(Scheme::named(json["protocol"].as_str()?).ok()?, &attributes).ok()
}

/// The protocol with the parameters of a specification; those that it lacks are as in the example of the family.
fn of_parameters(json: &[u8]) -> Option<Protocol> {
    let json: Value = serde_json::from_slice(json).ok()?;
    let family = Protocol::family(json["protocol"].as_str()?).ok()?;
    let whole = (1u64 << json["planes"].as_u64().unwrap_or(0).min(62)) as f64;
    let given = family.parameters.iter().map(|parameter| {
        let value = &json[if parameter.name == "epsilon_permanent" { "epsilon" } else { parameter.name }];
        let found = match parameter.kind {
            ParameterKind::Integer(_) => value.as_u64().map(Argument::Integer),
            ParameterKind::Probability => value.as_f64().map(|numerator| Argument::Real(numerator / whole)),
            ParameterKind::Epsilon | ParameterKind::Delta => value.as_f64().map(Argument::Real),
            ParameterKind::Word(_) | ParameterKind::Sensitivity | ParameterKind::Number => None,
        };
        (parameter.name, found.unwrap_or(parameter.example))
    });
    Protocol::new(family.name, &given.collect::<Vec<_>>()).ok()
}
