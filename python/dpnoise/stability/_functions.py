"""The user's functions, which may do anything on some rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

from dpnoise._errors import ParameterError
from dpnoise._processes import Died, in_processes
from dpnoise._silence import without_warnings


def answer_of(f: Callable[[Any], Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Call a function and read its answer; return None if either raises, without showing the exception."""
    try:
        with without_warnings():
            return read(f(rows))
    except BaseException:  # Rust's panics, such as those of polars, are no `Exception`; see `interruptible`
        return None


def tried(f: Callable[[Any], Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Call a function on made-up rows, where what `answer_of` hides may be shown."""
    answer = f(rows)
    try:
        read(answer)
    except Exception as error:
        raise ParameterError(
            f"f must return what can be used, got {answer!r:.60}, which counts as no answer"
        ) from error
    return answer


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
