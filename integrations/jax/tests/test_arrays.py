"""Arrays of JAX as data for dpnoise itself: the bits of NumPy arrays with the same values, without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
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
    "small floats in a matrix": (NOISY_GRADIENT, GRADIENTS.astype(jnp.bfloat16)),
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


SMALL_FLOATS = [getattr(ml_dtypes, name) for name in dir(ml_dtypes) if "float" in name]


def is_taken(kind: Any, given: Any = np.asarray) -> bool:
    """Say whether all numbers that a type has are taken as Python takes them, one by one."""
    bits = ml_dtypes.finfo(kind).bits
    every = np.arange(2**bits, dtype=np.uint16 if bits > 8 else np.uint8).view(kind)
    return np.array_equal(extend.reals_of(given(every), "x"), list(map(float, every)), equal_nan=True)


@pytest.mark.parametrize("kind", SMALL_FLOATS)
def test_floats_that_numpy_lacks_are_taken_exactly(kind: Any) -> None:
    assert is_taken(kind)


@pytest.mark.parametrize("wrong", [np.float16, ml_dtypes.float8_e5m2])
def test_floats_that_are_rounded_would_be_noticed(wrong: Any) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        assert not is_taken(jnp.bfloat16, lambda every: every.astype(wrong))


@pytest.mark.parametrize("kind", [jnp.bfloat16, jnp.float8_e5m2, jnp.float8_e4m3fn])
def test_gradients_of_small_floats_are_those_of_floats(kind: Any) -> None:
    small = GRADIENTS.astype(kind)
    floats = small.astype(np.float32)
    mechanism = sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=9)
    run = sgd.CorrelatedGradient(
        strategy=sgd.BandedToeplitz([1.0, 0.5], steps=2),
        clip_norm=1.0,
        noise_multiplier=1.0,
        expected_batch_size=9,
        participation=sgd.SingleEpoch(),
    )
    calls: list[Callable[[Any], Any]] = [
        lambda gradients: sgd.clip_and_sum(gradients, clip_norm=1.0),
        NOISY_GRADIENT,
        lambda gradients: mechanism.clipped_sum([gradients]),
        lambda gradients: run.release([gradients, gradients], rng=SeededRng(8)),
        *(
            lambda gradients, other=other: mechanism.clipped_sum([other, gradients])
            for other in (np.ones(36), np.ones((36, 2), np.float16), np.ones((36, 2), ml_dtypes.float8_e3m4))
        ),
    ]
    for call in calls:
        found, expected = call(small), call(floats)
        assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


def test_types_that_are_refused_have_their_names() -> None:
    noise = sgd.FloatSums(stddev=1.0)
    for call, dtype, message in (
        (NOISY_GRADIENT, ml_dtypes.int4, "gradients must be real numbers of at most 64 bits, got dtype int4"),
        (dpnoise.DiscreteLaplace(epsilon=1.0).release, jnp.bfloat16, "x must be integers, got dtype bfloat16: round"),
        (
            lambda sums: noise.add_noise(sums, np.zeros(0, np.int64), 0),
            jnp.bfloat16,
            "sums must be a NumPy array of dtype float32 or float64, got dtype bfloat16",
        ),
    ):
        with pytest.raises(TypeError, match=f"^{message}"):
            call(np.ones((2, 3), dtype))
