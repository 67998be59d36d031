"""Estimated counts with their uncertainty."""

from __future__ import annotations

import dataclasses
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._native import ParameterError


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """How many people have each value, estimated from their reports.

    Attributes
    ----------
    counts : ndarray of float64, shape (k,)
        Unbiased estimates, ``(C - n q) / (p - q)`` for a bit set in ``C`` of ``n`` reports. They are not clipped: those
        of rare values may be negative, and clipping would bias every sum. Read-only, as are the other arrays.
    standard_errors : ndarray of float64, shape (k,)
        The standard deviation of each count over the randomisation, at its estimated frequency.
    lower, upper : ndarray of float64, shape (k,)
        The ends of the confidence intervals, by the normal approximation.
    n : int
        The number of reports counted.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The confidence level of the intervals.
    simultaneous : bool
        Whether all intervals together hold at that level (Bonferroni), or each by itself.

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


def from_state(state: _native.LocalAccumulator, level: float, simultaneous: bool) -> Estimate:
    """Estimate all counts with intervals at ``level``."""
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must be between 0 and 1, exclusive, got {level!r}")
    counts, standard_errors, n, rejected = state.estimate()
    # The two counts of a binary protocol err by the same amount: an interval for one is an interval for both.
    intervals = state.protocol.report_bits if simultaneous else 1
    # The lower tail, because 1 - level / 2 would lose the digits of a level close to 1.
    quantile = -NormalDist().inv_cdf((1.0 - level) / (2.0 * intervals))
    margins = quantile * standard_errors
    lower, upper = counts - margins, counts + margins
    for array in (counts, standard_errors, lower, upper):
        array.flags.writeable = False
    return Estimate(counts, standard_errors, lower, upper, n, rejected, level, simultaneous)
