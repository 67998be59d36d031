"""The noise of optax's transformations against that of ours."""

import numpy as np
import pytest

pytestmark = pytest.mark.long

pytest.importorskip("optax", reason="needs optax: pip install 'dpnoise[optax]', with Python 3.11 or later")

import jax.numpy as jnp
from host_tests.two_samples import ALARM, N, p_value, planted
from optax import contrib as host

from dpnoise.backends import optax as ours

# Both transformations draw arrays, so that a million samples take no time.
N = max(N, 1_000_000)


def noise(transformation):
    leaves = transformation.update([jnp.ones((4, N // 2)), jnp.zeros((4, N // 2))], transformation.init(None))[0]
    return np.concatenate(leaves)


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_distribution_is_the_same(clip):
    expected = noise(
        host.differentially_private_aggregate(clip, 1.1, key=np.random.default_rng().integers(2**31).item())
    )
    assert p_value(noise(ours.differentially_private_aggregate(clip, 1.1)), expected) > ALARM
    more = 1.1 * planted(N)
    assert p_value(noise(ours.differentially_private_aggregate(clip, more)), expected) < ALARM
