//! JSON as specifications have it, an object whose fields are numbers and texts; and as documents have it, which other
//! programs may write again.
//!
//! Whether a specification is in the one canonical form is checked by writing it again, so the reader need not be strict
//! about zeros, order and white space. It reads less than JSON, and small clients need no more.

use core::fmt;
use core::str::Chars;

use dpnoise_kernels::memory::OutOfMemory;

pub(crate) const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// A value that is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(u64),
    Real(f64),
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

/// Doubles are written as the shortest decimal that reads back as the same double, with a point or an exponent. Where two
/// are the shortest, as for 1 + 2^-17, the last digit is even: the standard library chooses the other one.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) => f.write_str(zmij::Buffer::new().format(value)),
        }
    }
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item<'a> {
    /// A finite number, as it was written.
    Number(&'a str),
    Text(String),
}

/// The fields of an object in their order, or what is wrong with it.
pub(crate) fn fields(text: &str) -> Result<Vec<(&str, Item<'_>)>, &'static str> {
    let mut reader = Reader(text);
    if !reader.takes('{') {
        return Err("it does not begin with {");
    }
    let mut fields = vec![];
    loop {
        let name = reader.text().ok_or("a name in quotation marks is missing")?;
        if !reader.takes(':') {
            return Err("a colon is missing");
        }
        let item = reader.escaped_text().map(Item::Text).or_else(|| reader.number().map(Item::Number));
        fields.push((name, item.ok_or("a value is neither a number nor a text")?));
        if reader.takes('}') {
            break;
        }
        if !reader.takes(',') {
            return Err("a comma or } is missing");
        }
    }
    reader.skip_space();
    if reader.0.is_empty() { Ok(fields) } else { Err("trailing characters") }
}

/// What a specification of several attributes has.
pub(crate) struct Several<'a> {
    /// Names and specifications.
    pub(crate) attributes: Vec<(String, String)>,
    /// What it is about: these fields and their texts.
    pub(crate) about: Vec<(&'static str, String)>,
    pub(crate) protocol: &'a str,
    pub(crate) version: u64,
}

/// The fields of a specification of at most so many attributes, with texts as these further fields, or what it should
/// have been.
pub(crate) fn several<'a>(text: &'a str, most: usize, known: &[&'static str]) -> Result<Several<'a>, &'static str> {
    let mut reader = Reader(text);
    let mut read = || {
        reader.takes('{').then_some(())?;
        reader.is_named("attributes")?;
        reader.takes('[').then_some(())?;
        let mut attributes = vec![];
        loop {
            reader.takes('[').then_some(())?;
            let name = reader.escaped_text()?;
            reader.takes(',').then_some(())?;
            attributes.push((name, reader.escaped_text()?));
            (attributes.len() <= most).then_some(())?;
            reader.takes(']').then_some(())?;
            if reader.takes(']') {
                break;
            }
            reader.takes(',').then_some(())?;
        }
        let (mut about, mut protocol) = (vec![], None);
        let version = loop {
            reader.takes(',').then_some(())?;
            match reader.text()? {
                "version" => break reader.takes(':').then(|| reader.number())??.parse().ok()?,
                "protocol" => protocol = Some(reader.takes(':').then(|| reader.text())??),
                name => {
                    let &known = known.iter().find(|&&known| known == name)?;
                    about.push((known, reader.takes(':').then(|| reader.escaped_text())??));
                }
            }
        };
        reader.takes('}').then_some(())?;
        reader.skip_space();
        reader.0.is_empty().then_some(Several { attributes, about, protocol: protocol?, version })
    };
    read().ok_or("an object of at most 256 pairs of texts as its \"attributes\", a \"protocol\" and a \"version\"")
}

/// A document: a value that other programs may write in any form of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Why a text is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Form(&'static str),
    Memory,
}

impl From<OutOfMemory> for Problem {
    fn from(_: OutOfMemory) -> Self {
        Self::Memory
    }
}

