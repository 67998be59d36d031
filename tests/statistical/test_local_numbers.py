"""Protocols for numbers: bias, variance and intervals of means over a thousand collections, and estimated densities.

Means of many independent reports are nearly normal, with the mean and the variance that tests/api/test_local_numbers.py
proves. A correct protocol is rejected with a probability of about 1e-9 by each check, and each check is also run on
planted faults, which it must find. ``pytest -rP`` shows the figures.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import DoubtfulInputWarning, local
from dpnoise.hazmat import SeededRng

pytestmark = pytest.mark.long

ALARM = 1e-9
REPETITIONS = 1000
PEOPLE = max(2000, int(os.environ.get("DPNOISE_TEST_SAMPLES", 2_000_000)) // (5 * REPETITIONS))
LEVEL = 0.95
LIMIT = float(stats.norm.isf(ALARM / 2))

NUMBERS = np.linspace(0.3, 1.0, PEOPLE)
MEANS = [
    kind(epsilon=epsilon)
    for kind in (local.DuchiMean, local.PiecewiseMean, local.HybridMean, local.LaplaceMean)
    for epsilon in (0.5, 1.0, 4.0)
] + [local.GaussianMean(epsilon=epsilon, delta=1e-3) for epsilon in (1.0, 4.0)]
WITH_NOISE = (local.LaplaceMean, local.GaussianMean)

Send = Callable[[local.MeanProtocol, NDArray[np.float64]], NDArray[np.uint8]]


def honestly(protocol: local.MeanProtocol, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
    return protocol.perturb(numbers)


def rounded_down(protocol: local.MeanProtocol, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
    return protocol.perturb(np.floor(numbers * 5) / 5)


def too_often_random(protocol: local.MeanProtocol, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Replace 10 % more by a report on any number."""
    generator = np.random.default_rng(1)
    others = generator.choice([-1.0, 1.0], numbers.size)
    return protocol.perturb(np.where(generator.random(numbers.size) < 0.1, others, numbers))


