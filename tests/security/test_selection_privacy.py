"""The worst likelihood ratios, over all small scores and all their neighbours, in exact fractions.

With ``q = exp(-1/scale)`` replaced by a fraction every probability is a fraction, and ``exp(epsilon)`` a power of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

Q = Fraction(2, 3)
Law = Callable[[Sequence[int]], list[Fraction]]


def softmax(scores: Sequence[int]) -> list[Fraction]:
    weights = [Q ** (max(scores) - score) for score in scores]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip(scores: Sequence[int]) -> list[Fraction]:
    """Uniform among the heads, summed over all coins."""
    heads = [Q ** (max(scores) - score) for score in scores]
    law = [Fraction(0)] * len(scores)
    for coins in itertools.product([False, True], repeat=len(scores)):
        probability = Fraction(1)
        for coin, head in zip(coins, heads, strict=True):
            probability *= head if coin else 1 - head
        for i, coin in enumerate(coins):
            law[i] += probability / sum(coins) if coin else 0
    return law


def noisy_max(scores: Sequence[int], levels: int = 54) -> list[Fraction]:
    """The largest score plus geometric noise, ties broken evenly; what happens above so many levels is left out."""
    law = [Fraction(0)] * len(scores)
    for top in range(min(scores), max(scores) + levels):
        at = [Q ** (top - score) * (1 - Q) if top >= score else Fraction(0) for score in scores]
        below = [1 - Q ** (top - score) if top >= score else Fraction(0) for score in scores]
        for tied in itertools.product([False, True], repeat=len(scores)):
            probability = Fraction(1)
            for i, tie in enumerate(tied):
                probability *= at[i] if tie else below[i]
            for i, tie in enumerate(tied):
                law[i] += probability / sum(tied) if tie else 0
    return law


def vectors(candidates: int, largest: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(largest + 1), repeat=candidates)


def neighbours(scores: Sequence[int], monotonic: bool, step: int = 1) -> Iterator[tuple[int, ...]]:
    changes = itertools.product([0, step] if monotonic else [-step, 0, step], repeat=len(scores))
    for change in changes:
        yield tuple(score + difference for score, difference in zip(scores, change, strict=True))


def worst_ratio(law: Law, monotonic: bool) -> Fraction:
    """Over both directions: a monotonic change and its reverse."""
    worst = Fraction(0)
    for scores in vectors(3, 3):
        probabilities = law(scores)
        for other in neighbours(scores, monotonic):
            for p, p_other in zip(probabilities, law(other), strict=True):
                worst = max(worst, p / p_other, p_other / p)
    return worst


@pytest.mark.parametrize("law", [softmax, permute_and_flip])
def test_the_worst_ratio_is_that_of_epsilon(law: Law) -> None:
    # The scale is 2/epsilon steps, or 1/epsilon for monotonic scores: exp(epsilon) is q^-2, or q^-1.
    assert worst_ratio(law, monotonic=False) <= Q**-2
    assert worst_ratio(law, monotonic=True) <= Q**-1
    # It is nearly attained, and monotonic scores' scale is too small for others: a planted fault.
    assert worst_ratio(law, monotonic=False) > Q**-1


def test_noisy_max_is_permute_and_flip() -> None:
    for scores in vectors(3, 3):
        left_out = 1 - sum(noisy_max(scores))
        assert 0 <= left_out < Fraction(1, 10**9)
        for noisy, flipped in zip(noisy_max(scores), permute_and_flip(scores), strict=True):
            assert 0 <= flipped - noisy <= left_out
    # Positive control: with another way of breaking ties it is not.
    assert noisy_max((1, 0))[0] != softmax((1, 0))[0]


def above_threshold(values: Sequence[int], limit: int, b1: int, b2: int) -> dict[tuple[bool, ...], float]:
    """The probabilities of all answers to values compared with 0, for noise of scales ``b1`` and ``b2``.

    Sums of positive terms, in floating point: relative errors are below 1e-12. What is left out, noise of the threshold
    beyond 40 scales, has a probability below 1e-17, far less than any answer below.
    """
    noise = np.arange(-40 * b1, 40 * b1 + 1)
    law = {}

    def extend(answers: tuple[bool, ...], weights: np.ndarray) -> None:
        if len(answers) == len(values) or sum(answers) == limit:
            law[answers] = float(weights.sum())
            return
        limits = noise - values[len(answers)]
        tails = np.exp(-np.abs(limits) / b2) / (1 + np.exp(-1 / b2))
        above = np.where(limits > 0, tails, 1 - tails * np.exp(-1 / b2))
        below = np.where(limits > 0, 1 - tails, tails * np.exp(-1 / b2))
        extend((*answers, True), weights * above)
        extend((*answers, False), weights * below)

    extend((), np.exp(-np.abs(noise) / b1))
    return {answers: probability / sum(law.values()) for answers, probability in law.items()}


@pytest.mark.parametrize("monotonic", [False, True])
def test_the_worst_ratio_of_the_sparse_vector_technique(monotonic: bool) -> None:
    # A sensitivity of 4 steps, epsilon1 = 1 and epsilon2 = 1.
    step, limit = 4, 2
    scales = step, (1 if monotonic else 2) * limit * step
    worst = 1.0
    for values in itertools.product([-2 * step, 0, 2 * step], repeat=4):
        law = above_threshold(values, limit, *scales)
        for other in neighbours(values, monotonic, step):
            law_other = above_threshold(other, limit, *scales)
            worst = max(worst, *(max(law[a] / law_other[a], law_other[a] / law[a]) for a in law))
    assert math.exp(0.9) < worst <= math.exp(2) * (1 + 1e-9)


def test_a_variant_that_does_not_scale_with_the_positives_is_found() -> None:
    # Positive control: Algorithm 4 of Lyu, Su and Li (2017), with noise for one positive answer where there are four.
    step, limit = 4, 4
    signs = np.array([1] * limit + [-1] * 2 * limit)
    low, high = (above_threshold(sign * signs * step // 2, limit, step, step) for sign in (-1, 1))
    assert max(high[a] / low[a] for a in high) > math.exp(2)
