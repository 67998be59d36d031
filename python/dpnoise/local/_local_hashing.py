"""Local hashing: a random hash of the value, randomised."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._values import ValueProtocol


class LocalHashing(ValueProtocol):
    """Local hashing: every person draws a hash function, and reports it with the randomised hash of their value.

    With the default ``g`` this is optimised local hashing (OLH): the variance per person of a rare value's count is
    about ``4 exp(epsilon) / (exp(epsilon) - 1)**2``, as for `OptimizedUnaryEncoding`, but a report has a few bytes
    instead of k bits. Collecting takes a time in the order of n k.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**24.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.
    g : int, optional
        The number of hashes, from 2 to 2**16; when not given ``exp(epsilon) + 1``, rounded, but at most k.

    Raises
    ------
    ParameterError
        When a parameter is out of range, or ``k**2 g`` is not below 2**62, or g and epsilon together ask for more than
        62 binary digits.

    Notes
    -----
    The hash of v is ``floor(g x / P)`` with ``x = (a v + b) mod P``, where P is the smallest prime that is at least k
    and g; a and b are uniform from 0 to P - 1. So the probability that two values have the same hash is known exactly,
    and estimates are unbiased. A report is the number ``(a P + b) g + hash`` as little-endian bytes.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation";
    Carter and Wegman (1979), "Universal classes of hash functions".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LocalHashing(k=1024, epsilon=1.0)
    >>> protocol.g, protocol.report_bytes
    (4, 3)
    """

    __slots__ = ()
    _family = "local_hashing"
    _parameters = ("k", "requested_epsilon", "g")

    def __init__(
        self, *, k: int | None = None, domain: Labels | None = None, epsilon: float, g: int | None = None
    ) -> None:
        self._native = _native.LocalProtocol.local_hashing(self._sized(k, domain), epsilon, g)

    @property
    def g(self) -> int:
        """The number of hashes."""
        return int(self._specified()["g"])
