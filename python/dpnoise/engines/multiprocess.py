"""Count reports with the processes of one machine.

Within one process the kernels use all cores already. Processes pay where reading costs more than counting: many files,
or batches that are slow to unpack.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Final

import numpy as np

from dpnoise._native import ParameterError
from dpnoise.engines import _states
from dpnoise.local import Accumulator, Protocol

__all__ = ["aggregate"]

_ATTEMPTS: Final = 3


def aggregate(protocol: Protocol, parts: Iterable[Any], *, processes: int | None = None) -> Accumulator:
    """Count reports in worker processes.

    A part whose worker dies is counted again by a new worker, and its state is taken in once: the result is that of all
    reports, or there is an error that names the part.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports.
    parts : iterable of path-like, or of what `Accumulator.add` takes
        Parquet files as ``dpnoise perturb`` writes them, or batches of reports. Each is counted as a whole by one
        process. A generator is asked for the next part when a process is free.
    processes : int, optional
        How many processes to use, at least 1; one for every core when not given.

    Returns
    -------
    dpnoise.local.Accumulator
        The same as if one process had counted all parts.

    Raises
    ------
    ParameterError
        When a part does not fit the protocol or is no file of reports, a file is given twice, or ``processes`` is below
        1; the message names the part.
    TypeError
        When ``protocol``, ``parts`` or a batch is of another type.
    OSError
        When a file cannot be read.
    RuntimeError
        When three workers died over the same part; the message names it.

    Notes
    -----
    The processes are spawned, and import the main program: what a script does must stand below
    ``if __name__ == "__main__":``.
    """
    _states.check_protocol(protocol)
    limit = _number_of(processes)
    named_parts = _named(parts)
    total = protocol.accumulator()
    workers: list[_Worker] = []
    try:
        for name, part in islice(named_parts, limit):
            workers.append(_Worker(protocol))
            workers[-1].give(name, part)
        while workers:
            for worker in _ready(workers):
                state = worker.take()
                if state is None:
                    continue
                total.merge(Accumulator.from_bytes(state))
                following = next(named_parts, None)
                if following is None:
                    worker.stop()
                    workers.remove(worker)
                else:
                    worker.give(*following)
    finally:
        for worker in workers:
            worker.stop()
    return total


class _Worker:
    """A process that counts one part at a time, and is replaced when it dies.

    What `concurrent.futures` offers does not say which part a process died over, and waits for ever for the rest of a
    state that a process was sending when it was killed.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._start()

    def _start(self) -> None:
        # Spawned: a fork would copy locks that other threads hold.
        context = multiprocessing.get_context("spawn")
        self.connection, end = context.Pipe()
        self._process = context.Process(target=_serve, args=(end, self._protocol), daemon=True)
        try:
            self._process.start()
        finally:
            end.close()  # then the connection ends when the process does

    def give(self, name: str, part: Any) -> None:
        """Have a part counted."""
        self._name, self._part, self._deaths = name, part, 0
        self._send()

    def _send(self) -> None:
        with suppress(ConnectionError):  # the process is dead, as `take` will find
            self.connection.send(self._part)

    def take(self) -> bytes | None:
        """Receive the state of the part; None if the process has died and another one counts it now."""
        try:
            reply = self.connection.recv()
        except (EOFError, OSError):
            self._deaths += 1
            self.stop()
            if self._deaths == _ATTEMPTS:
                raise RuntimeError(
                    f"{self._name} was not counted: {_ATTEMPTS} processes died over it, the last with exit code "
                    f"{self._process.exitcode}"
                ) from None
            self._start()
            self._send()
            return None
        if isinstance(reply, ParameterError | TypeError):
            text = str(reply)
            raise type(reply)(text if self._name in text else f"{self._name}: {text}")
        if isinstance(reply, Exception):
            raise reply
        state: bytes = reply
        return state

    def stop(self) -> None:
        """End the process, whatever it does: it has no effects but its reply."""
        self.connection.close()
        self._process.terminate()
        self._process.join()


def _serve(connection: Connection, protocol: Protocol) -> None:
    """Answer parts with their states, or with the error, until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    with suppress(EOFError, ConnectionError):
        while True:
            part = connection.recv()
            try:
                reply: bytes | Exception = _states.count(protocol, [part])
            except Exception as error:
                reply = error
            connection.send(reply)


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """Wait until workers have answered, or died."""
    connections = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in connections]


def _named(parts: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield every part with what to call it; refuse a file given twice, whose reports would be counted twice."""
    if isinstance(parts, str | os.PathLike | np.ndarray):
        raise TypeError(f"parts must be several files or batches, for example a list, got {type(parts).__name__}")
    seen = set()
    for number, part in enumerate(parts):
        if not isinstance(part, str | os.PathLike):
            yield f"parts[{number}]", part
            continue
        status = os.stat(part)
        identity = (status.st_dev, status.st_ino)  # the same for every link to a file
        if identity in seen:
            raise ParameterError(f"parts must have no file twice, got {os.fspath(part)!r} again")
        seen.add(identity)
        yield repr(os.fspath(part)), part


def _number_of(processes: int | None) -> int:
    if processes is None:
        return os.cpu_count() or 1
    if operator.index(processes) < 1:
        raise ParameterError(f"processes must be an integer of at least 1, got {processes!r}")
    return operator.index(processes)
