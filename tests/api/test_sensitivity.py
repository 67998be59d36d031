"""Sensitivities against brute force over all small data sets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnoise import ParameterError, sensitivity

GRID = [-1.0, -0.25, 0.5, 1.25, 2.0]
BOUNDS = (GRID[0], GRID[-1])


def worst(answer: Callable[[Any], float], rows: int, relation: str) -> float:
    """The largest change over all neighbouring data sets of values from the grid."""
    found = 0.0
    for rest in itertools.product(GRID, repeat=rows - 1):
        answers = [answer([*rest, value]) for value in GRID]
        answers += [answer(list(rest))] if relation == "add/remove" else []
        base = answers[-1:] if relation == "add/remove" else answers
        found = max(found, max(abs(one - other) for one in answers for other in base))
    return found


@pytest.mark.parametrize(
    "given",
    [
        list,
        np.array,
        pd.Series,
        lambda counts: np.array(counts, np.uint64),
        lambda counts: Counter(dict(enumerate(counts))),
        lambda counts: {kind: count for kind, count in enumerate(counts) if count},
    ],
)
def test_the_distance_of_histograms_is_the_fewest_additions_and_removals(given: Any) -> None:
    """By breadth-first search over all histograms of two kinds, with up to three records of each."""
    points = list(itertools.product(range(4), repeat=2))
    for start in points:
        found, edge = {start: 0}, [start]
        while edge:
            edge = [
                other
                for x in edge
                for other in [(x[0] + 1, x[1]), (x[0] - 1, x[1]), (x[0], x[1] + 1), (x[0], x[1] - 1)]
                if other in points and other not in found and not found.update({other: found[x] + 1})  # type: ignore[func-returns-value]
            ]
        for other in points:
            assert sensitivity.histogram_distance(given(start), given(other)) == found[other]


def test_the_distance_of_histograms_is_exact() -> None:
    large = 2**63 - 1
    assert sensitivity.histogram_distance([large, 0], [0, large]) == 2 * large
    assert sensitivity.histogram_distance(Counter("aab"), Counter("abc")) == 2
    assert sensitivity.histogram_distance([], []) == sensitivity.histogram_distance({}, {}) == 0


@pytest.mark.parametrize(
    ("x", "x_prime", "kind", "message"),
    [
        ([1], [1, 2], ParameterError, "^x_prime must have as many counts as x, which has 1, got 2$"),
        ({"a": 1}, [1], TypeError, "^x and x_prime must be both mappings or both arrays of counts, got dict and list$"),
        (["a", "b"], ["a", "c"], TypeError, "^every count of x must be an int, got str$"),
        ([1], [1.0], TypeError, "^every count of x_prime must be an int, got float$"),
        (
            [1],
            [-1],
            ParameterError,
            "^every count of x_prime must be an integer from 0 to 9223372036854775807, got -1$",
        ),
        ([[1]], [[1]], ParameterError, "^x must have one dimension"),
        ("ab", "ac", TypeError, "^x must be a NumPy array, list"),
    ],
)
def test_what_is_no_histogram_is_refused(x: Any, x_prime: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        sensitivity.histogram_distance(x, x_prime)


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
def test_sums_and_counts(relation: Any) -> None:
    assert worst(sum, 3, relation) == sensitivity.sum(BOUNDS, relation)
    assert worst(lambda rows: np.sum(np.array(rows) > 0), 3, relation) == sensitivity.count(relation)


def test_means_and_variances() -> None:
    for rows in (1, 2, 3, 4):
        assert worst(np.mean, rows, "substitute") == pytest.approx(sensitivity.mean(BOUNDS, rows))
        assert worst(np.var, rows, "substitute") == pytest.approx(sensitivity.variance(BOUNDS, rows))


def test_bad_parameters_are_named() -> None:
    wrong: Any = "unbounded"
    with pytest.raises(ParameterError, match='relation must be "add/remove" or "substitute", got \'unbounded\''):
        sensitivity.count(wrong)
    with pytest.raises(ParameterError, match="bounds must be two finite numbers"):
        sensitivity.sum((1.0, math.nan))
    with pytest.raises(ParameterError, match="n must be an integer from 1 to "):
        sensitivity.mean((0.0, 1.0), 0)
    with pytest.raises(ParameterError, match="q must be between 0 and 1, got 1"):
        sensitivity.quantile_score(1)
    with pytest.raises(TypeError, match="bounds must be two numbers"):
        sensitivity.sum(wrong)
