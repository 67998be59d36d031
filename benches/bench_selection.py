"""The best of 10^5 scores, beside NumPy's noisy maximum and other libraries'."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from benches import peers
from benches.machine import OURS
from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import Exponential, ReportNoisyMax, TopK

N = 100_000
EPSILON = 1.0
MECHANISMS = {
    "exponential": Exponential(epsilon=EPSILON).release,
    "report noisy max": ReportNoisyMax(epsilon=EPSILON).release,
    "top 10": TopK(k=10, epsilon=EPSILON).release,
}
# One release makes one item of a million nanoseconds.
MILLISECOND = 1_000_000


@cache
def scores() -> np.ndarray:
    """Ten good scores, and many that are far enough below to be chosen hardly ever, even together."""
    values = np.random.default_rng(1).normal(-1000.0, 5.0, N)
    values[777:N:10_000] = 0.0
    return values


def check(chosen: Any) -> None:
    assert np.all(np.atleast_1d(chosen) % 10_000 == 777)
    assert len(np.unique(chosen)) == np.size(chosen)


def noisy_max(noise: Callable[..., np.ndarray], top: int = 1) -> Any:
    noisy = scores() + noise(scale=2 * top / EPSILON, size=N)
    return np.argmax(noisy) if top == 1 else np.argpartition(noisy, -top)[-top:]


def numpy_entrants(column: str) -> list[Entrant]:
    top = 10 if column == "top 10" else 1
    return [
        Entrant(f"NumPy, {kind}, {bits}", partial(noisy_max, getattr(generator, kind), top), check, MILLISECOND)
        for bits, generator in GENERATORS.items()
        for kind in ("exponential", "gumbel")
    ]


def release(column: str) -> Any:
    return MECHANISMS[column](scores())


@pytest.mark.parametrize("column", MECHANISMS)
def test_selection(race: Any, other_instruction_sets: dict[str, Executor], column: str) -> None:
    work = partial(release, column)
    entrants = [
        Entrant(OURS, work, check, MILLISECOND),
        *(Entrant(name, work, check, MILLISECOND, process) for name, process in other_instruction_sets.items()),
        *numpy_entrants(column),
        *(
            Entrant(library, choose, check, MILLISECOND)
            for library, choose in peers.selection_peers(column, scores().tolist(), EPSILON).items()
        ),
    ]
    race("Selection over 10^5 scores", column, "ms", entrants)


def test_a_fast_wrong_answer_is_refused() -> None:
    check(release("exponential"))
    for wrong in (778, [777, 777]):
        with pytest.raises(AssertionError):
            check(wrong)
