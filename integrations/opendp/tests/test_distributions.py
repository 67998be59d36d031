"""The samples of OpenDP's measurements against those of ours."""

import numpy as np
import opendp.prelude as dp
import pytest
from host_tests.two_samples import ALARM, FEW, N, p_value, planted

import dpnoise_opendp as ours

REALS, INTEGERS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.vector_domain(dp.atom_domain(T=int))
BITS = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
# The constructor, what comes before its scale, and an input of N values, or None where there is one draw for an input.
MEASUREMENTS = {
    "laplace": ("make_laplace", (REALS, dp.l1_distance(T=float)), np.full(N, 0.3)),
    "gaussian": ("make_gaussian", (REALS, dp.l2_distance(T=float)), np.full(N, 0.3)),
    "discrete laplace": ("make_laplace", (INTEGERS, dp.l1_distance(T=int)), np.full(N, 3, np.int32)),
    "discrete gaussian": ("make_gaussian", (INTEGERS, dp.l2_distance(T=int)), np.full(N, 3, np.int32)),
    "bits": (
        "make_randomized_response_bitvec",
        BITS,
        bytes(N // 8),
    ),
    "report noisy max": ("make_noisy_max", (REALS, dp.linf_distance(T=float), dp.max_divergence()), None),
    "exponential": ("make_noisy_max", (REALS, dp.linf_distance(T=float), dp.zero_concentrated_divergence()), None),
}


def released(library, name, scale):
    constructor, space, given = MEASUREMENTS[name]
    measurement = getattr(library, constructor)(*space, scale)
    if given is None:
        return np.array([measurement([1.0, 2.0, 2.5, 0.0]) for _ in range(FEW)])
    out = measurement(given)
    return np.unpackbits(np.frombuffer(out, np.uint8)) if isinstance(out, bytes) else np.array(out)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_distribution_is_the_same(name):
    scale = 0.4 if name == "bits" else 2.0
    expected = released(dp.m, name, scale)
    assert p_value(released(ours, name, scale), expected) > ALARM
    factor = planted(expected.size, faint=name == "exponential")
    assert p_value(released(ours, name, scale * factor), expected) < ALARM
