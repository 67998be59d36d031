"""The samples of PyDP's mechanisms, and which groups it keeps, against ours."""

import numpy as np
import pytest
from host_tests.two_samples import ALARM, N, p_value, planted
from pydp.algorithms import numerical_mechanisms, partition_selection

from dpnoise_google import pydp as ours

MECHANISMS = {
    "Laplace": lambda library, factor=1: library.LaplaceMechanism(0.7 / factor, 2.0),
    "Laplace, small scale": lambda library, factor=1: library.LaplaceMechanism(2.0 / factor),
    "Gaussian": lambda library, factor=1: library.GaussianMechanism(0.7, 1e-6, 2.0 * factor),
    "Gaussian of a deviation": lambda library, factor=1: library.GaussianMechanism.create_from_standard_deviation(
        1.5 * factor
    ),
}


@pytest.mark.parametrize("value", [0, 5.3])
@pytest.mark.parametrize("name", MECHANISMS)
def test_distribution_is_the_same(name, value):
    host = MECHANISMS[name](numerical_mechanisms)
    expected = np.array([host.add_noise(value) for _ in range(N)])
    values = np.full(N, value)
    assert p_value(MECHANISMS[name](ours).add_noise(values), expected) > ALARM
    single = MECHANISMS[name](ours).add_noise
    assert p_value(np.array([single(value) for _ in range(N)]), expected) > ALARM
    assert p_value(MECHANISMS[name](ours, planted(N)).add_noise(values), expected) < ALARM


@pytest.mark.parametrize("name", MECHANISMS)
def test_as_often_above_a_threshold(name):
    def draws(library, factor=1):
        mechanism = MECHANISMS[name](library, factor)
        return np.array([mechanism.noised_value_above_threshold(1.0, 1.0 + scale) for _ in range(N)])

    host = MECHANISMS[name](numerical_mechanisms)
    scale = host.std if "Gaussian" in name else host.diversity
    expected = draws(numerical_mechanisms)
    assert p_value(draws(ours), expected) > ALARM
    assert p_value(draws(ours, planted(N)), expected) < ALARM


BUDGETS = [(1.0, 1e-5, 1), (0.9, 1e-3, 3)]


def people(name, budget):
    """Return a number of people that is kept about as often as not."""
    strategy = partition_selection.create_partition_strategy(name, *budget)
    return next(n for n in range(1000) if strategy.probability_of_keep(n) > 0.3)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("pre_threshold", [None, 4])
@pytest.mark.parametrize("name", ["truncated_geometric", "laplace", "gaussian"])
def test_groups_are_kept_as_often(name, budget, pre_threshold):
    epsilon, delta, partitions = budget
    n = people(name, budget) + (pre_threshold or 1) - 1

    def draws(library, factor=1):
        strategy = library.create_partition_strategy(name, epsilon / factor, delta, partitions, pre_threshold)
        return np.array([strategy.should_keep(n) for _ in range(N)])

    expected = draws(partition_selection)
    assert 0.1 < expected.mean() < 0.9
    assert p_value(draws(ours), expected) > ALARM
    assert p_value(draws(ours, planted(N)), expected) < ALARM


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_noisy_numbers_of_kept_groups(name):
    budget = BUDGETS[0]
    n = people(name, budget)

    def draws(library, people):
        strategy = library.create_partition_strategy(name, *budget)
        found = (strategy.noised_value_if_should_keep(people) for _ in range(N))
        return np.array([value for value in found if value is not None])

    expected = draws(partition_selection, n)
    assert p_value(draws(ours, n), expected) > ALARM
    strategy = ours.create_partition_strategy(name, budget[0] / planted(N), *budget[1:])
    other = np.array([value for _ in range(N) if (value := strategy.noised_value_if_should_keep(n)) is not None])
    assert p_value(other, expected) < ALARM
