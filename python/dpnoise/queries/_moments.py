"""Means and variances of columns, by sums of the moments."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns
from dpnoise._errors import NoErrorBound, ParameterError
from dpnoise._numbers import checked_level, integer, share_of
from dpnoise._types import Integer, Number, Rng, Values
from dpnoise.queries._query import Query
from dpnoise.queries._totals import Count, Sum
from dpnoise.sensitivity import Bounds, Relation, check_bounds

_ROUNDED: Final = 1 + 2.0**-40  # far more than what the few operations on floats round


class OfMoments(Query):
    """A query that is computed from noisy means of a bounded column."""

    __slots__ = ("_bounds", "_half", "_moments")

    _parameters = ("bounds", "epsilon", "relation")

    _moments: Moments

    def __init__(self, bounds: Bounds, relation: Relation) -> None:
        self._bounds = lower, upper = check_bounds(bounds)
        self._half = max(upper - self._middle, self._middle - lower)
        self._relation = relation

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._moments.epsilon

    @property
    def _middle(self) -> float:
        return self._bounds[0] / 2 + self._bounds[1] / 2

    def error(self, level: Number = 0.95, *, rows: Integer | None = None) -> float:
        """Bound the error that the noise makes, for a column of a given number of rows.

        The bound is in the unit of the answer, and is about the answer for the clamped values.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        rows : int, optional
            The number of rows of the column, from 1 to 2**53 - 1. Under "add/remove", where it is private, the number
            of rows with a value. Without it the error cannot be bounded.

        Raises
        ------
        NoErrorBound
            When ``rows`` is not given: the error depends on it.
        """
        if rows is None:
            private = ", which is private" if self._relation == "add/remove" else ""
            raise NoErrorBound(
                f"the error of {type(self).__name__} depends on the number of rows{private}: error(rows=...) bounds it "
                "for any number"
            )
        number = integer(rows, "rows", range(1, 2**53))
        noise = self._moments.errors(number, checked_level(level))
        return min(self._error(noise), self._widest) * _ROUNDED

    @property
    @abstractmethod
    def _widest(self) -> float:
        """Return the largest difference of two answers."""

    @abstractmethod
    def _error(self, moments: list[float]) -> float:
        """Bound the error of the answer by the errors of the moments."""

    @abstractmethod
    def _of(self, distances: NDArray[np.float64], threads: int | None, rng: Rng) -> float:
        """Compute the answer from the distances of the values from the middle of the bounds."""

    def release(self, column: Values, *, threads: int | None = None, rng: Rng = None) -> float:
        """Release the answer, clamped to the possible range.

        A mean is clamped to the bounds, a variance to the square of half their distance.

        Parameters
        ----------
        column : array_like
            One real number for each person, taken as float64. At least one row under "substitute".
        threads : int, optional
            The number of threads that share the work, at least 1. By default all cores that the process may use under
            "substitute", and one under "add/remove": there the number of rows is private, so the given number of
            threads, but at most as many as these cores, is started for any number of rows. It does not change the
            result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        float
            The noisy answer, in its unit: that of the values for a mean, and its square for a variance.
        """
        with np.errstate(all="ignore"):  # a warning would reveal a row, such as a signalling NaN
            clamped = np.clip(_columns.floats(column), *self._bounds)
            return self._of(clamped - self._middle, threads, rng)


class Moments:
    """Noisy means of several numbers of each row, the i-th within +-moments[i], for one epsilon."""

    __slots__ = ("_count", "_sums", "epsilon")

    def __init__(self, moments: list[float], epsilon: Number, relation: Relation, bounds: Bounds) -> None:
        # This checks the user's epsilon, not a part of it.
        self.epsilon = Count(epsilon=epsilon, relation=relation).epsilon
        private_rows = relation == "add/remove"
        share = share_of(self.epsilon, len(moments) + private_rows)
        try:
            self._sums = [Sum(bounds=(-most, most), epsilon=share, relation=relation) for most in moments]
            self._count = Count(epsilon=share, relation=relation) if private_rows else None
        except ParameterError:  # which shows a share of epsilon, and the bounds of a moment
            raise ParameterError(
                "epsilon must be such that, shared by the sums and the count, the noise of each has a scale below "
                f"2**940 and, in steps of its grid, from 2**-40 to 2**40 (the bounds are {bounds!r}), got {epsilon!r}"
            ) from None

    def release(self, columns: list[NDArray[np.float64]], threads: int | None, rng: Rng) -> list[float]:
        """Release the means; a missing value is missing in all columns."""
        rows = len(columns[0])
        if self._count is not None:
            rows = max(1, self._count.release(columns[0], rng=rng))
        elif rows == 0:
            raise ParameterError("column must have rows")
        sums = zip(self._sums, columns, strict=True)
        return [one.release(column, threads=threads, rng=rng) / rows for one, column in sums]

    def errors(self, rows: int, level: float) -> list[float]:
        """Bound the errors of the means of a number of rows; with probability `level` or more all of them hold."""
        each = 1 - (1 - level) / (len(self._sums) + (self._count is not None))
        counted = 0.0 if self._count is None else self._count.error(each)
        # The sum is off by a, the count by c: (s + a) / (n + c) - s / n is (a - c s / n) / (n + c). What floats and the
        # grid make of a value, and of the answer, is less than 16 steps.
        return [
            (one.error(each) + 16 * rows * one.granularity + one.bounds[1] * counted) / (rows - counted)
            if counted < rows
            else math.inf
            for one in self._sums
        ]


class Mean(OfMoments):
    """The mean of the values, each clamped to bounds first.

    Distances from the middle of the bounds are added up as by `Sum`. Under "substitute" the noisy sum, which takes all
    of epsilon, is divided by the number of rows, which is public. Under "add/remove" the sum and the number of rows
    take half of epsilon each. The release is epsilon-differentially private.

    A missing value (NaN, None, nulls) is left out under "add/remove", and counts as the middle of the bounds under
    "substitute".

    Parameters
    ----------
    bounds : pair of float
        The smallest and the largest value, both finite, the smaller one first. Values outside are clamped. Never take
        them from the data.
    epsilon : float
        The privacy parameter: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    References
    ----------
    Li, Lyu, Su and Yang (2016), "Differential privacy: from theory to practice", section 2.5, algorithm 2.4.

    Examples
    --------
    >>> from dpnoise import queries
    >>> age = queries.Mean(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67])
    """

    __slots__ = ()

    def __init__(self, *, bounds: Bounds, epsilon: Number, relation: Relation = "add/remove") -> None:
        super().__init__(bounds, relation)
        self._moments = Moments([self._half], epsilon, relation, bounds)

    @property
    def _widest(self) -> float:
        lower, upper = self._bounds
        return upper - lower

    def _error(self, moments: list[float]) -> float:
        return moments[0] + math.ulp(max(map(abs, self._bounds)))  # the middle is added in floats

    def _of(self, distances: NDArray[np.float64], threads: int | None, rng: Rng) -> float:
        (mean,) = self._moments.release([distances], threads, rng)
        lower, upper = self._bounds
        return min(max(self._middle + mean, lower), upper)


class Variance(OfMoments):
    """The variance of the values, each clamped to bounds first: the mean squared distance from the mean.

    It is the mean of the squared distances from the middle of the bounds, less the square of their mean. Both are sums
    as by `Sum`. Under "add/remove" they and the number of rows have a third of epsilon each. Under "substitute", where
    the number of rows is public, they have half of epsilon each. The release is epsilon-differentially private.

    A missing value (NaN, None, nulls) is left out under "add/remove"; under "substitute" it counts as the middle of the
    bounds, with half of the largest squared distance.

    Parameters
    ----------
    bounds : pair of float
        The smallest and the largest value, both finite, the smaller one first. Values outside are clamped. They are
        1e-120 to 1e150 apart. Never take them from the data.
    epsilon : float
        The privacy parameter: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    Examples
    --------
    >>> from dpnoise import queries
    >>> spread = queries.Variance(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67]) ** 0.5
    """

    __slots__ = ()

    def __init__(self, *, bounds: Bounds, epsilon: Number, relation: Relation = "add/remove") -> None:
        super().__init__(bounds, relation)
        if not 1e-120 < self._half < 1e150:
            raise ParameterError(f"bounds must be 1e-120 to 1e150 apart, got {bounds!r}")
        self._moments = Moments([self._half, self._half**2 / 2], epsilon, relation, bounds)

    @property
    def _widest(self) -> float:
        return self._half**2

    def _error(self, moments: list[float]) -> float:
        mean, square = moments
        return square + mean * (2 * self._half + mean)

    def _of(self, distances: NDArray[np.float64], threads: int | None, rng: Rng) -> float:
        # Squares are from 0 to half**2; shifted by the middle of this range they need half the noise.
        centre = self._half**2 / 2
        # Multiples of about 2**-53 of half: the square of a smaller number may be subnormal, which takes longer.
        rounded = (distances + self._half) - self._half
        mean, square = self._moments.release([distances, rounded**2 - centre], threads, rng)
        return min(max(square + centre - mean**2, 0.0), self._half**2)
