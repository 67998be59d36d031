from __future__ import annotations

import numpy as np

from dpnoise import _interchange, sensitivity
from dpnoise._interchange import Values
from dpnoise._parameters import Rng
from dpnoise.mechanisms import DiscreteLaplace
from dpnoise.queries._query import CountingQuery
from dpnoise.sensitivity import Relation


class Count(CountingQuery):
    """The number of rows that are neither false nor missing: in a column of booleans the number of true ones.

    Adds discrete Laplace noise of scale ``1 / epsilon``. The release is epsilon-differentially private.

    Parameters
    ----------
    epsilon, relation : as everywhere

    Examples
    --------
    >>> from dpnoise import queries
    >>> ages = [23, 45, 31, 67]
    >>> retired = queries.Count(epsilon=1.0).release([age >= 65 for age in ages])
    """

    __slots__ = ()

    _parameters = ("epsilon", "relation")

    def __init__(self, *, epsilon: float, relation: Relation = "add/remove") -> None:
        self._noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity.count(relation))
        self._relation = relation

    def release(self, column: Values, *, rng: Rng = None) -> int:
        """Release the number of rows, which is not clamped and may be negative.

        Without clamping, sums and means of releases stay unbiased.

        Parameters
        ----------
        column : array_like
            Missing values (NaN, None, nulls) and False do not count; everything else does, 0 too.
        rng : as everywhere
        """
        # Counted by the native code: CPython caches small ints, so the address of a count without noise would reveal
        # it.
        return self._noise._native.release_count(_interchange.truths(column).view(np.uint8), rng)
