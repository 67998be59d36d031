"""Signals that ask the program to end, from the first moment on: one line, an exit code, and nothing lost.

It is imported before all else, so it imports next to nothing itself. While the program starts there is nothing to save,
and a signal ends it at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any, Final, NoReturn

# Those that the system has: there is no SIGHUP on Windows.
_ENDING: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _is_the_program() -> bool:
    """Whether this process is ``python -m dpnoise``, whose main module is being looked for, or the script `dpnoise`."""
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    if name == "-m":
        words = sys.orig_argv
        named = any(option[:1] == "-" and option[-1] == "m" and word == "dpnoise" for option, word in pairwise(words))
        return named or "-mdpnoise" in words
    return os.path.basename(name) in ("dpnoise", "dpnoise.exe")


def _end(number: int, _: FrameType | None) -> NoReturn:
    try:
        os.write(2, f"dpnoise: stopped by {signal.Signals(number).name}\n".encode())
    finally:
        os._exit(128 + number)


@contextmanager
def raised() -> Iterator[list[int]]:
    """Have signals raise KeyboardInterrupt in the block; yields the list of their numbers.

    After it the program ignores them: its work is done, and its exit code is known.
    """
    received: list[int] = []

    def stop(number: int, _: FrameType | None) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt

    with _handled(stop):
        yield received


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals wait until the block has ended."""
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
            signal.signal(number, signal.SIG_IGN if former is _end else former)


def _set(handler: Any) -> dict[int, Any]:
    """Set the handler of all signals but those that are ignored, as nohup has it; gives the handlers before."""
    former = {number: signal.getsignal(number) for number in _ENDING}
    heeded = {number: found for number, found in former.items() if found not in (signal.SIG_IGN, None)}
    for number in heeded:
        signal.signal(number, handler)
    return heeded


# A program that only imports dpnoise keeps its handlers.
if _is_the_program() and threading.current_thread() is threading.main_thread():
    _set(_end)
