//! The second target. An input is bytes, and everything of dpnoise-core that reads bytes reads them: as they are, and with
//! what protects them made right. What is accepted must be written as the same bytes again, and must be of use.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use dpnoise::Status;
use dpnoise_core::Error;
use dpnoise_core::local::{
    Accumulator, AnyAccumulator, AnyProtocol, ClientMemo, Protocol, Randomiser, Remembering, ValueKind, Values,
};
use dpnoise_core::rng::{NoiseKey, SeededRng, Ticket};
use dpnoise_core::sgd::{CorrelatedGradient, Strategy};
use dpnoise_core::threads::go_on;

use crate::vectors::{LABELS, VECTORS, Vector};
use crate::{checks, heap, planted, repair};

/// What is read from bytes.
struct Kind {
    name: &'static str,
    /// What the bytes begin with.
    magic: &'static [u8],
    /// Reads the bytes, and checks and uses what it has read.
    read: fn(&[u8]) -> Result<(), Error>,
    /// Makes right what protects the bytes.
    repair: fn(&mut Vec<u8>),
}

const KINDS: [Kind; 6] = [
    Kind { name: "specification", magic: b"{", read: specification, repair: repair::specification },
    Kind { name: "state", magic: b"DPNA", read: state, repair: |bytes| repair::state(bytes) },
    Kind { name: "messages", magic: b"DP\x01", read: messages, repair: |_| {} },
    Kind { name: "memo", magic: b"DPNM", read: memo, repair: |bytes| repair::checksum(bytes) },
    Kind { name: "ticket", magic: b"DPNT", read: ticket, repair: |bytes| repair::checksum(bytes) },
    Kind { name: "run", magic: b"DPNR", read: run_state, repair: |_| {} },
];

/// The most bytes of counters.
const LIMIT: usize = 1 << 16;

/// The bytes of memory that a reader may take in any case: those of tables, and of the noise of a run.
const WORKING: usize = 1 << 20;

/// The longest seed.
const MOST: usize = 1 << 12;

/// Prepares a run, as for the other target.
pub fn start() {
    crate::prepare(write_seeds);
}

/// Reads an input as each kind.
pub fn run(input: &[u8]) {
    for kind in KINDS {
        let mut repaired = input.to_vec();
        if input.starts_with(kind.magic) {
            (kind.repair)(&mut repaired);
        }
        let again = (repaired != input).then_some(&*repaired);
        for bytes in [input].into_iter().chain(again) {
            let status = match (kind.read)(bytes) {
                Ok(()) => Status::Ok,
                Err(Error::State(_)) => Status::State,
                Err(Error::Parameter { .. }) => Status::Parameter,
                Err(error) => panic!("a {} is refused by another error: {error:?}", kind.name),
            };
            checks::count(kind.name, status);
        }
    }
}

/// Calls a reader of these bytes, which must not take more memory than they are worth.
fn bounded<T>(bytes: &[u8], read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let (result, taken) = heap::measured(read);
    let most = WORKING + 64 * bytes.len();
    assert!(taken <= most, "{} bytes take more memory than {most} bytes: {taken}", bytes.len());
    result
}

/// Whether a reader has refused bytes for this reason, where a faulty one would not.
fn is_refused<T>(read: &Result<T, Error>, reason: &str) -> bool {
    matches!(read, Err(error) if error.to_string().contains(reason))
}

fn specification(bytes: &[u8]) -> Result<(), Error> {
    let text = str::from_utf8(bytes).map_err(|_| Error::State("not UTF-8".into()))?;
    let mut read = bounded(bytes, || AnyProtocol::from_document(text, LIMIT));
    if planted::is("probabilities-unchecked") && is_refused(&read, "its probabilities are not") {
        let announced = repair::announced(bytes).ok_or_else(|| Error::State("no parameters".into()));
        read = announced.map(|protocol| (protocol, None));
    }
    let (protocol, meaning) = read?;
    match &meaning {
        None => {
            let given = text.trim_matches([' ', '\t', '\r', '\n']);
            assert_eq!(protocol.to_json(), given, "a specification has two forms");
        }
        Some(meaning) => {
            let again = AnyProtocol::from_json(protocol.to_json(), LIMIT)?.with_meaning(meaning);
            assert_eq!(again.as_ref(), Ok(&protocol), "a document has other labels than its specification");
        }
    }
    use_counts(&AnyAccumulator::new(protocol)?);
    Ok(())
}

