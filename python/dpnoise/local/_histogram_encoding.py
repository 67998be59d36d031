"""Histogram encoding: one of k values as a row of k noisy numbers, told as they are or by a threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._domain import Labels
from dpnoise._errors import ParameterError
from dpnoise.local._unary_encoding import UnaryRows
from dpnoise.local._values import ValueProtocol


class ThresholdHistogramEncoding(UnaryRows):
    """Thresholding with histogram encoding: which bits of a one-hot row exceed a threshold after Laplace noise.

    ``p = 1 - exp(-epsilon (1 - theta) / 2) / 2`` and ``q = exp(-epsilon theta / 2) / 2``, with the threshold ``theta``
    between 1/2 and 1 that makes the variance of a rare value's count the smallest. Reports are drawn as bits with these
    probabilities. `OptimizedUnaryEncoding` has a smaller variance for every epsilon; this one is for comparison.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**24.
    domain : sequence of str, int or bool
        The labels of the values, instead of k; they must be public, and not be looked up in the data.
    epsilon : float
        The privacy parameter of the noise, from 2**-20 to 32. A report is epsilon-locally differentially private for a
        smaller one: thresholding hides more than the noise alone, and the attribute ``epsilon`` says what is left.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.2.
    """

    __slots__ = ()
    _family = "threshold_histogram_encoding"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._native = _native.LocalProtocol.threshold_histogram_encoding(self._sized(k, domain), epsilon)

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee, exact and rounded up; below the requested one, by up to half of it."""
        return self._native.epsilon


class SummationHistogramEncoding(ValueProtocol):
    """Summation with histogram encoding: a one-hot row with Laplace noise of scale 2 / epsilon on each bit.

    Nothing is flipped, so there are no probabilities ``p`` and ``q``. The variance per person of a count is
    ``8 / epsilon**2``, whatever the frequency. Noise is exact, on a grid that is finer than its scale by 2**15 or more.
    A report takes 4 bytes for each value.

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
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.2.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SummationHistogramEncoding(k=4, epsilon=2.0)
    >>> protocol.report_bytes, round(protocol.variance(1), 3)
    (16, 2.0)
    """

    __slots__ = ()
    _family = "summation_histogram_encoding"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._native = _native.LocalProtocol.summation_histogram_encoding(self._sized(k, domain), epsilon)

    def _draw_counters(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        specification, n = self._specified(), int(counts.sum())
        unit, bound = specification["unit"], specification["bound"]
        most = (2**63 - 1) // (2 * bound)
        if n > most:
            raise ParameterError(f"true_counts must sum to at most {most}, so that sums fit into counters, got {n}")
        # The noise is the difference of two geometric variables, and a sum of n of these is negative binomial.
        stopped = -np.expm1(-self.epsilon / (2 * unit))
        noise = np.zeros(self.k, np.int64)
        if n > 0:
            noise += generator.negative_binomial(n, stopped, self.k) - generator.negative_binomial(n, stopped, self.k)
        drawn: NDArray[np.int64] = np.clip(unit * counts + noise + n * bound, 0, 2 * bound * n)
        return drawn
