"""Bounds of a probability from the number of occurrences of an event (Clopper and Pearson 1934), rounded outward.

The tail of a binomial distribution is a series whose terms fall faster than a geometric one. Its first term is bounded
by Robbins' form of Stirling's formula (1955), the remaining terms by the geometric series. So the tail is never
underestimated, and a bound that is found by bisection holds at least at the requested level.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_ROUNDING = 1 + 1e-9  # far more than the rounding errors of 10^6 terms and of their exponent
_HALVINGS = 200


def lower_bound(hits: int, trials: int, alarm: float) -> float:
    """Give a number that is above the probability of the event in at most a share ``alarm`` of all experiments."""
    if hits == 0:
        return 0.0
    return _bisect(0.0, hits / trials, lambda p: _tail(hits, trials, p, 1 - p) <= alarm)


def upper_bound(hits: int, trials: int, alarm: float) -> float:
    """Give a number that is below the probability of the event in at most a share ``alarm`` of all experiments."""
    if hits == trials:
        return 1.0
    misses = trials - hits
    return _bisect(1.0, hits / trials, lambda p: _tail(misses, trials, 1 - p, p) <= alarm)


def _bisect(safe: float, unsafe: float, is_safe: Callable[[float], bool]) -> float:
    for _ in range(_HALVINGS):
        middle = (safe + unsafe) / 2
        if middle in (safe, unsafe):
            break
        safe, unsafe = (middle, unsafe) if is_safe(middle) else (safe, middle)
    return safe


def _tail(k: int, n: int, p: float, q: float) -> float:
    """Bound P(X >= k) from above, where X is binomial with n trials of probability p, q = 1 - p and k > 0."""
    if k <= (n + 1) * p:
        return 1.0  # near or below the mode the bound would not improve
    if p == 0:
        return 0.0
    steps = np.arange(min(n - k, 4 * math.isqrt(n) + 64), dtype=np.float64)
    ratios = (n - k - steps) / (k + 1 + steps) * (p / q)
    terms = np.cumprod(ratios)
    last, ratio = (float(terms[-1]), float(ratios[-1])) if steps.size else (0.0, 0.0)
    return math.exp(_log_probability(k, n, p, q)) * (1 + float(terms.sum()) + last * ratio / (1 - ratio)) * _ROUNDING


def _log_probability(k: int, n: int, p: float, q: float) -> float:
    """Bound log P(X = k) from above; the logarithms are of numbers near 1 where k is near n p."""
    # The smaller one of p and 1 - p has full precision.
    if k == n:
        return n * (math.log(p) if p < q else math.log1p(-q))
    off = k - n * p if p < q else n * q - (n - k)
    deviance = k * math.log1p(off / (n * p)) + (n - k) * math.log1p(-off / (n * q))
    stirling = 1 / (12 * n) - 1 / (12 * k + 1) - 1 / (12 * (n - k) + 1)
    return stirling - deviance + 0.5 * math.log(n / (2 * math.pi * k * (n - k)))
