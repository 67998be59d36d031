//! What is announced: a protocol of one attribute, or of several, and what its reports are about.

use std::borrow::Cow;
use std::sync::Arc;

use dpnoise_kernels::memory::room;

use super::about::{About, FIELDS, LabelsDigest, Meaning, Scale};
use super::attributes::Attributes;
use super::families::Protocol;
use super::json::{self, Json, Problem};
use super::memo::ClientMemo;
use super::spec::{self, Given, invalid};
use crate::error::Error;

/// What is announced: the protocol of one attribute, or several attributes with theirs; and what the reports are about,
/// if the specification says so.
///
/// ```
/// use dpnoise_core::local::{AnyProtocol, Meaning, OptimizedUnaryEncoding, Protocol};
/// let colours = Meaning::Labels(["red", "green", "blue"].map(String::from).to_vec());
/// let bare = AnyProtocol::from(Protocol::from(OptimizedUnaryEncoding::new(3, 2.0)?));
/// let survey = bare.with_meaning(&colours)?.with_question("favourite colour")?;
/// let week = survey.with_period("2026-W48")?;
/// assert_eq!(week.spec_id_hex(), "d1b43041022344b7");
/// assert_eq!(week.bare_digest(), bare.bare_digest()); // how reports are made
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AnyProtocol {
    randomiser: Randomiser,
    about: About,
    json: Arc<str>,
    scales: Scales,
}

/// What positions between -1 and 1 stand for, by the names of attributes, and of one by none; where it is left out, that
/// is these numbers. `None` where only a digest is known.
type Scales = Option<Arc<[(String, Scale)]>>;

/// How reports are made.
#[derive(Clone, Debug)]
pub enum Randomiser {
    /// Of one attribute.
    One(Protocol),
    /// Of several.
    Several(Arc<Attributes>),
}

/// An expression on the protocol of one attribute, or on several attributes.
macro_rules! on_either {
    ($self:expr, $either:ident => $result:expr) => {
        match &$self.randomiser {
            Randomiser::One($either) => $result,
            Randomiser::Several($either) => $result,
        }
    };
}

/// Specifications are the same if their bytes are.
impl PartialEq for AnyProtocol {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl From<Protocol> for AnyProtocol {
    fn from(protocol: Protocol) -> Self {
        let json = protocol.to_json().into();
        Self { json, randomiser: Randomiser::One(protocol), about: About::default(), scales: Some(Arc::default()) }
    }
}

impl From<Arc<Attributes>> for AnyProtocol {
    fn from(attributes: Arc<Attributes>) -> Self {
        let json = attributes.to_json().into();
        Self {
            json,
            randomiser: Randomiser::Several(attributes),
            about: About::default(),
            scales: Some(Arc::default()),
        }
    }
}

impl From<Attributes> for AnyProtocol {
    fn from(attributes: Attributes) -> Self {
        Arc::new(attributes).into()
    }
}

impl AnyProtocol {
    /// Reads a specification of either kind, or a document with one.
    ///
    /// # Errors
    /// As for [`AnyProtocol::from_document`].
    pub fn from_json(text: &str, limit: usize) -> Result<Self, Error> {
        Self::from_document(text, limit).map(|(protocol, _)| protocol)
    }

    /// Reads a specification as [`AnyProtocol::to_json`] gave it, or a document: an object with the specification as the
    /// text `dpnoise.protocol` and, as `dpnoise.domain`, the list of labels, or of the two bounds of a mean; of several
    /// attributes an object of such lists by their names. A document may be written in any form of JSON.
    ///
    /// # Errors
    /// [`Error::State`] when it is neither, when a specification contradicts itself, was written again in another form or
    /// has a question or a period that hides something, and when labels or bounds are not those of the specification;
    /// [`Error::Parameter`] when a parameter is out of range, or the counters have more than `limit` bytes;
    /// [`Error::Allocation`].
    pub fn from_document(text: &str, limit: usize) -> Result<(Self, Option<Meaning>), Error> {
        let begins = text.trim_start_matches(json::SPACE).trim_start_matches('{').trim_start_matches(json::SPACE);
        if !begins.starts_with("\"dpnoise.") {
            return Self::from_specification(text, limit).map(|protocol| (protocol, None));
        }
        let (specification, meaning) = parts(text)?;
        let protocol = Self::from_specification(&specification, limit)?.knowing(&meaning)?;
        Ok((protocol, Some(meaning)))
    }

