"""Columns as codes of their values: for groups, and for the persons whose rows they are.

Equal values have one code, and no others: two persons with one code would have half the privacy each. Values are looked
up in hash tables, and sorted, here and in the libraries of the containers: not in constant time. No message shows a
value.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import arrow_column, held, is_foreign, is_missing, only_column, read_by, require_pyarrow
from dpnoise._columns import (
    MIXED,
    array_of_column,
    built_in,
    codes_of_arrow,
    common_kind,
    described,
    is_countable,
    is_of_objects,
    kinds_of,
    objects,
    plain,
    stored,
)
from dpnoise._decimals import number_of
from dpnoise._errors import ParameterError

# From here on a double does not tell all integers apart: it might stand for several persons.
_DOUBLES: Final = 2**53

_KINDS: Final = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "S": "bytes", "U": "texts"}


class Coded:
    """A column as codes of its values.

    Attributes
    ----------
    codes : ndarray of int32
        The place of each row's value in `values`; -1 for a missing value.
    values : list or ndarray
        Different values, in an order that may depend on the rows. Not all need occur.
    kind : str, optional
        What the values are by the type of the column: "texts", "bytes", "numbers" or "booleans"; None for objects, of
        which each says so itself.
    """

    __slots__ = ("codes", "kind", "values")

    def __init__(self, codes: NDArray[np.int32], values: list[Any] | NDArray[Any], kind: str | None = None) -> None:
        self.codes, self.values, self.kind = codes, values, kind

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.codes[rows], self.values, self.kind)

    def only(self, rows: NDArray[np.bool_]) -> Coded:
        """Return the column with missing values in all other rows."""
        return Coded(np.where(rows, self.codes, np.int32(-1)), self.values, self.kind)

    def of_values(self, places: Iterable[int]) -> NDArray[np.int32]:
        """Return what stands in the place of each row's value, and -1 for missing values."""
        return np.append(np.fromiter(places, np.int32, len(self.values)), np.int32(-1))[self.codes]

    def counts(self) -> NDArray[np.int64]:
        """Return how many rows have each value."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:].astype(np.int64, copy=False)

    def in_order(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values that occur, in order, and how many rows have each."""
        counts, values = self.counts(), self.values if isinstance(self.values, np.ndarray) else objects(self.values)
        found = np.flatnonzero(counts)
        order = found[np.argsort(values[found])]
        return values[order], counts[order]

    def found_in(self, labels: list[Any], name: str, owner: str) -> Coded:
        """Return the column as codes of `plain` labels of its kind; a value that is none of them counts as missing."""
        values = list(map(plain, self._listed()))
        kind, wanted = self.kind or (common_kind(values) if values else None), common_kind(labels)
        if kind not in (None, wanted):
            raise TypeError(f"{name} must be of the kind of the {owner} ({wanted}), got {kind}")
        places = {label: place for place, label in enumerate(labels)}
        return Coded(self.of_values(map(places.get, values, repeat(-1))), labels)

    def _listed(self) -> list[Any]:
        return self.values if isinstance(self.values, list) else self.values.tolist()

    def _merged(self, name: str) -> Coded:
        """Make objects `plain`, of which several may be one then, and refuse objects of several kinds."""
        if isinstance(self.values, np.ndarray) or self.kind in ("texts", "bytes"):
            return self
        if self.values and common_kind(number_of(one) if type(one) is Decimal else one for one in self.values) is None:
            kinds = sorted({type(value).__name__ for value in self.values})
            raise TypeError(f"{name} {MIXED} {' and '.join(kinds)}")
        as_plain = list(map(plain, self.values))
        places = {value: place for place, value in enumerate(dict.fromkeys(as_plain))}
        return Coded(self.of_values(map(places.__getitem__, as_plain)), list(places), self.kind)


def coded(column: Any, name: str = "column") -> Coded:
    """Code the values of a column; all must be texts, all bytes, all numbers or all booleans.

    An integral value is an int, for every type: a single row can turn all integers of a data frame or of an array into
    floats, and the result must not reveal that. For the same reason missing values and types are checked row by row.
    """
    return _coded(column, name)._merged(name)


def coded_persons(ids: Any, name: str) -> tuple[Coded, NDArray[np.bool_]]:
    """Code the ids of persons, and say which rows have none.

    A number that may stand for several persons is no id, and counts as missing, but is one that the row has.
    """
    found = _coded(ids, name)
    has_none = found.codes < 0
    if found.kind == "booleans" or (found.kind is None and not {bool, np.bool_}.isdisjoint(map(type, found.values))):
        raise TypeError(f"{name} must be texts or integers that name the persons, got booleans")
    is_id = np.append(_are_ids(found), False)[found.codes]
    return found.only(is_id)._merged(name), has_none


def _are_ids(found: Coded) -> NDArray[np.bool_]:
    """Say of each value whether it stands for one person alone."""
    values = found.values
    if isinstance(values, list):
        return np.fromiter(map(_is_id, values), np.bool_, len(values))
    if values.dtype.kind != "f":
        return np.ones(len(values), np.bool_)
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    return np.asarray((np.abs(values) < limit) & (values == np.rint(values)))


def _is_id(value: Any) -> bool:
    if isinstance(value, Decimal):  # exact, as integers are
        return value.is_finite() and value == value.to_integral_value()
    is_exact = not isinstance(value, float | np.floating | Fraction)
    return is_exact or bool(abs(value) < _DOUBLES and value == round(value))


