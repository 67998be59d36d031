"""Protocols for one of k values whose reports have a bit or a number for each value, and a check of set bits."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._calls import outside
from dpnoise._display import Record
from dpnoise._domain import codes
from dpnoise._draws import array_for
from dpnoise._errors import ParameterError
from dpnoise._native import LocalAccumulator
from dpnoise._numbers import integer
from dpnoise._types import Answers, Integer, Integers, Labels, Number, Rng, Values
from dpnoise.local import _inputs
from dpnoise.local._arrow import Block, in_blocks, rows_per_block
from dpnoise.local._doubt import has_unlikely_bits, is_rare, laplace_exponent
from dpnoise.local._estimate import Estimate, Post
from dpnoise.local._frequency import FrequencyProtocol

_FEWEST_EXPECTED: Final = 25.0
"""The fewest reports expected in a group of the G-test: with fewer, small p-values are too small by over a tenth."""

_OUTLIER: Final = 1e-3

_SET_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.uint8)


@dataclasses.dataclass(frozen=True, eq=False)
class PopcountCheck(Record):
    """How many reports have how many set bits, compared with what honest people send.

    Attributes
    ----------
    p_value : float
        The probability that honest reports differ from the expectation at least that much (G-test, by the chi-squared
        approximation). A small one, say below 1e-6, means that some reports were not made by the protocol.
    statistic : float
        Twice the log-likelihood ratio of observed and expected counts, in groups of neighbouring numbers of set bits of
        which each is expected to have 25 reports or more.
    degrees_of_freedom : int
        The number of groups less one, and less another one if ``share_without_bit`` was fitted to be above 0 and below
        1. If it is 0, there are too few reports for a test, and the p-value is 1.
    observed : ndarray of int64, shape (k + 1,)
        The number of reports with 0, 1, ..., k set bits. Read-only, as is ``expected``.
    expected : ndarray of float64, shape (k + 1,)
        The expected numbers if all reports are honest. Where ``observed`` is well above, there are crafted reports.
    share_without_bit : float
        The share of rows without a bit, from 0 to 1, that fits the numbers of set bits best.
    lowest, highest : int
        The ends of the range of set bits that contains all reports with a probability of 0.999 or more if they are
        honest. A report outside is suspicious by itself.
    n : int
        The number of reports checked.
    rejected : int
        The number of malformed reports, which were not checked.
    """

    p_value: float
    statistic: float
    degrees_of_freedom: int
    observed: NDArray[np.int64]
    expected: NDArray[np.float64]
    share_without_bit: float
    lowest: int
    highest: int
    n: int
    rejected: int


def check(blocks: Iterable[Block], k: int, p: float, q: float) -> PopcountCheck:
    """Compare reports, in blocks of well-shaped rows, with the distribution of unary encoding."""
    observed, rejected = np.zeros(k + 1, np.int64), 0
    for rows, missing in blocks:
        step = rows_per_block(rows.shape[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            well_formed = part[part[:, -1] >> ((k - 1) % 8 + 1) == 0] if k % 8 else part
            rejected += len(part) - len(well_formed)
            observed += np.bincount(_SET_BITS[well_formed].sum(axis=1, dtype=np.int64), minlength=k + 1)
        rejected += sum(missing.values())
    n = int(observed.sum())
    laws = distribution(k, p, q), distribution(k, q, q)
    # Groups by the mean: of a share that was fitted to the groups themselves, the statistic has a known distribution.
    mean = float(observed @ np.arange(k + 1)) / max(n, 1)
    group = _groups(n * _mixture(laws, min(max((p + (k - 1) * q - mean) / (p - q), 0.0), 1.0)))
    found, *grouped = (np.bincount(group, numbers).astype(np.float64) for numbers in (observed, *laws))
    share = _fitted_share(found, *grouped)
    law = _mixture(laws, share)
    expected, wanted, seen = n * law, n * _mixture(grouped, share), found > 0
    statistic = max(0.0, 2 * float(np.sum(found[seen] * np.log(found[seen] / wanted[seen]))))
    # A share at an end of the range takes no degree of freedom: the statistic is that of a given share.
    freedom = max(int(group[-1]) - (0 < share < 1), 0)
    lowest, highest = _bulk(law, _OUTLIER / max(n, 1))
    for array in (observed, expected):
        array.flags.writeable = False
    p_value = chi_squared_tail(statistic, freedom) if freedom else 1.0
    return PopcountCheck(p_value, statistic, freedom, observed, expected, share, lowest, highest, n, rejected)


def _mixture(laws: Sequence[NDArray[np.float64]], share: float) -> NDArray[np.float64]:
    """Return the distribution of which this share is of the second law, and the rest of the first."""
    return (1 - share) * laws[0] + share * laws[1]


def _fitted_share(found: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the share of the second law that makes the counts most likely: by bisection, as the slope falls."""
    low, high = 0.0, 1.0

    def rises(share: float) -> bool:
        return float(found @ ((second - first) / _mixture((first, second), share))) > 0

    if not rises(low) or rises(high):
        return float(rises(low))
    for _ in range(53):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


