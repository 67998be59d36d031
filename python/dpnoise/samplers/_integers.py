"""Noise over the integers."""

from __future__ import annotations

from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise._calls import hot
from dpnoise._types import Integer, Number, Rng, Size
from dpnoise.samplers._draw import draw


@overload
def discrete_laplace(
    scale: Number,
    *,
    size: None = None,
    radius: Integer | None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int: ...
@overload
def discrete_laplace(
    scale: Number,
    *,
    size: Size,
    radius: Integer | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@overload
def discrete_laplace(
    scale: Number,
    *,
    size: None = None,
    radius: Integer | None = None,
    out: NDArray[np.int64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@hot
def discrete_laplace(
    scale: Number,
    *given: NoReturn,
    size: Size | None = None,
    radius: Integer | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> int | NDArray[np.int64]:
    """Draw from the discrete Laplace distribution.

    ``P(x)`` is proportional to ``exp(-|x| / scale)`` over all integers ``x``; the distribution of the result is
    exactly this one.

    Parameters
    ----------
    scale : int, float or Fraction
        The scale of the noise, from 2**-40 to 2**40, taken at its exact value. For integer values of L1 sensitivity
        ``D`` a scale of ``D / epsilon`` gives epsilon-differential privacy.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
    radius : int, optional
        The largest magnitude of a sample, which truncates the distribution: an integer of at least 1 and `scale`, and
        at most 2**62. Bounded noise has a delta: see `dpnoise.TruncatedDiscreteLaplace`. By default the distribution is
        not truncated.
    out : ndarray of int64, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result's distribution.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    int or ndarray of int64
        One sample, or an array of the shape `size`, or `out`. Magnitudes beyond the range of int64 saturate, with a
        probability below ``exp(-2**22)``.

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
    samples: int | NDArray[np.int64] = draw(
        "discrete_laplace", (scale, radius), given, named, np.int64, size, out, threads, rng
    )
    return samples


@overload
def discrete_gaussian(
    sigma: Number,
    *,
    size: None = None,
    radius: Integer | None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int: ...
@overload
def discrete_gaussian(
    sigma: Number,
    *,
    size: Size,
    radius: Integer | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@overload
def discrete_gaussian(
    sigma: Number,
    *,
    size: None = None,
    radius: Integer | None = None,
    out: NDArray[np.int64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@hot
def discrete_gaussian(
    sigma: Number,
    *given: NoReturn,
    size: Size | None = None,
    radius: Integer | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> int | NDArray[np.int64]:
    """Draw from the discrete Gaussian distribution.

    ``P(x)`` is proportional to ``exp(-x**2 / (2 * sigma**2))`` over all integers ``x``; the distribution of the result
    is exactly this one.

    Parameters
    ----------
    sigma : int, float or Fraction
        The scale of the noise, about its standard deviation: from 2**-20 to 2**40, taken at its exact value. For
        integer values of L2 sensitivity ``D`` a sigma of ``D / sqrt(2 * rho)`` gives rho-zero-concentrated differential
        privacy.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
    radius : int, optional
        The largest magnitude of a sample, which truncates the distribution: an integer of at least 1 and `sigma`, and
        at most 2**62. Bounded noise has a delta: see `dpnoise.TruncatedDiscreteGaussian`. By default the distribution
        is not truncated.
    out : ndarray of int64, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result's distribution.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    int or ndarray of int64
        One sample, or an array of the shape `size`, or `out`. Magnitudes beyond the range of int64 saturate, with a
        probability below ``exp(-2**22)``.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", definition 1 and theorem 4.

    Examples
    --------
    >>> from dpnoise import samplers
    >>> samplers.discrete_gaussian(10.0, size=3).shape
    (3,)
    """
    samples: int | NDArray[np.int64] = draw(
        "discrete_gaussian", (sigma, radius), given, named, np.int64, size, out, threads, rng
    )
    return samples


@overload
def geometric(
    scale: Number,
    *,
    size: None = None,
    radius: Integer | None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int: ...
@overload
def geometric(
    scale: Number,
    *,
    size: Size,
    radius: Integer | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@overload
def geometric(
    scale: Number,
    *,
    size: None = None,
    radius: Integer | None = None,
    out: NDArray[np.int64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@hot
def geometric(
    scale: Number,
    *given: NoReturn,
    size: Size | None = None,
    radius: Integer | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> int | NDArray[np.int64]:
    """Draw from the geometric distribution.

    ``P(x)`` is proportional to ``exp(-x / scale)`` over ``x = 0, 1, 2, ...``; the distribution of the result is exactly
    this one.

    Parameters
    ----------
    scale : int, float or Fraction
        The scale of the noise, from 2**-40 to 2**40, taken at its exact value.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
    radius : int, optional
        The largest sample, which truncates the distribution: an integer of at least 1 and `scale`, and at most 2**62.
        By default the distribution is not truncated.
    out : ndarray of int64, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result's distribution.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    int or ndarray of int64
        One sample, or an array of the shape `size`, or `out`. Samples beyond the range of int64 saturate, with a
        probability below ``exp(-2**22)``.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".

    Examples
    --------
    >>> from dpnoise import samplers
    >>> bool(samplers.geometric(10.0, size=3).min() >= 0)
    True
    """
    samples: int | NDArray[np.int64] = draw(
        "geometric", (scale, radius), given, named, np.int64, size, out, threads, rng
    )
    return samples
