"""Conversion of arguments to arrays, and of results, by one set of rules."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import array_from, is_foreign

Scalar = TypeVar("Scalar", bound=np.generic)

Size = SupportsIndex | Sequence[SupportsIndex]

# Integers up to here are exact as float64.
_EXACT = 2**53

# NumPy converts these directly; further checks would take longer than drawing a sample.
_PLAIN = (np.ndarray, float, int)

# Lists of these convert without a warning, and are not nested.
_NUMBERS = frozenset((float, int, bool))

# Iterable, but not a sequence to NumPy.
_NO_SEQUENCE = (str, bytes, dict, np.generic)


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
        shape = shape_of(size)
        if math.prod(shape) * np.dtype(dtype).itemsize > sys.maxsize:
            raise MemoryError(f"there is no room for an array of size {size!r}")
        try:
            return np.empty(shape, dtype)
        except (OverflowError, ValueError) as error:
            raise ParameterError(f"size must be the shape of an array, got {size!r}: {error}") from None
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


def array_of(x: Any, name: str) -> NDArray[Any]:
    """Convert ``x``, of any library, to an array; refuse missing and masked values, which the caller must fill."""
    if type(x) in (list, tuple) and _NUMBERS.issuperset(map(type, x)):
        return np.asarray(x)
    return _as_array(_read(x, name), name)


def reals_of(x: Any, name: str, otherwise: str = "") -> NDArray[Any]:
    """Convert ``x`` to an array of real numbers that float64 holds exactly; no message may show a number.

    The error for larger integers ends with ``otherwise``, which says what to do.
    """
    read = _read(x, name)
    given = _as_array(read, name)
    if given.dtype.kind in "iu" and given.dtype.itemsize == 8:
        large = bool(np.any(given > _EXACT) | np.any(given < -_EXACT))
    elif given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers of at most 64 bits, got dtype {dtype_of(given)}")
    else:
        large = given.dtype.kind == "f" and isinstance(read, list | tuple) and _has_large_integers(read)
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
    """Name the dtype of an array, without the length of the longest text, or of records that have one."""
    name = array.dtype.name
    return name.rstrip("0123456789") if array.dtype.kind in "SUV" else name


def _as_array(read: Any, name: str) -> NDArray[Any]:
    if isinstance(read, np.ndarray):
        return np.asarray(read)  # a view: no number is converted
    try:
        with np.errstate(all="ignore"):  # of a signalling NaN in a list
            return np.asarray(read)
    except ValueError:
        raise ParameterError(f"{name} must be an array, got nested sequences of different lengths") from None


def _has_large_integers(x: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list that NumPy makes floats of has integers that this would round."""
    return any(isinstance(item, numbers.Integral) and abs(int(item)) > _EXACT for item in np.array(x, object).flat)


def _read(x: Any, name: str) -> Any:
    """Convert containers of other libraries to arrays, in lists too: NumPy itself mishandles missing values."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if is_foreign(kind):
        return array_from(x, name)
    if hasattr(kind, "__array__"):
        found = _asked(x, name, np.asanyarray)  # np.asarray would drop the mask of a masked array
        if isinstance(found, np.ma.MaskedArray) and np.ma.is_masked(found):
            raise ParameterError(f"{name} must have no masked values: fill or drop them first")
        return found
    if not _is_sequence(x):
        return x
    parts = x if isinstance(x, list | tuple) else _asked(x, name, list)
    # A check of types first is fast for a long list of numbers.
    return [_read(part, name) for part in parts] if any(map(_may_be_read, set(map(type, parts)))) else parts


def _asked(x: Any, name: str, convert: Callable[[Any], Any]) -> Any:
    try:
        return convert(x)
    except MemoryError:
        raise
    except Exception:  # of a class of any kind, whose message might show a value
        raise TypeError(f"{name} must be data that NumPy or pyarrow can read, got {type(x).__name__}") from None


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
