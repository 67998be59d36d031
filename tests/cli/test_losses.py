"""Signals, closed pipes, full disks and two runs at once: nothing is lost, and one line says what has happened."""

import contextlib
import dataclasses
import errno
import io
import itertools
import os
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from cli.shared import DOMAIN, Refuse, Run, write

from dpnoise import _files, local
from dpnoise.accounting import Ledger
from dpnoise.audit import _self_audit, self_audit
from dpnoise.audit._cases import CASES
from dpnoise.cli import app, collect, main, signals, starting

PERTURB = ["--column", "colour", "--protocol", "oue", "--epsilon", 2, "--domain", ",".join(DOMAIN)]
NO_SPACE = os.strerror(errno.ENOSPC)
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Return files of 100, 200 and 300 reports."""
    return [write(tmp_path / f"{n}.parquet", n) for n in (100, 200, 300)]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return where a state may go, in a folder of its own."""
    (tmp_path / "states").mkdir()
    return tmp_path / "states" / "state.json"


@pytest.fixture(autouse=True)
def _short_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an audit be of one mechanism."""
    monkeypatch.setattr(_self_audit, "CASES", CASES[:1])


@pytest.fixture
def no_space(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function from whose call on the disk is full."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, NO_SPACE)

    return lambda: monkeypatch.setattr("os.fsync", fail)


# --- Signals -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _heeded_signals() -> Iterator[None]:
    """Let no signal be ignored, as those of the keyboard are in the background of a shell, and let none end pytest."""

    def unexpected(number: int, _: object) -> None:
        raise AssertionError(f"{signal.Signals(number).name} was not taken")

    former = {number: signal.signal(number, unexpected) for number in SIGNALS}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def sending(number: int) -> Callable[..., None]:
    """Return a function that sends a signal to this process, whatever it is called with."""
    return lambda *_, **__: send(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_keeps_what_has_been_counted(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = collect.sha256

    def hashed(path: Path) -> str:
        if path == parts[2]:
            send(number)
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(collect, "sha256", hashed)
        outcome = run("estimate", *parts, "--state", state)
    assert (outcome.code, outcome.out) == (128 + number, "")
    assert outcome.err == (
        f"dpnoise: stopped by {signal.Signals(number).name}; '{state}' has what was counted before; of this run's "
        f"files it has 2 now, and the same command goes on with the others\n"
    )
    assert list(state.parent.iterdir()) == [state]
    assert run("estimate", "--state", state, "--json").json["n"] == 300
    assert run("estimate", *parts, "--state", state, "--json").json["n"] == 600


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_every_command_with_a_line(
    run: Run, colours_csv: Path, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run("estimate", parts[0], "--state", state)
    ledger = state.with_name("ledger")
    Ledger(ledger, epsilon=1.0)
    folder = state.parent
    before = {path: path.read_bytes() for path in folder.iterdir()}
    new = folder / "new"
    for target, arguments in {
        "dpnoise.cli.demo.datasets.adult_occupations": ["demo", "--plot", new.with_suffix(".png")],
        "dpnoise.cli.plan.local.plan": ["plan", "--n", 10, "--k", 3, "--epsilon", 1],
        "dpnoise.cli.perturb._perturbed": ["perturb", colours_csv, *PERTURB, "-o", new.with_suffix(".parquet")],
        "dpnoise.cli.estimate.local.Accumulator.estimate": ["estimate", *parts, "-o", new.with_suffix(".csv")],
        "dpnoise.cli.tables.write_table": ["estimate", *parts, "-o", new.with_suffix(".csv")],
        "dpnoise.cli.state.State.joined": ["merge", state, state, "-o", new],
        "dpnoise.cli.release.tables.open_columns": ["release", colours_csv, "--query", "count", "--column", "colour",
                                                   "--epsilon", 1, "-o", new.with_suffix(".json")],
        "dpnoise.cli.ledger.Ledger.open_readonly": ["ledger", ledger],
        "dpnoise.cli.audit.self_audit": ["audit", "--plot", new.with_suffix(".png")],
    }.items():  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(target, sending(number))
            outcome = run(*arguments)
        name = signal.Signals(number).name
        assert outcome.code == 128 + number, target
        assert outcome.err == f"dpnoise: stopped by {name}; no incomplete file is left\n"
        assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_signal_waits_until_the_state_is_written(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", sending(signal.SIGTERM))
        outcome = run("estimate", *parts, "--state", state)
    assert (outcome.code, outcome.out) == (143, "")
    assert outcome.err.startswith(f"dpnoise: stopped by SIGTERM; '{state}' has what was counted before")
    assert run("estimate", "--state", state, "--json").json["n"] == 600


def test_a_signal_between_counting_and_saving(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("dpnoise.cli.estimate._print_problems", sending(signal.SIGINT))
        outcome = run("estimate", *parts, "--state", state)
    assert (outcome.code, outcome.out) == (130, "")
    assert f"'{state}' has what was counted before; of this run's files it has {len(parts)} now" in outcome.err
    assert run("estimate", "--state", state, "--json").json["n"] == 600


def test_a_second_signal_cuts_nothing_short(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(*_: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            send(signal.SIGINT)
        send(signal.SIGTERM)
        raise KeyboardInterrupt

    monkeypatch.setattr("dpnoise.cli.estimate._print_problems", twice)
    outcome = run("estimate", *parts, "--state", state)
    assert outcome.code == 130
    assert "stopped by SIGINT" in outcome.err


def test_a_signal_that_is_ignored_stays_ignored(
    run: Run, parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:  # as nohup has it
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    monkeypatch.setattr(
        "dpnoise.cli.estimate.read_agreements", lambda *_: [send(signal.SIGTERM) or collect.Agreement()]
    )
    assert run("estimate", *parts, "--json").json["n"] == 600


# What the script that pip makes for the entry point does.
SCRIPT = "import sys\nfrom dpnoise.cli import program\nsys.exit(program())\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_imports_is_one_line(tmp_path: Path, number: int) -> None:
    # The first package of others that the command imports.
    (tmp_path / "numpy.py").write_text(f"import os, signal\nos.kill(os.getpid(), {int(number)})\n", encoding="utf-8")
    program = tmp_path / "dpnoise"
    program.write_text(SCRIPT, encoding="utf-8")
    package = Path(local.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(package)])}
    name = signal.Signals(number).name
    plain = f"dpnoise: stopped by {name}\n"
    document = f'{{"format": 1, "message": "stopped by {name}", "code": {128 + number}}}\n'
    for command, stopped in (
        ([sys.executable, "-m", "dpnoise", "plan"], plain),
        ([sys.executable, str(program), "plan"], plain),
        ([sys.executable, str(program), "plan", "--json"], document),
    ):
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, env=environment, cwd="/"
        )
        assert (process.returncode, process.stdout, process.stderr) == (128 + number, "", stopped)
    # Another program keeps its own handlers.
    other = tmp_path / "dpnoise"
    other.write_text(SCRIPT.replace("program", "main"), encoding="utf-8")
    process = subprocess.run(
        [sys.executable, str(other), "plan"], capture_output=True, check=False, timeout=60, env=environment
    )
    assert process.returncode == -number


def killed_by_itself(step: int, number: int, words: list[str]) -> tuple[int, str]:
    """Run the program in a process that gets a signal before the `step`-th line of what runs commands."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        lines = itertools.count()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            caller = frame.f_back if frame.f_code.co_filename == contextlib.__file__ else frame
            if caller is None or caller.f_code.co_filename not in (app.__file__, signals.__file__):
                return None
            if event == "line" and next(lines) == step:
                sys.settrace(None)
                send(number)
            return trace

        try:
            for descriptor, target in ((os.open(os.devnull, os.O_WRONLY), 1), (writing, 2)):
                os.dup2(descriptor, target)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.argv = ["dpnoise", *words]
            for each in SIGNALS:
                signal.signal(each, starting.end)
            sys.settrace(trace)
            try:
                code = main()
                sys.settrace(None)
                os._exit(200 if next(lines) <= step else code)
            except BaseException:
                traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(201)
    os.close(writing)
    with open(reading, encoding="utf-8") as stderr:
        said = stderr.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(("number", "words", "usual"), [
    (signal.SIGINT, ["--version"], (0, "")),
    (signal.SIGTERM, ["ledger", "none"], (2, "there is no ledger")),
])  # fmt: skip
def test_a_signal_at_any_line_is_one_line(number: int, words: list[str], usual: tuple[int, str]) -> None:
    name = signal.Signals(number).name
    main(words)  # and its imports
    outcomes = set()
    for step in itertools.count():
        code, said = killed_by_itself(step, number, words)
        if code == 200:
            break
        outcomes.add(code)
        if code == usual[0]:  # the work was done
            assert usual[1] in said
        else:
            assert (code, said.partition(";")[0].strip()) == (128 + number, f"dpnoise: stopped by {name}"), step
        assert "Traceback" not in said
        assert said.count("\n") == bool(said)
    assert outcomes == {128 + number, usual[0]}
    assert step > 50


