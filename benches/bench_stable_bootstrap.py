"""Subsets that vote, per second, beside NumPy doing the same with whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from benches.timing import Entrant
from dpnoise._native import SubsetVotes

Q = 1 / (64 * math.log(1e6))  # for epsilon = 1 and delta = 10^-6
POSITIONS = 2_000_000
VALUES = 15
COLUMNS = 10
FUNCTIONS = ("mode", "median", "argmax_column_sum")


@cache
def table(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    if name == "argmax_column_sum":
        return rng.normal([1.0, *[0.0] * (COLUMNS - 1)], 1.0, (n, COLUMNS))
    return rng.choice(VALUES, n, p=[0.44, *[0.04] * (VALUES - 1)]).astype(np.uint32)


def subsets_of(n: int) -> int:
    return int(POSITIONS / (n * Q))


def options(name: str) -> int:
    return COLUMNS if name == "argmax_column_sum" else VALUES


def native(name: str, n: int, threads: int) -> np.ndarray:
    votes = getattr(SubsetVotes, name)(table(name, n).ravel(), options(name), Q, threads)
    votes.add(subsets_of(n))
    assert votes.most_appearances < 4 * subsets_of(n) * Q + 60
    return votes.counts[:-1]


def numpy_votes(name: str, n: int) -> np.ndarray:
    """Draw the skips between members of subsets that stand one after the other, like ours."""
    subsets, rng = subsets_of(n), np.random.default_rng()
    cells = np.cumsum(rng.geometric(Q, int(1.01 * POSITIONS) + 10_000)) - 1
    subset, row = np.divmod(cells[cells < subsets * n], n)
    assert np.bincount(row, minlength=n).max() < 4 * subsets * Q + 60
    if name == "argmax_column_sum":
        starts = np.searchsorted(subset, np.arange(subsets))
        chosen = np.add.reduceat(table(name, n)[row], np.minimum(starts, len(row) - 1)).argmax(axis=1)
    else:
        counts = np.bincount(subset * VALUES + table(name, n)[row], minlength=subsets * VALUES).reshape(subsets, VALUES)
        if name == "mode":
            chosen = counts.argmax(axis=1)
        else:
            below = counts.cumsum(axis=1)
            chosen = (2 * below >= below[:, -1:]).argmax(axis=1)
    return np.bincount(chosen, minlength=options(name))


def check(name: str, n: int, counts: np.ndarray) -> None:
    subsets = subsets_of(n)
    assert 0.98 * subsets < counts.sum() <= subsets
    assert counts.max() > 0.2 * subsets


@pytest.mark.parametrize("n", [10_000, 100_000])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_subsets(race: Any, ours: Callable[..., list[Entrant]], name: str, n: int) -> None:
    # A rate is per nanosecond; so many items make it millions a second.
    items = 1000 * subsets_of(n)
    checked = partial(check, name, n)
    entrants = [
        *ours(partial(native, name, n), checked, items),
        Entrant("NumPy, PCG64", partial(numpy_votes, name, n), checked, items),
    ]
    race("Stable bootstrap", f"{name}, n = {n:,}", "million subsets/s", entrants, rate=True)


def test_a_fast_wrong_answer_is_refused() -> None:
    n = 10_000
    counts = native("mode", n, threads=1)
    check("mode", n, counts)
    for wrong in (counts // 2, np.full(VALUES, subsets_of(n) // VALUES)):
        with pytest.raises(AssertionError):
            check("mode", n, wrong)
