"""Longitudinal unary encoding: unary encoding for people who are asked again and again."""

from __future__ import annotations

from typing import Literal

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._longitudinal import TwoRoundProtocol
from dpnoise.local._unary_reports import UnaryReports


class LongitudinalUnaryEncoding(UnaryReports, TwoRoundProtocol):
    """Longitudinal unary encoding: k bits, flipped once for ever, and once more for each report.

    The permanent round is that of `OptimizedUnaryEncoding` (L-OSUE) or of `SymmetricUnaryEncoding` (L-SUE, also known
    as basic RAPPOR) for ``epsilon_permanent``; the instantaneous one is symmetric, and such that a single report
    achieves ``epsilon_first``.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**24.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon_permanent : float
        The privacy parameter of all reports on one value together, however many there are; at most 32.
    epsilon_first : float
        The privacy parameter of a single report, at least 2**-20 and below ``epsilon_permanent``.
    permanent : {"optimized", "symmetric"}
        The permanent round.

    Raises
    ------
    ParameterError
        When a parameter is out of range, or both epsilons together ask for more than 62 binary digits.

    Notes
    -----
    Reports on m different values tell up to m times ``epsilon`` about them, and they may show *when* the value changed.
    Where values change often, `LOLOHA` bounds the former by g times ``epsilon``.

    A collection is of one report from each person; the standard errors of an estimate do not hold when a person is in
    it twice.

    References
    ----------
    Arcolezi, Couchot, Al Bouna and Xiao (2022), "Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates"; Erlingsson, Pihur and Korolova (2014), "RAPPOR: randomized
    aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LongitudinalUnaryEncoding(k=15, epsilon_permanent=2.0, epsilon_first=1.0)
    >>> memo = local.ClientMemo.generate(3)
    >>> monday = protocol.perturb([3, 14, 3], memo, question="colour")
    >>> tuesday = protocol.perturb([3, 14, 4], memo, question="colour")
    >>> tuesday.shape
    (3, 2)
    """

    __slots__ = ()
    _family = "longitudinal_unary_encoding"
    _parameters = ("k", "requested_epsilon_permanent", "requested_epsilon_first", "permanent")

    def __init__(
        self,
        *,
        k: int | None = None,
        domain: Labels | None = None,
        epsilon_permanent: float,
        epsilon_first: float,
        permanent: Literal["optimized", "symmetric"] = "optimized",
    ) -> None:
        self._native = _native.LocalProtocol.longitudinal_unary_encoding(
            self._sized(k, domain), epsilon_permanent, epsilon_first, permanent
        )

    @property
    def permanent(self) -> str:
        """The permanent round, "optimized" or "symmetric"."""
        fields = self._specified()
        return "optimized" if 2 * fields["permanent_p"] == 2 ** fields["permanent_planes"] else "symmetric"
