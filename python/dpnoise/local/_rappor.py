"""RAPPOR: Bloom filters of texts, randomised permanently, and again for each report."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpnoise._interchange import Texts, Values
from dpnoise._parameters import Rng
from dpnoise.local import _bloom_decoding, _texts
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._bloom_decoding import RapporEstimate
from dpnoise.local._memo import ClientMemo
from dpnoise.local._protocol import Protocol


class Rappor(Protocol):
    """RAPPOR: counts of texts of an open domain, from people who are asked repeatedly.

    A person belongs permanently to one of ``num_cohorts`` cohorts. The hash functions of the cohort choose the bits
    that are set in the Bloom filter of a text. The permanent round replaces each bit by a coin toss with probability f.
    For each report, a bit of the permanent row is reported as 1 with probability q if it is 1, and p if it is 0. The
    collector can estimate the counts of any texts afterwards.

    Parameters
    ----------
    num_bloombits : int
        The number of bits of a Bloom filter, a power of two from 8 to 2**20.
    num_hashes : int
        The number of hash functions of a cohort, from 1 to 16 and at most half of ``num_bloombits``. ``epsilon`` is
        proportional to it.
    num_cohorts : int
        The number of cohorts, from 1 to 65536; texts that share bits in some cohorts differ in others. The product of
        all three numbers is at most 2**24.
    f : float
        The probability that the permanent round replaces a bit by a coin toss.
    p : float
        The probability that a 0 of the permanent row is reported as 1.
    q : float
        The probability that a 1 of the permanent row is reported as 1, above p. The epsilons of f, p and q must be from
        2**-20 to 32.

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

    def __init__(self, *, num_bloombits: int, num_hashes: int, num_cohorts: int, f: float, p: float, q: float) -> None:
        self._make(num_bloombits=num_bloombits, num_hashes=num_hashes, num_cohorts=num_cohorts, f=f, p=p, q=q)

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

    def perturb(
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
            The name of the question, as for `LongitudinalProtocol.perturb`.
        rng : as for `LongitudinalProtocol.perturb`
        out, threads : as everywhere

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
        """
        return self._reports_of(memo, question, _texts.fingerprints(values, "values"), out, threads, rng)

    def estimate(
        self,
        collected: Accumulator | Values,
        candidates: Texts,
        *,
        level: float = 0.95,
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
            An accumulator of this protocol, or its reports.
        candidates : sequence of str or of bytes, or Arrow column of strings or binary
            The texts to look for, all different.
        level : float
            The confidence level of the intervals, and of the marks of significance together; between 0 and 1.
        simultaneous, threads : as everywhere

        Returns
        -------
        RapporEstimate
            The candidates that were selected; none if no report was counted.

        Raises
        ------
        ParameterError
            When candidates have the same Bloom filters, or too many of them were selected to be told apart.
        """
        candidates = _texts.readable_twice(candidates, "candidates")
        fingerprints = _texts.fingerprints(candidates, "candidates")
        set_bits = np.empty((fingerprints.size, self.num_cohorts, self.num_hashes), np.int64)
        self._native.bloom_bits(fingerprints, set_bits)
        return _bloom_decoding.decode(
            self._collected(collected, threads)._state,
            self._specified(),
            set_bits,
            _texts.as_list(candidates, "candidates"),
            level,
            simultaneous,
        )
