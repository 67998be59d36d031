"""Partition selection: the coins are those of Theorem 1 of Desfontaines and others (2022), and keep its promise."""

from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import pairwise

import mpmath
import pytest

from dpnoise import _native
from dpnoise.mechanisms import TruncatedGeometric
from dpnoise.mechanisms._partition_selection import _law

BUDGETS = [
    (1.0, 1e-5, 1),
    (1.0, 1e-5, 7),
    (0.1, 1e-3, 3),
    (5.0, 0.3, 2),
    (0.5, 0.9, 2),
    (1e-4, 1e-2, 1),
    (40.0, 1e-12, 1),
    (2.0**-20, 0.1, 1),
    (2.0**-19, 1e-200, 2),
]
LEAST_DELTA = (12.0, 3 * 2.0**-800, 3)


@lru_cache
def selection(budget):
    epsilon, delta, partitions = budget
    return TruncatedGeometric(epsilon=epsilon, delta=delta, max_partitions_contributed=partitions)._native


def of_coin(budget, people):
    """Return the probabilities to keep and to drop, of what is really drawn."""
    probability, drops = selection(budget).coin(people)
    smaller = Decimal(probability)
    return (1 - smaller, smaller) if drops else (smaller, 1 - smaller)


def private(coins, epsilon, delta):
    """Whether neighbouring numbers of people, from none to as many as there are coins, keep the promise."""
    grown = epsilon.exp()
    return all(
        p <= grown * q + delta
        for first, second in pairwise(coins)
        for p, q in [*zip(first, second, strict=True), *zip(second, first, strict=True)]
    )


@pytest.mark.parametrize("budget", [*BUDGETS[:-1], LEAST_DELTA])
def test_coins_keep_the_promise_exactly(budget):
    epsilon, delta, partitions = budget
    with localcontext() as context:
        context.prec = 400
        # For one of the groups; the product over all of them is what delta allows.
        delta = 1 - ((1 - Decimal(delta)).ln() / partitions).exp()
        epsilon = Decimal(epsilon) / partitions
        coins = [of_coin(budget, people) for people in range(1500)]
        assert coins[0] == (0, 1)
        assert 0.99999 * float(delta) < coins[1][0] < delta
        assert coins[-1] == (1, 0) or epsilon < 1e-3
        assert private(coins, epsilon, delta)
        assert not private(coins, epsilon, delta * Decimal("0.99999"))
        assert not private(coins, epsilon * Decimal("0.99999"), delta * Decimal("0.999999")) or delta > 0.5


def numbers(budget):
    """Return numbers of people where something changes, with those around them, and some between."""
    law = _law(*budget)
    turn, last = int(law["turn"][0]), int(law["last"][0])
    places = {0, turn // 2, turn, (turn + last) // 2, last, *(last * i // 29 for i in range(29))}
    return sorted({n for place in places for n in range(max(place - 2, 0), place + 4)})


def error_of_probabilities(law, budget):
    """Return the largest relative error, beside the solved recurrences of the theorem with 400 digits."""
    found = _native.TruncatedGeometric(**law)
    with mpmath.workdps(400):
        epsilon = mpmath.mpf(law["epsilon"])
        share = (1 - mpmath.mpf(2) ** -20) * -mpmath.expm1(mpmath.log1p(-mpmath.mpf(budget[1])) / budget[2])
        step = share / mpmath.expm1(epsilon)
        first = 1 + int(mpmath.log1p(mpmath.tanh(epsilon / 2) * (1 / share - 1)) / epsilon)
        dropped = 1 - step * mpmath.expm1(first * epsilon)
        errors = []
        for n in numbers(budget):
            drop = 1 - step * mpmath.expm1(n * epsilon)
            if n > first:
                drop = max(mpmath.exp((first - n) * epsilon) * (dropped + step) - step, 0)
            probability, drops = found.coin(n)
            exact = drop if drops else 1 - drop
            errors.append(float(abs(probability - exact) / (exact or 1)))
    return max(errors)


@pytest.mark.parametrize("budget", [*BUDGETS, LEAST_DELTA])
def test_probabilities_are_those_of_the_theorem(budget):
    law = _law(*budget)
    turn, height = law["turn"]
    planted = law | {"turn": (turn, height * (1 + 2.0**-41))} if turn else law | {"start": (1, 1.0)}
    assert error_of_probabilities(law, budget) < 2.0**-42 < error_of_probabilities(planted, budget)


@pytest.mark.parametrize("budget", [*BUDGETS, LEAST_DELTA])
def test_neighbours_keep_the_promise_wherever_something_changes(budget):
    epsilon, delta, partitions = budget
    with localcontext() as context:
        context.prec = 400
        delta = 1 - ((1 - Decimal(delta)).ln() / partitions).exp()
        epsilon = Decimal(epsilon) / partitions
        places = numbers(budget)
        coins = {n: of_coin(budget, n) for n in places}
        pairs = [[coins[n], coins[n + 1]] for n in places if n + 1 in coins]
        assert all(private(pair, epsilon, delta) for pair in pairs)
        assert not all(private(pair, epsilon * Decimal("0.99999"), delta * Decimal("0.99999")) for pair in pairs)


@pytest.mark.parametrize("epsilon", [600.0, 3000.0, 1e9, 1e300])
def test_a_large_epsilon(epsilon):
    kept = [float(of_coin((epsilon, 1e-5, 1), people)[0]) for people in range(4)]
    assert kept == pytest.approx([0, 1e-5, 1, 1], rel=1e-5)
