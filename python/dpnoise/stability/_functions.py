"""The user's functions, which may do anything on some rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

from dpnoise._processes import Died, in_processes
from dpnoise._silence import without_warnings


def answer_of(f: Callable[[Any], Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Call a function and read its answer; return None if either raises, without showing the exception."""
    try:
        with without_warnings():
            return read(f(rows))
    except BaseException:  # Rust's panics, such as those of polars, are no `Exception`; see `interruptible`
        return None


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
