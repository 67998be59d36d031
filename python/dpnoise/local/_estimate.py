"""Estimated counts with their uncertainty."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._domain import Domain
from dpnoise._errors import ParameterError
from dpnoise._parameters import integer, real
from dpnoise.local import _post_processing
from dpnoise.local._post_processing import Post
from dpnoise.local._tables import Tabular


@dataclasses.dataclass(frozen=True)
class CountEstimate:
    """How many people have a value, or a value of a range.

    Attributes
    ----------
    count : float
        The estimate, in people; unbiased unless counts were made consistent.
    standard_error : float
        The standard deviation of the unbiased estimate, at most.
    lower, upper : float
        The ends of its confidence interval.
    """

    count: float
    standard_error: float
    lower: float
    upper: float


class EstimateTable(Tabular):
    """Estimated counts with intervals."""

    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @abstractmethod
    def _values(self) -> Any:
        """Give what the counts are of."""

    def _columns(self) -> dict[str, Any]:
        # Copies: the estimate's own arrays are read-only, and stay so.
        return {
            "value": self._values(),
            "count": self.counts.copy(),
            "standard_error": self.standard_errors.copy(),
            "lower": self.lower.copy(),
            "upper": self.upper.copy(),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate(EstimateTable):
    """How many people have each value, estimated from their reports.

    As a table it has the columns value, count, standard_error, lower and upper (float64). The values are the labels, or
    numbers (int64) where there are none; in pandas, labels are the index.

    Attributes
    ----------
    counts : ndarray of float64, shape (k,)
        Unbiased estimates, ``(C - n q) / (p - q)`` for a value that ``C`` of ``n`` reports count for, unless ``post``
        says otherwise. They are not clipped: those of rare values may be negative, and clipping would bias every sum.
        Read-only, as are the other arrays.
    standard_errors : ndarray of float64, shape (k,)
        The standard deviation of each count over the randomisation, at its estimated frequency.
    lower, upper : ndarray of float64, shape (k,)
        The ends of the confidence intervals of the unbiased estimates, by the normal approximation; ``post`` leaves
        them as they are.
    n : int
        The number of reports counted.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The confidence level of the intervals.
    simultaneous : bool
        Whether all intervals together hold at that level (Bonferroni), or each by itself.
    post : str or None
        How the counts were made consistent, if they were.
    domain : tuple or None
        The labels of the values, if they have some.

    References
    ----------
    Wang, Blocki, Li and Jha (2017), "Locally differentially private protocols for frequency estimation", equations 1
    to 3.
    """

    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n: int
    rejected: int
    level: float
    simultaneous: bool
    post: Post | None = None
    domain: Domain | None = None

    def count(self, value: Any) -> CountEstimate:
        """Give the estimate for one value.

        Parameters
        ----------
        value : str, int or bool
            A label, or a number from 0 to k - 1 where there are no labels.

        Returns
        -------
        CountEstimate

        Raises
        ------
        ParameterError
            When it is none of the labels, or out of range.
        TypeError
            When there are no labels and it is no integer.
        """
        if self.domain is None:
            i = integer(value, "value", range(self.counts.size))
        else:
            i = self.domain.position(value, "value")
        numbers = (self.counts, self.standard_errors, self.lower, self.upper)
        return CountEstimate(*(float(column[i]) for column in numbers))

    def to_pandas(self) -> Any:
        """Give a pandas.DataFrame with one row for each value.

        Returns
        -------
        pandas.DataFrame
            With the columns that the class names; labels are its index, called "value", and no column.

        Raises
        ------
        ImportError
            When pandas is not installed.
        """
        table = super().to_pandas()
        return table if self.domain is None else table.set_index("value")

    def plot(self, path: str | PathLike[str], labels: Sequence[str] | None = None) -> None:
        """Write a bar chart of the counts with their intervals.

        Parameters
        ----------
        path : path-like
            A file name that ends in .png, .svg or .pdf.
        labels : sequence of str, optional
            What each value means; its label or number when not given.

        Raises
        ------
        ParameterError
            When the file type is another, or there is not one label for each value.
        ImportError
            When matplotlib is not installed.
        OSError
            When the file cannot be written; one that was there before is there still.
        """
        from dpnoise import plots  # which imports what no estimate needs

        if labels is None:
            labels = [str(i) for i in range(self.counts.size)] if self.domain is None else self.domain.names
        plots.histogram(path, list(labels), {"estimate": (self.counts, self.lower, self.upper)})

    def _values(self) -> Any:
        return np.arange(self.counts.size) if self.domain is None else list(self.domain)


def normal_quantile(level: float, intervals: int = 1) -> float:
    """Give how many standard errors a two-sided interval extends, one of several that shall hold together."""
    if not 0.0 < real(level, "level") < 1.0:
        raise ParameterError(f"level must be between 0 and 1, exclusive, got {level!r}")
    # The lower tail, because 1 - level / 2 would lose the digits of a level close to 1.
    return -NormalDist().inv_cdf((1.0 - float(level)) / (2.0 * intervals))


def from_state(
    state: _native.LocalAccumulator, level: float, simultaneous: bool, post: Post | None, domain: Domain | None
) -> Estimate:
    """Estimate all counts with intervals at ``level``."""
    _post_processing.check(post)
    # The two counts of a binary protocol err by the same amount: an interval for one is an interval for both.
    quantile = normal_quantile(level, state.protocol.counters if simultaneous else 1)
    counts, standard_errors, n, rejected = state.estimate()
    lower, upper = intervals(counts, standard_errors, quantile)
    absent_error = math.sqrt(state.protocol.variance(n, 0.0))
    counts = _post_processing.apply(post, counts, n, absent_error, level)
    counts.flags.writeable = False
    return Estimate(counts, standard_errors, lower, upper, n, rejected, level, simultaneous, post, domain)


def intervals(
    counts: NDArray[np.float64], standard_errors: NDArray[np.float64], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the ends of intervals; all arrays become read-only."""
    margins = quantile * standard_errors
    lower, upper = counts - margins, counts + margins
    for array in (counts, standard_errors, lower, upper):
        array.flags.writeable = False
    return lower, upper
