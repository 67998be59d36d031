"""Columns of any library, row by row: what stands in one row never changes what is read of another.

No message shows a value, or says which value is meant.
"""

from __future__ import annotations

import numbers
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, repeat
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
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

MIXED: Final = "must be of texts, of numbers or of booleans, got"

_KINDS: Final[dict[str, Any]] = {"texts": str, "bytes": bytes, "booleans": (bool, np.bool_), "numbers": numbers.Real}

# Native code reads these as they are.
_READ: Final = (np.float64, np.float32, np.int64)

_NUMPY_NUMBERS: Final[dict[type, np.dtype[Any]]] = {
    np.dtype(code).type: np.dtype(code) for code in "?" + np.typecodes["AllInteger"] + np.typecodes["Float"]
}

_AS_FLOATS: Final = frozenset((int, float, bool, type(None), np.float64))

_BUILT_IN: Final = frozenset((int, float, bool, str, bytes, Fraction))

# A longer list of labels was hardly typed.
_LISTED: Final = 20

_HAS_GIL: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()


def column_of(column: Any, name: str, *, missing: bool = True) -> NDArray[Any]:
    """Return a column as an array, of objects if it was a list; on request without the missing values.

    It is read once. Texts and numbers of the caller's classes are built-in ones in what is returned.
    """
    return of_built_in(array_of_column(column, name, missing=missing), column, name)[0]


def array_of_column(column: Any, name: str, *, missing: bool = True) -> NDArray[Any]:
    """Return a column as an array, with the caller's objects: only native code may look at them."""
    array: NDArray[Any]
    if isinstance(column, np.ma.MaskedArray):
        array = without_mask(column)
    elif isinstance(column, np.ndarray):
        array = np.asarray(column)  # not a subclass, which may count and compare in its own way
    elif isinstance(column, list | tuple | range):
        # np.asarray would convert numbers beside texts to texts, and booleans beside numbers to numbers.
        return read_by(objects, column, name)
    elif is_foreign(type(column)):
        # Integers beside missing values would become floats, and different large integers the same float.
        array = array_from(only_column(column, name), name, "keep" if missing else "drop")
    elif hasattr(type(column), "to_numpy"):
        array = read_by(lambda x: np.asarray(x.to_numpy()), column, name)
    else:
        raise TypeError(f"{name} must be a {_COLUMNS}, got {type(column).__name__}")
    if array.ndim != 1:
        raise ParameterError(f"{name} must have one dimension, got {array.ndim}")
    if array.dtype.kind != "O":
        return array
    # Native code reads an object in each place, where NumPy takes none for None, and no other thread replaces it.
    array = np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])
    is_whole = bool(np.frombuffer(array.tobytes(), np.uintp).all())
    return array if is_whole and _HAS_GIL else objects(array.tolist())


def of_built_in(array: NDArray[Any], column: Any, name: str) -> tuple[NDArray[Any], set[type]]:
    """Return an array of `array_of_column`, with built-in objects for those of the caller's classes, and all types."""
    if array.dtype.kind != "O":
        return array, set()
    kinds = kinds_of(array)
    if isinstance(column, list | tuple) and any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        raise ParameterError(f"{name} must have one dimension, got sequences")
    return built_in(array, kinds, name), kinds


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
    """Return the types of objects of an array from `objects` or `column_of`."""
    return _native.kinds(array)


def built_in(array: NDArray[Any], kinds: set[type], name: str) -> NDArray[Any]:
    """Return decimals, UUIDs, and texts and numbers of the caller's own classes, as built-in ones, each by itself."""
    others = {kind for kind in kinds - _BUILT_IN if kind.__module__ != "numpy"}
    own = {kind for kind in others if kind is UUID or issubclass(kind, str | bytes | numbers.Real | Decimal)}
    if not own:
        return array
    read = (_built_in(item) if type(item) in own else item for item in array)
    found = " and ".join(sorted(kind.__name__ for kind in own))
    refusal = TypeError(f"{name} must be of texts and numbers that can be read, got {found}")
    return read_by(lambda read: np.fromiter(read, object, len(array)), read, name, lambda *_: refusal)


