//! Makes right what protects bytes from change, so that a changed input reaches what is behind.

use dpnoise_core::local::{Argument, ParameterKind, Protocol};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Makes the CRC-32C at the end right.
pub(crate) fn checksum(bytes: &mut [u8]) {
    if let Some((body, checksum)) = bytes.split_last_chunk_mut() {
        *checksum = crc32c::crc32c(body).to_le_bytes();
    }
}

/// Makes the length, the id of the specification and the checksum of a state right, and those of the states in it.
pub(crate) fn state(bytes: &mut [u8]) {
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
        self::state(part);
        states = rest;
    }
    Some(())
}

/// Makes the probabilities those of the parameters, and the form the canonical one.
pub(crate) fn specification(bytes: &mut Vec<u8>) {
    if let Some(protocol) = of_parameters(bytes) {
        *bytes = protocol.to_json().into();
    }
}

/// The protocol with the parameters of a specification; those that it lacks are as in the example of the family.
pub(crate) fn of_parameters(json: &[u8]) -> Option<Protocol> {
    let json: Value = serde_json::from_slice(json).ok()?;
    let family = Protocol::family(json["protocol"].as_str()?).ok()?;
    let whole = (1u64 << json["planes"].as_u64().unwrap_or(0).min(62)) as f64;
    let given = family.parameters.iter().map(|parameter| {
        let value = &json[if parameter.name == "epsilon_permanent" { "epsilon" } else { parameter.name }];
        let found = match parameter.kind {
            ParameterKind::Integer(_) => value.as_u64().map(Argument::Integer),
            ParameterKind::Probability => value.as_f64().map(|numerator| Argument::Real(numerator / whole)),
            ParameterKind::Epsilon | ParameterKind::Delta => value.as_f64().map(Argument::Real),
            ParameterKind::Word(_) => None,
        };
        (parameter.name, found.unwrap_or(parameter.example))
    });
    Protocol::new(family.name, &given.collect::<Vec<_>>()).ok()
}
