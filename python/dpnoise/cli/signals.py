"""Signals that ask the program to end: one line, an exit code, and nothing lost."""

from __future__ import annotations

import signal
import sys
import threading
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from traceback import walk_stack
from types import FrameType
from typing import Any

from dpnoise.cli.starting import NAMES, end


@contextmanager
def raised(received: list[int]) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at the first signal, and append all signals to `received`.

    Further signals are ignored, so that they do not interrupt the cleanup of the first one. So are all signals after
    the block: the program's work is done then, and its exit code is known. The first one may be raised while the block
    is entered or left, too, so whoever catches it does so around the block.
    """
    heeded, former = True, sys.unraisablehook
    again: list[LockType] = []

    def once_more() -> None:
        done = allocate_lock()
        done.acquire()
        start_new_thread(_again, (received.pop(), done))
        again.append(done)

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal heeded
        received.append(number)
        if heeded and any(each.f_code is swallowed.__code__ for each, _ in walk_stack(frame)):
            once_more()
        elif heeded:
            heeded = False
            raise KeyboardInterrupt

    def swallowed(problem: sys.UnraisableHookArgs) -> None:
        # An exception in a finalizer, such as the one of an import lock, does not reach the program.
        nonlocal heeded
        if problem.exc_type is KeyboardInterrupt and received:
            heeded = True
            once_more()
        else:
            former(problem)

    with _handled(stop):
        sys.unraisablehook = swallowed
        try:
            yield
        finally:
            heeded = False
            sys.unraisablehook = former
            for done in again:  # or a signal would come after the block, to the former handler
                done.acquire()


def _again(number: int, done: LockType) -> None:
    sleep(0.01)
    signal.raise_signal(number)
    done.release()


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
def _handled(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    found = {number: signal.getsignal(number) for number in NAMES}
    heeded = {number: former for number, former in found.items() if former not in (signal.SIG_IGN, None)}  # as by nohup
    try:
        for number in heeded:
            signal.signal(number, handler)
        yield
    finally:
        for number, former in heeded.items():
            signal.signal(number, signal.SIG_IGN if former is end else former)