    /// Reads a specification.
    pub(crate) fn from_specification(text: &str, limit: usize) -> Result<Self, Error> {
        let (randomiser, about) = if Attributes::are_in(text) {
            let (attributes, about) = Attributes::read(text)?;
            (Randomiser::Several(attributes.into()), about)
        } else {
            let mut given = Given::parse(text)?;
            let about = given.take(&FIELDS)?;
            (Randomiser::One(Protocol::read(&given)?), about)
        };
        let about = About::read(&about)?;
        let scales = about.labels.is_none().then(Arc::default);
        let made = Self::of(randomiser, about, scales)?;
        spec::check_canonical(text, &made.json)?;
        if made.about.labels.is_some() && !made.takes_labels() {
            return Err(invalid("its reports are not about values with labels or bounds, so it has no \"labels\""));
        }
        on_either!(made, either => either.check_limit(limit))?;
        Ok(made)
    }

    fn of(randomiser: Randomiser, about: About, scales: Scales) -> Result<Self, Error> {
        let fields = about.fields()?;
        let json = match &randomiser {
            Randomiser::One(protocol) => protocol.json_with(fields),
            Randomiser::Several(attributes) => attributes.json_with(fields),
        };
        Ok(Self { json: json.into(), randomiser, about, scales })
    }

    /// The protocol for reports in which values stand for this.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless there is a different label for each value of a protocol that counts values, or there
    /// are finite bounds, the lower one first, of a protocol for means; [`Error::Allocation`].
    pub fn with_meaning(&self, meaning: &Meaning) -> Result<Self, Error> {
        let labels = Some(self.digest(meaning)?);
        Self::of(self.randomiser.clone(), About { labels, ..self.about.clone() }, Some(meaning.scales()))
    }

    /// The protocol for answers to this question: public, from 1 to 255 bytes, and the same as long as people may be asked
    /// again. It should be in Unicode's normal form NFC, which is not checked here.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another length, a space at either end, and characters that are not seen.
    pub fn with_question(&self, question: &str) -> Result<Self, Error> {
        self.with("question", question)
    }

    /// The protocol for reports of this period, in which each person sends one: public, from 1 to 63 bytes, by custom a
    /// week as `2026-W48`, or a month as `2026-11`.
    ///
    /// # Errors
    /// As for [`AnyProtocol::with_question`].
    pub fn with_period(&self, period: &str) -> Result<Self, Error> {
        self.with("period", period)
    }

    fn with(&self, name: &'static str, text: &str) -> Result<Self, Error> {
        let mut about = self.about.clone();
        about.set(name, text)?;
        Self::of(self.randomiser.clone(), about, self.scales.clone())
    }

    /// The same specification, with what values stand for, of which it has a digest.
    ///
    /// # Errors
    /// [`Error::State`] when it says something else; and as for [`AnyProtocol::with_meaning`].
    pub fn knowing(&self, meaning: &Meaning) -> Result<Self, Error> {
        let bounds = matches!(meaning, Meaning::Bounds(..));
        let what = if bounds { "bounds" } else { "domain" };
        let Some(own) = self.about.labels else {
            return Err(Error::State(format!("{what} must not be given for a specification that has no labels")));
        };
        if self.digest(meaning)? == own {
            return Ok(Self { scales: Some(meaning.scales()), ..self.clone() });
        }
        Err(Error::State(if bounds {
            "bounds must be those of the specification".into()
        } else {
            "domain must have the labels of the specification, in their order".into()
        }))
    }

