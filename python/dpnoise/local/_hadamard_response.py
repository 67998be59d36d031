"""Hadamard response: a random entry of the value's row of a Hadamard matrix, randomised."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._values import ValueProtocol


class HadamardResponse(ValueProtocol):
    """Hadamard response: every person draws a column of a Hadamard matrix, and reports it with one randomised bit.

    The variance per person of a rare value's count is about ``((exp(epsilon) + 1) / (exp(epsilon) - 1))**2``: close to
    that of `OptimizedUnaryEncoding` for epsilon up to 1, larger for more. A report has one to four bytes, and
    collecting takes a time in the order of n + k log k: the choice for many values.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**24.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Notes
    -----
    The matrix has the smallest power of two K >= k as its order. The entry of row v in column j is the parity of the
    binary digits that v and j share, 1 for -1. A report is the number ``2 j + entry`` as little-endian bytes.

    References
    ----------
    Bassily and Smith (2015), "Local, private, efficient protocols for succinct histograms". (The protocols of Acharya,
    Sun and Zhang (2019), "Hadamard response", are others: they send an index alone, and gain at a large epsilon.)

    Examples
    --------
    >>> from dpnoise import local
    >>> local.HadamardResponse(k=1024, epsilon=1.0).report_bytes
    2
    """

    __slots__ = ()
    _family = "hadamard_response"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._native = _native.LocalProtocol.hadamard_response(self._sized(k, domain), epsilon)
