"""Labels are read as values of the column, or refused before payment: by the command line as by Python."""

import csv
import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local, queries
from dpnoise.accounting import Ledger
from dpnoise.cli import kinds

# So much that noise is smaller than what is compared.
SURE = 1e9
DAY = dt.date(2020, 1, 31)
NOON = dt.datetime(2020, 1, 31, 12)


BOOLEANS = pa.array([True] * 3 + [False] * 2 + [None])
INTEGERS = pa.array([1] * 3 + [2] * 2 + [None, -7])
DOUBLES = pa.array([1.0] * 3 + [2.5] * 2 + [None, float("nan"), -0.0, 0.0])
DECIMALS = pa.array([Decimal("1.50")] * 3 + [Decimal("2.00"), None])
DATES = pa.array([DAY] * 3 + [None])
TIMES = pa.array([NOON] * 3 + [None])
TEXTS = pa.array(["1", "01", "True", "true", "red", None])
LARGE = pa.array([2**64 - 1] * 3 + [2**63], pa.uint64())

REFUSED = None

# A column; how CSV spells its values; labels, as texts; their counts in Parquet and in CSV; and the same labels for
# Python, with the counts there.
LABELS: list[tuple[pa.Array, dict[Any, str], str, Any, Any, list[Any], Any]] = [
    (BOOLEANS, {True: "True", False: "False"}, "True,False", [3, 2], [3, 2], [True, False], [3, 2]),
    (BOOLEANS, {True: "true", False: "false"}, "False,True", [2, 3], [2, 3], [False, True], [2, 3]),
    (BOOLEANS, {True: "TRUE", False: "FALSE"}, "true,false", [3, 2], [3, 2], [True, False], [3, 2]),
    (BOOLEANS, {True: "True", False: "False"}, "true,x", REFUSED, [3, 0], [True, "x"], REFUSED),
    (BOOLEANS, {}, "1,0", REFUSED, [0, 0], [1, 0], REFUSED),
    (BOOLEANS, {}, "yes,no", REFUSED, [0, 0], ["yes", "no"], REFUSED),
    (BOOLEANS, {}, "true,True", REFUSED, [0, 3], [True, True], REFUSED),
    (INTEGERS, {}, "1,2", [3, 2], [3, 2], [1, 2], [3, 2]),
    (INTEGERS, {}, "01,2.0", [3, 2], [3, 2], [1, 2.0], [3, 2]),
    (INTEGERS, {1: "1.0", 2: "2.0", -7: "-7.0"}, "-7,2,1", [1, 2, 3], [1, 2, 3], [-7, 2, 1], [1, 2, 3]),
    (INTEGERS, {}, "red,green", REFUSED, [0, 0], ["red", "green"], REFUSED),
    (INTEGERS, {}, "1,red", REFUSED, [3, 0], [1, "red"], REFUSED),
    (INTEGERS, {}, "1.5,2", REFUSED, [0, 2], [1.5, 2], [0, 2]),
    (INTEGERS, {}, "99999999999999999999,1", [0, 3], [0, 3], [99999999999999999999, 1], [0, 3]),
    (INTEGERS, {}, "1,01", REFUSED, [3, 0], [1, 1], REFUSED),
    (INTEGERS.dictionary_encode(), {}, "1,2", [3, 2], [3, 2], [1, 2], [3, 2]),
    (LARGE, {}, "18446744073709551615,-1", [3, 0], [3, 0], [2**64 - 1, -1], [3, 0]),
    (INTEGERS.cast(pa.int8()), {}, "300,1", [0, 3], [0, 3], [300, 1], [0, 3]),
    (DOUBLES, {}, "1,2.5", [3, 2], [3, 2], [1, 2.5], [3, 2]),
    (DOUBLES, {}, "1,0", [3, 2], [3, 2], [1, 0], [3, 2]),
    (DOUBLES, {}, "-0.0,1.0", [2, 3], [2, 3], [-0.0, 1.0], [2, 3]),
    (DOUBLES, {}, "red,1", REFUSED, [0, 3], ["red", 1], REFUSED),
    (DOUBLES, {}, "nan,1", REFUSED, [1, 3], [float("nan"), 1], REFUSED),
    (DOUBLES[:5].cast(pa.float16()), {}, "1,2.5", [3, 2], [3, 2], [1, 2.5], [3, 2]),
    (DECIMALS, {}, "1.50,2.00", [3, 1], [3, 1], [Decimal("1.5"), Decimal(2)], [3, 1]),
    (DECIMALS, {}, "1.5,2", [3, 1], [3, 1], [1.5, 2], [3, 1]),
    (DATES, {}, "2020-01-31,2020-02-01", [3, 0], [3, 0], [DAY, NOON], REFUSED),
    (DATES, {}, "31.1.2020,x", REFUSED, [0, 0], ["31.1.2020", "x"], REFUSED),
    (TIMES, {}, "2020-01-31 12:00:00,2020-01-31", [3, 0], [3, 0], [NOON, DAY], REFUSED),
    (TEXTS, {}, "red,blue", [1, 0], [1, 0], ["red", "blue"], [1, 0]),
    (TEXTS, {}, "1,01", [1, 1], [1, 1], ["1", "01"], [1, 1]),
    (TEXTS, {}, "True,red", [1, 1], [2, 1], ["True", "red"], [1, 1]),
    (TEXTS, {}, "1,2", [1, 0], [2, 0], [1, 2], REFUSED),
    (TEXTS.dictionary_encode(), {}, "red,true", [1, 1], [1, 2], ["red", "true"], [1, 1]),
    (pa.nulls(3), {}, "1,x", [0, 0], [0, 0], ["1", "x"], [0, 0]),
    (pa.array([b"a"]), {b"a": "a"}, "a,b", REFUSED, [1, 0], ["a", "b"], REFUSED),
    (pa.array([dt.time(12)]), {}, "12:00:00,x", REFUSED, [1, 0], [dt.time(12), dt.time(13)], REFUSED),
    (pa.array([[1]]), {}, "1,[1]", REFUSED, [0, 1], [1, 2], REFUSED),
]  # fmt: skip


