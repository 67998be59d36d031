"""Amplification by shuffling against mpmath, and against the exact privacy of the two laws that the proof compares."""

import math
import re

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from dpnoise import ParameterError
from dpnoise.accounting import PrivacyCost, amplify_by_shuffling


def bound(epsilon0: float, n: int, delta: float) -> mpmath.mpf:
    """The closed form, written as in the paper."""
    e = mpmath.exp(mpmath.mpf(epsilon0))
    clones = 8 * mpmath.sqrt(e * mpmath.log(4 / mpmath.mpf(delta))) / mpmath.sqrt(n) + 8 * e / n
    return mpmath.log1p((e - 1) / (e + 1) * clones)


def shuffled(epsilon0: float, n: int, delta: float) -> float:
    """The epsilon of reports that are epsilon0-differentially private each."""
    return amplify_by_shuffling(PrivacyCost(epsilon0), n=n, delta=delta).epsilon


def fewest(epsilon0: float, delta: float) -> int:
    """The smallest n that the condition allows."""
    with mpmath.workdps(50):
        return int(mpmath.ceil(16 * mpmath.exp(mpmath.mpf(epsilon0)) * mpmath.log(2 / mpmath.mpf(delta))))


EPSILONS = [5e-324, 1e-300, 1e-20, 2.0**-20, 0.01, 0.5, 1.0, math.log(3), 2.0, 5.0, 16.0, 32.0]
DELTAS = [5e-324, 1e-300, 1e-12, 1e-6, 0.01, 0.25]


