"""The scale of data: Algorithm 12 of Dwork and Roth (2014)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dpnoise import _native
from dpnoise._columns import held_column
from dpnoise._types import Number, Rng
from dpnoise.mechanisms import Laplace
from dpnoise.sensitivity import Relation
from dpnoise.stability._distances import ascending
from dpnoise.stability._mechanism import (
    NOT_STABLE,
    Attempt,
    StableMechanism,
    half_of,
    part_of,
    stability_test,
    warn_of_large,
)
from dpnoise.stability._powers import DISCRETIZATIONS, checked_base, half_steps, interval

# Beyond these, powers of two are 0 and infinity; 0 is released only for a range of 0.
_EXPONENTS: Final = (-1074.0, math.nextafter(1024.0, 0.0))


class StableScale(StableMechanism):
    """The interquartile range up to a factor, if its order of magnitude is stable.

    No bounds on the values are needed: this finds the unit in which to measure the data. The logarithms to the base are
    cut into intervals of length 1 in two ways, so that no range is near the ends of an interval in both. For each way,
    the distance to data whose range is in another interval is tested. If one of the tests passes, the range is
    released, times the base to the power of Laplace noise of scale 4 / epsilon. The release is (epsilon,
    delta)-differentially private.

    Neighbours differ by the substitution of one value, and the number n of values is public.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-38 to 2**40: a quarter for each of two tests, and a quarter for each of two
        releases, of which only one is made.
    delta : float
        The privacy parameter, from 2**-1021 up to, but not including, 1: half for each test. Choose it much smaller
        than 1/n, for n values.
    base : float, default 2.0
        The base of the logarithms, from ``1 + 2**-6`` to ``2**10``, chosen without looking at the values. The book has
        ``1 + 1 / ln(n)``: a smaller base gives a more accurate release, and needs more values to give one.

    Notes
    -----
    The range is the value of rank ceil(3n/4) minus the value of rank ceil(n/4). A release is off by a factor of up to
    ``base ** (2.77 / epsilon)`` in half of all cases, and of ``base ** (12 / epsilon)`` in 95 %: 6.8 and 4096 at
    epsilon = 1 for base 2.

    Where a factor of the base is enough, `StableValue` releases the interval without noise, with the distance
    ``iqr_distance(x, base=base) - 1``; its test passes at a quarter of the distance.

    The running time depends on the values.

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
    >>> about_20 = stability.StableScale(epsilon=10.0, delta=1e-6).release(datasets.adult_ages())
    """

    __slots__ = ("_base", "_noise")

    _parameters = ("epsilon", "delta", "base")
    _reason = "a release is off by a factor, the base to the power of Laplace noise of scale 4 / epsilon"

    def __init__(self, *, epsilon: Number, delta: Number, base: Number = 2.0) -> None:
        self._base = checked_base(base)
        part = part_of(epsilon, 4)
        self._native = stability_test(part, half_of(delta))
        self._noise = Laplace(epsilon=part)

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon, of all tests and releases together."""
        return 4 * self._native.epsilon

    @property
    def delta(self) -> float:
        """The privacy parameter delta, of both tests together."""
        return 2 * self._native.delta

    @property
    def base(self) -> float:
        """The base of the logarithms."""
        return self._base

    @property
    def relation(self) -> Relation:
        """The neighbouring relation: the substitution of one value."""
        return "substitute"

    def release(self, x: Any, *, rng: Rng = None) -> float | None:
        """Release the interquartile range up to a factor, if its order of magnitude is stable.

        A `delta` of at least 1/n for n values causes a UserWarning.

        Parameters
        ----------
        x : array_like
            The values, two or more finite numbers. Integers beyond 2**53 count as the nearest double.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        float or None
            A positive number in the unit of the values, or 0 if the range is 0, as when more than half of the values
            are equal; None when both tests failed. Numbers beyond the range of doubles saturate.

        Raises
        ------
        ParameterError
            When `x` has fewer than two values, or has a missing or infinite one. The error reveals that: first replace
            such values, by a rule that looks at one value at a time.
        """
        return self._attempt(x, rng).value  # type: ignore[no-any-return]

    def _held(self, x: Any) -> Any:
        return held_column(x, "x")

    def _attempt(self, x: Any, rng: Rng) -> Attempt:
        values = ascending(x)
        iqr = _native.interquartile_range(values)
        warn_of_large(self.delta, len(values))
        # The distance is 1, not 0, where a neighbour's range is in another interval.
        intervals = [interval(iqr, self.base, discretization) for discretization in DISCRETIZATIONS]
        distances = [_native.iqr_distance(values, *limits) - 1 for limits in intervals]
        passed = [self._native.passes(distance, rng) for distance in distances]
        return Attempt(self._noisy(iqr, rng)) if any(passed) else Attempt(None, NOT_STABLE)

    def _noisy(self, iqr: float, rng: Rng) -> float:
        if iqr == 0:
            return 0.0
        exponent = self._noise.release(_log(iqr, self.base), rng=rng)
        with np.errstate(under="ignore"):  # the range may be subnormal
            return float(np.exp2(np.clip(exponent * math.log2(self.base), *_EXPONENTS)))


def _log(iqr: float, base: float) -> float:
    """Compute the logarithm, kept within both of its intervals despite rounding errors."""
    if math.isinf(iqr):
        return 1024 / math.log2(base)
    h = half_steps(iqr, base)
    return float(np.clip(np.log2(iqr) / math.log2(base), h / 2, (h + 1) / 2))
