"""RAPPOR: Bloom filters of texts, randomised once and for ever, and again for each report."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._interchange import Values
from dpnoise.local import _bloom_decoding, _texts
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._bloom_decoding import RapporEstimate
from dpnoise.local._memo import ClientMemo
from dpnoise.local._protocol import Protocol, Rng


class Rappor(Protocol):
    """RAPPOR: counts of texts of an open domain, from people who are asked again and again.

    A person is in one of ``num_cohorts`` cohorts for ever. The Bloom filter of a text has the bits set that the hash
    functions of the cohort give it. Each bit of it is replaced by a coin toss with probability f, once and for ever;
    and for each report a bit of that permanent row is told as 1 with probability q if it is 1, and p if it is 0. The
    collector asks afterwards for the counts of any texts.

    Parameters
    ----------
    num_bloombits : int
        The number of bits of a Bloom filter, a power of two from 8 to 2**20.
    num_hashes : int
        The number of hash functions of a cohort, from 1 to 16 and at most half of ``num_bloombits``. ``epsilon`` is
        proportional to it.
    num_cohorts : int
        The number of cohorts, from 1 to 65536; more of them tell texts apart that share bits in some. All three
        multiplied are at most 2**24.
    f : float
        The probability that the permanent round replaces a bit by a coin toss.
    p : float
        The probability that a 0 of the permanent row is told as 1.
    q : float
        The probability that a 1 of the permanent row is told as 1, above p.

    Raises
    ------
    ParameterError
        When a parameter is out of range, one of the epsilons is not from 2**-20 to 32, or the probabilities ask for
        more than 62 binary digits.

    Notes
    -----
    The letters are those of the paper: p is of a 0 and q of a 1, the other way round than the p and q of other
    protocols, and of the specification, where the exact probabilities of a 1 are ``permanent_p`` and
    ``instantaneous_p`` of a bit that is 1, and ``permanent_q`` and ``instantaneous_q`` of one that is 0.

    The probabilities are rounded towards privacy to so few binary digits that reports are made fast: ``epsilon`` is at
    least 0.999 of that of the f, p and q that were requested, ``epsilon_first`` at least 0.998, and neither is above.

    All reports of a person on one text together are ``epsilon``-differentially private: the Bloom filters of two texts
    differ in at most ``num_hashes`` bits set here and as many set there, so that it is
    ``2 * num_hashes * ln((1 - f/2) / (f/2))``. Reports on m texts tell up to m times as much, and they may show *when*
    the text changed.

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
    _parameters = ("num_bloombits", "num_hashes", "num_cohorts", "requested_f", "requested_p", "requested_q")

    def __init__(self, *, num_bloombits: int, num_hashes: int, num_cohorts: int, f: float, p: float, q: float) -> None:
        self._native = _native.LocalProtocol.rappor(num_bloombits, num_hashes, num_cohorts, f, p, q)

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
        """The probability, as it is achieved, that the permanent round replaces a bit by a coin toss."""
        return 2 * self._probability("permanent", "q")

    @property
    def p(self) -> float:
        """The probability, as it is achieved, that a 0 of the permanent row is told as 1."""
        return self._probability("instantaneous", "q")

    @property
    def q(self) -> float:
        """The probability, as it is achieved, that a 1 of the permanent row is told as 1."""
        return self._probability("instantaneous", "p")

    @property
    def requested_f(self) -> float:
        """The probability, as it was given, that the permanent round replaces a bit by a coin toss."""
        return float(self._specified()["prob_f"])

    @property
    def requested_p(self) -> float:
        """The probability, as it was given, that a 0 of the permanent row is told as 1."""
        return float(self._specified()["prob_p"])

    @property
    def requested_q(self) -> float:
        """The probability, as it was given, that a 1 of the permanent row is told as 1."""
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
        values: Values,
        memo: ClientMemo,
        *,
        question: str,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise texts: what each person's device does each time it is asked, for any number of people at once.

        All reports that a person ever makes of one text, with the same memo, are together epsilon-locally
        differentially private for the achieved ``epsilon``. The time shows how many blocks of 64 bytes the texts have;
        given their fingerprints, time and memory addresses do not depend on texts, secrets or reports. (What Python
        needs to encode a str is its own affair: bytes are taken as they are.)

        Parameters
        ----------
        values : sequence of str or of bytes, or Arrow column of strings or binary
            A text for each person, of any length; a str stands for its bytes in UTF-8.
        memo : ClientMemo
            Of as many people: ``values[i]`` is that of person i of the memo.
        question : str
            The name of what is asked, always the same when it is asked again, and another for any other question. What
            is permanent in the answers to two questions is independent then. With one name for both, reports would tell
            whether the answers are the same.
        out : ndarray of uint8, shape (n, report_bytes), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only. Its words are used in order on one thread, whatever ``threads`` says. What is permanent
            comes from the memo all the same.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)

        Raises
        ------
        ParameterError
            When a text is no Unicode (it is not said which), the memo is of another number of people, or ``out`` does
            not fit; nothing has been drawn then.
        TypeError
            When the values are not texts, ``memo`` is not a `ClientMemo`, or ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` is zero then.
        """
        return self._reports_of(memo, question, _texts.fingerprints(values, "values"), out, threads, rng)

    def estimate(
        self,
        collected: Accumulator | Values,
        candidates: Values,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int | None = None,
    ) -> RapporEstimate:
        """Find which of some texts people have, and how many people have each.

        The counts of bits are a linear function of the counts of texts, and errors. Texts are selected by a lasso, with
        counts that are not negative and a penalty that errors alone rarely exceed; then those that are selected are
        estimated by least squares. Texts that are not among the candidates are estimated together, as one that sets all
        bits alike. Where a Bloom filter of one of them happens to be much like that of a candidate, its count is added
        in part: the same way in every collection.

        Counts are unbiased for texts that are frequent enough to be selected every time. A rare one is selected when
        its errors are large and positive, so that the counts of rare texts in the list are too large on average.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            Of this protocol.
        candidates : sequence of str or of bytes, or Arrow column of strings or binary
            The texts to look for, all different.
        level : float
            The confidence level of the intervals, and of all texts together that are marked as significant; between 0
            and 1.
        simultaneous : bool
            Whether all intervals together shall hold at that level (Bonferroni), rather than each by itself.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        RapporEstimate
            Of the candidates that were selected. None are when no report was counted.

        Raises
        ------
        ParameterError
            When ``level`` is not between 0 and 1, what was collected is of another protocol, or candidates
            have the same Bloom filters, or too many of them were selected to be told apart.
        TypeError
            When the candidates are not texts.
        ImportError
            When scipy is not installed: it comes with ``dpnoise[decode]``.
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
