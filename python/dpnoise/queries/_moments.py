"""Noisy moments, from which means and variances are computed."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _interchange
from dpnoise._errors import NoErrorBound, ParameterError
from dpnoise._interchange import Values
from dpnoise._parameters import Rng, checked_level, integer, share_of
from dpnoise.queries._count import Count
from dpnoise.queries._query import Query
from dpnoise.queries._sum import Sum
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
    def bounds(self) -> Bounds:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._moments.epsilon

    @property
    def _middle(self) -> float:
        return self._bounds[0] / 2 + self._bounds[1] / 2

    def error(self, level: float = 0.95, *, rows: int | None = None) -> float:
        """Bound the error that the noise makes, for a column of a given number of rows.

        The bound is in the unit of the answer, and is about the answer for the clamped values.

        Parameters
        ----------
        rows : int, optional
            The number of rows of the column; positive. Under "add/remove", where it is private, the number of rows with
            a value.
        level : as everywhere

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
        """How far two answers can be from each other."""

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
        column : array_like of real numbers
            One row at least under "substitute".
        threads, rng : as for `Sum.release`
        """
        with np.errstate(all="ignore"):  # a warning would reveal a row, such as a signalling NaN
            clamped = np.clip(_interchange.floats(column), *self._bounds)
            return self._of(clamped - self._middle, threads, rng)


class Moments:
    """Noisy means of several numbers of each row, the i-th within +-bounds[i], for one epsilon."""

    __slots__ = ("_count", "_sums", "epsilon")

    def __init__(self, bounds: list[float], epsilon: float, relation: Relation) -> None:
        # This checks the user's epsilon, not a part of it.
        self.epsilon = Count(epsilon=epsilon, relation=relation).epsilon
        private_rows = relation == "add/remove"
        share = share_of(self.epsilon, len(bounds) + private_rows)
        self._sums = [Sum(bounds=(-bound, bound), epsilon=share, relation=relation) for bound in bounds]
        self._count = Count(epsilon=share, relation=relation) if private_rows else None

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
