"""What programs read: documents with their format, and errors as documents of one line."""

import json
import re
from pathlib import Path

import pytest
from cli.shared import Run, write

from dpnoise.cli.app import COMMANDS

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## JSON for programs")[2].partition("\n## ")[0]
DOCUMENTED = {
    command: re.findall(r"`(\w+)`", entries)
    for command, entries in re.findall(r"^\| `([\w ]+)` \| ((?:`\w+`(?:, )?)+)", SECTION, re.MULTILINE)
}
SOMETIMES = {"perturb": {"p", "q"}, "release": {"error", "rank_error", "no_error_bound", "counted"}}
PRIVATE = "xyzzy-7531"


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a file that is wrong."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(f"name,age\nAnn,{PRIVATE}\n", encoding="utf-8")


def test_a_document_says_its_format(run: Run) -> None:
    write(Path("reports.parquet"), 10)
    assert run("plan", "--n", 10, "--k", 3, "--epsilon", 1, "--json").out.startswith('{\n  "format": 1,\n')
    record = run("estimate", "reports.parquet", "-o", "estimate.json", "--json").json
    written = json.loads(Path("estimate.json").read_text(encoding="utf-8"))
    assert (record["format"], written["format"]) == (1, 1)
    assert "format" not in record["estimates"][0]


RUNS = {
    "demo": "--plot chart.svg",
    "demo IN": "--query count:name:Ann",
    "attack": "",
    "plan": "--n 10 --k 3 --epsilon 1",
    "collection": "folder --question q --domain a,b --epsilon 1 --period p",
    "specify": "--protocol oue --k 3 --epsilon 1 -o spec.json",
    "perturb": "people.csv --column name --protocol oue --domain Ann,Bob --epsilon 1 -o new.parquet",
    "estimate": "reports.parquet",
    "merge": "state.json -o merged.json",
    "release": "people.csv --query count:name --epsilon 1",
    "ledger": "new.db --epsilon 1",
    "audit": "--n 100",
}


@pytest.mark.parametrize("command", DOCUMENTED)
def test_the_page_has_the_entries_of_documents(run: Run, command: str) -> None:
    run("estimate", write(Path("reports.parquet"), 10), "--state", "state.json")
    record = run(*f"{command.replace('IN', 'people.csv')} {RUNS[command]} --json".split()).json
    assert record["command"] == command.partition(" ")[0]
    assert set(record) == {"format", "command", *DOCUMENTED[command]} | SOMETIMES.get(command, set())


def test_all_commands_are_on_the_page() -> None:
    assert set(DOCUMENTED) == {*COMMANDS, "demo IN"}


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["plan", "--n", "x"],
        ["ledger", "missing"],
        ["perturb", "missing.csv", "--column", "age"],
        ["release", "people.csv", "--query", "mean:age:0,100", "--epsilon", 1],
        ["specify", "--protocol", "oue", "--k", 1, "--epsilon", 1, "-o", "new"],
    ],
)
def test_an_error_is_a_line_of_json_with_its_code(run: Run, words: list[object]) -> None:
    plain, outcome = run(*words), run(*words, "--json")
    message = plain.err.removeprefix("dpnoise: ").removesuffix("\n")
    assert (outcome.code, outcome.out, plain.documents) == (2, "", [])
    assert outcome.documents == [{"format": 1, "message": message, "code": 2}]
    assert PRIVATE not in message


def test_what_does_not_end_the_program_has_no_code(run: Run) -> None:
    reports = write(Path("reports.parquet"), 10)
    outcome = run("estimate", reports, "missing.parquet", "--json")
    assert (outcome.code, list(outcome.json["failed"])) == (3, ["missing.parquet"])
    assert [list(one) for one in outcome.documents] == [["format", "message"]] * 2


def test_a_signal_and_the_next_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpnoise.cli.plan.local.plan", interrupted)
        outcome = run("plan", "--n", 10, "--k", 3, "--epsilon", 1, "--json")
    message = "stopped by SIGINT; no incomplete file is left"
    assert (outcome.code, outcome.documents) == (130, [{"format": 1, "message": message, "code": 130}])
    assert run("ledger", "missing").err.startswith("dpnoise: ")
