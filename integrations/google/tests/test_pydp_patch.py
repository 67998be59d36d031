"""What `patched` and `install` replace in PyDP, and that its documentation's examples run."""

import statistics

import numpy as np
import pytest
from host_tests.patches import check_blocks, check_install, check_many_threads
from pydp.algorithms import numerical_mechanisms, partition_selection
from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Max

from dpnoise_google import pydp as ours
from dpnoise_google.pydp import _patch


def snapshot():
    return dict(vars(numerical_mechanisms)), dict(vars(partition_selection))


def leave():
    _patch._PATCH.leave()


def test_blocks():
    check_blocks(ours.patched, snapshot)


def test_install():
    check_install(ours.install, ours.patched, snapshot, leave)


def test_many_threads():
    check_many_threads(ours.patched, lambda: numerical_mechanisms.LaplaceMechanism is ours.LaplaceMechanism, snapshot)


def test_a_fault_in_restoring_would_be_noticed(monkeypatch):
    before = snapshot()
    with monkeypatch.context() as context:
        context.setattr(_patch._PATCH, "leave", lambda: None)
        with pytest.raises(AssertionError):
            check_blocks(ours.patched, snapshot)
    leave()
    assert snapshot() == before


def test_what_is_replaced():
    with ours.patched():
        for module in (numerical_mechanisms, partition_selection):
            for name in ours.__all__:
                if name.startswith(("Laplace", "Gaussian", "create_")) and hasattr(module, name):
                    assert getattr(module, name) is getattr(ours, name)
        made = partition_selection.create_partition_strategy("laplace", 1.0, 1e-5, 1, 3)
        assert isinstance(made, ours.PartitionSelectionStrategy)


def test_mechanisms_as_in_the_hosts_documentation():
    """As its tutorial on Laplace noise: a mean of clamped values, and its error as epsilon grows."""
    ages = np.clip(np.random.default_rng(3).normal(40, 12, 1000), 17, 90)
    with ours.patched():
        errors = []
        for epsilon in (0.1, 1.0, 10.0):
            mechanism = numerical_mechanisms.LaplaceMechanism(epsilon=epsilon, sensitivity=(90 - 17) / ages.size)
            noisy = [mechanism.add_noise(float(ages.mean())) for _ in range(2000)]
            assert mechanism.diversity == pytest.approx(73 / 1000 / epsilon)
            errors.append(statistics.fmean(abs(value - ages.mean()) for value in noisy))
        # The mean error is the scale; the mean of 2000 errors is within a third of it, but for one case in 10**38.
        assert errors == pytest.approx([0.73, 0.073, 0.0073], rel=0.33)
        gaussian = numerical_mechanisms.GaussianMechanism(1.0, 1e-5, 1.0)
        interval = gaussian.noise_confidence_interval(0.95, gaussian.add_noise(1000.0))
        assert interval.lower_bound < interval.upper_bound
        assert gaussian.noised_value_above_threshold(1e6, 0.0)


def test_the_carrots_of_the_hosts_documentation():
    """As its first tutorial, whose algorithms are of its library and stay as they are."""
    carrots = [int(eaten) for eaten in np.random.default_rng(4).integers(0, 200, 182)]
    with ours.patched():
        assert BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=200, dtype="int").quick_result(carrots) != 0
        assert BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=200, dtype="int").quick_result(carrots) > 0
        assert Max(epsilon=1.0, lower_bound=0, upper_bound=1500, dtype="int").quick_result(carrots) >= 0
        assert Count(epsilon=1.0, dtype="int").quick_result([each for each in carrots if each > 70]) > 0
