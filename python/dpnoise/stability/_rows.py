"""Rows of data of several kinds, taken by position.

A container's metadata depends on all of its rows: one row turns integers into floats or numbers into objects, adds a
category, a dictionary entry or an index level, or lengthens the items of a text array. So a block is rebuilt from its
own rows: numbers are always float64, everything else is objects, and only the names of columns are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns
from dpnoise._arrays import array_from, is_missing, library_of, read_by
from dpnoise._errors import ParameterError
from dpnoise._silence import without_warnings

Column = NDArray[Any]
"""An array of float64, or of objects that are not all numbers; one-dimensional, except for NumPy's arrays."""

Build = Callable[[list[Column]], Any]
"""Builds a block from columns."""

_LIBRARIES: Final = ("pandas", "polars", "pyarrow")


def held_rows(data: Any) -> Any:
    """Return a tensor, and a list of the user's own class, as what gives the same rows whenever it is read."""
    if isinstance(data, list | tuple) and type(data) not in (list, tuple):
        return read_by(list, data, "data")
    is_tensor = hasattr(type(data), "__dlpack__") and not isinstance(data, np.ndarray)
    return array_from(data, "data") if is_tensor and library_of(type(data)) not in _LIBRARIES else data


class Rows:
    def __init__(self, data: Any) -> None:
        data = held_rows(data)
        library = library_of(type(data))
        sized = library in _LIBRARIES and hasattr(type(data), "__len__")
        of_items = isinstance(data, list | tuple)
        if not sized and not of_items and not isinstance(data, np.ndarray):
            raise TypeError(
                "data must be a NumPy array, a list, a tensor, or a pandas, polars or pyarrow table or column, got"
                f" {type(data).__name__}"
            )
        self._items = data if of_items else None
        if self._items is None:
            with without_warnings():  # warnings of the user's classes would reveal rows
                self._columns, self._build = _READERS.get(library, _read_array)(data)
            if not self._columns:
                raise ParameterError("data must have columns, got a table without")
        read: Any = self._columns[0] if self._items is None else self._items
        self._number = 0 if isinstance(read, np.ndarray) and read.ndim == 0 else len(read)
        if self._number == 0:
            raise ParameterError("data must have rows, got none")

    def __len__(self) -> int:
        return self._number

    def at(self, positions: NDArray[np.int64]) -> Any:
        """Build a block from some rows: a list, or a container of the same kind as the data."""
        if self._items is not None:
            return [self._items[position] for position in positions]
        return self._build([_with_numbers(column[positions]) for column in self._columns])


# --- columns -------------------------------------------------------------------------------------------------------


def _of_any(array: NDArray[Any]) -> Column:
    """Read a column or matrix whose objects, if any, are the rows' own."""
    _check_kind(array)
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # a type wider than double may overflow
            found = array.astype(np.float64, order="C")
        found[np.isnan(found)] = np.nan  # one sign and payload, since objects do not keep them
        return found
    return _with_numbers(_each(_own, array.astype(object), object))


def _of_one_kind(column: Any) -> Column:
    """Read a column of a library's own type, whose items may carry more of the type than their values."""
    try:
        found = _of_any(_columns.column_of(column, "data"))
    except ParameterError:  # it is nested
        raise _unusable(column) from None
    if found.dtype == np.float64 or set(map(type, found)) - {type(None)} in ({str}, {bytes}):
        return found
    raise _unusable(column)


def _check_kind(array: NDArray[Any]) -> None:
    if array.dtype.kind not in "biufSUO":
        raise _unusable(array)


def _own(item: Any) -> Any:
    """Return an item, or None for a missing one."""
    try:
        return None if is_missing(item) else item
    except Exception:  # raised by the user's class
        return item


def _unusable(column: Any) -> TypeError:
    kind = getattr(column, "dtype", getattr(column, "type", None))
    return TypeError(
        f"data must have columns of numbers, of texts or of bytes, got {type(kind).__name__}: cast them, for example"
        " dates to days since a public date, and intervals to texts"
    )


