"""Domains: the public list of labels that the values 0, 1, ..., k - 1 stand for.

Labels are looked up in hash tables and sorted arrays, here and in the libraries of the containers: not in constant
time. No message shows a value that is looked up, or says which one is meant; labels are public and are shown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpnoise._columns import array_of, is_missing
from dpnoise._errors import ParameterError
from dpnoise._interchange import (
    array_from,
    arrow_column,
    is_arrow,
    is_foreign,
    library_of,
    missing_values,
    require_pyarrow,
)

Labels: TypeAlias = Any
"""What lists labels: a sequence, an array or a column of them, or a type or column that has them as its categories."""

_KINDS: Final = {str: "texts", int: "integers", bool: "booleans"}

_SHOWN: Final = 20


class Domain(tuple[Any, ...]):
    """The labels in their order: all str, all int or all bool, and all different.

    Parameters
    ----------
    labels : sequence or column of labels
        Two or more. A pandas Categorical or CategoricalDtype, a polars Enum and an Arrow array with a dictionary stand
        for their categories, whatever values they hold; any other column for its values.
    name : str
        What messages call it.
    """

    def __new__(cls, labels: Labels, name: str = "domain") -> Domain:
        if type(labels) is cls:
            return labels
        domain = super().__new__(cls, map(_plain, labels_of(labels, name)))
        kinds = set(map(type, domain))
        if len(kinds) > 1 or not kinds <= _KINDS.keys():
            found = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"{name} must be of texts, of integers or of booleans, got {found}")
        if str in kinds and any(label != label.encode(errors="replace").decode() for label in domain):
            raise ParameterError(f"{name} must be of texts that UTF-8 can hold, got {listing(domain)}")
        if int in kinds and not -(2**63) <= min(domain) <= max(domain) < 2**63:
            raise ParameterError(f"{name} must be of integers that int64 can hold, got {listing(domain)}")
        if len(domain) < 2:
            raise ParameterError(f"{name} must have at least 2 values, got {len(domain)}")
        if len(domain._positions) < len(domain):
            repeated = [label for label, count in Counter(domain).items() if count > 1]
            raise ParameterError(f"a value of {name} must occur only once, got more of {listing(repeated)}")
        return domain

    @property
    def kind(self) -> type:
        return type(self[0])

    @property
    def names(self) -> list[str]:
        """The labels as texts, which files have: integers in decimal digits, and "false" and "true"."""
        return list(self) if self.kind is str else [str(label).lower() for label in self]

    def to_json(self) -> str:
        return json.dumps(self.names, ensure_ascii=False)

    def position(self, label: Any, name: str) -> int:
        """Return the number of a label, which is public and is shown if it is none."""
        given = _plain(label)
        found = self._positions.get(given) if type(given) is self.kind else None
        if found is None:
            raise ParameterError(f"{name} must be a label of the domain {self!r}, got {label!r}")
        return found

    def of_texts(self, values: Any, name: str) -> NDArray[np.int64]:
        """Return the number of each text of a list, an array or a column of any library."""
        read = {"pandas": self._of_pandas, "polars": self._of_polars}.get(library_of(type(values)))
        if read is None:
            read = self._of_arrow if is_arrow(values) else self._of_items
        return self._checked(read(values, name), name)

    def of_integers(self, values: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        labels, numbers = self._sorted
        places = np.minimum(np.searchsorted(labels, values), len(self) - 1)
        return self._checked(np.where(labels[places] == values, numbers[places], -1), name)

    def of_booleans(self, values: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the number of each boolean, given as 0 or 1: both are labels."""
        numbers: NDArray[np.int64] = np.not_equal(values, self[0]).astype(np.int64)
        return numbers

    def _checked(self, numbers: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        if numbers.min(initial=0) < 0:
            raise ParameterError(
                f"{name} must all be in the domain {self!r}; which value is not, and where, is private and not shown"
            )
        return numbers

    def _of_pandas(self, values: Any, name: str) -> NDArray[np.int64]:
        dtype = getattr(values, "dtype", None)
        if dtype is None or len(values.shape) > 1:
            return self._of_items(values, name)  # which refuses it
        column = getattr(values, "array", values)
        if str(dtype) == "category":
            categories = self._of_items(column.categories.tolist(), f"the categories of {name}")
            if column.isna().any():
                raise missing_values(name)
            numbers: NDArray[np.int64] = categories[column.codes]
            return numbers
        of_arrow = hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"
        return self._of_arrow(column.__arrow_array__(), name) if of_arrow else self._of_items(values, name)

    def _of_polars(self, values: Any, name: str) -> NDArray[np.int64]:
        import polars as pl

        if not isinstance(values, pl.Series):
            return self._of_items(values, name)  # which refuses it
        if values.null_count():
            raise missing_values(name)
        if values.dtype not in (pl.String, pl.Enum, pl.Categorical, pl.Null):
            raise _other_kind(name, values.dtype)
        numbers = values.cast(pl.Enum(list(self)), strict=False).to_physical()
        return np.asarray(numbers.cast(pl.Int64).fill_null(-1).to_numpy())

    def _of_arrow(self, values: Any, name: str) -> NDArray[np.int64]:
        pa, column = require_pyarrow(), arrow_column(values, name)
        if column.null_count:
            raise missing_values(name)
        if not any(is_type(column.type) for is_type in (pa.types.is_string, pa.types.is_large_string)):
            if not pa.types.is_null(column.type):
                raise _other_kind(name, f"a column of type {column.type}")
            column = column.cast(pa.string())
        numbers = pa.compute.index_in(column, value_set=pa.array(self, column.type))
        return np.asarray(numbers.cast(pa.int64()).fill_null(-1))

    def _of_items(self, values: Any, name: str) -> NDArray[np.int64]:
        items = list(values) if isinstance(values, list | tuple) else array_of(values, name).tolist()
        kinds = set(map(type, items))
        others = {kind.__name__ for kind in kinds if not issubclass(kind, str)}
        if others:
            if any(map(is_missing, items)):
                raise missing_values(name)
            raise _other_kind(name, " and ".join(sorted(others)))
        if kinds - {str, np.str_}:  # which may hash and compare in their own way
            items = list(map(str.__str__, items))
        return np.fromiter(map(self._positions.get, items, repeat(-1)), np.int64, len(items))

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {label: number for number, label in enumerate(self)}

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        labels = np.array(self, np.int64)
        numbers = np.argsort(labels)
        return labels[numbers], numbers

    def __repr__(self) -> str:
        return f"({listing(self)})"

    def __reduce__(self) -> tuple[type[Domain], tuple[tuple[Any, ...]]]:
        return Domain, (tuple(self),)


def listing(values: Sequence[Any]) -> str:
    """Return values in one line, quoted; of many only the first twenty."""
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown}, ... ({len(values)} in all)"


def disagree(one: Domain | None, other: Domain | None) -> bool:
    """Say whether two sets of reports have other labels, as far as both have some; as texts, which files have."""
    return one is not None and other is not None and one.names != other.names


def _plain(label: Any) -> Any:
    """Return a label of a library's own type as one of Python's."""
    if isinstance(label, str):
        return str.__str__(label)
    return label.item() if isinstance(label, np.integer | np.bool_) else label


def labels_of(given: Labels, name: str) -> list[Any]:
    """Return what lists labels as a list, unchecked."""
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


def _other_kind(name: str, found: Any) -> TypeError:
    return TypeError(f"{name} must be texts, as the labels of the domain are, got {found}")
