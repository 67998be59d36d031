"""Coefficients of banded Toeplitz matrices with the least error, on SciPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import require

_Floats = NDArray[np.float64]

# The loss is found to far less than what the rounding of the coefficients changes it by.
_OPTIONS = {"ftol": 1e-12, "gtol": 1e-12, "maxiter": 1000}


def optimal_coefficients(bands: int, weights: _Floats) -> _Floats:
    """Return the coefficients with the smallest sum of squared errors times squared sensitivity.

    The variables are the logarithms of the ratios of neighbouring coefficients, at most 0. So all matrices on the way
    have coefficients that do not increase: inverses of others can grow exponentially with the steps.

    Parameters
    ----------
    bands : int
        The number of coefficients.
    weights : ndarray of float64, shape (steps,)
        The weight, in the sum of the squared errors, of the square of each number of the first column of B, the
        product of the inverse of C and the matrix of ones on and below the diagonal.
    """
    optimize = require("scipy.optimize", "accounting")
    if bands == 1:  # nothing to choose, which SciPy refuses
        return np.ones(1)

    def logarithm(ratios: _Floats) -> tuple[float, _Floats]:
        coefficients = np.cumprod(np.exp(np.append(0.0, ratios)))
        value, slopes = _loss(coefficients, weights)
        return np.log(value), np.cumsum((coefficients * slopes)[:0:-1])[::-1] / value

    odd = 2.0 * np.arange(1, bands) - 1
    start = np.log(odd / (odd + 1))  # of binomial(2j, j) / 4**j, the best for as many bands as steps
    found = optimize.minimize(
        logarithm, start, jac=True, method="L-BFGS-B", bounds=optimize.Bounds(-np.inf, 0.0), options=_OPTIONS
    )
    coefficients: _Floats = np.cumprod(np.exp(np.append(0.0, found.x)))
    return coefficients


def _loss(coefficients: _Floats, weights: _Floats) -> tuple[float, _Floats]:
    """Return the loss, and its derivatives by the coefficients."""
    signal = require("scipy.signal", "accounting")
    steps = len(weights)
    column = signal.lfilter([1.0], coefficients, np.ones(steps))
    # C B = 1 for the first column, so that a change dC changes it by -C^-1 dC B. The transposed inverse is applied to
    # the weighted column once, for all coefficients.
    adjoint = signal.lfilter([1.0], coefficients, (weights * column)[::-1])[::-1]
    shifted = signal.correlate(adjoint, column)[steps - 1 : steps - 1 + len(coefficients)]
    error, square = weights @ column**2, coefficients @ coefficients
    return error * square, 2 * (error * coefficients - square * shifted)
