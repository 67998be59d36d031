from __future__ import annotations

from dpnoise import _native
from dpnoise.accounting import DiscreteGaussianLoss, PrivacyLoss
from dpnoise.mechanisms._gaussian_privacy import GaussianPrivacy, check_given
from dpnoise.mechanisms._noise import IntegerNoise


class DiscreteGaussian(GaussianPrivacy, IntegerNoise):
    """The discrete Gaussian mechanism for integers.

    Adds noise n with probability proportional to exp(-n^2 / (2 scale^2)), exactly. The release is (epsilon,
    delta)-differentially private for neighbouring data sets whose values differ by at most ``sensitivity`` in the L2
    norm; with ``rho`` it is rho-zero-concentrated differentially private.

    The scale is from 2**-20 to 2**40: other parameters are refused.

    Parameters
    ----------
    epsilon, delta, rho : as for `Gaussian`
    sensitivity : float, default 1
        The L2 sensitivity of the values, from 1 to 2**40; for k counts that change by 1 each it is ``sqrt(k)``. It is
        never rounded down to an integer, not even for a single value.

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
        epsilon: float | None = None,
        delta: float | None = None,
        sensitivity: float = 1,
        rho: float | None = None,
    ) -> None:
        check_given(epsilon, delta, rho)
        self._native = _native.Additive(
            "discrete_gaussian", epsilon=epsilon, delta=delta, rho=rho, sensitivity=sensitivity
        )

    def _loss(self) -> PrivacyLoss:
        return DiscreteGaussianLoss(self.scale, self.sensitivity)
