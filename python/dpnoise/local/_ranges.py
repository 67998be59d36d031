"""Hierarchical ranges: how many people have a value in a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._display import Column
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._parameters import integer, real
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._estimate import CountEstimate, Tabular, normal_quantile
from dpnoise.local._protocol import OfValues

Floats = NDArray[np.float64]

_NOBODY = 1e-9
"""The weight of a level without reports, which carries no information."""


class Level(NamedTuple):
    """The nodes of a level: for each, an estimate of how many of the people who reported on the level are under it."""

    counts: Floats
    n: int


class Tree:
    """The shares of all nodes, by weighted least squares under the condition that children sum to their parent.

    Two passes (Hay et al. 2010): upwards, each node's own share is averaged with the sum of its children's, weighted by
    precision; downwards, the difference between a parent and the sum of its children is distributed by variance. The
    root is 1.

    Variances are in multiples of ``spread**2``, which bounds the variance of a report. The variance of a sum of nodes
    of a level is at most what it would be if they were independent (docs/proofs/hierarchical_ranges.md).
    """

    def __init__(self, levels: list[Level], branching: int, spread: float) -> None:
        self._spread = spread
        self._n = [max(level.n, _NOBODY) for level in levels]
        own = [np.divide(level.counts, n) for level, n in zip(levels, self._n, strict=True)]
        self._branchings = [own[0].size] + [branching] * (len(levels) - 1)
        # For every level: the variances of nodes after the first pass, and the weights of their own shares in it.
        self._variances: list[Floats] = [np.empty(0)] * len(levels)
        self._own_weights: list[Floats] = [np.empty(0)] * len(levels)
        averaged: list[Floats] = [np.empty(0)] * len(levels)
        for i in reversed(range(len(levels))):
            n = self._n[i]
            if i + 1 == len(levels):
                precision, of_children = np.full(own[i].size, float(n)), np.zeros(own[i].size)
            else:
                of_children = self._families(averaged[i + 1], i + 1).sum(axis=1)
                precision = n + 1 / self._families(self._variances[i + 1], i + 1).sum(axis=1)
            self._variances[i] = 1 / precision
            self._own_weights[i] = n / precision
            averaged[i] = self._own_weights[i] * own[i] + (1 - self._own_weights[i]) * of_children
        parents = np.ones(1)
        for i, shares in enumerate(averaged):
            lacking = parents - self._families(shares, i).sum(axis=1)
            parents = shares + self._flat(self._parts(i) * lacking[:, None], i)
        self.shares: Floats = parents

    def variance(self, weights: Floats) -> float:
        """Give an upper bound on the variance of a sum of leaf shares with these weights."""
        own: list[Floats] = []
        for i in reversed(range(len(self._n))):
            families = self._families(weights, i)
            above = (families * self._parts(i)).sum(axis=1)
            own.insert(0, self._flat(families - above[:, None], i))
            weights = above
        total, from_above = 0.0, np.zeros(1)
        for i, n in enumerate(self._n):
            inherited = self._flat(np.broadcast_to(from_above[:, None], self._families(own[i], i).shape), i)
            on_node = own[i] + inherited
            total += float(((on_node * self._own_weights[i]) ** 2).sum()) / n
            from_above = on_node * (1 - self._own_weights[i])
        return self._spread**2 * total

    def _families(self, nodes: Floats, i: int) -> Floats:
        """Give one row of children for each parent, padded with zeros: nodes without values are known to be empty."""
        rows = -(-nodes.size // self._branchings[i])
        padded = np.zeros(rows * self._branchings[i])
        padded[: nodes.size] = nodes
        return padded.reshape(rows, -1)

    def _flat(self, families: Floats, i: int) -> Floats:
        return families.ravel()[: self._variances[i].size]

    def _parts(self, i: int) -> Floats:
        variances = self._families(self._variances[i], i)
        parts: Floats = variances / variances.sum(axis=1, keepdims=True)
        return parts


@dataclass(frozen=True, eq=False, repr=False)
class RangeEstimate(Tabular):
    """How many people have each value and each range of values, estimated from their reports.

    As a table it has the columns value (int64) and count (float64).

    Attributes
    ----------
    counts : ndarray of float64, shape (k,)
        Unbiased estimates for each value. They sum to n; those of rare values may be negative. Read-only.
    n : int
        The number of reports counted; for an attribute of `Sampled` those about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The confidence level of the intervals.
    """

    _tree: Tree
    n: int
    rejected: int
    level: float

    def __post_init__(self) -> None:
        normal_quantile(self.level)  # checks the level

    @property
    def counts(self) -> Floats:
        """Unbiased estimates for each value."""
        counts = self._tree.shares * self.n
        counts.flags.writeable = False
        return counts

    def range(self, first: int, last: int) -> CountEstimate:
        """Estimate how many people have a value from ``first`` to ``last``.

        Parameters
        ----------
        first, last : int
            Two values, both included, with 0 <= first <= last < k.

        Returns
        -------
        CountEstimate
            With its interval by the normal approximation.

        Raises
        ------
        ParameterError
            When a value is out of range.
        TypeError
            When a value is not an int.
        """
        k = self._tree.shares.size
        first = integer(first, "first", range(k))
        last = integer(last, "last", range(first, k))
        weights = np.zeros(k)
        weights[first : last + 1] = 1.0
        count = float(weights @ self._tree.shares) * self.n
        error = self.n * self._tree.variance(weights) ** 0.5
        margin = normal_quantile(self.level) * error
        return CountEstimate(count, error, count - margin, count + margin)

    def quantile(self, q: float) -> int:
        """Estimate the smallest value that a share q of all people do not exceed.

        Parameters
        ----------
        q : float
            From 0 to 1; 0.5 for the median.

        Returns
        -------
        int
            A value from 0 to k - 1: the first at which the estimated cumulative share, made monotone by its running
            maximum, reaches q.

        Raises
        ------
        ParameterError
            When q is not between 0 and 1.
        TypeError
            When q is not a number.
        """
        share = real(q, "q")
        if not 0.0 <= share <= 1.0:
            raise ParameterError(f"q must be between 0 and 1, got {q!r}")
        cumulative = np.maximum.accumulate(np.cumsum(self._tree.shares))
        return min(int(np.searchsorted(cumulative, share)), cumulative.size - 1)

    def _columns(self) -> dict[str, Column]:
        return {"value": np.arange(self._tree.shares.size), "count": self.counts}


class HierarchicalRange(OfValues):
    """Hierarchical ranges: a Hadamard response about the node of a tree above a value, on a random level.

    It is for values that have an order: ages, incomes, times. The k values are the leaves of a tree. Everybody reports
    the node on one random level. A range of values is a union of few nodes, so its standard error grows with the
    logarithm of its length. With a protocol for single values it would grow with the square root.

    Parameters
    ----------
    k : int
        The number of possible values, from 2 to 2**20, in their order.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.
    branching : int
        The number of children of a node, a power of two from 2 to 1024. 4 is near the optimum over ranges of all
        lengths.

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    TypeError
        When a parameter is of the wrong type.

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

    def __init__(self, *, k: int, epsilon: float, branching: int = 4) -> None:
        self._make(k=k, epsilon=epsilon, branching=branching)

    @property
    def branching(self) -> int:
        """The number of children of a node."""
        return int(self._specified()["branching"])

    def estimate(
        self, collected: Accumulator | Values, *, level: float = 0.95, threads: int | None = None
    ) -> RangeEstimate:
        """Estimate how many people have each value, and a value in any range.

        Parameters
        ----------
        collected : Accumulator, or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports.
        level : float
            The confidence level of the intervals, between 0 and 1.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        RangeEstimate
            Unbiased, from all levels by weighted least squares, so that children's counts sum to their parent's.

        Raises
        ------
        ParameterError
            When an accumulator is of another protocol, the shape of reports is wrong, or ``level`` is out of range.
        TypeError
            When the dtype of reports is wrong.

        References
        ----------
        Hay, Rastogi, Miklau and Suciu (2010), "Boosting the accuracy of differentially private histograms through
        consistency", section 4.2; here with levels of different accuracy.
        """
        counters, n, rejected = self._collected(collected, threads)._state.counters()
        specification = self._specified()
        keep = specification["keep"] / 2 ** specification["planes"]
        depth, step = (self.k - 1).bit_length(), self.branching.bit_length() - 1
        levels = []
        for bits in reversed(range(depth, 0, -step)):
            reports = counters[2 << bits : 4 << bits].reshape(-1, 2).astype(np.int64)
            balance = reports[:, 0] - reports[:, 1]
            _native.walsh_hadamard(balance)
            # A report agrees with its node's row with probability (1 + keep) / 2, and with others' with 1 / 2.
            reached = -(-self.k >> depth - bits)
            levels.append(Level(balance[:reached] / keep, int(reports.sum())))
        return RangeEstimate(Tree(levels, self.branching, 1 / keep), n, rejected, level)