def test_a_signal_in_a_finalizer_is_not_lost(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Finalized:
        def __del__(self) -> None:
            send(signal.SIGTERM)

    def work(*_: object, **__: object) -> None:
        Finalized()
        time.sleep(60)

    monkeypatch.setattr("dpnoise.cli.plan.local.plan", work)
    outcome = run("plan", "--n", 10, "--k", 3, "--epsilon", 1)
    assert (outcome.code, outcome.err) == (143, "dpnoise: stopped by SIGTERM; no incomplete file is left\n")


# --- Standard output -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [False, True])
def test_every_command_says_that_stdout_failed_and_writes_its_files(
    run: Run, colours_csv: Path, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch,
    full_stdout: Any, closed: bool,
) -> None:  # fmt: skip
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    new, ledger = state.with_name("new"), state.with_name("ledger")
    Ledger(ledger, epsilon=1.0)
    chart, reports = new.with_suffix(".png"), new.with_suffix(".parquet")
    made = {
        ("perturb", colours_csv, *PERTURB, "-o", reports): [reports],
        ("estimate", *parts, "--state", state, "-o", new.with_suffix(".csv"), "--plot", chart): [
            state,
            new.with_suffix(".csv"),
            chart,
        ],
        ("estimate", *parts, "--json"): [],
        ("merge", state, "-o", new): [new],
        ("demo", "--plot", chart): [chart],
        ("audit", "--n", 1000, "--plot", chart): [chart],
        ("plan", "--n", 10, "--k", 3, "--epsilon", 1): [],
        ("ledger", ledger): [],
        ("--help",): [],
        ("--version",): [],
        ("merge", "--help"): [],
    }
    for arguments, files in made.items():
        chart.unlink(missing_ok=True)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", None if closed else full_stdout)
            outcome = run(*arguments)
        assert (outcome.code, outcome.out) == (5, ""), arguments
        assert outcome.err == f"dpnoise: stdout could not be written: {'it is closed' if closed else NO_SPACE}\n"
        assert all(path.stat().st_size for path in files)


def test_a_refuted_claim_is_not_lost_with_stdout(run: Run, full_stdout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = dataclasses.replace(self_audit(n=1000), refuted=True)
    monkeypatch.setattr("dpnoise.cli.audit.self_audit", lambda **_: report)
    monkeypatch.setattr(sys, "stdout", full_stdout)
    outcome = run("audit")
    assert (outcome.code, outcome.err) == (4, "dpnoise: stdout could not be written: No space left on device\n")


def test_a_closed_pipe_ends_the_program_in_silence(parts: list[Path], state: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    estimate = ["estimate", str(parts[0]), "--state", str(state)]
    helps = [["--help"], ["plan", "--help"], ["--version"]]
    for words in (*helps, ["plan", "--n", "10", "--k", "3", "--epsilon", "1"], estimate):
        command = [sys.executable, "-m", "dpnoise", *words]
        process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        # Without a message of the interpreter either, which would write its buffers once more at the end.
        assert (process.returncode, process.stderr) == (141, ""), words
    os.close(writer)
    assert state.stat().st_size


def test_a_value_that_stdout_cannot_encode_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    write(path, 2, local.OptimizedUnaryEncoding(domain=["thé", "b"], epsilon=2.0))
    command = [sys.executable, "-m", "dpnoise", "estimate", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, capture_output=True, check=False, timeout=60, env=environment)
    assert (process.returncode, process.stderr) == (0, b"")
    assert b"th\\xe9 " in process.stdout


def test_a_closed_stderr_is_not_stdout(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    outcome = run("estimate", "missing.parquet")
    assert (outcome.code, outcome.out) == (2, "")


def test_a_terminal_that_is_gone_stops_no_work(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        encoding, errors = "utf-8", "strict"

        def write(self, _: str) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        def flush(self) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            raise io.UnsupportedOperation

    monkeypatch.setattr(sys, "stderr", Gone())
    monkeypatch.setenv("TERM", "xterm")
    assert run("estimate", *parts, "--json").json["n"] == 600
    with monkeypatch.context() as patch:
        patch.setattr(collect, "sha256", lambda path: send(signal.SIGHUP) if path == parts[2] else str(path))
        assert run("estimate", *parts, "--state", state).code == 129
    assert run("estimate", "--state", state, "--json").json["n"] == 300


def test_signals_are_answered_before_anything_is_imported() -> None:
    program = (
        "import os, sys\nbefore = set(sys.modules)\nexec(open(sys.argv[1]).read())\nprint(set(sys.modules) - before)"
    )
    command = [sys.executable, "-I", "-S", "-c", program, starting.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("set()\n", "")


# --- Names of files ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_may_be_any_bytes(run: Run, colours_csv: Path, tmp_path: Path) -> None:
    def name(suffix: str) -> Path:
        return tmp_path / f"\udcff{suffix}"

    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="backslashreplace")  # as the program does

    colours_csv.rename(name(".csv"))
    assert run("perturb", name(".csv"), *PERTURB, "-o", name("-reports.parquet"), "--json").code == 0
    estimated = run("estimate", name("-reports.parquet"), "--state", name(".state"), "--json")
    assert (estimated.code, estimated.json["n"]) == (0, 18_000)
    for suffix in (".csv", ".json", ".parquet"):
        for _ in range(2):  # an estimate replaces an estimate
            done = run("estimate", "--state", name(".state"), "-o", name(f"-estimate{suffix}"))
            assert (done.code, done.err) == (0, "")
        given = ["--query", "count", "--column", "colour", "--epsilon", 1, "--ledger", name(".db"), "--budget", 10, 0]
        paid = run("release", name(".csv"), *given, "-o", name(f"-answer{suffix}"))
        assert (paid.code, paid.err) == (0, "")
    rows = run("release", name("-estimate.parquet"), "--query", "count", "--column", "value", "--epsilon", 1)
    assert (rows.code, rows.err) == (0, "")
    assert run("merge", name(".state"), "-o", name("-merged.state")).code == 0
    assert run("estimate", name("-merged.state")).code == 2
    assert run("ledger", name(".db")).code == 0


# --- Files ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_new_file_is_its_owners_alone_and_an_old_one_stays_as_it_was(state: Path) -> None:
    mask = os.umask(0)
    try:
        for expected in (0o600, 0o640):
            with _files.atomic_write(state) as file:
                [partial] = state.parent.glob(".*.partial")
                assert partial.stat().st_mode & 0o777 == 0o600
                file.write(b"private")
            assert state.stat().st_mode & 0o777 == expected
            state.chmod(0o640)
        with _files.locked(state):
            assert state.with_name(f".{state.name}.lock").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not sync directories")
def test_the_name_of_a_file_is_on_disk_after_its_content(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    failure = 0

    def fsync(descriptor: int) -> None:
        of_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(f"directory, {state.read_text(encoding='ascii')}" if of_directory else "file")
        if of_directory and failure:
            raise OSError(failure, os.strerror(failure))

    monkeypatch.setattr("os.fsync", fsync)
    for failure, text in ((0, "one"), (errno.EINVAL, "two"), (errno.EIO, "three")):  # noqa: B007 - fsync reads it
        with contextlib.suppress(_files.NotWritten), _files.atomic_write(state) as file:
            file.write(text.encode())
    assert synced == ["file", "directory, one", "file", "directory, two", "file", "directory, three"]
    with pytest.raises(_files.NotWritten, match="Input/output error"), _files.atomic_write(state):
        pass


# --- Leftovers -----------------------------------------------------------------------------------------------------


def test_what_killed_runs_left_is_swept(run: Run, parts: list[Path], state: Path) -> None:
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom dpnoise import _files\n"
        "with _files.locked(Path(sys.argv[1])), _files.atomic_write(Path(sys.argv[1]), reserve=1 << 20):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    target = state.with_name("odd [*].csv")
    for path in (state, state, target):
        subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    left = list(state.parent.glob(".*.partial"))
    assert [path.stat().st_size for path in left] == [1 << 20] * 2  # the second run has swept what the first one left
    others = [state.with_name(".another.json.01234567.partial"), state.with_name(f".{state.name}.mine.partial")]
    for other in others:
        other.touch()
    with _files.atomic_write(target) as file:
        assert not set(state.parent.glob(".odd*.partial")) & set(left)
        with _files.atomic_write(target) as at_once:  # what is being written stays
            at_once.write(b"one")
        file.write(b"two")
    assert target.read_bytes() == b"two"
    target.unlink()
    assert run("estimate", *parts, "--state", state).code == 0
    assert sorted(state.parent.glob("*.partial")) == sorted(others)


def test_nothing_is_swept_where_there_are_no_locks(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    fcntl = pytest.importorskip("fcntl", reason="this system has other locks")
    monkeypatch.setattr(fcntl, "flock", fail)
    with _files.atomic_write(state) as file:
        with _files.atomic_write(state) as at_once:
            at_once.write(b"one")
        file.write(b"two")
    assert state.read_bytes() == b"two"


def test_a_file_that_another_process_sweeps_is_in_use(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl", reason="Windows removes no open file")
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        for partial in state.parent.iterdir():
            partial.unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(_files.InUse, match="is in use by another process: try again"), _files.atomic_write(state):
        pass
    assert list(state.parent.iterdir()) == []


# --- Full disks ----------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_older_files_and_names_the_new_one(
    run: Run, colours_csv: Path, parts: list[Path], state: Path, no_space: Callable[[], None]
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    target = {suffix: state.with_name(f"new{suffix}") for suffix in (".parquet", ".csv", ".png", "")}
    other = parts[0].with_suffix(".state")
    run("estimate", parts[0], "--state", target[""])
    run("estimate", parts[1], "--state", other)
    run("estimate", parts[0], "-o", target[".csv"], "--plot", target[".png"])
    run("perturb", colours_csv, *PERTURB, "-o", target[".parquet"])
    before = {path: path.read_bytes() for path in state.parent.iterdir()}
    assert len(before) == 4
    no_space()
    for suffix, arguments in (
        (".parquet", ["perturb", colours_csv, *PERTURB, "--force", "-o"]),
        (".csv", ["estimate", *parts, "-o"]),
        ("", ["estimate", *parts[1:], "--state"]),
        ("", ["merge", other, "-o"]),
        (".png", ["estimate", *parts, "--plot"]),
        (".png", ["demo", "--plot"]),
        (".png", ["audit", "--n", 1000, "--plot"]),
    ):
        outcome = run(*arguments, target[suffix])
        message = f"dpnoise: '{target[suffix]}' could not be written: No space left on device\n"
        assert (outcome.code, outcome.err) == (5, message), arguments
        # What is finished has been printed.
        assert bool(outcome.out) == (arguments[0] not in ("perturb", "merge"))
        assert {path: path.read_bytes() for path in state.parent.iterdir()} == before


def test_a_state_that_cannot_be_saved_on_the_way_is_saved_at_the_end(
    run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = os.fsync, iter([OSError(errno.ENOSPC, NO_SPACE)])

    def once(descriptor: int) -> None:
        for failure in failures:
            raise failure
        real(descriptor)

    monkeypatch.setattr("os.fsync", once)
    monkeypatch.setattr(collect, "_SAVE_SECONDS", -1)
    outcome = run("estimate", *parts, "--state", state)
    assert outcome.code == 0
    assert outcome.err == (
        f"dpnoise: '{state}' could not be written: No space left on device; what has been counted since is kept in "
        f"memory until there is room\n"
    )
    assert run("estimate", "--state", state, "--json").json["n"] == 600


def test_targets_that_could_not_be_written_are_refused_first(
    refuse: Refuse, run: Run, colours_csv: Path, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("estimate", parts[0], "--state", state)
    new = state.with_name("new.csv")
    real = os.access
    # As for a read-only directory, which does not stop the superuser.
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != state.parent and real(path, mode))
    for arguments in (
        ["perturb", colours_csv, *PERTURB, "-o", new.with_suffix(".parquet")],
        ["estimate", *parts, "-o", new],
        ["estimate", *parts, "--plot", new.with_suffix(".png")],
        ["estimate", *parts, "--state", state],
        ["merge", state, "-o", new],
        ["demo", "--plot", new.with_suffix(".png")],
        ["audit", "--plot", new.with_suffix(".png")],
        ["release", colours_csv, "--query", "count", "--column", "colour", "--epsilon", 1, "-o", new],
    ):
        if "--plot" in arguments:
            pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
        assert refuse(*arguments).endswith(f"cannot be written: nothing can be written to '{state.parent}'"), arguments
    assert run("estimate", "--state", state, "--json").json["n"] == 100  # which writes nothing


def test_a_file_that_is_none_is_not_replaced(refuse: Refuse, parts: list[Path], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(pipe)
    assert refuse("estimate", *parts, "-o", pipe).endswith("cannot be written: it is no file")


def test_a_symbolic_link_stays_one(run: Run, parts: list[Path], state: Path) -> None:
    link = state.with_name("link.json")
    link.symlink_to(state.name)
    for path in parts:
        assert run("estimate", path, "--state", link).code == 0
    assert link.is_symlink()
    assert run("estimate", "--state", state, "--json").json["n"] == 600


# --- Two at once ---------------------------------------------------------------------------------------------------


def test_a_file_that_another_run_changes(
    refuse: Refuse, run: Run, colours_csv: Path, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("estimate", parts[0], "--state", state)
    reports = state.with_name("reports.parquet")
    monkeypatch.setattr("socket.gethostname", lambda: "example")
    with _files.locked(state), _files.locked(reports):
        by = f"process {os.getpid()} on example: try again when that has ended"
        assert refuse("estimate", *parts, "--state", state) == f"'{state}' is in use by {by}"
        assert refuse("merge", state.with_name("none"), "-o", state) == f"'{state}' is in use by {by}"
        assert refuse("perturb", colours_csv, *PERTURB, "-o", reports) == f"'{reports}' is in use by {by}"
        assert run("estimate", "--state", state, "--json").json["n"] == 100  # which only reads
    assert list(state.parent.iterdir()) == [state]
    assert run("estimate", *parts, "--state", state, "--json").json["n"] == 600


def test_the_loser_does_no_work(run: Run, parts: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, inner = collect._take_in, []

    def meanwhile(*arguments: Any) -> None:
        if not inner:
            inner.append(None)
            inner[0] = run("estimate", parts[1], "--state", state)
        real(*arguments)

    monkeypatch.setattr(collect, "_take_in", meanwhile)
    outcome = run("estimate", parts[0], "--state", state)
    assert (outcome.code, inner[0].code) == (0, 2)
    assert "is in use by process" in inner[0].err
    monkeypatch.setattr(collect, "_take_in", real)
    assert run("estimate", "--state", state, "--json").json["n"] == 100


def test_a_lock_ends_with_its_process(state: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom dpnoise import _files\n"
        "with _files.locked(Path(sys.argv[1])):\n    print('locked', flush=True)\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with (
            pytest.raises(_files.InUse, match=f"'{state}' is in use by process {process.pid} on "),
            _files.locked(state),
        ):
            pass
        process.kill()
    with _files.locked(state):
        pass


def test_a_lock_on_a_file_that_its_holder_has_removed_is_none(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, real, removed = state.with_name(f".{state.name}.lock"), _files.is_locked, []

    def lock(descriptor: int) -> bool:
        if not removed:  # by whoever held it until now
            removed.append(beside.unlink())
        return real(descriptor)

    monkeypatch.setattr(_files, "is_locked", lock)
    with _files.locked(state), pytest.raises(_files.InUse), _files.locked(state):
        pass
    assert list(state.parent.iterdir()) == []


def test_a_file_system_without_locks(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    fcntl = pytest.importorskip("fcntl", reason="this system has other locks")
    monkeypatch.setattr(fcntl, "flock", fail)
    with _files.locked(state), _files.locked(state):
        pass
