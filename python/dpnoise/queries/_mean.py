"""Means."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpnoise.mechanisms._mechanism import Rng
from dpnoise.queries import _columns
from dpnoise.queries._moments import Moments, middle
from dpnoise.queries._query import Query
from dpnoise.sensitivity import Bounds, Relation, check_bounds


class Mean(Query):
    """The mean of the values, each clamped to bounds first.

    Distances from the middle of the bounds are added as by `Sum`. Under "substitute" the noisy sum, which takes all
    of epsilon, is divided by the number of rows, which is public. Under "add/remove" the sum and the number of rows
    take half of epsilon each. The release is epsilon-differentially private.

    Parameters
    ----------
    bounds : (float, float)
        The smallest and the largest value: both finite, the smaller one first. What lies outside counts as the nearer
        bound. They must not be looked up in the data.
    epsilon : float
        Positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which columns are neighbours. A missing value (NaN, None, nulls) is left out under "add/remove", and counts as
        the middle of the bounds under "substitute".

    Attributes
    ----------
    bounds
        As above.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    References
    ----------
    Li, Lyu, Su and Yang (2016), "Differential privacy: from theory to practice", section 2.5, algorithm 2.4.

    Examples
    --------
    >>> from dpnoise import queries
    >>> age = queries.Mean(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67])
    """

    __slots__ = ("_bounds", "_middle", "_moments")

    _parameters = ("bounds", "epsilon", "relation")

    def __init__(self, *, bounds: Bounds, epsilon: float, relation: Relation = "add/remove") -> None:
        self._bounds = lower, upper = check_bounds(bounds)
        self._middle = middle(self._bounds)
        half = max(upper - self._middle, self._middle - lower)
        self._moments = Moments([half], epsilon, relation)
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
        """Release the mean.

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
            Within the bounds.

        Raises
        ------
        ParameterError
            When the column has not one dimension, or no rows under "substitute".
        TypeError
            When it is not made of real numbers.
        RandomnessError
            When the source of randomness fails; nothing is released.
        """
        distances = np.clip(_columns.floats(column), *self._bounds) - self._middle
        (mean,) = self._moments.release([distances], threads, rng)
        lower, upper = self._bounds
        return min(max(self._middle + mean, lower), upper)
