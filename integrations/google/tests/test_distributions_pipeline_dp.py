"""The noise, the choices and the samples of PipelineDP against ours."""

from contextlib import nullcontext

import numpy as np
import pipeline_dp
import pytest
from host_tests.two_samples import ALARM, FEW, N, p_value, planted
from pipeline_dp import aggregate_params, dp_computations, sampling_utils

from dpnoise_google.pipeline_dp import patched

NOISES = {
    pipeline_dp.NoiseKind.LAPLACE: aggregate_params.NormKind.L1,
    pipeline_dp.NoiseKind.GAUSSIAN: aggregate_params.NormKind.L2,
}


def compare(draw):
    expected = draw(nullcontext)
    assert p_value(draw(patched), expected) > ALARM
    assert p_value(draw(patched, planted(expected.size)), expected) < ALARM


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_vectors(noise):
    def draw(block, factor=1):
        params = dp_computations.AdditiveVectorNoiseParams(
            eps=0.8,
            delta=1e-5,
            max_norm=1.5 * factor,
            l0_sensitivity=2,
            linf_sensitivity=1,
            norm_kind=NOISES[noise],
            noise_kind=noise,
        )
        with block():
            return dp_computations.add_noise_vector(np.full(N, 0.3), params)

    compare(draw)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_arrays(noise):
    def draw(block, factor=1):
        with block():
            if noise is pipeline_dp.NoiseKind.LAPLACE:
                mechanism = dp_computations.LaplaceMechanism.create_from_std_deviation(2.0, factor)
            else:
                mechanism = dp_computations.GaussianMechanism.create_from_std_deviation(2.0, factor)
            return mechanism.add_noise(np.full(N, 0.3))

    compare(draw)


class Scores(dp_computations.ExponentialMechanism.ScoringFunction):
    is_monotonic = False

    def __init__(self, global_sensitivity):
        self._sensitivity = global_sensitivity

    @property
    def global_sensitivity(self):
        return self._sensitivity

    def score(self, k):
        return float(k)


def test_choices():
    def draw(block, factor=1):
        mechanism = dp_computations.ExponentialMechanism(Scores(0.5 * factor))
        with block():
            return np.array([mechanism.apply(1.0, [1, 2, 3, 5]) for _ in range(FEW)])

    compare(draw)


def test_samples():
    def draw(block, factor=1):
        values = [*range(10 if factor == 1 else 9)]
        with block():
            found = [sampling_utils.choose_from_list_without_replacement(values, 2) for _ in range(FEW)]
        return np.array([10 * max(pair) + min(pair) for pair in found])

    compare(draw)
