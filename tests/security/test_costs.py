"""One object has one cost: what it was made with, in every ledger and in an accountant, whatever a subclass adds."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise import Gaussian, Laplace, ParameterError, PrivacyCost, TopK
from dpnoise.accounting import Accountant, Ledger, PrivacyLoss, RenyiCost, ZcdpCost, amplify_by_shuffling
from dpnoise.accounting._filters import Filter, RenyiFilter, SequentialFilter, ZcdpFilter, checked_cost
from dpnoise.audit._cases import CASES
from dpnoise.mechanisms import Mechanism

RELATION: Any = "add/remove"
RULES: list[Filter[Any]] = [
    SequentialFilter.of(RELATION, None, 99.0, 0.1),
    ZcdpFilter.of(RELATION, None, 99.0, 0.1, None),
    RenyiFilter.of(RELATION, None, 99.0, 0.1, [2, 8]),
]
BUDGETS: list[Any] = [
    {"epsilon": 99.0, "delta": 0.1},
    {"rho": 99.0, "delta": 0.1},
    {"epsilon": 99.0, "delta": 0.1, "orders": [2, 8]},
]


def prices(cost: Any) -> list[Any]:
    return [rule.price(checked_cost(cost)) for rule in RULES]


def test_the_divergences_of_a_cost_cannot_be_changed() -> None:
    given = {8: 0.5, 2: 0.25}
    cost: Any = RenyiCost(given)
    with pytest.raises(TypeError):
        cost.divergences[2] = 0.0
    given[2] = 0.0
    assert cost == RenyiCost({2: 0.25, 8: 0.5})
    assert repr(cost) == "RenyiCost(divergences={2: 0.25, 8: 0.5})"
    for again in (copy.copy(cost), copy.deepcopy(cost), pickle.loads(pickle.dumps(cost)), replace(cost)):  # noqa: S301
        assert (again, hash(again), repr(again)) == (cost, hash(cost), repr(cost))
        with pytest.raises(TypeError):
            again.divergences[2] = 0.0
    assert "{2: 0.25, 8: 0.5}" in cost._repr_html_()


class Free(PrivacyCost):
    """A cost with what an object of another kind has."""

    rho = 0.0
    divergences = {2: 0.0, 8: 0.0}  # noqa: RUF012

    def _loss(self) -> PrivacyCost:
        return PrivacyCost(0.0)

    def _zcdp(self) -> ZcdpCost:
        return ZcdpCost(0.0)


def test_a_subclass_of_a_cost_costs_what_it_was_made_with() -> None:
    expected = prices(PrivacyCost(1.0))
    assert all(amounts[0] > 0.1 for amounts in expected)
    for cost in (Free(1.0), type("Holder", (), {"cost": Free(1.0)})()):
        assert prices(cost) == expected
    shuffled = amplify_by_shuffling(PrivacyCost(1.0), n=1000, delta=1e-6)
    assert RULES[0].price(checked_cost(shuffled)) == RULES[0].price(PrivacyCost(shuffled.epsilon, shuffled.delta))


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_changed_numbers_are_checked_again(number: float) -> None:
    for cost, name in ((PrivacyCost(1.0), "epsilon"), (ZcdpCost(1.0), "rho"), (PrivacyCost(1.0), "delta")):
        object.__setattr__(cost, name, number)
        with pytest.raises(ParameterError, match=f"{name} must be"):
            checked_cost(cost)


def of_two_costs(by_cost: PrivacyCost, by_loss: Any) -> Any:
    unit = {"relation": None, "person": None}
    members = {"cost": by_cost, **unit, "_loss": lambda self: by_loss, "_taken": None, "release": None}
    return type("Two", (), members)()


class Cheap(Laplace):
    """A mechanism whose loss is not that of its cost."""

    def _loss(self) -> Any:
        return PrivacyCost(0.0)


@pytest.mark.parametrize("budget", BUDGETS)
def test_what_contradicts_itself_is_refused(tmp_path: Path, budget: Any) -> None:
    ledger: Ledger[Any] = Ledger(tmp_path / "ledger", **budget)
    half = Laplace(epsilon=0.5)
    for given in (
        of_two_costs(PrivacyCost(1.0), PrivacyCost(0.0)),
        of_two_costs(PrivacyCost(0.0), PrivacyCost(1.0)),
        of_two_costs(PrivacyCost(1.0), half._loss()),
        of_two_costs(PrivacyCost(0.5, 1e-9), half._loss()),
        Cheap(epsilon=1.0),
    ):
        with pytest.raises(ParameterError, match=r"cost must be a mechanism of one cost, got \w+ with epsilon="):
            ledger.spend(given)
    with pytest.raises(TypeError, match="the privacy loss of Two must be a PrivacyLoss, got int"):
        ledger.spend(of_two_costs(PrivacyCost(1.0), 0))
    assert ledger.entries() == []


class Twice(Laplace):
    """A mechanism that draws two numbers, and says that it costs twice as much."""

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost(2 * super().cost.epsilon)


class OfPairs(Gaussian):
    """A mechanism that states an epsilon for groups of two."""

    @property
    def epsilon(self) -> float:
        return 2 * float(super().epsilon or 0.0)


class OfMany(TopK):
    @property
    def epsilon(self) -> float:
        return 3 * super().epsilon


class Correlated(Laplace):
    """A mechanism with a parameter of its own."""

    rho = 1e-9


def test_a_subclass_that_changes_its_cost_pays_it_everywhere() -> None:
    assert prices(Twice(epsilon=0.5)) == prices(PrivacyCost(1.0))
    assert prices(OfMany(k=2, epsilon=0.5)) == prices(PrivacyCost(1.5))
    assert prices(Correlated(epsilon=0.5)) == prices(Laplace(epsilon=0.5))
    pairs: Any = OfPairs(epsilon=0.5, delta=1e-6)
    for rule in RULES[:2]:
        assert rule.price(checked_cost(pairs)) == rule.price(PrivacyCost(1.0, 1e-6))
    with pytest.raises(ParameterError, match="cost must have a delta of 0"):
        RULES[2].price(checked_cost(pairs))


def test_numbers_of_other_types_are_read() -> None:
    class Other(PrivacyLoss):
        epsilon: Any = np.float32(0.5)
        rho: Any = np.float64(0.125)

        def pld(self, count: int) -> Any:
            raise NotImplementedError

    assert [rule.price(checked_cost(Other()))[0] for rule in RULES[:2]] == [0.5, 0.125]


def test_an_accountant_charges_the_same() -> None:
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")

    def epsilon(given: Any) -> float:
        return Accountant().compose(given, 3).epsilon(0.0)

    for given in (Free(1.0), Twice(epsilon=0.5)):
        assert epsilon(given) == epsilon(PrivacyCost(1.0)) == 3.0
    for refused in (of_two_costs(PrivacyCost(1.0), PrivacyCost(0.0)), Cheap(epsilon=1.0)):
        with pytest.raises(ParameterError, match="mechanism must be a mechanism of one cost, got"):
            Accountant().compose(refused)

    class Refund(PrivacyLoss):
        epsilon, delta = -1.0, -0.1

        def pld(self, count: int) -> Any:
            raise NotImplementedError

    with pytest.raises(ParameterError, match=r"mechanism must be zero or more, got epsilon=-1\.0, delta=-0\.1"):
        Accountant().compose(Refund())


@pytest.mark.parametrize("name", [case.name for case in CASES])
@pytest.mark.filterwarnings("ignore")
def test_every_mechanism_agrees_with_itself(name: str) -> None:
    make: Callable[..., Any] = next(case.make for case in CASES if case.name == name)
    for epsilon in (0.7, 1 / 3, 5.0):
        mechanism = make(epsilon=epsilon)
        if isinstance(mechanism, Mechanism):
            assert checked_cost(mechanism) is mechanism
            assert RULES[0].price(mechanism) == RULES[0].price(mechanism.cost)
