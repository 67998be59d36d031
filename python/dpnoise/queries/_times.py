"""Dates and times: parameters and columns of them as whole numbers of days, or of another unit, since 1970.

Whether values are dates or times, and whether times have a time zone, are types, which are public. No message shows a
value of a column.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import dtype_of, is_missing, library_of, only_column, read_by
from dpnoise._columns import column_of, readable
from dpnoise._errors import ParameterError
from dpnoise.sensitivity import check_bounds

# A quantile among whole numbers takes bounds up to here.
_FARTHEST: Final = 2**52

_HOUR: Final = 3600 * 10**9
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": _HOUR // 60,
    "h": _HOUR,
    "D": 24 * _HOUR,
    "W": 7 * 24 * _HOUR,
}

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = _EPOCH.replace(tzinfo=UTC)

_DATES, _TIMES, _ZONED, _NUMPY = "dates", "times without a time zone", "times with a time zone", "datetime64 of NumPy"
_NAIVE: Final = frozenset((_DATES, _TIMES, _NUMPY))
_ALL: Final = _NAIVE | {_ZONED}


class Clock(NamedTuple):
    """How dates and times are counted from 1970 on: dates in days, times in microseconds, and NumPy's in their unit."""

    kind: str
    unit: Any
    zone: Any = None

    def value(self, count: float) -> Any:
        """Return a number of units since 1970 as a value of the type of the parameters."""
        whole = int(count)
        if self.kind == _NUMPY:
            return np.datetime64(whole, self.unit)
        if self.kind == _DATES:
            return _EPOCH.date() + timedelta(days=whole)
        since = timedelta(microseconds=whole)
        return (_EPOCH_UTC + since).astimezone(self.zone) if self.kind == _ZONED else _EPOCH + since

    def count(self, item: Any) -> int:
        """Return the number of whole units from 1970 to a value, rounded down."""
        return _nanoseconds(item) // _NANOSECONDS[self.unit]

    def floats(self, column: Any, name: str = "column") -> NDArray[np.float64]:
        """Return the numbers of whole units from 1970 to each row, rounded down, in a new array; NaN where missing.

        Numbers up to 2**53 are exact, and larger ones stay at least as large. A date stands for its first moment.
        """
        zoned, array = _read(column, name)
        if array.dtype.kind == "O":
            kinds = read_by(lambda rows: {_kind(row) for row in rows if not is_missing(row)}, array, name)
        else:
            kinds = {_kind_of(array.dtype, zoned)}
        if not kinds <= ({_ZONED} if self.kind == _ZONED else _NAIVE):
            wanted = _ZONED if self.kind == _ZONED else f"dates or {_TIMES}"
            got = " and ".join(sorted(kinds))
            raise TypeError(f"{name} must be of {wanted}, as the bounds or edges are, got {got}")
        if array.dtype.kind == "O":
            counts = (np.nan if is_missing(row) else self.count(row) for row in array)
            return read_by(lambda rows: np.fromiter(counts, np.float64, len(rows)), array, name)
        own, given = _NANOSECONDS[self.unit], _NANOSECONDS[np.datetime_data(array.dtype)[0]]
        ticks = array.astype(np.int64)
        # No product of integers, which might wrap around.
        found = ticks * float(given // own) if given >= own else ticks // (own // given)
        return np.where(np.isnat(array), np.nan, found)


def counted(values: Any, name: str) -> tuple[Any, Clock | None]:
    """Return parameters that are dates or times as numbers, and how these are counted; all others as they are."""
    try:
        items = values.to_pylist() if hasattr(type(values), "to_pylist") else values
        items = list(items) if hasattr(type(items), "__len__") else []
    except TypeError:  # an array without dimensions
        items = []
    kinds = {_kind(item) for item in items if not is_missing(item)}
    if not kinds & _ALL and not any(isinstance(item, np.datetime64) for item in items):
        return values, None
    units = {np.datetime_data(item.dtype) for item in items if isinstance(item, np.datetime64)}
    if len(kinds) > 1 or len(units) > 1 or not kinds <= _ALL or any(map(is_missing, items)):
        raise TypeError(
            f"{name} must be all dates, all times with a time zone, all times without, or all datetime64 of one unit "
            f"from W to ns, got {values!r}"
        )
    kind = kinds.pop()
    unit = units.pop()[0] if units else "D" if kind == _DATES else "us"
    clock = Clock(kind, unit, items[0].tzinfo if kind == _ZONED else None)
    counts = list(map(clock.count, items))
    if max(map(abs, counts)) > _FARTHEST:
        raise ParameterError(
            f"{name} must be at most 2**52 units ({unit}) from 1970, got {values!r}: take dates, or datetime64 of a "
            "coarser unit"
        )
    return counts, clock


def bounds_of(bounds: Any) -> tuple[tuple[float, float], Clock | None]:
    """Return bounds as numbers, and how these are counted if the bounds are dates or times."""
    given, clock = counted(bounds, "bounds")
    if clock is not None and (len(given) != 2 or given[0] >= given[1]):
        raise ParameterError(f"bounds must be two dates or times, the lower one first, got {bounds!r}")
    return check_bounds(given), clock


def read(column: Any, clock: Clock | None, name: str) -> NDArray[Any]:
    """Return the numbers of a column, as parameters are counted, for native code that reads each once."""
    return readable(column, name) if clock is None else clock.floats(column, name)


def _nanoseconds(item: Any) -> int:
    if isinstance(item, np.datetime64):
        return int(item.astype(np.int64)) * _NANOSECONDS[np.datetime_data(item.dtype)[0]]
    if isinstance(item, datetime):
        epoch = _EPOCH if item.utcoffset() is None else _EPOCH_UTC
        return (item - epoch) // timedelta(microseconds=1) * _NANOSECONDS["us"]
    return int(item.toordinal() - _EPOCH.toordinal()) * _NANOSECONDS["D"]


def _kind(item: Any) -> str:
    if isinstance(item, np.datetime64):
        return _kind_of(item.dtype, False)
    if isinstance(item, datetime):
        return _TIMES if item.utcoffset() is None else _ZONED
    return _DATES if isinstance(item, date) else type(item).__name__


def _kind_of(dtype: np.dtype[Any], zoned: bool) -> str:
    if dtype.kind != "M" or np.datetime_data(dtype)[1] != 1 or np.datetime_data(dtype)[0] not in _NANOSECONDS:
        return f"dtype {dtype_of(np.empty(0, dtype))}"
    return _ZONED if zoned else _NUMPY


def _read(column: Any, name: str) -> tuple[bool, NDArray[Any]]:
    """Return whether the type of a column has a time zone, and its rows, in UTC if so; or objects."""
    column = only_column(column, name)
    library, dtype = library_of(type(column)), getattr(column, "dtype", None)
    if library == "pandas" and getattr(dtype, "tz", None) is not None:
        return True, np.asarray(getattr(column, "array", column).tz_convert(None))
    if hasattr(dtype, "pyarrow_dtype"):
        column = getattr(column, "array", column).__arrow_array__()
    zone = getattr(dtype, "time_zone", None) or getattr(getattr(column, "type", None), "tz", None)
    return zone is not None, column_of(column, name)
