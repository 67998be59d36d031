//! What the reports of a collection are about: what values stand for, what is asked, and when.
//!
//! None of it changes how a report is made. All of it is public, and part of the specification, so that reports about
//! one thing are never counted as reports about another.

use core::fmt;
use core::ops::Deref;
use std::borrow::Cow;
use std::sync::Arc;

use dpnoise_kernels::memory::collected;
use sha2::{Digest, Sha256};

use super::families::Protocol;
use super::json::{self, Value};
use super::mean::MeanEstimate;
use super::spec::{Fields, invalid};
use crate::error::Error;
use crate::rng::Wiped;

/// The fields of a specification.
pub(crate) const FIELDS: [&str; 3] = [LABELS, PERIOD, QUESTION];

const LABELS: &str = "labels";
const PERIOD: &str = "period";
const QUESTION: &str = "question";

/// The most bytes of a question, and of a period.
const LONGEST: [(&str, usize); 2] = [(QUESTION, 255), (PERIOD, 63)];

/// Characters that are not seen, or that change how others are shown: in a text that people compare they could hide
/// that it is another one. U+200C and U+200D, which some scripts need, are not among them.
const INVISIBLE: [(char, char); 9] = [
    ('\0', '\x1f'),
    ('\x7f', '\u{9f}'),
    ('\u{200b}', '\u{200b}'),
    ('\u{200e}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{e0000}', '\u{e007f}'),
];

/// The first half of the SHA-256 of what values stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LabelsDigest([u8; 16]);

impl LabelsDigest {
    /// Of the labels of each attribute, none where it has none.
    pub(crate) fn new(attributes: impl IntoIterator<Item = impl AsRef<[String]>>) -> Self {
        let number = |length: usize| (length as u32).to_le_bytes(); // at most 2^24 labels; of a text what it takes
        let mut hash = Sha256::new_with_prefix(b"dpnoise labels");
        for labels in attributes {
            hash.update(number(labels.as_ref().len()));
            for label in labels.as_ref() {
                hash.update(number(label.len()));
                hash.update(label);
            }
        }
        let digest = hash.finalize();
        Self(core::array::from_fn(|i| digest[i]))
    }

    fn from_hex(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let number = u128::from_str_radix(text, 16).ok()?;
        (text.len() == 32 && text.bytes().all(is_digit)).then_some(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for LabelsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for LabelsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What values stand for.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// The labels of the values 0, 1, ..., k - 1.
    Labels(Vec<String>),
    /// The numbers that -1 and 1 stand for.
    Bounds(f64, f64),
    /// What the values of attributes stand for, by their names; those that are left out have numbers.
    Attributes(Vec<(String, Self)>),
}

impl Meaning {
    /// The bounds, by the names of attributes, and of one attribute by none.
    pub(crate) fn scales(&self) -> Arc<[(String, Scale)]> {
        let of_one = |name: &str, meaning: &Self| match *meaning {
            Self::Bounds(lower, upper) => Some((name.to_owned(), Scale::new(lower, upper))),
            _ => None,
        };
        match self {
            Self::Attributes(each) => each.iter().filter_map(|(name, meaning)| of_one(name, meaning)).collect(),
            one => of_one("", one).into_iter().collect(),
        }
    }

    /// The texts of which the digest is made, of one attribute.
    pub(crate) fn texts(&self, protocol: &Protocol) -> Result<Cow<'_, [String]>, Error> {
        let none = |why| format!("None for {}, whose reports {why}", protocol.name());
        match self {
            Self::Labels(labels) => {
                let k = protocol.k();
                if protocol.law().is_none() {
                    return Err(Error::parameter("domain", "labels", none("are not counted by value")));
                }
                if labels.len() != k as usize {
                    let found = format!("{} labels", labels.len());
                    return Err(Error::parameter("domain", found, format!("of {k} labels")));
                }
                let mut sorted = collected(labels.iter().map(String::as_str))?;
                sorted.sort_unstable();
                match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => {
                        Err(Error::parameter("domain", format!("{:?} twice", pair[0]), "of different labels"))
                    }
                    None => Ok(labels.into()),
                }
            }
            &Self::Bounds(lower, upper) => {
                let given = || format!("({lower:?}, {upper:?})");
                if protocol.mean_law().is_none() {
                    return Err(Error::parameter("bounds", given(), none("do not give a mean")));
                }
                if !(lower.is_finite() && upper.is_finite() && Scale::new(lower, upper).half > 0.0) {
                    return Err(Error::parameter("bounds", given(), "two finite numbers, the lower one first"));
                }
                let written = [lower, upper].map(|bound| Value::Real(bound + 0.0).to_string()); // of -0 it makes 0
                Ok(Cow::Owned(written.into()))
            }
            Self::Attributes(_) => Err(Error::parameter("domain", "labels by attribute", "of one attribute")),
        }
    }
}

