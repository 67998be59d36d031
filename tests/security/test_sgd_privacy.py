"""The audit of a step of DP-SGD, and of the mistakes that people make with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from dpnoise import audit
from dpnoise.hazmat import SeededRng
from dpnoise.sgd import NoisyGradient, clip_and_sum, epsilon_spent

LEVEL = 1 - 1e-9
N = 8000
DELTA = 0.01
CLAIM = epsilon_spent(noise_multiplier=1.0, sample_rate=1.0, steps=1, delta=DELTA)
NOISY = NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0)

# One example more turns the gradient of the batch around.
BATCH = np.full((4, 1), 100.0)
NEIGHBOUR = np.vstack([BATCH, [[-1e6]]])

Step = Callable[[np.ndarray], np.ndarray]


def clips_the_batch(gradients: np.ndarray, rng: SeededRng) -> np.ndarray:
    return NOISY.release(gradients.sum(axis=0, keepdims=True), rng=rng)


def noise_for_half_of_the_norm(gradients: np.ndarray, rng: SeededRng) -> np.ndarray:
    half = NoisyGradient(clip_norm=0.5, noise_multiplier=1.0, expected_batch_size=1.0)
    return clip_and_sum(gradients, clip_norm=1.0) + half.release(np.empty((0, 1)), rng=rng)


def takes_nine_steps_for_one(gradients: np.ndarray, rng: SeededRng) -> np.ndarray:
    """Claim for nine steps the epsilon of one: their mean has a third of its noise."""
    return clip_and_sum(gradients, clip_norm=1.0) + NOISY.release(np.empty((0, 9)), rng=rng).mean()


def lower_bound(step: Step, x: np.ndarray, x_prime: np.ndarray) -> float:
    return audit.epsilon_lower_bound(step, x, x_prime, n=N, delta=DELTA, level=LEVEL).epsilon


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_loses_no_more_than_it_claims(dtype: type) -> None:
    found = lower_bound(NOISY.release, BATCH.astype(dtype), NEIGHBOUR.astype(dtype))
    assert 0.2 < found <= CLAIM, "and the experiment has some power"


def test_rows_that_are_not_finite_give_nothing_away() -> None:
    with_nan = np.vstack([BATCH, [[np.nan]]])
    assert lower_bound(NOISY.release, BATCH, with_nan) < 0.5


@pytest.mark.parametrize("mistake", [clips_the_batch, noise_for_half_of_the_norm, takes_nine_steps_for_one])
def test_mistakes_are_found(mistake: Callable[..., np.ndarray]) -> None:
    """From the same noise every time: the power of the experiment is not a matter of luck."""
    assert lower_bound(partial(mistake, rng=SeededRng(1)), BATCH, NEIGHBOUR) > CLAIM