def _built_in(item: Any) -> Any:
    if isinstance(item, Decimal):  # first: the other checks take longer than reading it
        return number_of(item)
    if type(item) is UUID:
        return str(item)
    if isinstance(item, numbers.Integral):
        return int(item)
    if isinstance(item, numbers.Rational):
        item = Fraction(int(item.numerator), int(item.denominator))
    return plain(item if isinstance(item, Fraction | float | str | bytes) else to_float(item))


def held_column(column: Any, name: str) -> Any:
    """Return what `column_of` and `counts` take as what gives the same whenever it is read."""
    # Objects are perhaps of the caller's classes.
    is_held = is_foreign(type(column)) and not is_of_objects(column)
    return held(column, name) if is_held else column_of(column, name)


def is_of_objects(column: Any) -> bool:
    return library_of(type(column)) == "pandas" and str(getattr(column, "dtype", "")) == "object"


def floats(column: Any, name: str = "column") -> NDArray[np.float64]:
    """Copy a column of numbers to a new array; missing values are NaN. No message may show a value."""
    return _as_floats(*of_built_in(array_of_column(column, name), column, name), name)


def readable(column: Any, name: str = "column") -> NDArray[Any]:
    """Return a column of numbers for native code that reads each once: as it is, or a copy as of `floats`."""
    array, kinds = of_built_in(array_of_column(column, name), column, name)
    is_read = array.dtype in _READ and array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned
    return array if is_read else _as_floats(array, kinds, name)


def _as_floats(array: NDArray[Any], kinds: set[type], name: str) -> NDArray[np.float64]:
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # warnings about numbers wider than a double, and signalling NaN
            return array.astype(np.float64)  # a copy, always
    if array.dtype.kind == "O":
        # The same as below, in a fraction of the time. Another thread may have put an object of another type there.
        with suppress(OverflowError, TypeError, ValueError), np.errstate(all="ignore"):
            if kinds <= _AS_FLOATS:
                return array.astype(np.float64)
            if len(kinds) == 1 and (dtype := _NUMPY_NUMBERS.get(*kinds)) is not None:
                return array.astype(dtype).astype(np.float64)
        if all(is_missing(item) or is_real_type(type(item)) for item in array):
            with np.errstate(all="ignore"):
                return np.fromiter(map(to_float, array), np.float64, len(array))
    hint = ""
    if array.dtype.kind in "mM" or any(issubclass(kind, date | timedelta) for kind in kinds):
        hint = (
            ": cast them to numbers, such as days; queries.Median, Quantile and Histogram take dates as bounds or edges"
        )
    raise TypeError(f"{name} must be of real numbers, got {described(array)}{hint}")


def truths(column: Any, name: str = "column") -> NDArray[np.bool_]:
    """Say whether each row is neither false nor missing, independently of the other rows."""
    if (marked := read_by(partial(_marked_by_library, name=name), column, name)) is not None:
        return marked
    array = array_of_column(column, name)
    if array.dtype.kind == "O":
        if (found := _native.present(array)) is not None:
            return found.view(np.bool_)
        array, _ = of_built_in(array, column, name)
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind in "iuSU":
        return np.ones(array.shape, np.bool_)
    if array.dtype.kind in "fmM":
        missing: NDArray[np.bool_] = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
        return ~missing
    true = (not is_missing(item) and (not isinstance(item, bool | np.bool_) or bool(item)) for item in array)
    return np.fromiter(true, np.bool_, len(array))


