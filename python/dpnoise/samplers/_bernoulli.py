from __future__ import annotations

from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise._calls import hot
from dpnoise._types import Number, Rng, Size
from dpnoise.samplers._draw import draw


@overload
def bernoulli(
    p: Number, *, size: None = None, out: None = None, threads: int | None = None, rng: Rng = None
) -> bool: ...
@overload
def bernoulli(
    p: Number, *, size: Size, out: NDArray[np.bool_] | None = None, threads: int | None = None, rng: Rng = None
) -> NDArray[np.bool_]: ...
@overload
def bernoulli(
    p: Number, *, size: None = None, out: NDArray[np.bool_], threads: int | None = None, rng: Rng = None
) -> NDArray[np.bool_]: ...
@hot
def bernoulli(
    p: Number,
    *given: NoReturn,
    size: Size | None = None,
    out: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> bool | NDArray[np.bool_]:
    """Toss coins.

    ``P(True)`` is ``p``, exactly: every binary digit of it counts.

    Parameters
    ----------
    p : float
        The probability of True: from 0 to 1, a number that a float holds exactly.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single bool.
    out : ndarray of bool, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result's distribution.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    bool or ndarray of bool
        One coin, or an array of the shape `size`, or `out`.

    Raises
    ------
    ParameterError
        When ``p`` is a number that a float does not hold exactly, such as ``Fraction(1, 3)``.

    Examples
    --------
    >>> from dpnoise import samplers
    >>> samplers.bernoulli(0.1, size=3).dtype
    dtype('bool')
    """
    samples: bool | NDArray[np.bool_] = draw("bernoulli", (p,), given, named, np.bool_, size, out, threads, rng)
    return samples
