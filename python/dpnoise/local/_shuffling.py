"""Amplification by shuffling: what reports reveal when nobody knows whose they are."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from typing import Final

from dpnoise._errors import ParameterError
from dpnoise._parameters import integer, real_down, real_up

_DIGITS: Final = 400
"""Enough to tell 1 + x from 1 for every x that occurs (above 1e-340), with 60 digits to spare."""


def shuffle_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """Give the epsilon of all reports together when a shuffler has removed their senders and their order.

    The shuffled reports of n people, each epsilon0-locally differentially private, are (epsilon, delta)-differentially
    private in the central model: whoever sees nothing else learns less about one person than that person's report would
    tell. The shuffler must be trusted to shuffle, and to shuffle the reports of n people who follow the protocol.

    Parameters
    ----------
    epsilon0 : float
        The local guarantee of each report, above 0 and at most 32: the ``epsilon`` of a protocol.
    n : int
        The number of reports that are shuffled, at least ``16 exp(epsilon0) ln(2 / delta)``.
    delta : float
        The probability with which the guarantee may fail, above 0 and at most 1/4. It should be far below 1/n.

    Returns
    -------
    float
        ``ln(1 + (exp(epsilon0) - 1) / (exp(epsilon0) + 1) (8 sqrt(exp(epsilon0) ln(4 / delta) / n) +
        8 exp(epsilon0) / n))``, rounded up, or ``epsilon0`` if that is smaller. Neighbouring data sets differ in
        what one person has.

    Raises
    ------
    ParameterError
        When a parameter is out of range; when n is too small, the message says how many reports would do.
    TypeError
        When a parameter is not a number, or n not an integer.

    Notes
    -----
    It is computed with 400 decimal digits before it is rounded, so it is never below the exact value. The bound is not
    tight: the laws that its proof compares differ by an epsilon that is smaller by a factor of 2 to 5 in common cases.

    References
    ----------
    Feldman, McMillan and Talwar (2021), "Hiding among the clones: a simple and nearly optimal analysis of privacy
    amplification by shuffling", theorem 3.1.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
    >>> round(local.shuffle_epsilon(protocol.epsilon, n=10**6, delta=1e-9), 3)
    0.028
    """
    epsilon0, delta = real_up(epsilon0, "epsilon0"), real_down(delta, "delta")
    if not 0 < epsilon0 <= 32:
        raise ParameterError(f"epsilon0 must be above 0 and at most 32, got {epsilon0!r}")
    if not 0 < delta <= 0.25:
        raise ParameterError(f"delta must be above 0 and at most 0.25, got {delta!r}")
    n = integer(n, "n", range(1, 2**64))
    with localcontext(Context(prec=_DIGITS)):
        growth = Decimal(epsilon0).exp()
        enough = 16 * growth * (2 / Decimal(delta)).ln()
        if n < enough:
            raise ParameterError(_too_few(enough, n, epsilon0, delta))
        share = growth / n
        clones = 8 * (share * (4 / Decimal(delta)).ln()).sqrt() + 8 * share
        bound = (1 + (growth - 1) / (growth + 1) * clones).ln()
    # A float nearest to a number may be below it, the next one is not.
    return min(epsilon0, math.nextafter(float(bound), math.inf))


def _too_few(enough: Decimal, n: int, epsilon0: float, delta: float) -> str:
    needed = enough.to_integral_value(ROUND_CEILING)
    message = (
        f"n must be at least 16 exp(epsilon0) ln(2 / delta) = {needed} for epsilon0 = {epsilon0!r} and "
        f"delta = {delta!r}, got {n}"
    )
    largest = (Decimal(epsilon0) + (n / enough).ln()).quantize(Decimal("0.001"), ROUND_FLOOR)
    return message + (f"; {n} reports allow an epsilon0 of at most {largest}" if largest > 0 else "")
