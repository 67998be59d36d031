"""The base classes of protocols: of all, of those that count values, and of those that take values."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import Answers, Integers, Labels, Values
from dpnoise._parameters import Domain, Rng, array_for, integer, real_down
from dpnoise.local import _arrow, _inputs
from dpnoise.local._accumulator import Accumulator, AnyAccumulator
from dpnoise.local._estimate import Estimate, Post, with_intervals
from dpnoise.local._memo import ClientMemo
from dpnoise.local._specification import Specification

if TYPE_CHECKING:
    from dpnoise.accounting import ShuffledCost

COUNTER_LIMIT: Final = _native.COUNTER_LIMIT
"""The most bytes that the counters of a protocol or a state of others may have unless a limit is given: 128 MiB."""


class Protocol(Specification):
    """The abstract base class of all local protocols.

    Protocols are immutable, hashable, and equal when their specifications and labels are.
    """

    __slots__ = ()

    def accumulator(self) -> Accumulator:
        """Make an empty accumulator for reports of this protocol."""
        return Accumulator(self)

    def shuffled_cost(self, *, n: int, delta: float) -> ShuffledCost:
        """Return the cost of n reports together when a shuffler has removed their senders and their order.

        The shuffler must be trusted to shuffle, and the reports must be from n people who follow the protocol.

        Parameters
        ----------
        n : int
            The number of reports that are shuffled, from 1 to 2**64 - 1.
        delta : float
            The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
            people.

        Returns
        -------
        ShuffledCost
            The given ``delta`` with an epsilon, at most the ``epsilon`` of a report. Neighbours differ by one person
            who is substituted: in what that person has.

        Raises
        ------
        ParameterError
            When the protocol has a delta of its own, as `GaussianMean` has.

        Notes
        -----
        The epsilon is that of `dpnoise.accounting.amplify_by_shuffling`, which holds for every protocol, or, if that is
        smaller, that of the privacy blanket of this protocol with its exact probabilities: for randomised response,
        unary encodings without a memo, local hashing, Hadamard response, subset selection and projective geometry
        response; or, for the other protocols that count values, of k = 2 values, that of every randomiser of one of two
        values. Every epsilon is computed from above, and the ``bound`` of the cost says which one it is.

        References
        ----------
        Balle, Bell, Gascon and Nissim (2019), "The privacy blanket of the shuffle model", lemma 5.3.

        Examples
        --------
        >>> from dpnoise import local
        >>> protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
        >>> cost = protocol.shuffled_cost(n=10**4, delta=1e-6)
        >>> round(cost.epsilon, 3), cost.bound
        (0.03, 'blanket')
        """
        from dpnoise.accounting import ShuffledCost  # reports alone do not need it

        failure = real_down(delta, "delta")
        epsilon, bound = self._native.shuffled_epsilon(integer(n, "n", range(1, 2**64)), failure)
        return ShuffledCost(epsilon, failure, "substitute", bound=bound)

    def _collected(self, collected: Accumulator | Values, threads: int | None) -> Accumulator:
        """Return an accumulator of this protocol: the given one, or a new one with the given reports."""
        if isinstance(collected, Accumulator) and collected.protocol == self:
            return collected
        accumulator = self.accumulator()
        if not isinstance(collected, AnyAccumulator):
            accumulator.add(collected, threads=threads)
            self._warn_of_others(accumulator)
        elif not isinstance(collected, Accumulator) or self._contradicts(collected.protocol):
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {collected.protocol!r}")
        else:
            accumulator.merge(collected)  # only one of them has labels
        return accumulator

    def _warn_of_others(self, collected: Accumulator) -> None:
        """Warn if the reports are certainly not all of this protocol; here nothing is certain."""

    def to_arrow(self, reports: Values) -> Any:
        """Return reports as Arrow data whose metadata name the protocol, without copying them.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            Reports as ``perturb`` made them. Do not change them afterwards, since the result is a view of them. For
            `RandomizedResponse` also booleans of shape (n,).

        Returns
        -------
        pyarrow.RecordBatch
            With the column "report" of type fixed_size_binary. The specification, and the labels if there are any, are
            in the metadata, where `Accumulator.add` looks for them. Other libraries read it through
            ``__arrow_c_array__`` or ``__arrow_c_stream__``.
        """
        return _arrow.batch_of(self._rows(reports), self)

    def _vector(self, values: Any) -> NDArray[Any]:
        """Copy people's values to an array that the randomiser takes, if they are of the right kind."""
        raise NotImplementedError  # raised by protocols whose clients keep a memo

    def _limits(self) -> tuple[float, float]:
        """Return the smallest and the largest number that the randomiser takes."""
        return 0, self._native.k - 1

    def _reports(
        self, values: NDArray[Any], out: NDArray[np.uint8] | None, threads: int | None, rng: Rng
    ) -> NDArray[np.uint8]:
        """Return a report for each value. Takes ownership of ``values``."""
        reports = array_for((len(values), self._native.report_bytes), out, np.uint8)
        self._native.perturb(values, reports, threads, rng)
        return reports

    def _reports_of(
        self,
        memo: ClientMemo,
        question: str,
        values: NDArray[np.int64],
        out: NDArray[np.uint8] | None,
        threads: int | None,
        rng: Rng,
    ) -> NDArray[np.uint8]:
        """Return a report for the value of each person of the memo. Takes ownership of ``values``."""
        if not isinstance(memo, ClientMemo):
            raise TypeError(f"memo must be a ClientMemo, got {type(memo).__name__}")
        _check_question(question)
        reports = array_for((len(values), self._native.report_bytes), out, np.uint8)
        self._native.perturb_remembering(values, memo._secrets, question, reports, threads, rng)
        return reports

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the specification and the labels."""
        return _unpickled, (self.to_json(), self._domain)


def _check_question(question: str) -> None:
    """Refuse all spellings of a name but one: each has permanent answers of its own.

    No spelling is converted, so that the answers do not depend on a device's version of Unicode.
    """
    if not isinstance(question, str):
        raise TypeError(f"question must be a str, got {type(question).__name__}")
    if question != question.encode(errors="replace").decode():
        raise ParameterError(f"question must be Unicode text, without lone surrogates, got {question!a}")
    if not unicodedata.is_normalized("NFC", question):
        allowed = "Unicode text in the normal form that unicodedata.normalize('NFC', question) gives"
        raise ParameterError(f"question must be {allowed}, got {question!a}")


def _unpickled(text: str, domain: Domain | None) -> Protocol:
    return protocol_from_json(text, domain=domain, limit=None)


def protocol_from_json(text: str, *, domain: Labels | None = None, limit: int | None = COUNTER_LIMIT) -> Protocol:
    """Read the specification of a protocol of any kind.

    Parameters
    ----------
    text : str
        The specification as ``to_json`` gave it; white space around it does not matter.
    domain : sequence of str, int or bool, optional
        The labels of the values, which a specification does not contain, in the order in which clients number them: all
        different and of one type. By default the values are numbers, without labels.
    limit : int or None, default 134217728
        The most bytes that the counters of the protocol may have: 128 MiB by default, since a short specification may
        ask for much memory. None, for specifications of your own, allows any size.

    Returns
    -------
    Protocol
        The protocol, of the class of its family.

    Raises
    ------
    ParameterError
        When ``text`` is not a specification, was written again by another program, or its probabilities do not follow
        from its epsilon; when its counters have more than ``limit`` bytes; or when the domain has another length, or is
        invalid.
    """
    return Protocol.from_json(text, domain=domain, limit=limit)


class FrequencyProtocol(Protocol):
    """A protocol whose reports each count for some of k values: the sender's with probability p, others with q.

    The values are numbers from 0 to k - 1, or the labels of ``domain``. Labels are not part of the specification: they
    change neither its JSON nor its id nor any report. A domain must be public, and not looked up in the data.

    A report is epsilon-locally differentially private for the achieved ``epsilon``. Probabilities of more than 62
    binary digits, which many values with a small epsilon may need, are refused by a ParameterError.
    """

    __slots__ = ()
    _counts_values = True

    @property
    def k(self) -> int:
        """The number of possible values."""
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
        """Keep the labels, if any, and give the number of values."""
        if domain is None:
            if k is None:
                raise TypeError("k must be an int, got None: give either k or domain")
            return k
        if k is not None:
            raise ParameterError("either k or domain must be given, got both")
        self._domain = Domain(domain)
        return len(self._domain)

    def variance(self, n: int, frequency: float = 0.0) -> float:
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
        level: float = 0.95,
        simultaneous: bool = False,
        post: Post | None = None,
        threads: int | None = None,
    ) -> Estimate:
        """Estimate how many people have each value.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        post : {"base-cut", "norm", "norm-mul", "norm-sub", "norm-cut", "simplex"}, optional
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
        An array does not name its protocol: use `to_arrow` where reports of several have the same shape. Only a unary
        encoding without a memo notices others, by their set bits: reports of its own have so many or few in all with a
        probability of at most 1e-12. Then there is a UserWarning.
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

        counts = _inputs.counts(true_counts, self.k)
        supports = self._draw_supports(counts, np.random.Generator(SecureBitGenerator())).astype(np.uint64)
        n = int(counts.sum())
        found = (*self._native.estimate_supports(n, supports), n, 0)
        return with_intervals(self._native, found, 0.95, False, None, self._domain)

    def _draw_supports(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many reports count for each value; here each bit is independent."""
        own, of_others = generator.binomial(counts, self.p), generator.binomial(counts.sum() - counts, self.q)
        drawn: NDArray[np.int64] = own + of_others
        return drawn


class BitProtocol(FrequencyProtocol):
    """A protocol whose reports have a bit for each value."""

    __slots__ = ()

    def bits(self, reports: Values) -> NDArray[np.uint8]:
        """Unpack rows of bits, so that each value has a column.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            Reports as ``perturb`` made them, or one-hot rows that ``encode`` of a unary encoding made.

        Returns
        -------
        ndarray of uint8, shape (n, k)
            0 or 1: entry ``[i, v]`` is the bit of row i for value v, whose label is ``domain[v]`` if there are labels.
        """
        return np.unpackbits(self._rows(reports), axis=1, count=self.k, bitorder="little")


class OfValues(Protocol):
    """A protocol for one of k values, numbered from 0, whose reports are rows of bytes."""

    __slots__ = ()

    @property
    def k(self) -> int:
        """The number of possible values."""
        return self._native.k

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

    def _vector(self, values: Any) -> NDArray[np.int64]:
        return _inputs.codes(values, self._domain)


class ValueProtocol(OfValues, FrequencyProtocol):
    """A protocol for one of k values, whose reports count for some of them."""

    __slots__ = ()

    def __init__(self, *, k: int | None = None, domain: Labels | None = None, epsilon: float) -> None:
        self._make(k=self._sized(k, domain), epsilon=epsilon)
