//! What collections are about: specifications with labels, question and period, documents, and what is refused.

use dpnoise_core::Error;
use dpnoise_core::local::{
    AnyAccumulator, AnyProtocol, Attributes, COUNTER_LIMIT, ClientMemo, DBitFlip, DuchiMean, Meaning,
    OptimizedUnaryEncoding, Protocol, RandomizedResponse, Scheme, SquareWave, Values,
};

fn labels(labels: &[&str]) -> Vec<String> {
    labels.iter().map(ToString::to_string).collect()
}

fn colours() -> AnyProtocol {
    let bare = AnyProtocol::from(Protocol::from(OptimizedUnaryEncoding::new(3, 2.0).unwrap()));
    bare.with_meaning(&Meaning::Labels(labels(&["red", "green", "blue"]))).unwrap()
}

fn attributes() -> AnyProtocol {
    let asked =
        [("smokes", RandomizedResponse::new(1.0).unwrap().into()), ("mood", DuchiMean::new(1.0).unwrap().into())];
    Attributes::new(Scheme::Sampled, &asked).unwrap().into()
}

fn read(text: &str) -> Result<AnyProtocol, Error> {
    AnyProtocol::from_json(text, COUNTER_LIMIT)
}

fn message<T: std::fmt::Debug>(failed: Result<T, Error>) -> String {
    failed.unwrap_err().to_string()
}

/// Other programs, and states kept on disk, depend on these bytes.
#[test]
fn specifications_are_stable() {
    let week = colours().with_question("favourite colour").unwrap().with_period("2026-W48").unwrap();
    let expected = r#"{"epsilon":2.0,"k":3,"labels":"a7cfed5396f96b307227eb5d7fb14c82","p":2048,"period":"2026-W48","planes":12,"protocol":"optimized_unary_encoding","q":489,"question":"favourite colour","version":1}"#;
    assert_eq!((week.to_json(), week.spec_id_hex().as_str()), (expected, "d1b43041022344b7"));
    assert_eq!(week.with_period("2026-W49").unwrap().spec_id_hex(), "bf2af79b64406ddd");
    let both = attributes()
        .with_meaning(&Meaning::Attributes(vec![("smokes".into(), Meaning::Labels(labels(&["no", "yes"])))]))
        .unwrap();
    let asked = both.with_question("caf\u{e9} \"😀\"").unwrap().with_period("2026").unwrap();
    let expected = r#"],"labels":"b895765b53a48b312f5ec9ad7abc3926","period":"2026","protocol":"sampled","question":"caf\u00e9 \"\ud83d\ude00\"","version":1}"#;
    assert!(asked.to_json().ends_with(expected), "{}", asked.to_json());
    for protocol in [week, both, asked] {
        assert_eq!(read(protocol.to_json()).as_ref(), Ok(&protocol));
        assert_eq!(read(&format!("\n {}\t", protocol.to_json())).as_ref(), Ok(&protocol));
    }
}

#[test]
fn without_the_fields_everything_is_as_it_was() {
    for info in Protocol::FAMILIES {
        let protocol = info.example().unwrap();
        let any = AnyProtocol::from(protocol);
        assert_eq!((any.to_json(), any.spec_id()), (protocol.to_json().as_str(), protocol.spec_id()));
        assert_eq!(any.message_header(), protocol.message_header());
        // Not to be read as a protocol alone, which would forget what it is about.
        let asked = any.with_question("q").unwrap();
        assert!(message(Protocol::from_json(asked.to_json(), COUNTER_LIMIT)).contains("unknown field \"question\""));
        assert_eq!(asked.bare_digest(), any.bare_digest());
        assert_ne!(asked.spec_id(), any.spec_id());
    }
}

#[test]
fn the_longest_specification_is_read() {
    let question = "\u{ffff}".repeat(85);
    for info in Protocol::FAMILIES {
        let any = AnyProtocol::from(info.example().unwrap()).with_question(&"é".repeat(127)).unwrap();
        let any = any.with_period(&"é".repeat(31)).unwrap();
        assert!(any.to_json().len() < 1500 && read(any.to_json()) == Ok(any.clone()), "{}", any.to_json());
        assert!(any.with_question(&question).unwrap().to_json().len() < 1500);
    }
}

