"""Columns of any library as NumPy arrays."""

from __future__ import annotations

import numbers
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._native import ParameterError

_KINDS: Final = "NumPy array, list, pandas or polars series, or Arrow array"


def floats(column: Any) -> NDArray[np.float64]:
    """Copy a column of numbers to a new array; missing values are NaN. No message may show a value."""
    array = _array(column)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)  # a copy, always
    if array.dtype.kind != "O" or not all(_is_missing(item) or isinstance(item, numbers.Real) for item in array):
        raise TypeError(f"column must be of real numbers, got {_described(array)}")
    return np.array([np.nan if _is_missing(item) else float(item) for item in array], np.float64)


def truths(column: Any) -> NDArray[np.bool_]:
    """Say of every row whether it counts: whether it is true, or, where the column is no condition, is not missing."""
    array = _array(column)
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind in "iuSU":
        return np.ones(array.shape, np.bool_)
    if array.dtype.kind == "f":
        missing: NDArray[np.bool_] = np.isnan(array)
        return ~missing
    present = [item for item in array if not _is_missing(item)]
    condition = bool(present) and all(isinstance(item, bool | np.bool_) for item in present)
    return np.array([not _is_missing(item) and (bool(item) or not condition) for item in array], np.bool_)


def keys(column: Any) -> NDArray[Any]:
    """Give the values of a column that are not missing, all texts, all numbers or all booleans."""
    array = _array(column)
    if array.dtype.kind == "f":
        array = array[~np.isnan(array)]
    if array.dtype.kind in "biufSU":
        return array
    present = [item for item in array if not _is_missing(item)]
    for kind in (str, bytes, bool | np.bool_, numbers.Real):
        if all(isinstance(item, kind) for item in present):
            return np.array(present) if present else np.array([], np.str_)
    raise TypeError(f"column must be of texts, of numbers or of booleans, got {_described(array)}")


def _array(column: Any) -> NDArray[Any]:
    array: NDArray[Any]
    if isinstance(column, np.ma.MaskedArray):
        array = column.data.astype(object)
        array[np.ma.getmaskarray(column)] = None
    elif isinstance(column, np.ndarray | list | tuple):
        array = _of_list(column)
    elif hasattr(column, "to_numpy"):  # pandas, polars and pyarrow
        array = _by_to_numpy(column)
    elif hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
        array = _by_to_numpy(_pyarrow_array(column))
    else:
        raise TypeError(f"column must be a {_KINDS}, got {type(column).__name__}")
    if array.ndim != 1:
        raise ParameterError(f"column must have one dimension, got {array.ndim}")
    return array


def _of_list(column: Any) -> NDArray[Any]:
    try:
        array = np.asarray(column)
        if array.dtype.kind in "SUO" and isinstance(column, list | tuple):
            # NumPy makes texts of numbers that stand beside texts, and of None.
            array = np.empty(len(column), object)
            array[:] = column
    except ValueError:
        raise ParameterError("column must have one dimension, got sequences of different lengths") from None
    return array


def _by_to_numpy(column: Any) -> NDArray[Any]:
    module = type(column).__module__.partition(".")[0]
    options = {"zero_copy_only": False} if module == "pyarrow" and not hasattr(column, "chunks") else {}
    return np.asarray(column.to_numpy(**options))


def _pyarrow_array(column: Any) -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ImportError("Arrow data need pyarrow: pip install 'dpnoise[arrow]'") from error
    return pyarrow.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pyarrow.array(column)


def _is_missing(item: Any) -> bool:
    return item is None or type(item).__name__ in ("NAType", "NaTType") or (isinstance(item, float) and item != item)


def _described(array: NDArray[Any]) -> str:
    if array.dtype.kind != "O":
        return f"dtype {array.dtype}"
    return " and ".join(sorted({type(item).__name__ for item in array}))
