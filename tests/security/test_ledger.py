"""A ledger under kill -9, forks, threads and many processes: no spend is lost, none is granted twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dpnoise import BudgetExceeded, PrivacyCost
from dpnoise.accounting import Ledger
from dpnoise.accounting._cost import decimal_of
from dpnoise.accounting._ledger_file import Row, State

FULL = "DPNOISE_TEST_SAMPLES" in os.environ
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def run(script: str, *arguments: object) -> Any:
    command = [sys.executable, Path(__file__).with_name(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_fork
@pytest.mark.parametrize(("measure", "readers"), [("epsilon", True), ("rho", False), ("orders", False)])
def test_processes_that_are_killed_at_random_lose_nothing_and_overspend_nothing(
    tmp_path: Path, measure: str, readers: bool
) -> None:
    # On the disk. The budget is for fewer spends than are tried.
    spends, kills, granted = (400, 500, 3000) if FULL else (20, 15, 150)
    numbers = {"processes": 8, "spends": spends, "kills": kills, "granted": granted, "seed": 20261121}
    options = [f"--{name}={value}" for name, value in numbers.items()]
    options += ["--readers"] * readers
    found = run("ledger_processes.py", tmp_path, f"--measure={measure}", *options)
    print(json.dumps(found, indent=1))
    assert found["failures"] == []
    assert found["killed"] == kills
    assert found["lost"] == found["recorded_twice"] == 0
    assert found["recorded_though_refused"] == found["recorded_and_never_tried"] == 0
    assert found["recorded"] == found["granted"] + found["recorded_and_unanswered"]
    assert found["recorded_and_unanswered"] <= kills
    assert found["sum_is_exact"]
    assert found["refused"] > 0
    assert found["exhausted"]


@needs_fork
def test_death_at_any_line_of_a_spend_forks_among_threads_and_makers_at_once(memory_path: Path) -> None:
    found = run("ledger_crashes.py", memory_path)
    deaths = [tuple(outcome) for outcome in found["deaths"]]
    assert len(deaths) > 30
    # Up to some line nothing was spent, from there on all was, and only the last one lived to tell.
    assert deaths == sorted(deaths)
    assert set(deaths) == {(False, 0), (False, 1), (True, 1)}
    assert deaths.count((True, 1)) == 1
    # Positive control: who calls a spend granted before it is on disk is found out.
    assert found["boastful_deaths"] == [[True, 0]]
    assert found["forks"] == {"codes": [0] * 6, "rows": 3 * 20 + 6 * 5, "spent": 9.0}
    assert found["made"] == [6] * 20


@needs_fork
def test_no_connection_crosses_a_fork(memory_path: Path) -> None:
    ledger = Ledger(memory_path / "ledger", epsilon=1.0)
    child = os.fork()
    if not child:
        os._exit(ledger._file._connection is not None)
    assert os.waitpid(child, 0)[1] == 0
    ledger.spend(PrivacyCost(1.0))


def test_threads_share_a_ledger(memory_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ledger, other = Ledger(memory_path / "ledger", epsilon=10.0), Ledger(memory_path / "ledger")

    def spend(serial: int) -> bool:
        try:
            (ledger, other)[serial % 2].spend(PrivacyCost(0.1), str(serial))
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        granted = list(pool.map(spend, range(120)))
    assert granted.count(True) == 100
    assert {entry.label for entry in ledger.entries()} == {str(serial) for serial in range(120) if granted[serial]}
    assert ledger.spent == PrivacyCost(10.0, 0.0, "add/remove")
    assert ledger.remaining == PrivacyCost(0.0, 0.0, "add/remove")


def careless_spend(ledger: Ledger[PrivacyCost], cost: PrivacyCost) -> Iterator[None]:
    """Check the budget in one transaction and spend in another one."""
    if cost.epsilon > ledger.remaining.epsilon:
        raise BudgetExceeded(cost, ledger.remaining, ledger.path)
    yield

    def row_after(state: State) -> Row:
        total = Decimal((state.totals or "0").split()[0]) + decimal_of(cost.epsilon)
        return "2026-01-01T00:00:00+00:00", "", "", f"{cost.epsilon} 0", f"{total} 0"

    ledger._file.append(row_after)


def test_a_check_outside_the_transaction_would_overspend(memory_path: Path) -> None:
    """Positive control: the same steps in two transactions, two processes taking turns."""
    ledger, other = Ledger(memory_path / "ledger", epsilon=1.0), Ledger(memory_path / "ledger")
    first, second = careless_spend(ledger, PrivacyCost(0.6)), careless_spend(other, PrivacyCost(0.6))
    next(first), next(second)
    for spender in (first, second):
        assert next(spender, "done") == "done"
    assert ledger.spent.epsilon > ledger.budget.epsilon
