"""The commands of the reference page and of the helps run as they are shown."""

import base64
import io
import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cli.shared import Run

from dpnoise import local

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a file of people, and one of their visits."""
    monkeypatch.chdir(tmp_path)
    rows = "red,34,Ann,0.5\ngreen,71,Bob,-1\nblue,12,Zoe,0.25\n" * 100
    Path("people.csv").write_text(f"colour,age,name,score\n{rows}", encoding="utf-8")
    visits = "".join(f"user{i % 70},{('North', 'South', 'East')[i % 3]},{i % 90}.5\n" for i in range(500))
    Path("visits.csv").write_text(f"user,region,spend\n{visits}", encoding="utf-8")
    Path("regions.txt").write_text("North\nSouth\n", encoding="utf-8")


def ask(run: Run, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a line of a shell."""
    [program, *words] = shlex.split(line, comments=True)
    if program == "cd":
        monkeypatch.chdir(words[0])
        return
    if "<" in words:
        words, [source] = words[: words.index("<")], words[words.index("<") + 1 :]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(source).read_bytes())))
    outcome = run(*words)
    assert outcome.code == 0, (line, outcome.err)


@pytest.mark.usefixtures("_desk")
def test_the_commands_of_the_page_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=1.0).about(
        question="favourite colour", period="2026-W48"
    )
    messages = protocol.messages(protocol.perturb(["red", "green", "blue"]))
    lines = [json.dumps({"message": base64.b64encode(message).decode()}) for message in messages]
    Path("inbox.jsonl").write_text("\n".join(lines), encoding="ascii")
    Path("inbox.bin").write_bytes(b"".join(len(message).to_bytes(4, "little") + message for message in messages))
    for day in ("monday", "tuesday", "wednesday"):
        Path(day).mkdir()
        asked = "perturb people.csv --column colour --domain red,green,blue --protocol oue --epsilon 1 -o"
        assert run(*asked.split(), f"{day}/part.parquet").code == 0
    assert run("estimate", "wednesday/", "--state", "other.json").code == 0
    desk, commands = Path.cwd(), 0
    for block in BLOCKS:
        monkeypatch.chdir(desk)
        for line in block.replace("\\\n", "").splitlines():
            ask(run, line, monkeypatch)
            commands += 1
            if line == "cd survey":
                Path("inbox/first.bin").write_bytes((desk / "inbox.bin").read_bytes())
    assert commands > 15


def test_the_message_of_the_wire_format_is_one() -> None:
    page = PAGE.with_name("wire_format.md").read_text(encoding="utf-8")
    [text] = re.findall(r'^\{"message":"(.*)"\}$', page, re.MULTILINE)
    accumulator = local.OptimizedUnaryEncoding(k=3, epsilon=1.0).accumulator()
    accumulator.add_messages([base64.b64decode(text, validate=True)], strict=True)
    assert accumulator.n == 1


@pytest.mark.parametrize("command", ["plan", "specify", "perturb", "release"])
@pytest.mark.usefixtures("_desk")
def test_the_example_of_a_help_runs(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    function = getattr(import_module(f"dpnoise.cli.{command}"), command)
    [example] = re.findall(r"Example: `(.*?)`", " ".join(function.__doc__.split()))
    ask(run, example, monkeypatch)
