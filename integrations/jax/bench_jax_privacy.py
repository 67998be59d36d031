"""What users of JAX Privacy get for changing one line: compiled steps of privatizers, independent and correlated.

Also ours for sums of integers, which no release of the host has.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import streaming_matrix, toeplitz

from benches import moments
from benches.entrants import LONG
from benches.machine import OURS
from benches.timing import Entrant
from dpnoise.sgd import BandedToeplitz
from dpnoise_jax import jax_privacy

BANDS = {"1 band": 1, "4 bands": 4, "16 bands": 16, "64 bands": 64}
STDDEV = 10.0


@pytest.mark.parametrize("column", BANDS)
def test_privatizers(race: Any, column: str) -> None:
    """Of noise that is correlated as the square root of prefix sums is, in as many bands."""
    bands = BANDS[column]
    coefficients = np.cumprod([1.0, *(1 - 1 / (2 * np.arange(1, bands)))])
    strategy = BandedToeplitz(coefficients, steps=1000)
    inverse = toeplitz.inverse_as_streaming_matrix(jax.numpy.array(coefficients))
    # The first column of the inverse: the noise of step t has the norm of its first t + 1 numbers.
    column_of_inverse = np.zeros(strategy.steps)
    for t in range(strategy.steps):
        past = coefficients[1 : t + 1] @ column_of_inverse[max(0, t - bands + 1) : t][::-1]
        column_of_inverse[t] = float(t == 0) - past
    scales = STDDEV * np.sqrt(np.cumsum(column_of_inverse**2))

    def entrant(name: str, make: Any, matrix: Any, zeros: Any, stddev: float = STDDEV) -> Entrant:
        made = make(matrix, stddev=stddev)
        update = jax.jit(made.update, donate_argnums=1)
        state, steps = made.init(zeros), iter(scales)

        def work() -> Any:
            nonlocal state
            with jax.enable_x64(zeros.dtype == np.int64):
                noisy, state = jax.block_until_ready(update(zeros, state))
            return noisy, next(steps)

        def check(released: Any) -> None:
            noisy, scale = released
            moments.check(noisy, moments.normal(scale * stddev / STDDEV))

        return Entrant(name, work, check, LONG)

    matrices = (streaming_matrix.identity(),) * 2 if bands == 1 else (strategy, inverse)
    floats = jax.numpy.zeros(LONG)
    with jax.enable_x64(True):
        integers = jax.numpy.zeros(LONG, np.int64)
    entrants = [
        entrant(OURS, jax_privacy.matrix_factorization_privatizer, matrices[0], floats),
        entrant(f"{OURS}, integers", jax_privacy.integer_privatizer, matrices[0], integers, 1000 * STDDEV),
        entrant("jax-privacy", noise_addition.matrix_factorization_privatizer, matrices[1], floats),
    ]
    race("JAX Privacy matrix_factorization_privatizer", column, "ns per parameter", entrants, 9)
