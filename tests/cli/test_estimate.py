"""``dpnoise estimate``: from values to reports to estimates near the truth, and every refusal."""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.shared import Refuse, Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local

Tolerance = Callable[[int, float, float], float]

TRUTH = {"red": 9_000, "green": 5_000, "": 2_500, "deep blue": 1_500}  # of the fixture `values`
PROTOCOLS = {
    "sue": ["--protocol", "sue", "--epsilon", 2],
    "oue": ["--protocol", "oue", "--epsilon", 2],
    "ue": ["--protocol", "ue", "--p", 0.75, "--q", 0.25],
}
PROTOCOL = local.OptimizedUnaryEncoding(domain=list(TRUTH), epsilon=2.0)  # "oue"
COLUMNS = ["value", "count", "standard_error", "lower", "upper"]


@pytest.fixture
def reports(run: Run, colours_csv: Path, tmp_path: Path) -> Path:
    """Return a file of OUE reports about the values of `colours_csv`."""
    path = tmp_path / "reports.parquet"
    assert run("perturb", colours_csv, "--column", "colour", *PROTOCOLS["oue"], "--domain", ",".join(TRUTH),
               "-o", path).code == 0  # fmt: skip
    return path


def rewritten(
    source: Path, target: Path, column: Any = None, metadata: dict[bytes, bytes | None] | None = None
) -> Path:
    """Copy a file of reports with another column, or with metadata changed (None: left out)."""
    table = pq.read_table(source)
    changed = {**table.schema.metadata, **(metadata or {})}
    new = pa.table({"report": table["report"] if column is None else column})
    pq.write_table(new.replace_schema_metadata({k: v for k, v in changed.items() if v is not None}), target)
    return target


