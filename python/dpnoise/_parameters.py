"""Conversion and checks of arrays and domains, by the same rules everywhere.

A domain is the public list of labels that the values 0, 1, ..., k - 1 stand for. Labels are looked up in hash tables
and sorted arrays, here and in the libraries of the containers: not in constant time. No message shows a value that is
looked up, or says which one is meant; labels are public and are shown.
"""

from __future__ import annotations

import json
import math
import numbers
import operator
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial, wraps
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import (
    Labels,
    array_from,
    arrow_column,
    asked,
    column_of,
    held,
    is_arrow,
    is_foreign,
    is_missing,
    labels_of,
    library_of,
    missing_values,
    require_pyarrow,
    unreadable,
)
from dpnoise._native import Sampler, ScriptedRng, SeededRng

if TYPE_CHECKING:
    from inspect import Signature

Rng = SeededRng | ScriptedRng | None
"""The type of ``rng=``: a generator of `dpnoise.hazmat`, for tests only, or None."""

Scalar = TypeVar("Scalar", bound=np.generic)

Made = TypeVar("Made")

Function = TypeVar("Function", bound=Callable[..., Any])

Size = SupportsIndex | Sequence[SupportsIndex]

# Integers up to here are exact as float64.
_EXACT = 2**53

# NumPy converts these directly; further checks would take longer than drawing a sample.
_PLAIN = (np.ndarray, float, int)

# Lists of these convert without a warning, and are not nested.
_NUMBERS = frozenset((float, int, bool))

# Iterable, but not a sequence to NumPy.
_NO_SEQUENCE = (str, bytes, dict, np.generic)

_KINDS: Final = {str: "texts", int: "integers", bool: "booleans"}

_SHOWN: Final = 20


_NOT_SEEDED: Final = "noise is not seeded; for tests, pass rng=dpnoise.hazmat.SeededRng(1) to the method that draws"
_CENTRED: Final = "noise has mean 0, and is added to the value that release takes"
_DERIVED: Final = "the scale of the noise follows from the privacy parameters and the sensitivity"
_SPREADS: Final = ("noise_multiplier", "stddev", _DERIVED)

_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "adjacency": ("relation",),
    "b": _SPREADS,
    "batch_size": ("expected_batch_size",),
    "bins": ("edges",),
    "budget": ("epsilon",),
    "categories": ("domain", "k"),
    "eps": ("epsilon",),
    "labels": ("domain",),
    "loc": (_CENTRED,),
    "lower": ("bounds",),
    "max_grad_norm": ("clip_norm",),
    "mu": (_CENTRED,),
    "neighbors": ("relation",),
    "neighbours": ("relation",),
    "num_categories": ("k",),
    "quantile": ("q",),
    "random_state": (_NOT_SEEDED,),
    "range": ("bounds",),
    "rng": (_NOT_SEEDED,),
    "scale": _SPREADS,
    "seed": (_NOT_SEEDED,),
    "sigma": _SPREADS,
    "std": _SPREADS,
    "upper": ("bounds",),
}
"""Names that other libraries have: the parameters that are meant, of which the first that there is counts, or why there
is none."""


class _ExplainedCalls(type):
    """The metaclass of `ByName`, which explains failing calls and only passes on all others."""

    def __call__(cls: type[Made], *given: Any, **named: Any) -> Made:
        try:
            made: Made = type.__call__(cls, *given, **named)
            return made
        except TypeError:
            problem = _misfit(cls, given, named)
            if problem is None:
                raise
        raise TypeError(problem)

    @property
    def __signature__(cls) -> Signature:
        """The parameters of the initialiser, where `inspect.signature` would find `__call__`."""
        from inspect import signature

        whole = signature(cls.__init__)  # type: ignore[misc] # that of this very class
        return whole.replace(parameters=list(whole.parameters.values())[1:])


_ExplainedCalls.__name__ = "type"  # as messages call a class that is given in place of its object


class ByName(metaclass=_ExplainedCalls):
    """A class whose parameters are keyword-only; the error for a call that does not fit says what to write."""

    __slots__ = ()


