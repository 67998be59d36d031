"""Choose the clip norm and the learning rate of DP-SGD by private selection, beside a search that pays for each run.

Run it with ``python examples/private_tuning.py``; it needs the extra ``accounting``.
"""

import itertools
import random
from functools import partial
from typing import NamedTuple

import numpy as np
from dp_sgd_adult import accuracy, example_gradients

import dpnoise
from dpnoise import datasets, sgd

EPSILON, DELTA = 1.0, 1e-6
RUNS = 10  # of the search that pays for each, and on average of private selection
STEPS, SAMPLE_RATE, EXPECTED_BATCH_SIZE = 100, 0.05, 600
CANDIDATES = list(itertools.product((0.03, 0.1, 0.3, 1.0, 3.0), (0.1, 0.5, 2.0, 8.0)))  # clip norms, learning rates


class Rows(NamedTuple):
    """Features, and whose income is high."""

    features: np.ndarray
    is_high: np.ndarray


class Run(NamedTuple):
    """What is released of one training."""

    weights: np.ndarray
    candidate: tuple[float, float]


def run(train: Rows, score: Rows, cost: dpnoise.PrivacyCost) -> tuple[int, Run]:
    """Train with a random candidate; a person is either trained on or scored, so both may have the whole cost."""
    candidate = clip_norm, learning_rate = random.SystemRandom().choice(CANDIDATES)
    plan = {"epsilon": cost.epsilon, "delta": cost.delta, "sample_rate": SAMPLE_RATE, "steps": STEPS, "method": "rdp"}
    noisy = sgd.NoisyGradient(
        clip_norm=clip_norm,
        noise_multiplier=sgd.noise_multiplier_for(**plan),
        expected_batch_size=EXPECTED_BATCH_SIZE,
    )
    weights = np.zeros(train.features.shape[1])
    for _ in range(STEPS):
        batch = sgd.poisson_sample(len(train.features), SAMPLE_RATE)
        weights -= learning_rate * noisy.release(
            example_gradients(weights, train.features[batch], train.is_high[batch])
        )
    right = np.count_nonzero((score.features @ weights > 0) == score.is_high)
    return dpnoise.DiscreteLaplace(epsilon=cost.epsilon).release(right), Run(weights, candidate)


def main() -> None:
    """Search in both ways, and print how well the chosen weights predict others."""
    features, is_high, _ = datasets.adult_incomes()
    features = np.column_stack([np.ones(len(features)), features])
    # Every fifth row plays public data, by which anybody may judge the weights: no claim is about it.
    is_test = np.arange(len(features)) % 5 == 0
    # A coin for each person: the place of a row would depend on who else is there.
    is_scored = dpnoise.samplers.bernoulli(0.5, size=len(features)) & ~is_test
    train, score, test = (Rows(features[rows], is_high[rows]) for rows in (~is_test & ~is_scored, is_scored, is_test))

    each = dpnoise.PrivacyCost(EPSILON / RUNS, DELTA / RUNS, "add/remove")
    _, naive = max((run(train, score, each) for _ in range(RUNS)), key=lambda scored: scored[0])

    cost = dpnoise.PrivacyCost(0.166, DELTA / 10.1, "add/remove")
    selection = dpnoise.PrivateSelection(run_cost=cost, mean=RUNS, stopping="poisson")
    _, chosen = selection.release(partial(run, train, score, cost))

    for name, found, of_run, paid in (
        ("every run is paid", naive, each, EPSILON),
        ("private selection", chosen, cost, selection.epsilon),
    ):
        print(
            f"{name}: accuracy {accuracy(found.weights, *test):.4f}, clip norm and learning rate {found.candidate}, "
            f"epsilon {of_run.epsilon:.3f} for a run, {paid:.4f} for all"
        )
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
