"""``dpnoise ledger``: spends, totals and what remains, as a table and as JSON."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.shared import Run

from dpnoise import Laplace, PrivacyCost
from dpnoise.accounting import Ledger


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
    [second] = [line.split() for line in lines if "of two lines" in line]
    assert second[5:] == ["0.2", "1e-06", "0.3", "1e-06"]
    assert "epsilon: 0.3 of 1.0 spent, 0.7 remains" in lines
    assert "delta: 1e-06 of 1e-05 spent, 9e-06 remains" in lines
    assert "neighbours by add/remove" in lines


def test_one_spend(run: Run, memory_path: Path) -> None:
    Ledger(memory_path / "one", epsilon=1.0).spend(PrivacyCost(0.5, 0.0))
    assert run("ledger", memory_path / "one").out.startswith("1 spend\n")


def test_json(run: Run, path: Path) -> None:
    record = run("ledger", path, "--json").json
    assert record["command"] == "ledger"
    assert record["path"] == str(path)
    assert record["relation"] == "add/remove"
    assert record["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert record["spent"] == {"epsilon": 0.3, "delta": 1e-6}
    assert record["remaining"] == {"epsilon": 0.7, "delta": 9e-6}
    assert [entry["number"] for entry in record["entries"]] == [1, 2]
    assert record["entries"][0]["mechanism"] == repr(Laplace(epsilon=0.1))
    assert record["entries"][1]["label"] == "of\ntwo lines"
    assert record["entries"][1]["total_epsilon"] == 0.3
    assert record["entries"][0]["time"].endswith("+00:00")


def test_it_only_reads(run: Run, path: Path) -> None:
    before = path.read_bytes()
    run("ledger", path)
    assert path.read_bytes() == before


def test_bad_input(refuse: Callable[..., str], memory_path: Path) -> None:
    assert "there is no ledger at" in refuse("ledger", memory_path / "missing")
    assert "is a directory" in refuse("ledger", memory_path)
    (memory_path / "text").write_text("text " * 1000)
    assert "is not a ledger of dpnoise" in refuse("ledger", memory_path / "text")


def test_a_damaged_time_is_one_line(refuse: Callable[..., str], path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"+00:00") == 2
    path.write_bytes(content.replace(b"+00:00", b"+99:99"))
    assert "is damaged or incomplete, and grants nothing: " in refuse("ledger", path)
