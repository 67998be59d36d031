"""Noise over the real numbers, on a grid."""

from __future__ import annotations

from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise._calls import hot
from dpnoise._types import Number, Rng, Size
from dpnoise.samplers._draw import draw


@overload
def laplace(
    scale: Number,
    *,
    size: None = None,
    granularity: Number | None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> float: ...
@overload
def laplace(
    scale: Number,
    *,
    size: Size,
    granularity: Number | None = None,
    out: NDArray[np.float64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.float64]: ...
@overload
def laplace(
    scale: Number,
    *,
    size: None = None,
    granularity: Number | None = None,
    out: NDArray[np.float64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.float64]: ...
@hot
def laplace(
    scale: Number,
    *given: NoReturn,
    size: Size | None = None,
    granularity: Number | None = None,
    out: NDArray[np.float64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> float | NDArray[np.float64]:
    """Draw Laplace noise on a grid of real numbers.

    Samples are ``n * granularity`` over all integers ``n``, with ``P(n)`` proportional to
    ``exp(-abs(n) * granularity / scale)``; the distribution is exactly this one. Samples are exact as float64, but
    for those beyond ``2**53 * granularity``, which are rounded and have a probability below 2**-738.

    Adding such noise to a float64 in floating point does **not** make it private: the value must lie on the same grid,
    and the sum must be rounded once. `dpnoise.Laplace` does that. This function is for values that are on the grid
    already, and for libraries that put them there.

    Parameters
    ----------
    scale : int, float or Fraction
        The scale of the noise: positive and finite, from 2**-1019 to 2**939 with the default granularity, taken at its
        exact value. For values on the grid of L1 sensitivity ``D`` a scale of ``D / epsilon`` gives
        epsilon-differential privacy.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
    granularity : float, optional
        The step of the grid, a power of two from 2**-1019 to 2**900; `scale` must be from 2**-40 to 2**40 steps. By
        default ``2**ceil(log2(scale) - 40)``.
    out : ndarray of float64, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result's distribution.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    float or ndarray of float64
        One sample, or an array of the shape `size`, or `out`.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis"; Mironov
    (2012), "On significance of the least significant bits for differential privacy", for what the grid prevents.

    Examples
    --------
    >>> from dpnoise import samplers
    >>> noise = samplers.laplace(10.0, size=3, granularity=0.25)
    >>> bool((noise % 0.25 == 0).all())
    True
    """
    samples: float | NDArray[np.float64] = draw(
        "laplace", (scale, granularity), given, named, np.float64, size, out, threads, rng
    )
    return samples


@overload
def gaussian(
    sigma: Number,
    *,
    size: None = None,
    granularity: Number | None = None,
    out: None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> float: ...
@overload
def gaussian(
    sigma: Number,
    *,
    size: Size,
    granularity: Number | None = None,
    out: NDArray[np.float64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.float64]: ...
@overload
def gaussian(
    sigma: Number,
    *,
    size: None = None,
    granularity: Number | None = None,
    out: NDArray[np.float64],
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[np.float64]: ...
@hot
def gaussian(
    sigma: Number,
    *given: NoReturn,
    size: Size | None = None,
    granularity: Number | None = None,
    out: NDArray[np.float64] | None = None,
    threads: int | None = None,
    rng: Rng = None,
    **named: NoReturn,
) -> float | NDArray[np.float64]:
    """Draw Gaussian noise on a grid of real numbers.

    Samples are ``n * granularity`` over all integers ``n``, with ``P(n)`` proportional to
    ``exp(-(n * granularity)**2 / (2 * sigma**2))``; the distribution is exactly this one. Samples are exact as float64,
    but for those beyond ``2**53 * granularity``, which are rounded and have a probability below 2**-738.

    Adding such noise to a float64 in floating point does **not** make it private: the value must lie on the same grid,
    and the sum must be rounded once. `dpnoise.Gaussian` does that. This function is for values that are on the grid
    already, and for libraries that put them there.

    Parameters
    ----------
    sigma : int, float or Fraction
        The scale of the noise, about its standard deviation: positive and finite, from 2**-1019 to 2**939 with the
        default granularity, taken at its exact value. For values on the grid of L2 sensitivity ``D`` a sigma of ``D /
        sqrt(2 * rho)`` gives rho-zero-concentrated differential privacy.
    size : int or tuple of int, optional
        The shape of the result. Without `size` and `out` the result is a single Python number.
    granularity : float, optional
        The step of the grid, a power of two from 2**-1019 to 2**900; `sigma` must be from 2**-20 to 2**40 steps. By
        default ``2**ceil(log2(2 * sigma) - 40)``.
    out : ndarray of float64, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result's distribution.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    float or ndarray of float64
        One sample, or an array of the shape `size`, or `out`.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", theorem 4; Mironov (2012), "On
    significance of the least significant bits for differential privacy", for what the grid prevents.

    Examples
    --------
    >>> from dpnoise import samplers
    >>> noise = samplers.gaussian(10.0, size=3, granularity=0.25)
    >>> bool((noise % 0.25 == 0).all())
    True
    """
    samples: float | NDArray[np.float64] = draw(
        "gaussian", (sigma, granularity), given, named, np.float64, size, out, threads, rng
    )
    return samples
