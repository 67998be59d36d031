"""``release --query frequent``: a sample of a column, and the values of many rows of it."""

from pathlib import Path

import pytest
from cli.shared import Refuse, Run

from dpnoise import local
from dpnoise.accounting import Ledger

# Nearly everybody takes part: all of 900 people do not with a probability below 1e-13.
SURE = ("--epsilon", 32, "--threshold", 300, "--sample-rate", 1 - 2.0**-53)
COUNTS = {"red": 500, "a, b": 300, "xyzzy": 99, "": 1}
FREQUENT = ("--query", "frequent", "--column", "colour")
PARAMETERS = ("--epsilon", 1, "--delta", 1e-8, "--threshold", 20)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a file of 900 people, of whom one has no value."""
    path = tmp_path / "people.csv"
    rows = [f'{i},"{value}"' if value else f"{i}," for value, count in COUNTS.items() for i in range(count)]
    path.write_text("\n".join(["n,colour", *rows]) + "\n", encoding="utf-8")
    return path


def test_values_are_counted_behind_the_threshold(run: Run, people: Path) -> None:
    record = run("release", people, *FREQUENT, *SURE, "--level", 0.9, "--json").json
    assert {row["group"]: row["answer"] for row in record["answers"]} == pytest.approx({"red": 500, "a, b": 300})
    assert all(0 < row["error"] < 1e-5 for row in record["answers"])
    protocol = local.SampleAndThreshold(epsilon=32, threshold=300, sample_rate=1 - 2.0**-53)
    assert record["delta"] == protocol.delta
    assert (record["threshold"], record["visible_from"]) == (300, protocol.visible_from(0.9))
    table = run("release", people, *FREQUENT, *SURE)
    assert table.out.splitlines()[2].split() == ["group", "answer", "error"]
    assert "a value of 300 people or more is here with a probability of 95 %" in table.out
    for shown in (table.out, table.err):
        assert "xyzzy" not in shown
        assert "899" not in shown


def test_rows_are_sampled_unless_they_are_a_sample(run: Run, people: Path) -> None:
    """Numbers of reports that are wrong with a probability below 1e-13."""
    red = run("release", people, *FREQUENT, *PARAMETERS, "--json").json["answers"][0]["answer"]
    assert 100 < red < 1000
    assert red != pytest.approx(500 / 0.25142412)
    record = run("release", people, *FREQUENT, *PARAMETERS, "--sampled", "--json").json
    assert record["answers"][0]["answer"] == pytest.approx(500 / record["sample_rate"])


def test_a_ledger_pays(run: Run, people: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "people.db"
    asked = ("release", people, *FREQUENT, *PARAMETERS, "--ledger", ledger)
    assert run(*asked, "--budget", 1.5, 1e-6).code == 0
    [entry] = Ledger.open_readonly(ledger).entries()
    assert (entry.label, entry.cost.epsilon) == ("frequent of colour", 1.0)
    assert "SampleAndThreshold(epsilon=1.0, threshold=20" in entry.mechanism
    outcome = run(*asked)
    assert outcome.code == 2
    assert "nothing was spent or released" in outcome.err


def test_what_cannot_be_sampled_is_refused(refuse: Refuse, people: Path) -> None:
    frequent = ("release", people, *FREQUENT, "--epsilon", 1)
    assert "two of delta, threshold, sample_rate must be given, got threshold" in refuse(*frequent, "--threshold", 20)
    good = ("--delta", 1e-8, "--threshold", 20)
    assert "--query frequent takes no --bounds" in refuse(*frequent, *good, "--bounds", 0, 1)
    count = ("release", people, "--query", "count", "--column", "n", "--epsilon", 1)
    assert "--query count takes no --threshold" in refuse(*count, "--threshold", 20)
    assert "--query count takes no --sampled" in refuse(*count, "--sampled")
