"""The Laplace mechanism in every person's own hands, for the mean of their numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise.local._means import MeanProtocol


class LaplaceMean(MeanProtocol):
    """The Laplace mechanism: a number in [-1, 1] with Laplace noise of scale 2 / epsilon.

    The variance per person is ``8 / epsilon**2`` for every number; that of `HybridMean` is smaller for every epsilon.
    Noise is exact, on a grid that is finer than its scale by 2**15 or more. A report takes 4 bytes, and the collector
    keeps a single sum.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.

    Notes
    -----
    How much people's numbers differ from each other cannot be seen from a sum. Standard errors have the largest spread
    that numbers with this mean can have: they are too large by up to 6 % for epsilon = 1, and more for a larger one.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LaplaceMean(epsilon=2.0)
    >>> round(protocol.variance(n=1, x=0.5), 6)
    2.0
    """

    __slots__ = ()
    _family = "laplace_mean"
    _parameters = ("requested_epsilon",)

    def __init__(self, *, epsilon: float) -> None:
        self._native = _native.LocalProtocol.laplace_mean(epsilon)

    def _moments(self, counters: NDArray[np.uint64], n: int) -> tuple[float, float]:
        unit, bound = self._unit_and_bound()
        mean = (int(counters[0]) - n * bound) / (n * unit)
        return mean, self._noise() + 1.0

    def _variance_of_one(self, x: float) -> float:
        unit, _ = self._unit_and_bound()
        upwards = math.modf((1.0 + x) * unit)[0]
        return self._noise() + upwards * (1.0 - upwards) / unit**2

    def _least_variance(self) -> float:
        return self._noise()

    def _noise(self) -> float:
        """Give the variance of discrete Laplace noise of scale 2 unit / epsilon, divided by unit**2."""
        unit, _ = self._unit_and_bound()
        return 0.5 / (unit * math.sinh(self.epsilon / (4.0 * unit))) ** 2

    def _unit_and_bound(self) -> tuple[int, int]:
        specification = self._specified()
        return specification["unit"], specification["bound"]
