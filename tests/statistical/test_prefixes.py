"""What prefix extension finds, over many collections with hash functions and people's choices of their own.

Checks and alarms are as in `test_sketches`: counts of values that are always found are unbiased, have the variance that
follows from the definition, and lie in their intervals; and lists with a value that nobody has are as rare as promised.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import local

pytestmark = pytest.mark.long

ALARM = 1e-9
REPETITIONS = 1000
LEVEL = 0.8
VALUES = np.array([0xBEEF, 0xBE00])
TRUTH = np.array([36_000, 4_000])
SHAPE = {"bits": 16, "step": 8, "rows": 512, "width": 128}
EPSILON = 8.0
LIMIT = float(stats.norm.isf(ALARM / (2 * TRUTH.size)))


@dataclass
class Collections:
    """The counts of all collections, which intervals hold the true ones, and how many lists have a wrong value."""

    counts: NDArray[np.float64]
    held: int
    wrong: int


def collections(epsilon: float = EPSILON, level: float = LEVEL, repetitions: int = REPETITIONS) -> Collections:
    """Collect reports, made with any epsilon, and read with ours."""
    values = np.repeat(VALUES, TRUTH)
    counts, held, wrong = np.empty((repetitions, TRUTH.size)), 0, 0
    for row in range(repetitions):
        protocol = local.PrefixExtension(epsilon=EPSILON, **SHAPE, seed=row)
        sender = local.PrefixExtension(epsilon=epsilon, **SHAPE, seed=row)
        found = protocol.estimate(sender.perturb(values), level=level)
        places = [found.values.tolist().index(value) for value in VALUES.tolist()]
        counts[row] = found.counts[places]
        held += bool(np.all((found.lower[places] <= TRUTH) & (found.upper[places] >= TRUTH)))
        wrong += found.values.size > VALUES.size
    return Collections(counts, held, wrong)


honest = functools.cache(collections)


def variance(levels: int = 2) -> NDArray[np.float64]:
    """The variance of each count: one of so many people, drawn one by one, reports whole values.

    That of the sample's estimate, made larger for all people; that of the sample; and that of collisions.
    """
    spec = json.loads(local.PrefixExtension(epsilon=EPSILON, **SHAPE).to_json())
    keep, width = spec["keep"] / 2 ** spec["planes"], spec["width"]
    p, n = 0.5 + keep / 2, TRUTH.sum()
    q = 0.5 + (p - 0.5) / width
    share = TRUTH / n
    of_sample = levels * n * (q * (1 - q) + share * (p - q) * (1 - p - q)) / (p - q) ** 2
    of_sampling = n * (levels - 1) * share * (1 - share)
    pairs = TRUTH * (TRUTH - 1)
    return of_sample + of_sampling + (pairs.sum() - pairs) / (spec["rows"] * (width - 1))


def bias(found: Collections) -> NDArray[np.float64]:
    """The z-scores of the mean errors."""
    return (found.counts.mean(axis=0) - TRUTH) / np.sqrt(variance() / len(found.counts))


def dispersion(found: Collections, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """The z-scores of the mean squared errors."""
    squares = ((found.counts - TRUTH) ** 2).sum(axis=0) / expected
    chi2 = stats.chi2(len(found.counts))
    return np.where(squares > len(found.counts), stats.norm.isf(chi2.sf(squares)), stats.norm.ppf(chi2.cdf(squares)))


def test_counts_are_unbiased_with_the_variance_of_theory() -> None:
    mean, squares = bias(honest()), dispersion(honest(), variance())
    print(f"z-scores of the mean errors {np.round(mean, 2)}, of the mean squared errors {np.round(squares, 2)}")
    assert np.abs(mean).max() < LIMIT
    assert np.abs(squares).max() < LIMIT


def test_reports_of_another_epsilon_are_found() -> None:
    # With 40 collections the error is some 70 standard deviations.
    assert np.abs(bias(collections(epsilon=EPSILON / 2, repetitions=40))).max() > LIMIT


def test_a_variance_without_sampling_is_found() -> None:
    assert np.abs(dispersion(honest(), variance(levels=1))).max() > 2 * LIMIT  # which is far from chance


def test_wrong_values_and_failing_intervals_are_as_rare_as_promised() -> None:
    """Intervals of all values that were tested hold together with probability `LEVEL`; only the lower ends count."""
    most = stats.binom(REPETITIONS, 1 - LEVEL).isf(ALARM)
    failed = REPETITIONS - honest().held
    print(f"{honest().wrong} of {REPETITIONS} lists are wrong, {failed} have an interval that fails")
    assert honest().wrong <= most
    assert failed <= most


def test_lists_that_promise_too_much_are_found() -> None:
    """The positive control: at a lower level more than the fifth that is allowed have a wrong value."""
    found = collections(level=0.1)
    assert found.wrong > stats.binom(REPETITIONS, 1 - LEVEL).isf(ALARM)
