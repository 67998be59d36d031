"""Composition, conversions and amplification: exact where they can be, and never below what they bound."""

from __future__ import annotations

import itertools
import math
import sys
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpnoise import ParameterError, PrivacyCost
from dpnoise.accounting import (
    amplify_by_poisson_sampling,
    amplify_by_sampling_without_replacement,
    amplify_by_shuffling,
    compose_advanced,
    compose_parallel,
    compose_sequential,
    group_privacy,
    pure_zcdp_rho,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)

DIGITS = 60


def written(value: float) -> mpmath.mpf:
    """The decimal number that a float stands for."""
    return mpmath.mpf(repr(value))


def assert_just_above(found: float, exact: mpmath.mpf) -> None:
    """Never below, and above by a float or two."""
    assert mpmath.mpf(found) >= exact
    assert mpmath.mpf(found) <= exact * (1 + mpmath.mpf(2) ** -50) + mpmath.mpf(2) ** -1073


# --- costs -------------------------------------------------------------------------------------------------------


def test_a_cost_is_made_of_floats_rounded_up_and_of_fractions() -> None:
    cost = PrivacyCost(Fraction(1, 10), np.float64(1e-6))
    assert (type(cost.epsilon), type(cost.delta)) == (float, float)
    assert repr(PrivacyCost(Fraction(1, 3))) == "PrivacyCost(epsilon=Fraction(1, 3), delta=0.0)"
    long = PrivacyCost(Fraction(1, 3**900)).epsilon
    assert type(long) is float
    assert Fraction(long) > Fraction(1, 3**900)
    assert PrivacyCost(2**53 + 1).epsilon == 2.0**53 + 2
    assert repr(PrivacyCost(np.float32(0.5))) == "PrivacyCost(epsilon=0.5, delta=0.0)"
    assert PrivacyCost(1) == PrivacyCost(1.0, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1.0,), ParameterError, "epsilon must be zero or more and finite, got -1.0"),
        ((math.nan,), ParameterError, "epsilon must be zero or more and finite, got nan"),
        ((10**400,), ParameterError, "epsilon must be in the range of a float"),
        ((1.0, 1.0), ParameterError, "delta must be from 0 up to, but not including, 1, got 1.0"),
        ((1.0, Fraction(10**30 - 1, 10**30)), ParameterError, "delta must be from 0 up to"),
        (("1",), TypeError, "epsilon must be a number, got str"),
        ((1.0, None), TypeError, "delta must be a number, got NoneType"),
    ],
)
def test_bad_costs(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PrivacyCost(*arguments)


# --- sequential and parallel composition -------------------------------------------------------------------------


def test_sequential_composition_adds_up_as_written() -> None:
    assert compose_sequential([]) == PrivacyCost(0.0)
    assert compose_sequential(PrivacyCost(0.1, 1e-7) for _ in range(10)) == PrivacyCost(1.0, 1e-6)
    for order in itertools.permutations([0.1, 1e16, 3e-17, 0.7]):
        total = compose_sequential(map(PrivacyCost, order)).epsilon
        exact = sum(Fraction(repr(epsilon)) for epsilon in order)
        assert Fraction(repr(total)) >= exact > Fraction(repr(math.nextafter(total, 0)))
    with pytest.raises(ParameterError, match="delta must be from 0 up to"):
        compose_sequential([PrivacyCost(0.0, 0.5)] * 2)
    with pytest.raises(ParameterError, match="epsilon must be zero or more and finite"):
        compose_sequential([PrivacyCost(1e308)] * 2)


def test_costs_are_added_as_by_sequential_composition() -> None:
    assert PrivacyCost(0.1) + PrivacyCost(0.2, 1e-6) == PrivacyCost(0.3, 1e-6)
    assert sum([PrivacyCost(0.1, 1e-7)] * 10) == PrivacyCost(1.0, 1e-6)
    above = math.nextafter(0.1, 1)
    assert PrivacyCost(0.1, 0.1) + PrivacyCost(1e-30, 1e-30) == PrivacyCost(above, above)
    costs = [PrivacyCost(0.1, 1e-300, "substitute"), PrivacyCost(1e16), PrivacyCost(3e-17, 1e-9)]
    assert sum(costs[:2]) == compose_sequential(costs[:2])
    assert sum(costs).relation == "substitute"
    assert sum(costs).epsilon >= compose_sequential(costs).epsilon
    with pytest.raises(ParameterError, match='costs must be for one neighbouring relation, got "add/remove" and "subs'):
        sum([PrivacyCost(0.1, 0, "add/remove"), PrivacyCost(0.1), PrivacyCost(0.1, 0, "substitute")])
    with pytest.raises(ParameterError, match="delta must be from 0 up to"):
        PrivacyCost(0.0, 0.5) + PrivacyCost(0.0, 0.5)
    for other in (0.5, 1, False, 0.0, None):
        with pytest.raises(TypeError, match="unsupported operand"):
            other + PrivacyCost(0.1)
        with pytest.raises(TypeError, match="unsupported operand"):
            PrivacyCost(0.1) + other


def test_parallel_composition_is_the_largest() -> None:
    assert compose_parallel([PrivacyCost(0.5), PrivacyCost(0.2, 1e-6)]) == PrivacyCost(0.5, 1e-6, "add/remove")
    # One person who is substituted by another may be in two parts.
    costs = [PrivacyCost(epsilon, delta, "substitute") for epsilon, delta in ((0.1, 1e-6), (0.2, 1e-7), (0.05, 1e-5))]
    assert compose_parallel(costs) == PrivacyCost(0.3, 1.1e-5, "substitute")
    assert compose_parallel(costs[:1]) == costs[0]
    for compose in (compose_parallel, compose_sequential):
        wrong: Any = compose
        message = r"^costs must be of type PrivacyCost, as `cost` of a mechanism is, or an epsilon, got "
        for given in (["1"], [True], [[0.5]]):
            with pytest.raises(TypeError, match=message):
                wrong(given)
        with pytest.raises(TypeError, match=message):
            wrong(PrivacyCost(0.5), "1")
        with pytest.raises(TypeError, match=r"^costs must be an iterable of PrivacyCost or epsilons, got NoneType$"):
            wrong(None)
        for given in ([-0.5], [math.inf], [math.nan]):
            with pytest.raises(ParameterError, match=r"^costs must be zero or more and finite, got "):
                wrong(given)
    with pytest.raises(ParameterError, match="costs must have at least one element, got none"):
        compose_parallel([])


def test_numbers_are_epsilons() -> None:
    tenth = PrivacyCost(0.1)
    assert compose_sequential([0.1, 0.2]) == compose_sequential(tenth, PrivacyCost(0.2)) == PrivacyCost(0.3)
    assert compose_sequential([Fraction(1, 3), Fraction(2, 3)]) == PrivacyCost(1)
    assert compose_sequential(np.array([0.1, 0.2])) == PrivacyCost(0.3)
    assert compose_sequential(tenth) == tenth
    assert compose_parallel([0.1, 0.2]) == compose_parallel(tenth, PrivacyCost(0.2))
    assert compose_parallel([0.1, 0.2]) == PrivacyCost(0.2, relation="add/remove")
    assert compose_advanced(0.1, 100, delta=1e-6) == compose_advanced(tenth, 100, delta=1e-6)
    assert group_privacy(1.0, 4) == group_privacy(PrivacyCost(1.0), 4)
    assert amplify_by_shuffling(1.0, n=100, delta=1e-6) == amplify_by_shuffling(PrivacyCost(1.0), n=100, delta=1e-6)
    with pytest.raises(ParameterError, match=r"^cost must be zero or more and finite, got -1\.0$"):
        group_privacy(-1.0, 4)


@pytest.mark.parametrize("given", [(0.5, 1e-6), (0.5,), (0, PrivacyCost(0.1)), (PrivacyCost(0.1), Fraction(1, 3))])
@pytest.mark.parametrize("compose", [compose_sequential, compose_parallel])
def test_a_delta_is_not_taken_for_an_epsilon(compose: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=r"costs must be PrivacyCost, or one list of numbers, each an epsilon"):
        compose(*given)


# --- many equal releases -----------------------------------------------------------------------------------------


def enumerated_delta(epsilon: mpmath.mpf, delta: mpmath.mpf, count: int, target: mpmath.mpf) -> mpmath.mpf:
    """The smallest delta for `count` runs of the worst mechanism, from all 4**count sequences of outcomes."""
    growth = mpmath.exp(epsilon)
    response = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
    outcomes = [(delta, mpmath.mpf(0)), (mpmath.mpf(0), delta), response, response[::-1]]
    total = mpmath.mpf(0)
    for sequence in itertools.product(outcomes, repeat=count):
        first = mpmath.fprod(pair[0] for pair in sequence)
        second = mpmath.fprod(pair[1] for pair in sequence)
        total += max(first - mpmath.exp(target) * second, 0)
    return total


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("cost", [PrivacyCost(0.3), PrivacyCost(1.7, 0.01), PrivacyCost(0.0, 0.1)])
def test_optimal_composition_is_what_all_outcomes_add_up_to(cost: PrivacyCost, count: int) -> None:
    with mpmath.workdps(DIGITS):
        each, failure = written(cost.epsilon), written(cost.delta)
        for share in (0.0, 0.2, 0.5, 0.77, 1.0):
            target = share * count * cost.epsilon
            exact = enumerated_delta(each, failure, count, written(target))
            assert_just_above(compose_advanced(cost, count, epsilon=target).delta, exact)
        for delta in (0.6, 0.2, 0.051):
            if delta <= 1 - (1 - cost.delta) ** count:
                continue
            found = compose_advanced(cost, count, delta=delta)
            assert found.delta == delta
            assert enumerated_delta(each, failure, count, mpmath.mpf(found.epsilon)) <= written(delta)
            if found.epsilon > 0:  # Positive control, and tightness: a little less is too little.
                less = mpmath.mpf(found.epsilon) * (1 - mpmath.mpf(2) ** -48)
                assert enumerated_delta(each, failure, count, less) > written(delta)


def summed_delta(epsilon: mpmath.mpf, count: int, target: mpmath.mpf) -> mpmath.mpf:
    """The sum of Murtagh and Vadhan's theorem 1.4, for pure mechanisms, written as it stands there."""
    growth, threshold = mpmath.exp(epsilon), mpmath.exp(target)
    powers = [mpmath.mpf(1)]
    while len(powers) <= count:
        powers.append(powers[-1] * growth)
    terms = (
        math.comb(count, l) * max(powers[count - l] - threshold * powers[l], 0)
        for l in range(count + 1)  # noqa: E741
    )
    return mpmath.fsum(terms) / (1 + growth) ** count


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.01, 1000), (3.0, 40), (1e-9, 50), (12.0, 7)])
@pytest.mark.parametrize("delta", [1e-3, 1e-12, 1e-200])
def test_optimal_composition_of_many(epsilon: float, count: int, delta: float) -> None:
    with mpmath.workdps(500):
        each = written(epsilon)
        found = compose_advanced(PrivacyCost(epsilon), count, delta=delta).epsilon
        assert summed_delta(each, count, written(found)) <= written(delta)
        if found:
            assert summed_delta(each, count, written(found) * (1 - mpmath.mpf(2) ** -48)) > written(delta)
        for target in (0.7 * epsilon, count * epsilon / 7, count * epsilon * (1 - 2**-40)):
            exact = summed_delta(each, count, written(target))
            assert_just_above(compose_advanced(PrivacyCost(epsilon), count, epsilon=target).delta, exact)