def explained(function: Function) -> Function:
    """Return the function with the errors of `ByName` for calls that do not fit; too slow for calls of microseconds."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            problem = _misfit(function, given, named)
            if problem is None:
                raise
        raise TypeError(problem)

    return cast("Function", call)


def _misfit(call: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Say how arguments do not fit the parameters of a call; None if they fit, and the error has another cause."""
    from inspect import Parameter, signature  # slow to import, and needed only for errors

    name, fits = call.__name__, signature(call)
    try:
        fits.bind(*given, **named)
    except TypeError as error:
        reason = error
    else:
        return None
    own = fits.parameters.values()
    by_position = [one.name for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = [one.name for one in own if one.kind is Parameter.KEYWORD_ONLY]
    if by_name and len(given) > len(by_position):
        return f"{name} takes its parameters by name, use {_keywords(by_name)}"
    unknown = [word for word in named if word not in fits.parameters]
    if unknown:
        return f"{name} takes no {unknown[0]}={_instead_of(unknown[0], list(fits.parameters))}"
    needed = [one.name for one in own if one.default is Parameter.empty and one.name not in named]
    missing = [one for one in needed if one not in by_position[: len(given)]]
    return f"{name} needs {_keywords(missing)}" if missing else f"{name}: {reason}"


def _instead_of(word: str, parameters: list[str]) -> str:
    for meant in _SYNONYMS.get(word.lower(), ()):
        if " " in meant:
            return f": {meant}; use {_keywords(parameters)}"
        if meant in parameters:
            return f", use {meant}="
    from difflib import get_close_matches

    return f", use {_keywords(get_close_matches(word, parameters, 1) or parameters)}"


def _keywords(names: Sequence[str]) -> str:
    return ", ".join(f"{name}=" for name in names)


# Tables are a function of the public parameters, and take longer to compute than a few samples.
_cached = lru_cache(maxsize=256, typed=True)(Sampler)


def sampler_of(distribution: str, *parameters: Any) -> Sampler:
    try:
        return _cached(distribution, *parameters)
    except TypeError:  # perhaps merely unhashable: the constructor's error names the problem
        return Sampler(distribution, *parameters)


def shape_of(size: Size) -> tuple[int, ...]:
    """Read a NumPy ``size``: an int, or a sequence of ints, none of them negative."""
    try:
        # An isinstance check of `SupportsIndex` would take longer than drawing a hundred samples.
        parts = (size,) if hasattr(size, "__index__") else size
        if isinstance(parts, str | bytes):  # a sequence too, but not of lengths
            raise TypeError
        shape = tuple(map(operator.index, parts))
    except TypeError:
        raise TypeError(f"size must be None, an int or a tuple of ints, got {size!r}") from None
    if min(shape, default=0) < 0:
        raise ParameterError(f"size must not be negative, got {size!r}")
    return shape


def output(size: Size | None, out: NDArray[Scalar] | None, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return the array to fill: a new one of shape ``size``, or ``out`` if it fits."""
    if out is None:
        if size is None:
            raise ParameterError("size must be given when out is None")
        # NumPy checks an int itself: to check it here would take as long as to draw a sample.
        shape = size if type(size) is int else shape_of(size)
        try:
            return np.empty(shape, dtype)
        except (OverflowError, ValueError) as error:
            reason = error
        if math.prod(shape_of(shape)) * np.dtype(dtype).itemsize > sys.maxsize:
            raise MemoryError(f"there is no room for an array of size {size!r}")
        raise ParameterError(f"size must be the shape of an array, got {size!r}: {reason}")
    kind = np.dtype(dtype)
    if not isinstance(out, np.ndarray) or out.dtype != kind:
        found = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        shared = ": pass what shares its memory, np.from_dlpack(out) or out.numpy()" if is_foreign(type(out)) else ""
        raise TypeError(f"out must be a NumPy array of dtype {kind}, got {found}{shared}")
    if size is not None and out.shape != shape_of(size):
        raise ParameterError(f"out must have the shape of size {shape_of(size)}, got {out.shape}")
    if not out.flags.writeable:
        raise ParameterError("out must be writable, got a read-only array")
    if not out.flags.c_contiguous:
        raise ParameterError("out must be C-contiguous, got a strided array: pass a new array and copy from it")
    return out


def array_for(shape: tuple[int, ...], out: NDArray[Scalar] | None, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return the array to fill for a result of a known shape, as `output` does."""
    return np.empty(shape, dtype) if out is None else output(shape, out, dtype)


def array_of(x: Any, name: str, *, tables: bool = True) -> NDArray[Any]:
    """Convert data of any library to an array; refuse missing and masked values, which the caller must fill.

    No message shows a value.

    Parameters
    ----------
    x : array_like
        Numbers or sequences, arrays of NumPy, columns of pandas, Polars or Arrow, or tensors.
    name : str
        The name of the parameter, for the message.
    tables : bool, default True
        Whether a table is taken, and becomes a matrix.

    Returns
    -------
    ndarray
        An array of the dtype and shape of the data. It may share their memory.

    Raises
    ------
    TypeError
        When the data cannot be read as an array.
    ParameterError
        When values are missing.
    """
    if type(x) in (list, tuple) and _NUMBERS.issuperset(map(type, x)):
        return np.asarray(x)
    return _as_array(_read(x, name, partial(array_from, tables=tables)), name)


def held_numbers(x: Any, name: str) -> Any:
    """Return what `array_of` takes as what gives the same whenever it is read."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    found = _read(x, name, held)
    # A tensor without dimensions is a number.
    return found[()] if isinstance(found, np.ndarray) and found.ndim == 0 and found.dtype.kind != "O" else found


def reals_of(x: Any, name: str, otherwise: str = "", *, tables: bool = True) -> NDArray[Any]:
    """Convert data to an array of real numbers that float64 holds exactly. No message shows a number.

    Parameters
    ----------
    x : array_like of float or int
        Numbers or sequences of numbers, arrays of NumPy, columns of pandas, Polars or Arrow, or tensors. Integers are
        at most 2**53 in magnitude.
    name : str
        The name of the parameter, for the message.
    otherwise : str, default ""
        The end of the message for larger integers: what to do.
    tables : bool, default True
        Whether a table is taken, and becomes a matrix.

    Returns
    -------
    ndarray
        An array of integers or floats of at most 64 bits. It may share memory with the data.

    Raises
    ------
    TypeError
        When the data cannot be read as an array, or are bool, complex numbers or texts.
    ParameterError
        When values are missing, or an integer is larger.
    """
    read = _read(x, name, partial(array_from, tables=tables))
    given = _as_array(read, name)
    if given.dtype.kind in "iu" and given.dtype.itemsize == 8:
        large = bool(np.any(given > _EXACT) | np.any(given < -_EXACT))
    elif given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers of at most 64 bits, got dtype {dtype_of(given)}")
    else:
        large = given.dtype.kind == "f" and isinstance(read, list | tuple)
        large = large and asked(partial(_has_large_integers, read), partial(unreadable, read, name))
    if large:
        raise ParameterError(f"{name} must have integers of at most 2**53 in magnitude{otherwise}")
    return given


def doubles(array: NDArray[Any], *, copy: bool = False) -> NDArray[np.float64]:
    """Return real numbers as float64, C-contiguous and aligned; no warning may reveal a number."""
    if copy and array.dtype == np.float64:
        return np.array(array, np.float64, order="C")
    with np.errstate(all="ignore"):
        if copy:
            return np.array(array, np.float64, order="C")
        return np.require(array, np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def dtype_of(array: NDArray[Any]) -> str:
    """Name the dtype of an array, without the length of the longest text or of records."""
    name = array.dtype.name
    return name.rstrip("0123456789") if array.dtype.kind in "SUV" else name


def _as_array(read: Any, name: str) -> NDArray[Any]:
    if isinstance(read, np.ndarray):
        return np.asarray(read)  # a view: no number is converted
    problem: Exception
    try:
        with np.errstate(all="ignore"):  # a warning about a signalling NaN in a list
            return np.asarray(read)
    except MemoryError:
        raise
    except ValueError:
        problem = ParameterError(f"{name} must be an array, got nested sequences of different lengths")
    except Exception:  # as in `asked`
        problem = unreadable(read, name)
    raise problem


def _has_large_integers(x: list[Any] | tuple[Any, ...]) -> bool:
    """Say whether a list that NumPy converts to floats has integers that would be rounded."""
    return any(isinstance(item, numbers.Integral) and abs(int(item)) > _EXACT for item in np.array(x, object).flat)


def _read(x: Any, name: str, foreign: Callable[[Any, str], Any]) -> Any:
    """Convert containers of other libraries by `foreign`, in lists too: NumPy itself mishandles missing values."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if is_foreign(kind):
        return foreign(x, name)
    if any(hasattr(kind, method) for method in ("__array__", "__array_interface__", "__array_struct__")):
        # np.asarray would drop the mask of a masked array.
        found: Any = asked(partial(np.asanyarray, x), partial(unreadable, x, name))
        if isinstance(found, np.ma.MaskedArray) and np.ma.is_masked(found):
            raise ParameterError(f"{name} must have no masked values: fill or drop them first")
        return found
    if not asked(partial(_is_sequence, x), partial(unreadable, x, name)):
        return x
    parts = x if kind in (list, tuple) else asked(partial(list, x), partial(unreadable, x, name))
    # A check of types first is fast for a long list of numbers.
    return [_read(part, name, foreign) for part in parts] if any(map(_may_be_read, set(map(type, parts)))) else parts


def _is_sequence(x: Any) -> bool:
    """Say whether NumPy asks an object for its parts, instead of reading its memory, as for an `array.array`."""
    if isinstance(x, list | tuple):
        return True
    if isinstance(x, _NO_SEQUENCE) or not all(hasattr(x, method) for method in ("__getitem__", "__len__")):
        return False
    try:
        memoryview(x)
    except TypeError:
        return not hasattr(x, "__array_interface__") and not hasattr(x, "__array_struct__")
    return False


def _may_be_read(kind: type) -> bool:
    if kind in (float, int) or issubclass(kind, _NO_SEQUENCE):
        return False
    return hasattr(kind, "__getitem__") or hasattr(kind, "__array__") or is_foreign(kind)


class Domain(tuple[Any, ...]):
    """The labels in their order: all str, all int or all bool, and all different.

    Parameters
    ----------
    labels : sequence or column of labels
        Two or more. A pandas Categorical or CategoricalDtype, a polars Enum and an Arrow array with a dictionary stand
        for their categories, whatever values they hold; any other column for its values.
    name : str
        The name of the domain in messages.
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
        """Return the number of a label, which is public and is shown if it is unknown."""
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

    def of_integers(self, values: NDArray[Any], name: str) -> NDArray[np.int64]:
        labels, numbers = self._sorted
        given = values.astype(np.int64)
        places = np.minimum(np.searchsorted(labels, given), len(self) - 1)
        found = (labels[places] == given) & ((given < 0) == (values < 0))  # an unsigned integer may have wrapped around
        return self._checked(np.where(found, numbers[places], -1), name)

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
            return self._of_items(values, name)  # which raises the error
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
            return self._of_items(values, name)  # which raises the error
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
        items = list(values) if type(values) in (list, tuple) else column_of(values, name).tolist()
        kinds = set(map(type, items))
        others = {kind.__name__ for kind in kinds if not issubclass(kind, str)}
        if others:
            if any(map(is_missing, items)):
                raise missing_values(name)
            raise _other_kind(name, " and ".join(sorted(others)))
        if kinds - {str, np.str_}:  # subclasses may hash and compare in their own way
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
    """Say whether two sets of reports have different labels, if both have any; compared as texts, as in files."""
    return one is not None and other is not None and one.names != other.names


def _plain(label: Any) -> Any:
    """Return a label of a library's own type as a built-in type."""
    if isinstance(label, str):
        return str.__str__(label)
    return label.item() if isinstance(label, np.integer | np.bool_) else label


def _other_kind(name: str, found: Any) -> TypeError:
    return TypeError(f"{name} must be texts, as the labels of the domain are, got {found}")