def _coded(column: Any, name: str) -> Coded:
    """Code the values of a column as they are, before they become `plain`."""
    if is_foreign(type(column)):
        column = held(only_column(column, name), name)
    if (found := read_by(partial(_coded_by_library, name=name), column, name)) is not None:
        return found
    # Integers beside missing values would become floats. Among objects missing values change no other.
    found = _coded_array(array_of_column(column, name, missing=is_of_objects(column)), name)
    if not is_foreign(type(column)):
        return found
    kind = found.kind or read_by(_kind_of_type, column, name)
    if (present := read_by(_present, column, name)) is None:
        return Coded(found.codes, found.values, kind)
    if np.count_nonzero(present) != len(found):
        raise ParameterError(f"{name} must not change while it is read")
    codes = np.full(len(present), -1, np.int32)
    codes[present] = found.codes
    return Coded(codes, found.values, kind)


def _present(column: Any) -> NDArray[np.bool_] | None:
    """Say which rows `array_of_column` leaves if it drops missing values; None for a column without nulls."""
    library, held_in = stored(column)
    if is_of_objects(column):
        return None
    if library == "pandas":
        return ~np.asarray(held_in.isna())
    if library == "polars":
        return np.asarray(held_in.is_not_null().to_numpy())
    return np.asarray(held_in.is_valid().cast("uint8")).view(np.bool_) if library == "pyarrow" else None


def _kind_of_type(column: Any) -> str | None:
    """Say by the type of a column of decimals, wide integers or bytes what its values are, also where it has none."""
    library, held_in = stored(column)
    if library == "polars":
        dtype = str(held_in.dtype)
        return "numbers" if dtype.startswith(("Decimal", "Int", "UInt")) else "bytes" if dtype == "Binary" else None
    if library == "pyarrow":
        pa, kind = require_pyarrow(), arrow_column(held_in, "column").type
        is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
        return "numbers" if pa.types.is_decimal(kind) else "bytes" if is_bytes else None
    return None


def _coded_array(array: NDArray[Any], name: str) -> Coded:
    kind = array.dtype.kind
    if kind in "OT":  # the latter are NumPy's texts of any length
        if (coded_texts := _native.code_texts(objects(array.tolist()) if kind == "T" else array)) is None:
            return _coded_objects(array, name)
        codes, texts = coded_texts
        return Coded(codes, texts, "texts" if texts or kind == "T" else None)
    if kind not in _KINDS:
        raise TypeError(f"{name} {MIXED} {described(array)}")
    if kind in "SU":
        distinct, places = np.unique(array, return_inverse=True)
        return Coded(places.astype(np.int32), distinct.tolist(), _KINDS[kind])
    if array.dtype == np.longdouble:
        return _coded_objects(objects(list(array)), name)
    with np.errstate(all="ignore"):  # signalling NaN
        wide: NDArray[Any] = array.astype({"b": np.int64, "i": np.int64, "u": np.uint64, "f": np.float64}[kind])
        if kind == "f":
            wide = wide + 0.0  # 0.0 and -0.0 are one number
    found, bits = _native.codes(wide.view(np.int64))
    if kind == "f":
        found[np.isnan(wide)] = -1
    values = bits.view(wide.dtype)
    return Coded(found, values if kind in "iu" else values.astype(array.dtype), _KINDS[kind])


def _coded_objects(array: NDArray[Any], name: str) -> Coded:
    """Code objects with their types; a decimal is itself here, and not the nearest double."""
    items = built_in(array, kinds_of(array) - {Decimal}, name).tolist()
    if not all(kind is Decimal or is_countable(kind) for kind in set(map(type, items))):  # may compare in their own way
        raise TypeError(f"{name} {MIXED} {described(array)}")
    found: dict[Any, int] = {}
    codes = (-1 if _is_missing(item) else found.setdefault((type(item), item), len(found)) for item in items)
    return Coded(np.fromiter(codes, np.int32, len(items)), [value for _, value in found])


def _is_missing(item: Any) -> bool:
    return item.is_nan() if type(item) is Decimal else is_missing(item)


def _coded_by_library(column: Any, name: str) -> Coded | None:
    """Code categories and texts where the library of the column does so without a Python object for each row."""
    library, column = stored(column)
    dtype = str(getattr(column, "dtype", ""))
    if library == "pandas" and dtype == "category":
        column = getattr(column, "array", column)
        # Of the categories alone, which are public: a missing row changes no number.
        labels = _coded(column.categories, f"the categories of {name}")
        return Coded(np.append(labels.codes, np.int32(-1))[column.codes], labels.values, labels.kind)
    if library == "polars" and dtype.startswith(("Categorical", "Enum", "String")):
        return _coded_by_polars(column)
    if library == "pyarrow" and hasattr(column, "type"):
        decoded, types = arrow_column(column, name), require_pyarrow().types
        if types.is_string(decoded.type) or types.is_large_string(decoded.type):
            encoded = decoded.dictionary_encode().unify_dictionaries()
            codes = [codes_of_arrow(chunk).astype(np.int32) for chunk in encoded.chunks]
            texts = encoded.chunk(0).dictionary.to_pylist() if codes else []
            return Coded(np.concatenate([np.empty(0, np.int32), *codes]), texts, "texts")
    return None


def _coded_by_polars(column: Any) -> Coded:
    import polars as pl

    texts = column.cast(pl.String)
    values = texts.drop_nulls().unique()
    codes = texts.cast(pl.Enum(values)).to_physical().cast(pl.Int32).fill_null(-1)
    return Coded(np.array(codes.to_numpy(), np.int32), values.to_list(), "texts")
