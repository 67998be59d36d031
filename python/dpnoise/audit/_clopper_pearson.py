"""Bounds of probabilities from numbers of occurrences of an event (Clopper and Pearson 1934), rounded outward.

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
_STEPS = 128


def lower_bound(hits: int, trials: int, alarm: float) -> float:
    """Return a number that is above the probability of the event in at most a share ``alarm`` of all experiments."""
    if hits == 0:
        return 0.0
    return _bisect(0.0, hits / trials, lambda p: _tail(hits, trials, p, 1 - p) <= alarm)


def upper_bound(hits: int, trials: int, alarm: float) -> float:
    """Return a number that is below the probability of the event in at most a share ``alarm`` of all experiments."""
    if hits == trials:
        return 1.0
    misses = trials - hits
    return _bisect(1.0, hits / trials, lambda p: _tail(misses, trials, 1 - p, p) <= alarm)


def nearest_pair(hits: int, hits_other: int, trials: int, delta: float, alarm: float) -> tuple[float, float]:
    """Return p and q whose (p - delta) / q exceeds the true quotient in at most a share ``alarm`` of experiments.

    Let P be the probability of ``hits`` or more at p, and Q that of ``hits_other`` or fewer at q. At the true
    probabilities P and Q are independent, and at most u with a probability of at most u each. So P Q is at most c with
    a probability of at most c (1 - log c), as the product of two uniform numbers is (Fisher 1932). Otherwise the true
    pair is one with P Q > c. Of these, and of a few more because p and q go in steps, the smallest quotient is found.
    """
    if hits == 0 or hits_other == trials:
        return 0.0, 1.0
    c = _bisect(0.0, alarm, lambda c: c * (1 - math.log(c)) <= alarm)
    p = np.linspace(lower_bound(hits, trials, c), hits / trials, _STEPS)
    q = np.linspace(hits_other / trials, upper_bound(hits_other, trials, c), _STEPS)
    # Up to the next p, P is at most what it is there. From a q on, all are excluded if that one is.
    most = np.array([_tail(hits, trials, at, 1 - at) for at in p[1:].tolist()] + [1.0])
    tails = np.array([_tail(trials - hits_other, trials, 1 - at, at) for at in q.tolist()])
    largest = q[np.argmax(np.multiply.outer(most, tails) <= c, axis=1)]
    nearest = int(np.argmin((p - delta) / largest))
    return float(p[nearest]), float(largest[nearest])


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
