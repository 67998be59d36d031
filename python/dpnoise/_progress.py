"""Bars that show how far long work has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, Any, Final, Literal, cast

is_silent: Final = ContextVar("is_silent", default=False)
"""Whether the caller wants no bars."""


class _Terminal:
    """Standard error that ignores its own failures: a closed terminal must not stop the work."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def silent() -> Iterator[None]:
    """Show no bars in the block."""
    token = is_silent.set(True)
    try:
        yield
    finally:
        is_silent.reset(token)


@contextmanager
def progress(
    task: str, total: int | None, unit: Literal["rows", "bytes", "releases", "blocks", "subsets"] = "rows"
) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, if that is a terminal; yields a function that advances it by a number of units.

    Without rich, which the extra ``cli`` brings, there is no bar, and none within `silent`.
    """
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        shown = not is_silent.get() and sys.stderr is not None and sys.stderr.isatty()
    except ImportError:
        shown = False
    if not shown:
        yield lambda units: None
        return
    amount = [DownloadColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
    columns = (TextColumn(task), BarColumn(), *amount, TimeElapsedColumn())
    console = Console(file=cast(IO[str], _Terminal(sys.stderr)))
    # Transient: a bar that stays on the screen would reveal which part of the data has an error.
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            identifier = bar.add_task(task, total=total)
            yield lambda units: bar.advance(identifier, units)
    finally:
        console.show_cursor()  # an interrupt can come between hiding the cursor and the block
