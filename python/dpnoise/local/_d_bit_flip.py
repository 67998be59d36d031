"""dBitFlipPM: a sample of the bits of a value's row, randomised once and for ever."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._longitudinal import LongitudinalProtocol


class DBitFlip(LongitudinalProtocol):
    """dBitFlipPM: every person samples d of the k values once, and reports whether theirs is one of them, flipped once.

    A person's report on a value is always the same. There are d + 1 different ones, one for each sampled value and one
    for all others together: values that are not sampled may change among each other, and the report does not. It is
    for counters whose values are cut into k buckets.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**16.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon : float
        The privacy parameter of all reports on one value together, from 2**-20 to 32.
    d : int
        The number of sampled values, from 1 to k. The variance falls with d; so does the part of changes that do not
        show.

    Raises
    ------
    ParameterError
        When a parameter is out of range, or k and epsilon together ask for more than 62 binary digits.

    Notes
    -----
    A sampled bit is reported as 1 with probability ``s / (s + 1)`` if it is 1, and ``1 / (s + 1)`` if it is 0, with
    ``s = exp(epsilon / 2)``; for d = 1, where two values differ in one bit at most, with ``s = exp(epsilon)``. A report
    has k bits, packed least significant first; those that are not sampled are 0.

    Nothing is flipped again for a report, so a change of the report shows that the value changed. Reports on m values
    that show themselves tell up to m times ``epsilon`` about them, at most d + 1 times.

    A collection is of one report from each person; the standard errors of an estimate do not hold when a person is in
    it twice, and over several collections the errors stay the same.

    References
    ----------
    Ding, Kulkarni and Yekhanin (2017), "Collecting telemetry data privately".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.DBitFlip(k=32, epsilon=1.0, d=4)
    >>> memo = local.ClientMemo.generate()
    >>> bool((protocol.perturb([7], memo, question="colour") == protocol.perturb([7], memo, question="colour")).all())
    True
    """

    __slots__ = ()
    _family = "d_bit_flip"
    _parameters = ("k", "requested_epsilon", "d")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float, d: int) -> None:
        self._native = _native.LocalProtocol.d_bit_flip(self._sized(k, domain), d, epsilon)

    @property
    def d(self) -> int:
        """The number of sampled values."""
        return int(self._specified()["d"])
