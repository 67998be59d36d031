from __future__ import annotations

from typing import Literal

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise.accounting import DiscreteGaussianLoss, PrivacyLoss
from dpnoise.mechanisms._gaussian_privacy import GaussianPrivacy, check_given
from dpnoise.mechanisms._noise import RealNoise

Method = Literal["analytic", "classical"]


class Gaussian(GaussianPrivacy, RealNoise):
    """The Gaussian mechanism for real values, exact and safe in floating point.

    Values are rounded to a grid of multiples of ``granularity`` (half up); exact discrete Gaussian noise is added, and
    the exact sum is rounded once to a double. The release is (epsilon, delta)-differentially private for neighbouring
    data sets whose values differ by at most ``sensitivity`` in the L2 norm, in floating point as on paper; with ``rho``
    it is rho-zero-concentrated differentially private.

    Parameters
    ----------
    epsilon, delta, rho : float, optional
        Give ``epsilon`` and ``delta``, or ``rho``: then ``scale`` is ``sensitivity / sqrt(2 * rho)``, and a ``delta``
        determines the epsilon. A ``rho`` without a ``delta`` has no epsilon, and `cost` raises an error. Epsilon and
        rho are positive and finite, delta is between 0 and 1.
    sensitivity : float, default 1.0
        The L2 sensitivity of the values, in their unit; positive and finite.
    method : {"analytic", "classical"}, default "analytic"
        The formula of the scale for epsilon and delta: the least scale that suffices, or ``sensitivity * sqrt(2 *
        ln(1.25 / delta)) / epsilon``, which is larger and proved only for an epsilon below 1.
    granularity : float, optional
        The step of the grid, a power of two of at least ``2**ceil(log2(2 * scale) - 44)``. By default
        ``2**ceil(log2(2 * scale) - 40)``, or for ``n`` values ``2**floor(log2(sensitivity / (100 + 100 *
        ceil(sqrt(n)))))`` if that is less: it depends on the length of what is released, which is public.

    Attributes
    ----------
    granularity, scale : float
        For a single value; `granularity_for` and `scale_for` give those for several.

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
        epsilon: float | None = None,
        delta: float | None = None,
        sensitivity: float = 1.0,
        rho: float | None = None,
        method: Method = "analytic",
        granularity: float | None = None,
    ) -> None:
        if method not in ("analytic", "classical"):
            raise ParameterError(f'method must be "analytic" or "classical", got {method!r}')
        if rho is not None and method == "classical":
            raise ParameterError('method must be "analytic" when rho is given, got "classical"')
        self._method = method
        check_given(epsilon, delta, rho)
        self._native = _native.Additive(
            "gaussian",
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            sensitivity=sensitivity,
            classical=method == "classical",
            granularity=granularity,
        )

    def _loss(self) -> PrivacyLoss:
        steps = self._steps()
        return DiscreteGaussianLoss(self._native.multiplier * steps, steps, rounded=True)

    @property
    def method(self) -> Method:
        """The formula of the scale for epsilon and delta."""
        return self._method
