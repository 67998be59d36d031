"""Budgets in parts: fractions, `split`, and that no sequence of spends exceeds a budget, in exact numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise import BudgetExceeded, Gaussian, Laplace, ParameterError, PrivacyCost, stability
from dpnoise._numbers import real_down
from dpnoise.accounting import (
    Accountant,
    Ledger,
    LedgerError,
    RenyiCost,
    ZcdpCost,
    amplify_by_poisson_sampling,
    compose_advanced,
    compose_parallel,
    compose_sequential,
    group_privacy,
)
from dpnoise.accounting._cost import FINEST, down, exact_of
from dpnoise.accounting._filters import SequentialFilter

THIRD = Fraction(1, 3)
BUDGETS: list[Any] = [1.0, 0.1, 0.1 + 0.2, 0.7234234234234234, 123456789.123, 5e-324, 1e308, THIRD, Fraction(7, 2**70)]


def memory(**budget: Any) -> Ledger[Any]:
    return Ledger(":memory:", **budget)


def spend(ledger: Ledger[Any], costs: Iterable[Any]) -> Ledger[Any]:
    for cost in costs:
        ledger.spend(cost)
    return ledger


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_parts_of_a_budget_fit_and_use_it_up(budget: Any) -> None:
    whole = PrivacyCost(budget, 1e-6, "add/remove")
    for count in (*range(1, 40), 97, 200):
        parts = whole.split(count)
        assert sum(exact_of(part.epsilon) for part in parts) == exact_of(whole.epsilon)
        assert compose_sequential(parts) == whole
        assert len(parts) == count
        ledger = memory(epsilon=budget, delta=1e-6)
        ledger.spend(parts)
        assert ledger.remaining == PrivacyCost(0.0, 0.0, "add/remove")


def test_mechanisms_of_the_parts_fit() -> None:
    for count in range(1, 201):
        ledger = memory(epsilon=1.0)
        parts = ledger.budget.split(count)
        assert sum(exact_of(part.epsilon) for part in parts) == 1
        spend(ledger, (Laplace(epsilon=part.epsilon) for part in parts))
        assert ledger.remaining.epsilon == 0
        adaptive = memory(rho=0.3)
        spend(adaptive, (Gaussian(rho=part.rho) for part in adaptive.budget.split(count)))
        assert adaptive.remaining.rho == 0
    orders = memory(epsilon=9.0, delta=1e-6, orders=[4, 8])
    assert min(spend(orders, orders.budget.split(7)).remaining.divergences.values()) == 0


def test_mechanisms_of_equal_fractions_fit() -> None:
    """The native module rounds a promise down to a float that a ledger reads as no more, either."""
    for count in range(1, 201):
        part = Fraction(1, count)
        spend(memory(epsilon=1), count * [Laplace(epsilon=part)])
        spend(memory(rho=1), count * [Gaussian(rho=part)])


def test_parts_are_floats_where_floats_add_up() -> None:
    assert [part.epsilon for part in PrivacyCost(1.0).split(3)] == [0.333333333333334, *2 * [0.333333333333333]]
    assert PrivacyCost(0.0, 0.0).split(2) == 2 * [PrivacyCost(0.0)]
    assert PrivacyCost(THIRD, 1e-6, "add/remove", "user").split(2) == 2 * [
        PrivacyCost(Fraction(1, 6), 5e-7, "add/remove", "user")
    ]
    assert ZcdpCost(0.5).split(2) == 2 * [ZcdpCost(0.25)]
    assert RenyiCost({2: 0.5, 3: THIRD}).split(2) == 2 * [RenyiCost({2: 0.25, 3: Fraction(1, 6)})]


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        (0, ParameterError, "parts must be an integer from 1 to 1000000, got 0"),
        (10**6 + 1, ParameterError, "parts must be an integer from 1 to 1000000, got 1000001"),
        (1.5, TypeError, "parts must be an int, got float"),
        (True, TypeError, "parts must be an int, got bool"),
        ("3", TypeError, "parts must be an int, got str"),
    ],
)
def test_what_no_number_of_parts_is(parts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        PrivacyCost(1.0).split(parts)


@pytest.mark.parametrize("part", [PrivacyCost(1 / 11), Laplace(epsilon=1 / 11)])
def test_a_part_that_was_rounded_up_is_refused_with_the_way_out(part: Any) -> None:
    ledger = spend(memory(epsilon=1.0), 10 * [part])
    with pytest.raises(BudgetExceeded, match=r"and those of `ledger\.budget\.split\(\.\.\.\)` do not"):
        ledger.spend(part)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend(PrivacyCost(0.0910))
    assert "split" not in str(caught.value)


def test_fractions_are_kept(memory_path: Path) -> None:
    path = memory_path / "ledger"
    ledger = Ledger(path, epsilon=THIRD, delta=Fraction(1, 3 * 10**6))
    assert ledger.budget == PrivacyCost(THIRD, Fraction(1, 3 * 10**6), "add/remove")
    ledger.spend(PrivacyCost(Fraction(1, 7), Fraction(1, 9 * 10**6)))
    again = Ledger(path, epsilon=THIRD, delta=Fraction(1, 3 * 10**6))
    assert again.remaining == PrivacyCost(Fraction(4, 21), Fraction(2, 9 * 10**6), "add/remove")
    assert [entry.cost.epsilon for entry in again.entries()] == [Fraction(1, 7)]
    for near in (1 / 3, down(THIRD), THIRD + Fraction(1, 10**30)):
        with pytest.raises(LedgerError, match=r"is a ledger with the budget epsilon=Fraction\(1, 3\), delta=Frac"):
            Ledger(path, epsilon=near, delta=Fraction(1, 3 * 10**6))
    assert ">4/21<" in again._repr_html_()
    spend(memory(epsilon=1), 3 * [PrivacyCost(THIRD)])
    spend(memory(epsilon=1, delta=0.5), 3 * [PrivacyCost(THIRD, Fraction(1, 6))])
    spend(memory(rho=THIRD, delta=1e-6), 3 * [ZcdpCost(Fraction(1, 9), Fraction(1, 3 * 10**6))])
    spend(memory(rho=9, delta=1e-6), 3 * [PrivacyCost(THIRD, Fraction(1, 3 * 10**6))])
    spend(memory(epsilon=9, delta=1e-6, orders=[8]), 3 * [RenyiCost({8: THIRD}), ZcdpCost(Fraction(1, 9))])


def test_a_fraction_is_rounded_down_for_a_mechanism() -> None:
    """Down also as the decimal number that a ledger reads."""
    for count in range(1, 1001):
        share = Fraction(1, count)
        for found in (real_down(share, "epsilon"), stability.StableValue(epsilon=share, delta=0.1).epsilon):
            assert max(Fraction(found), Fraction(repr(found))) <= share < Fraction(found) * (1 + Fraction(1, 2**50))
    spend(memory(epsilon=1.0), 3 * [Laplace(epsilon=THIRD)])
    spend(memory(epsilon=Fraction(1)), 3 * [Laplace(epsilon=THIRD)])


def test_costs_with_fractions_are_composed_and_converted() -> None:
    cost, above, below = PrivacyCost(THIRD, Fraction(1, 7 * 10**6)), PrivacyCost(0.33334, 1e-6), PrivacyCost(0.33333)
    assert cost + cost + cost == compose_sequential(3 * [cost]) == PrivacyCost(1.0, Fraction(3, 7 * 10**6))
    assert compose_parallel([cost, below]) == PrivacyCost(cost.epsilon, cost.delta, "add/remove")
    conversions: list[Callable[[PrivacyCost], float]] = [
        lambda one: compose_advanced(one, 10, delta=1e-4).epsilon,
        lambda one: group_privacy(one, 2).epsilon,
        lambda one: amplify_by_poisson_sampling(one, sample_rate=0.1).epsilon,
        lambda one: Accountant().compose(one, 10).epsilon(1e-4),
        lambda one: Accountant(method="rdp").compose(one, 10).epsilon(1e-4),
    ]
    for convert in conversions:
        assert convert(below) < convert(cost) < convert(above)


def overspent(budget: Any, costs: list[Any]) -> Fraction:
    """Spend what a ledger grants of some costs, and return by how much that exceeds the budget, in exact numbers."""
    ledger, total = memory(epsilon=budget), Fraction()
    for cost in costs:
        left = exact_of(budget) - total
        try:
            ledger.spend(PrivacyCost(cost))
        except BudgetExceeded:
            assert exact_of(cost) > left, "it fits"
        else:
            total += exact_of(cost)
    return total - exact_of(budget)


def test_no_sequence_of_spends_exceeds_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(52)

    def amount() -> Any:
        kind = chance.randrange(4)
        whole = Fraction(chance.randrange(1, 60), chance.choice([1, 3, 7, 11, 64, 97, 10**17 + 3]))
        return [whole, float(whole), round(float(whole), 3), 10.0 ** chance.randrange(-20, 2)][kind]

    for _ in range(300):
        assert overspent(amount(), [amount() for _ in range(30)]) <= 0
    budget, thirds = 3 * exact_of(down(THIRD)), 3 * [THIRD]
    assert overspent(budget, thirds) < 0
    priced = SequentialFilter.price
    with monkeypatch.context() as fault:
        fault.setattr(SequentialFilter, "price", lambda rule, cost: tuple(map(rounded_down, priced(rule, cost))))
        assert overspent(budget, thirds) > 0, "the planted fault: prices that are rounded down"


def rounded_down(price: Fraction) -> Fraction:
    return exact_of(down(price))


def test_totals_of_many_fractions_stay_short_and_are_rounded_up() -> None:
    ledger, total = memory(epsilon=10**6), Fraction()
    for odd in range(3, 2400, 2):
        ledger.spend(PrivacyCost(Fraction(1, odd)))
        total += Fraction(1, odd)
    (found, _) = ledger._totals(ledger._file.state())
    assert total.denominator > FINEST >= found.denominator
    assert total < found < total + Fraction(1200, FINEST)
    assert PrivacyCost(Fraction(1, FINEST)).epsilon == Fraction(1, FINEST)
    assert type(PrivacyCost(Fraction(1, FINEST + 1)).epsilon) is float
    assert memory(epsilon=THIRD + Fraction(1, FINEST**2)).budget.epsilon <= THIRD


def test_a_number_of_numpy_is_no_fraction() -> None:
    assert PrivacyCost(np.float32(0.1)).epsilon == float(np.float32(0.1))
    assert type(PrivacyCost(np.float32(0.1)).epsilon) is float


@pytest.mark.parametrize(
    "given", [Fraction(1, 10) + Fraction(1, 10**401), np.longdouble(1) / 10, 10**23 + 1, Fraction(3, 10**401)]
)
def test_a_cost_that_is_rounded_is_no_smaller_as_a_ledger_reads_it(given: Any) -> None:
    exact = Fraction(given) if isinstance(given, int) else Fraction(*given.as_integer_ratio())
    for amount in (PrivacyCost(given).epsilon, ZcdpCost(given).rho, RenyiCost({2: given}).divergences[2]):
        assert type(amount) is float
        assert min(Fraction(amount), exact_of(amount)) >= exact


def test_what_remains_can_be_spent_where_no_cost_keeps_the_fraction() -> None:
    for last in range(1, 20):
        ledger = memory(epsilon=Fraction(3 * last + 1, 3))
        ledger.spend(PrivacyCost(Fraction(1, FINEST)))
        (left, _) = ledger._left(ledger._file.state())
        assert left.denominator > FINEST
        assert exact_of(ledger.remaining.epsilon) <= left
        ledger.spend(ledger.remaining)


def test_no_split_has_parts_that_are_rounded() -> None:
    whole = PrivacyCost(Fraction(1, 3 * 10**399))
    assert sum(exact_of(part.epsilon) for part in whole.split(3)) == whole.epsilon
    with pytest.raises(ParameterError, match=r"^parts must be fewer for an amount with so large a denominator, got 7$"):
        whole.split(7)


def test_deltas_up_to_the_largest_that_a_float_stands_for_add_up() -> None:
    ledger = memory(epsilon=1.0, delta=0.9999999999999999)
    ledger.spend(PrivacyCost(0.0, 0.9999999999999))
    ledger.spend(PrivacyCost(0.0, Fraction(1, 10**13) - Fraction(316, 3 * 10**18)))
    assert 1 - 2.0**-53 < ledger.spent.delta < exact_of(0.9999999999999999)
    for delta in (1 - Fraction(1, 10**17), 1.0):
        with pytest.raises(ParameterError, match=r"^delta must be from 0 up to, but not including, 1"):
            PrivacyCost(0.0, delta)
