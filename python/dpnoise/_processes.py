"""Work that is spread over the processes of one machine."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Final

_ATTEMPTS: Final = 3


class Died(Exception):
    """A part was not dealt with: several processes died over it."""


def in_processes(
    task: Callable[[Any], Any], parts: Iterable[tuple[Any, Any]], processes: int
) -> Generator[tuple[Any, Any], None, None]:
    """Have parts dealt with by processes, and yield the replies as they come.

    Parameters
    ----------
    task : callable
        What is done with a part; it goes to the processes by pickling.
    parts : iterable of (name, part)
        A generator is asked for the next one when a process is free.
    processes : int
        How many, at least 1.

    Yields
    ------
    (name, reply)
        What the task gave, or the exception that it raised; `Died` when three processes died over a part.
    """
    remaining = iter(parts)
    workers: list[Worker] = []
    try:
        for name, part in islice(remaining, processes):
            workers.append(Worker(task))
            workers[-1].give(name, part)
        while workers:
            for worker in _ready(workers):
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

    What `concurrent.futures` offers does not say which part a process died over, and waits for ever for the rest of a
    reply that a process was sending when it was killed.
    """

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self._task = task
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
        """Have a part dealt with."""
        self.name, self._part, self._deaths = name, part, 0
        self._send()

    def _send(self) -> None:
        with suppress(ConnectionError):  # the process is dead, as `take` will find
            self.connection.send(self._part)

    def take(self) -> bool:
        """Receive `reply`; False if the process has died and another one deals with the part now."""
        try:
            self.reply = self.connection.recv()
        except (EOFError, OSError):
            self._deaths += 1
            self.stop()
            exit_code = self._process.exitcode
            self._start()
            if self._deaths < _ATTEMPTS:
                self._send()
                return False
            self.reply = Died(f"{_ATTEMPTS} processes died over it, the last with exit code {exit_code}")
        return True

    def stop(self) -> None:
        """End the process, whatever it does: it has no effects but its reply."""
        self.connection.close()
        self._process.terminate()
        self._process.join()


def _serve(connection: Connection, task: Callable[[Any], Any]) -> None:
    """Answer parts with what the task gives, or with the error, until the connection ends."""
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
        sys.exit(1)  # without a traceback, which would tell of the part


def _ready(workers: list[Worker]) -> list[Worker]:
    """Wait until workers have answered, or died."""
    connections = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in connections]
