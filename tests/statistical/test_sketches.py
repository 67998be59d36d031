"""Bias, variance and intervals of the estimates of sketches, over collections with hash functions each.

The variance of an estimate is known exactly: that of the randomisation, and that of the accidents that texts share
columns. A correct sketch is rejected with a probability of 1e-9 by each check, if errors are taken as normal; each
check is also run on a planted fault, which it must find. ``pytest -rP`` shows the figures.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import local

pytestmark = pytest.mark.long

ALARM = 1e-9
REPETITIONS = 1000
# Errors of some 15 standard deviations or more, where the limit is 6.4.
ENOUGH_FOR_FAULTS = 400
LEVEL = 0.95
TRUTH = np.array([800, 400, 400, 200, 120, 80, 0, 0])
TEXTS = ["plum", "pear", "quince", "fig", "apple", "medlar", "melon", "date"]
SHAPES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "count mean sketch, many collisions": (local.CountMeanSketch, {"epsilon": 4.0, "rows": 64, "width": 16}),
    "count mean sketch, few collisions": (local.CountMeanSketch, {"epsilon": 1.0, "rows": 300, "width": 256}),
    "Hadamard, many collisions": (local.HadamardCountMeanSketch, {"epsilon": 4.0, "rows": 64, "width": 16}),
    "Hadamard, few collisions": (local.HadamardCountMeanSketch, {"epsilon": 1.0, "rows": 300, "width": 256}),
}
SEED = 11  # of hash functions by which texts share more columns than usual
LIMIT = float(stats.norm.isf(ALARM / (2 * TRUTH.size)))


@dataclass
class Collections:
    """The estimated counts of all collections, and which of their intervals hold the true ones."""

    counts: NDArray[np.float64]
    held: NDArray[np.bool_]


def collections(name: str, seeds: list[int], epsilon: float | None = None) -> Collections:
    """Collect reports, made with another epsilon if one is given."""
    make, shape = SHAPES[name]
    texts = np.repeat(TEXTS, TRUTH).tolist()
    counts, held = np.empty((len(seeds), TRUTH.size)), np.empty((len(seeds), TRUTH.size), bool)
    for row, seed in enumerate(seeds):
        sketch = make(**shape, seed=seed)
        sender = sketch if epsilon is None else make(**{**shape, "epsilon": epsilon}, seed=seed)
        estimate = sketch.estimate(sender.perturb(texts), TEXTS, level=LEVEL)
        counts[row] = estimate.counts
        held[row] = (estimate.lower <= TRUTH) & (estimate.upper >= TRUTH)
    return Collections(counts, held)


honest = functools.cache(lambda name: collections(name, list(range(REPETITIONS))))


def variances(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the variance of each count that the randomisation causes, and that which collisions add."""
    make, shape = SHAPES[name]
    spec = json.loads(make(**shape).to_json())
    one, width = 2 ** spec["planes"], spec["width"]
    p, q = (spec["p"] / one, spec["q"] / one) if "p" in spec else (0.5 + spec["keep"] / one / 2, 0.5)
    q += (p - q) / width
    n, share = TRUTH.sum(), TRUTH / TRUTH.sum()
    pairs = TRUTH * (TRUTH - 1)
    return n * (q * (1 - q) + share * (p - q) * (1 - p - q)) / (p - q) ** 2, (pairs.sum() - pairs) / (
        spec["rows"] * (width - 1)
    )


def bias(name: str, found: Collections) -> NDArray[np.float64]:
    """The z-scores of the mean errors."""
    return (found.counts.mean(axis=0) - TRUTH) / np.sqrt(sum(variances(name)) / len(found.counts))


def dispersion(found: Collections, variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The z-scores of the mean squared errors."""
    squares = ((found.counts - TRUTH) ** 2).sum(axis=0) / variance
    chi2 = stats.chi2(len(found.counts))
    return np.where(squares > len(found.counts), stats.norm.isf(chi2.sf(squares)), stats.norm.ppf(chi2.cdf(squares)))


def intervals_hold(found: Collections) -> bool:
    """Whether as many intervals hold as should, if their probability is within 0.01 of the level."""
    times, tail = found.held.sum(axis=0), ALARM / (2 * TRUTH.size)
    n = len(found.held)
    least, most = stats.binom(n, LEVEL - 0.01).ppf(tail), stats.binom(n, LEVEL + 0.01).isf(tail)
    return bool(np.all((least <= times) & (times <= most)))


@pytest.mark.parametrize("name", SHAPES)
def test_estimates_are_unbiased(name: str) -> None:
    z = bias(name, honest(name))
    print(f"{name}: z-scores of the mean errors from {z.min():.2f} to {z.max():.2f}")
    assert np.abs(z).max() < LIMIT


@pytest.mark.parametrize("name", SHAPES)
def test_the_variance_is_that_of_theory(name: str) -> None:
    z = dispersion(honest(name), sum(variances(name)))
    print(f"{name}: z-scores of the mean squared errors from {z.min():.2f} to {z.max():.2f}")
    assert np.abs(z).max() < LIMIT


@pytest.mark.parametrize("name", SHAPES)
def test_intervals_hold_as_often_as_they_say(name: str) -> None:
    shares = honest(name).held.mean(axis=0)
    print(f"{name}: {shares.min():.3f} to {shares.max():.3f} of the intervals hold")
    assert intervals_hold(honest(name))


@pytest.mark.parametrize("name", SHAPES)
def test_reports_of_another_epsilon_are_found(name: str) -> None:
    found = collections(name, list(range(ENOUGH_FOR_FAULTS)), SHAPES[name][1]["epsilon"] / 1.2)
    assert np.abs(bias(name, found)).max() > LIMIT


@pytest.mark.parametrize("name", ["count mean sketch, many collisions", "Hadamard, many collisions"])
def test_hash_functions_that_never_change_are_found(name: str) -> None:
    """What collisions do is not a matter of chance then: mean errors stay, and some intervals fail all the time."""
    found = collections(name, [SEED] * ENOUGH_FOR_FAULTS)
    assert np.abs(bias(name, found)).max() > LIMIT
    assert not intervals_hold(found)


@pytest.mark.parametrize("name", ["count mean sketch, many collisions", "Hadamard, many collisions"])
def test_a_variance_without_collisions_is_found(name: str) -> None:
    randomisation, _ = variances(name)
    assert np.abs(dispersion(honest(name), randomisation)).max() > LIMIT
