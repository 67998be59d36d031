"""Columns, tables and tensors of other libraries as NumPy arrays, views of them where their layout allows.

pandas and polars give NumPy arrays themselves, and NumPy reads DLPack. Everything else that has the Arrow PyCapsule
interface is read by pyarrow, which also decodes it: the crate arrow-array with its C interface makes the native module
two fifths larger, has more than fifty others behind it, needs unsafe code, and decodes nothing. No message shows a
value, or says which one is meant.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Protocol, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError

Missing = Literal["refuse", "keep", "drop"]
"""What becomes of missing values: an error; NaN, None or NA in the array; nothing."""

# The kinds of memory that DLPack numbers, but for those of the CPU.
_DEVICES: Final = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA (managed)", 14: "oneAPI"}

# Its own, and what it shares with CUDA and ROCm devices.
_CPU: Final = (1, 3, 11)

PARQUET: Final[dict[str, Any]] = {
    # Arrow's default prefetches the whole file and keeps it; these options read it a piece at a time.
    "pre_buffer": False,
    "buffer_size": 1 << 20,
    # Reports are random bits, so only a checksum detects a damaged page.
    "page_checksum_verification": True,
}
"""The options with which all Parquet files are read."""


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


class Items(Protocol[Item]):
    """A list, tuple or other sequence, but no str or bytes: these refuse to look for an object of any type."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __contains__(self, value: object, /) -> bool: ...
    def __reversed__(self) -> Iterator[Item]: ...


Foreign = NDArray[Any] | SupportsArray | ArrowArray | ArrowStream | Tensor
"""An array, column, table or tensor of any library."""

Integer = int | np.integer[Any]
Real = float | np.integer[Any] | np.floating[Any]

Integers = Foreign | Items[Integer | Foreign | Items[Any]]
Reals = Foreign | Items[Real | Foreign | Items[Any]]
Texts = Foreign | Items[str] | Items[bytes]
Answers = Foreign | Items[Integer | str | np.bool_]
"""Numbers of values from 0 to k - 1, or labels, which are texts, integers or booleans."""

Values = Foreign | Items[Any]


def is_arrow(x: object) -> TypeGuard[ArrowArray | ArrowStream]:
    """Say whether an object, or what is of a type, offers itself as Arrow data."""
    return hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")


def is_foreign(kind: type) -> bool:
    """Say whether `array_from` reads what is of this type."""
    if issubclass(kind, np.ndarray):
        return False
    return is_arrow(kind) or hasattr(kind, "__dlpack__") or (library_of(kind) == "pandas" and hasattr(kind, "to_numpy"))


def library_of(kind: type) -> str:
    """Name the library of a type; a subclass of a pandas series is pandas, too."""
    found = [base.__module__.partition(".")[0] for base in kind.__mro__]
    return next((library for library in found if library in ("pandas", "polars", "pyarrow")), found[0])


def codes_of(x: Any) -> str | None:
    """Name what gives the numbers of the categories, if ``x`` is a column of categories."""
    library, dtype = library_of(type(x)), str(getattr(x, "dtype", ""))
    if library == "pandas" and dtype == "category":
        return ".cat.codes" if hasattr(x, "cat") else ".codes"
    if library == "polars" and dtype.startswith(("Enum", "Categorical")):
        # Those of a Categorical come from a pool that columns share.
        return (".cast(pl.Enum(values))" if dtype.startswith("Categorical") else "") + ".to_physical()"
    if library == "pyarrow" and require_pyarrow().types.is_dictionary(x.type):
        return ".indices" if hasattr(x, "indices") else ".combine_chunks().indices"
    return None


def array_from(x: Any, name: str, missing: Missing = "refuse") -> NDArray[Any]:
    """Return a column or tensor of any library as an array; unless values may be missing, a table as a matrix."""
    try:
        return _reader(type(x))(x, name, missing)
    except (ParameterError, ImportError, MemoryError):
        raise
    except Exception:  # of another library, whose message might show a value
        raise _unreadable(x, name) from None


def arrow_column(x: ArrowArray | ArrowStream, name: str) -> Any:
    """Return a column of any library as a pyarrow chunked array, without dictionaries, runs, views and user types."""
    pa = require_pyarrow()
    try:
        column = pa.chunked_array(x if hasattr(x, "__arrow_c_stream__") else [pa.array(x)])
        # Only what is decoded knows how many values are missing, and pyarrow makes values of nulls in encoded chunks.
        while decode := _decoder(pa, column.type):
            column = pa.chunked_array([decode(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]])
    except MemoryError:
        raise
    except Exception:
        raise _unreadable(x, name) from None
    return column


def require_pyarrow() -> Any:
    """Import pyarrow, or say what to install."""
    try:
        import pyarrow
        import pyarrow.compute
    except ModuleNotFoundError as error:
        raise ImportError("Arrow data and Parquet files need pyarrow: pip install 'dpnoise[arrow]'") from error
    return pyarrow


def native_file(path: str | os.PathLike[str]) -> Any:
    """Open a file for Arrow, which takes each path that is a text for UTF-8."""
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
    # The missing values of NumPy's own dtypes are NaN, and NaN are the caller's.
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
    # Nothing can be taken of views, and nulls cannot be dropped.
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


def _unreadable(x: Any, name: str) -> TypeError:
    found = type(x).__name__
    if _reader(type(x)) is _from_dlpack:
        found += f" of dtype {getattr(x, 'dtype', 'unknown')}: detach it from gradients, and cast it if need be"
    return TypeError(f"{name} must be data that NumPy or pyarrow can read, got {found}")


def missing_values(name: str) -> ParameterError:
    return ParameterError(f"{name} must have no missing values: fill or drop them first")


def _nested(name: str) -> ParameterError:
    return ParameterError(f"{name} must be a column of single values, got one of lists, arrays or structs")
