"""The samples of backends against those of their hosts.

A two-sample test rejects equal distributions with a probability of 1e-9 at most, and is also run on a planted
difference that it must find. Its law is that of large samples: it rejects below 1e-12, which leaves room for the rest.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("diffprivlib", reason="needs diffprivlib: pip install 'dpnoise[diffprivlib]'")
pytest.importorskip("opendp", reason="needs OpenDP: pip install 'dpnoise[opendp]'")

import opendp.prelude as dp
from backends.diffprivlib_cases import ALL, CHOICES
from diffprivlib import mechanisms as host

from dpnoise.backends import diffprivlib as ours
from dpnoise.backends import opendp as our_measurements

ALARM = 1e-12
# The hosts draw one at a time, so `make statistical` draws a million.
N = min(int(os.environ.get("DPNOISE_TEST_SAMPLES", 5_000)), 1_000_000)
# What takes a hundred microseconds to draw from a host is drawn less often.
FEW = min(N, 50_000)
SLOW = {"LaplaceBoundedDomain", "GeometricFolded", *CHOICES}


def planted(size, within_bounds=False):
    """Give a factor for a scale that the tests must tell from 1; within bounds it shows less."""
    return 1 + (400 if within_bounds else 100) / np.sqrt(size)


def p_value(a, b):
    """Compare by counts where there are few values, and by Kolmogorov and Smirnov's distance otherwise."""
    values, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    if values.size > 1000:
        return float(stats.ks_2samp(a, b, method="asymp").pvalue)
    counts = np.array([np.bincount(part, minlength=values.size) for part in (places[: a.size], places[a.size :])])
    common = counts.sum(axis=0) >= 50
    counts = np.column_stack([counts[:, common], counts[:, ~common].sum(axis=1)])
    counts = counts[:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts, correction=False).pvalue)


def draws(library, name, **changes):
    case = ALL[name]
    mechanism = getattr(library, name)(**{**case.parameters, **changes})
    n = FEW if name in SLOW else N
    if hasattr(mechanism, "randomise_many"):
        return mechanism.randomise_many(np.full(n, case.value))
    return np.array([mechanism.randomise(case.value) for _ in range(n)])


@pytest.mark.parametrize("name", ALL)
def test_diffprivlib_has_the_same_distribution(name):
    expected = draws(host, name)
    assert p_value(draws(ours, name), expected) > ALARM
    factor = planted(expected.size, "lower" in ALL[name].parameters)
    changes = {"epsilon": ALL[name].parameters["epsilon"] / factor}
    if name == "Gaussian":  # whose epsilon has a bound
        changes = {"sensitivity": 2.0 * factor}
    assert p_value(draws(ours, name, **changes), expected) < ALARM


@pytest.fixture
def features():
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


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
        (dp.bitvector_domain(max_weight=1), dp.discrete_distance()),
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
@pytest.mark.usefixtures("features")
def test_opendp_has_the_same_distribution(name):
    scale = 0.4 if name == "bits" else 2.0
    expected = released(dp.m, name, scale)
    assert p_value(released(our_measurements, name, scale), expected) > ALARM
    assert p_value(released(our_measurements, name, scale * planted(expected.size)), expected) < ALARM