#[test]
fn other_forms_and_other_fields_are_refused() {
    let week = colours().with_question("favourite \"colour\"").unwrap().with_period("2026-W48").unwrap();
    let json = week.to_json();
    let changed = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        message(read(&json.replacen(from, to, 1)))
    };
    let digest = "a7cfed5396f96b307227eb5d7fb14c82";
    assert!(changed(digest, &digest.to_uppercase()).contains("labels must be 32 hexadecimal digits"));
    assert!(changed(digest, &digest[1..]).contains("labels must be 32 hexadecimal digits"));
    assert!(changed(digest, &format!("+{}", &digest[1..])).contains("labels must be 32 hexadecimal digits"));
    assert!(changed(&format!("\"{digest}\""), "1").contains("the field \"labels\" is not text"));
    assert!(changed("W48", "W48 ").contains("period must be of 1 to 63 bytes"));
    assert!(changed("2026-W48", "").contains("period must be of 1 to 63 bytes"));
    assert!(changed("2026", "\u{200b}2026").contains("without characters that are not seen"));
    assert!(changed("2026", "\\u200b2026").contains("without characters that are not seen"));
    assert!(changed("favourite", &"x".repeat(255)).contains("question must be of 1 to 255 bytes"));
    assert!(changed("favourite", "f\\u0061vourite").contains("written in another form"));
    assert!(changed("favourite", "\\/").contains("written in another form"));
    assert!(
        changed("\"period\":\"2026-W48\"", "\"period\":\"2026-W48\",\"period\":\"2026-W48\"").contains("another form")
    );
    assert!(changed("question", "Question").contains("unknown field \"Question\""));
    assert!(changed("question", "about").contains("unknown field \"about\""));
    let of_number = Protocol::from(SquareWave::new(15, 1.0).unwrap()).to_json();
    let with_labels = of_number.replace("\"planes\"", &format!("\"labels\":\"{digest}\",\"planes\""));
    assert!(message(read(&with_labels)).contains("so it has no \"labels\""));
    for i in 0..json.len() {
        for other in ["", " ", "0", "\"", "\\", "}", "é"] {
            let Some((before, after)) = json.get(..i).zip(json.get(i + 1..)) else { continue };
            let changed = format!("{before}{other}{after}");
            assert!(
                read(&changed).is_err_and(|error| matches!(error, Error::State(_) | Error::Parameter { .. }))
                    || read(&changed).unwrap().to_json() == changed.trim()
            );
        }
    }
    let several = attributes().with_question("q").unwrap();
    for (from, to) in
        [("\"question\":\"q\"", "\"question\":1"), ("question", "about"), ("\"q\"", "\"q\",\"question\":\"q\"")]
    {
        assert!(read(&several.to_json().replace(from, to)).is_err(), "{to}");
    }
    // Only the whole is about something, not an attribute.
    let inner = several.to_json().replacen("\\\"planes\\\"", "\\\"period\\\":\\\"w\\\",\\\"planes\\\"", 1);
    assert!(message(read(&inner)).contains("unknown field \"period\""));
}

#[test]
fn documents_are_read_in_any_form() {
    let protocol = colours();
    let quoted = format!("{:?}", protocol.to_json());
    let right = [
        format!("{{\"dpnoise.domain\":[\"red\",\"green\",\"blue\"],\"dpnoise.protocol\":{quoted}}}"),
        format!(
            " {{\n \"dpnoise.protocol\" : {quoted} , \"dpnoise.domain\" : [ \"r\\u0065d\", \"green\" ,\"blue\"]}}\n"
        ),
    ];
    for text in &right {
        let (read, meaning) = AnyProtocol::from_document(text, COUNTER_LIMIT).unwrap();
        assert_eq!((&read, meaning), (&protocol, Some(Meaning::Labels(labels(&["red", "green", "blue"])))));
    }
    let changed = |from: &str, to: &str| message(read(&right[0].replacen(from, to, 1)));
    let order = "domain must have the labels of the specification, in their order";
    assert_eq!(changed("\"red\",\"green\"", "\"green\",\"red\""), order);
    assert_eq!(changed("red", "Red"), order);
    assert!(changed("\"red\",", "").contains("domain must be of 3 labels, got 2 labels"));
    assert!(changed("red", "green").contains("of different labels, got \"green\" twice"));
    assert!(changed("\"red\"", "1").contains("other values than texts"));
    assert!(changed("[\"red\",\"green\",\"blue\"]", "\"red\"").contains("a domain is no list"));
    assert!(
        changed("[\"red\",\"green\",\"blue\"]", "{\"a\":[\"red\",\"green\",\"blue\"]}").contains("of one attribute")
    );
    assert!(
        changed("\"dpnoise.domain\"", "\"dpnoise.normalization\":\"NFC\",\"dpnoise.domain\"").contains("is unknown")
    );
    assert!(changed("\"dpnoise.domain\"", "\"dpnoise.domain\":[],\"dpnoise.domain\"").contains("is there twice"));
    assert!(
        changed("\"dpnoise.protocol\":\"", "\"dpnoise.protocol\":[],\"b\":\"")
            .contains("is unknown, or of another kind")
    );
    assert!(changed("\"dpnoise.domain\":[\"red\",\"green\",\"blue\"],", "").contains("\"dpnoise.domain\" is missing"));
    assert!(changed("]", "],").contains("not the document of a collection"));
    let bare = AnyProtocol::from(*protocol.one().unwrap());
    let named = right[0].replace(&quoted, &format!("{:?}", bare.to_json()));
    assert!(message(read(&named)).contains("for a specification that has no labels"));
}

