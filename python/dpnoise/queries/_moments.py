"""Means, variances and standard deviations of columns."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from numpy.typing import NDArray

from dpnoise import _columns, _native
from dpnoise._errors import NoErrorBound, ParameterError
from dpnoise._numbers import integer
from dpnoise._types import Integer, Number, Rng, Values
from dpnoise.queries._query import Query
from dpnoise.sensitivity import Bounds, Relation, check_bounds


class OfMoments(Query):
    """A query that is computed from noisy means of a bounded column."""

    __slots__ = ("_bounds",)

    _parameters = ("bounds", "epsilon", "relation")

    _native: _native.Moment

    _squared: ClassVar[bool]

    def __init__(self, *, bounds: Bounds, epsilon: Number, relation: Relation = "add/remove") -> None:
        self._bounds = lower, upper = check_bounds(bounds)
        self._native = _native.Moment(
            squared=self._squared, lower=lower, upper=upper, epsilon=epsilon, relation=relation
        )
        self._relation = relation

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def _range(self) -> tuple[float, float]:
        return self._bounds

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
        return self._native.error(integer(rows, "rows", range(1, 2**53)), level)

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
        return self._released(self._read(column), threads, rng)

    def _read(self, column: Any, name: str = "column") -> NDArray[Any]:
        return _columns.readable(column, name)

    def _released(self, rows: NDArray[Any], threads: int | None, rng: Rng) -> float:
        return self._native.release(rows, self._threads(threads), rng)[0]

    def _check_level(self, level: float) -> None:
        if 1.0 - (1.0 - level) / 3 == 1.0:  # of each part of a variance
            raise ParameterError(f"level must be at most 1 - 2**-51, got {level!r}")

    def _released_with_error(self, rows: NDArray[Any], level: float, rng: Rng) -> tuple[float, float]:
        answer, counted = self._native.release(rows, self._threads(None), rng)
        return answer, self._native.error_of_release(len(rows) if counted is None else counted, level)


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

    _squared = False


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

    _squared = True

    @property
    def _range(self) -> tuple[float, float]:
        lower, upper = self._bounds
        return 0.0, (upper / 2 - lower / 2) ** 2


class StandardDeviation(Variance):
    """The standard deviation of the values, each clamped to bounds first: the square root of their `Variance`.

    The release is epsilon-differentially private.

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
    >>> spread = queries.StandardDeviation(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67])
    """

    __slots__ = ()

    @property
    def _range(self) -> tuple[float, float]:
        lower, upper = self._bounds
        return 0.0, upper / 2 - lower / 2

    def error(self, level: Number = 0.95, *, rows: Integer | None = None) -> float:
        """Bound the error that the noise makes, for a column of a given number of rows.

        Two roots differ by at most the root of the difference of the variances.

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
        return _root_up(super().error(level, rows=rows))

    def _released(self, rows: NDArray[Any], threads: int | None, rng: Rng) -> float:
        return math.sqrt(super()._released(rows, threads, rng))

    def _released_with_error(self, rows: NDArray[Any], level: float, rng: Rng) -> tuple[float, float]:
        variance, error = super()._released_with_error(rows, level, rng)
        answer = math.sqrt(variance)
        # The root is concave: it changes most below, unless zero is nearer there.
        below = _root_up(variance) - math.sqrt(max(0.0, math.nextafter(variance - error, 0.0)))
        return answer, math.nextafter(max(below, _root_up(variance + error) - answer), math.inf)


def _root_up(square: float) -> float:
    return math.nextafter(math.sqrt(square), math.inf)
