"""Distribution of work over the processes of one machine."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeAlias

_ATTEMPTS: Final = 3

Notice: TypeAlias = Callable[[Any, int | None], object]


def _no_notice(name: Any, exit_code: int | None) -> None:
    """Say nothing: a death may depend on private data."""


class Died(Exception):
    """A part was not processed: several processes died while they worked on it."""


def in_processes(
    task: Callable[[Any], Any], parts: Iterable[tuple[Any, Any]], processes: int, notice: Notice = _no_notice
) -> Generator[tuple[Any, Any], None, None]:
    """Process parts in several processes, and yield the replies as they arrive.

    Parameters
    ----------
    task : callable
        The function to apply to a part; it is pickled for the processes.
    parts : iterable of (name, part)
        A generator is advanced when a process is free.
    processes : int
        The number of processes, at least 1.
    notice : callable, optional
        Called with the name of a part and the exit code when a process has died over the part.

    Yields
    ------
    (name, reply)
        The result of the task, or the exception that it raised; `Died` if three processes died while they worked on a
        part.
    """
    remaining = iter(parts)
    workers: list[Worker] = []
    try:
        for name, part in islice(remaining, processes):
            workers.append(Worker(task, notice))
            workers[-1].give(name, part)
        while workers:
            connections = wait([worker.connection for worker in workers])
            for worker in [one for one in workers if one.connection in connections]:
                if not worker.take():
                    continue
                yield worker.name, worker.reply
                following = next(remaining, None)
                if following is None:
                    worker.stop()
                    workers.remove(worker)
                else:
                    worker.give(*following)
    finally:
        for worker in workers:
            worker.stop()


class Worker:
    """A process that deals with one part at a time, and is replaced when it dies.

    `concurrent.futures` does not say which part a process died on, and hangs if a process is killed while it sends a
    reply.
    """

    def __init__(self, task: Callable[[Any], Any], notice: Notice = _no_notice) -> None:
        self._task, self._notice = task, notice
        self._start()

    def _start(self) -> None:
        # Spawned: a fork would copy locks that other threads hold.
        context = multiprocessing.get_context("spawn")
        self.connection, end = context.Pipe()
        self._process = context.Process(target=_serve, args=(end, self._task), daemon=True)
        try:
            self._process.start()
        finally:
            end.close()  # then the connection ends when the process does

    def give(self, name: Any, part: Any) -> None:
        self.name, self._part, self._deaths = name, part, 0
        self._send()

    def _send(self) -> None:
        with suppress(ConnectionError):  # the process is dead, as `take` will find
            self.connection.send(self._part)

    def take(self) -> bool:
        """Receive `reply`; return False if the process has died and a new one now works on the part."""
        try:
            self.reply = self.connection.recv()
        except (EOFError, OSError):
            self._deaths += 1
            self.stop()
            exit_code = self._process.exitcode
            self._notice(self.name, exit_code)
            self._start()
            if self._deaths < _ATTEMPTS:
                self._send()
                return False
            self.reply = Died(f"{_ATTEMPTS} processes died over it, the last with exit code {exit_code}")
        return True

    def stop(self) -> None:
        """Kill the process at any moment: its only effect is its reply."""
        self.connection.close()
        self._process.terminate()
        self._process.join()


def _serve(connection: Connection, task: Callable[[Any], Any]) -> None:
    """Answer each part with the result of the task, or with the error, until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    try:
        while True:
            part = connection.recv()
            try:
                reply = task(part)
            except Exception as error:
                reply = error
            connection.send(reply)
    except (EOFError, ConnectionError):
        pass
    except BaseException:
        sys.exit(1)  # without a traceback, which would reveal the part
