"""The base class of the protocols that count how many people have each of k values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpnoise._domain import Domain, codes
from dpnoise._errors import ParameterError
from dpnoise._native import LocalAccumulator
from dpnoise._types import Answers, Integer, Integers, Labels, Number, Rng, Values
from dpnoise.local import _inputs
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._doubt import are_unlikely
from dpnoise.local._estimate import Estimate, Post, with_intervals
from dpnoise.local._protocol import Protocol


class FrequencyProtocol(Protocol):
    """A protocol whose reports each count for some of k values: the sender's with probability p, others with q.

    The values are numbers from 0 to k - 1, or the labels of ``domain``, of which the specification has a digest: so
    reports about other labels, or about these in another order, are not counted. A domain must be public, and not
    looked up in the data.

    A report is epsilon-locally differentially private for the achieved ``epsilon``. Probabilities of more than 62
    binary digits, which many values with a small epsilon may need, are refused by a ParameterError.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24. Exactly one of ``k`` and ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    """

    __slots__ = ()
    _domain: Domain | None
    _counts_values = True

    def __init__(self, *, k: Integer | None = None, domain: Labels | None = None, epsilon: Number) -> None:
        self._make(k=self._sized(k, domain), epsilon=epsilon)

    @property
    def k(self) -> int:
        """The number of possible values."""
        return self._native.k

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """The labels of the values in their order, all str, all int or all bool; None for numbers from 0 to k - 1."""
        return self._domain

    def about(self, *, question: str | None = None, period: str | None = None, domain: Labels | None = None) -> Self:
        """Make the same randomiser for another collection, whose reports are never counted as those of this one.

        All of it is public, and part of the specification.

        Parameters
        ----------
        question : str, optional
            What is asked, of whom and by whom: from 1 to 255 bytes of UTF-8, in Unicode's normal form NFC. It stays the
            same as long as people may be asked again. By default that of this object.
        period : str, optional
            The time in which each person sends one report, from 1 to 63 bytes: by custom a week as ``"2026-W48"`` or a
            month as ``"2026-11"``. By default that of this object.
        domain : sequence of str, int or bool, optional
            The labels of the k values in their order, all different and of one type. By default those of this object.

        Returns
        -------
        FrequencyProtocol
            A protocol of the same class.

        Raises
        ------
        ParameterError
            When a text has another length, a space at either end, characters that are not seen, or is not in NFC; or
            when there are not k labels.

        Examples
        --------
        >>> from dpnoise import local
        >>> survey = local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=2.0)
        >>> week = survey.about(question="favourite colour", period="2026-W48")
        >>> week.spec_id, week.about(period="2026-W49").spec_id
        ('d1b43041022344b7', 'bf2af79b64406ddd')
        """
        return self._renewed(question, period, None if domain is None else Domain(domain))

    @property
    def p(self) -> float:
        """The probability that a report counts for the true value: that a bit that is 1 is reported as 1."""
        return self._native.p

    @property
    def q(self) -> float:
        """The probability that a report counts for another given value: that a bit that is 0 is reported as 1."""
        return self._native.q

    def _sized(self, k: Integer | None, domain: Labels | None) -> Integer:
        """Keep the labels, if any, and give the number of values."""
        if domain is None:
            if k is None:
                raise TypeError("k must be an int, got None: give either k or domain")
            return k
        if k is not None:
            raise ParameterError("either k or domain must be given, got both")
        self._domain = Domain(domain)
        return len(self._domain)

    def perturb(
        self, values: Answers, *, out: NDArray[np.uint8] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[np.uint8]:
        """Randomise values, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on values or reports.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            A value for each person: an array of any integer dtype, a list of ints, or a single int. With a domain,
            labels instead, also as columns of categories: looking them up does not take constant time.
        out : ndarray of uint8, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the
            result.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can undo the randomisation.
            By default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A report for each person; one row for a single value. It has bits packed least significant first, or numbers
            in little-endian bytes, as the protocol defines it; unused bits are zero.
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[Any]:
        return codes(values, self._domain)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        counters, n, _ = state.counters()
        return are_unlikely(counters, n, self.q, self.p)

    def variance(self, n: Integer, frequency: Number = 0.0) -> float:
        """Predict the variance of an estimated count, in people squared.

        It is ``n (q (1 - q) / (p - q)**2 + frequency (1 - p - q) / (p - q))`` (Wang et al. 2017, equation 2).

        Parameters
        ----------
        n : int
            The number of people who report, from 0 to 2**64 - 1.
        frequency : float, default 0.0
            The share of these people who have the value, from 0 to 1.
        """
        return self._native.variance(n, frequency)

    def estimate(
        self,
        collected: Accumulator | Values,
        *,
        level: Number = 0.95,
        simultaneous: bool = False,
        post: Post | None = None,
        threads: int | None = None,
    ) -> Estimate:
        """Estimate how many people have each value.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data, or a list of
            single ones, also as bytes.
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        post : str, optional
            How to make the counts consistent; by default they are unbiased. ``"base-cut"`` sets counts that are not
            significant to 0, ``"norm"`` shifts all counts to sum to n, and ``"norm-sub"`` or ``"simplex"`` takes the
            nearest counts that are not negative and sum to n. `Accumulator.estimate` describes all six.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        Estimate
            The counts of all values with their intervals; zeros when no report was counted.

        Notes
        -----
        An array does not name its protocol: use `to_arrow` where reports of several have the same shape. There is a
        `dpnoise.DoubtfulInputWarning` for reports that honest people do not send, or only with a probability of 1e-12.
        """
        return self._collected(collected, threads).estimate(level=level, simultaneous=simultaneous, post=post)

    def simulate(self, true_counts: Integers) -> Estimate:
        """Draw the estimate that a collection would give, without making a report.

        Parameters
        ----------
        true_counts : array of non-negative integers, shape (k,)
            How many people have each value; for `RandomizedResponse` how many would truthfully say no, and yes.

        Returns
        -------
        Estimate
            An estimate with the distribution of one from the reports of all these people. Drawing it takes time in the
            order of k, independent of the counts.

        Notes
        -----
        This is for planning. Counters are sums of binomial and multinomial variables that NumPy draws from secure bits,
        exact up to the accuracy of its floating-point arithmetic. For `LocalHashing`, `HadamardResponse`,
        `ProjectiveGeometryResponse` and `SubsetSelection` each count has its exact distribution, but different counts
        are drawn independently; in a collection they are slightly dependent.
        """
        from dpnoise.bit_generator import SecureBitGenerator  # this imports numpy.random

        counts = _inputs.counts(true_counts, self.k, "true_counts")
        supports = self._draw_supports(counts, np.random.Generator(SecureBitGenerator())).astype(np.uint64)
        n = int(counts.sum())
        found = (*self._native.estimate_supports(n, supports), n, 0)
        return with_intervals(self._native, found, 0.95, False, None, self._domain)

    def _draw_supports(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many reports count for each value; here each bit is independent."""
        own, of_others = generator.binomial(counts, self.p), generator.binomial(counts.sum() - counts, self.q)
        drawn: NDArray[np.int64] = own + of_others
        return drawn
