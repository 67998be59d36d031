"""Hierarchical ranges: how many people have a value between two others."""

from __future__ import annotations

import numpy as np

from dpnoise import _native
from dpnoise._interchange import Values
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._range_estimate import Level, RangeEstimate, Tree
from dpnoise.local._values import OfValues


class HierarchicalRange(OfValues):
    """Hierarchical ranges: the node of a tree that a value is under, in a random level, by a Hadamard response.

    For values that have an order: ages, incomes, times. The k values are the leaves of a tree. Everybody reports the
    node of one random level, so a range of values, which is a union of few nodes, has a standard error that grows with
    the logarithm of its length. With a protocol for single values it would grow with the square root.

    Parameters
    ----------
    k : int
        The number of values that an answer may have, from 2 to 2**20, in their order.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.
    branching : int
        The children of a node, a power of two from 2 to 1024. 4 is near the best for ranges of all lengths together.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

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
    _parameters = ("k", "requested_epsilon", "branching")

    def __init__(self, *, k: int, epsilon: float, branching: int = 4) -> None:
        self._native = _native.LocalProtocol.hierarchical_range(k, epsilon, branching)

    @property
    def branching(self) -> int:
        """The children of a node."""
        return int(self._specified()["branching"])

    def estimate(
        self, collected: Accumulator | Values, *, level: float = 0.95, threads: int | None = None
    ) -> RangeEstimate:
        """Estimate how many people have each value, and how many have one between two others.

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
            Unbiased. Of all levels together, by weighted least squares: children's counts sum to their parent's.

        Raises
        ------
        ParameterError
            When an accumulator is of another protocol, the shape of reports is another, or ``level`` is out of range.
        TypeError
            When the dtype of reports is another.

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
