"""``dpnoise ledger``: spends, totals and what remains, as a table and as JSON."""

import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from cli.shared import Run

from dpnoise import Gaussian, Laplace, PrivacyCost
from dpnoise.accounting import Ledger
from dpnoise.cli.payment import Purse


@pytest.fixture
def path(memory_path: Path) -> Path:
    path = memory_path / "ledger"
    ledger = Ledger(path, epsilon=1.0, delta=1e-5)
    ledger.release(Laplace(epsilon=0.1), 4.0, label="visitors [red]")
    ledger.spend(PrivacyCost(0.2, 1e-6), label="of\ntwo lines")
    return path


def test_table(run: Run, path: Path) -> None:
    lines = run("ledger", path).out.splitlines()
    assert lines[0] == "2 spends"
    [first] = [line.split() for line in lines if "visitors [red]" in line]
    assert first[4:] == ["Laplace", "0.1", "0", "0.1", "0"]
    [second] = [line.split() for line in lines if r"of\ntwo lines" in line]
    assert second[4:] == ["0.2", "1e-06", "0.3", "1e-06"]
    assert "epsilon: 0.3 of 1.0 spent, 0.7 remains" in lines
    assert "delta: 1e-06 of 1e-05 spent, 9e-06 remains" in lines
    assert lines[-2:] == ["neighbours by add/remove", "privacy of: rows"]


def test_one_spend(run: Run, memory_path: Path) -> None:
    Ledger(memory_path / "one", epsilon=1.0).spend(PrivacyCost(0.5, 0.0))
    assert run("ledger", memory_path / "one").out.startswith("1 spend\n")


