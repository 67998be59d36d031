"""Columns, tables and tensors of other libraries as NumPy arrays, views of them where their layout allows.

pandas and polars give NumPy arrays themselves, and NumPy reads DLPack. pyarrow reads and decodes everything else
that has the Arrow PyCapsule interface: the crate arrow-array with its C interface would make the native module two
fifths larger, bring more than fifty other crates, need unsafe code, and decode nothing. No message shows a value, or
says which value is meant.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import Error, ParameterError

Missing = Literal["refuse", "keep", "drop"]
"""How missing values are read: refused with an error, kept as NaN, None or NA, or dropped."""

# DLPack's device types whose memory the CPU cannot read.
_DEVICES: Final = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA (managed)", 14: "oneAPI"}

# Device types whose memory the CPU reads: its own, and pinned memory of CUDA and ROCm.
_CPU: Final = (1, 3, 11)

PARQUET: Final[dict[str, Any]] = {
    # Arrow's default prefetches the whole file and keeps it; these options read it a piece at a time.
    "pre_buffer": False,
    "buffer_size": 1 << 20,
    # Reports are random bits, so only a checksum detects a damaged page.
    "page_checksum_verification": True,
}
"""The options with which all Parquet files are read."""

_COLUMNS: Final = "NumPy array, list, pandas or polars series, Arrow array or tensor"

_MIXED: Final = "must be of texts, of numbers or of booleans, got"

_KINDS: Final[dict[str, Any]] = {"texts": str, "bytes": bytes, "booleans": (bool, np.bool_), "numbers": numbers.Real}

_BUILT_IN: Final = frozenset((int, float, bool, str, bytes, Fraction))


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


Item = TypeVar("Item", covariant=True)

Made = TypeVar("Made")


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

ListedIntegers = NDArray[Any] | Items[Integer | Foreign | Items[Any]]
ListedReals = NDArray[Any] | Items[Real | Foreign | Items[Any]]
"""Those of which a release is an array; of a column of a library it is one of that library."""

Integers = Foreign | ListedIntegers
Reals = Foreign | ListedReals
Texts = Foreign | Items[str] | Items[bytes]
Answer = Integer | str | np.bool_
Answers = Foreign | Items[Answer] | Answer
"""Numbers of values from 0 to k - 1, or labels, which are texts, integers or booleans; or a single one."""

Labels: TypeAlias = Any
"""A list of labels: a sequence, an array or a column of them, or a type or column that has them as its categories."""

Values = Foreign | Items[Any]


def is_arrow(x: object) -> TypeGuard[ArrowArray | ArrowStream]:
    """Say whether an object, or what is of a type, offers itself as Arrow data."""
    return hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")


def is_foreign(kind: type) -> bool:
    """Say whether `array_from` reads objects of this type."""
    if issubclass(kind, np.ndarray):
        return False
    return is_arrow(kind) or hasattr(kind, "__dlpack__") or (library_of(kind) == "pandas" and hasattr(kind, "to_numpy"))


def library_of(kind: type) -> str:
    """Name the library of a type; a subclass of a pandas series is pandas, too."""
    found = [base.__module__.partition(".")[0] for base in kind.__mro__]
    return next((library for library in found if library in ("pandas", "polars", "pyarrow")), found[0])


def codes_of(x: Any) -> str | None:
    """Name the attribute with the codes of the categories, if ``x`` is a column of categories."""
    library, dtype = library_of(type(x)), str(getattr(x, "dtype", ""))
    if library == "pandas" and dtype == "category":
        return ".cat.codes" if hasattr(x, "cat") else ".codes"
    if library == "polars" and dtype.startswith(("Enum", "Categorical")):
        # The codes of a Categorical come from a pool that columns share.
        return (".cast(pl.Enum(values))" if dtype.startswith("Categorical") else "") + ".to_physical()"
    if library == "pyarrow" and require_pyarrow().types.is_dictionary(x.type):
        return ".indices" if hasattr(x, "indices") else ".combine_chunks().indices"
    return None


def asked(read: Callable[[], Made], refusal: Callable[[], Exception]) -> Made:
    """Read private data by the code of a class of the caller's or of another library, which may raise anything.

    Its message might show a value, and so might the context of the error that takes its place: that has none.
    """
    try:
        return read()
    except (Error, ImportError, MemoryError):
        raise
    except Exception:  # noqa: S110 # see above
        pass
    raise refusal()


def array_from(x: Any, name: str, missing: Missing = "refuse", *, tables: bool = True) -> NDArray[Any]:
    """Return a column or tensor of any library as an array; unless values may be missing, a table as a matrix."""
    # Check the type first: a message about a table's columns would be of no use.
    read = partial(_reader(type(x)), x, name, missing)
    found = None if not tables and hasattr(type(x), "columns") else asked(read, partial(unreadable, x, name))
    if found is None or (not tables and found.ndim > 1 and is_arrow(type(x))):
        raise ParameterError(f"{name} must be an array or a column, got a table: pass one of its columns")
    return found


def held(x: Any, name: str) -> Any:
    """Return a column or tensor of any library as one that gives the same whenever it is read; no copy if `x` does."""
    if library_of(type(x)) in ("pandas", "polars", "pyarrow") and hasattr(type(x), "__len__"):
        return x
    return arrow_column(x, name) if is_arrow(type(x)) else array_from(x, name)


def held_column(column: Any, name: str) -> Any:
    """Return what `column_of` and `counts` take as what gives the same whenever it is read."""
    # Perhaps of the caller's classes.
    of_objects = library_of(type(column)) == "pandas" and str(getattr(column, "dtype", "")) == "object"
    return held(column, name) if is_foreign(type(column)) and not of_objects else column_of(column, name)


def arrow_column(x: ArrowArray | ArrowStream, name: str) -> Any:
    """Return a column of any library as a pyarrow chunked array, without dictionaries, runs, views and user types."""
    pa = require_pyarrow()

    def read() -> Any:
        column = pa.chunked_array(x if hasattr(x, "__arrow_c_stream__") else [pa.array(x)])
        # Only decoded chunks know how many values are missing, and pyarrow turns nulls of encoded chunks into values.
        while decode := _decoder(pa, column.type):
            column = pa.chunked_array([decode(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]])
        return column

    return asked(read, partial(unreadable, x, name))


def require_pyarrow() -> Any:
    """Import pyarrow, or say what to install."""
    try:
        import pyarrow
        import pyarrow.compute
    except ModuleNotFoundError as error:
        raise ImportError("Arrow data and Parquet files need pyarrow: pip install 'dpnoise[arrow]'") from error
    return pyarrow


def native_file(path: str | os.PathLike[str]) -> Any:
    """Open a file for Arrow, which assumes that every text path is UTF-8.

    Arrow waits for a pipe without heeding signals, and reads a file in several places. A missing or unreadable file
    raises the system's own error.
    """
    kind = os.stat(path).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise ParameterError(f"{os.fspath(path)!r} must be a file, got a pipe or a device: write that to a file first")
    open(path, "rb").close()
    return require_pyarrow().OSFile(os.fsencode(path))


def _reader(kind: type) -> Callable[[Any, str, Missing], NDArray[Any]]:
    if library_of(kind) in ("pandas", "polars"):
        return _from_pandas if library_of(kind) == "pandas" else _from_polars
    return _from_arrow if is_arrow(kind) else _from_dlpack


def _from_pandas(x: Any, name: str, missing: Missing) -> NDArray[Any]:
    if len(x.shape) == 2:
        return _matrix((_from_pandas(column, name, missing) for _, column in x.items()), name, missing)
    if hasattr(x.dtype, "pyarrow_dtype"):
        return _from_arrow(getattr(x, "array", x).__arrow_array__(), name, missing)
    # In NumPy's own dtypes missing values are NaN, which the caller handles.
    if missing == "refuse" and not isinstance(x.dtype, np.dtype) and x.isna().any():
        raise missing_values(name)
    if missing == "drop":
        x = x.dropna()
    return np.asarray(x.to_numpy())


def _from_polars(x: Any, name: str, missing: Missing) -> NDArray[Any]:
    if len(x.shape) == 2:
        return _matrix((_from_polars(column, name, missing) for column in x.iter_columns()), name, missing)
    if missing == "refuse" and x.null_count():
        raise missing_values(name)
    if missing == "refuse" and x.dtype.is_nested():
        raise _nested(name)
    if missing == "drop":
        x = x.drop_nulls()
    return np.asarray(x.to_numpy())


def _from_arrow(x: Any, name: str, missing: Missing) -> NDArray[Any]:
    column = arrow_column(x, name)
    types = require_pyarrow().types
    if missing == "refuse" and column.null_count:
        raise missing_values(name)
    if types.is_struct(column.type):  # how a table comes
        return _matrix((_from_arrow(field, name, missing) for field in column.flatten()), name, missing)
    if missing == "refuse" and types.is_nested(column.type):  # values may be missing further inside
        raise _nested(name)
    if missing == "drop":
        column = column.drop_null()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _from_dlpack(x: Any, name: str, _: Missing) -> NDArray[Any]:
    device, number = map(int, x.__dlpack_device__())
    if device not in _CPU:
        found = _DEVICES.get(device, f"DLPack's device type {device},")
        raise ParameterError(f"{name} must be in the memory of the CPU, got a tensor on {found} device {number}")
    return np.from_dlpack(x)


def _decoder(pa: Any, kind: Any) -> Callable[[Any], Any] | None:
    if isinstance(kind, pa.BaseExtensionType):
        return operator.attrgetter("storage")
    if pa.types.is_run_end_encoded(kind):
        decode: Callable[[Any], Any] = pa.compute.run_end_decode
        return decode
    # Views support neither taking values nor dropping nulls.
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if kind in views:
        return operator.methodcaller("cast", views[kind])
    if not pa.types.is_dictionary(kind):
        return None
    values = views.get(kind.value_type, kind.value_type)
    return lambda chunk: chunk.dictionary.cast(values).take(chunk.indices)


def _matrix(columns: Iterable[NDArray[Any]], name: str, missing: Missing) -> NDArray[Any]:
    if missing != "refuse":
        raise ParameterError(f"{name} must have one dimension, got a table: pass one of its columns")
    found = list(columns)
    if not found:
        raise ParameterError(f"{name} must have columns, got a table without")
    dtypes = sorted({column.dtype.type.__name__ for column in found})
    if len(dtypes) > 1:  # NumPy would round large integers beside floats
        raise ParameterError(f"{name} must have columns of one dtype, got {' and '.join(dtypes)}: cast them first")
    return np.stack(found, axis=1)


def unreadable(x: Any, name: str) -> TypeError:
    found = type(x).__name__
    if is_foreign(type(x)) and _reader(type(x)) is _from_dlpack:
        with suppress(Exception):
            found += f" of dtype {getattr(x, 'dtype', 'unknown')}: detach it from gradients, and cast it if need be"
    return TypeError(f"{name} must be data that NumPy or pyarrow can read, got {found}")


def missing_values(name: str) -> ParameterError:
    return ParameterError(f"{name} must have no missing values: fill or drop them first")


def _nested(name: str) -> ParameterError:
    return ParameterError(f"{name} must be a column of single values, got one of lists, arrays or structs")


def like(x: Any, values: NDArray[Any]) -> Any:
    """Return values as a series with the labels of ``x``, if ``x`` is a series of pandas or polars."""
    kind = type(x)
    library = "" if kind in (np.ndarray, list) else library_of(kind)
    if library == "pandas" and hasattr(kind, "index"):
        return kind(values, index=x.index, name=x.name, copy=False)
    return kind(x.name, values) if library == "polars" else values


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


def floats(column: Any, name: str = "column") -> NDArray[np.float64]:
    """Copy a column of numbers to a new array; missing values are NaN. No message may show a value."""
    array = column_of(column, name)
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # warnings about numbers wider than a double, and signalling NaN
            return array.astype(np.float64)  # a copy, always
    if array.dtype.kind == "O" and kinds_of(array) <= {int, float, bool, type(None)}:
        with suppress(OverflowError):
            return array.astype(np.float64)  # the same as below, in a fraction of the time
    if array.dtype.kind == "O" and all(is_missing(item) or _is_real(item) for item in array):
        with np.errstate(all="ignore"):
            return np.fromiter(map(to_float, array), np.float64, len(array))
    raise TypeError(f"{name} must be of real numbers, got {_described(array)}")


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
    present = asked(partial(_counted_by_library, column, name), partial(unreadable, column, name))
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
        array = asked(partial(objects, column), partial(unreadable, column, name))
        kinds = kinds_of(array)
        if any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
            raise ParameterError(f"{name} must have one dimension, got sequences")
    elif is_foreign(type(column)):
        # Integers beside missing values would become floats, and different large integers the same float.
        array = array_from(column, name, "keep" if missing else "drop")
    elif hasattr(type(column), "to_numpy"):
        array = asked(lambda: np.asarray(column.to_numpy()), partial(unreadable, column, name))
    else:
        raise TypeError(f"{name} must be a {_COLUMNS}, got {type(column).__name__}")
    if array.ndim != 1:
        raise ParameterError(f"{name} must have one dimension, got {array.ndim}")
    return built_in(array, kinds or kinds_of(array), name) if array.dtype.kind == "O" else array


def objects(items: Any) -> NDArray[Any]:
    return np.fromiter(items, object, len(items))


def kinds_of(array: NDArray[Any]) -> set[type]:
    """Return the types of objects."""
    return set(map(type, array.tolist()))


def built_in(array: NDArray[Any], kinds: set[type], name: str) -> NDArray[Any]:
    """Return texts and numbers of the caller's own classes as built-in ones, each by itself."""
    others = {kind for kind in kinds - _BUILT_IN if kind.__module__ != "numpy"}
    own = {kind for kind in others if issubclass(kind, str | bytes | numbers.Real)}
    if not own:
        return array
    read = (_built_in(item) if type(item) in own else item for item in array)
    found = " and ".join(sorted(kind.__name__ for kind in own))
    return asked(
        lambda: np.fromiter(read, object, len(array)),
        lambda: TypeError(f"{name} must be of texts and numbers that can be read, got {found}"),
    )


