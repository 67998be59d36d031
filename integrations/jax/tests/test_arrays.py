"""Arrays of JAX as data for dpnoise itself: the bits of NumPy arrays with the same values, without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpnoise
from dpnoise import extend, local, queries, sgd, stability
from dpnoise.hazmat import SeededRng

REALS = np.linspace(-5.0, 11.25, 36)
INTEGERS = np.arange(36) * 5 % 13
RESPONSE = local.OptimizedUnaryEncoding(k=30, epsilon=1.0)
GRADIENTS = np.outer(REALS, [1.0, -0.5, 0.0, 0.25])


def seeded(release: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda values: release(values, rng=SeededRng(8))


NOISY_GRADIENT = seeded(sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=9).release)
CALLS = {
    "real numbers": (seeded(dpnoise.Laplace(epsilon=1.0).release), REALS),
    "integers": (seeded(dpnoise.DiscreteLaplace(epsilon=1.0).release), INTEGERS),
    "scores": (seeded(dpnoise.ReportNoisyMax(epsilon=1.0).release), INTEGERS),
    "truths": (seeded(queries.Count(epsilon=1.0).release), INTEGERS % 3 == 0),
    "a column": (seeded(queries.Sum(bounds=(-4.0, 9.0), epsilon=1.0).release), REALS),
    "a sorted column": (stability.median_distance, REALS),
    "labels": (seeded(RESPONSE.perturb), INTEGERS),
    "reports": (lambda reports: RESPONSE.estimate(reports).counts, RESPONSE.perturb(INTEGERS, rng=SeededRng(8))),
    "doubles in a matrix": (NOISY_GRADIENT, GRADIENTS),
    "floats in a matrix": (NOISY_GRADIENT, GRADIENTS.astype(np.float32)),
}


def on_the_cpu(values: Any) -> jax.Array:
    with jax.enable_x64(True):
        return jax.device_put(values, jax.devices("cpu")[0])


@pytest.mark.parametrize("name", CALLS)
def test_an_array_of_jax_gives_what_one_of_numpy_gives(name: str) -> None:
    call, values = CALLS[name]
    found, expected = np.asarray(call(on_the_cpu(values))), np.asarray(call(values))
    assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_an_array_is_read_in_place() -> None:
    array = on_the_cpu(REALS)
    assert extend.array_of(array, "x").ctypes.data == array.unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e4m3fn])
def test_types_that_numpy_lacks_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"^x must be data that NumPy or pyarrow can read, got ArrayImpl of dtype"):
        extend.array_of(jnp.ones(3, dtype), "x")
