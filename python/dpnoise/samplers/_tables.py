"""Noise over the integers whose probabilities stand in tables."""

from __future__ import annotations

from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise._calls import hot
from dpnoise._types import Integer, Number, Rng, Size
from dpnoise.samplers._draw import draw


@overload
def skellam(mu: Number, *, size: None = None, out: None = None, threads: int | None = None, rng: Rng = None) -> int: ...
@overload
def skellam(
    mu: Number, *, size: Size, out: NDArray[np.int64] | None = None, threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def skellam(
    mu: Number, *, size: None = None, out: NDArray[np.int64], threads: int | None = None, rng: Rng = None
) -> NDArray[np.int64]: ...
@hot
def skellam(
    mu: Number,
    *given: NoReturn,
    size: Size | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> int | NDArray[np.int64]:
    """Draw from the symmetric Skellam distribution: the difference of two independent Poisson variables.

    ``P(x)`` is ``exp(-2 * mu) * I(abs(x), 2 * mu)`` with the modified Bessel function ``I``. Sums of Skellam variables
    are Skellam: shares of mean ``mu / n`` from n parties add up to one of ``mu``.

    Parameters
    ----------
    mu : int, float or Fraction
        The mean of each Poisson variable, half of the variance: from 2**-40 to 90,000, taken at its exact value. The
        tables of a new one take 2 to 400 ms.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
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
        One sample, or an array of the shape `size`, or `out`.

    References
    ----------
    Agarwal, Kairouz and Liu (2021), "The Skellam mechanism for differentially private federated learning".

    Examples
    --------
    >>> from dpnoise.samplers import skellam
    >>> skellam(50, size=10).shape
    (10,)
    """
    samples: int | NDArray[np.int64] = draw("skellam", (mu,), given, named, np.int64, size, out, threads, rng)
    return samples


@overload
def staircase(
    epsilon: Number,
    width: Integer,
    inner: Integer,
    *,
    size: None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int: ...
@overload
def staircase(
    epsilon: Number,
    width: Integer,
    inner: Integer,
    *,
    size: Size,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@overload
def staircase(
    epsilon: Number,
    width: Integer,
    inner: Integer,
    *,
    size: None = None,
    out: NDArray[np.int64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@hot
def staircase(
    epsilon: Number,
    width: Integer,
    inner: Integer,
    *given: NoReturn,
    size: Size | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> int | NDArray[np.int64]:
    """Draw from the staircase distribution, the noise of least error for one integer and a large epsilon.

    ``P(x)`` is the same for all ``abs(x) < inner``, falls by ``exp(-epsilon)`` from there on, and again after each
    further ``width`` integers. Added to one integer that changes by at most ``width``, it is epsilon-differentially
    private; not so for several integers that change together.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The privacy parameter: positive, so large that some `width` is allowed, and at most 2**40, taken at its exact
        value.
    width : int
        The sensitivity, from 1 to ``3969 * epsilon / (44 + epsilon)``.
    inner : int
        The end of the innermost step, from 1 to `width`. The least mean magnitude takes about ``width / (1 +
        exp(epsilon / 2))``.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
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
        One sample, or an array of the shape `size`, or `out`.

    References
    ----------
    Geng and Viswanath (2014), "The optimal mechanism in differential privacy", for integers.

    Examples
    --------
    >>> from dpnoise.samplers import staircase
    >>> staircase(4.0, width=20, inner=3, size=(5, 2)).shape
    (5, 2)
    """
    more = (width, inner)
    samples: int | NDArray[np.int64] = draw(
        "staircase", (epsilon, more), given, named, np.int64, size, out, threads, rng
    )
    return samples


@overload
def negative_binomial_share(
    scale: Number,
    parties: Integer,
    *,
    size: None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> int: ...
@overload
def negative_binomial_share(
    scale: Number,
    parties: Integer,
    *,
    size: Size,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@overload
def negative_binomial_share(
    scale: Number,
    parties: Integer,
    *,
    size: None = None,
    out: NDArray[np.int64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]: ...
@hot
def negative_binomial_share(
    scale: Number,
    parties: Integer,
    *given: NoReturn,
    size: Size | None = None,
    out: NDArray[np.int64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> int | NDArray[np.int64]:
    """Draw what one of several parties adds, so that the sum of all is exactly discrete Laplace noise.

    A share is the difference of two independent negative binomial variables of shape ``1 / parties``. Fewer shares than
    all protect less: with k of n missing, the sum of the rest is not discrete Laplace.

    Parameters
    ----------
    scale : int, float or Fraction
        The scale of the sum of all shares, from 2**-40 to 88, taken at its exact value.
    parties : int
        The number of parties, from 1 to 2**32, each of which adds one share.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
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
        One sample, or an array of the shape `size`, or `out`.

    References
    ----------
    Goryczka and Xiong (2017), "A comprehensive comparison of multiparty secure additions with differential privacy".

    Examples
    --------
    >>> from dpnoise.samplers import negative_binomial_share
    >>> shares = negative_binomial_share(10, parties=100, size=(100, 7))
    >>> shares.sum(axis=0).shape
    (7,)
    """
    samples: int | NDArray[np.int64] = draw(
        "negative_binomial_share", (scale, parties), given, named, np.int64, size, out, threads, rng
    )
    return samples
