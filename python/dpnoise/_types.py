"""The types of arguments: arrays of all libraries, labels, sizes and generators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._native import ScriptedRng, SeededRng

Rng: TypeAlias = SeededRng | ScriptedRng | None
"""The type of ``rng=``: a generator of `dpnoise.hazmat`, for tests only, or None."""

Size = SupportsIndex | Sequence[SupportsIndex]

Missing = Literal["refuse", "keep", "drop"]
"""How missing values are read: refused with an error, kept as NaN, None or NA, or dropped."""


class ArrowArray(Protocol):
    """A column or record batch of any library that speaks Arrow."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A chunked column, table or reader of any library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Tensor(Protocol):
    """A tensor of any library that speaks DLPack."""

    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class SupportsArray(Protocol):
    def __array__(self) -> NDArray[Any]: ...


class Series(Protocol):
    """A series of pandas or polars: other columns and arrays, indexes of pandas too, lack one of these methods."""

    def head(self, *_: Any, **__: Any) -> Any: ...
    def to_frame(self, *_: Any, **__: Any) -> Any: ...


AnySeries = TypeVar("AnySeries", bound=Series)

Item = TypeVar("Item", covariant=True)


class Items(Protocol[Item]):
    """A list, tuple or other sequence, but not str or bytes, whose `in` refuses objects of other types."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __contains__(self, value: object, /) -> bool: ...
    def __reversed__(self) -> Iterator[Item]: ...


Foreign = NDArray[Any] | SupportsArray | ArrowArray | ArrowStream | Tensor
"""An array, column, table or tensor of any library."""

Integer = int | np.integer[Any]
Real = float | np.integer[Any] | np.floating[Any]
Number = Real | Fraction
"""A number that is a parameter; in data there are no fractions."""

Instant = date | np.datetime64
"""A date, a time (which is a date to Python) or one of NumPy's: a parameter of queries of dates and times."""

ListedIntegers = NDArray[Any] | ArrowArray | ArrowStream | Items[Integer | Foreign | Items[Any]]
ListedReals = NDArray[Any] | ArrowArray | ArrowStream | Items[Real | Foreign | Items[Any]]
"""Those of which a release is an array; that of a series is a series, and of a tensor without dimensions a number."""

Integers = Foreign | ListedIntegers
Reals = Foreign | ListedReals
Texts = Foreign | Items[str] | Items[bytes]
Answer = Integer | str | np.bool_
Answers = Foreign | Items[Answer] | Answer
"""Numbers of values from 0 to k - 1, or labels, which are texts, integers or booleans; or a single one."""

Labels: TypeAlias = Any
"""A list of labels: a sequence, an array or a column of them, or a type or column that has them as its categories."""

Values = Foreign | Items[Any]
