//! Columns of Python objects, read where they are: no code of their classes runs meanwhile. Times and addresses depend on them.
//!
//! The arrays have an object in each place, and nothing writes to them during a call: the GIL is held, and where there is none
//! the caller has made a copy.

use std::collections::{HashMap, HashSet};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PySet, PyString};

/// What is known of the addresses that were seen last: there are few types, and equal texts come as few objects or in runs.
struct Recent<T>(Vec<(usize, T)>);

impl<T: Copy + Default> Recent<T> {
    /// As many entries as the column has rows, but no more than fit in a cache.
    fn new(rows: usize) -> Self {
        Self(vec![(0, T::default()); rows.next_power_of_two().min(1 << 15)])
    }

    /// The entry that an address shares with few others; its own address is 0 at first.
    fn entry(&mut self, address: usize) -> &mut (usize, T) {
        let last = self.0.len() - 1;
        &mut self.0[(address >> 4 ^ address >> 19) & last]
    }
}

type Objects<'py> = PyReadonlyArray1<'py, Py<PyAny>>;

type CodedTexts<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyList>);

/// The types of the objects.
#[pyfunction]
fn kinds<'py>(py: Python<'py>, objects: Objects<'py>) -> PyResult<Bound<'py, PySet>> {
    let objects = objects.as_array();
    let (mut recent, mut seen, mut found) = (Recent::<()>::new(objects.len().min(1 << 10)), HashSet::new(), vec![]);
    for object in objects {
        let object = object.bind(py);
        let address = object.get_type_ptr() as usize;
        let entry = recent.entry(address);
        if entry.0 != address {
            entry.0 = address;
            if seen.insert(address) {
                found.push(object.get_type());
            }
        }
    }
    PySet::new(py, found)
}

/// Which objects are neither `None`, `False` nor NaN, as 0 and 1; `None` where there is one of another type than texts, numbers
/// and booleans of Python itself.
#[pyfunction]
fn present<'py>(py: Python<'py>, objects: Objects<'py>) -> Option<Bound<'py, PyArray1<u8>>> {
    let objects = objects.as_array();
    let mut found = Vec::with_capacity(objects.len());
    for object in objects {
        let object = object.bind(py);
        let is_present = if object.is_exact_instance_of::<PyString>() || object.is_exact_instance_of::<PyInt>() {
            true
        } else if let Ok(float) = object.cast_exact::<PyFloat>() {
            !float.value().is_nan()
        } else if let Ok(truth) = object.cast_exact::<PyBool>() {
            truth.is_true()
        } else if object.is_none() {
            false
        } else {
            return None;
        };
        found.push(u8::from(is_present));
    }
    Some(PyArray1::from_vec(py, found))
}

/// The code of each text, from 0 on in the order of first rows, or -1 for `None` and NaN; and the texts in this order. `None`
/// where there is an object of another type than `str` itself, or a text that UTF-8 cannot hold, or 2^31 rows.
///
/// The hashes have a random key, since the texts may be a stranger's.
#[pyfunction]
fn code_texts<'py>(py: Python<'py>, objects: Objects<'py>) -> PyResult<Option<CodedTexts<'py>>> {
    let objects = objects.as_array();
    if i32::try_from(objects.len()).is_err() {
        return Ok(None);
    }
    let (mut recent, mut known) = (Recent::<i32>::new(objects.len()), HashMap::new());
    let (mut codes, mut texts) = (Vec::with_capacity(objects.len()), vec![]);
    for object in objects {
        let object = object.bind(py);
        let address = object.as_ptr() as usize;
        let entry = recent.entry(address);
        if entry.0 != address {
            let Ok(text) = object.cast_exact::<PyString>() else {
                if object.is_none() || object.cast_exact::<PyFloat>().is_ok_and(|float| float.value().is_nan()) {
                    codes.push(-1);
                    continue;
                }
                return Ok(None);
            };
            let Ok(key) = text.to_str() else { return Ok(None) };
            let code = *known.entry(key).or_insert_with(|| {
                texts.push(text.clone());
                texts.len() as i32 - 1
            });
            *entry = (address, code);
        }
        codes.push(entry.1);
    }
    // Making a list may run the garbage collector, and so any code: no object is used from here on but those held.
    Ok(Some((PyArray1::from_vec(py, codes), PyList::new(py, texts)?)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(present, module)?)?;
    module.add_function(wrap_pyfunction!(code_texts, module)?)
}