def test_theorem_3_3_of_kairouz_oh_and_viswanath() -> None:
    """Its delta_i, for e = (k - 2i) epsilon, as fractions: exp(epsilon) is 2 but for the last digit of epsilon."""
    count, epsilon = 8, math.log(2)
    for i in range(count // 2 + 1):
        exact = Fraction(
            sum(math.comb(count, l) * (2 ** (count - l) - 2 ** (count - 2 * i + l)) for l in range(i)),  # noqa: E741
            3**count,
        )
        found = compose_advanced(PrivacyCost(epsilon, 0.001), count, epsilon=(count - 2 * i) * epsilon).delta
        with_failures = 1 - (1 - Fraction(1, 1000)) ** count * (1 - exact)
        assert found == pytest.approx(float(with_failures), rel=1e-12)


def test_the_bound_of_dwork_rothblum_and_vadhan() -> None:
    with mpmath.workdps(DIGITS):
        for epsilon, delta, count, slack in ((0.01, 1e-3, 100, 0.01), (0.001, 0.0, 10**4, 1e-9), (0.1, 0.0, 50, 1e-3)):
            each = written(epsilon)
            total = count * written(delta) + written(slack)
            cost = PrivacyCost(epsilon, delta)
            found = compose_advanced(cost, count, delta=float(total), method="drv")
            room = written(found.delta) - count * written(delta)
            exact = each * mpmath.sqrt(2 * count * mpmath.log(1 / room)) + count * each * mpmath.expm1(each)
            assert exact < count * each
            assert_just_above(found.epsilon, exact)
            back = compose_advanced(cost, count, epsilon=found.epsilon, method="drv").delta
            assert back == pytest.approx(found.delta, rel=1e-12)
            assert compose_advanced(cost, count, delta=found.delta).epsilon < found.epsilon
    # Where it is worse than the sum of the epsilons, that is given.
    assert compose_advanced(PrivacyCost(1.0), 10, delta=1e-6, method="drv").epsilon == 10.0
    assert compose_advanced(PrivacyCost(800.0), 10, delta=1e-6, method="drv").epsilon == 8000.0


def test_it_is_never_worse_than_adding_up() -> None:
    for epsilon, count in ((0.1, 1), (0.1, 3), (7.0, 2), (1e-300, 10), (1e300, 10), (1e9, 1), (0.0, 5)):
        cost = PrivacyCost(epsilon)
        total = compose_sequential([cost] * count).epsilon
        for method in ("optimal", "drv"):
            assert compose_advanced(cost, count, delta=0.0, method=method).epsilon == total
            assert compose_advanced(cost, count, delta=1e-9, method=method).epsilon <= total
            assert compose_advanced(cost, count, epsilon=total, method=method).delta == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"cost": "1", "count": 2, "delta": 0.1},
            TypeError,
            "cost must be of type PrivacyCost, as `cost` of a mechanism is, or an epsilon, got '1'",
        ),
        ({"count": 0, "delta": 0.1}, ParameterError, "count must be an integer from 1 to 1000000, got 0"),
        ({"count": 1.5, "delta": 0.1}, TypeError, "count must be an int, got float"),
        ({"count": 2}, ParameterError, "one of delta and epsilon must be given, and not both"),
        ({"count": 2, "delta": 0.1, "epsilon": 1.0}, ParameterError, "one of delta and epsilon must be given"),
        ({"count": 2, "delta": 1.0}, ParameterError, "delta must be from 0 up to, but not including, 1, got 1.0"),
        (
            {"count": 2, "delta": 1e-3},
            ParameterError,
            r"delta must be at least 0\.00199.* for 2 releases of Priv.*0.001$",
        ),
        ({"count": 2, "epsilon": -1.0}, ParameterError, r"epsilon must be zero or more and finite, got -1\.0"),
        ({"count": 2, "delta": 0.1, "method": "best"}, ParameterError, 'method must be "optimal" or "drv", got'),
        ({"count": 9, "epsilon": 0.1, "method": "drv"}, ParameterError, "epsilon must be larger for 9 releases of"),
        ({"cost": PrivacyCost(1e300), "count": 2, "epsilon": 1.0}, ParameterError, "epsilon must be larger for 2"),
        ({"count": 2, "delta": "1"}, TypeError, "^delta must be a number, got str"),
        ({"count": 2, "epsilon": "1"}, TypeError, "^epsilon must be a number, got str"),
    ],
)
def test_bad_compositions(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compose_advanced(**{"cost": PrivacyCost(1.0, 1e-3), **arguments})


# --- zCDP --------------------------------------------------------------------------------------------------------


def searched(function: Any) -> mpmath.mpf:
    """The minimum over alpha > 1, by golden sections on its logarithm."""
    low, high = mpmath.mpf(-80), mpmath.mpf(80)
    golden = (mpmath.sqrt(5) - 1) / 2
    for _ in range(200):
        first, second = high - golden * (high - low), low + golden * (high - low)
        if function(1 + mpmath.exp(first)) < function(1 + mpmath.exp(second)):
            high = second
        else:
            low = first
    return function(1 + mpmath.exp(low))


GRID = [(rho, delta) for rho in (1e-6, 0.01, 1.0, 3.0, 200.0) for delta in (1e-12, 1e-6, 0.1)]


@pytest.mark.parametrize(("rho", "delta"), GRID)
def test_the_tight_conversion_is_the_best_alpha(rho: float, delta: float) -> None:
    with mpmath.workdps(DIGITS):
        r, d = mpmath.mpf(rho), mpmath.mpf(delta)
        best = searched(lambda a: a * r + mpmath.log(1 / (a * d)) / (a - 1) + mpmath.log(1 - 1 / a))
        found = zcdp_epsilon(rho, delta=delta)
        assert_just_above(found, max(best, mpmath.mpf(0)))
        assert found < zcdp_epsilon(rho, delta=delta, method="simple")
        e = mpmath.mpf(found)
        best = searched(lambda a: mpmath.exp((a - 1) * (a * r - e) + (a - 1) * mpmath.log(a - 1) - a * mpmath.log(a)))
        assert_just_above(zcdp_delta(rho, epsilon=found), best)
        if found:
            assert best <= d * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize(("rho", "delta"), GRID)
def test_the_simple_conversion(rho: float, delta: float) -> None:
    with mpmath.workdps(DIGITS):
        r, d = mpmath.mpf(rho), mpmath.mpf(delta)
        found = zcdp_epsilon(rho, delta=delta, method="simple")
        assert_just_above(found, r + 2 * mpmath.sqrt(r * mpmath.log(1 / d)))
        exact = mpmath.exp(-((mpmath.mpf(found) - r) ** 2) / (4 * r))
        assert_just_above(zcdp_delta(rho, epsilon=found, method="simple"), exact)
    assert zcdp_delta(3.0, epsilon=2.9, method="simple") == zcdp_delta(3.0, epsilon=3 + 1e-9, method="simple") == 1.0


@pytest.mark.parametrize("method", ["tight", "simple"])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 30.0, 1e300])
def test_rho_is_the_largest_but_one(method: Any, epsilon: float) -> None:
    """The largest float may be below the decimal number that it stands for as the budget of a ledger."""
    for delta in (1e-12, 1e-3, math.nextafter(1.0, 0.0)):
        rho = zcdp_rho(epsilon=epsilon, delta=delta, method=method)
        largest = math.nextafter(rho, math.inf)
        assert zcdp_epsilon(largest, delta=delta, method=method) <= epsilon
        assert zcdp_epsilon(math.nextafter(largest, math.inf), delta=delta, method=method) > epsilon


