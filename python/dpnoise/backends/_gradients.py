"""Clipped gradients of whole models, on NumPy arrays: their sum on a grid, and its noise.

The backends of training frameworks share this module. A framework's tensors come in as arrays, with a row for each
example, and only integers, in steps of a grid, are added up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._parameters import root
from dpnoise.samplers._draw import Rng
from dpnoise.sgd._gradients import gradients_of

# Gradients that cannot be read in place are copied, this many numbers at a time.
_NUMBERS: Final = 2**24


def mechanism(clip_norm: float, noise_multiplier: float) -> _native.NoisyGradient:
    """Return the mechanism, or raise a ParameterError for parameters that are out of range."""
    return _native.NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=1.0)


def clipped_sum(
    gradients: Sequence[NDArray[Any]], *, clip_norm: float, threads: int | None = None
) -> NDArray[np.int64]:
    """Clip the gradient of each example, over all arrays together, and add the gradients up in whole steps of the grid.

    The result is **not private**. Such sums can be added up, modulo 2**64; their noise comes from `noisy`.

    Parameters
    ----------
    gradients : sequence of ndarray, floating point, shape (n, ...)
        An array for each parameter of the model; all have a row for each example, and n may be 0. C-contiguous arrays
        of one dtype, float32 or float64, are read in place and must not be changed meanwhile.
    clip_norm : float
        The largest L2 norm of a clipped gradient, from 2**-80 to 2**80.
    threads : as everywhere

    Returns
    -------
    ndarray of int64, shape (d,)
        The sums of all numbers of the arrays, one array after the other. One example changes them by at most the
        sensitivity of `dpnoise.sgd.NoisyGradient`, in steps of its granularity, for the same ``clip_norm``.
    """
    check_rows(gradients)
    arrays = [array for array in gradients if math.prod(array.shape[1:]) > 0]
    width = sum(math.prod(array.shape[1:]) for array in arrays)
    if width == 0:
        raise ParameterError("gradients must have at least one coordinate for each example, got none")
    sums = np.zeros(width, np.int64)
    dtype = np.result_type(*arrays)
    count = max(1, len(arrays[0]))
    several = count if all(_is_ready(array, dtype) for array in arrays) else max(1, _NUMBERS // width)
    for first in range(0, count, several):
        parts = (array[first : first + several] for array in arrays)
        _native.add_clipped([_matrix(part, dtype) for part in parts], sums, clip_norm, threads)
    return sums


def _matrix(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    rows = array.reshape(len(array), math.prod(array.shape[1:]))
    with np.errstate(all="ignore"):  # a warning would reveal a single number
        return gradients_of(rows.astype(dtype, copy=False))


def _is_ready(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Say whether the array can be read in place, among others of that dtype in common."""
    usable = dtype in (np.float32, np.float64) and array.dtype == dtype
    return usable and array.flags.c_contiguous and array.flags.aligned


def check_rows(gradients: Sequence[Any]) -> None:
    """Refuse arrays of different lengths; the message must not reveal the number of examples, which is private."""
    if len(set(map(len, gradients))) > 1:
        raise ParameterError("gradients must have the same number of rows in all arrays")


def noisy(
    sums: NDArray[np.int64],
    *,
    clip_norm: float,
    noise_multiplier: float,
    dtype: DTypeLike = np.float32,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[Any]:
    """Add discrete Gaussian noise to the sum of clipped gradients, on the grid, and return it as floats.

    For neighbours that differ by one example, added or removed, this is 1/(2 noise_multiplier**2)-zCDP; with Poisson
    subsampling it costs less, see `dpnoise.sgd.epsilon_spent`.

    Parameters
    ----------
    sums : ndarray of int64, shape (d,)
        Sums of `clipped_sum`, or of several of them, for the same ``clip_norm``.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity on the grid; from 2**-20 to 2**11.
    dtype : float32 or float64, default float32
        The dtype of the result; the noisy sum is rounded to it once.
    clip_norm, threads : as for `clipped_sum`
    rng : as everywhere
    """
    out = np.empty(sums.shape, dtype)
    _kept_mechanism(clip_norm, noise_multiplier).release(np.ascontiguousarray(sums), out, threads, rng)
    return out


# The mechanism keeps its noise tables, which take longer to compute than the noise of a small model, and steps repeat.
_kept_mechanism = lru_cache(maxsize=256, typed=True)(mechanism)


def multipliers(clip_norms: Sequence[float], widths: Sequence[int], noise_multiplier: float) -> list[float]:
    """Return the noise multiplier of each part of a gradient whose parts are clipped to separate norms.

    All parts get noise of the same standard deviation: ``noise_multiplier`` times the joint sensitivity, which is the
    root of the sum of the squares of the parts' sensitivities; rounded up.

    Parameters
    ----------
    clip_norms, widths : sequence
        The norm of each part, and its number of coordinates.
    noise_multiplier : float
        The multiplier of the whole gradient.
    """
    squares = [
        Fraction(mechanism(norm, noise_multiplier).sensitivity(width)) ** 2
        for norm, width in zip(clip_norms, widths, strict=True)
    ]
    found = [root(Fraction(noise_multiplier) ** 2 * sum(squares) / square) for square in squares]
    for norm, multiplier in zip(clip_norms, found, strict=True):
        mechanism(norm, multiplier)
    return found
