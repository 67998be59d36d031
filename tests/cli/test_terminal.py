"""What reaches a terminal: texts of data, ledgers, files and users are shown escaped, and JSON keeps them."""

import ast
import io
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.shared import PROTOCOL, Refuse, Run, write

from dpnoise import PrivacyCost, cli, local
from dpnoise._display import escaped, html_table, text_table
from dpnoise.accounting import Ledger
from dpnoise.cli import completion

# Commands of a terminal in 7 and in 8 bits, characters that reverse or hide others, and new lines of several kinds.
HOSTILE = (
    "\x1b]0;owned\x1b\\", "\x1b[2J", "\x9b2J", "\x7f\b", "\r", "a\nb", "\u202egnp.exe", "\u2066x\u2069", "\u200e\u200f",
    "\u061c", "\u2028", "\u200b",
)  # fmt: skip


def of_terminal(text: str) -> str:
    """Check that lines are printable, and return them."""
    assert all(line.isprintable() for line in text.split("\n")), text
    return text


def test_what_is_escaped() -> None:
    assert escaped('é "[b]" 深い 😀\\') == 'é "[b]" 深い 😀\\'
    for text in (*HOSTILE, "\udcff", "\U000e0041"):
        assert escaped(text) == repr(text)[1:-1].replace("\\\\", "\\")  # a backslash stays one
    table = {"value": list(HOSTILE), "count": [1.0] * len(HOSTILE)}
    for shown in (text_table("counts", table), html_table("counts", table)):
        of_terminal(shown)


def test_released_texts(run: Run, tmp_path: Path) -> None:
    path, column = tmp_path / "data.parquet", HOSTILE[0]
    pq.write_table(pa.table({column: [text for text in HOSTILE for _ in range(200)]}), path)
    options = ["--column", column, "--query", "histogram", "--delta", 1e-6, "--epsilon", 5]
    shown = run("release", path, *options)
    assert (shown.code, shown.err) == (0, "")
    for text in HOSTILE:
        assert escaped(text) in of_terminal(shown.out)
    of_terminal(run("release", path, *options, "--json").out)
    record = run("release", path, *options, "--json").json
    assert {row["group"] for row in record["answers"]} == set(HOSTILE)
    assert record["column"] == column


def test_labels_of_a_ledger(run: Run, memory_path: Path) -> None:
    path = memory_path / "ledger"
    ledger = Ledger(path, epsilon=1.0)
    for text in HOSTILE:
        ledger.spend(PrivacyCost(0.01, 0.0), text)
    shown = of_terminal(run("ledger", path).out)
    assert all(escaped(text) in shown for text in HOSTILE)
    printed = run("ledger", path, "--json")
    of_terminal(printed.out)
    assert [entry["label"] for entry in printed.json["entries"]] == list(HOSTILE)


def test_labels_in_the_metadata_of_others(run: Run, tmp_path: Path) -> None:
    protocol = local.OptimizedUnaryEncoding(domain=HOSTILE, epsilon=2.0)
    reports = write(tmp_path / "reports.parquet", 2_000, protocol)
    shown = run("estimate", reports)
    assert (shown.code, shown.err) == (0, "")
    assert all(escaped(text) in of_terminal(shown.out) for text in HOSTILE)
    printed = run("estimate", reports, "--json")
    assert [row["value"] for row in printed.json["estimates"]] == list(HOSTILE)
    of_terminal(printed.out)
    several = local.Sampled(attributes=dict.fromkeys(HOSTILE, PROTOCOL))
    broken = tmp_path / "broken.parquet"
    metadata = {
        "dpnoise.protocol": several.to_json(),
        "dpnoise.domain": json.dumps({name: [HOSTILE] for name in HOSTILE}),
    }
    pq.write_table(pa.table({"report": [1]}).replace_schema_metadata(metadata), broken)
    refused = run("estimate", broken)
    assert refused.code == 2
    of_terminal(refused.err)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_of_files_and_words(run: Run, refuse: Refuse, tmp_path: Path) -> None:
    for number, text in enumerate(HOSTILE):
        word, name = text.replace("/", ""), tmp_path / text.replace("/", "")
        for words in (
            [word],
            ["plan", f"--{word}"],
            ["plan", "--n", word, "--k", 3, "--epsilon", 1],
            ["plan", "--n", 3, "--k", 3, "--epsilon", word],
            ["estimate", name],
            ["estimate", "--messages", "json-lines", "--spec", name, name],
            ["merge", name, "-o", tmp_path / "new"],
            ["ledger", name],
            ["specify", "--protocol", word, "-o", name],
            ["release", f"{name}.csv", "--query", "count", "--column", word, "--epsilon", 1],
        ):
            of_terminal(refuse(*words))
        made = run("specify", "--protocol", "oue", "--k", 3, "--epsilon", 1, "-o", name)
        assert (made.code, made.err) == (0, "")
        assert of_terminal(made.out).startswith(f"{tmp_path}/{escaped(word)}: "), number


def test_a_completion_is_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({name: [1] for name in (*HOSTILE, "plain", "thé")}), path)
    monkeypatch.setenv("_DPNOISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"dpnoise release {path} --column")
    assert completion.columns("") == ["plain", "thé"]


def test_a_label_is_shown_on_a_narrow_terminal(run: Run, memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    ledger = Ledger(memory_path / "ledger", epsilon=1.0, delta=1e-5)
    ledger.spend(PrivacyCost(0.123456789, 1.25e-6), "mean of age in the county")
    monkeypatch.setenv("TERM", "xterm")  # of a dumb one the width would be 80
    for columns in (80, 60):
        terminal = Terminal()
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", terminal)
        assert run("ledger", memory_path / "ledger").code == 0
        table = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).partition("\nepsilon: ")[0]
        assert all(word in table for word in ("label", "mean", "county"))
        assert "…" not in table
        assert max(map(len, table.split("\n"))) <= columns
        whole = [f"{ledger.entries()[0].time:%Y-%m-%d}" in table, table.count("0.123457") == 2]
        assert whole == [columns == 80] * 2, "numbers and dates are folded only where there is no room"


def test_only_one_module_prints() -> None:
    """What commands print is a JSON document, a constant, or goes through `console`."""
    for path in Path(cli.__file__).parent.glob("*.py"):
        if path.name in ("console.py", "__init__.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                [argument] = map(ast.unparse, node.args)
                assert argument.startswith("to_json(") or argument.isupper(), f"{path.name}: {argument}"
