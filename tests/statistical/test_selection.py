"""Choices counted and compared with the exact formulas, by a likelihood-ratio test with planted faults.

A correct mechanism is rejected with a probability of 1e-11 by each check, and a planted fault is missed with less than
1e-17.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpnoise import AboveThreshold, Exponential, ReportNoisyMax, TopK
from dpnoise.queries import Quantile

pytestmark = pytest.mark.long

# `make everything` draws more.
N = max(40_000, int(os.environ.get("DPNOISE_TEST_SAMPLES", 2_000_000)) // 250)
FALSE_ALARM = 1e-11

SCORES = [0.0, 0.0, -0.5, -1.25, -3.0, -6.0, -40.0]


def softmax(scores: Sequence[float], scale: float) -> np.ndarray:
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    return weights / weights.sum()


def permute_and_flip(scores: Sequence[float], scale: float) -> np.ndarray:
    """The sum over all sets of heads (McKenna and Sheldon 2020, equation 2, is an integral of it)."""
    heads = np.exp((np.array(scores) - max(scores)) / scale)
    law = np.zeros(len(scores))
    for coins in itertools.product([0, 1], repeat=len(scores)):
        shown = np.array(coins, bool)
        if shown.any():
            law[shown] += np.where(shown, heads, 1 - heads).prod() / shown.sum()
    return law


def ordered_pairs(scores: Sequence[float], scale: float) -> np.ndarray:
    first = softmax(scores, scale)
    law = np.outer(first, first) / (1 - first)[:, None]
    np.fill_diagonal(law, 0)
    return law.ravel()


def p_value(counts: np.ndarray, law: np.ndarray) -> float:
    """Of a likelihood-ratio test; what is expected less than ten times is put together.

    Its law is chi-squared within a tenth at 1e-11. That of Pearson's is not: with 16 expected it is exceeded hundreds
    of times as often at 1e-9.
    """
    rare = law * counts.sum() < 10
    observed, expected = counts[~rare], law[~rare] * counts.sum()
    if rare.any():
        observed, expected = (
            np.append(observed, counts[rare].sum()),
            np.append(expected, law[rare].sum() * counts.sum()),
        )
    if expected[-1] < 10:
        observed[-2] += observed[-1]
        expected[-2] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    g = 2 * np.sum(observed * np.log(np.maximum(observed, 1) / expected))
    return float(stats.chi2.sf(g, len(expected) - 1))


def counts_of(draw: Callable[[], int], outcomes: int) -> np.ndarray:
    return np.bincount([draw() for _ in range(N)], minlength=outcomes)


def name_of(value: Any) -> str:
    """A name of a case that is the same in every process."""
    return getattr(value, "__name__", repr(value))


CASES = [
    (Exponential(epsilon=1.5), softmax),
    (Exponential(epsilon=1.5, monotonic=True), softmax),
    (Exponential(epsilon=0.4, sensitivity=0.3), softmax),
    (ReportNoisyMax(epsilon=1.5), permute_and_flip),
    (ReportNoisyMax(epsilon=0.4, sensitivity=0.3, monotonic=True), permute_and_flip),
]


@pytest.mark.parametrize(("mechanism", "law"), CASES, ids=name_of)
def test_choices_follow_the_formula(mechanism: Any, law: Any) -> None:
    counts = counts_of(partial(mechanism.release, SCORES), len(SCORES))
    scale = mechanism.scale
    assert p_value(counts, law(SCORES, scale)) > FALSE_ALARM
    # Positive controls: a scale that is off by a fifth, the other mechanism, and a candidate that is never chosen.
    assert p_value(counts, law(SCORES, 1.2 * scale)) < FALSE_ALARM
    assert p_value(counts, permute_and_flip(SCORES, scale) if law is softmax else softmax(SCORES, scale)) < FALSE_ALARM
    counts[0] += counts[1]
    counts[1] = 0
    assert p_value(counts, law(SCORES, scale)) < FALSE_ALARM


@pytest.mark.parametrize("q", [0.5, 0.1])
def test_quantiles_follow_the_formula(q: float) -> None:
    query = Quantile(q=q, bounds=(0, 8), epsilon=1.5, granularity=0.5)
    column = np.array([1.0, 1.0, 1.0, 2.5, 2.7, 6.0, 7.9, math.nan])
    rounded, candidates = np.floor(2 * column[:-1] + 0.5) / 2, np.arange(17) / 2
    below, up_to = (np.array([compare(rounded, candidate).sum() for candidate in candidates])
                    for compare in (np.less, np.less_equal))  # fmt: skip
    distance = np.maximum(0, np.maximum(below - q * len(rounded), q * len(rounded) - up_to))
    scale = 2 * max(q, 1 - q) / query.epsilon
    counts = counts_of(lambda: round(2 * query.release(column)), len(candidates))
    assert p_value(counts, softmax(-distance, scale)) > FALSE_ALARM
    # Positive controls: half the noise, and intervals between values whose lengths do not count.
    assert p_value(counts, softmax(-distance, scale / 2)) < FALSE_ALARM
    lengths = np.array([np.sum(distance == own) for own in distance])
    assert p_value(counts, softmax(-distance - scale * np.log(lengths), scale)) < FALSE_ALARM


@pytest.mark.parametrize("kind", [Exponential, ReportNoisyMax])
def test_every_place_is_chosen_alike(kind: Any) -> None:
    # In several blocks, the last one not full; by the remainders that rows, columns and blocks leave.
    size, mechanism = 4100, kind(epsilon=1.0)
    counts = counts_of(partial(mechanism.release, np.zeros(size)), size)
    places = np.arange(size)
    for group in (places % 8, places // 8 % 32, places // 2048):
        law = np.bincount(group) / size
        assert p_value(np.bincount(group, counts).astype(int), law) > FALSE_ALARM


def test_the_two_best_follow_the_formula() -> None:
    mechanism, scores = TopK(k=2, epsilon=2.0), SCORES[1:5]

    def draw() -> int:
        first, second = mechanism.release(scores).tolist()
        return first * len(scores) + second

    counts = counts_of(draw, len(scores) ** 2)
    assert p_value(counts, ordered_pairs(scores, mechanism.scale)) > FALSE_ALARM
    assert p_value(counts, ordered_pairs(scores, mechanism.scale / 1.2)) < FALSE_ALARM


def above_law(values: Sequence[float], threshold: float, scales: tuple[float, float], limit: int) -> dict[Any, float]:
    """The probabilities of all answers, by an integral over the noise of the threshold."""
    noise, step = np.linspace(-60 * scales[0], 60 * scales[0], 400_001, retstep=True)
    density = np.exp(-np.abs(noise) / scales[0]) / (2 * scales[0]) * step
    law: dict[Any, float] = {}

    def extend(answers: tuple[bool, ...], weight: np.ndarray) -> None:
        if len(answers) == len(values) or sum(answers) == limit:
            law[answers] = float(weight.sum())
            return
        above = stats.laplace.sf(threshold + noise - values[len(answers)], scale=scales[1])
        extend((*answers, True), weight * above)
        extend((*answers, False), weight * (1 - above))

    extend((), density)
    return law


@pytest.mark.parametrize("monotonic", [False, True])
def test_answers_above_a_threshold_follow_the_formula(monotonic: bool) -> None:
    mechanism = AboveThreshold(epsilon=3.0, threshold=1.0, max_positives=2, monotonic=monotonic)
    values = [0.0, 2.5, 1.0, -1.0]
    seen = Counter(tuple(mechanism.release(values).tolist()) for _ in range(N))
    scales = (mechanism.threshold_scale, mechanism.scale)
    law = above_law(values, 1.0, scales, 2)
    assert math.isclose(sum(law.values()), 1.0, rel_tol=1e-6)
    assert set(seen) <= set(law)

    def judge(law: dict[Any, float]) -> float:
        total = sum(law.values())
        return p_value(np.array([seen[a] for a in law]), np.array([p / total for p in law.values()]))

    assert judge(law) > FALSE_ALARM
    # Positive controls: no noise on the threshold, or fresh noise for each value only.
    assert judge(above_law(values, 1.0, (1e-3, scales[1]), 2)) < FALSE_ALARM
    assert judge(above_law(values, 1.0, (scales[0], 1.3 * scales[1]), 2)) < FALSE_ALARM