#[test]
fn documents_of_means_and_of_several_attributes() {
    let mean = AnyProtocol::from(Protocol::from(DuchiMean::new(1.0).unwrap()));
    let scaled = mean.with_meaning(&Meaning::Bounds(0.0, 100.0)).unwrap();
    assert_eq!(scaled.labels().as_deref(), Some("892dd2e163a3e49ca8d716e31f8a0208"));
    let document =
        |bounds: &str| read(&format!("{{\"dpnoise.domain\":{bounds},\"dpnoise.protocol\":{:?}}}", scaled.to_json()));
    for bounds in ["[0,100]", "[-0.0, 1e2]"] {
        assert_eq!(document(bounds).as_ref(), Ok(&scaled));
    }
    assert_eq!(message(document("[0,1]")), "bounds must be those of the specification");
    for bounds in ["[100,0]", "[0,1e999]", "[0]", "[\"0\",\"100\"]", "[0,100,0]"] {
        assert!(document(bounds).is_err(), "{bounds}");
    }
    assert!(mean.with_meaning(&Meaning::Labels(labels(&["a", "b"]))).is_err());
    assert!(colours().with_meaning(&Meaning::Bounds(0.0, 1.0)).is_err());

    let named = attributes()
        .with_meaning(&Meaning::Attributes(vec![("smokes".into(), Meaning::Labels(labels(&["no", "yes"])))]))
        .unwrap();
    let text = |domain: &str| {
        format!("{{\"dpnoise.domain\":{domain},\"dpnoise.protocol\":{:?}}}", named.to_json())
            .replace("\\\\\\\"", "\\\\\\\"")
    };
    assert_eq!(read(&text("{\"smokes\":[\"no\",\"yes\"]}")).as_ref(), Ok(&named));
    let refused = |domain: &str| message(read(&text(domain)));
    assert!(refused("{\"smokes\":[\"yes\",\"no\"]}").contains("in their order"));
    assert!(refused("{}").contains("in their order"));
    assert!(refused("{\"mood\":[\"no\",\"yes\"]}").contains("not counted by value"));
    assert!(refused("{\"smokes\":[\"no\"]}").contains("of 2 labels for \"smokes\""));
    assert!(refused("{\"age\":[\"no\",\"yes\"]}").contains("domain must be one of \"smokes\", \"mood\""));
    assert!(refused("{\"smokes\":[\"no\",\"yes\"],\"smokes\":[\"no\",\"yes\"]}").contains("twice"));
    assert!(refused("[\"no\",\"yes\"]").contains("labels by the names of attributes"));
}

#[test]
fn reports_about_something_else_are_not_counted() {
    let own = colours().with_question("favourite colour").unwrap().with_period("2026-W48").unwrap();
    let meaning = |texts: &[&str]| Meaning::Labels(labels(texts));
    let others = [
        (own.with_meaning(&meaning(&["yes", "no", "unsure"])).unwrap(), "about other labels ("),
        (own.with_meaning(&meaning(&["green", "red", "blue"])).unwrap(), "about other labels ("),
        (own.with_question("least liked colour").unwrap(), "about another question (\"least liked colour\")"),
        (own.with_period("2026-W49").unwrap(), "about another period (\"2026-W49\")"),
        (colours(), "without a question"),
        ((*own.one().unwrap()).into(), "without labels"),
    ];
    let mut report = vec![0; own.report_bytes()];
    own.one().unwrap().perturb(Values::Integers(&[1]), &mut report, 1).unwrap();
    for (other, difference) in others {
        let mut counted = AnyAccumulator::new(own.clone()).unwrap();
        let sent = |protocol: &AnyProtocol| [&protocol.message_header()[..], &report].concat();
        counted.add_messages([&*sent(&other), &*sent(&own)], 1).unwrap();
        assert_eq!((counted.n(), counted.rejected_reasons()), (1, vec![("wrong header", 1)]));
        let refused = message(counted.merge(&AnyAccumulator::new(other.clone()).unwrap()));
        assert!(
            refused.starts_with(&format!("other must be of the same collection, got one {difference}")),
            "{refused}"
        );
        let mut rest = AnyAccumulator::new(other).unwrap();
        assert!(rest.merge(&counted).is_err());
    }
    let epsilon = AnyProtocol::from(Protocol::from(OptimizedUnaryEncoding::new(3, 1.0).unwrap()));
    let epsilon = epsilon.with_period("2026-W48").unwrap();
    let mut counted = AnyAccumulator::new(own).unwrap();
    assert!(
        message(counted.merge(&AnyAccumulator::new(epsilon).unwrap())).contains("other must be of the same protocol")
    );
}