/// A document of texts and numbers in objects and lists, three of them in one another at most.
pub(crate) fn document(text: &str) -> Result<Json, Problem> {
    let mut reader = Reader(text);
    let read = reader.value(3)?;
    reader.skip_space();
    if reader.0.is_empty() { Ok(read) } else { Err(Problem::Form("trailing characters")) }
}

/// Appends a text in quotation marks, in ASCII.
pub(crate) fn write_text(json: &mut String, text: &str) -> Result<(), OutOfMemory> {
    // The longest form of a byte is \u and four digits; that of a character of four bytes is two of these.
    json.try_reserve(2 + 6 * text.len()).map_err(|_| OutOfMemory)?;
    json.push('"');
    for character in text.chars() {
        match ESCAPES.iter().find(|&&(_, escaped)| escaped == character) {
            Some(&(letter, _)) => json.extend(['\\', letter]),
            None if (' '..='~').contains(&character) => json.push(character),
            None => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    json.push_str("\\u");
                    json.extend([12, 8, 4, 0].map(|bit| DIGITS[usize::from(*unit >> bit & 15)]));
                }
            }
        }
    }
    json.push('"');
    Ok(())
}

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Characters that are a letter behind a backslash.
const ESCAPES: [(char, char); 7] =
    [('"', '"'), ('\\', '\\'), ('b', '\x08'), ('f', '\x0c'), ('n', '\n'), ('r', '\r'), ('t', '\t')];

/// What has not been read yet.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(SPACE);
    }

    /// Reads this character, if it comes next.
    fn takes(&mut self, character: char) -> bool {
        self.skip_space();
        let rest = self.0.strip_prefix(character);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn text(&mut self) -> Option<&'a str> {
        self.skip_space();
        let rest = self.0.strip_prefix('"')?;
        let (text, rest) =
            rest.split_at(rest.find(|character| character == '"' || character == '\\' || character < ' ')?);
        self.0 = rest.strip_prefix('"')?;
        Some(text)
    }

    /// Reads a value with at most so many objects and lists in one another.
    fn value(&mut self, depth: u32) -> Result<Json, Problem> {
        self.skip_space();
        if depth == 0 && self.0.starts_with(['{', '[']) {
            return Err(Problem::Form("it has too many objects and lists in one another"));
        }
        if self.takes('{') {
            return self
                .items('}', |reader| {
                    let name = reader.document_text()?;
                    let colon = reader.takes(':').then_some(()).ok_or(Problem::Form("a colon is missing"));
                    colon.and_then(|()| Ok((name, reader.value(depth - 1)?)))
                })
                .map(Json::Object);
        }
        if self.takes('[') {
            return self.items(']', |reader| reader.value(depth - 1)).map(Json::List);
        }
        match self.number() {
            Some(number) => number.parse().map(Json::Number).map_err(|_| Problem::Form("a number is missing")),
            None => self.document_text().map(Json::Text),
        }
    }

    /// Reads what stands between commas up to this end.
    fn items<T>(&mut self, end: char, read: impl Fn(&mut Self) -> Result<T, Problem>) -> Result<Vec<T>, Problem> {
        let mut items = vec![];
        while !self.takes(end) {
            if !items.is_empty() && !self.takes(',') {
                return Err(Problem::Form("a comma or an end is missing"));
            }
            items.try_reserve(1).map_err(|_| OutOfMemory)?;
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// Reads a text of any length.
    fn document_text(&mut self) -> Result<String, Problem> {
        let mut text = String::new();
        text.try_reserve_exact(self.length()).map_err(|_| OutOfMemory)?;
        let read = self.unescape(&mut text);
        read.map(|()| text).ok_or(Problem::Form("a value is neither a text, a number, a list nor an object"))
    }

    /// The bytes up to the next quotation mark that no backslash escapes: the text in front of it is no longer.
    fn length(&mut self) -> usize {
        self.skip_space();
        let mut escaped = false;
        let text = self.0.bytes().skip(1).take_while(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            !ends
        });
        text.count()
    }

    /// Reads this name and a colon.
    fn is_named(&mut self, name: &str) -> Option<()> {
        (self.text()? == name && self.takes(':')).then_some(())
    }

    /// Reads a text in which characters may be escaped.
    fn escaped_text(&mut self) -> Option<String> {
        let mut text = String::new();
        self.unescape(&mut text).map(|()| text)
    }

    /// Reads such a text to the end of another one.
    fn unescape(&mut self, text: &mut String) -> Option<()> {
        self.skip_space();
        let mut rest = self.0.strip_prefix('"')?.chars();
        loop {
            match rest.next()? {
                '"' => break,
                '\\' => match rest.next()? {
                    'u' => text.push(escaped(&mut rest)?),
                    '/' => text.push('/'), // which is never written like that
                    letter => text.push(ESCAPES.iter().find(|escape| escape.0 == letter)?.1),
                },
                '\0'..' ' => return None,
                character => text.push(character),
            }
        }
        self.0 = rest.as_str();
        Some(())
    }

    fn number(&mut self) -> Option<&'a str> {
        let is_part = |character: char| character.is_ascii_digit() || "+-.eE".contains(character);
        let (number, rest) = self.0.split_at(self.0.find(|character| !is_part(character)).unwrap_or(self.0.len()));
        self.0 = rest;
        let is_finite = number.parse().is_ok_and(f64::is_finite);
        (is_finite && !number.starts_with(['+', '.'])).then_some(number)
    }
}

