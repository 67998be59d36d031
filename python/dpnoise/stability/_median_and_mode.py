"""Releasing values where they are stable: the median, the mode, and any with a known distance."""

from __future__ import annotations

import operator
from abc import abstractmethod
from contextlib import suppress
from typing import Any

from dpnoise._columns import held_column
from dpnoise._types import Integer, Number, Rng
from dpnoise.sensitivity import Relation, check_relation
from dpnoise.stability._distances import Found, median, mode
from dpnoise.stability._mechanism import (
    NOT_STABLE,
    Attempt,
    Parameter,
    StableMechanism,
    released,
    stability_test,
    warn_of_large,
)


class StableValue(StableMechanism):
    """The exact value, if the data are far from any with a different value.

    Discrete Laplace noise of scale 1 / epsilon is added to the distance to instability. The value is released when the
    sum is above the smallest t >= 0 that the noise alone exceeds with a probability of at most delta. The release is
    (epsilon, delta)-differentially private if the distance has the properties that `release` asks for.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: from 2**-40 to 2**40.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13 and Proposition 7.2;
    Smith and Thakurta (2013), "Differentially private feature selection via stability arguments, and the robustness of
    the lasso".

    Examples
    --------
    >>> from dpnoise import stability
    >>> votes = {"tea": 9000, "coffee": 4000}
    >>> gap = votes["tea"] - votes["coffee"]  # one vote more or less changes it by at most 1
    >>> stability.StableValue(epsilon=1.0, delta=1e-6).release(("tea", gap - 1))
    'tea'
    """

    __slots__ = ()

    _parameters = ("epsilon", "delta")

    def __init__(self, *, epsilon: Number, delta: Number) -> None:
        self._native = stability_test(epsilon, delta)

    def release(self, x: tuple[Any, Integer], *, rng: Rng = None) -> Any:
        """Release a value if its distance to instability passes the test, None otherwise.

        Parameters
        ----------
        x : (object, int)
            The exact answer for the data, and its distance to instability: an integer that changes by at most 1 between
            neighbours and is 0 or less if any neighbour has a different answer. The neighbouring relation is the one
            for which this holds.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.
        """
        return self._attempt(x, rng).value

    def _held(self, x: Any) -> tuple[Any, int]:
        if not isinstance(x, tuple) or len(x) != 2:
            raise TypeError("x must be a tuple of two: the value, and its distance to instability")
        value, distance = x
        return value, integer(distance)

    def _attempt(self, x: tuple[Any, Integer], rng: Rng) -> Attempt:
        return released(*self._held(x), self._native, rng)


def integer(distance: Any, verb: str = "be") -> int:
    """Convert a distance to an int, clamped to 64 bits, which keeps its sensitivity; no message may show it."""
    found = None
    if not isinstance(distance, bool):
        with suppress(Exception):  # the object may raise any
            found = operator.index(distance)
    if found is None:
        raise TypeError(f"distance must {verb} an int, got {type(distance).__name__}")
    return max(-(2**63), min(found, 2**63 - 1))


class StableStatistic(StableMechanism):
    __slots__ = ()

    _parameters = ("epsilon", "delta", "relation")

    relation: Any = Parameter()

    def __init__(self, *, epsilon: Number, delta: Number, relation: Relation = "add/remove") -> None:
        self._native = stability_test(epsilon, delta)
        check_relation(relation)
        self._given = {"relation": relation}

    def _held(self, x: Any) -> Any:
        return held_column(x, "x")

    @abstractmethod
    def _find(self, x: Any) -> Found:
        """Find the statistic and its distance to instability."""

    def _attempt(self, x: Any, rng: Rng) -> Attempt:
        found = self._find(x)
        if self.relation == "substitute":
            warn_of_large(self.delta, found.n)
        release = released(found.value, found.distance, self._native, rng)
        # Empty data have no value to release, and are refused for the same reason as unstable data.
        return release if found.n else Attempt(None, NOT_STABLE)


class StableMedian(StableStatistic):
    """The exact median of the data, if it is stable.

    The median is the lower one, of rank ceil(n/2). It is released when its distance to instability, `median_distance`,
    passes the test of `StableValue`. The release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: from 2**-40 to 2**40.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than 1/n, for n values. Under
        `"substitute"`, a delta of 1/n or more causes a warning; under `"add/remove"` a warning would reveal n.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one value is added or removed, and the number n of values is
        private; `"substitute"`: one value is replaced, and n is public. A value is a person. Under `"add/remove"` the
        result for empty data is always None.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.StableMedian(epsilon=1.0, delta=1e-6).release([39.0] * 90 + [52.0] * 10)
    39.0
    """

    __slots__ = ()

    def release(self, x: Any, *, rng: Rng = None) -> float | None:
        """Release the median, if it is stable.

        Parameters
        ----------
        x : array_like
            The values, all finite numbers. Integers beyond 2**53 count as the nearest double.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        float or None
            The median, a value of the data, or None when the test failed.

        Raises
        ------
        ParameterError
            When `x` has a missing or infinite value or, under "substitute", is empty. The error reveals that a value is
            missing or infinite: first replace such values, by a rule that looks at one value at a time.

        Warns
        -----
        UserWarning
            When `delta` is at least 1/n for n values, under "substitute".

        Notes
        -----
        The running time depends on the data.
        """
        return self._attempt(x, rng).value  # type: ignore[no-any-return]

    def _find(self, x: Any) -> Found:
        return median(x, self.relation)


class StableMode(StableStatistic):
    """The most frequent value of the data, if it is stable.

    The mode is the most frequent value, the smallest of those if there are several. It is released when its distance to
    instability, `mode_distance`, passes the test of `StableValue`. The release is (epsilon, delta)-differentially
    private.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: from 2**-40 to 2**40.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than 1/n, for n values. Under
        `"substitute"`, a delta of 1/n or more causes a warning; under `"add/remove"` a warning would reveal n.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one value is added or removed, and the number n of values is
        private; `"substitute"`: one value is replaced, and n is public. A value is a person. Under `"add/remove"` the
        result for empty data is always None.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.StableMode(epsilon=1.0, delta=1e-6).release(["tea"] * 90 + ["coffee"] * 10)
    'tea'
    """

    __slots__ = ()

    def release(self, x: Any, *, rng: Rng = None) -> Any:
        """Release the most frequent value, if it is stable.

        The running time depends on the data.

        Parameters
        ----------
        x : array_like
            The values: all finite numbers, all texts, all bytes or all booleans.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        object or None
            The mode, a value of the data, or None when the test failed. A whole number is an int, whatever its dtype.

        Raises
        ------
        ParameterError
            When `x` has a missing or infinite value or, under "substitute", is empty. The error reveals that a value is
            missing or infinite: first replace such values, by a rule that looks at one value at a time.

        Warns
        -----
        UserWarning
            When `delta` is at least 1/n for n values, under "substitute".
        """
        return self._attempt(x, rng).value

    def _find(self, x: Any) -> Found:
        return mode(x, self.relation)
