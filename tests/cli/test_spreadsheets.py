"""Texts in the CSV files that are written: a spreadsheet must run none of them."""

import csv
import json
from pathlib import Path

import pytest
from cli.shared import Run, write

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dpnoise import local

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\uff1d1+1",
    "'=1+1",
    "''@x",
    '=HYPERLINK("x")',
    "-x",
    "+49 30",
]
PLAIN = ["-5", "+5", "-1.5e-3", "1", "x=1", "-", "", "'s-Hertogenbosch", "'-5", "red, green"]


def test_formulas_are_texts_in_csv_alone(run: Run, tmp_path: Path) -> None:
    """Everywhere else all texts are as they were given, and so are numbers."""
    texts = [*FORMULAS, *PLAIN]
    path = write(tmp_path / "reports.parquet", 100, local.OptimizedUnaryEncoding(domain=texts, epsilon=2.0))
    written = {
        suffix: run("estimate", path, "-o", tmp_path / f"out{suffix}") for suffix in (".csv", ".json", ".parquet")
    }
    note = "dpnoise: 12 texts that a spreadsheet would run as a formula got an apostrophe in front in the .csv; "
    assert [outcome.err for outcome in written.values()] == [
        f"{note}.json and .parquet have all texts as they are\n", "", ""
    ]  # fmt: skip
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[0] for row in rows] == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    estimates = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["estimates"]
    assert [row["value"] for row in estimates] == texts
    assert [float(row[1]) for row in rows] == [row["count"] for row in estimates]
    assert pq.read_table(tmp_path / "out.parquet")["value"].to_pylist() == texts
    assert run("estimate", path, "-o", tmp_path / "out.csv", "--quiet").err == ""


def test_formulas_in_the_data(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    pq.write_table(pa.table({"v": ["=1+1"] * 100 + ["-5"] * 100}), path)
    asked = ("--query", "histogram", "--column", "v", "--delta", 0.01, "--epsilon", 1e9)
    outcome = run("release", path, *asked, "-o", out)
    assert "1 text that a spreadsheet would run" in outcome.err
    assert [line.split(",")[0] for line in out.read_text(encoding="utf-8").splitlines()] == ["group", "-5", "'=1+1"]


def test_formulas_in_names_of_columns(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("=1+1,x\na,1\n", encoding="utf-8")
    outcome = run("release", path, "--query", "count", "--by", "=1+1:a,=b", "--epsilon", 1e9, "-o", out)
    assert outcome.code == 0, outcome.err
    assert "2 texts that a spreadsheet would run" in outcome.err
    assert [line.split(",")[0] for line in out.read_text(encoding="utf-8").splitlines()] == ["'=1+1", "a", "'=b"]
