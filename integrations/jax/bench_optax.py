"""What users of optax get for changing one line: a compiled step of DP-SGD beside optax's own, and beside its noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from optax import contrib

import dpnoise_jax.optax
from benches import moments
from benches.entrants import LONG, entrants
from benches.machine import OURS
from dpnoise.sgd import NoisyGradient

ROWS = {"1 row": 1, "64 rows": 64}


@pytest.mark.parametrize("column", ROWS)
def test_optax(race: Any, column: str) -> None:
    rows = jax.numpy.zeros((ROWS[column], LONG))
    key = jax.random.key(np.random.default_rng().integers(2**31))

    def step(library: Any, **key: Any) -> tuple[Callable[[], Any], int]:
        made = library.differentially_private_aggregate(1.0, 10.0 * ROWS[column], **key)
        update, state = jax.jit(made.update), made.init(None)
        return lambda: update(rows, state)[0].block_until_ready(), LONG

    pairs = {OURS: step(dpnoise_jax.optax), "optax": step(contrib, key=key)}
    race(
        "optax differentially_private_aggregate", column, "ns per parameter", entrants("", pairs, moments.normal(10)), 9
    )


def test_noise(race: Any) -> None:
    """Alone, for a sum of zeros."""
    zeros = np.zeros(LONG, np.int64)
    mechanism = NoisyGradient(clip_norm=1.0, noise_multiplier=10.0, expected_batch_size=1.0)
    keys = iter(jax.random.split(jax.random.key(np.random.default_rng().integers(2**31)), 1000))
    normal = jax.jit(lambda key: 10 * jax.random.normal(key, LONG))
    pairs = {
        OURS: (lambda: mechanism.add_noise(zeros, threads=1), LONG),
        "jax.random.normal": (lambda: normal(next(keys)).block_until_ready(), LONG),
    }
    race("Noise for optax", "float32", "ns per parameter", entrants("", pairs, moments.normal(10)), 9)
