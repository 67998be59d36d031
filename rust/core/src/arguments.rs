//! The parameters of protocols and of mechanisms as data, from which constructors by name, the Python package, the command
//! line and tests follow.

use crate::error::Error;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// An integer.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// One of the words of [`ParameterKind::Word`].
    Word(&'static str),
}

impl From<u64> for Argument {
    fn from(integer: u64) -> Self {
        Self::Integer(integer)
    }
}

impl From<f64> for Argument {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

/// What a parameter may be. The constructor checks its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// An integer; the text says which ones.
    Integer(&'static str),
    /// The parameter of a guarantee: a number of another type is rounded down to a double.
    Epsilon,
    /// The other parameter of a guarantee, rounded alike.
    Delta,
    /// A probability.
    Probability,
    /// A bound on how much values change: a number of another type is rounded up.
    Sensitivity,
    /// Any other number.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// What a parameter is when it is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// Nothing: it must be given.
    Required,
    /// What makes estimates the most accurate.
    MostAccurate,
    /// Nothing: it takes the place of others, or of what suits them. It is not in the example.
    Absent,
    /// This value.
    Is(Argument),
}

/// A parameter of the constructor of a protocol or a mechanism.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The name, in all languages.
    pub name: &'static str,
    /// What it may be.
    pub kind: ParameterKind,
    /// What it is when it is not given.
    pub default: DefaultValue,
    /// A value for the example that tests use.
    pub example: Argument,
    /// What it means: a phrase of one line.
    pub help: &'static str,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, kind: ParameterKind, example: Argument, help: &'static str) -> Self {
        Self { name, kind, default: DefaultValue::Required, example, help }
    }

    pub(crate) const fn epsilon(name: &'static str, help: &'static str) -> Self {
        Self::new(name, ParameterKind::Epsilon, Argument::Real(2.0), help)
    }

    pub(crate) const fn probability(name: &'static str, example: f64, help: &'static str) -> Self {
        Self::new(name, ParameterKind::Probability, Argument::Real(example), help)
    }

    pub(crate) const fn integer(name: &'static str, allowed: &'static str, example: u64, help: &'static str) -> Self {
        Self::new(name, ParameterKind::Integer(allowed), Argument::Integer(example), help)
    }

    /// The first of some words unless another one is given.
    pub(crate) const fn word(name: &'static str, words: &'static [&'static str], help: &'static str) -> Self {
        let first = Argument::Word(words[0]);
        Self { name, kind: ParameterKind::Word(words), default: DefaultValue::Is(first), example: first, help }
    }

    /// The same parameter with another number in the example.
    pub(crate) const fn example(self, example: f64) -> Self {
        Self { example: Argument::Real(example), ..self }
    }

    /// The same parameter, which is `value` unless it is given.
    pub(crate) const fn or(self, value: u64) -> Self {
        Self { default: DefaultValue::Is(Argument::Integer(value)), ..self }
    }

    /// The same parameter, which is chosen unless it is given.
    pub(crate) const fn or_most_accurate(self) -> Self {
        Self { default: DefaultValue::MostAccurate, ..self }
    }

    /// The same parameter, which may be left out, as it is in the example.
    pub(crate) const fn or_absent(self) -> Self {
        Self { default: DefaultValue::Absent, ..self }
    }

    /// What the parameter may be, for errors.
    #[must_use]
    pub fn allowed(&self) -> String {
        let allowed = match self.kind {
            ParameterKind::Integer(allowed) => allowed.into(),
            ParameterKind::Word(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or "),
            _ => "a number".into(),
        };
        if self.default == DefaultValue::MostAccurate { format!("None or {allowed}") } else { allowed }
    }
}

/// The arguments of the example that tests use.
pub(crate) fn examples(parameters: &[Parameter]) -> Vec<(&'static str, Argument)> {
    let given = parameters.iter().filter(|parameter| parameter.default != DefaultValue::Absent);
    given.map(|parameter| (parameter.name, parameter.example)).collect()
}

/// Arguments by name, for some parameters.
pub(crate) struct Arguments<'a> {
    parameters: &'static [Parameter],
    given: &'a [(&'a str, Argument)],
}

impl<'a> Arguments<'a> {
    /// The `given` arguments, each for one of the parameters.
    pub(crate) fn new(parameters: &'static [Parameter], given: &'a [(&'a str, Argument)]) -> Result<Self, Error> {
        let is_wrong = |&(at, (name, _)): &(usize, &(&str, Argument))| {
            !parameters.iter().any(|parameter| parameter.name == *name) || given[..at].iter().any(|one| one.0 == *name)
        };
        let Some((_, (name, _))) = given.iter().enumerate().find(is_wrong) else {
            return Ok(Self { parameters, given });
        };
        let known = parameters.iter().map(|parameter| parameter.name).collect::<Vec<_>>();
        Err(Error::parameter("parameters", name, format!("{}, once", known.join(", "))))
    }

    pub(crate) fn integer(&self, name: &'static str) -> Result<u64, Error> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    /// An integer that is chosen when it is not given.
    pub(crate) fn optional(&self, name: &'static str) -> Result<Option<u64>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Argument::Integer(integer)) => Ok(Some(integer)),
            Some(other) => Err(of_another_kind(name, other, "an integer")),
        }
    }

    pub(crate) fn real(&self, name: &'static str) -> Result<f64, Error> {
        self.optional_real(name)?.ok_or_else(|| missing(name))
    }

    /// A real number that need not be given.
    pub(crate) fn optional_real(&self, name: &'static str) -> Result<Option<f64>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Argument::Real(real)) => Ok(Some(real)),
            Some(other) => Err(of_another_kind(name, other, "a real number")),
        }
    }

    pub(crate) fn word(&self, name: &'static str) -> Result<&'static str, Error> {
        match self.value(name) {
            Some(Argument::Word(word)) => Ok(word),
            Some(other) => Err(of_another_kind(name, other, "a word")),
            None => Err(missing(name)),
        }
    }

    fn value(&self, name: &'static str) -> Option<Argument> {
        let given = self.given.iter().find(|given| given.0 == name).map(|given| given.1);
        given.or_else(|| match self.parameters.iter().find(|parameter| parameter.name == name)?.default {
            DefaultValue::Is(value) => Some(value),
            DefaultValue::Required | DefaultValue::MostAccurate | DefaultValue::Absent => None,
        })
    }

    /// Checks that a parameter is left out where another one takes its place.
    pub(crate) fn without(&self, name: &'static str, other: &str) -> Result<(), Error> {
        self.value(name)
            .map_or(Ok(()), |_| Err(Error::parameter(name, "both", format!("left out where {other} is given"))))
    }
}

fn missing(name: &'static str) -> Error {
    Error::parameter(name, "nothing", "given")
}

fn of_another_kind(name: &'static str, found: Argument, allowed: &str) -> Error {
    Error::parameter(name, format!("{found:?}"), allowed)
}
