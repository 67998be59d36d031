"""Collections on the command line: what is announced, and reports about one thing that never count for another."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.shared import Refuse, Run

from dpnoise import local

Announce = Callable[..., Path]

SURVEY = ["--protocol", "oue", "--domain", "red,green,blue", "--epsilon", 2]
OTHERS = {
    "other labels": ["--domain", "yes,no,unsure"],
    "another order": ["--domain", "green,red,blue"],
    "another question": ["--question", "worst colour"],
    "another period": ["--period", "2026-W49"],
}


@pytest.fixture
def announce(run: Run, tmp_path: Path) -> Announce:
    """Return a function that announces a collection, of one given before or of the survey."""

    def call(name: str, *words: object, spec: Path | None = None) -> Path:
        path = tmp_path / f"{name}.json"
        given = SURVEY if spec is None else ["--spec", spec]
        outcome = run("specify", *given, *words, "-o", path)
        assert (outcome.code, outcome.err) == (0, "")
        return path

    return call


@pytest.fixture
def week(announce: Announce) -> Path:
    """Return the document of a week."""
    return announce("week", "--question", "favourite colour", "--period", "2026-W48")


def reports_of(run: Run, spec: Path, n: int) -> Path:
    """Write reports of a collection, all about its first label."""
    label = json.loads(spec.read_text(encoding="utf-8"))["dpnoise.domain"][0]
    values, path = spec.with_suffix(".csv"), spec.with_suffix(".parquet")
    values.write_text("value\n" + f"{label}\n" * n, encoding="utf-8")
    assert run("perturb", values, "--column", "value", "--spec", spec, "-o", path).code == 0
    return path


def test_what_is_announced_is_a_document(run: Run, week: Path, announce: Announce) -> None:
    protocol = local.Specification.from_json(week.read_text(encoding="utf-8"))
    assert (protocol.question, protocol.period) == ("favourite colour", "2026-W48")
    assert protocol.spec_id == "d1b43041022344b7"
    assert week.read_text(encoding="utf-8") == protocol.to_document()
    later = announce("later", "--period", "2026-W49", spec=week)
    assert local.Specification.from_json(later.read_text(encoding="utf-8")) == protocol.about(period="2026-W49")
    record = run("specify", "--spec", week, "--period", "2026-W50", "-o", week.with_name("x.json"), "--json").json
    assert (record["question"], record["period"]) == ("favourite colour", "2026-W50")
    estimated = run("estimate", reports_of(run, week, 20), "--json").json
    assert (estimated["question"], estimated["period"]) == ("favourite colour", "2026-W48")
    assert "about favourite colour, 2026-W48\n" in run("estimate", week.with_suffix(".parquet")).out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--question", ""], "--question must be of 1 to 255 bytes of UTF-8, "),
        (["--question", "a\u200bb"], "without characters that are not seen, got "),
        (["--question", "cafe\u0301"], "--question must be Unicode text in the normal form that "),
        (["--period", "x" * 64], "--period must be of 1 to 63 bytes of UTF-8, "),
        (["--period", " 2026"], "--period must be of 1 to 63 bytes of UTF-8, without a space at either end"),
        (["--bounds", 0, 1], "--bounds applies to the protocols "),
        (["--domain", "a,b"], "domain must be of 3 labels, got 2 labels"),
    ],
)
def test_what_cannot_be_announced(refuse: Refuse, week: Path, words: list[object], message: str) -> None:
    target = week.with_name("other.json")
    assert message in refuse("specify", "--spec", week, *words, "-o", target)
    assert not target.exists()


@pytest.mark.parametrize("case", OTHERS)
def test_files_about_something_else_are_counted_nowhere(
    run: Run, refuse: Refuse, week: Path, announce: Announce, tmp_path: Path, case: str
) -> None:
    other = announce("other", *OTHERS[case], spec=week)
    own, others = reports_of(run, week, 30), reports_of(run, other, 20)
    assert "which differ in their specification" in refuse("estimate", own, others)
    for spec, counted, left, n in ((week, own, others, 30), (other, others, own, 20)):
        outcome = run("estimate", own, others, "--spec", spec, "--json")
        assert (outcome.code, outcome.json["n"], list(outcome.json["failed"])) == (3, n, [str(left)])
        assert f"'{left}' is of another collection than --spec: " in outcome.err
        assert run("estimate", counted, "--state", counted.with_suffix(".state")).code == 0
    both = run("estimate", own, others, "--spec", week, "--spec", other, "--json")
    assert (both.code, [one["n"] for one in both.json["collections"]]) == (0, [30, 20])
    states = [one.with_suffix(".state") for one in (own, others)]
    message = refuse("merge", *states, "-o", tmp_path / "merged")
    assert message.startswith(f"'{states[1]}' is of another collection than '{states[0]}': ")
    message = refuse("estimate", others, "--state", states[0], "--spec", other)
    assert message.startswith(f"--spec is of another collection than '{states[0]}': ")


@pytest.mark.parametrize("case", OTHERS)
def test_messages_about_something_else_are_named_by_their_id(
    run: Run, week: Path, announce: Announce, tmp_path: Path, case: str
) -> None:
    other, inbox = announce("other", *OTHERS[case], spec=week), tmp_path / "inbox"
    protocols = [local.protocol_from_json(path.read_text(encoding="utf-8")) for path in (week, other)]
    messages = [
        message
        for protocol, n in zip(protocols, (30, 20), strict=True)
        for message in protocol.messages(protocol.perturb([protocol.domain[0]] * n))
    ]
    inbox.write_bytes(b"".join(len(message).to_bytes(4, "little") + message for message in messages))
    asked = ["estimate", inbox, "--messages", "length-prefixed", "--json", "--spec", week]
    alone = run(*asked)
    assert (alone.code, alone.json["n"], alone.json["rejected_reasons"]) == (0, 30, {"wrong header": 20})
    assert f"20 messages of the specification {protocols[1].spec_id}, which is not counted here" in alone.err
    both = run(*asked, "--spec", other)
    assert (both.code, both.err, [one["n"] for one in both.json["collections"]]) == (0, "", [30, 20])


def test_bounds_are_part_of_what_is_announced(run: Run, refuse: Refuse, tmp_path: Path) -> None:
    spec, values = tmp_path / "age.json", tmp_path / "age.csv"
    values.write_text("age\n" + "50\n" * 1000, encoding="utf-8")
    mean = ["--protocol", "duchi", "--epsilon", 8]
    assert run("specify", *mean, "--bounds", 0, 100, "--question", "age", "-o", spec).code == 0
    assert json.loads(spec.read_text(encoding="utf-8"))["dpnoise.domain"] == [0.0, 100.0]
    asked = ["perturb", values, "--column", "age", "--spec", spec, "-o", tmp_path / "a.parquet"]
    assert "--bounds must be those of " in refuse(*asked, "--bounds", 0, 1)
    assert run(*asked, "--bounds", 0, 100).code == 0
    [row] = run("estimate", tmp_path / "a.parquet", "--json").json["estimates"]
    assert abs(row["mean"] - 50) < 9 * row["standard_error"] < 20
    others = ["perturb", values, "--column", "age", *mean, "--bounds", 0, 1, "-o", tmp_path / "b.parquet"]
    assert run(*others).code == 0
    assert "is of another collection than --spec" in run("estimate", tmp_path / "b.parquet", "--spec", spec).err


def test_specifications_and_lists_from_stdin(
    run: Run, refuse: Refuse, week: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports, values, new = reports_of(run, week, 9), week.with_suffix(".csv"), week.with_name("new.parquet")
    perturb = ["perturb", values, "--column", "value", "--protocol", "grr", "--epsilon", 1, "-o", new]

    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(week.read_bytes())
    assert run("estimate", reports, "--spec", "-", "--json").json["n"] == 9
    give(b"red\ngreen\nblue\n")
    assert run(*perturb, "--domain-file", "-", "--json").json["rows"] == 9
    give(values.read_bytes())  # no row is read as a label, which messages show
    words = ["--column", "value", "--epsilon", 1, "--domain-file", "-"]
    for asked in (
        ["release", "-", "--query", "histogram", *words],
        ["perturb", "-", "--protocol", "grr", "-o", new, *words],
        ["specify", "--spec", "-", "--domain-file", "-", "-o", new],
    ):
        assert refuse(*asked) == "- must be in the place of one file, since stdin is read once, got several"


def test_a_document_with_other_labels_is_refused(run: Run, refuse: Refuse, week: Path) -> None:
    reports, document = reports_of(run, week, 9), json.loads(week.read_text(encoding="utf-8"))
    week.write_text(json.dumps(document, indent=1), encoding="utf-8")
    assert run("estimate", reports, "--spec", week, "--json").json["n"] == 9
    document["dpnoise.domain"] = document["dpnoise.domain"][::-1]
    week.write_text(json.dumps(document), encoding="utf-8")
    message = refuse("estimate", reports, "--spec", week)
    assert message.endswith("domain must have the labels of the specification, in their order")
