//! The one error type of the crate.
//!
//! A message names the parameter, the offending *public* value and the allowed range. Private data never appear in a
//! message: [`Error::Data`] says what is wrong, not which value it was.

use core::fmt;

use dpnoise_kernels::memory::OutOfMemory;

/// An error of the crate. Nothing has been released when one is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A public parameter is outside its range.
    Parameter {
        /// The parameter's name, as the user wrote it.
        parameter: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// Private input cannot be used. The message must not depend on anything else of the data.
    Data {
        /// The argument's name.
        argument: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A serialised state or specification is damaged or of another kind.
    State(String),
    /// An object with a limited number of uses has none left.
    Halted(String),
    /// The source of random words failed or is exhausted.
    Randomness(String),
    /// There is not enough memory. The message does not say for how much: that may follow from the number of rows.
    Allocation,
    /// The caller ended a long call.
    Interrupted,
}

impl Error {
    /// A public parameter `parameter` had `value`, where `allowed` was expected.
    pub fn parameter(parameter: &'static str, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self::Parameter { parameter, value: value.to_string(), allowed: allowed.into() }
    }

    /// The same error of a parameter that the user knows as `parameter`.
    #[must_use]
    pub fn of(self, parameter: &'static str) -> Self {
        match self {
            Self::Parameter { value, allowed, .. } => Self::Parameter { parameter, value, allowed },
            error => error,
        }
    }

    /// The private argument `argument` cannot be used because of `problem`.
    pub fn data(argument: &'static str, problem: impl Into<String>) -> Self {
        Self::Data { argument, problem: problem.into() }
    }

    /// The random source failed with `cause`.
    pub fn randomness(cause: impl ToString) -> Self {
        Self::Randomness(cause.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { parameter, value, allowed } => write!(f, "{parameter} must be {allowed}, got {value}"),
            Self::Data { argument, problem } => write!(f, "{argument} {problem}"),
            Self::State(problem) | Self::Halted(problem) => f.write_str(problem),
            Self::Randomness(cause) => write!(f, "the source of randomness failed, nothing was released: {cause}"),
            Self::Allocation => f.write_str("there is not enough memory, and nothing was released"),
            Self::Interrupted => f.write_str("interrupted, and nothing was released"),
        }
    }
}

impl core::error::Error for Error {}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::Allocation
    }
}