/// The numbers that -1 and 1 stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    lower: f64,
    upper: f64,
    middle: f64,
    half: f64,
}

impl Scale {
    fn new(lower: f64, upper: f64) -> Self {
        Self { lower, upper, middle: lower / 2.0 + upper / 2.0, half: upper / 2.0 - lower / 2.0 }
    }

    /// Where numbers are between -1 and 1, once they are clamped to the bounds; wiped when dropped.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub fn positions(&self, numbers: &[f64]) -> Result<impl Deref<Target = [f64]> + use<>, Error> {
        let mut positions = Wiped::try_new(numbers.len())?;
        for (position, number) in positions.iter_mut().zip(numbers) {
            let distance = number.clamp(self.lower, self.upper) - self.middle; // of NaN it is NaN, which is refused later
            *position = (distance / self.half).clamp(-1.0, 1.0);
        }
        Ok(positions)
    }

    /// The number that 0 stands for, and half the distance of the bounds.
    #[must_use]
    pub fn middle_and_half(&self) -> (f64, f64) {
        (self.middle, self.half)
    }

    /// The mean in the unit of the bounds.
    #[must_use]
    pub fn mean(&self, estimate: MeanEstimate) -> MeanEstimate {
        let MeanEstimate { mean, standard_error, n } = estimate;
        MeanEstimate { mean: self.middle + self.half * mean, standard_error: self.half * standard_error, n }
    }
}

/// What reports are about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct About {
    pub(crate) labels: Option<LabelsDigest>,
    pub(crate) question: Option<Arc<str>>,
    pub(crate) period: Option<Arc<str>>,
}

impl About {
    /// Sets the question or the period.
    pub(crate) fn set(&mut self, name: &'static str, text: &str) -> Result<(), Error> {
        let (_, most) = LONGEST.into_iter().find(|known| known.0 == name).unwrap_or_default();
        let hides = |character: char| INVISIBLE.iter().any(|&(first, last)| (first..=last).contains(&character));
        if text.is_empty() || text.len() > most || text.starts_with(' ') || text.ends_with(' ') || text.contains(hides)
        {
            let allowed = format!(
                "of 1 to {most} bytes of UTF-8, without a space at either end and without characters that are not seen"
            );
            let shown: String = text.chars().take(most).collect();
            return Err(Error::parameter(name, format!("{shown:?}"), allowed));
        }
        *if name == QUESTION { &mut self.question } else { &mut self.period } = Some(text.into());
        Ok(())
    }

    /// What the fields of a specification say.
    pub(crate) fn read(fields: &Fields) -> Result<Self, Error> {
        let mut about = Self::default();
        for (name, text) in fields {
            if *name == LABELS {
                let wrong = || invalid(&format!("labels must be 32 hexadecimal digits, got {text:?}"));
                about.labels = Some(LabelsDigest::from_hex(text).ok_or_else(wrong)?);
            } else {
                about.set(name, text).map_err(|error| invalid(&error.to_string()))?;
            }
        }
        Ok(about)
    }

    /// The fields of a specification.
    pub(crate) fn fields(&self) -> Result<Fields, Error> {
        let labels = self.labels.map(|digest| digest.to_string());
        let texts =
            [(LABELS, labels.as_deref()), (PERIOD, self.period.as_deref()), (QUESTION, self.question.as_deref())];
        let mut fields = vec![];
        for (name, text) in texts {
            if let Some(text) = text {
                let mut written = String::new();
                json::write_text(&mut written, text)?;
                fields.push((name, written));
            }
        }
        Ok(fields)
    }