def clipped(protocol: local.MeanProtocol, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Report no number outside of [-1, 1], as if that were what the numbers say."""
    reports = protocol.perturb(numbers).view("<u2")
    spec = json.loads(protocol.to_json())
    last, kept = spec["k"] + spec["width"] - 2, spec["keep"] / 2 ** spec["planes"]
    outputs = np.flatnonzero(np.abs(np.arange(last + 1) - last / 2) <= kept * (spec["k"] - 1) / 2)
    return np.clip(reports, outputs[0], outputs[-1]).astype("<u2").view(np.uint8)


def sent_twice(protocol: local.MeanProtocol, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.repeat(protocol.perturb(numbers[::2]), 2, axis=0)


def sent_four_times(protocol: local.MeanProtocol, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.repeat(protocol.perturb(numbers[::4]), 4, axis=0)


def collections(protocol: local.MeanProtocol, numbers: NDArray[np.float64], send: Send) -> list[local.MeanEstimate]:
    """Estimate the mean from the reports on each row of numbers."""
    reports = send(protocol, numbers.ravel()).reshape(*numbers.shape, -1)
    return [protocol.estimate(rows, level=LEVEL) for rows in reports]


@functools.cache
def errors(protocol: local.MeanProtocol, send: Send = honestly) -> NDArray[np.float64]:
    """Give the errors of the means, in their predicted standard deviations."""
    numbers = np.repeat(NUMBERS, 2) if send is sent_twice else NUMBERS
    found = collections(protocol, np.tile(numbers, (REPETITIONS, 1)), send)
    variance = np.mean([protocol.variance(numbers.size, x) for x in NUMBERS[:: max(1, PEOPLE // 500)]])
    return (np.array([estimate.mean for estimate in found]) - NUMBERS.mean()) / np.sqrt(variance)


def bias(found: NDArray[np.float64]) -> float:
    return float(found.sum() / np.sqrt(REPETITIONS))


def dispersion(found: NDArray[np.float64]) -> float:
    squares, law = float(found @ found), stats.chi2(REPETITIONS)
    # Of the smaller tail, because the larger has no digits left.
    return float(stats.norm.isf(law.sf(squares)) if squares > REPETITIONS else stats.norm.ppf(law.cdf(squares)))


@pytest.mark.parametrize("protocol", MEANS, ids=repr)
def test_means_are_unbiased_with_the_variance_of_theory(protocol: local.MeanProtocol) -> None:
    found = errors(protocol)
    print(f"{protocol!r}: z-scores {bias(found):.2f} of the bias, {dispersion(found):.2f} of the variance")
    assert abs(bias(found)) < LIMIT
    assert abs(dispersion(found)) < LIMIT


@pytest.mark.parametrize("protocol", MEANS, ids=repr)
@pytest.mark.parametrize("fault", [rounded_down, too_often_random, clipped])
@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_faulty_reports_are_found(protocol: local.MeanProtocol, fault: Send) -> None:
    if fault is clipped and not isinstance(protocol, local.PiecewiseMean):
        return  # Duchi's reports all stand for numbers outside
    z = bias(errors(protocol, fault))
    print(f"{protocol!r}: z-score of the bias {z:.2f} when {fault.__name__}")
    assert abs(z) > LIMIT


@pytest.mark.parametrize("protocol", MEANS, ids=repr)
@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_reports_that_depend_on_each_other_are_found(protocol: local.MeanProtocol) -> None:
    assert dispersion(errors(protocol, sent_twice)) > LIMIT


def held(protocol: local.MeanProtocol, numbers: NDArray[np.float64], mean: float, send: Send = honestly) -> int:
    found = collections(protocol, numbers, send)
    return sum(estimate.lower <= mean <= estimate.upper for estimate in found)


@functools.cache
def skewed_sample() -> NDArray[np.float64]:
    """Draw people anew for each collection, from a skewed distribution."""
    return 2 * np.random.default_rng(2).beta(2, 5, (REPETITIONS, PEOPLE)) - 1


@pytest.mark.parametrize("protocol", MEANS, ids=repr)
def test_intervals_hold_as_often_as_they_say(protocol: local.MeanProtocol) -> None:
    law = stats.binom(REPETITIONS, LEVEL)
    sample = skewed_sample()
    times = held(protocol, sample, 2 * 2 / 7 - 1)
    print(f"{protocol!r}: {times / REPETITIONS:.3f} of the intervals hold for samples")
    assert law.ppf(ALARM / 2) <= times
    # Sums of noisy numbers show no better than the largest spread that numbers can have.
    assert times <= law.isf(ALARM / 2) or isinstance(protocol, WITH_NOISE)
    # The same people each time: at least as often.
    fixed = held(protocol, np.tile(NUMBERS, (REPETITIONS, 1)), NUMBERS.mean())
    print(f"{protocol!r}: {fixed / REPETITIONS:.3f} of the intervals hold for fixed people")
    assert fixed >= law.ppf(ALARM)
    if isinstance(protocol, WITH_NOISE) and protocol.epsilon > 1:
        return  # its intervals are too wide for what follows
    # The positive control: a quarter as many people as reports, so that at most 70 % of the intervals hold.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulInputWarning)
        repeated = held(protocol, np.repeat(sample[:, ::4], 4, axis=1), 2 * 2 / 7 - 1, sent_four_times)
    assert repeated < law.ppf(ALARM / 2)


# --- Densities -----------------------------------------------------------------------------------------------------


def wasserstein(found: local.DensityEstimate, numbers: NDArray[np.float64]) -> float:
    """Give the distance between distributions: the mean difference of their cumulative shares."""
    shares = np.histogram(numbers, found.edges)[0] / numbers.size
    return float(np.abs(np.cumsum(shares) - found.cdf()[1:]).mean())


SHAPES = {
    "beta": lambda generator: generator.beta(5, 2, 100_000),
    "two peaks": lambda generator: np.clip(
        np.where(
            generator.random(100_000) < 0.3, generator.normal(0.2, 0.05, 100_000), generator.normal(0.7, 0.1, 100_000)
        ),
        0.0,
        1.0,
    ),
    "uniform": lambda generator: generator.random(100_000),
}


@pytest.mark.parametrize(("epsilon", "limit"), [(0.5, 0.04), (1.0, 0.02), (2.5, 0.008)])
@pytest.mark.parametrize("shape", SHAPES)
def test_densities_are_found(shape: str, epsilon: float, limit: float) -> None:
    numbers = SHAPES[shape](np.random.default_rng(1))
    protocol = local.SquareWave(k=256, epsilon=epsilon)
    found = protocol.estimate(protocol.perturb(numbers, rng=SeededRng(1)))
    print(f"{shape}, epsilon = {epsilon}: Wasserstein distance {wasserstein(found, numbers):.4f}")
    assert wasserstein(found, numbers) < limit
    # The positive control: reports on numbers that are moved by three times the limit.
    moved = protocol.estimate(protocol.perturb(np.clip(numbers - 3 * limit, 0.0, 1.0)))
    assert wasserstein(moved, numbers) > limit
