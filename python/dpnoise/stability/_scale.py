"""The scale of data: Algorithm 12 of the book."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final, Literal, overload

import numpy as np

from dpnoise import _native
from dpnoise.accounting import PrivacyCost
from dpnoise.mechanisms import Laplace
from dpnoise.mechanisms._mechanism import Rng
from dpnoise.stability._budget import half_of, part_of, stability_test
from dpnoise.stability._distances import ascending
from dpnoise.stability._stable_release import NOT_STABLE, Release, warn_of_large

_DISCRETIZATIONS: Final = (1, 2)

# Beyond these the powers of two are 0 and infinity; a release of 0 is for a range of 0.
_EXPONENTS: Final = (-1074.0, math.nextafter(1024.0, 0.0))


@overload
def release_scale(
    x: Any, epsilon: float, delta: float, *, full_output: Literal[False] = False, rng: Rng = None
) -> float | None: ...


@overload
def release_scale(x: Any, epsilon: float, delta: float, *, full_output: Literal[True], rng: Rng = None) -> Release: ...


@overload
def release_scale(
    x: Any, epsilon: float, delta: float, *, full_output: bool, rng: Rng = None
) -> float | Release | None: ...


def release_scale(x: Any, epsilon: float, delta: float, *, full_output: bool = False, rng: Rng = None) -> Any:
    """Release the interquartile range up to a factor, if its order of magnitude is stable.

    No bounds on the values are needed: this finds out in which unit data are to be measured. The logarithms to base 2
    are cut into intervals of length 1 in two ways, so that no range is near the ends of both. For each of them the
    distance to data whose range is in another interval is tested. If one of the tests passes, the range is released,
    times 2 to the power of Laplace noise of scale 4 / epsilon. The release is (epsilon, delta)-differentially private.

    Neighbours differ by the substitution of one value, and the number n of values is public.

    Parameters
    ----------
    x : array_like
        Two or more finite numbers, one dimension: a NumPy array, list, pandas or polars series, or Arrow array.
        Integers beyond 2**53 count as the nearest double.
    epsilon : float
        From 2**-38 to 2**40, in all: a quarter for each test, and as much for each of two releases, of which one is
        made.
    delta : float
        From 2**-1021 to 1, excluded, in all: half for each test. It should be much smaller than 1 / n.
    full_output : bool, default False
        Whether to return a `Release` instead of the value alone.
    rng : dpnoise.hazmat generator, optional
        For tests only: such a release is not private.

    Returns
    -------
    float or None, or Release
        A positive number in the unit of the values, or 0 if the range is 0, as where more than half of the values are
        equal; None when both tests failed. What is beyond the range of doubles saturates.

    Raises
    ------
    ParameterError
        When `epsilon` or `delta` is out of range, or `x` has fewer than two values, a missing or infinite one, or not
        one dimension. Nothing has been drawn then. That a value is not finite is told by the error: clean data by a
        rule that looks at one value at a time.
    TypeError
        When `x` is not made of real numbers.
    RandomnessError
        When the source of randomness fails; nothing is released.

    Warns
    -----
    UserWarning
        When `delta` is at least one over the number of values.

    Notes
    -----
    The range is the value of rank ceil(3n/4) minus that of rank ceil(n/4). A release is off by a factor of up to
    ``2 ** (2.77 / epsilon)`` in half of all cases, and of ``2 ** (12 / epsilon)`` in 95 %: 6.8 and 4096 at epsilon = 1.

    Where a factor of 2 is enough, `release_if_stable` releases the interval without noise, by the distance
    ``iqr_distance(x) - 1``, and passes at a quarter of the distance.

    The time depends on the values, as that of sorting does.

    The threshold of the tests is often printed as 1 + ln(1 / delta), which is not private for epsilon below 1. Here
    it is 1 + t, where t is the smallest number that discrete Laplace noise of scale 4 / epsilon exceeds with a
    probability of at most delta / 2.

    References
    ----------
    Dwork and Lei (2009), "Differential privacy and robust statistics", section 4; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", Algorithm 12.

    Examples
    --------
    >>> from dpnoise import datasets, stability
    >>> about_20 = stability.release_scale(datasets.adult_ages(), epsilon=10.0, delta=1e-6)
    """
    part = part_of(epsilon, 4)
    test = stability_test(part, half_of(delta))
    values = ascending(x)
    iqr = _native.interquartile_range(values)
    warn_of_large(delta, len(values))
    # The distance is 1, not 0, where a neighbour's range is in another interval.
    distances = [_native.iqr_distance(values, discretization) - 1 for discretization in _DISCRETIZATIONS]
    passed = [test.passes(distance, rng) for distance in distances]
    cost = PrivacyCost(4 * part, 2 * test.delta, "substitute")
    if not any(passed):
        return Release(None, cost, NOT_STABLE).given(full_output)
    return Release(_noisy(iqr, part, rng), cost).given(full_output)


def _noisy(iqr: float, epsilon: float, rng: Rng) -> float:
    if iqr == 0:
        return 0.0
    exponent = _noise(epsilon).release(_log2(iqr), rng=rng)
    return float(np.exp2(np.clip(exponent, *_EXPONENTS)))


def _log2(iqr: float) -> float:
    """Give the logarithm, within both of its intervals whatever its rounding error is."""
    if math.isinf(iqr):
        return 1024.0
    intervals = [_native.log2_interval(iqr, discretization) for discretization in _DISCRETIZATIONS]
    return float(np.clip(np.log2(iqr), max(lower for lower, _ in intervals), min(upper for _, upper in intervals)))


@lru_cache(maxsize=16)
def _noise(epsilon: float) -> Laplace:
    return Laplace(epsilon=epsilon)
