"""Noise over the integers: exact distribution, constant time, in bulk.

A scale may be an int, a float or a ``Fraction`` from 2**-40 to 2**40 and is taken at its exact value. Each call draws
a fresh key from the operating system for each thread and wipes it afterwards.

Time, memory addresses and allocations do not depend on the samples, but for events whose probability the threat model
states. That holds for arrays; turning a sample into a Python int is outside of it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import Size, output, shape_of
from dpnoise._native import ScriptedRng, SeededRng

__all__ = ["discrete_gaussian", "discrete_laplace", "geometric", "random_bytes"]

Scale = int | float | Fraction


Rng = SeededRng | ScriptedRng | None
Distribution = Literal["discrete_laplace", "discrete_gaussian", "geometric"]


# Tables are a function of the scale, which is public; making them takes longer than a handful of samples.
@lru_cache(maxsize=256, typed=True)
def _sampler(distribution: Distribution, scale: Scale) -> _native.NoiseSampler:
    make = getattr(_native.NoiseSampler, distribution)
    sampler: _native.NoiseSampler = make(scale)
    return sampler


def _draw(
    distribution: Distribution,
    scale: Scale,
    size: Size | None,
    out: NDArray[np.int64] | None,
    threads: int | None,
    rng: Rng,
) -> int | NDArray[np.int64]:
    try:
        sampler = _sampler(distribution, scale)
    except TypeError:  # perhaps only not hashable: let the constructor say what is wrong
        sampler = _sampler.__wrapped__(distribution, scale)
    if size is None and out is None:
        return sampler.sample(rng)
    array = output(size, out, np.int64)
    sampler.fill(array, threads, rng)
    return array


@overload
def discrete_laplace(
    scale: Scale, size: None = None, *, out: None = None, threads: int | None = None, rng: Rng = None
) -> int: ...
@overload
def discrete_laplace(
    scale: Scale, size: Size, *, out: NDArray[np.int64] | None = None, threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def discrete_laplace(
    scale: Scale, size: None = None, *, out: NDArray[np.int64], threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
def discrete_laplace(
    scale: Scale,
    size: Size | None = None,
    *,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
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
    return _draw("discrete_laplace", scale, size, out, threads, rng)


@overload
def discrete_gaussian(
    sigma: Scale, size: None = None, *, out: None = None, threads: int | None = None, rng: Rng = None
) -> int: ...
@overload
def discrete_gaussian(
    sigma: Scale, size: Size, *, out: NDArray[np.int64] | None = None, threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def discrete_gaussian(
    sigma: Scale, size: None = None, *, out: NDArray[np.int64], threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
def discrete_gaussian(
    sigma: Scale,
    size: Size | None = None,
    *,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int | NDArray[np.int64]:
    """Draw from the discrete Gaussian distribution.

    ``P(x)`` is proportional to ``exp(-x**2 / (2 * sigma**2))`` over all integers ``x``; the distribution of the result
    is exactly this one.

    Parameters
    ----------
    sigma : int, float or Fraction
        From 2**-20 to 2**40, taken at its exact value. For integer values of L2 sensitivity ``D`` a sigma of
        ``D / sqrt(2 * rho)`` gives rho-zero-concentrated differential privacy.
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
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", definition 1 and theorem 4.

    Examples
    --------
    >>> from dpnoise import samplers
    >>> samplers.discrete_gaussian(10.0, size=3).shape
    (3,)
    """
    return _draw("discrete_gaussian", sigma, size, out, threads, rng)


@overload
def geometric(
    scale: Scale, size: None = None, *, out: None = None, threads: int | None = None, rng: Rng = None
) -> int: ...
@overload
def geometric(
    scale: Scale, size: Size, *, out: NDArray[np.int64] | None = None, threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def geometric(
    scale: Scale, size: None = None, *, out: NDArray[np.int64], threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
def geometric(
    scale: Scale,
    size: Size | None = None,
    *,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int | NDArray[np.int64]:
    """Draw from the geometric distribution.

    ``P(x)`` is proportional to ``exp(-x / scale)`` over ``x = 0, 1, 2, ...``; the distribution of the result is exactly
    this one.

    Parameters
    ----------
    scale : int, float or Fraction
        From 2**-40 to 2**40, taken at its exact value.
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
    Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".

    Examples
    --------
    >>> from dpnoise import samplers
    >>> bool(samplers.geometric(10.0, size=3).min() >= 0)
    True
    """
    return _draw("geometric", scale, size, out, threads, rng)


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
