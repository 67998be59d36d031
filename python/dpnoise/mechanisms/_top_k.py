"""The k best candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._interchange import Reals
from dpnoise._parameters import Rng
from dpnoise.mechanisms._selection import SelectionMechanism


class TopK(SelectionMechanism):
    """The ``k`` best candidates, by peeling: the exponential mechanism ``k`` times, without replacement.

    Each of the ``k`` rounds spends ``epsilon / k``. The ordered release has the same distribution as the ``k`` largest
    scores after Gumbel noise is added to each. It is epsilon-differentially private for neighbouring data sets
    between which each score changes by at most ``sensitivity``.

    Parameters
    ----------
    k : int
        The number of candidates to choose, from 1 to 2**32 - 1.
    epsilon : float
        For all rounds together; positive and finite.
    sensitivity, monotonic : as for `Exponential`
        The scale is ``k * sensitivity / epsilon`` when monotonic, and ``2 * k * sensitivity / epsilon`` otherwise.

    Notes
    -----
    Time and memory accesses depend on neither scores nor choices.

    References
    ----------
    Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get composition".

    Examples
    --------
    >>> from dpnoise import TopK
    >>> first, second = TopK(k=2, epsilon=1.0, monotonic=True).release([120, 80, 119])
    """

    __slots__ = ()

    _parameters = ("k", "epsilon", "sensitivity", "monotonic")

    def __init__(self, *, k: int, epsilon: float, sensitivity: float = 1.0, monotonic: bool = False) -> None:
        self._native = _native.Selection.top_k(k, epsilon, sensitivity, monotonic)

    @property
    def k(self) -> int:
        """How many candidates are chosen."""
        return self._native.k

    @property
    def rho(self) -> float:
        """The cost under zero-concentrated differential privacy, ``epsilon**2 / (8 * k)``."""
        return self.epsilon**2 / (8 * self.k)

    def release(self, scores: Reals, *, rng: Rng = None) -> NDArray[np.int64]:
        """Choose candidates.

        Parameters
        ----------
        scores : array_like
            A finite real number for each candidate, of one dimension, at least ``k`` of them; higher is better.
            Integers up to 2**53 in magnitude. Scores more than 2**51 steps of the grid below the best one are clamped
            to that distance.
        rng : as everywhere

        Returns
        -------
        ndarray of int64, shape (k,)
            The indices of the chosen scores, all different, in the order in which they were chosen.
        """
        return np.array(self._choices(scores, rng), np.int64)
