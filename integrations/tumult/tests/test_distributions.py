"""The samples of Tumult Core's measurements against those that they make under `patched`."""

import numpy as np
import pandas as pd
import pytest
from host_tests.two_samples import ALARM, N, p_value, planted
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements.noise_mechanisms import (
    AddDiscreteGaussianNoise,
    AddGaussianNoise,
    AddGeometricNoise,
    AddLaplaceNoise,
)
from tmlt.core.measurements.pandas_measurements.series import AddNoiseToSeries
from tmlt.core.utils.exact_number import ExactNumber

from dpnoise_tumult import patched

# A geometric scale below 10 and one above, for which the host has two ways to draw.
CASES = {
    "laplace": (lambda scale: AddLaplaceNoise(NumpyFloatDomain(), scale), 2, 0.3),
    "small geometric": (AddGeometricNoise, 2, 3),
    "large geometric": (AddGeometricNoise, 20, 3),
    "discrete gaussian": (AddDiscreteGaussianNoise, 4, 3),
    "gaussian": (lambda square: AddGaussianNoise(NumpyFloatDomain(), square), 4, 0.3),
}


@pytest.mark.parametrize("name", CASES)
def test_distribution_is_the_same(name):
    make, parameter, value = CASES[name]
    values = pd.Series(np.full(N, value))

    def draws(parameter):
        return AddNoiseToSeries(make(parameter))(values).to_numpy()

    expected = draws(parameter)
    with patched():
        assert p_value(draws(parameter), expected) > ALARM
        # The square of the factor, since some take a variance.
        other = ExactNumber.from_float(parameter * float(planted(N)) ** 2, round_up=True)
        assert p_value(draws(other), expected) < ALARM
