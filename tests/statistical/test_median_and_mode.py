"""What an audit shows of releases at the edge of stability, where neighbours have different answers.

A correct release is refuted with a probability of at most 1e-9 in each test.
"""

from __future__ import annotations

import math
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpnoise import audit, stability
from dpnoise._native import StabilityTest
from dpnoise.stability import _median_and_mode

pytestmark = pytest.mark.long

N = min(int(os.environ.get("DPNOISE_TEST_SAMPLES", 15_000)), 100_000)
EPSILON, DELTA = 1.0, 0.037  # noise is above 2 with a probability of 0.0364, above 1 with 0.0989
# The middle value changes, and so does the most frequent one.
EDGES = {
    "substitute": (np.array([1, 1, 1, 2, 2]), np.array([1, 1, 2, 2, 2])),
    "add/remove": (np.array([1, 1, 2, 2, 2]), np.array([1, 1, 2, 2])),
}


def too_low(epsilon: float, delta: float) -> Any:
    """Make a test whose threshold is the one before, with the same claim."""
    right, wrong = StabilityTest(epsilon, delta), StabilityTest(epsilon, delta * math.exp(epsilon))
    assert wrong.threshold == right.threshold - 1
    return SimpleNamespace(epsilon=epsilon, delta=delta, passes=wrong.passes)


@pytest.mark.parametrize("relation", EDGES)
@pytest.mark.parametrize("kind", [stability.StableMedian, stability.StableMode])
def test_an_unstable_answer_is_released_as_seldom_as_delta_says(
    kind: type[Any], relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report() -> audit.Check:
        made = kind(epsilon=EPSILON, delta=DELTA, relation=relation)
        found = audit.check(made, *EDGES[relation], epsilon=EPSILON, delta=DELTA, n=N, level=1 - 1e-9)
        print(found)
        return found

    assert not report().refuted
    monkeypatch.setattr(_median_and_mode, "stability_test", too_low)
    assert report().refuted
