"""``dpnoise release`` for persons with several rows, by group, and with several questions in one payment."""

import datetime as dt
import errno
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import queries, tables
from dpnoise._numbers import share_of
from dpnoise.accounting import Ledger
from dpnoise.cli.questions import read_questions, read_scope

SURE = 1e9  # so much that noise is smaller than what is compared
PLANTED = "xyzzy-7531"

VISITS: dict[str, list[Any]] = {
    "user": ["ann", "ann", "ann", "ben", "ben", "eve", None],
    "region": ["North", "North", "South", "South", None, "West", "North"],
    "spend": [10.0, 20.0, 30.0, 50.0, 60.0, 70.0, 80.0],
    "paid": [True, False, True, True, None, True, True],
    "day": [dt.date(2024, 1, 1 + i) for i in range(7)],
}
PERSONS = ("--person", "user", "--rows", 9)
REGIONS = ("--by", "region:South,North,East")


@pytest.fixture(params=["csv", "parquet"])
def visits(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of visits."""
    path = tmp_path / f"visits.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.table(VISITS), path)
    else:
        write(path, *zip(*VISITS.values(), strict=True))
    return path


def write(path: Path, *rows: Any, names: str = ",".join(VISITS)) -> Path:
    """Write rows as CSV, with empty fields for missing values; a text is a line."""
    lines = [row if isinstance(row, str) else ",".join("" if x is None else str(x) for x in row) for row in rows]
    path.write_text("\n".join([names, *lines]) + "\n", encoding="utf-8")
    return path


def ask(path: Path, *more: object, epsilon: float = SURE) -> list[object]:
    return ["release", path, "--epsilon", epsilon, *more]


def answers(run: Run, path: Path, *more: object, **options: Any) -> list[dict[str, Any]]:
    outcome = run(*ask(path, *more, "--json", **options))
    assert outcome.code == 0, outcome.err
    found: list[dict[str, Any]] = outcome.json["answers"]
    return found


# --- Questions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "name", "expected"),
    [
        ("count", "count", [2, 2, 0]),
        ("count:paid", "count_paid", [2, 1, 0]),
        ("count:region:North", "count_region_North", [0, 2, 0]),
        ("sum:spend:0,25", "sum_spend", [50, 30, 0]),
        ("mean:spend:0,100", "mean_spend", [40, 15, None]),
        ("variance:spend:0,100", "variance_spend", [100, 25, None]),
        ("standard-deviation:spend:0,100", "standard_deviation_spend", [10, 5, None]),
    ],
)
@pytest.mark.parametrize("other", [False, True])
def test_groups_are_answered_in_the_order_of_their_keys(
    run: Run, visits: Path, question: str, name: str, expected: list[float | None], other: bool
) -> None:
    found = answers(run, visits, *PERSONS, *REGIONS, "--query", question, *["--other"] * other)
    assert [row["region"] for row in found] == ["South", "North", "East", *["other"] * other]
    assert list(found[0]) == ["region", name, "error", "lower", "upper"]
    for row, value in zip(found, expected, strict=False):
        if value is not None:  # the mean of no rows is any number
            assert row[name] == pytest.approx(value, abs=1e-3)
    if other and name == "count":
        assert found[-1]["count"] == 2


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("count:paid", ["count", "--column", "paid"]),
        ("count:region:North", ["count", "--column", "region", "--value", "North"]),
        ("mean:spend:0,100", ["mean", "--column", "spend", "--bounds", 0, 100]),
        ("mean:spend", ["mean:spend", "--bounds", 0, 100]),
        ("quantile:spend:0,100:.5", ["quantile", "--column", "spend", "--bounds", 0, 100, "--q", ".5"]),
        ("quantiles:spend:0,100:.2,.8", ["quantiles:spend", "--bounds", 0, 100, "--q", ".2,.8"]),
        ("median:day:2024-01-01,2024-12-31", ["median:day", "--bounds", "2024-01-01", "2024-12-31"]),
        (
            "median:day:2024-01-01T00:00,2024-12-31T12:00",
            ["median:day", "--bounds", "2024-01-01T00:00", "2024-12-31T12:00"],
        ),
        (
            "quantiles:day:2024-01-01T00:00,2024-12-31T12:00:.5,.9",
            ["quantiles:day:2024-01-01T00:00,2024-12-31T12:00", "--q", ".5,.9"],
        ),
        ("histogram:spend:0,25,inf", ["histogram", "--column", "spend", "--edges", "0,25,inf"]),
        ("histogram:region:South,North", ["histogram", "--column", "region", "--domain", "South,North"]),
        ('histogram:region:"South, far",North', ["histogram:region", "--domain", '"South, far",North']),
    ],
)
def test_the_text_of_a_question_says_what_options_say(
    run: Run, visits: Path, question: str, options: list[object]
) -> None:
    bounds = ["--bounds", 0, 100] if question == "mean:spend" else []
    found = answers(run, visits, *PERSONS, "--query", question, *bounds)
    other = answers(run, visits, *PERSONS, "--query", *options)
    assert [row["group"] for row in found] == [row["group"] for row in other]
    if "median" not in question and "quantile" not in question:
        assert [row["answer"] for row in found] == pytest.approx([row["answer"] for row in other], abs=1e-3)


def test_several_answers_are_one_payment(run: Run, visits: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    asked = ["--query", "count", "--query", "mean:spend:0,100", "--query", "median:spend:0,100"]
    outcome = run(*ask(visits, *PERSONS, *REGIONS, *asked, "--ledger", ledger, "--budget", 0.7, 0, epsilon=0.7))
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "count of rows, mean of spend, median of spend, by region"
    assert lines[2].split() == ["region", "count", "error", "mean_spend", "error", "median_spend"]
    promise = "for each person (user), at most 9 rows of each, neighbours by add/remove; noise within the error with a"
    assert f"epsilon 0.7 {promise} probability of 95 %" in lines
    assert lines[-1].startswith("median of spend: each is at most ")
    opened = Ledger(ledger)
    assert (opened.person, [entry.label for entry in opened.entries()]) == ("user", [lines[0]])
    assert 0.7 - 1e-15 < opened.spent.epsilon <= 0.7
    record = run(*ask(visits, *PERSONS, *REGIONS, *asked, "--json")).json
    assert (record["person"], record["rows"], record["by"]) == ("user", 9, "region")
    assert (record["query"], record["column"]) == (["count", "mean", "median"], [None, "spend", "spend"])
    assert list(record["answers"][0]) == [
        "region", "count", "count_error", "count_lower", "count_upper", "mean_spend", "mean_spend_error",
        "mean_spend_lower", "mean_spend_upper", "median_spend", "median_spend_rank_error",
    ]  # fmt: skip


def test_answers_of_several_numbers_stand_below_each_other(run: Run, visits: Path) -> None:
    asked = ["--query", "count", "--query", "quantiles:day:2024-01-01,2024-12-31:.2,.9", "--query",
             "histogram:region:North,South"]  # fmt: skip
    outcome = run(*ask(visits, *PERSONS, *asked))
    rows = [line.split() for line in outcome.out.splitlines()[2:]]
    assert rows[0] == ["answer", "part", "value", "error"]
    assert [rows[2], rows[5], rows[6]] == [
        ["count", "6", "0"],
        ["histogram_region", "value", "North", "2", "0"],
        ["histogram_region", "value", "South", "2", "0"],
    ]
    assert [row[:3] for row in rows[3:5]] == [["quantiles_day", "q", "0.2"], ["quantiles_day", "q", "0.9"]]
    assert rows[3][3].startswith("2024-01-0")


def test_one_column_is_read_in_several_ways(run: Run, visits: Path) -> None:
    asked = ("count:region", "histogram:region:North,West", "count:region:South", "sum:paid:0,1")
    found = answers(run, visits, *REGIONS, "--other", *(word for text in asked[:2] for word in ("--query", text)))
    assert [row["value"] for row in found if row["answer"] == "count_region"] == [2, 3, 0, 1]
    assert [row["value"] for row in found if row["answer"] == "histogram_region"] == [0, 0, 3, 0, 0, 0, 0, 1]
    found = answers(run, visits, *REGIONS, "--other", *(word for text in asked[2:] for word in ("--query", text)))
    assert [row["count_region_South"] for row in found] == [2, 0, 0, 0]
    assert [row["sum_paid"] for row in found] == pytest.approx([2, 2, 0, 1], abs=1e-3)


def test_two_values_of_a_column_are_counted_together(run: Run, visits: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    asked = ("--query", "count:paid:true", "--query", "count:paid:false", "--ledger", ledger, "--budget", 2e9, 0)
    outcome = run(*ask(visits, *PERSONS, *REGIONS, *asked, "-o", tmp_path / "out.json"))
    assert outcome.code == 0, outcome.err
    title = "count of paid = true, count of paid = false, by region"
    assert outcome.out.splitlines()[0] == title
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["answers"]
    assert [(row["count_paid_true"], row["count_paid_false"]) for row in found] == [(2, 0), (1, 1), (0, 0)]
    run(*ask(visits, *PERSONS, "--query", "count:region:North", "--ledger", ledger, epsilon=0.5))
    assert [entry.label for entry in Ledger(ledger).entries()] == [title, "count of region = North"]


def test_columns_have_the_names_of_the_file(run: Run, visits: Path, tmp_path: Path) -> None:
    asked: tuple[object, ...] = ("--person", "user", "--rows", 9, "--by", "user:ann,ben", "--query", "count")
    for suffix in (".json", ".csv", ".parquet"):
        outcome = run(*ask(visits, *asked, "--query", "count:user:ben", "-o", tmp_path / f"out{suffix}"))
        assert (outcome.code, "'" in outcome.out) == (0, False), outcome
        assert b"user'" not in (tmp_path / f"out{suffix}").read_bytes()
    assert [(row["user"], row["count"]) for row in answers(run, visits, *asked)] == [("ann", 3), ("ben", 2)]
    matplotlib = pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    chart = tmp_path / "chart.svg"
    histogram = ("--by", "paid:true,false", "--query", "histogram:paid:true,false", "--query", "sum:paid:0,1")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        assert run(*ask(visits, *histogram, "--query", "count", "--plot", chart, epsilon=1.0)).code == 0
    drawn = chart.read_text(encoding="utf-8")
    assert "histogram of paid, sum of paid, count of rows, by paid" in drawn
    assert "paid'" not in drawn
    assert "epsilon 1 (each row is a person)" in drawn  # three shares add up to 0.9999999999999999


@pytest.mark.parametrize(("epsilon", "number"), [(0.14, 19), (0.01, 7), (1.0, 3), (4.4, 9), (1e-9, 11), (0.7, 1)])
def test_shares_add_up_to_epsilon_as_ledgers_add(epsilon: float, number: int) -> None:
    scope = read_scope(None, None, "drop", None, None, False, None, None)
    asked = read_questions([f"count:c{i}" for i in range(number)], {}, epsilon, "add/remove", scope)
    [share] = {question.query.epsilon for question in asked}
    assert Decimal(repr(share)) * number <= Decimal(repr(epsilon)) < Decimal(repr(share * (1 + 1e-15))) * number
    if (epsilon, number) == (0.14, 19):  # which the share of the exact floats does not keep
        assert Decimal(repr(share_of(epsilon, number))) * number > Decimal(repr(epsilon))


def test_keys_that_nobody_has_listed(run: Run, tmp_path: Path) -> None:
    rows = [f"u{i},{region}" for i in range(9) for region in ("North", "North", "South")] + ["eve,East"] * 9
    path = write(tmp_path / "visits.csv", *rows, names="user,region")
    asked = ("--query", "keys:region", "--delta", 0.9)
    # Without noise a value is released from one row more than a person may have.
    assert {row["group"]: row["answer"] for row in answers(run, path, *asked)} == {"North": 18, "South": 9, "East": 9}
    found = answers(run, path, "--person", "user", "--rows", 3, *asked)
    assert {row["group"]: row["answer"] for row in found} == {"North": 18, "South": 9}
    asked = ("--person", "user", "--rows", 3, "--query", "histogram:region", "--delta", 1e-9, "--json")
    record = run(*ask(path, *asked, epsilon=0.5)).json
    error = queries.PerPerson(queries.StabilityHistogram(epsilon=0.5, delta=1e-9), person="user", rows=3).error()
    assert (record["answers"], record["delta"], record["error"]) == ([], 1e-9, error)


def test_files_of_answers(run: Run, visits: Path, tmp_path: Path) -> None:
    asked = ask(visits, *PERSONS, *REGIONS, "--query", "count", "--query", "median:day:2024-01-01,2024-12-31")
    for suffix in (".json", ".csv", ".parquet"):
        out = tmp_path / f"out{suffix}"
        outcome = run(*asked, "-o", out, "--json")
        assert outcome.code == 0, outcome.err
        record = outcome.json
        if suffix == ".json":
            assert json.loads(out.read_text(encoding="utf-8")) == record
        elif suffix == ".csv":
            assert out.read_text(encoding="utf-8").splitlines()[0] == ",".join(record["answers"][0])
        else:
            assert pq.read_table(out).to_pylist() == record["answers"]
            assert json.loads(pq.read_schema(out).metadata[b"dpnoise.person"]) == "user"


# --- Persons -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "counts"),
    [
        ((), 100),
        (("--rows", 1), 1),
        (("--rows", 7), 7),
        (("--rows", 200), 100),
        (("--rows", 50, "--rows-per-group", 3), 6),
        (("--rows", 4, "--rows-per-group", 3), 4),
        (("--rows", 100, "--groups", 1), 50),
        (("--rows", 100, "--groups", 1, "--rows-per-group", 3), 3),
    ],
)
def test_no_more_rows_of_a_person_are_used(run: Run, tmp_path: Path, limits: tuple[object, ...], counts: int) -> None:
    path = write(tmp_path / "one.csv", *(f"ann,{region}" for region in ("North", "South") * 50), names="user,region")
    persons = ("--person", "user", *limits) if limits else ()
    found = answers(run, path, *persons, "--by", "region:North,South", "--query", "count")
    assert sum(row["count"] for row in found) == counts
    if not {"--groups", "--rows-per-group"} & set(limits):
        [row] = answers(run, path, *persons, "--query", "count:region")
        assert row["answer"] == counts


IDS = ["a", " a", "A", "1", "01", "1.0", '"x,y"', "é"]


@pytest.mark.parametrize(
    ("rows", "more", "used"),
    [
        ([f"{one},5" for one in IDS * 2], (), len(IDS)),  # texts are persons as they are spelled
        (["ann,5", "ann,5", ",5", ",5", '"",5', '"",5'], (), 1),
        (["ann,5", "ann,5", ",5", ",5", '"",5', '"",5'], ("--missing-person", "own"), 5),
        (["ann,5", "NA,5", "NA,5", '"NA",5'], ("--na", "NA"), 2),  # in quotes it is a person
        (["ann,5", "NA,5", "NA,5"], (), 2),
        (["ann,", "ann,", "ann,5", "ben,"], (), 1),  # missing values are left out before the choice
    ],
)
def test_whose_a_row_is(run: Run, tmp_path: Path, rows: list[str], more: tuple[str, ...], used: int) -> None:
    path = write(tmp_path / "visits.csv", *rows, names="user,spend")
    [row] = answers(run, path, "--person", "user", "--rows", 1, "--query", "count:spend", *more)
    assert row["answer"] == used


@pytest.mark.parametrize(
    ("ids", "used"),
    [
        (pa.array([1, 1, 2, None]), 2),
        (pa.array([2**53, 2**53 + 1, 2**53 + 1, None]), 2),
        (pa.array([1.0, 1.0, 2.0, float("nan")]), 2),
        (pa.array(["a", "a", "", None]).dictionary_encode(), 1),
        (pa.nulls(4), 0),
        (pa.array([True, False, True, None]), None),
        (pa.array([[1], [2], [3], [4]]), None),
    ],
)
def test_ids_of_parquet(run: Run, refuse: Refuse, tmp_path: Path, ids: pa.Array, used: int | None) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"user": ids}), path)
    asked = ("--person", "user", "--rows", 1, "--query", "count")
    if used is None:
        assert "it must be text or integer, which say whose a row is" in refuse(*ask(path, *asked))
    else:
        assert answers(run, path, *asked)[0]["answer"] == used


def test_a_file_without_rows(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "visits.csv")
    asked = ("--query", "count", "--query", "sum:spend:0,9", "--query", "histogram:region:North,South")
    found = answers(run, path, *PERSONS, *REGIONS, *asked)
    assert [row["value"] for row in found] == pytest.approx([0] * 12, abs=1e-3)


def test_the_promise_is_said_of_whom_it_is_for(run: Run, visits: Path) -> None:
    asked = ("--person", "user", "--rows", 1, "--query", "count", "--missing-person", "own")
    promise = "epsilon 0.5 for each person (user), at most 1 row of each, and for each row without a person, neighbours"
    assert f"\n{promise} by add/remove; " in run(*ask(visits, *asked, epsilon=0.5)).out
    assert "\nepsilon 0.5, neighbours by add/remove; " in run(*ask(visits, "--query", "count:user", epsilon=0.5)).out


# --- Payment -------------------------------------------------------------------------------------------------------


MISTAKES: list[tuple[tuple[object, ...], str]] = [
    (("--person", "user"), "--person and --rows go together"),
    (("--rows", 3), "--person and --rows go together"),
    (("--person", "usr", "--rows", 3), "has no column 'usr'"),
    (("--person", "user", "--rows", 0), "rows must be an integer from 1 to 1048576, got 0"),
    (("--person", "user", "--rows", 3, "--groups", 2), "--groups is for --by"),
    (("--missing-person", "own"), "--missing-person is for --person"),
    (("--person", "user", "--rows", 3, "--missing-person", "keep"), "'keep' is not one of 'drop', 'own'"),
    (("--by", "region"), "--by takes the public keys of its groups: --keys FILE with one on each line, or --by 'regi"),
    (("--by", "region:"), "keys must be one or more values that differ, got none"),
    (("--by", "region:North,North"), "keys must be one or more values that differ, got several of 'North'"),
    (("--by", "region:other", "--other"), "other must be False where 'other' is a key"),
    (("--by", "regions:North"), "has no column 'regions'"),
    (("--by", "region:a\udcff"), "keys must be a text that UTF-8 can hold"),
    (("--by", "region:North", "--rows-per-group", 1), "--rows-per-group is for --person"),
    (("--by", "region", "--keys", "North,South"), "--keys is a file with a key on each line, and there is none at 'N"),
    (("--by", "region", "--keys", "empty.txt"), "'empty.txt' is empty: it has a text on each line"),
    (("--by", "region", "--keys", "twice.txt"), "keys must be one or more values that differ, got several of 'North'"),
    (
        ("--by", "region:North", "--keys", "one.txt"),
        "with --keys all of --by is the name of a column: 'visits.csv'",
    ),
    (
        ("--by", "region", "--keys", "one.txt", "--query", "sum:regio:0,1"),
        "dpnoise: 'visits.csv' has no column",
    ),
    (("--keys", "twice.txt"), "--keys is for --by"),
    (("--other",), "--other is for --by"),
    (("--query", "count:user"), "two answers would have the name 'count_user': ask 'count:user' in another release"),
    (("--query", "mode:spend"), "--query must be one of count, sum, mean, "),
    (("--query", "meen:spend:0,1"), "got 'meen:spend:0,1' (did you mean 'mean'?)"),
    (("--query", "mean:spend"), "--query mean takes --bounds"),
    (("--query", "mean:spend:0"), "--query mean takes two bounds separated by a comma, numbers or dates as 2020-01-3"),
    (("--query", "mean:spend:0;1"), "numbers or dates as 2020-01-31, got '0;1'"),
    (("--query", "mean:spend:1,0"), "bounds must be two finite numbers, the lower one first"),
    (("--query", "mean:spend:2024-01-01,2024-01-02"), "--query mean takes bounds that are numbers, got 2024-01-01 and"),
    (("--query", "mean:spent:0,1"), "has no column 'spent'"),
    (("--query", "mean:region:0,1"), "column 'region' has a value that is no number; which one is private"),
    (("--query", "quantiles:spend:0,1"), "--query quantiles takes --q"),
    (("--query", "quantiles:day:2024-01-01T00:00,2024-12-31T12:00"), "--query quantiles takes --q"),
    (("--query", "quantiles:day:2024-01-01T00:00,2024-12-31T12:00:00.500"), "--query quantiles takes --q"),
    (("--query", "quantiles:spend:0,1:.5,x"), "--q must be numbers separated by commas, got '.5,x'"),
    (
        ("--query", "histogram:spend"),
        "--query histogram takes either --edges, or --domain or --domain-file, or --delta",
    ),
    (("--query", "histogram:spend:3,1"), "edges must be two or more numbers, each above the one before"),
    (("--query", "mean:spend:0,1", "--bounds", 0, 1), "--bounds is for a single --query"),
    (("--query", "keys:region", "--delta", 0.1), "--query keys must be the only question, got 2"),
    (("--query", "frequent:region", "--delta", 0.1), "--query frequent must be the only question, got 2"),
    (
        ("--relation", "substitute"),
        'query must have the relation "add/remove", got "substitute": the number of rows th',
    ),
    (("--epsilon", 0), "epsilon must be positive"),
    (("--epsilon", "inf"), "epsilon must be positive and finite"),
    (("--query", "count:spend", "--query", "count", "--epsilon", "-0.3"), "must be positive and finite, got -0.3"),
    (("--query", "count", "--epsilon", "1.5e-12"), "got 7.5e-13: the share of each of 2 questions, of 1.5e-12"),
    (("--level", 1), "level must be between 0 and 1"),
    (("--plot", "answers.txt"), "the plot must end in .png or .svg or .pdf"),
    (("--error-rows", 5), "--error-rows is for --dry-run"),
]


@pytest.mark.parametrize("case", range(len(MISTAKES)))
def test_a_mistake_costs_nothing_and_shows_nothing_private(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: int
) -> None:
    monkeypatch.chdir(tmp_path)
    mistake, message = MISTAKES[case]
    private = f"{PLANTED},{PLANTED},9,true,2024-01-01"
    path = write(Path("visits.csv"), *zip(*VISITS.values(), strict=True), private)
    Path("one.txt").write_text("North\n", encoding="ascii")
    Path("empty.txt").write_bytes(b"")
    Path("twice.txt").write_text("North\nNorth\n", encoding="ascii")
    with_persons = {"--person", "--rows", "--missing-person", "--rows-per-group"} & set(mistake)
    persons = () if with_persons else PERSONS
    ledger = Ledger("ledger.db", epsilon=9.0, person="user")
    asked = ask(path, *persons, "--query", "count:user", "--ledger", "ledger.db", epsilon=1)
    outcome = run(*asked, *mistake)
    assert (outcome.code, outcome.out) == (2, ""), outcome
    assert message in outcome.err
    assert PLANTED not in outcome.err
    assert outcome.err.count("\n") == 1
    assert ledger.entries() == []


def test_a_ledger_pays_for_its_persons_alone(run: Run, refuse: Refuse, visits: Path, tmp_path: Path) -> None:
    of_rows, of_persons = tmp_path / "rows.db", tmp_path / "persons.db"
    asked = ("--query", "count:user", "--query", "sum:spend:0,9")
    assert run(*ask(visits, *asked, "--ledger", of_rows, "--budget", 1, 0, epsilon=0.75)).code == 0
    assert run(*ask(visits, *asked, *PERSONS, "--ledger", of_persons, "--budget", 1, 0, epsilon=0.75)).code == 0
    message = refuse(*ask(visits, *asked, *PERSONS, "--ledger", of_rows, epsilon=0.1))
    assert message == f"'{of_rows}' is a ledger for rows, not the persons of 'user'"
    message = refuse(*ask(visits, *asked, "--ledger", of_persons, epsilon=0.1))
    assert message == f"'{of_persons}' is a ledger for persons (user), not for rows: ask with --person user and --rows"
    message = refuse(*ask(visits, *asked, "--person", "region", "--rows", 1, "--ledger", of_persons, epsilon=0.1))
    assert message == f"'{of_persons}' is a ledger for the persons of 'user', not the persons of 'region'"
    out = tmp_path / "answer.csv"
    message = refuse(*ask(visits, *asked, *PERSONS, "--ledger", of_persons, "-o", out, epsilon=0.5))
    assert "this would cost epsilon=0.5, delta=0.0, and what remains of the budget is epsilon=0.25" in message
    assert message.endswith("; nothing was spent or released")
    assert not out.exists()
    for path, person in ((of_rows, None), (of_persons, "user")):
        ledger = Ledger(path)
        assert (ledger.person, ledger.spent.epsilon, len(ledger.entries())) == (person, 0.75, 1)


def test_a_dry_run_reads_no_row_and_pays_nothing(run: Run, refuse: Refuse, tmp_path: Path) -> None:
    path, ledger = write(tmp_path / "visits.csv", "ann,North,no number,true,never"), tmp_path / "ledger.db"
    asked = ["--query", "count", "--query", "mean:spend:0,100", "--query", "median:day:2024-01-01,2024-12-31"]
    asked = ask(path, *PERSONS, *REGIONS, *asked, "--ledger", ledger, "--budget", 2, 0, "--level", 0.9, epsilon=1.5)
    assert "which one is private" in refuse(*asked)
    before = sorted(tmp_path.iterdir())
    outcome = run(*asked, "--dry-run", "--error-rows", 1000, "-o", tmp_path / "out.csv")
    assert outcome.code == 0, outcome.err
    assert sorted(tmp_path.iterdir()) == before
    noise = [
        queries.PerPerson(query, person="user", rows=9)
        for query in (
            queries.Count(epsilon=0.5),
            queries.Mean(bounds=(0, 100), epsilon=0.5),
            queries.Median(bounds=(dt.date(2024, 1, 1), dt.date(2024, 12, 31)), epsilon=0.5),
        )
    ]
    count, mean, median = (one.row_level for one in noise)
    record = run(*asked, "--dry-run", "--error-rows", 1000, "--json").json
    assert [one["question"] for one in record["questions"]] == ["count of rows", "mean of spend", "median of day"]
    assert [one["error"] for one in record["questions"]] == [count.error(0.9), mean.error(0.9, rows=1000), None]
    assert [one["rank_error"] for one in record["questions"]] == [None, None, median.rank_error(0.9)]
    assert (record["epsilon"], record["person"], record["rows"], record["dry_run"]) == (1.5, "user", 9, True)
    assert (record["spend"], record["remaining"]) == ("epsilon=1.5, delta=0.0", "epsilon=2.0, delta=0.0")
    assert "this would cost epsilon 1.5 for each person (user), at most 9 rows of each, neighbours" in outcome.out
    assert "; noise within the error for 1,000 rows with a probability of 90 %\n" in outcome.out
    assert outcome.out.endswith(
        "the ledger would spend epsilon=1.5, delta=0.0, and has epsilon=2.0, delta=0.0 left, which suffices\n"
        "no row was read, and nothing was spent or drawn\n"
    )
    assert "--error-rows bounds it for any number" in run(*asked, "--dry-run").out


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("row", ['ann,"open', "ann", "ann,\udcff", "a" * (1 << 20)])
def test_a_dry_run_does_not_depend_on_rows(run: Run, tmp_path: Path, ending: str, row: str) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(ending.join(["user,region", row, "ben,North", ""]).encode(errors="surrogateescape"))
    asked = ask(path, "--query", "count:region:North", epsilon=1.0)
    assert [run(*asked, "--dry-run").code, run(*asked).code] == [0, 2]


@pytest.mark.parametrize("query", ["frequent", "mean"])
def test_a_dry_run_of_other_mechanisms(run: Run, visits: Path, query: str) -> None:
    more = {
        "frequent": ("--column", "region", "--delta", 0.1, "--threshold", 9),
        "mean": ("--column", "spend", "--bounds", 0, 9, "--relation", "substitute", "--error-rows", 50),
    }[query]
    outcome = run(*ask(visits, "--query", query, *more, "--dry-run", epsilon=1.0))
    assert outcome.code == 0, outcome.err
    assert ("depends on their counts" in outcome.out) == (query == "frequent")
    assert ("noise within the error for 50 rows" in outcome.out) == (query == "mean")


def test_a_dry_run_has_the_noise_of_the_answers(run: Run, visits: Path) -> None:
    for limits, most in (((), 9), (("--rows-per-group", 2), 9), (("--rows-per-group", 2, "--groups", 1), 2)):
        asked = (*PERSONS, *REGIONS, *limits, "--query", "count")
        record = run(*ask(visits, *asked, "--dry-run", "--json", epsilon=0.5)).json
        assert [one["error"] for one in record["questions"]] == [queries.Count(epsilon=share_of(0.5, most)).error()]
        assert answers(run, visits, *asked, epsilon=0.5)[0]["error"] == record["questions"][0]["error"]


def test_a_dry_run_has_the_cost_in_the_measure_of_the_ledger(run: Run, visits: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "rho.db", rho=0.5, person="user")
    asked = ask(visits, *PERSONS, "--query", "count", "--query", "sum:spend:0,9", "--ledger", ledger.path, epsilon=0.3)
    outcome, record = run(*asked, "--dry-run"), run(*asked, "--dry-run", "--json").json
    assert ledger.entries() == []
    assert run(*asked).code == 0
    assert record["spend"] == ledger.spent.amounts()
    assert f"\nthe ledger would spend {record['spend']}, and has rho=0.5, delta=0.0 left, " in outcome.out


def test_a_dry_run_says_what_is_refused(refuse: Refuse, visits: Path, tmp_path: Path) -> None:
    asked = (*PERSONS, "--query", "count", "--dry-run")
    new = ("--ledger", tmp_path / "new.db", "--budget", 1, 0)
    assert "and what remains of the budget is epsilon=1.0" in refuse(*ask(visits, *asked, *new, epsilon=1.5))
    ledger = Ledger(tmp_path / "rho.db", rho=0.5, person="user")
    message = refuse(*ask(visits, *asked, "--ledger", ledger.path, epsilon=1.5))
    assert message.startswith("this would cost rho=0.95")
    assert message.endswith("; nothing was spent or released")
    assert "is a ledger for the persons of 'user', not the persons" in refuse(
        *ask(visits, "--person", "region", "--rows", 1, *asked[4:], "--ledger", ledger.path)
    )
    assert ledger.entries() == []
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--query", "count:error", "--by", "region:North"), "'count_error' must not name an answer or groups"),
        (("--by", "count:North"), "answers must not have the name of the column of the groups, 'count'"),
        (("--by", "value:North"), "column must not be 'value', which answers have a column of"),
        (("--by", "value:North", "--person", "value", "--rows", 1), "column must not be 'value', which answers have"),
        (
            ("--by", "region:a", "--ledger", "none/l.db", "--budget", 3, 0),
            "the directory 'none' does not exist",
        ),
        (("--by", "region:a", "--label", "a\udcff"), "label must be a text that UTF-8 can hold"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_names_are_refused_before_rows_are_read(
    refuse: Refuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[object, ...], message: str, dry: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "visits.csv", "North,1,2,no number", names="region,count,error,value")
    read: list[object] = []
    monkeypatch.setattr("dpnoise.cli.tables.read", lambda *_: read.append(0))
    assert message in refuse(*ask(path, "--query", "count", *more, *["--dry-run"] * dry, epsilon=1.0))
    assert not read


# --- Charts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_a_chart_of_the_first_and_the_last_day(run: Run, tmp_path: Path, day: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    path = write(tmp_path / "days.csv", *[f"{day},1"] * 9, names="day,x")
    question = "quantiles:day:0001-01-01,9999-12-31:.4,.6"
    for number, more in enumerate([(), ("--by", "x:1,2")]):
        chart = tmp_path / f"{number}.png"
        outcome = run(*ask(path, "--query", question, *more, "--plot", chart))
        assert (outcome.code, chart.exists()) == (0, True), outcome.err


def test_a_font_that_lacks_characters(run: Run, visits: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    for suffix in (".png", ".svg", ".pdf"):  # matplotlib's warning would be an error in these tests
        chart = tmp_path / f"chart{suffix}"
        assert run(*ask(visits, "--by", "region:\u5317\u4eac", "--query", "count", "--plot", chart)).code == 0


def test_a_chart_of_answers(run: Run, refuse: Refuse, visits: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    chart, ledger = tmp_path / "answers.svg", tmp_path / "ledger.db"
    asked = (*PERSONS, *REGIONS, "--query", "count", "--query", "mean:spend:0,100", "--plot", chart)
    assert run(*ask(visits, *asked, "--ledger", ledger, "--budget", 1, 0, epsilon=0.5)).code == 0
    assert "<svg" in chart.read_text(encoding="utf-8")
    message = refuse(*ask(visits, *asked, "--ledger", ledger, epsilon=0.5))
    assert message == f"'{chart}' is there already, and an answer replaces no file: give another name"
    assert Ledger(ledger).spent.epsilon == 0.5


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "answers.png"), "answers.png: No space left on device"),
        (ValueError(PLANTED), "the chart 'answers.png': ValueError"),
    ],
)
def test_a_chart_that_cannot_be_written_is_paid_for(
    run: Run, visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(tables.Release, "plot", fail)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "answers.json"
    asked = (*PERSONS, "--query", "count", "--plot", "answers.png", "-o", out, "--ledger", "l.db", "--budget", 1, 0)
    outcome = run(*ask(visits, *asked, epsilon=0.5))
    message = f"dpnoise: {said}; the answer is in '{out}' and was printed, and "
    assert (outcome.code, message in outcome.err) == (6, True)
    assert "count of rows" in outcome.out
