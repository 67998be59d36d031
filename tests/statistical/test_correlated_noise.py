"""The covariance of what the steps of `CorrelatedGradient` add, against sigma^2 C^-1 C^-T.

A correct mechanism is rejected with a probability of at most 1e-9.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

from dpnoise.keyed import NoiseKey
from dpnoise.sgd import BandedToeplitz, CorrelatedGradient, MinSeparation

Floats = NDArray[np.float64]

ALARM = 1e-9
# `make statistical` draws more; a block is a run of so many coordinates.
BLOCK = 2**17
BLOCKS = math.ceil(int(os.environ.get("DPNOISE_TEST_SAMPLES", 2 * BLOCK)) / BLOCK)
STEPS, RESUMED = 14, 7
COEFFICIENTS = [1.0, 0.75, 0.5, 0.25]
PAIRS = STEPS * (STEPS + 1) // 2


def mechanism(coefficients: list[float] = COEFFICIENTS) -> CorrelatedGradient:
    return CorrelatedGradient(
        strategy=BandedToeplitz(coefficients, steps=STEPS),
        clip_norm=1.0,
        noise_multiplier=1.0,
        expected_batch_size=1.0,
        participation=MinSeparation(4),
    )


def sigma() -> float:
    """Give the standard deviation of the independent noise, in the unit of the gradients."""
    sensitivity = 1 + math.ceil(math.sqrt(BLOCK) / 2) / 2**22
    return sensitivity * mechanism().strategy.sensitivity(MinSeparation(4))


def scores(runs: Iterator[Floats], coefficients: list[float] = COEFFICIENTS) -> tuple[float, float]:
    """Give the largest z-score of a product of two steps' noise, over all pairs, and the largest that chance explains.

    The threshold is that of Laurent and Massart (2000, lemma 1) for sums of squares of normal numbers, into which the
    product of two normal numbers can be transformed.
    """
    inverse = np.linalg.inv(np.tril(linalg.toeplitz([*coefficients, *[0.0] * (STEPS - len(coefficients))])))
    expected = inverse @ inverse.T
    total, count = np.zeros((STEPS, STEPS)), 0
    for run in runs:
        noise = run / sigma()
        total += noise @ noise.T
        count += noise.shape[1]
    spread = np.sqrt((np.outer(expected.diagonal(), expected.diagonal()) + expected**2) / count)
    exponent = math.log(2 * PAIRS / ALARM)
    allowed = math.sqrt(2 * exponent) + 2 * exponent / math.sqrt(count)
    return float(np.max(np.abs(total / count - expected) / spread)), allowed


def released(own: CorrelatedGradient, *, resume: bool = False) -> Iterator[Floats]:
    """Give runs of noise alone, of shape (steps, coordinates)."""
    for _ in range(BLOCKS):
        key = NoiseKey.generate()
        run, noise = own.start(key=key if resume else None), np.empty((STEPS, BLOCK))
        for t in range(STEPS):
            if resume and t == RESUMED:
                run = own.resume(run.state(), key=key)
            run.step(np.empty((0, BLOCK)), out=noise[t])
        yield noise


@pytest.mark.parametrize("resume", [False, True])
def test_the_covariance(resume: bool) -> None:
    largest, allowed = scores(released(mechanism(), resume=resume))
    assert largest < allowed


@pytest.mark.parametrize("wrong", [[1.0, 0.78, 0.5, 0.25], [1.0, 0.75, 0.47, 0.25], [1.0, 0.75, 0.5, 0.28], [1.0]])
def test_a_wrong_coefficient_is_found(wrong: list[float]) -> None:
    largest, allowed = scores(released(mechanism()), wrong)
    assert largest > 2 * allowed


def test_a_history_that_is_lost_is_found() -> None:
    def forgetful() -> Iterator[Floats]:
        for first, second in zip(released(mechanism()), released(mechanism()), strict=True):
            yield np.concatenate([first[:RESUMED], second[: STEPS - RESUMED]])

    largest, allowed = scores(forgetful())
    assert largest > 5 * allowed
