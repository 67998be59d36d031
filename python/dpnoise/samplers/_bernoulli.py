from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

from dpnoise._parameters import Rng, Size
from dpnoise.samplers._draw import draw


@overload
def bernoulli(
    p: float, *, size: None = None, out: None = None, threads: int | None = None, rng: Rng = None
) -> bool: ...
@overload
def bernoulli(
    p: float, *, size: Size, out: NDArray[np.bool_] | None = None, threads: int | None = None, rng: Rng = None
) -> NDArray[np.bool_]: ...
@overload
def bernoulli(
    p: float, *, size: None = None, out: NDArray[np.bool_], threads: int | None = None, rng: Rng = None
) -> NDArray[np.bool_]: ...
def bernoulli(
    p: float,
    *,
    size: Size | None = None,
    out: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> bool | NDArray[np.bool_]:
    """Toss coins.

    ``P(True)`` is ``p``, exactly: every binary digit of it counts.

    Parameters
    ----------
    p : float
        From 0 to 1.
    size, out, threads, rng : as everywhere

    Returns
    -------
    bool or ndarray of bool

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
    samples: bool | NDArray[np.bool_] = draw("bernoulli", (p,), np.bool_, size, out, threads, rng)
    return samples
