"""Rappor: texts as Bloom filters, randomised in two rounds, and their decoding."""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._display import Column
from dpnoise._errors import ParameterError, require
from dpnoise._types import Integer, Number, Rng, Texts, Values
from dpnoise.local import _inputs
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._doubt import are_unlikely_bits
from dpnoise.local._estimate import EstimateTable, intervals, normal_quantile, spread_over
from dpnoise.local._memo import ClientMemo
from dpnoise.local._protocol import Protocol


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RapporEstimate(EstimateTable):
    """The candidate texts that people have, and how many have each, estimated from their reports.

    As a table it has the columns value, count, standard_error, lower, upper (float64) and significant (bool).

    Attributes
    ----------
    candidates : list of str or of bytes
        The texts that were selected, in the order in which they were given.
    counts : ndarray of float64
        An estimate for each candidate, by least squares. Read-only, as are the other arrays.
    standard_errors : ndarray of float64
        The standard deviation of each count over the randomisation and the choice of cohorts; larger where unlisted
        texts increase the residuals of the regression, or cohorts differ more.
    lower, upper : ndarray of float64
        The ends of the confidence intervals, by the normal approximation. If a text is so rare that it is selected only
        when its error is large, its interval fails more often than ``level`` says. Simultaneous intervals do not: they
        hold for all candidates together, selected or not.
    significant : ndarray of bool
        Whether the count is above zero at ``level``, for all candidates together (Bonferroni): with that probability no
        absent text is marked. This needs the frequent texts among the candidates, or enough cohorts and bits to tell
        an absent text from them by the bits that they do not share: with two hash functions, 16 cohorts of 32 bits
        are enough, and 8 cohorts of 16 bits are not.
    n : int
        The number of reports counted.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The probability with which an interval holds.
    simultaneous : bool
        Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
    """

    candidates: list[Any]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    significant: NDArray[np.bool_]
    n: int
    rejected: int
    level: float
    simultaneous: bool

    def _values(self) -> list[Any]:
        return self.candidates

    def _columns(self) -> dict[str, Column]:
        return {**super()._columns(), "significant": self.significant}


