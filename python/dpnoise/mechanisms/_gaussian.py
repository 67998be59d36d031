"""The mechanisms that add Gaussian noise."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._numbers import check_word, integer
from dpnoise._types import Integer, Number
from dpnoise.accounting import DiscreteGaussianLoss, PrivacyLoss, ZcdpCost
from dpnoise.mechanisms._mechanism import COUNTS, Mechanism
from dpnoise.mechanisms._noise import IntegerNoise, RealNoise, native


class GaussianPrivacy(Mechanism):
    """A mechanism for an epsilon and a delta, or for a rho."""

    __slots__ = ()

    _native: _native.Additive

    @property
    def epsilon(self) -> float | None:  # type: ignore[override]
        """The privacy parameter epsilon; None for a ``rho`` without a ``delta``."""
        return self._native.epsilon

    @property
    def delta(self) -> float | None:  # type: ignore[override]
        """The privacy parameter delta; None for a ``rho`` without a ``delta``."""
        return self._native.delta

    @property
    def rho(self) -> float | None:
        """The parameter of zero-concentrated differential privacy, when that was given."""
        return self._native.rho

    def delta_for(self, epsilon: Number, count: Integer = 1) -> float:
        """Return a delta for which a release is (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float
            The privacy parameter: zero or more, and finite.
        count : int, default 1
            The number of values that are released at once, from 1 to 2**60 - 1.

        Returns
        -------
        float
            From 0 to 1, never too small. For one integer, or one value on the default grid, at most 1e-12 too large,
            relatively, where it is not below the smallest normal double; the notes of the class say how close it is
            otherwise.
        """
        return self._native.delta_for(epsilon, integer(count, "count", COUNTS))

    def epsilon_for(self, delta: Number, count: Integer = 1) -> float:
        """Return the least epsilon whose `delta_for` is at most ``delta``, at most 1e-12 too large, relatively.

        Parameters
        ----------
        delta : float
            The privacy parameter: above 0 and at most 1.
        count : int, default 1
            The number of values that are released at once, from 1 to 2**60 - 1.
        """
        return self._native.epsilon_for(delta, integer(count, "count", COUNTS))

    def _zcdp(self) -> ZcdpCost | None:
        rho = self._native.rho
        return None if rho is None else ZcdpCost(rho)

    def _values(self) -> dict[str, Any]:
        # Epsilon follows from rho and delta.
        derived = () if self.rho is None else ("epsilon", "method")
        return {name: value for name, value in super()._values().items() if name not in derived}


def check_given(epsilon: Number | None, delta: Number | None, rho: Number | None) -> None:
    """Refuse what is neither an epsilon with a delta nor a rho."""
    if epsilon is None and rho is None:
        raise ParameterError("epsilon must be given, with delta, or else rho: got neither")
    if epsilon is not None and rho is not None:
        raise ParameterError(f"rho must be None when epsilon is given, got {rho!r} and epsilon={epsilon!r}")
    if delta is None and rho is None:
        raise ParameterError("delta must be given with epsilon, got None")


Method = Literal["analytic", "classical"]


class Gaussian(GaussianPrivacy, RealNoise):
    """The Gaussian mechanism for real values, exact and safe in floating point.

    Values are rounded to a grid of multiples of ``granularity`` (half up); exact discrete Gaussian noise is added, and
    the exact sum is rounded once to a double. The release is (epsilon, delta)-differentially private for neighbouring
    data sets whose values differ by at most ``sensitivity`` in the L2 norm, in floating point as on paper; with ``rho``
    it is rho-zero-concentrated differentially private.

    Parameters
    ----------
    epsilon : float, optional
        The privacy parameter: positive and finite. Give `epsilon` and `delta`, or `rho`.
    delta : float, optional
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people. With `rho` it determines the epsilon; a `rho` without a `delta` has no epsilon, and `cost` raises an
        error.
    sensitivity : float, default 1.0
        The L2 sensitivity of the values, in their unit: positive and finite.
    rho : float, optional
        The parameter of zero-concentrated differential privacy: positive and finite. With it the scale is ``sensitivity
        / sqrt(2 * rho)``.
    method : {"analytic", "classical"}, default "analytic"
        The formula of the scale for epsilon and delta: the least scale that suffices, or ``sensitivity * sqrt(2 *
        ln(1.25 / delta)) / epsilon``, which is larger and proved only for an epsilon of at most ``2 * ln(2.5)``, about
        1.83. With `rho` it must be ``"analytic"``.
    granularity : float, optional
        The step of the grid, in the values' unit: a power of two from 2**-1019 to 2**900 and of at least
        ``2**ceil(log2(2 * scale) - 44)``. By default ``2**ceil(log2(2 * scale) - 40)``, or for ``n`` values
        ``2**floor(log2(sensitivity / (100 + 100 * ceil(sqrt(n)))))`` if that is less: it depends on the length of what
        is released, which is public.

    Attributes
    ----------
    granularity : float
        The step of the grid for a single value, in the values' unit; `granularity_for` gives that for several.
    scale : float
        The scale of the noise of a single value, in the values' unit; `scale_for` gives that for several.

    Notes
    -----
    ``scale`` is never below the least sigma of Balle and Wang and, on the default grid if that divides the sensitivity,
    at most 1e-12 above it, relatively; it is computed with proved error bounds. Otherwise the sensitivity is rounded up
    to the grid: an array of ``n`` values is released with a sensitivity of ``ceil(sensitivity / g) + ceil(sqrt(n))``
    steps of its grid's ``g``, since rounding changes each value by up to half a step. On the default grid that widens
    the noise by at most 1 % if ``scale * sqrt(n) <= 2e10 * sensitivity``. On a grid so coarse that sigma is few steps
    the noise is larger, too, because discrete noise is slightly less private than continuous noise.

    References
    ----------
    Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy", Theorem 8; Dwork and Roth
    (2014), "The algorithmic foundations of differential privacy", Theorem A.1, for the classical scale; Bun and
    Steinke (2016), "Concentrated differential privacy", Proposition 1.6; Canonne, Kamath and Steinke (2020), "The
    discrete Gaussian for differential privacy".

    Examples
    --------
    >>> from dpnoise import Gaussian
    >>> mechanism = Gaussian(epsilon=0.5, delta=1e-6, sensitivity=1.0)
    >>> released = mechanism.release([37.2, 12.0])
    >>> low, high = mechanism.confidence_interval(released)
    >>> Gaussian(rho=0.125, delta=1e-6).cost.delta
    1e-06
    """

    __slots__ = ("_method",)

    _parameters = ("epsilon", "delta", "sensitivity", "rho", "method", "granularity")

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        sensitivity: Number = 1.0,
        rho: Number | None = None,
        method: Method = "analytic",
        granularity: Number | None = None,
    ) -> None:
        check_word(method, "method", "analytic", "classical")
        if rho is not None and method == "classical":
            raise ParameterError('method must be "analytic" when rho is given, got "classical"')
        self._method = method
        check_given(epsilon, delta, rho)
        self._native = native(
            "gaussian",
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            sensitivity=sensitivity,
            method=method,
            granularity=granularity,
        )

    def _loss(self) -> PrivacyLoss:
        steps = self._steps()
        return DiscreteGaussianLoss(self._native.multiplier * steps, steps, rounded=True)

    def _density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    @property
    def method(self) -> Method:
        """The formula of the scale for epsilon and delta."""
        return self._method


class DiscreteGaussian(GaussianPrivacy, IntegerNoise):
    """The discrete Gaussian mechanism for integers.

    Adds noise n with probability proportional to exp(-n^2 / (2 scale^2)), exactly. The release is (epsilon,
    delta)-differentially private for neighbouring data sets whose values differ by at most ``sensitivity`` in the L2
    norm; with ``rho`` it is rho-zero-concentrated differentially private.

    The scale is from 2**-20 to 2**40: other parameters are refused.

    Parameters
    ----------
    epsilon : float, optional
        The privacy parameter: positive and finite. Give `epsilon` and `delta`, or `rho`.
    delta : float, optional
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people. With `rho` it determines the epsilon; a `rho` without a `delta` has no epsilon, and `cost` raises an
        error.
    sensitivity : float, default 1
        The L2 sensitivity of the values, from 1 to 2**40; for k counts that change by 1 each it is ``sqrt(k)``. It is
        never rounded down to an integer, not even for a single value.
    rho : float, optional
        The parameter of zero-concentrated differential privacy: positive and finite. With it the scale is ``sensitivity
        / sqrt(2 * rho)``.

    Notes
    -----
    Delta is computed for the discrete distribution (Canonne, Kamath and Steinke, Theorem 7), not for the continuous
    one, and with proved error bounds: ``scale`` suffices for it, and is at most 1e-12 above the least sufficient one,
    relatively. That holds for one value when ``sensitivity`` is an integer, and for any number of values when it is 1.
    Otherwise the noise is slightly larger, since the theorem covers only a single number that changes by an integer:
    the scale comes from a proved bound that is tight when the scale is large.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> from dpnoise import DiscreteGaussian
    >>> counts = DiscreteGaussian(epsilon=1.0, delta=1e-6).release([120, 5, 0])
    >>> DiscreteGaussian(rho=0.5).scale
    1.0
    """

    __slots__ = ()

    _parameters = ("epsilon", "delta", "sensitivity", "rho")

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        sensitivity: Number = 1,
        rho: Number | None = None,
    ) -> None:
        check_given(epsilon, delta, rho)
        self._native = native("discrete_gaussian", epsilon=epsilon, delta=delta, rho=rho, sensitivity=sensitivity)

    def _loss(self) -> PrivacyLoss:
        return DiscreteGaussianLoss(self.scale, self.sensitivity)
