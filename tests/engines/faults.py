"""Faults planted in tasks. The workers of all engines import this module as ``engines.faults``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any


def kill_once(marker: str, batch: Any) -> Any:
    """Kill the process that comes here first, as if memory had run out; later ones get the batch."""
    if first_attempt(marker):
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def kill_always(batch: Any) -> Any:
    """Kill every process that comes here."""
    os.kill(os.getpid(), signal.SIGKILL)


def first_attempt(marker: str) -> bool:
    """Return whether nobody came here with this marker before."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Received:
    """A batch that is the result of a function which the process that receives it calls."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._call