class _Cells(NamedTuple):
    """The counts of cells: a cell is a bit of a cohort, and the bits of a cohort are contiguous."""

    bits: NDArray[np.float64]
    """Unbiased estimates of the number of people whose Bloom filter has the bit set."""
    people: NDArray[np.float64]
    """The number of people of the cohort."""
    p: float
    q: float

    def variances(self, set_: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variances over the randomisation, given how many people have each bit set."""
        p, q = self.p, self.q
        of_set = set_.clip(0.0, self.people)
        flips: NDArray[np.float64] = of_set * p * (1.0 - p) + (self.people - of_set) * q * (1.0 - q)
        return flips / (p - q) ** 2


def decode(
    state: _native.LocalAccumulator,
    spec: dict[str, Any],
    set_bits: NDArray[np.int64],
    candidates: list[Any],
    level: Number,
    simultaneous: bool,
) -> RapporEstimate:
    """Select candidates and estimate their counts. ``set_bits[c, j]`` are the bits of candidate c in cohort j."""
    of_all = max(len(candidates), 1)
    quantile = normal_quantile(level, spread_over(of_all, simultaneous))
    cohorts, width = spec["num_cohorts"], spec["num_bloombits"]
    _check_distinct(set_bits, candidates)
    sparse = require("scipy.sparse", "decode", "decoding RAPPOR needs")
    counters, n, rejected = state.counters()
    by_cohort = counters.reshape(cohorts, 1 + width).astype(np.float64)
    p, q = _both_rounds(spec)
    bits = (by_cohort[:, 1:] - by_cohort[:, :1] * q) / (p - q)
    cells = _Cells(bits.ravel(), np.repeat(by_cohort[:, 0], width), p, q)
    rows = np.arange(cohorts)[:, None] * width + set_bits
    columns = np.broadcast_to(np.arange(len(candidates))[:, None, None], rows.shape)
    ones = np.ones(rows.size)
    hits = sparse.csr_matrix((ones, (rows.ravel(), columns.ravel())), (cohorts * width, len(candidates))).minimum(1.0)
    # The probability, over random hash functions, that the Bloom filter of an unlisted text has a given bit set.
    others = np.full(cohorts * width, 1.0 - (1.0 - 1.0 / width) ** spec["num_hashes"])
    selected = _select(hits, others, cells) if n and candidates else np.zeros(0, np.int64)
    counts, standard_errors = _least_squares(hits[:, selected], others, cells, width)
    lower, upper = intervals(counts, standard_errors, quantile)
    alarm = min((1.0 - float(level)) / of_all, math.nextafter(1.0, 0.0))  # it rounds to 1 for a tiny level
    significant = counts > -NormalDist().inv_cdf(alarm) * standard_errors
    significant.flags.writeable = False
    found = [candidates[index] for index in selected]
    return RapporEstimate(
        found, counts, standard_errors, lower, upper, significant, n, rejected, float(level), simultaneous
    )


def _check_distinct(set_bits: NDArray[np.int64], candidates: list[Any]) -> None:
    """Refuse candidates with equal Bloom filters, and name two of them."""
    filters = np.sort(set_bits)
    filters[..., 1:][filters[..., 1:] == filters[..., :-1]] = -1  # a bit may be set by several hash functions
    firsts: dict[bytes, int] = {}
    for index, own in enumerate(np.sort(filters)):
        first = firsts.setdefault(own.tobytes(), index)
        if first != index:
            raise ParameterError(
                f"candidates must have different Bloom filters, got the same for {candidates[first]!r} and "
                f"{candidates[index]!r}: list each text once, or collect with more bits or cohorts"
            )


def _both_rounds(spec: dict[str, Any]) -> tuple[float, float]:
    """Return the probabilities that a bit is reported as 1 if it is set in the Bloom filter, and if it is not."""
    p, q = (spec["instantaneous_" + name] / 2 ** spec["instantaneous_planes"] for name in ("p", "q"))
    set_, not_set = (spec["permanent_" + name] / 2 ** spec["permanent_planes"] for name in ("p", "q"))
    return q + set_ * (p - q), q + not_set * (p - q)


def _select(hits: Any, others: NDArray[np.float64], cells: _Cells) -> NDArray[np.int64]:
    """Return the columns with positive counts in a lasso with non-negative counts; the count of unlisted texts is free.

    The penalty is about what errors alone reach in the best of all columns (Donoho and Johnstone 1994, "Ideal spatial
    adaptation by wavelet shrinkage"), so that few absent texts are selected.
    """
    from scipy.optimize import minimize
    from scipy.sparse import diags

    design = diags(cells.people) @ hits
    design = design @ diags(1.0 / np.sqrt(design.power(2).T @ np.ones(others.size)))
    unit = cells.people * others / np.linalg.norm(cells.people * others)
    errors = np.sqrt(design.T.power(2) @ (cells.variances(cells.bits) + cells.bits.clip(0.0)))
    scale = errors.max()
    penalties = math.sqrt(2.0 * math.log(design.shape[1])) * errors / scale

    def without_others(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        rest: NDArray[np.float64] = vector - unit * (unit @ vector)
        return rest

    target = without_others(cells.bits / scale)

    def objective(counts: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        residuals = without_others(design @ counts) - target
        return 0.5 * float(residuals @ residuals) + float(penalties @ counts), design.T @ residuals + penalties

    start = np.zeros(design.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * start.size)
    selected: NDArray[np.int64] = np.flatnonzero(found.x > 0.0)
    return selected


def _least_squares(
    hits: Any, others: NDArray[np.float64], cells: _Cells, width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts of the columns, fitted together with one for all unlisted texts, and their standard errors.

    The standard errors are the known ones, scaled up if the residuals are larger than expected; or they follow from
    differences between cohorts, if that makes them larger (Liang and Zeger 1986, "Longitudinal data analysis using
    generalized linear models"; with residuals as in MacKinnon and White 1985, HC2). A frequent unlisted text makes an
    absent one look present only in the cohorts in which they share bits.
    """
    from scipy.sparse import csr_matrix, diags, hstack

    if hits.shape[1] == 0:
        return np.zeros(0), np.zeros(0)
    shares = cells.people / cells.people[::width].sum()
    design = diags(shares) @ hstack([hits, csr_matrix(others[:, None])]).tocsr()
    gram = (design.T @ design).toarray()
    if np.linalg.matrix_rank(gram, hermitian=True) < len(gram):
        raise ParameterError(
            f"candidates must be fewer: the Bloom filters of the {hits.shape[1]} selected ones do not determine their "
            "counts; list fewer texts, or collect with more bits or cohorts"
        )
    # Counts are these weights times bits.
    weights = np.linalg.solve(gram, design.T.toarray())
    counts = weights @ cells.bits
    present = counts.clip(0.0)
    fitted = design @ present
    # The choice of cohorts: exact for listed texts, cohort by cohort; for unlisted ones bits count as independent.
    listed, listed_counts = weights[:-1], present[:-1]
    variances = listed**2 @ (cells.variances(fitted) + others * shares * present[-1]) - listed_counts
    for first in range(0, shares.size, width):
        cohort = slice(first, first + width)
        variances += shares[first] * (listed[:, cohort] @ hits[cohort]) ** 2 @ listed_counts
    residuals = cells.bits - design @ counts
    # The share of each error that remains in its residual. Where it is 0, so is the residual, up to rounding.
    left = (1.0 - np.einsum("ij,ji->j", weights, design.toarray())).clip(np.finfo(np.float64).eps)
    dispersion = residuals @ residuals / (left @ (cells.variances(fitted) + fitted))
    by_cohort = (listed * (residuals / np.sqrt(left))).reshape(len(listed), -1, width).sum(axis=2)
    cohorts = np.count_nonzero(shares[::width])
    between = np.square(by_cohort).sum(axis=1) * cohorts / max(cohorts - 1, 1) - listed_counts
    return counts[:-1], np.sqrt(np.maximum(variances * max(1.0, dispersion), between))


class Rappor(Protocol):
    """RAPPOR: counts of texts of an open domain, from people who are asked repeatedly.

    All reports of a person on one text together are epsilon-locally differentially private for the achieved
    ``epsilon``. A person belongs permanently to one of ``num_cohorts`` cohorts. The hash functions of the cohort choose
    the bits that are set in the Bloom filter of a text. The permanent round replaces each bit by a coin toss with
    probability f. For each report, a bit of the permanent row is reported as 1 with probability q if it is 1, and p if
    it is 0. The collector can estimate the counts of any texts afterwards.

    Parameters
    ----------
    num_bloombits : int
        The number of bits of a Bloom filter, a power of two from 8 to 2**20.
    num_hashes : int
        The number of hash functions of a cohort, from 1 to 16 and at most half of ``num_bloombits``. ``epsilon`` is
        proportional to it.
    num_cohorts : int
        The number of cohorts, from 1 to 65536; texts that share bits in some cohorts differ in others. The product of
        all three numbers is at most 2**24, and ``num_hashes * num_cohorts`` at most 65536.
    f : float
        The probability that the permanent round replaces a bit by a coin toss: between 0 and 1, both excluded.
    p : float
        The probability that a 0 of the permanent row is reported as 1: above 0 and below q.
    q : float
        The probability that a 1 of the permanent row is reported as 1: above p and below 1. The epsilons of f, p and q
        must be from 2**-20 to 32.

    Notes
    -----
    The letters are as in the paper: p belongs to a 0 and q to a 1. In other protocols, and in the specification, it is
    the other way round: there the exact probabilities of a 1 are ``permanent_p`` and ``instantaneous_p`` for a bit that
    is 1, and ``permanent_q`` and ``instantaneous_q`` for one that is 0.

    The probabilities are rounded in the private direction to few binary digits, which makes reports fast: ``epsilon``
    is at least 0.999 of the epsilon of the requested f, p and q, ``epsilon_first`` at least 0.998, and neither is
    above.

    All reports of a person on one text together are ``epsilon``-differentially private, with an epsilon of
    ``2 * num_hashes * ln((1 - f/2) / (f/2))``: each of two Bloom filters has at most ``num_hashes`` bits set that the
    other has not. Reports on m texts reveal up to m times as much, and may reveal *when* the text changed.

    References
    ----------
    Erlingsson, Pihur and Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> from dpnoise import local
    >>> rappor = local.Rappor(num_bloombits=16, num_hashes=2, num_cohorts=64, f=0.5, p=0.5, q=0.75)
    >>> round(rappor.epsilon, 3), round(rappor.epsilon_first, 3)
    (4.394, 1.074)
    >>> memo = local.ClientMemo.generate(3)
    >>> rappor.perturb(["apple", "pear", "apple"], memo, question="fruit").shape
    (3, 4)
    """

    __slots__ = ()
    _family = "rappor"

    def __init__(
        self, *, num_bloombits: Integer, num_hashes: Integer, num_cohorts: Integer, f: Number, p: Number, q: Number
    ) -> None:
        self._make(num_bloombits=num_bloombits, num_hashes=num_hashes, num_cohorts=num_cohorts, f=f, p=p, q=q)

    def _is_unlikely(self, state: _native.LocalAccumulator) -> bool:
        p, q = _both_rounds(self._specified())
        return are_unlikely_bits(state.counters()[0], self.num_bloombits, q, p)

    @property
    def num_bloombits(self) -> int:
        """The number of bits of a Bloom filter."""
        return self._native.k

    @property
    def num_hashes(self) -> int:
        """The number of hash functions of a cohort."""
        return int(self._specified()["num_hashes"])

    @property
    def num_cohorts(self) -> int:
        """The number of cohorts."""
        return int(self._specified()["num_cohorts"])

    @property
    def f(self) -> float:
        """The achieved probability that the permanent round replaces a bit by a coin toss."""
        return 2 * self._probability("permanent", "q")

    @property
    def p(self) -> float:
        """The achieved probability that a 0 of the permanent row is reported as 1."""
        return self._probability("instantaneous", "q")

    @property
    def q(self) -> float:
        """The achieved probability that a 1 of the permanent row is reported as 1."""
        return self._probability("instantaneous", "p")

    @property
    def requested_f(self) -> float:
        """The requested probability that the permanent round replaces a bit by a coin toss."""
        return float(self._specified()["prob_f"])

    @property
    def requested_p(self) -> float:
        """The requested probability that a 0 of the permanent row is reported as 1."""
        return float(self._specified()["prob_p"])

    @property
    def requested_q(self) -> float:
        """The requested probability that a 1 of the permanent row is reported as 1."""
        return float(self._specified()["prob_q"])

    @property
    def epsilon(self) -> float:
        """The epsilon of all reports on one text together, computed exactly and rounded up."""
        return self._native.epsilon

    @property
    def epsilon_first(self) -> float:
        """The epsilon of a single report, computed exactly and rounded up."""
        return self._native.epsilon_first

    def _probability(self, of_round: str, name: str) -> float:
        specified = self._specified()
        return math.ldexp(specified[f"{of_round}_{name}"], -specified[f"{of_round}_planes"])

    def perturb(  # type: ignore[override] # it takes a memo and a question, too
        self,
        values: Texts,
        memo: ClientMemo,
        *,
        question: str,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise texts, as each person's device does whenever it is asked, for any number of people at once.

        All reports that a person ever makes of one text, with the same memo, are together epsilon-locally
        differentially private for the achieved ``epsilon``. The time shows how many blocks of 64 bytes the texts have;
        given their fingerprints, time and memory addresses do not depend on texts, secrets or reports. Before that,
        Python encodes a str in a time that may depend on it; bytes are used as they are.

        Parameters
        ----------
        values : sequence of str or of bytes, or Arrow column of strings or binary
            A text for each person, of any length; a str stands for its bytes in UTF-8.
        memo : ClientMemo
            The memo of n people: ``values[i]`` is the text of person i.
        question : str
            The name of the question: the same whenever it is asked again, and a different one for every other question.
            Two spellings of a text are two names, so only Unicode's normal form NFC is taken. With one name for two
            questions, reports would reveal whether the answers are the same.
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
            A report for each person, as the wire format defines it.
        """
        return self._reports_of(memo, question, _inputs.fingerprints(values, "values"), out, threads, rng)

    def estimate(
        self,
        collected: Accumulator | Values,
        candidates: Texts,
        *,
        level: Number = 0.95,
        simultaneous: bool = False,
        threads: int | None = None,
    ) -> RapporEstimate:
        """Find which of the given texts people have, and how many people have each.

        The counts of bits are a linear function of the counts of texts, plus errors. A lasso selects texts, with
        non-negative counts and a penalty that errors alone rarely exceed; then the counts of the selected texts are
        estimated by least squares. Unlisted texts are estimated together, as one text that sets all bits alike. If the
        Bloom filter of an unlisted text happens to be similar to a candidate's filter, a part of its count is added to
        the candidate's, the same in every collection.

        Counts are unbiased for texts that are frequent enough to be selected every time. A rare text is selected only
        if its error is large and positive, so the counts of rare texts in the result are too large on average.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        candidates : sequence of str or of bytes, or Arrow column of strings or binary
            The texts to look for, all different.
        level : float, default 0.95
            The probability with which an interval holds, and with which no absent text is marked as significant:
            between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        RapporEstimate
            The candidates that were selected; none if no report was counted.

        Raises
        ------
        ParameterError
            When candidates have the same Bloom filters, or too many of them were selected to be told apart.
        """
        candidates = _inputs.readable_twice(candidates, "candidates")
        fingerprints = _inputs.fingerprints(candidates, "candidates")
        set_bits = np.empty((fingerprints.size, self.num_cohorts, self.num_hashes), np.int64)
        self._native.bloom_bits(fingerprints, set_bits)
        return decode(
            self._collected(collected, threads)._for_estimate(),
            self._specified(),
            set_bits,
            _inputs.as_list(candidates, "candidates"),
            level,
            simultaneous,
        )