def test_json(run: Run, path: Path) -> None:
    record = run("ledger", path, "--json").json
    assert record["command"] == "ledger"
    assert record["path"] == str(path)
    assert (record["relation"], record["person"]) == ("add/remove", None)
    assert record["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert record["spent"] == {"epsilon": 0.3, "delta": 1e-6}
    assert record["remaining"] == {"epsilon": 0.7, "delta": 9e-6}
    assert [entry["number"] for entry in record["entries"]] == [1, 2]
    assert record["entries"][0]["mechanism"] == repr(Laplace(epsilon=0.1))
    assert record["entries"][1]["label"] == "of\ntwo lines"
    assert record["entries"][1]["total_epsilon"] == 0.3
    assert record["entries"][0]["time"].endswith("+00:00")


def test_fractions_are_shown_as_floats_that_promise_no_more(run: Run, memory_path: Path) -> None:
    for part in range(1, 40):
        path = memory_path / f"{part}"
        ledger = Ledger(path, epsilon=Fraction(40, 41))
        ledger.spend(PrivacyCost(Fraction(part, 43)))
        record = run("ledger", path, "--json").json
        exact = {"budget": Fraction(40, 41), "spent": Fraction(part, 43)}
        exact["remaining"] = exact["budget"] - exact["spent"]
        for name, amount in exact.items():
            shown = record[name]["epsilon"]
            (least, most) = sorted((Fraction(shown), Fraction(repr(shown))))
            assert least >= amount if name == "spent" else most <= amount, name
            assert abs(shown - amount) < amount * 1e-15
        assert record["entries"][0]["epsilon"] == record["entries"][0]["total_epsilon"] == record["spent"]["epsilon"]
        assert f"{record['spent']['epsilon']!r} of {record['budget']['epsilon']!r} spent" in run("ledger", path).out


@pytest.mark.parametrize(
    ("options", "budget", "shown"),
    [
        (["--rho", 0.5, "--odometer-delta", 1e-6], {"rho": 0.5, "delta": 0.0}, "rho: 0.0 of 0.5 spent, 0.5 remains"),
        (
            ["--rho", 0.5, "--delta", 1e-6, "--relation", "substitute"],
            {"rho": 0.5, "delta": 1e-6},
            "0.0 of 1e-06",
        ),
        (["--epsilon", 1, "--delta", 1e-9], {"epsilon": 1.0, "delta": 1e-9}, "epsilon: 0.0 of 1.0 spent, 1.0 remains"),
    ],
)
def test_ledgers_are_made(run: Run, memory_path: Path, options: list[object], budget: object, shown: str) -> None:
    new = memory_path / "new"
    assert shown in run("ledger", new, *options).out
    assert run("ledger", new, "--json").json["budget"] == budget
    assert Ledger(new).relation == ("substitute" if "substitute" in options else "add/remove")
    before = new.read_bytes()
    run("ledger", new, *options)
    assert new.read_bytes() == before


def test_a_ledger_for_persons_pays_for_nothing_else(
    run: Run, refuse: Callable[..., str], memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(memory_path)
    Path("visits.csv").write_text("user,stay\n7,1.5\n7,2.5\n", encoding="ascii")
    assert "\nprivacy of: persons (user \\x1b)\n" in run("ledger", "new", "--epsilon", 1, "--person", "user \x1b").out
    record = run("ledger", "new", "--json").json
    assert (record["relation"], record["person"]) == ("add/remove", "user \x1b")
    assert record["spent"] == {"epsilon": 0.0, "delta": 0.0}
    Purse("new").spend(PrivacyCost(0.25, 0.0, "add/remove", "user \x1b"), "visits")
    assert Purse("other", rho=1.0, person="user").person == "user"
    message = refuse(
        "release", "visits.csv", "--query", "count", "--column", "user", "--epsilon", 0.5, "--ledger", "new"
    )
    assert (
        message == "'new' is a ledger for persons (user \\x1b), not for rows: ask with --person user \\x1b and --rows"
    )
    assert run("ledger", "new", "--json").json["spent"]["epsilon"] == 0.25
    assert "is a ledger for the persons of" in refuse("ledger", "new", "--person", "customer")
    message = refuse("ledger", "third", "--epsilon", 1, "--person", "user", "--relation", "substitute")
    assert "relation must be \"add/remove\" with person='user'" in message
    assert not Path("third").exists()


def test_every_measure_is_shown(run: Run, memory_path: Path) -> None:
    new = memory_path / "new"
    run("ledger", new, "--rho", 0.5, "--odometer-delta", 1e-6)
    Ledger(new).spend(Gaussian(rho=0.1), "mean age")
    lines = run("ledger", new).out.splitlines()
    [spend] = [line.split() for line in lines if "mean age" in line]
    assert spend[4:] == ["Gaussian", "0.1", "0", "0.1", "0"]
    assert "rho: 0.1 of 0.5 spent, 0.4 remains" in lines
    record = run("ledger", new, "--json").json
    [odometer] = [line.split()[2] for line in lines if line.startswith("odometer: epsilon 2.597")]
    assert record["odometer"]["epsilon"] <= float(odometer) < record["odometer"]["epsilon"] + 1e-5
    assert record["odometer"]["delta"] == 1e-6
    assert record["entries"][0]["total_rho"] == 0.1
    other = memory_path / "other"
    run("ledger", other, "--epsilon", 2, "--delta", 1e-6, "--orders", "16,64")
    Ledger(other).spend(Gaussian(rho=0.01))
    assert "order 16: 0.16 of 1.28213392" in run("ledger", other).out
    assert run("ledger", other, "--json").json["spent"] == {"order_16": 0.16, "order_64": 0.64}
    plain = memory_path / "plain"
    run("ledger", plain, "--rho", 1)
    assert "odometer" not in run("ledger", plain).out
    assert run("ledger", plain, "--json").json["odometer"] is None


def test_a_damaged_old_spend_is_found(run: Run, refuse: Callable[..., str], path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entries SET label = 'other' WHERE number = 1")
    connection.commit()
    connection.close()
    assert "is damaged or incomplete" in refuse("ledger", path)


def test_it_only_reads(run: Run, path: Path) -> None:
    before = path.read_bytes()
    run("ledger", path)
    assert path.read_bytes() == before


def test_bad_input(refuse: Callable[..., str], memory_path: Path) -> None:
    assert "there is no ledger at" in refuse("ledger", memory_path / "missing")
    assert "is a directory" in refuse("ledger", memory_path)
    assert "--orders must be whole numbers separated by commas, got 'a'" in refuse(
        "ledger", memory_path / "new", "--epsilon", 1, "--delta", 1e-6, "--orders", "a"
    )
    assert "rho must be None when epsilon is given" in refuse("ledger", memory_path / "new", "--epsilon", 1, "--rho", 1)
    (memory_path / "text").write_text("text " * 1000)
    assert "is not a ledger of dpnoise" in refuse("ledger", memory_path / "text")


def test_a_damaged_time_is_one_line(refuse: Callable[..., str], path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"+00:00") == 2
    path.write_bytes(content.replace(b"+00:00", b"+99:99"))
    assert "is damaged or incomplete, and grants nothing: " in refuse("ledger", path)


def test_what_is_shown_is_not_below_what_was_spent(run: Run, memory_path: Path) -> None:
    new = memory_path / "new"
    Ledger(new, epsilon=1.0).spend(PrivacyCost(0.1234561), "a count")
    lines = run("ledger", new).out.splitlines()
    [spend] = [line.split() for line in lines if "a count" in line]
    assert spend[-4:] == ["0.123457", "0", "0.123457", "0"]
    assert "odometer: epsilon 0.123457 so far, except with a probability of 0.0" in lines