def test_published_figures_of_the_census() -> None:
    """Abowd et al. (2022), "The 2020 Census disclosure avoidance system TopDown algorithm": rho is 2.56 for persons and
    0.07 for housing units, rounded to two digits, and epsilon 17.14 and 2.47 for a delta of 1e-10."""
    assert zcdp_epsilon(2.555, delta=1e-10) < 17.145
    assert zcdp_epsilon(2.565, delta=1e-10) > 17.135
    assert zcdp_epsilon(0.065, delta=1e-10) < 2.475
    assert zcdp_epsilon(0.075, delta=1e-10) > 2.465


def test_the_extremes_of_zcdp() -> None:
    assert zcdp_epsilon(0.0, delta=1e-9) == zcdp_delta(0.0, epsilon=0.0) == 0.0
    assert zcdp_epsilon(1.0, delta=0.999) == 0.0
    assert zcdp_delta(1e300, epsilon=1.0) == 1.0
    assert 0 <= zcdp_epsilon(5e-324, delta=5e-324) < 1e-140
    assert zcdp_epsilon(1e308, delta=1e-9) > 1e308
    near = 100 / 3
    assert near > Fraction(100, 3), "it is rounded down"
    assert zcdp_delta(10.0, epsilon=Fraction(100, 3)) == zcdp_delta(10.0, epsilon=math.nextafter(near, 0))
    assert zcdp_delta(10.0, epsilon=near) < zcdp_delta(10.0, epsilon=math.nextafter(near, 0))
    largest = sys.float_info.max
    found = [pure_zcdp_rho(epsilon) for epsilon in (0.0, 1e-200, 1e200, largest)]
    assert found == [0.0, 5e-324, math.nextafter(1e200, math.inf), largest]