def _built_in(item: Any) -> Any:
    if isinstance(item, numbers.Integral):
        return int(item)
    if isinstance(item, numbers.Rational):
        item = Fraction(int(item.numerator), int(item.denominator))
    return plain(item if isinstance(item, Fraction | float | str | bytes) else to_float(item))


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
    """Return a value as a built-in type, an integral value as an int, so that equal values look the same."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float | np.floating):
        value = value if value.is_integer() else float(value)  # a number wider than a double
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
    not_a_number = isinstance(item, float | np.floating) and math.isnan(item)
    return item is None or not_a_number or type(item).__name__ in ("NAType", "NaTType")


def is_real_type(kind: type) -> bool:
    return issubclass(kind, numbers.Real | np.bool_) and not issubclass(kind, np.timedelta64)


def _is_countable(kind: type) -> bool:
    """Say whether items of a type are texts, numbers or booleans, or may be missing values."""
    missing = issubclass(kind, type(None) | np.datetime64) or kind.__name__ in ("NAType", "NaTType")
    return missing or issubclass(kind, str | bytes | np.bool_ | numbers.Real)


def _is_real(item: Any) -> bool:
    return is_real_type(type(item))


def _described(array: NDArray[Any]) -> str:
    if array.dtype.kind != "O":
        return f"dtype {array.dtype.type.__name__}"  # without the length of the longest text
    return " and ".join(sorted({type(item).__name__ for item in array}))
