"""LOLOHA: local hashing for people who are asked again and again."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._longitudinal import TwoRoundProtocol


class LOLOHA(TwoRoundProtocol):
    """LOLOHA: one hash function for ever, whose hashes are randomised once for ever, and once more for each report.

    There are only ``g`` permanent answers, however many values there are: for values that change often, as a smaller g
    keeps ``epsilon_longitudinal`` small.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**24.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon_permanent : float
        The privacy parameter of all reports on one hash together, and so on one value, however many there are; at most
        32.
    epsilon_first : float
        The privacy parameter of a single report, at least 2**-20 and below ``epsilon_permanent``.
    g : int, optional
        The number of hashes, from 2 (BiLOLOHA) to 2**8; when not given ``exp(epsilon_first) + 1``, rounded, but at most
        k: the most accurate one.

    Raises
    ------
    ParameterError
        When a parameter is out of range, or the epsilons and g together ask for more than 62 binary digits.

    Notes
    -----
    The hash functions, and the reports, are those of `LocalHashing`. The paper solves the instantaneous round for a
    single report exactly for g = 2 alone, and spends less than ``epsilon_first`` for a larger g. Here it is exact for
    every g, so that estimates are as accurate as those of `LocalHashing` with ``epsilon_first``.

    A collection is of one report from each person; the standard errors of an estimate do not hold when a person is in
    it twice. Nor are they those of people who drew their hash functions anew: over several collections the errors of
    the hash functions stay the same.

    References
    ----------
    Arcolezi, Pinzón, Palamidessi and Gambs (2023), "Frequency estimation of evolving data under local differential
    privacy".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LOLOHA(k=1024, epsilon_permanent=2.0, epsilon_first=1.0)
    >>> protocol.g, protocol.report_bytes
    (4, 3)
    >>> memo = local.ClientMemo.generate(2)
    >>> protocol.perturb([1000, 5], memo, question="colour").shape
    (2, 3)
    """

    __slots__ = ()
    _family = "loloha"
    _parameters = ("k", "requested_epsilon_permanent", "requested_epsilon_first", "g")

    def __init__(
        self,
        *,
        k: int | None = None,
        domain: Labels | None = None,
        epsilon_permanent: float,
        epsilon_first: float,
        g: int | None = None,
    ) -> None:
        self._native = _native.LocalProtocol.loloha(self._sized(k, domain), epsilon_permanent, epsilon_first, g)

    @property
    def g(self) -> int:
        """The number of hashes."""
        return int(self._specified()["g"])

    @property
    def epsilon_longitudinal(self) -> float:
        """The most that reports ever tell about all hashes of a person, given when they changed: g times epsilon."""
        return self.g * self.epsilon
