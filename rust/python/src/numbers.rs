//! Exact numbers from Python's ints, floats and Fractions.

use dpnoise_core::Error;
use dpnoise_core::params::{Ratio, RealScale, Scale};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::errors::to_py;

/// The exact value of the scale called `name`: an int, a float, a Fraction, or a NumPy number.
pub(crate) fn scale(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Scale> {
    exact(value, name, Scale::ALLOWED, Ratio::from_f64, |ratio| Scale::new(ratio).ok())
}

/// The same for noise over the real numbers.
pub(crate) fn real_scale(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<RealScale> {
    exact(value, name, RealScale::ALLOWED, RealScale::from_f64, Some)
}

fn exact<N: From<Ratio>, T>(
    value: &Bound<'_, PyAny>,
    name: &'static str,
    allowed: &str,
    from_f64: impl Fn(f64) -> Option<N>,
    check: impl Fn(N) -> Option<T>,
) -> PyResult<T> {
    if let Ok(float) = value.cast::<PyFloat>() {
        let float: f64 = float.extract()?;
        let checked = from_f64(float).and_then(check);
        return checked.ok_or_else(|| to_py(Error::parameter(name, format!("{float:?}"), allowed)));
    }
    let ratio = if value.is_instance_of::<PyBool>() { None } else { integer_ratio(value) };
    let Some((numerator, denominator)) = ratio else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{name} must be an int, float or Fraction, got {kind}")));
    };
    // Negative and overlong parts do not convert.
    let parts = numerator.extract::<u128>().ok().zip(denominator.extract::<u128>().ok());
    let ratio = parts.and_then(|(numerator, denominator)| Ratio::new(numerator, denominator));
    ratio.and_then(|ratio| check(ratio.into())).ok_or_else(|| to_py(Error::parameter(name, value, allowed)))
}

/// The two ints of `value.as_integer_ratio()`.
fn integer_ratio<'py>(value: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    exactly(value).call_method0("as_integer_ratio").ok()?.extract().ok()
}

/// The integer called `name`, which fits its type when it is `allowed`.
pub(crate) fn integer<T>(value: &Bound<'_, PyAny>, name: &'static str, allowed: &str) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    if value.is_instance_of::<PyBool>() || !value.hasattr("__index__")? {
        return Err(PyTypeError::new_err(format!("{name} must be an int, got {}", value.get_type().name()?)));
    }
    value.extract().map_err(|_| to_py(Error::parameter(name, value, allowed)))
}

/// The probability called `name` as a double, which must be its exact value; the caller checks its range.
pub(crate) fn probability(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<f64> {
    let float = real(value, name)?;
    if float.is_nan() || exactly(value).eq(float)? {
        return Ok(float);
    }
    Err(to_py(Error::parameter(name, value, "a number that a float holds exactly")))
}

/// The parameter called `name` as the largest double that is no larger, nor is the decimal number that Python prints for
/// it, as which ledgers read it: promises are rounded down.
pub(crate) fn real_down(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<f64> {
    let mut nearest = real(value, name)?;
    let exact = exactly(value);
    // A value that cannot be compared with a number is refused by the check of its range.
    if exact.eq(nearest).unwrap_or(true) {
        return Ok(nearest);
    }
    let fraction = value.py().import("fractions")?.getattr("Fraction")?;
    let printed = |double: f64| fraction.call1((PyFloat::new(value.py(), double).repr()?,));
    while nearest.is_finite() && (exact.lt(nearest).unwrap_or(false) || exact.lt(printed(nearest)?).unwrap_or(false)) {
        nearest = nearest.next_down();
    }
    Ok(nearest)
}

/// The parameter called `name` as the smallest double that is no smaller: bounds are rounded up.
pub(crate) fn real_up(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<f64> {
    let nearest = real(value, name)?;
    Ok(if exactly(value).gt(nearest).unwrap_or(false) { nearest.next_up() } else { nearest })
}

/// The value, or an int in place of an integer of NumPy's: that becomes a float before it is compared with one, and has no
/// `as_integer_ratio`.
fn exactly<'py>(value: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let whole = if value.is_instance_of::<PyFloat>() { None } else { value.call_method0("__index__").ok() };
    whole.unwrap_or_else(|| value.clone())
}

/// The parameter called `name` as the nearest double; the caller checks its range.
pub(crate) fn real(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<f64> {
    if let Ok(float) = value.cast::<PyFloat>() {
        return float.extract();
    }
    let refused = || {
        // NumPy's complex numbers convert to floats, with a warning; booleans of Python and NumPy are no numbers here.
        let numpy = value.py().import("numpy")?;
        PyResult::Ok(
            value.is_instance_of::<PyBool>()
                || value.is_instance(&numpy.getattr("complexfloating")?)?
                || value.is_instance(&numpy.getattr("bool_")?)?,
        )
    };
    if value.is_exact_instance_of::<PyInt>() || !refused()? {
        match value.extract() {
            Ok(float) => return Ok(float),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let found = "an integer beyond the largest float";
                return Err(to_py(Error::parameter(name, found, "in the range of a float")));
            }
            Err(_) => {}
        }
    }
    Err(PyTypeError::new_err(format!("{name} must be a number, got {}", value.get_type().name()?)))
}

/// The same, where a value need not be given.
pub(crate) fn optional(value: Option<&Bound<'_, PyAny>>, name: &'static str) -> PyResult<Option<f64>> {
    value.map(|value| real(value, name)).transpose()
}
