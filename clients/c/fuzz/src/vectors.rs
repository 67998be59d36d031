//! What inputs are made from: the specifications, memos, messages and states of tests/vectors/local.json, of several
//! attributes, and of a collection that says what it is about.

use std::sync::LazyLock;

use dpnoise_core::Error;
use dpnoise_core::local::{AnyAccumulator, AnyProtocol, Attributes, Meaning, OptimizedUnaryEncoding, Protocol, Scheme};
use serde_json::Value;

use crate::input::Input;
use crate::repair;

pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) specification: Vec<u8>,
    pub(crate) random: Vec<u8>,
    pub(crate) memo: Vec<u8>,
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) state: Vec<u8>,
    pub(crate) takes_texts: bool,
}

pub(crate) static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| {
    let file = include_str!("../../../../tests/vectors/local.json");
    let all: Value = serde_json::from_str(file).expect("JSON");
    let several = [Scheme::Sampled, Scheme::Split].map(|scheme| of_several(scheme).expect("a vector"));
    all.as_array().expect("a list").iter().map(read).chain(several).chain(asked()).collect()
});

fn read(entry: &Value) -> Vector {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    let specification: Value = serde_json::from_str(text("specification")).expect("JSON");
    Vector {
        name: specification["protocol"].as_str().expect("a name").into(),
        specification: text("specification").into(),
        random: hex(text("random")),
        memo: hex(text("memo")),
        messages: entry["messages"].as_array().expect("messages").iter().map(|m| hex(m.as_str().unwrap())).collect(),
        state: hex(text("state")),
        takes_texts: entry["values"][0].is_string(),
    }
}

/// A vector of several attributes, which the file does not have.
fn of_several(scheme: Scheme) -> Result<Vector, Error> {
    let example = |family| Protocol::family(family)?.example();
    let asked = [("smokes", example("randomized_response")?), ("mood é", example("duchi_mean")?)];
    of_zeros(scheme.name(), Attributes::new(scheme, &asked)?.into())
}

/// The labels of that collection.
pub(crate) const LABELS: [&str; 3] = ["red", "é", "blue"];

/// A vector of a collection that says what it is about.
fn asked() -> Result<Vector, Error> {
    let bare = AnyProtocol::from(Protocol::from(OptimizedUnaryEncoding::new(3, 1.0)?));
    let labelled = bare.with_meaning(&Meaning::Labels(LABELS.map(String::from).into()))?;
    of_zeros("asked", labelled.with_question("favourite colour \"😀\"")?.with_period("2026-W48")?)
}

/// A vector with reports of zeros, which are reports of the protocol.
fn of_zeros(name: &str, protocol: AnyProtocol) -> Result<Vector, Error> {
    let reports = vec![0; 8 * protocol.report_bytes()];
    let (specification, header) = (protocol.to_json().into(), protocol.message_header());
    let rows = reports.chunks(protocol.report_bytes());
    let messages = rows.map(|report| [&header[..], report].concat()).collect();
    let mut counted = AnyAccumulator::new(protocol)?;
    counted.add(&reports, reports.len() / 8, 1)?;
    Ok(Vector {
        name: name.into(),
        specification,
        random: vec![],
        memo: vec![],
        messages,
        state: counted.to_bytes()?,
        takes_texts: false,
    })
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal")).collect()
}

/// A part of a vector, changed in a few places.
pub(crate) fn changed(input: &mut Input<'_>, part: impl Fn(&Vector) -> &[u8]) -> Vec<u8> {
    let choice = input.below(VECTORS.len() + 1);
    let Some(vector) = VECTORS.get(choice) else {
        let length = input.byte();
        return input.bytes(length.into()).to_vec();
    };
    let mut bytes = part(vector).to_vec();
    let changes = input.byte();
    if changes >= 240 {
        bytes.truncate(input.u16().into());
    }
    // Most are used as they are.
    for _ in 0..changes.saturating_sub(192) % 4 {
        let (at, byte) = (usize::from(input.u16()), input.byte());
        match bytes.len() {
            0 => {}
            length => bytes[at % length] = byte,
        }
    }
    bytes
}

/// Values of fields that are at, or beyond, a limit.
const LIMITS: [&str; 10] =
    ["0", "1", "2", "4097", "16777216", "16777217", "18446744073709551615", "-1", "1e308", "1e-9"];

/// A specification, rarely with another value in one of its fields.
pub(crate) fn specification(input: &mut Input<'_>) -> Vec<u8> {
    let mut json = changed(input, |vector| &vector.specification);
    if input.rarely() {
        let colons =
            json.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at + 1).collect::<Vec<_>>();
        let limit = LIMITS[input.below(LIMITS.len())];
        if !colons.is_empty() {
            let start = colons[input.below(colons.len())];
            let length = json[start..].iter().take_while(|byte| !b",}".contains(byte)).count();
            json.splice(start..start + length, limit.bytes());
        }
    }
    json
}

/// A changed part for what ends with a CRC-32C, which is mostly made right again, so that what it protects is read.
pub(crate) fn changed_with_checksum(input: &mut Input<'_>, part: impl Fn(&Vector) -> &[u8]) -> Vec<u8> {
    let mut bytes = changed(input, part);
    if !input.rarely() {
        repair::checksum(&mut bytes);
    }
    bytes
}
