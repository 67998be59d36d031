"""Protocols for open domains: sketches for texts, prefix extension for large numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import vector_of_integers
from dpnoise._native import LocalAccumulator
from dpnoise._types import Integer, Integers, Number, Rng, Texts, Values
from dpnoise.local import _inputs
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._doubt import are_unlikely_bits, are_unlikely_entries
from dpnoise.local._estimate import EstimateTable, intervals, normal_quantile, spread_over
from dpnoise.local._protocol import Protocol


class Sketch(Protocol):
    """A protocol for texts of an open domain: the collector names candidates when it estimates."""

    __slots__ = ()

    @property
    def rows(self) -> int:
        """The number of rows of the collector's table, each with a hash function of its own."""
        return int(self._specified()["rows"])

    @property
    def width(self) -> int:
        """The number of columns of the collector's table."""
        return self._native.k

    @property
    def seed(self) -> int:
        """The number from which the hash functions are derived."""
        return int(self._specified()["seed"])

    def perturb(
        self, values: Texts, *, out: NDArray[np.uint8] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[np.uint8]:
        """Randomise texts, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. The time shows how many blocks of 64 bytes the texts have; given their fingerprints, time and memory
        addresses do not depend on texts or reports. Before that, Python encodes a str in a time that may depend on it;
        bytes are used as they are.

        Parameters
        ----------
        values : sequence of str or of bytes, or Arrow column of strings or binary
            A text for each person, of any length; a str stands for its bytes in UTF-8.
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
            A report for each person, as the wire format defines it.

        Raises
        ------
        ParameterError
            When a text is not Unicode.
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[np.int64]:
        return _inputs.fingerprints(values, "values")

    def _limits(self) -> tuple[float, float]:
        return -(2**63), 2**63 - 1

    def estimate(
        self,
        collected: Accumulator | Values,
        candidates: Texts,
        *,
        level: Number = 0.95,
        simultaneous: bool = False,
        threads: int | None = None,
    ) -> SketchEstimate:
        """Estimate how many people have each of the given texts.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        candidates : sequence of str or of bytes, or Arrow column of strings or binary
            The texts to look for. They need not have been known before the collection.
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        SketchEstimate
            The counts of the candidates with their intervals; zeros when no report was counted.
        """
        candidates = _inputs.readable_twice(candidates, "candidates")
        fingerprints = _inputs.fingerprints(candidates, "candidates")
        quantile = normal_quantile(level, spread_over(max(fingerprints.size, 1), simultaneous))
        state = self._collected(collected, threads)._for_estimate()
        counts, standard_errors, n, rejected = state.estimate_candidates(fingerprints)
        lower, upper = intervals(counts, standard_errors, quantile)
        texts = _inputs.as_list(candidates, "candidates")
        return SketchEstimate(texts, counts, standard_errors, lower, upper, n, rejected, float(level), simultaneous)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SketchEstimate(EstimateTable):
    """How many people have each of the given texts, estimated from their reports.

    As a table it has the columns value, count, standard_error, lower and upper (float64).

    Attributes
    ----------
    candidates : list of str or of bytes
        The texts that were looked for, in the order in which they were given.
    counts : ndarray of float64
        An estimate for each text, unbiased over the reports and over the hash functions of a random seed.
    standard_errors : ndarray of float64
        The standard deviation of each count over the randomisation and over collisions with other texts in a column.
        Collisions are the same in every collection with the same seed, so averaging over collections does not reduce
        their error; more rows and columns do.
    lower, upper : ndarray of float64
        The ends of the confidence intervals, by the normal approximation.
    n : int
        The number of reports counted; for an attribute of `Sampled`, the number of reports about all attributes.
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
    n: int
    rejected: int
    level: float
    simultaneous: bool

    def _values(self) -> list[Any]:
        return self.candidates


class CountMeanSketch(Sketch):
    """Counts of texts of an open domain, from reports of ``width`` bits.

    A report is epsilon-locally differentially private. Every person draws a row of the collector's table, finds the
    column that the row's hash function gives their text, and reports the row and one randomised bit for each column.
    The collector can estimate the counts of any texts afterwards. The variance of a count is the variance of
    `SymmetricUnaryEncoding`, plus the variance from collisions of texts in a column.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    rows : int
        How many hash functions there are, from 1 to 65536. More of them average out more of the collisions of texts in
        a column, and cost only the collector's memory. With fewer rows than columns such collisions are rare and large,
        and intervals of candidates beside very frequent texts are too short.
    width : int
        How many columns there are, a power of two from 8 to 2**20, with ``rows * width`` at most 2**24.
    seed : int, default 0
        A public number from 0 to 2**32 - 1, from which the hash functions are derived.

    Notes
    -----
    The hash functions are defined in the documentation of the wire format. A report is the number of the row in 2
    little-endian bytes, then the bits, least significant first.

    References
    ----------
    Differential Privacy Team, Apple (2017), "Learning with privacy at scale", algorithms 1, 2 and 5.

    Examples
    --------
    >>> from dpnoise import local
    >>> sketch = local.CountMeanSketch(epsilon=4.0, rows=64, width=256)
    >>> reports = sketch.perturb(["apple", "pear", "apple"])
    >>> estimate = sketch.estimate(reports, candidates=["apple", "plum"])
    >>> estimate.counts.shape
    (2,)
    """

    __slots__ = ()
    _family = "count_mean_sketch"

    def __init__(self, *, epsilon: Number, rows: Integer, width: Integer, seed: Integer = 0) -> None:
        self._make(epsilon=epsilon, rows=rows, width=width, seed=seed)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        fields = self._specified()
        q, p = (fields[name] / 2 ** fields["planes"] for name in "qp")
        return are_unlikely_bits(state.counters()[0], self.width, q, p)


class HadamardCountMeanSketch(Sketch):
    """Counts of texts of an open domain, from reports of one randomised bit and a public number.

    A report is epsilon-locally differentially private. Every person draws a row of the collector's table and a column
    of a Hadamard matrix, finds the column of the table that the row's hash function gives their text, and reports that
    entry of the matrix as one randomised bit. A report has up to 4 bytes. The variance is close to the variance of
    `CountMeanSketch` for epsilon up to 1, and larger beyond.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    rows : int
        How many hash functions there are, from 1 to 65536. More of them average out more of the collisions of texts in
        a column, and cost only the collector's memory. With fewer rows than columns such collisions are rare and large,
        and intervals of candidates beside very frequent texts are too short.
    width : int
        How many columns there are, a power of two from 8 to 2**20, with ``rows * width`` at most 2**24.
    seed : int, default 0
        A public number from 0 to 2**32 - 1, from which the hash functions are derived.

    Notes
    -----
    The hash functions are defined in the documentation of the wire format. A report is the number
    ``2 (row * width + column) + entry`` as little-endian bytes.

    References
    ----------
    Differential Privacy Team, Apple (2017), "Learning with privacy at scale", algorithms 3, 4 and 5.

    Examples
    --------
    >>> from dpnoise import local
    >>> local.HadamardCountMeanSketch(epsilon=1.0, rows=1024, width=1024).report_bytes
    3
    """

    __slots__ = ()
    _family = "hadamard_count_mean_sketch"

    def __init__(self, *, epsilon: Number, rows: Integer, width: Integer, seed: Integer = 0) -> None:
        self._make(epsilon=epsilon, rows=rows, width=width, seed=seed)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        return are_unlikely_entries(state.counters()[0], self._specified())


class PrefixExtension(Protocol):
    r"""Frequent values ("heavy hitters") of up to 2**63 possible ones, from reports of one randomised bit.

    A report is epsilon-locally differentially private. Every person draws a length and reports the prefix of their
    value of that length as `HadamardCountMeanSketch` does, with the whole epsilon. The collector looks for frequent
    prefixes of up to ``step`` binary digits, extends them in all ways by ``step`` more, keeps those that are frequent,
    and so on.

    Parameters
    ----------
    bits : int
        The binary digits of a value, from 1 to 63. A text of up to 7 bytes is such a number:
        ``int.from_bytes(text.ljust(7, b"\0"), "big")``.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    step : int, default 8
        How many binary digits longer each prefix is than the one before, from 1 to 16. The reports are shared among
        ``ceil(bits / step)`` lengths, so a larger step means less noise; the collector tries ``2**step`` extensions of
        each frequent prefix.
    rows : int
        How many hash functions each length has, from 1 to 65536. With fewer rows than columns a frequent value adds by
        collisions to the counts of a few others, which may be found, too.
    width : int
        How many columns the table of each length has, a power of two from 8 to 2**20. All tables together have at most
        2**24 cells.
    seed : int, default 0
        A public number from 0 to 2**32 - 1, from which the hash functions are derived.

    Notes
    -----
    The memory of the collector is 16 bytes for each cell of the tables, however many reports there are. A report is a
    number as little-endian bytes; the documentation of the wire format defines it.

    References
    ----------
    Wang, Li and Jha (2018), "Locally differentially private heavy hitter identification"; Bassily, Nissim, Stemmer and
    Thakurta (2017), "Practical locally private heavy hitters".

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import local
    >>> protocol = local.PrefixExtension(bits=32, epsilon=4.0, step=8, rows=512, width=256)
    >>> values = np.repeat([123456789, 987654321], [40_000, 20_000])
    >>> found = protocol.estimate(protocol.perturb(values), level=1 - 1e-9)
    >>> found.values.tolist()
    [123456789, 987654321]
    """

    __slots__ = ()
    _family = "prefix_extension"

    def __init__(
        self, *, bits: Integer, epsilon: Number, step: Integer = 8, rows: Integer, width: Integer, seed: Integer = 0
    ) -> None:
        self._make(epsilon=epsilon, bits=bits, step=step, rows=rows, width=width, seed=seed)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        return are_unlikely_entries(state.counters()[0], self._specified())

    @property
    def bits(self) -> int:
        """The binary digits of a value."""
        return int(self._specified()["bits"])

    @property
    def step(self) -> int:
        """The number of binary digits by which prefixes grow."""
        return int(self._specified()["step"])

    @property
    def rows(self) -> int:
        """The number of rows of each table."""
        return int(self._specified()["rows"])

    @property
    def width(self) -> int:
        """The number of columns of each table."""
        return self._native.k

    @property
    def seed(self) -> int:
        """The number from which the hash functions are derived."""
        return int(self._specified()["seed"])

    def perturb(
        self, values: Integers, *, out: NDArray[np.uint8] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[np.uint8]:
        """Randomise values, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on values or reports.

        Parameters
        ----------
        values : array of integers in [0, 2**bits), shape (n,)
            A value for each person: an array of any integer dtype, or a list of ints.
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
            A report for each person: a number in little-endian bytes.
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[np.int64]:
        return vector_of_integers(values)

    def _limits(self) -> tuple[float, float]:
        return 0, 2**self.bits - 1

    def estimate(
        self, collected: Accumulator | Values, *, level: Number = 0.95, threads: int | None = None
    ) -> HeavyHitters:
        """Find frequent values and estimate how many people have them.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        level : float, default 0.95
            The probability with which all intervals of prefixes of one length hold together: between 0 and 1, both
            excluded. A prefix is extended, and a value is in the result, if the lower end of its interval is above
            zero.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        HeavyHitters
            The frequent values, the most frequent first.

        Notes
        -----
        By the normal approximation, the result contains any absent value with a probability of at most ``1 - level``:
        nobody reports both a whole value and a prefix, so the choice of the values that are
        tested last does not depend on their reports. The approximation is good where a collision is small compared with
        the noise, and poor where many people report: with the parameters of the example, ``level`` 0.95 and a few
        frequent values, about 3 % of the lists of 60,000 people were wrong, 12 % of 600,000 and 32 % of 6,000,000. More
        rows help. A frequent value is missed if at some length its prefix is not significant. At most 2**20 prefixes of
        a length are tried: the extensions of the most frequent ones.
        """
        state = self._collected(collected, threads)._for_estimate()
        values, estimated, quantile, tested, complete = state.estimate_prefixes(level)
        counts, standard_errors, n, rejected = estimated
        lower, upper = intervals(counts, standard_errors, quantile)
        values.flags.writeable = False
        return HeavyHitters(values, counts, standard_errors, lower, upper, n, rejected, float(level), tested, complete)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class HeavyHitters(EstimateTable):
    """Frequent values, the most frequent first.

    As a table it has the columns value (int64), count, standard_error, lower and upper (float64).

    Attributes
    ----------
    values : ndarray of int64
        The frequent values.
    counts : ndarray of float64
        How many people have each value, estimated from the people who reported a whole value.
    standard_errors : ndarray of float64
        The standard deviation of each count over randomisation, hash functions and the choice of who reports a whole
        value.
    lower, upper : ndarray of float64
        The ends of the confidence intervals by the normal approximation. They hold together for all values that were
        tested, in the result or not (Bonferroni). Counts that just passed the test are too large on average.
    n : int
        The number of reports counted; for an attribute of `Sampled`, the number of reports about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The probability with which all intervals hold together.
    tested : int
        How many values were tested.
    complete : bool
        Whether all significant prefixes were extended. If not, there were more significant prefixes than can be tried:
        reports were crafted, or the tables are too small.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n: int
    rejected: int
    level: float
    tested: int
    complete: bool

    def _values(self) -> NDArray[np.int64]:
        return self.values
