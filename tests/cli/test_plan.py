"""``dpnoise plan``: the figures of the library, as a table and as JSON."""

from collections.abc import Callable

import pytest
from cli.shared import Run

from dpnoise import local
from dpnoise.cli.protocols import PROTOCOLS


@pytest.mark.parametrize("k", [2, 40])
def test_json(run: Run, k: int) -> None:
    record = run("plan", "--n", 1_000_000, "--k", k, "--epsilon", 1, "--json").json
    assert (record["command"], record["n"], record["k"], record["requested_epsilon"]) == ("plan", 1_000_000, k, 1.0)
    plan = local.plan(n=1_000_000, k=k, epsilon=1.0)
    for row, candidate in zip(record["protocols"], plan, strict=True):
        # The names are those that perturb takes.
        assert PROTOCOLS[row.pop("protocol")] is type(candidate.protocol)
        assert row == {name: getattr(candidate, name) for name in row}
        assert len(row) == 6
    assert record["shuffled_delta"] is None


def test_shuffled_reports(run: Run) -> None:
    asked = ["plan", "--n", 1000, "--k", 3, "--epsilon", 1, "--shuffled", 1e-6]
    record = run(*asked, "--json").json
    assert record["shuffled_delta"] == 1e-6
    plan = local.plan(n=1000, k=3, epsilon=1.0, shuffled_delta=1e-6)
    assert [(row["shuffled_epsilon"], row["bound"]) for row in record["protocols"]] == [
        (candidate.shuffled_epsilon, candidate.bound) for candidate in plan
    ]
    lines = run(*asked).out.splitlines()
    first = lines.index("All 1,000 reports together, shuffled, delta 1e-06")
    assert lines[first + 2].split() == ["protocol", "epsilon", "bound"]
    rows = [line.split() for line in lines[first + 4 : first + 4 + len(plan)]]
    assert [row[0] for row in rows] == [row["protocol"] for row in record["protocols"]]
    for row, candidate in zip(rows, plan, strict=True):
        assert float(row[1]) == pytest.approx(candidate.shuffled_epsilon, rel=1e-4)
        assert row[2] == candidate.bound
    assert not any("shuffled" in line for line in run(*asked[:-2]).out.splitlines())


def test_table(run: Run) -> None:
    lines = run("plan", "--n", 1000, "--k", 3, "--epsilon", 0.01).out.splitlines()
    assert lines[0] == "1,000 people, 3 values, epsilon 0.01"
    for name in ("ss", "oue", "lh", "sue", "hr", "grr"):
        [row] = [line for line in lines if line.split()[:1] == [name]]
        assert "more than all" in row
    assert "rr" not in [line.split()[0] for line in lines if line.strip()]
    assert "more than all" not in run("plan", "--n", 10**7, "--k", 3, "--epsilon", 1).out


@pytest.mark.parametrize(
    ("k", "name", "reason"),
    [
        (3, "grr", "its standard deviation is the smallest"),
        (
            40,
            "pgr",
            "its reports have 1 byte instead of 5, at a standard deviation that is 1.1 % above the smallest, of ss",
        ),
    ],
)
def test_a_recommendation_with_its_reason_and_a_legend(run: Run, k: int, name: str, reason: str) -> None:
    asked = ["plan", "--n", 10**6, "--k", k, "--epsilon", 1]
    assert run(*asked, "--json").json["recommended"] == name
    *_, last = lines = run(*asked).out.splitlines()
    assert last == f"Recommended: {name}, since {reason}."
    legend = [line.partition(":")[0] for line in lines[-5:-2]]
    [head] = [line for line in lines if line.split()[:1] == ["protocol"]]
    assert legend == ["standard deviation", "detectable count", "server cost"]
    assert all(column in head for column in legend)


@pytest.mark.parametrize("million", ["1e6", "1_000_000", "1000000.0", "0.1E+7"])
def test_whole_numbers_in_other_notations(run: Run, million: str) -> None:
    record = run("plan", "--n", million, "--k", "4e1", "--epsilon", 1, "--json").json
    assert (record["n"], record["k"]) == (1_000_000, 40)


@pytest.mark.parametrize(
    "number", ["1.5", "1e-3", "nan", "inf", "1e31", "1e999999999", "0e999999999", "many", "", "0x9"]
)
def test_other_numbers_are_no_counts(refuse: Callable[..., str], number: str) -> None:
    message = f"Invalid value for '--n': {number!r} is not a whole number, such as 1000000 or 1e6."
    assert refuse("plan", "--n", number, "--k", 3, "--epsilon", 1) == message
    assert refuse("audit", "--n", number) == message


def test_bad_parameters(refuse: Callable[..., str]) -> None:
    assert "k must be an integer" in refuse("plan", "--n", 10, "--k", 1, "--epsilon", 1)
    assert "n must be an integer from 1" in refuse("plan", "--n", 0, "--k", 3, "--epsilon", 1)
    asked = ("plan", "--n", 10, "--k", 3, "--epsilon", 1, "--shuffled", 1)
    assert "shuffled_delta must be between 0 and 1" in refuse(*asked)
    assert "Missing option '--epsilon'" in refuse("plan", "--n", 10, "--k", 3)
