"""Costs for rows and costs for persons of several rows never add up."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpnoise import Laplace, ParameterError, PrivacyCost, accounting, queries
from dpnoise.accounting import (
    Accountant,
    DiscreteGaussianLoss,
    Ledger,
    LedgerError,
    RenyiCost,
    ZcdpCost,
    compose_parallel,
    compose_sequential,
)

ADD: Any
REPLACE: Any
ADD, REPLACE = "add/remove", "substitute"

# Whose privacy is counted: the relation and the column that says whose a row is.
ANY: Any = (None, None)
UNITS: list[Any] = [(ADD, None), (REPLACE, None), (ADD, "user"), (ADD, "customer")]

# Ledgers of the three measures, and the kinds of costs that they take.
BUDGETS: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 1.0, "delta": 1e-6}, "PrivacyCost, mechanism, holder"),
    ({"rho": 1.0, "odometer_delta": 1e-6}, "PrivacyCost, ZcdpCost, mechanism, holder"),
    ({"epsilon": 9.0, "delta": 0.1, "orders": [2, 8]}, "PrivacyCost, ZcdpCost, RenyiCost, mechanism, holder"),
]


class Asked(Laplace):
    """A mechanism whose privacy loss is that of its noise, and says nothing of rows and persons."""

    unit: Any = ANY

    @property
    def relation(self) -> Any:
        return self.unit[0]

    @property
    def person(self) -> str | None:
        return self.unit[1]  # type: ignore[no-any-return]


class Holder:
    """An object of another library, which has just a cost."""

    def __init__(self, cost: PrivacyCost) -> None:
        self.cost = cost


def mechanism(unit: Any) -> Any:
    return type("Asked", (Asked,), {"unit": unit})(epsilon=0.125)


KINDS: dict[str, Callable[[Any], Any]] = {
    "PrivacyCost": lambda unit: PrivacyCost(0.125, 0.0, *unit),
    "ZcdpCost": lambda unit: ZcdpCost(0.125, 0.0, *unit),
    "RenyiCost": lambda unit: RenyiCost({2: 0.125, 8: 0.25}, *unit),
    "mechanism": mechanism,
    "holder": lambda unit: Holder(PrivacyCost(0.125, 0.0, *unit)),
}


def refusal(unit: Any, given: Any, owner: str, what: str) -> str | None:
    """Return the message for a cost of one unit where another one is counted; None where it is granted."""
    if given in (ANY, unit):
        return None
    if given[0] != unit[0]:
        return f'{what} must be for the neighbouring relation of the {owner}, "{unit[0]}", got "{given[0]}": a replaced'
    names = ["rows" if person is None else f"the persons of '{person}'" for _, person in (unit, given)]
    remedy = f"Table(..., person={unit[1]!r}, rows=...)" if unit[1] else "a Table without person"
    return (
        f"{what} must be for {names[0]}, as the {owner} is, got one for {names[1]}: ask by {remedy}, "
        f"or make the {owner} with person={given[1]!r}"
    )


def check_ledger(ledger: Ledger[Any], unit: Any, kinds: list[str]) -> None:
    """Offer a ledger costs of all units, and see that it grants just those of its own."""
    granted = 0
    for name, given in itertools.product(kinds, [ANY, *UNITS]):
        message = refusal(unit, given, "ledger", "cost")
        if message is None:
            ledger.spend(KINDS[name](given))
            granted += 1
            continue
        with pytest.raises(ParameterError, match=f"^{re.escape(message)}"):
            ledger.spend(KINDS[name](given))
        if name == "mechanism":
            with pytest.raises(ParameterError, match=f"^{re.escape(message)}"):
                ledger.release(KINDS[name](given), 1.0)
        assert len(ledger.entries()) == granted, "nothing was spent"


@pytest.mark.parametrize(("budget", "kinds"), BUDGETS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_ledger_grants_costs_for_its_own_persons(
    memory_path: Path, unit: Any, budget: dict[str, Any], kinds: str
) -> None:
    relation, person = unit
    for path in (memory_path / "ledger", ":memory:"):
        ledger: Ledger[Any] = Ledger(path, **budget, relation=relation, person=person)
        check_ledger(ledger, unit, kinds.split(", "))
        costs = [ledger.budget, ledger.spent, ledger.remaining]
        costs += [cost for entry in ledger.entries() for cost in (entry.cost, entry.total)]
        costs += [ledger.odometer] if "odometer_delta" in budget else []
        assert {(cost.relation, cost.person) for cost in costs} == {unit}


def test_a_ledger_that_does_not_look_at_persons_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: persons are not compared. Then costs for rows and for persons add up."""
    right: Any = vars(accounting._ledger)["check_neighbours"]
    monkeypatch.setattr(
        "dpnoise.accounting._ledger.check_neighbours",
        lambda what, given, relation, person, owner: right(what, given, relation, given.person, owner),
    )
    ledger = Ledger(":memory:", epsilon=1.0, person="user")
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_ledger(ledger, (ADD, "user"), ["PrivacyCost"])
    assert len(ledger.entries()) == 2, "one cost for persons, and one for rows"


