"""Choose the column that predicts an outcome best, by the votes of blocks, beside the choice that is not private.

Run it with ``python examples/best_predictor.py``; it prints Markdown, and ``--help`` says how to draw it.
"""

from collections.abc import Callable
from typing import Any

import _curves
import numpy as np
from numpy.typing import NDArray

from dpnoise import stability

EPSILON, DELTA, BLOCKS = 1.0, 1e-6, 40
SIZES = (500, 1000, 2000, 4000, 8000, 16_000)

# Public: what the columns are called, and that the outcome is the first of the matrix.
COLUMNS = ("age", "income", "exercise", "sleep", "schooling", "commute")

# What is simulated: how much the outcome changes with each column.
EFFECTS = {
    "a clear winner": (0.4, 0.25, 0.2, 0.1, 0.0, 0.0),
    "a close race": (0.4, 0.37, 0.2, 0.1, 0.0, 0.0),
}


def simulate(n: int, effects: tuple[float, ...]) -> NDArray[np.float64]:
    """Draw n people: an outcome and the six columns."""
    rng = np.random.default_rng()
    columns = rng.normal(size=(n, len(COLUMNS)))
    return np.column_stack([columns @ effects + rng.normal(size=n), columns])


def best_column(people: NDArray[np.float64]) -> str:
    """Name the column that is most correlated with the outcome."""
    correlations = np.corrcoef(people, rowvar=False)[0, 1:]
    return COLUMNS[np.argmax(np.abs(correlations))]


def noisy_max(people: NDArray[np.float64]) -> Any:
    """Choose by the noisy number of blocks in which a column is the best; there is always a choice."""
    return stability.SubsampleAndAggregate(
        f=best_column, blocks=BLOCKS, aggregate="noisy_max", candidates=COLUMNS, epsilon=EPSILON
    ).release(people)


def mode(people: NDArray[np.float64]) -> Any:
    """Choose the column that most blocks vote for, if the vote is clear: exactly that one, or None."""
    return stability.SubsampleAndAggregate(
        f=best_column, blocks=BLOCKS, aggregate="mode", epsilon=EPSILON, delta=DELTA
    ).release(people)


WAYS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "not private": best_column,
    f"noisy max, ε = {EPSILON:g}": noisy_max,
    f"mode, ε = {EPSILON:g}, δ = 10⁻⁶": mode,
}


def experiment(n: int) -> dict[tuple[str, str], bool]:
    """Say which way of choosing finds the column with the largest effect, in each race."""
    races = {race: simulate(n, effects) for race, effects in EFFECTS.items()}
    return {(race, way): choose(people) == COLUMNS[0] for race, people in races.items() for way, choose in WAYS.items()}


if __name__ == "__main__":
    _curves.show(experiment, SIZES, "the best column is chosen", repetitions=3)
