"""Unary encodings: one of k values as a row of k randomised bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import output
from dpnoise._domain import Labels
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise.local import _inputs
from dpnoise.local._protocol import Rng
from dpnoise.local._unary_reports import UnaryReports
from dpnoise.local._values import ValueProtocol


class UnaryRows(UnaryReports, ValueProtocol):
    """Unary encoding with probabilities of any kind."""

    __slots__ = ()

    def encode(self, values: Values) -> NDArray[np.uint8]:
        """Encode values as one-hot rows, which are not private yet.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            Any integer dtype, or a list of ints; where there is a domain, labels instead.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            Bit ``v`` of row ``i`` (least significant bit of a byte first) is set for value ``v`` of person ``i``, and
            no other.

        Raises
        ------
        ParameterError
            When a value is outside of [0, k), or is no label; it is not said which.
        TypeError
            When the values are not integers, or not of the kind of the labels.
        """
        vector = _inputs.codes(values, self._domain)
        bits = np.empty((len(vector), self.report_bytes), np.uint8)
        self._native.encode(vector, bits)
        return bits

    def perturb_encoded(
        self,
        bits: NDArray[np.uint8],
        *,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise one-hot rows that `encode` made.

        Every row must have exactly one of the first k bits set: a row with more would reveal more than ``epsilon``, so
        it is refused.

        Parameters
        ----------
        bits : ndarray of uint8, shape (n, report_bytes)
            One-hot rows.
        out, threads, rng
            As for `perturb`.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)

        Raises
        ------
        ParameterError
            When a row is not one-hot (it is not said which), or a shape does not fit; nothing has been drawn then.
        TypeError
            When ``bits`` or ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` is zero then.
        """
        # A copy, so that no other code can change a row between check and use.
        rows = _inputs.matrix(bits, self.report_bytes, "bits").copy()
        reports = output(rows.shape, out, np.uint8)
        self._native.perturb_encoded(rows, reports, threads, rng)
        return reports


class SymmetricUnaryEncoding(UnaryRows):
    """Symmetric unary encoding, also known as basic RAPPOR: k bits, each flipped with the same probability.

    ``p = s / (s + 1)`` and ``q = 1 - p`` with ``s = exp(epsilon / 2)``. The variance per person of a rare value's count
    is ``s / (s - 1)**2``.

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

    References
    ----------
    Erlingsson, Pihur and Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response"; Wang,
    Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.3.
    """

    __slots__ = ()
    _family = "symmetric_unary_encoding"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._native = _native.LocalProtocol.symmetric_unary_encoding(self._sized(k, domain), epsilon)


class OptimizedUnaryEncoding(UnaryRows):
    """Optimised unary encoding: the smallest variance of a rare value's count that unary encoding can have.

    ``p = 1/2`` and ``q = 1 / (exp(epsilon) + 1)``. The variance per person of a rare value's count is
    ``4 exp(epsilon) / (exp(epsilon) - 1)**2``.

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

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.3.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
    >>> protocol.p, protocol.report_bytes
    (0.5, 2)
    >>> poll = local.OptimizedUnaryEncoding(domain=["yes", "no", "unsure"], epsilon=1.0)
    >>> poll.estimate(poll.perturb(["yes", "no", "yes", "yes"])).domain
    ('yes', 'no', 'unsure')
    """

    __slots__ = ()
    _family = "optimized_unary_encoding"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._native = _native.LocalProtocol.optimized_unary_encoding(self._sized(k, domain), epsilon)


class UnaryEncoding(UnaryRows):
    """Unary encoding with given probabilities.

    A report is epsilon-locally differentially private with ``epsilon = ln(p (1 - q) / ((1 - p) q))``. Probabilities
    with few binary digits, such as 0.75 and 0.25, are used as they are; others are rounded in the private direction, p
    down and q up, to as many binary digits as keep 0.999 of the epsilon that they ask for.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**24.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    p, q : float
        The probability that a bit that is 1, or 0, is reported as 1, with 0 < q < p < 1. The epsilon that they ask for
        must be from 2**-20 to 32.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.3.
    """

    __slots__ = ()
    _family = "unary_encoding"
    _parameters = ("k", "p", "q")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, p: float, q: float) -> None:
        self._native = _native.LocalProtocol.unary_encoding(self._sized(k, domain), p, q)

    def __repr__(self) -> str:
        """Show a call that makes this encoding; one with p and q only if they were not rounded."""
        try:
            unrounded = UnaryEncoding(k=self.k, p=self.p, q=self.q).to_json() == self.to_json()
        except ParameterError:
            unrounded = False
        if unrounded:
            return super().__repr__()
        labels = "" if self._domain is None else f", domain={self._domain!r}"
        return f"UnaryEncoding.from_json({self.to_json()!r}{labels})"
