"""Poisson subsampling of batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, real
from dpnoise._types import Integer, Number, Rng
from dpnoise.samplers import bernoulli

_COINS = 2**24  # coins tossed at a time


def poisson_sample(n: Integer, sample_rate: Number, rng: Rng = None) -> NDArray[np.int64]:
    """Draw a batch by Poisson subsampling: each of n examples with the same probability, independently.

    Parameters
    ----------
    n : int
        The number of examples, from 0 to 2**62.
    sample_rate : float
        The probability, above 0 and at most 1; exact, every binary digit of it counts.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed knows the batch. By default
        each call draws a fresh key from the operating system.

    Returns
    -------
    ndarray of int64
        The indices of the examples in the batch, in ascending order. There may be none.

    Notes
    -----
    `epsilon_spent` holds for these batches, and not for shuffled batches of a fixed size. The members of a batch and
    its size must remain secret.

    The coins are tossed in constant time; the time to collect the indices grows with their number.

    Examples
    --------
    >>> from dpnoise.sgd import poisson_sample
    >>> len(poisson_sample(1000, 1.0))
    1000
    """
    count = integer(n, "n", range(2**62 + 1))
    rate = real(sample_rate, "sample_rate")
    if not 0 < rate <= 1:
        raise ParameterError(f"sample_rate must be above 0 and at most 1, got {rate!r}")
    parts = [np.empty(0, np.int64)]
    for first in range(0, count, _COINS):
        parts.append(np.flatnonzero(bernoulli(rate, size=min(_COINS, count - first), rng=rng)) + first)
    return np.concatenate(parts)
