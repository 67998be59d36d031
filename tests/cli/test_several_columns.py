"""Several columns of each person: reports of all attributes by one command, and estimates of each."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local
from dpnoise.cli.protocols import MEANS

TRUTH = {"colour": {"red": 6_000, "green": 3_000, "blue": 0}, "city": {"Rome": 4_500, "Oslo": 4_500}}
N = 9_000
COLUMNS = ["--column", "colour", "--domain", "red,green,blue", "--column", "city", "--domain", "Rome,Oslo"]
PLANTED = "xyzzy-7531"


@pytest.fixture(params=["csv", "parquet"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of people with the two attributes of `TRUTH`, which depend on each other."""
    table = pa.table({name: [value for value, n in counts.items() for _ in range(n)] for name, counts in TRUTH.items()})
    path = tmp_path / f"people.{request.param}"
    if request.param == "parquet":
        pq.write_table(table, path, row_group_size=2_500)
    else:
        pa.csv.write_csv(table, path)
    return path


@pytest.fixture
def perturbed(run: Run, people: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a file of reports about both attributes."""

    def make(name: str, *more: object, epsilon: float = 4.0) -> Path:
        path = tmp_path / name
        asked = ["perturb", people, *COLUMNS, "--protocol", "oue", "--epsilon", epsilon, "-o", path]
        outcome = run(*asked, *more, "--json")
        assert outcome.code == 0, outcome.err
        assert (outcome.json["rows"], outcome.json["column"]) == (N, list(TRUTH))
        assert outcome.json["domain"] == {name: list(counts) for name, counts in TRUTH.items()}
        assert 0.999 * epsilon <= outcome.json["epsilon"] <= epsilon == outcome.json["requested_epsilon"]
        return path

    return make


@pytest.mark.parametrize(("more", "scheme"), [([], "sampled"), (["--split"], "split")])
def test_from_columns_to_estimates(
    run: Run, perturbed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, more: list[str], scheme: str
) -> None:
    monkeypatch.setattr("dpnoise.cli.tables.batch_rows", lambda _bytes: 777)
    path = perturbed("reports.parquet", *more)
    record = run("estimate", path, "--json", "--level", 0.9, "--simultaneous").json
    assert (record["protocol"], record["n"], record["rejected"]) == (scheme, N, 0)
    assert (record["level"], record["simultaneous"]) == (0.9, True)
    found = [(row["attribute"], row["value"]) for row in record["estimates"]]
    assert found == [(name, value) for name, counts in TRUTH.items() for value in counts]
    for row in record["estimates"]:
        # Far beyond what a sum of 9000 bounded reports does once in 10**9 times; labels that slipped would show.
        assert abs(row["count"] - TRUTH[row["attribute"]][row["value"]]) < 9 * row["standard_error"] < 1_400
    table = run("estimate", path).out
    assert "Estimated counts with 95 % intervals" in table
    assert f"{N:,} reports, 0 rejected; epsilon " in table


def test_the_reports_are_those_of_the_library(run: Run, perturbed: Callable[..., Path]) -> None:
    table = pq.read_table(perturbed("reports.parquet"))
    protocol = local.Sampled.from_json(
        table.schema.metadata[b"dpnoise.protocol"].decode(),
        domain=json.loads(table.schema.metadata[b"dpnoise.domain"]),
    )
    reports = np.frombuffer(b"".join(table["report"].to_pylist()), np.uint8).reshape(N, protocol.report_bytes)
    estimate = protocol.estimate(reports)
    assert list(estimate) == list(TRUTH)
    assert estimate["city"].domain == ("Rome", "Oslo")


def test_a_split_shares_epsilon(run: Run, perturbed: Callable[..., Path]) -> None:
    protocol = pq.read_schema(perturbed("reports.parquet", "--split", epsilon=1.0)).metadata[b"dpnoise.protocol"]
    parts = local.Split.from_json(protocol.decode()).attributes.values()
    assert [part.requested_epsilon for part in parts] == [0.5, 0.5]


def test_states_and_other_files(run: Run, refuse: Refuse, perturbed: Callable[..., Path], tmp_path: Path) -> None:
    first, second, other = perturbed("1.parquet"), perturbed("2.parquet"), perturbed("3.parquet", "--split")
    whole = run("estimate", first, second, "--json").json
    state, out = tmp_path / "state.json", tmp_path / "out.csv"
    run("estimate", first, "--state", state)
    record = run("estimate", second, other, "--state", state, "--json", "-o", out)
    assert (record.code, record.json["n"], record.json["files"]) == (3, 2 * N, 2)
    assert f"'{other}' is of another collection than '{state}'" in record.err
    assert record.json["estimates"] == whole["estimates"]
    assert out.read_text(encoding="utf-8").startswith("attribute,value,count,standard_error,lower,upper\ncolour,red,")
    assert run("estimate", "--state", state, "-o", out).code == 0  # it replaces the estimate
    kind = "Sampled"
    assert refuse("estimate", first, "--candidates", "red") == f"--candidates does not apply to reports of {kind}"
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    message = f"--plot draws counts of one column with intervals, which {kind} does not have"
    assert refuse("estimate", first, "--plot", tmp_path / "chart.png") == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"dpnoise.protocol": b'{"attributes":3}'}, " cannot be used: "),
        ({b"dpnoise.domain": b"["}, " cannot be used: "),
        (
            {b"dpnoise.domain": b"[1]"},
            " cannot be used: the metadata 'dpnoise.domain' cannot be used: domain must be a mapping by the names of ",
        ),
        (
            {b"dpnoise.domain": b'{"colour":["a","b"]}'},
            " cannot be used: the metadata 'dpnoise.domain' cannot be used: attribute 'colour': domain must be of 3 ",
        ),
    ],
)
def test_damaged_metadata(
    refuse: Refuse, perturbed: Callable[..., Path], change: dict[bytes, bytes], message: str
) -> None:
    path = perturbed("reports.parquet")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **change}), path)
    assert f"'{path}'{message}" in refuse("estimate", path)


def test_attributes_that_are_not_counted_and_other_columns(
    refuse: Refuse, perturbed: Callable[..., Path], tmp_path: Path
) -> None:
    path = perturbed("reports.parquet")
    table = pq.read_table(path)
    schema = table.schema.metadata
    pq.write_table(pa.table({"report": [b"\1"]}).replace_schema_metadata(schema), path)
    assert refuse("estimate", path).startswith(f"'{path}' cannot be used: its column must be report, of ")
    means = {name: local.DuchiMean(epsilon=1.0) for name in TRUTH}
    changed = {b"dpnoise.protocol": local.Split(attributes=means).to_json()}
    pq.write_table(table.replace_schema_metadata(changed), path)
    assert refuse("estimate", path) == "attribute 'colour' is not counted by value: estimate it from Python"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [*COLUMNS[:-2], "--protocol", "oue"],
            "give --domain or --domain-file once for each --column, in the same order: got 2 of columns and 1 of "
            "domains",
        ),
        (
            [*COLUMNS[:4], *COLUMNS[:4], "--protocol", "oue"],
            "--split and several of --column are for different columns, got 'colour', 'colour'",
        ),
        (
            [*COLUMNS[:4], "--protocol", "oue", "--split"],
            "--split and several of --column are for different columns, got 'colour'",
        ),
        ([*COLUMNS, "--protocol", "pm"], "--protocol pm takes --epsilon, and no --domain"),
        (
            [*COLUMNS, "--protocol", "oue", "--bounds", 0, 1],
            f"--bounds applies to the protocols {', '.join(MEANS)} alone",
        ),
        (
            [*COLUMNS, "--protocol", "oue", "--missing", "Rome"],
            "--missing must be a value of the domain ('red', 'green', 'blue'), got 'Rome'",
        ),
    ],
)
def test_what_several_columns_need(
    refuse: Refuse, people: Path, tmp_path: Path, arguments: list[object], message: str
) -> None:
    assert refuse("perturb", people, *arguments, "--epsilon", 1, "-o", tmp_path / "out.parquet") == message
    assert not (tmp_path / "out.parquet").exists()


def test_a_split_needs_an_epsilon(refuse: Refuse, people: Path, tmp_path: Path) -> None:
    asked = [*COLUMNS, "--protocol", "ue", "--p", 0.75, "--q", 0.25, "--split", "-o", tmp_path / "out.parquet"]
    assert refuse("perturb", people, *asked) == "--split shares --epsilon, which must be given"


def test_no_message_shows_a_value(refuse: Refuse, tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    asked = ["perturb", source, *COLUMNS, "--protocol", "oue", "--epsilon", 1, "-o", tmp_path / "out.parquet"]
    source.write_text(f"colour,city\nred,Rome\nblue,{PLANTED}\n", encoding="utf-8")
    assert refuse(*asked) == (
        "the values of column 'city' must all be in the domain ('Rome', 'Oslo'); which value is not, and where, is "
        "private and not shown; for empty fields of CSV --missing names a value"
    )
    pq.write_table(pa.table({"colour": ["red", "blue"], "city": ["Rome", None]}), source.with_suffix(".parquet"))
    asked[1] = source.with_suffix(".parquet")
    message = (
        "column 'city' has a missing value; name one of the domain ('Rome', 'Oslo') to stand for it with --missing"
    )
    assert refuse(*asked) == message
    assert not (tmp_path / "out.parquet").exists()


def test_domains_in_files(run: Run, people: Path, tmp_path: Path) -> None:
    arguments: list[Any] = []
    for name, counts in TRUTH.items():
        file = tmp_path / f"{name}.txt"
        file.write_text("\n".join(counts) + "\n", encoding="utf-8")
        arguments += ["--column", name, "--domain-file", file]
    out = tmp_path / "out.parquet"
    asked = ["perturb", people, *arguments, "--protocol", "grr", "--epsilon", 1, "-o", out]
    assert run(*asked).out.startswith(f"{N:,} reports in {out}: sampled of grr about 2 columns, epsilon ")
