"""A ledger whose file is read, whose thread is interrupted, and whose system calls fail."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpnoise import BudgetExceeded, PrivacyCost
from dpnoise.accounting import Ledger, LedgerError

FULL = "DPNOISE_TEST_SAMPLES" in os.environ
FOLDER = Path(__file__).parent

OTHER = """if True:
    import sys
    import dpnoise.accounting._ledger_file as ledger_file
    from dpnoise import PrivacyCost
    from dpnoise.accounting import Ledger
    ledger_file._SECONDS = 0.3
    ledger = Ledger(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            ledger.spend(PrivacyCost(float(line)), "the other process")
            print("granted", flush=True)
        except Exception as error:
            print(error, flush=True)
"""


class Reading:
    """A connection after whose last statement before a commit another thread reads the file, and a process spends."""

    def __init__(self, connection: sqlite3.Connection, path: Path, other: subprocess.Popen[str]) -> None:
        self._connection, self._path, self._other = connection, path, other
        self.rollback, self.close = connection.rollback, connection.close
        self.answers: list[str] = []

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT" and not self.answers:
            self._path.open("rb").close()
            self.answers.append(ask(self._other, 0.9))
        return self._connection.execute(statement, *values)


def ask(other: subprocess.Popen[str], epsilon: float) -> str:
    assert other.stdin is not None
    other.stdin.write(f"{epsilon}\n")
    other.stdin.flush()
    return answer(other)


def answer(other: subprocess.Popen[str]) -> str:
    assert other.stdout is not None
    return other.stdout.readline()


def test_who_reads_the_file_during_a_spend_ends_no_lock(memory_path: Path) -> None:
    ledger = Ledger(memory_path / "ledger", epsilon=1.0)
    command = [sys.executable, "-c", OTHER, str(ledger.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert answer(other) == "ready\n"
        assert ledger._file._connection is not None
        reading = Reading(ledger._file._connection, ledger.path, other)
        ledger._file._connection = reading  # type: ignore[assignment]
        ledger.spend(PrivacyCost(0.8), "this process")
        assert reading.answers == [f"{str(ledger.path)!r} has been locked by another program for 0.3 seconds\n"]
        assert "0.2" in ask(other, 0.9), "what remains is not enough"
        assert ask(other, 0.2) == "granted\n"
        other.communicate()
    assert [entry.label for entry in ledger.entries()] == ["this process", "the other process"]
    with pytest.raises(BudgetExceeded):
        ledger.spend(PrivacyCost(0.1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_spend_is_whole_whatever_interrupts_it(memory_path: Path) -> None:
    command = [sys.executable, FOLDER / "ledger_interruptions.py", memory_path, str(3000 if FULL else 200)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    for use in ("read", "spend_again", "open_again", "spend_elsewhere"):
        assert found[use]["done"] > 10
        assert found[use]["refused"] > 40
    assert all(found["forks"][f"granted to {number} of 2"] > 10 for number in range(3))
    assert found["stops"]["granted"] > 0
    assert found["stops"]["stopped, recorded: False"] > 0


def test_a_finalizer_cannot_use_a_ledger_in_the_middle_of_a_spend(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(memory_path / "ledger", epsilon=1.0)
    problems: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda problem: problems.append(problem.exc_value))

    class Reader:
        def __del__(self) -> None:
            ledger.remaining.amounts()

    grants = ledger._filter.grants

    def grants_and_collects(totals: Any) -> bool:
        reader: Any = Reader()
        reader.itself = reader
        del reader
        gc.collect()
        return grants(totals)

    monkeypatch.setattr(type(ledger._filter), "grants", lambda _, totals: grants_and_collects(totals))
    ledger.spend(PrivacyCost(0.5))
    monkeypatch.undo()
    assert [type(problem) for problem in problems] == [LedgerError]
    assert ledger.spent.epsilon == Ledger(ledger.path).spent.epsilon == 0.5


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_what_is_granted_is_recorded_whichever_system_call_fails(memory_path: Path) -> None:
    shim = memory_path / "failing_calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, FOLDER / "failing_calls.c", "-ldl"], check=True)
    command = [sys.executable, FOLDER / "ledger_faults.py", memory_path, shim, *["--all"] * FULL]
    environment = {**os.environ, "LD_PRELOAD": str(shim)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(json.dumps(found, indent=1))
    boastful = found.pop("boastful")
    assert all("wrong" not in outcomes for action in found.values() for outcomes in action.values())
    assert sum(found["spend"]["EIO"].values()) > 40
    assert found["spend"]["EIO"]["refused, recorded 0"] > 20
    assert list(found["spend"]["POSIX locks dropped"]) == ["granted, recorded 1"]
    # Positive control: who calls a spend granted whatever fails is found out.
    assert boastful["EIO"]["wrong"] > 20
