"""The noise of JAX Privacy's privatizers and of optax's transformations against that of ours."""

import jax
import jax.numpy as jnp
import numpy as np
import optax.contrib
import pytest
from host_tests.two_samples import ALARM, N, p_value, planted
from jax_privacy import noise_addition as host
from jax_privacy.matrix_factorization import streaming_matrix, toeplitz

import dpnoise_jax.optax
from dpnoise.sgd import BandedToeplitz
from dpnoise_jax import jax_privacy as ours

# All draw arrays, so that a million samples take no time.
N = max(N, 1_000_000)
COEFFICIENTS = [1.0, 0.5, 0.375]
STRATEGY = BandedToeplitz(COEFFICIENTS, steps=5)
INVERSE = toeplitz.inverse_as_streaming_matrix(jnp.array(COEFFICIENTS))


def sums_of_steps(privatizer, dtype=np.float32):
    """Give the noise of each step, and the sum of all: that of a model."""
    zeros = jnp.zeros(N, dtype)
    update, state, steps = jax.jit(privatizer.update), privatizer.init(zeros), []
    for _ in range(STRATEGY.steps):
        noise, state = update(zeros, state)
        steps.append(np.asarray(noise))
    return [steps[0], steps[-1], sum(steps)]


def test_distributions_of_steps_and_of_their_sum_are_the_same():
    def make(stddev):
        return sums_of_steps(ours.matrix_factorization_privatizer(STRATEGY, stddev=stddev))

    expected = sums_of_steps(host.matrix_factorization_privatizer(INVERSE, stddev=1.1))
    for a, b in zip(make(1.1), expected, strict=True):
        assert p_value(a, b) > ALARM
    for a, b in zip(make(1.1 * planted(N)), expected, strict=True):
        assert p_value(a, b) < ALARM


def test_independent_noise_has_the_same_distribution():
    expected = sums_of_steps(host.gaussian_privatizer(stddev=1.1))
    for a, b in zip(sums_of_steps(ours.gaussian_privatizer(stddev=1.1)), expected, strict=True):
        assert p_value(a, b) > ALARM
    correlated = sums_of_steps(ours.matrix_factorization_privatizer(STRATEGY, stddev=1.1))
    assert p_value(correlated[2], expected[2]) < ALARM


@pytest.mark.parametrize(
    "matrices", [(streaming_matrix.identity(),) * 2, (STRATEGY, INVERSE)], ids=["independent", "correlated"]
)
def test_noise_on_integers_has_the_same_distribution(matrices):
    """That of the host, rounded to whole numbers, which are too small for the samples to show."""
    expected = sums_of_steps(host.matrix_factorization_privatizer(matrices[1], stddev=1e5))

    def make(stddev):
        with jax.enable_x64(True):
            return sums_of_steps(ours.integer_privatizer(matrices[0], stddev=stddev), np.int64)

    for a, b in zip(make(1e5), expected, strict=True):
        assert p_value(a, np.rint(b)) > ALARM
    for a, b in zip(make(1e5 / planted(N)), expected, strict=True):
        assert p_value(a, np.rint(b)) < ALARM


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_distribution_of_a_step_of_optax_is_the_same(clip):
    def noise(library, multiplier, **key):
        made = library.differentially_private_aggregate(clip, multiplier, **key)
        return np.concatenate(made.update([jnp.ones((4, N // 2)), jnp.zeros((4, N // 2))], made.init(None))[0])

    expected = noise(optax.contrib, 1.1, key=np.random.default_rng().integers(2**31).item())
    assert p_value(noise(dpnoise_jax.optax, 1.1), expected) > ALARM
    assert p_value(noise(dpnoise_jax.optax, 1.1 * planted(N)), expected) < ALARM