def read_estimates(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an estimate, whatever the format."""
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    elif path.suffix == ".json":
        rows = json.loads(path.read_text(encoding="utf-8"))["estimates"]
    else:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                {"value": row.pop("value"), **{k: float(v) for k, v in row.items()}} for row in csv.DictReader(file)
            ]
    return rows


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("source_suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_estimates_are_near_the_truth(
    run: Run, tmp_path: Path, colours_csv: Path, values: list[str], tolerance: Tolerance,
    protocol: str, source_suffix: str, suffix: str,
) -> None:  # fmt: skip
    source = colours_csv
    if source_suffix == ".parquet":
        source = tmp_path / "colours.parquet"
        pq.write_table(pa.table({"colour": pa.array(values).dictionary_encode()}), source, row_group_size=4_000)
    made, out = tmp_path / "reports.parquet", tmp_path / f"estimate{suffix}"
    record = run("perturb", source, "--column", "colour", *PROTOCOLS[protocol], "--domain", ",".join(TRUTH),
                 "-o", made, "--json").json  # fmt: skip
    outcome = run("estimate", made, "-o", out)
    assert outcome.code == 0
    assert outcome.err == ""
    assert "18,000 reports, 0 rejected; epsilon " in outcome.out
    rows = read_estimates(out)
    assert [list(row) for row in rows] == [COLUMNS] * 4
    assert [row["value"] for row in rows] == list(TRUTH)
    off = tolerance(18_000, record["p"], record["q"])
    for row in rows:
        assert abs(row["count"] - TRUTH[row["value"]]) < off
        assert row["lower"] < row["count"] < row["upper"]
        assert 0 < row["standard_error"] < off
    # Positive control: labels that had slipped by one place would be noticed.
    assert max(abs(row["count"] - count) for row, count in zip(rows[1:], TRUTH.values(), strict=False)) > off


def test_randomised_response(run: Run, tmp_path: Path, tolerance: Tolerance) -> None:
    source, made = tmp_path / "in.parquet", tmp_path / "reports.parquet"
    pq.write_table(pa.table({"smokes": pa.array([True] * 3_000 + [False] * 7_000)}), source)
    record = run("perturb", source, "--column", "smokes", "--protocol", "rr", "--epsilon", 1, "--domain", "false,true",
                 "-o", made, "--json").json  # fmt: skip
    estimates = run("estimate", made, "--json").json["estimates"]
    off = tolerance(10_000, record["p"], record["q"])
    assert [row["value"] for row in estimates] == ["false", "true"]
    assert abs(estimates[0]["count"] - 7_000) < off
    assert abs(estimates[1]["count"] - 3_000) < off


def test_json(run: Run, reports: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    record = run("estimate", reports, "--json", "--level", 0.9, "--simultaneous", "-o", out).json
    assert record["command"] == "estimate"
    assert (record["n"], record["rejected"], record["rejected_reasons"]) == (18_000, 0, {})
    assert (record["level"], record["simultaneous"]) == (0.9, True)
    assert (record["output"], record["plot"]) == (str(out), None)
    assert {"epsilon", "spec_id", "seconds"} <= set(record)
    assert record["estimates"] == pq.read_table(out).to_pylist()
    assert json.loads(pq.read_schema(out).metadata[b"dpnoise.n"]) == 18_000


def test_simultaneous_intervals_are_wider(run: Run, reports: Path) -> None:
    one = run("estimate", reports, "--json").json["estimates"]
    all_of_them = run("estimate", reports, "--json", "--simultaneous").json["estimates"]
    for narrow, wide in zip(one, all_of_them, strict=True):
        assert wide["lower"] < narrow["lower"] < narrow["upper"] < wide["upper"]


def test_splitting_the_reports_changes_nothing(
    run: Run, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("estimate", reports, "--json").json
    column = pq.read_table(reports)["report"]
    parts = [
        rewritten(reports, tmp_path / "a.parquet", column.slice(0, 5_001)),
        rewritten(reports, tmp_path / "b.parquet", column.slice(5_001, 0)),
        rewritten(reports, tmp_path / "c.parquet", column.slice(5_001).cast(pa.binary())),
    ]
    monkeypatch.setattr("dpnoise.cli.collect.batch_rows", lambda _bytes: 777)
    split = run("estimate", *parts, "--json", "--threads", 2).json
    assert (split["n"], split["estimates"]) == (whole["n"], whole["estimates"])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_malformed_reports_are_counted_with_the_reason(run: Run, reports: Path, tmp_path: Path, kind: Any) -> None:
    good = pq.read_table(reports)["report"].to_pylist()
    bad = [b"", None, b"\x01\x02", b"\x01\x02\x03"]
    mixed = rewritten(reports, tmp_path / "mixed.parquet", pa.array([*good[:9_000], *bad, *good[9_000:]], kind))
    record = run("estimate", mixed, "--json").json
    assert (record["n"], record["rejected"]) == (18_000, 4)
    assert record["rejected_reasons"] == {"wrong length": 3, "missing report": 1}
    assert record["estimates"] == run("estimate", reports, "--json").json["estimates"]
    outcome = run("estimate", mixed, "-o", tmp_path / "out.csv")
    assert "18,000 reports, 4 rejected (" in outcome.out
    assert outcome.code == 7
    assert outcome.err == (
        "dpnoise: some reports are of another protocol than OptimizedUnaryEncoding(domain=('red', 'green', '', 'deep "
        "blue'), epsilon=2.0), not randomised, damaged or crafted: 4 of 18,004 reports (0.0222 %) are malformed "
        "(missing report: 1, wrong length: 3)\n"
    )
    assert read_estimates(tmp_path / "out.csv")[0]["value"] == "red", "the answer is written"
    # A file that is left out is named, too; a doubtful answer is worse than one from fewer files.
    outcome = run("estimate", mixed, reports, tmp_path / "none.parquet")
    assert (outcome.code, outcome.err.count("\n")) == (7, 3)
    # The doubt is about what was counted, not about a run.
    state = tmp_path / "state.json"
    assert run("estimate", mixed, "--state", state).code == 7
    assert run("merge", state, "-o", tmp_path / "merged.json").code == 0, "no estimate is made"
    assert run("estimate", "--state", tmp_path / "merged.json").code == 7


REWRITTEN: dict[str, Callable[[Any, Path], object]] = {
    "pandas": lambda table, path: table.to_pandas().to_parquet(path),
    "polars": lambda table, path: pl.DataFrame(pl.from_arrow(table)).write_parquet(path),
    "binary": lambda table, path: pq.write_table(table.cast(pa.schema({"report": pa.binary()})), path),
    "large": lambda table, path: pq.write_table(table.cast(pa.schema({"report": pa.large_binary()})), path),
    "dictionary": lambda table, path: pq.write_table(table, path, use_dictionary=True, store_schema=False),
    "beside others": lambda table, path: pq.write_table(table.append_column("day", [range(table.num_rows)]), path),
    "renamed": lambda table, path: pq.write_table(table.rename_columns(["blob"]), path),
}


@pytest.mark.parametrize("program", REWRITTEN)
def test_files_without_metadata_are_counted_by_the_specification(
    run: Run, refuse: Refuse, reports: Path, tmp_path: Path, program: str
) -> None:
    again, spec = tmp_path / "again.parquet", tmp_path / "spec.json"
    REWRITTEN[program](pq.read_table(reports).replace_schema_metadata(None), again)
    spec.write_text(PROTOCOL.to_json(), encoding="utf-8")
    message = refuse("estimate", again)
    assert message.startswith(f"'{again}' does not say how its reports were made: no metadata 'dpnoise.protocol'; ")
    assert message.endswith("perhaps a program that wrote it again dropped its metadata: give --spec")
    record, whole = (run("estimate", one, "--spec", spec, "--json").json for one in (again, reports))
    assert (record["n"], record["rejected"]) == (18_000, 0)
    assert [row["count"] for row in record["estimates"]] == [row["count"] for row in whole["estimates"]]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([[1], [2]]), "list<element: int64>"),
        (pa.array(["01", "02"]), "string"),
        (pa.array([1, 2], pa.uint8()), "uint8"),
        (pa.array([True, False]), "bool"),
    ],
    ids=["lists", "hexadecimal", "numbers", "booleans"],
)
def test_what_is_no_column_of_reports_is_refused(refuse: Refuse, tmp_path: Path, column: pa.Array, kind: str) -> None:
    path, spec = tmp_path / "no_reports.parquet", tmp_path / "spec.json"
    spec.write_text(PROTOCOL.to_json(), encoding="utf-8")
    pq.write_table(pa.table({"report": column}), path)
    message = refuse("estimate", path, "--spec", spec)
    assert message.startswith(f"'{path}' cannot be used: ")
    assert message.endswith((f"got {kind}", f"got dtype {kind}"))


def test_set_tail_bits_are_rejected(run: Run, reports: Path, tmp_path: Path) -> None:
    good = pq.read_table(reports)["report"].to_pylist()
    mixed = rewritten(reports, tmp_path / "mixed.parquet", pa.array([*good, b"\x11", b"\x80"], pa.binary(1)))
    record = run("estimate", mixed, "--json").json
    assert (record["n"], record["rejected"]) == (18_000, 2)
    assert sum(record["rejected_reasons"].values()) == 2


def test_a_file_of_reports_of_another_width_is_rejected_whole(run: Run, reports: Path, tmp_path: Path) -> None:
    wide = rewritten(reports, tmp_path / "wide.parquet", pa.array([b"\x01\x02"] * 3, pa.binary(2)))
    record = run("estimate", wide, "--json").json
    assert (record["n"], record["rejected_reasons"]) == (0, {"wrong length": 3})


def test_no_reports_are_legal(run: Run, reports: Path, tmp_path: Path) -> None:
    none = rewritten(reports, tmp_path / "none.parquet", pa.array([], pa.binary(1)))
    outcome = run("estimate", none, "-o", tmp_path / "out.csv")
    assert outcome.code == 0
    assert "0 reports, 0 rejected" in outcome.out
    assert [row["count"] for row in run("estimate", none, "--json").json["estimates"]] == [0.0] * 4


def test_without_a_domain_the_values_are_numbered(run: Run, reports: Path, tmp_path: Path) -> None:
    bare = rewritten(reports, tmp_path / "bare.parquet", metadata={b"dpnoise.domain": None})
    assert [row["value"] for row in run("estimate", bare, "--json").json["estimates"]] == [0, 1, 2, 3]


def test_counts_are_rounded_to_their_error_on_a_terminal_alone(run: Run, reports: Path) -> None:
    rows = run("estimate", reports, "--json").json["estimates"]
    red = max(rows, key=lambda row: row["count"])
    assert red["count"] != round(red["count"])
    shown = run("estimate", reports).out.splitlines()[4].split()
    assert shown == ["red", *(f"{red[name]:,.0f}" for name in COLUMNS[1:])]


def test_a_large_table_is_cut(run: Run, tmp_path: Path) -> None:
    source, made = tmp_path / "in.csv", tmp_path / "reports.parquet"
    source.write_text("n\n7\n", encoding="utf-8")
    domain = ",".join(map(str, range(100)))
    assert run("perturb", source, "--column", "n", *PROTOCOLS["oue"], "--domain", domain, "-o", made).code == 0
    assert "the 40 largest of 100" in run("estimate", made).out
    assert len(run("estimate", made, "--json").json["estimates"]) == 100


def test_a_value_is_never_markup(run: Run, tmp_path: Path) -> None:
    source, made = tmp_path / "in.csv", tmp_path / "reports.parquet"
    source.write_text("n\n[red]x\n", encoding="utf-8")
    assert run("perturb", source, "--column", "n", *PROTOCOLS["oue"], "--domain", "[red]x,[/]", "-o", made).code == 0
    outcome = run("estimate", made)
    assert outcome.code == 0
    assert "[red]x" in outcome.out
    assert "[/]" in outcome.out


def test_chart(run: Run, reports: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    chart = tmp_path / "chart.png"
    assert run("estimate", reports, "--plot", chart, "--json").json["plot"] == str(chart)
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_chart_without_matplotlib(
    refuse: Refuse, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = refuse("estimate", reports, "--plot", tmp_path / "chart.png", "-o", tmp_path / "out.csv")
    assert message == 'a chart needs matplotlib: pip install "matplotlib>=3.8"'
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("level", ["0", "1", "-0.5", "nan"])
def test_bad_level(refuse: Refuse, reports: Path, tmp_path: Path, level: str) -> None:
    assert "level must be" in refuse("estimate", reports, "--level", level, "-o", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_bad_targets(refuse: Refuse, reports: Path, tmp_path: Path) -> None:
    assert "the output must end in .csv or .json or .parquet" in refuse("estimate", reports, "-o", "out.xlsx")
    assert "the plot must end in .png or .svg or .pdf" in refuse("estimate", reports, "--plot", "out.bmp")
    assert "does not exist" in refuse("estimate", reports, "-o", tmp_path / "no" / "out.csv")
    assert "is also an input" in refuse("estimate", reports, "-o", reports)
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "it is a directory" in refuse("estimate", reports, "-o", folder)


def test_bad_files(refuse: Refuse, reports: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.parquet"
    assert refuse("estimate", missing) == f"{missing}: No such file or directory"
    for name in ("nothing", "nothing.csv"):
        assert refuse("estimate", f"{tmp_path / name}/") == f"{tmp_path / name}: No such file or directory"
    (tmp_path / "reports.csv").touch()
    assert "which are binary and do not fit into CSV, must end in .parquet" in refuse(
        "estimate", tmp_path / "reports.csv"
    )
    text = tmp_path / "text.parquet"
    text.write_text("hello", encoding="utf-8")
    assert refuse("estimate", text) == f"'{text}' is not a Parquet file, or was cut short"
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"report": [b"\x01"]}), plain)
    assert "does not say how its reports were made" in refuse("estimate", plain)
    number = rewritten(reports, tmp_path / "number.parquet", pa.array([1]))
    message = refuse("estimate", number)
    assert (
        message
        == f"'{number}' cannot be used: reports must be a column of type fixed_size_binary[1] or binary, got int64"
    )
    two = tmp_path / "two.parquet"
    table = pq.read_table(reports)
    pq.write_table(pa.table({"a": table["report"], "b": table["report"]}, metadata=table.schema.metadata), two)
    assert "must be one column, or a table with one column 'report', got 2 columns" in refuse("estimate", two)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({b"dpnoise.protocol": b"{"}, "not a protocol specification"),
        ({b"dpnoise.protocol": b"\xff"}, "not a protocol specification"),
        ({b"dpnoise.protocol": b'{"protocol":"carrier-pigeon"}'}, "not a protocol specification"),
        ({b"dpnoise.domain": b"["}, "the metadata 'dpnoise.domain' cannot be used: "),
        ({b"dpnoise.domain": b'["a","b"]'}, "domain must be of 4 labels, got 2 labels"),
        ({b"dpnoise.domain": b"[1,2,3,4]"}, "domain must have the labels of the specification, in their order"),
        ({b"dpnoise.domain": b'["green","red","","deep blue"]'}, "domain must have the labels of the specification"),
        ({b"dpnoise.domain": b'["a","b","c","a"]'}, "a value of domain must occur only once"),
    ],
)
def test_damaged_metadata(
    refuse: Refuse, reports: Path, tmp_path: Path, metadata: dict[bytes, bytes | None], message: str
) -> None:
    damaged = rewritten(reports, tmp_path / "damaged.parquet", metadata=metadata)
    refusal = refuse("estimate", damaged)
    assert refusal.startswith(f"'{damaged}' cannot be used: ")
    assert message in refusal


def test_what_is_finished_is_printed_although_no_file_can_be_written(
    run: Run, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    out, chart = tmp_path / "out.csv", tmp_path / "chart.png"
    run("estimate", reports, "--level", 0.5, "-o", out)
    before, older = sorted(tmp_path.iterdir()), out.read_bytes()
    monkeypatch.setattr("os.fsync", fail)
    outcome = run("estimate", reports, "-o", out, "--plot", chart)
    full = "could not be written: No space left on device"
    assert (outcome.code, outcome.err) == (5, f"dpnoise: '{out}' {full}; '{chart}' {full}\n")
    assert "18,000 reports, 0 rejected; epsilon " in outcome.out
    assert sorted(tmp_path.iterdir()) == before
    assert out.read_bytes() == older


def test_intervals_cover_about_as_often_as_they_say(run: Run, tmp_path: Path) -> None:
    # 300 values of which none occurs, so each interval should hold 0 with probability 0.95. Fewer than 237 of 300
    # (79 %) happen by chance with probability below 1e-20, and the bits of a report are independent.
    source, made = tmp_path / "in.csv", tmp_path / "reports.parquet"
    source.write_text("n\n" + "present\n" * 4_000, encoding="utf-8")
    domain = ",".join(["present", *map(str, range(300))])
    assert run("perturb", source, "--column", "n", *PROTOCOLS["oue"], "--domain", domain, "-o", made).code == 0
    absent = run("estimate", made, "--json").json["estimates"][1:]
    assert np.sum([row["lower"] <= 0 <= row["upper"] for row in absent]) > 237
