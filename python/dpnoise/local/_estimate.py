"""Estimated counts with intervals, post-processing for consistency, and tables of other libraries."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from os import PathLike
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._display import Column, Record, Tabular, caption_of
from dpnoise._domain import Domain
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer
from dpnoise._types import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Counts = NDArray[np.float64]

Post = Literal["base-cut", "norm", "norm-mul", "norm-sub", "norm-cut", "simplex"]
"""The methods that make estimated counts consistent."""


def norm(counts: Counts, n: int) -> Counts:
    """Shift all counts by the same amount, so that they sum to n."""
    return counts + (n - float(counts.sum())) / counts.size


def norm_mul(counts: Counts, n: int) -> Counts:
    """Clamp negative counts to 0, then scale all, so that they sum to n."""
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total * n if total > 0 else np.full_like(counts, n / counts.size)


def norm_cut(counts: Counts, n: int) -> Counts:
    """Clamp negative counts to 0, then drop the smallest until the others sum to at most n."""
    order = np.argsort(-counts, kind="stable")
    sorted_counts = np.maximum(counts[order], 0.0)
    kept = np.where(np.cumsum(sorted_counts) <= n, sorted_counts, 0.0)
    result = np.empty_like(counts)
    result[order] = kept
    return result


def simplex(counts: Counts, n: int) -> Counts:
    """Take the nearest counts (least squares) that are not negative and sum to n.

    They are max(count - t, 0) for one t, as in ``norm-sub``, which repeatedly shifts positive counts and clamps to 0.
    """
    falling = -np.sort(-counts)
    # If the j largest counts stay positive, t is their excess over n, divided by j; it must leave the j-th positive.
    shares = (np.cumsum(falling) - n) / np.arange(1, counts.size + 1)
    t = float(shares[np.flatnonzero(falling >= shares)[-1]])
    return np.maximum(counts - t, 0.0)


_METHODS: Final[dict[str, Callable[[Counts, int], Counts]]] = {
    "norm": norm,
    "norm-mul": norm_mul,
    "norm-sub": simplex,
    "norm-cut": norm_cut,
    "simplex": simplex,
}


def significance_threshold(k: int, level: float) -> float:
    """Return how many standard deviations all counts of k absent values stay below with probability ``level``."""
    return -NormalDist().inv_cdf((1.0 - level) / k)


def check_post(post: str | None) -> None:
    if post is not None and not (isinstance(post, str) and post in ("base-cut", *_METHODS)):
        known = ", ".join(map(repr, ["base-cut", *_METHODS]))
        raise ParameterError(f"post must be None or one of {known}, got {post!r}")


def post_processed(post: str | None, counts: Counts, n: int, absent_error: float, level: float) -> Counts:
    """Make counts consistent; ``absent_error`` is the standard deviation of the count of a value that nobody has.

    Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li (2020), "Locally differentially private frequency estimation with
    consistency", section 4, has the methods and compares them. All are post-processing of the estimate, so they cost no
    privacy; all but ``norm`` are biased.
    """
    if post is None:
        return counts
    if post == "base-cut":
        return np.where(counts < significance_threshold(counts.size, level) * absent_error, 0.0, counts)
    return _METHODS[post](counts, n)


@dataclasses.dataclass(frozen=True)
class CountEstimate(Record):
    """How many people have a value, or a value in a range.

    Attributes
    ----------
    count : float
        The estimate, in people; unbiased unless counts were made consistent.
    standard_error : float
        The standard deviation of the unbiased estimate, or an upper bound on it.
    lower, upper : float
        The ends of the confidence interval of the unbiased estimate.
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
    n: int
    epsilon: float | None = None

    @property
    def relative_errors(self) -> NDArray[np.float64]:
        """The standard errors as shares of the counts: 0.05 is 5 %. Infinite where a count is not above 0."""
        errors = np.full(self.counts.shape, np.inf)
        np.divide(self.standard_errors, self.counts, out=errors, where=self.counts > 0)
        return errors

    def plot(
        self, path: str | PathLike[str] | None = None, labels: Sequence[str] | None = None, *, ax: Axes | None = None
    ) -> Axes:
        """Draw a bar chart of the counts with their intervals, titled by n and, where it is known, epsilon.

        Of more than 60 values only those with the largest counts are drawn.

        Parameters
        ----------
        path : path-like, optional
            The file to write, whose name ends in .png, .svg or .pdf. Without ``path`` and ``ax`` a notebook shows the
            chart.
        labels : sequence of str, optional
            A name for each value; by default the value itself.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on instead of a new figure. At most one of ``path`` and ``ax`` is given.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the chart.
        """
        from dpnoise import plots  # only charts need its imports

        names = list(map(str, self._values() if labels is None else labels))
        if len(names) != self.counts.size:
            raise ParameterError(f"labels must be {self.counts.size}, one for each value, got {len(names)}")
        series = {"estimate": (self.counts, self.lower, self.upper)}
        title = f"n = {self.n:,}" + ("" if self.epsilon is None else f", epsilon = {self.epsilon:.4g}")
        return plots.histogram(names, series, title=title, caption=caption_of(self), path=path, ax=ax)

    @abstractmethod
    def _values(self) -> Column:
        """Return the values whose counts are estimated."""

    def _columns(self) -> dict[str, Column]:
        return {
            "value": self._values(),
            "count": self.counts,
            "standard_error": self.standard_errors,
            "lower": self.lower,
            "upper": self.upper,
        }

    def _errors(self) -> dict[str, Column]:
        return dict.fromkeys(("count", "standard_error", "lower", "upper"), self.standard_errors)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Estimate(EstimateTable):
    """How many people have each value, estimated from their reports.

    As a table it has the columns value, count, standard_error, lower and upper (float64). The values are the labels, or
    numbers (int64) where there are none; in pandas, labels are the index.

    Attributes
    ----------
    counts : ndarray of float64, shape (k,)
        Unbiased estimates, ``(C - n q) / (p - q)`` for a value that ``C`` of ``n`` reports count for, unless ``post``
        says otherwise. They are not clamped: estimates of rare values may be negative, and clamping would bias every
        sum. Read-only, as are the other arrays of an estimate.
    standard_errors : ndarray of float64, shape (k,)
        The standard deviation of each count over the randomisation, at its estimated frequency.
    lower, upper : ndarray of float64, shape (k,)
        The ends of the confidence intervals of the unbiased estimates, by the normal approximation; ``post`` leaves
        them as they are.
    n : int
        The number of reports counted; for an attribute of `Sampled`, the number of reports about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The probability with which an interval holds.
    simultaneous : bool
        Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
    post : str, optional
        How the counts were made consistent; None if they were not.
    domain : tuple of str, int or bool, optional
        The labels of the values; None if there are none.
    epsilon : float, optional
        The epsilon that the protocol was made for.

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
    epsilon: float | None = dataclasses.field(default=None, repr=False)

    def count(self, value: Any) -> CountEstimate:
        """Return the estimate for one value.

        Parameters
        ----------
        value : str, int or bool
            The value: a label, or a number from 0 to k - 1 where there are no labels.

        Returns
        -------
        CountEstimate
            The count of the value with its interval.
        """
        if self.domain is None:
            i = integer(value, "value", range(self.counts.size))
        else:
            i = self.domain.position(value, "value")
        numbers = (self.counts, self.standard_errors, self.lower, self.upper)
        return CountEstimate(*(float(column[i]) for column in numbers))

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with one row for each value; labels are the index "value" instead of a column."""
        table = super().to_pandas()
        return table if self.domain is None else table.set_index("value")

    def _values(self) -> Column:
        return np.arange(self.counts.size) if self.domain is None else list(self.domain)


