"""Histograms with private groups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpnoise import _interchange, sensitivity
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._parameters import Rng, real
from dpnoise.accounting import PrivacyCost
from dpnoise.mechanisms import DiscreteLaplace
from dpnoise.queries._query import CountingQuery
from dpnoise.sensitivity import Relation


class StabilityHistogram(CountingQuery):
    """The counts of the values of a column, where the set of values is private too.

    The count of each value that occurs gets discrete Laplace noise, and is released if the noisy count reaches
    `threshold`. The noisy count of a value that only one person has reaches it with a probability of at most delta. The
    release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon, relation : as everywhere
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas (2009), "Releasing search queries and clicks privately"; Bun, Nissim and
    Stemmer (2016), "Simultaneous private learning of multiple concepts", section 3.

    Examples
    --------
    >>> from dpnoise import queries
    >>> column = ["tea"] * 400 + ["coffee"] * 300 + ["xyzzy"]
    >>> drinks = queries.StabilityHistogram(epsilon=1.0, delta=1e-9).release(column)
    """

    __slots__ = ("_delta", "_threshold")

    _parameters = ("epsilon", "delta", "relation")

    def __init__(self, *, epsilon: float, delta: float, relation: Relation = "add/remove") -> None:
        self._noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity.histogram(relation))
        if not 0 < real(delta, "delta") < 1:
            raise ParameterError(f"delta must be between 0 and 1, got {delta!r}")
        self._delta = float(delta)
        self._threshold = _threshold(self._noise.scale, self._delta)
        self._relation = relation

    @property
    def delta(self) -> float:
        """The privacy parameter delta."""
        return self._delta

    def _loss(self) -> PrivacyCost:
        return self.cost

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released."""
        return self._threshold

    def release(self, column: Values, *, threads: int | None = None, rng: Rng = None) -> dict[Any, int]:
        """Release the values that are frequent enough, and their counts.

        Parameters
        ----------
        column : array_like
            All texts, all numbers or all booleans. Missing values are left out.
        threads, rng : as everywhere

        Returns
        -------
        dict
            The noisy counts by value, in the order of the values. Integral values are of type int, for every dtype.
        """
        found = sorted(_interchange.counts(column).items())
        counts = np.array([count for _, count in found], np.int64)
        noisy = self._noise.release(counts, threads=threads, rng=rng).tolist()
        return {value: count for (value, _), count in zip(found, noisy, strict=True) if count >= self._threshold}


def _threshold(scale: float, delta: float) -> int:
    """Return a threshold that a noisy count of 1 reaches with a probability of at most delta.

    That is r**(t - 1) / (1 + r) with r = exp(-1 / scale). The relative error of the logarithms is far below the one
    part in 10**12 by which the bound is widened.
    """
    needed = -(math.log(delta) + math.log1p(math.exp(-1 / scale))) * scale
    return 1 + max(0, math.ceil(needed + abs(needed) * 1e-12 + 1e-12))
