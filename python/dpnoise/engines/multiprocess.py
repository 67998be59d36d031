"""Count reports with the processes of one machine.

The kernels use all cores within one process already. Several processes are faster where reading takes longer than
counting: for many files, or batches that are slow to unpack.
"""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, Final

import numpy as np

from dpnoise import _calls
from dpnoise._errors import ParameterError
from dpnoise._processes import Died, in_processes
from dpnoise.engines import _states
from dpnoise.local import Accumulator, Protocol

__all__ = ["collect"]

# Silent until the program configures logging. No line may show data, reports or seeds.
_logger: Final = logging.getLogger("dpnoise")
_logger.addHandler(logging.NullHandler())


def collect(protocol: Protocol, parts: Iterable[Any], *, processes: int | None = None) -> Accumulator:
    """Count reports in worker processes.

    A part whose worker dies is counted again by a new worker, and its state is merged once: the result has all reports,
    as if one process had counted everything, or an error names the part. The logger ``dpnoise`` gets a warning for each
    death.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports: one of `dpnoise.local` for one attribute.
    parts : iterable of path-like, or of what `Accumulator.add` takes
        Parquet files as ``dpnoise perturb`` writes them, or batches of reports. Each is counted as a whole by one
        process. A generator is asked for the next part when a process is free.
    processes : int, optional
        How many processes to use, at least 1; by default one for every core.

    Returns
    -------
    Accumulator
        The accumulator that one process would have made.

    Raises
    ------
    ParameterError
        When a part does not fit the protocol or is no file of reports, or a file is given twice; the message names the
        part.
    RuntimeError
        When three workers died over the same part; the message names it.

    Notes
    -----
    The processes are spawned, and import the main program: put the code of a script below ``if __name__ ==
    "__main__":``.
    """
    _states.check_protocol(protocol)
    limit = _number_of(processes)
    named_parts = _named(parts)
    total = protocol.accumulator()
    with closing(in_processes(partial(_count, protocol), named_parts, limit, _log_death)) as replies:
        for name, reply in replies:
            total.merge(Accumulator.from_bytes(_state(name, reply)))
    return total


def _log_death(name: str, exit_code: int | None) -> None:
    _logger.warning(
        "a process died with exit code %s while it counted %s; another one takes its place", exit_code, name
    )


def _count(protocol: Protocol, part: Any) -> bytes:
    return _states.count(protocol, [part])


def _state(name: str, reply: Any) -> bytes:
    if isinstance(reply, Died):
        raise RuntimeError(f"{name} was not counted: {reply}")
    if isinstance(reply, ParameterError | TypeError):
        text = str(reply)
        raise type(reply)(text if name in text else f"{name}: {text}")
    if isinstance(reply, Exception):
        raise reply
    state: bytes = reply
    return state


def _named(parts: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield every part with its name in messages; refuse a file given twice, whose reports would be counted twice."""
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
            raise ParameterError(f"parts must have each file once, got {os.fspath(part)!r} twice")
        seen.add(identity)
        yield repr(os.fspath(part)), part


def _number_of(processes: int | None) -> int:
    if processes is None:
        return os.cpu_count() or 1
    if operator.index(processes) < 1:
        raise ParameterError(f"processes must be an integer of at least 1, got {processes!r}")
    return operator.index(processes)


_calls.explain(__name__)
