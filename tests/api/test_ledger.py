"""The ledger: what it grants, what it records, what it refuses, and what it says then."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import shutil
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpnoise
from dpnoise import BudgetExceeded, DiscreteLaplace, Laplace, ParameterError, PrivacyCost, hazmat
from dpnoise._files import is_locked, unlock
from dpnoise.accounting import Ledger, LedgerError
from dpnoise.accounting._filters import SequentialFilter
from dpnoise.accounting._ledger_file import LedgerFile, _hash


@pytest.fixture
def path(memory_path: Path) -> Path:
    return memory_path / "a ledger?#%.db"  # characters that mean something in a URI


def held(epsilon: float, delta: float = 0.0) -> PrivacyCost:
    """What a ledger of the default relation says of itself."""
    return PrivacyCost(epsilon, delta, "add/remove")


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# --- sums --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "each", "times"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (1e-5, 1e-6, 10), (0.7, 0.07, 10), (1e300, 1e299, 10)]
)
def test_spends_that_add_up_to_the_written_budget_exhaust_it(
    path: Path, budget: float, each: float, times: int
) -> None:
    ledger = Ledger(path, epsilon=budget)
    for _ in range(times):
        ledger.spend(PrivacyCost(each))
    assert ledger.spent == held(budget)
    assert ledger.remaining == held(0.0)
    for cost in (PrivacyCost(5e-324), PrivacyCost(0.0, 5e-324), PrivacyCost(each)):
        with pytest.raises(BudgetExceeded):
            ledger.spend(cost)
    ledger.spend(PrivacyCost(0.0))
    assert len(ledger.entries()) == times + 1


def test_the_smallest_amounts_are_not_lost_beside_the_largest(path: Path) -> None:
    ledger = Ledger(path, epsilon=1e308)
    ledger.spend(PrivacyCost(9e307))
    ledger.spend(PrivacyCost(5e-324))
    assert ledger.spent.epsilon == ledger.entries()[-1].total.epsilon == np.nextafter(9e307, np.inf)
    assert ledger.remaining.epsilon == np.nextafter(1e307, 0)
    with pytest.raises(BudgetExceeded):
        ledger.spend(PrivacyCost(1e307))
    ledger.spend(ledger.remaining)  # it is never more than may be spent
    assert ledger.spent.epsilon == 1e308


def test_the_order_does_not_matter(memory_path: Path) -> None:
    amounts = [0.1, 1e-17, 0.3, 0.2, 7e-9]
    spent = set()
    for number, order in enumerate(itertools.permutations(amounts)):
        if number % 12 == 0:
            ledger = Ledger(memory_path / f"{number}", epsilon=3.0)
            for amount in order:
                ledger.spend(PrivacyCost(amount))
            spent.add((ledger.spent, ledger.remaining))
    [(total, _)] = spent
    exact = sum(Fraction(repr(amount)) for amount in amounts)
    assert exact <= Fraction(repr(total.epsilon)) < exact * (1 + Fraction(2) ** -52)
    # The control: sums of floats depend on the order.
    assert len({sum(order) for order in itertools.permutations(amounts)}) > 1


def test_floats_alone_would_refuse_the_tenth_or_grant_an_eleventh() -> None:
    """The control of the rule: sums of floats go wrong both ways."""
    assert sum([0.1] * 3) > 0.3
    assert sum([0.1] * 10) < 1.0
    assert sum(Fraction(0.1) for _ in range(10)) > 1
    # What is granted beyond the budget, if floats are what they are: less than 2**-53 of it.
    assert sum(Fraction(0.1) for _ in range(10)) < 1 + Fraction(2) ** -53 * 1


def test_delta_is_a_budget_of_its_own(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0, delta=1e-5)
    ledger.spend(PrivacyCost(0.1, 1e-5))
    with pytest.raises(
        BudgetExceeded, match=r"epsilon=0\.1, delta=1e-09, and what remains .* epsilon=0\.9, delta=0\.0"
    ):
        ledger.spend(PrivacyCost(0.1, 1e-9))
    ledger.spend(PrivacyCost(0.9))
    assert ledger.spent == ledger.budget == held(1.0, 1e-5)


# --- records -----------------------------------------------------------------------------------------------------


def test_entries_say_what_was_spent(path: Path) -> None:
    ledger = Ledger(path, epsilon=2.0, delta=0.5)
    mechanism = DiscreteLaplace(epsilon=0.5)
    ledger.spend(PrivacyCost(0.25, 1e-3), "Ünïcode '; DROP TABLE entries; --")
    ledger.spend(mechanism, label="a mechanism")
    ledger.release(mechanism, [1, 2, 3], label="a release")
    ledger.spend(PrivacyCost(0.0))
    entries = Ledger.open_readonly(path).entries()
    assert [entry.number for entry in entries] == [1, 2, 3, 4]
    assert [entry.label for entry in entries] == [
        "Ünïcode '; DROP TABLE entries; --",
        "a mechanism",
        "a release",
        "",
    ]
    assert [entry.mechanism for entry in entries] == ["", repr(mechanism), repr(mechanism), ""]
    assert [entry.cost.epsilon for entry in entries] == [0.25, 0.5, 0.5, 0.0]
    assert [entry.total for entry in entries] == [held(total, 1e-3) for total in (0.25, 0.75, 1.25, 1.25)]
    now = datetime.now(UTC)
    assert all(timedelta(0) <= now - entry.time < timedelta(hours=1) for entry in entries)
    assert eval(entries[1].mechanism, vars(dpnoise)) == mechanism  # noqa: S307 - our own text
    assert entries == ledger.entries()


def test_a_ledger_is_found_again(path: Path, memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(memory_path)
    ledger = Ledger(path.name, epsilon=1.0, delta=1e-6)
    ledger.spend(PrivacyCost(0.5))
    (memory_path / "elsewhere").mkdir()
    monkeypatch.chdir(memory_path / "elsewhere")
    assert ledger.path == path
    for again in (ledger, Ledger(path), Ledger(str(path), epsilon=1, delta=1e-6), Ledger.open_readonly(path)):
        assert again.spent == held(0.5)
        assert again.budget == held(1.0, 1e-6)
    for again in (ledger, Ledger.open_readonly(path)):
        copy = pickle.loads(pickle.dumps(again))  # noqa: S301 - our own bytes
        assert (repr(copy), copy.spent) == (repr(again), again.spent)
    assert repr(Ledger(path)) == f"Ledger({str(path)!r})"
    assert repr(Ledger.open_readonly(path)) == f"Ledger.open_readonly({str(path)!r})"


def test_numbers_of_other_kinds(path: Path) -> None:
    ledger = Ledger(path, epsilon=np.float64(1.0))
    ledger.spend(PrivacyCost(np.float64(0.5)))
    ledger.spend(PrivacyCost(Fraction(1, 3)))
    assert ledger.spent.epsilon == Fraction(5, 6)


# --- releases ----------------------------------------------------------------------------------------------------


class Recorder(Laplace):
    """A mechanism that tells what was spent when it was asked for noise."""

    def release(self, x: Any, *, threads: int | None = None, rng: Any = None) -> Any:
        if rng is None:
            self.spent_before = Ledger(self.path).spent  # type: ignore[attr-defined]
        return super().release(x, threads=threads, rng=rng)


def test_it_spends_before_it_draws(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    mechanism = Recorder(epsilon=0.5)
    mechanism.path = path  # type: ignore[attr-defined]
    assert isinstance(ledger.release(mechanism, 3.0, label="x"), float)
    assert mechanism.spent_before == held(0.5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mechanism", "x", "error"),
    [
        (Laplace(epsilon=0.5), float("nan"), ParameterError),
        (Laplace(epsilon=0.5), [1.0, float("inf")], ParameterError),
        (Laplace(epsilon=0.5), "text", TypeError),
        (Laplace(epsilon=0.5), [2**60], ParameterError),
        (DiscreteLaplace(epsilon=0.5), 0.5, TypeError),
        (DiscreteLaplace(epsilon=0.5), [2**63], ParameterError),
        (object(), 1.0, TypeError),
        (type("Other", (), {"release": print})(), 1.0, TypeError),
        (PrivacyCost(0.5), 1.0, TypeError),
    ],
)
def test_what_cannot_be_released_costs_nothing(path: Path, mechanism: Any, x: Any, error: type[Exception]) -> None:
    ledger = Ledger(path, epsilon=1.0)
    with pytest.raises(error):
        ledger.release(mechanism, x)
    assert ledger.entries() == []


def test_what_exceeds_the_budget_is_not_drawn(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    mechanism = Recorder(epsilon=1.5)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.release(mechanism, 3.0)
    assert (caught.value.cost, caught.value.remaining) == (held(1.5), held(1.0))
    assert "Gaussian" not in str(caught.value)
    assert not hasattr(mechanism, "spent_before")
    assert ledger.entries() == []


def test_a_failure_of_randomness_keeps_the_spend(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Laplace):
        def release(self, x: Any, *, threads: int | None = None, rng: Any = None) -> Any:
            return super().release(x, rng=hazmat.ScriptedRng(b""))

    ledger = Ledger(path, epsilon=1.0)
    with pytest.raises(dpnoise.RandomnessError):
        ledger.release(Failing(epsilon=0.5), 3.0)
    assert ledger.spent == held(0.5)


def test_arrays_of_all_shapes_are_released(path: Path) -> None:
    ledger = Ledger(path, epsilon=100.0)
    assert ledger.release(Laplace(epsilon=1.0), np.zeros((2, 3))).shape == (2, 3)
    assert ledger.release(Laplace(epsilon=1.0), []).shape == (0,)
    assert type(ledger.release(DiscreteLaplace(epsilon=1.0), 3)) is int
    assert len(ledger.entries()) == 3


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda ledger: ledger.spend(0.1), TypeError, "cost must be a PrivacyCost or a mechanism, got float"),
        (lambda ledger: ledger.spend(Laplace), TypeError, "cost must be a PrivacyCost or a mechanism, got type"),
        (lambda ledger: ledger.spend(PrivacyCost(0.1), 3), TypeError, "label must be a str, got int"),
        (lambda ledger: ledger.spend(PrivacyCost(0.1), "\ud800"), ParameterError, "label must be a text that UTF-8"),
        (lambda ledger: ledger.release(Laplace, 4), TypeError, "mechanism must be a mechanism of dpnoise, got type"),
        (lambda ledger: ledger.release(3, 4), TypeError, "mechanism must be a mechanism of dpnoise, got int"),
    ],
)
def test_bad_spends(path: Path, call: Any, error: type[Exception], message: str) -> None:
    ledger = Ledger(path, epsilon=1.0)
    with pytest.raises(error, match=message):
        call(ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": -1.0}, ParameterError, "epsilon must be zero or more and finite, got -1.0"),
        ({"epsilon": float("inf")}, ParameterError, "epsilon must be zero or more and finite, got inf"),
        ({"epsilon": 1.0, "delta": 1.0}, ParameterError, "delta must be from 0 up to, but not including, 1, got 1.0"),
        ({"delta": 0.1}, ParameterError, "epsilon or rho must be given together with delta"),
        ({}, LedgerError, r"there is no ledger at .*; give epsilon or rho, its budget, to make one"),
        ({"rho": 0.0}, ParameterError, "rho must be positive and finite, got 0.0"),
        ({"rho": 1.0, "delta": -0.1}, ParameterError, "delta must be from 0 up to, but not including, 1, got -0.1"),
        (
            {"rho": 1.0, "epsilon": 1.0},
            ParameterError,
            "rho must be None when epsilon is given, got 1.0",
        ),
        (
            {"rho": 1.0, "odometer_delta": 0.0},
            ParameterError,
            "odometer_delta must be above 0 and below 1 -",
        ),
        ({"epsilon": 1.0, "odometer_delta": 0.1}, ParameterError, "rho must be given together with odometer_delta"),
        ({"epsilon": 1.0, "orders": [2]}, ParameterError, "epsilon and delta must be given together with orders"),
        (
            {"epsilon": 1.0, "delta": 0.0, "orders": [2]},
            ParameterError,
            "delta must be above 0 and below 1 for",
        ),
        ({"epsilon": 1.0, "delta": 1.0, "orders": [2]}, ParameterError, "delta must be above 0 and below 1 for"),
        ({"epsilon": 9.0, "delta": 0.9, "orders": range(2, 67)}, ParameterError, "orders must be from 1 to 64 diff"),
        ({"rho": float("inf")}, ParameterError, "rho must be positive and finite, got inf"),
        ({"epsilon": 1.0, "delta": 0.1, "orders": 64}, TypeError, "orders must be an iterable of integers, got int"),
        ({"rho": 1.0, "delta": 1e-17, "odometer_delta": 1 - 2**-53}, ParameterError, "odometer_delta must be above 0"),
        (
            {"epsilon": 1.0, "delta": 0.1, "orders": []},
            ParameterError,
            "orders must be from 1 to 64 different",
        ),
        (
            {"epsilon": 1.0, "delta": 0.1, "orders": [1]},
            ParameterError,
            "orders must be an integer from 2 to 1024",
        ),
        ({"epsilon": 1.0, "delta": 1e-9, "orders": [2]}, ParameterError, "orders must be larger for epsilon=1.0 and"),
        *(
            ({"delta": 0.1, **budget, name: "1"}, TypeError, f"{name} must be a number, got str")
            for budget in ({"epsilon": 1.0}, {"rho": 1.0, "odometer_delta": 0.1}, {"epsilon": 1.0, "orders": [64]})
            for name in ("delta", *budget)
            if name != "orders"
        ),
    ],
)
def test_bad_budgets_make_no_file(path: Path, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Ledger(path, **arguments)
    assert not path.exists()


@pytest.mark.parametrize("other", [{"epsilon": 2.0}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-7}])
def test_another_budget_is_refused(path: Path, other: Any) -> None:
    Ledger(path, epsilon=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match=r"is a ledger with the budget epsilon=1\.0, delta=1e-06, not epsilon="):
        Ledger(path, **other)
    assert Ledger(path).budget == held(1.0, 1e-6)


OPENINGS = [lambda path: Ledger(path, epsilon=1.0), Ledger, Ledger.open_readonly]


def refused(path: Path, message: str) -> None:
    for opening in OPENINGS:
        with pytest.raises(LedgerError, match=message) as caught:
            opening(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_is_no_file(path: Path, memory_path: Path) -> None:
    refused(memory_path, "is a directory")
    with pytest.raises(LedgerError, match=r"cannot be made: the directory .*missing' does not exist"):
        Ledger(memory_path / "missing" / "ledger", epsilon=1.0)
    with pytest.raises(LedgerError, match=r"there is no ledger at '.*'$"):
        Ledger.open_readonly(path)
    assert list(memory_path.iterdir()) == []


def test_foreign_files_are_left_as_they_are(path: Path) -> None:
    path.write_text("epsilon,delta\n" * 1000)
    before = path.read_bytes()
    refused(path, "is not a ledger of dpnoise")
    assert path.read_bytes() == before
    path.unlink()
    edit(path, "CREATE TABLE budget (epsilon, delta)", "INSERT INTO budget VALUES ('1', '0')")
    before = path.read_bytes()
    refused(path, "is a database, but not a ledger of dpnoise")
    assert path.read_bytes() == before


def test_a_ledger_of_another_version_is_refused(path: Path) -> None:
    Ledger(path, epsilon=1.0)
    for version in (5, 7):
        edit(path, f"PRAGMA user_version = {version}")
        refused(path, f"is a ledger of version {version}, and this dpnoise reads version 6 only: see with the dpnoise")


def test_a_ledger_whose_terms_name_no_person_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = json.loads(SequentialFilter.of("add/remove", None, 1.0, 0.0).terms)
    assert terms.pop("person", "") is None
    with monkeypatch.context() as before:
        before.setattr("dpnoise.accounting._ledger_file._VERSION", 5)
        LedgerFile(path, terms=json.dumps(terms))
    refused(path, "is a ledger of version 5, and this dpnoise reads version 6 only")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM entries WHERE number = 3",
        "UPDATE entries SET amounts = '0 0' WHERE number = 3",
        "UPDATE entries SET totals = '0.1 0' WHERE number = 3",
        "UPDATE entries SET totals = 'nan much' WHERE number = 3",
        "UPDATE entries SET number = 7 WHERE number = 3",
        "UPDATE entries SET time = '2026-99-99T00:00:00' WHERE number = 3",
        "UPDATE entries SET label = CAST(label AS BLOB) WHERE number = 3",
        "UPDATE entries SET label = CAST(x'ff' AS TEXT) WHERE number = 3",
        "UPDATE entries SET mechanism = 'Laplace(epsilon=0.01)' WHERE number = 3",
        "INSERT INTO entries VALUES (4, '2026-01-01T00:00:00', '', '', '0 0', '0.3 0')",
        "UPDATE budget SET terms = replace(terms, '\"1\"', '\"9\"')",
        "UPDATE budget SET terms = replace(terms, 'add/remove', 'substitute')",
        "UPDATE budget SET terms = replace(terms, 'null', '\"user\"')",
        "UPDATE budget SET terms = '{}'",
        "UPDATE budget SET spends = 2",
        "UPDATE budget SET spends = 0",
        "UPDATE budget SET spends = 4",
        "UPDATE budget SET before = hash",
        "UPDATE budget SET hash = before",
        "INSERT INTO budget SELECT * FROM budget",
        "CREATE INDEX labels ON entries (label)",
        "PRAGMA journal_mode = WAL",
        "DELETE FROM budget",
        "DROP TABLE entries",
    ],
)
def test_altered_terms_and_totals_are_noticed(path: Path, damage: str) -> None:
    ledger = Ledger(path, epsilon=1.0)
    for _ in range(3):
        ledger.spend(PrivacyCost(0.1))
    del ledger
    edit(path, damage)
    refused(path, "is damaged")


def forge(path: Path, terms: str, totals: str) -> None:
    """Write terms and totals with hashes that match."""
    with closing(sqlite3.connect(path)) as connection, connection:
        row = (*connection.execute("SELECT * FROM entries").fetchone()[:-1], totals)
        before = _hash("", terms, ())
        hashes = before, _hash(before, terms, row)
        connection.execute("UPDATE entries SET totals = ?", (totals,))
        connection.execute("UPDATE budget SET terms = ?, before = ?, hash = ?", (terms, *hashes))


AMOUNTS = ["1E999999999", "1E-999999999", "1/0", "1/00", "nan", "inf", "-1/3", "-1", "1_0", "1 ", "", "9" * 6000, "٣"]
TERMS = ["{}", "[]", "0", "text", '{"filter": "none"}', '{"filter": "zcdp"}', '{"filter": ["epsilon"]}']


@pytest.mark.parametrize("forged", [*AMOUNTS, "0.1/3", None, 1])
def test_forged_amounts_are_refused_at_once(path: Path, forged: Any) -> None:
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(PrivacyCost(0.1))
    terms = ledger._file.terms
    del ledger
    forge(path, terms, "1/3 0")
    assert Ledger(path).spent.epsilon == Fraction(1, 3), "the control"
    if isinstance(forged, str):
        for totals in (f"{forged} 0", f"0 {forged}", f"0 0 {forged}"):
            forge(path, terms, totals)
            for use in (lambda one: one.spent, lambda one: one.spend(PrivacyCost(0.1)), lambda one: one.entries()):
                with pytest.raises(LedgerError, match="is damaged"):
                    use(Ledger(path))
    forge(path, json.dumps(json.loads(terms) | {"budget": [forged, "0"]}), "0.1 0")
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger(path)


@pytest.mark.parametrize("terms", TERMS)
def test_forged_terms_are_refused(path: Path, terms: str) -> None:
    Ledger(path, epsilon=1.0).spend(PrivacyCost(0.1))
    forge(path, terms, "0.1 0")
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger(path)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM entries WHERE number = 2",
        "UPDATE entries SET number = 0 WHERE number = 1",
        "UPDATE entries SET amounts = '0 0' WHERE number = 2",
        "UPDATE entries SET totals = '0.9 0' WHERE number = 1",
        "UPDATE entries SET label = 'other' WHERE number = 2",
    ],
)
def test_altered_old_rows_change_no_total_and_are_found_by_the_check(path: Path, damage: str) -> None:
    ledger = Ledger(path, epsilon=1.0)
    for _ in range(3):
        ledger.spend(PrivacyCost(0.1))
    edit(path, damage)
    for opened in (ledger, Ledger(path), Ledger.open_readonly(path)):
        assert (opened.spent, opened.remaining) == (held(0.3), held(0.7))
        with pytest.raises(LedgerError, match="is damaged or incomplete"):
            opened.entries()
    ledger.spend(PrivacyCost(0.7))
    with pytest.raises(BudgetExceeded):
        Ledger(path).spend(PrivacyCost(5e-324))


@pytest.mark.parametrize("page", [0, 1, 2, 3])
def test_damaged_pages_are_noticed(path: Path, page: int) -> None:
    ledger = Ledger(path, epsilon=1.0)
    for _ in range(100):
        ledger.spend(PrivacyCost(0.01), "x" * 50)
    del ledger
    content = bytearray(path.read_bytes())
    assert len(content) > 4 * 4096
    start = page * 4096 + (100 if page == 0 else 0)
    content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger(path).entries()
    path.write_bytes(content[: len(content) // 2 + 17])  # cut short
    refused(path, "is damaged")


def test_damage_to_the_schema_is_noticed(path: Path) -> None:
    Ledger(path, epsilon=1.0)
    content = path.read_bytes()
    for place, byte in ((content.index(b"TABLE budget") + 1, 0xFF), (47, 9)):  # a message that is no text; the format
        path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
        refused(path, "is damaged")


def test_a_connection_that_fails_is_replaced(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    ledger._file._connection.close()  # type: ignore[union-attr]
    with pytest.raises(LedgerError, match="cannot be used: Cannot operate on a closed database"):
        ledger.spend(PrivacyCost(0.5))
    ledger.spend(PrivacyCost(0.5))
    assert ledger.spent == held(0.5)


def test_a_file_that_is_removed_or_replaced_grants_nothing(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(PrivacyCost(0.9))
    other = path.with_name("other")
    Ledger(other, epsilon=1.0)
    path.rename(path.with_name("renamed"))
    with pytest.raises(LedgerError, match="is gone"):
        ledger.spend(PrivacyCost(0.1))
    other.rename(path)
    with pytest.raises(LedgerError, match="has been replaced since it was opened"):
        ledger.spend(PrivacyCost(0.1))


def test_a_ledger_of_two_names_grants_nothing(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(PrivacyCost(0.9))
    other = path.with_name("other")
    os.link(path, other)
    for opening in (Ledger, Ledger.open_readonly, lambda path: Ledger(path, epsilon=1.0)):
        with pytest.raises(LedgerError, match="other' is one of 2 hard links; a ledger must have one name"):
            opening(other)
    with pytest.raises(LedgerError, match="is one of 2 hard links"):
        ledger.spend(PrivacyCost(0.1))
    other.unlink()
    ledger.spend(PrivacyCost(0.1))
    other.symlink_to(path)
    with pytest.raises(BudgetExceeded):
        Ledger(other).spend(PrivacyCost(0.1))


def test_a_locked_ledger_is_waited_for_and_then_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnoise.accounting._ledger_file._SECONDS", 0.01)
    ledger = Ledger(path, epsilon=1.0)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match=r"has been locked by another program for 0\.01 seconds"):
        ledger.spend(PrivacyCost(0.1))
    assert ledger.spent == held(0.0)  # reading goes on
    holder.execute("ROLLBACK")
    holder.close()
    ledger.spend(PrivacyCost(0.1))
    assert ledger.spent == held(0.1)


def test_a_readonly_ledger_spends_nothing(path: Path) -> None:
    Ledger(path, epsilon=1.0).spend(PrivacyCost(0.25))
    ledger = Ledger.open_readonly(path)
    for call in (lambda: ledger.spend(PrivacyCost(0.0)), lambda: ledger.release(Laplace(epsilon=0.1), 1.0)):
        with pytest.raises(LedgerError, match="was opened read-only"):
            call()
    assert ledger._file._open().execute("PRAGMA query_only").fetchone() == (1,)
    Ledger(path).spend(PrivacyCost(0.25))
    assert ledger.spent == held(0.5), "it sees what others spend meanwhile"


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="this system has no such permissions")
def test_a_file_without_write_permission() -> None:
    # Not in such a folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        folder, path, lock = Path(name), Path(name) / "ledger", Path(name) / "ledger-lock"
        Ledger(path, epsilon=1.0).spend(PrivacyCost(0.25))
        assert {file.stat().st_mode & 0o777 for file in (path, lock)} == {0o600}
        lock.unlink()
        path.chmod(0o644)
        mask = os.umask(0o022)
        assert Ledger(path).spent == held(0.25)
        os.umask(mask)
        assert lock.stat().st_mode & 0o777 == 0o644, "who may read a ledger may lock it"
        shutil.copy(path, folder / "copy")
        path.chmod(0o444)
        folder.chmod(0o555)
        root = os.geteuid() == 0  # who may write anything
        if root:
            os.seteuid(65534)
        try:
            for opening in OPENINGS[:2]:
                with pytest.raises(LedgerError, match="cannot be written: the file or its directory is read-only"):
                    opening(path).spend(PrivacyCost(0.1))
            for there in (path, folder / "copy"):
                assert Ledger.open_readonly(there).spent == held(0.25)
            with pytest.raises(LedgerError, match=r"cannot be used: Permission denied for '.*copy-lock'"):
                Ledger(folder / "copy")
            folder.chmod(0o000) if not root else (os.seteuid(0), folder.chmod(0o000), os.seteuid(65534))
            refused(path, "cannot be used: ")
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


def test_two_programs_may_make_the_same_ledger(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: Ledger(path, epsilon=1.0), range(8)))
    ledgers[0].spend(PrivacyCost(0.5))
    assert {ledger.spent for ledger in ledgers} == {held(0.5)}
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM budget").fetchone() == (1,)
    connection.close()


def test_it_is_durable_by_its_settings(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(PrivacyCost(0.5))
    assert sorted(path.parent.iterdir()) == [path, path.with_name(f"{path.name}-lock")]
    connection = ledger._file._connection
    assert connection is not None
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


def test_the_hash_is_the_documented_one(path: Path) -> None:
    """Another program can check a ledger by what the guide says."""
    ledger = Ledger(path, epsilon=1.0, delta=1e-6)
    for label in ("Ünïcode", "\0"):
        ledger.spend(DiscreteLaplace(epsilon=0.25), label)
    connection = sqlite3.connect(path)
    [(terms, spends, before, recorded)] = connection.execute("SELECT * FROM budget")
    found = [""]
    for row in ((), *connection.execute("SELECT * FROM entries ORDER BY number")):
        found.append(hashlib.sha256(json.dumps([found[-1], terms, *row]).encode("ascii")).hexdigest())
    connection.close()
    assert (spends, before, recorded) == (2, *found[-2:])


def test_what_a_ledger_that_is_gone_has_left_makes_no_part_of_a_new_one(path: Path) -> None:
    for kind in ("journal", "wal"):
        left = path.with_name(f"{path.name}-{kind}")
        left.write_bytes(b"pages")
        with pytest.raises(LedgerError, match=f"{kind}' belongs to a ledger that was here; restore that, or remove"):
            Ledger(path, epsilon=1.0)
        left.unlink()
    assert not path.exists()
    Ledger(path, epsilon=1.0)


def test_a_ledger_that_is_used_or_made_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnoise.accounting._ledger_file._SECONDS", 0.01)
    with path.with_name(f"{path.name}-lock").open("wb") as file:
        assert is_locked(file.fileno())
        with pytest.raises(LedgerError, match=r"has been locked by another program for 0\.01 seconds"):
            Ledger(path, epsilon=1.0)
        assert not path.exists()
        unlock(file.fileno())
        ledger = Ledger(path, epsilon=1.0)
        assert is_locked(file.fileno())
        for call in (lambda: ledger.spend(PrivacyCost(0.5)), lambda: ledger.spent, lambda: Ledger.open_readonly(path)):
            with pytest.raises(LedgerError, match="has been locked by another program"):
                call()
        assert ledger._file.recorded is False
        path.with_name(f"{path.name}-lock").unlink()  # others lock a new one
        ledger.spend(PrivacyCost(0.5))
    assert ledger.spent == held(0.5)


def test_a_full_disk_is_named_and_costs_nothing(path: Path) -> None:
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(PrivacyCost(0.25))
    connection = ledger._file._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 3")
    with pytest.raises(LedgerError, match="cannot be written: No space left on device"):
        ledger.spend(PrivacyCost(0.25), "x" * 5000)
    ledger.spend(PrivacyCost(0.25))
    assert ledger.spent == Ledger(path).spent == held(0.5)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such files")
def test_paths_that_are_no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, fifo, gone = path.with_name("loop"), path.with_name("fifo"), path.with_name("gone")
    loop.symlink_to("loop")
    os.mkfifo(fifo)
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for opening in OPENINGS:
        for odd, message in (
            (loop, "cannot be used: Too many levels of symbolic links"),
            (fifo, "is no regular file"),
            (Path("ledger"), "cannot be used: the current directory does not exist"),
        ):
            with pytest.raises(LedgerError, match=message):
                opening(odd)
        with pytest.raises(ParameterError, match=r"path must have no NUL character, got '.*\\x00'"):
            opening(f"{path}\0")
    assert sorted(file.name for file in path.parent.iterdir()) == ["fifo", "loop"]


def test_damage_outside_the_rows_is_found_by_the_check(path: Path) -> None:
    Ledger(path, epsilon=1.0)
    content = bytearray(path.read_bytes()) + bytes(4096)
    content[31] += 1  # the number of pages; the last belongs to nothing
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="is damaged or incomplete"):
        Ledger(path).entries()
    assert path.read_bytes() == content
