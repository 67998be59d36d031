"""Columns of any library, row by row: what stands in one row never changes what is read of another.

No message shows a value, or says which value is meant.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import (
    array_from,
    arrow_column,
    held,
    is_arrow,
    is_foreign,
    is_missing,
    library_of,
    missing_values,
    only_column,
    read_by,
    require_pyarrow,
)
from dpnoise._decimals import number_of
from dpnoise._errors import ParameterError
from dpnoise._types import Labels

_COLUMNS: Final = "NumPy array, list, pandas or polars series, Arrow array or tensor"

_MIXED: Final = "must be of texts, of numbers or of booleans, got"

_KINDS: Final[dict[str, Any]] = {"texts": str, "bytes": bytes, "booleans": (bool, np.bool_), "numbers": numbers.Real}

# Native code reads these as they are.
_READ: Final = (np.float64, np.float32, np.int64)

_BUILT_IN: Final = frozenset((int, float, bool, str, bytes, Fraction))


def column_of(column: Any, name: str, *, missing: bool = True) -> NDArray[Any]:
    """Return a column as an array, of objects if it was a list; on request without the missing values.

    It is read once, and no code of the caller's classes runs on what is returned.
    """
    array: NDArray[Any]
    kinds = None
    if isinstance(column, np.ma.MaskedArray):
        array = without_mask(column)
    elif isinstance(column, np.ndarray):
        array = np.asarray(column)  # not a subclass, which may count and compare in its own way
    elif isinstance(column, list | tuple | range):
        # np.asarray would convert numbers beside texts to texts, and booleans beside numbers to numbers.
        array = read_by(objects, column, name)
        kinds = kinds_of(array)
        if any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
            raise ParameterError(f"{name} must have one dimension, got sequences")
    elif is_foreign(type(column)):
        # Integers beside missing values would become floats, and different large integers the same float.
        array = array_from(only_column(column, name), name, "keep" if missing else "drop")
    elif hasattr(type(column), "to_numpy"):
        array = read_by(lambda x: np.asarray(x.to_numpy()), column, name)
    else:
        raise TypeError(f"{name} must be a {_COLUMNS}, got {type(column).__name__}")
    if array.ndim != 1:
        raise ParameterError(f"{name} must have one dimension, got {array.ndim}")
    return built_in(array, kinds or kinds_of(array), name) if array.dtype.kind == "O" else array


def named_columns(table: Any, name: str) -> tuple[list[Any], list[Any]] | None:
    """Return the names and the columns of a data frame or an Arrow table; None for what is neither.

    Of several columns of one name there is one column.
    """
    if library_of(type(table)) in ("pandas", "polars"):
        if not hasattr(table, "columns"):
            return None
        names = list(table.columns)
        return names, [table[column] for column in dict.fromkeys(names)]
    if not is_arrow(table):
        return None
    found = read_by(require_pyarrow().table, table, name)
    return found.column_names, found.columns


def objects(items: Any) -> NDArray[Any]:
    return np.fromiter(items, object, len(items))


def kinds_of(array: NDArray[Any]) -> set[type]:
    """Return the types of objects."""
    return set(map(type, array.tolist()))


def built_in(array: NDArray[Any], kinds: set[type], name: str) -> NDArray[Any]:
    """Return decimals, and texts and numbers of the caller's own classes, as built-in ones, each by itself."""
    others = {kind for kind in kinds - _BUILT_IN if kind.__module__ != "numpy"}
    own = {kind for kind in others if issubclass(kind, str | bytes | numbers.Real | Decimal)}
    if not own:
        return array
    read = (_built_in(item) if type(item) in own else item for item in array)
    found = " and ".join(sorted(kind.__name__ for kind in own))
    refusal = TypeError(f"{name} must be of texts and numbers that can be read, got {found}")
    return read_by(lambda read: np.fromiter(read, object, len(array)), read, name, lambda *_: refusal)


def _built_in(item: Any) -> Any:
    if isinstance(item, numbers.Integral):
        return int(item)
    if isinstance(item, numbers.Rational):
        item = Fraction(int(item.numerator), int(item.denominator))
    return plain(item if isinstance(item, Fraction | float | str | bytes | Decimal) else to_float(item))


def held_column(column: Any, name: str) -> Any:
    """Return what `column_of` and `counts` take as what gives the same whenever it is read."""
    # Perhaps of the caller's classes.
    of_objects = library_of(type(column)) == "pandas" and str(getattr(column, "dtype", "")) == "object"
    return held(column, name) if is_foreign(type(column)) and not of_objects else column_of(column, name)


