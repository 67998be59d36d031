from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._parameters import Rng
from dpnoise.queries._moments import Moments, OfMoments
from dpnoise.sensitivity import Bounds, Relation


class Variance(OfMoments):
    """The variance of the values, each clamped to bounds first: the mean squared distance from the mean.

    It is the mean of the squared distances from the middle of the bounds, less the square of their mean. Both are sums
    as by `Sum`. Under "add/remove" they and the number of rows have a third of epsilon each. Under "substitute", where
    the number of rows is public, they have half of epsilon each. The release is epsilon-differentially private.

    Parameters
    ----------
    bounds, epsilon : as everywhere
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which columns are neighbours. A missing value (NaN, None, nulls) is left out under "add/remove"; under
        "substitute" it counts as the middle of the bounds, with half of the largest squared distance.

    Examples
    --------
    >>> from dpnoise import queries
    >>> spread = queries.Variance(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67]) ** 0.5
    """

    __slots__ = ()

    def __init__(self, *, bounds: Bounds, epsilon: float, relation: Relation = "add/remove") -> None:
        super().__init__(bounds, relation)
        if not 1e-120 < self._half < 1e150:
            raise ParameterError(f"bounds must be 1e-120 to 1e150 apart, got {bounds!r}")
        self._moments = Moments([self._half, self._half**2 / 2], epsilon, relation)

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
