"""Longitudinal protocols: for people who are asked repeatedly."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpnoise._domain import codes
from dpnoise._types import Answers, Integer, Labels, Number, Rng
from dpnoise.local._frequency import FrequencyProtocol
from dpnoise.local._memo import ClientMemo
from dpnoise.local._unary_encoding import UnaryRows


class LongitudinalProtocol(FrequencyProtocol):
    """A protocol for one of k values, numbered from 0, whose clients keep a memo.

    A collection has one report from each person; the standard errors of an estimate do not hold if a person is in it
    twice.

    Parameters
    ----------
    k : int, optional
        The number of possible values. Exactly one of ``k`` and ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type.
    epsilon : float
        The privacy parameter of all reports on one value together, from 2**-20 to 32.
    """

    __slots__ = ()

    def perturb(  # type: ignore[override] # it takes a memo and a question, too
        self,
        values: Answers,
        memo: ClientMemo,
        *,
        question: str,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise values, as each person's device does whenever it is asked, for any number of people at once.

        All reports that a person ever makes of one value, with the same memo, are together epsilon-locally
        differentially private for the achieved ``epsilon``. Time and memory addresses do not depend on values, secrets
        or reports.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            A value for each person: an array of any integer dtype, a list of ints, or a single int. With a domain,
            labels instead, also as columns of categories: looking them up does not take constant time.
        memo : ClientMemo
            The memo of n people: ``values[i]`` is the value of person i.
        question : str
            The name of the question: the same whenever it is asked again, and a different one for every other question.
            Two spellings of a text are two names, so only Unicode's normal form NFC is taken.
            The permanent randomness of two questions is then independent, even if both have the same k and epsilon.
            With one name for both, reports would reveal whether the answers are the same.
        out : ndarray of uint8, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the
            result.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can undo the instantaneous
            round. By default each call draws a fresh key from the operating system. The permanent randomness comes from
            the memo in any case.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A report for each person: bits packed least significant first, or a number in little-endian bytes, as the
            protocol defines it; unused bits are zero.
        """
        return self._reports_of(memo, question, codes(values, self._domain), out, threads, rng)


class TwoRoundProtocol(LongitudinalProtocol):
    """A protocol with a permanent round of randomisation and an instantaneous one for each report."""

    __slots__ = ()

    @property
    def epsilon(self) -> float:
        """The epsilon of all reports on one value together, exact and rounded up; at least 0.999 of the requested."""
        return self._native.epsilon

    @property
    def epsilon_first(self) -> float:
        """The epsilon of a single report, exact and rounded up; at least 0.999 of the requested, and never above."""
        return self._native.epsilon_first

    @property
    def requested_epsilon_permanent(self) -> float:
        """The requested epsilon of all reports on one value together."""
        return self._native.requested_epsilon

    @property
    def requested_epsilon_first(self) -> float:
        """The requested epsilon of a single report."""
        return self._native.requested_epsilon_first


class LongitudinalUnaryEncoding(TwoRoundProtocol):
    """Longitudinal unary encoding: k bits with permanent flips, and fresh flips for each report.

    All reports of a person on one value together are epsilon-locally differentially private for the achieved
    ``epsilon``. The permanent round randomises like `OptimizedUnaryEncoding` (L-OSUE) or `SymmetricUnaryEncoding`
    (L-SUE, also known as basic RAPPOR) for ``epsilon_permanent``. The instantaneous round is symmetric, with the
    probability for which a single report achieves ``epsilon_first``.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon_permanent : float
        The privacy parameter of all reports on one value together, however many there are: above ``epsilon_first`` and
        at most 32.
    epsilon_first : float
        The privacy parameter of a single report, at least 2**-20 and below ``epsilon_permanent``.
    permanent : {"optimized", "symmetric"}, default "optimized"
        The permanent round: like `OptimizedUnaryEncoding` or like `SymmetricUnaryEncoding`.

    Notes
    -----
    Reports on m different values reveal up to m times ``epsilon`` about them, and may reveal *when* the value changed.
    For values that change often, `LOLOHA` bounds the former by g times ``epsilon``.

    References
    ----------
    Arcolezi, Couchot, Al Bouna and Xiao (2022), "Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates"; Erlingsson, Pihur and Korolova (2014), "RAPPOR: randomized
    aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LongitudinalUnaryEncoding(k=15, epsilon_permanent=2.0, epsilon_first=1.0)
    >>> memo = local.ClientMemo.generate(3)
    >>> monday = protocol.perturb([3, 14, 3], memo, question="colour")
    >>> tuesday = protocol.perturb([3, 14, 4], memo, question="colour")
    >>> tuesday.shape
    (3, 2)
    """

    __slots__ = ()
    _family = "longitudinal_unary_encoding"
    bits = UnaryRows.bits
    estimate_from_sums = UnaryRows.estimate_from_sums
    check_popcounts = UnaryRows.check_popcounts

    def __init__(
        self,
        *,
        k: Integer | None = None,
        domain: Labels | None = None,
        epsilon_permanent: Number,
        epsilon_first: Number,
        permanent: Literal["optimized", "symmetric"] = "optimized",
    ) -> None:
        self._make(
            k=self._sized(k, domain),
            epsilon_permanent=epsilon_permanent,
            epsilon_first=epsilon_first,
            permanent=permanent,
        )

    @property
    def permanent(self) -> str:
        """The permanent round, "optimized" or "symmetric"."""
        fields = self._specified()
        return "optimized" if 2 * fields["permanent_p"] == 2 ** fields["permanent_planes"] else "symmetric"


