"""Generalised randomised response: one of k values as itself, randomised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise.local._values import ValueProtocol


class GeneralizedRandomizedResponse(ValueProtocol):
    """Generalised randomised response, also known as direct encoding: the value itself or, by chance, another one.

    A report is the true value with probability ``p = exp(epsilon) / (exp(epsilon) + k - 1)``, and each other one with
    probability ``q = 1 / (exp(epsilon) + k - 1)``. The variance per person of a rare value's count is
    ``(k - 2 + exp(epsilon)) / (exp(epsilon) - 1)**2``: smaller than that of `OptimizedUnaryEncoding` for fewer
    than ``3 exp(epsilon) + 2`` values, and larger for more.

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
        When a parameter is out of range, or both together ask for more than 62 binary digits: many values and a small
        epsilon, for which unary encoding is more accurate anyway.

    References
    ----------
    Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy"; Wang, Blocki, Li and Jha
    (2017), "Locally differentially private protocols for frequency estimation", section 4.1.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.GeneralizedRandomizedResponse(k=1000, epsilon=5.0)
    >>> protocol.report_bytes
    2
    """

    __slots__ = ()
    _family = "generalized_randomized_response"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._native = _native.LocalProtocol.generalized_randomized_response(self._sized(k, domain), epsilon)

    def _draw_counters(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        # Each report is for one value: those that keep theirs, and the others, which are spread over all k.
        kept = generator.binomial(counts, self.p - self.q)
        return kept + generator.multinomial(int(counts.sum() - kept.sum()), np.full(self.k, 1.0 / self.k))
