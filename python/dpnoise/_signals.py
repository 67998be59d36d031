"""Signals that ask the program to end: one line, an exit code, and nothing lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from dpnoise._starting import ENDING, end


@contextmanager
def raised() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt in the block at the first signal; yields the list of received signals.

    Further signals are ignored, so that they do not interrupt the cleanup of the first one. So are all signals after
    the block: the program's work is done then, and its exit code is known.
    """
    received: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            raise KeyboardInterrupt

    with _handled(stop):
        yield received


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals to the end of the block."""
    waiting: list[int] = []
    try:
        with _handled(lambda number, _: waiting.append(number)):
            yield
    finally:
        for number in waiting[:1]:
            signal.raise_signal(number)


@contextmanager
def ignored() -> Iterator[None]:
    """Ignore signals in the block."""
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    previous = _set(handler)
    try:
        yield
    finally:
        for number, former in previous.items():
            signal.signal(number, signal.SIG_IGN if former is end else former)


def _set(handler: Any) -> dict[int, Any]:
    """Set the handler of all signals except ignored ones (nohup); gives the earlier handlers."""
    former = {number: signal.getsignal(number) for number in ENDING}
    heeded = {number: found for number, found in former.items() if found not in (signal.SIG_IGN, None)}
    for number in heeded:
        signal.signal(number, handler)
    return heeded
