"""Estimated counts made consistent: what is known of all histograms is imposed on one.

Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li (2020), "Locally differentially private frequency estimation with
consistency", section 4, has the methods and compares them. All are functions of the estimate alone, and so cost no
privacy; all but ``norm`` are biased.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError

Counts = NDArray[np.float64]

Post = Literal["base-cut", "norm", "norm-mul", "norm-sub", "norm-cut", "simplex"]


def norm(counts: Counts, n: int) -> Counts:
    """Add the same to every count, so that they sum to n."""
    return counts + (n - float(counts.sum())) / counts.size


def norm_mul(counts: Counts, n: int) -> Counts:
    """Raise negative counts to 0, then multiply all, so that they sum to n."""
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total * n if total > 0 else np.full_like(counts, n / counts.size)


def norm_cut(counts: Counts, n: int) -> Counts:
    """Raise negative counts to 0, then drop the smallest until the others sum to at most n."""
    order = np.argsort(-counts, kind="stable")
    sorted_counts = np.maximum(counts[order], 0.0)
    kept = np.where(np.cumsum(sorted_counts) <= n, sorted_counts, 0.0)
    result = np.empty_like(counts)
    result[order] = kept
    return result


def simplex(counts: Counts, n: int) -> Counts:
    """Take the nearest counts (least squares) that are not negative and sum to n.

    They are max(count - t, 0) for one t: the same as subtracting t and raising to 0 again and again (``norm-sub``).
    """
    falling = -np.sort(-counts)
    # With the j largest counts above 0, t is their excess over n, shared by them; it must leave the j-th above 0.
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
    """Give the number of standard deviations that no count of k absent values exceeds with probability ``level``."""
    return -NormalDist().inv_cdf((1.0 - level) / k)


def check(post: str | None) -> None:
    """Refuse an unknown method."""
    if post is not None and post != "base-cut" and post not in _METHODS:
        known = ", ".join(map(repr, ["base-cut", *_METHODS]))
        raise ParameterError(f"post must be None or one of {known}, got {post!r}")


def apply(post: str | None, counts: Counts, n: int, absent_error: float, level: float) -> Counts:
    """Process counts; ``absent_error`` is the standard deviation of the count of a value that nobody has."""
    if post is None:
        return counts
    if post == "base-cut":
        return np.where(counts < significance_threshold(counts.size, level) * absent_error, 0.0, counts)
    return _METHODS[post](counts, n)
