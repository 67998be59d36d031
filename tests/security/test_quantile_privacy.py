"""The worst likelihood ratios of quantiles, over all short columns and all their neighbours, in exact fractions.

The specification has the scores and the runs that the release is compared with, bit for bit, in tests/vectors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import cast

import pytest
from vectors.selection_spec import Quantile as Specification

from dpnoise import sensitivity
from dpnoise.sensitivity import Relation

Q = Fraction(2, 3)  # exp(-1 / scale)
INFINITE = 10**9  # above all ratios that a test allows
ENDS = (0, 3)
VALUES = [None, 0, 1, 3]
Column = tuple[int | None, ...]
Law = Callable[[Specification, Column], list[Fraction]]

RELATIONS = ["add/remove", "substitute"]
QUANTILES = [Fraction(1, 2), Fraction(1, 10), Fraction(3, 4)]


def neighbours(relation: str, rows: int = 3) -> Iterator[tuple[Column, Column]]:
    for n in range(1, rows + 1):
        for column in itertools.product(VALUES, repeat=n):
            if relation == "add/remove":
                yield column, column[:-1]
            else:
                yield from ((column, (*column[:-1], value)) for value in VALUES)


def law(spec: Specification, column: Column) -> list[Fraction]:
    """The probability of each candidate: that of its run, and of its place in it."""
    weights: dict[int, Fraction] = {}
    for score, first, length in spec.runs(column):
        weights |= dict.fromkeys(range(first, first + length), Q**-score)
    return [weights[candidate] / sum(weights.values()) for candidate in range(ENDS[0], ENDS[1] + 1)]


def law_between_values(spec: Specification, column: Column) -> list[Fraction]:
    """A planted fault: candidates between the smallest and the largest value only."""
    present = [value for value in column if value is not None] or list(ENDS)
    kept = [probability if min(present) <= candidate <= max(present) else Fraction(0)
            for candidate, probability in enumerate(law(spec, column))]  # fmt: skip
    return [probability / sum(kept) for probability in kept]


def worst_ratio(law: Law, q: Fraction, relation: str) -> Fraction:
    """Over both directions; INFINITE where only one of two probabilities is 0."""
    spec, worst = Specification(q, ENDS), Fraction(0)
    for column, neighbour in neighbours(relation):
        for p, other in zip(law(spec, column), law(spec, neighbour), strict=True):
            worst = max(worst, p / other if other else INFINITE * (p > 0), other / p if p else INFINITE * (other > 0))
    return worst


def steps(q: Fraction, relation: str) -> int:
    return int(
        Fraction(sensitivity.quantile_score(float(q), cast("Relation", relation))).limit_denominator() * q.denominator
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_scores_move_by_their_sensitivity_at_most(q: Fraction, relation: str) -> None:
    spec, worst = Specification(q, ENDS), 0
    for column, neighbour in neighbours(relation):
        for candidate in range(ENDS[0], ENDS[1] + 1):
            worst = max(worst, abs(spec.score(column, candidate) - spec.score(neighbour, candidate)))
    assert worst == steps(q, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
def test_the_worst_ratio_is_that_of_epsilon(q: Fraction, relation: str) -> None:
    # The scale is 2 steps / epsilon: exp(epsilon) is Q to the power of -2 steps.
    assert worst_ratio(law, q, relation) <= Q ** (-2 * steps(q, relation))
    # Positive control: candidates that depend on the values.
    assert worst_ratio(law_between_values, q, relation) > Q ** (-2 * steps(q, relation))
