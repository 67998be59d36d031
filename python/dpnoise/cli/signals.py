"""Signals that ask the program to end: one line, an exit code, and nothing lost."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from dpnoise.cli.starting import NAMES, end

_TIMER: Final = [signal.SIGALRM] if hasattr(signal, "setitimer") else []  # Windows has none


@contextmanager
def raised(received: list[int]) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at the first signal, and append all signals to `received`.

    Further signals are ignored, so that they do not interrupt the cleanup of the first one. So are all signals after
    the block: the program's work is done then, and its exit code is known. The first one may be raised while the block
    is entered or left, too, so whoever catches it does so around the block.
    """
    heeded, former = True, sys.unraisablehook

    def stop(number: int, _: object) -> None:
        nonlocal heeded
        received.append(number)
        if heeded:
            heeded = False
            raise KeyboardInterrupt

    def swallowed(problem: sys.UnraisableHookArgs) -> None:
        # An exception in a finalizer, such as the one of an import lock, does not reach the program: it is raised anew.
        nonlocal heeded
        if problem.exc_type is KeyboardInterrupt and received:
            if _TIMER:
                signal.setitimer(signal.ITIMER_REAL, 0.01)
            heeded = True
        else:
            former(problem)

    with _handled(stop), _handled(lambda *_: signal.raise_signal(received.pop()), _TIMER):
        sys.unraisablehook = swallowed
        try:
            yield
        finally:
            heeded = False
            sys.unraisablehook = former
            if _TIMER:
                signal.setitimer(signal.ITIMER_REAL, 0.0)


@contextmanager
def deferred() -> Iterator[None]:
    waiting: list[int] = []
    try:
        with _handled(lambda number, _: waiting.append(number)):
            yield
    finally:
        for number in waiting[:1]:
            signal.raise_signal(number)


@contextmanager
def ignored() -> Iterator[None]:
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def _handled(handler: Any, numbers: Iterable[int] = NAMES) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    found = {number: signal.getsignal(number) for number in numbers}
    heeded = {number: former for number, former in found.items() if former not in (signal.SIG_IGN, None)}  # as by nohup
    try:
        for number in heeded:
            signal.signal(number, handler)
        yield
    finally:
        for number, former in heeded.items():
            signal.signal(number, signal.SIG_IGN if former is end else former)