def _marked_by_library(column: Any, name: str) -> NDArray[np.bool_] | None:
    """Say which texts and categories are neither missing nor false, where their library has a mask or codes."""
    library, column = stored(column)
    dtype = str(getattr(column, "dtype", ""))
    if library == "pandas" and dtype == "category":
        column = getattr(column, "array", column)
        return _marked_by_codes(column.codes, truths(column.categories, name))
    if library == "pandas" and dtype in ("str", "string") and len(column.shape) == 1:
        return np.asarray(~column.isna())
    if library == "polars" and dtype.startswith(("Categorical", "Enum", "String")):
        return np.asarray(column.is_not_null().to_numpy())
    if library == "pyarrow" and hasattr(column, "type"):
        types = require_pyarrow().types
        if types.is_dictionary(column.type):
            chunks = getattr(column, "chunks", [column])
            marked = [_marked_by_codes(codes_of_arrow(chunk), truths(chunk.dictionary, name)) for chunk in chunks]
            return np.concatenate([np.empty(0, np.bool_), *marked])
        if any(is_text(column.type) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
            return np.asarray(column.is_valid().cast("uint8")).view(np.bool_)
    return None


def _marked_by_codes(codes: NDArray[Any], of_categories: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Look up codes, of which missing values have -1."""
    marked: NDArray[np.bool_] = codes >= 0
    return marked if of_categories.all() else np.append(of_categories, False)[codes]


def codes_of_arrow(encoded: Any) -> NDArray[Any]:
    """Return the codes of an Arrow array with a dictionary, -1 for missing values."""
    codes = encoded.indices
    if codes.null_count:
        codes = codes.cast("int64").fill_null(-1)
    return np.asarray(codes)


def counts(column: Any, name: str = "column") -> dict[Any, int]:
    """Count each value that is not missing; all must be texts, all numbers or all booleans.

    An integral value becomes an int, for every type: a single row can turn all integers of a data frame or of an array
    into floats, and the result must not reveal that. For the same reason missing values and types are checked row by
    row.
    """
    found = _counted(column, name)
    if isinstance(found, dict):
        return found
    values, times = found
    return dict(zip(map(plain, values.tolist()), times.tolist(), strict=True))


def counts_in_order(column: Any, name: str = "column") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the values of `counts` in order, before they become `plain`, and how often each occurs."""
    found = _counted(column, name)
    if isinstance(found, dict):
        values = sorted(found)
        found = objects(values), np.fromiter(map(found.__getitem__, values), np.int64, len(values))
    return found


def _counted(column: Any, name: str) -> dict[Any, int] | tuple[NDArray[Any], NDArray[np.int64]]:
    """Count values: as `counts` does, or in order."""
    present = read_by(partial(_counted_by_library, name=name), column, name)
    if present is None:
        # Missing values change no other object, and to drop them would take longer than to count.
        array = array_of_column(column, name, missing=is_of_objects(column))
        if array.dtype.kind in "biufSU":
            if array.dtype.kind == "f":
                array = array[~np.isnan(array)]
            values, times = np.unique(array, return_counts=True)
            if array.dtype != np.longdouble:
                return values, times.astype(np.int64, copy=False)
            present = list(zip(values.tolist(), times.tolist(), strict=True))  # several may have one nearest double
        elif array.dtype.kind == "O" and (coded := _native.code_texts(array)) is not None:
            codes, texts = coded
            times = np.bincount(codes + 1, minlength=len(texts) + 1)[1:]  # missing values have -1
            return dict(zip(texts, times.tolist(), strict=True))
        else:
            present = _counted_objects(of_built_in(array, column, name)[0], name)
    if present and common_kind(value for value, _ in present) is None:
        kinds = sorted({type(value).__name__ for value, _ in present})
        raise TypeError(f"{name} {MIXED} {' and '.join(kinds)}")
    return _total(present)


def _counted_objects(array: NDArray[Any], name: str) -> list[tuple[Any, int]]:
    items = array.tolist() if array.dtype.kind == "O" else list(array)  # durations would become integers
    if not all(map(is_countable, set(map(type, items)))):  # others may hash and compare in their own way
        raise TypeError(f"{name} {MIXED} {described(array)}")
    found = Counter(zip(map(type, items), items, strict=True))
    return [(value, number) for (_, value), number in found.items() if not is_missing(value)]


def stored(column: Any) -> tuple[str, Any]:
    """Return the library that stores a column, and the column there: pandas leaves some to Arrow."""
    library, dtype = library_of(type(column)), getattr(column, "dtype", None)
    if library == "pandas" and (hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"):
        return "pyarrow", getattr(column, "array", column).__arrow_array__()
    return library, column


def _counted_by_library(column: Any, name: str) -> list[tuple[Any, int]] | None:
    """Count categories and texts where the library of the column does so without a Python object for each row."""
    library, column = stored(column)
    dtype = str(getattr(column, "dtype", ""))
    if library == "pandas" and dtype == "category":
        column = getattr(column, "array", column)
        labels = objects(column.categories.tolist())
        return _counted_codes(column.codes, built_in(labels, kinds_of(labels), name).tolist())
    if library == "polars" and dtype.startswith(("Categorical", "Enum", "String")):
        return _without_missing(column.alias("").value_counts().iter_rows())  # "count" is the name of the counts
    if library == "pyarrow" and hasattr(column, "type"):
        types = require_pyarrow().types
        if types.is_dictionary(column.type) and types.is_string(column.type.value_type):
            chunks = getattr(column, "chunks", [column])
            counted = (_counted_codes(codes_of_arrow(chunk), chunk.dictionary.to_pylist()) for chunk in chunks)
            return list(chain.from_iterable(counted))
        decoded = arrow_column(column, name)
        if types.is_string(decoded.type) or types.is_large_string(decoded.type):
            counted = (np.asarray(field).tolist() for field in decoded.value_counts().flatten())
            return _without_missing(zip(*counted, strict=True))
    return None


def _counted_codes(codes: NDArray[Any], labels: list[Any]) -> list[tuple[Any, int]]:
    times = np.bincount(codes[codes >= 0].astype(np.intp, copy=False), minlength=len(labels))
    pairs = _without_missing(zip(labels, times.tolist(), strict=True))
    return [(value, number) for value, number in pairs if number]


def _without_missing(counted: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    return [(value, number) for value, number in counted if value is not None]


def _total(counted: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    pairs = list(counted)
    if {type(value) for value, _ in pairs} == {str} and len(found := dict(pairs)) == len(pairs):
        return found
    total: Counter[Any] = Counter()
    for value, number in pairs:
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
        return number_of(value)
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


def is_countable(kind: type) -> bool:
    """Say whether items of a type are texts, numbers or booleans, or may be missing values."""
    missing = issubclass(kind, type(None) | np.datetime64) or kind.__name__ in ("NAType", "NaTType")
    return missing or issubclass(kind, str | bytes) or is_real_type(kind)


def described(array: NDArray[Any]) -> str:
    if array.dtype.kind != "O":
        return f"dtype {array.dtype.type.__name__}"  # without the length of the longest text
    return " and ".join(sorted({type(item).__name__ for item in array if not is_missing(item)}))


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


def distinct_labels(given: Labels, name: str, *, none: bool = False) -> tuple[list[Any], list[Any]]:
    """Return labels of one kind that differ as values of columns do: as they are given, and as `plain` makes them.

    On request None is a label, too.
    """
    labels = labels_of(given, name)
    read = list(map(plain, labels))
    if common_kind(kinds := [one for one in read if one is not None or not none]) is None and kinds:
        raise TypeError(f"{name} must be all texts, all numbers or all booleans: make texts of others")
    times = Counter(read)
    repeated = [label for label, one in zip(labels, read, strict=True) if times[one] > 1 or one != one]
    if not kinds or repeated:
        # What is no short list may be a private column.
        got = "equal values"
        if not repeated:
            got = "None alone" if read else "none"
        elif isinstance(given, list | tuple) and len(given) <= _LISTED:
            got = f"several of {repeated[0]!r}"
        raise ParameterError(f"{name} must be one or more values that differ, got {got}")
    return labels, read


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
    library, column = stored(values)
    return (_places_in_arrow if library == "pyarrow" else _places_of_items)(column, places, name)


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
