"""A ledger without a file: it grants what one with a file does, to one process, and is whole whatever interrupts it."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dpnoise import BudgetExceeded, Gaussian, Laplace, ParameterError, PrivacyCost
from dpnoise.accounting import Ledger, LedgerError

BUDGETS: list[dict[str, Any]] = [
    {"epsilon": 1.0, "delta": 1e-6},
    {"rho": 0.5, "odometer_delta": 1e-6, "relation": "substitute"},
    {"epsilon": 3.0, "delta": 1e-6, "orders": [16, 64]},
]


@pytest.mark.parametrize("budget", BUDGETS)
def test_it_is_as_one_with_a_file(memory_path: Path, monkeypatch: pytest.MonkeyPatch, budget: dict[str, Any]) -> None:
    monkeypatch.chdir(memory_path)
    ledger, other = Ledger(":memory:", **budget), Ledger("file", **budget)
    for each in (ledger, other):
        each.spend(PrivacyCost(0.25, relation=budget.get("relation")), label="a question")
        each.spend(Gaussian(rho=0.001) if "delta" not in budget else Laplace(epsilon=0.125))
        with pytest.raises(BudgetExceeded):
            each.spend(PrivacyCost(9.0))
    for name in ("budget", "spent", "remaining", "relation", "person", "odometer"):
        assert getattr(ledger, name) == getattr(other, name)
    facts = [[(e.number, e.label, e.mechanism, e.cost, e.total) for e in each.entries()] for each in (ledger, other)]
    assert facts[0] == facts[1]
    assert len(facts[0]) == 2
    assert "a question" in ledger._repr_html_()
    assert sorted(path.name for path in memory_path.iterdir()) == ["file", "file-lock"]
    assert repr(ledger).startswith("Ledger(':memory:', ")


def test_a_path_object_of_that_name_is_a_file(memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(memory_path)
    Ledger(Path(":memory:"), epsilon=1.0).spend(PrivacyCost(0.5))
    assert Ledger(Path(":memory:")).spent.epsilon == 0.5


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="epsilon or rho must be given for a ledger in memory"):
        Ledger(":memory:")
    ledger = Ledger(":memory:", epsilon=1.0)
    with pytest.raises(
        BudgetExceeded, match=r"and what remains of the budget is epsilon=1\.0, delta=0\.0; ask for less$"
    ):
        ledger.spend(PrivacyCost(2.0))
    for made in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a ledger in memory cannot be copied or pickled"):
            made(ledger)


def test_one_with_a_file_says_in_the_message_where_it_is(memory_path: Path) -> None:
    ledger = Ledger(memory_path / "a ledger", epsilon=1.0)
    with pytest.raises(BudgetExceeded, match=r"; ask for less, or see by `dpnoise ledger '.*/a ledger'` what all runs"):
        ledger.spend(PrivacyCost(2.0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_no_budget() -> None:
    ledger = Ledger(":memory:", epsilon=1.0)
    ledger.spend(PrivacyCost(0.5))
    child = os.fork()
    if not child:
        refused = 0
        for use in (lambda: ledger.spend(PrivacyCost(0.5)), lambda: ledger.spent, ledger.entries):
            try:
                use()
            except LedgerError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    ledger.spend(PrivacyCost(0.5))


def test_threads_and_who_interrupts_them_overspend_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(":memory:", epsilon=10.0)
    grants = type(ledger._filter).grants
    nested: list[int] = []

    def interrupted(self: Any, totals: Any) -> bool:
        """Spend also in the middle of a spend, as a signal handler may; the check has been made by then."""
        answer = grants(self, totals)
        if len(nested) < 20:
            nested.append(0)
            signal.raise_signal(signal.SIGINT)
        return answer

    def spend(serial: int) -> bool:
        try:
            ledger.spend(PrivacyCost(0.1), str(serial))
        except BudgetExceeded:
            return False
        return True

    former = signal.signal(signal.SIGINT, lambda *_: spend(1000 + len(nested)))
    monkeypatch.setattr(type(ledger._filter), "grants", interrupted)
    try:
        first = [spend(serial) for serial in range(30)]
        with ThreadPoolExecutor(8) as pool:
            granted = first + list(pool.map(spend, range(30, 120)))
    finally:
        signal.signal(signal.SIGINT, former)
    labels = [entry.label for entry in ledger.entries()]
    assert len(labels) == len(set(labels)) == 100
    assert {int(label) for label in labels if int(label) < 1000} == {n for n in range(120) if granted[n]}
    assert len(nested) == 20
    assert ledger.remaining.epsilon == 0
