"""Protocols for one of k values whose reports are a bit, a number or a set."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import is_single, vector_of_booleans
from dpnoise._domain import codes
from dpnoise._draws import array_for
from dpnoise._errors import ParameterError
from dpnoise._types import Answer, Answers, Integer, Labels, Number, Rng, Values
from dpnoise.local import _inputs
from dpnoise.local._doubt import are_unlikely
from dpnoise.local._frequency import FrequencyProtocol
from dpnoise.local._unary_encoding import UnaryRows


class RandomizedResponse(FrequencyProtocol):
    """Randomised response: a yes or no, reported truthfully with probability ``p = exp(epsilon) / (exp(epsilon) + 1)``.

    A report is epsilon-locally differentially private. The variance per person of the count is
    ``exp(epsilon) / (exp(epsilon) - 1)**2``. In an estimate index 0 stands for no, and 1 for yes.

    Parameters
    ----------
    domain : sequence of str, int or bool, optional
        The two labels of the answers, no first and yes second, different and of one type; by default False and True.
        Never take it from the data.
    epsilon : float, optional
        The privacy parameter of one report, from 2**-20 to 32. Exactly one of ``epsilon`` and ``p`` is given. The
        probability of the truth is rounded down, to as few binary digits as keep 0.999 of epsilon: for ``log(4)`` it is
        0.79980.
    p : float or Fraction, optional
        The probability of the truth, between 1/2 and 1, both excluded; then ``epsilon = ln(p / (1 - p))``, rounded up,
        which must be from 2**-20 to 32. A float is used exactly, another number is rounded down to a float.

    References
    ----------
    Warner (1965), "Randomized response: a survey technique for eliminating evasive answer bias".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.RandomizedResponse.coin_flips()
    >>> protocol.p, round(protocol.epsilon, 6)
    (0.75, 1.098612)
    >>> local.RandomizedResponse(p=0.8).epsilon
    1.386294361119891
    """

    __slots__ = ()
    _family = "randomized_response"

    def __init__(self, *, domain: Labels | None = None, epsilon: Number | None = None, p: Number | None = None) -> None:
        if domain is not None and self._sized(None, domain) != 2:
            raise ParameterError(f"domain must have 2 values, for no and yes, got {len(self._domain or ())}")
        if p is None:
            if epsilon is None:
                raise TypeError("epsilon must be a number, got None: give either epsilon or p")
            self._make(epsilon=epsilon)
        elif epsilon is None:
            self._take(_native.LocalProtocol.randomized_response(p))
        else:
            raise ParameterError("either epsilon or p must be given, got both")

    @classmethod
    def coin_flips(cls) -> RandomizedResponse:
        """Make the two-coin form: heads, answer truthfully; tails, answer as a second coin says.

        It has ``p = 3/4``, ``q = 1/4`` and ``epsilon = ln 3``.
        """
        return cls(p=0.75)

    @overload  # type: ignore[override] # reports are booleans
    def perturb(  # type: ignore[overload-overlap] # NumPy's scalars have __array__, too
        self, values: Answer, *, threads: int | None = None, rng: Rng = None
    ) -> bool: ...
    @overload
    def perturb(
        self, values: Answers, *, out: NDArray[np.bool_] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[np.bool_]: ...
    def perturb(
        self, values: Answers, *, out: NDArray[np.bool_] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[np.bool_] | bool:
        """Randomise answers, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on answers or reports.

        Parameters
        ----------
        values : array of bool, shape (n,)
            The true answers, or a single one. With a domain, labels instead: looking them up does not take constant
            time.
        out : ndarray of bool, optional
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
        ndarray of bool, shape (n,), or bool
            A report for each person; a bool for a single answer, unless ``out`` takes it.
        """
        vector = self._vector(values)
        reports = array_for(vector.shape, out, np.bool_)
        self._native.perturb(vector, reports.view(np.uint8), threads, rng)
        return bool(reports[0]) if out is None and is_single(values) else reports

    def _arguments(self) -> dict[str, Any]:
        # An epsilon that p gives is achieved in full; one that was asked for hardly ever is.
        return {"p": self.p} if self.epsilon == self.requested_epsilon else super()._arguments()

    def _vector(self, values: Any) -> NDArray[np.uint8]:
        domain = self._domain
        return vector_of_booleans(values) if domain is None else codes(values, domain).astype(np.uint8)

    def _draw_supports(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        yes = super()._draw_supports(counts, generator)[1]
        return np.array([counts.sum() - yes, yes])

    def _rows(self, reports: Values) -> NDArray[np.uint8]:
        return _inputs.answers(reports)


class GeneralizedRandomizedResponse(FrequencyProtocol):
    """Generalised randomised response, also known as direct encoding: the true value or a random other one.

    A report is epsilon-locally differentially private: it is the true value with probability
    ``p = exp(epsilon) / (exp(epsilon) + k - 1)``, and each other value with probability
    ``q = 1 / (exp(epsilon) + k - 1)``. The variance per person of a rare value's count is
    ``(k - 2 + exp(epsilon)) / (exp(epsilon) - 1)**2``: smaller than for `OptimizedUnaryEncoding` for fewer than
    ``3 exp(epsilon) + 2`` values, and larger for more.

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

    Raises
    ------
    ParameterError
        When k and epsilon need probabilities of more than 62 binary digits, as many values with a small epsilon do;
        unary encoding is more accurate there anyway.

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

    def _draw_supports(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        # Each report counts for one value: the true one if it is kept, otherwise a uniform one of all k.
        kept = generator.binomial(counts, self.p - self.q)
        return kept + generator.multinomial(int(counts.sum() - kept.sum()), np.full(self.k, 1.0 / self.k))


class LocalHashing(FrequencyProtocol):
    """Local hashing: every person draws a hash function, and reports it with the randomised hash of their value.

    A report is epsilon-locally differentially private. With the default ``g`` this is optimised local hashing (OLH):
    the variance per person of a rare value's count is about ``4 exp(epsilon) / (exp(epsilon) - 1)**2``, as for
    `OptimizedUnaryEncoding`, but a report has a few bytes instead of k bits. Collecting takes time in the order of n k,
    or n + k**2 if that is less; with the same error `ProjectiveGeometryResponse` does without that.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**16: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    g : int, optional
        The number of hashes, from 2 to 2**16; when not given ``exp(epsilon) + 1``, rounded, but at most k.

    Notes
    -----
    The hash of v is ``floor(g x / P)`` with ``x = (a v + b) mod P``, where P is the smallest prime that is at least k
    and g; a and b are uniform from 0 to P - 1. So the probability that two values have the same hash is known exactly,
    and estimates are unbiased. A report is the number ``(a P + b) g + hash`` as little-endian bytes.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation";
    Carter and Wegman (1979), "Universal classes of hash functions".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LocalHashing(k=1024, epsilon=1.0)
    >>> protocol.g, protocol.report_bytes
    (4, 3)
    """

    __slots__ = ()
    _family = "local_hashing"

    def __init__(
        self, *, k: Integer | None = None, domain: Labels | None = None, epsilon: Number, g: Integer | None = None
    ) -> None:
        self._make(k=self._sized(k, domain), epsilon=epsilon, g=g)

    @property
    def g(self) -> int:
        """The number of hashes."""
        return int(self._specified()["g"])


class HadamardResponse(FrequencyProtocol):
    """Hadamard response: every person draws a column of a Hadamard matrix, and reports it with one randomised bit.

    A report is epsilon-locally differentially private. The variance per person of a rare value's count is about
    ``((exp(epsilon) + 1) / (exp(epsilon) - 1))**2``: close to the variance of `OptimizedUnaryEncoding` for epsilon up
    to 1, larger for more. A report has one to four bytes, and collecting takes time in the order of n + k log k.
    `ProjectiveGeometryResponse` is more accurate above an epsilon of 1, and takes longer to decode.

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

    Notes
    -----
    The order of the matrix is the smallest power of two K >= k. The entry in row v and column j is the parity of the
    binary digits that v and j share, 1 for -1. A report is the number ``2 j + entry`` as little-endian bytes.

    References
    ----------
    Bassily and Smith (2015), "Local, private, efficient protocols for succinct histograms". (The protocols of Acharya,
    Sun and Zhang (2019), "Hadamard response", differ: they send only an index, and are better at a large epsilon.)

    Examples
    --------
    >>> from dpnoise import local
    >>> local.HadamardResponse(k=1024, epsilon=1.0).report_bytes
    2
    """

    __slots__ = ()
    _family = "hadamard_response"


class ProjectiveGeometryResponse(FrequencyProtocol):
    """Projective geometry response: a point of a projective space, on the value's hyperplane more often than by chance.

    A report is epsilon-locally differentially private. The variance per person of a rare value's count is about
    ``4 exp(epsilon) / (exp(epsilon) - 1)**2``, that of `SubsetSelection` and `OptimizedUnaryEncoding`. A report has one
    to four bytes, and collecting takes time in the order of ``n + K + k q t``: the choice for many values.

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
    prime : int, optional
        The prime number q of elements of the field; when not given a prime near ``exp(epsilon) + 1``, which has the
        smallest variance, or another one if the space would have many more points than there are values. The space has
        at most 2**27 points, and at most four times as many as by default.

    Notes
    -----
    The space is the smallest over q elements that has k points; each has ``dimension`` t coordinates, and there are
    ``K = (q**t - 1) / (q - 1)`` of them. With a probability of ``keep / 2**planes`` a report is a uniform one of the
    ``c = (q**(t - 1) - 1) / (q - 1)`` points on the hyperplane of its sender's value, otherwise a uniform one of all.
    It counts for all values whose hyperplane it is on. With ``t = 2``, for few values, this is
    `GeneralizedRandomizedResponse` over ``q + 1`` values, of which k are used. A report is the number of a point as
    little-endian bytes. `Accumulator` has a counter of 8 bytes for each point: ``prime`` can trade accuracy for memory
    where an epsilon above 5 makes K large.

    References
    ----------
    Feldman, Nelson, Nguyen and Talwar (2022), "Private frequency estimation via projective geometry".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.ProjectiveGeometryResponse(k=1_000_000, epsilon=3.0)
    >>> protocol.prime, protocol.dimension, protocol.report_bytes
    (19, 6, 3)
    """

    __slots__ = ()
    _family = "projective_geometry_response"

    def __init__(
        self, *, k: Integer | None = None, domain: Labels | None = None, epsilon: Number, prime: Integer | None = None
    ) -> None:
        self._make(k=self._sized(k, domain), epsilon=epsilon, prime=prime)

    def _is_unlikely(self, state: _native.LocalAccumulator) -> bool:
        (counts, _, people, _), n = state.estimate()  # counters are of points, and not of values
        return are_unlikely(n * (self.q + counts / people * (self.p - self.q)), n, self.q, self.p)

    @property
    def prime(self) -> int:
        """The number q of elements of the field."""
        return int(self._specified()["prime"])

    @property
    def dimension(self) -> int:
        """The number t of coordinates of a point."""
        return int(self._specified()["dimension"])


class SubsetSelection(FrequencyProtocol):
    """Subset selection: a random set of ``omega`` values, which contains the sender's more often than by chance.

    A report is epsilon-locally differentially private. With the default ``omega`` the squared error of all counts
    together is nearly the smallest possible, a little below the error of the other protocols. With ``omega = 1`` it is
    `GeneralizedRandomizedResponse`. A client takes time in the order of k.

    Parameters
    ----------
    k : int, optional
        The number of possible values, from 2 to 2**16: they are the numbers from 0 to k - 1. Exactly one of ``k`` and
        ``domain`` is given.
    domain : sequence of str, int or bool, optional
        The labels of the categories, all different and of one type; a pandas `Categorical`, a polars `Enum` or an Arrow
        dictionary stands for its categories. Never take it from the data.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    omega : int, optional
        The size of the set, from 1 to k - 1; when not given ``k / (exp(epsilon) + 1)``, rounded, but at least 1.

    Notes
    -----
    The set contains the sender's value with probability
    ``p = omega exp(epsilon) / (omega exp(epsilon) + k - omega)``. It is uniform among all sets that contain the value,
    otherwise among all that do not. A report has k bits, packed least significant first, of which ``omega`` are set.

    References
    ----------
    Ye and Barg (2018), "Optimal schemes for discrete distribution estimation under locally differential privacy"; Wang,
    Huang, Wang et al. (2016), "Mutual information optimally local private discrete distribution estimation".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SubsetSelection(k=15, epsilon=1.0)
    >>> protocol.omega, protocol.report_bytes
    (4, 2)
    """

    __slots__ = ()
    _family = "subset_selection"
    bits = UnaryRows.bits
    estimate_from_sums = UnaryRows.estimate_from_sums

    def __init__(
        self, *, k: Integer | None = None, domain: Labels | None = None, epsilon: Number, omega: Integer | None = None
    ) -> None:
        self._make(k=self._sized(k, domain), epsilon=epsilon, omega=omega)

    @property
    def omega(self) -> int:
        """The size of a set."""
        return int(self._specified()["omega"])
