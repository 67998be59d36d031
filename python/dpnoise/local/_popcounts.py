"""The number of set bits of a unary report has a known distribution; reports that do not follow it were crafted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._display import Record
from dpnoise.local._arrow import Block, rows_per_block

_FEWEST_EXPECTED: Final = 25.0
"""The fewest reports expected in a group of the G-test: with fewer, small p-values are too small by over a tenth."""

_OUTLIER: Final = 1e-3

_SET_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.uint8)


@dataclasses.dataclass(frozen=True, eq=False)
class PopcountCheck(Record):
    """How many reports have how many set bits, compared with what honest people send.

    Attributes
    ----------
    p_value : float
        The probability that honest reports differ from the expectation at least that much (G-test, by the chi-squared
        approximation). A small one, say below 1e-6, means that some reports were not made by the protocol.
    statistic : float
        Twice the log-likelihood ratio of observed and expected counts, in groups of neighbouring numbers of set bits of
        which each is expected to have 25 reports or more.
    degrees_of_freedom : int
        The number of groups less one. If it is 0, there are too few reports for a test, and the p-value is 1.
    observed : ndarray of int64, shape (k + 1,)
        The number of reports with 0, 1, ..., k set bits. Read-only, as is the other array.
    expected : ndarray of float64, shape (k + 1,)
        The expected numbers if all reports are honest. Where ``observed`` is well above, there are crafted reports.
    lowest, highest : int
        The range of set bits that contains all reports with a probability of 0.999 or more if they are honest. A report
        outside is suspicious by itself.
    n : int
        The number of reports checked.
    rejected : int
        The number of malformed reports, which were not checked.
    """

    p_value: float
    statistic: float
    degrees_of_freedom: int
    observed: NDArray[np.int64]
    expected: NDArray[np.float64]
    lowest: int
    highest: int
    n: int
    rejected: int


def check(blocks: Iterable[Block], k: int, p: float, q: float) -> PopcountCheck:
    """Compare reports, in blocks of well-shaped rows, with the distribution of unary encoding."""
    observed, rejected = np.zeros(k + 1, np.int64), 0
    for rows, missing in blocks:
        step = rows_per_block(rows.shape[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            well_formed = part[part[:, -1] >> ((k - 1) % 8 + 1) == 0] if k % 8 else part
            rejected += len(part) - len(well_formed)
            observed += np.bincount(_SET_BITS[well_formed].sum(axis=1, dtype=np.int64), minlength=k + 1)
        rejected += sum(missing.values())
    n = int(observed.sum())
    law = distribution(k, p, q)
    expected = n * law
    group = _groups(expected)
    statistic = _g_statistic(np.bincount(group, observed), np.bincount(group, expected))
    freedom = int(group[-1])
    lowest, highest = _bulk(law, _OUTLIER / max(n, 1))
    for array in (observed, expected):
        array.flags.writeable = False
    p_value = chi_squared_tail(statistic, freedom) if freedom else 1.0
    return PopcountCheck(p_value, statistic, freedom, observed, expected, lowest, highest, n, rejected)


def distribution(k: int, p: float, q: float) -> NDArray[np.float64]:
    """Return the probabilities of 0 to k set bits: one bit is set with probability p, each of k - 1 others with q."""
    others = k - 1
    mode = min(int(k * q), others)
    x = np.arange(others)
    ratios = (others - x) / (x + 1) * (q / (1 - q))  # of the probabilities of x + 1 and x
    weights = np.concatenate([np.cumprod(1 / ratios[:mode][::-1])[::-1], [1.0], np.cumprod(ratios[mode:])])
    law: NDArray[np.float64] = np.convolve(weights / weights.sum(), [1 - p, p])
    return law


def chi_squared_tail(x: float, degrees_of_freedom: int) -> float:
    """Return the probability that a chi-squared variable is above x (Abramowitz and Stegun, 26.4.4 and 26.4.5)."""
    if x <= 0:
        return 1.0
    half = x / 2
    odd = degrees_of_freedom % 2
    powers = np.arange(1 if odd else 0, degrees_of_freedom // 2 + odd) - odd / 2
    terms = [math.exp(a * math.log(half) - half - math.lgamma(a + 1)) for a in powers.tolist()]
    return min(1.0, math.fsum([*terms, math.erfc(math.sqrt(half)) if odd else 0.0]))


def _groups(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """Put neighbouring numbers into groups that expect enough reports; the last one also takes the rest."""
    group, total = 0, 0.0
    numbers = np.empty(expected.size, np.int64)
    for x, count in enumerate(expected.tolist()):
        numbers[x] = group
        total += count
        if total >= _FEWEST_EXPECTED:
            group, total = group + 1, 0.0
    return np.minimum(numbers, max(group - 1, 0))


def _g_statistic(observed: NDArray[Any], expected: NDArray[Any]) -> float:
    seen = observed > 0
    return max(0.0, 2 * float(np.sum(observed[seen] * np.log(observed[seen] / expected[seen]))))


def _bulk(law: NDArray[np.float64], tail: float) -> tuple[int, int]:
    """Return the shortest range that leaves at most half of ``tail`` on either side."""
    below, above = np.cumsum(law), np.cumsum(law[::-1])[::-1]
    return int(np.count_nonzero(below <= tail / 2)), int(law.size - 1 - np.count_nonzero(above <= tail / 2))
