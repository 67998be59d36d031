"""The one intake of arrays: containers of all libraries as NumPy arrays, views of them where their layout allows.

pandas and polars give NumPy arrays themselves, and NumPy reads DLPack. pyarrow reads and decodes everything else
that has the Arrow PyCapsule interface: the crate arrow-array with its C interface would make the native module two
fifths larger, bring more than fifty other crates, need unsafe code, and decode nothing. Narwhals reads no arrays and
streams of the interface, no tensors and no codes of categories, and takes NaN in pandas for missing: users of pandas
would need one more package, and this module the same lines. No message shows a value, or says which value is meant.
`_columns` reads columns row by row.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._decimals import double_of, doubles_of_arrow, doubles_of_polars
from dpnoise._errors import Error, ParameterError, require
from dpnoise._types import ArrowArray, ArrowStream, Missing

Made = TypeVar("Made")

# Integers up to here are exact as float64.
_EXACT = 2**53

# NumPy converts these directly; further checks would take longer than drawing a sample.
_PLAIN = (np.ndarray, float, int)

# Lists of these convert without a warning, and are not nested.
_NUMBERS = frozenset((float, int, bool))

# Iterable, but not a sequence to NumPy.
_NO_SEQUENCE = (str, bytes, dict, np.generic)

# DLPack's device types whose memory the CPU cannot read.
_DEVICES: Final = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA (managed)", 14: "oneAPI"}

# Device types whose memory the CPU reads: its own, and pinned memory of CUDA and ROCm.
_CPU: Final = (1, 3, 11)

_FILL: Final = "fill or drop missing values"


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
    given = without_small_floats(_as_array(read, name))
    if given.dtype.kind in "iu" and given.dtype.itemsize == 8:
        large = bool(np.any(given > _EXACT) | np.any(given < -_EXACT))
    elif given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers of at most 64 bits, got dtype {dtype_of(given)}")
    else:
        large = given.dtype.kind == "f" and isinstance(read, list | tuple)
        large = large and read_by(_has_large_integers, read, name)
    if large:
        raise ParameterError(f"{name} must have integers of at most 2**53 in magnitude{otherwise}")
    return given


def vector_of_integers(values: Any, *, copy: bool = True) -> NDArray[Any]:
    """Read people's integers: as a new int64 array, which no other code can change while it is in use, or as given."""
    found = _vector(values, "integers, for example a NumPy array of dtype int64", np.int64)
    if found.dtype.kind not in "iu":
        if found.dtype.kind == "b":
            hint = "cast with .astype(int) if False and True stand for 0 and 1"
        elif found.dtype.kind == "f" or _has_missing(found):
            missing = "NaN" if found.dtype.kind == "f" else "None, NA"
            hint = f"{_FILL} ({missing}) first, then cast with .astype('int64')"
        else:
            codes = _codes_of(values)
            given = f", which {codes} gives if the categories are that list" if codes else ""
            hint = f"replace every value by its index in the list of possible values{given}"
        raise TypeError(f"values must be integers, got dtype {dtype_of(found)}: {hint}")
    return np.array(found, np.int64, order="C") if copy else found


def vector_of_reals(values: Any) -> NDArray[np.float64]:
    """Copy people's real numbers to a new float64 array, which no other code can change while it is in use."""
    found = _vector(values, "real numbers, for example a NumPy array of dtype float64", np.float64)
    if found.dtype.kind == "O" and Decimal in (kinds := set(map(type, found))) and kinds <= {Decimal, float, int}:
        doubles_of = (double_of(item) if isinstance(item, Decimal) else item for item in found)
        found = read_by(lambda _: np.fromiter(doubles_of, np.float64), found, "values")
    if found.dtype.kind not in "iuf":
        hint = "cast with .astype(float) if they stand for numbers" + (
            f"; {_FILL} first" if _has_missing(found) else ""
        )
        raise TypeError(f"values must be real numbers, got dtype {dtype_of(found)}: {hint}")
    return doubles(found, copy=True)  # a number that is too large becomes infinite, and is refused


def vector_of_booleans(values: Any) -> NDArray[np.uint8]:
    """Copy people's booleans to a new uint8 array, which no other code can change while it is in use."""
    found = _vector(listed(values), "booleans, for example a NumPy array of dtype bool", np.bool_)
    if found.dtype.kind != "b":
        hint = "compare to get booleans, for example answers == 1"
        if found.dtype.kind == "f" or _has_missing(found):
            hint += f"; {_FILL} first"
        raise TypeError(f"values must be booleans, got dtype {dtype_of(found)}: {hint}")
    return np.array(found, order="C").view(np.uint8)


def listed(values: Any) -> Any:
    """Make a list of a single value, and of a list of the caller's own class."""
    if isinstance(values, list | tuple) and type(values) not in (list, tuple):
        return read_by(list, values, "values")
    return [values] if is_single(values) else values