def _with_numbers(column: Column) -> Column:
    """Convert objects that are all numbers or missing to float64, as if the whole column had only such."""
    if column.dtype != object or not all(map(_is_number, set(map(type, column.flat)))):
        return column
    with np.errstate(all="ignore"):
        return _each(_number, column, np.float64)


def _each(f: Callable[[Any], Any], column: Column, dtype: type) -> Column:
    # `reshape` gives a view, and a function could see that it is one.
    return np.fromiter(map(f, column.flat), dtype, column.size).reshape(column.shape).copy()


def _is_number(kind: type) -> bool:
    return issubclass(kind, Decimal | type(None)) or _columns.is_real_type(kind)


def _number(item: Any) -> float:
    try:
        number = _columns.to_float(item)
    except Exception:  # a signalling NaN of Decimal, or raised by the user's class
        return np.nan
    return np.nan if number != number else number  # drops the sign of a NaN


# --- libraries -----------------------------------------------------------------------------------------------------


def _read_array(data: Any) -> tuple[list[Column], Build]:
    if isinstance(data, np.ma.MaskedArray):
        _check_kind(data)
        return [_of_any(_columns.without_mask(data))], _only
    return [_of_any(np.asarray(data))], _only


def _only(columns: list[Column]) -> Any:
    return columns[0]


def _read_pandas(data: Any) -> tuple[list[Column], Build]:
    if hasattr(data, "levels"):
        raise TypeError("data must be a table or column, got an index of several levels: pass its to_frame()")
    columns = [column for _, column in data.items()] if data.ndim == 2 else [data]
    read = [_of_any(column.to_numpy()) if column.dtype == object else _of_one_kind(column) for column in columns]
    if data.ndim == 2:
        return read, partial(_pandas_frame, list(data.columns))
    return read, partial(_pandas_series, getattr(data, "name", None))


def _pandas_series(name: Any, columns: list[Column]) -> Any:
    import pandas as pd

    return pd.Series(columns[0], name=name, dtype=columns[0].dtype)


def _pandas_frame(names: list[Any], columns: list[Column]) -> Any:
    import pandas as pd

    frame = pd.DataFrame({place: _pandas_series(None, [column]) for place, column in enumerate(columns)})
    frame.columns = names  # these may have several levels, or duplicates
    return frame


def _read_polars(data: Any) -> tuple[list[Column], Build]:
    table = len(data.shape) == 2
    columns = data.get_columns() if table else [data]
    return list(map(_of_one_kind, columns)), partial(_polars, [column.name for column in columns], table)


def _polars(names: list[str], table: bool, columns: list[Column]) -> Any:
    import polars as pl

    made = []
    for name, column in zip(names, columns, strict=True):
        if column.dtype == np.float64:
            made.append(pl.Series(name, column, pl.Float64, nan_to_null=True))
        else:
            made.append(pl.Series(name, column.tolist(), pl.Binary if _has_bytes(column) else pl.String))
    return pl.DataFrame(made) if table else made[0]


def _read_arrow(data: Any) -> tuple[list[Column], Build]:
    names = getattr(data, "column_names", None)
    return list(map(_of_one_kind, [data] if names is None else data.columns)), partial(_arrow, names, type(data))


def _arrow(names: list[str] | None, kind: Any, columns: list[Column]) -> Any:
    import pyarrow as pa

    made = []
    for column in columns:
        if column.dtype == np.float64:
            made.append(pa.array(column, pa.float64(), from_pandas=True))
        else:
            made.append(pa.array(column.tolist(), pa.large_binary() if _has_bytes(column) else pa.large_string()))
    if names is not None:
        return kind.from_arrays(made, names=names)
    return pa.chunked_array(made) if kind is pa.ChunkedArray else made[0]


def _has_bytes(column: Column) -> bool:
    return bytes in set(map(type, column))


_READERS: Final = {"pandas": _read_pandas, "polars": _read_polars, "pyarrow": _read_arrow}
