"""Functions of the user's, which may do anything on some rows."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dpnoise._processes import Died, in_processes


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings of a user's function: they tell of the data, as errors do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answer_of(f: Callable[[Any], Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Give what is read from a function's answer; None when either raises, of which nobody may be told."""
    try:
        with without_warnings():
            return read(f(rows))
    except KeyboardInterrupt:
        raise
    except BaseException:  # Rust's panics, such as those of polars, are not of `Exception`
        return None


def check_importable(f: Callable[[Any], Any]) -> None:
    """Have another process import a function before it matters: later it would silently have no answers."""
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
