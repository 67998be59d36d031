"""The mechanisms that add Laplace noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._types import Integer, Number
from dpnoise.accounting import DiscreteLaplaceLoss, LaplaceLoss, PrivacyLoss
from dpnoise.mechanisms._noise import IntegerNoise, RealNoise, checked_sensitivity


class Laplace(RealNoise):
    """The Laplace mechanism for real values, exact and safe in floating point.

    Values are rounded to a grid of multiples of ``granularity`` (half up); exact discrete Laplace noise is added, and
    the exact sum is rounded once to a double. The release is epsilon-differentially private for neighbouring data sets
    whose values differ by at most ``sensitivity`` in the L1 norm, in floating point as on paper.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    sensitivity : float, default 1.0
        The L1 sensitivity of the values, in their unit: positive and finite, with ``sensitivity / epsilon`` below
        2**940.
    granularity : float, optional
        The step of the grid, in the values' unit: a power of two from 2**-1019 to 2**900 and of at least
        ``2**ceil(log2(sensitivity / epsilon) - 51)``. By default ``2**ceil(log2(sensitivity / epsilon) - 40)``, or for
        ``n`` values ``2**floor(log2(sensitivity / (100 * n)))`` if that is less: it depends on the length of what is
        released, which is public.

    Attributes
    ----------
    granularity : float
        The step of the grid for a single value, in the values' unit; `granularity_for` gives that for several.
    scale : float
        The scale of the noise of a single value, in the values' unit; `scale_for` gives that for several.

    Notes
    -----
    An array of ``n`` values is released with a sensitivity of ``ceil(sensitivity / g) + n - 1`` steps of its grid's
    ``g``, since rounding changes each value by up to half a step. On the default grid that widens the noise by at most
    1 % if ``n <= 1e13 * epsilon``. A larger ``n`` gets wider noise, and above about ``2e15 * epsilon`` it is refused.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis"; Mironov
    (2012), "On significance of the least significant bits for differential privacy", for what the grid prevents.

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> mechanism = Laplace(epsilon=0.5, sensitivity=1.0)
    >>> released = mechanism.release(37.2)
    >>> low, high = mechanism.confidence_interval(released)
    """

    __slots__ = ()

    _parameters = ("epsilon", "sensitivity", "granularity")

    def __init__(self, *, epsilon: Number, sensitivity: Number = 1.0, granularity: Number | None = None) -> None:
        self._native = _native.Additive("laplace", epsilon=epsilon, sensitivity=sensitivity, granularity=granularity)

    def _loss(self) -> PrivacyLoss:
        return LaplaceLoss(self.epsilon, self._steps())

    def _density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-np.abs(x)) / 2


class DiscreteLaplace(IntegerNoise):
    """The discrete Laplace mechanism for integers, also called the geometric mechanism.

    Adds exact discrete Laplace noise of scale ``sensitivity / epsilon``. The release is epsilon-differentially private
    for neighbouring data sets whose values differ by at most ``sensitivity`` in the L1 norm.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    sensitivity : int, default 1
        The L1 sensitivity of the values: positive and below 2**63, with ``sensitivity / epsilon`` from 2**-40 to 2**40.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".

    Examples
    --------
    >>> from dpnoise import DiscreteLaplace
    >>> counts = DiscreteLaplace(epsilon=1.0).release([120, 5, 0])
    """

    __slots__ = ()

    _parameters = ("epsilon", "sensitivity")

    def __init__(self, *, epsilon: Number, sensitivity: Integer = 1) -> None:
        whole = checked_sensitivity(sensitivity)
        self._native = _native.Additive("discrete_laplace", epsilon=epsilon, sensitivity=whole)

    def _loss(self) -> PrivacyLoss:
        return DiscreteLaplaceLoss(self.epsilon, int(self.sensitivity))
