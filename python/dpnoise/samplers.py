"""Noise over the integers: exact distribution, constant time, in bulk.

A scale may be an int, a float or a ``Fraction`` from 2**-40 to 2**40 and is taken at its exact value. Each call draws
a fresh key from the operating system for each thread and wipes it afterwards.

Time, memory addresses and allocations do not depend on the samples, but for events whose probability the threat model
states. That holds for arrays; turning a sample into a Python int is outside of it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import Size, output, shape_of
from dpnoise._native import ScriptedRng, SeededRng

__all__ = ["discrete_laplace", "random_bytes"]

Scale = int | float | Fraction


# Tables are a function of the scale, which is public; making them takes longer than a handful of samples.
@lru_cache(maxsize=256, typed=True)
def _sampler(scale: Scale) -> _native.DiscreteLaplaceSampler:
    return _native.DiscreteLaplaceSampler(scale)


@overload
def discrete_laplace(
    scale: Scale,
    size: None = None,
    *,
    out: None = None,
    threads: int | None = None,
    rng: SeededRng | ScriptedRng | None = None,
) -> int: ...
@overload
def discrete_laplace(
    scale: Scale,
    size: Size,
    *,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: SeededRng | ScriptedRng | None = None,
) -> NDArray[np.int64]: ...
@overload
def discrete_laplace(
    scale: Scale,
    size: None = None,
    *,
    out: NDArray[np.int64],
    threads: int | None = None,
    rng: SeededRng | ScriptedRng | None = None,
) -> NDArray[np.int64]: ...
def discrete_laplace(
    scale: Scale,
    size: Size | None = None,
    *,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: SeededRng | ScriptedRng | None = None,
) -> int | NDArray[np.int64]:
    """Draw from the discrete Laplace distribution.

    ``P(x)`` is proportional to ``exp(-|x| / scale)`` over all integers ``x``; the distribution of the result is
    exactly this one.

    Parameters
    ----------
    scale : int, float or Fraction
        From 2**-40 to 2**40, taken at its exact value. For integer values of L1 sensitivity ``D`` a scale of
        ``D / epsilon`` gives epsilon-differential privacy.
    size : int or tuple of int, optional
        The shape of the result; one sample as an int when it is not given.
    out : ndarray of int64, optional
        A writable C-contiguous array to fill.
    threads : int, optional
        How many threads to use; all cores that the process may use when not given.
    rng : dpnoise.hazmat generator, optional
        For tests only. Its words are used in order on one thread, whatever ``threads`` says.

    Returns
    -------
    int or ndarray of int64
        Magnitudes beyond the range of int64 saturate, with a probability below ``exp(-2**22)``.

    Raises
    ------
    ParameterError
        When a parameter is out of range; nothing has been drawn then.
    TypeError
        When a parameter is of the wrong type.
    RandomnessError
        When the source of randomness fails; ``out`` is zero then.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy mechanisms"; Canonne, Kamath and
    Steinke (2020), "The discrete Gaussian for differential privacy", definition 31.

    Examples
    --------
    >>> from dpnoise import samplers
    >>> samplers.discrete_laplace(10.0, size=3).shape
    (3,)
    """
    try:
        sampler = _sampler(scale)
    except TypeError:  # not hashable, so not a number: let the constructor say so
        sampler = _native.DiscreteLaplaceSampler(scale)
    if size is None and out is None:
        return sampler.sample(rng)
    array = output(size, out, np.int64)
    sampler.fill(array, threads, rng)
    return array


def random_bytes(n: int) -> bytes:
    """Draw random bytes: ChaCha12 under a fresh key from the operating system.

    Parameters
    ----------
    n : int
        How many.

    Returns
    -------
    bytes

    Raises
    ------
    ParameterError
        When ``n`` is negative.
    RandomnessError
        When the operating system has no randomness to give.
    """
    (count,) = shape_of(n)
    return _native.random_bytes(count)