def normal_quantile(level: Number, intervals: int = 1) -> float:
    """Return how many standard errors a two-sided interval extends, if several of them must hold together."""
    return _native.normal_quantile(level, intervals)


def spread_over(intervals: int, simultaneous: bool) -> int:
    """Return how many intervals must hold together: all, if they are simultaneous, or each by itself."""
    if not isinstance(simultaneous, bool):
        raise TypeError(f"simultaneous must be a bool, got {type(simultaneous).__name__}")
    return intervals if simultaneous else 1


Found = tuple[Counts, Counts, int, int]
"""Counts and their standard errors, and the numbers of reports that were counted and rejected."""


def with_intervals(
    protocol: _native.LocalProtocol,
    found: Found,
    level: Number,
    simultaneous: bool,
    post: Post | None,
    domain: Domain | None,
    senders: int | None = None,
) -> Estimate:
    """Make an estimate of what was found, from ``senders`` if not all n people sent a report."""
    check_post(post)
    counts, standard_errors, n, rejected = found
    reports = n if senders is None else senders
    # The two counts of a binary protocol err by the same amount: an interval for one is an interval for both.
    quantile = normal_quantile(level, spread_over(min(protocol.counters, counts.size), simultaneous))
    lower, upper = intervals(counts, standard_errors, quantile)
    absent_error = math.sqrt(protocol.variance(reports, 0.0)) * (n / max(reports, 1))
    level = float(level)
    counts = post_processed(post, counts, n, absent_error, level)
    counts.flags.writeable = False
    epsilon = protocol.requested_epsilon
    return Estimate(counts, standard_errors, lower, upper, n, rejected, level, simultaneous, post, domain, epsilon)


def intervals(
    counts: NDArray[np.float64], standard_errors: NDArray[np.float64], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals; all arrays become read-only."""
    margins = quantile * standard_errors
    lower, upper = counts - margins, counts + margins
    for array in (counts, standard_errors, lower, upper):
        array.flags.writeable = False
    return lower, upper
