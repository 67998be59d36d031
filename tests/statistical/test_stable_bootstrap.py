"""The stable bootstrap audited, with new subsets for every release."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpnoise import audit
from dpnoise._native import StabilityTest
from dpnoise.stability._stable_bootstrap import _released
from dpnoise.stability._subset_votes import NativeFunction, Votes

pytestmark = pytest.mark.long

# `make statistical` draws more.
N = min(int(os.environ.get("DPNOISE_TEST_SAMPLES", 2_000_000)) // 300, 100_000)
LEVEL = 1 - 1e-9

Q = 1 / 12
SUBSETS = 250
CAP = math.floor(2 * SUBSETS * Q)

# Each subset with row 0 votes for another column, so the lead of the first column crosses a border, of 6 C.
X = np.tile([0.1, 0.0], (120, 1))
X_PRIME = X.copy()
X_PRIME[0] = [0.0, 1e3]


def votes_of(matrix: np.ndarray, q: float, subsets: int) -> Votes:
    return NativeFunction("argmax_column_sum", matrix, 1).count(subsets, q, None, lambda units: None)


def least_loss(release: Callable[[np.ndarray], object], n: int, delta: float = 0.0) -> float:
    return audit.epsilon_lower_bound(release, X, X_PRIME, n=n, level=LEVEL, delta=delta).epsilon


def test_no_more_is_lost_than_claimed() -> None:
    """Both inputs have the same winner, so nothing of delta is needed. Twice the loss must be found out."""
    claimed, doubled = StabilityTest(1.0, 0.05), StabilityTest(2.0, 0.05)
    assert 0.0 < least_loss(lambda matrix: _released(votes_of(matrix, Q, SUBSETS), CAP, claimed, None).value, N) <= 1.0
    assert least_loss(lambda matrix: _released(votes_of(matrix, Q, SUBSETS), CAP, doubled, None).value, N) > 1.0


def test_a_cap_that_is_forgotten_is_found_out() -> None:
    test = StabilityTest(1.0, 0.05)

    def release(matrix: np.ndarray) -> object:
        return _released(replace(votes_of(matrix, 0.49, 8), most_appearances=0), 1, test, None).value

    assert least_loss(release, n=2000, delta=0.05) > 1.0