fn state(bytes: &[u8]) -> Result<(), Error> {
    let read = bounded(bytes, || AnyAccumulator::from_bytes(bytes, LIMIT));
    if planted::is("length-believed") && is_refused(&read, "truncated in its specification") {
        black_box(&bytes[20..][..u32::from_le_bytes(bytes[16..20].try_into().expect("four bytes")) as usize]);
    }
    let counted = read?;
    assert_eq!(counted.to_bytes()?, bytes, "a state has two forms");
    use_counts(&counted);
    Ok(())
}

/// Messages of the protocol that the first one names, one after the other.
fn messages(bytes: &[u8]) -> Result<(), Error> {
    let named = ANNOUNCED.iter().find(|(header, _)| bytes.starts_with(header));
    let (header, protocol) = named.unwrap_or(&ANNOUNCED[0]);
    let most = if named.is_some() { 8 } else { 1 };
    let messages: Vec<_> = bytes.chunks(header.len() + protocol.report_bytes()).take(most).collect();
    let mut counted = AnyAccumulator::new(protocol.clone())?;
    bounded(bytes, || counted.add_messages(messages.iter().copied(), 1))?;
    let mut one_by_one = AnyAccumulator::new(protocol.clone())?;
    for message in messages.iter().filter(|message| !planted::is("message-dropped") || message.len() > header.len()) {
        one_by_one.add_messages([*message], 1)?;
    }
    assert_eq!(counted, one_by_one, "messages are counted in another way together");
    let (seen, total) = (counted.n() + counted.rejected(), messages.len() as u64);
    // Of several attributes, more than one part of a message may be rejected.
    let is_right = seen == total || seen > total && counted.one().is_none();
    assert!(is_right, "a message is neither counted nor rejected");
    if counted.n() == 0 {
        return Err(Error::State("no message is counted".into()));
    }
    use_counts(&counted);
    Ok(())
}

fn memo(bytes: &[u8]) -> Result<(), Error> {
    let mut read = bytes.to_vec();
    if planted::is("flags-ignored") && bytes.len() >= 8 {
        read[5..8].fill(0);
        repair::checksum(&mut read);
    }
    let memo = bounded(bytes, || ClientMemo::from_bytes(&read))?;
    assert_eq!(memo.to_bytes()?, bytes, "a memo has two forms");
    let one = memo.select(0..memo.secrets().len().min(1))?;
    let values = Remembering { values: &[0][..one.secrets().len()], secrets: one.secrets(), question: "colour" };
    let protocol = Protocol::family("rappor")?.example()?;
    let mut out = vec![0; one.secrets().len() * protocol.report_bytes()];
    protocol.perturb_with(Values::Remembering(values), &mut out, &mut SeededRng::new(0)?)
}

fn ticket(bytes: &[u8]) -> Result<(), Error> {
    let mut read = bytes.to_vec();
    if planted::is("version-ignored") && is_refused(&Ticket::from_bytes(bytes), "not a ticket: version") {
        read[4] = 1;
        repair::checksum(&mut read);
    }
    let ticket = bounded(bytes, || Ticket::from_bytes(&read))?;
    assert_eq!(ticket.to_bytes(), bytes, "a ticket has two forms");
    assert!(ticket.take().is_err(), "a ticket that was read releases noise");
    Ok(())
}

fn run_state(bytes: &[u8]) -> Result<(), Error> {
    let mut run = new_run()?;
    bounded(bytes, || {
        if planted::is("width-believed") && bytes.starts_with(b"DPNR") && bytes.len() >= 69 {
            let width = u32::from_le_bytes(bytes[61..65].try_into().expect("four bytes"));
            black_box(vec![0u8; width as usize % (1 << 24)]);
        }
        run.resume(bytes, 1, &mut go_on)
    })?;
    assert_eq!(run.state()?, bytes, "the state of a run has two forms");
    run.step(&[1.0f64, 0.5], &mut [0.0; 2], 1)
}

/// Checks that counters can be used: copied, added to, merged, written and read again, and estimated from.
fn use_counts(counted: &AnyAccumulator) {
    let refused_or = |result: Result<(), Error>| match result {
        Ok(()) | Err(Error::State(_)) => {} // there is no room for more reports
        Err(error) => panic!("counters are of no use: {error}"),
    };
    let mut more = counted.copy().expect("a copy");
    let report = report(counted.protocol()).expect("a report");
    refused_or(more.add(&report, report.len(), 1));
    refused_or(more.merge(counted));
    let written = more.to_bytes().expect("bytes");
    assert_eq!(AnyAccumulator::from_bytes(&written, LIMIT).as_ref(), Ok(&more), "a state is not read back");
    more.one().into_iter().for_each(estimate);
    if let Some(counted) = more.several() {
        (0..counted.attributes().iter().len()).for_each(|i| estimate(&counted.attribute(i).expect("a copy")));
    }
}

