"""Columns of any library as NumPy arrays."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import array_from, arrow_column, is_foreign, library_of, require_pyarrow

_COLUMNS: Final = "NumPy array, list, pandas or polars series, Arrow array or tensor"

_MIXED: Final = "must be of texts, of numbers or of booleans, got"

_KINDS: Final[dict[str, Any]] = {
    "texts": str,
    "bytes": bytes,
    "booleans": (bool, np.bool_),
    "numbers": numbers.Real,
}


def floats(column: Any, name: str = "column") -> NDArray[np.float64]:
    """Copy a column of numbers to a new array; missing values are NaN. No message may show a value."""
    array = array_of(column, name)
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # of what is wider than a double, and of signalling NaN
            return array.astype(np.float64)  # a copy, always
    if array.dtype.kind == "O" and set(map(type, array)) <= {int, float, bool, type(None)}:
        with suppress(OverflowError):
            return array.astype(np.float64)  # the same as below, in a fraction of the time
    # An exception from a user's class might show a value.
    with suppress(Exception), np.errstate(all="ignore"):
        if array.dtype.kind == "O" and all(is_missing(item) or _is_real(item) for item in array):
            return np.fromiter(map(to_float, array), np.float64, len(array))
    raise TypeError(f"{name} must be of real numbers, got {_described(array)}")


def truths(column: Any, name: str = "column") -> NDArray[np.bool_]:
    """Say whether each row is neither false nor missing, independently of the other rows."""
    array = array_of(column, name)
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind in "iuSU":
        return np.ones(array.shape, np.bool_)
    if array.dtype.kind in "fmM":
        missing: NDArray[np.bool_] = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
        return ~missing
    return np.fromiter((not is_missing(item) and not _is_false(item) for item in array), np.bool_, len(array))


def counts(column: Any, name: str = "column") -> dict[Any, int]:
    """Count each value that is not missing; all must be texts, all numbers or all booleans.

    An integral value becomes an int, for every type: a single row can turn all integers of a data frame or of an array
    into floats, and the result must not reveal that. For the same reason missing values and types are checked row by
    row.
    """
    present = _counted_by_library(column, name)
    if present is None:
        array = array_of(column, name, missing=False)
        if array.dtype.kind in "biufSU":
            if array.dtype.kind == "f":
                array = array[~np.isnan(array)]
            values, times = np.unique(array, return_counts=True)
            return _total(zip(values.tolist(), times.tolist(), strict=True))
        try:
            found = Counter(zip(map(type, array), array, strict=True))
        except TypeError:  # not hashable
            raise TypeError(f"{name} {_MIXED} {_described(array)}") from None
        present = [(value, number) for (_, value), number in found.items() if not is_missing(value)]
    if present and common_kind(value for value, _ in present) is None:
        kinds = sorted({type(value).__name__ for value, _ in present})
        raise TypeError(f"{name} {_MIXED} {' and '.join(kinds)}")
    return _total(present)


def _counted_by_library(column: Any, name: str) -> list[tuple[Any, int]] | None:
    """Count categories and texts where the library of the column does so without a Python object for each row."""
    library, dtype = library_of(type(column)), str(getattr(column, "dtype", ""))
    if library == "pandas" and dtype == "category":
        column = getattr(column, "array", column)
        times = np.bincount(column.codes[column.codes >= 0], minlength=len(column.categories))
        pairs = zip(column.categories.tolist(), times.tolist(), strict=True)
        return [(value, number) for value, number in pairs if number]
    if library == "polars" and dtype.startswith(("Categorical", "Enum", "String")):
        return list(column.drop_nulls().value_counts().iter_rows())
    if library == "pyarrow" and hasattr(column, "type"):
        decoded, types = arrow_column(column, name).drop_null(), require_pyarrow().types
        if types.is_string(decoded.type) or types.is_large_string(decoded.type):
            return list(zip(*(field.to_pylist() for field in decoded.value_counts().flatten()), strict=True))
    return None


def _total(counted: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for value, number in counted:
        total[plain(value)] += number
    return dict(total)


def common_kind(values: Iterable[Any]) -> str | None:
    found = set(map(type, values))
    if np.timedelta64 in found:  # one of NumPy's integers, by its type
        return None
    kinds = {next((kind for kind, types in _KINDS.items() if issubclass(one, types)), None) for one in found}
    return kinds.pop() if len(kinds) == 1 else None


def array_of(column: Any, name: str, *, missing: bool = True) -> NDArray[Any]:
    """Return a column as an array, of objects if it was a list; on request without the missing values."""
    array: NDArray[Any]
    if isinstance(column, np.ma.MaskedArray):
        array = without_mask(column)
    elif isinstance(column, np.ndarray):
        array = np.asarray(column)  # no subclass, which may count and compare in its own way
    elif isinstance(column, list | tuple | range):
        # np.asarray would convert numbers beside texts to texts, and booleans beside numbers to numbers.
        array = np.fromiter(column, object, len(column))
        if any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, column))):
            raise ParameterError(f"{name} must have one dimension, got sequences")
    elif is_foreign(type(column)):
        # Integers beside missing values would become floats, and different large integers the same float.
        array = array_from(column, name, "keep" if missing else "drop")
    elif hasattr(column, "to_numpy"):
        array = np.asarray(column.to_numpy())
    else:
        raise TypeError(f"{name} must be a {_COLUMNS}, got {type(column).__name__}")
    if array.ndim != 1:
        raise ParameterError(f"{name} must have one dimension, got {array.ndim}")
    return array


def without_mask(array: Any) -> NDArray[Any]:
    """Return a masked array as one of objects, with None for what is masked."""
    objects: NDArray[Any] = array.data.astype(object)
    objects[np.ma.getmaskarray(array)] = None
    return objects


def to_float(item: Any) -> float:
    """Return a real number as the nearest float, an infinite one if need be; NaN for a missing value."""
    if is_missing(item):
        return np.nan
    try:
        return float(item)
    except OverflowError:
        return np.inf if item > 0 else -np.inf


def plain(value: Any) -> Any:
    """Return a value as one of Python's own types, an integral one as an int, so that equal values look the same."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float | np.floating):
        value = value if value.is_integer() else float(value)  # one that is wider than a double
        return int(value) if value.is_integer() else value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(memoryview(value))
    if isinstance(value, bool) or not _is_real(value):
        return value
    whole, nearest = int(value), to_float(value)
    return whole if whole == value else nearest if nearest == value else value


def is_missing(item: Any) -> bool:
    """Say whether an item of a column is a missing value of any library."""
    if isinstance(item, np.datetime64 | np.timedelta64):
        return bool(np.isnat(item))
    not_a_number = isinstance(item, float | np.floating) and item != item
    return item is None or not_a_number or type(item).__name__ in ("NAType", "NaTType")


def is_real_type(kind: type) -> bool:
    return issubclass(kind, numbers.Real | np.bool_) and not issubclass(kind, np.timedelta64)


def _is_real(item: Any) -> bool:
    return is_real_type(type(item))


def _is_false(item: Any) -> bool:
    return isinstance(item, bool | np.bool_) and not item


def _described(array: NDArray[Any]) -> str:
    if array.dtype.kind != "O":
        return f"dtype {array.dtype.type.__name__}"  # without the length of the longest text
    return " and ".join(sorted({type(item).__name__ for item in array}))