class LOLOHA(TwoRoundProtocol):
    """LOLOHA: a permanent hash function, whose hashes are randomised permanently, and again for each report.

    All reports of a person on one value together are epsilon-locally differentially private for the achieved
    ``epsilon``. There are only ``g`` permanent answers, however many values there are. It is for values that change
    often: a small g keeps ``epsilon_longitudinal`` small.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon_permanent : float
        The privacy parameter of all reports on one hash together, and so of all on one value, however many there are:
        above ``epsilon_first`` and at most 32.
    epsilon_first : float
        The privacy parameter of a single report, at least 2**-20 and below ``epsilon_permanent``.
    g : int, optional
        The number of hashes, from 2 (BiLOLOHA) to 2**8; when not given ``exp(epsilon_first) + 1``, rounded, but at most
        k: the most accurate choice.

    Notes
    -----
    The hash functions and the reports are those of `LocalHashing`. With the instantaneous round of the paper, a single
    report achieves ``epsilon_first`` exactly only for g = 2, and less for a larger g. Here it is exact for every g, so
    estimates are as accurate as with `LocalHashing` and ``epsilon_first``.

    Hash functions are drawn only once, so their errors stay the same over several collections.

    References
    ----------
    Arcolezi, Pinzón, Palamidessi and Gambs (2023), "Frequency estimation of evolving data under local differential
    privacy".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LOLOHA(k=1024, epsilon_permanent=2.0, epsilon_first=1.0)
    >>> protocol.g, protocol.report_bytes
    (4, 3)
    >>> memo = local.ClientMemo.generate(2)
    >>> protocol.perturb([1000, 5], memo, question="colour").shape
    (2, 3)
    """

    __slots__ = ()
    _family = "loloha"

    def __init__(
        self,
        *,
        k: Integer | None = None,
        domain: Labels | None = None,
        epsilon_permanent: Number,
        epsilon_first: Number,
        g: Integer | None = None,
    ) -> None:
        self._make(k=self._sized(k, domain), epsilon_permanent=epsilon_permanent, epsilon_first=epsilon_first, g=g)

    @property
    def g(self) -> int:
        """The number of hashes."""
        return int(self._specified()["g"])

    @property
    def epsilon_longitudinal(self) -> float:
        """The epsilon of all reports on all hashes of a person, given when they changed: g times ``epsilon``."""
        return self.g * self.epsilon


class DBitFlip(LongitudinalProtocol):
    """dBitFlipPM: every person samples d of the k values once, and reports a permanently randomised bit for each.

    All reports of a person on one value together are epsilon-locally differentially private for the achieved
    ``epsilon``. A person's report on a value is always the same. There are d + 1 different reports: one for each
    sampled value, and one for all others together. So a change from one value to another does not show if neither is
    sampled. The protocol is for counters whose values are divided into k buckets.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**16: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of all reports on one value together, from 2**-20 to 32.
    d : int
        The number of sampled values, from 1 to k. A larger d reduces the variance, and also the share of changes that
        do not show.

    Notes
    -----
    A sampled bit is reported as 1 with probability ``s / (s + 1)`` if it is 1, and ``1 / (s + 1)`` if it is 0, with
    ``s = exp(epsilon / 2)``; for d = 1, where two values differ in one bit at most, with ``s = exp(epsilon)``. A report
    has k bits, packed least significant first; those that are not sampled are 0.

    There are no fresh flips for a report, so a change of the report reveals that the value changed. m different reports
    reveal up to m times ``epsilon`` about the values, and m is at most d + 1.

    Over several collections the errors of an estimate stay the same.

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
    bits = UnaryRows.bits
    estimate_from_sums = UnaryRows.estimate_from_sums

    def __init__(self, *, k: Integer | None = None, domain: Labels | None = None, epsilon: Number, d: Integer) -> None:
        self._make(k=self._sized(k, domain), d=d, epsilon=epsilon)

    @property
    def d(self) -> int:
        """The number of sampled values."""
        return int(self._specified()["d"])
