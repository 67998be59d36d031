"""Let analysts look at raw data before they say what should be computed, and release that, all of it privately.

Each analyst sees the rows of one block, as they are, and proposes a statistic. What most propose is chosen by noisy
max, and then computed privately from all rows. Here the analysts are a function; people could take its place.

Run it with ``python examples/raw_data_problem.py``; it prints Markdown, and ``--help`` says how to draw it.
"""

from collections.abc import Callable
from typing import Any

import _curves
import numpy as np
from numpy.typing import NDArray

from dpnoise import ReportNoisyMax, datasets, queries, stability

ANALYSTS = 25
SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)

# Public: what both columns hold are whole numbers below 100.
COLUMNS = {"age": datasets.adult_ages(), "hours per week": datasets.adult_hours_per_week()}
LIMIT = 100


def mean(column: NDArray[np.int64], epsilon: float) -> float:
    """Release the mean."""
    return queries.Mean(bounds=(0, LIMIT), epsilon=epsilon, relation="substitute").release(column)


def median(column: NDArray[np.int64], epsilon: float) -> float:
    """Release the median."""
    return queries.Median(bounds=(0, LIMIT), epsilon=epsilon, relation="substitute").release(column)


def commonest(column: NDArray[np.int64], epsilon: float) -> float:
    """Release the commonest value."""
    return ReportNoisyMax(epsilon=epsilon).release(np.bincount(column, minlength=LIMIT))


# Public: what may be proposed.
STATISTICS: dict[str, Callable[[NDArray[np.int64], float], float]] = {
    "mean": mean,
    "median": median,
    "commonest value": commonest,
}


def proposal(column: NDArray[np.int64]) -> str:
    """Look at the rows and propose what describes them: what an analyst does."""
    if np.bincount(column).max() > 0.3 * len(column):
        return "commonest value"
    skewed = abs(np.mean(column) - np.median(column)) > 0.1 * np.std(column)
    return "median" if skewed else "mean"


def chosen(column: NDArray[np.int64], epsilon: float) -> Any:
    """Choose the statistic that most analysts propose."""
    return stability.SubsampleAndAggregate(
        f=proposal, blocks=ANALYSTS, aggregate="noisy_max", candidates=list(STATISTICS), epsilon=epsilon
    ).release(column)


def experiment(n: int) -> dict[tuple[str, str], bool]:
    """Say whether what is chosen for n people is what an analyst proposes who sees all 32,561."""
    rng = np.random.default_rng()
    found = {}
    for name, column in COLUMNS.items():
        people = rng.choice(column, n, replace=False)
        found[name, "not private"] = proposal(people) == proposal(column)
        for epsilon in (0.2, 1.0):
            found[name, f"{ANALYSTS} analysts, ε = {epsilon:g}"] = chosen(people, epsilon) == proposal(column)
    return found


def main() -> None:
    """Show how often the choice is right, and make one release for an epsilon of 1 in all."""
    _curves.show(experiment, SIZES, "the statistic is that of one who sees all", repetitions=3)
    print()
    for name, column in COLUMNS.items():
        statistic = chosen(column, epsilon=0.5)
        print(f"{name}: the {statistic} is {STATISTICS[statistic](column, 0.5):.2f}, ε = 0.5 for the choice and for it")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