def write(path: Path, column: pa.Array, spelled: dict[Any, str]) -> Path:
    """Write a column as Parquet, or as CSV beside another column."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"c": column}), path)
        return path
    with path.open("w", encoding="utf-8", newline="") as file:
        texts = ["" if value is None else spelled.get(value, value) for value in map(hashable, column.to_pylist())]
        csv.writer(file).writerows([("id", "c"), *enumerate(texts)])
    return path


def hashable(value: Any) -> Any:
    return str(value) if isinstance(value, list) else value


def ask(path: Path, query: str, *more: object) -> list[object]:
    return ["release", path, "--column", "c", "--epsilon", SURE, "--json", "--query", query, *more]


@pytest.mark.parametrize(("column", "spelled", "labels", "parquet", "text", "domain", "python"), LABELS)
def test_a_histogram(
    run: Run,
    refuse: Refuse,
    tmp_path: Path,
    column: pa.Array,
    spelled: dict[Any, str],
    labels: str,
    parquet: list[int] | None,
    text: list[int] | None,
    domain: list[Any],
    python: list[int] | None,
) -> None:
    """The same counts of the same labels, or a refusal that costs nothing."""
    ledger = Ledger(tmp_path / "ledger.db", epsilon=2 * SURE)
    for suffix, expected in ((".parquet", parquet), (".csv", text)):
        path = write(tmp_path / f"in{suffix}", column, spelled)
        asked = ask(path, "histogram", "--domain", labels, "--ledger", ledger.path)
        if expected is None:
            assert "column 'c'" in refuse(*asked)
        else:
            answers = run(*asked).json["answers"]
            assert [row["group"] for row in answers] == labels.split(",")
            assert [row["answer"] for row in answers] == expected
            for label, number in zip(labels.split(","), expected, strict=True):
                if labels in ("1,01", "true,True"):
                    continue  # a field is the label that is spelled like it, if there is one
                assert run(*ask(path, "count", "--value", label)).json["answers"][0]["answer"] == number
    assert len(ledger.entries()) == sum(expected is not None for expected in (parquet, text))
    if python is None:
        with pytest.raises((TypeError, ValueError), match=r"^column must be|^domain must be"):
            queries.Histogram(domain=domain, epsilon=SURE).release(column)
    else:
        assert list(queries.Histogram(domain=domain, epsilon=SURE).release(column).values()) == python


# A column, how many of its rows are not missing, and whether Python counts them, too: a struct is a table there.
PRESENT: list[tuple[pa.Array, int, bool]] = [
    (INTEGERS, 6, True),
    (LARGE, 4, True),
    (DOUBLES, 7, True),
    (DOUBLES.cast(pa.float32()), 7, True),
    (DOUBLES.cast(pa.float16()), 7, True),
    (DECIMALS, 4, True),
    (DATES, 3, True),
    (TIMES, 3, True),
    (TIMES.cast(pa.timestamp("ns", "Europe/Berlin")), 3, True),
    (pa.array([dt.time(12), None]), 1, True),
    (pa.array([5, None], pa.duration("s")), 1, True),
    (pa.array([b"a\xff", b"", None]), 2, True),
    (pa.array([b"ab", None], pa.binary(2)), 1, True),
    (TEXTS, 5, True),
    (TEXTS.dictionary_encode(), 5, True),
    (pa.array([[1], [], None]), 2, True),
    (pa.array([{"a": None}, None]), 1, False),
    (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), 1, True),
    (pa.nulls(3), 0, True),
]


@pytest.mark.parametrize(("column", "number", "in_python"), PRESENT, ids=[str(column.type) for column, *_ in PRESENT])
def test_a_count_of_any_column(run: Run, tmp_path: Path, column: pa.Array, number: int, in_python: bool) -> None:
    path = write(tmp_path / "in.parquet", column, {})
    assert run(*ask(path, "count")).json["answers"][0]["answer"] == number
    if in_python:
        assert queries.Count(epsilon=SURE).release(column) == number


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("spelled", [{True: "True", False: "False"}, {True: "true", False: "false"}])
def test_booleans_are_one_thing(run: Run, tmp_path: Path, suffix: str, spelled: dict[Any, str]) -> None:
    """A condition that is counted, and numbers 0 and 1: in both kinds of files as in Python."""
    path = write(tmp_path / f"in{suffix}", BOOLEANS, spelled)
    for column in (BOOLEANS, BOOLEANS.to_pylist()):
        assert queries.Count(epsilon=SURE).release(column) == 3
    assert queries.Sum(bounds=(0, 1), epsilon=SURE).release(BOOLEANS) == pytest.approx(3, abs=1e-3)
    for query, more in (("count", ()), ("count", ("--value", "True")), ("sum", ("--bounds", 0, 1))):
        assert run(*ask(path, query, *more)).json["answers"][0]["answer"] == pytest.approx(3, abs=1e-3)
    asked = ["perturb", path, "--column", "c", "--protocol", "hierarchical", "--k", 2, "--epsilon", 1, "--missing", 0]
    assert run(*asked, "-o", tmp_path / "reports.parquet", "--json").json["rows"] == 6


CENTS = [f"{i}345678.{i}" for i in range(10, 99)]

# Values as Parquet has them and as CSV spells them: the nearest doubles, so the same answers to all questions.
NUMBERS: list[tuple[pa.Array, list[str]]] = [
    (pa.array([Decimal("0.1"), Decimal("123456789012345678.9"), None]), ["0.1", "123456789012345678.9", ""]),
    (pa.array(map(Decimal, CENTS), pa.decimal128(38, 2)), CENTS),
    (pa.array([2**53 + 1, 2**63 - 1, -(2**63)]), [str(2**53 + 1), str(2**63 - 1), str(-(2**63))]),
    (LARGE, [str(2**64 - 1)] * 3 + [str(2**63)]),
    (BOOLEANS, ["True"] * 3 + ["False"] * 2 + [""]),
    (pa.array([0.1, 1e300, None]), ["0.1", "1e300", ""]),
]


@pytest.mark.parametrize(("column", "texts"), NUMBERS, ids=[str(column.type) for column, _ in NUMBERS])
def test_numbers_are_the_same_in_csv_and_parquet(column: pa.Array, texts: list[str]) -> None:
    fields = pa.array([text or None for text in texts], pa.large_string())
    expected = [None if value is None else float(value) for value in column.to_pylist()]
    assert kinds.NUMBERS.of(column, "c").to_pylist() == expected
    assert kinds.NUMBERS.parsed(fields, "c").to_pylist() == expected


def test_arrows_own_cast_of_decimals_is_not_exact() -> None:
    # Positive control of the test above.
    column = NUMBERS[1][0]
    assert column.cast(pa.float64()).to_pylist() != [float(value) for value in column.to_pylist()]


# A column, the values that are found in it, and those that Python finds.
FOUND: list[tuple[pa.Array, dict[str, int] | None, dict[Any, int] | None]] = [
    (BOOLEANS, {"false": 2, "true": 3}, {False: 2, True: 3}),
    (INTEGERS, {"-7": 1, "1": 3, "2": 2}, {-7: 1, 1: 3, 2: 2}),
    (LARGE, {"9223372036854775808": 1, "18446744073709551615": 3}, {2**63: 1, 2**64 - 1: 3}),
    (DOUBLES, {"0": 2, "1": 3, "2.5": 2}, {0: 2, 1: 3, 2.5: 2}),
    (DOUBLES.cast(pa.float32()), {"0": 2, "1": 3, "2.5": 2}, {0: 2, 1: 3, 2.5: 2}),
    (DOUBLES.cast(pa.float16()), {"0": 2, "1": 3, "2.5": 2}, {0: 2, 1: 3, 2.5: 2}),
    (TEXTS, {"01": 1, "1": 1, "True": 1, "red": 1, "true": 1}, {"01": 1, "1": 1, "True": 1, "red": 1, "true": 1}),
    (DECIMALS, {"1.50": 3, "2.00": 1}, {1.5: 3, 2: 1}),
    (DATES, {"2020-01-31": 3}, REFUSED),
    (TIMES, {"2020-01-31 12:00:00.000000": 3}, REFUSED),
    (pa.nulls(3), {}, {}),
    (pa.array([dt.time(12)]), REFUSED, REFUSED),
    (pa.array([5], pa.duration("s")), REFUSED, REFUSED),
    (pa.array([[1]]), REFUSED, REFUSED),
    (pa.array([{"a": 1}]), REFUSED, REFUSED),
    (pa.array([b"a"]), REFUSED, {b"a": 1}),
]
FREQUENT = ("--threshold", 1, "--sample-rate", 1 - 2.0**-53)


@pytest.mark.parametrize(("column", "found", "python"), FOUND, ids=[str(column.type) for column, *_ in FOUND])
def test_values_that_are_found(
    run: Run,
    refuse: Refuse,
    tmp_path: Path,
    column: pa.Array,
    found: dict[str, int] | None,
    python: dict[Any, int] | None,
) -> None:
    column = pa.concat_arrays([column] * 4)  # a single row may not be found
    path = write(tmp_path / "in.parquet", column, {})
    histogram = ask(path, "histogram", "--delta", 0.999999)
    frequent = ["release", path, "--column", "c", "--json", "--query", "frequent", "--epsilon", 32, *FREQUENT]
    for asked in (histogram, frequent):
        if found is None:
            message = "it must be text, number, boolean, date, timestamp or categorical: cast it to text"
            assert message in refuse(*asked)
        else:
            answers = {row["group"]: row["answer"] for row in run(*asked).json["answers"]}
            assert answers == pytest.approx({value: 4 * number for value, number in found.items()})
    query = queries.StabilityHistogram(epsilon=SURE, delta=0.999999)
    if python is None:
        with pytest.raises((TypeError, ValueError), match=r"^column must"):
            query.release(column)
    else:
        assert query.release(column) == {value: 4 * number for value, number in python.items()}


# A column, the domain, which value stands for missing ones, and the counts, if all values are in the domain.
PERTURBED: list[tuple[pa.Array, dict[Any, str], str, str | None, list[int] | None]] = [
    (BOOLEANS[:5], {True: "True", False: "False"}, "True,False", None, [3, 2]),
    (BOOLEANS[:5], {True: "TRUE", False: "false"}, "false,true", None, [2, 3]),
    (BOOLEANS, {True: "True", False: "False"}, "true,false,no answer", "no answer", [3, 2, 1]),
    (INTEGERS, {1: "1.0"}, "01,2.0,-7,no answer", "no answer", [3, 2, 1, 1]),
    (INTEGERS, {}, "1,2,3,no answer", "no answer", REFUSED),
    (INTEGERS, {}, "red,green", "red", REFUSED),
    (DOUBLES[:6], {}, "1,2.50,no answer", "no answer", [3, 2, 1]),
    (DATES, {}, "2020-01-31,no answer", "no answer", [3, 1]),
    (TEXTS[:5], {}, "true,True,01,1,red", None, [1, 1, 1, 1, 1]),
]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize(("column", "spelled", "domain", "missing", "counts"), PERTURBED)
def test_labels_of_reports(
    run: Run,
    refuse: Refuse,
    tmp_path: Path,
    suffix: str,
    column: pa.Array,
    spelled: dict[Any, str],
    domain: str,
    missing: str | None,
    counts: list[int] | None,
) -> None:
    """Reports are about the labels as they were given; one of them may stand for missing values."""
    path, reports = write(tmp_path / f"in{suffix}", column, spelled), tmp_path / "reports.parquet"
    labels = tmp_path / "domain.txt"
    labels.write_text(domain.replace(",", "\n") + "\n", encoding="utf-8")
    asked = ["perturb", path, "--column", "c", "--protocol", "grr", "--epsilon", 30, "--domain-file", labels]
    asked += ["-o", reports, *(() if missing is None else ("--missing", missing))]
    if counts is None:
        assert "must all be in the domain" in refuse(*asked)
        return
    assert run(*asked).code == 0
    estimates = run("estimate", reports, "--json").json["estimates"]
    assert {row["value"]: row["count"] for row in estimates} == pytest.approx(
        dict(zip(domain.split(","), counts, strict=True)), abs=1e-3
    )


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_whole_numbers(run: Run, tmp_path: Path, suffix: str) -> None:
    """Integers beside a missing value are doubles in many files."""
    path = write(tmp_path / f"in{suffix}", pa.array([1.0, None, 3.0]), {1.0: "1.0", 3.0: " 03.00"})
    asked = ["perturb", path, "--column", "c", "--protocol", "hierarchical", "--k", 4, "--epsilon", 1, "--missing", 0]
    assert run(*asked, "-o", tmp_path / "reports.parquet", "--json").json["rows"] == 3


def test_unsigned_integers_do_not_wrap_around() -> None:
    protocol = local.OptimizedUnaryEncoding(domain=[-1, 7], epsilon=1.0)
    for values in (np.array([7, 2**64 - 1], np.uint64), [2**64 - 1], pa.array([2**64 - 1], pa.uint64())):
        with pytest.raises(ValueError, match=r"^values must all be in the domain \(-1, 7\); which"):
            protocol.perturb(values)


@pytest.mark.parametrize("labels", ['red,"green', "red\ngreen,blue", 'red,"green"er', 'red,"' + "x" * 200_000 + '"'])
@pytest.mark.parametrize("option", ["--domain", "--candidates"])
def test_labels_that_are_no_line_of_csv(refuse: Refuse, tmp_path: Path, labels: str, option: str) -> None:
    path = write(tmp_path / "in.csv", TEXTS, {})
    asked = ask(path, "histogram") if option == "--domain" else ["estimate", write(tmp_path / "in.parquet", TEXTS, {})]
    assert f"{option} must be texts separated by commas as in CSV, got" in refuse(*asked, option, labels)
