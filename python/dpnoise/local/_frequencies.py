"""What the protocols have in common that count how many people have each value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._domain import Domain, Labels
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise.local import _inputs
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._estimate import Estimate
from dpnoise.local._post_processing import Post
from dpnoise.local._protocol import Protocol


class FrequencyProtocol(Protocol):
    """A protocol whose reports each count for some of k values: the sender's with probability p, others with q.

    The values are numbers from 0 to k - 1, or the labels of ``domain``. Labels stand beside the specification: they
    change neither its JSON nor its id nor any report.
    """

    __slots__ = ()
    _counts_values = True

    @property
    def k(self) -> int:
        """The number of values that an answer may have."""
        return self._native.k

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """The labels of the values in their order, all str, all int or all bool; None for numbers from 0 to k - 1."""
        return self._domain

    @property
    def p(self) -> float:
        """The probability that a report counts for the true value: that a bit that is 1 is reported as 1."""
        return self._native.p

    @property
    def q(self) -> float:
        """The probability that a report counts for another given value: that a bit that is 0 is reported as 1."""
        return self._native.q

    def _sized(self, k: int | None, domain: Labels | None) -> int:
        """Keep the labels, if there are any, and give the number of values."""
        if domain is None:
            if k is None:
                raise TypeError("k must be an int, got None: give either k or domain")
            return k
        if k is not None:
            raise ParameterError("either k or domain must be given, got both")
        self._domain = Domain(domain)
        return len(self._domain)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Predict the variance of an estimated count.

        Parameters
        ----------
        n : int
            The number of reports.
        frequency : float
            The true frequency of the value, from 0 to 1.

        Returns
        -------
        float
            ``n (q (1 - q) / (p - q)**2 + frequency (1 - p - q) / (p - q))`` (Wang et al. 2017, equation 2), in squared
            people.

        Raises
        ------
        ParameterError
            When a parameter is out of range.
        """
        return self._native.variance(n, frequency)

    def estimate(
        self,
        collected: Accumulator | Values,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        post: Post | None = None,
        threads: int | None = None,
    ) -> Estimate:
        """Estimate how many people have each value.

        Parameters
        ----------
        collected : Accumulator, or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them.
        level, simultaneous, post
            As for `Accumulator.estimate`.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        Estimate

        Raises
        ------
        ParameterError
            When reports have another shape, an accumulator is of another protocol, ``level`` is not between 0 and 1, or
            ``post`` is not known.
        TypeError
            When the dtype is another.
        """
        return self._collected(collected, threads).estimate(level=level, simultaneous=simultaneous, post=post)

    def simulate(self, true_counts: Values) -> Estimate:
        """Draw the estimate that a collection would give, without making a report.

        Parameters
        ----------
        true_counts : array of non-negative integers, shape (k,)
            How many people have each value; for `RandomizedResponse` how many would say no, and yes.

        Returns
        -------
        Estimate
            With the distribution that it has when all these people report. It takes a time in the order of k, whatever
            the counts.

        Raises
        ------
        ParameterError
            When the shape is another, or a count is negative or too large.
        TypeError
            When the counts are not integers.

        Notes
        -----
        This is for planning. Counters are sums of binomial and multinomial variables, which are NumPy's, on secure
        bits: exact up to the accuracy of its floating-point arithmetic. For `LocalHashing`, `HadamardResponse` and
        `SubsetSelection` each count has its distribution, but different counts are drawn independently, which those of
        a collection are not quite.
        """
        from dpnoise.bit_generator import SecureBitGenerator  # which imports numpy.random

        counts = _inputs.counts(true_counts, self.k)
        counters = self._draw_counters(counts, np.random.Generator(SecureBitGenerator())).astype(np.uint64)
        state = _native.LocalAccumulator.from_counters(self._native, int(counts.sum()), counters)
        return Accumulator._of(state, self._domain).estimate()

    def _draw_counters(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many reports count for each value; here each bit by itself."""
        own, of_others = generator.binomial(counts, self.p), generator.binomial(counts.sum() - counts, self.q)
        drawn: NDArray[np.int64] = own + of_others
        return drawn
