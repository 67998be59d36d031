"""Selection of the event, on outcomes that the bound does not use, so that every selection rule is valid."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise.audit._outcomes import Outcomes
from dpnoise.audit._statistics import Statistic

_THRESHOLDS: Final = 500
# Standard deviations: shares in a selection are taken to be too good by so many. The smaller number finds events that
# occurred a few times and may be chance, the larger one those that occurred often.
_DOUBTS: Final = (0.5, 3.0)
_PLAINER: Final = 0.005  # the least gain for which a less simple statistic is chosen, since small gains occur by chance


@dataclass(frozen=True)
class Event:
    """The event that a statistic reaches a threshold, or does not, and the input under which it is likelier."""

    statistic: Statistic
    threshold: float
    reached: bool
    likelier_under_x: bool

    def occurs(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Say for each outcome, given its statistic, whether the event occurs."""
        return np.equal(scores >= self.threshold, self.reached)

    def __str__(self) -> str:
        return f"{self.statistic.name} {'>=' if self.reached else '<'} {self.threshold:.6g}"


def most_telling(
    statistics: Iterable[Statistic], x: Outcomes, x_prime: Outcomes, delta: float, alarm: float, trials: int
) -> list[Event]:
    """Choose four events, two likelier under each input, with the largest bounds to expect of ``trials`` outcomes."""
    best: dict[tuple[bool, float], tuple[float, Event]] = {}
    for statistic in statistics:
        scores, scores_prime = np.sort(statistic.of(x)), np.sort(statistic.of(x_prime))
        thresholds = _candidates(np.concatenate([scores, scores_prime]))
        # NaN is sorted to the end and reaches no threshold.
        reached, reached_prime = (_shares(part, thresholds) for part in (scores, scores_prime))
        for is_reached, p, q in ((True, reached, reached_prime), (False, 1 - reached, 1 - reached_prime)):
            for kind in product((True, False), _DOUBTS):
                under_x, doubt = kind
                likelier, other = (p, q) if under_x else (q, p)
                promised = _promised(
                    _wilson(likelier, len(x), -doubt), _wilson(other, len(x), doubt), delta, alarm, trials
                )
                top = int(np.argmax(promised))
                if kind not in best or promised[top] > best[kind][0] + _PLAINER:
                    best[kind] = promised[top], Event(statistic, float(thresholds[top]), is_reached, under_x)
    return [event for _, event in best.values()]


def _candidates(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return thresholds to try: of many, some evenly spread in rank, and more of them towards both ends."""
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


def _promised(p: NDArray[np.float64], q: NDArray[np.float64], delta: float, alarm: float, trials: int) -> NDArray[Any]:
    """Estimate the bound that the counts of ``trials`` trials show; no guarantee uses it."""
    # The nearest pair is off by about as many standard deviations in both probabilities.
    deviations = -NormalDist().inv_cdf(alarm) / math.sqrt(2)
    lower, upper = _wilson(p, trials, -deviations), _wilson(q, trials, deviations)
    promised: NDArray[Any] = np.log(np.maximum(lower - delta, 1e-300)) - np.log(upper)
    return promised


def _wilson(share: NDArray[np.float64], n: int, deviations: float) -> NDArray[Any]:
    """Return an end of the interval of Wilson (1927) for a probability."""
    half = deviations * deviations / (2 * n)
    end: NDArray[Any] = (share + half + deviations * np.sqrt((share * (1 - share) + half / 2) / n)) / (1 + 2 * half)
    return end
