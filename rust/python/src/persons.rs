//! Which rows belong to which person, and which of them are kept.

use dpnoise_core::mechanisms::{codes_vartime, keep_rows_vartime, keep_rows_with_vartime};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::{buffers, hazmat, runtime};

/// 1 for each row that is kept, and else 0.
#[pyfunction]
#[pyo3(signature = (codes, count, most, rng=None))]
fn keep_rows<'py>(
    codes: &Bound<'py, PyAny>,
    count: usize,
    most: u64,
    rng: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let array = buffers::readable::<i32>(codes, "codes", "int32")?;
    let rows = buffers::slice(&array, "codes")?;
    let kept = match hazmat::given(rng)? {
        Some(mut rng) => keep_rows_with_vartime(rows, count, most, &mut *rng).map_err(to_py),
        None => runtime::detached(codes.py(), || keep_rows_vartime(rows, count, most)),
    };
    Ok(PyArray1::from_vec(codes.py(), kept?))
}

type Codes<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i64>>);

/// The code of each row, and the ids by their codes.
#[pyfunction]
fn codes<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Codes<'py>> {
    let array = buffers::readable::<i64>(ids, "ids", "int64")?;
    let rows = buffers::slice(&array, "ids")?;
    let (codes, distinct) = runtime::detached(ids.py(), || codes_vartime(rows))?;
    Ok((PyArray1::from_vec(ids.py(), codes), PyArray1::from_vec(ids.py(), distinct)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(keep_rows, module)?)?;
    module.add_function(wrap_pyfunction!(codes, module)?)
}
