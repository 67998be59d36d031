from __future__ import annotations

from dpnoise import _native
from dpnoise.accounting import DiscreteLaplaceLoss, PrivacyLoss
from dpnoise.mechanisms._noise import IntegerNoise, checked_sensitivity


class DiscreteLaplace(IntegerNoise):
    """The discrete Laplace mechanism for integers, also called the geometric mechanism.

    Adds exact discrete Laplace noise of scale ``sensitivity / epsilon``. The release is epsilon-differentially private
    for neighbouring data sets whose values differ by at most ``sensitivity`` in the L1 norm.

    Parameters
    ----------
    epsilon : as everywhere
    sensitivity : int, default 1
        The L1 sensitivity of the values; positive, with ``sensitivity / epsilon`` from 2**-40 to 2**40.

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

    def __init__(self, *, epsilon: float, sensitivity: int = 1) -> None:
        whole = checked_sensitivity(sensitivity)
        self._native = _native.Additive("discrete_laplace", epsilon=epsilon, sensitivity=whole)

    def _loss(self) -> PrivacyLoss:
        return DiscreteLaplaceLoss(self.epsilon, int(self.sensitivity))
