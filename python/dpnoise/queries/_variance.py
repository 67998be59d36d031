"""Variances."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpnoise._native import ParameterError
from dpnoise.mechanisms._mechanism import Rng
from dpnoise.queries import _columns
from dpnoise.queries._moments import Moments, middle
from dpnoise.queries._query import Query
from dpnoise.sensitivity import Bounds, Relation, check_bounds


class Variance(Query):
    """The variance of the values, each clamped to bounds first: the mean squared distance from the mean.

    It is the mean of the squared distances from the middle of the bounds, less the square of their mean. Both are
    sums as by `Sum`, and share epsilon equally: under "add/remove" with the number of rows, under "substitute", where
    that is public, with nothing else. The release is epsilon-differentially private.

    Parameters
    ----------
    bounds : (float, float)
        The smallest and the largest value: both finite, the smaller one first. What lies outside counts as the nearer
        bound. They must not be looked up in the data.
    epsilon : float
        Positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which columns are neighbours. A missing value (NaN, None, nulls) is left out under "add/remove"; under
        "substitute" it counts as the middle of the bounds, with half of the largest squared distance.

    Attributes
    ----------
    bounds
        As above.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Examples
    --------
    >>> from dpnoise import queries
    >>> spread = queries.Variance(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67]) ** 0.5
    """

    __slots__ = ("_bounds", "_half", "_moments")

    _parameters = ("bounds", "epsilon", "relation")

    def __init__(self, *, bounds: Bounds, epsilon: float, relation: Relation = "add/remove") -> None:
        self._bounds = lower, upper = check_bounds(bounds)
        self._half = max(upper - middle(self._bounds), middle(self._bounds) - lower)
        if not 1e-150 < self._half < 1e150:
            raise ParameterError(f"bounds must be 1e-150 to 1e150 apart, got {bounds!r}")
        self._moments = Moments([self._half, self._half**2 / 2], epsilon, relation)
        self._relation = relation

    @property
    def bounds(self) -> Bounds:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._moments.epsilon

    def release(self, column: Any, *, threads: int | None = None, rng: Rng = None) -> float:
        """Release the variance.

        Parameters
        ----------
        column : array_like
            Real numbers, one dimension.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        float
            From 0 to the largest variance that values within the bounds can have.

        Raises
        ------
        ParameterError
            When the column has not one dimension, or no rows under "substitute".
        TypeError
            When it is not made of real numbers.
        RandomnessError
            When the source of randomness fails; nothing is released.
        """
        distances = np.clip(_columns.floats(column), *self._bounds) - middle(self._bounds)
        # Squares are from 0 to half**2; around their middle they need half the noise.
        centre = self._half**2 / 2
        mean, square = self._moments.release([distances, distances**2 - centre], threads, rng)
        return min(max(square + centre - mean**2, 0.0), self._half**2)
