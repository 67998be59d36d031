"""Distances to instability: how many people's values must change for an answer to change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns, _native


def iqr_distance(x: Any, discretization: int = 1) -> int:
    """Give the fewest values to replace for the interquartile range to leave its interval.

    The range is the value of rank ceil(3n/4) minus that of rank ceil(n/4), as a double. The intervals are those of its
    logarithm to base 2: [k, k + 1) for integers k, or [k - 1/2, k + 1/2); a range of 0, and one beyond the largest
    double, have intervals of their own.

    Neighbours differ by the substitution of one value, and the number n of values is public. The distance changes by
    at most 1 between them, and is 1 wherever a neighbour has its range in another interval. It is about the data: it
    is not private itself.

    Parameters
    ----------
    x : array_like
        Two or more finite numbers, one dimension: a NumPy array, list, pandas or polars series, or Arrow array.
        Integers beyond 2**53 count as the nearest double.
    discretization : {1, 2}, default 1
        Which intervals: 1 for [k, k + 1), 2 for [k - 1/2, k + 1/2).

    Returns
    -------
    int
        From 1 to ceil(n/4), or to n - 1 where the range is beyond the largest double. Replacements may have any value;
        for any number there is a smaller and a larger one.

    Raises
    ------
    ParameterError
        When `x` has fewer than two values, a missing or infinite one, or not one dimension, or `discretization` is
        neither 1 nor 2.
    TypeError
        When `x` is not made of real numbers, or `discretization` is not an integer.

    Notes
    -----
    Sorting takes most of the time. The search after it takes time linear in n at worst, usually much less; like that
    of sorting, its time depends on the data.

    References
    ----------
    Dwork and Lei (2009), "Differential privacy and robust statistics", section 4; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", Algorithm 12.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.iqr_distance(range(1000))  # it is 500, and leaves [256, 512) at 512
    12
    """
    return _native.iqr_distance(ascending(x), discretization)


def ascending(x: Any) -> NDArray[np.float64]:
    """Copy a column of numbers to a new array, sorted; missing values are NaN, and come last."""
    values = _columns.floats(x, "x")
    values.sort()
    return values
