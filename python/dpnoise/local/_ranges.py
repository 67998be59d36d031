"""Hierarchical ranges: how many people have a value in a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._display import Column, Tabular
from dpnoise._domain import codes
from dpnoise._numbers import checked_level
from dpnoise._types import Integer, Integers, Number, Rng, Values
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._doubt import are_unlikely_entries
from dpnoise.local._estimate import CountEstimate, normal_quantile
from dpnoise.local._protocol import Protocol


@dataclass(frozen=True, eq=False, repr=False)
class RangeEstimate(Tabular):
    """How many people have each value and each range of values, estimated from their reports.

    As a table it has the columns value (int64) and count (float64).

    Attributes
    ----------
    counts : ndarray of float64, shape (k,)
        An unbiased estimate for each value. The estimates sum to n.
    n : int
        The number of reports counted; for an attribute of `Sampled`, the number of reports about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The probability with which the interval of a range holds.
    """

    _ranges: _native.LocalRanges
    n: int
    rejected: int
    level: float

    def __post_init__(self) -> None:
        normal_quantile(self.level)  # checks the level

    @property
    def counts(self) -> NDArray[np.float64]:
        """An unbiased estimate for each value."""
        counts = self._ranges.counts
        counts.flags.writeable = False
        return counts

    def range(self, first: Integer, last: Integer) -> CountEstimate:
        """Estimate how many people have a value from ``first`` to ``last``.

        Parameters
        ----------
        first, last : int
            Two values, both included, with 0 <= first <= last < k.

        Returns
        -------
        CountEstimate
            The count of the range, with its interval by the normal approximation.
        """
        count, error = self._ranges.range(first, last)
        margin = normal_quantile(self.level) * error
        return CountEstimate(count, error, count - margin, count + margin)

    def quantile(self, q: Number) -> int:
        """Estimate the smallest value that a share q of all people do not exceed.

        Parameters
        ----------
        q : float
            The share of people, from 0 to 1; 0.5 for the median.

        Returns
        -------
        int
            A value from 0 to k - 1: the first at which the estimated cumulative share, made monotone by its running
            maximum, reaches q.
        """
        return self._ranges.quantile(q)

    def _columns(self) -> dict[str, Column]:
        return {"value": np.arange(self._ranges.k), "count": self.counts}


class HierarchicalRange(Protocol):
    """Hierarchical ranges: a Hadamard response about the node of a tree above a value, on a random level.

    A report is epsilon-locally differentially private. The protocol is for values that have an order: ages, incomes,
    times. The k values are the leaves of a tree. Everybody reports the node on one random level. A range of values is a
    union of few nodes, so its standard error grows with the logarithm of its length. With a protocol for single values
    it would grow with the square root.

    Parameters
    ----------
    k : int
        The number of possible values, from 2 to 2**20, in their order.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    branching : int, default 4
        The number of children of a node, a power of two from 2 to 1024. 4 is near the optimum over ranges of all
        lengths.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2019), "Answering range queries under local differential privacy", section 4.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.HierarchicalRange(k=100, epsilon=2.0)
    >>> ages = [23, 41, 38, 67] * 25_000
    >>> estimate = protocol.estimate(protocol.perturb(ages))
    >>> abs(estimate.range(30, 49).count - 50_000) < 10_000
    True
    """

    __slots__ = ()
    _family = "hierarchical_range"

    def __init__(self, *, k: Integer, epsilon: Number, branching: Integer = 4) -> None:
        self._make(k=k, epsilon=epsilon, branching=branching)

    def _is_unlikely(self, state: _native.LocalAccumulator) -> bool:
        return are_unlikely_entries(state.counters()[0], self._specified())

    @property
    def branching(self) -> int:
        """The number of children of a node."""
        return int(self._specified()["branching"])

    @property
    def k(self) -> int:
        """The number of possible values."""
        return self._native.k

    def perturb(
        self, values: Integers, *, out: NDArray[np.uint8] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[np.uint8]:
        """Randomise values, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on values or reports.

        Parameters
        ----------
        values : array of integers in [0, k), shape (n,)
            A value for each person: an array of any integer dtype, a list of ints, or a single int.
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
            A report for each person; one row for a single value. It is a number in little-endian
            bytes.
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[np.int64]:
        return codes(values, None)

    def estimate(
        self, collected: Accumulator | Values, *, level: Number = 0.95, threads: int | None = None
    ) -> RangeEstimate:
        """Estimate how many people have each value, and a value in any range.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        level : float, default 0.95
            The probability with which the interval of a range holds: between 0 and 1, both excluded.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        RangeEstimate
            The counts, unbiased and zeros when no report was counted. They are computed from all levels by weighted
            least squares, so that children's counts sum to their parent's.

        References
        ----------
        Hay, Rastogi, Miklau and Suciu (2010), "Boosting the accuracy of differentially private histograms through
        consistency", section 4.2; here with levels of different accuracy.
        """
        ranges, n, rejected = self._collected(collected, threads)._for_estimate().estimate_ranges()
        return RangeEstimate(ranges, n, rejected, checked_level(level))
