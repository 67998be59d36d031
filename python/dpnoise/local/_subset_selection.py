"""Subset selection: a random set of values, which has the sender's more often than by chance."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._values import ValueProtocol


class SubsetSelection(ValueProtocol):
    """Subset selection: a random set of ``omega`` values, which has the sender's more often than by chance.

    With the default ``omega`` the squared error of all counts together is nearly the smallest possible, a little below
    that of the other protocols; for one member it is `GeneralizedRandomizedResponse`. A client's time is in the order
    of k.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**16.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.
    omega : int, optional
        The number of members, from 1 to k - 1; when not given ``k / (exp(epsilon) + 1)``, rounded, but at least 1.

    Raises
    ------
    ParameterError
        When a parameter is out of range, or k and epsilon together ask for more than 62 binary digits.

    Notes
    -----
    The set has the sender's value with probability
    ``p = omega exp(epsilon) / (omega exp(epsilon) + k - omega)``, and is uniform among those that have it, or that
    have it not. A report has k bits, packed least significant first, of which ``omega`` are set.

    References
    ----------
    Ye and Barg (2018), "Optimal schemes for discrete distribution estimation under locally differential privacy"; Wang,
    Huang, Wang et al. (2016), "Mutual information optimally local private discrete distribution estimation".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SubsetSelection(k=15, epsilon=1.0)
    >>> protocol.omega, protocol.report_bytes
    (4, 2)
    """

    __slots__ = ()
    _family = "subset_selection"
    _parameters = ("k", "requested_epsilon", "omega")

    def __init__(
        self, *, k: int | None = None, domain: Labels | None = None, epsilon: float, omega: int | None = None
    ) -> None:
        self._native = _native.LocalProtocol.subset_selection(self._sized(k, domain), epsilon, omega)

    @property
    def omega(self) -> int:
        """The number of members of a set."""
        return int(self._specified()["omega"])
