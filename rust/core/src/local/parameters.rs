//! The parameters that several families have.

use super::spec;
use crate::arguments::{Argument, Parameter, ParameterKind};

impl Parameter {
    /// The number of values, up to [`MAX_K`](spec::MAX_K).
    pub(crate) const K: Self = Self::k("an integer from 2 to 16777216");

    /// The epsilon of a report.
    pub(crate) const EPSILON: Self =
        Self::epsilon("epsilon", "the privacy parameter of a person's report, from 2**-20 to 32");

    /// The delta of a report.
    pub(crate) const DELTA: Self = Self::new(
        "delta",
        ParameterKind::Delta,
        Argument::Real(0.01),
        "the delta of a person's report, at least 2**-64 and below 1",
    );

    pub(crate) const EPSILON_PERMANENT: Self =
        Self::epsilon("epsilon_permanent", "the privacy parameter of all reports on one value");

    pub(crate) const EPSILON_FIRST: Self =
        Self::epsilon("epsilon_first", "the privacy parameter of one report").example(1.0);

    /// The number of values, of which fewer are allowed.
    pub(crate) const fn k(allowed: &'static str) -> Self {
        Self::integer("k", allowed, 4, "how many values there are, if they are 0 to k - 1")
    }
}

const _: () = assert!(spec::MAX_K == 16_777_216, "as the text of Parameter::K says");