    /// In what another collection differs, as in "got one about other labels".
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let differs = |name: &str, own: Option<&str>, others: Option<&str>| {
            (own != others)
                .then(|| others.map_or(format!("without a {name}"), |text| format!("about another {name} ({text:?})")))
        };
        if self.labels != other.labels {
            return Some(match other.labels {
                Some(digest) => format!("about other labels ({digest})"),
                None => "without labels".into(),
            });
        }
        differs(QUESTION, self.question.as_deref(), other.question.as_deref())
            .or_else(|| differs(PERIOD, self.period.as_deref(), other.period.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::{DuchiMean, OptimizedUnaryEncoding};

    fn owned(labels: &[&str]) -> Vec<String> {
        labels.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn digests_are_of_labels_and_attributes_apart() {
        let digest =
            |attributes: &[&[&str]]| LabelsDigest::new(attributes.iter().map(|labels| owned(labels))).to_string();
        assert_eq!(digest(&[&["red", "green", "blue"]]), "a7cfed5396f96b307227eb5d7fb14c82");
        let mean = DuchiMean::new(1.0).unwrap().into();
        let bounds = LabelsDigest::new([Meaning::Bounds(-0.0, 100.0).texts(&mean).unwrap()]).to_string();
        assert_eq!(bounds, "892dd2e163a3e49ca8d716e31f8a0208");
        assert_eq!(digest(&[&["0.0", "100.0"]]), bounds);
        let attributes: [&[&[&str]]; 7] = [
            &[&["ab", "c"], &["d"]],
            &[&["a", "bc"], &["d"]],
            &[&["ab"], &["c", "d"]],
            &[&["ab", "c", "d"]],
            &[&["ab", "c", "d"], &[]],
            &[&[], &["ab", "c", "d"]],
            &[&["c", "ab"], &["d"]],
        ];
        let digests: std::collections::HashSet<_> = attributes.iter().map(|attributes| digest(attributes)).collect();
        assert_eq!(digests.len(), attributes.len());
    }

    #[test]
    fn texts_that_could_hide_something_are_refused() {
        let takes = |text: &str| ["question", "period"].map(|name| About::default().set(name, text).is_ok());
        for (first, last) in INVISIBLE {
            for character in [first, last] {
                assert_eq!(takes(&format!("a{character}b")), [false; 2], "{character:?}");
            }
            for beside in [first as u32 - u32::from(first > '\0'), last as u32 + 1].map(char::from_u32) {
                let beside = beside.filter(|&beside| !INVISIBLE.iter().any(|&(a, b)| (a..=b).contains(&beside)));
                assert_eq!(beside.map_or([true; 2], |beside| takes(&format!("a{beside}b"))), [true; 2]);
            }
        }
        for (text, expected) in [
            ("", [false; 2]),
            (" a", [false; 2]),
            ("a ", [false; 2]),
            ("a b", [true; 2]),
            (&"é".repeat(31), [true; 2]),
            (&"é".repeat(32), [true, false]),
            (&"é".repeat(127), [true, false]),
            (&"é".repeat(128), [false; 2]),
            ("\u{645}\u{6cc}\u{200c}\u{62e}", [true; 2]),
        ] {
            assert_eq!(takes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn labels_are_as_many_as_values_and_all_different() {
        let protocol = OptimizedUnaryEncoding::new(3, 1.0).unwrap().into();
        let labels = |labels: &[&str]| Meaning::Labels(owned(labels)).texts(&protocol).map(|texts| texts.len());
        assert_eq!(labels(&["a", "b", ""]), Ok(3));
        assert!(labels(&["a", "b"]).unwrap_err().to_string().contains("of 3 labels, got 2 labels"));
        assert!(labels(&["a", "b", "a"]).unwrap_err().to_string().contains("of different labels, got \"a\" twice"));
    }
}