    /// The numbers that the positions of a mean stand for; `None` where they stand for themselves.
    ///
    /// # Errors
    /// [`Error::State`] when the protocol was read from a specification that has a digest of them, and not from a document.
    pub fn scale(&self) -> Result<Option<Scale>, Error> {
        let unknown = || {
            Error::State(
                "the bounds of the mean must be known: read the document, and not its specification alone".into(),
            )
        };
        let scales = self.scales.as_ref().ok_or_else(unknown)?;
        Ok(scales.iter().find(|(name, _)| name.is_empty()).map(|&(_, scale)| scale))
    }

    /// The protocol of the attribute of this name, for estimates.
    pub(crate) fn of_attribute(&self, name: &str, protocol: Protocol) -> Self {
        let own = |scales: &Arc<[(String, Scale)]>| {
            scales.iter().filter(|(known, _)| known == name).map(|&(_, scale)| (String::new(), scale)).collect()
        };
        Self { scales: self.scales.as_ref().map(own), ..protocol.into() }
    }

    fn digest(&self, meaning: &Meaning) -> Result<LabelsDigest, Error> {
        match (&self.randomiser, meaning) {
            (Randomiser::One(protocol), meaning) => Ok(LabelsDigest::new([meaning.texts(protocol)?])),
            (Randomiser::Several(attributes), Meaning::Attributes(given)) => {
                let mut lists = vec![Cow::default(); attributes.iter().len()];
                for (i, (name, meaning)) in given.iter().enumerate() {
                    let position = attributes.position(name).map_err(|error| error.of("domain"))?;
                    if given[..i].iter().any(|(other, _)| other == name) {
                        return Err(Error::parameter("domain", format!("{name:?} twice"), "of different attributes"));
                    }
                    lists[position] = meaning.texts(attributes.at(position)).map_err(|error| match error {
                        Error::Parameter { parameter, value, allowed } => {
                            Error::Parameter { parameter, value, allowed: format!("{allowed} for {name:?}") }
                        }
                        error => error,
                    })?;
                }
                Ok(LabelsDigest::new(lists))
            }
            (Randomiser::Several(_), _) => {
                Err(Error::parameter("domain", "one list", "labels by the names of attributes"))
            }
        }
    }

    fn takes_labels(&self) -> bool {
        match &self.randomiser {
            Randomiser::One(protocol) => takes_labels(protocol),
            Randomiser::Several(attributes) => attributes.protocols().any(takes_labels),
        }
    }

    /// The protocol of one attribute; `None` for several.
    #[must_use]
    pub fn one(&self) -> Option<&Protocol> {
        match &self.randomiser {
            Randomiser::One(protocol) => Some(protocol),
            Randomiser::Several(_) => None,
        }
    }

    /// How reports are made, whatever they are about.
    #[must_use]
    pub fn randomiser(&self) -> &Randomiser {
        &self.randomiser
    }

    /// The digest of what values stand for, as 32 hexadecimal digits.
    #[must_use]
    pub fn labels(&self) -> Option<String> {
        self.about.labels.map(|digest| digest.to_string())
    }

    /// The question.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        self.about.question.as_deref()
    }

    /// The period.
    #[must_use]
    pub fn period(&self) -> Option<&str> {
        self.about.period.as_deref()
    }

    /// The canonical specification.
    #[must_use]
    pub fn to_json(&self) -> &str {
        &self.json
    }

    /// The first 8 bytes of the SHA-256 of the canonical specification.
    #[must_use]
    pub fn spec_id(&self) -> [u8; 8] {
        spec::id(&self.json)
    }

