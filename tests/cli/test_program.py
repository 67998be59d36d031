"""The program as a whole: version, help, missing extras, interruption."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from cli.shared import Run

pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

import dpnoise
from dpnoise.cli import main
from dpnoise.cli.app import COMMANDS
from dpnoise.cli.console import FORMAT


def test_version(run: Run) -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"dpnoise {dpnoise.__version__}\n", "")


def test_module_runs_as_the_program() -> None:
    command = [sys.executable, "-m", "dpnoise", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.startswith("dpnoise ")


def test_exit_code_reaches_the_shell() -> None:
    command = [sys.executable, "-m", "dpnoise", "estimate", "no-such-file.parquet"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert process.returncode == 2
    assert process.stderr == "dpnoise: no-such-file.parquet: No such file or directory\n"


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    outcome = run()
    assert outcome.code == 0
    for command in ("demo", "plan", "perturb", "estimate", "merge"):
        assert command in outcome.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(run: Run, command: str) -> None:
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert "--json" in outcome.out
    assert run(command, "-h") == outcome


@pytest.mark.parametrize("words", [[], *([command] for command in COMMANDS)])
def test_no_help_shows_types_of_python(run: Run, words: list[str]) -> None:
    shown = run(*words, "-h").out
    assert "--help" in shown
    assert not re.search(r"<\w+(\[\w+\])?>|list\[|BOOLEAN", shown)


def test_the_short_option_for_help_is_that_of_the_program_too(run: Run) -> None:
    assert run("-h") == run("--help") == run()


@pytest.mark.parametrize("command", ["perturb", "estimate", "release", "audit"])
def test_commands_that_say_more_than_their_answer_can_be_quiet(run: Run, command: str) -> None:
    assert "--quiet" in run(command, "-h").out


Completed = Callable[[str, str], list[str]]


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Completed:
    """Return a function that gives what a shell is told to complete the last word of a line to."""

    def ask(shell: str, line: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("_DPNOISE_COMPLETE", f"complete_{shell}")
            patch.setenv("COMP_WORDS" if shell == "bash" else "_TYPER_COMPLETE_ARGS", line)
            patch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            patch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
            with pytest.raises(SystemExit):
                main([])
        return [word.partition("\t")[0] for word in capsys.readouterr().out.split("\n") if word]

    return ask


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_complete_commands_and_choices(completed: Completed, shell: str) -> None:
    assert completed(shell, "dpnoise p") == ["plan", "perturb"]
    assert completed(shell, "dpnoise release --query m") == ["mean", "median"]
    assert completed(shell, "dpnoise estimate --post norm-s") == ["norm-sub"]


def test_shells_complete_protocols_and_columns(completed: Completed, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"colour": ["red"], "city": ["here"], "age": [1]}), path)
    assert completed("bash", f"dpnoise perturb {path} --column c") == ["colour", "city"]
    path.with_suffix(".csv").write_text("Carla,1\n", encoding="utf-8")  # no line of names: this is a person's row
    assert completed("bash", f"dpnoise perturb {path.with_suffix('.csv')} --column C") == []
    assert completed("bash", "dpnoise perturb --protocol l") == ["lh", "lue", "loloha", "laplace"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_no_column_of_a_file_is_run_by_a_shell(completed: Completed, tmp_path: Path, shell: str) -> None:
    # In the words for zsh the first closes its quotes, and its command would run at the press of a key.
    hostile = ['x\\" <(touch run) \\"', "x$(touch run)", "x`touch run`", "x;touch run", "x'", "x\\", "x\n", "x\x1b"]
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({name: [1] for name in [*hostile, "x y-1.é_"]}), path)
    words = "".join(completed(shell, f"dpnoise attack {path} --column x"))
    assert "x y-1.é_" in words
    assert not set("<>$`;\\") & set(words.replace("_arguments '*: :((", ""))


def test_an_open_quote_is_no_error(completed: Completed) -> None:
    assert completed("bash", "dpnoise release 'my --query m") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "No such command 'frobnicate'."),
        (["demo", "--nonsense"], "No such option"),
        (["demo", "--epsilon", "much"], "Invalid value for '--epsilon': "),
        (["estimate", "--post", "magic"], "Invalid value for '--post': 'magic' is not one of 'base-cut', "),
        (["demo", "--threads", "0"], "Invalid value for '--threads': "),
        (["perturb"], "Missing argument"),
        (["estimate"], "give files of reports, or with --state what an earlier run has counted"),
    ],
)
def test_bad_usage_is_one_line(refuse: Callable[..., str], arguments: list[str], message: str) -> None:
    assert message in refuse(*arguments)


def test_failing_randomness_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise dpnoise.RandomnessError("the source of randomness failed, nothing was released: it is dry")

    monkeypatch.setattr("dpnoise.cli.demo.datasets.adult_occupations", fail)
    outcome = run("demo")
    message = "dpnoise: the source of randomness failed, nothing was released: it is dry\n"
    assert (outcome.code, outcome.out, outcome.err) == (1, "", message)


@pytest.mark.parametrize(
    ("package", "word"), [("typer", "--version"), ("rich", "--version"), ("pyarrow", "perturb"), ("pyarrow", "release")]
)
def test_missing_extra_is_one_line(
    package: str, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("dpnoise.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main([word]) == 2
    assert capsys.readouterr().err == (
        f"dpnoise: the command line needs the package {package}: "
        'pip install "pyarrow>=18" "narwhals>=2" "typer>=0.19" "rich>=13.7"\n'
    )
    assert main([word, "--json"]) == 2
    document = json.loads(capsys.readouterr().err)
    assert (list(document), document["format"], document["code"]) == (["format", "message", "code"], FORMAT, 2)


def test_importing_the_package_imports_no_extra() -> None:
    program = "import sys, dpnoise; sys.exit(any(x in sys.modules for x in ('typer', 'rich', 'pyarrow', 'matplotlib')))"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        ("--help", {"numpy", "pyarrow", "dpnoise.local", "dpnoise.audit", "dpnoise.accounting"}),
        ("--version", {"numpy", "pyarrow", "dpnoise.local", "dpnoise.audit", "dpnoise.accounting"}),
        ("plan --n 1000 --k 3 --epsilon 1", {"pyarrow", "sqlite3", "dpnoise.audit", "dpnoise.accounting"}),
        ("perturb --help", {"sqlite3", "dpnoise.audit", "dpnoise.accounting"}),
        ("ledger absent", {"pyarrow", "dpnoise.audit"}),
    ],
)
def test_a_command_imports_what_it_needs(arguments: str, spared: set[str]) -> None:
    program = "import sys\nfrom dpnoise.cli import main\nmain(sys.argv[1:])\nprint(*sys.modules)"
    command = [sys.executable, "-c", program, *arguments.split()]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "typer" in loaded
    assert not {"matplotlib", "scipy", "pandas", "dpnoise.stability", *spared} & set(loaded)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_says_what_they_say(command: str) -> None:
    function = getattr(import_module(f"dpnoise.cli.{command}"), command)
    assert function.__doc__.partition("\n")[0] == COMMANDS[command]
