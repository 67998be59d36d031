//! What mechanisms that add noise define beside the noise, and the parameters that several of them have.

use crate::arguments::{Argument, Arguments, Parameter, ParameterKind};
use crate::error::Error;

/// The facets of a mechanism. One that is missing does not compile.
pub(crate) trait NoiseKind: Sized {
    /// The name, in all languages.
    const NAME: &'static str;

    /// The parameters of [`from_arguments`](Self::from_arguments).
    const PARAMETERS: &'static [Parameter];

    /// The mechanism with these arguments.
    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error>;
}

pub(super) const EPSILON: Parameter =
    Parameter::epsilon("epsilon", "the privacy parameter of a release, positive").example(0.5);
pub(super) const DELTA: Parameter =
    Parameter::new("delta", ParameterKind::Delta, Argument::Real(0.01), "the delta of a release, between 0 and 1");
pub(super) const RHO: Parameter =
    Parameter::epsilon("rho", "the parameter of zero-concentrated privacy, in place of epsilon").or_absent();
pub(super) const SENSITIVITY: Parameter =
    Parameter::new("sensitivity", ParameterKind::Sensitivity, Argument::Real(1.0), "the most that the values change");
pub(super) const WHOLE_SENSITIVITY: Parameter =
    Parameter::integer("sensitivity", "a positive integer", 1, "the most that the integers change");
pub(super) const GRANULARITY: Parameter =
    Parameter::new("granularity", ParameterKind::Number, Argument::Real(0.25), "the step of the grid").or_absent();
pub(super) const RADIUS: Parameter =
    Parameter::integer("radius", "a positive integer up to 2**62", 20, "the largest magnitude of the noise")
        .or_absent();
pub(super) const PARTIES: Parameter =
    Parameter::integer("parties", "an integer from 1 to 2**32", 3, "how many parties add a share of the noise");
