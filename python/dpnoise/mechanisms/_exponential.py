from __future__ import annotations

from dpnoise import _native
from dpnoise.accounting import BoundedRangeLoss, PrivacyLoss
from dpnoise.mechanisms._selection import OneOfMany


class Exponential(OneOfMany):
    r"""The exponential mechanism: a candidate with probability proportional to ``exp(score / scale)``, exactly.

    Scores are rounded to a grid first, and the sensitivity to whole steps of it; from there on no probability is
    approximated. The release is epsilon-differentially private for neighbouring data sets between which each score
    changes by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : as everywhere
    sensitivity : float, default 1.0
        The most that a score changes between neighbours, in the scores' unit; positive and finite.
    monotonic : bool, default False
        Whether between neighbours all scores rise or all fall, as counts do when a person is added or removed. The
        scale is ``sensitivity / epsilon`` then, and ``2 * sensitivity / epsilon`` otherwise.

    Notes
    -----
    The granularity of the grid is a power of two near ``scale / 2**40``: rounding changes no probability by more than a
    factor ``1 + 2**-39``. Time and memory accesses depend on neither scores nor choice.

    The mechanism has bounded range. So its cost under zero-concentrated differential privacy, ``rho``, is smaller than
    the cost of other epsilon-differentially private mechanisms.

    References
    ----------
    McSherry and Talwar (2007), "Mechanism design via differential privacy"; Cesar and Rogers (2021), "Bounding,
    concentrating, and truncating: unifying privacy loss composition for data analytics", for the monotonic case and
    ``rho``.

    Examples
    --------
    >>> from dpnoise import Exponential
    >>> votes = [120, 80, 119]
    >>> winner = Exponential(epsilon=1.0, monotonic=True).release(votes)
    """

    __slots__ = ()

    def __init__(self, *, epsilon: float, sensitivity: float = 1.0, monotonic: bool = False) -> None:
        self._native = _native.Selection.exponential(epsilon, sensitivity, monotonic)

    @property
    def rho(self) -> float:
        """The cost under zero-concentrated differential privacy, ``epsilon**2 / 8``."""
        return self.epsilon**2 / 8

    def _loss(self) -> PrivacyLoss:
        return BoundedRangeLoss(self.epsilon)
