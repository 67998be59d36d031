"""Release which features a lasso selects, by the votes of blocks for each one and for the whole set.

Run it with ``python examples/lasso_features.py``; it needs the extra ``examples`` and prints Markdown. ``--help`` says
how to draw it.
"""

from typing import Any

import _curves
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Lasso

from dpnoise import stability

DELTA, BLOCKS = 1e-6, 60
SIZES = (2000, 4000, 8000, 16_000, 32_000)

# Public: how many features there are, and the penalty of the lasso.
FEATURES, PENALTY = 8, 0.15

# What is simulated: three features count, and neighbours are correlated.
COEFFICIENTS = np.array([1.0, 0.0, 0.6, 0.0, 0.0, 0.4, 0.0, 0.0])
CORRELATION = 0.3


def simulate(n: int) -> NDArray[np.float64]:
    """Draw n people: an outcome and their features."""
    rng = np.random.default_rng()
    covariance = CORRELATION ** np.abs(np.subtract.outer(np.arange(FEATURES), np.arange(FEATURES)))
    features = rng.multivariate_normal(np.zeros(FEATURES), covariance, n)
    return np.column_stack([features @ COEFFICIENTS + rng.normal(size=n), features])


def selected(people: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say of each feature whether the lasso gives it a coefficient."""
    coefficients: NDArray[np.float64] = Lasso(alpha=PENALTY).fit(people[:, 1:], people[:, 0]).coef_
    return coefficients != 0


def selected_set(people: NDArray[np.float64]) -> frozenset[int]:
    """Give the features that the lasso selects, as a whole."""
    return frozenset(np.flatnonzero(selected(people)).tolist())


def vote_per_feature(people: NDArray[np.float64], epsilon: float) -> Any:
    """Release the share of blocks that select each feature, and take those of more than half."""
    shares = stability.SubsampleAndAggregate(
        f=selected, blocks=BLOCKS, aggregate="mean", bounds=[(0, 1)] * FEATURES, epsilon=epsilon
    ).release(people)
    return frozenset(np.flatnonzero(shares > 0.5).tolist())


def vote_for_sets(people: NDArray[np.float64], epsilon: float) -> Any:
    """Release the set that most blocks select, if the vote is clear."""
    return stability.SubsampleAndAggregate(
        f=selected_set, blocks=BLOCKS, aggregate="mode", epsilon=epsilon, delta=DELTA
    ).release(people)


def experiment(n: int) -> dict[tuple[str, str], bool]:
    """Say which way gives the set that the lasso selects on all people."""
    people = simulate(n)
    wanted = selected_set(people)
    ways = {"vote per feature": vote_per_feature, "vote for sets, δ = 10⁻⁶": vote_for_sets}
    return {
        (f"ε = {epsilon:g}", way): release(people, epsilon) == wanted
        for epsilon in (1.0, 4.0)
        for way, release in ways.items()
    }


if __name__ == "__main__":
    _curves.show(experiment, SIZES, "the set is that of the lasso on all data", repetitions=1)
