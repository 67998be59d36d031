"""Bars that show how far long work has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal


@contextmanager
def progress(
    task: str, total: int | None, unit: Literal["rows", "bytes", "releases", "blocks", "subsets"] = "rows"
) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, if that is a terminal; yields a function that moves it on by so many units.

    Without rich, which the extra ``cli`` brings, there is no bar.
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

        shown = sys.stderr is not None and sys.stderr.isatty()
    except ImportError:
        shown = False
    if not shown:
        yield lambda units: None
        return
    amount = [DownloadColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
    columns = (TextColumn(task), BarColumn(), *amount, TimeElapsedColumn())
    # Transient: where the bar stopped would tell in which part of the data an error lies.
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        identifier = bar.add_task(task, total=total)
        yield lambda units: bar.advance(identifier, units)