def floats(column: Any, name: str = "column") -> NDArray[np.float64]:
    """Copy a column of numbers to a new array; missing values are NaN. No message may show a value."""
    array = column_of(column, name)
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # warnings about numbers wider than a double, and signalling NaN
            return array.astype(np.float64)  # a copy, always
    if array.dtype.kind == "O" and kinds_of(array) <= {int, float, bool, type(None)}:
        with suppress(OverflowError):
            return array.astype(np.float64)  # the same as below, in a fraction of the time
    if array.dtype.kind == "O" and all(is_missing(item) or is_real_type(type(item)) for item in array):
        with np.errstate(all="ignore"):
            return np.fromiter(map(to_float, array), np.float64, len(array))
    hint = ""
    if array.dtype.kind in "mM" or any(issubclass(kind, date | timedelta) for kind in kinds_of(array)):
        hint = (
            ": cast them to numbers, such as days; queries.Median, Quantile and Histogram take dates as bounds or edges"
        )
    raise TypeError(f"{name} must be of real numbers, got {_described(array)}{hint}")


def readable(column: Any, name: str = "column") -> NDArray[Any]:
    """Return a column of numbers for native code that reads each once: as it is, or a copy as of `floats`."""
    array = column_of(column, name)
    is_read = array.dtype in _READ and array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned
    return array if is_read else floats(array, name)


def truths(column: Any, name: str = "column") -> NDArray[np.bool_]:
    """Say whether each row is neither false nor missing, independently of the other rows."""
    array = column_of(column, name)
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind in "iuSU":
        return np.ones(array.shape, np.bool_)
    if array.dtype.kind in "fmM":
        missing: NDArray[np.bool_] = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
        return ~missing
    true = (not is_missing(item) and (not isinstance(item, bool | np.bool_) or bool(item)) for item in array)
    return np.fromiter(true, np.bool_, len(array))


def counts(column: Any, name: str = "column") -> dict[Any, int]:
    """Count each value that is not missing; all must be texts, all numbers or all booleans.

    An integral value becomes an int, for every type: a single row can turn all integers of a data frame or of an array
    into floats, and the result must not reveal that. For the same reason missing values and types are checked row by
    row.
    """
    present = read_by(partial(_counted_by_library, name=name), column, name)
    if present is None:
        array = column_of(column, name, missing=False)
        if array.dtype.kind in "biufSU":
            if array.dtype.kind == "f":
                array = array[~np.isnan(array)]
            values, times = np.unique(array, return_counts=True)
            return _total(zip(values.tolist(), times.tolist(), strict=True))
        items = array.tolist() if array.dtype.kind == "O" else list(array)  # durations would become integers
        if not all(map(_is_countable, set(map(type, items)))):  # others may hash and compare in their own way
            raise TypeError(f"{name} {_MIXED} {_described(array)}")
        found = Counter(zip(map(type, items), items, strict=True))
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
        labels = objects(column.categories.tolist())
        labels = built_in(labels, kinds_of(labels), name)
        pairs = zip(labels.tolist(), times.tolist(), strict=True)
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
    if np.timedelta64 in found:  # a subclass of NumPy's integers
        return None
    kinds = {next((kind for kind, types in _KINDS.items() if issubclass(one, types)), None) for one in found}
    return kinds.pop() if len(kinds) == 1 else None


