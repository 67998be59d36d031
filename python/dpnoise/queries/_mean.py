from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpnoise._parameters import Rng
from dpnoise.queries._moments import Moments, OfMoments
from dpnoise.sensitivity import Bounds, Relation


class Mean(OfMoments):
    """The mean of the values, each clamped to bounds first.

    Distances from the middle of the bounds are added up as by `Sum`. Under "substitute" the noisy sum, which takes all
    of epsilon, is divided by the number of rows, which is public. Under "add/remove" the sum and the number of rows
    take half of epsilon each. The release is epsilon-differentially private.

    A missing value (NaN, None, nulls) is left out under "add/remove", and counts as the middle of the bounds under
    "substitute".

    Parameters
    ----------
    bounds, epsilon, relation : as everywhere

    References
    ----------
    Li, Lyu, Su and Yang (2016), "Differential privacy: from theory to practice", section 2.5, algorithm 2.4.

    Examples
    --------
    >>> from dpnoise import queries
    >>> age = queries.Mean(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67])
    """

    __slots__ = ()

    def __init__(self, *, bounds: Bounds, epsilon: float, relation: Relation = "add/remove") -> None:
        super().__init__(bounds, relation)
        self._moments = Moments([self._half], epsilon, relation)

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