    /// [`AnyProtocol::spec_id`] in hexadecimal.
    #[must_use]
    pub fn spec_id_hex(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.spec_id()))
    }

    /// The SHA-256 of the specification without labels, question and period: of how reports are made. A device that keeps
    /// a memo stores it with the question, and answers the question with no other one, which would cost epsilon again.
    #[must_use]
    pub fn bare_digest(&self) -> [u8; 32] {
        spec::digest(&on_either!(self, either => either.to_json()))
    }

    /// Keeps in mind, with the memo, that its people answer this question with this randomiser: to be called before they
    /// do, and before the memo is stored. Another one would cost epsilon again. Labels and period may change.
    ///
    /// # Errors
    /// [`Error::State`] when the memo's people answered the question with another randomiser; [`Error::Parameter`] when
    /// the specification names another question; [`Error::Allocation`].
    pub fn answer_with(&self, memo: &ClientMemo, question: &str) -> Result<(), Error> {
        match self.question() {
            Some(own) if own != question => Err(Error::parameter(
                "question",
                format!("{question:?}"),
                format!("that of the specification, {own:?}"),
            )),
            _ => memo.answer(question, self.bare_digest()),
        }
    }

    /// Refuses another specification, which is that of the argument of this name, and says in what it differs.
    ///
    /// # Errors
    /// [`Error::State`] unless the two are the same.
    pub fn check_same(&self, other: &Self, name: &str) -> Result<(), Error> {
        if self == other {
            return Ok(());
        }
        Err(Error::State(match self.about.difference(&other.about) {
            Some(difference) if self.bare_digest() == other.bare_digest() => {
                format!("{name} must be of the same collection, got one {difference}")
            }
            _ => format!("{name} must be of the same protocol, {}, got {}", self.json, other.json),
        }))
    }

    /// The epsilon of the guarantee, rounded up.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        on_either!(self, either => either.epsilon())
    }

    /// The delta of the guarantee, rounded up.
    #[must_use]
    pub fn delta(&self) -> f64 {
        on_either!(self, either => either.delta())
    }

    /// The bytes of a report.
    #[must_use]
    pub fn report_bytes(&self) -> usize {
        on_either!(self, either => either.report_bytes())
    }

    /// The bytes of a collector's counters.
    #[must_use]
    pub fn counter_bytes(&self) -> usize {
        on_either!(self, either => either.counter_bytes())
    }

    /// The number in messages.
    pub(crate) fn code(&self) -> u8 {
        on_either!(self, either => either.code())
    }
}

fn takes_labels(protocol: &Protocol) -> bool {
    protocol.law().is_some() || protocol.mean_law().is_some()
}

/// The specification in a document, and what values stand for.
fn parts(text: &str) -> Result<(String, Meaning), Error> {
    let invalid = invalid_document;
    let fields = match json::document(text) {
        Ok(Json::Object(fields)) => fields,
        Ok(_) => return Err(invalid("it is no object")),
        Err(Problem::Memory) => return Err(Error::Allocation),
        Err(Problem::Form(problem)) => return Err(invalid(problem)),
    };
    let (mut specification, mut meaning) = (None, None);
    for (name, value) in fields {
        let twice = match (name.as_str(), value) {
            ("dpnoise.protocol", Json::Text(text)) => specification.replace(text).is_some(),
            ("dpnoise.domain", Json::Object(attributes)) => {
                let read = attributes.into_iter().map(|(name, values)| Ok((name, listed(values)?)));
                meaning.replace(Meaning::Attributes(read.collect::<Result<_, Error>>()?)).is_some()
            }
            ("dpnoise.domain", values) => meaning.replace(listed(values)?).is_some(),
            _ => return Err(invalid(&format!("the field {name:?} is unknown, or of another kind"))),
        };
        if twice {
            return Err(invalid(&format!("{name:?} is there twice")));
        }
    }
    let missing = |name: &str| invalid(&format!("{name:?} is missing"));
    Ok((specification.ok_or_else(|| missing("dpnoise.protocol"))?, meaning.ok_or_else(|| missing("dpnoise.domain"))?))
}

/// Labels, or two bounds.
fn listed(values: Json) -> Result<Meaning, Error> {
    let Json::List(values) = values else { return Err(invalid_document("a domain is no list")) };
    if let [Json::Number(lower), Json::Number(upper)] = *values {
        return Ok(Meaning::Bounds(lower, upper));
    }
    let mut labels = room(values.len())?;
    for value in values {
        let Json::Text(text) = value else {
            return Err(invalid_document("a domain has other values than texts, and is not two numbers"));
        };
        labels.push(text);
    }
    Ok(Meaning::Labels(labels))
}

fn invalid_document(problem: &str) -> Error {
    Error::State(format!("not the document of a collection: {problem}"))
}