@pytest.mark.parametrize("epsilon0", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_it_is_the_closed_form_rounded_up(epsilon0, delta):
    least = fewest(epsilon0, delta)
    for n in {least, least + 1, 2 * least, 10**15, 2**64 - 1}:
        if not least <= n < 2**64:
            continue
        with mpmath.workdps(500):
            exact = bound(epsilon0, n, delta)
            found = shuffled(epsilon0, n, delta)
            assert found >= min(exact, epsilon0)
            # At most two floats above; never above what each report has by itself.
            assert found <= min(exact * (1 + mpmath.mpf(2) ** -51) + mpmath.mpf(2) ** -1073, epsilon0)


def test_known_values():
    """The example of the authors' program, n = 1e5, epsilon0 = 4, delta = 1e-6, and two more, worked out by hand."""
    # e^4 = 54.598150, ln(4e6) = 15.201805: ln(1 + 0.964028 (8 sqrt(829.990423 / 1e5) + 8 * 54.598150 / 1e5)).
    assert shuffled(4.0, 10**5, 1e-6) == pytest.approx(0.534634, abs=1e-6)
    # ln(1 + 1/2 (8 sqrt(3 ln(4e9) / 1e6) + 24 / 1e6)), ln(4e9) = 22.109560.
    assert shuffled(math.log(3), 10**6, 1e-9) == pytest.approx(0.032069, abs=1e-6)


def exact_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """The smallest delta for the two laws that the proof compares: from the numbers of clones, summed up."""
    e = math.exp(epsilon0)
    total = 0.0
    clones = binom(n - 1, math.exp(-epsilon0))
    for c in range(int(clones.ppf(1e-13)), int(clones.isf(1e-13)) + 1):
        x = np.arange(c + 2)
        without, having = binom.pmf(x, c, 0.5), binom.pmf(x - 1, c, 0.5)
        first, second = (e * having + without) / (e + 1), (having + e * without) / (e + 1)
        total += clones.pmf(c) * np.maximum(first - math.exp(epsilon) * second, 0).sum()
    return total


@pytest.mark.parametrize(("epsilon0", "delta"), [(0.5, 1e-6), (1.0, 1e-3), (2.0, 1e-6), (4.0, 1e-6)])
def test_the_exact_privacy_is_better(epsilon0, delta):
    for factor in (1, 2):
        n = factor * fewest(epsilon0, delta)
        epsilon = shuffled(epsilon0, n, delta)
        assert exact_delta(epsilon0, n, epsilon) < delta
        # Positive control: an eighth of it is too little.
        assert exact_delta(epsilon0, n, epsilon / 8) > delta


def test_it_falls_with_people_and_delta_and_grows_with_epsilon():
    values = [shuffled(1.0, n, 1e-9) for n in (10**3, 10**4, 10**6, 10**9, 2**64 - 1)]
    assert values == sorted(set(values), reverse=True)
    values = [shuffled(1.0, 10**6, delta) for delta in (1e-300, 1e-12, 1e-6, 0.25)]
    assert values == sorted(set(values), reverse=True)
    values = [shuffled(epsilon, 10**6, 1e-9) for epsilon in (0.01, 0.5, 1.0, 4.0, 7.0)]
    assert values == sorted(set(values))


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
def test_the_exact_privacy_is_better_where_the_proof_is_closest(epsilon0):
    n = fewest(epsilon0, 0.25)
    assert exact_delta(epsilon0, n, shuffled(epsilon0, n, 0.25)) < 0.25


def test_it_is_never_more_than_the_local_epsilon():
    n = fewest(0.01, 1e-6)
    assert bound(0.01, n, 1e-6) > 0.01
    assert shuffled(0.01, n, 1e-6) == 0.01


def test_too_few_people():
    for epsilon0, delta in ((1.0, 1e-6), (5.0, 0.25), (32.0, 5e-324)):
        least = fewest(epsilon0, delta)
        shuffled(epsilon0, least, delta)
        message = f"n must be at least 16 exp(epsilon) ln(2 / delta) = {least} for epsilon = {epsilon0!r} and "
        with pytest.raises(ParameterError, match=re.escape(message) + f".*got {least - 1}"):
            shuffled(epsilon0, least - 1, delta)
    with pytest.raises(ParameterError, match=r"got 1000; 1000 reports allow an epsilon of at most 1\.460$"):
        shuffled(5.0, 1000, 1e-6)
    shuffled(1.46, 1000, 1e-6)
    with pytest.raises(ParameterError, match=r"got 9$"):  # too few for any epsilon0
        shuffled(5.0, 9, 1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1000, 0.1), "cost must have an epsilon above 0 and at most 32, got 0.0"),
        ((-1, 1000, 0.1), "epsilon must be zero or more and finite, got -1.0"),
        ((32.1, 1000, 0.1), "cost must have an epsilon above 0 and at most 32, got 32.1"),
        ((math.nan, 1000, 0.1), "epsilon must be zero or more and finite, got nan"),
        ((10**400, 1000, 0.1), "epsilon must be in the range of a float, got an integer beyond the largest"),
        ((1.0, 1000, 0.0), "delta must be above 0 and at most 0.25, got 0.0"),
        ((1.0, 1000, 0.26), "delta must be above 0 and at most 0.25, got 0.26"),
        ((1.0, 1000, math.nan), "delta must be above 0 and at most 0.25, got nan"),
        ((1.0, 0, 0.1), "n must be an integer from 1 to 18446744073709551615, got 0"),
        ((1.0, 2**64, 0.1), "n must be an integer from 1 to 18446744073709551615, got 18446744073709551616"),
    ],
)
def test_parameters_out_of_range(arguments, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        shuffled(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1", 1000, 0.1), "epsilon must be a number, got str"),
        ((1j, 1000, 0.1), "epsilon must be a number, got complex"),
        ((1.0, 1000, None), "delta must be a number, got NoneType"),
        ((1.0, 1000.0, 0.1), "n must be an int, got float"),
        ((1.0, True, 0.1), "n must be an int, got bool"),
        ((1.0, np.array([1000]), 0.1), "n must be an int, got ndarray"),
    ],
)
def test_parameters_of_a_wrong_type(arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        shuffled(*arguments)


def test_numpy_numbers():
    expected = shuffled(1.0, 10**6, 0.25)
    assert shuffled(np.float32(1.0), np.int64(10**6), np.float64(0.25)) == expected


def test_a_cost_that_is_of_no_local_report():
    for cost, message in (
        (PrivacyCost(1.0, 1e-9), "cost must have a delta of 0, got 1e-09"),
        (PrivacyCost(1.0, relation="add/remove"), "cost must be for the neighbouring relation of the shuffled reports"),
    ):
        with pytest.raises(ParameterError, match="^" + message):
            amplify_by_shuffling(cost, n=10**6, delta=1e-9)


def test_the_cost_is_for_a_person_who_is_substituted():
    cost = amplify_by_shuffling(PrivacyCost(1.0, relation="substitute"), n=10**6, delta=1e-9)
    assert cost == PrivacyCost(shuffled(1.0, 10**6, 1e-9), 1e-9, "substitute")
