//! The arguments of protocols and of mechanisms, by name.

use dpnoise_core::Error;
use dpnoise_core::arguments::{Argument, DefaultValue, Parameter, ParameterKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString};

use crate::errors::to_py;
use crate::numbers::{integer, real, real_down, real_up};

/// The arguments that `kind` of these parameters is made from; None is for what need not be given.
pub(crate) fn given(
    kind: &str,
    parameters: &[Parameter],
    arguments: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(&'static str, Argument)>> {
    let mut given = vec![];
    for (name, value) in arguments.into_iter().flatten() {
        let name: PyBackedStr = name.extract()?;
        let known = parameters.iter().find(|parameter| parameter.name == &*name);
        let parameter = known.ok_or_else(|| PyTypeError::new_err(format!("{kind} takes no {name}")))?;
        if !(value.is_none() && matches!(parameter.default, DefaultValue::MostAccurate | DefaultValue::Absent)) {
            given.push((parameter.name, argument(&value, parameter)?));
        }
    }
    Ok(given)
}

fn argument(value: &Bound<'_, PyAny>, parameter: &Parameter) -> PyResult<Argument> {
    let name = parameter.name;
    Ok(match parameter.kind {
        ParameterKind::Integer(_) => Argument::Integer(integer(value, name, &parameter.allowed())?),
        ParameterKind::Epsilon | ParameterKind::Delta => Argument::Real(real_down(value, name)?),
        ParameterKind::Sensitivity => Argument::Real(real_up(value, name)?),
        ParameterKind::Probability | ParameterKind::Number => Argument::Real(real(value, name)?),
        ParameterKind::Word(words) => {
            let Ok(text) = value.cast::<PyString>() else {
                return Err(PyTypeError::new_err(format!("{name} must be a str, got {}", value.get_type().name()?)));
            };
            let given = text.to_string_lossy();
            let refused = || to_py(Error::parameter(name, format!("{:?}", &*given), parameter.allowed()));
            Argument::Word(words.iter().find(|&&word| word == &*given).ok_or_else(refused)?)
        }
    })
}

/// An [`Argument`] in Python.
#[derive(IntoPyObject)]
pub(crate) enum Value {
    Integer(u64),
    Real(f64),
    Word(&'static str),
}

impl From<Argument> for Value {
    fn from(argument: Argument) -> Self {
        match argument {
            Argument::Integer(integer) => Self::Integer(integer),
            Argument::Real(real) => Self::Real(real),
            Argument::Word(word) => Self::Word(word),
        }
    }
}
