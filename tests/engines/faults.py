"""Faults planted in tasks. The workers of all engines import this module as ``engines.faults``."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def kill_once(marker: str, batch: Any) -> Any:
    """Kill the process that comes here first, as if memory had run out; later ones get the batch."""
    if first_attempt(marker):
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def kill_always(batch: Any) -> Any:
    """Kill every process that comes here."""
    os.kill(os.getpid(), signal.SIGKILL)


def first_attempt(marker: str) -> bool:
    """Return whether nobody came here with this marker before."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Received:
    """A batch that is the result of a function which the process that receives it calls."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._call


def killing(marker: str, kill: Any) -> Any:
    """Make a function for Spark's mapInArrow, which calls `kill` between two batches of the first partition it sees."""

    def pass_on(batches: Any) -> Any:
        for number, batch in enumerate(batches):
            if number == 1 and first_attempt(marker):
                kill()
            yield batch

    return pass_on


def kill_worker() -> None:
    """Kill the Python process of a task."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_executor() -> None:
    """Kill the executor: the JVM that started the daemon that forked this Python process."""
    of_daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(of_daemon[1]), signal.SIGKILL)


def failing_after(folder: str) -> Any:
    """Make a function for Spark's mapInArrow, which keeps a copy of what passes and fails every first attempt after it.

    So the task that was before it in the pipeline is complete, and runs again.
    """

    def pass_on(batches: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        for batch in batches:
            state = batch.column(0)[0].as_py()
            Path(folder, f"{context.partitionId()}-{context.attemptNumber()}").write_bytes(state)
            yield batch
        if context.attemptNumber() == 0:
            raise OSError("a planted fault")

    return pass_on


def waiting(folder: str) -> Any:
    """Make a function for Spark's mapInArrow, which keeps the first attempt of a task until the second is as far."""

    def pass_on(batches: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        Path(folder, f"{context.partitionId()}-{context.attemptNumber()}").touch()
        deadline = time.monotonic() + 120  # then there is no second attempt, and the test fails
        while context.partitionId() == 0 and not Path(folder, "0-1").exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    return pass_on
