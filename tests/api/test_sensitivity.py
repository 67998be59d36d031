"""Sensitivities against brute force over all small data sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
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