def test_a_ledger_keeps_its_persons(memory_path: Path) -> None:
    rows, persons = memory_path / "rows", memory_path / "persons"
    ledger = Ledger(persons, epsilon=1.0, person='Käufer\'s "ID"\n')
    assert Ledger(rows, epsilon=1.0).person is None
    for again in (
        Ledger(persons),
        Ledger(persons, epsilon=1.0),
        Ledger(persons, person=ledger.person),
        Ledger.open_readonly(persons),
        pickle.loads(pickle.dumps(ledger)),  # noqa: S301
    ):
        assert (again.person, again.relation) == (ledger.person, ADD) == ('Käufer\'s "ID"\n', ADD)
    other = re.escape(f"is a ledger for the persons of {ledger.person!r}, not the persons of 'user'")
    with pytest.raises(LedgerError, match=f"{other}$"):
        Ledger(persons, person="user")
    with pytest.raises(LedgerError, match=r"is a ledger for rows, not the persons of 'user'$"):
        Ledger(rows, person="user")
    with pytest.raises(LedgerError, match="read-only"):
        Ledger.open_readonly(persons).spend(PrivacyCost(0.5))
    assert "Ledger(&#x27;" in ledger._repr_html_()
    assert "add/remove, person: " in ledger._repr_html_()
    assert "add/remove, row</caption>" in Ledger(rows)._repr_html_()


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_an_accountant_composes_costs_for_its_own_persons(unit: Any) -> None:
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    relation, person = unit
    accountant = Accountant(relation=relation, person=person)
    assert (accountant.person, copy.copy(accountant).person) == (person, person)
    for name, given in itertools.product(["PrivacyCost", "mechanism"], [ANY, *UNITS]):
        message, before = refusal(unit, given, "accountant", "mechanism"), repr(accountant)
        if message is None:
            accountant.compose(KINDS[name](given))
            continue
        with pytest.raises(ParameterError, match=f"^{re.escape(message)}"):
            accountant.compose(KINDS[name](given))
        assert repr(accountant) == before, "nothing was added"
    assert repr(accountant).endswith(f"by {relation!r}{'' if person is None else f' of the persons of {person!r}'}>")


def test_samples_of_persons() -> None:
    """A loss that was sampled before is one of rows; an accountant samples the persons that it counts."""
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    whole, accountant = (
        Accountant(person="user").compose(mechanism((ADD, "user")), sample_rate=rate) for rate in (1.0, 0.5)
    )
    assert accountant.epsilon(0.01) < whole.epsilon(0.01)
    loss = DiscreteGaussianLoss(sigma=4.0, sensitivity=1.0)
    accountant.compose(loss)
    with pytest.raises(ParameterError, match=r"^mechanism must be for the persons of 'user', as the accountant is"):
        accountant.compose(loss.sampled(0.5))


