"""Paths that no command can use: each is refused by one line that names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.shared import Refuse, Run, write

from dpnoise import local
from dpnoise.accounting import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

PERTURB = ["--column", "v", "--k", 3, "--protocol", "oue", "--epsilon", 1]
COUNT = ["--query", "count", "--column", "v", "--epsilon", 1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("v\n1\n2\n", encoding="utf-8")
    write(Path("reports.parquet"), 10)
    Ledger("ledger", epsilon=1.0)
    return tmp_path


def commands(name: str) -> list[tuple[str, list[object]]]:
    """Return every command with this name in every place of a path; all have the suffix that is asked for."""
    csv, parquet, png = (f"{name}{suffix}" for suffix in (".csv", ".parquet", ".png"))
    given = [
        (csv, ["perturb", csv, *PERTURB, "-o", "new.parquet"]),
        (parquet, ["perturb", parquet, *PERTURB, "-o", "new.parquet"]),
        (parquet, ["perturb", "data.csv", *PERTURB, "-o", parquet]),
        (name, ["perturb", "data.csv", "--column", "v", "--spec", name, "-o", "new.parquet"]),
        (name, ["perturb", "data.csv", *PERTURB[:2], "--domain-file", name, *PERTURB[4:], "-o", "new.parquet"]),
        (parquet, ["estimate", parquet]),
        (csv, ["estimate", "reports.parquet", "-o", csv]),
        (name, ["estimate", "reports.parquet", "--state", name]),
        (name, ["estimate", "reports.parquet", "--spec", name]),
        (name, ["estimate", "reports.parquet", "--spec", name]),
        (name, ["merge", "reports.parquet", "-o", name]),
        (name, ["merge", name, "-o", "new"]),
        (name, ["specify", "--protocol", "oue", "--k", 3, "--epsilon", 1, "-o", name]),
        (csv, ["release", csv, *COUNT]),
        (parquet, ["release", parquet, *COUNT]),
        (csv, ["release", "data.csv", *COUNT, "-o", csv]),
        (name, ["release", "data.csv", *COUNT, "--ledger", name, "--budget", 1, 0]),
        (name, ["ledger", name, "--epsilon", 1]),
    ]
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        return given
    plots = [["estimate", "reports.parquet"], ["demo"], ["audit", "--n", 1000]]
    return [*given, *((png, [*words, "--plot", png]) for words in plots)]


def test_a_loop_of_links(refuse: Refuse, folder: Path) -> None:
    for suffix in ("", ".csv", ".parquet", ".png"):
        Path(f"loop{suffix}").symlink_to(f"loop{suffix}")
    before = sorted(folder.iterdir())
    for name, words in commands("loop"):
        told = f"{name!r} cannot be used" if "ledger" in str(words) else name
        assert refuse(*words) == f"{told}: Too many levels of symbolic links", words
        assert sorted(folder.iterdir()) == before


def test_a_name_with_a_nul(refuse: Refuse) -> None:
    for _, words in commands("a\0b"):
        assert "null byte" in refuse(*words), words


def test_a_directory_that_is_gone(folder: Path) -> None:
    (folder / "gone").mkdir()
    program = (
        "import ast, os, sys\nfrom dpnoise.cli import main\n"
        "for words in ast.literal_eval(sys.argv[1]):\n"
        "    os.mkdir(sys.argv[2])\n    os.chdir(sys.argv[2])\n    os.rmdir(sys.argv[2])\n"
        "    print(main(words))\n"
    )
    given = [[str(word) for word in words] for _, words in commands("x")]
    command = [sys.executable, "-c", program, repr(given), str(folder / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "2\n" * len(given), done
    lines = done.stderr.splitlines()
    assert len(lines) == len(given), done.stderr
    for line in lines:
        assert line.startswith("dpnoise: ")
        assert line.endswith((": No such file or directory", ": the current directory does not exist")), line


def test_a_pipe_is_no_file(refuse: Refuse) -> None:
    for suffix in (".csv", ".parquet"):
        os.mkfifo(f"pipe{suffix}")
    for words in (
        ["perturb", "pipe.csv", *PERTURB, "-o", "new.parquet"],
        ["perturb", "pipe.parquet", *PERTURB, "-o", "new.parquet"],
        ["estimate", "pipe.parquet"],
        ["release", "pipe.csv", *COUNT],
        ["release", "pipe.parquet", *COUNT],
    ):
        name = next(str(word) for word in words if str(word).startswith("pipe"))
        assert refuse(*words) == f"{name!r} must be a file, got a pipe or a device: write that to a file first"


def test_what_is_read_once_may_come_through_a_pipe(run: Run) -> None:
    """As a shell writes it: ``dpnoise estimate <(messages) --messages length-prefixed --spec <(specification)``."""
    protocol = local.OptimizedUnaryEncoding(k=3, epsilon=1.0)
    messages = protocol.messages(protocol.perturb([0, 1, 2]))
    streams = []
    for content in (
        b"".join(len(message).to_bytes(4, "little") + message for message in messages),
        protocol.to_json().encode(),
    ):
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        streams.append(f"/dev/fd/{reading}")
    data, spec = streams
    given = ["--messages", "length-prefixed", "--spec", spec, "--json"]
    assert run("estimate", data, *given).json["n"] == 3
    for stream in streams:
        os.close(int(stream.rpartition("/")[2]))
