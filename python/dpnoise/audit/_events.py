"""Selection of the event, on other outcomes than those of the bound, so that every selection rule is valid."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise.audit._outcomes import Outcomes
from dpnoise.audit._statistics import Statistic

_THRESHOLDS: Final = 500
_PLAINER: Final = 0.005  # the least gain for which a less simple statistic is chosen, since small gains occur by chance


@dataclass(frozen=True)
class Event:
    """That a statistic reaches a threshold, or that it does not; and which of the inputs makes it likelier."""

    statistic: Statistic
    threshold: float
    reached: bool
    likelier_under_x: bool

    def occurs(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Say for each outcome, given its statistic, whether the event occurs."""
        return np.equal(scores >= self.threshold, self.reached)

    def __str__(self) -> str:
        return f"{self.statistic.name} {'>=' if self.reached else '<'} {self.threshold:.6g}"


def most_telling(statistics: Iterable[Statistic], x: Outcomes, x_prime: Outcomes, delta: float, alarm: float) -> Event:
    """Choose the event, and its direction, with the largest expected bound."""
    # The best of many events looks too good by chance, so the estimates allow for the number of events.
    alarm /= _THRESHOLDS
    best, event = -math.inf, None
    for statistic in statistics:
        scores, scores_prime = np.sort(statistic.of(x)), np.sort(statistic.of(x_prime))
        thresholds = _candidates(np.concatenate([scores, scores_prime]))
        # NaN is sorted to the end and reaches no threshold.
        reached, reached_prime = (_shares(part, thresholds) for part in (scores, scores_prime))
        for is_reached, p, q in ((True, reached, reached_prime), (False, 1 - reached, 1 - reached_prime)):
            for under_x in (True, False):
                likelier, other = (p, q) if under_x else (q, p)
                promised = _promised(likelier, other, len(x), delta, alarm)
                top = int(np.argmax(promised))
                if promised[top] > best + _PLAINER or event is None:
                    best = float(promised[top])
                    event = Event(statistic, float(thresholds[top]), is_reached, under_x)
    assert event is not None, "there is always a statistic"  # noqa: S101
    return event


def _candidates(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give thresholds to try: of many, some evenly spread in rank, and more of them towards both ends."""
    values = np.unique(scores[~np.isnan(scores)])
    if values.size == 0:
        return np.zeros(1)
    if values.size <= _THRESHOLDS:
        return values
    ends = 2 ** np.arange(int(math.log2(values.size)))
    spread = np.linspace(0, values.size - 1, _THRESHOLDS).astype(np.int64)
    tried: NDArray[np.float64] = values[np.unique(np.concatenate([spread, ends, values.size - ends]))]
    return tried


def _shares(scores: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    present = len(scores) - int(np.isnan(scores).sum())
    return (present - np.searchsorted(scores[:present], thresholds)) / len(scores)


def _promised(p: NDArray[np.float64], q: NDArray[np.float64], n: int, delta: float, alarm: float) -> NDArray[Any]:
    """Estimate the bound from shares of n outcomes, by Wilson's intervals, which are fast; no guarantee uses them."""
    square = NormalDist().inv_cdf(alarm) ** 2
    lower = (p + square / (2 * n) - np.sqrt(square * p * (1 - p) / n + (square / (2 * n)) ** 2)) / (1 + square / n)
    upper = (q + square / (2 * n) + np.sqrt(square * q * (1 - q) / n + (square / (2 * n)) ** 2)) / (1 + square / n)
    return np.log(np.maximum(lower - delta, 1e-300)) - np.log(upper)