def without_mask(array: Any) -> NDArray[Any]:
    """Return a masked array as an array of objects, with None for masked values."""
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
    """Return a value as a built-in type, an integral value as an int, so that equal values look the same.

    A decimal that is not integral becomes the nearest double.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float | np.floating):
        value = value if value.is_integer() else float(value)  # a number wider than a double
        return int(value) if value.is_integer() else value
    if isinstance(value, Decimal):
        return number_of(Decimal(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(memoryview(value))
    if isinstance(value, bool) or not is_real_type(type(value)):
        return value
    whole, nearest = int(value), to_float(value)
    return whole if whole == value else nearest if nearest == value else value


def is_real_type(kind: type) -> bool:
    return issubclass(kind, numbers.Real | np.bool_) and not issubclass(kind, np.timedelta64)


def _is_countable(kind: type) -> bool:
    """Say whether items of a type are texts, numbers or booleans, or may be missing values."""
    missing = issubclass(kind, type(None) | np.datetime64) or kind.__name__ in ("NAType", "NaTType")
    return missing or issubclass(kind, str | bytes | np.bool_ | numbers.Real)


def _described(array: NDArray[Any]) -> str:
    if array.dtype.kind != "O":
        return f"dtype {array.dtype.type.__name__}"  # without the length of the longest text
    return " and ".join(sorted({type(item).__name__ for item in array}))


# --- labels


def labels_of(given: Labels, name: str) -> list[Any]:
    """Return a collection of labels as a list, unchecked."""
    library = library_of(type(given))
    dtype: Any = getattr(given, "dtype", given)
    if library == "pandas" and str(dtype) == "category" and hasattr(dtype, "categories"):
        if dtype.categories is None:
            raise TypeError(f"{name} must have categories, got a CategoricalDtype without")
        return list(dtype.categories.tolist())
    if library == "polars" and str(dtype).startswith("Enum") and hasattr(dtype, "categories"):
        return list(dtype.categories.to_list())
    if library == "polars" and str(dtype).startswith("Categorical"):
        raise TypeError(f"{name} must list its labels, and a polars Categorical does not: use a polars Enum or a list")
    if library == "pyarrow":
        pa = require_pyarrow()
        if isinstance(given, pa.DataType):
            raise TypeError(f"{name} must list its labels, and an Arrow type does not: give a list")
        if pa.types.is_dictionary(given.type):
            chunks = given.unify_dictionaries().chunks if isinstance(given, pa.ChunkedArray) else [given]
            return list(chunks[0].dictionary.to_pylist()) if chunks else []
    if is_foreign(type(given)):
        given = array_from(given, name)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if not isinstance(given, list | tuple | range):
        raise TypeError(f"{name} must be a list, an array or a column of labels, got {type(given).__name__}")
    return list(given)


def places_of_texts(values: Any, places: Mapping[Any, int], name: str) -> NDArray[np.int64]:
    """Return the place of each text of a list, an array or a column of any library; -1 for texts that have none.

    The places are 0, 1, ..., in this order.
    """
    values = only_column(values, name)
    read = {"pandas": _places_in_pandas, "polars": _places_in_polars}.get(library_of(type(values)))
    if read is None:
        read = _places_in_arrow if is_arrow(values) else _places_of_items
    return read(values, places, name)


def _places_in_pandas(values: Any, places: Mapping[Any, int], name: str) -> NDArray[np.int64]:
    dtype = getattr(values, "dtype", None)
    if dtype is None or len(values.shape) > 1:
        return _places_of_items(values, places, name)  # which raises the error
    column = getattr(values, "array", values)
    if str(dtype) == "category":
        categories = _places_of_items(column.categories.tolist(), places, f"the categories of {name}")
        if column.isna().any():
            raise missing_values(name)
        found: NDArray[np.int64] = categories[column.codes]
        return found
    of_arrow = hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"
    return (
        _places_in_arrow(column.__arrow_array__(), places, name) if of_arrow else _places_of_items(values, places, name)
    )


def _places_in_polars(values: Any, places: Mapping[Any, int], name: str) -> NDArray[np.int64]:
    import polars as pl

    if not isinstance(values, pl.Series):
        return _places_of_items(values, places, name)  # which raises the error
    if values.null_count():
        raise missing_values(name)
    if values.dtype not in (pl.String, pl.Enum, pl.Categorical, pl.Null):
        raise _other_kind(name, values.dtype)
    found = values.cast(pl.Enum(list(places)), strict=False).to_physical()
    return np.asarray(found.cast(pl.Int64).fill_null(-1).to_numpy())


def _places_in_arrow(values: Any, places: Mapping[Any, int], name: str) -> NDArray[np.int64]:
    pa, column = require_pyarrow(), arrow_column(values, name)
    if column.null_count:
        raise missing_values(name)
    if not any(is_type(column.type) for is_type in (pa.types.is_string, pa.types.is_large_string)):
        if not pa.types.is_null(column.type):
            raise _other_kind(name, f"a column of type {column.type}")
        column = column.cast(pa.string())
    found = pa.compute.index_in(column, value_set=pa.array(list(places), column.type))
    return np.asarray(found.cast(pa.int64()).fill_null(-1))


def _places_of_items(values: Any, places: Mapping[Any, int], name: str) -> NDArray[np.int64]:
    items = list(values) if type(values) in (list, tuple) else column_of(values, name).tolist()
    kinds = set(map(type, items))
    others = {kind.__name__ for kind in kinds if not issubclass(kind, str)}
    if others:
        if any(map(is_missing, items)):
            raise missing_values(name)
        raise _other_kind(name, " and ".join(sorted(others)))
    if kinds - {str, np.str_}:  # subclasses may hash and compare in their own way
        items = list(map(str.__str__, items))
    return np.fromiter(map(places.get, items, repeat(-1)), np.int64, len(items))


def _other_kind(name: str, found: Any) -> TypeError:
    return TypeError(f"{name} must be texts, as the labels of the domain are, got {found}")
