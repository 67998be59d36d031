"""The samples of backends against those of their hosts.

A two-sample test rejects equal distributions with a probability of 1e-9 at most, and is also run on a planted
difference that it must find.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("diffprivlib", reason="needs diffprivlib: pip install 'dpnoise[diffprivlib]'")

from backends.diffprivlib_cases import ALL
from diffprivlib import mechanisms as host

from dpnoise.backends import diffprivlib as ours

ALARM = 1e-9
# The hosts draw one at a time, so `make statistical` draws a million.
N = min(int(os.environ.get("DPNOISE_TEST_SAMPLES", 10_000)), 1_000_000)
# A difference of scales that the tests must tell; within bounds it shows less.
PLANTED, PLANTED_WITHIN_BOUNDS = 1 + 100 / np.sqrt(N), 1 + 400 / np.sqrt(N)


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
    if hasattr(mechanism, "randomise_many"):
        return mechanism.randomise_many(np.full(N, case.value))
    return np.array([mechanism.randomise(case.value) for _ in range(N)])


@pytest.mark.parametrize("name", ALL)
def test_diffprivlib_has_the_same_distribution(name):
    expected = draws(host, name)
    assert p_value(draws(ours, name), expected) > ALARM
    factor = PLANTED_WITHIN_BOUNDS if "lower" in ALL[name].parameters else PLANTED
    changes = (
        {"sensitivity": 2.0 * factor} if name == "Gaussian" else {"epsilon": ALL[name].parameters["epsilon"] / factor}
    )
    assert p_value(draws(ours, name, **changes), expected) < ALARM
