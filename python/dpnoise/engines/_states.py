"""The tasks of all engines: count a part of the reports into a state, merge states, make an Arrow column of reports.

Counting and merging are pure functions of their arguments, so an engine may run them repeatedly and concurrently. The
state of each part must enter the merge exactly once; each engine takes it from its task results, never from side
effects.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from dpnoise.local import Accumulator, LongitudinalProtocol, Protocol, Rappor


def count(protocol: Protocol, parts: Iterable[Any]) -> bytes:
    """Return the state of an accumulator to which all parts were added, batches or the paths of Parquet files."""
    accumulator = protocol.accumulator()
    for part in parts:
        add = accumulator.add_parquet if isinstance(part, str | os.PathLike) else accumulator.add
        add(part, threads=1)  # the engine has a worker for every core
    return accumulator.to_bytes()


def merge(protocol: Protocol, states: Iterable[bytes]) -> Accumulator:
    total = protocol.accumulator()
    for state in states:
        total.merge(Accumulator.from_bytes(state))
    return total


def check_protocol(protocol: Protocol) -> None:
    """Refuse anything but a protocol before work is distributed."""
    if not isinstance(protocol, Protocol):
        raise TypeError(
            f"protocol must be a protocol of dpnoise.local for one attribute, got {type(protocol).__name__}"
        )


def check_client(protocol: Protocol) -> None:
    """Refuse a protocol whose clients keep a memo: it belongs on their devices."""
    check_protocol(protocol)
    if isinstance(protocol, LongitudinalProtocol | Rappor):
        raise TypeError(f"protocol must be one without a memo, which clients keep, got {type(protocol).__name__}")


def perturbed(protocol: Protocol, values: Any) -> Any:
    """Return a report for each value, as a pyarrow array of type fixed_size_binary."""
    # One thread: the engine has a worker for every core.
    reports = protocol.perturb(values, threads=1)
    return protocol.to_arrow(reports).column(0)