def distribution(k: int, p: float, q: float) -> NDArray[np.float64]:
    """Return the probabilities of 0 to k set bits: one is set with probability p, which is q in a row without a bit."""
    others = k - 1
    mode = min(int(k * q), others)
    x = np.arange(others)
    ratios = (others - x) / (x + 1) * (q / (1 - q))  # of the probabilities of x + 1 and x
    weights = np.concatenate([np.cumprod(1 / ratios[:mode][::-1])[::-1], [1.0], np.cumprod(ratios[mode:])])
    law: NDArray[np.float64] = np.convolve(weights / weights.sum(), [1 - p, p])
    return law


def chi_squared_tail(x: float, degrees_of_freedom: int) -> float:
    """Return the probability that a chi-squared variable is above x (Abramowitz and Stegun, 26.4.4 and 26.4.5)."""
    if x <= 0:
        return 1.0
    half = x / 2
    odd = degrees_of_freedom % 2
    powers = np.arange(1 if odd else 0, degrees_of_freedom // 2 + odd) - odd / 2
    terms = [math.exp(a * math.log(half) - half - math.lgamma(a + 1)) for a in powers.tolist()]
    return min(1.0, math.fsum([*terms, math.erfc(math.sqrt(half)) if odd else 0.0]))


def _groups(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """Put neighbouring numbers into groups that expect enough reports; the last one also takes the rest."""
    group, total = 0, 0.0
    numbers = np.empty(expected.size, np.int64)
    for x, count in enumerate(expected.tolist()):
        numbers[x] = group
        total += count
        if total >= _FEWEST_EXPECTED:
            group, total = group + 1, 0.0
    return np.minimum(numbers, max(group - 1, 0))


def _bulk(law: NDArray[np.float64], tail: float) -> tuple[int, int]:
    """Return the shortest range that leaves at most half of ``tail`` on either side."""
    below, above = np.cumsum(law), np.cumsum(law[::-1])[::-1]
    return int(np.count_nonzero(below <= tail / 2)), int(law.size - 1 - np.count_nonzero(above <= tail / 2))


class UnaryRows(FrequencyProtocol):
    """Unary encoding, with any probabilities p and q: reports have a bit for each value, flipped by itself."""

    __slots__ = ()

    # Protocols of other bases have the first three as well: their reports are rows of bits, too.
    def bits(self: FrequencyProtocol, reports: Values) -> NDArray[np.uint8]:
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

    def estimate_from_sums(
        self: FrequencyProtocol,
        sums: Integers,
        n: Integer,
        *,
        level: Number = 0.95,
        simultaneous: bool = False,
        post: Post | None = None,
    ) -> Estimate:
        """Estimate how many people have each value from how many reports have each bit set.

        Parameters
        ----------
        sums : array of integers, shape (k,)
            The sum of each column of the bits of all reports: ``bits(reports).sum(axis=0)``.
        n : int
            The number of reports, from 0 to 2**63 - 1.
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        post : str, optional
            How to make the counts consistent: "base-cut", "norm", "norm-mul", "norm-sub", "norm-cut" or "simplex",
            which `Accumulator.estimate` describes; by default they are unbiased.

        Returns
        -------
        Estimate
            What ``estimate`` gives for these reports.

        Examples
        --------
        >>> from dpnoise import local
        >>> protocol = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)
        >>> bits = protocol.bits(protocol.perturb([3, 1, 0, 1]))
        >>> protocol.estimate_from_sums(bits.sum(axis=0), len(bits)).n
        4
        """
        counters, people = _inputs.counts(sums, self.k, "sums"), integer(n, "n", range(2**63))
        if counters.max() > people:
            raise ParameterError(f"sums must be at most n = {people}, the number of reports, got {counters.max()}")
        accumulator = self.accumulator()
        accumulator._state.add_counters(people, counters.astype(np.uint64))
        return accumulator.estimate(level=level, simultaneous=simultaneous, post=post)

    def check_popcounts(self: FrequencyProtocol, reports: Values) -> PopcountCheck:
        """Check whether the numbers of set bits in reports are as expected from honest people.

        One bit of an honest report is set with probability p, unless its row had no bit, and each of the others with
        probability q, whatever the value. So the number of set bits has a known distribution but for the share of rows
        without a bit, which is fitted, and the check needs no knowledge of the values. Attackers who craft their
        reports rather than randomise a value tend to deviate from it.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes), or Arrow data
            Reports as ``perturb`` made them. More reports detect a smaller share of attackers.

        Returns
        -------
        PopcountCheck
            The result with its p-value. If m batches are checked separately, multiply the smallest of the m p-values by
            m.

        Notes
        -----
        The check cannot detect people who run the protocol on a false value, nor attackers who draw the number of set
        bits from the right distribution before they choose which. It shows that some reports were crafted, not which.
        Reports of `SubsetSelection` need no check: they always have ``omega`` set bits, and others are rejected.

        References
        ----------
        Cao, Jia and Gong (2021), "Data poisoning attacks to local differential privacy protocols".

        Examples
        --------
        >>> from dpnoise import local
        >>> protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
        >>> reports = protocol.perturb([3] * 10_000)
        >>> protocol.check_popcounts(reports).p_value > 1e-9
        True
        >>> reports[:1000] = protocol.encode([7] * 1000)  # a tenth sends bit 7 and nothing else
        >>> protocol.check_popcounts(reports).p_value > 1e-9
        False
        """
        blocks = ((self._rows(rows), rejected) for rows, rejected in in_blocks(reports, self))
        return check(blocks, self.k, self.p, self.q)

    def encode(self, values: Answers) -> NDArray[np.uint8]:
        """Encode values as one-hot rows. They are raw data: whoever sees a row knows the value.

        Rows have the shape of reports. `estimate` takes a few of them for reports, and warns about many.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            A value for each person: an array of any integer dtype, a list of ints, or a single int. With a domain,
            labels instead, also as columns of categories.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A row for each person; one row for a single value. Bit ``v`` of row ``i`` (least significant bit of a byte
            first) is set for value ``v`` of person ``i``, and no other.
        """
        vector = codes(values, self._domain)
        bits = np.empty((len(vector), self.report_bytes), np.uint8)
        self._native.encode(vector, bits)
        return bits

    def _vector(self, values: Any) -> NDArray[Any]:
        try:
            numbers = super()._vector(values)
        except (ParameterError, TypeError) as error:
            is_list = type(values) in (list, tuple)
            nested = is_list and any(isinstance(row, list | tuple | np.ndarray) for row in values)
            of_bits = is_list and len(values) == self.k and isinstance(error, TypeError)
            if nested or of_bits or getattr(values, "ndim", 1) == 2 or hasattr(values, "columns"):
                raise type(error)(f"{error}; rows of bits are for perturb_encoded") from None
            if str(error).startswith("values must have no missing values"):
                raise type(error)(f"{error}; perturb_encoded takes a row without a bit for a missing value") from None
            raise
        # A column of a table is of people, and its warning would only show whose values they are.
        given = self._domain is None and type(values) in (list, tuple, np.ndarray)
        if given and len(numbers) == self.k and np.count_nonzero(numbers) == 1 == numbers.max():
            warnings.warn(
                f"values may be a row of k = {self.k} bits, one of them set, and are taken for the values of {self.k} "
                "people, with a report for each: rows of bits are for perturb_encoded",
                UserWarning,
                stacklevel=outside(),
            )
        return numbers

    def perturb_encoded(
        self,
        rows: Values,
        *,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise rows of bits: those that `encode` makes, or rows of 0 and 1, such as one-hot encoders give.

        A row has one of its k bits set, or none for a person who has none of the values: a row with more would reveal
        more than ``epsilon``, so it is refused. Each report is epsilon-locally differentially private for the achieved
        ``epsilon``, provided that each person sends one. Time and memory addresses do not depend on rows or reports, if
        those of NumPy's comparisons, for dtypes other than uint8 and bool, do not. Estimates stay unbiased, but add up
        to the number of rows with a bit.

        Parameters
        ----------
        rows : array of 0 and 1, shape (n, k), data frame, or ndarray of uint8, shape (n, report_bytes)
            A row for each person, with a column for each value: an array or nested lists of booleans, integers or
            floats, or a single row of shape (k,). The columns of a data frame of pandas or polars, or of an Arrow
            table, are named by the labels of the domain, or by the numbers from 0 to k - 1 if there is none, in any
            order; pandas gives `get_dummies` of some labels all of them by ``reindex(columns=domain, fill_value=0)``.
            Or rows of packed bits, as `encode` made them, which have fewer columns for every k.
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
            A report for each person: bits packed least significant first; unused bits are zero.

        Raises
        ------
        ParameterError
            When a row has more than one bit set, or one that the protocol does not use; an item is neither 0 nor 1; or
            a column of a data frame is missing, or is of no label.

        Examples
        --------
        >>> from dpnoise import local
        >>> poll = local.OptimizedUnaryEncoding(domain=["yes", "no", "unsure"], epsilon=1.0)
        >>> poll.perturb_encoded([[0, 1, 0], [1, 0, 0], [0, 0, 0]]).shape
        (3, 1)
        """
        bits = _inputs.rows_of_bits(rows, self.k, self.report_bytes, self._domain)
        reports = array_for((len(bits), self.report_bytes), out, np.uint8)
        self._native.perturb_encoded(bits, reports, threads, rng)
        return reports

    def _doubts(self, state: LocalAccumulator) -> Iterator[str]:
        yield from super()._doubts(state)
        counters, n, _ = state.counters()
        if has_unlikely_bits(int(counters.sum()), n, self.k, self.p, self.q):
            yield "there are far more or fewer set bits than any people's values make, see check_popcounts"


class SymmetricUnaryEncoding(UnaryRows):
    """Symmetric unary encoding, also known as basic RAPPOR: k bits, each flipped with the same probability.

    A report is epsilon-locally differentially private, with ``p = s / (s + 1)`` and ``q = 1 - p`` for
    ``s = exp(epsilon / 2)``. The variance per person of a rare value's count is ``s / (s - 1)**2``.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.

    References
    ----------
    Erlingsson, Pihur and Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response"; Wang,
    Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.3.
    """

    __slots__ = ()
    _family = "symmetric_unary_encoding"


class OptimizedUnaryEncoding(UnaryRows):
    """Optimised unary encoding: the smallest variance of a rare value's count that unary encoding can have.

    A report is epsilon-locally differentially private, with ``p = 1/2`` and ``q = 1 / (exp(epsilon) + 1)``. The
    variance per person of a rare value's count is ``4 exp(epsilon) / (exp(epsilon) - 1)**2``.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.

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
    >>> poll.bits(poll.encode("no"))
    array([[0, 1, 0]], dtype=uint8)
    >>> poll.estimate(poll.perturb(["yes", "no", "yes", "yes"])).domain
    ('yes', 'no', 'unsure')
    """

    __slots__ = ()
    _family = "optimized_unary_encoding"


class UnaryEncoding(UnaryRows):
    """Unary encoding with given probabilities.

    A report is epsilon-locally differentially private with ``epsilon = ln(p (1 - q) / ((1 - p) q))``, which some texts
    call ``unary_epsilon(p, q)`` and the attribute ``epsilon`` gives. Probabilities with few binary digits, such as 0.75
    and 0.25, are used as they are; others are rounded in the private direction, p down and q up, to as many binary
    digits as keep 0.999 of their epsilon.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    p : float
        The probability that a bit that is 1 is reported as 1: above q and below 1.
    q : float
        The probability that a bit that is 0 is reported as 1: above 0 and below p. The epsilon of p and q must be from
        2**-20 to 32.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.3.
    """

    __slots__ = ()
    _family = "unary_encoding"

    def __init__(self, *, k: Integer | None = None, domain: Labels | None = None, p: Number, q: Number) -> None:
        self._make(k=self._sized(k, domain), p=p, q=q)

    def __repr__(self) -> str:
        """Show a call that makes this encoding; one with p and q only if they were not rounded."""
        try:
            unrounded = UnaryEncoding(k=self.k, p=self.p, q=self.q).bare_digest == self.bare_digest
        except ParameterError:
            unrounded = False
        if unrounded:
            return super().__repr__()
        labels = "" if self._domain is None else f", domain={self._domain!r}"
        return f"UnaryEncoding.from_json({self.to_json()!r}{labels})"


class ThresholdHistogramEncoding(UnaryRows):
    """Thresholding with histogram encoding: which bits of a one-hot row exceed a threshold after Laplace noise.

    Here ``p = 1 - exp(-epsilon (1 - theta) / 2) / 2`` and ``q = exp(-epsilon theta / 2) / 2``, with the threshold
    ``theta`` between 1/2 and 1 that makes the variance of a rare value's count the smallest. Reports are drawn as bits
    with these probabilities. `OptimizedUnaryEncoding` has a smaller variance for every epsilon; this one is for
    comparison.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of the noise, from 2**-20 to 32. Thresholding hides more than the noise alone: a report is
        epsilon-locally differentially private for a smaller epsilon, which is the attribute ``epsilon``.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", section 4.2.
    """

    __slots__ = ()
    _family = "threshold_histogram_encoding"

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee, exact and rounded up; below the requested one, by up to half of it."""
        return self._native.epsilon


class SummationHistogramEncoding(FrequencyProtocol):
    """Summation with histogram encoding: a one-hot row with Laplace noise of scale 2 / epsilon on each bit.

    A report is epsilon-locally differentially private. Nothing is flipped, so there are no probabilities ``p`` and
    ``q``. The variance per person of a count is ``8 / epsilon**2``, whatever the frequency. Noise is exact, on a grid
    that is finer than its scale by 2**15 or more. A report takes 4 bytes for each value.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**24: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.

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

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        (counts, _, people, _), n = state.estimate()
        excess = max(-counts.min(), counts.max() - people) / people
        return is_rare(n * laplace_exponent(excess, self.epsilon, self._specified()["unit"]), self.k)

    def _draw_supports(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
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
