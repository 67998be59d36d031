"""Plans: against the protocols' own figures, against drawn counts, and at the edges of the parameters."""

import math
import re
from statistics import NormalDist

import numpy as np
import pytest

from dpnoise import ParameterError, local


@pytest.mark.parametrize("k", [2, 15, 1024])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_candidates(k, epsilon):
    plan = local.plan(n=10**6, k=k, epsilon=epsilon)
    compared = {family.protocol for family in local.FAMILIES.values() if family.server_cost}
    assert len(plan) == len({type(candidate.protocol) for candidate in plan})
    assert {type(candidate.protocol) for candidate in plan} == compared - (
        {local.RandomizedResponse} if k > 2 else set()
    )
    deviations = [candidate.standard_deviation for candidate in plan]
    assert deviations == sorted(deviations)
    if k == 2:  # three of them are the same
        first = [local.RandomizedResponse, local.GeneralizedRandomizedResponse, local.SubsetSelection]
        assert [type(candidate.protocol) for candidate in plan[:3]] == first
    for candidate in plan:
        protocol = candidate.protocol
        assert (protocol.k, protocol.requested_epsilon) == (k, epsilon)
        assert candidate.standard_deviation == math.sqrt(protocol.variance(10**6))
        assert candidate.report_bytes == protocol.report_bytes
        assert candidate.server_cost in {"n", "n k bits", "n + k**2", "n + k log k", "n + K + k q t"}


@pytest.mark.parametrize("candidate", local.plan(n=10**6, k=20, epsilon=1.0), ids=lambda c: type(c.protocol).__name__)
def test_the_smallest_detectable_count_is_detected_19_times_of_20(candidate):
    protocol, n, count = candidate.protocol, 10**6, round(candidate.smallest_detectable_count)
    generator, draws = np.random.default_rng(7), 40_000
    p, q = protocol.p, protocol.q
    present = generator.binomial(count, p, draws) + generator.binomial(n - count, q, draws)
    absent = generator.binomial(n, q, draws)
    threshold = NormalDist().inv_cdf(1 - 0.05 / 20) * candidate.standard_deviation
    # A frequency of 0.95 in 40,000 draws has a standard deviation of 0.0011, one of 0.0025 has 0.00025. Five of them
    # are exceeded with probability 6e-7; 0.001 and 0.0005 are left for the normal approximation and for rounding.
    assert abs(np.mean((present - n * q) / (p - q) > threshold) - 0.95) < 5 * 0.0011 + 0.001
    assert abs(np.mean((absent - n * q) / (p - q) > threshold) - 0.0025) < 5 * 0.00025 + 0.0005
    # Positive control: a tenth fewer people are detected less often.
    fewer = round(0.9 * count)
    present = generator.binomial(fewer, p, draws) + generator.binomial(n - fewer, q, draws)
    assert np.mean((present - n * q) / (p - q) > threshold) < 0.93


def test_too_few_people():
    for n in (1, 10, 1000):
        assert all(c.smallest_detectable_count == math.inf for c in local.plan(n=n, k=100, epsilon=0.01))
    for epsilon in (2.0**-20, 1.0, 8.0, 32.0):
        for n in (1, 2, 3, 2**64 - 1):
            for candidate in local.plan(n=n, k=5, epsilon=epsilon):
                count = candidate.smallest_detectable_count
                assert 0 < count <= n or count == math.inf


@pytest.mark.parametrize("k", [2, 20])
def test_the_cost_of_the_shuffled_reports_is_that_of_the_protocol(k):
    for candidate in local.plan(n=500, k=k, epsilon=2.0, shuffled_delta=1e-7):
        cost = candidate.protocol.shuffled_cost(n=500, delta=1e-7)
        assert (candidate.shuffled_epsilon, candidate.bound) == (cost.epsilon, cost.bound)
    plan = local.plan(n=500, k=k, epsilon=2.0)
    assert plan.shuffled_delta is None
    assert {(candidate.shuffled_epsilon, candidate.bound) for candidate in plan} == {(None, None)}


def test_protocols_that_cannot_be_are_left_out():
    kinds = {type(candidate.protocol) for candidate in local.plan(n=10**9, k=2**24, epsilon=2.0**-20)}
    assert local.OptimizedUnaryEncoding in kinds
    assert local.GeneralizedRandomizedResponse not in kinds
    assert local.RandomizedResponse not in kinds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be an integer from 1 to 2**64 - 1, got 0"),
        ({"n": -1}, "n must be an integer from"),
        ({"n": 2**64}, "n must be an integer from"),
        ({"k": 1}, "k must be an integer from 2 to 16777216, got 1"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"shuffled_delta": 0.0}, "shuffled_delta must be between 0 and 1, both excluded, got 0.0"),
        ({"shuffled_delta": 1}, "shuffled_delta must be between 0 and 1, both excluded, got 1.0"),
        ({"shuffled_delta": math.nan}, "shuffled_delta must be between 0 and 1, both excluded, got nan"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        local.plan(**{"n": 100, "k": 3, "epsilon": 1.0, **arguments})