def is_single(values: Any) -> bool:
    """Say whether what is given for people's values is the value of one person."""
    return isinstance(values, str | int | np.integer | np.bool_)


def _vector(values: Any, what: str, empty: type[np.generic]) -> NDArray[Any]:
    if values is None:
        raise TypeError(f"values must be {what}, got None")
    found = array_of(only_column(values, "values"), "values")
    if found.ndim != 1:
        raise ParameterError(f"values must be one-dimensional, one for each person, got shape {found.shape}")
    if found.size == 0 and isinstance(values, list | tuple):
        return np.empty(0, empty)  # an empty list has no type of its own
    return found


def _has_missing(found: NDArray[Any]) -> bool:
    return found.dtype.kind == "O" and any(map(is_missing, found))


def doubles(array: NDArray[Any], *, copy: bool = False) -> NDArray[np.float64]:
    """Return real numbers as float64, C-contiguous and aligned; no warning may reveal a number."""
    if copy and array.dtype == np.float64:
        return np.array(array, np.float64, order="C")
    with np.errstate(all="ignore"):
        if copy:
            return np.array(array, np.float64, order="C")
        return np.require(array, np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def without_small_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return floats that NumPy lacks as float32, and all else as it is."""
    with np.errstate(all="ignore"):  # a warning about a signalling NaN
        return array.astype(np.float32) if is_small_float(array.dtype) else array


def is_small_float(dtype: Any) -> bool:
    """Say whether a dtype is bfloat16 or one of 8 bits or fewer, of ml_dtypes: float32 holds each of their numbers."""
    return isinstance(dtype, np.dtype) and dtype.isbuiltin == 2 and "float" in dtype.name


def dtype_of(array: NDArray[Any]) -> str:
    """Name the dtype of an array, without the length of the longest text or of records."""
    name = array.dtype.name
    return name.rstrip("0123456789") if array.dtype.kind in "SUV" and array.dtype.isbuiltin < 2 else name


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
    except Exception:  # as in `read_by`
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
        found: Any = read_by(np.asanyarray, x, name)
        if isinstance(found, np.ma.MaskedArray) and np.ma.is_masked(found):
            raise ParameterError(f"{name} must have no masked values: fill or drop them first")
        return found
    if not read_by(_is_sequence, x, name):
        return x
    parts = x if kind in (list, tuple) else read_by(list, x, name)
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


def unreadable(x: Any, name: str) -> TypeError:
    found = type(x).__name__
    if is_foreign(type(x)) and _reader(type(x)) is _from_dlpack:
        with suppress(Exception):
            found += f" of dtype {getattr(x, 'dtype', 'unknown')}: detach it from gradients, and cast it if need be"
    return TypeError(f"{name} must be data that NumPy or pyarrow can read, got {found}")


def read_by(
    read: Callable[[Any], Made], x: Any, name: str, refusal: Callable[[Any, str], Exception] = unreadable
) -> Made:
    """Read private data by the code of a class of the caller's or of another library, which may raise anything.

    Its message might show a value, and so might the context of the error that takes its place: that has none.
    """
    try:
        return read(x)
    except (Error, ImportError, MemoryError):
        raise
    except Exception:  # noqa: S110 # see above
        pass
    raise refusal(x, name)


def array_from(x: Any, name: str, missing: Missing = "refuse", *, tables: bool = True) -> NDArray[Any]:
    """Return a column or tensor of any library as an array; unless values may be missing, a table as a matrix.

    Where missing values are kept, decimals and integers of 128 bits become the nearest doubles; else they are objects.
    """
    # Check the type first: a message about a table's columns would be of no use.
    read = partial(_reader(type(x)), name=name, missing=missing)
    found = None if not tables and hasattr(type(x), "columns") else read_by(read, x, name)
    if found is None or (not tables and found.ndim > 1 and is_arrow(type(x))):
        raise ParameterError(f"{name} must be an array or a column, got a table: pass one of its columns")
    return found


def only_column(x: Any, name: str) -> Any:
    """Return the column of a data frame or an Arrow table that has just one, and all else as it is.

    Arrow data, which may be read once only, become a pyarrow chunked array.
    """
    if type(x) in _PLAIN or not is_foreign(type(x)):
        return x
    if library_of(type(x)) in ("pandas", "polars"):
        if len(getattr(x, "shape", ())) != 2:
            return x
        columns = list(x.iter_columns()) if hasattr(x, "iter_columns") else [column for _, column in x.items()]
    elif is_arrow(type(x)):
        if library_of(type(x)) == "pyarrow" and hasattr(x, "type"):  # a column, of structs perhaps
            return x
        x = arrow_column(x, name)
        if not require_pyarrow().types.is_struct(x.type):  # how a table comes
            return x
        columns = x.flatten()
    else:
        return x
    if len(columns) != 1:
        raise ParameterError(f"{name} must be a single column, got a table of {len(columns)} columns: pass one of them")
    return columns[0]


def _reader(kind: type) -> Callable[..., NDArray[Any]]:
    if library_of(kind) in ("pandas", "polars"):
        return _from_pandas if library_of(kind) == "pandas" else _from_polars
    return _from_arrow if is_arrow(kind) else _from_dlpack


def _from_pandas(x: Any, name: str, missing: Missing) -> NDArray[Any]:
    if len(x.shape) == 2:
        return _matrix((_from_pandas(column, name, missing) for _, column in x.items()), name)
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
        return _matrix((_from_polars(column, name, missing) for column in x.iter_columns()), name)
    if missing == "refuse" and x.null_count():
        raise missing_values(name)
    if missing == "refuse" and x.dtype.is_nested():
        raise _nested(name)
    if missing == "drop":
        x = x.drop_nulls()
    if str(x.dtype) == "Null":  # as numbers it would be of another type than columns with a value
        return np.array(x.to_list(), object)
    wide = str(x.dtype) in ("Int128", "UInt128")  # which NumPy lacks
    if missing == "keep" and (wide or str(x.dtype).startswith("Decimal")):
        return doubles_of_polars(x)
    return np.array(x.to_list(), object) if wide else np.asarray(x.to_numpy())


def _from_arrow(x: Any, name: str, missing: Missing) -> NDArray[Any]:
    column = arrow_column(x, name)
    types = require_pyarrow().types
    if missing == "refuse" and column.null_count:
        raise missing_values(name)
    if types.is_struct(column.type):  # how a table comes
        return _matrix((_from_arrow(field, name, missing) for field in column.flatten()), name)
    if missing == "refuse" and types.is_nested(column.type):  # values may be missing further inside
        raise _nested(name)
    if missing == "drop":
        column = column.drop_null()
    if missing == "keep" and types.is_decimal(column.type):
        return doubles_of_arrow(column, require_pyarrow())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _from_dlpack(x: Any, name: str, missing: Missing) -> NDArray[Any]:
    device, number = map(int, x.__dlpack_device__())
    if device not in _CPU:
        found = _DEVICES.get(device, f"DLPack's device type {device},")
        raise ParameterError(f"{name} must be in the memory of the CPU, got a tensor on {found} device {number}")
    # Arrays of JAX have dtypes of ml_dtypes, which NumPy does not read by DLPack.
    return np.asarray(x) if is_small_float(getattr(x, "dtype", None)) else np.from_dlpack(x)


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


def _matrix(columns: Iterable[NDArray[Any]], name: str) -> NDArray[Any]:
    found = list(columns)
    if not found:
        raise ParameterError(f"{name} must have columns, got a table without")
    dtypes = sorted({column.dtype.type.__name__ for column in found})
    if len(dtypes) > 1:  # NumPy would round large integers beside floats
        raise ParameterError(f"{name} must have columns of one dtype, got {' and '.join(dtypes)}: cast them first")
    return np.stack(found, axis=1)


def arrow_column(x: ArrowArray | ArrowStream, name: str) -> Any:
    """Return a column of any library as a pyarrow chunked array, without dictionaries, runs, views and user types."""
    pa = require_pyarrow()

    def read(x: Any) -> Any:
        column = pa.chunked_array(x if hasattr(x, "__arrow_c_stream__") else [pa.array(x)])
        # Only decoded chunks know how many values are missing, and pyarrow turns nulls of encoded chunks into values.
        while decode := _decoder(pa, column.type):
            column = pa.chunked_array([decode(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]])
        return column

    return read_by(read, x, name)


def require_pyarrow() -> Any:
    """Import pyarrow, or say what to install."""
    require("pyarrow", "arrow", "Arrow data and Parquet files need")
    import pyarrow.compute

    return pyarrow


def held_numbers(x: Any, name: str) -> Any:
    """Return what `array_of` takes as what gives the same whenever it is read."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    found = _read(x, name, held)
    # A tensor without dimensions is a number.
    return found[()] if isinstance(found, np.ndarray) and found.ndim == 0 and found.dtype.kind != "O" else found


def held(x: Any, name: str) -> Any:
    """Return a column or tensor of any library as one that gives the same whenever it is read; no copy if `x` does."""
    if library_of(type(x)) in ("pandas", "polars", "pyarrow") and hasattr(type(x), "__len__"):
        return x
    return arrow_column(x, name) if is_arrow(type(x)) else array_from(x, name)


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


def _codes_of(x: Any) -> str | None:
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


def is_missing(item: Any) -> bool:
    """Say whether an item of a column is a missing value of any library."""
    if isinstance(item, np.datetime64 | np.timedelta64):
        return bool(np.isnat(item))
    not_a_number = isinstance(item, float | np.floating) and math.isnan(item)
    return item is None or not_a_number or type(item).__name__ in ("NAType", "NaTType")
