"""The user's functions, which may do anything on some rows."""

from __future__ import annotations

import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from dpnoise._processes import Died, in_processes

_Part = TypeVar("_Part")
_Reply = TypeVar("_Reply")


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings of a user's function: like errors, they reveal data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answer_of(f: Callable[[Any], Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Call a function and read its answer; return None if either raises, without showing the exception."""
    try:
        with without_warnings():
            return read(f(rows))
    except BaseException:  # Rust's panics, such as those of polars, are no `Exception`; see `interruptible`
        return None


@contextmanager
def interruptible(ask: Callable[[_Part], _Reply]) -> Iterator[Callable[[_Part], _Reply]]:
    """Wrap `ask` so that it raises KeyboardInterrupt when the user has pressed Ctrl-C, and for no other reason.

    `answer_of` suppresses KeyboardInterrupt, since a user's function could raise it depending on the data. So a signal
    handler records whether Ctrl-C was pressed. Python runs signal handlers in the main thread only.
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


def check_importable(f: Callable[[Any], Any]) -> None:
    """Check that other processes can import a function: otherwise it would silently have no answers."""
    try:
        pickle.dumps(f)
        replies = [reply for _, reply in in_processes(partial(isinstance, f), [(None, object)], 1)]
    except (pickle.PicklingError, AttributeError, TypeError):
        replies = [Died()]
    if isinstance(replies[0], Died):
        raise TypeError(
            "f must be a function that other processes can import, by its name from a module or from a script that has "
            'if __name__ == "__main__":'
        )
