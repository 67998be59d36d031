"""``dpnoise sample`` and ``release --query frequent``: reports of a column, and the values of many of them."""

from pathlib import Path

import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow.parquet as pq

from dpnoise import local
from dpnoise.accounting import Ledger

# Nearly everybody takes part: all of 900 people do not with a probability below 1e-13.
SURE = ("--epsilon", 32, "--threshold", 300, "--sample-rate", 1 - 2.0**-53)
COUNTS = {"red": 500, "a, b": 300, "xyzzy": 99, "": 1}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a file of 900 people, of whom one has no value."""
    path = tmp_path / "people.csv"
    rows = [f'{i},"{value}"' if value else f"{i}," for value, count in COUNTS.items() for i in range(count)]
    path.write_text("\n".join(["n,colour", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_reports_are_counted_behind_the_threshold(run: Run, people: Path, tmp_path: Path, suffix: str) -> None:
    reports = tmp_path / f"reports.{suffix}"
    made = run("sample", people, "--column", "colour", *SURE, "-o", reports)
    assert made.code == 0, made.err
    assert "sample rate 1, threshold 300, epsilon 32" in made.out
    asked = ("release", reports, "--query", "frequent", "--column", "colour", *SURE)
    record = run(*asked, "--level", 0.9, "--json").json
    assert {row["group"]: row["answer"] for row in record["answers"]} == pytest.approx({"red": 500, "a, b": 300})
    assert all(0 < row["error"] < 1e-5 for row in record["answers"])
    protocol = local.SampleAndThreshold(epsilon=32, threshold=300, sample_rate=1 - 2.0**-53)
    assert record["delta"] == protocol.delta
    assert (record["threshold"], record["visible_from"]) == (300, protocol.visible_from(0.9))
    table = run(*asked)
    assert table.out.splitlines()[2].split() == ["group", "answer", "error"]
    assert "a value of 300 people or more is here with a probability of 95 %" in table.out
    for shown in (made.out, made.err, table.out, table.err):
        assert "xyzzy" not in shown
        assert "899" not in shown


def test_reports_are_a_sorted_sample(run: Run, people: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports.parquet"
    record = run("sample", people, "--column", "colour", "--epsilon", 1, "--delta", 1e-8, "--threshold", 20,
                 "-o", reports, "--json").json  # fmt: skip
    expected = local.SampleAndThreshold(epsilon=1.0, delta=1e-8, threshold=20)
    assert (record["sample_rate"], record["delta"]) == (expected.sample_rate, expected.delta)
    values = pq.read_table(reports)["colour"].to_pylist()
    assert values == sorted(values)
    assert 100 < len(values) < 400  # a quarter: wrong with a probability below 1e-13
    assert set(record) == {"command", "input", "column", "output", "epsilon", "delta", "relation", "threshold",
                           "sample_rate", "seconds"}  # fmt: skip


def test_a_ledger_pays(run: Run, people: Path, tmp_path: Path) -> None:
    reports, ledger = tmp_path / "reports.csv", tmp_path / "people.db"
    parameters = ("--epsilon", 1, "--delta", 1e-8, "--threshold", 20)
    run("sample", people, "--column", "colour", *parameters, "-o", reports)
    asked = ("release", reports, "--query", "frequent", "--column", "colour", *parameters, "--ledger", ledger)
    assert run(*asked, "--budget", 1.5, 1e-6).code == 0
    [entry] = Ledger.open_readonly(ledger).entries()
    assert (entry.label, entry.cost.epsilon) == ("frequent of colour", 1.0)
    assert "SampleAndThreshold(epsilon=1.0, threshold=20" in entry.mechanism
    outcome = run(*asked)
    assert outcome.code == 2
    assert "nothing was spent or released" in outcome.err


def test_what_cannot_be_sampled_or_counted_is_refused(run: Run, refuse: Refuse, people: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports.csv"
    sample = ("sample", people, "--column", "colour", "--epsilon", 1)
    assert "two of delta, threshold, sample_rate must be given, got delta" in refuse(
        *sample, "--delta", 0.1, "-o", reports
    )
    good = ("--delta", 1e-8, "--threshold", 20)
    assert "must end in .csv or .parquet" in refuse(*sample, *good, "-o", tmp_path / "reports.json")
    assert not reports.exists()
    assert run(*sample, *good, "-o", reports).code == 0
    assert "is there already, and reports replace no file" in refuse(*sample, *good, "-o", reports)
    frequent = ("release", reports, "--query", "frequent", "--column", "colour", "--epsilon", 1)
    assert "got threshold" in refuse(*frequent, "--threshold", 20)
    assert "--query frequent takes no --bounds" in refuse(*frequent, *good, "--bounds", 0, 1)
    assert "--query count takes no --threshold" in refuse(
        "release", people, "--query", "count", "--column", "n", "--epsilon", 1, "--threshold", 20
    )