#[test]
fn states_say_what_they_are_about() {
    for protocol in [colours().with_period("2026-W48").unwrap(), attributes().with_question("q").unwrap()] {
        let mut counted = AnyAccumulator::new(protocol.clone()).unwrap();
        counted.add(&vec![0; 5 * protocol.report_bytes()], protocol.report_bytes(), 1).unwrap();
        let state = counted.to_bytes().unwrap();
        let read = AnyAccumulator::from_bytes(&state, COUNTER_LIMIT).unwrap();
        assert_eq!((read.protocol(), &read), (&protocol, &counted));
        assert_eq!(read.to_bytes().unwrap(), state);
    }
    // A document is no specification.
    let bare = AnyAccumulator::new(colours()).unwrap().to_bytes().unwrap();
    let json = colours().to_json().to_owned();
    let document = format!("{{\"dpnoise.domain\":[\"red\",\"green\",\"blue\"],\"dpnoise.protocol\":{json:?}}}");
    let mut changed = bare[..16].to_vec();
    changed.extend((document.len() as u32).to_le_bytes());
    changed.extend(document.as_bytes());
    changed.extend(&bare[20 + json.len()..bare.len() - 4]);
    let length = changed.len() as u64 + 4;
    changed[8..16].copy_from_slice(&length.to_le_bytes());
    changed.extend(crc32c::crc32c(&changed).to_le_bytes());
    assert!(message(AnyAccumulator::from_bytes(&changed, COUNTER_LIMIT)).contains("not a protocol specification"));
}

#[test]
fn a_memo_answers_a_question_with_one_randomiser() {
    let protocol = |epsilon| AnyProtocol::from(Protocol::from(DBitFlip::new(8, epsilon, 8).unwrap()));
    let memo = ClientMemo::generate(3).unwrap();
    let first = protocol(2.0).with_question("minutes of use").unwrap();
    first.answer_with(&memo, "minutes of use").unwrap();
    for week in 1..=52 {
        first.with_period(&format!("2026-W{week:02}")).unwrap().answer_with(&memo, "minutes of use").unwrap();
        let other = protocol(2.0 - f64::from(week) * 1e-9).with_question("minutes of use").unwrap();
        let refused = message(other.answer_with(&memo, "minutes of use"));
        assert!(refused.contains("another one costs epsilon again"), "{refused}");
    }
    assert!(
        message(first.answer_with(&memo, "hours of use")).contains("that of the specification, \"minutes of use\"")
    );
    protocol(1.0).answer_with(&memo, "hours of use").unwrap();
}

#[test]
fn numbers_are_within_the_bounds_of_a_document_or_are_refused() {
    let mean = AnyProtocol::from(Protocol::from(DuchiMean::new(1.0).unwrap()));
    assert_eq!(mean.scale(), Ok(None));
    let ages = mean.with_meaning(&Meaning::Bounds(0.0, 100.0)).unwrap().with_period("2026").unwrap();
    let scale = ages.scale().unwrap().unwrap();
    assert_eq!(scale.positions(&[-1.0, 0.0, 25.0, 50.0, 100.0, 1e300]).unwrap()[..], [-1.0, -1.0, -0.5, 0.0, 1.0, 1.0]);
    assert!(scale.positions(&[f64::NAN]).unwrap()[0].is_nan());
    let estimate = dpnoise_core::local::MeanEstimate { mean: -0.5, standard_error: 0.1, n: 9 };
    assert_eq!(scale.mean(estimate), dpnoise_core::local::MeanEstimate { mean: 25.0, standard_error: 5.0, n: 9 });
    // Of the digest alone nobody knows what positions stand for.
    assert!(message(read(ages.to_json()).unwrap().scale()).contains("the bounds of the mean must be known"));
    assert!(mean.with_meaning(&Meaning::Bounds(0.0, 5e-324)).is_err());

    let named =
        attributes().with_meaning(&Meaning::Attributes(vec![("mood".into(), Meaning::Bounds(0.0, 10.0))])).unwrap();
    let counted = AnyAccumulator::new(named.clone()).unwrap();
    assert_eq!(
        counted.attribute("mood").unwrap().protocol().scale().unwrap().unwrap().positions(&[10.0]).unwrap()[..],
        [1.0]
    );
    let unknown = AnyAccumulator::from_bytes(&counted.to_bytes().unwrap(), COUNTER_LIMIT).unwrap();
    assert!(unknown.attribute("mood").unwrap().protocol().scale().is_err());
    let bare = AnyAccumulator::new(attributes()).unwrap();
    assert_eq!(bare.attribute("mood").unwrap().protocol().scale(), Ok(None));
    assert!(bare.attribute("age").is_err() && counted.attribute("mood").unwrap().attribute("mood").is_err());
}