/// Makes all estimates. Those of a number need a report.
fn estimate(counted: &Accumulator) {
    let _ = counted.estimate_mean();
    let _ = counted.estimate_density(true);
    counted.estimate().expect("an estimate");
    counted.estimate_candidates(&[0, 1]).expect("an estimate");
    counted.estimate_ranges().expect("an estimate");
    counted.estimate_prefixes(0.95).expect("an estimate");
}

/// The report of a person.
fn report(protocol: &AnyProtocol) -> Result<Vec<u8>, Error> {
    let mut report = vec![0; protocol.report_bytes()];
    match protocol.randomiser() {
        Randomiser::One(protocol) => {
            protocol.perturb_with(value(protocol), &mut report, &mut SeededRng::new(0)?)?;
        }
        Randomiser::Several(attributes) => {
            let columns: Vec<_> = attributes.iter().map(|(_, protocol)| value(protocol)).collect();
            attributes.perturb(&columns, &mut report, 1, &mut go_on)?;
        }
    }
    Ok(report)
}

fn value(protocol: &Protocol) -> Values<'static> {
    match protocol.takes() {
        ValueKind::Integers | ValueKind::Rows => Values::Integers(&[1]),
        ValueKind::Numbers => Values::Numbers(&[0.5]),
        ValueKind::Answers => Values::Answers(&[1]),
        ValueKind::Remembering => {
            Values::Remembering(Remembering { values: &[1], secrets: &[[7; 32]], question: "colour" })
        }
    }
}

/// The vectors but that of `gaussian_mean`: to check its delta takes a thousand times as long as to read the others.
fn vectors() -> impl Iterator<Item = &'static Vector> {
    VECTORS.iter().filter(|vector| vector.name != "gaussian_mean")
}

/// The protocols of the vectors, each behind the header of its messages.
static ANNOUNCED: LazyLock<Vec<([u8; 12], AnyProtocol)>> = LazyLock::new(|| {
    let read = |text: &[u8]| AnyProtocol::from_json(str::from_utf8(text).expect("ASCII"), LIMIT).expect("a protocol");
    vectors().map(|vector| read(&vector.specification)).map(|protocol| (protocol.message_header(), protocol)).collect()
});

/// A run whose key is known.
fn new_run() -> Result<CorrelatedGradient, Error> {
    let sensitivity = 1.25f64.sqrt().next_up();
    let participation = "once".into();
    let strategy = Strategy { numerators: vec![4096, 2048], steps: 10, gain: 1.2, sensitivity, participation };
    let key = NoiseKey::from_secret_bytes(&[7; 32])?;
    CorrelatedGradient::new(strategy, 1.0, 1.1, 256.0, Some(Arc::new(key)))
}

/// Writes the seeds: what the vectors have of each kind, and what they lack.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let mut seeds: Vec<Vec<u8>> = vec![];
    for vector in vectors() {
        seeds.extend([&vector.specification, &vector.state, &vector.memo].map(Clone::clone));
        let specification = String::from_utf8_lossy(&vector.specification);
        seeds.push(format!("{{\"dpnoise.protocol\":{specification:?},\"dpnoise.domain\":{LABELS:?}}}").into());
        seeds.extend([1, 3].map(|n| vector.messages[..n].concat()));
    }
    let mut run = new_run().expect("a run");
    for step in 0..3u64 {
        seeds.push(run.state().expect("a state"));
        run.step(&[1.0f64, 0.5], &mut [0.0; 2], 1).expect("a step");
        let key = NoiseKey::from_secret_bytes(&[7; 32]).expect("a key");
        let domain = "domain".repeat(step as usize);
        seeds.push(key.ticket(&domain, step).expect("a ticket").to_bytes());
        seeds.push(ClientMemo::generate(step).expect("a memo").to_bytes().expect("bytes"));
    }
    for (number, seed) in seeds.iter().filter(|seed| (1..=MOST).contains(&seed.len())).enumerate() {
        std::fs::write(folder.join(format!("{number:03}")), seed)?;
    }
    Ok(())
}
