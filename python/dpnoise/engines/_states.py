"""What all engines do with reports: count a part of them into a state, and merge states.

Both are pure functions of their arguments, so an engine may run them again, and twice at once. What must happen once
for each part is that its state enters the merge; each engine gets that from its task results, never from side effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpnoise.engines._columns import as_rows
from dpnoise.local import Accumulator, Protocol


def count(protocol: Protocol, batches: Iterable[Any]) -> bytes:
    """Give the state of an accumulator to which all batches were added."""
    accumulator = protocol.accumulator()
    for batch in batches:
        # One thread: the engine has a worker for every core.
        accumulator.add(as_rows(batch, protocol.report_bytes), threads=1)
    return accumulator.to_bytes()


def merge(protocol: Protocol, states: Iterable[bytes]) -> Accumulator:
    """Give the accumulator of all states together."""
    total = protocol.accumulator()
    for state in states:
        total.merge(Accumulator.from_bytes(state))
    return total


def check_protocol(protocol: Protocol) -> None:
    """Refuse what is not a protocol before work is spread."""
    if not isinstance(protocol, Protocol):
        raise TypeError(f"protocol must be a protocol of dpnoise.local, got {type(protocol).__name__}")