/// Reads what follows \u: a character, or the first half of one and the second.
fn escaped(rest: &mut Chars<'_>) -> Option<char> {
    let first = unit(rest)?;
    let second = if (0xd800..0xdc00).contains(&first) {
        (rest.next()? == '\\' && rest.next()? == 'u').then_some(())?;
        Some(unit(rest)?)
    } else {
        None
    };
    char::decode_utf16([first].into_iter().chain(second)).next()?.ok()
}

/// Reads four hexadecimal digits.
fn unit(rest: &mut Chars<'_>) -> Option<u16> {
    let (digits, after) = rest.as_str().split_at_checked(4)?;
    *rest = after.chars();
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, RngExt};

    use super::*;

    #[test]
    fn doubles_are_written_as_serde_json_writes_them() {
        let mut rng = rand::rng();
        let powers = (-330..=308).flat_map(|power| [format!("1e{power}"), format!("9.999e{power}")]);
        let edges = powers.map(|power| power.parse().unwrap()).flat_map(|value: f64| {
            [value, -value, f64::from_bits(value.to_bits() + 1), f64::from_bits(value.to_bits().saturating_sub(1))]
        });
        let dyadic = (1..32u32).flat_map(|bits| (0..100).map(move |n| 1.0 + f64::from(n) / f64::from(bits).exp2()));
        let some: Vec<f64> = (0..100_000)
            .flat_map(|_| {
                let decimal = rng.random_range(0..100_000);
                [f64::from_bits(rng.next_u64()), rng.random::<f64>() / 1e3, f64::from(decimal) / 1e7]
            })
            .collect();
        assert_eq!(Value::Real(1.0 + (-17f64).exp2()).to_string(), "1.0000076293945312");
        for value in edges.chain(dyadic).chain(some).filter(|value| value.is_finite()) {
            let written = Value::Real(value).to_string();
            assert_eq!(written, serde_json::to_string(&value).unwrap());
            assert_eq!(written.parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }

    #[test]
    fn what_is_read_is_what_serde_json_reads() {
        for text in [
            r#"{"a":1,"b":"x y","é":-2.5e-3}"#,
            "\r\n { \"a\" :\t1 , \"a\" : \"\" } \n",
            r#"{"a":1E5,"":0.0}"#,
            r#"{"a":"\u0041\/\"\\\ud83d\ude00"}"#,
        ] {
            let read = fields(text).unwrap();
            let expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
            for (name, value) in &expected {
                let (_, item) = read.iter().rev().find(|field| field.0 == name).unwrap();
                match item {
                    Item::Text(text) => assert_eq!(Some(text.as_str()), value.as_str()),
                    Item::Number(number) => assert_eq!(number.parse::<f64>().ok(), value.as_f64()),
                }
            }
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        let value = "a value is neither a number nor a text";
        for (text, problem) in [
            ("", "it does not begin with {"),
            ("[]", "it does not begin with {"),
            ("{", "a name in quotation marks is missing"),
            ("{}", "a name in quotation marks is missing"),
            ("{a:1}", "a name in quotation marks is missing"),
            ("{\"a", "a name in quotation marks is missing"),
            ("{\"a\\n\":1}", "a name in quotation marks is missing"),
            ("{\"a\n\":1}", "a name in quotation marks is missing"),
            ("{\"a\"", "a colon is missing"),
            ("{\"a\":", value),
            ("{\"a\":\"x", value),
            ("{\"a\":\"\\x41\"}", value),
            ("{\"a\":\"\\ud800\"}", value),
            ("{\"a\":\"\n\"}", value),
            ("{\"a\":[1]}", value),
            ("{\"a\":{}}", value),
            ("{\"a\":true}", value),
            ("{\"a\":null}", value),
            ("{\"a\":+1}", value),
            ("{\"a\":.5}", value),
            ("{\"a\":-}", value),
            ("{\"a\":1e}", value),
            ("{\"a\":1-1}", value),
            ("{\"a\":1e999}", value),
            ("{\"a\":NaN}", value),
            ("{\"a\":inf}", value),
            ("{\"a\":1", "a comma or } is missing"),
            ("{\"a\":1 2}", "a comma or } is missing"),
            ("{\"a\":0x1}", "a comma or } is missing"),
            ("{\"a\":1,}", "a name in quotation marks is missing"),
            ("{\"a\":1}}", "trailing characters"),
            ("{\"a\":1} é", "trailing characters"),
        ] {
            assert_eq!(fields(text).unwrap_err(), problem, "{text}");
        }
    }

    #[test]
    fn documents_are_read_as_serde_json_reads_them() {
        fn plain(read: Json) -> serde_json::Value {
            match read {
                Json::Number(number) => number.into(),
                Json::Text(text) => text.into(),
                Json::List(items) => items.into_iter().map(plain).collect(),
                Json::Object(fields) => fields.into_iter().map(|(name, value)| (name, plain(value))).collect(),
            }
        }
        let right =
            [r#"{ "a" : ["\"é\u00e9\/\n", "", []] , "b":{"c":["x"],"d":{}}}"#, "[1.5, 2e1]", "\"\"", "-1e3", " {} "];
        for text in right {
            let expected: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(plain(document(text).unwrap()), expected, "{text}");
        }
        for i in 0..right[0].len() {
            for other in ["", ",", "\"", "\\", "}", "]", "\n", "["] {
                let (Some(before), Some(after)) = (right[0].get(..i), right[0].get(i + 1..)) else { continue };
                let changed = format!("{before}{other}{after}");
                if let Ok(read) = document(&changed) {
                    assert_eq!(Some(plain(read)), serde_json::from_str(&changed).ok(), "{changed}");
                }
            }
        }
        for (text, problem) in [
            ("", "a value is neither a text, a number, a list nor an object"),
            ("[[[[]]]]", "it has too many objects and lists in one another"),
            ("[1 2]", "a comma or an end is missing"),
            ("[1,]", "a value is neither a text, a number, a list nor an object"),
            ("{\"a\"}", "a colon is missing"),
            ("[] x", "trailing characters"),
        ] {
            assert_eq!(document(text), Err(Problem::Form(problem)), "{text}");
        }
    }
}
