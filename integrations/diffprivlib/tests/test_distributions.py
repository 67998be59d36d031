"""The samples of diffprivlib's mechanisms against those of ours."""

import numpy as np
import pytest
from diffprivlib import mechanisms as host
from host_tests.two_samples import ALARM, FEW, N, p_value, planted

import dpnoise_diffprivlib as ours

from .cases import ALL, CHOICES

SLOW = {"LaplaceBoundedDomain", "GeometricFolded", *CHOICES}


def draws(library, name, **changes):
    case = ALL[name]
    mechanism = getattr(library, name)(**{**case.parameters, **changes})
    n = FEW if name in SLOW else N
    if hasattr(mechanism, "randomise_many"):
        return mechanism.randomise_many(np.full(n, case.value))
    return np.array([mechanism.randomise(case.value) for _ in range(n)])


@pytest.mark.parametrize("name", ALL)
def test_distribution_is_the_same(name):
    expected = draws(host, name)
    assert p_value(draws(ours, name), expected) > ALARM
    factor = planted(expected.size, "lower" in ALL[name].parameters or name == "Binary")
    changes = {"epsilon": ALL[name].parameters["epsilon"] / factor}
    if name == "Gaussian":  # whose epsilon has a bound
        changes = {"sensitivity": 2.0 * factor}
    assert p_value(draws(ours, name, **changes), expected) < ALARM
