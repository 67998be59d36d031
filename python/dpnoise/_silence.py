"""Silence about the functions of users: what they raise and warn of depends on data."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_Part = TypeVar("_Part")
_Reply = TypeVar("_Reply")


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings of a user's function: like errors, they reveal data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def interruptible(ask: Callable[[_Part], _Reply]) -> Iterator[Callable[[_Part], _Reply]]:
    """Wrap `ask` so that it raises KeyboardInterrupt when the user has pressed Ctrl-C, and for no other reason.

    What calls a user's function suppresses KeyboardInterrupt, since the function could raise it depending on the data.
    So a signal handler records whether Ctrl-C was pressed. Python runs signal handlers in the main thread only.
    """
    pressed = []
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    def asking(part: _Part) -> _Reply:
        reply = ask(part)
        if pressed:
            raise KeyboardInterrupt
        return reply

    watched = callable(before) and threading.current_thread() is threading.main_thread()
    if watched:
        signal.signal(signal.SIGINT, note)
    try:
        yield asking
    finally:
        if watched:
            signal.signal(signal.SIGINT, before)
