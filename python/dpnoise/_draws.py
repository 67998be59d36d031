"""What all that draws shares: the samplers of parameters, which are kept, and the arrays that are filled."""

from __future__ import annotations

import math
import operator
import sys
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import is_foreign
from dpnoise._errors import ParameterError
from dpnoise._native import Sampler
from dpnoise._types import Size

Scalar = TypeVar("Scalar", bound=np.generic)

# Tables are a function of the public parameters, and take longer to compute than a few samples.
_cached = lru_cache(maxsize=256, typed=True)(Sampler)


def sampler_of(distribution: str, parameters: tuple[Any, ...]) -> Sampler:
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
