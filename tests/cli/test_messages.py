"""``dpnoise estimate --messages``: messages of devices in both framings, from files and from stdin."""

import base64
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.shared import Refuse, Run

from dpnoise import local

PROTOCOL = local.OptimizedUnaryEncoding(k=12, epsilon=2.0)
REPORTS = PROTOCOL.perturb(np.arange(600) % 12)
MESSAGES = PROTOCOL.messages(REPORTS)
FRAMINGS = ["json-lines", "length-prefixed"]
PLANTED = "xyzzy-7531"


def line(message: bytes) -> bytes:
    return json.dumps({"message": base64.b64encode(message).decode(), "time": 7}).encode() + b"\n"


def prefixed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "little") + message


def framed(framing: str, messages: list[bytes]) -> bytes:
    return b"".join(map(line if framing == "json-lines" else prefixed, messages))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Return the specification of the protocol."""
    path = tmp_path / "spec.json"
    path.write_text(PROTOCOL.to_json(), encoding="ascii")
    return path


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Return where messages go."""
    return tmp_path / "inbox"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_messages_are_counted_as_reports_are(run: Run, spec: Path, inbox: Path, framing: str) -> None:
    inbox.write_bytes(framed(framing, MESSAGES))
    record = run("estimate", inbox, "--messages", framing, "--spec", spec, "--json").json
    assert (record["n"], record["rejected"], record["files"]) == (600, 0, 1)
    assert [row["count"] for row in record["estimates"]] == PROTOCOL.estimate(REPORTS).counts.tolist()
    assert [row["value"] for row in record["estimates"]] == list(range(12))


@pytest.mark.parametrize("framing", FRAMINGS)
def test_messages_from_stdin(
    run: Run, spec: Path, inbox: Path, tmp_path: Path, framing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, state = framed(framing, MESSAGES), tmp_path / "state.json"
    arguments = ["estimate", "--messages", framing, "--spec", spec, "--state", state, "--json"]
    for counted in (1, 0):  # the same stream again is detected
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        record = run(*arguments, "-").json
        assert (record["n"], record["files_added"]) == (600, counted)
    inbox.write_bytes(content)
    assert run(*arguments, inbox).json["repeated"] == {str(inbox): "-"}
    # The state says what the protocol is, and parts of a collection may come in both framings and as files.
    inbox.write_bytes(framed(framing, MESSAGES[:5]))
    assert run("estimate", "--messages", framing, "--state", state, "--json", inbox).json["n"] == 605


@pytest.mark.parametrize("framing", FRAMINGS)
def test_wrong_messages_are_rejected_with_the_reason(run: Run, spec: Path, inbox: Path, framing: str) -> None:
    other = local.OptimizedUnaryEncoding(k=12, epsilon=1.0)
    wrong = [
        *other.messages(other.perturb([3, 4])),
        b"",
        MESSAGES[0][:-1],
        MESSAGES[0] + bytes(1),
        MESSAGES[0] + bytes(3_000_000 if framing == "length-prefixed" else 300),
        MESSAGES[0][:-2] + b"\xff\xff",
    ]
    inbox.write_bytes(framed(framing, [*MESSAGES[:300], *wrong, *MESSAGES[300:]]))
    outcome = run("estimate", inbox, "--messages", framing, "--spec", spec, "--json")
    record = outcome.json
    assert (outcome.code, record["n"]) == (7, 600)
    assert "4 of 604 reports (" in outcome.err, "messages with another header say that they are of others"
    assert record["rejected_reasons"] == {"wrong header": 3, "wrong length": 3, "tail bits set": 1}


def test_a_text_that_is_no_base64_is_a_message_without_a_header(run: Run, spec: Path, inbox: Path) -> None:
    inbox.write_bytes(line(MESSAGES[0]) + json.dumps({"message": PLANTED}).encode() + b"\n\n" + line(MESSAGES[1]))
    outcome = run("estimate", inbox, "--messages", "json-lines", "--spec", spec, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert (outcome.json["n"], outcome.json["rejected_reasons"]) == (2, {"wrong header": 1})


BROKEN = {
    "text": PLANTED.encode(),
    "array": json.dumps([PLANTED]).encode(),
    "other": json.dumps({"report": PLANTED}).encode(),
    "number": json.dumps({"message": 7531}).encode(),
    "bytes": b'{"message": "\xff' + PLANTED.encode() + b'"}',
    "cut": line(MESSAGES[2])[:-5],
    "deep": b"[" * 10_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_line_that_is_no_message(refuse: Refuse, run: Run, spec: Path, inbox: Path, name: str) -> None:
    inbox.write_bytes(line(MESSAGES[0]) + b"\n" + line(MESSAGES[1]) + BROKEN[name])
    arguments = ["estimate", inbox, "--messages", "json-lines", "--spec", spec]
    message = refuse(*arguments)
    assert message == f'{inbox}: line 4 must be a JSON object with a text "message", got something else'
    # Of a file that is refused nothing is counted, and the others are.
    good = inbox.with_name("good")
    good.write_bytes(framed("json-lines", MESSAGES))
    outcome = run(*arguments, good, "--json")
    assert (outcome.code, outcome.json["n"], list(outcome.json["failed"])) == (3, 600, [str(inbox)])
    assert PLANTED not in outcome.err + message


def test_no_line_fills_the_memory(refuse: Refuse, spec: Path, inbox: Path) -> None:
    inbox.write_bytes(line(MESSAGES[0]) + b'{"message": "' + b"A" * 70_000 + b'"}\n')
    message = refuse("estimate", inbox, "--messages", "json-lines", "--spec", spec)
    assert message == f"{inbox}: line 2 must have at most 65558 bytes, got a longer one"


@pytest.mark.parametrize("kept", [1, 3, 4, 10])
def test_a_stream_that_was_cut_short(refuse: Refuse, spec: Path, inbox: Path, kept: int) -> None:
    inbox.write_bytes(prefixed(MESSAGES[0]) + prefixed(MESSAGES[1])[:kept])
    message = refuse("estimate", inbox, "--messages", "length-prefixed", "--spec", spec)
    offset = len(prefixed(MESSAGES[0]))
    assert message == f"{inbox}: the message at offset {offset} must be whole, got one that was cut short"


def test_what_messages_need(refuse: Refuse, run: Run, spec: Path, inbox: Path, tmp_path: Path) -> None:
    inbox.write_bytes(framed("json-lines", MESSAGES))
    assert "--messages needs --spec" in refuse("estimate", inbox, "--messages", "json-lines")
    assert "it takes --messages" in refuse("estimate", "-", "--spec", spec)
    assert refuse("estimate", tmp_path, "--messages", "json-lines", "--spec", spec) == f"{tmp_path}: Is a directory"
    assert "no file matches" in refuse("estimate", tmp_path / "*.jsonl", "--messages", "json-lines", "--spec", spec)
    inbox.write_bytes(b"")
    assert run("estimate", tmp_path / "in*", "--messages", "json-lines", "--spec", spec, "--json").json["n"] == 0


def test_messages_with_labels(run: Run, spec: Path, inbox: Path) -> None:
    labelled = PROTOCOL.about(domain=[f"v{i}" for i in range(12)])
    inbox.write_bytes(framed("json-lines", labelled.messages(REPORTS)))
    spec.write_text(labelled.to_document(), encoding="ascii")
    asked = ["estimate", inbox, "--messages", "json-lines", "--spec", spec, "--json"]
    assert [row["value"] for row in run(*asked).json["estimates"]] == [f"v{i}" for i in range(12)]