@pytest.mark.parametrize("epsilon", [1e-30, 1e-18 / 7, 0.1, 0.5, 1.0, 5.0, 30.0, 1e4])
def test_the_rho_of_pure_privacy_is_the_smallest_one(epsilon: float) -> None:
    """For the mechanism that dominates all, randomised response, and every order."""
    rho = pure_zcdp_rho(epsilon)
    with mpmath.workdps(200):
        exact = mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
        assert exact <= rho <= exact * (1 + mpmath.mpf(2) ** -51)

        def slope(order: mpmath.mpf) -> mpmath.mpf:
            grown = mpmath.log(mpmath.cosh((order - 0.5) * epsilon) / mpmath.cosh(mpmath.mpf(epsilon) / 2))
            return grown / ((order - 1) * order)

        orders = [1 + mpmath.mpf(2) ** exponent for exponent in range(-60, 60)]
        assert max(map(slope, orders)) <= rho
        # Positive control: a smaller rho fails at the smallest order.
        assert slope(orders[0]) > rho * (1 - 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zcdp_epsilon(-1.0, delta=0.1), "rho must be zero or more and finite, got -1.0"),
        (lambda: zcdp_epsilon(1.0, delta=0.0), "delta must be above 0 and at most 1, got 0.0"),
        (lambda: zcdp_epsilon(1.0, delta=1.5), "delta must be above 0 and at most 1, got 1.5"),
        (lambda: zcdp_delta(1.0, epsilon=math.nan), "epsilon must be zero or more and finite, got nan"),
        (lambda: zcdp_delta(1.0, epsilon=1.0, method="best"), 'method must be "tight" or "simple", got \'best\''),
        (lambda: zcdp_rho(epsilon=0.1, delta=1.0), "delta must be between 0 and 1, both excluded, got 1.0"),
        (lambda: pure_zcdp_rho(-1.0), "epsilon must be zero or more and finite, got -1.0"),
    ],
)
def test_bad_conversions(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("rho", lambda x: zcdp_epsilon(x, delta=0.1)),
        ("delta", lambda x: zcdp_epsilon(1.0, delta=x)),
        ("rho", lambda x: zcdp_delta(x, epsilon=1.0)),
        ("epsilon", lambda x: zcdp_delta(1.0, epsilon=x)),
        ("epsilon", lambda x: zcdp_rho(epsilon=x, delta=0.1)),
        ("sample_rate", lambda x: amplify_by_poisson_sampling(PrivacyCost(1.0), sample_rate=x)),
    ],
)
def test_what_is_no_number_is_named(name: str, call: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be a number, got str"):
        call("1")


# --- groups and samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 17])
@pytest.mark.parametrize("cost", [PrivacyCost(0.1, 1e-6), PrivacyCost(2.0, 1e-20), PrivacyCost(0.0, 1e-3)])
def test_group_privacy_is_a_geometric_sum(cost: PrivacyCost, size: int) -> None:
    with mpmath.workdps(DIGITS):
        exact = mpmath.mpf(cost.delta) * mpmath.fsum(mpmath.exp(i * mpmath.mpf(cost.epsilon)) for i in range(size))
        found = group_privacy(cost, size)
        assert Fraction(found.epsilon) >= size * Fraction(cost.epsilon)
        assert found.epsilon == pytest.approx(size * cost.epsilon, rel=1e-15)
        if size == 1:
            assert found == cost
        else:
            assert_just_above(found.delta, exact)


@pytest.mark.parametrize("share", [Fraction(1, 1000), Fraction(1, 4), Fraction(9, 10)])
@pytest.mark.parametrize("cost", [PrivacyCost(0.1, 1e-6), PrivacyCost(8.0), PrivacyCost(1e-15, 0.5)])
def test_samples(cost: PrivacyCost, share: Fraction) -> None:
    with mpmath.workdps(DIGITS):
        poisson = amplify_by_poisson_sampling(cost, sample_rate=float(share))
        fixed = amplify_by_sampling_without_replacement(cost, size=share.numerator, population=share.denominator)
        for found, exact in (
            (poisson, mpmath.mpf(float(share))),
            (fixed, mpmath.mpf(share.numerator) / share.denominator),
        ):
            assert_just_above(found.epsilon, mpmath.log1p(exact * mpmath.expm1(mpmath.mpf(cost.epsilon))))
            if cost.delta:
                assert_just_above(found.delta, exact * mpmath.mpf(cost.delta))


def test_samples_of_all_and_of_none() -> None:
    cost = PrivacyCost(0.1, 1e-6)
    assert amplify_by_poisson_sampling(cost, sample_rate=1.0) == PrivacyCost(0.1, 1e-6, "add/remove")
    assert amplify_by_poisson_sampling(cost, sample_rate=0.0) == PrivacyCost(0.0, 0.0, "add/remove")
    large = amplify_by_poisson_sampling(PrivacyCost(1e300, 0.5), sample_rate=0.5)
    assert (large.epsilon, large.delta) == (1e300, 0.25 + 2**-54)
    for people in (1, 7):
        whole = amplify_by_sampling_without_replacement(cost, size=people, population=people)
        assert whole == PrivacyCost(0.1, 1e-6, "substitute")


def test_poisson_sampling_is_tight_for_randomised_response() -> None:
    """A sampled person answers by randomised response, an absent one at random: the two laws, term by term."""
    epsilon, share = 1.3, 0.2
    with_person = share * math.exp(epsilon) / (1 + math.exp(epsilon)) + (1 - share) / (1 + math.exp(epsilon))
    loss = math.log(with_person * (1 + math.exp(epsilon)))
    found = amplify_by_poisson_sampling(PrivacyCost(epsilon), sample_rate=share).epsilon
    assert found == pytest.approx(loss, rel=1e-12)
    assert share * epsilon < loss, "the control: the share of epsilon would be too little"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: group_privacy(c, 0), ParameterError, "size must be an integer from 1 to"),
        (lambda c: group_privacy(PrivacyCost(1e-30), 2**63), ParameterError, r"size must be .* to 9223372036854775807"),
        (lambda c: group_privacy(c, 2.0), TypeError, "size must be an int, got float"),
        (lambda c: group_privacy(PrivacyCost(1e300, 1e-9), 3), ParameterError, "size must be smaller for .*, got 3:"),
        (
            lambda c: group_privacy(PrivacyCost(0.1, 0.6), 2),
            ParameterError,
            "size must be smaller for .*, got 2: delta",
        ),
        (lambda c: group_privacy(c, 100), ParameterError, "size must be smaller for .*, got 100: delta would be 1 or"),
        (
            lambda c: amplify_by_poisson_sampling(c, sample_rate=1.1),
            ParameterError,
            r"sample_rate must be from 0 to 1, got 1\.1",
        ),
        (
            lambda c: amplify_by_sampling_without_replacement(c, size=1, population=0),
            ParameterError,
            "population must be an integer from 1 to 9223372036854775807",
        ),
        (
            lambda c: amplify_by_poisson_sampling(PrivacyCost(1.0, relation="substitute"), sample_rate=0.5),
            ParameterError,
            "^cost must be for the neighbouring relation of the sample",
        ),
        (
            lambda c: amplify_by_sampling_without_replacement(c, size=3, population=2),
            ParameterError,
            "size must be an integer from 1 to 2, got 3",
        ),
    ],
)
def test_bad_groups_and_samples(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(PrivacyCost(1.0, 1e-3))
