"""``dpnoise release``: every question, its price, and every refusal without a private word in it."""

import datetime as dt
import errno
import json
import os
import signal
import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import RandomnessError, queries
from dpnoise._display import rounded
from dpnoise._files import is_locked
from dpnoise.accounting import Ledger
from dpnoise.accounting._ledger_file import LedgerFile
from dpnoise.cli import delivery, payment, tables

# So much that noise is smaller than what is compared.
SURE = 1e9
PLANTED = "xyzzy-7531"

AGES = [20.5, 31.0, None, 47.5, 90.0]
CITIES = ["Rome", "Oslo", "Rome", None, "Rome"]


@pytest.fixture(params=["csv", "parquet"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of five people."""
    path = tmp_path / f"people.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.table({"age": AGES, "city": CITIES}), path)
    else:
        rows = [f"{'' if age is None else age},{city or ''}" for age, city in zip(AGES, CITIES, strict=True)]
        path.write_text("\n".join(["age,city", *rows]) + "\n", encoding="utf-8")
    return path


def ask(people: Path, query: str, column: str, *more: object, epsilon: float = SURE) -> list[object]:
    return ["release", people, "--query", query, "--column", column, "--epsilon", epsilon, *more]


@pytest.mark.parametrize(
    ("query", "column", "more", "expected"),
    [
        ("count", "city", [], {"all": 4}),
        ("count", "city", ["--value", "Rome"], {"all": 3}),
        ("sum", "age", ["--bounds", 0, 60], {"all": 159}),
        ("mean", "age", ["--bounds", 0, 60], {"all": 39.75}),
        ("variance", "age", ["--bounds", 0, 60], {"all": 229.3125}),
        ("median", "age", ["--bounds", 0, 60], {"all": 39.25}),
        ("quantile", "age", ["--bounds", 0, 60, "--q", 0.125], {"all": 20.5}),
        ("quantiles", "age", ["--bounds", 0, 60, "--q", "0.875,0.125"], {"0.875": 60.0, "0.125": 20.5}),
        ("histogram", "age", ["--edges", "0,25,50,100"], {"[0, 25)": 1, "[25, 50)": 2, "[50, 100]": 1}),
        ("histogram", "age", ["--edges=-inf,25,50,inf"], {"[-inf, 25)": 1, "[25, 50)": 2, "[50, inf]": 1}),
        (
            "histogram",
            "age",
            ["--edges", "-1234567,0.1,1234567,1234568"],
            {"[-1234567, 0.1)": 0, "[0.1, 1234567)": 4, "[1234567, 1234568]": 0},
        ),
        ("histogram", "city", ["--domain", "Oslo,Bern,Rome"], {"Oslo": 1, "Bern": 0, "Rome": 3}),
        ("histogram", "city", ["--delta", 1e-9], {"Rome": 3}),
    ],
)
def test_answers(
    run: Run, people: Path, query: str, column: str, more: list[object], expected: dict[str, float]
) -> None:
    outcome = run(*ask(people, query, column, *more, "--json"))
    assert outcome.code == 0, outcome.err
    record = outcome.json
    found = {row["group"]: row["answer"] for row in record["answers"]}
    # Between the two values in the middle every number is a median.
    assert found == pytest.approx(expected, abs=8.3 if query == "median" else 1e-3)
    assert (record["epsilon"], record["relation"]) == (SURE, "add/remove")
    assert record["delta"] == (1e-9 if "--delta" in more else 0)
    table = run(*ask(people, query, column, *more))
    assert table.code == 0
    assert f"{query} of {column}{' = Rome' * ('Rome' in more)}" in table.out
    assert "neighbours by add/remove" in table.out


DAYS = [dt.datetime(1990 + i, 1, 31, 12) for i in range(9)]
BINS = ("--edges", "1990-01-31,1994-01-31,2020-01-01")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize(
    ("of_days", "query", "more", "expected"),
    [
        (True, "median", ("--bounds", "1980-01-01", "2025-01-01"), ["1994-01-31"]),
        (False, "median", ("--bounds", "1980-01-01", "2025-01-01"), ["1994-01-31"]),
        (False, "quantile", ("--q", 0.5, "--bounds", "1980-01-01T00:00", "2025-01-01T00:00"), ["1994-01-31T12:00:00"]),
        (True, "quantiles", ("--q", "0.5,0.1", "--bounds", "1980-01-01", "2025-01-01"), ["1994-01-31", "1990-01-31"]),
        (True, "histogram", BINS, [4, 5]),
        (False, "histogram", BINS, [4, 5]),
        (True, "histogram", ("--domain", "1990-01-31,1990-02-28"), [1, 0]),
        (True, "count", (), [9]),
    ],
)
def test_dates(
    run: Run, tmp_path: Path, suffix: str, of_days: bool, query: str, more: tuple[object, ...], expected: list[object]
) -> None:
    values = [day.date() if of_days else day for day in DAYS]
    path = tmp_path / f"days{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table({"day": [*values, None]}), path)
    else:
        separator = "\t" if suffix == ".tsv" else ","
        rows = [f"{value}{separator}x" for value in ["day", *values, ""]]
        path.write_text("\n".join([f"day{separator}x", *rows[1:]]) + "\n", encoding="utf-8")
    outcome = run(*ask(path, query, "day", *more, "--json"))
    assert outcome.code == 0, outcome.err
    assert [row["answer"] for row in outcome.json["answers"]] == expected
    shown = run(*ask(path, query, "day", *more)).out
    assert all(str(one) in shown for one in expected)
    if more == BINS:
        assert [row["group"] for row in outcome.json["answers"]] == [
            "[1990-01-31, 1994-01-31)", "[1994-01-31, 2020-01-01]"
        ]  # fmt: skip


def test_columns_that_are_no_dates(refuse: Refuse, tmp_path: Path) -> None:
    path = tmp_path / "days.parquet"
    aware = pa.array(DAYS, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"day": DAYS, "aware": aware, "age": range(9)}), path)
    asked = ("--bounds", "1980-01-01", "2025-01-01")
    for column, more, needed in (
        ("age", asked, "it must be a date, or a timestamp without a time zone"),
        ("aware", asked, "it must be a date, or a timestamp without a time zone"),
        ("day", ("--bounds", "1980-01-01T00:00+00:00", "2025-01-01T00:00+00:00"), "be a timestamp with a time zone"),
        ("day", ("--bounds", 0, 1), "it must be a number or boolean"),
    ):
        assert needed in refuse(*ask(path, "median", column, *more))
    mixed = ("--bounds", "1990-01-01T12:00", "2020-01-01T12:00+01:00")
    assert "got '1990-01-01T12:00', '2020-01-01T12:00+01:00'. Dates are as 2020-01" in refuse(
        *ask(path, "median", "day", *mixed)
    )
    assert "takes bounds that are numbers, got 1980-01-01 and 2025-01-01" in refuse(*ask(path, "mean", "day", *asked))
    text = tmp_path / "days.csv"
    text.write_text(f"day\n1990-01-31\n{PLANTED}\n", encoding="utf-8")
    message = refuse(*ask(text, "median", "day", *asked))
    assert message.startswith("column 'day' has a value that is no date; which one is private")
    assert PLANTED not in message


@pytest.mark.parametrize(
    ("more", "counted"),
    [((), "rows that are neither missing nor false"), (("--value", "Rome"), "rows with the value 'Rome'")],
)
def test_a_count_says_what_is_counted(run: Run, people: Path, more: tuple[str, ...], counted: str) -> None:
    assert f"\ncounted: {counted}\n" in run(*ask(people, "count", "city", *more)).out
    assert run(*ask(people, "count", "city", *more, "--json")).json["counted"] == counted
    assert "counted" not in run(*ask(people, "histogram", "city", "--domain", "Rome,Oslo", "--json")).json


BOUNDED = ("--bounds", 0, 100)
SUBSTITUTE = ("--relation", "substitute")


@pytest.mark.parametrize(
    ("query", "column", "more", "said"),
    [
        ("count", "city", (), 6.0),
        ("histogram", "city", ("--domain", "Oslo,Rome"), 6.0),
        ("mean", "age", (*BOUNDED, *SUBSTITUTE), queries.Mean),
        ("variance", "age", (*BOUNDED, *SUBSTITUTE), queries.Variance),
        ("median", "age", BOUNDED, "Median has no bound on its error: how far a value is off depends on "),
    ],
)
def test_how_far_off_answers_are_is_said_or_why_nobody_knows(
    run: Run, people: Path, query: str, column: str, more: tuple[object, ...], said: Any
) -> None:
    table = run(*ask(people, query, column, *more, epsilon=0.5)).out
    record = run(*ask(people, query, column, *more, "--json", epsilon=0.5)).json
    if isinstance(said, str):
        assert (record["error"], record["answers"][0]["error"]) == (None, None)
        assert "error" not in table.splitlines()[2]
        rank_error = queries.Median(bounds=(0, 100), epsilon=0.5).rank_error()
        assert record["rank_error"] == (rank_error if query == "median" else None)
        line = f"\nit is at most {rank_error:,.6g} rows from the median with a probability "
        assert (line in table) == (query == "median")
    else:
        bound = said
        if not isinstance(said, float):
            bound = said(bounds=(0, 100), epsilon=0.5, relation="substitute").error(0.95, rows=5)
        assert [row["error"] for row in record["answers"]] == [bound] * len(record["answers"])
        assert (record["error"], record["level"], record["no_error_bound"]) == (bound, 0.95, None)
        assert table.splitlines()[2].split() == ["group", "answer", "error"]
        assert table.splitlines()[4].split()[-1] == f"{bound:,.0f}"
        assert table.endswith("; noise within the error with a probability of 95 %\n")


@pytest.mark.parametrize("query", ["mean", "variance", "standard-deviation"])
def test_the_error_of_a_mean_follows_from_what_is_released(run: Run, people: Path, query: str) -> None:
    record = run(*ask(people, query, "age", *BOUNDED, "--json", epsilon=SURE)).json
    assert record["error"] == record["answers"][0]["error"]
    assert 0 < record["error"] < 1e-3
    assert record["no_error_bound"] is None


def test_answers_are_rounded_to_their_error_on_a_terminal_alone(run: Run, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("age\n" + "40\n" * 10_000, encoding="utf-8")
    asked = ask(people, "mean", "age", *BOUNDED, epsilon=0.5)
    record = run(*asked, "--json").json
    assert record["error"] == pytest.approx(0.147, abs=0.01)
    assert len(repr(record["answers"][0]["answer"])) > 8
    _, answer, error = run(*asked).out.splitlines()[4].split()
    assert float(error) == pytest.approx(0.147, abs=0.015)
    assert len(error) == 4
    assert len(answer.partition(".")[2]) == 2


@pytest.mark.parametrize(
    ("number", "error", "shown"),
    [
        (40.949130805585426, 0.37334, "40.95"),
        (1234567.891, 924.64, "1,234,568"),
        (12.345, 1.2, "12.3"),
        (-12.345, 6.0, "-12"),
        (300.0, 300.0, "300"),
        (1234567.891, 299.7, "1,234,568"),  # "300", and not two digits of it: whole numbers are not rounded
        (9.96, 9.96, "10"),
        (0.996, 0.996, "1.0"),
        (0.0996, 0.0996, "0.10"),
        (1e-11, 2e-11, "1e-11"),
        (1234, 0.5, "1,234"),
        (0.123456789, 1e-30, "0.123456789"),
        (0.123456789, None, "0.123456789"),
        (0.123456789, 0.0, "0.123456789"),
    ],
)
def test_rounding(number: float, error: float | None, shown: str) -> None:
    assert rounded(number, error) == shown


def test_the_level_of_the_error(run: Run, refuse: Refuse, people: Path, tmp_path: Path) -> None:
    question = ask(people, "count", "city", "--level", 0.999, epsilon=0.5)
    assert run(*question, "--json").json["error"] == queries.Count(epsilon=0.5).error(0.999)
    assert run(*question).out.endswith("; noise within the error with a probability of 99.9 %\n")
    ledger = tmp_path / "ledger.db"
    question = ask(people, "count", "city", "--level", 1, "--ledger", ledger, "--budget", 1, 0)
    assert refuse(*question) == "level must be between 0 and 1, both excluded, got 1.0"
    assert not ledger.exists()


def test_a_release_is_paid_for_before_it_is_made(run: Run, refuse: Refuse, people: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    question = ask(people, "mean", "age", "--bounds", 0, 100, "--ledger", ledger, epsilon=0.5)
    assert refuse(*question) == f"there is no ledger at {str(ledger)!r}: --budget makes one"
    assert not ledger.exists()
    assert run(*question, "--budget", 1, 0).code == 0
    assert run(*question, "--label", "once more").code == 0
    assert [(entry.label, entry.cost.epsilon) for entry in Ledger(ledger).entries()] == [
        ("mean of age", 0.5),
        ("once more", 0.5),
    ]
    assert "what remains of the budget is epsilon=0.0" in refuse(*question)
    assert "is a ledger with the budget epsilon=1.0" in refuse(*question, "--budget", 2, 0)
    shown = json.loads(run("ledger", ledger, "--json").out)
    assert shown["spent"] == {"epsilon": 1.0, "delta": 0.0}


def test_what_cannot_be_answered_costs_nothing(refuse: Refuse, people: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    opened = Ledger(ledger, epsilon=1.0)
    refuse(*ask(people, "sum", "city", "--bounds", 0, 1, "--ledger", ledger, epsilon=0.5))
    refuse(*ask(people, "sum", "age", "--bounds", 1, 0, "--ledger", ledger, epsilon=0.5))
    assert opened.entries() == []


@pytest.mark.parametrize(
    ("query", "column", "more", "message"),
    [
        ("count", "age", ["--bounds", 0, 1], "--query count takes no --bounds"),
        ("sum", "age", [], "--query sum takes --bounds"),
        ("quantile", "age", ["--bounds", 0, 1], "--query quantile takes --q"),
        (
            "quantile",
            "age",
            ["--bounds", 0, 1, "--q", "0.5,0.9"],
            "--q must be one number for --query quantile, got '0",
        ),
        ("quantiles", "age", ["--bounds", 0, 1], "--query quantiles takes --q"),
        (
            "quantiles",
            "age",
            ["--bounds", 0, 1, "--q", "0.5,x"],
            "--q must be numbers separated by commas, got '0.5,x'",
        ),
        ("quantiles", "age", ["--bounds", 0, 1, "--q", "0.5,1"], "q must be between 0 and 1, got 1.0"),
        ("mean", "age", ["--bounds", 0, 1, "--q", 0.5], "--query mean takes no --q"),
        ("histogram", "age", [], "--query histogram takes either --edges, or --domain or --domain-file, or --delta"),
        ("histogram", "age", ["--edges", "0,1", "--delta", 0.1], "--query histogram takes either --edges"),
        ("histogram", "age", ["--edges", "0,x"], "--edges must be numbers separated by commas, got '0,x'"),
        ("histogram", "age", ["--edges", "1,0"], "edges must be two or more numbers, each above the one before"),
        ("count", "age", ["--error-rows", 5], "--error-rows is for --dry-run: an answer has an error of its own"),
        ("mean", "age", ["--bounds", 0, 1, "--error-rows", 0], "--error-rows must be an integer from 1 to 9007199254"),
        ("mean", "age", ["--bounds", 0, "x"], "Invalid value for '--bounds': it takes two numbers, got '0', 'x'."),
        ("mean", "age", ["--bounds", 7, "--label", "y"], "'--bounds': it takes two numbers, got '7', '--label'."),
        ("mean", "age", ["--bounds", 7], "Option '--bounds' takes two numbers, got '7'."),
        ("mean", "age", ["--bounds=7"], "Option '--bounds' takes two numbers, got '7'."),
        ("mean", "age", ["--bounds"], "Option '--bounds' takes two numbers, got none."),
        ("mean", "age", ["--budget", "1"], "Option '--budget' takes two numbers, got '1'."),
        ("sum", "age", ["--bounds", 1, 0], "bounds must be two finite numbers, the lower one first"),
        ("sum", "nobody", ["--bounds", 0, 1], "has no column 'nobody'"),
        ("sum", "age", ["--bounds", 0, 1, "--budget", 1, 0], "--budget is for a new --ledger"),
        ("keys", "age", [], "--query keys takes --delta"),
        ("keys:age:x", "age", ["--delta", 0.1], "--query keys says nothing after its column, got 'keys:age:x'"),
        ("count:age", "age", [], "--query count:age says --column already, so it must not be given"),
        (
            "count",
            "age",
            ["--relation", "substitute", "--by", "age:1"],
            "--relation substitute takes one --query, and no --person, --by or --plot: how many rows a person or a",
        ),
        (
            "frequent",
            "city",
            ["--delta", 0.1, "--threshold", 9, "--plot", "x.png"],
            "--query frequent takes one --query",
        ),
        ("mode", "age", [], "--query must be one of count, sum, mean, "),
    ],
)
def test_bad_input(refuse: Refuse, people: Path, query: str, column: str, more: list[object], message: str) -> None:
    assert message in refuse(*ask(people, query, column, *more, epsilon=0.5))


def test_no_refusal_shows_a_value(refuse: Refuse, tmp_path: Path) -> None:
    text = tmp_path / "people.csv"
    text.write_text(f"age\n31\n{PLANTED}\n", encoding="utf-8")
    columns = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [PLANTED, "31"], "when": pa.array([1, 2], pa.timestamp("s"))}), columns)
    for path, column, message in (
        (text, "age", "column 'age' has a value that is no number; which one is private"),
        (columns, "age", "column 'age' has the type string; it must be a number or boolean"),
        (columns, "when", "column 'when' has the type timestamp[ms]; it must be a number or boolean"),
    ):
        found = refuse(*ask(path, "sum", column, "--bounds", 0, 100))
        assert message in found
        assert PLANTED not in found


# --- Paid, and not delivered ---------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Return a ledger in a folder of its own."""
    (tmp_path / "paid").mkdir()
    return Ledger(tmp_path / "paid" / "ledger.db", epsilon=1.0)


def paid(ledger: Ledger) -> float:
    return ledger.spent.epsilon


def again(ledger: Ledger, has: str = "has") -> str:
    return (
        f"'{ledger.path}' {has} paid for it (`dpnoise ledger` shows what it paid): the same command would pay again\n"
    )


@pytest.mark.parametrize("suffix", [".json", ".csv", ".parquet"])
def test_an_answer_in_a_file(run: Run, refuse: Refuse, people: Path, ledger: Ledger, suffix: str) -> None:
    out = ledger.path.with_name(f"answer{suffix}")
    question = ask(
        people, "histogram", "city", "--domain", "Oslo,Rome", "--ledger", ledger.path, "-o", out, epsilon=0.5
    )
    record = run(*question, "--json").json
    if suffix == ".json":
        assert json.loads(out.read_text(encoding="utf-8")) == record
    elif suffix == ".csv":
        rows = [f"{row['group']},{row['answer']},{row['error']}" for row in record["answers"]]
        assert out.read_text(encoding="utf-8").splitlines() == ["group,answer,error", *rows]
    else:
        assert pq.read_table(out).to_pylist() == record["answers"]
        assert json.loads(pq.read_schema(out).metadata[b"dpnoise.epsilon"]) == 0.5
    before = out.read_bytes()
    assert refuse(*question) == f"'{out}' is there already, and an answer replaces no file: give another name"
    assert (out.read_bytes(), paid(ledger)) == (before, 0.5)


def test_a_target_that_cannot_be_written_costs_nothing(
    run: Run, refuse: Refuse, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ledger.path.with_name("answer.json")
    question = ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.5)
    assert "the output must end in .csv or .json or .parquet" in refuse(*question, "-o", out.with_suffix(".txt"))
    assert "does not exist" in refuse(*question, "-o", out.parent / "no" / "answer.json")
    assert "is also an input" in refuse(*ask(people, "count", "city"), "-o", people)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        outcome = run(*question, "-o", out)
    message = f"dpnoise: '{out}' could not be written: No space left on device; nothing was spent or drawn\n"
    assert (outcome.code, outcome.out, outcome.err) == (5, "", message)
    assert paid(ledger) == 0
    assert not list(out.parent.glob("*answer*"))


def test_no_budget_leaves_no_file(refuse: Refuse, people: Path, ledger: Ledger) -> None:
    out = ledger.path.with_name("answer.json")
    assert "nothing was spent or released" in refuse(*ask(people, "count", "city", "--ledger", ledger.path, "-o", out))
    assert not list(out.parent.glob("*answer*"))


def test_nobody_who_reads_costs_nothing(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.5)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as pipe:
        for stdout, reason in ((pipe, "Broken pipe"), (None, "it is closed")):
            if stdout is not None and not hasattr(delivery.select, "poll"):
                continue
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stdout", stdout)
                outcome = run(*question)
            message = f"dpnoise: stdout could not be written: {reason}; nothing was spent or drawn\n"
            assert (outcome.code, outcome.err) == (5, message)
    assert paid(ledger) == 0


def test_an_answer_that_is_lost_is_said_to_be_paid_for(
    run: Run, people: Path, ledger: Ledger, full_stdout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, out = ask(people, "count", "city", epsilon=0.25), ledger.path.with_name("answer.json")
    failed = "dpnoise: stdout could not be written: No space left on device; "
    monkeypatch.setattr(sys, "stdout", full_stdout)
    outcome = run(*question, "--ledger", ledger.path)
    assert (outcome.code, outcome.err) == (6, f"{failed}the answer is lost, and {again(ledger)}")
    outcome = run(*question, "--ledger", ledger.path, "-o", out)
    assert (outcome.code, outcome.err) == (6, f"{failed}the answer is in '{out}', and {again(ledger)}")
    assert json.loads(out.read_text(encoding="utf-8"))["answers"][0]["group"] == "all"
    assert paid(ledger) == 0.5
    outcome = run(*question)
    assert (outcome.code, outcome.err) == (
        5, f"{failed}the answer is lost, and no ledger has recorded that it was drawn\n"
    )  # fmt: skip


def test_an_answer_that_does_not_fit_on_the_disk_is_printed(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, calls = ledger.path.with_name("answer.json"), []

    def fail(*_: object) -> None:
        calls.append(None)
        if len(calls) > 1:  # the room that is reserved is there
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.fsync", fail)
    outcome = run(*ask(people, "count", "city", "--ledger", ledger.path, "-o", out, epsilon=0.5))
    message = f"dpnoise: '{out}' could not be written: Input/output error; the answer was printed, and {again(ledger)}"
    assert (outcome.code, outcome.err, paid(ledger)) == (6, message, 0.5)
    assert "count of city" in outcome.out
    assert not list(out.parent.glob("*answer*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_payment(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    former = signal.signal(number, signal.default_int_handler)  # it might be ignored here
    question = ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.25)
    stopped = f"dpnoise: stopped by {signal.Signals(number).name}; the answer is lost, and "
    real = Ledger.spend

    def spend(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        os.kill(os.getpid(), number)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(queries.Count, "_released", lambda *_: os.kill(os.getpid(), number))
            outcome = run(*question)
        assert (outcome.code, outcome.out, outcome.err) == (6, "", stopped + again(ledger))
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "spend", spend)
            outcome = run(*question)
        assert (outcome.code, outcome.err) == (6, stopped + again(ledger))
    finally:
        signal.signal(number, former)
    assert paid(ledger) == 0.5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_ledger_is_locked_costs_nothing(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    former = signal.signal(number, signal.default_int_handler)
    monkeypatch.setattr("dpnoise.accounting._ledger_file.time.sleep", lambda _: os.kill(os.getpid(), number))
    stopped = f"dpnoise: stopped by {signal.Signals(number).name}; no incomplete file is left\n"
    question = ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.25)
    try:
        other = sqlite3.connect(ledger.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        outcome = run(*question)
        assert (outcome.code, outcome.out, outcome.err) == (128 + number, "", stopped)
        other.close()
        with Path(f"{ledger.path}-lock").open("rb") as lock:
            assert is_locked(lock.fileno())
            outcome = run(*question)
        assert (outcome.code, outcome.out, outcome.err) == (128 + number, "", stopped)
    finally:
        signal.signal(number, former)
    assert ledger.entries() == []


def test_a_second_signal_after_the_payment(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = payment.Sale.__exit__

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        real(*arguments)

    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(queries.Count, "_released", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        monkeypatch.setattr(payment.Sale, "__exit__", interrupted)
        outcome = run(*ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.25))
    finally:
        signal.signal(signal.SIGINT, former)
    assert (outcome.code, paid(ledger)) == (6, 0.25)


def test_a_full_disk_is_named_and_costs_nothing(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LedgerFile._open

    def on_a_full_disk(self: LedgerFile) -> sqlite3.Connection:
        connection = real(self)
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
        return connection

    monkeypatch.setattr(LedgerFile, "_open", on_a_full_disk)
    outcome = run(*ask(people, "count", "city", "--ledger", ledger.path, "--label", "x" * 5000, epsilon=0.25))
    full = f"dpnoise: '{ledger.path}' cannot be written: No space left on device; nothing was spent or drawn\n"
    assert (outcome.code, outcome.out, outcome.err) == (5, "", full)
    assert paid(ledger) == 0


@pytest.mark.parametrize("recorded", [False, True])
def test_a_payment_that_fails_in_its_last_step(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    class Failing(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement != "COMMIT" or not self.total_changes:
                return super().execute(statement, *values)
            if recorded:
                super().execute(statement)
            raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Failing))
    outcome = run(*ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.25))
    monkeypatch.undo()
    failed = f"dpnoise: '{ledger.path}' cannot be used: disk I/O error; "
    if recorded:
        assert (outcome.code, paid(ledger)) == (6, 0.25)
        assert outcome.err == f"{failed}the answer is lost, and {again(ledger, 'may have')}"
    else:
        assert (outcome.code, outcome.err, paid(ledger)) == (5, f"{failed}nothing was spent or drawn\n", 0.0)


def test_the_name_of_the_answer_is_taken_meanwhile(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ledger.path.with_name("answer.csv")
    real = tables.read

    def meanwhile(*arguments: Any) -> Any:
        out.write_text("the answer of another run", encoding="utf-8")
        return real(*arguments)

    monkeypatch.setattr(tables, "read", meanwhile)
    outcome = run(*ask(people, "count", "city", "--ledger", ledger.path, "-o", out, epsilon=0.25))
    assert (outcome.code, paid(ledger)) == (2, 0.0)
    assert out.read_text(encoding="utf-8") == "the answer of another run"


@pytest.mark.parametrize(
    ("query", "more", "message"),
    [
        ("histogram", ["--domain", "a\udcff,b"], "the domain must be of texts that UTF-8 can hold"),
        ("count", ["--value", "\udcff"], "a label or a word of --na must be a text that UTF-8 can hold"),
        ("count", ["--na", "\udcff"], "a label or a word of --na must be a text that UTF-8 can hold"),
    ],
)
def test_texts_that_no_file_can_hold(
    run: Run, people: Path, ledger: Ledger, query: str, more: list[str], message: str
) -> None:
    outcome = run(*ask(people, query, "city", *more, "--ledger", ledger.path, epsilon=0.25))
    assert (outcome.code, paid(ledger)) == (2, 0.0)
    assert message in outcome.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RandomnessError("the source of randomness failed"), "the source of randomness failed"),
        (ValueError(PLANTED), "ValueError"),
    ],
    ids=["randomness", "bug"],
)
def test_what_fails_after_the_payment_is_said_without_a_value(
    run: Run, people: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(queries.Count, "_released", fail)
    outcome = run(*ask(people, "count", "city", "--ledger", ledger.path, epsilon=0.25))
    message = f"dpnoise: {said}; the answer is lost, and {again(ledger)}"
    assert (outcome.code, outcome.out, outcome.err) == (6, "", message)
    assert paid(ledger) == 0.25


def test_failing_randomness_that_nobody_has_paid_for(run: Run, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RandomnessError("the source of randomness failed")

    monkeypatch.setattr(queries.Count, "_released", fail)
    outcome = run(*ask(people, "count", "city"))
    assert (outcome.code, outcome.err) == (1, "dpnoise: the source of randomness failed\n")
