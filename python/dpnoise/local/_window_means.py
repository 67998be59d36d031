"""Means by windows: Duchi's protocol, the piecewise one, and the hybrid of both."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise.local._means import MeanProtocol
from dpnoise.local._windows import Window


class _OfWindows(MeanProtocol):
    """A mean for which the collector counts how often each report came."""

    __slots__ = ()

    def _moments(self, counters: NDArray[np.uint64], n: int) -> tuple[float, float]:
        shares, values = counters / n, self._values()
        return float(shares @ values), float(shares @ values**2)

    @abstractmethod
    def _values(self) -> NDArray[np.float64]:
        """Give the number that each report stands for."""


class _WindowMean(_OfWindows):
    """A mean by one window."""

    __slots__ = ()
    _parameters = ("requested_epsilon",)

    def _window(self) -> Window:
        return Window.of_specification(self._specified())

    def _values(self) -> NDArray[np.float64]:
        return self._window().unbiased_values()

    def _variance_of_one(self, x: float) -> float:
        return self._window().variance(x)

    def _least_variance(self) -> float:
        return self._window().least_variance()


class DuchiMean(_WindowMean):
    """Duchi's mechanism: a number in [-1, 1] is rounded at random to -1 or 1, and that sign is randomised.

    The variance per person is ``((exp(epsilon) + 1) / (exp(epsilon) - 1))**2 - x**2`` for a sender with the number
    ``x``: largest for 0, and never below 1 there. A report has one bit. The choice for epsilon below 0.61.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.

    References
    ----------
    Duchi, Jordan and Wainwright (2018), "Minimax optimal procedures for locally private estimation".

    Examples
    --------
    >>> from dpnoise import local
    >>> local.DuchiMean(epsilon=1.0).report_bytes
    1
    """

    __slots__ = ()
    _family = "duchi_mean"

    def __init__(self, *, epsilon: float) -> None:
        self._native = _native.LocalProtocol.duchi_mean(epsilon)


class PiecewiseMean(_WindowMean):
    """The piecewise mechanism: a number in [-1, 1] is moved at random, more often than not within a window around it.

    With ``s = exp(epsilon / 2)`` the variance per person is ``x**2 / (s - 1) + (s + 3) / (3 (s - 1)**2)`` for a sender
    with the number ``x``: largest for -1 and 1. That is smaller than the largest one of `DuchiMean` where epsilon is
    above 1.29, and the one of `HybridMean` is smaller than both where it is above 0.61.

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
    Numbers are rounded at random to a grid, without bias, and reports are one of up to 4096 whole numbers, of which
    the collector keeps a histogram. The proof page "Windows" has the definition and its exact variance, which is
    within 1 % of that of real numbers for epsilon up to 16, and below it for more.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), "Collecting and analyzing multidimensional data with local
    differential privacy", algorithm 2.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.PiecewiseMean(epsilon=2.0)
    >>> estimate = protocol.estimate(protocol.perturb([0.3, -0.5, 1.0] * 1000))
    >>> estimate.lower < estimate.mean < estimate.upper
    True
    """

    __slots__ = ()
    _family = "piecewise_mean"

    def __init__(self, *, epsilon: float) -> None:
        self._native = _native.LocalProtocol.piecewise_mean(epsilon)


class HybridMean(_OfWindows):
    """The hybrid mechanism: `PiecewiseMean` or `DuchiMean`, at random, each report by itself.

    With ``s = exp(epsilon / 2)`` the first is chosen with probability ``1 - 1 / s`` where epsilon is above 0.61, and
    never where it is not. Then the variance per person is the same for all numbers up to small terms:
    ``(s + 3) / (3 s (s - 1)) + ((exp(epsilon) + 1) / (exp(epsilon) - 1))**2 / s``; its largest value is the smallest
    of the three.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), "Collecting and analyzing multidimensional data with local
    differential privacy", section III-C.

    Examples
    --------
    >>> from dpnoise import local
    >>> local.HybridMean(epsilon=1.0).variance(n=1000, x=0.0) < local.DuchiMean(epsilon=1.0).variance(n=1000, x=0.0)
    True
    """

    __slots__ = ()
    _family = "hybrid_mean"
    _parameters = ("requested_epsilon",)

    def __init__(self, *, epsilon: float) -> None:
        self._native = _native.LocalProtocol.hybrid_mean(epsilon)

    def _parts(self) -> tuple[float, Window, Window]:
        fields = self._specified()
        duchi = Window.of(2, 1, fields["duchi_keep"], fields["duchi_planes"])
        return fields["alpha"] / 2**24, Window.of_specification(fields), duchi

    def _values(self) -> NDArray[np.float64]:
        _, piecewise, duchi = self._parts()
        return np.concatenate([piecewise.unbiased_values(), duchi.unbiased_values()])

    def _variance_of_one(self, x: float) -> float:
        alpha, piecewise, duchi = self._parts()
        return alpha * piecewise.variance(x) + (1.0 - alpha) * duchi.variance(x)

    def _least_variance(self) -> float:
        alpha, piecewise, duchi = self._parts()
        return alpha * piecewise.least_variance() + (1.0 - alpha) * duchi.least_variance()
