"""Conversion of gradients, by one set of rules for all functions; clipping and summation per example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import array_of, dtype_of, is_small_float, read_by, without_small_floats
from dpnoise._draws import array_for
from dpnoise._errors import ParameterError
from dpnoise._types import Number, Values

Floats = NDArray[np.floating[Any]]  # of 32 or 64 bits

# Gradients that cannot be read in place are copied, this many numbers at a time.
_NUMBERS: Final = 2**24


def gradients_of(gradients: Any) -> Floats:
    """Convert per-example gradients to a C-contiguous matrix of float32 or float64; no message may show a value."""
    given = without_small_floats(array_of(gradients, "gradients"))
    if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise TypeError(f"gradients must be real numbers of at most 64 bits, got dtype {dtype_of(given)}")
    if given.ndim != 2 or given.shape[1] == 0:
        found = f"{given.ndim} dimensions" if given.ndim != 2 else "no parameters"  # their number is private
        raise ParameterError(
            "gradients must be of shape (examples, parameters), a row for each example with all of its parameters"
            f" (reshape and concatenate those of several layers), got {found}"
        )
    single = given.dtype.kind == "f" and given.dtype.itemsize <= 4
    with np.errstate(all="ignore"):  # as in `doubles`
        return np.require(given, np.float32 if single else np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def clipped_steps(gradients: Sequence[NDArray[Any]], clip_norm: float, threads: int | None) -> NDArray[np.int64]:
    """Clip the gradient of each example, over all arrays together, and add them up in whole steps of the grid."""
    if not isinstance(gradients, list | tuple):  # the rows of a matrix would pass for arrays of their own
        raise TypeError(f"gradients must be a list or tuple of arrays, got {type(gradients).__name__}")
    listed: list[Any] = read_by(list, gradients, "gradients")
    gradients = [np.asarray(array) if isinstance(array, np.ndarray) else array for array in listed]
    for array in gradients:
        if not isinstance(array, np.ndarray) or array.ndim == 0:
            found = "a single number" if isinstance(array, np.ndarray) else type(array).__name__
            raise TypeError(f"gradients must be arrays with a row for each example, got {found}")
    if len(set(map(len, gradients))) > 1:
        raise ParameterError("gradients must have the same number of rows in all arrays")  # their number is private
    arrays = [array for array in gradients if math.prod(array.shape[1:]) > 0]
    width = sum(math.prod(array.shape[1:]) for array in arrays)
    if width == 0:
        raise ParameterError("gradients must have at least one coordinate for each example, got none")
    sums = np.zeros(width, np.int64)
    dtype = np.result_type(*(np.float32 if is_small_float(array.dtype) else array.dtype for array in arrays))
    count = max(1, len(arrays[0]))
    several = count if all(_is_ready(array, dtype) for array in arrays) else max(1, _NUMBERS // width)
    for first in range(0, count, several):
        parts = (array[first : first + several] for array in arrays)
        _native.add_clipped([_matrix(part, dtype) for part in parts], sums, clip_norm, threads)
    return sums


def _matrix(array: NDArray[Any], dtype: np.dtype[Any]) -> Floats:
    rows = array.reshape(len(array), math.prod(array.shape[1:]))
    with np.errstate(all="ignore"):  # a warning would reveal a single number
        return gradients_of(rows.astype(dtype, copy=False))


def _is_ready(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Say whether the array can be read in place, if ``dtype`` is the common dtype of all arrays."""
    usable = dtype in (np.float32, np.float64) and array.dtype == dtype
    return usable and array.flags.c_contiguous and array.flags.aligned


def output_for(gradients: Floats, out: Floats | None) -> Floats:
    array: Floats = array_for(gradients.shape[1:], out, gradients.dtype.type)
    if np.may_share_memory(array, gradients):
        raise ParameterError("out must not share memory with gradients")
    return array


def clip_and_sum(
    gradients: Values, *, clip_norm: Number, out: Floats | None = None, threads: int | None = None
) -> NDArray[Any]:
    """Clip the gradient of each example to a norm, and add the clipped gradients up.

    A gradient whose L2 norm is above ``clip_norm`` is scaled down to it, by a factor that is rounded down. The result
    is **not private**: it has no noise. `NoisyGradient` adds it.

    Parameters
    ----------
    gradients : array_like of float32 or float64, shape (n, d)
        A row for each example, with all parameters of the model; d at least 1, and n may be 0. C-contiguous arrays of
        these dtypes are read in place and must not be changed meanwhile, and so are tensors on the CPU of other
        libraries (DLPack); others are converted, float16, bfloat16 and smaller floats of ml_dtypes to float32, and
        integers to float64.
    clip_norm : float
        The largest L2 norm of a clipped gradient, from 2**-80 to 2**80: a gradient above it is scaled down to it.
    out : ndarray, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of shape (d,) and of the dtype of the
        result. It shares no memory with ``gradients``.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result.

    Returns
    -------
    ndarray, shape (d,)
        float32 for gradients of at most 32 bits, else float64.

    Notes
    -----
    Every coordinate of a clipped gradient is rounded to a grid, a power of two between ``clip_norm * 2**-32`` and
    ``clip_norm * 2**-31``, half to even. These multiples are added up as integers, and the exact sum is rounded to a
    float once. So the result is the same for every order of the rows, every number of threads and on every CPU; one
    example changes the sum on the grid by at most ``clip_norm`` and ``sqrt(d) / 2`` steps of the grid, in the L2 norm.

    A row with a NaN or an infinity, or whose sum of squares overflows, counts as a row of zeros, since an error would
    reveal a single example. Float64 numbers below 2**-511 and float32 numbers below 2**-126 in magnitude count as
    zeros, too. Sums of more than 2**31 times ``clip_norm`` wrap around.

    Running time and memory addresses depend on the shape, not on the numbers.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), "Deep learning with differential privacy",
    algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise.sgd import clip_and_sum
    >>> gradients = np.array([[3.0, 4.0], [0.0, -0.5], [np.nan, 1.0]])
    >>> clip_and_sum(gradients, clip_norm=1.0).round(6)
    array([0.6, 0.3])
    """
    rows = gradients_of(gradients)
    array = output_for(rows, out)
    _native.clip_and_sum(rows, array, clip_norm, threads)
    return array
