"""Counts and sums of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns, _native, sensitivity
from dpnoise._numbers import share_of
from dpnoise._types import Number, Rng, Values
from dpnoise.accounting import LaplaceLoss, PrivacyLoss
from dpnoise.mechanisms import DiscreteLaplace
from dpnoise.queries._query import CountingQuery, Query
from dpnoise.sensitivity import Bounds, Relation, check_bounds


class Count(CountingQuery):
    """The number of rows that are not missing; in a column of booleans the number of true ones.

    The number 0 is not missing and counts, as every other number does: for a column of flags 0 and 1 use
    ``Sum(bounds=(0, 1), ...)``, or count ``column == 1``. Texts such as "false" count, too.

    Adds discrete Laplace noise of scale ``1 / epsilon``. The release is epsilon-differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", example 3.1.

    Examples
    --------
    >>> from dpnoise import queries
    >>> ages = [23, 45, 31, 67]
    >>> retired = queries.Count(epsilon=1.0).release([age >= 65 for age in ages])
    """

    __slots__ = ()

    _parameters = ("epsilon", "relation")

    def __init__(self, *, epsilon: Number, relation: Relation = "add/remove") -> None:
        self._noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity.count(relation))
        self._relation = relation

    def release(self, column: Values, *, rng: Rng = None) -> int:
        """Release the number of rows, which is not clamped and may be negative.

        Without clamping, sums and means of releases stay unbiased.

        Parameters
        ----------
        column : array_like
            One value for each person. Missing values (NaN, None, nulls) and False do not count; everything else does, 0
            too.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        int
            The noisy number of rows.
        """
        return self._released(self._read(column), None, rng)

    def _read(self, column: Any, name: str = "column") -> NDArray[np.bool_]:
        return _columns.truths(column, name)

    def _released(self, rows: NDArray[np.bool_], threads: int | None, rng: Rng) -> int:
        # Counted by the native code: CPython caches small ints, so the address of a count without noise would reveal
        # it.
        return self._noise._native.release_count(rows.view(np.uint8), rng)


class Sum(Query):
    """The sum of the values, each clamped to bounds first.

    Values are rounded to multiples of ``granularity`` and added as integers of 128 bits, so that neither rounding nor
    the order of the rows can raise the sensitivity; discrete Laplace noise is added to the exact sum, and the result
    is rounded once. The release is epsilon-differentially private.

    A missing value (NaN, None, nulls) counts as 0 under "add/remove", as the middle of the bounds under "substitute".

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
    granularity : float, optional
        The step of the grid, in the values' unit: a power of two from 2**-1019 to 2**900 that is so fine that the
        bounds differ on the grid. By default the finest that is allowed: at least 2**-40 of the noise's scale and
        2**-52 of the larger bound.

    References
    ----------
    Casacuberta, Shoemate, Vadhan and Wagaman (2022), "Widespread underestimation of sensitivity in differentially
    private libraries and how to fix it".

    Examples
    --------
    >>> from dpnoise import queries
    >>> hours = queries.Sum(bounds=(0, 80), epsilon=1.0).release([40, 37.5, 12, 168])
    """

    __slots__ = ("_bounds",)

    _native: _native.Sum
    _parameters = ("bounds", "epsilon", "relation", "granularity")

    def __init__(
        self, *, bounds: Bounds, epsilon: Number, relation: Relation = "add/remove", granularity: Number | None = None
    ) -> None:
        self._bounds = lower, upper = check_bounds(bounds)
        self._native = _native.Sum(
            epsilon=epsilon, lower=lower, upper=upper, relation=relation, granularity=granularity
        )
        self._relation = relation

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def sensitivity(self) -> float:
        """The most that one person can change the sum on the grid, in the values' unit."""
        return self._native.sensitivity

    @property
    def scale(self) -> float:
        """The scale of the noise, in the values' unit."""
        return self._native.scale

    @property
    def granularity(self) -> float:
        """The step of the grid, in the values' unit."""
        return self._native.granularity

    def release(self, column: Values, *, threads: int | None = None, rng: Rng = None) -> float:
        """Release the sum, a multiple of ``granularity`` as far as a double can hold it.

        Parameters
        ----------
        column : array_like
            One real number for each person, taken as float64.
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
            The noisy sum, in the values' unit.
        """
        return self._released(self._read(column), threads, rng)

    def _read(self, column: Any, name: str = "column") -> NDArray[Any]:
        return _columns.readable(column, name)

    def _released(self, rows: NDArray[Any], threads: int | None, rng: Rng) -> float:
        return self._native.release(rows, self._threads(threads), rng)

    def _of_rows(self, most: int) -> Sum:
        share = share_of(self.epsilon, most)
        finest = Sum(bounds=self.bounds, epsilon=share, relation=self._relation)
        if self.granularity <= finest.granularity:
            return finest
        return Sum(bounds=self.bounds, epsilon=share, relation=self._relation, granularity=self.granularity)

    def _loss(self) -> PrivacyLoss:
        return LaplaceLoss(self.epsilon, round(self.sensitivity / self.granularity))

    def error(self, level: Number = 0.95) -> float:
        """Bound the error from the noise by the smallest sufficient multiple of the granularity.

        The bound is on the distance to the sum of the clamped and rounded values. Rounding changes each value by at
        most half a step more. The error from clamping is not included, since it is private.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return self._native.error(level)