@pytest.mark.parametrize("kind", ["PrivacyCost", "ZcdpCost", "RenyiCost"])
def test_a_cost_has_a_person(kind: str) -> None:
    make = KINDS[kind]
    for unit in (ANY, *UNITS):
        cost = make(unit)
        named = {"relation": unit[0], "person": unit[1]}
        shown = "".join(f", {name}={value!r}" for name, value in named.items() if value is not None)
        assert repr(cost).endswith(f"{shown})")
        assert ("person" in repr(cost), "relation" in repr(cost)) == (unit[1] is not None, unit[0] is not None)
        assert cost.amounts() == make(ANY).amounts()
        assert ("user" in cost._repr_html_()) == (unit[1] == "user")
        for again in (cost.plain(), copy.deepcopy(cost), pickle.loads(pickle.dumps(cost)), replace(cost)):  # noqa: S301
            assert (again, hash(again), again.person) == (cost, hash(cost), unit[1])
    assert len({make(unit) for unit in (ANY, *UNITS)}) == 5
    for relation in (None, REPLACE):
        message = f"^relation must be \"add/remove\" with person='user', got {relation!r}: how many rows"
        with pytest.raises(ParameterError, match=message):
            make((relation, "user"))
    with pytest.raises(TypeError, match=r"^person must be a str, got int"):
        make((ADD, 0))
    with pytest.raises(ParameterError, match=r"^person must be a text that UTF-8 can hold, got one with surrogates"):
        make((ADD, "\ud800"))


def test_persons_are_not_substituted(memory_path: Path) -> None:
    given: Any = {"relation": REPLACE, "person": "user"}
    with pytest.raises(ParameterError, match=r'^relation must be "add/remove" with person=.* epsilon / 2 under'):
        Ledger(memory_path / "ledger", epsilon=1.0, **given)
    assert not (memory_path / "ledger").exists()
    with pytest.raises(ParameterError, match=r'^relation must be "add/remove" with person='):
        Accountant(**given)


def test_compositions_refuse_a_mixture_and_keep_what_they_know() -> None:
    costs = {unit: PrivacyCost(0.5, 1e-9, *unit) for unit in (ANY, *UNITS)}
    for compose in (compose_sequential, compose_parallel, lambda each: sum(each[1:], each[0])):
        for first, second in itertools.product(UNITS, repeat=2):
            mixture = [costs[first], costs[ANY], costs[second]]
            if first == second:
                found = compose(mixture)
                assert (found.relation, found.person) == first
            elif first[0] != second[0]:
                with pytest.raises(ParameterError, match=r"^costs must be for one neighbouring relation"):
                    compose(mixture)
            else:
                names = sorted("rows" if name is None else f"the persons of '{name}'" for _, name in (first, second))
                message = f"costs must be all for rows or for the same persons, got {' and '.join(names)}: ask with"
                with pytest.raises(ParameterError, match=f"^{message}"):
                    compose(mixture)


def test_other_functions_of_a_cost_keep_its_persons() -> None:
    cost = PrivacyCost(0.5, 1e-9, ADD, "user")
    for found in (
        accounting.compose_advanced(cost, 3, epsilon=1.5),
        accounting.compose_advanced(cost, 3, delta=0.5),
        accounting.group_privacy(cost, 2),
        accounting.amplify_by_poisson_sampling(cost, sample_rate=0.5),
        accounting.compose_parallel([cost]),
        accounting.compose_sequential([cost]),
        0 + cost,
    ):
        assert (found.relation, found.person) == (ADD, "user")
    with pytest.raises(ParameterError, match=r"^cost must be for the neighbouring relation of the sample"):
        accounting.amplify_by_sampling_without_replacement(cost, size=1, population=2)
    with pytest.raises(ParameterError, match=r"^cost must be for the neighbouring relation of the shuffled reports"):
        accounting.amplify_by_shuffling(cost, n=100, delta=1e-6)


def test_a_mechanism_says_whose_privacy_it_costs() -> None:
    assert (Laplace(epsilon=1.0).person, queries.Count(epsilon=1.0).person) == (None, None)
    assert mechanism((ADD, "user")).cost == PrivacyCost(0.125, 0.0, ADD, "user")


@pytest.mark.parametrize("stated", [(ADD, "user"), (ADD, None)])
def test_a_mechanism_whose_cost_is_for_others_is_refused(stated: Any) -> None:
    class Changed(Laplace):
        @property
        def cost(self) -> PrivacyCost:
            return PrivacyCost(0.25, 0.0, *stated)

    for unit in UNITS:
        ledger = Ledger(":memory:", epsilon=1.0, relation=unit[0], person=unit[1])
        message = r"one relation and person, got Changed with relation=None, person=None and the cost Priv"
        with pytest.raises(ParameterError, match=message):
            ledger.spend(Changed(epsilon=0.25))
        assert ledger.entries() == []
