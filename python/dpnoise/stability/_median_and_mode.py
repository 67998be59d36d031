"""Releasing the median and the mode where they are stable."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from dpnoise.mechanisms._mechanism import Rng
from dpnoise.sensitivity import Relation, check_relation
from dpnoise.stability._budget import stability_test
from dpnoise.stability._distances import Found, median, mode
from dpnoise.stability._mechanism import NOT_STABLE, Parameter, Release, StableMechanism, released, warn_of_large


class _StableStatistic(StableMechanism):
    """A statistic of a column as it is, if it is stable."""

    __slots__ = ()

    _parameters = ("epsilon", "delta", "relation")

    relation: Any = Parameter()

    def __init__(self, *, epsilon: float, delta: float, relation: Relation = "add/remove") -> None:
        self._native = stability_test(epsilon, delta)
        check_relation(relation)
        self._given = {"relation": relation}

    @abstractmethod
    def _find(self, x: Any) -> Found:
        """Find the statistic and its distance to instability."""

    def _attempt(self, x: Any, rng: Rng) -> Release:
        found = self._find(x)
        if self.relation == "substitute":
            warn_of_large(self.delta, found.n)
        release = released(found.value, found.distance, self._native, rng)
        # Of no values there is none to release, and the same is said of them as of others that are not stable.
        return release if found.n else Release(None, NOT_STABLE)


class StableMedian(_StableStatistic):
    """The median of data as it is, if it is stable.

    The median is the lower one, of rank ceil(n/2). It is released when its distance to instability, `median_distance`,
    passes the test of `StableValue`. The release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        From 2**-40 to 2**40.
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people. Under "substitute", where that is
        public, a warning says so; under "add/remove" it would tell that number.
    relation : {"add/remove", "substitute"}, default "add/remove"
        "add/remove": one of two neighbours has a value more, and the number of values is private; without any values
        nothing is ever released. "substitute": neighbours differ in one value, and their number is public.

    Attributes
    ----------
    epsilon, delta, relation
        As above.

    Raises
    ------
    ParameterError
        When `epsilon`, `delta` or `relation` is out of range.

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
            Finite numbers, one dimension. Integers beyond 2**53 count as the nearest double.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        float or None
            The median, a value of the data, or None when the test failed.

        Raises
        ------
        ParameterError
            When `x` has a missing or infinite value, not one dimension, or, under "substitute", no values. Nothing has
            been drawn then. A missing value is data of one person: replace such values first, by a rule that looks at
            no other one.
        TypeError
            When the values of `x` are of no real numbers.
        RandomnessError
            When the source of randomness fails; nothing is released.

        Warns
        -----
        UserWarning
            When `delta` is at least one over the number of values, under "substitute".

        Notes
        -----
        The time depends on the data, as that of partitioning does.
        """
        return self._attempt(x, rng).value  # type: ignore[no-any-return]

    def _find(self, x: Any) -> Found:
        return median(x, self.relation)


class StableMode(_StableStatistic):
    """The most frequent value of data as it is, if it is stable.

    The mode is the most frequent value, the smallest of those if there are several. It is released when its distance to
    instability, `mode_distance`, passes the test of `StableValue`. The release is (epsilon, delta)-differentially
    private.

    Parameters
    ----------
    epsilon : float
        From 2**-40 to 2**40.
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people. Under "substitute", where that is
        public, a warning says so; under "add/remove" it would tell that number.
    relation : {"add/remove", "substitute"}, default "add/remove"
        "add/remove": one of two neighbours has a value more, and the number of values is private; without any values
        nothing is ever released. "substitute": neighbours differ in one value, and their number is public.

    Attributes
    ----------
    epsilon, delta, relation
        As above.

    Raises
    ------
    ParameterError
        When `epsilon`, `delta` or `relation` is out of range.

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

        Parameters
        ----------
        x : array_like
            All finite numbers, all texts, all bytes or all booleans; one dimension.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        object or None
            The mode, a value of the data; a whole number is an int, whatever its type, or None when the test failed.

        Raises
        ------
        ParameterError
            When `x` has a missing or infinite value, not one dimension, or, under "substitute", no values. Nothing has
            been drawn then. A missing value is data of one person: replace such values first, by a rule that looks at
            no other one.
        TypeError
            When the values of `x` are of several kinds, or of another one.
        RandomnessError
            When the source of randomness fails; nothing is released.

        Warns
        -----
        UserWarning
            When `delta` is at least one over the number of values, under "substitute".

        Notes
        -----
        The time depends on the data, as that of sorting does.
        """
        return self._attempt(x, rng).value

    def _find(self, x: Any) -> Found:
        return mode(x, self.relation)
