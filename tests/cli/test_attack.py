"""``dpnoise attack``: NumPy's noise is broken, which is the control of the attack, and ours is not."""

from pathlib import Path

import pytest
from cli.shared import Refuse, Run


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a file with one rare value among common and missing ones."""
    path = tmp_path / "people.csv"
    rows = ["Zoe,red"] * 3 + ["Ann,red", ",red"] * 500
    path.write_text("\n".join(["name,colour", *rows]), encoding="utf-8")
    return path


def test_the_ages_of_the_census(run: Run) -> None:
    record = run("attack", "--json").json
    about = {name: record[name] for name in ("command", "input", "column", "rows", "value", "count", "epsilon")}
    assert about == {
        "command": "attack", "input": None, "column": "age", "rows": 32_561, "value": "86", "count": 1, "epsilon": 0.1,
    }  # fmt: skip
    numpy, ours = record["noise"]
    assert (numpy["name"], numpy["broken"], ours["name"], ours["broken"]) == ("NumPy", True, "dpnoise", False)
    assert min(numpy["event_with"], numpy["event_without"]) == 0
    assert numpy["right_guesses"] > 0.7 > 0.6 > ours["right_guesses"]
    assert record["best_honest_guess"] == pytest.approx(0.52498, abs=1e-5)


def test_a_column_of_ones_own(run: Run, people: Path) -> None:
    before = people.read_bytes()
    outcome = run("attack", people, "--column", "name")
    assert (outcome.code, outcome.err, people.read_bytes()) == (0, "", before)
    assert "How many of 1,003 rows have name = Zoe?  3 with one person, 2 without" in outcome.out
    assert [outcome.out.count(word) for word in ("BROKEN", "not broken", "misled in 0")] == [1, 1, 1]
    assert outcome.out.endswith("All of this is true of your data and not private: it is for you alone.\n")


def test_a_count_that_hides_low_order_bits(run: Run, people: Path) -> None:
    outcome = run("attack", people, "--column", "colour", "--epsilon", 5)
    assert outcome.code == 0
    assert "BROKEN" not in outcome.out
    assert "take a column with rarer values, or --epsilon 0.01." in outcome.out
    assert run("attack", people, "--column", "colour", "--epsilon", 0.01, "--json").json["noise"][0]["broken"]


def test_an_epsilon_that_no_draws_refute(run: Run) -> None:
    outcome = run("attack", "--epsilon", 10)
    assert (outcome.code, "BROKEN" in outcome.out) == (0, False)
    assert "too large for 20,000 draws to refute; take a column with rarer values, or --epsilon 1." in outcome.out
    assert run("attack", "--epsilon", 1, "--json").json["noise"][0]["broken"]


def test_what_cannot_be_attacked(refuse: Refuse, people: Path) -> None:
    assert refuse("attack", people) == refuse("attack", "--column", "name")
    assert "has no column 'age'" in refuse("attack", people, "--column", "age")
    assert "epsilon must be" in refuse("attack", "--epsilon", 0)
    people.write_text("name,colour\n,red\nNA,red\n", encoding="utf-8")
    assert refuse("attack", people, "--column", "name", "--na", "usual") == "column 'name' has no values to count"
